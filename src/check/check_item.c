/* What one item must be like. The pass over the tree names those that look wrong; here each is read anew with what is
 * around it, in one snapshot, so that what is reported was so. */
#include "check/check_item.h"

#include "store/change.h"

enum { FINDINGS_MAX = 16 };

struct examination {
    struct qr_checker *checker;
    struct qr_arena arena;
    qr_uuid id;
    struct qr_check_item item;
    struct qr_check_finding findings[FINDINGS_MAX];
    size_t count;
};

/* ---- the row alone ---- */

bool qr_check_code_is_known(qr_str code)
{
    char name[64];
    if (code.len >= sizeof name) {
        return false;
    }
    memcpy(name, code.ptr, code.len);
    name[code.len] = '\0';
    return code.len == 0 || qr_code_find(name) != QR_CODE_COUNT;
}

static bool generations_are_ordered(const struct qr_check_item *item)
{
    return item->generation >= 0 && item->live_generation <= item->generation &&
           item->kept_generation <= item->generation && item->text_generation <= item->generation &&
           item->chunk_generation <= item->generation && item->expanded_generation <= item->generation;
}

static bool has_its_jobs(const struct qr_check_item *item)
{
    const bool is_at_work = qr_item_is_at_work(item->is_container, (enum qr_item_status)item->status);
    return item->stage_jobs == (is_at_work ? 1 : 0);
}

static bool is_known(const struct qr_check_item *item)
{
    return qr_check_status_is_known(item->status) && item->type >= QR_ITEM_DIRECTORY && item->type <= QR_ITEM_URL;
}

bool qr_check_looks_right(const struct qr_check_item *item)
{
    return is_known(item) && has_its_jobs(item) && generations_are_ordered(item) && !item->lacks_text &&
           !item->lacks_cleanup && qr_check_code_is_known(item->error_code) && qr_utf8_valid(item->error_message);
}

/* ---- with what is around it ---- */

static void add(struct examination *look, struct qr_check_finding finding)
{
    finding.base_id = look->item.base_id;
    finding.item_id = look->item.id;
    if (look->count < FINDINGS_MAX) {
        look->findings[look->count++] = finding;
    }
}

static void judge_row(struct examination *look)
{
    const struct qr_check_item *item = &look->item;
    if (!is_known(item)) {
        add(look, qr_finding("I1", "status_unknown", "status %lld of type %lld is none there is",
                             (long long)item->status, (long long)item->type));
    } else if (!has_its_jobs(item)) {
        const bool lacks = item->stage_jobs == 0;
        add(look, qr_finding("I1", lacks ? "job_missing" : "jobs_too_many",
                             "it is %s and has %lld open stage jobs of its generation%s",
                             qr_item_status_name((enum qr_item_status)item->status), (long long)item->stage_jobs,
                             lacks ? ": run quire wait" : ""));
    }
    if (!generations_are_ordered(item)) {
        add(look, qr_finding("I3", "generations_wrong",
                             "its generation is %lld, but live is %lld, kept %lld, text %lld, chunks "
                             "%lld, expanded %lld",
                             (long long)item->generation, (long long)item->live_generation,
                             (long long)item->kept_generation, (long long)item->text_generation,
                             (long long)item->chunk_generation, (long long)item->expanded_generation));
    }
    if (item->lacks_text) {
        add(look, qr_finding("I7", "text_missing", "its text was read, but is not stored: reindex it"));
    }
    if (!qr_check_code_is_known(item->error_code)) {
        add(look, qr_finding("I10", "error_code_unknown", "the code of its error is none there is"));
    }
    if (!qr_utf8_valid(item->error_message)) {
        add(look, qr_finding("I10", "text_invalid", "the message of its error is no text"));
    }
}

/* Its path is the parent's and its own id. */
static bool path_follows(const struct qr_check_item *item, qr_str parent_path)
{
    return item->path.len == parent_path.len + QR_UUID_BYTES &&
           memcmp(item->path.ptr, parent_path.ptr, parent_path.len) == 0 &&
           memcmp(item->path.ptr + parent_path.len, item->id.bytes, QR_UUID_BYTES) == 0 &&
           item->path.len <= (size_t)(QR_ITEM_DEPTH_MAX + 1) * QR_UUID_BYTES &&
           item->depth == (int64_t)(parent_path.len / QR_UUID_BYTES);
}

static qr_rc judge_place(struct examination *look, struct qr_tx *tx, qr_err *err)
{
    const struct qr_check_item *item = &look->item;
    struct qr_check_item parent = {.path = QR_STR("")};
    if (!qr_uuid_equal(item->parent_id, item->base_id)) {
        bool found;
        QR_TRY(qr_check_item(tx, item->parent_id, &look->arena, &found, &parent, err));
        if (!found) {
            add(look, qr_finding("I4", "parent_missing", "what it is in is gone"));
            return QR_OK;
        }
        if (!qr_uuid_equal(parent.base_id, item->base_id)) {
            add(look, qr_finding("I4", "parent_foreign", "what it is in belongs to another base"));
        } else if (!parent.is_container) {
            add(look, qr_finding("I4", "parent_wrong", "what it is in is no container"));
        }
    }
    if (!path_follows(item, parent.path)) {
        add(look, qr_finding("I4", "path_wrong", "its path or depth does not follow from what it is in"));
    }
    return QR_OK;
}

