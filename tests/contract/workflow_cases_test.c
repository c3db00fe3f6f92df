/* Cases in which several rules of the workflow meet, over every database. */
#include "base/failpoint.h"
#include "store/assets.h"
#include "store/jobs_item.h"
#include "support/workflow_fixture.h"
#include "workflow/process.h"
#include "workflow/recover.h"

typedef qr_rc entry_fn(const struct qr_workflow *, const struct qr_selection *, struct qr_arena *,
                       struct qr_selection_answer *, qr_err *);

static qr_rc select_ids(struct qr_desk *desk, entry_fn *entry, const qr_uuid *ids, size_t count,
                        struct qr_selection_answer *answer, qr_err *err)
{
    const struct qr_selection selection = {desk->base_id, ids, count};
    return entry(&desk->workflow, &selection, &desk->arena, answer, err);
}

static qr_rc reindex(const struct qr_workflow *workflow, const struct qr_selection *selection, struct qr_arena *arena,
                     struct qr_selection_answer *answer, qr_err *err)
{
    struct qr_status_counts counts;
    struct qr_reindex_estimate estimate;
    return qr_workflow_reindex(workflow, selection, false, arena, answer, &counts, &estimate, err);
}

static void run_reindex(struct qr_desk *desk, qr_uuid root_id)
{
    struct qr_selection_answer answer;
    qr_err err;
    QR_CHECK_RC(QR_OK, select_ids(desk, reindex, &root_id, 1, &answer, &err));
    const struct qr_job job = qr_desk_claim_type(desk, QR_JOB_REINDEX_SUBTREE);
    QR_CHECK_RC(QR_OK, qr_desk_part(desk, &job, &(struct qr_raise_part){&root_id, 1, "reindex", false}, &err));
    QR_CHECK_RC(QR_OK, qr_desk_end(desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, NULL, &err));
}

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
    return added[0].id;
}

static struct qr_run process(struct qr_desk *desk, int64_t wanted)
{
    const struct qr_process process = {desk->base_id, wanted, false};
    struct qr_run run;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_process(&desk->workflow, &process, &run, &err));
    return run;
}

static int64_t open_runs(struct qr_desk *desk)
{
    return qr_desk_i64(desk, "SELECT count(*) FROM run WHERE status = 1");
}

static void reach(struct qr_desk *desk, qr_uuid id, enum qr_job_type type, struct qr_stage_result result)
{
    const struct qr_job job = qr_desk_claim(desk, id, type);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_desk_end(desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
}

/* DB-2, ADD-5: a transaction that is lost while jobs are queued (disk full, connection lost) ends the request */
QR_DB_TEST_WITH_TIMEOUT(an_add_whose_transaction_is_lost_at_the_second_job_ends, 5)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    if (qr_test_on_postgres(t)) {
        qr_desk_close(&desk);
        return; /* the trigger below is SQLite's way to lose a transaction; there a lost connection does it */
    }
    qr_desk_exec(&desk, "CREATE TRIGGER lose AFTER INSERT ON job WHEN (SELECT count(*) FROM job) = 2 "
                        "BEGIN SELECT RAISE(ROLLBACK, 'lost'); END");
    struct qr_add_item items[3];
    for (size_t i = 0; i < 3; i++) {
        items[i] = (struct qr_add_item){.type = QR_ITEM_NOTE, .name = QR_STR("n"), .content = QR_STR("x")};
    }
    const struct qr_add add = {.base_id = desk.base_id, .items = items, .count = 3};
    struct qr_added *added;
    qr_err err;
    QR_CHECK(qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err) != QR_OK);
    qr_desk_close(&desk);
}

/* I4, DEL-4: the answer about the parent is older than its mark */
QR_DB_TEST(a_run_starts_nothing_below_what_the_same_request_deletes)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = add_manually(&desk, QR_ITEM_DIRECTORY, "/d");
    process(&desk, QR_WANT_ALL);
    const struct qr_job job = qr_desk_claim(&desk, folder, QR_JOB_PREPARE_ROOT);
    struct qr_found_child children[] = {
        {.change = QR_CHILD_NEW, .type = QR_ITEM_FILE, .key = QR_STR("a.txt"), .name = QR_STR("a.txt")},
        {.change = QR_CHILD_NEW, .type = QR_ITEM_FILE, .key = QR_STR("b.txt"), .name = QR_STR("b.txt")}};
    QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_expand_part){children, 2, false}, &err));
    const qr_uuid ids[] = {folder, qr_desk_child(&desk, folder, "b.txt").id};
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_delete, ids, 2, &answer, &err));
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_child(&desk, folder, "a.txt").status);
    QR_CHECK_INT(0, qr_desk_open_jobs(&desk, QR_JOB_PROCESS_DOCUMENT));
    QR_CHECK_INT(0, open_runs(&desk));
    qr_desk_close(&desk);
}

