/* Lists of items: what people page through, and what handlers, recovery and check walk over. Each looks at a bounded number
 * of rows. */
#include "store/ids.h"
#include "store/items_row.h"
#include "store/jobs_item.h"

enum { LOOKED_AT_MAX = 2000 }; /* rows that a list may pass over before it returns what it has */

/* ---- for people ---- */

struct paging {
    const struct qr_item_filter *filter;
    struct qr_item_list list;
    struct qr_arena scratch; /* of rows that are not wanted */
    qr_str last;             /* the key or path of the last row looked at */
    qr_uuid checked_parent;  /* whose deletion was looked for last */
    bool checked_is_deleting;
};

static bool contains_part(const char *name, const char *part)
{
    return !part || strcasestr(name, part) != NULL;
}

/* A page of a tree shows many children of few parents: one look for each is enough. */
static qr_rc is_below_deleting(struct qr_tx *tx, struct paging *paging, const struct qr_item *item, bool *ret_is,
                               qr_err *err)
{
    if (item->depth == 0) {
        *ret_is = false;
        return QR_OK;
    }
    if (!qr_uuid_equal(item->parent_id, paging->checked_parent)) {
        const qr_str above = {item->path.ptr, item->path.len - QR_UUID_BYTES};
        QR_TRY(qr_item_path_is_deleting(tx, above, &paging->checked_is_deleting, err));
        paging->checked_parent = item->parent_id;
    }
    *ret_is = paging->checked_is_deleting;
    return QR_OK;
}

static bool is_inside(const struct qr_item_filter *filter, const struct qr_item *item)
{
    static const qr_uuid none;
    return !filter->has_parent ||
           (qr_uuid_equal(filter->parent_id, none) ? item->depth == 0
                                                   : qr_uuid_equal(filter->parent_id, item->parent_id));
}

static bool fits(const struct qr_item_filter *filter, const struct qr_item *item)
{
    return is_inside(filter, item) && item->status != QR_ITEM_DELETING &&
           (!filter->status || item->status == filter->status) && (!filter->type || item->type == filter->type) &&
           contains_part(item->name, filter->name_part);
}

static qr_rc remember_place(struct paging *paging, const struct qr_item *item, qr_err *err)
{
    const struct qr_item_filter *filter = paging->filter;
    if (filter->order == QR_ORDER_TREE) {
        paging->last = filter->has_parent ? item->key : item->path;
        return QR_OK;
    }
    paging->last.ptr = qr_item_sort_place(filter, item, &paging->scratch, &paging->last.len);
    return paging->last.ptr ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a list of items");
}

static qr_rc take_rows(struct qr_tx *tx, struct paging *paging, struct qr_rows *rows, int *looked_at, qr_err *err)
{
    const struct qr_item_filter *filter = paging->filter;
    while ((int)paging->list.count < filter->limit && qr_rows_next(rows)) {
        struct qr_item item;
        QR_TRY(qr_rows_item(rows, &paging->scratch, &item, err));
        QR_TRY(remember_place(paging, &item, err));
        ++*looked_at;
        bool hidden = !fits(filter, &item);
        if (!hidden && !filter->has_parent) {
            QR_TRY(is_below_deleting(tx, paging, &item, &hidden, err));
        }
        if (!hidden) {
            QR_TRY(qr_item_list_add(&paging->list, rows, err));
        }
    }
    return QR_OK;
}

