/* The one place where items are written, and with them the counters and states of what is above them. store/change.h states
 * the rules. */
#include "store/change.h"

#include "store/items_row.h"
#include "store/jobs_row.h"
#include "store/runs.h"

#include <assert.h>
#include <stdlib.h>

/* What the end of the change will add to a container's counters. */
struct qr_parent_delta {
    struct qr_parent_delta *next;
    qr_uuid id;
    int64_t depth;
    struct qr_child_counts counts;
    bool leaves_preparing;
    int64_t left_generation; /* which it was: a newer one that begins in the same change goes on preparing */
    bool is_done;
};

struct qr_event_note {
    struct qr_event_note *next;
    qr_uuid base_id, item_id;
    enum qr_event_kind kind;
    enum qr_item_status status; /* 0 = not about one */
    int64_t generation;
    const char *code;
};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a change of items");
}

/* ---- the lock ---- */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(((const qr_uuid *)a)->bytes, ((const qr_uuid *)b)->bytes, QR_UUID_BYTES);
}

qr_rc qr_bases_lock(struct qr_tx *tx, const qr_uuid *sorted_ids, size_t count, qr_err *err)
{
    for (size_t i = 0; i < count; i++) {
        int64_t ignored;
        bool found;
        QR_TRY(qr_tx_get_i64(tx, "SELECT status FROM base WHERE id = ?1 /*pg FOR UPDATE */",
                             QR_VALS(qr_val_uuid(&sorted_ids[i])), &found, &ignored, err));
    }
    return QR_OK;
}

static qr_rc lock_base(struct qr_change *change, qr_uuid id, qr_err *err)
{
    bool found;
    QR_TRY(qr_bases_lock(change->tx, &id, 1, err));
    struct qr_base *base = &change->bases[change->base_count];
    QR_TRY(qr_base_find(change->tx, id, &change->arena, &found, base, err));
    change->base_count += found;
    return QR_OK;
}

qr_rc qr_change_begin(struct qr_change *change, struct qr_tx *tx, struct qr_uuid_gen *ids, const qr_uuid *base_ids,
                      size_t count, qr_err *err)
{
    *change = (struct qr_change){.tx = tx, .ids = ids};
    qr_arena_init(&change->arena, 0);
    QR_TRY(qr_tx_now_ms(tx, &change->now_ms, err));
    qr_uuid *sorted = qr_arena_array(&change->arena, count, sizeof sorted[0]);
    change->bases = qr_arena_array(&change->arena, count, sizeof change->bases[0]);
    if (!sorted || !change->bases) {
        return out_of_memory(err);
    }
    memcpy(sorted, base_ids, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], compare_ids);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !qr_uuid_equal(sorted[i], sorted[i - 1])) {
            QR_TRY(lock_base(change, sorted[i], err));
        }
    }
    return QR_OK;
}

void qr_change_done(struct qr_change *change)
{
    if (change->tx) {
        qr_arena_done(&change->arena);
    }
}

struct qr_base *qr_change_base(struct qr_change *change, qr_uuid base_id)
{
    for (size_t i = 0; i < change->base_count; i++) {
        if (qr_uuid_equal(change->bases[i].id, base_id)) {
            return &change->bases[i];
        }
    }
    return NULL;
}

/* ---- runs ---- */

static qr_rc count_for_run(struct qr_change *change, qr_uuid run_id, qr_uuid base_id, int64_t active, int64_t failed,
                           qr_err *err)
{
    if (qr_uuid_is_zero(run_id) || (active == 0 && failed == 0)) {
        return QR_OK;
    }
    struct qr_run_delta *delta = change->first_run_delta;
    while (delta && !qr_uuid_equal(delta->run_id, run_id)) {
        delta = delta->next;
    }
    if (!delta) {
        delta = qr_arena_alloc(&change->arena, sizeof *delta);
        if (!delta) {
            return out_of_memory(err);
        }
        *delta = (struct qr_run_delta){.next = change->first_run_delta, .run_id = run_id, .base_id = base_id};
        change->first_run_delta = delta;
    }
    delta->active += active;
    delta->failed += failed;
    return QR_OK;
}

