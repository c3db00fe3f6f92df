/* What is PostgreSQL's alone: conflicts, types, prepared statements, commit marks, wake-ups between processes. What
 * both databases promise is in contract/db_test.c. */
#include "base/thread.h"
#include "support/db_fixture.h"
#include "support/fault.h"

#include <semaphore.h>

enum { PATIENCE_S = 60 };

__attribute__((constructor)) static void use_server(void)
{
    qr_db_test_use_server();
}

static const struct qr_migration MIGRATIONS[] = {
    {"numbers", "CREATE TABLE number (id INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT;"
                "INSERT INTO number (id, value) VALUES (1, 0), (2, 0);"},
};

static struct qr_db_options options_for(const char *schema)
{
    return (struct qr_db_options){.url = qr_pg_url(qr_db_test_server(), schema),
                                  .migrations = MIGRATIONS,
                                  .migration_count = QR_COUNT(MIGRATIONS)};
}

static struct qr_db *open_schema(const char *schema)
{
    const struct qr_db_options options = options_for(schema);
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    return db;
}

static struct qr_db_stats stats_of(struct qr_db *db)
{
    struct qr_db_stats stats;
    qr_db_stats(db, &stats);
    return stats;
}

static qr_rc raise(struct qr_tx *tx, int64_t id, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE number SET value = value + 1 WHERE id = ?1", QR_VALS(qr_val_i64(id)), NULL, err);
}

/* ---- a question inside of a transaction ---- */

struct asking {
    struct qr_db *db;
    pthread_t thread;
    sem_t has_locked, may_wait;
    int64_t value;
};

static qr_rc read_value(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_get_i64(tx, "SELECT value FROM number WHERE id = 2", QR_NO_VALS, NULL, arg, err);
}

static qr_rc say_and_raise(struct qr_tx *tx, void *arg, qr_err *err)
{
    sem_post(&((struct asking *)arg)->may_wait);
    return raise(tx, 1, err);
}

static void *wait_for_lock(void *arg)
{
    struct asking *asking = arg;
    qr_err err;
    sem_wait(&asking->has_locked);
    QR_CHECK_RC(QR_OK, qr_db_write(asking->db, QR_DURABLE, say_and_raise, asking, &err));
    return NULL;
}

static qr_rc lock_and_ask(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct asking *asking = arg;
    QR_TRY(raise(tx, 1, err));
    sem_post(&asking->has_locked);
    sem_wait(&asking->may_wait);
    return qr_db_read(asking->db, read_value, &asking->value, err);
}

QR_TEST(a_question_inside_of_a_write_is_answered_though_all_connections_wait_for_it)
{
    struct qr_db_options options = options_for("asking");
    options.readers_max = 2;
    struct asking asking = {.value = -1};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&asking.db, &options, &err));
    sem_init(&asking.has_locked, 0, 0);
    sem_init(&asking.may_wait, 0, 0);
    pthread_create(&asking.thread, NULL, wait_for_lock, &asking);
    QR_CHECK_RC(QR_OK, qr_db_write(asking.db, QR_DURABLE, lock_and_ask, &asking, &err));
    QR_CHECK_INT(0, asking.value);
    pthread_join(asking.thread, NULL);
    qr_db_close(asking.db);
}

/* ---- conflicts ---- */

struct crossing {
    struct qr_db *db;
    pthread_t thread;
    int64_t first, second;
    int runs;
    pthread_barrier_t *both_hold_one;
};

static qr_rc raise_both(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct crossing *crossing = arg;
    QR_TRY(raise(tx, crossing->first, err));
    if (crossing->runs++ == 0) {
        pthread_barrier_wait(crossing->both_hold_one);
    }
    return raise(tx, crossing->second, err);
}

static void *cross(void *arg)
{
    struct crossing *crossing = arg;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(crossing->db, QR_DURABLE, raise_both, crossing, &err));
    return NULL;
}

