/* How jobs look in answers. Private to the routes of src/api/jobs*.c. */
#pragma once

#include "api/router.h"
#include "base/arena.h"
#include "store/jobs.h"

/* RFC 3339; null for 0. */
json_t *qr_json_time(int64_t wall_ms);
/* null for the id that is all zero. */
json_t *qr_json_uuid(qr_uuid id);
/* What lists show of a job; NULL when out of memory. */
json_t *qr_json_job(const struct qr_job *job);

/* Finds the job of the path: {j} is an id, or the beginning of just one. */
qr_rc qr_request_find_job(struct qr_tx *tx, const struct qr_request *request, struct qr_arena *arena,
                          struct qr_job *ret_job, qr_err *err);