/* The item was at work for one run, or for none, and now is for another, or for none. */
static qr_rc count_item_for_runs(struct qr_change *change, const struct qr_item *item, qr_err *err)
{
    const bool was = qr_item_is_at_work(item->is_container, item->stored_status);
    const bool is = qr_item_is_at_work(item->is_container, item->status);
    const bool has_failed = was && !is && item->status == QR_ITEM_FAILED;
    QR_TRY(count_for_run(change, item->stored_run_id, item->base_id, was ? -1 : 0, has_failed, err));
    return count_for_run(change, item->run_id, item->base_id, is ? 1 : 0, 0, err);
}

/* ---- events ---- */

static qr_rc note(struct qr_change *change, const struct qr_event_note *event, qr_err *err)
{
    struct qr_event_note *copy = qr_arena_alloc(&change->arena, sizeof *copy);
    if (!copy) {
        return out_of_memory(err);
    }
    *copy = *event;
    copy->next = NULL;
    if (change->last_event) {
        change->last_event->next = copy;
    } else {
        change->first_event = copy;
    }
    change->last_event = copy;
    return QR_OK;
}

qr_rc qr_change_note(struct qr_change *change, qr_uuid base_id, qr_uuid item_id, enum qr_event_kind kind,
                     int64_t generation, const char *code, qr_err *err)
{
    return note(change,
                &(struct qr_event_note){
                    .base_id = base_id, .item_id = item_id, .kind = kind, .generation = generation, .code = code},
                err);
}

static bool changes_visibility(const struct qr_event_note *event)
{
    return event->kind == QR_EVENT_LIVE || event->kind == QR_EVENT_HIDDEN || event->kind == QR_EVENT_SHOWN ||
           event->kind == QR_EVENT_DELETED;
}

static qr_rc write_event(struct qr_change *change, struct qr_base *base, const struct qr_event_note *event, int64_t id,
                         qr_err *err)
{
    base->event_seq++;
    if (changes_visibility(event)) {
        base->vis_seq = base->event_seq;
    }
    return qr_tx_exec(change->tx,
                      "INSERT INTO event (base_id, seq, at, item_id, kind, generation, status, code, id) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                      QR_VALS(qr_val_uuid(&base->id), qr_val_i64(base->event_seq), qr_val_i64(change->now_ms),
                              qr_val_uuid_or_null(&event->item_id), qr_val_i64(event->kind),
                              qr_val_i64(event->generation), qr_val_i64(event->status),
                              qr_val_text(qr_str_of(event->code)), qr_val_i64(id)),
                      NULL, err);
}

static int64_t count_events(struct qr_change *change)
{
    int64_t count = 0;
    for (const struct qr_event_note *event = change->first_event; event; event = event->next) {
        count += qr_change_base(change, event->base_id) != NULL;
    }
    return count;
}

/* The sequences are the base row's own, which this transaction holds: a later commit never has an earlier number. */
static qr_rc write_events(struct qr_change *change, qr_err *err)
{
    const int64_t count = count_events(change);
    int64_t id;
    if (count == 0) {
        return QR_OK;
    }
    QR_TRY(qr_events_take_ids(change->tx, count, &id, err));
    for (const struct qr_event_note *event = change->first_event; event; event = event->next) {
        struct qr_base *base = qr_change_base(change, event->base_id);
        if (base) {
            QR_TRY(write_event(change, base, event, id++, err));
        }
    }
    for (size_t i = 0; i < change->base_count; i++) {
        const struct qr_base *base = &change->bases[i];
        QR_TRY(qr_tx_exec(change->tx, "UPDATE base SET event_seq = ?2, vis_seq = ?3 WHERE id = ?1",
                          QR_VALS(qr_val_uuid(&base->id), qr_val_i64(base->event_seq), qr_val_i64(base->vis_seq)), NULL,
                          err));
    }
    change->first_event = change->last_event = NULL;
    return qr_tx_notify(change->tx, QR_EVENTS_CHANNEL, err);
}

/* ---- counters ---- */

