/* A fixed number of threads that take pieces of work from one line: those that move bytes hand over what may take long. */
#pragma once

#include "base/err.h"

struct qr_pool;

/* Part of whoever is handed over; in the line until it is run. */
struct qr_pool_work {
    void (*run)(struct qr_pool_work *work);
    struct qr_pool_work *next;
};

qr_rc qr_pool_create(struct qr_pool **ret_pool, int threads, qr_err *err);
/* Waits for what was handed over. NULL is fine. */
void qr_pool_free(struct qr_pool *pool);
/* Never waits and never fails: the line is as long as there are connections. */
void qr_pool_add(struct qr_pool *pool, struct qr_pool_work *work);
