/* Commands that wait run jobs, if this process owns the data folder, and answer others over its socket meanwhile. If another
 * owns it, they look at it whenever something happens there, until it is done, and take over when that one ends. What is
 * waited for is durable: Ctrl-C only ends the waiting. */
#include "cli/items.h"
#include "http/server.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    PAUSE_MS_MIN = 10, /* grows, so that a note is done at once and a folder costs nothing to watch */
    PAUSE_MS_MAX = 200,
    FOLLOW_MS = 500, /* where it is told that something has happened */
    ASK_EVERY_MS = 1000,
    GRACE_MS = 2000, /* for what still runs when we stop; then it goes back to its queue */
};

/* ---- on and off ---- */

static void ending_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

/* So that other commands work meanwhile. Without it they are told who owns the folder. */
static void serve_others(struct cli_work *work)
{
    const struct qr_config *config = &work->cli->config;
    qr_err err = {0};
    if (strcmp(qr_config_text(config, QR_CONFIG_DATABASE_URL), "sqlite") == 0 &&
        quire_server_start(work->cli->quire, qr_config_text(config, QR_CONFIG_DATA_DIR), &work->server, &err) !=
            QR_OK) {
        qr_log(&work->cli->log, QR_LOG_WARN, "socket_not_served", qr_field_text("message", err.msg));
    }
}

static int start_here(struct cli_work *work)
{
    struct quire_error error;
    if (!work->cli->quire || work->is_running) {
        return 0;
    }
    if (quire_start_work(work->cli->quire, &error) != 0) {
        qr_err err;
        cli_read_error(error.code, error.message, &err);
        return cli_fail(work->cli, &err);
    }
    work->is_running = true;
    work->progress.counts_from_zero = true;
    serve_others(work);
    return 0;
}

int cli_start_work(struct cli_work *work, struct cli *cli)
{
    *work = (struct cli_work){
        .cli = cli, .pause_ms = PAUSE_MS_MIN, .follow.fd = -1, .began_ms = qr_clock_mono_ms(qr_clock_system())};
    sigset_t set;
    ending_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before threads are started: they inherit it */
    return start_here(work);
}

void cli_stop_work(struct cli_work *work)
{
    cli_progress_erase(&work->progress);
    cli_follow_close(&work->follow);
    quire_server_stop(work->server);
    if (work->is_running) {
        quire_stop_work(work->cli->quire, GRACE_MS);
    }
    *work = (struct cli_work){.cli = work->cli, .follow.fd = -1};
}

/* ---- looking ---- */

/* Below what was drawn, an error would be erased with it. */
static int fail(struct cli_work *work, const qr_err *err)
{
    cli_progress_erase(&work->progress);
    return cli_fail(work->cli, err);
}

/* As cli_call; when the owner of the folder has ended, this process becomes it. */
static int look(struct cli_work *work, const char *path, int *ret_status, json_t **ret_answer)
{
    enum { TRIES_MAX = 3 };
    for (int i = 1;; i++) {
        qr_err err = {0};
        const qr_rc rc = cli_ask(work->cli, "GET", path, NULL, ret_status, ret_answer, &err);
        if (rc == QR_OK) {
            return 0;
        }
        if (rc != QR_UNAVAILABLE || work->cli->quire || i == TRIES_MAX) {
            return fail(work, &err);
        }
        cli_close(work->cli);
        cli_progress_erase(&work->progress);
        int exit_code = cli_open(work->cli);
        exit_code = exit_code ? exit_code : start_here(work);
        if (exit_code) {
            return exit_code;
        }
    }
}

static int look_for_answer(struct cli_work *work, const char *path, json_t **ret_answer)
{
    int status = 0;
    QR_JSON *answer = NULL;
    const int exit_code = look(work, path, &status, &answer);
    if (exit_code || status >= 400) {
        cli_progress_erase(&work->progress);
        return exit_code ? exit_code : cli_report(work->cli, answer);
    }
    *ret_answer = json_incref(answer);
    return 0;
}

