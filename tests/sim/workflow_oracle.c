/* Looks at the data folder after every commit, on connections of its own and without the product's code: what is true of one
 * moment (I1, I3, I4, I6), what may have changed since the last one (I3, I4), what was promised (I5), and after the drain
 * that nothing is left that nobody owns (I7). */
#include "sim/workflow_sim.h"

#include <dirent.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

enum {
    ITEMS_MAX = 600,
    PROMISES_MAX = 600,
    BASES_MAX = 64,
    STATEMENTS_MAX = 48,
    LIVE_MAX = 4000,
    PATH_BYTES_MAX = 160
};

struct flow_totals flow_totals;

struct row {
    qr_uuid id, base_id, parent_id;
    unsigned char path[PATH_BYTES_MAX];
    int path_len;
    bool is_container, expansion_failed, is_gone; /* is_gone: it, an ancestor or its base is deleting */
    int type, status;
    int64_t generation, live_generation, expanded_generation;
    int64_t counts[4]; /* completed, failed, active, idle */
    int64_t open_stages, stage_generation;
};

static struct row rows[2][ITEMS_MAX];
static int row_counts[2], now;

static struct promise {
    qr_uuid id;
    bool may_go, must_go;
} promises[PROMISES_MAX];
static int promise_count;
static qr_uuid bases_that_may_go[BASES_MAX];
static int base_count;

/* Chunks of live generations, as they were seen first. */
static struct live {
    qr_uuid id;
    int64_t generation, count;
    uint64_t hash;
} lives[LIVE_MAX];
static int live_count;
static bool is_traced;

static sqlite3 *handle;
static struct {
    const char *sql;
    sqlite3_stmt *stmt;
} statements[STATEMENTS_MAX];

/* ---- asking ---- */

static sqlite3 *open_file(const char *path)
{
    sqlite3 *db;
    QR_CHECK_INT(SQLITE_OK, sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "fault"));
    return db;
}

/* `sql` is a constant: its address names the statement. */
static sqlite3_stmt *statement(const char *sql)
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

static bool next_row(sqlite3_stmt *stmt)
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

static void bind_id(sqlite3_stmt *stmt, int place, const qr_uuid *id)
{
    sqlite3_bind_blob(stmt, place, id->bytes, QR_UUID_BYTES, SQLITE_TRANSIENT);
}

static qr_uuid id_at(sqlite3_stmt *stmt, int column)
{
    qr_uuid id = {0};
    if (sqlite3_column_bytes(stmt, column) == QR_UUID_BYTES) {
        memcpy(id.bytes, sqlite3_column_blob(stmt, column), QR_UUID_BYTES);
    }
    return id;
}

static int64_t number_of(sqlite3_stmt *stmt)
{
    const int64_t number = next_row(stmt) ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return number;
}

int64_t flow_oracle_i64(const char *sql)
{
    return number_of(statement(sql));
}

bool flow_oracle_pick_id(const char *sql, qr_uuid *ret_id)
{
    enum { IDS_MAX = 64 };
    qr_uuid ids[IDS_MAX];
    int count = 0;
    sqlite3_stmt *stmt = statement(sql);
    while (next_row(stmt)) {
        if (count < IDS_MAX) {
            ids[count++] = id_at(stmt, 0);
        }
    }
    if (count > 0) {
        *ret_id = ids[sim_between(0, count - 1)];
    }
    return count > 0;
}

void flow_oracle_begin(void)
{
    row_counts[0] = row_counts[1] = promise_count = base_count = live_count = 0;
    is_traced = getenv("SIM_TRACE") != NULL;
    handle = open_file(world.path);
}

void flow_oracle_end(void)
{
    for (int i = 0; i < STATEMENTS_MAX && statements[i].sql; i++) {
        sqlite3_finalize(statements[i].stmt);
        statements[i].sql = NULL;
    }
    sqlite3_close(handle);
}

static const char *text_of(qr_uuid id)
{
    static char texts[4][QR_UUID_TEXT_SIZE];
    static int next;
    char *text = texts[next++ % 4];
    qr_uuid_format(id, text);
    return text;
}

/* ---- a look ---- */

