/* The index of a base against its items. They share no snapshot, so the order of reading matters: rows are written while
 * their item is there and removed before it goes. A row is therefore read before its item, and what looks wrong is read
 * once more, row and item, between two looks at the item that must agree. */
#include "check/check_internal.h"

#include "base/mem.h"

struct extent_look {
    struct qr_arena *arena;
    const struct qr_index_extent *extents;
    size_t count;
    struct extent_item {
        bool found;
        bool is_nobodys; /* it, what it is in or its base is deleting */
        bool has_purge;
        int64_t live_model; /* of its base; 0 = none */
        struct qr_check_item item;
    } items[QR_CHECK_PAGE_MAX];
};

struct index_check {
    struct qr_checker *checker;
    const struct qr_base *base;
    struct qr_arena *arena;
    int64_t live_model; /* as it was when the check came to the base */
    int64_t matched;    /* items whose live rows are all there */
    struct qr_index_extent extents[QR_CHECK_PAGE_MAX];
    struct extent_look look;
};

static qr_rc read_item(struct qr_tx *tx, struct qr_arena *arena, qr_uuid id, struct extent_item *ret, qr_err *err)
{
    *ret = (struct extent_item){0};
    return qr_check_item(tx, id, arena, &ret->found, &ret->item, err);
}

static qr_rc read_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct extent_look *look = arg;
    qr_arena_reset(look->arena);
    for (size_t i = 0; i < look->count; i++) {
        QR_TRY(read_item(tx, look->arena, look->extents[i].item_id, &look->items[i], err));
    }
    return QR_OK;
}

/* ---- one that looks wrong ---- */

struct item_look {
    struct qr_arena arena;
    qr_uuid id, base_id;
    struct extent_item is;
};

static qr_rc read_closely(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct item_look *look = arg;
    struct qr_base base;
    bool found;
    qr_arena_reset(&look->arena);
    QR_TRY(read_item(tx, &look->arena, look->id, &look->is, err));
    QR_TRY(qr_base_find(tx, look->base_id, &look->arena, &found, &base, err));
    look->is.is_nobodys = !found || base.status == QR_BASE_DELETING;
    if (found) {
        struct qr_base_models models;
        QR_TRY(qr_base_models(&base, &look->arena, &models, err));
        look->is.live_model = models.live_key;
    }
    if (look->is.found && !look->is.is_nobodys) {
        QR_TRY(qr_item_path_is_deleting(tx, look->is.item.path, &look->is.is_nobodys, err));
        QR_TRY(qr_check_has_purge(tx, look->id, &look->is.has_purge, err));
    }
    return QR_OK;
}

static bool is_the_same(const struct extent_item *a, const struct extent_item *b)
{
    return a->found == b->found && a->is_nobodys == b->is_nobodys && a->has_purge == b->has_purge &&
           a->item.status == b->item.status && a->item.generation == b->item.generation &&
           a->live_model == b->live_model && a->item.live_generation == b->item.live_generation &&
           a->item.chunk_count == b->item.chunk_count;
}

/* What the index has of (item, generation): nothing, where it has no row of it. */
static qr_rc count_rows(struct index_check *check, int64_t model, qr_uuid item_id, int64_t generation,
                        struct qr_index_extent *ret_extent, qr_err *err)
{
    size_t count;
    QR_TRY(qr_index_extents(check->checker->options->index, check->base->id, model, item_id, generation - 1, 1,
                            ret_extent, &count, err));
    if (count == 0 || !qr_uuid_equal(ret_extent->item_id, item_id) || ret_extent->generation != generation) {
        *ret_extent = (struct qr_index_extent){.item_id = item_id, .generation = generation};
    }
    return QR_OK;
}

/* I11 */
static int64_t missing_vectors(const struct qr_index_extent *extent, int64_t model)
{
    return model ? extent->chunk_count - extent->vector_count - extent->failed_count : 0;
}

/* Reads item, rows and item; *ret_is_still: the item did not change meanwhile. */
static qr_rc look_closely(struct index_check *check, qr_uuid item_id, int64_t generation, struct extent_item *ret_item,
                          struct qr_index_extent *ret_rows, bool *ret_is_still, qr_err *err)
{
    struct qr_db *db = check->checker->options->db;
    struct item_look look = {.id = item_id, .base_id = check->base->id};
    qr_arena_init(&look.arena, 0);
    qr_rc rc = qr_db_read(db, read_closely, &look, err);
    *ret_item = look.is;
    rc = rc == QR_OK ? count_rows(check, look.is.live_model, item_id, generation, ret_rows, err) : rc;
    rc = rc == QR_OK ? qr_db_read(db, read_closely, &look, err) : rc;
    *ret_is_still = rc == QR_OK && is_the_same(ret_item, &look.is);
    ret_item->item.path = ret_item->item.error_code = ret_item->item.error_message = QR_STR("");
    qr_arena_done(&look.arena);
    return rc;
}

