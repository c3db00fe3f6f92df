#include "store/jobs_row.h"

#include "base/hash.h"

#include <stdio.h>

_Static_assert((int)QR_KEY_HASH_BYTES == (int)QR_HASH_BYTES, "keys are stored as qr_hash_128 makes them");

struct qr_job_key qr_job_key_of(qr_str text)
{
    struct qr_job_key key = {.is_set = text.len > 0};
    if (key.is_set) {
        qr_hash_128(text, key.hash);
    }
    return key;
}

struct qr_val qr_val_key(const struct qr_job_key *key)
{
    return key->is_set ? qr_val_blob(key->hash, QR_KEY_HASH_BYTES) : qr_val_null();
}

struct qr_job_key qr_rows_key(const struct qr_rows *rows, int column)
{
    const qr_str bytes = qr_rows_str(rows, column);
    struct qr_job_key key = {.is_set = !qr_rows_is_null(rows, column) && bytes.len == QR_KEY_HASH_BYTES};
    if (key.is_set) {
        memcpy(key.hash, bytes.ptr, QR_KEY_HASH_BYTES);
    }
    return key;
}

qr_rc qr_rows_job(const struct qr_rows *rows, struct qr_arena *arena, struct qr_job *ret_job, qr_err *err)
{
    struct qr_job job = {
        .id = qr_rows_uuid(rows, 0),
        .queue = (enum qr_queue)qr_rows_i64(rows, 1),
        .base_id = qr_rows_uuid(rows, 3),
        .item_id = qr_rows_uuid(rows, 4),
        .generation = qr_rows_i64(rows, 5),
        .state = (enum qr_job_state)qr_rows_i64(rows, 6),
        .priority = qr_rows_i64(rows, 7),
        .run_at_ms = qr_rows_i64(rows, 8),
        .args = qr_arena_copy(arena, qr_rows_str(rows, 9)),
        .fence = qr_rows_i64(rows, 10),
        .attempts = qr_rows_i64(rows, 11),
        .crashes = qr_rows_i64(rows, 12),
        .time_limit_ms = qr_rows_i64(rows, 13),
        .worker_id = qr_rows_uuid(rows, 14),
        .progress_done = qr_rows_i64(rows, 15),
        .progress_total = qr_rows_i64(rows, 16),
        .code = qr_arena_copy(arena, qr_rows_str(rows, 17)),
        .message = qr_arena_copy(arena, qr_rows_str(rows, 18)),
        .created_ms = qr_rows_i64(rows, 19),
        .claimed_ms = qr_rows_i64(rows, 20),
        .finished_ms = qr_rows_i64(rows, 21),
        .idempotency_key = qr_rows_key(rows, 22),
        .serial_key = qr_rows_key(rows, 23),
        .is_suspect = qr_rows_i64(rows, 24) != 0,
        .progress_ms = qr_rows_i64(rows, 25),
    };
    const qr_str type = qr_rows_str(rows, 2);
    snprintf(job.type, sizeof job.type, "%.*s", QR_STR_ARG(type));
    if (!job.args || !job.code || !job.message) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a job");
    }
    *ret_job = job;
    return QR_OK;
}