#define STAGES "('prepare-root', 'process-document', 'check-file-processing', 'chunk-document', 'index-chunks')"
#define ITEMS                                                                                                          \
    "SELECT id, base_id, parent_id, path, is_container, type, status, generation, live_generation, "                   \
    "expanded_generation, n_completed, n_failed, n_active, n_idle, expand_code <> '', (SELECT count(*) FROM job "      \
    "WHERE item_id = item.id AND state IN (1, 2, 3, 4) AND type IN " STAGES "), coalesce((SELECT max(generation) "     \
    "FROM job WHERE item_id = item.id AND state IN (1, 2, 3, 4) AND type IN " STAGES "), 0), (SELECT status FROM "     \
    "base WHERE base.id = item.base_id) FROM item ORDER BY base_id, path"

static const struct row *find_row(int at, qr_uuid id)
{
    for (int i = 0; i < row_counts[at]; i++) {
        if (qr_uuid_equal(rows[at][i].id, id)) {
            return &rows[at][i];
        }
    }
    return NULL;
}

static void read_row(sqlite3_stmt *stmt, struct row *row)
{
    *row = (struct row){.id = id_at(stmt, 0), .base_id = id_at(stmt, 1), .parent_id = id_at(stmt, 2)};
    row->path_len = sqlite3_column_bytes(stmt, 3);
    QR_CHECK(row->path_len <= PATH_BYTES_MAX);
    memcpy(row->path, sqlite3_column_blob(stmt, 3), (size_t)row->path_len);
    row->is_container = sqlite3_column_int(stmt, 4) != 0;
    row->type = sqlite3_column_int(stmt, 5);
    row->status = sqlite3_column_int(stmt, 6);
    row->generation = sqlite3_column_int64(stmt, 7);
    row->live_generation = sqlite3_column_int64(stmt, 8);
    row->expanded_generation = sqlite3_column_int64(stmt, 9);
    for (int i = 0; i < 4; i++) {
        row->counts[i] = sqlite3_column_int64(stmt, 10 + i);
    }
    row->expansion_failed = sqlite3_column_int(stmt, 14) != 0;
    row->open_stages = sqlite3_column_int64(stmt, 15);
    row->stage_generation = sqlite3_column_int64(stmt, 16);
    row->is_gone = row->status == QR_ITEM_DELETING || sqlite3_column_int(stmt, 17) == QR_BASE_DELETING;
}

static void look(void)
{
    now = !now;
    row_counts[now] = 0;
    sqlite3_stmt *stmt = statement(ITEMS);
    while (next_row(stmt)) {
        QR_CHECK(row_counts[now] < ITEMS_MAX);
        struct row *row = &rows[now][row_counts[now]];
        read_row(stmt, row);
        const struct row *parent = find_row(now, row->parent_id); /* before it, in the order of paths */
        row->is_gone = row->is_gone || (parent && parent->is_gone);
        row_counts[now]++;
    }
}

/* ---- one moment ---- */

static void check_stage(const struct row *row)
{
    const bool waits = row->status == QR_ITEM_PREPARING || (!row->is_container && row->status == QR_ITEM_PROCESSING);
    if (row->open_stages != waits) {
        QR_FAIL("I1: item %s is %s with %lld open stage jobs", text_of(row->id),
                qr_item_status_name((enum qr_item_status)row->status), (long long)row->open_stages);
    }
    if (waits && row->stage_generation != row->generation) {
        QR_FAIL("I1: item %s waits for generation %lld, its job is of %lld", text_of(row->id),
                (long long)row->generation, (long long)row->stage_generation);
    }
}

