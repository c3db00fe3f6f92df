/* Hands events to all who follow them.
 *
 * H1  One thread reads new events, once for all, when it is notified and at least every second: on PostgreSQL those of other
 *     processes too. What is new is kept for a while, in a ring; who is further behind reads the database, in pieces.
 * H2  A follower is a place in the sequence and no queue: one that does not read costs nothing but that.
 * H3  Nobody passes an event: a place moves over what was written out, and over what its owner may not see.
 * H4  What they may see is looked at again when keys or roles have changed, and every second. Who may see nothing any more, or not the base that was asked for, has
 *     come to the end. */
#pragma once

#include "api/instance.h"
#include "store/events.h"

#include <quire/quire.h>

struct qr_event_hub;

/* What is followed, and from where on. */
struct qr_follow {
    struct qr_event_place place;
    bool is_reset; /* what followed the place that was asked for is not all there: it begins with saying so */
    bool has_base; /* only of this one */
    qr_uuid base_id;
};

/* The first thread comes with the first follower. */
qr_rc qr_event_hub_create(struct qr_event_hub **ret_hub, struct quire *quire, int64_t beat_ms, qr_err *err);
/* All followers are freed before. NULL is fine. */
void qr_event_hub_free(struct qr_event_hub *hub);

/* Events as they happen, as text/event-stream, for who asked like that. */
qr_rc qr_event_hub_follow(struct qr_event_hub *hub, const struct quire_request *from, const struct qr_follow *follow,
                          struct quire_pieces **ret_pieces, qr_err *err);
/* Those that are there now, and no more: at most about 16 KB, with the place to go on from. */
qr_rc qr_event_hub_tell(struct qr_event_hub *hub, const struct quire_request *from, const struct qr_follow *follow,
                        struct qr_buf *out, qr_err *err);
