/* What recovery finds and mends, over every database; and what makes most of it unnecessary. */
#include "workflow/recover.h"

#include "base/failpoint.h"
#include "store/assets.h"
#include "store/jobs_item.h"
#include "support/workflow_fixture.h"

#include <pthread.h>

/* A beat with the tasks of recovery, in the caller's memory. */
static struct qr_beat *recovery_beat(struct qr_desk *desk, struct qr_recovery_state *state, struct qr_beat_task *tasks)
{
    struct qr_beat *beat;
    qr_err err;
    qr_recovery_tasks(state, tasks);
    const struct qr_beat_options options = {
        .db = desk->db, .clock = qr_clock_system(), .tasks = tasks, .task_count = QR_RECOVERY_TASKS};
    QR_CHECK_RC(QR_OK, qr_beat_create(&beat, &options, &err));
    return beat;
}

/* One recovery as at a start: every task to its end. */
static void recover(struct qr_desk *desk)
{
    struct qr_recovery_state state = {.workflow = &desk->workflow};
    struct qr_beat_task tasks[QR_RECOVERY_TASKS];
    struct qr_beat *beat = recovery_beat(desk, &state, tasks);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, INT64_MAX, &err));
    qr_beat_free(beat);
    qr_desk_check(desk);
}

static qr_uuid delete_without_job(struct qr_desk *desk)
{
    struct qr_selection_answer answer;
    qr_err err;
    const qr_uuid note = qr_desk_add_note(desk, "n", "x");
    const struct qr_selection selection = {desk->base_id, &note, 1};
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error", &err));
    QR_CHECK_CODE(QR_CODE_ENQUEUE_FAILED, qr_workflow_delete(&desk->workflow, &selection, &desk->arena, &answer, &err));
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    return note;
}

/* RECOV-1, DEL-3 */
QR_DB_TEST(a_deleting_root_without_a_job_gets_one)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    delete_without_job(&desk);
    recover(&desk);
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_DELETE_SUBTREE));
    recover(&desk); /* and not a second one */
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_DELETE_SUBTREE));
    qr_desk_close(&desk);
}

/* RECOV-1, DEL-7: a cleanup that failed is tried again */
QR_DB_TEST(a_deleting_root_whose_cleanup_failed_gets_another)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    const struct qr_selection selection = {desk.base_id, &note, 1};
    QR_CHECK_RC(QR_OK, qr_workflow_delete(&desk.workflow, &selection, &desk.arena, &answer, &err));
    const struct qr_job job = qr_desk_claim_type(&desk, QR_JOB_DELETE_SUBTREE);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_FAILED, QR_CODE_IO_ERROR, NULL, &err));
    QR_CHECK_INT(QR_ITEM_DELETING, qr_desk_item(&desk, note).status);
    recover(&desk);
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_DELETE_SUBTREE));
    qr_desk_close(&desk);
}

/* RECOV-1: bases */
QR_DB_TEST(a_deleting_base_without_a_job_gets_one)
{
    struct qr_desk desk;
    qr_uuid job;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error", &err));
    QR_CHECK_CODE(QR_CODE_ENQUEUE_FAILED, qr_workflow_delete_base(&desk.workflow, desk.base_id, true, &job, &err));
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    recover(&desk);
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_DELETE_BASE));
    qr_desk_close(&desk);
}

/* RECOV-3: resume */
QR_DB_TEST(an_active_item_without_a_job_is_scheduled_again)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x"), folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_exec(&desk, "DELETE FROM job");
    recover(&desk);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, note).status);
    QR_CHECK_INT(QR_ITEM_PREPARING, qr_desk_item(&desk, folder).status);
    QR_CHECK_INT(1, qr_desk_item(&desk, note).generation);
    QR_CHECK_INT(2, qr_desk_i64(&desk, "SELECT count(*) FROM job"));
    qr_desk_close(&desk);
}

