/* What commands share: the configuration, the open data folder, answers and errors. */
#include "base/fs.h"
#include "cli/paint.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- errors ---- */

/* A message may quote what was typed or read: no byte of it may move a cursor or begin a line. */
static void print_safe(FILE *out, const char *text)
{
    for (qr_str rest = qr_str_of(text); rest.len > 0;) {
        const qr_str character = cli_next_safe(&rest);
        fprintf(out, "%.*s", QR_STR_ARG(character));
    }
}

void cli_print_safe(const char *text)
{
    print_safe(stdout, text);
}

void cli_print_code(const char *code)
{
    if (code[0]) {
        fputs(" (", stdout);
        cli_print_safe(code);
        fputc(')', stdout);
    }
}

static void print_error(const qr_err *err, const char *advice)
{
    fprintf(stderr, "%squire:%s ", cli_style_code(stderr, CLI_BAD), cli_style_code(stderr, CLI_PLAIN));
    print_safe(stderr, err->msg);
    fputs("\n  ", stderr);
    print_safe(stderr, advice);
    fprintf(stderr, " (%s)\n", qr_code_info(err->code)->name);
}

void cli_print_error(const qr_err *err)
{
    print_error(err, qr_code_info(err->code)->advice);
}

static bool print_json_text(const json_t *value)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    if (!value || qr_json_write(value, &text, NULL) != QR_OK) {
        return false;
    }
    fwrite(text.data, 1, text.len, stdout);
    fputc('\n', stdout);
    return true;
}

int cli_fail(const struct cli *cli, const qr_err *err)
{
    QR_JSON *object = cli->json ? qr_json_error(err, NULL) : NULL;
    char advice[64];
    if (print_json_text(object)) {
        return qr_code_info(err->code)->exit_code;
    }
    if (err->code == QR_CODE_USAGE && cli->command) {
        snprintf(advice, sizeof advice, "See `quire help %s`.", cli->command->name);
        print_error(err, advice);
    } else {
        cli_print_error(err);
    }
    return qr_code_info(err->code)->exit_code;
}

int cli_print_json(const struct cli *cli, json_t *value)
{
    QR_JSON *owned = value;
    if (print_json_text(owned)) {
        return 0;
    }
    qr_err err;
    qr_fail(&err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
    return cli_fail(cli, &err);
}

/* ---- configuration ---- */

qr_rc cli_read_config(const struct cli *cli, struct qr_config *config, qr_err *err)
{
    const struct qr_config_inputs inputs = {
        .io = qr_io_system(),
        .file = cli->file,
        .env = (const char *const *)environ,
        .flags = cli->flags,
        .flag_count = cli->flag_count,
    };
    return qr_config_load(config, &inputs, err);
}

qr_rc cli_load_config(struct cli *cli, qr_err *err)
{
    QR_TRY(cli_read_config(cli, &cli->config, err));
    cli->log = (struct qr_log){
        .fd = STDERR_FILENO,
        .level_min = (enum qr_log_level)qr_config_number(&cli->config, QR_CONFIG_LOG_LEVEL), /* in the same order */
        .format = (enum qr_log_format)qr_config_number(&cli->config, QR_CONFIG_LOG_FORMAT),
        .clock = qr_clock_system(),
    };
    return QR_OK;
}

/* ---- the data folder ---- */

size_t cli_settings_of(const struct qr_config *config, struct quire_setting ret_settings[static QR_CONFIG_COUNT])
{
    size_t count = 0;
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        if (id != QR_CONFIG_DATA_DIR && config->values[id].source != QR_SOURCE_DEFAULT) {
            ret_settings[count++] = (struct quire_setting){qr_config_key(id)->name, qr_config_text(config, id)};
        }
    }
    return count;
}

static int open_with_settings(const struct cli *cli, struct quire **ret_quire, struct quire_error *error)
{
    struct quire_setting settings[QR_CONFIG_COUNT];
    char program[64];
    const struct quire_options options = {.data_dir = qr_config_text(&cli->config, QR_CONFIG_DATA_DIR),
                                          .program = program,
                                          .settings = settings,
                                          .setting_count = cli_settings_of(&cli->config, settings)};
    snprintf(program, sizeof program, "quire %s", cli->command->name);
    return quire_open(&options, ret_quire, error);
}

