/* serve: owns the data folder, runs jobs, and takes requests on a port and on the folder's socket until it is told to
 * end. */
#include "cli/items.h"
#include "cli/notify.h"
#include "http/port.h"
#include "mcp/mcp.h"

#include <signal.h>
#include <sys/resource.h>

enum {
    LISTEN,                 /* of the options */
    LAST_ANSWERS_MS = 5000, /* for clients that still send or read when it ends */
};

/* Two for each connection would do; nobody needs to know what the shell's limit is. */
static void allow_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool has_keys(struct cli *cli)
{
    QR_JSON *answer = NULL;
    int status = 0;
    return cli_ask(cli, "GET", "/api/v1/keys?limit=1", NULL, &status, &answer, NULL) == QR_OK && status == 200 &&
           json_array_size(json_object_get(answer, "data")) > 0;
}

static qr_rc start_port(struct cli *cli, struct quire_port **ret_port, qr_err *err)
{
    const struct qr_config *config = &cli->config;
    const char *hosts = qr_config_text(config, QR_CONFIG_SERVER_HOSTS);
    const struct quire_port_options options = {
        .listen = cli->values[LISTEN] ? cli->values[LISTEN] : qr_config_text(config, QR_CONFIG_SERVER_LISTEN),
        .hosts = strcmp(hosts, "-") == 0 ? "" : hosts,
        .has_keys = has_keys(cli),
        .threads = (int)qr_config_number(config, QR_CONFIG_SERVER_THREADS),
        .connections_max = (int)qr_config_number(config, QR_CONFIG_SERVER_CONNECTIONS),
        .address_connections_max = (int)qr_config_number(config, QR_CONFIG_SERVER_ADDRESS_CONNECTIONS),
        .address_requests_per_s = qr_config_number(config, QR_CONFIG_SERVER_ADDRESS_REQUESTS),
        .request_ms = qr_config_number(config, QR_CONFIG_SERVER_REQUEST_MS),
        .bytes_per_s_min = qr_config_number(config, QR_CONFIG_SERVER_RATE_MIN),
        .body_bytes_max = (size_t)qr_config_number(config, QR_CONFIG_SERVER_BODY_LIMIT),
        .last_answers_ms = LAST_ANSWERS_MS,
        .call = quire_mcp_http_call,
        .log = &cli->log,
    };
    return quire_port_start(cli->quire, &options, ret_port, err);
}

/* Whether a request is answered: what is told to who watches this process. Not whether it could work: a full disk is not mended by
 * a restart. */
static bool is_healthy(struct cli *cli)
{
    QR_JSON *answer = NULL;
    int status = 0;
    return cli_ask(cli, "GET", "/healthz", NULL, &status, &answer, NULL) == QR_OK && status == 200;
}

/* Signals are blocked since the work was started. */
static void wait_for_the_end(struct cli *cli)
{
    sigset_t set;
    int number = 0;
    const int64_t watchdog_ms = cli_watchdog_ms();
    const struct timespec pause = {watchdog_ms / 1000, watchdog_ms % 1000 * 1000000};
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    while (number <= 0) {
        number = watchdog_ms ? sigtimedwait(&set, NULL, &pause) : sigwaitinfo(&set, NULL);
        if (number <= 0 && watchdog_ms && is_healthy(cli)) {
            cli_notify("WATCHDOG=1");
        }
    }
    qr_log(&cli->log, QR_LOG_INFO, "ending", qr_field_text("signal", number == SIGINT ? "SIGINT" : "SIGTERM"));
}

static int serve_until_told(struct cli *cli)
{
    struct quire_port *port = NULL;
    qr_err err = {0};
    if (start_port(cli, &port, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    printf("listening on %s\n", quire_port_url(port));
    fflush(stdout);
    cli_notify("READY=1");
    wait_for_the_end(cli);
    cli_notify("STOPPING=1");
    quire_port_stop(port);
    return 0;
}

static int serve(struct cli *cli)
{
    if (!cli->quire) {
        qr_err err;
        qr_fail(&err, QR_CODE_DATA_LOCKED, "another process owns the data folder");
        return cli_fail(cli, &err);
    }
    struct cli_work work;
    allow_files();
    int exit_code = cli_start_work(&work, cli);
    exit_code = exit_code ? exit_code : serve_until_told(cli);
    cli_stop_work(&work);
    return exit_code;
}

int cmd_serve(struct cli *cli)
{
    return cli_with_data(cli, serve);
}
