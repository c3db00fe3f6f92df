/* The events of all bases as one sequence: what watchers are told (store/change.h writes them).
 *
 * E1  An event has a higher id than all that were committed before it. Ids come from the row of `event_clock`, which whoever
 *     writes events holds until its commit: so who has seen an id has seen, or can have seen, all below it.
 * E2  Of a place in the sequence its time is known too. After a power loss or a backup that was put back an id may come
 *     again, for another event: its time tells them apart.
 * E3  Removed by age are the oldest, and up to which id is in the clock: who asks for what follows an older one is told
 *     that something is missing. Events of a base that is deleted go with it; they were nobody's any more. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"
#include "db/db.h"
#include "model/item.h"

/* Stored as these numbers: never renumber. */
enum qr_event_kind {
    QR_EVENT_ADDED = 1, /* roots only */
    QR_EVENT_STATUS = 2,
    QR_EVENT_LIVE = 3, /* live_generation moved */
    QR_EVENT_HIDDEN = 4,
    QR_EVENT_SHOWN = 5,
    QR_EVENT_DELETED = 6,
    QR_EVENT_BASE = 7,
    QR_EVENT_RUN = 8,
};

/* "added" */
const char *qr_event_kind_name(enum qr_event_kind kind);

/* The channel that is notified of events. */
#define QR_EVENTS_CHANNEL "events"

/* Behind an event; {0} = before the first. */
struct qr_event_place {
    int64_t id, at_ms; /* 0 = the time is not known */
};

struct qr_event {
    struct qr_event_place place;
    qr_uuid base_id;
    qr_uuid item_id; /* zero = about the base; of a RUN the run's */
    enum qr_event_kind kind;
    enum qr_item_status status; /* 0 = not about one */
    int64_t generation;
    const char *code;
};

/* E1: ids for events that this transaction writes, the first of them; from here on it holds the clock. */
qr_rc qr_events_take_ids(struct qr_tx *tx, int64_t count, int64_t *ret_first_id, qr_err *err);

/* The newest place, and whether everything that followed `asked` is still there (E2, E3). */
qr_rc qr_events_find_place(struct qr_tx *tx, struct qr_event_place asked, bool *ret_is_kept,
                           struct qr_event_place *ret_newest, qr_err *err);
/* Those that follow, in order, at most `limit`. */
qr_rc qr_events_after(struct qr_tx *tx, int64_t id, int limit, struct qr_arena *arena, struct qr_event **ret_events,
                      size_t *ret_count, qr_err *err);

/* Removes events of the base that are older, at most `limit`; *ret_count 0: there is none left. */
qr_rc qr_events_prune(struct qr_tx *tx, qr_uuid base_id, int64_t before_ms, int limit, int64_t *ret_count, qr_err *err);
