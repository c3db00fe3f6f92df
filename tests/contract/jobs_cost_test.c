/* What a million jobs would cost: every statement that is repeated, or that people wait for, goes through an index that holds
 * only the rows in question. */
#include "support/jobs_fixture.h"

#include <pthread.h>
#include <sqlite3.h>

/* ---- what ran ---- */

/* The texts of all statements that ran, as the library itself heard of them. */
static struct {
    char *texts[1024];
    size_t count;
    pthread_mutex_t lock;
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int hear(unsigned event QR_UNUSED, void *context QR_UNUSED, void *statement, void *unused QR_UNUSED)
{
    const char *text = sqlite3_sql(statement);
    pthread_mutex_lock(&heard.lock);
    bool is_new = text && heard.count < QR_COUNT(heard.texts);
    for (size_t i = 0; i < heard.count && is_new; i++) {
        is_new = strcmp(heard.texts[i], text) != 0;
    }
    if (is_new) {
        heard.texts[heard.count++] = strdup(text);
    }
    pthread_mutex_unlock(&heard.lock);
    return 0;
}

static int listen_to(sqlite3 *connection, char **error QR_UNUSED, const void *api QR_UNUSED)
{
    return sqlite3_trace_v2(connection, SQLITE_TRACE_STMT, hear, NULL);
}

/* ---- the runner ---- */

/* Goes once through everything that runners repeat. */
static void use_everything(struct qr_world *world)
{
    qr_uuid worker = qr_world_worker(world);
    const struct qr_job_spec keyed = {.serial_key = QR_STR("s"), .idempotency_key = QR_STR("i")};
    const struct qr_job_spec serial = {.serial_key = QR_STR("s")};
    qr_world_add(world, keyed);
    qr_world_add(world, keyed);
    qr_world_add(world, serial);
    qr_world_add(world, (struct qr_job_spec){.run_at_ms = QR_WORLD_BEGIN_MS + 1});
    struct qr_job job = qr_world_claim_one(world, worker);
    qr_world_release(world, &job, (struct qr_job_release){0});
    job = qr_world_claim_one(world, worker);
    qr_world_progress(world, &job, 1, 2);
    qr_world_require_fence(world, &job);
    qr_world_finish(world, &job, QR_JOB_COMPLETED);
    job = qr_world_claim_one(world, worker);
    qr_world_cancel(world, job.id, NULL);
    qr_test_clock_advance(1);
    int64_t next_ms;
    qr_world_promote_due(world, &next_ms);
    qr_world_claim_one(world, worker);
    qr_world_beat(world, worker);
    qr_world_declare_dead(world, true, (qr_uuid){0});
    qr_world_free_jobs(world);
    worker = qr_world_worker(world);
    qr_world_claim_suspect(world, worker);
    qr_world_prune(world, INT64_MAX);
}

static bool is_about_jobs(const char *text)
{
    return (strstr(text, "FROM job") || strstr(text, "UPDATE job") || strstr(text, "INTO job")) &&
           !strstr(text, "CREATE") && !strstr(text, "'done'"); /* which the test itself writes */
}

/* A scan that ends soon: so many rows of an index that holds just one state. */
static bool is_bounded(const char *step, const char *text)
{
    const bool is_of_state = strstr(step, "INDEX job_ready") || strstr(step, "INDEX job_due") ||
                             strstr(step, "INDEX job_running") || strstr(step, "INDEX job_serial_blocked");
    return is_of_state && strstr(text, "LIMIT");
}

static void check_plan(sqlite3 *connection, const char *text)
{
    qr_test_set_context("%.100s", text);
    char sql[4096];
    snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", text);
    sqlite3_stmt *statement;
    QR_CHECK_INT(SQLITE_OK, sqlite3_prepare_v2(connection, sql, -1, &statement, NULL));
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(statement, 3);
        const bool is_scan = strncmp(step, "SCAN job", 8) == 0;
        /* that is sorted only which is few by then */
        const bool sorts = strstr(step, "TEMP B-TREE") && !strstr(text, "IN (SELECT id FROM job");
        if ((is_scan && !is_bounded(step, text)) || sorts) {
            QR_FAIL("%s", step);
        }
    }
    sqlite3_finalize(statement);
    qr_test_set_context("%s", "");
}

/* Opens a world whose statements are heard. */
static void open_heard(struct qr_world *world, struct qr_test *t)
{
    QR_CHECK_INT(SQLITE_OK, sqlite3_auto_extension((void (*)(void))listen_to));
    qr_world_open(world, t, NULL);
}