/* ---- findings ---- */

static qr_rc report(struct index_check *check, qr_uuid item_id, struct qr_check_finding finding, qr_err *err)
{
    finding.base_id = check->base->id;
    finding.item_id = item_id;
    return qr_checker_report(check->checker, &finding, err);
}

static qr_rc report_orphan(struct index_check *check, qr_uuid item_id, int64_t chunks, qr_err *err)
{
    struct qr_check_finding finding =
        qr_finding("I7", "index_orphan", "the index has %lld chunks of an item that is gone", (long long)chunks);
    if (check->checker->options->repair) {
        QR_TRY(qr_index_delete_items(check->checker->options->index, check->base->id, &item_id, 1, err));
        finding.is_repaired = true;
    }
    return report(check, item_id, finding, err);
}

static qr_rc report_dead(struct index_check *check, const struct qr_check_item *item, int64_t generation, qr_err *err)
{
    struct qr_check_finding finding =
        qr_finding("I3", "generation_dead", "the index has chunks of generation %lld, but %lld is live and %lld wanted",
                   (long long)generation, (long long)item->live_generation, (long long)item->generation);
    /* what is above the wanted one may belong to somebody who began meanwhile: purge leaves it alone, so do we */
    if (check->checker->options->repair && generation < item->generation) {
        QR_TRY(qr_index_purge_item(check->checker->options->index, check->base->id, item->id, item->live_generation,
                                   item->generation, err));
        finding.is_repaired = true;
    }
    return report(check, item->id, finding, err);
}

static qr_rc report_missing(struct index_check *check, const struct qr_check_item *item, int64_t chunks, qr_err *err)
{
    return report(check, item->id,
                  qr_finding("I3", "chunks_wrong", "%lld chunks are live, but the index has %lld: reindex it",
                             (long long)item->chunk_count, (long long)chunks),
                  err);
}

static qr_rc report_vectors(struct index_check *check, const struct qr_check_item *item, int64_t missing, qr_err *err)
{
    return report(check, item->id,
                  qr_finding("I11", "vectors_missing",
                             "%lld live chunks have no vector of the base's model: reindex it", (long long)missing),
                  err);
}

/* Rows of generations that are neither live nor wanted are a finding where nobody will take them away: while an item is at
 * work, or has failed and may be tried again, the next purge is still to come. */
static bool is_dead(const struct extent_item *of, int64_t generation)
{
    return generation != of->item.live_generation && generation != of->item.generation && !of->has_purge &&
           of->item.status == QR_ITEM_COMPLETED;
}

static bool looks_right(const struct index_check *check, const struct qr_index_extent *extent,
                        const struct extent_item *of)
{
    if (!of->found) {
        return false;
    }
    if (extent->generation == of->item.live_generation) {
        return extent->chunk_count == of->item.chunk_count && missing_vectors(extent, check->live_model) == 0;
    }
    return !is_dead(of, extent->generation);
}

static qr_rc examine(struct index_check *check, qr_uuid item_id, int64_t generation, qr_err *err)
{
    struct extent_item of;
    struct qr_index_extent rows;
    bool is_still;
    QR_TRY(look_closely(check, item_id, generation, &of, &rows, &is_still, err));
    const int64_t chunks = rows.chunk_count, missing = missing_vectors(&rows, of.live_model);
    if (!is_still || of.is_nobodys) {
        return QR_OK;
    }
    if (!of.found) {
        return chunks ? report_orphan(check, item_id, chunks, err) : QR_OK;
    }
    if (generation == of.item.live_generation) {
        if (chunks != of.item.chunk_count) {
            return report_missing(check, &of.item, chunks, err);
        }
        return missing > 0 ? report_vectors(check, &of.item, missing, err) : QR_OK;
    }
    return chunks && is_dead(&of, generation) ? report_dead(check, &of.item, generation, err) : QR_OK;
}

/* ---- from the index to the items ---- */