static qr_rc list_rows(struct qr_tx *tx, struct paging *paging, int *looked_at, qr_err *err)
{
    const struct qr_item_filter *filter = paging->filter;
    static const qr_uuid none;
    const bool are_roots = qr_uuid_equal(filter->parent_id, none);
    const struct qr_val after = qr_val_blob(filter->after.ptr ? filter->after.ptr : "", filter->after.len);
    QR_ROWS(rows);
    if (filter->order != QR_ORDER_TREE) {
        QR_TRY(qr_items_query_sorted(tx, filter, LOOKED_AT_MAX, &rows, err));
    } else if (filter->has_parent) {
        QR_TRY(qr_tx_query(
            tx, &rows,
            "SELECT " QR_ITEM_COLUMNS
            " FROM item WHERE parent_id = ?1 AND key > ?2 AND status <> 8 ORDER BY key LIMIT ?3",
            QR_VALS(qr_val_uuid(are_roots ? &filter->base_id : &filter->parent_id), after, qr_val_i64(LOOKED_AT_MAX)),
            err));
    } else {
        QR_TRY(qr_tx_query(
            tx, &rows, "SELECT " QR_ITEM_COLUMNS " FROM item WHERE base_id = ?1 AND path > ?2 ORDER BY path LIMIT ?3",
            QR_VALS(qr_val_uuid(&filter->base_id), after, qr_val_i64(LOOKED_AT_MAX)), err));
    }
    QR_TRY(take_rows(tx, paging, &rows, looked_at, err));
    return qr_rows_end(&rows, err);
}

static qr_rc parent_is_hidden(struct qr_tx *tx, const struct qr_item_filter *filter, struct qr_arena *arena,
                              bool *ret_is, qr_err *err)
{
    static const qr_uuid none;
    *ret_is = false;
    if (!filter->has_parent || qr_uuid_equal(filter->parent_id, none)) {
        return QR_OK;
    }
    struct qr_item parent;
    bool found;
    QR_TRY(qr_item_find(tx, filter->parent_id, arena, &found, &parent, err));
    *ret_is = !found || !qr_uuid_equal(parent.base_id, filter->base_id);
    return *ret_is ? QR_OK : qr_item_path_is_deleting(tx, parent.path, ret_is, err);
}

qr_rc qr_items_list(struct qr_tx *tx, const struct qr_item_filter *filter, struct qr_arena *arena,
                    struct qr_item **ret_items, size_t *ret_count, qr_str *ret_next, qr_err *err)
{
    struct paging paging = {.filter = filter, .list = {.arena = arena}};
    *ret_items = NULL;
    *ret_count = 0;
    *ret_next = (qr_str){0};
    bool is_hidden;
    QR_TRY(parent_is_hidden(tx, filter, arena, &is_hidden, err));
    if (is_hidden) {
        return QR_OK;
    }
    qr_arena_init(&paging.scratch, 0);
    int looked_at = 0;
    qr_rc rc = list_rows(tx, &paging, &looked_at, err);
    if (rc == QR_OK && ((int)paging.list.count == filter->limit || looked_at == LOOKED_AT_MAX)) {
        const char *next = qr_arena_copy(arena, paging.last);
        *ret_next = (qr_str){next, next ? paging.last.len : 0};
        rc = next ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a list of items");
    }
    qr_arena_done(&paging.scratch);
    *ret_items = paging.list.items;
    *ret_count = paging.list.count;
    return rc;
}

/* ---- for expansions ---- */

qr_rc qr_items_children(struct qr_tx *tx, qr_uuid parent_id, qr_str after_key, int limit, struct qr_arena *arena,
                        struct qr_child_row **ret_rows, size_t *ret_count, qr_err *err)
{
    struct qr_child_row *children = qr_arena_array(arena, (size_t)limit, sizeof children[0]);
    size_t count = 0;
    bool failed = !children;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, type, status, key, size_bytes, mtime_ns, generation, seen_generation, error_code "
                       "FROM item WHERE parent_id = ?1 AND key > ?2 AND status <> 8 ORDER BY key LIMIT ?3",
                       QR_VALS(qr_val_uuid(&parent_id), qr_val_blob(after_key.ptr ? after_key.ptr : "", after_key.len),
                               qr_val_i64(limit)),
                       err));
    while (!failed && qr_rows_next(&rows)) {
        const qr_str key = qr_rows_str(&rows, 3), code = qr_rows_str(&rows, 8);
        const char *key_copy = qr_arena_copy(arena, key);
        children[count] = (struct qr_child_row){
            .id = qr_rows_uuid(&rows, 0),
            .type = (enum qr_item_type)qr_rows_i64(&rows, 1),
            .status = (enum qr_item_status)qr_rows_i64(&rows, 2),
            .key = {key_copy, key.len},
            .size_bytes = qr_rows_i64(&rows, 4),
            .mtime_ns = qr_rows_i64(&rows, 5),
            .generation = qr_rows_i64(&rows, 6),
            .seen_generation = qr_rows_i64(&rows, 7),
            .error_code = code.len ? qr_arena_copy(arena, code) : "",
        };
        failed = !key_copy || !children[count].error_code;
        count++;
    }
    *ret_rows = children;
    *ret_count = count;
    return failed ? qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a folder's items") : qr_rows_end(&rows, err);
}

