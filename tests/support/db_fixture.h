/* Tests over every database: QR_DB_TEST(name) registers `sqlite_name` and `postgres_name`, each over an empty database
 * of its own: a file in the test's folder, or a schema on a server that the binary starts once.
 *
 *     QR_DB_TEST(a_failed_function_changes_nothing)
 *     {
 *         struct qr_db *db = qr_test_db_open(t, MIGRATIONS, QR_COUNT(MIGRATIONS));
 *         …
 *         qr_db_close(db);
 *     }
 *
 * Where PostgreSQL is not installed the postgres_ tests are skipped. A binary with such tests leaves
 * qr_test_around_all to this file. */
#pragma once

#include "db/db.h"
#include "support/postgres.h"
#include "support/test.h"

#define QR_DB_TEST(test_name) QR_DB_TEST_WITH_TIMEOUT(test_name, 0)
#define QR_DB_TEST_WITH_TIMEOUT(test_name, seconds)                                                                    \
    static void test_name(struct qr_test *t);                                                                          \
    __attribute__((constructor)) static void register_##test_name(void)                                                \
    {                                                                                                                  \
        static struct qr_test on_sqlite = {.name = "sqlite_" #test_name, .fn = test_name, .timeout_s = (seconds)};     \
        static struct qr_test on_postgres = {.name = "postgres_" #test_name, .fn = test_name, .timeout_s = (seconds)}; \
        qr_db_test_register(&on_sqlite, &on_postgres);                                                                 \
    }                                                                                                                  \
    static void test_name(struct qr_test *t QR_UNUSED)

void qr_db_test_register(struct qr_test *on_sqlite, struct qr_test *on_postgres);

/* For a binary with PostgreSQL tests of its own: the shared server is started here too. */
void qr_db_test_use_server(void);
/* The shared server; ends the test as skipped where PostgreSQL is not installed. */
struct qr_pg *qr_db_test_server(void);

/* Whether the running test (of QR_DB_TEST) is the one on PostgreSQL. */
bool qr_test_on_postgres(const struct qr_test *t);

/* The options of the test's own database, everything else at its default: change what the test is about and call
 * qr_db_open. Each call names the same database, in child processes too, so it can be opened again. */
struct qr_db_options qr_test_db_options(struct qr_test *t, const struct qr_migration *migrations, size_t count);

/* Opens it; a failure ends the test. */
struct qr_db *qr_test_db_open(struct qr_test *t, const struct qr_migration *migrations, size_t count);
