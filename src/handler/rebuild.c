/* A base and its index store know each other by a stamp (X4). The first stamp is the base's id, so that several jobs may give
 * it at once; one that is made by a rebuild is new, so that a store that comes back from somewhere is not taken for it. */
#include "handler/rebuild.h"

#include "base/failpoint.h"
#include "handler/chunking.h"
#include "handler/embedding.h"
#include "store/cleanup.h"

enum { ITEMS_A_PAGE = 200 };

/* ---- the stamp ---- */

struct stamping {
    const struct qr_attempt *attempt;
    char stamp[QR_INDEX_STAMP_SIZE];
    bool is_new; /* of a store that is made anew */
};

static qr_rc save_stamp(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct stamping *stamping = arg;
    QR_TRY(qr_base_set_stamp(tx, stamping->attempt->base.id, stamping->stamp, err));
    return stamping->is_new ? qr_base_raise_epoch(tx, stamping->attempt->base.id, err) : QR_OK;
}

/* Before a store is dropped: from now on no stage begins that would count on it, and those under way, whose vectors go with
 * it, are run again when they end (MODEL-2). */
static qr_rc announce_stamp(struct qr_attempt *attempt, qr_uuid stamp, qr_err *err)
{
    struct stamping stamping = {.attempt = attempt, .is_new = true};
    qr_uuid_format(stamp, stamping.stamp);
    QR_TRY(qr_job_write(attempt->run, QR_DURABLE, save_stamp, &stamping, err));
    QR_FAILPOINT("index.rebuild.announced", err);
    return QR_OK;
}

/* The store first: a base that was given a stamp has a store that carries it. */
static qr_rc set_stamp(struct qr_attempt *attempt, qr_uuid stamp, qr_err *err)
{
    struct stamping stamping = {.attempt = attempt};
    qr_uuid_format(stamp, stamping.stamp);
    QR_TRY(qr_index_set_stamp(attempt->context->index, attempt->base.id, stamping.stamp, err));
    QR_FAILPOINT("index.stamp.stored", err);
    return qr_job_write(attempt->run, QR_DURABLE, save_stamp, &stamping, err);
}

qr_rc qr_index_is_own(struct qr_index_set *index, const struct qr_base *base, bool *ret_is_own, qr_err *err)
{
    char stamp[QR_INDEX_STAMP_SIZE];
    const qr_rc rc = qr_index_stamp(index, base->id, stamp, err);
    *ret_is_own = rc == QR_OK && strcmp(stamp, base->index_stamp) == 0;
    return rc == QR_CORRUPT ? QR_OK : rc;
}

qr_rc qr_index_require_own(struct qr_attempt *attempt, qr_err *err)
{
    if (!attempt->base.index_stamp[0]) {
        return set_stamp(attempt, attempt->base.id, err);
    }
    bool is_own;
    QR_TRY(qr_index_is_own(attempt->context->index, &attempt->base, &is_own, err));
    return is_own ? QR_OK
                  : qr_fail(err, QR_CODE_INDEX_LOST, "the base's index is missing or not its own; it is rebuilt first");
}

/* ---- rebuilding ---- */

struct rebuild {
    struct qr_attempt *attempt;
    struct qr_arena arena; /* of a page */
    struct qr_item *items;
    size_t count;
    char before[(QR_ITEM_DEPTH_MAX + 1) * QR_UUID_BYTES];
    size_t before_len;
    int64_t done;
    qr_uuid *without_text; /* in the run's arena */
    size_t without_count, without_capacity;
};

static qr_rc next_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rebuild *rebuild = arg;
    qr_arena_reset(&rebuild->arena);
    return qr_items_of_base(tx, rebuild->attempt->base.id, (qr_str){rebuild->before, rebuild->before_len}, ITEMS_A_PAGE,
                            &rebuild->arena, &rebuild->items, &rebuild->count, err);
}

struct find_text {
    struct qr_arena *arena;
    const struct qr_item *item;
    int64_t generation;
    bool found, is_deleting;
    struct qr_artifact artifact;
};

static qr_rc find_text(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct find_text *find = arg;
    find->found = false;
    QR_TRY(qr_item_path_is_deleting(tx, find->item->path, &find->is_deleting, err));
    if (find->is_deleting) {
        return QR_OK;
    }
    QR_TRY(qr_artifact_find(tx, find->item->id, QR_ARTIFACT_TEXT, find->generation, find->arena, &find->found,
                            &find->artifact, err));
    find->found = find->found && find->artifact.generation == find->generation;
    return QR_OK;
}

