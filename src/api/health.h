/* Whether an instance can work, for /readyz. */
#pragma once

#include "base/err.h"
#include "base/sync.h"

enum qr_health_part { QR_HEALTH_DATABASE, QR_HEALTH_SCHEMA, QR_HEALTH_WORK, QR_HEALTH_PARTS };

/* What was found when it was last looked: anybody may ask, so asking often must cost nothing, and a database that does not
 * answer must not keep those who ask. */
struct qr_health {
    struct qr_mutex lock;
    bool is_looking; /* somebody does: others are told what was found before */
    bool has_looked;
    int64_t looked_us;              /* qr_thread_mono_us */
    qr_code found[QR_HEALTH_PARTS]; /* NONE = well */
};

void qr_health_init(struct qr_health *health);
void qr_health_done(struct qr_health *health);
