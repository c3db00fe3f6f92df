/* Owns the server that a binary's tests share, and the choice of a test's database. */
#include "support/db_fixture.h"

#include <stdio.h>

static struct qr_pg server;
static const char ON_POSTGRES[] = "postgresql";

static void start_server(void)
{
    if (qr_pg_installed()) {
        qr_pg_start(&server, NULL);
    }
}

static void remove_server(void)
{
    qr_pg_remove(&server);
}

void qr_db_test_use_server(void)
{
    qr_test_around_all(start_server, remove_server);
}

void qr_db_test_register(struct qr_test *on_sqlite, struct qr_test *on_postgres)
{
    on_postgres->param = ON_POSTGRES;
    qr_test_register(on_sqlite);
    qr_test_register(on_postgres);
    qr_db_test_use_server();
}

struct qr_pg *qr_db_test_server(void)
{
    if (!server.dir[0]) {
        qr_test_skip("PostgreSQL is not installed");
    }
    return &server;
}

bool qr_test_on_postgres(const struct qr_test *t)
{
    return t->param == ON_POSTGRES;
}

/* A schema of the test's own: named after its folder, which is unique and known to its child processes. */
static const char *server_url(struct qr_test *t)
{
    char schema[sizeof t->dir * 2] = "t_";
    const char *unique = t->dir + strlen(t->dir) - strlen("XXXXXX");
    for (size_t i = 0; unique[i]; i++) {
        snprintf(schema + strlen(schema), 3, "%02x", (unsigned char)unique[i]);
    }
    return qr_pg_url(qr_db_test_server(), schema);
}

struct qr_db_options qr_test_db_options(struct qr_test *t, const struct qr_migration *migrations, size_t count)
{
    static char sqlite_url[sizeof t->dir + sizeof "sqlite:/quire.db"];
    struct qr_db_options options = {.migrations = migrations, .migration_count = count};
    if (qr_test_on_postgres(t)) {
        options.url = server_url(t);
    } else {
        snprintf(sqlite_url, sizeof sqlite_url, "sqlite:%s/quire.db", t->dir);
        options.url = sqlite_url;
    }
    return options;
}

struct qr_db *qr_test_db_open(struct qr_test *t, const struct qr_migration *migrations, size_t count)
{
    const struct qr_db_options options = qr_test_db_options(t, migrations, count);
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    return db;
}