static qr_rc judge_counters(struct examination *look, struct qr_tx *tx, qr_err *err)
{
    const struct qr_check_item *item = &look->item;
    const struct qr_child_counts *is = &item->counts;
    struct qr_child_counts must;
    QR_TRY(qr_check_count_children(tx, item->id, &must, err));
    if (is->completed != must.completed || is->failed != must.failed || is->active != must.active ||
        is->idle != must.idle) {
        add(look, qr_finding("I6", "counters_wrong",
                             "it counts %lld completed, %lld failed, %lld active, %lld idle, but holds %lld, %lld, "
                             "%lld, %lld",
                             (long long)is->completed, (long long)is->failed, (long long)is->active,
                             (long long)is->idle, (long long)must.completed, (long long)must.failed,
                             (long long)must.active, (long long)must.idle));
    }
    const enum qr_item_status status = qr_item_roll_up(&must, item->expansion_failed, item->expanded_generation > 0);
    if (item->status != QR_ITEM_PREPARING && item->status != (int64_t)status) {
        add(look, qr_finding("I6", "status_wrong", "it is %s, but by what it holds it is %s",
                             qr_item_status_name((enum qr_item_status)item->status), qr_item_status_name(status)));
    }
    return QR_OK;
}

/* Whether its base or something that it is in is deleting (K2). */
static qr_rc is_nobodys(struct examination *look, struct qr_tx *tx, bool *ret_is, qr_err *err)
{
    const struct qr_check_item *item = &look->item;
    struct qr_base base;
    bool found;
    QR_TRY(qr_base_find(tx, item->base_id, &look->arena, &found, &base, err));
    *ret_is = !found || base.status == QR_BASE_DELETING;
    if (*ret_is || item->path.len <= QR_UUID_BYTES) {
        return QR_OK;
    }
    return qr_item_path_is_deleting(tx, (qr_str){item->path.ptr, item->path.len - QR_UUID_BYTES}, ret_is, err);
}

static qr_rc examine(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct examination *look = arg;
    bool found, is_gone = true;
    look->count = 0;
    qr_arena_reset(&look->arena);
    QR_TRY(qr_check_item(tx, look->id, &look->arena, &found, &look->item, err));
    if (found) {
        QR_TRY(is_nobodys(look, tx, &is_gone, err));
    }
    if (is_gone) {
        return QR_OK;
    }
    if (look->item.status == QR_ITEM_DELETING) {
        if (look->item.lacks_cleanup) {
            add(look, qr_finding("I4", "delete_without_job", "it is deleting, and no job does it: run quire wait"));
        }
        return QR_OK;
    }
    judge_row(look);
    QR_TRY(judge_place(look, tx, err));
    return look->item.is_container && is_known(&look->item) ? judge_counters(look, tx, err) : QR_OK;
}

/* ---- repair ---- */

static qr_rc mend_counters(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct examination *look = arg;
    struct qr_item item;
    bool found, is_deleting = false;
    struct qr_child_counts counts;
    QR_CHANGE(change);
    QR_TRY(qr_change_begin(&change, tx, look->checker->options->ids, &look->item.base_id, 1, err));
    QR_TRY(qr_item_find(tx, look->id, &change.arena, &found, &item, err));
    if (found) {
        QR_TRY(qr_item_is_deleting(&change, &item, &is_deleting, err));
    }
    if (!found || is_deleting) {
        return QR_OK;
    }
    QR_TRY(qr_check_count_children(tx, item.id, &counts, err));
    QR_TRY(qr_check_set_counts(tx, item.id, &counts, err));
    if (item.status != QR_ITEM_PREPARING) {
        QR_TRY(qr_item_roll_up_later(&change, &item, err));
    }
    return qr_change_finish(&change, err);
}

static qr_rc repair(struct examination *look, qr_err *err)
{
    bool is_mended = false;
    for (size_t i = 0; i < look->count; i++) {
        struct qr_check_finding *finding = &look->findings[i];
        if (strcmp(finding->invariant, "I6") == 0) {
            QR_TRY(is_mended ? QR_OK : qr_db_write(look->checker->options->db, QR_DURABLE, mend_counters, look, err));
            is_mended = finding->is_repaired = true;
        }
    }
    return QR_OK;
}

static qr_rc examine_and_report(struct examination *look, qr_err *err)
{
    QR_TRY(qr_db_read(look->checker->options->db, examine, look, err));
    if (look->checker->options->repair) {
        QR_TRY(repair(look, err));
    }
    for (size_t i = 0; i < look->count; i++) {
        QR_TRY(qr_checker_report(look->checker, &look->findings[i], err));
    }
    return QR_OK;
}

qr_rc qr_check_examine(struct qr_checker *checker, qr_uuid id, qr_err *err)
{
    struct examination look = {.checker = checker, .id = id};
    qr_arena_init(&look.arena, 0);
    const qr_rc rc = examine_and_report(&look, err);
    qr_arena_done(&look.arena);
    return rc;
}
