/* quire jobs ls|show|cancel|retry|queues|pause|resume: the requests, and the tables. cmd_jobs_show.c prints one job. */
#include "cli/items.h"
#include "cli/paint.h"

/* ---- requests ---- */

enum { OPTIONS_COUNT = 7 }; /* all of them are parameters of the list, by their names */

static void add_parameters(const struct cli *cli, struct qr_buf *path)
{
    char separator = '?';
    for (size_t i = 0; i < OPTIONS_COUNT; i++) {
        if (cli->values[i]) {
            qr_buf_printf(path, "%c%s=", separator, cli->command->options[i].name + strlen("--"));
            qr_url_add_encoded(path, cli->values[i]);
            separator = '&';
        }
    }
}

/* ---- tables ---- */

static int text_width(const json_t *rows, const char *name, int width_min)
{
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        width_min = QR_MAX(width_min, (int)strlen(cli_text(row, name)));
    }
    return width_min;
}

/* What a reader of the list wants to know next: how far it is, until when it waits, why it failed. */
static void print_note(const json_t *job)
{
    const json_t *progress = json_object_get(job, "progress"), *reason = json_object_get(job, "reason");
    const char *state = cli_text(job, "state");
    if (strcmp(state, "running") == 0 && json_is_object(progress)) {
        printf("  %lld of %lld", (long long)json_integer_value(json_object_get(progress, "done")),
               (long long)json_integer_value(json_object_get(progress, "total")));
    } else if (strcmp(state, "scheduled") == 0) {
        printf("  until %s", cli_short_time(job, "run_at").text);
    }
    if (cli_text(reason, "code")[0]) {
        printf("  %s", cli_style_code(stdout, strcmp(state, "failed") == 0 ? CLI_BAD : CLI_FAINT));
        cli_print_safe(cli_text(reason, "code"));
        fputs(cli_style_code(stdout, CLI_PLAIN), stdout);
    }
}

static int print_list(const struct cli *cli QR_UNUSED, const json_t *answer)
{
    const json_t *data = json_object_get(answer, "data"), *job;
    const int queue_width = text_width(data, "queue", 5), type_width = text_width(data, "type", 4);
    const char *cursor = cli_text(answer, "next_cursor");
    if (json_array_size(data) == 0) {
        if (cursor[0]) { /* a list looks at so many jobs and no further */
            printf("none among the newest jobs; look at older ones: --cursor %s\n", cursor);
        } else {
            puts("no jobs");
        }
        return 0;
    }
    printf("%-36s  %-9s  %-*s  %-*s  %-19s  NOTE\n", "JOB", "STATE", queue_width, "QUEUE", type_width, "TYPE",
           "CREATED (UTC)");
    size_t i;
    json_array_foreach(data, i, job)
    {
        printf("%-36s  ", cli_text(job, "id"));
        cli_print_status(cli_text(job, "state"), 9);
        printf("  %-*s  ", queue_width, cli_text(job, "queue"));
        cli_print_safe(cli_text(job, "type"));
        printf("%*s  %s", type_width - (int)strlen(cli_text(job, "type")), "", cli_short_time(job, "created_at").text);
        print_note(job);
        fputc('\n', stdout);
    }
    if (cursor[0]) {
        printf("there are more: --cursor %s\n", cursor);
    }
    return 0;
}

static int print_show(const struct cli *cli QR_UNUSED, const json_t *answer)
{
    cli_print_job(answer);
    return 0;
}

static int print_cancelled(const struct cli *cli QR_UNUSED, const json_t *answer)
{
    printf("cancelled %s\n", cli_text(answer, "id"));
    return 0;
}

static int print_retried(const struct cli *cli QR_UNUSED, const json_t *answer)
{
    printf("added %s, %s\n", cli_text(answer, "id"), cli_text(answer, "state"));
    return 0;
}

static int print_paused(const struct cli *cli QR_UNUSED, const json_t *answer)
{
    const struct cli_time since = cli_short_time(answer, "paused_since");
    printf("%s %s%s%s\n", cli_text(answer, "name"), since.text[0] ? "is paused since " : "is not paused", since.text,
           since.text[0] ? " UTC; jobs that run go on" : "");
    return 0;
}

static void print_count(const json_t *counts, const char *name)
{
    const json_t *count = json_object_get(counts, name);
    if (json_is_string(count)) {
        printf("  %9s", json_string_value(count));
    } else {
        printf("  %9lld", (long long)json_integer_value(count));
    }
}