QR_TEST(of_two_writes_in_a_deadlock_both_succeed) /* DB-3 */
{
    struct qr_db *db = open_schema("deadlock");
    pthread_barrier_t both_hold_one;
    pthread_barrier_init(&both_hold_one, NULL, 2);
    struct crossing crossings[] = {{.db = db, .first = 1, .second = 2, .both_hold_one = &both_hold_one},
                                   {.db = db, .first = 2, .second = 1, .both_hold_one = &both_hold_one}};
    for (size_t i = 0; i < QR_COUNT(crossings); i++) {
        QR_CHECK(pthread_create(&crossings[i].thread, NULL, cross, &crossings[i]) == 0);
    }
    for (size_t i = 0; i < QR_COUNT(crossings); i++) {
        pthread_join(crossings[i].thread, NULL);
    }
    const int runs = crossings[0].runs + crossings[1].runs;
    QR_CHECK(runs >= 3); /* they may meet again */
    QR_CHECK_INT(runs - 2, stats_of(db).reruns);
    QR_CHECK_INT(2, qr_pg_ask(qr_db_test_server(), "deadlock", "SELECT min(value) FROM number"));
    QR_CHECK_INT(2, qr_pg_ask(qr_db_test_server(), "deadlock", "SELECT max(value) FROM number"));
    qr_db_close(db);
}

