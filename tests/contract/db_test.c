/* What db.h promises, over every driver. */
#include "db/db.h"

#include "base/thread.h"
#include "support/db_fixture.h"

#include <pthread.h>

static const struct qr_migration MIGRATIONS[] = {
    {"thing", "CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT UNIQUE, score REAL, bytes BLOB, n INTEGER) STRICT;"
              "CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT;"
              "INSERT INTO counter (id, n) VALUES (1, 0)"},
};

static struct qr_db *open_db(struct qr_test *t)
{
    return qr_test_db_open(t, MIGRATIONS, QR_COUNT(MIGRATIONS));
}

struct thing {
    int64_t id;
    const char *name;
};

static qr_rc insert_thing(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct thing *thing = arg;
    return qr_tx_exec(tx, "INSERT INTO thing (id, name) VALUES (?1, ?2)",
                      QR_VALS(qr_val_i64(thing->id), qr_val_text(qr_str_of(thing->name))), NULL, err);
}

static qr_rc count_things(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_get_i64(tx, "SELECT count(*) FROM thing", QR_NO_VALS, NULL, arg, err);
}

static int64_t thing_count(struct qr_db *db)
{
    qr_err err = {0};
    int64_t count = -1;
    QR_CHECK_RC(QR_OK, qr_db_read(db, count_things, &count, &err));
    return count;
}

QR_DB_TEST(an_acknowledged_write_is_read_by_the_next_read)
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    for (int64_t id = 1; id <= 20; id++) {
        char name[24];
        snprintf(name, sizeof name, "n%lld", (long long)id);
        QR_CHECK_RC(QR_OK,
                    qr_db_write(db, id % 2 ? QR_DURABLE : QR_RELAXED, insert_thing, &(struct thing){id, name}, &err));
        QR_CHECK_INT(id, thing_count(db));
    }
    qr_db_close(db);
    db = open_db(t);
    QR_CHECK_INT(20, thing_count(db));
    qr_db_close(db);
}

static qr_rc insert_then_refuse(struct qr_tx *tx, void *arg, qr_err *err)
{
    QR_TRY(insert_thing(tx, arg, err));
    return qr_fail(err, QR_CODE_VERSION_CONFLICT, "refused");
}

QR_DB_TEST(a_function_that_fails_changes_nothing_and_its_error_is_the_answer) /* DB-2 DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_CODE(QR_CODE_VERSION_CONFLICT,
                  qr_db_write(db, QR_DURABLE, insert_then_refuse, &(struct thing){1, "a"}, &err));
    QR_CHECK_TEXT("refused", err.msg);
    QR_CHECK_INT(0, thing_count(db));
    qr_db_close(db);
}

static qr_rc insert_twice(struct qr_tx *tx, void *arg, qr_err *err)
{
    QR_TRY(insert_thing(tx, arg, err));
    return insert_thing(tx, arg, err);
}

QR_DB_TEST(a_broken_uniqueness_is_already_exists_and_changes_nothing) /* DB-2 DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, qr_db_write(db, QR_DURABLE, insert_twice, &(struct thing){1, "a"}, &err));
    QR_CHECK_INT(0, thing_count(db));
    qr_db_close(db);
}

/* ---- values ---- */

static const int64_t INTEGERS[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 53};
static const double REALS[] = {0.0, -1.5, 1e300, 5e-324};
static const char *const TEXTS[] = {"", "plain", "Grüße 世界 🙂", "quote ' \" \\ ? $1 -- /* */"};