static void check_roll_up(const struct row *row)
{
    int64_t counts[4] = {0};
    for (int i = 0; i < row_counts[now]; i++) {
        const struct row *child = &rows[now][i];
        if (qr_uuid_equal(child->parent_id, row->id) && child->status != QR_ITEM_DELETING) {
            counts[child->status == QR_ITEM_COMPLETED ? 0
                   : child->status == QR_ITEM_FAILED  ? 1
                   : child->status == QR_ITEM_IDLE    ? 3
                                                      : 2]++;
        }
    }
    if (memcmp(counts, row->counts, sizeof counts) != 0) {
        QR_FAIL("I6: container %s has %lld completed, %lld failed, %lld active, %lld idle, and says %lld, %lld, %lld, "
                "%lld",
                text_of(row->id), (long long)counts[0], (long long)counts[1], (long long)counts[2],
                (long long)counts[3], (long long)row->counts[0], (long long)row->counts[1], (long long)row->counts[2],
                (long long)row->counts[3]);
    }
    const int status = counts[2]                                    ? QR_ITEM_PROCESSING
                       : row->expansion_failed || counts[1]         ? QR_ITEM_FAILED
                       : counts[3] || row->expanded_generation == 0 ? QR_ITEM_IDLE
                                                                    : QR_ITEM_COMPLETED;
    if (row->status != QR_ITEM_PREPARING && row->status != status) {
        QR_FAIL("I6: container %s is %s, not %s", text_of(row->id),
                qr_item_status_name((enum qr_item_status)row->status),
                qr_item_status_name((enum qr_item_status)status));
    }
}

static void check_moment(void)
{
    for (int i = 0; i < row_counts[now]; i++) {
        const struct row *row = &rows[now][i];
        if (row->live_generation > row->generation) {
            QR_FAIL("I3: item %s is live with a generation that it does not have", text_of(row->id));
        }
        if (!row->is_gone) {
            check_stage(row);
        }
        if (row->is_container && !row->is_gone) {
            check_roll_up(row);
        }
    }
}

/* ---- since the last look ---- */

static void check_change(const struct row *before, const struct row *after)
{
    if (after->generation < before->generation || after->live_generation < before->live_generation) {
        QR_FAIL("I3: a generation of item %s fell", text_of(before->id));
    }
    if (before->status == QR_ITEM_DELETING && after->status != QR_ITEM_DELETING) {
        QR_FAIL("I4: item %s was deleting and is not any more", text_of(before->id));
    }
}

static void check_new(const struct row *row)
{
    const struct row *parent = find_row(!now, row->parent_id);
    flow_totals.items++;
    if (parent && parent->is_gone) {
        QR_FAIL("I4: item %s was made below one that is deleting", text_of(row->id));
    }
}

static void check_since(void)
{
    for (int i = 0; i < row_counts[!now]; i++) {
        const struct row *before = &rows[!now][i], *after = find_row(now, before->id);
        if (after) {
            check_change(before, after);
        } else if (!before->is_gone) {
            QR_FAIL("I4: item %s vanished without being deleted", text_of(before->id));
        } else {
            flow_totals.removed++;
        }
    }
    for (int i = 0; i < row_counts[now]; i++) {
        if (!find_row(!now, rows[now][i].id)) {
            check_new(&rows[now][i]);
        }
    }
}

/* ---- promises ---- */

static struct promise *promise_about(qr_uuid id)
{
    for (int i = 0; i < promise_count; i++) {
        if (qr_uuid_equal(promises[i].id, id)) {
            return &promises[i];
        }
    }
    QR_CHECK(promise_count < PROMISES_MAX);
    promises[promise_count] = (struct promise){.id = id};
    return &promises[promise_count++];
}

void flow_oracle_expect(qr_uuid id)
{
    promise_about(id);
    if (!find_row(now, id)) {
        look();
    }
}

void flow_oracle_may_go(qr_uuid id)
{
    promise_about(id)->may_go = true;
}

void flow_oracle_must_go(qr_uuid id)
{
    struct promise *promise = promise_about(id);
    promise->may_go = promise->must_go = true;
}

void flow_oracle_base_may_go(qr_uuid id)
{
    QR_CHECK(base_count < BASES_MAX);
    bases_that_may_go[base_count++] = id;
}

static bool base_may_go(qr_uuid id)
{
    for (int i = 0; i < base_count; i++) {
        if (qr_uuid_equal(bases_that_may_go[i], id)) {
            return true;
        }
    }
    return false;
}

static void check_promises(void)
{
    for (int i = 0; i < promise_count; i++) {
        const struct promise *promise = &promises[i];
        const struct row *row = find_row(now, promise->id);
        if (promise->must_go && row && !row->is_gone) {
            QR_FAIL("I5: item %s was deleted and is not deleting", text_of(promise->id));
        }
        const struct row *before = find_row(!now, promise->id);
        const bool was_there = before && !before->is_gone;
        if (!promise->may_go && was_there && (!row || row->is_gone) && !base_may_go(before->base_id)) {
            QR_FAIL("I5: item %s was added and nobody deleted it, and it is gone", text_of(promise->id));
        }
    }
}

