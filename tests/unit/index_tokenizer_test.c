/* The tokenizer in FTS5: its words, phrases, other forms, its errors; and words of another version (X4). */
#include "index/index.h"

#include "db/sqlite.h"
#include "index/tokenizer.h"
#include "index/words.h"
#include "support/index_fixture.h"

static const char SCHEMA[] = "CREATE VIRTUAL TABLE f USING fts5(x, tokenize='quire')";

static void run(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        QR_FAIL("%s: %s", sql, message);
    }
}

static int64_t count(sqlite3 *db, const char *match)
{
    sqlite3_stmt *stmt;
    QR_CHECK_INT(SQLITE_OK, sqlite3_prepare_v2(db, "SELECT count(*) FROM f WHERE f MATCH ?1", -1, &stmt, NULL));
    sqlite3_bind_text(stmt, 1, match, -1, SQLITE_STATIC);
    QR_CHECK_INT(SQLITE_ROW, sqlite3_step(stmt));
    const int64_t found = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return found;
}

static void check_phrase(sqlite3 *db, int64_t expected, const char *typed)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf match = {0};
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = NULL;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_tokenizer_create(&tokenizer, &err));
    const struct qr_words_options options = {
        .dialect = QR_WORDS_FTS5, .languages = QR_BIT(QR_LANGUAGE_GERMAN), .tokenizer = tokenizer};
    QR_CHECK_RC(QR_OK, qr_words_phrase(&match, qr_str_of(typed), &options, &err));
    QR_CHECK_INT(expected, count(db, match.data));
}

QR_TEST(fts5_sees_the_words_of_the_language_that_a_text_begins_with)
{
    sqlite3 *db;
    QR_CHECK_INT(SQLITE_OK, sqlite3_open(":memory:", &db));
    QR_CHECK_INT(SQLITE_OK, qr_sqlite_register_tokenizer(db, &qr_index_tokenizer));
    run(db, SCHEMA);
    run(db, "INSERT INTO f VALUES (char(2) || 'de' || char(2) || 'Die alten Häuser der getHTTPResponse2')");
    run(db, "INSERT INTO f VALUES ('old houses'), (char(2) || 'xx'), (''), (NULL), ('北京大学')");
    QR_CHECK_INT(1, count(db, "\"hausD\""));
    QR_CHECK_INT(1, count(db, "\"nothing|hausD\""));
    QR_CHECK_INT(1, count(db, "\"hous\""));
    QR_CHECK_INT(2, count(db, "\"hous\" OR \"hausD\""));
    check_phrase(db, 1, "alte Haus");
    check_phrase(db, 0, "Haus alte");
    check_phrase(db, 1, "der getHTTPResponse2");
    check_phrase(db, 1, "HTTP response");
    check_phrase(db, 1, "old house");
    check_phrase(db, 1, "京大学");
    check_phrase(db, 0, "北大学");
    run(db, "INSERT INTO f (f) VALUES ('integrity-check')");
    run(db, "DELETE FROM f");
    run(db, "INSERT INTO f (f) VALUES ('integrity-check')");
    QR_CHECK_INT(0, count(db, "\"hausD\""));
    sqlite3_close(db);
}

static qr_rc create_none(void **ret_self QR_UNUSED, qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "none");
}

static qr_rc create_any(void **ret_self, qr_err *err QR_UNUSED)
{
    *ret_self = NULL;
    return QR_OK;
}

static void free_any(void *self QR_UNUSED)
{
}

static qr_rc run_out(void *self QR_UNUSED, qr_str text QR_UNUSED, bool is_query QR_UNUSED,
                     qr_rc (*fn)(void *arg, qr_str word, size_t start, size_t end, bool is_same_place) QR_UNUSED,
                     void *arg QR_UNUSED, qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "none");
}

QR_TEST(a_tokenizer_without_memory_fails_the_statement_and_nothing_else)
{
    static const struct qr_db_tokenizer NONE = {create_none, free_any, run_out}, POOR = {create_any, free_any, run_out};
    sqlite3 *db;
    QR_CHECK_INT(SQLITE_OK, sqlite3_open(":memory:", &db));
    QR_CHECK_INT(SQLITE_OK, qr_sqlite_register_tokenizer(db, &NONE));
    QR_CHECK_INT(SQLITE_NOMEM, sqlite3_exec(db, SCHEMA, NULL, NULL, NULL));
    QR_CHECK_INT(SQLITE_OK, qr_sqlite_register_tokenizer(db, &POOR));
    run(db, SCHEMA);
    QR_CHECK_INT(SQLITE_NOMEM, sqlite3_exec(db, "INSERT INTO f VALUES ('a')", NULL, NULL, NULL));
    QR_CHECK_INT(SQLITE_OK, sqlite3_close(db));
}

QR_TEST(a_store_whose_words_another_tokenizer_made_is_not_the_bases_own) /* X4 */
{
    struct index_fixture f = {0};
    snprintf(f.dir, sizeof f.dir, "%s/index", t->dir);
    f.options.dir = f.dir;
    index_fixture_reopen(&f);
    qr_err err;
    char stamp[QR_INDEX_STAMP_SIZE], id[QR_UUID_TEXT_SIZE], path[300];
    QR_CHECK_RC(QR_OK, qr_index_set_stamp(f.set, test_id(1), "stamp", &err));
    QR_CHECK_RC(QR_OK, qr_index_stamp(f.set, test_id(1), stamp, &err));
    QR_CHECK_TEXT("stamp", stamp);
    index_fixture_close(&f);
    qr_uuid_format(test_id(1), id);
    snprintf(path, sizeof path, "%s/%s.db", f.dir, id);
    sqlite3 *db;
    QR_CHECK_INT(SQLITE_OK, sqlite3_open(path, &db));
    run(db, "UPDATE store SET tokenizer = tokenizer - 1");
    sqlite3_close(db);
    index_fixture_reopen(&f);
    QR_CHECK_RC(QR_OK, qr_index_stamp(f.set, test_id(1), stamp, &err));
    QR_CHECK_TEXT("", stamp);
    index_fixture_close(&f);
}
