/* As one would write it who wants no more than this: a table with its own texts and the default words, one loop, one
 * transaction. Nobody splits, nobody asks what changed, nothing is kept for citations. */
#include "ingest/bare.h"

#include "support.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 3 };

static void check(sqlite3 *db, bool is_good)
{
    if (!is_good) {
        fprintf(stderr, "bench: bare insert: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    check(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
    return stmt;
}

static void run(sqlite3 *db, const char *sql)
{
    check(db, sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

/* The row's texts are in memory already: what is timed is FTS5. */
static int64_t insert_row(sqlite3 *db, sqlite3_stmt *insert, sqlite3_stmt *row)
{
    for (int i = 0; i < COLUMNS; i++) {
        sqlite3_bind_value(insert, i + 1, sqlite3_column_value(row, i));
    }
    const int64_t began_us = bench_now_us();
    sqlite3_step(insert);
    check(db, sqlite3_reset(insert) == SQLITE_OK);
    return bench_now_us() - began_us;
}

double bare_insert(const char *from, const char *path, int64_t *ret_count)
{
    sqlite3 *source, *db;
    check(NULL, sqlite3_open_v2(from, &source, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    sqlite3_stmt *row = prepare(source, "SELECT title, heading, text FROM chunk_row ORDER BY id");
    int64_t began_us = bench_now_us(), count = 0;
    check(NULL, sqlite3_open(path, &db) == SQLITE_OK);
    run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
            "CREATE VIRTUAL TABLE chunks USING fts5(title, heading, text); BEGIN");
    sqlite3_stmt *insert = prepare(db, "INSERT INTO chunks (title, heading, text) VALUES (?1, ?2, ?3)");
    int64_t took_us = bench_now_us() - began_us;
    while (sqlite3_step(row) == SQLITE_ROW) {
        took_us += insert_row(db, insert, row);
        count++;
    }
    sqlite3_finalize(insert);
    check(source, sqlite3_finalize(row) == SQLITE_OK);
    sqlite3_close(source);
    began_us = bench_now_us();
    run(db, "COMMIT");
    sqlite3_close(db);
    *ret_count = count;
    return (double)(took_us + bench_now_us() - began_us) / 1e6;
}
