/* How much is still to be done, for people. */
#include "cli/items.h"

#include <stdlib.h>

void cli_print_base_option(const char *base)
{
    if (base && strcmp(base, "default") != 0) {
        fputs(base[strcspn(base, " '\"$\\")] ? " -b '" : " -b ", stdout);
        cli_print_safe(base);
        fputs(base[strcspn(base, " '\"$\\")] ? "'" : "", stdout);
    }
}

static long long count_of(const json_t *counts, const char *state)
{
    const json_t *count = json_object_get(counts, state); /* a number, or "10000+" */
    return json_is_string(count) ? strtoll(json_string_value(count), NULL, 10) : json_integer_value(count);
}

struct cli_todo cli_todo_of(const json_t *queue)
{
    const json_t *counts = json_object_get(queue, "counts");
    struct cli_todo todo = {.now = count_of(counts, "queued") + count_of(counts, "running"),
                            .later = count_of(counts, "blocked")};
    if (!cli_is(queue, "name", "delete")) {
        todo.later += count_of(counts, "scheduled");
    }
    return todo;
}

static bool is_uncounted(const json_t *queue)
{
    const json_t *counts = json_object_get(queue, "counts"), *count;
    const char *state;
    json_object_foreach((json_t *)(uintptr_t)counts, state, count)
    {
        if (json_is_string(count) && strcmp(state, "failed") != 0) { /* "10000+" */
            return true;
        }
    }
    return false;
}

void cli_see_queues(struct cli_progress *progress, const json_t *queues, int64_t now_ms)
{
    const json_t *queue;
    size_t i;
    json_array_foreach(queues, i, queue)
    {
        const struct cli_todo todo = cli_todo_of(queue);
        cli_progress_see(progress,
                         &(struct cli_seen){.queue = cli_text(queue, "name"),
                                            .ended = cli_number(queue, "ended"),
                                            .left = todo.now + todo.later,
                                            .is_more = is_uncounted(queue),
                                            .is_paused = cli_text(queue, "paused_since")[0]},
                         now_ms);
    }
}

void cli_print_skipped(const json_t *answer)
{
    const json_t *skipped;
    size_t i;
    json_array_foreach(json_object_get(answer, "skipped"), i, skipped)
    {
        printf("skipped %s: %s\n", cli_text(skipped, "id"), cli_text(skipped, "reason"));
    }
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