static qr_rc look_at_page(struct index_check *check, size_t count, qr_err *err)
{
    check->look.extents = check->extents;
    check->look.count = count;
    QR_TRY(qr_db_read(check->checker->options->db, read_items, &check->look, err));
    for (size_t i = 0; i < count; i++) {
        const struct qr_index_extent *extent = &check->extents[i];
        const struct extent_item *of = &check->look.items[i];
        check->checker->result->chunks += extent->chunk_count;
        if (looks_right(check, extent, of)) {
            check->matched += extent->generation == of->item.live_generation;
        } else {
            QR_TRY(examine(check, extent->item_id, extent->generation, err));
            /* what was reported is not looked for again below */
            check->matched += of->found && extent->generation == of->item.live_generation;
        }
    }
    return QR_OK;
}

static qr_rc go_through_index(struct index_check *check, qr_err *err)
{
    qr_uuid after = {0};
    int64_t after_generation = 0;
    size_t count;
    do {
        QR_TRY(qr_index_extents(check->checker->options->index, check->base->id, check->live_model, after,
                                after_generation, check->checker->page, check->extents, &count, err));
        if (count) {
            after = check->extents[count - 1].item_id;
            after_generation = check->extents[count - 1].generation;
            QR_TRY(look_at_page(check, count, err));
        }
    } while (count == (size_t)check->checker->page);
    return QR_OK;
}

/* ---- from the items to the index: only where rows are missing, since it asks for each item ---- */

struct item_page {
    struct qr_arena *arena;
    int limit;
    qr_uuid base_id;
    struct qr_buf after;
    struct qr_check_items found;
};

static qr_rc read_item_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct item_page *page = arg;
    qr_arena_reset(page->arena);
    return qr_check_items(tx, page->base_id, qr_buf_str(&page->after), page->limit, page->arena, &page->found, err);
}

static qr_rc ask_for_items(struct index_check *check, const struct item_page *page, qr_err *err)
{
    for (size_t i = 0; i < page->found.count; i++) {
        const struct qr_check_item *item = &page->found.items[i];
        struct qr_index_extent rows = {.chunk_count = 1};
        if (!item->is_container && item->live_generation > 0 && item->chunk_count > 0) {
            QR_TRY(count_rows(check, 0, item->id, item->live_generation, &rows, err));
        }
        if (rows.chunk_count == 0) { /* any other number was seen from the index's side */
            QR_TRY(examine(check, item->id, item->live_generation, err));
        }
    }
    return QR_OK;
}

static qr_rc go_through_items(struct index_check *check, qr_err *err)
{
    struct item_page page = {.arena = check->arena, .limit = check->checker->page, .base_id = check->base->id};
    qr_rc rc;
    qr_buf_init(&page.after, 0);
    do {
        rc = qr_db_read(check->checker->options->db, read_item_page, &page, err);
        rc = rc == QR_OK ? ask_for_items(check, &page, err) : rc;
        if (rc == QR_OK && page.found.count) {
            qr_buf_clear(&page.after);
            qr_buf_add(&page.after, page.found.items[page.found.count - 1].path);
            rc = qr_buf_check(&page.after, err);
        }
    } while (rc == QR_OK && page.found.count == (size_t)check->checker->page);
    qr_buf_done(&page.after);
    return rc;
}

/* ---- the whole ---- */

/* Base and store are given a stamp one after the other: where they differ both are read once more. */
struct stamp_look {
    struct qr_arena *arena;
    qr_uuid base_id;
    bool is_ready;
    struct qr_base base;
};

static qr_rc read_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct stamp_look *look = arg;
    bool found;
    qr_arena_reset(look->arena);
    QR_TRY(qr_base_find(tx, look->base_id, look->arena, &found, &look->base, err));
    look->is_ready = found && look->base.status == QR_BASE_READY && look->base.index_stamp[0];
    return QR_OK;
}

static qr_rc compare_stamps(struct index_check *check, bool *ret_is_ready, bool *ret_is_own, qr_err *err)
{
    struct stamp_look look = {.arena = check->arena, .base_id = check->base->id};
    *ret_is_own = false;
    for (int i = 0; i < 2 && !*ret_is_own; i++) {
        char stamp[QR_INDEX_STAMP_SIZE];
        QR_TRY(qr_db_read(check->checker->options->db, read_base, &look, err));
        *ret_is_ready = look.is_ready;
        if (!look.is_ready) {
            return QR_OK; /* a failed base has to be restored first; one without a stamp has no index yet */
        }
        QR_TRY(qr_index_stamp(check->checker->options->index, look.base_id, stamp, err));
        *ret_is_own = strcmp(stamp, look.base.index_stamp) == 0;
    }
    return QR_OK;
}

/* ---- models ---- */

struct models_look {
    struct index_check *check;
    bool is_building; /* its job takes away what is too much */
    int64_t epoch;
    struct qr_base_models models;
};