/* ---- subtrees ---- */

static qr_rc collect(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                     struct qr_arena *arena, struct qr_item **ret_items, size_t *ret_count, qr_err *err)
{
    struct qr_item_list list = {.arena = arena};
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, vals, val_count, err));
    while (qr_rows_next(&rows)) {
        QR_TRY(qr_item_list_add(&list, &rows, err));
    }
    *ret_items = list.items;
    *ret_count = list.count;
    return qr_rows_end(&rows, err);
}

qr_rc qr_items_subtree(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, qr_str after, bool backward, int limit,
                       struct qr_arena *arena, struct qr_item **ret_items, size_t *ret_count, qr_err *err)
{
    qr_str end;
    QR_TRY(qr_path_end(root_path, arena, &end, err));
    if (backward) {
        const qr_str below = after.len ? after : end;
        return collect(tx,
                       "SELECT " QR_ITEM_COLUMNS " FROM item WHERE base_id = ?1 AND path >= ?2 AND path < ?3 "
                       "ORDER BY path DESC LIMIT ?4",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_blob(root_path.ptr, root_path.len),
                               qr_val_blob(below.ptr, below.len), qr_val_i64(limit)),
                       arena, ret_items, ret_count, err);
    }
    const qr_str above = after.len ? after : (qr_str){"", 0};
    return collect(tx,
                   "SELECT " QR_ITEM_COLUMNS " FROM item WHERE base_id = ?1 AND path >= ?2 AND path > ?3 AND "
                   "path < ?4 ORDER BY path LIMIT ?5",
                   QR_VALS(qr_val_uuid(&base_id), qr_val_blob(root_path.ptr, root_path.len),
                           qr_val_blob(above.ptr, above.len), qr_val_blob(end.ptr, end.len), qr_val_i64(limit)),
                   arena, ret_items, ret_count, err);
}

/* The first ancestor below the root of the subtree, or the item itself, that is deleting; empty = none. */
static qr_rc find_deleting_above(struct qr_tx *tx, qr_str root_path, qr_str path, qr_str *ret_above, qr_err *err)
{
    *ret_above = (qr_str){0};
    for (size_t len = root_path.len + QR_UUID_BYTES; len <= path.len; len += QR_UUID_BYTES) {
        int64_t ignored;
        bool is_deleting;
        QR_TRY(qr_tx_get_i64(tx, "SELECT 1 FROM item WHERE id = ?1 AND status = 8",
                             QR_VALS(qr_val_blob(path.ptr + len - QR_UUID_BYTES, QR_UUID_BYTES)), &is_deleting,
                             &ignored, err));
        if (is_deleting) {
            *ret_above = (qr_str){path.ptr, len};
            return QR_OK;
        }
    }
    return QR_OK;
}

/* The next row of a branch from `from` on. */
static qr_rc next_open(struct qr_tx *tx, const char *sql, qr_uuid base_id, qr_str from, qr_str end,
                       struct qr_arena *arena, qr_str *ret_path, enum qr_item_status *ret_status, qr_err *err)
{
    *ret_path = (qr_str){0};
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql,
                       QR_VALS(qr_val_uuid(&base_id), qr_val_blob(from.ptr, from.len), qr_val_blob(end.ptr, end.len)),
                       err));
    if (qr_rows_next(&rows)) {
        const qr_str path = qr_rows_str(&rows, 0);
        *ret_path = (qr_str){qr_arena_copy(arena, path), path.len};
        *ret_status = (enum qr_item_status)qr_rows_i64(&rows, 1);
        if (!ret_path->ptr) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a subtree");
        }
    }
    return qr_rows_end(&rows, err);
}

