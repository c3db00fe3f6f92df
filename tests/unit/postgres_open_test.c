/* Opening a PostgreSQL database and looking through one: what is refused, with which words, and what is never shown. */
#include "base/thread.h"
#include "support/db_fixture.h"

__attribute__((constructor)) static void use_server(void)
{
    qr_db_test_use_server();
}

static const struct qr_migration MIGRATIONS[] = {
    {"numbers", "CREATE TABLE number (id INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT;"},
};

static struct qr_db *open_at(const char *url)
{
    const struct qr_db_options options = {
        .url = url, .migrations = MIGRATIONS, .migration_count = QR_COUNT(MIGRATIONS)};
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    return db;
}

/* ---- opening ---- */

/* Refused at once, although the deadline is far. */
static void check_refused(const char *url, qr_code code, const char *part)
{
    const struct qr_db_options options = {.url = url, .read_deadline_ms = 60000, .write_deadline_ms = 60000};
    struct qr_db *db;
    qr_err err;
    const int64_t began_us = qr_thread_mono_us();
    QR_CHECK_CODE(code, qr_db_open(&db, &options, &err));
    QR_CHECK(qr_thread_mono_us() - began_us < 10000000);
    QR_CHECK_HAS(part, err.msg);
    QR_CHECK(!strstr(err.msg, "s3cret"));
}

QR_TEST(a_server_that_is_not_there_is_unavailable_in_bounded_time) /* DB-10 */
{
    char url[256];
    snprintf(url, sizeof url, "postgresql://quire:s3cret@/postgres?host=%s", t->dir);
    const struct qr_db_options options = {.url = url, .read_deadline_ms = 400};
    struct qr_db *db;
    qr_err err;
    const int64_t began_us = qr_thread_mono_us();
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_db_open(&db, &options, &err));
    QR_CHECK(qr_thread_mono_us() - began_us < 5000000);
    QR_CHECK_HAS(t->dir, err.msg);
    QR_CHECK_HAS("No such file or directory", err.msg);
    QR_CHECK(!strstr(err.msg, "s3cret"));
}

QR_TEST(a_database_user_or_schema_that_does_not_exist_is_named)
{
    const char *host = qr_db_test_server()->dir;
    char url[256];
    snprintf(url, sizeof url, "postgresql://quire:s3cret@/nowhere?host=%s&sslmode=disable", host);
    check_refused(url, QR_CODE_UNAVAILABLE, "database \"nowhere\" does not exist");
    snprintf(url, sizeof url, "postgresql://nobody:s3cret@/postgres?host=%s&sslmode=disable", host);
    check_refused(url, QR_CODE_UNAVAILABLE, "role \"nobody\" does not exist");
    snprintf(url, sizeof url, "postgresql://quire:s3cret@/postgres?host=%s&options=-csearch_path%%3Dnone", host);
    check_refused(url, QR_CODE_UNAVAILABLE, "no schema has been selected");
}

QR_TEST(a_url_with_a_badly_written_password_does_not_show_it) /* I10 */
{
    check_refused("postgresql://quire:s3cret/x@localhost/quire", QR_CODE_INVALID_VALUE, "%2F");
    check_refused("postgresql://quire:1/s3cret@localhost/quire", QR_CODE_INVALID_VALUE, "database name");
    check_refused("postgresql://quire:x@s3cret@localhost/quire", QR_CODE_INVALID_VALUE, "%40");
    check_refused("postgresql://quire:s3cret%@localhost/quire", QR_CODE_INVALID_VALUE, "not valid");
    check_refused("postgresql://quire:s3cret@[localhost/quire", QR_CODE_INVALID_VALUE, "not valid");
    check_refused("postgresql://localhost/quire?passwort=s3cret", QR_CODE_INVALID_VALUE, "not valid");
}

/* Asks for a password from one user, from then on. */
static void require_password(struct qr_pg *pg)
{
    char path[128];
    snprintf(path, sizeof path, "%s/data/pg_hba.conf", pg->dir);
    FILE *rules = fopen(path, "w");
    QR_CHECK(rules);
    fputs("local all careful scram-sha-256\nlocal all all trust\n", rules);
    fclose(rules);
    qr_pg_stop(pg);
    qr_pg_resume(pg);
}

QR_TEST(a_wrong_password_is_refused_without_being_shown) /* I10 */
{
    if (!qr_pg_installed()) {
        qr_test_skip("PostgreSQL is not installed");
    }
    struct qr_pg pg = {0};
    qr_pg_start(&pg, t->dir);
    qr_pg_ask(&pg, NULL, "CREATE ROLE careful LOGIN PASSWORD 'right'; CREATE SCHEMA AUTHORIZATION careful");
    require_password(&pg);
    char url[256];
    snprintf(url, sizeof url, "postgresql://careful:s3cret@/postgres?host=%s&sslmode=disable", pg.dir);
    check_refused(url, QR_CODE_UNAVAILABLE, "password authentication failed for user \"careful\"");
    snprintf(url, sizeof url, "postgresql://careful@/postgres?host=%s&sslmode=disable&passfile=/nonexistent", pg.dir);
    check_refused(url, QR_CODE_UNAVAILABLE, "check user and password");
    snprintf(url, sizeof url, "postgresql://careful:right@/postgres?host=%s&sslmode=disable", pg.dir);
    qr_db_close(open_at(url));
    qr_pg_remove(&pg);
}