/* RECOV-3: abandon */
QR_DB_TEST(where_the_base_says_so_an_active_item_without_a_job_is_interrupted)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{\"recovery\":\"abandon\"}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x"), folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_exec(&desk, "DELETE FROM job");
    recover(&desk);
    QR_CHECK_TEXT("interrupted", qr_desk_item(&desk, note).error_code);
    QR_CHECK_TEXT("interrupted", qr_desk_item(&desk, folder).error_code);
    QR_CHECK_INT(QR_ITEM_FAILED, qr_desk_item(&desk, folder).status);
    qr_desk_close(&desk);
}

/* RECOV-3: what is below something deleting is the cleanup's */
QR_DB_TEST(recovery_leaves_alone_what_is_below_a_deleted_folder)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    const struct qr_selection selection = {desk.base_id, &folder, 1};
    QR_CHECK_RC(QR_OK, qr_workflow_delete(&desk.workflow, &selection, &desk.arena, &answer, &err));
    qr_desk_exec(&desk, "DELETE FROM job WHERE type = 'process-document'");
    recover(&desk);
    QR_CHECK_INT(0, qr_desk_open_jobs(&desk, QR_JOB_PROCESS_DOCUMENT));
    qr_desk_close(&desk);
}

/* ---- while jobs run ---- */

enum { STRANDED = 9 };

struct stranding {
    struct qr_desk desk;
    struct qr_recovery_state state;
    struct qr_beat_task tasks[QR_RECOVERY_TASKS];
    struct qr_beat *beat;
    qr_uuid folder;
    struct qr_job job;
};

/* A folder whose files have all lost their jobs, and recovery in steps of two that had no time at start. */
static void open_stranding(struct stranding *s, struct qr_test *t)
{
    char names[STRANDED][16];
    const char *list[STRANDED];
    qr_err err;
    qr_desk_open(&s->desk, t, "{}");
    s->folder = qr_desk_add_folder(&s->desk, "/d");
    for (size_t i = 0; i < STRANDED; i++) {
        snprintf(names[i], sizeof names[i], "%02zu.txt", i);
        list[i] = names[i];
    }
    qr_desk_expand(&s->desk, s->folder, list, STRANDED);
    qr_desk_exec(&s->desk, "DELETE FROM job WHERE type = 'process-document'");
    s->state = (struct qr_recovery_state){.workflow = &s->desk.workflow, .rows_a_step = 2};
    s->beat = recovery_beat(&s->desk, &s->state, s->tasks);
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(s->beat, 0, &err));
    QR_CHECK_INT(0, qr_desk_open_jobs(&s->desk, QR_JOB_PROCESS_DOCUMENT));
}

static void close_stranding(struct stranding *s)
{
    qr_beat_free(s->beat);
    qr_desk_close(&s->desk);
}

static qr_rc one_step(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct stranding *s = arg;
    bool more = false;
    return s->tasks[2].fn(tx, s->tasks[2].arg, &more, err);
}

/* As the runner does it. qr_desk_end looks at I1 too, which does not hold before recovery has come to its end. */
static qr_rc complete(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct stranding *s = arg;
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1};
    const struct qr_outcome outcome = {.kind = QR_OUTCOME_COMPLETED, .result = &result};
    const struct qr_ended ended = {&s->job, QR_JOB_COMPLETED, &outcome};
    QR_TRY(s->desk.plan.lock(tx, &s->job.base_id, 1, s->desk.plan.arg, err));
    QR_TRY(qr_jobs_finish(tx, &s->job, &(struct qr_job_end){QR_JOB_COMPLETED, "", "", false}, err));
    return s->desk.plan.ended(tx, &ended, 1, s->desk.plan.arg, err);
}

static void complete_all(struct stranding *s, int64_t count)
{
    qr_err err;
    QR_CHECK_INT(count, qr_desk_open_jobs(&s->desk, QR_JOB_PROCESS_DOCUMENT));
    for (int64_t i = 0; i < count; i++) {
        s->job = qr_desk_claim_type(&s->desk, QR_JOB_PROCESS_DOCUMENT);
        QR_CHECK_RC(QR_OK, qr_db_write(s->desk.db, QR_DURABLE, complete, s, &err));
    }
}