/* PROC-3: the last item at work of a run is taken over by a retry */
QR_DB_TEST(a_run_ends_when_its_last_item_is_taken_over)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = add_manually(&desk, QR_ITEM_NOTE, "x");
    process(&desk, QR_WANT_ALL);
    qr_test_clock_advance(10 * 60 * 1000 + 1);
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_retry, &note, 1, &answer, &err));
    QR_CHECK_INT(1, answer.accepted_count);
    QR_CHECK_INT(0, qr_desk_i64(&desk, "SELECT active FROM run"));
    QR_CHECK_INT(0, open_runs(&desk));
    qr_desk_close(&desk);
}

/* PROC-2 */
QR_DB_TEST(a_run_finds_what_fits_behind_a_thousand_that_do_not)
{
    enum { NOTES = 250, ROUNDS = 5 };
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    struct qr_add_item items[NOTES];
    for (size_t i = 0; i < NOTES; i++) {
        items[i] = (struct qr_add_item){.type = QR_ITEM_NOTE, .name = QR_STR("n"), .content = QR_STR("x")};
    }
    const struct qr_add add = {.base_id = desk.base_id, .items = items, .count = NOTES, .is_manual = true};
    struct qr_added *added;
    qr_err err;
    for (int i = 0; i < ROUNDS; i++) {
        QR_CHECK_RC(QR_OK, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err));
    }
    qr_desk_exec(&desk, "UPDATE item SET text_generation = 1, needs = 2"); /* as after a run that only reads */
    const qr_uuid note = add_manually(&desk, QR_ITEM_NOTE, "new");
    process(&desk, QR_WANT_PROCESS);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, note).status);
    qr_desk_close(&desk);
}

/* PROC-4, PROC-5 */
QR_DB_TEST(a_second_call_does_not_start_a_level_before_the_one_above_is_done)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = add_manually(&desk, QR_ITEM_DIRECTORY, "/d");
    add_manually(&desk, QR_ITEM_NOTE, "x"); /* at work all the time */
    process(&desk, QR_WANT_ALL);
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    const qr_uuid child = qr_desk_child(&desk, folder, "a.txt").id;
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, child).status);
    const struct qr_run second = process(&desk, QR_WANT_ALL);
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, child).status);
    QR_CHECK_INT(QR_RUN_COMPLETED, second.status);
    qr_desk_close(&desk);
}

/* I1: below a parent with a run a known child is raised, which cancels its job, but gets no other */
QR_DB_TEST(a_changed_child_below_a_run_keeps_a_job_or_rests)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = add_manually(&desk, QR_ITEM_DIRECTORY, "/d");
    process(&desk, QR_WANT_ALL);
    const struct qr_job job = qr_desk_claim(&desk, folder, QR_JOB_PREPARE_ROOT);
    struct qr_found_child child = {
        .change = QR_CHILD_NEW, .type = QR_ITEM_FILE, .key = QR_STR("a.txt"), .name = QR_STR("a.txt")};
    QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_expand_part){&child, 1, false}, &err));
    process(&desk, QR_WANT_ALL); /* takes the child: f06 */
    child.change = QR_CHILD_CHANGED;
    child.id = qr_desk_child(&desk, folder, "a.txt").id;
    child.size_bytes = 7;
    QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_expand_part){&child, 1, false}, &err)); /* checks I1 */
    qr_desk_close(&desk);
}

