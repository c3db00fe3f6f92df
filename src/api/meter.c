/* Owns the counters of requests. */
#include "api/meter.h"

#include "base/thread.h"

const int64_t qr_meter_bounds_us[QR_METER_BUCKETS] = {1000,  2500,   5000,   10000,   25000,
                                                      50000, 100000, 250000, 1000000, 5000000};

enum { ITEMS_A_LOOK = 10000 };

void qr_meter_init(struct qr_meter *meter)
{
    *meter = (struct qr_meter){.opened_us = qr_thread_mono_us(), .items_a_look = ITEMS_A_LOOK};
    qr_mutex_init(&meter->lock);
    qr_buf_init(&meter->text, 0);
}

void qr_meter_done(struct qr_meter *meter)
{
    qr_buf_done(&meter->text);
    qr_mutex_done(&meter->lock);
}

void qr_meter_request(struct qr_meter *meter, int status)
{
    const int class = status / 100;
    atomic_fetch_add(&meter->requests[class > 0 && class < QR_METER_CLASSES ? class : 0], 1);
}

void qr_meter_search(struct qr_meter *meter, int64_t took_us)
{
    size_t bucket = 0;
    while (bucket < QR_METER_BUCKETS && took_us > qr_meter_bounds_us[bucket]) {
        bucket++;
    }
    atomic_fetch_add(&meter->searches[bucket], 1);
    atomic_fetch_add(&meter->search_us, (uint64_t)took_us);
}
