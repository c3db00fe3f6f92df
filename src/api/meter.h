/* What requests are counted by, for /metrics. One instance's; added to by any thread, without a lock. */
#pragma once

#include "base/buf.h"
#include "base/sync.h"
#include "store/items.h"

#include <stdatomic.h>
#include <stdint.h>

enum { QR_METER_CLASSES = 6, QR_METER_BUCKETS = 10 };

/* Bounds of the histogram of searches, in microseconds; what is longer is counted in the last bucket, which has none. */
extern const int64_t qr_meter_bounds_us[QR_METER_BUCKETS];

struct qr_meter {
    int64_t opened_us;                               /* qr_thread_mono_us */
    _Atomic uint64_t requests[QR_METER_CLASSES];     /* by the first digit of their status */
    _Atomic uint64_t searches[QR_METER_BUCKETS + 1]; /* each in one bucket */
    _Atomic uint64_t search_us;

    /* what was last shown: looking costs the same however many ask */
    struct qr_mutex lock;
    struct qr_buf text; /* empty = nothing yet */
    int64_t text_us;
    int64_t files_us; /* when the sizes below were looked at; 0 = never */
    int64_t index_bytes, index_wal_bytes, index_files;
    /* items at rest: some are counted with each look, until it has been all of them */
    int items_a_look;
    struct qr_rest_counts counting;
    struct qr_rest_counts counted; /* the last time round */
    int64_t counted_us;            /* when; 0 = not yet */
};

void qr_meter_init(struct qr_meter *meter);
void qr_meter_done(struct qr_meter *meter);
void qr_meter_request(struct qr_meter *meter, int status);
void qr_meter_search(struct qr_meter *meter, int64_t took_us);
