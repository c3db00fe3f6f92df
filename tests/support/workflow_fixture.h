/* The workflow in a test, without handlers: entry points and plan are real, and the test says what the stages find.
 *
 * After each call the invariants that need no index are looked at: I1, I3, I4, I6 computed from scratch by SQL. */
#pragma once

#include "model/job_type.h"
#include "model/stage_result.h"
#include "support/db_fixture.h"
#include "workflow/plan.h"
#include "workflow/workflow.h"

struct qr_desk {
    struct qr_test *t;
    struct qr_db *db;
    struct qr_uuid_gen ids;
    struct qr_artifacts artifacts;
    struct qr_workflow workflow;
    struct qr_plan plan;
    struct qr_arena arena;
    qr_uuid worker_id, base_id;
};

/* A base "base" with these settings (JSON), on a clock of the test that stands at 10^9 ms. */
void qr_desk_open(struct qr_desk *desk, struct qr_test *t, const char *settings);
void qr_desk_close(struct qr_desk *desk);

/* The number that a query without values gives. */
int64_t qr_desk_i64(struct qr_desk *desk, const char *sql);
/* Runs a statement, as a bug or an older version would. */
void qr_desk_exec(struct qr_desk *desk, const char *sql);
/* I1, I3, I4, I6. */
void qr_desk_check(struct qr_desk *desk);

/* ---- items ---- */

qr_uuid qr_desk_add_note(struct qr_desk *desk, const char *name, const char *content);
qr_uuid qr_desk_add_folder(struct qr_desk *desk, const char *path);
struct qr_item qr_desk_item(struct qr_desk *desk, qr_uuid id); /* must be there */
bool qr_desk_has_item(struct qr_desk *desk, qr_uuid id);
struct qr_item qr_desk_child(struct qr_desk *desk, qr_uuid parent_id, const char *name);

/* Asks for something about these items of the base. */
typedef qr_rc qr_desk_entry(const struct qr_workflow *workflow, const struct qr_selection *selection,
                            struct qr_arena *arena, struct qr_selection_answer *ret_answer, qr_err *err);
qr_rc qr_desk_select(struct qr_desk *desk, qr_desk_entry *entry, const qr_uuid *ids, size_t count,
                     struct qr_selection_answer *ret_answer, qr_err *err);
/* qr_workflow_reindex without its numbers. */
qr_desk_entry qr_desk_reindex;

/* ---- jobs ---- */

/* Claims the open stage job of the item; it must be of this type. */
struct qr_job qr_desk_claim(struct qr_desk *desk, qr_uuid item_id, enum qr_job_type type);
/* Any open job of the type. */
struct qr_job qr_desk_claim_type(struct qr_desk *desk, enum qr_job_type type);
/* Ends it as the runner would: QR_LOST when it was taken away. */
qr_rc qr_desk_end(struct qr_desk *desk, const struct qr_job *job, enum qr_job_state state, qr_code code, void *result,
                  qr_err *err);
qr_rc qr_desk_part(struct qr_desk *desk, const struct qr_job *job, void *part, qr_err *err);

/* Completes the item's stage: text, chunks and index in one. */
void qr_desk_index(struct qr_desk *desk, qr_uuid item_id);
void qr_desk_fail(struct qr_desk *desk, qr_uuid item_id, qr_code code);
/* Expands the folder: files and folders (names ending with '/') that it holds now; what is known and not named is gone. */
void qr_desk_expand(struct qr_desk *desk, qr_uuid item_id, const char *const *names, size_t count);

int64_t qr_desk_open_jobs(struct qr_desk *desk, enum qr_job_type type);
