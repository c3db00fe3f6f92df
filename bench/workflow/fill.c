#include "workflow/fill.h"

#include "base/hash.h"
#include "base/uuid.h"
#include "model/item.h"
#include "model/job_type.h"
#include "workflow/place.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct filling {
    sqlite3 *db;
    sqlite3_stmt *item, *artifact, *job;
    unsigned char base_id[QR_UUID_BYTES];
    bool with_jobs;
};

static void check(const struct filling *filling, bool is_good)
{
    if (!is_good) {
        fprintf(stderr, "bench: filling: %s\n", sqlite3_errmsg(filling->db));
        exit(1);
    }
}

static void run(const struct filling *filling, const char *sql)
{
    check(filling, sqlite3_exec(filling->db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

static void finish(const struct filling *filling, sqlite3_stmt *stmt)
{
    sqlite3_step(stmt);
    check(filling, sqlite3_reset(stmt) == SQLITE_OK);
}

static sqlite3_stmt *prepare(const struct filling *filling, const char *sql)
{
    sqlite3_stmt *stmt;
    check(filling, sqlite3_prepare_v2(filling->db, sql, -1, &stmt, NULL) == SQLITE_OK);
    return stmt;
}

/* Sixteen bytes, in order. */
static void make_id(const char *what, int number, char ret_id[static QR_UUID_BYTES + 1])
{
    snprintf(ret_id, QR_UUID_BYTES + 1, "%.4s%012d", what, number);
}

static void bind_bytes(sqlite3_stmt *stmt, int at, const void *bytes, int size)
{
    sqlite3_bind_blob(stmt, at, bytes, size, SQLITE_TRANSIENT);
}

/* `path` ends with the item's id; `child_count` > 0 makes it a folder. */
static void add_item(const struct filling *filling, const char *path, int depth, int child_count)
{
    const char *id = path + depth * QR_UUID_BYTES;
    const bool is_leaf = child_count == 0;
    const enum qr_item_status status = filling->with_jobs ? QR_ITEM_PROCESSING : QR_ITEM_COMPLETED;
    sqlite3_stmt *stmt = filling->item;
    bind_bytes(stmt, 1, id, QR_UUID_BYTES);
    bind_bytes(stmt, 2, filling->base_id, QR_UUID_BYTES);
    bind_bytes(stmt, 3, depth == 0 ? (const char *)filling->base_id : id - QR_UUID_BYTES, QR_UUID_BYTES);
    sqlite3_bind_int(stmt, 4, depth);
    bind_bytes(stmt, 5, path, (depth + 1) * QR_UUID_BYTES);
    sqlite3_bind_int(stmt, 6, is_leaf ? QR_ITEM_NOTE : QR_ITEM_DIRECTORY);
    sqlite3_bind_int(stmt, 7, !is_leaf);
    sqlite3_bind_text(stmt, 8, id, QR_UUID_BYTES, SQLITE_TRANSIENT);
    sqlite3_bind_int(stmt, 9, status);
    sqlite3_bind_int(stmt, 10, is_leaf && !filling->with_jobs); /* the generation that is live */
    sqlite3_bind_int(stmt, 11, !is_leaf);                       /* that was expanded */
    sqlite3_bind_int(stmt, 12, filling->with_jobs ? 0 : child_count);
    sqlite3_bind_int(stmt, 13, filling->with_jobs ? child_count : 0);
    sqlite3_bind_int(stmt, 14, QR_WANT_ALL);
    sqlite3_bind_int64(stmt, 15, is_leaf && filling->with_jobs ? qr_item_needs(false, 1, 0, 0, 0, 0) : 0);
    finish(filling, stmt);
}

/* The content of a note that is to be read, or the text that was made of it: empty, so that there are no chunks. */
static void add_artifact(const struct filling *filling, const char *item_id, int number)
{
    enum { SOURCE = 1, TEXT = 2 };
    char id[QR_UUID_BYTES + 1];
    unsigned char hash[QR_HASH_BYTES];
    make_id("arti", number, id);
    qr_hash_128(QR_STR(""), hash);
    bind_bytes(filling->artifact, 1, id, QR_UUID_BYTES);
    bind_bytes(filling->artifact, 2, filling->base_id, QR_UUID_BYTES);
    bind_bytes(filling->artifact, 3, item_id, QR_UUID_BYTES);
    sqlite3_bind_int(filling->artifact, 4, filling->with_jobs ? SOURCE : TEXT);
    bind_bytes(filling->artifact, 5, hash, sizeof hash);
    finish(filling, filling->artifact);
}

static void add_job(const struct filling *filling, const char *item_id, int number)
{
    const struct qr_job_type_info *info = qr_job_type_info(QR_JOB_PROCESS_DOCUMENT);
    char id[QR_UUID_BYTES + 1];
    make_id("jobs", number, id);
    bind_bytes(filling->job, 1, id, QR_UUID_BYTES);
    sqlite3_bind_int(filling->job, 2, info->queue);
    sqlite3_bind_text(filling->job, 3, info->name, -1, SQLITE_STATIC);
    bind_bytes(filling->job, 4, filling->base_id, QR_UUID_BYTES);
    bind_bytes(filling->job, 5, item_id, QR_UUID_BYTES);
    bind_bytes(filling->job, 6, item_id, QR_UUID_BYTES); /* the key of its stage */
    sqlite3_bind_int64(filling->job, 7, info->time_limit_ms);
    finish(filling, filling->job);
}

static void add_all(const struct filling *filling, int count)
{
    char path[3 * QR_UUID_BYTES + 1];
    make_id("root", 0, path);
    add_item(filling, path, 0, count / FILL_CHILDREN);
    for (int i = 0; i < count; i++) {
        if (i % FILL_CHILDREN == 0) {
            make_id("fold", i / FILL_CHILDREN, path + QR_UUID_BYTES);
            add_item(filling, path, 1, FILL_CHILDREN);
        }
        char *id = path + (size_t)2 * QR_UUID_BYTES;
        make_id("item", i, id);
        add_item(filling, path, 2, 0);
        add_artifact(filling, id, i);
        if (filling->with_jobs) {
            add_job(filling, id, i);
        }
    }
}

static void prepare_all(struct filling *filling)
{
    filling->item = prepare(
        filling, "INSERT INTO item (id, base_id, parent_id, depth, path, type, is_container, name, key, "
                 "source, size_bytes, mtime_ns, status, generation, seen_generation, live_generation, "
                 "text_generation, chunk_generation, expanded_generation, n_completed, n_active, wanted, needs, "
                 "created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?1, x'', 0, 0, ?9, 1, 1, "
                 "?10, ?10, ?10, ?11, ?12, ?13, ?14, ?15, 1, 1)");
    filling->artifact = prepare(filling, "INSERT INTO artifact (id, base_id, item_id, generation, kind, size_bytes, "
                                         "hash, file, bytes) VALUES (?1, ?2, ?3, 1, ?4, 0, ?5, '', x'')");
    filling->job = prepare(filling, "INSERT INTO job (id, queue, type, base_id, item_id, generation, state, priority, "
                                    "run_at, idempotency_key, args, time_limit, created_at) VALUES (?1, ?2, ?3, ?4, "
                                    "?5, 1, 3, 2, 1, ?6, '{}', ?7, 1)");
}

static void find_base(struct filling *filling)
{
    sqlite3_stmt *stmt = prepare(filling, "SELECT id FROM base");
    check(filling, sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_bytes(stmt, 0) == QR_UUID_BYTES);
    memcpy(filling->base_id, sqlite3_column_blob(stmt, 0), QR_UUID_BYTES);
    sqlite3_finalize(stmt);
}

void fill_items(const char *dir, int count, bool with_jobs)
{
    struct filling filling = {.with_jobs = with_jobs};
    struct place place;
    char path[600];
    place_open(&place, dir, false);
    place_add_base(&place, "bench");
    place_close(&place);
    snprintf(path, sizeof path, "%s/quire.db", dir);
    check(&filling, sqlite3_open(path, &filling.db) == SQLITE_OK);
    run(&filling, "PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN");
    find_base(&filling);
    prepare_all(&filling);
    add_all(&filling, count);
    run(&filling, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_finalize(filling.item);
    sqlite3_finalize(filling.artifact);
    sqlite3_finalize(filling.job);
    sqlite3_close(filling.db);
}
