/* The table of handlers. */
#include "handler/handlers.h"

static qr_handler_fn *const functions[QR_JOB_TYPE_END] = {
    [QR_JOB_PREPARE_ROOT] = qr_handle_prepare_root,
    [QR_JOB_PROCESS_DOCUMENT] = qr_handle_process_document,
    [QR_JOB_CHECK_FILE_PROCESSING] = qr_handle_check_file_processing,
    [QR_JOB_CHUNK_DOCUMENT] = qr_handle_chunk_document,
    [QR_JOB_INDEX_CHUNKS] = qr_handle_index_chunks,
    [QR_JOB_ANALYZE_ASSET] = qr_handle_analyze_asset,
    [QR_JOB_REFRESH_SOURCE] = qr_handle_refresh_source,
    [QR_JOB_REINDEX_SUBTREE] = qr_handle_reindex_subtree,
    [QR_JOB_RESTORE_BASE] = qr_handle_restore_base,
    [QR_JOB_DELETE_SUBTREE] = qr_handle_delete_subtree,
    [QR_JOB_DELETE_BASE] = qr_handle_delete_base,
    [QR_JOB_PURGE] = qr_handle_purge,
    [QR_JOB_BUILD_VECTORS] = qr_handle_build_vectors,
};

/* Those for which doing several at once is less work. */
static qr_handler_many_fn *const several[QR_JOB_TYPE_END] = {
    [QR_JOB_PROCESS_DOCUMENT] = qr_handle_process_documents,
};

/* Those that mostly wait for somebody else. */
static qr_handler_stream_fn *const streams[QR_JOB_TYPE_END] = {
    [QR_JOB_INDEX_CHUNKS] = qr_handle_index_chunks_stream,
};

size_t qr_handlers(struct qr_handler_context *context, struct qr_handler ret_handlers[static QR_JOB_TYPE_END])
{
    size_t count = 0;
    for (enum qr_job_type type = QR_JOB_PREPARE_ROOT; type < QR_JOB_TYPE_END; type++) {
        ret_handlers[count++] = (struct qr_handler){.type = qr_job_type_info(type)->name,
                                                    .fn = functions[type],
                                                    .arg = context,
                                                    .many = several[type],
                                                    .stream = streams[type]};
    }
    return count;
}
