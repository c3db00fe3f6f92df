/* quire show ITEM: how it is and why, as one sentence, then what it is, then what happened to it. */
#include "cli/items.h"
#include "cli/paint.h"

/* ---- the sentence ---- */

static void print_reason(const char *code, const char *message)
{
    if (message[0]) {
        fputs(": ", stdout);
        cli_print_safe(message);
    }
    cli_print_code(code);
}

static void explain_failed(const json_t *item)
{
    const json_t *error = json_object_get(item, "error"), *counts = json_object_get(item, "counts");
    const char *id = cli_text(item, "id");
    if (!json_is_object(error)) {
        printf("%lld of the %lld items in it have failed. `quire ls %s` lists them; `quire retry %s` tries them again.",
               cli_number(counts, "failed"), cli_number(counts, "total"), id, id);
        return;
    }
    printf("It has failed at %s UTC in %s", cli_short_time(error, "at").text, cli_text(error, "stage"));
    print_reason(cli_text(error, "code"), cli_text(error, "message"));
    if (json_is_true(json_object_get(error, "retryable"))) {
        printf(". `quire retry %s` tries it again.", id);
    } else {
        fputs(". Another try alone will not help: change the file or the base's settings first.", stdout);
    }
}

static void explain_completed(const json_t *item)
{
    const json_t *counts = json_object_get(item, "counts");
    if (json_is_object(counts)) {
        printf("All %lld items in it are completed.", cli_number(counts, "total"));
    } else {
        printf("It is completed since %s UTC: %lld chunk%s can be found.", cli_short_time(item, "indexed_at").text,
               cli_number(item, "chunk_count"), cli_number(item, "chunk_count") == 1 ? "" : "s");
    }
}

/* The job that is open now; NULL when there is none. */
static const json_t *open_stage(const json_t *events)
{
    static const char *const states[] = {"running", "queued", "scheduled", "blocked"};
    const json_t *event;
    size_t i;
    for (size_t k = 0; k < QR_COUNT(states); k++) {
        json_array_foreach(events, i, event)
        {
            if (cli_is(event, "kind", "job") && cli_is(event, "state", states[k]) && !cli_is(event, "stage", "purge")) {
                return event;
            }
        }
    }
    return NULL;
}

static void explain_job(const json_t *job)
{
    const json_t *worker = json_object_get(job, "worker");
    const char *stage = cli_text(job, "stage");
    if (cli_is(job, "state", "running")) {
        const json_t *awaited = json_object_get(job, "awaited");
        printf("%s runs since %s UTC", stage, cli_short_time(job, "claimed_at").text);
        if (json_is_object(awaited)) {
            fputs(" and waits for an answer of ", stdout);
            cli_print_safe(cli_text(awaited, "url"));
            printf(" since %s UTC", cli_short_time(awaited, "since").text);
        }
        if (json_is_true(json_object_get(worker, "alive"))) {
            fputs("; worker \"", stdout);
            cli_print_safe(cli_text(worker, "name"));
            fputs("\" holds it.", stdout);
        } else {
            fputs(", but its worker is gone: the next process that runs jobs frees it.", stdout);
        }
        return;
    }
    if (cli_is(job, "state", "scheduled")) {
        printf("%s waits until %s UTC", stage, cli_short_time(job, "run_at").text);
    } else {
        printf("%s waits for its turn since %s UTC", stage, cli_short_time(job, "run_at").text);
    }
    if (cli_number(job, "attempts")) {
        printf(", after %lld attempt%s failed", cli_number(job, "attempts"),
               cli_number(job, "attempts") == 1 ? " that" : "s that");
    }
    print_reason(cli_text(job, "code"), cli_text(job, "message"));
    printf(". `quire jobs show %s` says more.", cli_text(job, "job_id"));
}

static void print_sentence(const json_t *item, const json_t *events)
{
    const json_t *job = open_stage(events), *counts = json_object_get(item, "counts");
    if (cli_is(item, "status", "failed")) {
        explain_failed(item);
    } else if (cli_is(item, "status", "completed")) {
        explain_completed(item);
    } else if (cli_is(item, "status", "idle")) {
        fputs("It is at rest and not processed: it was added with --manual, or its processing was stopped.", stdout);
    } else if (!job && json_is_object(counts)) {
        printf("%lld of the %lld items in it are worked on.", cli_number(counts, "active"),
               cli_number(counts, "total"));
    }
    if (job) {
        fputs(cli_is(item, "status", "failed") || cli_is(item, "status", "completed") ? " " : "", stdout);
        explain_job(job);
    }
}

/* ---- the facts ---- */