/* REIDX-4 */
QR_DB_TEST(a_reindex_reaches_folders_below_though_the_expansion_was_tried_again)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid root = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, root, (const char *const[]){"sub/"}, 1);
    const qr_uuid sub = qr_desk_child(&desk, root, "sub").id;
    qr_desk_expand(&desk, sub, (const char *const[]){"a.txt"}, 1);
    qr_desk_index(&desk, qr_desk_child(&desk, sub, "a.txt").id);
    run_reindex(&desk, root);
    const struct qr_job job = qr_desk_claim(&desk, root, QR_JOB_PREPARE_ROOT);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_FAILED, QR_CODE_SOURCE_MISSING, NULL, &err));
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_retry, &root, 1, &answer, &err));
    qr_desk_expand(&desk, root, (const char *const[]){"sub/"}, 1);
    const struct qr_item item = qr_desk_item(&desk, sub);
    QR_CHECK_INT(QR_ITEM_PREPARING, item.status);
    QR_CHECK_INT(item.generation, item.force_generation); /* else its files are never reached */
    qr_desk_close(&desk);
}

static struct qr_new_asset new_asset(struct qr_desk *desk, unsigned char n, bool is_analysed)
{
    return (struct qr_new_asset){
        .id = {{n}},
        .kind = "picture",
        .mime = "image/png",
        .place = "line 1",
        .is_analysed = is_analysed,
        .bytes = {.id = qr_uuid_next(&desk->ids), .kind = QR_ARTIFACT_ASSET, .bytes = QR_STR("x"), .size_bytes = 1}};
}

#define ASSETS_ON "{\"assets\":{\"analysis\":\"test\"}}"

static void end_asset(struct qr_desk *desk, const char *text)
{
    const struct qr_job job = qr_desk_claim_type(desk, QR_JOB_ANALYZE_ASSET);
    struct qr_asset_result result = {.text = qr_str_of(text)};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_desk_end(desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
}

/* TYPE-7 */
QR_DB_TEST(text_of_assets_that_end_before_their_document_gets_into_it)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, ASSETS_ON);
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    struct qr_new_asset asset = new_asset(&desk, 1, false);
    reach(&desk, note, QR_JOB_PROCESS_DOCUMENT,
          (struct qr_stage_result){.reached = QR_REACHED_TEXT, .assets = &asset, .asset_count = 1});
    end_asset(&desk, "a cat");
    reach(&desk, note, QR_JOB_CHUNK_DOCUMENT, (struct qr_stage_result){.reached = QR_REACHED_CHUNKS});
    reach(&desk, note, QR_JOB_INDEX_CHUNKS, (struct qr_stage_result){.reached = QR_REACHED_INDEX, .chunk_count = 1});
    QR_CHECK_INT(2, qr_desk_item(&desk, note).generation);
    qr_desk_close(&desk);
}

/* REIDX-6, I3 */
QR_DB_TEST(a_failed_reindex_leaves_the_live_generation_its_assets)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, ASSETS_ON);
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    struct qr_new_asset asset = new_asset(&desk, 1, false);
    reach(&desk, note, QR_JOB_PROCESS_DOCUMENT,
          (struct qr_stage_result){.reached = QR_REACHED_INDEX, .chunk_count = 1, .assets = &asset, .asset_count = 1});
    end_asset(&desk, "");
    run_reindex(&desk, note);
    asset = new_asset(&desk, 1, true);
    reach(&desk, note, QR_JOB_PROCESS_DOCUMENT,
          (struct qr_stage_result){.reached = QR_REACHED_TEXT, .assets = &asset, .asset_count = 1});
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_CHUNK_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_FAILED, QR_CODE_CORRUPT, NULL, &err));
    QR_CHECK_INT(1, qr_desk_item(&desk, note).live_generation);
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM asset WHERE generation = 1")); /* what the API lists */
    qr_desk_close(&desk);
}

/* I7: the purge that runs has looked already */
QR_DB_TEST(a_generation_that_ends_while_a_purge_runs_is_purged_too)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    qr_desk_index(&desk, note);
    run_reindex(&desk, note);
    qr_desk_index(&desk, note);
    const struct qr_job purge = qr_desk_claim_type(&desk, QR_JOB_PURGE);
    run_reindex(&desk, note);
    qr_desk_index(&desk, note);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &purge, QR_JOB_COMPLETED, QR_CODE_NONE, NULL, &err));
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_PURGE));
    qr_desk_close(&desk);
}