/* SIM_TRACE=1: what a run did, to be read beside a failing check. */
static void trace(void)
{
    static char seen[200000];
    char line[300];
    sqlite3_stmt *stmt = statement(
        "SELECT substr(hex(id), 5, 12) || ' ' || type || ' of ' || coalesce(substr(hex(item_id), 5, 12), '') || ' base "
        "' "
        "|| substr(hex(base_id), 5, 12) || ' generation ' || generation || ' state ' || state || ' fence ' || fence || "
        "' ' || code FROM job UNION ALL SELECT substr(hex(id), 5, 12) || ' item: below ' || substr(hex(parent_id), 5, "
        "12) || ' status ' || status || ' generation ' || generation || ' live ' || live_generation || ' wanted ' || "
        "wanted || ' run ' || coalesce(substr(hex(run_id), 5, 12), '') || ' ' || error_code FROM item UNION ALL SELECT "
        "substr(hex(id), 5, 12) || ' base: ' || status || ' ' || error_code FROM base UNION ALL SELECT substr(hex(id), "
        "5, 12) || ' run: ' || status || ' active ' || active || ' level ' || level FROM run");
    static char next[sizeof seen];
    next[0] = '\0';
    size_t len = 0;
    while (next_row(stmt)) {
        snprintf(line, sizeof line, "%s\n", (const char *)sqlite3_column_text(stmt, 0));
        if (!strstr(seen, line)) {
            printf("%9lld ms: %s", (long long)sim_now_ms(), line);
        }
        len += (size_t)snprintf(next + len, sizeof next - len, "%s", line);
        QR_CHECK(len < sizeof next);
    }
    memcpy(seen, next, len + 1);
    fflush(stdout);
}

void flow_oracle_check(void)
{
    sqlite3_exec(handle, "BEGIN", NULL, NULL, NULL);
    if (is_traced) {
        trace();
    }
    look();
    check_moment();
    check_since();
    check_promises();
    sqlite3_exec(handle, "COMMIT", NULL, NULL, NULL);
}

/* ---- for people ---- */

static void show(const struct row *row, struct seen_item *ret_item)
{
    *ret_item = (struct seen_item){row->id,   row->base_id, row->is_container, row->path_len == QR_UUID_BYTES,
                                   row->type, row->status};
}

bool flow_oracle_pick_item(struct seen_item *ret_item)
{
    const int count = row_counts[now];
    const int start = count ? (int)sim_between(0, count - 1) : 0;
    for (int i = 0; i < count; i++) {
        const struct row *row = &rows[now][(start + i) % count];
        if (!row->is_gone) {
            show(row, ret_item);
            return true;
        }
    }
    return false;
}

bool flow_oracle_nth_item(int n, int status, bool only_folders, struct seen_item *ret_item)
{
    for (int i = 0; i < row_counts[now]; i++) {
        const struct row *row = &rows[now][i];
        const bool fits = !row->is_gone && (!status || row->status == status) &&
                          (!only_folders || (row->is_container && row->path_len == QR_UUID_BYTES));
        if (fits && n-- == 0) {
            show(row, ret_item);
            return true;
        }
    }
    return false;
}

int flow_oracle_item_count(void)
{
    return row_counts[now];
}

/* ---- calls that are paid for ---- */

#define NOT_GONE(columns)                                                                                              \
    "NOT EXISTS (SELECT 1 FROM item AS above WHERE (" columns ") AND above.base_id = item.base_id AND "                \
    "substr(item.path, 1, length(above.path)) = above.path)"