void cli_read_error(const char *code_name, const char *message, qr_err *ret_err)
{
    const qr_code code = qr_code_find(code_name);
    qr_fail(ret_err, code == QR_CODE_COUNT ? QR_CODE_INTERNAL : code, "%s", message);
}

static bool connect_to_owner(struct cli *cli)
{
    return cli_remote_open(&cli->remote, qr_config_text(&cli->config, QR_CONFIG_DATA_DIR), NULL) == QR_OK;
}

/* An owner that has just begun is about to serve its socket, and one that ends is about to leave the folder: so both ways
 * are tried for a moment. */
static int open_or_connect(struct cli *cli, struct quire_error *error)
{
    enum { WAIT_MS = 200, PAUSE_MS = 10 };
    const int64_t deadline_ms = qr_clock_mono_ms(qr_clock_system()) + WAIT_MS;
    for (;;) {
        const int status = open_with_settings(cli, &cli->quire, error);
        if (status == 0 || strcmp(error->code, qr_code_info(QR_CODE_DATA_LOCKED)->name) != 0) {
            return status;
        }
        if (connect_to_owner(cli)) {
            return 0;
        }
        if (qr_clock_mono_ms(qr_clock_system()) >= deadline_ms) {
            return status;
        }
        nanosleep(&(struct timespec){0, PAUSE_MS * 1000000L}, NULL);
    }
}

/* The server that was named, and its key: from a file or the environment, since what is typed can be seen by all. */
static int open_server(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf key = {0};
    enum { KEY_BYTES_MAX = 256 };
    const char *from_environment = getenv("QUIRE_KEY");
    qr_err err = {0};
    qr_rc rc = QR_OK;
    if (cli->key_file) {
        rc = qr_fs_read(qr_io_system(), cli->key_file, KEY_BYTES_MAX, &key, &err);
    } else if (from_environment) {
        qr_buf_add_text(&key, from_environment);
        rc = qr_buf_check(&key, &err);
    }
    if (rc == QR_OK) {
        rc = cli_remote_open_server(&cli->remote, cli->server, qr_str_trim(qr_buf_str(&key)), &err);
    }
    if (key.data) {
        explicit_bzero(key.data, key.len);
    }
    return rc == QR_OK ? 0 : cli_fail(cli, &err);
}

int cli_open(struct cli *cli)
{
    qr_err err = {0};
    struct quire_error error;
    cli->server = cli->server ? cli->server : getenv("QUIRE_SERVER");
    if (cli->server && *cli->server) {
        return open_server(cli);
    }
    const int64_t began_ms = qr_clock_mono_ms(qr_clock_system());
    if (open_or_connect(cli, &error) != 0) {
        cli_read_error(error.code, error.message, &err);
        return cli_fail(cli, &err);
    }
    qr_log(&cli->log, QR_LOG_DEBUG, cli->quire ? "data_opened" : "data_reached",
           qr_field_text("data", qr_config_text(&cli->config, QR_CONFIG_DATA_DIR)),
           qr_field_i64("took_ms", qr_clock_mono_ms(qr_clock_system()) - began_ms));
    return 0;
}

void cli_close(struct cli *cli)
{
    if (cli->quire) {
        quire_close(cli->quire);
        cli->quire = NULL;
    } else {
        cli_remote_close(&cli->remote);
    }
}

/* ---- requests ---- */

static qr_rc parse_answer(qr_str text, json_t **ret_answer, qr_err *err)
{
    const struct qr_json_limits limits = {.size_bytes_max = SIZE_MAX, .depth_max = 64}; /* our own answer */
    return qr_json_parse(text, &limits, ret_answer, err);
}

static qr_rc call_here(struct quire *quire, const char *method, const char *path, const char *body, int *ret_status,
                       json_t **ret_answer, qr_err *err)
{
    struct quire_response response;
    *ret_status = quire_call(quire, method, path, body, &response);
    const qr_rc rc = parse_answer((qr_str){response.body, response.body_size}, ret_answer, err);
    quire_response_done(&response);
    return rc;
}

