/* Jobs: their states and queues as tables, and the pure decisions about them. Their types: model/job_type.h. */
#pragma once

#include "base/err.h"
#include "base/rand.h"
#include "base/str.h"
#include "base/uuid.h"

/* ---- states ---- */

/* Stored as these numbers: never renumber. */
enum qr_job_state {
    QR_JOB_BLOCKED = 1,   /* another job of its serial key goes first */
    QR_JOB_SCHEDULED = 2, /* not before run_at */
    QR_JOB_QUEUED = 3,
    QR_JOB_RUNNING = 4,
    QR_JOB_COMPLETED = 5,
    QR_JOB_FAILED = 6,
    QR_JOB_SKIPPED = 7,
    QR_JOB_CANCELLED = 8,
};

/* SQL: the states of an open job, and those of which a serial key has at most one. */
#define QR_JOB_OPEN_SQL   "(1, 2, 3, 4)"
#define QR_JOB_ACTIVE_SQL "(2, 3, 4)"

/* What is stored may come from another version or a damaged file: a state or queue that there is not is called "unknown", is
 * not open, and becomes nothing. */
const char *qr_job_state_name(enum qr_job_state state);
/* 0 when there is none of that name. */
enum qr_job_state qr_job_state_find(qr_str name);
bool qr_job_state_is_open(enum qr_job_state state);
/* Whether the state may follow; the one setter of the store asserts it. */
bool qr_job_state_may_become(enum qr_job_state from, enum qr_job_state to);

/* ---- queues ---- */

/* Stored as these numbers: never renumber. */
enum qr_queue {
    QR_QUEUE_EXPAND = 1,
    QR_QUEUE_CONVERT = 2,
    QR_QUEUE_EMBED = 3,
    QR_QUEUE_ASSETS = 4,
    QR_QUEUE_DELETE = 5, /* its workers serve nothing else: a delete never waits behind indexing */
    QR_QUEUE_END,
};

bool qr_queue_is_known(enum qr_queue queue);
const char *qr_queue_name(enum qr_queue queue);
enum qr_queue qr_queue_find(qr_str name);

/* ---- what becomes of an attempt ---- */

enum {
    QR_JOB_ATTEMPTS_MAX = 13, /* of failures that may pass; about 20 minutes in all */
    QR_JOB_CRASHES_MAX = 3,   /* then the job is to blame, not the machine: `crashed_worker` */
    QR_JOB_BACKOFF_MS_MIN = 1000,
    QR_JOB_BACKOFF_MS_MAX = 300000,
    QR_JOB_DELAY_MS_MAX = 86400000, /* whatever a handler or an endpoint asks for */
};

/* How long to wait before the attempt after `attempts` failed ones: doubling, half of it by chance, at least what the
 * other side asked for. */
int64_t qr_job_backoff_ms(int64_t attempts, int64_t retry_after_ms, struct qr_rand *rand);