static struct qr_parent_delta *delta_of(struct qr_change *change, qr_uuid id, int64_t depth)
{
    for (struct qr_parent_delta *delta = change->first_delta; delta; delta = delta->next) {
        if (!delta->is_done && qr_uuid_equal(delta->id, id)) {
            return delta;
        }
    }
    struct qr_parent_delta *delta = qr_arena_alloc(&change->arena, sizeof *delta);
    if (delta) {
        *delta = (struct qr_parent_delta){.next = change->first_delta, .id = id, .depth = depth};
        change->first_delta = delta;
    }
    return delta;
}

/* A child of the container went from one status to another; 0 = it was not there, or is gone. */
static qr_rc count_child(struct qr_change *change, qr_uuid parent_id, int64_t parent_depth, enum qr_item_status from,
                         enum qr_item_status to, qr_err *err)
{
    if (parent_depth < 0 || from == to) {
        return QR_OK;
    }
    struct qr_parent_delta *delta = delta_of(change, parent_id, parent_depth);
    if (!delta) {
        return out_of_memory(err);
    }
    if (from) {
        qr_child_counts_add(&delta->counts, from, -1);
    }
    if (to) {
        qr_child_counts_add(&delta->counts, to, 1);
    }
    return QR_OK;
}

qr_rc qr_item_roll_up_later(struct qr_change *change, const struct qr_item *item, qr_err *err)
{
    assert(item->is_container);
    struct qr_parent_delta *delta = delta_of(change, item->id, item->depth);
    if (!delta) {
        return out_of_memory(err);
    }
    delta->leaves_preparing = true;
    delta->left_generation = item->generation;
    return QR_OK;
}

/* A container after its counters were changed. */
struct container {
    qr_uuid base_id, parent_id;
    int64_t generation;
    enum qr_item_status status;
    struct qr_child_counts counts;
    bool expansion_failed, is_expanded;
    qr_uuid run_id;
};

static qr_rc change_counters(struct qr_change *change, const struct qr_parent_delta *delta, bool *ret_found,
                             struct container *ret_container, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(change->tx, &rows,
                       "UPDATE item SET n_completed = n_completed + ?2, n_failed = n_failed + ?3, "
                       "n_active = n_active + ?4, n_idle = n_idle + ?5 WHERE id = ?1 RETURNING base_id, parent_id, "
                       "generation, status, n_completed, n_failed, n_active, n_idle, expand_code <> '', "
                       "expanded_generation, run_id",
                       QR_VALS(qr_val_uuid(&delta->id), qr_val_i64(delta->counts.completed),
                               qr_val_i64(delta->counts.failed), qr_val_i64(delta->counts.active),
                               qr_val_i64(delta->counts.idle)),
                       err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        *ret_container = (struct container){
            .base_id = qr_rows_uuid(&rows, 0),
            .parent_id = qr_rows_uuid(&rows, 1),
            .generation = qr_rows_i64(&rows, 2),
            .status = (enum qr_item_status)qr_rows_i64(&rows, 3),
            .counts = {qr_rows_i64(&rows, 4), qr_rows_i64(&rows, 5), qr_rows_i64(&rows, 6), qr_rows_i64(&rows, 7)},
            .expansion_failed = qr_rows_i64(&rows, 8) != 0,
            .is_expanded = qr_rows_i64(&rows, 9) > 0,
            .run_id = qr_rows_uuid(&rows, 10),
        };
    }
    return qr_rows_end(&rows, err);
}

static qr_rc set_container_status(struct qr_change *change, const struct qr_parent_delta *delta,
                                  const struct container *container, enum qr_item_status status, qr_err *err)
{
    QR_TRY(qr_tx_exec(change->tx, "UPDATE item SET status = ?2, updated_at = ?3 WHERE id = ?1",
                      QR_VALS(qr_val_uuid(&delta->id), qr_val_i64(status), qr_val_i64(change->now_ms)), NULL, err));
    QR_TRY(note(change,
                &(struct qr_event_note){.base_id = container->base_id,
                                        .item_id = delta->id,
                                        .kind = QR_EVENT_STATUS,
                                        .status = status,
                                        .generation = container->generation,
                                        .code = ""},
                err));
    if (container->status == QR_ITEM_PREPARING) {
        QR_TRY(count_for_run(change, container->run_id, container->base_id, -1, status == QR_ITEM_FAILED, err));
    }
    return count_child(change, container->parent_id, delta->depth - 1, container->status, status, err);
}

