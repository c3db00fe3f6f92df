/* quire cache stat|prune: asks /api/v1/cache. */
#include "cli/items.h"

#include <inttypes.h>

enum { OPTION_TO };
enum { EXIT_PUT_OFF = 1 };

/* "1.2 GB" */
struct size_text {
    char text[32];
};

static struct size_text size_text(long long bytes)
{
    static const char *const units[] = {"KB", "MB", "GB", "TB"};
    struct size_text size;
    double value = (double)bytes / 1024;
    size_t i = 0;
    for (; value >= 1024 && i + 1 < QR_COUNT(units); i++) {
        value /= 1024;
    }
    if (bytes < 1024) {
        snprintf(size.text, sizeof size.text, "%lld byte%s", bytes, bytes == 1 ? "" : "s");
    } else {
        snprintf(size.text, sizeof size.text, "%.1f %s", value, units[i]);
    }
    return size;
}

static const char *vectors(long long count)
{
    return count == 1 ? "vector" : "vectors";
}

/* ---- what is there ---- */

static void print_last(const json_t *last)
{
    if (json_is_null(last)) {
        return;
    }
    const long long count = cli_number(last, "entries");
    printf("last pruned  %s, ", cli_short_time(last, "ended_at").text);
    if (cli_text(last, "put_off")[0]) {
        fputs("put off: ", stdout);
        cli_print_safe(cli_text(last, "put_off"));
        putchar('\n');
    } else {
        printf("%lld %s evicted, %s\n", count, vectors(count), size_text(cli_number(last, "bytes")).text);
    }
}

/* "8 of 10 chunks (80 %)": what was known when it was to be embedded. */
static void print_hits(long long hits, long long misses)
{
    const long long sum = hits + misses;
    printf("hits         %s of ", cli_grouped(hits).text);
    printf("%s chunk%s", cli_grouped(sum).text, sum == 1 ? "" : "s");
    if (sum > 0) {
        printf(" (%lld %%)", hits * 100 / sum);
    }
    fputc('\n', stdout);
}

static int print_stat(const json_t *cache)
{
    const json_t *pruning = json_object_get(cache, "pruning");
    printf("vectors      %lld\n", cli_number(cache, "entries"));
    printf("size         %s\n", size_text(cli_number(cache, "bytes")).text);
    printf("limit        %s\n", size_text(cli_number(cache, "limit_bytes")).text);
    print_hits(cli_number(cache, "hits"), cli_number(cache, "misses"));
    if (json_is_object(pruning)) {
        printf("being pruned since %s, to %s: %s\n", cli_short_time(pruning, "began_at").text,
               size_text(cli_number(pruning, "to_bytes")).text, cli_text(pruning, "phase"));
    }
    print_last(json_object_get(cache, "last_prune"));
    return 0;
}

/* ---- pruning ---- */

static int print_pruned(const json_t *answer)
{
    const json_t *cache = json_object_get(answer, "cache");
    const long long count = cli_number(answer, "entries"), left = cli_number(cache, "bytes");
    if (cli_text(answer, "put_off")[0]) {
        fputs("nothing was evicted: ", stdout);
        cli_print_safe(cli_text(answer, "put_off"));
        puts("; its vectors may be needed. Try again when it is whole, `quire check` says more");
        return EXIT_PUT_OFF;
    }
    printf("%lld %s evicted, %s; left: %lld, %s%s\n", count, vectors(count),
           size_text(cli_number(answer, "bytes")).text, cli_number(cache, "entries"), size_text(left).text,
           left > cli_number(answer, "to_bytes") ? ", all in use" : "");
    return 0;
}

/* As sizes are written in the configuration. */
static qr_rc write_body(const struct cli *cli, struct qr_buf *body, qr_err *err)
{
    struct qr_config_key key = *qr_config_key(QR_CONFIG_CACHE_VECTOR_LIMIT);
    int64_t bytes;
    key.name = "--to";
    if (!cli->values[OPTION_TO]) {
        return QR_OK;
    }
    QR_TRY(qr_config_parse_value(&key, qr_str_of(cli->values[OPTION_TO]), &bytes, err));
    qr_buf_printf(body, "{\"to_bytes\":%" PRId64 "}", bytes);
    return qr_buf_check(body, err);
}

/* ---- the command ---- */

static const struct action {
    const char *name;
    const char *method, *path;
    int (*print)(const json_t *answer);
} actions[] = {
    {"stat", "GET", "/api/v1/cache", print_stat},
    {"prune", "POST", "/api/v1/cache/prune", print_pruned},
};

static const struct action *find_action(const struct cli *cli, qr_err *err)
{
    const char *word = cli->arg_count ? cli->args[0] : "";
    for (size_t i = 0; i < QR_COUNT(actions); i++) {
        if (strcmp(actions[i].name, word) == 0) {
            return &actions[i];
        }
    }
    if (word[0]) {
        qr_fail(err, QR_CODE_USAGE, "quire cache has no %s: stat or prune", word);
    } else {
        qr_fail(err, QR_CODE_USAGE, "say what to do: quire cache stat or prune");
    }
    return NULL;
}

static int ask(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    const struct action *action = find_action(cli, &err);
    if (!action || write_body(cli, &body, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    int exit_code = cli_call(cli, action->method, action->path, body.len ? body.data : NULL, &answer);
    if (exit_code) {
        return exit_code;
    }
    if (!cli->json) {
        return action->print(answer);
    }
    exit_code = cli_print_json(cli, json_incref(answer));
    return exit_code ? exit_code : cli_text(answer, "put_off")[0] ? EXIT_PUT_OFF : 0;
}

int cmd_cache(struct cli *cli)
{
    qr_err err = {0};
    const struct action *action = find_action(cli, &err);
    if (action && cli->values[OPTION_TO] && strcmp(action->name, "prune") != 0) {
        qr_fail(&err, QR_CODE_USAGE, "--to is for prune");
        action = NULL;
    }
    return action ? cli_with_data(cli, ask) : cli_fail(cli, &err);
}