/* ---- telling ---- */

/* The newest job in this state that says why it waits, or what its last attempt failed of. */
static bool explain_by_jobs(struct cli_work *work, const char *state)
{
    char path[64];
    QR_JSON *answer = NULL;
    const json_t *job;
    size_t i;
    int status = 0;
    snprintf(path, sizeof path, "/api/v1/jobs?limit=20&state=%s", state);
    if (cli_ask(work->cli, "GET", path, NULL, &status, &answer, NULL) != QR_OK || status != 200) {
        return false; /* the next look at the queues reports what this is */
    }
    json_array_foreach(json_object_get(answer, "data"), i, job)
    {
        const json_t *reason = json_object_get(job, "reason");
        if (cli_text(reason, "message")[0]) {
            cli_progress_explain(&work->progress, cli_text(reason, "code"), cli_text(reason, "message"));
            return true;
        }
    }
    return false;
}

/* Nobody should have to guess why nothing ends: the storage's trouble comes first, since jobs cannot even write down theirs. */
static void ask_why(struct cli_work *work, const json_t *trouble, int64_t now_ms)
{
    if (!cli_progress_is_stalled(&work->progress, now_ms) || now_ms - work->asked_ms < ASK_EVERY_MS) {
        return;
    }
    work->asked_ms = now_ms;
    if (json_is_object(trouble)) {
        cli_progress_explain(&work->progress, cli_text(trouble, "code"), cli_text(trouble, "message"));
    } else if (!explain_by_jobs(work, "scheduled") && !explain_by_jobs(work, "running")) {
        work->progress.waiting.text[0] = '\0'; /* what it was is over: something takes long, no more */
    }
}

/* Of what is waited for; false where it cannot be said. */
static bool count_files(struct cli_work *work, const json_t *item, long long *total, long long *active)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    int status = 0;
    cli_add_base_path(work->cli, &path, "/items/");
    qr_buf_printf(&path, "%s/totals", cli_text(item, "id"));
    if (path.failed != QR_CODE_NONE || cli_ask(work->cli, "GET", path.data, NULL, &status, &answer, NULL) != QR_OK ||
        status != 200) {
        return false;
    }
    *total += cli_number(json_object_get(answer, "files"), "total");
    *active += cli_number(json_object_get(answer, "files"), "active");
    return true;
}

/* Files that are waited for, in folders or alone. Those whose embedding is open have been read. It costs a look at each folder, so
 * large ones are looked at less often than they cost. */
static void see_files(struct cli_work *work, const json_t *queues, int64_t now_ms)
{
    enum { EVERY_MS = 200, COST_TIMES = 20, ITEMS_MAX = 20 };
    const json_t *item, *queue;
    long long total = 0, active = 0, embedding = 0;
    size_t i;
    if (json_array_size(work->waited) > ITEMS_MAX || now_ms < work->files_at_ms) {
        return;
    }
    bool is_known = false;
    json_array_foreach(work->waited, i, item)
    {
        is_known = (json_is_object(item) && count_files(work, item, &total, &active)) || is_known;
    }
    json_array_foreach(queues, i, queue)
    {
        const struct cli_todo todo = cli_todo_of(queue);
        embedding += cli_is(queue, "name", "embed") ? todo.now + todo.later : 0;
    }
    if (is_known) {
        cli_progress_see_files(&work->progress, total, QR_MAX(active - embedding, 0LL), now_ms);
    }
    const int64_t cost_ms = qr_clock_mono_ms(qr_clock_system()) - now_ms;
    work->files_at_ms = now_ms + QR_MAX(cost_ms * COST_TIMES, (int64_t)EVERY_MS);
}

