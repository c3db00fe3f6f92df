/* The PostgreSQL driver when the server crashes, when sessions are ended, when connections are cut at the worst moment:
 * DB-1 (an acknowledged write is there), DB-3 (its effects appear once), DB-10 (a lost server is waited for, and a
 * commit whose answer was lost is neither lost nor repeated). */
#include "base/failpoint.h"
#include "base/thread.h"
#include "support/db_fixture.h"
#include "support/postgres_proxy.h"

#include <libpq-fe.h>
#include <semaphore.h>
#include <signal.h>

enum {
    WRITERS = 8,
    CRASHES = 3,
    TERMINATIONS = 20,
    LONG_MS = 120000, /* a deadline that is not reached */
    PATIENCE_S = 60,
};

__attribute__((constructor)) static void use_server(void)
{
    qr_db_test_use_server();
}

/* A row of `done` for each write, with a count that shows one applied twice, and a sum over all writes of a writer. */
static const struct qr_migration MIGRATIONS[] = {
    {"work", "CREATE TABLE done (writer INTEGER NOT NULL, number INTEGER NOT NULL, times INTEGER NOT NULL, "
             "PRIMARY KEY (writer, number)) STRICT;"
             "CREATE TABLE total (writer INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;"
             "CREATE TABLE applied (number INTEGER NOT NULL) STRICT;"},
};

static struct qr_db *open_within(const char *url, int64_t write_deadline_ms)
{
    const struct qr_db_options options = {.url = url,
                                          .migrations = MIGRATIONS,
                                          .migration_count = QR_COUNT(MIGRATIONS),
                                          .readers_max = WRITERS,
                                          .write_deadline_ms = write_deadline_ms,
                                          .read_deadline_ms = LONG_MS};
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    return db;
}

static struct qr_db *open_at(const char *url)
{
    return open_within(url, LONG_MS);
}

static struct qr_db *open_through(const struct qr_pg_proxy *proxy, const char *schema, int64_t write_deadline_ms)
{
    struct qr_pg through_proxy = {0};
    snprintf(through_proxy.dir, sizeof through_proxy.dir, "%s", proxy->dir);
    return open_within(qr_pg_url(&through_proxy, schema), write_deadline_ms);
}

/* A server of the test's own, to be crashed. */
static void start_server(struct qr_test *t, struct qr_pg *pg)
{
    if (!qr_pg_installed()) {
        qr_test_skip("PostgreSQL is not installed");
    }
    *pg = (struct qr_pg){.fsync = true};
    qr_pg_start(pg, t->dir);
}

static struct qr_db_stats stats_of(struct qr_db *db)
{
    struct qr_db_stats stats;
    qr_db_stats(db, &stats);
    return stats;
}

/* ---- writers under load ---- */

struct load {
    struct qr_db *db;
    pthread_t threads[WRITERS];
    struct writer {
        struct load *load;
        int64_t index, acknowledged; /* it numbers its writes 1, 2, 3 … and waits for each */
    } writers[WRITERS];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    int64_t acknowledged; /* by all */
};

struct work {
    int64_t writer, number;
};

static qr_rc do_work(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct work *work = arg;
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO done (writer, number, times) VALUES (?1, ?2, 1) "
                      "ON CONFLICT (writer, number) DO UPDATE SET times = done.times + 1",
                      QR_VALS(qr_val_i64(work->writer), qr_val_i64(work->number)), NULL, err));
    return qr_tx_exec(tx,
                      "INSERT INTO total (writer, count) VALUES (?1, 1) "
                      "ON CONFLICT (writer) DO UPDATE SET count = total.count + 1",
                      QR_VALS(qr_val_i64(work->writer)), NULL, err);
}

/* False when the load is to end. */
static bool acknowledge(struct load *load)
{
    QR_LOCKED(&load->lock);
    load->acknowledged++;
    pthread_cond_broadcast(&load->changed);
    return !load->stopping;
}

