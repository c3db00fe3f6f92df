/* What an item does next, and the job that does it. */
#pragma once

#include "model/settings.h"
#include "store/jobs_item.h"
#include "workflow/workflow.h"

/* The stage that the item's generation needs next and that is asked for; 0 = none. */
enum qr_job_type qr_next_stage(const struct qr_item *item);

/* Queues the next stages of items that are about to be written, and gives each its status: what it is when its stage is
 * queued, or of the k-th that cannot be and all behind it `failed` with `enqueue_failed` (ADD-4). *ret_failure says why, its
 * code is NONE when all were queued. */
void qr_enqueue_stages(struct qr_change *change, struct qr_item *const *items, size_t count, qr_err *ret_failure);

/* What the item becomes when its next stage is queued: `preparing`, `processing`; or at rest: `idle`. */
enum qr_item_status qr_scheduled_status(const struct qr_item *item);

/* Queues the next stage and saves the item with its new status; an enqueue that fails makes it `failed`. */
qr_rc qr_schedule_item(struct qr_change *change, struct qr_item *item, qr_err *err);

/* The same where a failing enqueue fails the whole change. */
qr_rc qr_schedule_strictly(struct qr_change *change, struct qr_item *item, qr_err *err);

/* The next generation: the stage job of the one before is cancelled first. Nothing is saved yet. */
qr_rc qr_raise_generation(struct qr_change *change, struct qr_item *item, const char *reason, qr_err *err);

/* The item's failure, in memory: status and error. A container's expansion error too. */
void qr_set_failed(struct qr_change *change, struct qr_item *item, const char *stage, const char *code,
                   const char *message);

/* Source planning by the base's settings; false: it cannot be taken and was set failed. */
bool qr_plan_source(struct qr_change *change, struct qr_item *item, const struct qr_settings *settings);
/* The settings of a base under change. */
qr_rc qr_base_settings(const struct qr_base *base, struct qr_arena *arena, struct qr_settings *ret_settings,
                       qr_err *err);

/* A job about several roots of a base, unique by their key while it is open. */
qr_rc qr_enqueue_roots(struct qr_change *change, enum qr_job_type type, const char *what, qr_uuid base_id,
                       const struct qr_item *roots, size_t count, struct qr_arena *arena, qr_uuid *ret_job_id,
                       qr_err *err);
/* Marks roots as deleting and queues `delete-subtree` for them; the rows name that job, so that recovery finds those without
 * one. Where the enqueue fails the
 * mark stands (DEL-3); `ret_mark` (may be NULL) says so. */
struct qr_delete_mark {
    qr_uuid job_id;
    qr_err failure;
};
qr_rc qr_mark_deleting(struct qr_change *change, qr_uuid base_id, struct qr_item *roots, size_t count,
                       struct qr_delete_mark *ret_mark, qr_err *err);
/* `refresh-source` of the item; one at a time of a generation. */
qr_rc qr_enqueue_refresh(struct qr_change *change, const struct qr_item *item, qr_err *err);
/* `purge` of the item's generations that are neither live nor wanted, after queries that may read them have ended. */
qr_rc qr_enqueue_purge(struct qr_change *change, const struct qr_item *item, qr_err *err);
/* The same of a leaf that came to rest without going live: what its generations before this one left is nobody's. */
qr_rc qr_purge_at_rest(struct qr_change *change, const struct qr_item *item, qr_err *err);
/* `delete-base`, `restore-base` or `build-vectors`; one at a time of each. */
qr_rc qr_enqueue_base_job(struct qr_tx *tx, struct qr_uuid_gen *ids, enum qr_job_type type, qr_uuid base_id,
                          qr_uuid *ret_job_id, qr_err *err);

/* RETRY-1 … RETRY-3 for one item: *ret_job_id is the job that does it; or *ret_skipped says why not, else it is NULL. */
qr_rc qr_retry_one(struct qr_change *change, struct qr_item *item, qr_uuid *ret_job_id, const char **ret_skipped,
                   qr_err *err);