/* RECOV-3, R1, R3: with jobs that run before it has come to them all are found, each once */
QR_DB_TEST(what_a_start_has_no_time_for_is_found_by_the_beat_while_jobs_run)
{
    struct stranding s;
    qr_err err;
    open_stranding(&s, t);
    QR_CHECK_RC(QR_OK, qr_db_write(s.desk.db, QR_RELAXED, one_step, &s, &err)); /* the folder and a file */
    complete_all(&s, 1);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&s.desk, s.folder).status); /* not before the last of them */
    qr_beat_round(s.beat);
    qr_desk_check(&s.desk);
    complete_all(&s, STRANDED - 1);
    qr_desk_check(&s.desk);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&s.desk, s.folder).status);
    QR_CHECK_INT(STRANDED, qr_desk_item(&s.desk, s.folder).counts.completed);
    close_stranding(&s);
}

/* RECOV-3, R2: the files are deleted before it gets there */
QR_DB_TEST(what_somebody_else_takes_up_before_recovery_gets_there_is_left_to_him)
{
    struct stranding s;
    struct qr_selection_answer answer;
    qr_err err;
    open_stranding(&s, t);
    const struct qr_selection selection = {s.desk.base_id, &s.folder, 1};
    QR_CHECK_RC(QR_OK, qr_db_write(s.desk.db, QR_RELAXED, one_step, &s, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_delete(&s.desk.workflow, &selection, &s.desk.arena, &answer, &err));
    const int64_t open_before = qr_desk_open_jobs(&s.desk, QR_JOB_PROCESS_DOCUMENT);
    qr_beat_round(s.beat);
    QR_CHECK_INT(open_before, qr_desk_open_jobs(&s.desk, QR_JOB_PROCESS_DOCUMENT)); /* the cleanup has the rest */
    QR_CHECK_INT(1, qr_desk_open_jobs(&s.desk, QR_JOB_DELETE_SUBTREE));
    qr_desk_check(&s.desk);
    close_stranding(&s);
}

/* R2: a request that schedules a stranded item itself */
QR_DB_TEST(an_item_that_was_updated_before_recovery_got_there_has_one_job)
{
    struct qr_desk desk;
    struct qr_beat_task tasks[QR_RECOVERY_TASKS];
    bool changed;
    qr_err err;
    qr_desk_open(&desk, t, "{\"recovery\":\"abandon\"}");
    struct qr_recovery_state state = {.workflow = &desk.workflow, .rows_a_step = 1};
    const qr_uuid note = qr_desk_add_note(&desk, "n", "old");
    qr_desk_exec(&desk, "DELETE FROM job");
    struct qr_beat *beat = recovery_beat(&desk, &state, tasks);
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, 0, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_update(&desk.workflow, desk.base_id, note, QR_STR("new"), &changed, &err));
    qr_beat_round(beat);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, note).status); /* not interrupted */
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_PROCESS_DOCUMENT));
    qr_desk_check(&desk);
    qr_beat_free(beat);
    qr_desk_close(&desk);
}

/* ---- one stage job an item ---- */

struct second {
    struct qr_desk *desk;
    struct qr_item item;
};

static qr_rc add_second(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct second *second = arg;
    qr_uuid id;
    return qr_jobs_add_stage(tx, &second->desk->ids, &second->item, QR_JOB_PROCESS_DOCUMENT, 0, &id, err);
}

/* HELD-1, HELD-2: there can be no duplicate that meets a holder */
QR_DB_TEST(an_item_never_has_a_second_open_stage_job)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    struct second second = {&desk, qr_desk_item(&desk, note)};
    QR_CHECK_CODE(QR_CODE_INTERNAL, qr_db_write(desk.db, QR_DURABLE, add_second, &second, &err));
    const struct qr_job holder = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_CODE(QR_CODE_INTERNAL, qr_db_write(desk.db, QR_DURABLE, add_second, &second, &err));
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1};
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &holder, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, note).status);
    qr_desk_close(&desk);
}

/* ---- generations ---- */

struct late {
    struct qr_desk *desk;
    const struct qr_job *job;
};