void flow_oracle_check_call(const struct qr_job *job, int64_t since_ms)
{
    QR_CHECK(job);
    sqlite3_stmt *stmt = statement("SELECT count(*) FROM job JOIN base ON base.id = job.base_id WHERE job.id = ?1 AND "
                                   "job.state = 4 AND job.fence = ?2 AND base.status <> 3");
    bind_id(stmt, 1, &job->id);
    sqlite3_bind_int64(stmt, 2, job->fence);
    if (number_of(stmt) == 0) {
        QR_FAIL("I8: a %s that is not this worker's any more, since %lld ms, asks for something", job->type,
                (long long)since_ms);
    }
    if (qr_uuid_is_zero(job->item_id)) {
        return;
    }
    stmt = statement("SELECT count(*) FROM item WHERE id = ?1 AND generation = ?2 AND status IN (2, 3) "
                     "AND " NOT_GONE("above.status = 8"));
    bind_id(stmt, 1, &job->item_id);
    sqlite3_bind_int64(stmt, 2, job->generation);
    if (number_of(stmt) == 0) {
        QR_FAIL("I8: a %s of a generation that is not wanted asks for something", job->type);
    }
}

void flow_oracle_check_not_cached(const unsigned char *key, size_t key_bytes, int64_t since_ms)
{
    sqlite3_stmt *stmt = statement("SELECT count(*) FROM vector_cache WHERE key = ?1 AND added_at < ?2");
    sqlite3_bind_blob(stmt, 1, key, (int)key_bytes, SQLITE_TRANSIENT);
    sqlite3_bind_int64(stmt, 2, since_ms);
    if (number_of(stmt) > 0) {
        QR_FAIL("PAID-1: a text is paid for that is in the cache since before the attempt began");
    }
}

/* ---- searching ---- */

bool flow_oracle_is_visible(qr_uuid base_id, qr_uuid item_id, int64_t generation)
{
    sqlite3_stmt *stmt =
        statement("SELECT count(*) FROM item JOIN base ON base.id = item.base_id WHERE item.id = ?1 AND "
                  "item.live_generation = ?2 AND item.base_id = ?3 AND base.status <> 3 "
                  "AND " NOT_GONE("above.status = 8 OR above.enabled = 0"));
    bind_id(stmt, 1, &item_id);
    sqlite3_bind_int64(stmt, 2, generation);
    bind_id(stmt, 3, &base_id);
    return number_of(stmt) == 1;
}

int64_t flow_oracle_visible_chunks(qr_uuid base_id)
{
    sqlite3_stmt *stmt = statement("SELECT coalesce(sum(chunk_count), 0) FROM item WHERE base_id = ?1 AND "
                                   "live_generation > 0 AND " NOT_GONE("above.status = 8 OR above.enabled = 0"));
    bind_id(stmt, 1, &base_id);
    return number_of(stmt);
}

/* ---- the index stores ---- */

static bool is_ready(qr_uuid id)
{
    sqlite3_stmt *stmt = statement("SELECT count(*) FROM base WHERE id = ?1 AND status = 1 AND NOT EXISTS (SELECT 1 "
                                   "FROM job WHERE base_id = base.id AND type = 'restore-base' AND state IN "
                                   "(1, 2, 3, 4))");
    bind_id(stmt, 1, &id);
    return number_of(stmt) == 1;
}