static void *write_on(void *arg)
{
    struct writer *writer = arg;
    bool goes_on = true;
    while (goes_on) {
        struct work work = {writer->index, writer->acknowledged + 1};
        qr_err err;
        QR_CHECK_RC(QR_OK, qr_db_write(writer->load->db, QR_DURABLE, do_work, &work, &err));
        writer->acknowledged++;
        goes_on = acknowledge(writer->load);
    }
    return NULL;
}

static void start_load(struct load *load, struct qr_db *db)
{
    *load = (struct load){.db = db};
    pthread_mutex_init(&load->lock, NULL);
    qr_cond_init(&load->changed);
    for (int i = 0; i < WRITERS; i++) {
        load->writers[i] = (struct writer){.load = load, .index = i};
        QR_CHECK(pthread_create(&load->threads[i], NULL, write_on, &load->writers[i]) == 0);
    }
}

static void wait_for_more(struct load *load, int64_t count)
{
    QR_LOCKED(&load->lock);
    const int64_t wanted = load->acknowledged + count;
    while (load->acknowledged < wanted) {
        pthread_cond_wait(&load->changed, &load->lock);
    }
}

static void stop_load(struct load *load)
{
    {
        QR_LOCKED(&load->lock);
        load->stopping = true;
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(load->threads[i], NULL);
    }
}

/* Every acknowledged write is there once, and nothing else. */
static qr_rc check_work(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct load *load = arg;
    for (int i = 0; i < WRITERS; i++) {
        const struct writer *writer = &load->writers[i];
        int64_t rows = 0, highest = 0, repeated = 0, total = 0;
        const struct qr_val index = qr_val_i64(i);
        QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM done WHERE writer = ?1", &index, 1, NULL, &rows, err));
        QR_TRY(qr_tx_get_i64(tx, "SELECT max(number) FROM done WHERE writer = ?1", &index, 1, NULL, &highest, err));
        QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM done WHERE writer = ?1 AND times <> 1", &index, 1, NULL,
                             &repeated, err));
        QR_TRY(qr_tx_get_i64(tx, "SELECT count FROM total WHERE writer = ?1", &index, 1, NULL, &total, err));
        QR_CHECK_INT(writer->acknowledged, rows);
        QR_CHECK_INT(writer->acknowledged, highest);
        QR_CHECK_INT(0, repeated);
        QR_CHECK_INT(writer->acknowledged, total);
    }
    return QR_OK;
}

QR_TEST_WITH_TIMEOUT(a_server_that_crashes_under_load_loses_and_repeats_nothing, 180) /* DB-1 DB-3 DB-10 */
{
    struct qr_pg pg;
    start_server(t, &pg);
    struct qr_db *db = open_at(qr_pg_url(&pg, "quire"));
    struct load load;
    start_load(&load, db);
    for (int i = 0; i < CRASHES; i++) {
        wait_for_more(&load, 300 + i * 37);
        qr_pg_crash(&pg);
        qr_pg_resume(&pg);
    }
    wait_for_more(&load, 300);
    stop_load(&load);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, check_work, &load, &err));
    QR_CHECK(stats_of(db).reopens >= CRASHES);
    QR_CHECK_INT(load.acknowledged + 1, stats_of(db).commits); /* and the migration */
    qr_db_close(db);
    qr_pg_remove(&pg);
}

QR_TEST_WITH_TIMEOUT(ended_sessions_lose_and_repeat_nothing, 180) /* DB-1 DB-3 DB-10 */
{
    struct qr_pg *pg = qr_db_test_server();
    struct qr_db *db = open_at(qr_pg_url(pg, "ended_sessions"));
    struct load load;
    start_load(&load, db);
    for (int i = 0; i < TERMINATIONS; i++) {
        wait_for_more(&load, 50);
        qr_pg_ask(pg, NULL,
                  "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'quire'");
    }
    wait_for_more(&load, 50);
    stop_load(&load);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, check_work, &load, &err));
    QR_CHECK(stats_of(db).reopens > 0);
    qr_db_close(db);
}

