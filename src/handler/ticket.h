/* What is kept of a file that a converter has: its ticket, and what the converter will not remember for us (TYPE-5). It is a text on
 * the item, so that it survives everything that the item does. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct qr_ticket {
    const char *name;     /* the converter's own */
    int64_t handed_count; /* how often the file was given to it, at least 1 */
    int64_t
        running_since_ms; /* when it was first seen running, wall clock; 0 = not yet, or the converter tells by itself */
};

/* In the arena. */
qr_rc qr_ticket_read(const char *text, struct qr_arena *arena, struct qr_ticket *ret_ticket, qr_err *err);
/* NULL when out of memory. A ticket that was given once and not seen running is its name. */
const char *qr_ticket_write(const struct qr_ticket *ticket, struct qr_arena *arena);