static qr_rc tell_plan(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct late *late = arg;
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1};
    const struct qr_outcome outcome = {.kind = QR_OUTCOME_COMPLETED, .result = &result};
    const struct qr_ended ended = {late->job, QR_JOB_COMPLETED, &outcome};
    return late->desk->plan.ended(tx, &ended, 1, late->desk->plan.arg, err);
}

/* GEN-1, I2: the generation is a guard of its own, whatever the fence says */
QR_DB_TEST(a_result_of_another_generation_changes_nothing)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    qr_desk_exec(&desk, "UPDATE item SET generation = 2");
    struct late late = {&desk, &job};
    QR_CHECK_RC(QR_OK, qr_db_write(desk.db, QR_DURABLE, tell_plan, &late, &err));
    QR_CHECK_INT(0, qr_desk_item(&desk, note).live_generation);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, note).status);
    qr_desk_close(&desk);
}

/* ---- what was left over ---- */

/* PROC-6: children are scheduled as they are registered, breadth first */
QR_DB_TEST(what_is_nearer_to_the_root_goes_first)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid root = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, root, (const char *const[]){"a.txt", "sub/"}, 2);
    const qr_uuid sub = qr_desk_child(&desk, root, "sub").id;
    qr_desk_expand(&desk, sub, (const char *const[]){"b.txt"}, 1);
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT priority FROM job JOIN item ON item.id = job.item_id WHERE "
                                       "item.name = 'a.txt' AND job.state = 3"));
    QR_CHECK_INT(2, qr_desk_i64(&desk, "SELECT priority FROM job JOIN item ON item.id = job.item_id WHERE "
                                       "item.name = 'b.txt' AND job.state = 3"));
    qr_desk_close(&desk);
}

/* REFR-1, THING-8 */
QR_DB_TEST(a_refresh_queues_a_job_and_changes_no_status)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    qr_desk_index(&desk, qr_desk_child(&desk, folder, "a.txt").id);
    const struct qr_selection selection = {desk.base_id, &folder, 1};
    QR_CHECK_RC(QR_OK, qr_workflow_refresh(&desk.workflow, &selection, &desk.arena, &answer, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_refresh(&desk.workflow, &selection, &desk.arena, &answer, &err));
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_REFRESH_SOURCE));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, folder).status);
    QR_CHECK_INT(1, qr_desk_item(&desk, folder).generation);
    qr_desk_close(&desk);
}

/* REFR-2, REFR-3 */
QR_DB_TEST(a_changed_source_gets_the_next_generation_and_a_missing_one_a_warning)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    const qr_uuid file = qr_desk_child(&desk, folder, "a.txt").id;
    qr_desk_index(&desk, file);
    const struct qr_selection selection = {desk.base_id, &file, 1};
    struct qr_refresh_result results[] = {
        {.is_missing_or_unreadable = true, .warning = {"refresh_failed", "it is not there"}}, {.is_changed = true}};
    for (size_t i = 0; i < QR_COUNT(results); i++) {
        QR_CHECK_RC(QR_OK, qr_workflow_refresh(&desk.workflow, &selection, &desk.arena, &answer, &err));
        const struct qr_job job = qr_desk_claim_type(&desk, QR_JOB_REFRESH_SOURCE);
        QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &results[i], &err));
        QR_CHECK_INT((int)i + 1, qr_desk_item(&desk, file).generation);
        QR_CHECK_TEXT(i == 0 ? "[{\"code\":\"refresh_failed\",\"message\":\"it is not there\"}]" : "",
                      qr_desk_item(&desk, file).warnings);
    }
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, file).status);
    QR_CHECK_INT(1, qr_desk_item(&desk, file).live_generation);
    qr_desk_close(&desk);
}