static qr_rc note_without_text(struct rebuild *rebuild, qr_uuid id, qr_err *err)
{
    if (rebuild->without_count == rebuild->without_capacity) {
        const size_t capacity = QR_MAX((size_t)64, rebuild->without_capacity * 2);
        qr_uuid *larger = qr_arena_array(rebuild->attempt->run->arena, capacity, sizeof larger[0]);
        if (!larger) {
            return qr_handler_out_of_memory(err);
        }
        if (rebuild->without_count) {
            memcpy(larger, rebuild->without_text, rebuild->without_count * sizeof larger[0]);
        }
        rebuild->without_text = larger;
        rebuild->without_capacity = capacity;
    }
    rebuild->without_text[rebuild->without_count++] = id;
    return QR_OK;
}

static qr_rc rebuild_generation(struct rebuild *rebuild, const struct qr_item *item, int64_t generation, bool embeds,
                                qr_err *err)
{
    struct qr_attempt *attempt = rebuild->attempt;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct find_text find = {.arena = &rebuild->arena, .item = item, .generation = generation};
    struct qr_embedded embedded;
    int64_t chunk_count, token_count;
    QR_TRY(qr_db_read(attempt->run->db, find_text, &find, err));
    if (find.is_deleting) {
        return QR_OK;
    }
    if (!find.found) {
        return note_without_text(rebuild, item->id, err);
    }
    const qr_rc rc = qr_artifact_read(attempt->context->artifacts, attempt->run->db, &find.artifact, &text, err);
    if (rc == QR_CORRUPT || rc == QR_NOT_FOUND) {
        return note_without_text(rebuild, item->id, err);
    }
    QR_TRY(rc);
    QR_TRY(qr_write_text_chunks(attempt, item, generation, qr_buf_str(&text), &chunk_count, &token_count, err));
    return embeds ? qr_embed_chunks(attempt, item, generation, &embedded, err) : QR_OK;
}

/* What search shows; and of an attempt under way the chunks that its next stage counts on. */
static qr_rc rebuild_item(struct rebuild *rebuild, const struct qr_item *item, qr_err *err)
{
    if (item->is_container || item->status == QR_ITEM_DELETING) {
        return QR_OK;
    }
    if (item->live_generation > 0) {
        QR_TRY(rebuild_generation(rebuild, item, item->live_generation, true, err));
    }
    if (item->chunk_generation == item->generation && item->live_generation < item->generation) {
        QR_TRY(rebuild_generation(rebuild, item, item->generation, false, err));
    }
    return QR_OK;
}

static qr_rc rebuild_all(struct rebuild *rebuild, qr_err *err)
{
    struct qr_attempt *attempt = rebuild->attempt;
    do {
        QR_TRY(qr_attempt_check(attempt, err));
        QR_TRY(qr_db_read(attempt->run->db, next_page, rebuild, err));
        for (size_t i = 0; i < rebuild->count; i++) {
            const struct qr_item *item = &rebuild->items[i];
            QR_TRY(rebuild_item(rebuild, item, err));
            rebuild->before_len = QR_MIN(item->path.len, sizeof rebuild->before);
            memcpy(rebuild->before, item->path.ptr, rebuild->before_len);
        }
        rebuild->done += (int64_t)rebuild->count;
        qr_job_progress(attempt->run, rebuild->done, 0);
    } while (rebuild->count == ITEMS_A_PAGE);
    return QR_OK;
}

qr_rc qr_index_rebuild(struct qr_attempt *attempt, qr_uuid **ret_without_text, size_t *ret_count, qr_err *err)
{
    struct rebuild rebuild = {.attempt = attempt};
    const qr_uuid stamp = qr_uuid_next(attempt->context->ids);
    attempt->is_rebuilding = true;
    QR_TRY(announce_stamp(attempt, stamp, err));
    QR_TRY(qr_index_drop(attempt->context->index, attempt->base.id, err));
    QR_FAILPOINT("index.rebuild.dropped", err);
    qr_arena_init(&rebuild.arena, 0);
    const qr_rc rc = rebuild_all(&rebuild, err);
    qr_arena_done(&rebuild.arena);
    QR_TRY(rc);
    QR_TRY(qr_index_sync(attempt->context->index, attempt->base.id, err));
    QR_TRY(set_stamp(attempt, stamp, err));
    *ret_without_text = rebuild.without_text;
    *ret_count = rebuild.without_count;
    return QR_OK;
}