static qr_rc roundtrip_values(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    static const unsigned char bytes[] = {0, 1, 255, 0, '\'', '\\'};
    for (size_t i = 0; i < 6; i++) {
        QR_TRY(qr_tx_exec(tx, "INSERT INTO thing (id, name, score, bytes, n) VALUES (?1, ?2, ?3, ?4, ?5)",
                          QR_VALS(qr_val_i64((int64_t)i), i < 4 ? qr_val_text(qr_str_of(TEXTS[i])) : qr_val_null(),
                                  i < 4 ? qr_val_f64(REALS[i]) : qr_val_null(), qr_val_blob(bytes, i),
                                  qr_val_i64(INTEGERS[i])),
                          NULL, err));
    }
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT id, name, score, bytes, n FROM thing ORDER BY id", QR_NO_VALS, err));
    size_t i = 0;
    for (; qr_rows_next(&rows); i++) {
        QR_CHECK_INT(i, qr_rows_i64(&rows, 0));
        QR_CHECK_INT(i >= 4, qr_rows_is_null(&rows, 1));
        QR_CHECK_STR(i < 4 ? TEXTS[i] : "", qr_rows_str(&rows, 1));
        QR_CHECK_INT(i >= 4, qr_rows_is_null(&rows, 2));
        QR_CHECK(qr_rows_f64(&rows, 2) == (i < 4 ? REALS[i] : 0.0));
        QR_CHECK(!qr_rows_is_null(&rows, 3)); /* empty bytes are not NULL */
        QR_CHECK(qr_str_equal(qr_rows_str(&rows, 3), (qr_str){(const char *)bytes, i}));
        QR_CHECK(qr_rows_i64(&rows, 4) == INTEGERS[i]);
    }
    QR_CHECK_INT(6, i);
    return qr_rows_end(&rows, err);
}

QR_DB_TEST(every_value_comes_back_as_it_was) /* DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, roundtrip_values, NULL, &err));
    qr_db_close(db);
}

static qr_rc insert_text(struct qr_tx *tx, void *arg, qr_err *err)
{
    const qr_str *text = arg;
    return qr_tx_exec(tx, "INSERT INTO thing (id, name) VALUES (1, ?1)", QR_VALS(qr_val_text(*text)), NULL, err);
}

QR_DB_TEST(text_with_nul_or_invalid_utf8_is_refused) /* DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    qr_str bad[] = {{"a\0b", 3}, {"\xff", 1}, {"\xc0\x80", 2}, {"\xed\xa0\x80", 3}};
    for (size_t i = 0; i < QR_COUNT(bad); i++) {
        QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_db_write(db, QR_DURABLE, insert_text, &bad[i], &err));
    }
    QR_CHECK_INT(0, thing_count(db));
    qr_db_close(db);
}

static qr_rc write_large(struct qr_tx *tx, void *arg, qr_err *err)
{
    const qr_str *bytes = arg;
    QR_TRY(qr_tx_exec(tx, "INSERT INTO thing (id, bytes) VALUES (1, ?1)", QR_VALS(qr_val_blob(bytes->ptr, bytes->len)),
                      NULL, err));
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT bytes FROM thing", QR_NO_VALS, err));
    QR_CHECK(qr_rows_next(&rows));
    QR_CHECK(qr_str_equal(*bytes, qr_rows_str(&rows, 0)));
    return qr_rows_end(&rows, err);
}

QR_DB_TEST(a_large_value_fits)
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    enum { SIZE = 3 << 20 };
    char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (char)(i * 31);
    }
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, write_large, &(qr_str){bytes, SIZE}, &err));
    free(bytes);
    qr_db_close(db);
}

/* ---- one SQL for both ---- */

static int64_t number(struct qr_tx *tx, const char *sql)
{
    qr_err err = {0};
    int64_t value = -99;
    QR_CHECK_RC(QR_OK, qr_tx_get_i64(tx, sql, QR_NO_VALS, NULL, &value, &err));
    return value;
}

static qr_rc compare_dialects(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO thing (id, name, n) VALUES (1, 'b', 10), (2, 'B', 20), (3, 'a', 30), (4, 'ä', 40)",
                      QR_NO_VALS, NULL, err));
    /* bytes decide the order: B a b ä */
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT name FROM thing ORDER BY name", QR_NO_VALS, err));
    static const char *const order[] = {"B", "a", "b", "ä"};
    size_t count = 0;
    for (; qr_rows_next(&rows); count++) {
        QR_CHECK_STR(order[count], qr_rows_str(&rows, 0));
    }
    QR_CHECK_INT(QR_COUNT(order), count);
    QR_TRY(qr_rows_end(&rows, err));
    QR_CHECK_INT(1, number(tx, "SELECT count(*) FROM thing WHERE name LIKE 'b%'"));
    QR_CHECK_INT(100, number(tx, "SELECT CAST(sum(n) AS BIGINT) FROM thing"));
    QR_CHECK_INT(1, number(tx, "SELECT n > 5 FROM thing WHERE id = 1"));
    QR_CHECK_INT(0, number(tx, "SELECT n > 50 FROM thing WHERE id = 1"));
    QR_CHECK_INT(3, number(tx, "SELECT 7 / 2"));
    QR_CHECK_INT(20, number(tx, "SELECT n FROM thing WHERE id = 2 /*pg FOR UPDATE */"));
    QR_CHECK_INT(4, number(tx, "WITH picked AS MATERIALIZED (SELECT id FROM thing ORDER BY id LIMIT 4 /*pg FOR UPDATE "
                               "SKIP LOCKED */) SELECT count(*) FROM picked"));
    return QR_OK;
}