/* STATE-4, TYPE-7, THING-7 */
QR_DB_TEST(when_the_last_asset_gains_text_the_document_is_done_once_more)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{\"assets\":{\"analysis\":\"test\"}}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    struct qr_new_asset assets[2] = {{.kind = "picture", .mime = "image/png", .place = "p. 1"},
                                     {.kind = "picture", .mime = "image/png", .place = "p. 2"}};
    for (size_t i = 0; i < 2; i++) {
        assets[i].id = qr_uuid_next(&desk.ids);
        assets[i].bytes = (struct qr_new_artifact){
            .id = qr_uuid_next(&desk.ids), .kind = QR_ARTIFACT_ASSET, .bytes = QR_STR("png"), .size_bytes = 3};
    }
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1, .assets = assets, .asset_count = 2};
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_INT(2, qr_desk_i64(&desk, "SELECT count(*) FROM asset WHERE analysis_status = 1"));
    const struct qr_job first = qr_desk_claim_type(&desk, QR_JOB_ANALYZE_ASSET);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &first, QR_JOB_FAILED, QR_CODE_CORRUPT, NULL, &err));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, note).status); /* it never fails its document */
    const struct qr_job last = qr_desk_claim_type(&desk, QR_JOB_ANALYZE_ASSET);
    struct qr_asset_result found = {.text = QR_STR("a cat")};
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &last, QR_JOB_COMPLETED, QR_CODE_NONE, &found, &err));
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM asset WHERE analysis_status = 3"));
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM asset WHERE analysis_status = 4"));
    QR_CHECK_INT(2, qr_desk_item(&desk, note).generation);
    QR_CHECK_INT(1, qr_desk_item(&desk, note).live_generation);
    qr_desk_close(&desk);
}

/* ---- the base lock ---- */

enum { SIBLINGS = 16 };

struct finisher {
    struct qr_desk *desk;
    struct qr_job jobs[SIBLINGS / 2];
    pthread_t thread;
};

static void *finish_all(void *arg)
{
    struct finisher *finisher = arg;
    for (size_t i = 0; i < QR_COUNT(finisher->jobs); i++) {
        struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1};
        qr_err err;
        QR_CHECK_RC(QR_OK,
                    qr_desk_end(finisher->desk, &finisher->jobs[i], QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    }
    return NULL;
}

/* STATE-8, STATE-7: siblings that finish at the same time are both counted */
QR_DB_TEST(siblings_that_finish_together_are_all_counted)
{
    struct qr_desk desk;
    char names[SIBLINGS][16];
    const char *list[SIBLINGS];
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    for (size_t i = 0; i < SIBLINGS; i++) {
        snprintf(names[i], sizeof names[i], "%02zu.txt", i);
        list[i] = names[i];
    }
    qr_desk_expand(&desk, folder, list, SIBLINGS);
    struct finisher finishers[2] = {{.desk = &desk}, {.desk = &desk}};
    for (size_t i = 0; i < SIBLINGS; i++) {
        finishers[i % 2].jobs[i / 2] =
            qr_desk_claim(&desk, qr_desk_child(&desk, folder, names[i]).id, QR_JOB_PROCESS_DOCUMENT);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_create(&finishers[i].thread, NULL, finish_all, &finishers[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(finishers[i].thread, NULL);
    }
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, folder).status);
    QR_CHECK_INT(SIBLINGS, qr_desk_item(&desk, folder).counts.completed);
    qr_desk_close(&desk);
}

/* FENCE-5: a file of an attempt that was lost belongs to nobody */
QR_DB_TEST(what_a_lost_attempt_wrote_is_not_adopted)
{
    struct qr_desk desk;
    bool changed;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "old");
    const struct qr_job old = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_workflow_update(&desk.workflow, desk.base_id, note, QR_STR("new"), &changed, &err));
    struct qr_new_artifact text = {
        .id = qr_uuid_next(&desk.ids), .kind = QR_ARTIFACT_TEXT, .bytes = QR_STR("old"), .size_bytes = 3};
    struct qr_stage_result result = {.reached = QR_REACHED_TEXT, .text = &text};
    QR_CHECK_CODE(QR_CODE_LOST, qr_desk_end(&desk, &old, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_INT(0, qr_desk_i64(&desk, "SELECT count(*) FROM artifact WHERE kind = 2"));
    qr_desk_close(&desk);
}