/* Raises a number over an old snapshot, which PostgreSQL refuses. */
static qr_rc raise_over_old_snapshot(struct qr_tx *tx, void *arg, qr_err *err)
{
    int *runs = arg;
    int64_t value;
    if (++*runs == 1) {
        QR_TRY(qr_tx_exec(tx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", QR_NO_VALS, NULL, err));
        QR_TRY(qr_tx_get_i64(tx, "SELECT value FROM number WHERE id = 1", QR_NO_VALS, NULL, &value, err));
        qr_pg_ask(qr_db_test_server(), "serialization", "UPDATE number SET value = value + 1 WHERE id = 1");
    }
    return raise(tx, 1, err);
}

static qr_rc raise_and_swallow(struct qr_tx *tx, void *arg, qr_err *err)
{
    (void)!raise_over_old_snapshot(tx, arg, err);
    return QR_OK;
}

static qr_rc raise_in_old_transaction(struct qr_tx *tx, void *arg, qr_err *err)
{
    (void)arg;
    return raise(tx, 1, err);
}

static qr_rc raise_nested(struct qr_tx *tx, void *arg, qr_err *err)
{
    int *runs = arg;
    int64_t value;
    if (++*runs == 1) {
        QR_TRY(qr_tx_exec(tx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", QR_NO_VALS, NULL, err));
        QR_TRY(qr_tx_get_i64(tx, "SELECT value FROM number WHERE id = 1", QR_NO_VALS, NULL, &value, err));
        qr_pg_ask(qr_db_test_server(), "serialization", "UPDATE number SET value = value + 1 WHERE id = 1");
    }
    qr_err nested_err;
    (void)!qr_tx_nested(tx, raise_in_old_transaction, NULL, &nested_err);
    return QR_OK;
}

QR_TEST(after_a_serialization_failure_the_function_is_run_again) /* DB-3 */
{
    struct qr_db *db = open_schema("serialization");
    qr_err err;
    qr_tx_fn *const functions[] = {raise_over_old_snapshot, raise_and_swallow, raise_nested};
    for (size_t i = 0; i < QR_COUNT(functions); i++) {
        int runs = 0;
        QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, functions[i], &runs, &err));
        QR_CHECK_INT(2, runs);
        QR_CHECK_INT(i + 1, stats_of(db).reruns);
        QR_CHECK_INT(2 * (i + 1), qr_pg_ask(qr_db_test_server(), "serialization", "SELECT max(value) FROM number"));
    }
    qr_db_close(db);
}

static qr_rc always_conflict(struct qr_tx *tx, void *arg, qr_err *err)
{
    int *runs = arg;
    ++*runs;
    return qr_tx_exec(tx, "SELECT conflict()", QR_NO_VALS, NULL, err);
}

QR_TEST(what_conflicts_for_ever_is_unavailable_at_the_deadline) /* DB-10 */
{
    struct qr_db_options options = options_for("conflict");
    options.write_deadline_ms = 300;
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    qr_pg_ask(qr_db_test_server(), "conflict",
              "CREATE FUNCTION conflict() RETURNS void LANGUAGE plpgsql AS "
              "'BEGIN RAISE EXCEPTION ''not now'' USING ERRCODE = ''40001''; END'");
    int runs = 0;
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_db_write(db, QR_DURABLE, always_conflict, &runs, &err));
    QR_CHECK_HAS("not now", err.msg);
    QR_CHECK(runs > 1);
    qr_db_close(db);
}

/* ---- statements ---- */

static qr_rc select_numeric(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_ROWS(rows);
    return qr_tx_query(tx, &rows, "SELECT id, sum(value) AS all_of_it FROM number GROUP BY id", QR_NO_VALS, err);
}

QR_TEST(a_column_of_a_type_that_we_do_not_read_is_a_clear_error)
{
    struct qr_db *db = open_schema("numeric");
    qr_err err;
    QR_CHECK_CODE(QR_CODE_INTERNAL, qr_db_read(db, select_numeric, NULL, &err));
    QR_CHECK_HAS("column 1 (all_of_it) has type numeric", err.msg);
    qr_db_close(db);
}

static qr_rc select_each_type(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT true, CAST(-2 AS int2), CAST(-3 AS int4), CAST(-4 AS int8), CAST(1.5 AS float4), "
                       "CAST(-2.5 AS float8), CAST('v' AS varchar), CAST('n' AS name), "
                       "CAST('000102030405060708090a0b0c0d0e0f' AS uuid), NULL, 1 IS NULL, CAST(1e300 AS float8)",
                       QR_NO_VALS, err));
    QR_CHECK(qr_rows_next(&rows));
    for (int i = 0; i < 4; i++) {
        QR_CHECK_INT(i == 0 ? 1 : -(i + 1), qr_rows_i64(&rows, i));
        QR_CHECK(qr_rows_f64(&rows, i) == (i == 0 ? 1.0 : -(i + 1.0)));
    }
    QR_CHECK(qr_rows_f64(&rows, 4) == 1.5 && qr_rows_i64(&rows, 4) == 1);
    QR_CHECK(qr_rows_f64(&rows, 5) == -2.5 && qr_rows_i64(&rows, 5) == -2);
    QR_CHECK_STR("v", qr_rows_str(&rows, 6));
    QR_CHECK_STR("n", qr_rows_str(&rows, 7));
    QR_CHECK_INT(16, qr_rows_str(&rows, 8).len);
    QR_CHECK_INT(15, qr_rows_str(&rows, 8).ptr[15]);
    QR_CHECK(qr_rows_is_null(&rows, 9) && qr_rows_str(&rows, 9).len == 0);
    QR_CHECK_INT(0, qr_rows_i64(&rows, 10));
    QR_CHECK_INT(0, qr_rows_i64(&rows, 11)); /* does not fit */
    QR_CHECK_INT(0, qr_rows_i64(&rows, 6));  /* is no number */
    QR_CHECK_INT(0, qr_rows_str(&rows, 3).len);
    return qr_rows_end(&rows, err);
}

QR_TEST(every_type_that_we_read_is_read_as_it_is)
{
    struct qr_db *db = open_schema("types");
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, select_each_type, NULL, &err));
    qr_db_close(db);
}

static qr_rc run_many_statements(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    for (int64_t i = 0; i < 1200; i++) {
        char sql[64];
        snprintf(sql, sizeof sql, "SELECT ?1 + %lld", (long long)i);
        int64_t sum;
        QR_TRY(qr_tx_get_i64(tx, sql, QR_VALS(qr_val_i64(1)), NULL, &sum, err));
        QR_CHECK_INT(i + 1, sum);
        QR_TRY(qr_tx_get_i64(tx, "SELECT 7", QR_NO_VALS, NULL, &sum, err));
        QR_CHECK_INT(7, sum);
    }
    return QR_OK;
}