QR_DB_TEST(the_same_text_means_the_same) /* DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, compare_dialects, NULL, &err));
    qr_db_close(db);
}

static qr_rc count_changes(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t changes = -1;
    QR_TRY(
        qr_tx_exec(tx, "INSERT INTO thing (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')", QR_NO_VALS, &changes, err));
    QR_CHECK_INT(3, changes);
    QR_TRY(qr_tx_exec(tx, "UPDATE thing SET n = 1 WHERE id > ?1", QR_VALS(qr_val_i64(1)), &changes, err));
    QR_CHECK_INT(2, changes);
    QR_TRY(qr_tx_exec(tx, "UPDATE thing SET n = 1 WHERE id > ?1", QR_VALS(qr_val_i64(9)), &changes, err));
    QR_CHECK_INT(0, changes);
    QR_TRY(qr_tx_exec(tx, "INSERT INTO thing (id, name) VALUES (1, 'z') ON CONFLICT DO NOTHING", QR_NO_VALS, &changes,
                      err));
    QR_CHECK_INT(0, changes);
    bool found = true;
    int64_t value = 7;
    QR_TRY(qr_tx_get_i64(tx, "SELECT n FROM thing WHERE id = 99", QR_NO_VALS, &found, &value, err));
    QR_CHECK(!found && value == 7);
    QR_TRY(qr_tx_get_i64(tx, "UPDATE thing SET n = n + 5 WHERE id = 3 RETURNING n", QR_NO_VALS, &found, &value, err));
    QR_CHECK(found && value == 6);
    /* a query that is not read to its end has still run as a whole */
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "UPDATE thing SET n = 9 RETURNING id", QR_NO_VALS, err));
    QR_CHECK(qr_rows_next(&rows));
    QR_TRY(qr_rows_end(&rows, err));
    QR_CHECK_INT(3, number(tx, "SELECT count(*) FROM thing WHERE n = 9"));
    return QR_OK;
}

QR_DB_TEST(changes_are_counted_and_returned)
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, count_changes, NULL, &err));
    qr_db_close(db);
}

static qr_rc use_rows_twice(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    static const char sql[] = "SELECT id FROM thing WHERE id > ?1 ORDER BY id";
    QR_TRY(qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (1), (2), (3)", QR_NO_VALS, NULL, err));
    int64_t pairs = 0;
    QR_ROWS(outer);
    QR_TRY(qr_tx_query(tx, &outer, sql, QR_VALS(qr_val_i64(0)), err));
    while (qr_rows_next(&outer)) {
        QR_ROWS(inner); /* the same statement while it is in use */
        QR_TRY(qr_tx_query(tx, &inner, sql, QR_VALS(qr_val_i64(qr_rows_i64(&outer, 0))), err));
        while (qr_rows_next(&inner)) {
            pairs++;
        }
        QR_TRY(qr_rows_end(&inner, err));
    }
    QR_CHECK_INT(3, pairs);
    return qr_rows_end(&outer, err);
}

QR_DB_TEST(two_results_of_one_statement_do_not_disturb_each_other)
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, use_rows_twice, NULL, &err));
    qr_db_close(db);
}

/* ---- errors inside a function ---- */

static qr_rc swallow_an_error(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (1)", QR_NO_VALS, NULL, err));
    if (qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (1)", QR_NO_VALS, NULL, NULL) != QR_CONFLICT) {
        QR_FAIL("the second row with one id was accepted");
    }
    return QR_OK;
}

