/* Owns the tables of job states and queues. Pure. */
#include "model/job.h"

#define TO(state) QR_BIT(QR_JOB_##state)

static const struct {
    const char *name;
    bool is_open;
    uint32_t next;
} states[] = {
    [QR_JOB_BLOCKED] = {"blocked", true, TO(QUEUED) | TO(SCHEDULED) | TO(CANCELLED)},
    [QR_JOB_SCHEDULED] = {"scheduled", true, TO(QUEUED) | TO(CANCELLED)},
    [QR_JOB_QUEUED] = {"queued", true, TO(RUNNING) | TO(CANCELLED)},
    [QR_JOB_RUNNING] = {"running", true,
                        TO(QUEUED) | TO(SCHEDULED) | TO(COMPLETED) | TO(FAILED) | TO(SKIPPED) | TO(CANCELLED)},
    [QR_JOB_COMPLETED] = {"completed", false, 0},
    [QR_JOB_FAILED] = {"failed", false, 0},
    [QR_JOB_SKIPPED] = {"skipped", false, 0},
    [QR_JOB_CANCELLED] = {"cancelled", false, 0},
};

static const char *const queues[] = {
    [QR_QUEUE_EXPAND] = "expand", [QR_QUEUE_CONVERT] = "convert", [QR_QUEUE_EMBED] = "embed",
    [QR_QUEUE_ASSETS] = "assets", [QR_QUEUE_DELETE] = "delete",
};

static bool is_state(enum qr_job_state state)
{
    return state >= QR_JOB_BLOCKED && state <= QR_JOB_CANCELLED;
}

const char *qr_job_state_name(enum qr_job_state state)
{
    return is_state(state) ? states[state].name : "unknown";
}

enum qr_job_state qr_job_state_find(qr_str name)
{
    for (enum qr_job_state state = QR_JOB_BLOCKED; is_state(state); state++) {
        if (qr_str_equal(name, qr_str_of(states[state].name))) {
            return state;
        }
    }
    return 0;
}

bool qr_job_state_is_open(enum qr_job_state state)
{
    return is_state(state) && states[state].is_open;
}

bool qr_job_state_may_become(enum qr_job_state from, enum qr_job_state to)
{
    return is_state(from) && is_state(to) && (states[from].next & QR_BIT(to)) != 0;
}

bool qr_queue_is_known(enum qr_queue queue)
{
    return queue >= QR_QUEUE_EXPAND && queue < QR_QUEUE_END;
}

const char *qr_queue_name(enum qr_queue queue)
{
    return qr_queue_is_known(queue) ? queues[queue] : "unknown";
}

enum qr_queue qr_queue_find(qr_str name)
{
    for (enum qr_queue queue = QR_QUEUE_EXPAND; queue < QR_QUEUE_END; queue++) {
        if (qr_str_equal(name, qr_str_of(queues[queue]))) {
            return queue;
        }
    }
    return 0;
}

int64_t qr_job_backoff_ms(int64_t attempts, int64_t retry_after_ms, struct qr_rand *rand)
{
    int64_t ms = QR_JOB_BACKOFF_MS_MIN;
    for (int64_t i = 1; i < attempts && ms < QR_JOB_BACKOFF_MS_MAX; i++) {
        ms *= 2;
    }
    ms = QR_MIN(ms, (int64_t)QR_JOB_BACKOFF_MS_MAX);
    ms = ms / 2 + (int64_t)qr_rand_below(rand, (uint64_t)ms / 2 + 1);
    return QR_MAX(ms, retry_after_ms);
}