QR_TEST(a_database_that_takes_no_writes_is_refused) /* DB-11 */
{
    struct qr_pg *pg = qr_db_test_server();
    qr_db_close(open_at(qr_pg_url(pg, "reading")));
    qr_pg_ask(pg, "reading",
              "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA reading TO reader; "
              "GRANT SELECT ON ALL TABLES IN SCHEMA reading TO reader; CREATE SCHEMA closed; "
              "GRANT USAGE ON SCHEMA closed TO reader");
    char url[256];
    snprintf(url, sizeof url, "postgresql://reader@/postgres?host=%s&options=-csearch_path%%3Dreading", pg->dir);
    check_refused(url, QR_CODE_FORBIDDEN, "permission denied for table quire_commit");
    snprintf(url, sizeof url, "postgresql://reader@/postgres?host=%s&options=-csearch_path%%3Dclosed", pg->dir);
    check_refused(url, QR_CODE_FORBIDDEN, "permission denied for schema closed");
    snprintf(url, sizeof url,
             "postgresql://quire@/"
             "postgres?host=%s&options=-csearch_path%%3Dreading%%20-cdefault_transaction_read_only%%3Don",
             pg->dir);
    check_refused(url, QR_CODE_DATA_READONLY, "read-only transaction");
}

QR_TEST(a_database_of_another_encoding_is_refused)
{
    struct qr_pg *pg = qr_db_test_server();
    qr_pg_ask(pg, NULL, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    char url[256];
    snprintf(url, sizeof url, "postgresql://quire@/latin?host=%s", pg->dir);
    check_refused(url, QR_CODE_DATA_FOREIGN, "LATIN1");
}

/* ---- verify ---- */

QR_TEST(indexes_are_checked_where_amcheck_is_installed)
{
    struct qr_pg *pg = qr_db_test_server();
    if (qr_pg_ask(pg, NULL, "SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'") == 0) {
        qr_test_skip("PostgreSQL has no amcheck");
    }
    struct qr_db *db = open_at(qr_pg_url(pg, "amcheck"));
    qr_pg_ask(pg, NULL, "CREATE SCHEMA extensions; CREATE EXTENSION amcheck SCHEMA extensions");
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_verify(db, &err));
    /* an order that contradicts what is stored: to the index, damage */
    qr_pg_ask(pg, "amcheck",
              "INSERT INTO number SELECT n, n FROM generate_series(10, 500) n; "
              "CREATE FUNCTION backwards(a bigint, b bigint) RETURNS integer LANGUAGE sql IMMUTABLE AS "
              "'SELECT CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END'; "
              "CREATE OPERATOR CLASS odd FOR TYPE bigint USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, "
              "OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 backwards(bigint, bigint); "
              "CREATE INDEX odd ON number (value odd); "
              "CREATE OR REPLACE FUNCTION backwards(a bigint, b bigint) RETURNS integer LANGUAGE sql IMMUTABLE AS "
              "'SELECT CASE WHEN a > b THEN -1 WHEN a < b THEN 1 ELSE 0 END'");
    QR_CHECK_CODE(QR_CODE_DATA_CORRUPT, qr_db_verify(db, &err));
    QR_CHECK_HAS("odd", err.msg);
    qr_db_close(db);
}

/* Writes rubbish over the first page of a table. */
static void damage_table(struct qr_pg *pg)
{
    const long long node = qr_pg_ask(pg, "quire", "SELECT pg_relation_filenode('number')");
    const long long database = qr_pg_ask(pg, NULL, "SELECT oid FROM pg_database WHERE datname = 'postgres'");
    char path[192];
    snprintf(path, sizeof path, "%s/data/base/%lld/%lld", pg->dir, database, node);
    qr_pg_stop(pg);
    FILE *file = fopen(path, "r+");
    QR_CHECK(file);
    for (int i = 0; i < 64; i++) {
        fputc(0xff, file);
    }
    fclose(file);
    qr_pg_resume(pg);
}

QR_TEST(a_damaged_page_is_found)
{
    if (!qr_pg_installed()) {
        qr_test_skip("PostgreSQL is not installed");
    }
    struct qr_pg pg = {0};
    qr_pg_start(&pg, t->dir);
    struct qr_db *db = open_at(qr_pg_url(&pg, "quire"));
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_verify(db, &err));
    qr_pg_ask(&pg, "quire", "INSERT INTO number VALUES (1, 1)");
    damage_table(&pg);
    QR_CHECK_CODE(QR_CODE_DATA_CORRUPT, qr_db_verify(db, &err));
    qr_db_close(db);
    qr_pg_remove(&pg);
}