QR_TEST(more_statements_than_are_kept_prepared_work)
{
    struct qr_db *db = open_schema("statements");
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, run_many_statements, NULL, &err));
    qr_db_close(db);
}

static qr_rc one_statement_with_many_types(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    const struct qr_val values[] = {qr_val_null(), qr_val_text(QR_STR("one")), qr_val_null()};
    for (size_t i = 0; i < QR_COUNT(values); i++) {
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows, "SELECT coalesce(?1, 'none')", &values[i], 1, err));
        QR_CHECK(qr_rows_next(&rows));
        QR_CHECK_STR(values[i].type == QR_VAL_NULL ? "none" : "one", qr_rows_str(&rows, 0));
        QR_TRY(qr_rows_end(&rows, err));
    }
    return QR_OK;
}

QR_TEST(a_value_may_be_null_at_one_time_and_text_at_another)
{
    struct qr_db *db = open_schema("nulls");
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, one_statement_with_many_types, NULL, &err));
    qr_db_close(db);
}

static qr_rc end_transaction(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(raise(tx, 1, err));
    return qr_tx_script(tx, "ROLLBACK", err);
}

QR_TEST(a_script_that_ends_its_transaction_is_an_error)
{
    struct qr_db *db = open_schema("script");
    qr_err err;
    QR_CHECK_CODE(QR_CODE_INTERNAL, qr_db_write(db, QR_DURABLE, end_transaction, NULL, &err));
    QR_CHECK_INT(0, qr_pg_ask(qr_db_test_server(), "script", "SELECT max(value) FROM number"));
    qr_db_close(db);
}

static qr_rc count_slowly(struct qr_tx *tx, void *arg, qr_err *err)
{
    int *statements = arg;
    for (;;) {
        int64_t ignored;
        QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM generate_series(1, 10000)", QR_NO_VALS, NULL, &ignored, err));
        ++*statements;
    }
}

QR_TEST(the_deadline_of_a_read_counts_all_its_statements) /* DB-6 */
{
    struct qr_db_options options = options_for("slow");
    options.read_deadline_ms = 300;
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    int statements = 0;
    const int64_t began_us = qr_thread_mono_us();
    QR_CHECK_CODE(QR_CODE_TIMEOUT, qr_db_read(db, count_slowly, &statements, &err));
    QR_CHECK(qr_thread_mono_us() - began_us < 3000000);
    QR_CHECK(statements > 1);
    QR_CHECK_INT(1, stats_of(db).read_timeouts);
    qr_db_close(db);
}

static qr_rc ask_time(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_now_ms(tx, arg, err);
}

QR_TEST(without_a_given_clock_the_time_is_the_servers)
{
    struct qr_db *db = open_schema("clock");
    int64_t now_ms = 0;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, ask_time, &now_ms, &err));
    const long long server_s = qr_pg_ask(qr_db_test_server(), NULL, "SELECT CAST(extract(epoch FROM now()) AS bigint)");
    QR_CHECK(now_ms / 1000 <= server_s + 1 && now_ms / 1000 >= server_s - PATIENCE_S);
    qr_db_close(db);
}

/* ---- levels and marks ---- */

static qr_rc note_level(struct qr_tx *tx, void *arg, qr_err *err)
{
    int64_t *is_off = arg;
    return qr_tx_get_i64(tx, "SELECT CAST(current_setting('synchronous_commit') = 'off' AS INTEGER)", QR_NO_VALS, NULL,
                         is_off, err);
}