static int print_queues(const struct cli *cli QR_UNUSED, const json_t *answer)
{
    static const char *const states[] = {"blocked", "scheduled", "queued", "running", "failed"};
    const json_t *queue;
    size_t i;
    puts("QUEUE      BLOCKED  SCHEDULED     QUEUED    RUNNING     FAILED  PAUSED SINCE (UTC)");
    json_array_foreach(json_object_get(answer, "data"), i, queue)
    {
        printf("%-7s", cli_text(queue, "name"));
        for (size_t k = 0; k < QR_COUNT(states); k++) {
            print_count(json_object_get(queue, "counts"), states[k]);
        }
        const struct cli_time since = cli_short_time(queue, "paused_since");
        printf("%s%s\n", since.text[0] ? "  " : "", since.text);
    }
    const json_t *trouble = json_object_get(answer, "trouble");
    if (json_is_object(trouble)) {
        fputs("no job can begin or end now: ", stdout);
        cli_print_safe(cli_text(trouble, "message"));
        cli_print_code(cli_text(trouble, "code"));
        fputc('\n', stdout);
    }
    return 0;
}

/* ---- the command ---- */

/* What can be done: the request, and how its answer is printed. */
struct action {
    const char *name;
    const char *method;
    const char *path;     /* in front of the job or queue */
    const char *path_end; /* behind it */
    const char *object;   /* what must be named; NULL = nothing */
    int (*print)(const struct cli *cli, const json_t *answer);
};

static const struct action actions[] = {
    {"ls", "GET", "/api/v1/jobs", "", NULL, print_list},
    {"show", "GET", "/api/v1/jobs/", "", "JOB", print_show},
    {"cancel", "POST", "/api/v1/jobs/", "/cancel", "JOB", print_cancelled},
    {"retry", "POST", "/api/v1/jobs/", "/retry", "JOB", print_retried},
    {"queues", "GET", "/api/v1/queues", "", NULL, print_queues},
    {"pause", "POST", "/api/v1/queues/", "/pause", "QUEUE", print_paused},
    {"resume", "POST", "/api/v1/queues/", "/resume", "QUEUE", print_paused},
};

/* NULL, and the error, when there is none. */
static const struct action *find_action(const struct cli *cli, qr_err *err)
{
    if (cli->arg_count == 0) {
        qr_fail(err, QR_CODE_USAGE, "say what to do: quire jobs ls, show, cancel, retry, queues, pause or resume");
        return NULL;
    }
    struct qr_nearest nearest = qr_nearest_to(qr_str_of(cli->args[0]));
    for (size_t i = 0; i < QR_COUNT(actions); i++) {
        if (strcmp(cli->args[0], actions[i].name) == 0) {
            return &actions[i];
        }
        qr_nearest_offer(&nearest, qr_str_of(actions[i].name));
    }
    if (nearest.name.ptr) {
        qr_fail(err, QR_CODE_USAGE, "quire jobs has no %s; did you mean %s?", cli->args[0], nearest.name.ptr);
    } else {
        qr_fail(err, QR_CODE_USAGE, "quire jobs has no %s", cli->args[0]);
    }
    return NULL;
}

static qr_rc check_words(const struct cli *cli, const struct action *action, qr_err *err)
{
    if (action->object && (cli->arg_count < 2 || !cli->args[1][0])) {
        return qr_fail(err, QR_CODE_USAGE, "say which one: quire jobs %s %s", action->name, action->object);
    }
    if (!action->object && cli->arg_count > 1) {
        return qr_fail(err, QR_CODE_USAGE, "%s is one argument too many: quire jobs %s", cli->args[1], action->name);
    }
    if (cli->switches && strcmp(action->name, "ls") != 0) {
        return qr_fail(err, QR_CODE_USAGE, "the options of quire jobs are for ls");
    }
    return QR_OK;
}

static qr_rc prepare(struct cli *cli, const struct action *action, struct qr_buf *path, qr_err *err)
{
    QR_TRY(check_words(cli, action, err));
    qr_buf_add_text(path, action->path);
    if (action->object) {
        qr_url_add_encoded(path, cli->args[1]);
    }
    qr_buf_add_text(path, action->path_end);
    add_parameters(cli, path);
    QR_TRY(qr_buf_check(path, err));
    return cli_load_config(cli, err);
}

int cmd_jobs(struct cli *cli)
{
    qr_err err = {0};
    const struct action *action = find_action(cli, &err);
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    if (!action || prepare(cli, action, &path, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    QR_JSON *answer = NULL;
    int exit_code = cli_open(cli);
    if (exit_code == 0) {
        exit_code = cli_call(cli, action->method, path.data, NULL, &answer);
        cli_close(cli);
    }
    if (exit_code) {
        return exit_code;
    }
    return cli->json ? cli_print_json(cli, json_incref(answer)) : action->print(cli, answer);
}