/* STATE-5, STATE-6. */
static qr_rc roll_up(struct qr_change *change, struct qr_parent_delta *delta, qr_err *err)
{
    struct container container = {0};
    bool found;
    delta->is_done = true;
    QR_TRY(change_counters(change, delta, &found, &container, err));
    const bool has_left = delta->leaves_preparing && delta->left_generation == container.generation;
    if (!found || container.status == QR_ITEM_DELETING || (container.status == QR_ITEM_PREPARING && !has_left)) {
        return QR_OK;
    }
    const enum qr_item_status status =
        qr_item_roll_up(&container.counts, container.expansion_failed, container.is_expanded);
    return status == container.status ? QR_OK : set_container_status(change, delta, &container, status, err);
}

static struct qr_parent_delta *deepest(const struct qr_change *change)
{
    struct qr_parent_delta *found = NULL;
    for (struct qr_parent_delta *delta = change->first_delta; delta; delta = delta->next) {
        if (!delta->is_done && (!found || delta->depth > found->depth)) {
            found = delta;
        }
    }
    return found;
}

/* Deepest first: what a container tells its parent is told before the parent is looked at. */
qr_rc qr_change_roll_up(struct qr_change *change, qr_err *err)
{
    for (struct qr_parent_delta *delta = deepest(change); delta; delta = deepest(change)) {
        QR_TRY(roll_up(change, delta, err));
    }
    change->first_delta = NULL;
    return QR_OK;
}

qr_rc qr_change_finish(struct qr_change *change, qr_err *err)
{
    QR_TRY(qr_change_roll_up(change, err));
    for (const struct qr_run_delta *delta = change->first_run_delta; delta; delta = delta->next) {
        QR_TRY(qr_run_add_counts(change->tx, delta->run_id, delta->active, delta->failed, err));
    }
    change->first_run_delta = NULL;
    return write_events(change, err);
}

/* ---- items ---- */

static qr_rc note_item(struct qr_change *change, const struct qr_item *item, enum qr_event_kind kind, qr_err *err)
{
    return note(change,
                &(struct qr_event_note){.base_id = item->base_id,
                                        .item_id = item->id,
                                        .kind = kind,
                                        .status = item->status,
                                        .generation = item->generation,
                                        .code = item->status == QR_ITEM_FAILED ? item->error_code : ""},
                err);
}

/* One event says what matters most: C3. Work that begins or goes on is none. */
static qr_rc note_difference(struct qr_change *change, const struct qr_item *item, qr_err *err)
{
    if (item->status == QR_ITEM_DELETING && item->stored_status != QR_ITEM_DELETING) {
        return note_item(change, item, QR_EVENT_DELETED, err);
    }
    if (item->enabled != item->stored_enabled) {
        QR_TRY(note_item(change, item, item->enabled ? QR_EVENT_SHOWN : QR_EVENT_HIDDEN, err));
    }
    if (item->live_generation != item->stored_live_generation) {
        return note_item(change, item, QR_EVENT_LIVE, err);
    }
    const bool has_come_to_rest = !qr_item_status_is_active(item->status) && item->status != item->stored_status;
    return has_come_to_rest ? note_item(change, item, QR_EVENT_STATUS, err) : QR_OK;
}

static struct qr_val hash_or_null(bool has_hash, const unsigned char hash[static QR_HASH_BYTES])
{
    return has_hash ? qr_val_blob(hash, QR_HASH_BYTES) : qr_val_null();
}

static struct qr_val text_of(const char *text)
{
    return qr_val_text(qr_str_of(text ? text : ""));
}

static struct qr_val bytes_of(qr_str bytes)
{
    return qr_val_blob(bytes.ptr ? bytes.ptr : "", bytes.len);
}

/* Roots are found by their source. */
static struct qr_val root_source(const struct qr_item *item, unsigned char hash[static QR_HASH_BYTES])
{
    if (item->depth > 0 || item->source.len == 0) {
        return qr_val_null();
    }
    qr_hash_128(item->source, hash);
    return qr_val_blob(hash, QR_HASH_BYTES);
}

