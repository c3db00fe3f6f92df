/* Owns the table of job types. Pure. */
#include "model/job_type.h"

#include <assert.h>

#define MINUTE_MS INT64_C(60000)

/* The time limits end what hangs. They are far above what honest work takes: an expansion or an index walks any number of
 * rows, and goes on where it was when the attempt is repeated. */
static const struct qr_job_type_info types[] = {
    [QR_JOB_PREPARE_ROOT] = {"prepare-root", QR_QUEUE_EXPAND, true, 60 * MINUTE_MS},
    [QR_JOB_PROCESS_DOCUMENT] = {"process-document", QR_QUEUE_CONVERT, true, 10 * MINUTE_MS},
    [QR_JOB_CHECK_FILE_PROCESSING] = {"check-file-processing", QR_QUEUE_CONVERT, true, 10 * MINUTE_MS},
    [QR_JOB_CHUNK_DOCUMENT] = {"chunk-document", QR_QUEUE_CONVERT, true, 10 * MINUTE_MS},
    [QR_JOB_INDEX_CHUNKS] = {"index-chunks", QR_QUEUE_EMBED, true, 60 * MINUTE_MS},
    [QR_JOB_ANALYZE_ASSET] = {"analyze-asset", QR_QUEUE_ASSETS, false, 10 * MINUTE_MS},
    [QR_JOB_REFRESH_SOURCE] = {"refresh-source", QR_QUEUE_CONVERT, false, 10 * MINUTE_MS},
    [QR_JOB_REINDEX_SUBTREE] = {"reindex-subtree", QR_QUEUE_EXPAND, false, 60 * MINUTE_MS},
    [QR_JOB_RESTORE_BASE] = {"restore-base", QR_QUEUE_EXPAND, false, 60 * MINUTE_MS},
    /* a delete always ends by itself, and nothing may stop it: no limit */
    [QR_JOB_DELETE_SUBTREE] = {"delete-subtree", QR_QUEUE_DELETE, false, 0},
    [QR_JOB_DELETE_BASE] = {"delete-base", QR_QUEUE_DELETE, false, 0},
    [QR_JOB_PURGE] = {"purge", QR_QUEUE_DELETE, false, 60 * MINUTE_MS},
    [QR_JOB_BUILD_VECTORS] = {"build-vectors", QR_QUEUE_EMBED, false, 60 * MINUTE_MS},
};

const struct qr_job_type_info *qr_job_type_info(enum qr_job_type type)
{
    assert(type >= QR_JOB_PREPARE_ROOT && type < QR_JOB_TYPE_END);
    return &types[type];
}

enum qr_job_type qr_job_type_find(qr_str name)
{
    for (enum qr_job_type type = QR_JOB_PREPARE_ROOT; type < QR_JOB_TYPE_END; type++) {
        if (qr_str_equal(name, qr_str_of(types[type].name))) {
            return type;
        }
    }
    return 0;
}

bool qr_job_type_is_stage(const char *name)
{
    const enum qr_job_type type = qr_job_type_find(qr_str_of(name));
    return type && qr_job_type_info(type)->is_stage;
}