/* What is below something that is deleting is stepped over as a whole. */
static qr_rc count_branch(struct qr_tx *tx, const char *sql, qr_uuid base_id, qr_str root_path, int64_t limit,
                          struct qr_arena *arena, struct qr_status_counts *counts, qr_err *err)
{
    qr_str from = root_path, end;
    QR_TRY(qr_path_end(root_path, arena, &end, err));
    while (counts->total < limit) {
        qr_str path, above;
        enum qr_item_status status = QR_ITEM_IDLE;
        QR_TRY(next_open(tx, sql, base_id, from, end, arena, &path, &status, err));
        if (path.len == 0) {
            return QR_OK;
        }
        QR_TRY(find_deleting_above(tx, root_path, path, &above, err));
        if (above.len) {
            QR_TRY(qr_path_end(above, arena, &from, err));
            continue;
        }
        counts->of[status]++;
        counts->total++;
        /* the next path in the order of bytes: itself with a zero byte behind it, which no path has */
        char *next = qr_arena_alloc(arena, path.len + 1);
        if (!next) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a subtree");
        }
        memcpy(next, path.ptr, path.len);
        from = (qr_str){next, path.len + 1};
    }
    return QR_OK;
}

qr_rc qr_items_count_open(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, int64_t limit,
                          struct qr_status_counts *ret_counts, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    *ret_counts = (struct qr_status_counts){0};
    QR_TRY(count_branch(tx,
                        "SELECT path, status FROM item WHERE base_id = ?1 AND path >= ?2 AND path < ?3 AND "
                        "status IN " QR_ITEM_ACTIVE_SQL " ORDER BY path LIMIT 1",
                        base_id, root_path, limit, &arena, ret_counts, err));
    return count_branch(tx,
                        "SELECT path, status FROM item WHERE base_id = ?1 AND path >= ?2 AND path < ?3 AND "
                        "status = 1 ORDER BY path LIMIT 1",
                        base_id, root_path, limit, &arena, ret_counts, err);
}

qr_rc qr_items_has_deleting(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, bool *ret_has, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    int64_t ignored;
    qr_str end;
    QR_TRY(qr_path_end(root_path, &arena, &end, err));
    return qr_tx_get_i64(
        tx, "SELECT 1 FROM item WHERE base_id = ?1 AND path >= ?2 AND path < ?3 AND status = 8 LIMIT 1",
        QR_VALS(qr_val_uuid(&base_id), qr_val_blob(root_path.ptr, root_path.len), qr_val_blob(end.ptr, end.len)),
        ret_has, &ignored, err);
}

qr_rc qr_items_sum_subtree(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, int64_t limit, int64_t *ret_leaves,
                           int64_t *ret_chunks, int64_t *ret_tokens, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    qr_str end;
    QR_TRY(qr_path_end(root_path, &arena, &end, err));
    *ret_leaves = *ret_chunks = *ret_tokens = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT CAST(sum(1 - is_container) AS BIGINT), CAST(sum(chunk_count) AS BIGINT), "
                       "CAST(sum(token_count) AS BIGINT) FROM (SELECT is_container, chunk_count, token_count FROM item "
                       "WHERE base_id = ?1 AND path >= ?2 AND path < ?3 LIMIT ?4) AS part",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_blob(root_path.ptr, root_path.len),
                               qr_val_blob(end.ptr, end.len), qr_val_i64(limit)),
                       err));
    if (qr_rows_next(&rows)) {
        *ret_leaves = qr_rows_i64(&rows, 0);
        *ret_chunks = qr_rows_i64(&rows, 1);
        *ret_tokens = qr_rows_i64(&rows, 2);
    }
    return qr_rows_end(&rows, err);
}

/* ---- for runs ---- */

qr_rc qr_items_idle(struct qr_tx *tx, qr_uuid base_id, int64_t needs, int limit, struct qr_arena *arena,
                    struct qr_item **ret_items, size_t *ret_count, qr_err *err)
{
    return collect(tx,
                   "SELECT " QR_ITEM_COLUMNS " FROM item WHERE base_id = ?1 AND needs = ?2 AND status = 1 "
                   "ORDER BY depth, id LIMIT ?3",
                   QR_VALS(qr_val_uuid(&base_id), qr_val_i64(needs), qr_val_i64(limit)), arena, ret_items, ret_count,
                   err);
}