static qr_rc read_models(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct models_look *look = arg;
    struct qr_base base;
    struct qr_job job;
    bool found, has_job;
    qr_arena_reset(look->check->arena);
    *look = (struct models_look){.check = look->check};
    QR_TRY(qr_base_find(tx, look->check->base->id, look->check->arena, &found, &base, err));
    if (!found) {
        return QR_OK;
    }
    look->epoch = base.vector_epoch;
    QR_TRY(qr_base_models(&base, look->check->arena, &look->models, err));
    QR_TRY(qr_jobs_find(tx, base.build_job_id, look->check->arena, &has_job, &job, err));
    look->is_building = has_job && qr_job_state_is_open(job.state);
    return QR_OK;
}

static bool is_known(const struct qr_base_models *models, int64_t model)
{
    return model == models->live_key || model == models->wanted_key || model == models->previous_key;
}

static qr_rc read_epoch(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct models_look *look = arg;
    return qr_base_epoch(tx, look->check->base->id, &look->epoch, err);
}

/* Nobody has chosen another model since. */
static qr_rc require_same_models(void *arg, qr_err *err)
{
    const struct models_look *before = arg;
    struct models_look now = {.check = before->check};
    QR_TRY(qr_db_read(before->check->checker->options->db, read_epoch, &now, err));
    return now.epoch == before->epoch ? QR_OK : qr_fail(err, QR_CODE_STALE, "the models of the base have changed");
}

/* I7: vectors that nobody uses. Models are read after them, so that one which has just begun is known. */
static qr_rc check_models(struct index_check *check, qr_err *err)
{
    enum { MODELS_MAX = 16 };
    struct models_look look = {.check = check};
    int64_t models[MODELS_MAX];
    size_t count, unknown = 0;
    struct qr_index_set *index = check->checker->options->index;
    QR_TRY(qr_index_models(index, check->base->id, MODELS_MAX, models, &count, err));
    QR_TRY(qr_db_read(check->checker->options->db, read_models, &look, err));
    for (size_t i = 0; i < count; i++) {
        unknown += !is_known(&look.models, models[i]);
    }
    if (unknown == 0 || look.is_building) {
        return QR_OK;
    }
    struct qr_check_finding finding =
        qr_finding("I7", "vectors_unknown", "the index has vectors of %zu models that the base does not use", unknown);
    if (check->checker->options->repair) {
        const int64_t kept[] = {look.models.live_key, look.models.wanted_key, look.models.previous_key};
        const struct qr_index_guard guard = {require_same_models, &look};
        const qr_rc rc = qr_index_keep_models(index, check->base->id, kept, QR_COUNT(kept), &guard, err);
        QR_TRY(rc == QR_STALE ? QR_OK : rc);
        finding.is_repaired = rc == QR_OK;
    }
    return report(check, (qr_uuid){0}, finding, err);
}

static qr_rc look_up_model(struct index_check *check, qr_err *err)
{
    struct models_look look = {.check = check};
    QR_TRY(qr_db_read(check->checker->options->db, read_models, &look, err));
    check->live_model = look.models.live_key;
    return QR_OK;
}

static qr_rc go_through(struct index_check *check, int64_t live, qr_err *err)
{
    bool is_ready, is_own;
    QR_TRY(compare_stamps(check, &is_ready, &is_own, err));
    if (!is_ready) {
        return QR_OK;
    }
    if (!is_own) {
        return report(check, (qr_uuid){0},
                      qr_finding("I7", "index_foreign",
                                 "the index is missing or not the base's own: the next job that "
                                 "needs it rebuilds it"),
                      err);
    }
    QR_TRY(look_up_model(check, err));
    QR_TRY(go_through_index(check, err));
    QR_TRY(check->matched < live ? go_through_items(check, err) : QR_OK);
    return check_models(check, err);
}

qr_rc qr_check_index(struct qr_checker *checker, const struct qr_base *base, int64_t live, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) struct index_check *check = qr_alloc_zero(sizeof *check);
    if (!check) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a check");
    }
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    *check = (struct index_check){.checker = checker, .base = base, .arena = &arena, .look.arena = &arena};
    qr_err damage = {0};
    const qr_rc rc = go_through(check, live, &damage);
    if (rc == QR_CORRUPT) {
        return report(check, (qr_uuid){0}, qr_finding("I7", "index_damaged", "%s", damage.msg), err);
    }
    if (rc == QR_NOT_FOUND) {
        return QR_OK; /* the base was deleted meanwhile */
    }
    if (rc != QR_OK) {
        *err = damage;
    }
    return rc;
}