static int64_t needs_of(const struct qr_item *item)
{
    return qr_item_needs(item->is_container, item->generation, item->text_generation, item->chunk_generation,
                         qr_item_done_generation(item), item->expanded_generation);
}

qr_rc qr_item_insert(struct qr_change *change, struct qr_item *item, qr_err *err)
{
    assert(item->status != QR_ITEM_DELETING && item->generation == 1);
    const bool is_root = item->depth == 0;
    unsigned char source_hash[QR_HASH_BYTES];
    item->created_ms = item->updated_ms = change->now_ms;
    QR_TRY(qr_tx_exec(
        change->tx,
        "INSERT INTO item (id, base_id, parent_id, depth, path, type, is_container, name, key, source, source_hash, "
        "mime, size_bytes, mtime_ns, content_hash, status, generation, seen_generation, error_stage, error_code, "
        "error_message, error_generation, error_at, attributes, options, wanted, run_id, created_at, updated_at, "
        "needs, expand_code, no_links) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
        "1, ?17, "
        "?18, ?19, ?20, "
        "?21, ?22, ?23, "
        "?24, ?25, ?26, ?27, ?27, ?28, ?29, ?30)",
        QR_VALS(qr_val_uuid(&item->id), qr_val_uuid(&item->base_id),
                qr_val_uuid(is_root ? &item->base_id : &item->parent_id), qr_val_i64(item->depth), bytes_of(item->path),
                qr_val_i64(item->type), qr_val_i64(item->is_container), text_of(item->name), bytes_of(item->key),
                bytes_of(item->source), root_source(item, source_hash), text_of(item->mime),
                qr_val_i64(item->size_bytes), qr_val_i64(item->mtime_ns),
                hash_or_null(item->has_hash, item->content_hash), qr_val_i64(item->status),
                qr_val_i64(item->seen_generation), text_of(item->error_stage), text_of(item->error_code),
                text_of(item->error_message), qr_val_i64(item->error_generation), qr_val_i64(item->error_ms),
                text_of(item->attributes), text_of(item->options), qr_val_i64(item->wanted),
                qr_val_uuid_or_null(&item->run_id), qr_val_i64(item->created_ms), qr_val_i64(needs_of(item)),
                text_of(item->expand_code), qr_val_i64(item->no_links)),
        NULL, err));
    item->stored_status = item->status;
    item->stored_enabled = item->enabled = true;
    item->stored_run_id = item->run_id;
    if (qr_item_is_at_work(item->is_container, item->status)) {
        QR_TRY(count_for_run(change, item->run_id, item->base_id, 1, 0, err));
    }
    if (is_root) {
        QR_TRY(note_item(change, item, QR_EVENT_ADDED, err));
    }
    return count_child(change, item->parent_id, item->depth - 1, 0, item->status, err);
}

