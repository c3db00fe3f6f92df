/* How fast a model embeds: texts a minute of the time in which calls were under way, over the last minutes. Pure: the caller has
 * the time and the lock. */
#pragma once

#include "base/compiler.h"

#include <stdint.h>

struct qr_pace {
    int call_count; /* under way */
    int64_t at_ms;  /* up to then it was counted */
    int64_t busy_ms, text_count;
    int64_t untold_ms; /* of busy_ms, since it was told last */
    bool was_told;
};

void qr_pace_begin(struct qr_pace *pace, int64_t now_ms);
void qr_pace_end(struct qr_pace *pace, int64_t now_ms);
/* So many were answered. Texts a minute when it is time to write that down, after a second and then every ten; else 0. */
int64_t qr_pace_hear(struct qr_pace *pace, int64_t text_count, int64_t now_ms);
