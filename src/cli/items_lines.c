/* Lines about items for people: what became of one, and how much is still to be done. */
#include "cli/items.h"

#include <stdlib.h>

enum { FAILURES_MAX = 20 }; /* below one item; the others are counted */

/* ---- what became of an item ---- */

/* Its path where it has one; a note has only a name. */
static const char *title_of(const json_t *item)
{
    return cli_text(item, "source")[0] ? cli_text(item, "source") : cli_text(item, "name");
}

static void print_warnings(const json_t *item)
{
    const json_t *warning;
    size_t i;
    json_array_foreach(json_object_get(item, "warnings"), i, warning)
    {
        fputs(i ? ", " : "  (", stdout);
        cli_print_safe(cli_text(warning, "code"));
    }
    fputs(i ? ")" : "", stdout);
}

static void print_line(const json_t *item, int indent)
{
    const json_t *counts = json_object_get(item, "counts"), *error = json_object_get(item, "error");
    printf("%*s%-10s ", indent, "", cli_text(item, "status"));
    cli_print_safe(title_of(item));
    if (json_is_object(counts)) {
        const long long total = cli_number(counts, "total"), failed = cli_number(counts, "failed");
        printf("  %lld item%s in it", total, total == 1 ? "" : "s");
        if (failed) {
            printf(", %lld failed", failed);
        }
    } else if (cli_is(item, "status", "completed")) {
        const long long chunks = cli_number(item, "chunk_count");
        printf("  %lld chunk%s", chunks, chunks == 1 ? "" : "s");
    }
    print_warnings(item);
    if (json_is_object(error)) {
        fputs(": ", stdout);
        cli_print_safe(cli_text(error, "message"));
        fputs(" (", stdout);
        cli_print_safe(cli_text(error, "code"));
        fputc(')', stdout);
    }
    fputc('\n', stdout);
}

/* Those of one folder; *left counts down over all of them. What cannot be listed is left out: the outcome is told. */
static void print_failures_below(struct cli *cli, const json_t *folder, int indent, int *left)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    const json_t *item;
    size_t i;
    int status = 0;
    cli_add_base_path(cli, &path, "/items?status=failed&parent=");
    cli_add_encoded(&path, cli_text(folder, "id"));
    if (path.failed != QR_CODE_NONE || *left <= 0 ||
        cli_ask(cli, "GET", path.data, NULL, &status, &answer, NULL) != QR_OK || status != 200) {
        return;
    }
    json_array_foreach(json_object_get(answer, "data"), i, item)
    {
        if (--*left < 0) {
            printf("%*s… and more; `quire ls --all --status failed` lists them\n", indent, "");
            return;
        }
        print_line(item, indent);
        if (json_is_object(json_object_get(item, "counts"))) {
            print_failures_below(cli, item, indent + 2, left);
        }
    }
}

void cli_print_outcome(struct cli *cli, const json_t *item)
{
    int left = FAILURES_MAX;
    print_line(item, 0);
    if (json_is_object(json_object_get(item, "counts")) && cli_is(item, "status", "failed")) {
        print_failures_below(cli, item, 2, &left);
    }
}

/* ---- what is pending ---- */

static long long count_of(const json_t *counts, const char *state)
{
    const json_t *count = json_object_get(counts, state); /* a number, or "10000+" */
    return json_is_string(count) ? strtoll(json_string_value(count), NULL, 10) : json_integer_value(count);
}

struct cli_todo cli_todo_of(const json_t *queue)
{
    const json_t *counts = json_object_get(queue, "counts");
    struct cli_todo todo = {.now = count_of(counts, "queued") + count_of(counts, "running")};
    if (!cli_is(queue, "name", "delete")) {
        todo.later = count_of(counts, "blocked") + count_of(counts, "scheduled");
    }
    return todo;
}

void cli_print_pending(struct cli *cli)
{
    QR_JSON *answer = NULL;
    const json_t *queue;
    size_t i;
    long long sum = 0;
    int status = 0;
    if (cli->json || cli_ask(cli, "GET", "/api/v1/queues", NULL, &status, &answer, NULL) != QR_OK || status != 200) {
        return;
    }
    json_array_foreach(json_object_get(answer, "data"), i, queue)
    {
        const struct cli_todo todo = cli_todo_of(queue);
        sum += todo.now + todo.later;
    }
    if (sum) {
        const char *them = sum == 1 ? "it" : "them";
        printf("%lld job%s pending: `quire wait` ", sum, sum == 1 ? " is" : "s are");
        printf(cli->quire ? "runs %s\n" : "waits for the process that runs %s\n", them);
    }
}