static void tell_progress(struct cli_work *work, const json_t *answer)
{
    const int64_t now_ms = qr_clock_mono_ms(qr_clock_system());
    cli_see_queues(&work->progress, json_object_get(answer, "data"), now_ms);
    if (!work->cli->json && work->waited) {
        see_files(work, json_object_get(answer, "data"), now_ms);
    }
    if (!work->cli->json) {
        ask_why(work, json_object_get(answer, "trouble"), now_ms);
        cli_progress_tell(&work->progress, now_ms);
    }
}

/* At once, before what runs is waited for. */
static enum cli_wait detach(struct cli_work *work)
{
    cli_progress_erase(&work->progress);
    fputs("quire: stopped waiting; nothing is lost\n", stderr);
    return CLI_WAIT_DETACHED;
}

/* ---- waiting ---- */

/* True: it was ended by a signal. */
static bool sleep_or_end(const sigset_t *set, int ms)
{
    const struct timespec timeout = {0, ms * 1000000L};
    return sigtimedwait(set, NULL, &timeout) > 0;
}

/* Until something happens where the jobs run, or a while is over: how far a long job is nobody is told. Where nothing was going on, the
 * next look follows at once; where much is, not more often than otherwise. */
static bool follow_or_end(struct cli_work *work, const sigset_t *set)
{
    const int signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    struct pollfd fds[] = {{.fd = work->follow.fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    const bool is_at_once = poll(fds, 1, 0) > 0;
    if (signals < 0) {
        return sleep_or_end(set, work->pause_ms);
    }
    work->pause_ms = is_at_once ? QR_MIN(work->pause_ms * 2, (int)PAUSE_MS_MAX) : PAUSE_MS_MIN;
    (void)poll(fds, QR_COUNT(fds), FOLLOW_MS);
    close(signals);
    if (fds[0].revents) {
        cli_follow_read(&work->follow);
    }
    return sleep_or_end(set, work->pause_ms);
}

static bool pause_or_end(struct cli_work *work)
{
    sigset_t set;
    ending_signals(&set);
    if (!work->cli->quire && !work->is_following) {
        work->is_following = true;
        cli_remote_follow(&work->cli->remote, &work->follow);
    }
    if (work->follow.fd >= 0) {
        return follow_or_end(work, &set);
    }
    const int pause_ms = work->pause_ms;
    work->pause_ms = QR_MIN(work->pause_ms * 2, (int)PAUSE_MS_MAX);
    return sleep_or_end(&set, pause_ms);
}

/* One look at all queues: progress, and whether nothing is left. */
static int look_at_queues(struct cli_work *work, struct cli_todo *ret_sum)
{
    QR_JSON *answer = NULL;
    const json_t *queues, *queue;
    size_t i;
    *ret_sum = (struct cli_todo){0};
    const int exit_code = look_for_answer(work, "/api/v1/queues", &answer);
    queues = json_object_get(answer, "data");
    json_array_foreach(queues, i, queue)
    {
        const struct cli_todo todo = cli_todo_of(queue);
        ret_sum->now += todo.now;
        ret_sum->later += todo.later;
    }
    if (exit_code == 0) {
        tell_progress(work, answer);
    }
    return exit_code;
}

/* The jobs of a failed base wait until it is restored: nobody should wait for that. */
static int require_bases_work(struct cli_work *work)
{
    QR_JSON *answer = NULL;
    const json_t *base;
    size_t i;
    const int exit_code = look_for_answer(work, "/api/v1/bases?limit=200", &answer);
    json_array_foreach(json_object_get(answer, "data"), i, base)
    {
        if (cli_is(base, "status", "failed")) {
            qr_err err;
            qr_fail(&err, QR_CODE_BASE_FAILED, "the base %s has failed and its jobs wait: %s", cli_text(base, "name"),
                    cli_text(json_object_get(base, "error"), "message"));
            return fail(work, &err);
        }
    }
    return exit_code;
}

/* A delete that rests or is tried again is waited for; a purge only when it is due, since it waits half a minute for readers
 * of what it takes away. Looked at when all else is done. */
static bool is_awaited(const json_t *job)
{
    char now[QR_TIME_TEXT_SIZE];
    qr_time_format(qr_clock_wall_ms(qr_clock_system()), now);
    return !cli_is(job, "type", "purge") || strcmp(cli_text(job, "run_at"), now) <= 0;
}

static int look_for_deletes(struct cli_work *work, bool *ret_has)
{
    char cursor[64] = "";
    *ret_has = false;
    do {
        QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
        QR_JSON *answer = NULL;
        const json_t *job;
        size_t i;
        qr_buf_printf(&path, "/api/v1/jobs?limit=200&queue=delete&state=scheduled%s%s", cursor[0] ? "&cursor=" : "",
                      cursor);
        const int exit_code = look_for_answer(work, qr_buf_str(&path).ptr, &answer);
        if (exit_code) {
            return exit_code;
        }
        json_array_foreach(json_object_get(answer, "data"), i, job)
        {
            *ret_has = *ret_has || is_awaited(job);
        }
        snprintf(cursor, sizeof cursor, "%s", cli_text(answer, "next_cursor"));
    } while (cursor[0] && !*ret_has);
    return 0;
}

enum cli_wait cli_wait_for_all(struct cli_work *work, int *ret_exit_code)
{
    for (;;) {
        struct cli_todo todo;
        *ret_exit_code = look_at_queues(work, &todo);
        if (*ret_exit_code == 0 && todo.now == 0 && todo.later > 0) {
            *ret_exit_code = require_bases_work(work);
        }
        bool has_delete = false;
        if (*ret_exit_code == 0 && todo.now + todo.later == 0) {
            *ret_exit_code = look_for_deletes(work, &has_delete);
        }
        if (*ret_exit_code || (todo.now + todo.later == 0 && !has_delete)) {
            return *ret_exit_code ? CLI_WAIT_FAILED : CLI_WAIT_DONE;
        }
        if (pause_or_end(work)) {
            return detach(work);
        }
    }
}

/* ---- one item ---- */

static bool is_active(const json_t *item)
{
    return !cli_is(item, "status", "completed") && !cli_is(item, "status", "failed") && !cli_is(item, "status", "idle");
}

static bool is_open_job(const json_t *job)
{
    static const char *const open[] = {"blocked", "scheduled", "queued", "running"};
    for (size_t i = 0; i < QR_COUNT(open); i++) {
        if (cli_is(job, "state", open[i])) {
            return !cli_is(job, "type", "purge");
        }
    }
    return false;
}

static int has_open_job(struct cli_work *work, const char *item_id, bool *ret_has)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    const json_t *job;
    size_t i;
    qr_buf_printf(&path, "/api/v1/jobs?limit=20&item=%s", item_id);
    *ret_has = false;
    const int exit_code = look_for_answer(work, qr_buf_str(&path).ptr, &answer);
    json_array_foreach(json_object_get(answer, "data"), i, job)
    {
        *ret_has = *ret_has || is_open_job(job);
    }
    return exit_code;
}

/* *ret_item: as it is now, when it is at rest; a null when it is gone. */
static int look_at_item(struct cli_work *work, const char *item_id, json_t **ret_item)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *item = NULL;
    int status = 0;
    bool has_job = false;
    cli_add_base_path(work->cli, &path, "/items/");
    qr_buf_add_text(&path, item_id);
    int exit_code = look(work, qr_buf_str(&path).ptr, &status, &item);
    if (exit_code == 0 && status >= 400 && status != 404) {
        cli_progress_erase(&work->progress);
        exit_code = cli_report(work->cli, item);
    }
    if (exit_code == 0 && status == 404) {
        *ret_item = json_null();
    } else if (exit_code == 0 && !is_active(item)) {
        exit_code = has_open_job(work, item_id, &has_job);
        *ret_item = exit_code || has_job ? NULL : json_incref(item);
    }
    return exit_code;
}