QR_DB_TEST(a_swallowed_error_is_never_committed) /* DB-2 DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, qr_db_write(db, QR_DURABLE, swallow_an_error, NULL, &err));
    QR_CHECK_INT(0, thing_count(db));
    qr_db_close(db);
}

static qr_rc go_on_after_an_error(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    qr_err ignored = {0};
    if (qr_tx_exec(tx, "INSERT INTO no_such_table (id) VALUES (1)", QR_NO_VALS, NULL, &ignored) == QR_OK) {
        QR_FAIL("there is no such table");
    }
    const qr_rc rc = qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (1)", QR_NO_VALS, NULL, err);
    QR_CHECK(rc == ignored.rc); /* on SQLite it would have worked */
    return rc;
}

QR_DB_TEST(after_a_failed_statement_the_function_is_over) /* DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_CODE(QR_CODE_INTERNAL, qr_db_write(db, QR_DURABLE, go_on_after_an_error, NULL, &err));
    QR_CHECK_INT(0, thing_count(db));
    qr_db_close(db);
}

/* ---- nesting ---- */

static qr_rc nested_inner(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (30)", QR_NO_VALS, NULL, err));
    return qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (30)", QR_NO_VALS, NULL, err);
}

static qr_rc nested_middle(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (20)", QR_NO_VALS, NULL, err));
    qr_err inner = {0};
    if (qr_tx_nested(tx, nested_inner, NULL, &inner) != QR_CONFLICT || inner.code != QR_CODE_ALREADY_EXISTS) {
        QR_FAIL("the inner function's error is lost: %s", inner.msg);
    }
    return qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (21)", QR_NO_VALS, NULL, err);
}

static qr_rc nested_outer(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(qr_tx_exec(tx, "INSERT INTO thing (id) VALUES (10)", QR_NO_VALS, NULL, err));
    QR_TRY(qr_tx_nested(tx, nested_middle, NULL, err));
    if (qr_tx_nested(tx, insert_then_refuse, &(struct thing){11, "x"}, NULL) != QR_CONFLICT) {
        QR_FAIL("the refusal is lost");
    }
    QR_CHECK_INT(3, number(tx, "SELECT count(*) FROM thing"));
    return QR_OK;
}

QR_DB_TEST(a_nested_function_fails_alone) /* DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, nested_outer, NULL, &err));
    QR_CHECK_INT(3, thing_count(db)); /* 10 20 21 */
    qr_db_close(db);
}

/* ---- reads ---- */

struct snapshot_test {
    struct qr_db *db;
    int64_t before, after;
};

static void *insert_from_thread(void *arg)
{
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_write(arg, QR_DURABLE, insert_thing, &(struct thing){2, "later"}, &err));
    return NULL;
}

static qr_rc read_around_a_write(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct snapshot_test *s = arg;
    QR_TRY(count_things(tx, &s->before, err));
    pthread_t thread;
    pthread_create(&thread, NULL, insert_from_thread, s->db);
    pthread_join(thread, NULL);
    return count_things(tx, &s->after, err);
}

QR_DB_TEST(a_read_sees_one_snapshot) /* DB-5 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, insert_thing, &(struct thing){1, "a"}, &err));
    struct snapshot_test s = {.db = db};
    QR_CHECK_RC(QR_OK, qr_db_read(db, read_around_a_write, &s, &err));
    QR_CHECK_INT(1, s.before);
    QR_CHECK_INT(1, s.after);
    QR_CHECK_INT(2, thing_count(db));
    qr_db_close(db);
}

static qr_rc read_for_ever(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t value;
    return qr_tx_get_i64(tx,
                         "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n "
                         "WHERE x < 0",
                         QR_NO_VALS, NULL, &value, err);
}

QR_DB_TEST(a_read_past_its_deadline_is_interrupted) /* DB-6 */
{
    struct qr_db_options options = qr_test_db_options(t, MIGRATIONS, QR_COUNT(MIGRATIONS));
    options.read_deadline_ms = 1000; /* opening reads too, however busy the machine is */
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    QR_CHECK_CODE(QR_CODE_TIMEOUT, qr_db_read(db, read_for_ever, NULL, &err));
    struct qr_db_stats stats;
    qr_db_stats(db, &stats);
    QR_CHECK_INT(1, stats.read_timeouts);
    QR_CHECK_INT(0, thing_count(db)); /* and the next one is fine */
    qr_db_close(db);
}

