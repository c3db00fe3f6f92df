#include "workflow/bare.h"

#include "support.h"

#include <fcntl.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_A_TRANSACTION = 1000, TEXT_BYTES_MAX = 64 << 10 };

/* nftw has no argument of its own. */
static struct {
    sqlite3 *db;
    sqlite3_stmt *insert;
    int count;
    char text[TEXT_BYTES_MAX];
} loop;

static void run(const char *sql)
{
    if (sqlite3_exec(loop.db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "bench: %s: %s\n", sql, sqlite3_errmsg(loop.db));
        exit(1);
    }
}

static int take_file(const char *path, const struct stat *st QR_UNUSED, int type, struct FTW *ftw)
{
    if (type != FTW_F) {
        return 0;
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t len = fd >= 0 ? read(fd, loop.text, sizeof loop.text) : -1;
    if (len < 0) {
        perror(path);
        exit(1);
    }
    close(fd);
    sqlite3_bind_text(loop.insert, 1, path + ftw->base, -1, SQLITE_STATIC);
    sqlite3_bind_text(loop.insert, 2, loop.text, (int)len, SQLITE_STATIC);
    sqlite3_step(loop.insert);
    if (sqlite3_reset(loop.insert) != SQLITE_OK) {
        fprintf(stderr, "bench: %s\n", sqlite3_errmsg(loop.db));
        exit(1);
    }
    if (++loop.count % FILES_A_TRANSACTION == 0) {
        run("COMMIT; BEGIN");
    }
    return 0;
}

int64_t bare_index(const char *folder, const char *path, int *ret_count)
{
    const int64_t began_us = bench_now_us();
    loop.count = 0;
    if (sqlite3_open(path, &loop.db) != SQLITE_OK) {
        fprintf(stderr, "bench: %s: %s\n", path, sqlite3_errmsg(loop.db));
        exit(1);
    }
    run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
        "CREATE VIRTUAL TABLE texts USING fts5(name, text, tokenize='unicode61 remove_diacritics 2'); BEGIN");
    sqlite3_prepare_v2(loop.db, "INSERT INTO texts (name, text) VALUES (?1, ?2)", -1, &loop.insert, NULL);
    nftw(folder, take_file, 16, FTW_PHYS);
    run("COMMIT");
    sqlite3_finalize(loop.insert);
    sqlite3_close(loop.db);
    *ret_count = loop.count;
    return bench_now_us() - began_us;
}
