/* The refusals. Everything here runs after the base row is locked, so what it finds holds until the commit. */
#include "workflow/guard.h"

#include <stdlib.h>

qr_rc qr_guard_base_exists(struct qr_change *change, qr_uuid base_id, struct qr_base **ret_base, qr_err *err)
{
    *ret_base = qr_change_base(change, base_id);
    if (!*ret_base || (*ret_base)->status == QR_BASE_DELETING) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "there is no such base");
    }
    return QR_OK;
}

qr_rc qr_guard_base(struct qr_change *change, qr_uuid base_id, struct qr_base **ret_base, qr_err *err)
{
    QR_TRY(qr_guard_base_exists(change, base_id, ret_base, err));
    if ((*ret_base)->status == QR_BASE_FAILED) {
        return qr_fail(err, QR_CODE_BASE_FAILED, "the base %s has failed: %s", (*ret_base)->name,
                       (*ret_base)->error_message);
    }
    return QR_OK;
}

static qr_rc no_such_item(qr_uuid id, qr_err *err)
{
    char text[QR_UUID_TEXT_SIZE];
    qr_uuid_format(id, text);
    return qr_fail(err, QR_CODE_NOT_FOUND, "there is no item %s in this base", text);
}

/* *ret_is_gone: there is none, or it is deleting. One of another base is none: an answer does not tell that it exists. */
static qr_rc look_up(struct qr_change *change, qr_uuid base_id, qr_uuid item_id, struct qr_arena *arena,
                     bool *ret_is_gone, struct qr_item *ret_item, qr_err *err)
{
    bool found;
    QR_TRY(qr_item_find(change->tx, item_id, arena, &found, ret_item, err));
    *ret_is_gone = !found || !qr_uuid_equal(ret_item->base_id, base_id);
    return *ret_is_gone ? QR_OK : qr_item_is_deleting(change, ret_item, ret_is_gone, err);
}

qr_rc qr_guard_item(struct qr_change *change, qr_uuid base_id, qr_uuid item_id, struct qr_arena *arena,
                    struct qr_item *ret_item, qr_err *err)
{
    bool is_gone;
    QR_TRY(look_up(change, base_id, item_id, arena, &is_gone, ret_item, err));
    return is_gone ? no_such_item(item_id, err) : QR_OK;
}

/* ---- selections ---- */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(((const qr_uuid *)a)->bytes, ((const qr_uuid *)b)->bytes, QR_UUID_BYTES);
}

static int compare_paths(const void *a, const void *b)
{
    return qr_str_compare(((const struct qr_item *)a)->path, ((const struct qr_item *)b)->path);
}

static int compare_items(const void *a, const void *b)
{
    return compare_ids(&((const struct qr_item *)a)->id, &((const struct qr_item *)b)->id);
}

/* In the order of paths an item comes right behind those above it. */
static size_t keep_outermost(struct qr_item *items, size_t count)
{
    size_t kept = 0;
    qsort(items, count, sizeof items[0], compare_paths);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || !qr_str_starts_with(items[i].path, items[kept - 1].path)) {
            items[kept++] = items[i];
        }
    }
    qsort(items, kept, sizeof items[0], compare_items);
    return kept;
}

qr_rc qr_guard_roots(struct qr_change *change, const struct qr_selection *selection, bool skip_gone,
                     struct qr_arena *arena, struct qr_item **ret_roots, size_t *ret_count, qr_err *err)
{
    qr_uuid *ids = qr_arena_array(arena, selection->count + 1, sizeof ids[0]);
    struct qr_item *items = qr_arena_array(arena, selection->count + 1, sizeof items[0]);
    if (!ids || !items) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a selection");
    }
    if (selection->count) {
        memcpy(ids, selection->ids, selection->count * sizeof ids[0]);
        qsort(ids, selection->count, sizeof ids[0], compare_ids);
    }
    size_t count = 0;
    for (size_t i = 0; i < selection->count; i++) {
        bool is_gone;
        if (i > 0 && qr_uuid_equal(ids[i], ids[i - 1])) {
            continue;
        }
        QR_TRY(look_up(change, selection->base_id, ids[i], arena, &is_gone, &items[count], err));
        if (is_gone && !skip_gone) {
            return no_such_item(ids[i], err);
        }
        count += !is_gone;
    }
    *ret_count = keep_outermost(items, count);
    *ret_roots = items;
    return QR_OK;
}

qr_rc qr_selection_answer_init(struct qr_selection_answer *answer, const struct qr_selection *selection,
                               struct qr_arena *arena, qr_err *err)
{
    *answer = (struct qr_selection_answer){
        .accepted = qr_arena_array(arena, selection->count + 1, sizeof answer->accepted[0]),
        .skipped = qr_arena_array(arena, selection->count + 1, sizeof answer->skipped[0])};
    return answer->accepted && answer->skipped ? QR_OK
                                               : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a selection");
}

qr_rc qr_selection_begin(struct qr_change *change, struct qr_tx *tx, const struct qr_selection_call *call,
                         struct qr_item **ret_roots, size_t *ret_count, qr_err *err)
{
    const struct qr_selection *selection = call->selection;
    struct qr_base *base;
    call->answer->accepted_count = call->answer->skipped_count = 0;
    call->answer->job_id = (qr_uuid){0};
    QR_TRY(qr_change_begin(change, tx, call->workflow->ids, &selection->base_id, 1, err));
    QR_TRY(call->is_delete ? qr_guard_base_exists(change, selection->base_id, &base, err)
                           : qr_guard_base(change, selection->base_id, &base, err));
    return qr_guard_roots(change, selection, call->is_delete, &change->arena, ret_roots, ret_count, err);
}

void qr_selection_accept(struct qr_selection_answer *answer, qr_uuid id)
{
    answer->accepted[answer->accepted_count++] = id;
}

void qr_selection_skip(struct qr_selection_answer *answer, qr_uuid id, const char *reason)
{
    answer->skipped[answer->skipped_count++] = (struct qr_skipped){id, reason};
}

const char *qr_roots_key(qr_uuid base_id, const struct qr_item *roots, size_t count, const char *what,
                         struct qr_arena *arena)
{
    enum { PREFIX = sizeof "knowledge:" - 1, ID = QR_UUID_TEXT_SIZE /* with its separator */ };
    char *key = qr_arena_alloc(arena, PREFIX + ID + count * ID + strlen(what) + 1);
    if (!key) {
        return NULL;
    }
    char *at = key;
    memcpy(at, "knowledge:", PREFIX);
    at += PREFIX;
    for (size_t i = 0; i <= count; i++) { /* the base, then the roots, which are sorted */
        qr_uuid_format(i == 0 ? base_id : roots[i - 1].id, at);
        at += ID - 1;
        *at++ = ':';
    }
    memcpy(at, what, strlen(what) + 1);
    return key;
}

/* ---- results ---- */

qr_rc qr_guard_result(struct qr_change *change, const struct qr_job *job, struct qr_arena *arena,
                      struct qr_item *ret_item, qr_err *err)
{
    bool found, is_deleting;
    QR_TRY(qr_item_find(change->tx, job->item_id, arena, &found, ret_item, err));
    if (!found) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "the item is gone");
    }
    QR_TRY(qr_item_is_deleting(change, ret_item, &is_deleting, err));
    if (is_deleting) {
        return qr_fail(err, QR_CODE_DELETING, "the item is being deleted");
    }
    if (ret_item->generation != job->generation || !qr_item_status_is_active(ret_item->status)) {
        return qr_fail(err, QR_CODE_STALE, "generation %lld of the item is not wanted any more",
                       (long long)job->generation);
    }
    return QR_OK;
}
