/* The look at every base's index store: a task of the beat, at start and every hour (RECOV-4). */
#pragma once

#include "api/instance.h"
#include "job/beat.h"

enum { QR_STORES_A_STEP = 16 }; /* each is opened for it */

struct qr_store_look {
    struct quire *quire;
    qr_uuid after; /* the base that was looked at last; all zero = none */

    /* what the step has seen */
    qr_uuid last;
    bool more;
    struct {
        qr_uuid base_id;
        char stamp[QR_INDEX_STAMP_SIZE]; /* that the store should have had */
    } lost[QR_STORES_A_STEP];
    size_t lost_count;
};

/* `look` must outlive the beat; its `quire` is set by the caller. */
struct qr_beat_task qr_store_look_task(struct qr_store_look *look);