qr_rc qr_items_of_run(struct qr_tx *tx, qr_uuid run_id, qr_uuid after_id, int limit, struct qr_arena *arena,
                      struct qr_item **ret_items, size_t *ret_count, qr_err *err)
{
    return collect(tx,
                   "SELECT " QR_ITEM_COLUMNS " FROM item WHERE run_id = ?1 AND run_id IS NOT NULL AND id > ?2 AND "
                   "(status = 2 OR (status = 3 AND is_container = 0)) ORDER BY id LIMIT ?3",
                   QR_VALS(qr_val_uuid(&run_id), qr_val_uuid(&after_id), qr_val_i64(limit)), arena, ret_items,
                   ret_count, err);
}

/* ---- for recovery and check ---- */

/* Where a step over `limit` active items ends: *ret_end is behind them, empty when there are no more. */
static qr_rc end_of_step(struct qr_tx *tx, const struct qr_item_cursor *cursor, int limit,
                         struct qr_item_cursor *ret_end, qr_err *err)
{
    *ret_end = (struct qr_item_cursor){0};
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows,
        "SELECT base_id, path FROM item WHERE status IN " QR_ITEM_ACTIVE_SQL
        " AND (base_id, path) > (?1, ?2) ORDER BY base_id, path LIMIT 1 OFFSET ?3",
        QR_VALS(qr_val_uuid(&cursor->base_id), qr_val_blob(cursor->path, cursor->path_len), qr_val_i64(limit - 1)),
        err));
    if (qr_rows_next(&rows)) {
        const qr_str path = qr_rows_str(&rows, 1);
        ret_end->base_id = qr_rows_uuid(&rows, 0);
        ret_end->path_len = QR_MIN(path.len, sizeof ret_end->path);
        memcpy(ret_end->path, path.ptr, ret_end->path_len);
    }
    return qr_rows_end(&rows, err);
}

#define WITHOUT_STAGE_JOB                                                                                              \
    " AND NOT (is_container = 1 AND status = 3) AND NOT EXISTS (SELECT 1 FROM job WHERE job.item_id = item.id AND "    \
    "job.item_id IS NOT NULL AND job.state IN " QR_JOB_OPEN_SQL " AND job.queue <> 5 AND job.queue <> 4 AND "          \
    "job.type <> 'refresh-source')"

qr_rc qr_items_without_job(struct qr_tx *tx, struct qr_item_cursor *cursor, int limit, struct qr_arena *arena,
                           struct qr_item **ret_items, size_t *ret_count, qr_err *err)
{
    struct qr_item_cursor end;
    qr_uuid last;
    memset(last.bytes, 0xff, sizeof last.bytes);
    QR_TRY(end_of_step(tx, cursor, limit, &end, err));
    QR_TRY(collect(tx,
                   "SELECT " QR_ITEM_COLUMNS " FROM item WHERE status IN " QR_ITEM_ACTIVE_SQL
                   " AND (base_id, path) > (?1, ?2) AND (base_id, path) <= (?3, ?4)" WITHOUT_STAGE_JOB
                   " ORDER BY base_id, path LIMIT ?5",
                   QR_VALS(qr_val_uuid(&cursor->base_id), qr_val_blob(cursor->path, cursor->path_len),
                           qr_val_uuid(end.path_len ? &end.base_id : &last), qr_val_blob(end.path, end.path_len),
                           qr_val_i64(limit)),
                   arena, ret_items, ret_count, err));
    *cursor = end;
    return QR_OK;
}

qr_rc qr_items_deleting_roots(struct qr_tx *tx, qr_uuid after, int limit, struct qr_arena *arena,
                              struct qr_item **ret_items, size_t *ret_count, qr_err *err)
{
    return collect(tx, "SELECT " QR_ITEM_COLUMNS " FROM item WHERE status = 8 AND id > ?1 ORDER BY id LIMIT ?2",
                   QR_VALS(qr_val_uuid(&after), qr_val_i64(limit)), arena, ret_items, ret_count, err);
}