/* One that was never written to has none yet. */
static bool has_own_store(qr_uuid id)
{
    char name[64];
    sqlite3 *store;
    sqlite3_stmt *stmt = statement("SELECT index_stamp FROM base WHERE id = ?1"), *stamp;
    bind_id(stmt, 1, &id);
    QR_CHECK(next_row(stmt));
    char known[QR_INDEX_STAMP_SIZE];
    snprintf(known, sizeof known, "%s", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_reset(stmt);
    snprintf(name, sizeof name, "index/%s.db", text_of(id));
    if (!known[0] || access(sim_path(name), F_OK) != 0) {
        return !known[0];
    }
    store = open_file(sim_path(name));
    bool is_own = false;
    if (sqlite3_prepare_v2(store, "SELECT stamp FROM store", -1, &stamp, NULL) == SQLITE_OK) {
        is_own = next_row(stamp) && strcmp((const char *)sqlite3_column_text(stamp, 0), known) == 0;
        sqlite3_finalize(stamp);
    }
    sqlite3_close(store);
    return is_own;
}

bool flow_oracle_is_settled(qr_uuid base_id)
{
    return is_ready(base_id) && has_own_store(base_id);
}

static void check_live(qr_uuid id, int64_t generation, int64_t count, uint64_t hash)
{
    for (int i = 0; i < live_count; i++) {
        if (qr_uuid_equal(lives[i].id, id) && lives[i].generation == generation) {
            if (lives[i].count != count || lives[i].hash != hash) {
                QR_FAIL("I3: generation %lld of item %s changed while it was live", (long long)generation, text_of(id));
            }
            return;
        }
    }
    QR_CHECK(live_count < LIVE_MAX);
    lives[live_count++] = (struct live){id, generation, count, hash};
}

static void check_chunks_of(sqlite3 *store, qr_uuid id, int64_t generation, int64_t chunk_count)
{
    sqlite3_stmt *stmt;
    QR_CHECK_INT(SQLITE_OK,
                 sqlite3_prepare_v2(store,
                                    "SELECT text, id IN (SELECT id FROM chunk_vector) FROM chunk_row WHERE item_id = "
                                    "?1 AND generation = ?2 ORDER BY ordinal",
                                    -1, &stmt, NULL));
    bind_id(stmt, 1, &id);
    sqlite3_bind_int64(stmt, 2, generation);
    int64_t count = 0;
    uint64_t hash = 14695981039346656037ULL;
    while (next_row(stmt)) {
        for (const unsigned char *at = sqlite3_column_text(stmt, 0); *at; at++) {
            hash = (hash ^ *at) * 1099511628211ULL;
        }
        count++;
    }
    sqlite3_finalize(stmt);
    if (count != chunk_count) {
        QR_FAIL("I3: item %s has %lld chunks of its live generation %lld in the index, not %lld", text_of(id),
                (long long)count, (long long)generation, (long long)chunk_count);
    }
    check_live(id, generation, count, hash);
}

static void check_store(qr_uuid base_id)
{
    char name[64];
    snprintf(name, sizeof name, "index/%s.db", text_of(base_id));
    sqlite3_stmt *stmt = statement("SELECT id, live_generation, chunk_count FROM item WHERE base_id = ?1 AND "
                                   "live_generation > 0 AND " NOT_GONE("above.status = 8"));
    sqlite3 *store = NULL;
    bind_id(stmt, 1, &base_id);
    while (next_row(stmt)) {
        store = store ? store : open_file(sim_path(name));
        check_chunks_of(store, id_at(stmt, 0), sqlite3_column_int64(stmt, 1), sqlite3_column_int64(stmt, 2));
    }
    sqlite3_close(store);
}

static int list_bases(qr_uuid *ret_ids)
{
    int count = 0;
    sqlite3_stmt *stmt = statement("SELECT id FROM base");
    while (next_row(stmt)) {
        QR_CHECK(count < BASES_MAX);
        ret_ids[count++] = id_at(stmt, 0);
    }
    return count;
}

void flow_oracle_check_index(bool must_be_own)
{
    qr_uuid ids[BASES_MAX];
    const int count = list_bases(ids);
    for (int i = 0; i < count; i++) {
        if (flow_oracle_is_settled(ids[i])) {
            check_store(ids[i]);
        } else if (must_be_own) {
            QR_FAIL("RECOV-4: base %s has an index that is not its own", text_of(ids[i]));
        }
    }
}

/* ---- the end ---- */

const char *flow_oracle_unrest(void)
{
    static const struct {
        const char *what, *sql;
    } unrest[] = {
        {"a job is open", "SELECT count(*) FROM job WHERE state IN (1, 2, 3, 4)"},
        {"an item is active", "SELECT count(*) FROM item WHERE status IN (2, 3)"},
        {"an item is deleting", "SELECT count(*) FROM item WHERE status = 8"},
        {"a base is deleting", "SELECT count(*) FROM base WHERE status = 3"},
    };
    for (size_t i = 0; i < QR_COUNT(unrest); i++) {
        if (flow_oracle_i64(unrest[i].sql)) {
            return unrest[i].what;
        }
    }
    return NULL;
}

/* The query counts; a second column may name one. */
static void check_nothing(const char *what, const char *sql)
{
    sqlite3_stmt *stmt = statement(sql);
    if (next_row(stmt) && sqlite3_column_int64(stmt, 0)) {
        const char *name = sqlite3_column_count(stmt) > 1 ? (const char *)sqlite3_column_text(stmt, 1) : "";
        QR_FAIL("I7: %s: %lld %s", what, (long long)sqlite3_column_int64(stmt, 0), name);
    }
    sqlite3_reset(stmt);
}

/* Rows of the main database without an owner. */
static void check_rows(void)
{
    check_nothing("artifacts without an item",
                  "SELECT count(*) FROM artifact WHERE item_id NOT IN (SELECT id FROM item)");
    check_nothing(
        "artifacts of generations neither live nor wanted",
        "SELECT count(*), max(substr(hex(item.id), 5, 12) || ' kind ' || kind || ' generation ' || "
        "artifact.generation) FROM artifact JOIN item ON item.id = artifact.item_id WHERE artifact.generation NOT "
        "IN (item.generation, item.live_generation) AND NOT (kind = 1 AND artifact.generation = (SELECT "
        "max(other.generation) FROM artifact AS other WHERE other.item_id = item.id AND other.kind = 1))");
    check_nothing("assets without an item", "SELECT count(*) FROM asset WHERE item_id NOT IN (SELECT id FROM item)");
    check_nothing("assets without their bytes",
                  "SELECT count(*) FROM asset WHERE artifact_id NOT IN (SELECT id FROM artifact)");
    check_nothing("items without a base", "SELECT count(*) FROM item WHERE base_id NOT IN (SELECT id FROM base)");
    check_nothing("children without a parent",
                  "SELECT count(*) FROM item WHERE depth > 0 AND parent_id NOT IN (SELECT id FROM item)");
    check_nothing("histories without an item",
                  "SELECT count(*) FROM item_generation WHERE item_id NOT IN (SELECT id FROM item)");
    check_nothing("events without a base", "SELECT count(*) FROM event WHERE base_id NOT IN (SELECT id FROM base)");
    check_nothing("runs without a base", "SELECT count(*) FROM run WHERE base_id NOT IN (SELECT id FROM base)");
    check_nothing("runs that have not ended", "SELECT count(*) FROM run WHERE status = 1");
    check_nothing("completed items without their text",
                  "SELECT count(*) FROM item WHERE is_container = 0 AND status = 6 AND NOT EXISTS (SELECT 1 FROM "
                  "artifact WHERE item_id = item.id AND kind = 2 AND artifact.generation = item.generation)");
}

/* Index rows and stores without an owner. */
static void check_store_owned(qr_uuid base_id, sqlite3 *store)
{
    sqlite3_stmt *stmt, *owner;
    QR_CHECK_INT(SQLITE_OK,
                 sqlite3_prepare_v2(store, "SELECT DISTINCT item_id, generation FROM chunk_row", -1, &stmt, NULL));
    while (next_row(stmt)) {
        const qr_uuid id = id_at(stmt, 0);
        owner = statement("SELECT count(*) FROM item WHERE id = ?1 AND base_id = ?2 AND ?3 IN (generation, "
                          "live_generation)");
        bind_id(owner, 1, &id);
        bind_id(owner, 2, &base_id);
        sqlite3_bind_int64(owner, 3, sqlite3_column_int64(stmt, 1));
        if (number_of(owner) == 0) {
            QR_FAIL("I7: chunks of generation %lld of item %s are in the index, and nobody owns them",
                    (long long)sqlite3_column_int64(stmt, 1), text_of(id));
        }
    }
    sqlite3_finalize(stmt);
}

static void check_stores(void)
{
    DIR *dir = opendir(sim_path("index"));
    struct dirent *entry;
    QR_CHECK(dir);
    while ((entry = readdir(dir))) {
        qr_uuid base_id;
        const size_t len = strlen(entry->d_name);
        if (len < 3 || strcmp(entry->d_name + len - 3, ".db") != 0) {
            continue;
        }
        QR_CHECK(qr_uuid_parse((qr_str){entry->d_name, len - 3}, &base_id));
        sqlite3_stmt *stmt = statement("SELECT count(*) FROM base WHERE id = ?1");
        bind_id(stmt, 1, &base_id);
        if (number_of(stmt) == 0) {
            QR_FAIL("I7: the index store %s is of no base", entry->d_name);
        }
        char name[80];
        snprintf(name, sizeof name, "index/%s", entry->d_name);
        sqlite3 *store = open_file(sim_path(name));
        check_store_owned(base_id, store);
        sqlite3_close(store);
    }
    closedir(dir);
}

/* Files: each is an artifact's, each artifact has its file. What converters left goes by its age. */
static int count_files(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int count = 0;
    QR_CHECK(dir);
    while ((entry = readdir(dir))) {
        char below[400];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR) {
            count += count_files(below);
            continue;
        }
        count++;
        sqlite3_stmt *stmt = statement("SELECT count(*) FROM artifact WHERE file LIKE '%' || ?1");
        sqlite3_bind_text(stmt, 1, entry->d_name, -1, SQLITE_TRANSIENT);
        if (number_of(stmt) == 0) {
            QR_FAIL("I7: the file %s is nobody's", below);
        }
        sqlite3_reset(stmt);
    }
    closedir(dir);
    return count;
}