static int job_has_ended(struct cli_work *work, const char *job_id, bool *ret_has)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *job = NULL;
    int status = 0;
    qr_buf_printf(&path, "/api/v1/jobs/%s", job_id);
    const int exit_code = look(work, qr_buf_str(&path).ptr, &status, &job);
    *ret_has = status == 404 || !is_open_job(job);
    return exit_code;
}

static int64_t took_ms(const struct cli_work *work)
{
    return qr_clock_mono_ms(qr_clock_system()) - work->began_ms;
}

/* What was added before is only looked at again, which is one job; whether it found something to read. Of several, nobody
 * knows whose jobs these were. */
static void look_for_news(struct cli_work *work, const json_t *items)
{
    struct cli_todo todo;
    work->tally.found_nothing_new =
        json_array_size(items) == 1 && work->cli->quire && cli_is(json_array_get(items, 0), "result", "updated") &&
        look_at_queues(work, &todo) == 0 && cli_progress_done(&work->progress, "convert") <= 1;
}

static bool is_base_gone(struct cli_work *work)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    int status = 0;
    cli_add_base_path(work->cli, &path, "");
    return path.failed == QR_CODE_NONE && cli_ask(work->cli, "GET", path.data, NULL, &status, &answer, NULL) == QR_OK &&
           status == 404;
}