/* Closes it, and checks the plans of all statements about jobs: at least so many. */
static void check_heard(struct qr_world *world, struct qr_test *t, int count_min)
{
    qr_world_close(world);
    sqlite3_reset_auto_extension();
    sqlite3 *connection;
    QR_CHECK_INT(SQLITE_OK, sqlite3_open(qr_test_path(t, "quire.db"), &connection));
    int checked = 0;
    for (size_t i = 0; i < heard.count; i++) {
        if (is_about_jobs(heard.texts[i])) {
            check_plan(connection, heard.texts[i]);
            checked++;
        }
        free(heard.texts[i]);
    }
    QR_CHECK(checked >= count_min); /* else it heard nothing */
    sqlite3_close(connection);
}

QR_TEST(no_statement_of_the_runner_looks_at_jobs_that_it_is_not_about)
{
    struct qr_world world;
    open_heard(&world, t);
    use_everything(&world);
    check_heard(&world, t, 15);
}

/* ---- people ---- */

struct counting {
    enum qr_queue queue;
    enum qr_job_state state;
    int64_t limit, count;
};

static qr_rc count_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct counting *counting = arg;
    return qr_jobs_count(tx, counting->queue, counting->state, counting->limit, &counting->count, err);
}

static int64_t count_of(struct qr_world *world, enum qr_queue queue, enum qr_job_state state, int64_t limit)
{
    struct counting counting = {.queue = queue, .state = state, .limit = limit, .count = -1};
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, count_jobs, &counting, &err));
    return counting.count;
}

/* Of queue convert two in each state of these, of queue embed one. Jobs that run are not among them: there are only as many
 * as there are slots. */
static const enum qr_job_state states[] = {QR_JOB_BLOCKED, QR_JOB_SCHEDULED, QR_JOB_QUEUED, QR_JOB_FAILED};

static qr_rc make_some_of_each(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_world_many many = {.world = arg, .spec = {.type = "work"}, .count = QR_COUNT(states)};
    for (int i = 0; i < 3; i++) {
        many.spec.queue = i < 2 ? QR_QUEUE_CONVERT : QR_QUEUE_EMBED;
        many.spec.priority = i;
        QR_TRY(qr_world_add_many_in(tx, &many, err));
        for (size_t k = 0; k < QR_COUNT(states); k++) {
            QR_TRY(qr_tx_exec(tx,
                              "UPDATE job SET state = ?1, priority = 9 WHERE id = (SELECT id FROM job WHERE "
                              "priority = ?2 LIMIT 1)",
                              QR_VALS(qr_val_i64(states[k]), qr_val_i64(i)), NULL, err));
        }
    }
    return QR_OK;
}

QR_DB_TEST(jobs_are_counted_by_queue_and_state_and_no_further_than_asked)
{
    struct qr_world world;
    qr_world_open(&world, t, NULL);
    qr_world_write(&world, make_some_of_each, &world);
    for (size_t i = 0; i < QR_COUNT(states); i++) {
        QR_CHECK_INT(2, count_of(&world, QR_QUEUE_CONVERT, states[i], 10));
        QR_CHECK_INT(1, count_of(&world, QR_QUEUE_CONVERT, states[i], 1));
        QR_CHECK_INT(1, count_of(&world, QR_QUEUE_EMBED, states[i], 10));
        QR_CHECK_INT(0, count_of(&world, QR_QUEUE_ASSETS, states[i], 10));
    }
    qr_world_close(&world);
}

QR_TEST(a_look_at_a_queue_does_not_look_at_the_jobs_of_others)
{
    struct qr_world world;
    open_heard(&world, t);
    const qr_uuid someone = {.bytes = {1}};
    struct qr_job *jobs;
    for (size_t i = 0; i < QR_COUNT(states); i++) {
        count_of(&world, QR_QUEUE_CONVERT, states[i], 10);
    }
    const struct qr_job_filter filters[] = {
        {.queue = QR_QUEUE_CONVERT, .state = QR_JOB_FAILED, .limit = 5},
        {.queue = QR_QUEUE_CONVERT, .state = QR_JOB_SCHEDULED, .after = someone, .limit = 5},
        {.queue = QR_QUEUE_CONVERT, .state = QR_JOB_BLOCKED, .limit = 5},
    };
    for (size_t i = 0; i < QR_COUNT(filters); i++) {
        qr_world_list(&world, filters[i], &jobs);
    }
    check_heard(&world, t, QR_COUNT(states) + QR_COUNT(filters));
}

/* ---- lists by anything ---- */