QR_TEST(a_durable_write_is_durable_whatever_the_server_is_set_to) /* DB-1 */
{
    char url[512];
    snprintf(url, sizeof url, "%s%%20-csynchronous_commit%%3Doff", qr_pg_url(qr_db_test_server(), "levels"));
    const struct qr_db_options options = {.url = url};
    struct qr_db *db;
    qr_err err;
    int64_t is_off = -1;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, note_level, &is_off, &err));
    QR_CHECK_INT(1, is_off);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, note_level, &is_off, &err));
    QR_CHECK_INT(0, is_off);
    qr_db_close(db);
}

static qr_rc raise_first(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return raise(tx, 1, err);
}

static qr_rc change_nothing(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t value;
    return qr_tx_get_i64(tx, "SELECT value FROM number WHERE id = 1", QR_NO_VALS, NULL, &value, err);
}

static long long count_marks(const char *schema)
{
    return qr_pg_ask(qr_db_test_server(), schema, "SELECT count(*) FROM quire_commit");
}

QR_TEST(commit_marks_do_not_pile_up)
{
    struct qr_db_options options = options_for("marks");
    options.readers_max = 1;
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    const long long at_open = count_marks("marks");
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, change_nothing, NULL, &err));
    QR_CHECK_INT(at_open, count_marks("marks")); /* nothing changed, nothing to be in doubt about */
    for (int i = 0; i < 700; i++) {
        QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, raise_first, NULL, &err));
    }
    QR_CHECK(count_marks("marks") > 0 && count_marks("marks") <= 257);
    qr_db_close(db);
    QR_CHECK_INT(0, count_marks("marks"));

    /* a process that died left one behind */
    qr_pg_ask(qr_db_test_server(), "marks",
              "INSERT INTO quire_commit (id, made_at) VALUES (gen_random_uuid(), now() - INTERVAL '2 days')");
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    QR_CHECK_INT(0, count_marks("marks"));
    qr_db_close(db);
}

/* ---- wake-ups ---- */

struct wake_ups {
    sem_t woken;
    int count;
};

static void count_wake_up(void *arg, const char *channel)
{
    struct wake_ups *wake_ups = arg;
    QR_CHECK_TEXT("jobs", channel);
    __atomic_add_fetch(&wake_ups->count, 1, __ATOMIC_SEQ_CST);
    sem_post(&wake_ups->woken);
}

static qr_rc notify(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_notify(tx, arg, err);
}

static void wait_for_wake_up(struct wake_ups *wake_ups)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    QR_CHECK(sem_timedwait(&wake_ups->woken, &until) == 0);
}

