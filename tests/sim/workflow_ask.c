/* Owns the oracle's connection and its statements. */
#include "sim/workflow_oracle.h"

#include <string.h>

enum { STATEMENTS_MAX = 48 };

static sqlite3 *handle;
static struct {
    const char *sql;
    sqlite3_stmt *stmt;
} statements[STATEMENTS_MAX];

sqlite3 *ask_open(const char *path)
{
    sqlite3 *db;
    QR_CHECK_INT(SQLITE_OK, sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "fault"));
    return db;
}

sqlite3_stmt *ask_statement(const char *sql)
{
    int i = 0;
    while (statements[i].sql && statements[i].sql != sql) {
        i++;
        QR_CHECK(i < STATEMENTS_MAX);
    }
    if (!statements[i].sql) {
        if (sqlite3_prepare_v2(handle, sql, -1, &statements[i].stmt, NULL) != SQLITE_OK) {
            QR_FAIL("%s: %s", sql, sqlite3_errmsg(handle));
        }
        statements[i].sql = sql;
    }
    sqlite3_reset(statements[i].stmt);
    return statements[i].stmt;
}

bool ask_next(sqlite3_stmt *stmt)
{
    const int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        QR_FAIL("the oracle cannot look: %s", sqlite3_errmsg(sqlite3_db_handle(stmt)));
    }
    if (rc == SQLITE_DONE) {
        sqlite3_reset(stmt);
    }
    return rc == SQLITE_ROW;
}

void ask_bind_id(sqlite3_stmt *stmt, int place, const qr_uuid *id)
{
    sqlite3_bind_blob(stmt, place, id->bytes, QR_UUID_BYTES, SQLITE_TRANSIENT);
}

qr_uuid ask_id_at(sqlite3_stmt *stmt, int column)
{
    qr_uuid id = {0};
    if (sqlite3_column_bytes(stmt, column) == QR_UUID_BYTES) {
        memcpy(id.bytes, sqlite3_column_blob(stmt, column), QR_UUID_BYTES);
    }
    return id;
}

int64_t ask_number(sqlite3_stmt *stmt)
{
    const int64_t number = ask_next(stmt) ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return number;
}

int64_t flow_oracle_i64(const char *sql)
{
    return ask_number(ask_statement(sql));
}

bool flow_oracle_pick_id(const char *sql, qr_uuid *ret_id)
{
    enum { IDS_MAX = 64 };
    qr_uuid ids[IDS_MAX];
    int count = 0;
    sqlite3_stmt *stmt = ask_statement(sql);
    while (ask_next(stmt)) {
        if (count < IDS_MAX) {
            ids[count++] = ask_id_at(stmt, 0);
        }
    }
    if (count > 0) {
        *ret_id = ids[sim_between(0, count - 1)];
    }
    return count > 0;
}

void ask_begin(void)
{
    handle = ask_open(world.path);
}

void ask_end(void)
{
    for (int i = 0; i < STATEMENTS_MAX && statements[i].sql; i++) {
        sqlite3_finalize(statements[i].stmt);
        statements[i].sql = NULL;
    }
    sqlite3_close(handle);
}

const char *ask_text_of(qr_uuid id)
{
    static char texts[4][QR_UUID_TEXT_SIZE];
    static int next;
    char *text = texts[next++ % 4];
    qr_uuid_format(id, text);
    return text;
}

void ask_begin_moment(void)
{
    sqlite3_exec(handle, "BEGIN", NULL, NULL, NULL);
}

void ask_end_moment(void)
{
    sqlite3_exec(handle, "COMMIT", NULL, NULL, NULL);
}