QR_TEST_WITH_TIMEOUT(a_server_that_is_restarted_in_order_is_waited_for, 120) /* DB-10 */
{
    struct qr_pg pg;
    start_server(t, &pg);
    struct qr_db *db = open_at(qr_pg_url(&pg, "quire"));
    struct load load;
    start_load(&load, db);
    wait_for_more(&load, 100);
    qr_pg_stop(&pg);
    qr_pg_resume(&pg);
    wait_for_more(&load, 100);
    stop_load(&load);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, check_work, &load, &err));
    qr_db_close(db);
    qr_pg_remove(&pg);
}

/* ---- a commit in doubt ---- */

/* Rows of `applied` have no key: neither a repetition nor a second session is held back by the first. */
static qr_rc apply(struct qr_tx *tx, void *arg, qr_err *err)
{
    int *runs = arg;
    ++*runs;
    return qr_tx_exec(tx, "INSERT INTO applied (number) VALUES (1)", QR_NO_VALS, NULL, err);
}

struct doubt {
    struct qr_pg *pg;
    struct qr_pg_proxy proxy;
    struct qr_db *db;
    const char *schema;
};

static void start_doubt(struct qr_test *t, struct doubt *doubt, const char *schema)
{
    doubt->pg = qr_db_test_server();
    doubt->schema = schema;
    qr_pg_proxy_start(&doubt->proxy, doubt->pg, t->dir);
    doubt->db = open_through(&doubt->proxy, schema, LONG_MS);
}

static void stop_doubt(struct doubt *doubt)
{
    qr_db_close(doubt->db);
    qr_pg_proxy_stop(&doubt->proxy);
}

static void check_applied_once_after(struct doubt *doubt, enum qr_pg_cut cut, int runs_expected)
{
    int runs = 0;
    qr_err err;
    qr_pg_proxy_set(&doubt->proxy, cut);
    QR_CHECK_RC(QR_OK, qr_db_write(doubt->db, QR_DURABLE, apply, &runs, &err));
    QR_CHECK(qr_pg_proxy_has_cut(&doubt->proxy));
    QR_CHECK_INT(runs_expected, runs);
    QR_CHECK_INT(1, qr_pg_ask(doubt->pg, doubt->schema, "SELECT count(*) FROM applied"));
    QR_CHECK_INT(runs_expected - 1, stats_of(doubt->db).reruns);
}

QR_TEST(a_connection_cut_before_commit_arrives_is_run_again) /* DB-3 DB-10 */
{
    struct doubt doubt;
    start_doubt(t, &doubt, "cut_before");
    check_applied_once_after(&doubt, QR_PG_CUT_BEFORE_COMMIT, 2);
    stop_doubt(&doubt);
}

QR_TEST(a_commit_whose_answer_is_lost_is_not_repeated) /* DB-3 DB-10 */
{
    struct doubt doubt;
    start_doubt(t, &doubt, "cut_after");
    check_applied_once_after(&doubt, QR_PG_CUT_AFTER_COMMIT, 1);
    stop_doubt(&doubt);
}

/* The session did not notice that it was given up, and reads the COMMIT long after the function was run again. */
QR_TEST(a_commit_that_arrives_late_is_refused_by_its_mark) /* DB-3 DB-10 */
{
    struct doubt doubt;
    start_doubt(t, &doubt, "cut_late");
    check_applied_once_after(&doubt, QR_PG_CUT_AND_HOLD_BACK, 2);
    qr_pg_proxy_release(&doubt.proxy);
    stop_doubt(&doubt); /* waits for the session's answer to the late COMMIT */
    QR_CHECK_INT(1, qr_pg_ask(doubt.pg, doubt.schema, "SELECT count(*) FROM applied"));
}

static void wait_for_waiter(struct doubt *doubt, const char *lock_type)
{
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM pg_locks WHERE locktype = '%s' AND NOT granted", lock_type);
    while (qr_pg_ask(doubt->pg, NULL, sql) == 0) {
    }
}

