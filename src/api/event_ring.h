/* The newest events, written out: what is read once and handed to many. The owner holds a lock over it. */
#pragma once

#include "store/events.h"

#include "base/buf.h"

enum { QR_EVENT_RING_MAX = 2048 };

struct qr_event_entry {
    struct qr_event_place place;
    qr_uuid base_id;
    bool ends_base; /* it was deleted: nothing of it follows */
    char *text;
    size_t len;
};

struct qr_event_ring {
    struct qr_event_entry *entries; /* QR_EVENT_RING_MAX, from `first` on in a circle */
    size_t first, count;
    int64_t after_id; /* it has everything that follows, as far as */
    struct qr_event_place newest;
    bool is_open;
};

/* Begins at this place, empty. */
qr_rc qr_event_ring_open(struct qr_event_ring *ring, struct qr_event_place newest, qr_err *err);
/* Forgets all of it. */
void qr_event_ring_close(struct qr_event_ring *ring);
/* The event after the newest; the oldest goes where there is no more room. */
qr_rc qr_event_ring_add(struct qr_event_ring *ring, const struct qr_event *event, qr_err *err);
/* The i-th, oldest first. */
const struct qr_event_entry *qr_event_ring_at(const struct qr_event_ring *ring, size_t i);
/* The first behind this id; the count where there is none. */
size_t qr_event_ring_find(const struct qr_event_ring *ring, int64_t id);
/* What an event becomes in it. */
qr_rc qr_event_entry_make(const struct qr_event *event, struct qr_event_entry *ret_entry, qr_err *err);
void qr_event_entry_done(struct qr_event_entry *entry);