/* Somebody else has deleted it. With its base everything else is gone too: then the waiting is over. */
static int tell_gone(struct cli_work *work, const json_t *item)
{
    const char *source = cli_text(item, "source");
    qr_err err;
    work->is_any_gone = true;
    if (is_base_gone(work)) {
        qr_fail(&err, QR_CODE_DELETING, "the base %s was deleted meanwhile, with everything in it",
                cli_base(work->cli));
        return fail(work, &err);
    }
    qr_fail(&err, QR_CODE_DELETING, "%s was deleted meanwhile", source[0] ? source : cli_text(item, "name"));
    cli_progress_erase(&work->progress);
    cli_print_error(&err);
    return 0;
}

/* Whether the next of the items is at rest: then *at moves on. */
static int advance(struct cli_work *work, json_t *items, size_t *at, const char **job_id)
{
    bool has_ended = true;
    json_t *now = NULL;
    if ((*job_id)[0]) {
        const int exit_code = job_has_ended(work, *job_id, &has_ended);
        *job_id = has_ended ? "" : *job_id;
        return exit_code;
    }
    int exit_code = look_at_item(work, cli_text(json_array_get(items, *at), "id"), &now);
    if (now) {
        exit_code = json_is_null(now) ? tell_gone(work, json_array_get(items, *at)) : exit_code;
        if (!work->cli->json && json_is_object(now)) {
            look_for_news(work, items);
            cli_progress_erase(&work->progress);
            cli_print_outcome(work->cli, now, took_ms(work), &work->tally);
            fflush(stdout);
        }
        json_array_set_new(items, *at, now);
        ++*at;
    }
    return exit_code;
}

enum cli_wait cli_wait_for_items(struct cli_work *work, json_t *items, const char *job_id, int *ret_exit_code)
{
    work->waited = items;
    for (size_t at = 0, before = 0; at < json_array_size(items) || job_id[0]; before = at) {
        const bool had_job = job_id[0];
        struct cli_todo todo;
        *ret_exit_code = advance(work, items, &at, &job_id);
        if (*ret_exit_code == 0 && at == before && had_job == (job_id[0] != '\0')) {
            *ret_exit_code = look_at_queues(work, &todo);
            if (*ret_exit_code == 0 && todo.now == 0 && todo.later > 0) {
                *ret_exit_code = require_bases_work(work);
            }
            if (*ret_exit_code == 0 && pause_or_end(work)) {
                return detach(work);
            }
        }
        if (*ret_exit_code) {
            return CLI_WAIT_FAILED;
        }
    }
    return CLI_WAIT_DONE;
}