qr_rc cli_ask_bytes(struct cli *cli, const char *path, int *ret_status, struct qr_buf *ret_bytes, qr_err *err)
{
    if (!cli->quire) {
        QR_CLEANUP(qr_http_response_done) struct qr_http_response response;
        QR_TRY(cli_remote_call(&cli->remote, "GET", path, NULL, &response, err));
        *ret_status = response.status;
        qr_buf_add(ret_bytes, qr_buf_str(&response.body));
        return qr_buf_check(ret_bytes, err);
    }
    struct quire_response response;
    *ret_status = quire_call(cli->quire, "GET", path, NULL, &response);
    qr_buf_add(ret_bytes, (qr_str){response.body, response.body_size});
    quire_response_done(&response);
    return qr_buf_check(ret_bytes, err);
}

static qr_rc call_owner(struct cli_remote *remote, const char *method, const char *path, const char *body,
                        int *ret_status, json_t **ret_answer, qr_err *err)
{
    QR_CLEANUP(qr_http_response_done) struct qr_http_response response;
    QR_TRY(cli_remote_call(remote, method, path, body, &response, err));
    *ret_status = response.status;
    const qr_rc rc = parse_answer(qr_buf_str(&response.body), ret_answer, err);
    return rc == QR_INVALID
               ? qr_fail(err, QR_CODE_UNAVAILABLE,
                         "the process that owns the data folder answers with status %d and no JSON", response.status)
               : rc;
}

qr_rc cli_ask(struct cli *cli, const char *method, const char *path, const char *body, int *ret_status,
              json_t **ret_answer, qr_err *err)
{
    return cli->quire ? call_here(cli->quire, method, path, body, ret_status, ret_answer, err)
                      : call_owner(&cli->remote, method, path, body, ret_status, ret_answer, err);
}

/* Of a base that there is not: which there are. */
static void advise_on_base(struct cli *cli, const char *wanted, struct qr_buf *advice)
{
    QR_JSON *answer = NULL;
    const json_t *base;
    size_t i;
    int status = 0;
    if (cli_ask(cli, "GET", "/api/v1/bases?limit=20", NULL, &status, &answer, NULL) != QR_OK || status != 200) {
        return;
    }
    const json_t *bases = json_object_get(answer, "data");
    struct qr_nearest nearest = qr_nearest_to(qr_str_of(wanted));
    json_array_foreach(bases, i, base)
    {
        qr_nearest_offer(&nearest, qr_str_of(cli_text(base, "name")));
        qr_buf_printf(advice, "%s%s", i ? ", " : "There are: ", cli_text(base, "name"));
    }
    if (nearest.name.ptr) {
        qr_buf_clear(advice);
        qr_buf_printf(advice, "Did you mean %s?", nearest.name.ptr);
    } else if (i == 0) {
        qr_buf_add_text(advice, "There are none yet: `quire add FOLDER` makes the base default.");
    }
}

/* What to do on the command line, where that is more than the table knows; nothing otherwise. */
static void advise(struct cli *cli, const qr_err *err, struct qr_buf *advice)
{
    static const char no_base[] = "there is no base ";
    if (err->code == QR_CODE_NOT_FOUND && strncmp(err->msg, no_base, strlen(no_base)) == 0) {
        advise_on_base(cli, err->msg + strlen(no_base), advice);
    } else if (err->code == QR_CODE_NOT_EMPTY) {
        qr_buf_add_text(advice, "With --yes it is deleted with everything in it.");
    }
}

int cli_report(struct cli *cli, const json_t *answer)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf advice = {0};
    const json_t *object = json_object_get(answer, "error");
    const char *code = json_string_value(json_object_get(object, "code"));
    const char *message = json_string_value(json_object_get(object, "message"));
    qr_err err = {0};
    cli_read_error(code ? code : "", message ? message : "an answer without a message", &err);
    if (!cli->json || !print_json_text(answer)) { /* as it came: it may have details */
        advise(cli, &err, &advice);
        print_error(&err, advice.failed == QR_CODE_NONE && advice.len ? advice.data : qr_code_info(err.code)->advice);
    }
    return qr_code_info(err.code)->exit_code;
}

int cli_call(struct cli *cli, const char *method, const char *path, const char *body, json_t **ret_answer)
{
    QR_JSON *answer = NULL;
    int status = 0;
    qr_err err = {0};
    if (cli_ask(cli, method, path, body, &status, &answer, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    if (status >= 400) {
        return cli_report(cli, answer);
    }
    *ret_answer = json_incref(answer);
    return 0;
}