/* I6 */
QR_DB_TEST(a_folder_whose_expansion_cannot_be_queued_is_still_what_its_children_are)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid root = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, root, (const char *const[]){"sub/"}, 1);
    const qr_uuid sub = qr_desk_child(&desk, root, "sub").id;
    qr_desk_expand(&desk, sub, (const char *const[]){"a.txt"}, 1); /* at work */
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_refresh, &root, 1, &answer, &err));
    const struct qr_job refresh = qr_desk_claim_type(&desk, QR_JOB_REFRESH_SOURCE);
    struct qr_refresh_result changed = {.is_changed = true};
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &refresh, QR_JOB_COMPLETED, QR_CODE_NONE, &changed, &err));
    const struct qr_job job = qr_desk_claim(&desk, root, QR_JOB_PREPARE_ROOT);
    struct qr_found_child child = {.change = QR_CHILD_WANTED, .id = sub, .type = QR_ITEM_DIRECTORY};
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error", &err));
    const qr_rc rc = qr_desk_part(&desk, &job, &(struct qr_expand_part){&child, 1, false}, &err); /* checks I6 */
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    QR_CHECK_RC(QR_OK, rc);
    qr_desk_close(&desk);
}

/* REQ-3 */
QR_DB_TEST(a_delete_leaves_out_an_id_of_another_base_like_an_unknown_one)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid here = qr_desk_add_note(&desk, "n", "x"), first_base = desk.base_id;
    QR_CHECK_RC(QR_OK, qr_workflow_add_base(&desk.workflow, QR_STR("other"), QR_STR("{}"), &desk.base_id, &err));
    const qr_uuid there = qr_desk_add_note(&desk, "m", "y");
    desk.base_id = first_base;
    const qr_uuid others[] = {there, qr_uuid_next(&desk.ids)};
    for (size_t i = 0; i < QR_COUNT(others); i++) {
        QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_delete, &others[i], 1, &answer, &err));
        QR_CHECK(answer.accepted_count == 0 && answer.skipped_count == 0 && qr_uuid_is_zero(answer.job_id));
    }
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_delete, (const qr_uuid[]){here, there}, 2, &answer, &err));
    QR_CHECK(answer.accepted_count == 1 && qr_uuid_equal(answer.accepted[0], here));
    QR_CHECK(qr_desk_item(&desk, there).status != QR_ITEM_DELETING);
    qr_desk_close(&desk);
}

static qr_rc find_prepare(struct qr_tx *tx, void *arg, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT id FROM job WHERE type = 'prepare-root'", QR_NO_VALS, err));
    if (qr_rows_next(&rows)) {
        memcpy(arg, qr_rows_str(&rows, 0).ptr, QR_UUID_BYTES);
    }
    return qr_rows_end(&rows, err);
}

static qr_uuid job_id(struct qr_desk *desk)
{
    qr_uuid id = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(desk->db, find_prepare, &id, &err));
    return id;
}

/* CANCEL-2, RETRY-3 */
QR_DB_TEST(retrying_the_expansion_job_of_a_folder_retries_what_failed_in_it)
{
    struct qr_desk desk;
    qr_uuid new_job;
    bool existed;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    qr_desk_fail(&desk, qr_desk_child(&desk, folder, "a.txt").id, QR_CODE_CORRUPT);
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM job WHERE type = 'prepare-root' AND state = 5"));
    QR_CHECK_RC(QR_OK, qr_workflow_retry_job(&desk.workflow, job_id(&desk), &new_job, &existed, &err));
    QR_CHECK_INT(1, qr_desk_item(&desk, folder).generation); /* RETRY-3: without expand_error its descendants */
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_REINDEX_SUBTREE));
    qr_desk_close(&desk);
}

/* PROC-1, PROC-2 */
QR_DB_TEST(a_run_that_asks_for_assets_finds_those_of_documents_that_are_read)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, ASSETS_ON);
    const qr_uuid note = add_manually(&desk, QR_ITEM_NOTE, "x");
    process(&desk, QR_WANT_PROCESS);
    struct qr_new_asset asset = new_asset(&desk, 1, false);
    reach(&desk, note, QR_JOB_PROCESS_DOCUMENT,
          (struct qr_stage_result){.reached = QR_REACHED_TEXT, .assets = &asset, .asset_count = 1});
    QR_CHECK_INT(0, qr_desk_open_jobs(&desk, QR_JOB_ANALYZE_ASSET));
    process(&desk, QR_WANT_ASSETS);
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_ANALYZE_ASSET));
    qr_desk_close(&desk);
}

static qr_rc run_task(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_beat_task *task = arg;
    bool more;
    return task->fn(tx, task->arg, &more, err);
}

