/* The job types: queue, kind and time limit of each. docs/SEMANTICS.md §4. */
#pragma once

#include "model/job.h"

enum qr_job_type {
    QR_JOB_PREPARE_ROOT = 1,
    QR_JOB_PROCESS_DOCUMENT,
    QR_JOB_CHECK_FILE_PROCESSING,
    QR_JOB_CHUNK_DOCUMENT,
    QR_JOB_INDEX_CHUNKS,
    QR_JOB_ANALYZE_ASSET,
    QR_JOB_REFRESH_SOURCE,
    QR_JOB_REINDEX_SUBTREE,
    QR_JOB_RESTORE_BASE,
    QR_JOB_DELETE_SUBTREE,
    QR_JOB_DELETE_BASE,
    QR_JOB_PURGE,
    QR_JOB_BUILD_VECTORS,
    QR_JOB_TYPE_END,
};

struct qr_job_type_info {
    const char *name;
    enum qr_queue queue;
    bool is_stage;         /* of an item's way to completed: I1 counts these */
    int64_t time_limit_ms; /* of one attempt; 0 = none */
};

const struct qr_job_type_info *qr_job_type_info(enum qr_job_type type);
/* 0 when there is none of that name. */
enum qr_job_type qr_job_type_find(qr_str name);
bool qr_job_type_is_stage(const char *name);
