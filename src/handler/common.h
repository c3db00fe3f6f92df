/* What handlers share: the look at base and item before anything is done, the guard of index writes, and the outcome. */
#pragma once

#include "handler/context.h"
#include "model/stage_result.h"

/* One attempt of a job about a base or an item. What is loaded lives in the arena of the run. */
struct qr_attempt {
    struct qr_job_run *run;
    struct qr_handler_context *context;
    struct qr_base base;
    struct qr_settings settings;       /* with the wanted model */
    struct qr_embedding_settings live; /* the model that search uses */
    struct qr_item item;               /* of jobs about an item; else its id is all zero */
    const char *source_options;        /* of the folder that it came with; NULL = not looked up yet */
    struct qr_batcher *batcher;        /* of the live model; NULL = none, or it was not asked for yet */
    struct qr_batcher *wanted_batcher; /* the same of the wanted one */
    bool
        is_rebuilding; /* of a store that is made anew: its vectors are those of its live model, whatever becomes of that */
    /* made when they are asked for, unless they are the context's */
    struct qr_processor *own_processor;
    struct qr_analyser *own_analyser;
};

#define QR_ATTEMPT(name) QR_CLEANUP(qr_attempt_done) struct qr_attempt name = {0}
void qr_attempt_done(struct qr_attempt *attempt);

/* GEN-1, in one read: loads the item, its base and the settings. False: *outcome says why nothing is to be done: `not_found`,
 * `deleting`, `stale_generation`; or, while the base is failed, that the job is held until it is restored. A stage job's
 * item must be active too. */
bool qr_attempt_begin(struct qr_attempt *attempt, struct qr_job_run *run, struct qr_outcome *outcome);
/* The same for a job about a base, in one of the states (QR_BASE_*) that `allowed` has a bit for. */
bool qr_attempt_begin_base(struct qr_attempt *attempt, struct qr_job_run *run, uint32_t allowed,
                           struct qr_outcome *outcome);

/* Of the base that was loaded: its settings and its live model. */
qr_rc qr_attempt_read_settings(struct qr_attempt *attempt, qr_err *err);

/* GEN-1 of several jobs about items at once: one read, in which what they share is loaded once, into `arena`. An outcome that
 * stays QR_OUTCOME_NONE: the attempt has begun. */
void qr_attempts_begin(struct qr_attempt *attempts, struct qr_job_run *const *runs, size_t count,
                       struct qr_arena *arena, struct qr_outcome *const *outcomes);

/* The look again: before a step that is paid for or slow. Nothing is loaded. */
qr_rc qr_attempt_check(struct qr_attempt *attempt, qr_err *err);
/* The same inside a read, for who looks at several: *ret_is_wanted, else why not. An error is the database's. */
qr_rc qr_attempt_check_in(struct qr_tx *tx, const struct qr_attempt *attempt, bool *ret_is_wanted, qr_err *ret_why,
                          qr_err *err);
/* Between batches: `cancelled` when the attempt is to end. */
qr_rc qr_attempt_go_on(const struct qr_attempt *attempt, qr_err *err);
qr_rc qr_attempt_fail_lost(qr_err *err);
/* For index writes: whether the job still runs under its fence. */
struct qr_index_guard qr_attempt_guard(struct qr_attempt *attempt);
/* For vectors: also whether the base's models are still those that the attempt knows; else `stale_generation`, so that nobody
 * leaves vectors of a model that was given up behind the one who took them away. */
struct qr_index_guard qr_attempt_vector_guard(struct qr_attempt *attempt);
/* The base and its settings as they are now: for one who was told so. */
qr_rc qr_attempt_reload_base(struct qr_attempt *attempt, qr_err *err);
/* The same for qr_index_write_documents; the owner of a document is its attempt. */
qr_index_documents_guard_fn qr_attempts_guard;
/* The same for qr_index_write_vectors_of. */
qr_index_documents_guard_fn qr_attempts_vector_guard;

/* Of the live model and of the wanted one; NULL where nothing is embedded. qr_attempt_done gives them back. */
qr_rc qr_attempt_batcher(struct qr_attempt *attempt, struct qr_batcher **ret_batcher, qr_err *err);
qr_rc qr_attempt_wanted_batcher(struct qr_attempt *attempt, struct qr_batcher **ret_batcher, qr_err *err);
/* `invalid_value` when the base has none. */
qr_rc qr_attempt_processor(struct qr_attempt *attempt, struct qr_processor **ret_processor, qr_err *err);
/* Has the processor end and forget what it was given of the item; best effort. */
void qr_attempt_cancel_ticket(struct qr_attempt *attempt, const struct qr_item *item);
qr_rc qr_attempt_analyser(struct qr_attempt *attempt, struct qr_analyser **ret_analyser, qr_err *err);
/* Where the outcome's error says that a service takes nothing now: until when the job is put off (AGAIN-2). */
void qr_attempt_put_off(struct qr_attempt *attempt, struct qr_outcome *outcome);
/* Whether there is a model at all. */
bool qr_embedding_is_on(const struct qr_embedding_settings *embedding);

/* From what a handler's work returned to the outcome; its error is in outcome->error already. */
void qr_outcome_set(struct qr_outcome *outcome, qr_rc rc, void *result);

/* The ids of {"what": …, "roots": […]}, in the run's arena. `what` may be NULL. */
qr_rc qr_job_roots(const struct qr_job_run *run, const char **ret_what, qr_uuid **ret_roots, size_t *ret_count,
                   qr_err *err);

/* The folder that was added and that the item is in: the topmost ancestor with a source, or the item itself; with its
 * options. */
qr_rc qr_find_source_root(struct qr_db *db, const struct qr_item *item, struct qr_arena *arena, bool *ret_found,
                          struct qr_item *ret_root, qr_err *err);

qr_rc qr_handler_out_of_memory(qr_err *err);
