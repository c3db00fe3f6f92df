/* The entry points: what a request changes, with its jobs, in one durable transaction. docs/SEMANTICS.md §3.
 *
 * Guards are in guard.c, what follows a job in plan.c, what a restart finds in recover.c. */
#pragma once

#include "artifact/artifact.h"
#include "store/change.h"
#include "store/jobs.h"

struct qr_workflow {
    struct qr_db *db;
    struct qr_uuid_gen *ids;
    const struct qr_artifacts *artifacts;
};

/* ---- add (ADD-1 … ADD-5) ---- */

struct qr_add_item {
    enum qr_item_type type;
    qr_str name;       /* for people; empty = from the source */
    qr_str source;     /* absolute path or URL, raw; empty for a note */
    bool no_links;     /* the path has no link, and none that comes later is followed */
    qr_str content;    /* of a note */
    qr_str attributes; /* JSON object; empty = none */
    qr_str options;    /* JSON object {include, exclude, copy}; empty = none */
    /* of what has no source and is no note: */
    const struct qr_new_artifact *owned; /* the bytes of a file, which are Quire's; NULL = it has none */
    size_t parent;                       /* 1 + the index of the folder in the same request that holds it; 0 = a root */
};

enum qr_on_conflict { QR_CONFLICT_CREATE, QR_CONFLICT_SKIP, QR_CONFLICT_UPDATE };

struct qr_add {
    qr_uuid base_id;
    const struct qr_add_item *items; /* valid: the caller has checked shapes and limits */
    size_t count;
    bool is_manual;
    enum qr_on_conflict on_conflict; /* where a living root has the same source */
};

struct qr_added {
    qr_uuid id;
    const char *what; /* "created", "skipped", "updated" */
};

/* *ret_added: one for each item. `enqueue_failed`: all the same, the items are there, some `failed`. */
qr_rc qr_workflow_add(const struct qr_workflow *workflow, const struct qr_add *add, struct qr_arena *arena,
                      struct qr_added **ret_added, qr_err *err);

/* ---- on selections ---- */

struct qr_selection {
    qr_uuid base_id;
    const qr_uuid *ids;
    size_t count;
};

struct qr_skipped {
    qr_uuid id;
    const char *reason;
};

/* In the arena of the call. */
struct qr_selection_answer {
    qr_uuid *accepted;
    size_t accepted_count;
    struct qr_skipped *skipped;
    size_t skipped_count;
    qr_uuid job_id; /* all zero = none */
};

qr_rc qr_workflow_delete(const struct qr_workflow *workflow, const struct qr_selection *selection,
                         struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err);

/* Of a refusal with `not_terminal`: *ret_counts says what stands in the way. With `dry_run` nothing is queued. */
struct qr_reindex_estimate {
    int64_t item_count, chunk_count, token_count;
};
qr_rc qr_workflow_reindex(const struct qr_workflow *workflow, const struct qr_selection *selection, bool dry_run,
                          struct qr_arena *arena, struct qr_selection_answer *ret_answer,
                          struct qr_status_counts *ret_counts, struct qr_reindex_estimate *ret_estimate, qr_err *err);

qr_rc qr_workflow_retry(const struct qr_workflow *workflow, const struct qr_selection *selection,
                        struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err);
qr_rc qr_workflow_refresh(const struct qr_workflow *workflow, const struct qr_selection *selection,
                          struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err);

/* ---- one item ---- */

/* New content of a note, or of a file whose bytes Quire then owns. *ret_changed false: it is the same. */
qr_rc qr_workflow_update(const struct qr_workflow *workflow, qr_uuid base_id, qr_uuid item_id, qr_str content,
                         bool *ret_changed, qr_err *err);
/* The same with bytes that are ready to be adopted; they are left as they are where nothing changed. */
qr_rc qr_workflow_update_owned(const struct qr_workflow *workflow, qr_uuid base_id, qr_uuid item_id,
                               const struct qr_new_artifact *artifact, bool *ret_changed, qr_err *err);
/* What is NULL stays. */
struct qr_item_patch {
    const char *name, *attributes;
    const bool *enabled;
};
qr_rc qr_workflow_patch(const struct qr_workflow *workflow, qr_uuid base_id, qr_uuid item_id,
                        const struct qr_item_patch *patch, qr_err *err);

/* ---- jobs ---- */

/* CANCEL-1: a stage job's item fails as `cancelled`; a delete is not cancelled: `not_open` … see guard.c. */
qr_rc qr_workflow_cancel_job(const struct qr_workflow *workflow, qr_uuid job_id, enum qr_job_state *ret_state,
                             qr_err *err);
/* CANCEL-2: of a stage job, the item's retry; *ret_job_id is the new job. */
qr_rc qr_workflow_retry_job(const struct qr_workflow *workflow, qr_uuid job_id, qr_uuid *ret_job_id, bool *ret_existed,
                            qr_err *err);

/* ---- bases ---- */

qr_rc qr_workflow_add_base(const struct qr_workflow *workflow, qr_str name, qr_str settings, qr_uuid *ret_id,
                           qr_err *err);
/* All of its settings, which are valid; where they ask for another model, its build begins (MODEL-1). */
qr_rc qr_workflow_set_settings(const struct qr_workflow *workflow, qr_uuid base_id, const char *settings, qr_err *err);
/* `not_empty` unless confirmed. */
qr_rc qr_workflow_delete_base(const struct qr_workflow *workflow, qr_uuid base_id, bool confirmed, qr_uuid *ret_job_id,
                              qr_err *err);
qr_rc qr_workflow_restore_base(const struct qr_workflow *workflow, qr_uuid base_id, qr_uuid *ret_job_id, qr_err *err);
/* A base that cannot work any more (THING-2). */
qr_rc qr_workflow_fail_base(const struct qr_workflow *workflow, qr_uuid base_id, const char *code, const char *message,
                            qr_err *err);

/* ---- runs: workflow/process.h ---- */