QR_TEST(a_wake_up_reaches_other_processes)
{
    struct qr_db *listener = open_schema("wake"), *writer = open_schema("wake");
    struct wake_ups jobs = {0};
    sem_init(&jobs.woken, 0, 0);
    qr_err err;
    char name[] = "jobs", other[] = "others";
    QR_CHECK_RC(QR_OK, qr_db_listen(listener, "jobs", count_wake_up, &jobs, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(writer, QR_DURABLE, notify, other, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(writer, QR_DURABLE, notify, name, &err));
    wait_for_wake_up(&jobs);
    QR_CHECK_INT(1, jobs.count);
    qr_db_close(writer);
    qr_db_close(listener);
}

static void count_any(void *arg, const char *channel QR_UNUSED)
{
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
}

QR_TEST(listeners_may_be_added_while_wake_ups_arrive)
{
    static const char *const CHANNELS[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct qr_db *listener = open_schema("adding"), *writer = open_schema("adding");
    struct wake_ups jobs = {0};
    sem_init(&jobs.woken, 0, 0);
    int others = 0;
    qr_err err;
    char name[] = "jobs";
    QR_CHECK_RC(QR_OK, qr_db_listen(listener, "jobs", count_wake_up, &jobs, &err));
    for (size_t i = 0; i < QR_COUNT(CHANNELS); i++) {
        QR_CHECK_RC(QR_OK, qr_db_write(writer, QR_RELAXED, notify, name, &err));
        QR_CHECK_RC(QR_OK, qr_db_listen(listener, CHANNELS[i], count_any, &others, &err));
    }
    wait_for_wake_up(&jobs);
    QR_CHECK_INT(0, __atomic_load_n(&others, __ATOMIC_SEQ_CST));
    qr_db_close(writer);
    qr_db_close(listener);
}

QR_TEST(many_wake_ups_between_processes_become_few)
{
    enum { WRITES = 500 };
    struct qr_db *listener = open_schema("debounce"), *writer = open_schema("debounce");
    struct wake_ups jobs = {0};
    sem_init(&jobs.woken, 0, 0);
    qr_err err;
    char name[] = "jobs";
    QR_CHECK_RC(QR_OK, qr_db_listen(listener, "jobs", count_wake_up, &jobs, &err));
    const int64_t began_us = qr_thread_mono_us();
    for (int i = 0; i < WRITES; i++) {
        QR_CHECK_RC(QR_OK, qr_db_write(writer, QR_RELAXED, notify, name, &err));
    }
    const int64_t took_us = qr_thread_mono_us() - began_us;
    wait_for_wake_up(&jobs);
    qr_db_close(writer);
    qr_db_close(listener);
    QR_CHECK(jobs.count <= took_us / 10000 + 2); /* at most one in 10 ms */
}

QR_TEST(a_writers_own_listeners_are_woken_once)
{
    struct qr_db *db = open_schema("own");
    struct wake_ups jobs = {0};
    sem_init(&jobs.woken, 0, 0);
    qr_err err;
    char name[] = "jobs";
    QR_CHECK_RC(QR_OK, qr_db_listen(db, "jobs", count_wake_up, &jobs, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, notify, name, &err));
    QR_CHECK_INT(1, jobs.count); /* at the answer, not some time later */
    struct qr_db *other = open_schema("own");
    QR_CHECK_RC(QR_OK, qr_db_write(other, QR_DURABLE, notify, name, &err));
    wait_for_wake_up(&jobs);
    wait_for_wake_up(&jobs);
    QR_CHECK_INT(2, __atomic_load_n(&jobs.count, __ATOMIC_SEQ_CST));
    qr_db_close(other);
    qr_db_close(db);
}

/* ---- memory ---- */

static void ignore_wake_up(void *arg QR_UNUSED, const char *channel QR_UNUSED)
{
}

static qr_rc raise_and_notify(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(raise(tx, 1, err));
    return qr_tx_notify(tx, "jobs", err);
}

static void use_under_faults(void *arg)
{
    const struct qr_db_options *options = arg;
    const long long before = qr_pg_ask(qr_db_test_server(), "memory", "SELECT value FROM number WHERE id = 1");
    int64_t written = 0;
    struct qr_db *db;
    qr_err err = {0};
    qr_rc rc = qr_db_open(&db, options, &err);
    if (rc == QR_OK) {
        rc = qr_db_listen(db, "jobs", ignore_wake_up, NULL, &err);
        for (int i = 0; i < 2 && rc == QR_OK; i++) {
            rc = qr_db_write(db, QR_RELAXED, raise_and_notify, NULL, &err);
            written += rc == QR_OK;
        }
        rc = rc == QR_OK ? qr_db_read(db, change_nothing, NULL, &err) : rc;
        rc = rc == QR_OK ? qr_db_verify(db, &err) : rc;
        qr_db_close(db);
    }
    QR_CHECK(rc == QR_OK || (rc == QR_NOMEM && qr_fault_fired()));
    qr_fault_disarm();
    QR_CHECK_INT(before + written, qr_pg_ask(qr_db_test_server(), "memory", "SELECT value FROM number WHERE id = 1"));
}

QR_TEST(every_allocation_may_fail) /* DB-2 */
{
    qr_fault_memory_install();
    const struct qr_db_options options = options_for("memory");
    qr_db_close(open_schema("memory"));
    struct qr_db_options one_connection = options;
    one_connection.readers_max = 1;
    qr_fault_sweep(QR_FAULT_MEMORY, use_under_faults, &one_connection);
}