QR_DB_TEST(a_read_cannot_write) /* DB-15 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_CODE(QR_CODE_DATA_READONLY, qr_db_read(db, insert_thing, &(struct thing){1, "a"}, &err));
    QR_CHECK_INT(0, thing_count(db));
    qr_db_close(db);
}

struct reader {
    struct qr_db *db;
    int64_t count;
};

static void *read_many(void *arg)
{
    struct reader *reader = arg;
    qr_err err = {0};
    for (int i = 0; i < 50; i++) {
        QR_CHECK_RC(QR_OK, qr_db_read(reader->db, count_things, &reader->count, &err));
    }
    return NULL;
}

QR_DB_TEST(more_readers_than_connections_take_turns)
{
    struct qr_db_options options = qr_test_db_options(t, MIGRATIONS, QR_COUNT(MIGRATIONS));
    options.readers_max = 2;
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    pthread_t threads[8];
    struct reader readers[8];
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        readers[i] = (struct reader){db, -1};
        pthread_create(&threads[i], NULL, read_many, &readers[i]);
    }
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        QR_CHECK_INT(0, readers[i].count);
    }
    qr_db_close(db);
}

/* ---- many writers ---- */

struct producer {
    struct qr_db *db;
    int64_t first_id;
    int64_t succeeded;
};

static qr_rc add_and_count(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct thing *thing = arg;
    QR_TRY(qr_tx_exec(tx, "UPDATE counter SET n = n + 1 WHERE id = 1", QR_NO_VALS, NULL, err));
    QR_TRY(insert_thing(tx, arg, err));
    return thing->id % 3 == 0 ? qr_fail(err, QR_CODE_VERSION_CONFLICT, "every third is refused") : QR_OK;
}

static void *produce(void *arg)
{
    struct producer *producer = arg;
    for (int64_t id = producer->first_id; id < producer->first_id + 60; id++) {
        char name[24];
        snprintf(name, sizeof name, "p%lld", (long long)id);
        qr_err err = {0};
        QR_CHECK_RC(id % 3 == 0 ? QR_CONFLICT : QR_OK, qr_db_write(producer->db, id % 2 ? QR_DURABLE : QR_RELAXED,
                                                                   add_and_count, &(struct thing){id, name}, &err));
        producer->succeeded += id % 3 != 0;
    }
    return NULL;
}

static qr_rc read_counter(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_get_i64(tx, "SELECT n FROM counter WHERE id = 1", QR_NO_VALS, NULL, arg, err);
}

QR_DB_TEST(functions_of_many_threads_neither_lose_nor_disturb_one_another) /* DB-3 DB-14 */
{
    struct qr_db *db = open_db(t);
    pthread_t threads[8];
    struct producer producers[8];
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        producers[i] = (struct producer){db, (int64_t)i * 1000 + 1, 0};
        pthread_create(&threads[i], NULL, produce, &producers[i]);
    }
    int64_t succeeded = 0;
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
        succeeded += producers[i].succeeded;
    }
    qr_err err = {0};
    int64_t counter = 0;
    QR_CHECK_RC(QR_OK, qr_db_read(db, read_counter, &counter, &err));
    QR_CHECK_INT(succeeded, counter);
    QR_CHECK_INT(succeeded, thing_count(db));
    struct qr_db_stats stats;
    qr_db_stats(db, &stats);
    QR_CHECK(stats.writes >= 480);
    qr_db_close(db);
}

/* ---- time and wake-ups ---- */

static qr_rc look_at_clock(struct qr_tx *tx, void *arg, qr_err *err)
{
    int64_t *times = arg;
    QR_TRY(qr_tx_now_ms(tx, &times[0], err));
    qr_test_clock_advance(5);
    return qr_tx_now_ms(tx, &times[1], err);
}

QR_DB_TEST(a_transaction_has_one_time_and_it_is_the_given_clocks)
{
    struct qr_db_options options = qr_test_db_options(t, MIGRATIONS, QR_COUNT(MIGRATIONS));
    options.clock = qr_test_clock(1700000000000);
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    int64_t times[2];
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, look_at_clock, times, &err));
    QR_CHECK_INT(1700000000000, times[0]);
    QR_CHECK_INT(times[0], times[1]);
    qr_test_clock_jump(-3600000);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, look_at_clock, times, &err));
    QR_CHECK_INT(1700000000005 - 3600000, times[0]);
    qr_db_close(db);
}