qr_rc qr_item_save(struct qr_change *change, struct qr_item *item, qr_err *err)
{
    assert(qr_item_status_may_become(item->stored_status, item->status));
    assert(item->live_generation >= item->stored_live_generation && item->live_generation <= item->generation); /* I3 */
    assert(item->kept_generation <= item->generation);
    QR_TRY(note_difference(change, item, err));
    QR_TRY(count_item_for_runs(change, item, err));
    QR_TRY(count_child(change, item->parent_id, item->depth - 1, item->stored_status, item->status, err));
    if (item->is_container && item->status != QR_ITEM_PREPARING && item->status != QR_ITEM_DELETING) {
        QR_TRY(qr_item_roll_up_later(change, item, err)); /* its children decide what it is at rest */
    }
    item->updated_ms = change->now_ms;
    unsigned char source_hash[QR_HASH_BYTES];
    QR_TRY(qr_tx_exec(
        change->tx,
        "UPDATE item SET is_container = ?2, name = ?3, source = ?4, mime = ?5, size_bytes = ?6, mtime_ns = ?7, "
        "content_hash = ?8, status = ?9, generation = ?10, live_generation = ?11, text_generation = ?12, "
        "chunk_generation = ?13, expanded_generation = ?14, force_generation = ?15, seen_generation = ?16, "
        "expand_code = ?17, error_stage = ?18, error_code = ?19, error_message = ?20, error_generation = ?21, "
        "error_at = ?22, warnings = ?23, enabled = ?24, attributes = ?25, options = ?26, chunk_count = ?27, "
        "token_count = ?28, wanted = ?29, run_id = ?30, ticket = ?31, ticket_at = ?32, updated_at = ?33, "
        "indexed_at = ?34, source_hash = ?35, needs = ?36, cleanup_job_id = ?37, "
        "kept_generation = ?38, made_of = ?39 WHERE id = ?1",
        QR_VALS(qr_val_uuid(&item->id), qr_val_i64(item->is_container), text_of(item->name), bytes_of(item->source),
                text_of(item->mime), qr_val_i64(item->size_bytes), qr_val_i64(item->mtime_ns),
                hash_or_null(item->has_hash, item->content_hash), qr_val_i64(item->status),
                qr_val_i64(item->generation), qr_val_i64(item->live_generation), qr_val_i64(item->text_generation),
                qr_val_i64(item->chunk_generation), qr_val_i64(item->expanded_generation),
                qr_val_i64(item->force_generation), qr_val_i64(item->seen_generation), text_of(item->expand_code),
                text_of(item->error_stage), text_of(item->error_code), text_of(item->error_message),
                qr_val_i64(item->error_generation), qr_val_i64(item->error_ms), text_of(item->warnings),
                qr_val_i64(item->enabled), text_of(item->attributes), text_of(item->options),
                qr_val_i64(item->chunk_count), qr_val_i64(item->token_count), qr_val_i64(item->wanted),
                qr_val_uuid_or_null(&item->run_id), text_of(item->ticket), qr_val_i64(item->ticket_ms),
                qr_val_i64(item->updated_ms), qr_val_i64(item->indexed_ms), root_source(item, source_hash),
                qr_val_i64(needs_of(item)), qr_val_uuid_or_null(&item->cleanup_job_id),
                qr_val_i64(item->kept_generation), hash_or_null(item->has_made_of, item->made_of)),
        NULL, err));
    item->stored_status = item->status;
    item->stored_live_generation = item->live_generation;
    item->stored_enabled = item->enabled;
    item->stored_run_id = item->run_id;
    if (item->status == QR_ITEM_DELETING) {
        change->checked_parent = (qr_uuid){0}; /* the last look may be untrue now */
    }
    return QR_OK;
}

qr_rc qr_item_remove(struct qr_change *change, const struct qr_item *item, qr_err *err)
{
    if (qr_item_is_at_work(item->is_container, item->stored_status)) {
        QR_TRY(count_for_run(change, item->stored_run_id, item->base_id, -1, 0, err));
    }
    QR_TRY(qr_tx_exec(change->tx, "DELETE FROM item_generation WHERE item_id = ?1", QR_VALS(qr_val_uuid(&item->id)),
                      NULL, err));
    QR_TRY(qr_tx_exec(change->tx, "DELETE FROM asset WHERE item_id = ?1", QR_VALS(qr_val_uuid(&item->id)), NULL, err));
    return qr_tx_exec(change->tx, "DELETE FROM item WHERE id = ?1", QR_VALS(qr_val_uuid(&item->id)), NULL, err);
}

qr_rc qr_item_is_deleting(struct qr_change *change, const struct qr_item *item, bool *ret_is, qr_err *err)
{
    const struct qr_base *base = qr_change_base(change, item->base_id);
    *ret_is = item->status == QR_ITEM_DELETING || !base || base->status == QR_BASE_DELETING;
    if (*ret_is || item->depth == 0) {
        return QR_OK;
    }
    if (!qr_uuid_equal(change->checked_parent, item->parent_id)) {
        const qr_str above = {item->path.ptr, item->path.len - QR_UUID_BYTES};
        QR_TRY(qr_item_path_is_deleting(change->tx, above, &change->checked_is_deleting, err));
        change->checked_parent = item->parent_id;
    }
    *ret_is = change->checked_is_deleting;
    return QR_OK;
}