static void check_files(void)
{
    QR_CHECK_INT(flow_oracle_i64("SELECT count(*) FROM artifact WHERE file <> ''"), count_files(sim_path("artifacts")));
}

/* ---- what the documents say ---- */

/* The version in the first chunk of what search shows; 0 = none. */
static int shown_version(qr_uuid base_id, qr_uuid item_id, int64_t generation, int number)
{
    char name[64], head[64];
    int version = 0;
    snprintf(name, sizeof name, "index/%s.db", text_of(base_id));
    sqlite3 *store = open_file(sim_path(name));
    sqlite3_stmt *stmt;
    QR_CHECK_INT(SQLITE_OK, sqlite3_prepare_v2(store,
                                               "SELECT text FROM chunk_row WHERE item_id = ?1 AND generation = ?2 "
                                               "AND ordinal = 0",
                                               -1, &stmt, NULL));
    bind_id(stmt, 1, &item_id);
    sqlite3_bind_int64(stmt, 2, generation);
    if (next_row(stmt)) {
        snprintf(head, sizeof head, "document %d version ", number);
        const char *at = strstr((const char *)sqlite3_column_text(stmt, 0), head);
        version = at ? atoi(at + strlen(head)) : -1;
    }
    sqlite3_finalize(stmt);
    sqlite3_close(store);
    return version;
}