/* RECOV-3, C4 */
QR_DB_TEST(a_run_ends_when_recovery_abandons_its_last_item)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{\"recovery\":\"abandon\"}");
    add_manually(&desk, QR_ITEM_NOTE, "x");
    process(&desk, QR_WANT_ALL);
    qr_desk_exec(&desk, "DELETE FROM job");
    struct qr_recovery_state state = {.workflow = &desk.workflow};
    struct qr_beat_task tasks[QR_RECOVERY_TASKS];
    qr_recovery_tasks(&state, tasks);
    QR_CHECK_RC(QR_OK, qr_db_write(desk.db, QR_DURABLE, run_task, &tasks[2], &err));
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM item WHERE error_code = 'interrupted'"));
    QR_CHECK_INT(0, open_runs(&desk));
    qr_desk_close(&desk);
}

/* REFR-3: a look that finds the source again ends the warning */
QR_DB_TEST(the_warning_of_a_failed_refresh_ends_with_one_that_does_not_fail)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const struct qr_add_item file = {.type = QR_ITEM_FILE, .source = QR_STR("/x/a.txt")};
    const struct qr_add add = {.base_id = desk.base_id, .items = &file, .count = 1};
    struct qr_added *added;
    QR_CHECK_RC(QR_OK, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err));
    const qr_uuid id = added[0].id;
    struct qr_warning no_text = {"no_text", "a scan"};
    reach(&desk, id, QR_JOB_PROCESS_DOCUMENT,
          (struct qr_stage_result){
              .reached = QR_REACHED_INDEX, .source_was_read = true, .warnings = &no_text, .warning_count = 1});
    struct qr_refresh_result results[] = {{.is_missing_or_unreadable = true, .warning = {"refresh_failed", "gone"}},
                                          {.is_changed = false}};
    for (size_t i = 0; i < 2; i++) {
        QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_refresh, &id, 1, &answer, &err));
        const struct qr_job job = qr_desk_claim_type(&desk, QR_JOB_REFRESH_SOURCE);
        QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &results[i], &err));
    }
    QR_CHECK(strstr(qr_desk_item(&desk, id).warnings, "refresh_failed") == NULL);
    QR_CHECK(strstr(qr_desk_item(&desk, id).warnings, "no_text") != NULL);
    qr_desk_close(&desk);
}

/* TYPE-7: the others wait for one that was cancelled */
QR_DB_TEST(a_cancelled_analysis_does_not_keep_the_others_out)
{
    struct qr_desk desk;
    enum qr_job_state state;
    qr_err err;
    qr_desk_open(&desk, t, ASSETS_ON);
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    struct qr_new_asset assets[] = {new_asset(&desk, 1, false), new_asset(&desk, 2, false)};
    reach(&desk, note, QR_JOB_PROCESS_DOCUMENT,
          (struct qr_stage_result){.reached = QR_REACHED_INDEX, .chunk_count = 1, .assets = assets, .asset_count = 2});
    end_asset(&desk, "a cat");
    const struct qr_job job = qr_desk_claim_type(&desk, QR_JOB_ANALYZE_ASSET);
    QR_CHECK_RC(QR_OK, qr_workflow_cancel_job(&desk.workflow, job.id, &state, &err));
    QR_CHECK_INT(0, qr_desk_i64(&desk, "SELECT count(*) FROM asset WHERE analysis_status = 1"));
    QR_CHECK_INT(2, qr_desk_item(&desk, note).generation);
    qr_desk_close(&desk);
}

/* REFR-1: what is asked for while an older look is still open is looked at */
QR_DB_TEST(a_refresh_after_a_retry_is_not_swallowed_by_the_one_before)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const struct qr_add_item file = {.type = QR_ITEM_FILE, .source = QR_STR("/x/a.txt")};
    const struct qr_add add = {.base_id = desk.base_id, .items = &file, .count = 1};
    struct qr_added *added;
    QR_CHECK_RC(QR_OK, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err));
    const qr_uuid id = added[0].id;
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_refresh, &id, 1, &answer, &err));
    qr_desk_fail(&desk, id, QR_CODE_CORRUPT);
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_retry, &id, 1, &answer, &err));
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_refresh, &id, 1, &answer, &err));
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM job JOIN item ON item.id = job.item_id WHERE "
                                       "job.type = 'refresh-source' AND job.generation = item.generation"));
    qr_desk_close(&desk);
}