/* Old ones that wait, more than a list takes to be few; behind them newer ones that have ended, more than it looks at; and one
 * of each state and of a rare type in front of them all, or behind. */
enum { WAITING = 2050, ENDED = 5100 };

static qr_rc make_many(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_world *world = arg;
    struct qr_world_many rare = {.world = world, .spec = {.queue = QR_QUEUE_EMBED, .type = "rare"}, .count = 3};
    struct qr_world_many waiting = {
        .world = world, .spec = {.queue = QR_QUEUE_CONVERT, .type = "work"}, .count = WAITING};
    struct qr_world_many ended = {.world = world, .spec = {.queue = QR_QUEUE_CONVERT, .type = "done"}, .count = ENDED};
    QR_TRY(qr_world_add_many_in(tx, &rare, err));
    QR_TRY(qr_world_add_many_in(tx, &waiting, err));
    QR_TRY(qr_world_add_many_in(tx, &ended, err));
    return qr_tx_exec(tx, "UPDATE job SET state = 5, finished_at = 1 WHERE type = 'done'", QR_NO_VALS, NULL, err);
}

/* How many there are, page by page; each newer than the next, none twice. *ret_pages: how often it was asked. */
static int count_pages(struct qr_world *world, struct qr_job_filter filter, int *ret_pages)
{
    int count = 0;
    filter.limit = 100;
    qr_uuid last;
    memset(&last, 0xff, sizeof last);
    for (*ret_pages = 1;; ++*ret_pages) {
        struct qr_job *jobs;
        const size_t page = qr_world_list(world, filter, &jobs);
        for (size_t i = 0; i < page; i++) {
            QR_CHECK(memcmp(jobs[i].id.bytes, last.bytes, sizeof last.bytes) < 0);
            last = jobs[i].id;
        }
        count += (int)page;
        filter.after = page == (size_t)filter.limit ? last : world->looked_to;
        if (qr_uuid_is_zero(filter.after)) {
            return count;
        }
        QR_CHECK(*ret_pages < 1000);
    }
}

QR_DB_TEST(a_list_finds_everything_in_pages_though_it_looks_at_so_many_jobs_and_no_further)
{
    struct qr_world world;
    int pages;
    qr_world_open(&world, t, NULL);
    qr_world_write(&world, make_many, &world);
    QR_CHECK_INT(WAITING + 3, count_pages(&world, (struct qr_job_filter){.state = QR_JOB_QUEUED}, &pages));
    QR_CHECK_INT(3, count_pages(&world, (struct qr_job_filter){.type = "rare"}, &pages));
    QR_CHECK_INT(2, pages); /* the first of them looked at newer ones in vain */
    QR_CHECK_INT(3,
                 count_pages(&world, (struct qr_job_filter){.state = QR_JOB_QUEUED, .queue = QR_QUEUE_EMBED}, &pages));
    QR_CHECK_INT(1, pages); /* few of them */
    QR_CHECK_INT(ENDED, count_pages(&world, (struct qr_job_filter){.state = QR_JOB_COMPLETED}, &pages));
    QR_CHECK_INT(0, count_pages(&world, (struct qr_job_filter){.state = QR_JOB_RUNNING}, &pages));
    QR_CHECK_INT(1, pages);
    QR_CHECK_INT(0, count_pages(&world, (struct qr_job_filter){.base_id = {.bytes = {9}}}, &pages));
    QR_CHECK_INT(WAITING + ENDED + 3, count_pages(&world, (struct qr_job_filter){.state = 0}, &pages));
    qr_world_close(&world);
}

QR_TEST(no_list_looks_at_all_jobs)
{
    struct qr_world world;
    struct qr_job *jobs;
    const qr_uuid someone = {.bytes = {1}};
    open_heard(&world, t);
    int count = 0;
    for (int filled = 0; filled < 2; filled++) { /* what is few may become much */
        for (int state = 0; state <= QR_JOB_CANCELLED; state++) {
            for (int rest = 0; rest < 16; rest++) {
                struct qr_job_filter filter = {.limit = 5};
                filter.state = (enum qr_job_state)state;
                filter.queue = rest & 1 ? QR_QUEUE_CONVERT : 0;
                filter.type = rest & 2 ? "work" : NULL;
                filter.base_id = rest & 4 ? someone : filter.base_id;
                filter.after = rest & 8 ? someone : filter.after;
                qr_world_list(&world, filter, &jobs);
                count++;
            }
        }
        qr_world_write(&world, make_many, &world);
    }
    QR_CHECK(count > 200);
    check_heard(&world, t, 50);
}
