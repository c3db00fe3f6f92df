/* quire jobs show: why the job waits as one sentence, then what it is, then what happened to it. */
#include "cli/paint.h"

const char *cli_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

struct cli_time cli_short_time(const json_t *object, const char *name)
{
    struct cli_time time;
    snprintf(time.text, sizeof time.text, "%s", cli_text(object, name));
    char *separator = strchr(time.text, 'T');
    if (separator) {
        *separator = ' ';
    }
    return time;
}

static long long number(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

/* " MESSAGE (CODE)" of what is known; nothing when nothing is. */
static void print_reason(const char *before, const json_t *reason)
{
    const char *code = cli_text(reason, "code"), *message = cli_text(reason, "message");
    if (message[0] || code[0]) {
        fputs(before, stdout);
        cli_print_safe(message[0] ? message : code);
    }
    if (message[0]) {
        cli_print_code(code);
    }
}

/* ---- the sentence ---- */

static void explain_running(const json_t *job, const json_t *waiting)
{
    const json_t *worker = json_object_get(waiting, "worker"), *progress = json_object_get(job, "progress");
    const char *name = cli_text(worker, "name");
    printf("It is running since %s UTC", cli_short_time(waiting, "since").text);
    if (json_is_object(progress)) {
        printf(", %lld of %lld done", number(progress, "done"), number(progress, "total"));
    }
    if (!json_is_true(json_object_get(worker, "alive"))) {
        fputs(", but its worker is gone: the next process that runs jobs frees it.", stdout);
        return;
    }
    fputs("; worker \"", stdout);
    cli_print_safe(name);
    printf("\" holds it, lease until %s UTC.", cli_short_time(worker, "lease_until").text);
}

static void explain_scheduled(const json_t *job QR_UNUSED, const json_t *waiting)
{
    const char *after = cli_text(waiting, "after");
    printf("It waits until %s UTC", cli_short_time(waiting, "until").text);
    if (strcmp(after, "retried") == 0 || strcmp(after, "timed_out") == 0) {
        fputs(" and is then tried again, because the last attempt failed", stdout);
    } else if (strcmp(after, "snoozed") == 0) {
        fputs(", because it put itself off", stdout);
    } else if (!after[0]) {
        fputs(": it was added for that time", stdout);
    }
    print_reason(": ", waiting);
    fputc('.', stdout);
}

static void explain_blocked(const json_t *job QR_UNUSED, const json_t *waiting)
{
    if (cli_text(waiting, "by")[0]) {
        printf("It waits for job %s (%s), which goes first of the jobs that run one at a time.",
               cli_text(waiting, "by"), cli_text(waiting, "by_state"));
    } else {
        fputs("It waits for another of the jobs that run one at a time.", stdout);
    }
}

static void explain_paused(const json_t *job, const json_t *waiting)
{
    printf("It waits because the queue %s is paused since %s UTC; `quire jobs resume %s` lets it go on.",
           cli_text(job, "queue"), cli_short_time(waiting, "since").text, cli_text(job, "queue"));
}

static void explain_no_worker(const json_t *job QR_UNUSED, const json_t *waiting QR_UNUSED)
{
    fputs("It waits for a process that runs jobs: none is there.", stdout);
}

static void explain_due(const json_t *job, const json_t *waiting)
{
    const long long others = number(waiting, "queued") - 1;
    printf("It is due since %s UTC and waits for its turn", cli_short_time(waiting, "since").text);
    if (others > 0) {
        printf(": %s%lld other%s queued in %s", others >= 9999 ? "at least " : "", others,
               others == 1 ? " job is" : " jobs are", cli_text(job, "queue"));
    }
    fputc('.', stdout);
}

static void explain_ended(const json_t *job)
{
    const char *state = cli_text(job, "state");
    printf("It has ended: %s at %s UTC", state, cli_short_time(job, "finished_at").text);
    print_reason(": ", json_object_get(job, "reason"));
    fputc('.', stdout);
    if (strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0) {
        printf(" `quire jobs retry %s` tries it again.", cli_text(job, "id"));
    }
}

static void print_sentence(const json_t *job)
{
    static const struct {
        const char *reason;
        void (*explain)(const json_t *job, const json_t *waiting);
    } reasons[] = {
        {"running", explain_running},     {"scheduled", explain_scheduled}, {"blocked", explain_blocked},
        {"queue_paused", explain_paused}, {"no_worker", explain_no_worker}, {"due", explain_due},
    };
    const json_t *waiting = json_object_get(job, "waiting");
    if (!json_is_object(waiting)) {
        explain_ended(job);
    }
    for (size_t i = 0; i < QR_COUNT(reasons); i++) {
        if (strcmp(cli_text(waiting, "reason"), reasons[i].reason) == 0) {
            reasons[i].explain(job, waiting);
        }
    }
    puts("\n");
}

/* ---- the facts ---- */

static void print_fact(const char *name, const char *value)
{
    if (value[0]) {
        printf("%-10s ", name);
        cli_print_safe(value);
        fputc('\n', stdout);
    }
}

static void print_args(const json_t *job)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    const json_t *args = json_object_get(job, "args");
    if (args && json_object_size(args) && qr_json_write(args, &text, NULL) == QR_OK) {
        print_fact("args", text.data);
    }
}

static void print_facts(const json_t *job)
{
    print_fact("job", cli_text(job, "id"));
    print_fact("type", cli_text(job, "type"));
    print_fact("queue", cli_text(job, "queue"));
    printf("%-10s ", "state");
    cli_print_status(cli_text(job, "state"), 0);
    fputc('\n', stdout);
    print_fact("base", cli_text(job, "base_id"));
    print_fact("item", cli_text(job, "item_id"));
    print_args(job);
    printf("%-10s %lld failed, %lld crashed\n", "attempts", number(job, "attempts"), number(job, "crashes"));
    print_fact("created", cli_short_time(job, "created_at").text);
    print_fact("began", cli_short_time(job, "claimed_at").text);
    print_fact("ended", cli_short_time(job, "finished_at").text);
}

static void print_history(const json_t *history)
{
    const json_t *attempt;
    size_t i;
    if (json_array_size(history)) {
        puts("\nBEGAN (UTC)          ENDED (UTC)          OUTCOME");
    }
    json_array_foreach(history, i, attempt)
    {
        printf("%-19s  %-19s  ", cli_short_time(attempt, "claimed_at").text, cli_short_time(attempt, "ended_at").text);
        cli_print_status(cli_text(attempt, "outcome"), 0);
        print_reason(": ", attempt);
        fputc('\n', stdout);
    }
}

void cli_print_job(const json_t *job)
{
    print_sentence(job);
    print_facts(job);
    print_history(json_object_get(job, "history"));
}