static void print_fact(const char *name, const char *value)
{
    if (value[0]) {
        printf("%-11s ", name);
        cli_print_safe(value);
        fputc('\n', stdout);
    }
}

static void print_counts(const json_t *item)
{
    const json_t *counts = json_object_get(item, "counts");
    if (json_is_object(counts)) {
        printf("%-11s %lld: %lld completed, %lld failed, %lld active, %lld idle\n", "items",
               cli_number(counts, "total"), cli_number(counts, "completed"), cli_number(counts, "failed"),
               cli_number(counts, "active"), cli_number(counts, "idle"));
        return;
    }
    printf("%-11s %lld, %lld tokens\n", "chunks", cli_number(item, "chunk_count"), cli_number(item, "token_count"));
}

static void print_warnings(const json_t *item)
{
    const json_t *warning;
    size_t i;
    json_array_foreach(json_object_get(item, "warnings"), i, warning)
    {
        printf("%-11s ", "warning");
        cli_print_safe(cli_text(warning, "message"));
        cli_print_code(cli_text(warning, "code"));
        fputc('\n', stdout);
    }
}

static void print_facts(const json_t *item)
{
    const long long live = cli_number(item, "live_generation");
    print_fact("item", cli_text(item, "id"));
    print_fact("name", cli_text(item, "name"));
    print_fact("type", cli_text(item, "type"));
    print_fact("source", cli_text(item, "source"));
    print_fact("mime", cli_text(item, "mime"));
    printf("%-11s ", "status");
    cli_print_status(cli_text(item, "status"), 0);
    printf(", index %s, document %s%s\n", cli_text(item, "index_status"), cli_text(item, "document_status"),
           json_is_true(json_object_get(item, "enabled")) ? "" : ", hidden");
    printf("%-11s %lld wanted, ", "generation", cli_number(item, "generation"));
    printf(live ? "%lld in search\n" : "none in search\n", live);
    print_counts(item);
    print_warnings(item);
    print_fact("added", cli_short_time(item, "created_at").text);
    print_fact("indexed", cli_short_time(item, "indexed_at").text);
}

/* ---- what happened ---- */

static void print_attempts(const json_t *job)
{
    const json_t *attempt;
    size_t i;
    json_array_foreach(json_object_get(job, "history"), i, attempt)
    {
        printf("%-19s    attempt ", cli_short_time(attempt, "claimed_at").text);
        cli_print_status(cli_text(attempt, "outcome"), 0);
        print_reason(cli_text(attempt, "code"), cli_text(attempt, "message"));
        fputc('\n', stdout);
    }
}

static void print_event(const json_t *event)
{
    printf("%-19s  ", cli_short_time(event, "at").text);
    if (cli_is(event, "kind", "generation")) {
        printf("generation %lld: %s\n", cli_number(event, "generation"), cli_text(event, "reason"));
        return;
    }
    printf("%s of generation %lld ", cli_text(event, "stage"), cli_number(event, "generation"));
    cli_print_status(cli_text(event, "state"), 0);
    print_reason(cli_text(event, "code"), cli_text(event, "message"));
    fputc('\n', stdout);
    print_attempts(event);
}

static int print_item(struct cli *cli, const json_t *item, const json_t *events)
{
    const json_t *event;
    size_t i;
    cli_paint(cli, CLI_STRONG);
    print_sentence(item, events);
    cli_paint(cli, CLI_PLAIN);
    puts("\n");
    print_facts(item);
    if (json_array_size(events)) {
        puts("\nWHEN (UTC)           WHAT");
    }
    json_array_foreach(events, i, event)
    {
        print_event(event);
    }
    if (open_stage(events)) {
        cli_print_pending(cli);
    }
    return 0;
}

static int show(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *item = NULL;
    QR_JSON *answer = NULL;
    qr_err err = {0};
    if (cli->arg_count == 0) {
        qr_fail(&err, QR_CODE_USAGE, "say which item: quire show ITEM");
        return cli_fail(cli, &err);
    }
    int exit_code = cli_find_item(cli, cli->args[0], &item);
    cli_add_base_path(cli, &path, "/items/");
    qr_buf_printf(&path, "%s/events?limit=200", cli_text(item, "id"));
    exit_code = exit_code ? exit_code : cli_call(cli, "GET", qr_buf_str(&path).ptr, NULL, &answer);
    if (exit_code) {
        return exit_code;
    }
    json_t *events = json_object_get(answer, "data");
    if (cli->json) {
        return cli_print_json(cli, json_object_set(item, "events", events) == 0 ? json_incref(item) : NULL);
    }
    return print_item(cli, item, events);
}

int cmd_show(struct cli *cli)
{
    return cli_with_data(cli, show);
}
