/* Takes another configuration while it serves (HTTP-11). In order: the whole of it is read and checked; the port takes its part,
 * where a certificate that is no good is found; then the library, which has nothing left to refuse. */
#include "cli/reload.h"

#include "mcp/mcp.h"

enum { OPTION_LISTEN }; /* the order of the command's options */

enum { LAST_ANSWERS_MS = 5000 }; /* for clients that still send or read when it ends */

/* A path, or NULL for "none". */
static const char *file_of(const struct qr_config *config, enum qr_config_id id)
{
    const char *path = qr_config_text(config, id);
    return strcmp(path, "none") == 0 ? NULL : path;
}

struct quire_port_options cli_port_options(const struct cli *cli, const struct qr_config *config)
{
    const char *hosts = qr_config_text(config, QR_CONFIG_SERVER_HOSTS);
    return (struct quire_port_options){
        .listen =
            cli->values[OPTION_LISTEN] ? cli->values[OPTION_LISTEN] : qr_config_text(config, QR_CONFIG_SERVER_LISTEN),
        .hosts = strcmp(hosts, "-") == 0 ? "" : hosts,
        .tls_certificate = file_of(config, QR_CONFIG_SERVER_TLS_CERTIFICATE),
        .tls_key = file_of(config, QR_CONFIG_SERVER_TLS_KEY),
        .threads = (int)qr_config_number(config, QR_CONFIG_SERVER_THREADS),
        .connections_max = (int)qr_config_number(config, QR_CONFIG_SERVER_CONNECTIONS),
        .address_connections_max = (int)qr_config_number(config, QR_CONFIG_SERVER_ADDRESS_CONNECTIONS),
        .streams_max = (int)qr_config_number(config, QR_CONFIG_SERVER_STREAMS),
        .address_streams_max = (int)qr_config_number(config, QR_CONFIG_SERVER_ADDRESS_STREAMS),
        .address_requests_per_s = qr_config_number(config, QR_CONFIG_SERVER_ADDRESS_REQUESTS),
        .request_ms = qr_config_number(config, QR_CONFIG_SERVER_REQUEST_MS),
        .bytes_per_s_min = qr_config_number(config, QR_CONFIG_SERVER_RATE_MIN),
        .body_bytes_max = (size_t)qr_config_number(config, QR_CONFIG_SERVER_BODY_LIMIT),
        .last_answers_ms = LAST_ANSWERS_MS,
        .call = quire_mcp_http_call,
        .recall = quire_request_recall,
        .log = &cli->log,
    };
}

/* ---- what is told ---- */

static void tell_setting(const struct cli *cli, const struct qr_config *config, enum qr_config_id id,
                         enum qr_log_level level, const char *event)
{
    const struct qr_config_value *value = &config->values[id];
    QR_CLEANUP(qr_buf_done) struct qr_buf shown = {0};
    qr_config_add_shown(&shown, qr_config_key(id), qr_str_of(value->text));
    qr_log(&cli->log, level, event, qr_field_text("setting", qr_config_key(id)->name),
           qr_field_str("value", qr_buf_str(&shown)),
           qr_field_text("from", value->source == QR_SOURCE_DEFAULT ? "default" : value->origin));
}

struct changes {
    bool is_taken[QR_CONFIG_COUNT], waits[QR_CONFIG_COUNT];
    int taken, waiting;
};

static struct changes compare(const struct qr_config *next, const struct qr_config *now)
{
    struct changes changes = {0};
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        changes.waits[id] = qr_config_needs_start(next, now, id);
        changes.is_taken[id] = !changes.waits[id] && !qr_config_same(next, now, id);
        changes.waiting += changes.waits[id];
        changes.taken += changes.is_taken[id];
    }
    return changes;
}

/* The log's own settings are in force already. */
static void tell_taken(const struct cli *cli, const struct changes *changes)
{
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        if (changes->is_taken[id]) {
            tell_setting(cli, &cli->config, id, QR_LOG_INFO, "setting_changed");
        }
    }
    qr_log(&cli->log, QR_LOG_INFO, "reloaded", qr_field_i64("changed", changes->taken),
           qr_field_i64("waiting_for_restart", changes->waiting));
}

/* ---- taking it ---- */

static void tell_waiting(const struct cli *cli, const struct qr_config *next, const struct changes *changes)
{
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        if (changes->waits[id]) {
            tell_setting(cli, next, id, QR_LOG_WARN, "setting_waits_for_restart");
        }
    }
}

static qr_rc hand_out(struct cli *cli, struct quire_port *port, const struct qr_config *next, qr_err *err)
{
    const struct quire_port_options options = cli_port_options(cli, next);
    struct quire_setting settings[QR_CONFIG_COUNT];
    struct quire_error error;
    QR_TRY(quire_port_reload(port, &options, err));
    if (quire_reload(cli->quire, settings, cli_settings_of(next, settings), &error) != 0) {
        cli_read_error(error.code, error.message, err);
        return qr_code_info(err->code)->rc;
    }
    return QR_OK;
}

/* Takes the configuration, also where it fails. */
static qr_rc take(struct cli *cli, struct quire_port *port, struct qr_config *next, qr_err *err)
{
    QR_TRY(cli_read_config(cli, next, err));
    const struct changes changes = compare(next, &cli->config);
    tell_waiting(cli, next, &changes);
    QR_TRY(qr_config_keep_fixed(next, &cli->config, err));
    QR_TRY(hand_out(cli, port, next, err));
    qr_config_done(&cli->config);
    cli->config = *next;
    qr_config_init(next);
    cli->log.level_min = (enum qr_log_level)qr_config_number(&cli->config, QR_CONFIG_LOG_LEVEL);
    cli->log.format = (enum qr_log_format)qr_config_number(&cli->config, QR_CONFIG_LOG_FORMAT);
    tell_taken(cli, &changes);
    return QR_OK;
}

void cli_reload(struct cli *cli, struct quire_port *port)
{
    struct qr_config next;
    qr_err err = {0};
    qr_config_init(&next);
    if (take(cli, port, &next, &err) != QR_OK) {
        qr_log_err(&cli->log, QR_LOG_ERROR, "reload_failed", &err);
    }
    qr_config_done(&next);
}
