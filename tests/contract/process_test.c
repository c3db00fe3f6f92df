/* Runs, their levels and gates, over every database. */
#include "support/workflow_fixture.h"
#include "workflow/process.h"

/* The items rest `idle` first, as after an upload. */
static qr_uuid add_manually(struct qr_desk *desk, enum qr_item_type type, const char *text)
{
    const struct qr_add_item item = {.type = type,
                                     .name = QR_STR("n"),
                                     .content = type == QR_ITEM_NOTE ? qr_str_of(text) : (qr_str){0},
                                     .source = type == QR_ITEM_NOTE ? (qr_str){0} : qr_str_of(text)};
    const struct qr_add add = {.base_id = desk->base_id, .items = &item, .count = 1, .is_manual = true};
    struct qr_added *added;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_add(&desk->workflow, &add, &desk->arena, &added, &err));
    qr_desk_check(desk);
    return added[0].id;
}

static struct qr_run process(struct qr_desk *desk, int64_t wanted, bool manual)
{
    const struct qr_process process = {desk->base_id, wanted, manual};
    struct qr_run run;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_process(&desk->workflow, &process, &run, &err));
    qr_desk_check(desk);
    return run;
}

struct look {
    qr_uuid id;
    struct qr_run run;
};

static qr_rc find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct look *look = arg;
    bool found;
    return qr_run_find(tx, look->id, &found, &look->run, err);
}

static struct qr_run look_at(struct qr_desk *desk, qr_uuid id)
{
    struct look look = {.id = id};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(desk->db, find, &look, &err));
    return look.run;
}

static void reach(struct qr_desk *desk, qr_uuid item_id, enum qr_job_type type, enum qr_reached reached)
{
    const struct qr_job job = qr_desk_claim(desk, item_id, type);
    struct qr_stage_result result = {.reached = reached, .chunk_count = 1};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_desk_end(desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
}

/* PROC-2, PROC-3 */
QR_DB_TEST(a_run_takes_an_item_as_far_as_it_asks_and_no_further)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = add_manually(&desk, QR_ITEM_NOTE, "x");
    struct qr_run run = process(&desk, QR_WANT_PROCESS, false);
    QR_CHECK_INT(QR_RUN_RUNNING, run.status);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, note).status);
    reach(&desk, note, QR_JOB_PROCESS_DOCUMENT, QR_REACHED_TEXT);
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, note).status);
    run = look_at(&desk, run.id);
    QR_CHECK_INT(QR_RUN_COMPLETED, run.status);
    QR_CHECK_INT(1, run.stages[QR_RUN_PROCESS].done);
    run = process(&desk, QR_WANT_CHUNK | QR_WANT_INDEX, false);
    reach(&desk, note, QR_JOB_CHUNK_DOCUMENT, QR_REACHED_CHUNKS);
    QR_CHECK_INT(QR_RUN_RUNNING, look_at(&desk, run.id).status);
    reach(&desk, note, QR_JOB_INDEX_CHUNKS, QR_REACHED_INDEX);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, note).status);
    QR_CHECK_INT(1, qr_desk_item(&desk, note).generation);
    QR_CHECK_INT(QR_RUN_COMPLETED, look_at(&desk, run.id).status);
    qr_desk_close(&desk);
}

/* PROC-4 */
QR_DB_TEST(a_second_call_that_finds_nothing_new_is_completed_at_once)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = add_manually(&desk, QR_ITEM_NOTE, "x");
    const struct qr_run first = process(&desk, QR_WANT_PROCESS, false);
    const struct qr_run second = process(&desk, QR_WANT_ALL, false);
    QR_CHECK_INT(QR_RUN_COMPLETED, second.status);
    /* but its stages were added to the item that the first run has at work */
    reach(&desk, note, QR_JOB_PROCESS_DOCUMENT, QR_REACHED_INDEX);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, note).status);
    QR_CHECK_INT(QR_RUN_COMPLETED, look_at(&desk, first.id).status);
    qr_desk_close(&desk);
}