/* Cuts the connection when the COMMIT is under way, and lets it go on when somebody waits for its outcome. */
static void *cut_and_let_go(void *arg)
{
    struct doubt *doubt = arg;
    wait_for_waiter(doubt, "advisory");
    qr_pg_proxy_release(&doubt->proxy);
    wait_for_waiter(doubt, "transactionid");
    qr_pg_ask(doubt->pg, NULL,
              "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'holder'");
    return NULL;
}

QR_TEST(a_commit_that_is_still_under_way_is_waited_for) /* DB-3 DB-10 */
{
    struct doubt doubt;
    start_doubt(t, &doubt, "cut_during");
    qr_pg_ask(doubt.pg, doubt.schema,
              "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS "
              "'BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NULL; END'; "
              "CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON applied DEFERRABLE INITIALLY DEFERRED "
              "FOR EACH ROW EXECUTE FUNCTION hold()");
    const char *const keys[] = {"host", "user", "dbname", "application_name", NULL};
    const char *const values[] = {doubt.pg->dir, "quire", "postgres", "holder", NULL};
    PGconn *holder = PQconnectdbParams(keys, values, 0);
    PQclear(PQexec(holder, "SELECT pg_advisory_lock(42)"));
    pthread_t thread;
    QR_CHECK(pthread_create(&thread, NULL, cut_and_let_go, &doubt) == 0);
    check_applied_once_after(&doubt, QR_PG_CUT_DURING_COMMIT, 1);
    pthread_join(thread, NULL);
    PQfinish(holder);
    stop_doubt(&doubt);
}

QR_TEST(an_outcome_that_cannot_be_learnt_is_said_to_be_unknown) /* DB-10 */
{
    struct doubt doubt;
    start_doubt(t, &doubt, "cut_for_good");
    qr_db_close(doubt.db);
    doubt.db = open_through(&doubt.proxy, doubt.schema, 500);
    int runs = 0;
    qr_err err;
    qr_pg_proxy_set(&doubt.proxy, QR_PG_CUT_FOR_GOOD);
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_db_write(doubt.db, QR_DURABLE, apply, &runs, &err));
    QR_CHECK_HAS("whether it is stored could not be learnt", err.msg);
    QR_CHECK_INT(1, runs);
    stop_doubt(&doubt);
}

QR_TEST(a_commit_is_settled_when_only_its_answer_fails) /* DB-3 DB-10 */
{
    if (!qr_failpoints_built_in()) {
        qr_test_skip("failpoints are not built in");
    }
    struct qr_pg *pg = qr_db_test_server();
    struct qr_db *db = open_at(qr_pg_url(pg, "answer_fails"));
    int runs = 0;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("db.write.after_commit=error", &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, apply, &runs, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, apply, &runs, &err));
    QR_CHECK_INT(2, runs);
    QR_CHECK_INT(2, qr_pg_ask(pg, "answer_fails", "SELECT count(*) FROM applied"));
    qr_db_close(db);
}

/* ---- a server that is not there, or does not answer ---- */

QR_TEST(a_server_that_stays_away_is_unavailable_at_the_deadline) /* DB-10 */
{
    struct doubt doubt;
    start_doubt(t, &doubt, "stays_away");
    qr_db_close(doubt.db);
    doubt.db = open_through(&doubt.proxy, doubt.schema, 500);
    qr_pg_ask(doubt.pg, NULL,
              "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'quire'");
    qr_pg_proxy_set(&doubt.proxy, QR_PG_REFUSE);
    int runs = 0;
    qr_err err;
    const int64_t began_us = qr_thread_mono_us();
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_db_write(doubt.db, QR_DURABLE, apply, &runs, &err));
    QR_CHECK(qr_thread_mono_us() - began_us < 3000000);
    QR_CHECK_HAS(doubt.proxy.dir, err.msg); /* names the place */
    QR_CHECK_INT(0, runs);
    stop_doubt(&doubt);
}

struct knock {
    struct qr_db *db;
    pthread_t thread;
};

