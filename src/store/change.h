/* A change to the items of one or more bases, inside a write function.
 *
 * C1  It begins by locking the rows of those bases, in the order of their ids: that is the base lock (STATE-8). Whatever it
 *     reads about membership and state it reads after that.
 * C2  Items are written by qr_item_insert and qr_item_save only. They collect what a change of status means for the parent;
 *     qr_change_finish writes counters and roll-ups, deepest containers first, up to the roots (STATE-5): one update a
 *     container, however many children changed.
 * C3  Whatever changes what search may show (liveness, enabled, deleting) is an event, and raises the base's vis_seq in the
 *     same transaction. Events take their place in the sequence of all bases last of all (store/events.h, E1), so that
 *     changes of several bases wait for each other no longer than a commit takes.
 * C4  It counts how many items of a run are at work. The workflow ends its changes with qr_workflow_finish, which lets runs
 *     go on.
 *
 *     QR_CHANGE(change);
 *     QR_TRY(qr_change_begin(&change, tx, ids, &base_id, 1, err));
 *     … load items, alter them, qr_item_save …
 *     return qr_change_finish(&change, err);
 */
#pragma once

#include "store/bases.h"
#include "store/events.h"
#include "store/items.h"

struct qr_parent_delta; /* change.c */
struct qr_event_note;

/* How the number of a run's items at work changed; runs.h. */
struct qr_run_delta {
    struct qr_run_delta *next;
    qr_uuid run_id, base_id;
    int64_t active, failed;
};

struct qr_change {
    struct qr_tx *tx;
    struct qr_uuid_gen *ids;
    int64_t now_ms;
    struct qr_arena arena; /* lives until qr_change_done */
    struct qr_base *bases; /* that exist, in the order of their ids */
    size_t base_count;
    struct qr_parent_delta *first_delta;
    struct qr_event_note *first_event, *last_event;
    struct qr_run_delta *first_run_delta;
    qr_uuid checked_parent; /* of the last look for a deleting ancestor */
    bool checked_is_deleting;
};

#define QR_CHANGE(name) QR_CLEANUP(qr_change_done) struct qr_change name = {0}

/* `ids` makes the ids of jobs and items. Bases that are gone are left out. */
qr_rc qr_change_begin(struct qr_change *change, struct qr_tx *tx, struct qr_uuid_gen *ids, const qr_uuid *base_ids,
                      size_t count, qr_err *err);
qr_rc qr_change_finish(struct qr_change *change, qr_err *err);
/* Counters and roll-ups so far: part of the end, for those who need to know more before it. */
qr_rc qr_change_roll_up(struct qr_change *change, qr_err *err);
void qr_change_done(struct qr_change *change);

/* The lock alone, of ids in their order: for those who lock job rows before they know what changes. */
qr_rc qr_bases_lock(struct qr_tx *tx, const qr_uuid *sorted_ids, size_t count, qr_err *err);

/* NULL when it is gone. */
struct qr_base *qr_change_base(struct qr_change *change, qr_uuid base_id);

/* Adds a new item: its counts go to the parent. */
qr_rc qr_item_insert(struct qr_change *change, struct qr_item *item, qr_err *err);
/* Writes the item as it is in memory, but for a container's counters. */
qr_rc qr_item_save(struct qr_change *change, struct qr_item *item, qr_err *err);
/* Its status becomes what its children and its expansion say, at the end of the change: of a container that is not
 * `preparing` any more. Save it first, as it is. */
qr_rc qr_item_roll_up_later(struct qr_change *change, const struct qr_item *item, qr_err *err);
/* Removes the row of an item that is deleting, itself or below one that is; not its children. */
qr_rc qr_item_remove(struct qr_change *change, const struct qr_item *item, qr_err *err);
/* Whether it, an ancestor or its base is deleting. */
qr_rc qr_item_is_deleting(struct qr_change *change, const struct qr_item *item, bool *ret_is, qr_err *err);

/* An event of the base's durable sequence. qr_item_save and _insert write those of status and visibility. */
qr_rc qr_change_note(struct qr_change *change, qr_uuid base_id, qr_uuid item_id, enum qr_event_kind kind,
                     int64_t generation, const char *code, qr_err *err);