/* ---- a model ---- */

static int report_build(struct cli_work *work, const json_t *build)
{
    const json_t *error = json_object_get(build, "error");
    const qr_code code = qr_code_find(cli_text(error, "code"));
    qr_err err;
    if (json_is_object(error)) {
        qr_fail(&err, code == QR_CODE_COUNT ? QR_CODE_INTERNAL : code, "the model could not be built: %s",
                cli_text(error, "message"));
    } else {
        qr_fail(&err, QR_CODE_CANCELLED, "the build of the model was called off");
    }
    return fail(work, &err);
}

static void tell_build(struct cli_work *work, const json_t *build)
{
    const int64_t now_ms = qr_clock_mono_ms(qr_clock_system());
    const json_t *error = json_object_get(build, "error");
    if (cli_number(build, "total")) {
        cli_progress_see_build(&work->progress, cli_number(build, "done"), cli_number(build, "total"), now_ms);
    }
    if (cli_is(build, "status", "waiting") && json_is_object(error)) {
        cli_progress_explain(&work->progress, cli_text(error, "code"), cli_text(error, "message"));
    }
    cli_progress_tell(&work->progress, now_ms);
}

enum cli_wait cli_wait_for_build(struct cli_work *work, const char *base_id, json_t **ret_base, int *ret_exit_code)
{
    for (;;) {
        QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
        QR_JSON *base = NULL;
        qr_buf_printf(&path, "/api/v1/bases/%s", base_id);
        *ret_exit_code = look_for_answer(work, qr_buf_str(&path).ptr, &base);
        const json_t *build = json_object_get(base, "model_build");
        const bool has_ended = cli_is(build, "status", "failed") || cli_is(build, "status", "cancelled");
        if (*ret_exit_code == 0 && (has_ended || cli_is(base, "status", "failed"))) {
            *ret_exit_code = has_ended ? report_build(work, build) : require_bases_work(work);
        }
        if (*ret_exit_code) {
            return CLI_WAIT_FAILED;
        }
        if (!json_is_object(build)) {
            cli_progress_erase(&work->progress);
            *ret_base = json_incref(base);
            return CLI_WAIT_DONE;
        }
        tell_build(work, build);
        if (pause_or_end(work)) {
            return detach(work);
        }
    }
}

/* ---- telling what became of it ---- */

/* The answer to the request, and what became of it. */
static int print_with_items(struct cli *cli, const json_t *answer, json_t *items)
{
    json_t *whole = answer ? json_copy((json_t *)answer) : json_object();
    json_object_set(whole, "items", items);
    return cli_print_json(cli, whole);
}

int cli_wait_and_tell(struct cli *cli, json_t *items, const char *job_id, const json_t *answer)
{
    struct cli_work work;
    int exit_code = cli_start_work(&work, cli);
    enum cli_wait end = CLI_WAIT_FAILED;
    if (exit_code == 0) {
        end = cli_wait_for_items(&work, items, job_id, &exit_code);
    }
    const struct cli_tally tally = work.tally;
    const bool is_any_gone = work.is_any_gone;
    const int64_t waited_ms = took_ms(&work);
    cli_stop_work(&work);
    if (end == CLI_WAIT_FAILED) {
        return exit_code;
    }
    if (end == CLI_WAIT_DETACHED) {
        cli_print_pending(cli);
    } else if (!cli->json) {
        cli_print_tally(cli, &tally, waited_ms);
    }
    size_t i;
    const json_t *item;
    json_array_foreach(items, i, item)
    {
        exit_code = cli_is(item, "status", "failed") ? 1 : exit_code;
    }
    exit_code = is_any_gone && exit_code == 0 ? 1 : exit_code;
    const int printed = cli->json ? print_with_items(cli, answer, items) : 0;
    return exit_code ? exit_code : printed;
}
