/* Jobs that were put off because an endpoint refuses to be asked: when they are brought forward. */
#pragma once

#include "api/instance.h"
#include "store/jobs_refused.h"

/* An endpoint answers again: the first are brought forward at once, the others by the beat. */
void qr_refused_bring_forward(struct quire *quire);
/* A job of each base that waits is brought forward and tries, if this process knows of no reason not to: at the start of a
 * process, which may have another key, and when a person asks. If it goes well, the others follow. */
qr_rc qr_refused_try_again(struct quire *quire, qr_err *err);

/* The beat's part. */
struct qr_refused_look {
    struct quire *quire;
    struct qr_refused_cursor at;
    bool has_more;
};
struct qr_beat_task qr_refused_task(struct qr_refused_look *look);