static void *knock(void *arg)
{
    const struct knock *knocking = arg;
    int runs = 0;
    qr_err err;
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_db_write(knocking->db, QR_DURABLE, apply, &runs, &err));
    return NULL;
}

QR_TEST(while_the_server_is_away_one_caller_knocks_for_all)
{
    enum { CALLERS = 16, DEADLINE_MS = 1000, KNOCKS_MAX = 20 };
    struct doubt doubt;
    start_doubt(t, &doubt, "knocking");
    qr_db_close(doubt.db);
    doubt.db = open_through(&doubt.proxy, doubt.schema, DEADLINE_MS);
    qr_pg_proxy_set(&doubt.proxy, QR_PG_REFUSE);
    qr_pg_ask(doubt.pg, NULL,
              "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'quire'");
    struct knock callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i].db = doubt.db;
        QR_CHECK(pthread_create(&callers[i].thread, NULL, knock, &callers[i]) == 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
    }
    /* each on its own would make five or six in a second */
    QR_CHECK(qr_pg_proxy_refused(&doubt.proxy) > 0 && qr_pg_proxy_refused(&doubt.proxy) <= KNOCKS_MAX);
    stop_doubt(&doubt);
}

static qr_rc stop_own_session(struct qr_tx *tx, void *arg, qr_err *err)
{
    int64_t *pid = arg;
    QR_TRY(qr_tx_get_i64(tx, "SELECT pg_backend_pid()", QR_NO_VALS, NULL, pid, err));
    kill((pid_t)*pid, SIGSTOP);
    int64_t ignored;
    return qr_tx_get_i64(tx, "SELECT 1", QR_NO_VALS, NULL, &ignored, err);
}

QR_TEST(a_server_that_does_not_answer_is_given_up_at_the_deadline) /* DB-6 DB-10 */
{
    struct qr_pg *pg = qr_db_test_server();
    const struct qr_db_options options = {.url = qr_pg_url(pg, "no_answer"),
                                          .migrations = MIGRATIONS,
                                          .migration_count = QR_COUNT(MIGRATIONS),
                                          .write_deadline_ms = 500,
                                          .read_deadline_ms = 500};
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    int64_t pid = 0;
    const int64_t began_us = qr_thread_mono_us();
    QR_CHECK_CODE(QR_CODE_TIMEOUT, qr_db_read(db, stop_own_session, &pid, &err));
    kill((pid_t)pid, SIGCONT);
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_db_write(db, QR_DURABLE, stop_own_session, &pid, &err));
    kill((pid_t)pid, SIGCONT);
    QR_CHECK(qr_thread_mono_us() - began_us < 5000000);
    int runs = 0;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, apply, &runs, &err));
    qr_db_close(db);
}

/* ---- wake-ups ---- */

static void post(void *arg, const char *channel QR_UNUSED)
{
    sem_post(arg);
}

static qr_rc notify(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_notify(tx, "jobs", err);
}

static void wait_for_wake_up(sem_t *woken)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    QR_CHECK(sem_timedwait(woken, &until) == 0);
}

QR_TEST_WITH_TIMEOUT(wake_ups_arrive_again_after_a_crash, 120)
{
    struct qr_pg pg;
    start_server(t, &pg);
    struct qr_db *listener = open_at(qr_pg_url(&pg, "quire"));
    struct qr_db *writer = open_at(qr_pg_url(&pg, "quire"));
    sem_t woken;
    sem_init(&woken, 0, 0);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_listen(listener, "jobs", post, &woken, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(writer, QR_DURABLE, notify, NULL, &err));
    wait_for_wake_up(&woken);
    qr_pg_crash(&pg);
    qr_pg_resume(&pg);
    wait_for_wake_up(&woken); /* without cause: some may have been missed */
    QR_CHECK_RC(QR_OK, qr_db_write(writer, QR_DURABLE, notify, NULL, &err));
    wait_for_wake_up(&woken);
    qr_db_close(listener);
    qr_db_close(writer);
    qr_pg_remove(&pg);
}