static void count_wake_up(void *arg, const char *channel)
{
    QR_CHECK_TEXT("jobs", channel);
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static qr_rc notify_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    QR_TRY(qr_tx_notify(tx, "jobs", err));
    QR_TRY(qr_tx_notify(tx, "jobs", err));
    return *(bool *)arg ? QR_OK : qr_fail(err, QR_CODE_VERSION_CONFLICT, "refused");
}

QR_DB_TEST(listeners_are_woken_after_the_commit_and_not_without_one)
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    int woken = 0;
    QR_CHECK_RC(QR_OK, qr_db_listen(db, "jobs", count_wake_up, &woken, &err));
    const int before = __atomic_load_n(&woken, __ATOMIC_SEQ_CST);
    bool succeed = false;
    QR_CHECK_RC(QR_CONFLICT, qr_db_write(db, QR_RELAXED, notify_jobs, &succeed, &err));
    if (!qr_test_on_postgres(t)) { /* there the connection of the listener may bring one without cause */
        QR_CHECK_INT(before, __atomic_load_n(&woken, __ATOMIC_SEQ_CST));
    }
    succeed = true;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, notify_jobs, &succeed, &err));
    QR_CHECK(__atomic_load_n(&woken, __ATOMIC_SEQ_CST) > before);
    qr_db_close(db);
}

/* ---- schema ---- */

static const struct qr_migration TWO_STEPS[] = {
    {"one", "CREATE TABLE one (id INTEGER PRIMARY KEY) STRICT"},
    {"two",
     "CREATE TABLE two (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT; CREATE INDEX two_name ON two (name)"},
};

static const struct qr_migration BROKEN_STEP[] = {
    {"one", "CREATE TABLE one (id INTEGER PRIMARY KEY) STRICT"},
    {"half", "CREATE TABLE half (id INTEGER PRIMARY KEY) STRICT; INSERT INTO no_such_table (id) VALUES (1)"},
};

QR_DB_TEST(migrations_run_once_each_and_in_order) /* DB-12 */
{
    qr_err err = {0};
    int64_t version = -1;
    struct qr_db *db = qr_test_db_open(t, TWO_STEPS, 1);
    QR_CHECK_RC(QR_OK, qr_db_schema_version(db, &version, &err));
    QR_CHECK_INT(1, version);
    qr_db_close(db);
    for (int again = 0; again < 2; again++) {
        db = qr_test_db_open(t, TWO_STEPS, 2);
        QR_CHECK_RC(QR_OK, qr_db_schema_version(db, &version, &err));
        QR_CHECK_INT(2, version);
        qr_db_close(db);
    }
}

static qr_rc look_for_half(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t count;
    return qr_tx_get_i64(tx, "SELECT count(*) FROM half", QR_NO_VALS, NULL, &count, err);
}

QR_DB_TEST(a_failing_migration_leaves_the_version_before_it) /* DB-12 */
{
    struct qr_db_options options = qr_test_db_options(t, BROKEN_STEP, 2);
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_CODE(QR_CODE_INTERNAL, qr_db_open(&db, &options, &err));
    QR_CHECK_HAS("migration 2 (half)", err.msg);
    db = qr_test_db_open(t, TWO_STEPS, 1);
    int64_t version = -1;
    QR_CHECK_RC(QR_OK, qr_db_schema_version(db, &version, &err));
    QR_CHECK_INT(1, version);
    QR_CHECK_RC(QR_BUG, qr_db_read(db, look_for_half, NULL, &err));
    qr_db_close(db);
}

QR_DB_TEST(a_newer_schema_is_refused) /* DB-11 */
{
    qr_db_close(qr_test_db_open(t, TWO_STEPS, 2));
    struct qr_db_options options = qr_test_db_options(t, TWO_STEPS, 1);
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_CODE(QR_CODE_SCHEMA_NEWER, qr_db_open(&db, &options, &err));
    QR_CHECK_HAS("version 2", err.msg);
    qr_db_close(qr_test_db_open(t, TWO_STEPS, 2)); /* it is as it was */
}

QR_DB_TEST(a_sound_database_is_found_sound)
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_verify(db, &err));
    qr_db_close(db);
}