/* REQ-5 */
QR_DB_TEST(on_a_failed_base_a_job_is_not_cancelled)
{
    struct qr_desk desk;
    enum qr_job_state state;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_workflow_fail_base(&desk.workflow, desk.base_id, "data_corrupt", "gone", &err));
    QR_CHECK_CODE(QR_CODE_BASE_FAILED, qr_workflow_cancel_job(&desk.workflow, job.id, &state, &err));
    qr_desk_close(&desk);
}

/* ADD: on_conflict skip, the same source twice in one request */
QR_DB_TEST(one_request_does_not_add_one_source_twice_where_conflicts_are_skipped)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const struct qr_add_item items[] = {{.type = QR_ITEM_DIRECTORY, .source = QR_STR("/d")},
                                        {.type = QR_ITEM_DIRECTORY, .source = QR_STR("/d")}};
    const struct qr_add add = {.base_id = desk.base_id, .items = items, .count = 2, .on_conflict = QR_CONFLICT_SKIP};
    struct qr_added *added;
    QR_CHECK_RC(QR_OK, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err));
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM item"));
    qr_desk_close(&desk);
}

/* RETRY-2: index-chunks reports how much is done, and no total */
QR_DB_TEST(a_job_that_makes_progress_under_a_live_lease_is_not_taken_over)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT); /* long ago: the fixture claims at 1 ms */
    qr_desk_exec(&desk, "UPDATE job SET progress_done = 500, progress_at = 999999000");
    QR_CHECK_RC(QR_OK, select_ids(&desk, qr_workflow_retry, &note, 1, &answer, &err));
    QR_CHECK_INT(0, answer.accepted_count);
    qr_desk_close(&desk);
}

/* I6, RECOV-3: what recovery saw as preparing has been expanded when it has the lock (PostgreSQL; here by hand) */
QR_DB_TEST(recovery_that_cannot_queue_an_expansion_leaves_the_folder_what_its_children_are)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid root = qr_desk_add_folder(&desk, "/d");
    const struct qr_job job = qr_desk_claim(&desk, root, QR_JOB_PREPARE_ROOT);
    struct qr_found_child child = {
        .change = QR_CHILD_NEW, .type = QR_ITEM_FILE, .key = QR_STR("a.txt"), .name = QR_STR("a.txt")};
    QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_expand_part){&child, 1, false}, &err));
    qr_desk_exec(&desk, "DELETE FROM job WHERE type = 'prepare-root'");
    struct qr_recovery_state state = {.workflow = &desk.workflow};
    struct qr_beat_task tasks[QR_RECOVERY_TASKS];
    qr_recovery_tasks(&state, tasks);
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error", &err));
    const qr_rc rc = qr_db_write(desk.db, QR_DURABLE, run_task, &tasks[2], &err);
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    QR_CHECK_RC(QR_OK, rc);
    qr_desk_check(&desk);
    qr_desk_close(&desk);
}

/* RECOV-3: at start, before any dispatch */
QR_DB_TEST(recovery_finds_an_item_without_a_job_behind_two_hundred_that_have_theirs)
{
    enum { NOTES = 250 };
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    struct qr_add_item items[NOTES];
    for (size_t i = 0; i < NOTES; i++) {
        items[i] = (struct qr_add_item){.type = QR_ITEM_NOTE, .name = QR_STR("n"), .content = QR_STR("x")};
    }
    const struct qr_add add = {.base_id = desk.base_id, .items = items, .count = NOTES};
    struct qr_added *added;
    QR_CHECK_RC(QR_OK, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err));
    qr_desk_exec(&desk, "DELETE FROM job WHERE item_id = (SELECT id FROM item ORDER BY path DESC LIMIT 1)");
    struct qr_recovery_state state = {.workflow = &desk.workflow};
    struct qr_beat_task tasks[QR_RECOVERY_TASKS];
    struct qr_beat *beat;
    qr_recovery_tasks(&state, tasks);
    QR_CHECK_RC(
        QR_OK,
        qr_beat_create(&beat,
                       &(struct qr_beat_options){
                           .db = desk.db, .clock = qr_clock_system(), .tasks = tasks, .task_count = QR_COUNT(tasks)},
                       &err));
    QR_CHECK_RC(QR_OK, qr_beat_run_recovery(beat, INT64_MAX, &err));
    qr_beat_free(beat);
    qr_desk_check(&desk);
    qr_desk_close(&desk);
}
