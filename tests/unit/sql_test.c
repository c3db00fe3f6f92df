/* The translation of the project's SQL for PostgreSQL. */
#include "db/sql.h"
#include "support/test.h"

#define CHECK_SQL(expected, sql)                                                                                       \
    do {                                                                                                               \
        struct qr_buf out_;                                                                                            \
        qr_buf_init(&out_, 0);                                                                                         \
        qr_sql_for_postgres(&out_, (sql));                                                                             \
        QR_CHECK_STR((expected), qr_buf_str(&out_));                                                                   \
        qr_buf_done(&out_);                                                                                            \
    } while (0)

QR_TEST(numbered_parameters_become_dollars)
{
    CHECK_SQL("SELECT a FROM t WHERE b = $1 AND c > $12", "SELECT a FROM t WHERE b = ?1 AND c > ?12");
    CHECK_SQL("$1", "?1");
    CHECK_SQL("", "");
}

QR_TEST(a_question_mark_without_a_number_stays)
{
    CHECK_SQL("a ? b ?", "a ? b ?");
}

QR_TEST(casts_with_colons_stay)
{
    CHECK_SQL("SELECT $1::bigint", "SELECT ?1::bigint");
}

QR_TEST(strings_and_quoted_names_stay)
{
    CHECK_SQL("SELECT '?1 it''s ?2', \"a ?3 \"\"b\"\" ?4\", $5", "SELECT '?1 it''s ?2', \"a ?3 \"\"b\"\" ?4\", ?5");
    CHECK_SQL("CREATE TABLE t (a BIGINT DEFAULT 0, \"TEXT\" BYTEA CHECK (\"TEXT\" <> 'BLOB; -- /*pg '))",
              "CREATE TABLE t (a INTEGER DEFAULT 0, \"TEXT\" BLOB CHECK (\"TEXT\" <> 'BLOB; -- /*pg '))");
}

QR_TEST(comments_stay)
{
    CHECK_SQL("SELECT 1 -- what's ?1\n, $2", "SELECT 1 -- what's ?1\n, ?2");
    CHECK_SQL("SELECT /* isn't ?1 */ $2", "SELECT /* isn't ?1 */ ?2");
    CHECK_SQL("SELECT 1 -- ?1", "SELECT 1 -- ?1");
    CHECK_SQL("/*pgx ?1*/ $1", "/*pgx ?1*/ ?1");
}

QR_TEST(a_pg_comment_comes_alive)
{
    CHECK_SQL("SELECT a FROM t WHERE id = $1 FOR UPDATE ", "SELECT a FROM t WHERE id = ?1 /*pg FOR UPDATE */");
    CHECK_SQL("SELECT $1 AND b = $2 , '*/'", "SELECT ?1 /*pg AND b = ?2 */, '*/'");
}

QR_TEST(types_are_translated_in_definitions)
{
    CHECK_SQL("CREATE TABLE t (id BIGINT PRIMARY KEY, f DOUBLE PRECISION, b BYTEA, s TEXT COLLATE \"C\" NOT NULL) ",
              "CREATE TABLE t (id INTEGER PRIMARY KEY, f REAL, b BLOB, s TEXT NOT NULL) STRICT");
    CHECK_SQL("ALTER TABLE t ADD COLUMN n BIGINT", "ALTER TABLE t ADD COLUMN n INTEGER");
    CHECK_SQL("create table t (n BIGINT)", "create table t (n INTEGER)");
}

QR_TEST(a_column_may_be_called_like_a_type)
{
    CHECK_SQL("CREATE TABLE t (text TEXT COLLATE \"C\", blob BYTEA)", "CREATE TABLE t (text TEXT, blob BLOB)");
}

QR_TEST(type_words_elsewhere_stay)
{
    CHECK_SQL("SELECT CAST(x AS INTEGER), text FROM real", "SELECT CAST(x AS INTEGER), text FROM real");
    CHECK_SQL("INSERT INTO strict VALUES ($1)", "INSERT INTO strict VALUES (?1)");
}

QR_TEST(only_whole_words_are_translated)
{
    CHECK_SQL("CREATE TABLE t (text_id BIGINT, integers BIGINT, is_real BIGINT, b64blob BYTEA, REALM BYTEA)",
              "CREATE TABLE t (text_id INTEGER, integers INTEGER, is_real INTEGER, b64blob BLOB, REALM BLOB)");
}

QR_TEST(a_cast_to_text_takes_no_collation)
{
    CHECK_SQL("CREATE INDEX i ON t ((CAST(a AS TEXT)), (CAST(b AS BIGINT)))",
              "CREATE INDEX i ON t ((CAST(a AS TEXT)), (CAST(b AS INTEGER)))");
}

QR_TEST(each_statement_of_a_script_is_judged_for_itself)
{
    CHECK_SQL("CREATE TABLE t (a BIGINT);\n-- now rows\nINSERT INTO t SELECT CAST('1' AS INTEGER);\n"
              "/* more */ CREATE INDEX text ON t (a);ALTER TABLE t ADD b BYTEA",
              "CREATE TABLE t (a INTEGER);\n-- now rows\nINSERT INTO t SELECT CAST('1' AS INTEGER);\n"
              "/* more */ CREATE INDEX text ON t (a);ALTER TABLE t ADD b BLOB");
}

QR_TEST(an_unfinished_string_or_comment_ends_the_text)
{
    CHECK_SQL("SELECT 'a ?1", "SELECT 'a ?1");
    CHECK_SQL("SELECT '", "SELECT '");
    CHECK_SQL("SELECT /* a ?1", "SELECT /* a ?1");
    CHECK_SQL("SELECT $1 ", "SELECT ?1 /*pg ");
    CHECK_SQL("--", "--");
}