static void check_notes(void)
{
    struct promised_note note;
    for (int i = 0; people_note(i, &note); i++) {
        const struct row *row = find_row(now, note.id);
        if (!row || row->status != QR_ITEM_COMPLETED) {
            continue;
        }
        const int version = shown_version(row->base_id, row->id, row->live_generation, note.number);
        if (version < note.version_acknowledged || version > note.version_tried) {
            QR_FAIL("I5: note %d shows version %d; %d was acknowledged, %d tried", note.number, version,
                    note.version_acknowledged, note.version_tried);
        }
    }
}

/* After a last look at the folders, what is indexed is what is there. */
static void check_tree(void)
{
    const char *path;
    int number, version;
    for (int i = 0; tree_file(i, &path, &number, &version); i++) {
        sqlite3_stmt *stmt = statement(
            "SELECT id, base_id, live_generation FROM item WHERE source = CAST(?1 AS BLOB) AND status = 6 AND depth > "
            "0");
        if (!path) {
            continue;
        }
        sqlite3_bind_text(stmt, 1, path, -1, SQLITE_TRANSIENT);
        while (next_row(stmt)) {
            const int shown = shown_version(id_at(stmt, 1), id_at(stmt, 0), sqlite3_column_int64(stmt, 2), number);
            if (shown != version) {
                QR_FAIL("%s (document %d, item %s) shows version %d, not %d", path, number, text_of(id_at(stmt, 0)),
                        shown, version);
            }
        }
    }
}

void flow_oracle_check_drained(void)
{
    flow_oracle_check();
    const char *unrest = flow_oracle_unrest();
    if (unrest) {
        QR_FAIL("I5: after the drain %s", unrest);
    }
    check_rows();
    check_stores();
    flow_oracle_check_index(true);
    check_files();
    check_notes();
    check_tree();
}
