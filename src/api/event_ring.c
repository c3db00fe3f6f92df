#include "api/event_ring.h"

#include "api/event_text.h"
#include "base/mem.h"

#include <assert.h>

qr_rc qr_event_entry_make(const struct qr_event *event, struct qr_event_entry *ret_entry, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_TRY(qr_event_write(event, &text, err));
    *ret_entry =
        (struct qr_event_entry){.place = event->place,
                                .base_id = event->base_id,
                                .ends_base = event->kind == QR_EVENT_DELETED && qr_uuid_is_zero(event->item_id)};
    ret_entry->text = qr_buf_take(&text, &ret_entry->len);
    return ret_entry->text ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an event");
}

void qr_event_entry_done(struct qr_event_entry *entry)
{
    qr_free(entry->text);
    *entry = (struct qr_event_entry){0};
}

qr_rc qr_event_ring_open(struct qr_event_ring *ring, struct qr_event_place newest, qr_err *err)
{
    assert(!ring->is_open);
    *ring = (struct qr_event_ring){.after_id = newest.id, .newest = newest, .is_open = true};
    ring->entries = qr_alloc_array(QR_EVENT_RING_MAX, sizeof ring->entries[0]);
    ring->is_open = ring->entries != NULL;
    return ring->is_open ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for events");
}

void qr_event_ring_close(struct qr_event_ring *ring)
{
    for (size_t i = 0; i < ring->count; i++) {
        qr_event_entry_done(&ring->entries[(ring->first + i) % QR_EVENT_RING_MAX]);
    }
    qr_free(ring->entries);
    *ring = (struct qr_event_ring){0};
}

qr_rc qr_event_ring_add(struct qr_event_ring *ring, const struct qr_event *event, qr_err *err)
{
    struct qr_event_entry entry;
    assert(ring->is_open && event->place.id > ring->newest.id);
    QR_TRY(qr_event_entry_make(event, &entry, err));
    if (ring->count == QR_EVENT_RING_MAX) {
        ring->after_id = ring->entries[ring->first].place.id;
        qr_event_entry_done(&ring->entries[ring->first]);
        ring->first = (ring->first + 1) % QR_EVENT_RING_MAX;
        ring->count--;
    }
    ring->entries[(ring->first + ring->count++) % QR_EVENT_RING_MAX] = entry;
    ring->newest = entry.place;
    return QR_OK;
}

const struct qr_event_entry *qr_event_ring_at(const struct qr_event_ring *ring, size_t i)
{
    assert(i < ring->count);
    return &ring->entries[(ring->first + i) % QR_EVENT_RING_MAX];
}

size_t qr_event_ring_find(const struct qr_event_ring *ring, int64_t id)
{
    size_t from = 0, to = ring->count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (qr_event_ring_at(ring, middle)->place.id <= id) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}
