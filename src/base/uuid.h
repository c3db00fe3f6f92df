/* UUIDv7 ids: sortable by time of creation, also when the clock jumps back. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"
#include "base/rand.h"
#include "base/str.h"

#include <pthread.h>

enum { QR_UUID_BYTES = 16, QR_UUID_TEXT_SIZE = 37 };

typedef struct qr_uuid {
    unsigned char bytes[QR_UUID_BYTES];
} qr_uuid;

/* Makes ids; one a process, shared by its threads. */
struct qr_uuid_gen {
    const struct qr_clock *clock;
    struct qr_rand *rand;
    pthread_mutex_t lock; /* guards the rest */
    int64_t last_ms;
    uint16_t sequence; /* 12 bits: orders the ids of one millisecond */
};

void qr_uuid_gen_init(struct qr_uuid_gen *gen, const struct qr_clock *clock, struct qr_rand *rand);
void qr_uuid_gen_done(struct qr_uuid_gen *gen);

/* Greater than every id this generator made before. */
qr_uuid qr_uuid_next(struct qr_uuid_gen *gen);

void qr_uuid_format(qr_uuid id, char ret_text[static QR_UUID_TEXT_SIZE]);
/* The 36-character form in either case; false for anything else. */
bool qr_uuid_parse(qr_str text, qr_uuid *ret_id);
/* When it was made. */
int64_t qr_uuid_time_ms(qr_uuid id);

static inline bool qr_uuid_equal(qr_uuid a, qr_uuid b)
{
    return memcmp(a.bytes, b.bytes, QR_UUID_BYTES) == 0;
}

/* All zero stands for "none". */
static inline bool qr_uuid_is_zero(qr_uuid id)
{
    return qr_uuid_equal(id, (qr_uuid){0});
}

/* The first and the last id whose text begins like this; false when none can. */
bool qr_uuid_prefix_range(qr_str prefix, qr_uuid *ret_first, qr_uuid *ret_last);
