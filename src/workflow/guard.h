/* Who may do what: the refusals of the entry points, all under the base lock. docs/SEMANTICS.md §3. */
#pragma once

#include "workflow/workflow.h"

/* REQ-5: `not_found` for a base that is gone or deleting, `base_failed` for one that failed. */
qr_rc qr_guard_base(struct qr_change *change, qr_uuid base_id, struct qr_base **ret_base, qr_err *err);
/* The same without `base_failed`: deletes are always allowed. */
qr_rc qr_guard_base_exists(struct qr_change *change, qr_uuid base_id, struct qr_base **ret_base, qr_err *err);

/* The item; `not_found` when there is none in this base, or it is deleting. */
qr_rc qr_guard_item(struct qr_change *change, qr_uuid base_id, qr_uuid item_id, struct qr_arena *arena,
                    struct qr_item *ret_item, qr_err *err);

/* REQ-3, REQ-4: the outermost of the selected items, each once, in the order of their ids. An unknown id is `not_found`, or
 * with `skip_gone` left out. */
qr_rc qr_guard_roots(struct qr_change *change, const struct qr_selection *selection, bool skip_gone,
                     struct qr_arena *arena, struct qr_item **ret_roots, size_t *ret_count, qr_err *err);

/* What the write function of a request on a selection gets. */
struct qr_selection_call {
    const struct qr_workflow *workflow;
    const struct qr_selection *selection;
    struct qr_selection_answer *answer;
    bool is_delete; /* allowed on a failed base, and what is gone is left out */
};

/* An answer with room for every selected item. */
qr_rc qr_selection_answer_init(struct qr_selection_answer *answer, const struct qr_selection *selection,
                               struct qr_arena *arena, qr_err *err);
/* The beginning of such a function: the lock, the guards, an empty answer. */
qr_rc qr_selection_begin(struct qr_change *change, struct qr_tx *tx, const struct qr_selection_call *call,
                         struct qr_item **ret_roots, size_t *ret_count, qr_err *err);
void qr_selection_accept(struct qr_selection_answer *answer, qr_uuid id);
void qr_selection_skip(struct qr_selection_answer *answer, qr_uuid id, const char *reason);

/* GEN-1: whether the job's result may still be written: QR_OK, or `stale_generation`, `deleting`, `not_found`. */
qr_rc qr_guard_result(struct qr_change *change, const struct qr_job *job, struct qr_arena *arena,
                      struct qr_item *ret_item, qr_err *err);

/* "knowledge:<base>:<sorted roots>:<what>"; NULL when out of memory. */
const char *qr_roots_key(qr_uuid base_id, const struct qr_item *roots, size_t count, const char *what,
                         struct qr_arena *arena);