/* PROC-5: `level_gate: auto` */
QR_DB_TEST(the_next_level_starts_when_the_one_above_is_done)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = add_manually(&desk, QR_ITEM_DIRECTORY, "/d"), note = add_manually(&desk, QR_ITEM_NOTE, "x");
    const struct qr_run run = process(&desk, QR_WANT_ALL, false);
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    const qr_uuid child = qr_desk_child(&desk, folder, "a.txt").id;
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, child).status); /* the note of the first level is still at work */
    qr_desk_index(&desk, note);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, child).status);
    QR_CHECK_INT(1, look_at(&desk, run.id).level);
    qr_desk_index(&desk, child);
    QR_CHECK_INT(QR_RUN_COMPLETED, look_at(&desk, run.id).status);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, folder).status);
    qr_desk_close(&desk);
}

/* PROC-5: `level_gate: manual` */
QR_DB_TEST(with_the_manual_gate_the_next_level_waits_for_the_next_call)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = add_manually(&desk, QR_ITEM_DIRECTORY, "/d");
    const struct qr_run first = process(&desk, QR_WANT_ALL, true);
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    const qr_uuid child = qr_desk_child(&desk, folder, "a.txt").id;
    QR_CHECK_INT(QR_RUN_COMPLETED, look_at(&desk, first.id).status);
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, child).status);
    const struct qr_run second = process(&desk, QR_WANT_ALL, true);
    QR_CHECK_INT(1, second.level);
    qr_desk_index(&desk, child);
    QR_CHECK_INT(QR_RUN_COMPLETED, look_at(&desk, second.id).status);
    qr_desk_close(&desk);
}

/* PROC-2: a failed item makes the run one with errors */
QR_DB_TEST(a_run_with_a_failed_item_says_so)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = add_manually(&desk, QR_ITEM_NOTE, "x");
    const struct qr_run run = process(&desk, QR_WANT_ALL, false);
    qr_desk_fail(&desk, note, QR_CODE_CORRUPT);
    QR_CHECK_INT(QR_RUN_COMPLETED_WITH_ERRORS, look_at(&desk, run.id).status);
    QR_CHECK_INT(1, look_at(&desk, run.id).stages[QR_RUN_PROCESS].failed);
    qr_desk_close(&desk);
}

/* CANCEL-1: of a run */
QR_DB_TEST(cancelling_a_run_rests_its_items)
{
    struct qr_desk desk;
    struct qr_run run;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = add_manually(&desk, QR_ITEM_NOTE, "x"), folder = add_manually(&desk, QR_ITEM_DIRECTORY, "/d");
    run = process(&desk, QR_WANT_ALL, false);
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_workflow_cancel_run(&desk.workflow, run.id, &run, &err));
    qr_desk_check(&desk);
    QR_CHECK_INT(QR_RUN_CANCELLED, run.status);
    QR_CHECK_INT(0, run.active);
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, note).status);
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, folder).status);
    QR_CHECK_CODE(QR_CODE_LOST, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE,
                                            &(struct qr_stage_result){.reached = QR_REACHED_INDEX}, &err));
    QR_CHECK_CODE(QR_CODE_NOT_OPEN, qr_workflow_cancel_run(&desk.workflow, run.id, &run, &err));
    qr_desk_close(&desk);
}

/* PROC-2: more items than fit into one transaction */
QR_DB_TEST(a_run_over_many_items_keeps_a_window_at_work)
{
    enum { NOTES = 400 };
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    struct qr_add_item items[NOTES / 2];
    for (size_t i = 0; i < QR_COUNT(items); i++) {
        items[i] = (struct qr_add_item){.type = QR_ITEM_NOTE, .name = QR_STR("n"), .content = QR_STR("x")};
    }
    const struct qr_add add = {.base_id = desk.base_id, .items = items, .count = QR_COUNT(items), .is_manual = true};
    struct qr_added *added[2];
    qr_err err;
    for (size_t i = 0; i < 2; i++) {
        QR_CHECK_RC(QR_OK, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added[i], &err));
    }
    const struct qr_run run = process(&desk, QR_WANT_ALL, false);
    const int64_t window = run.active;
    QR_CHECK(window > 0 && window < NOTES);
    for (int ended = 0; ended < NOTES; ended++) {
        const struct qr_job job = qr_desk_claim_type(&desk, QR_JOB_PROCESS_DOCUMENT);
        struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1};
        struct qr_run now;
        QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
        now = look_at(&desk, run.id);
        QR_CHECK(now.active <= window);
    }
    QR_CHECK_INT(QR_RUN_COMPLETED, look_at(&desk, run.id).status);
    QR_CHECK_INT(NOTES, look_at(&desk, run.id).stages[QR_RUN_PROCESS].done);
    qr_desk_close(&desk);
}
