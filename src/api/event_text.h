/* Events as text/event-stream. */
#pragma once

#include "store/events.h"

#include "base/buf.h"

/* "id: 17-19a8c5f21bb\nevent: live\ndata: {…}\n\n". */
qr_rc qr_event_write(const struct qr_event *event, struct qr_buf *out, qr_err *err);
/* The beginning of a stream, which tells clients from where to go on, also when nothing happens. */
void qr_event_write_start(struct qr_event_place place, struct qr_buf *out);
/* Instead of it where something is missing: what is there now has to be read anew. The place comes with that, so that nobody goes on
 * from there without having heard it. */
void qr_event_write_reset(struct qr_event_place place, struct qr_buf *out);
/* A sign of life, which also says how far it has come. */
void qr_event_write_beat(struct qr_event_place place, struct qr_buf *out);

/* Of a Last-Event-ID; false: it is none of ours. */
bool qr_event_place_parse(qr_str text, struct qr_event_place *ret_place);
