/* The entry points and the plan, over every database: what is added, what it is in, what is deleted or cancelled. Handlers are
 * not here: the test says what stages find. */
#include "base/failpoint.h"
#include "support/workflow_fixture.h"

/* ---- add ---- */

/* ADD-2, REQ-2, I1 */
QR_DB_TEST(an_added_item_is_active_and_has_its_job)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "hello"), folder = qr_desk_add_folder(&desk, "/somewhere");
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, note).status);
    QR_CHECK_INT(QR_ITEM_PREPARING, qr_desk_item(&desk, folder).status);
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_PROCESS_DOCUMENT));
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_PREPARE_ROOT));
    qr_desk_close(&desk);
}

/* ADD-2: `process: manual` */
QR_DB_TEST(an_item_added_manually_rests_idle_without_a_job)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const struct qr_add_item items[] = {{.type = QR_ITEM_NOTE, .name = QR_STR("n"), .content = QR_STR("x")},
                                        {.type = QR_ITEM_DIRECTORY, .source = QR_STR("/d")}};
    const struct qr_add add = {.base_id = desk.base_id, .items = items, .count = 2, .is_manual = true};
    struct qr_added *added;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err));
    qr_desk_check(&desk);
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, added[0].id).status);
    QR_CHECK_INT(QR_ITEM_IDLE, qr_desk_item(&desk, added[1].id).status);
    QR_CHECK_INT(0, qr_desk_i64(&desk, "SELECT count(*) FROM job"));
    qr_desk_close(&desk);
}

/* ADD-3 */
QR_DB_TEST(a_leaf_that_cannot_be_read_is_failed_without_a_job)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const struct qr_add_item item = {.type = QR_ITEM_FILE, .source = QR_STR("/x/picture.png")};
    const struct qr_add add = {.base_id = desk.base_id, .items = &item, .count = 1};
    struct qr_added *added;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err));
    qr_desk_check(&desk);
    const struct qr_item failed = qr_desk_item(&desk, added[0].id);
    QR_CHECK_INT(QR_ITEM_FAILED, failed.status);
    QR_CHECK_TEXT("unsupported_type", failed.error_code);
    QR_CHECK_INT(0, qr_desk_i64(&desk, "SELECT count(*) FROM job"));
    qr_desk_close(&desk);
}

/* ADD-4 */
QR_DB_TEST(when_the_kth_enqueue_fails_those_before_stand_and_the_rest_are_failed)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    struct qr_add_item items[3];
    for (size_t i = 0; i < 3; i++) {
        items[i] = (struct qr_add_item){.type = QR_ITEM_NOTE, .name = QR_STR("n"), .content = QR_STR("x")};
    }
    const struct qr_add add = {.base_id = desk.base_id, .items = items, .count = 3};
    struct qr_added *added;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error@2", &err));
    QR_CHECK_CODE(QR_CODE_ENQUEUE_FAILED, qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err));
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    qr_desk_check(&desk);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, added[0].id).status);
    for (size_t i = 1; i < 3; i++) {
        const struct qr_item failed = qr_desk_item(&desk, added[i].id);
        QR_CHECK_INT(QR_ITEM_FAILED, failed.status);
        QR_CHECK_TEXT("enqueue_failed", failed.error_code);
    }
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_PROCESS_DOCUMENT));
    qr_desk_close(&desk);
}

/* ADD-5 */
QR_DB_TEST(an_add_that_does_not_commit_leaves_nothing)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const struct qr_add_item item = {.type = QR_ITEM_NOTE, .name = QR_STR("n"), .content = QR_STR("x")};
    const struct qr_add add = {.base_id = desk.base_id, .items = &item, .count = 1};
    struct qr_added *added;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("add.before_commit=error", &err));
    QR_CHECK(qr_workflow_add(&desk.workflow, &add, &desk.arena, &added, &err) != QR_OK);
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    QR_CHECK_INT(0, qr_desk_i64(&desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(0, qr_desk_i64(&desk, "SELECT count(*) FROM job"));
    QR_CHECK_INT(0, qr_desk_i64(&desk, "SELECT count(*) FROM artifact"));
    qr_desk_close(&desk);
}

/* ---- state ---- */

/* STATE-5, STATE-7, I6 */
QR_DB_TEST(a_container_is_what_its_children_are)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt", "b.txt"}, 2);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, folder).status);
    QR_CHECK_INT(2, qr_desk_item(&desk, folder).counts.active);
    qr_desk_index(&desk, qr_desk_child(&desk, folder, "a.txt").id);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, folder).status);
    qr_desk_fail(&desk, qr_desk_child(&desk, folder, "b.txt").id, QR_CODE_CORRUPT);
    QR_CHECK_INT(QR_ITEM_FAILED, qr_desk_item(&desk, folder).status);
    qr_desk_close(&desk);
}

/* STATE-5: up to the root */
QR_DB_TEST(what_happens_deep_below_reaches_the_root)
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid root = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, root, (const char *const[]){"sub/"}, 1);
    const qr_uuid sub = qr_desk_child(&desk, root, "sub").id;
    qr_desk_expand(&desk, sub, (const char *const[]){"a.txt"}, 1);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, root).status);
    qr_desk_index(&desk, qr_desk_child(&desk, sub, "a.txt").id);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, sub).status);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, root).status);
    qr_desk_close(&desk);
}

/* STATE-6 */
QR_DB_TEST(deleting_children_do_not_count)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt", "b.txt"}, 2);
    qr_desk_index(&desk, qr_desk_child(&desk, folder, "a.txt").id);
    const qr_uuid active = qr_desk_child(&desk, folder, "b.txt").id;
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, &active, 1, &answer, &err));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, folder).status);
    qr_desk_close(&desk);
}

/* ---- delete ---- */

/* DEL-1, DEL-2, DEL-4, I2, I4 */
QR_DB_TEST(after_a_delete_results_below_change_nothing)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    const qr_uuid child = qr_desk_child(&desk, folder, "a.txt").id;
    const struct qr_job job = qr_desk_claim(&desk, child, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, &folder, 1, &answer, &err));
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_DELETE_SUBTREE));
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1};
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_INT(0, qr_desk_item(&desk, child).live_generation);
    QR_CHECK_INT(QR_ITEM_DELETING, qr_desk_item(&desk, folder).status);
    qr_desk_close(&desk);
}

/* I4: no child is created under it */
QR_DB_TEST(an_expansion_under_a_deleted_folder_registers_nothing)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    const struct qr_job job = qr_desk_claim(&desk, folder, QR_JOB_PREPARE_ROOT);
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, &folder, 1, &answer, &err));
    struct qr_found_child child = {
        .change = QR_CHILD_NEW, .type = QR_ITEM_FILE, .key = QR_STR("a"), .name = QR_STR("a")};
    QR_CHECK_CODE(QR_CODE_DELETING, qr_desk_part(&desk, &job, &(struct qr_expand_part){&child, 1, false}, &err));
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM item"));
    qr_desk_close(&desk);
}

/* DEL-3 */
QR_DB_TEST(a_delete_whose_job_cannot_be_queued_stands)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error", &err));
    QR_CHECK_CODE(QR_CODE_ENQUEUE_FAILED, qr_desk_select(&desk, qr_workflow_delete, &note, 1, &answer, &err));
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    QR_CHECK_INT(QR_ITEM_DELETING, qr_desk_item(&desk, note).status);
    QR_CHECK_INT(0, qr_desk_open_jobs(&desk, QR_JOB_DELETE_SUBTREE));
    qr_desk_close(&desk);
}

/* REQ-3, REQ-4 */
QR_DB_TEST(a_selection_is_taken_once_and_by_its_outermost_roots)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d"), note = qr_desk_add_note(&desk, "n", "x");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    const qr_uuid ids[] = {qr_desk_child(&desk, folder, "a.txt").id, folder, note, folder, qr_uuid_next(&desk.ids)};
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, ids, QR_COUNT(ids), &answer, &err));
    QR_CHECK_INT(2, answer.accepted_count);
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_DELETE_SUBTREE));
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, NULL, 0, &answer, &err));
    QR_CHECK_INT(0, answer.accepted_count);
    qr_desk_close(&desk);
}

/* REQ-3 */
QR_DB_TEST(an_id_of_another_base_rejects_the_whole_request)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid here = qr_desk_add_note(&desk, "n", "x");
    const qr_uuid first_base = desk.base_id;
    QR_CHECK_RC(QR_OK, qr_workflow_add_base(&desk.workflow, QR_STR("other"), QR_STR("{}"), &desk.base_id, &err));
    const qr_uuid there = qr_desk_add_note(&desk, "m", "y");
    desk.base_id = first_base;
    qr_desk_fail(&desk, here, QR_CODE_CORRUPT);
    QR_CHECK_CODE(QR_CODE_NOT_FOUND,
                  qr_desk_select(&desk, qr_workflow_retry, (const qr_uuid[]){here, there}, 2, &answer, &err));
    QR_CHECK_INT(QR_ITEM_FAILED, qr_desk_item(&desk, here).status);
    qr_desk_close(&desk);
}

/* REQ-5 */
QR_DB_TEST(on_a_failed_base_only_deletes_and_restore_are_allowed)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_uuid job;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x"), other = qr_desk_add_note(&desk, "m", "y");
    qr_desk_fail(&desk, other, QR_CODE_CORRUPT);
    QR_CHECK_CODE(QR_CODE_NOT_FAILED, qr_workflow_restore_base(&desk.workflow, desk.base_id, &job, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_fail_base(&desk.workflow, desk.base_id, "data_corrupt", "its index is gone", &err));
    QR_CHECK_CODE(QR_CODE_BASE_FAILED, qr_desk_select(&desk, qr_workflow_retry, &other, 1, &answer, &err));
    QR_CHECK_CODE(QR_CODE_BASE_FAILED, qr_desk_select(&desk, qr_desk_reindex, &other, 1, &answer, &err));
    QR_CHECK_CODE(QR_CODE_BASE_FAILED, qr_desk_select(&desk, qr_workflow_refresh, &other, 1, &answer, &err));
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, &note, 1, &answer, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_restore_base(&desk.workflow, desk.base_id, &job, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_delete_base(&desk.workflow, desk.base_id, true, &job, &err));
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_desk_select(&desk, qr_workflow_delete, &other, 1, &answer, &err));
    qr_desk_close(&desk);
}

/* BASE-1 */
QR_DB_TEST(a_base_with_items_is_deleted_only_when_confirmed)
{
    struct qr_desk desk;
    qr_uuid job, again;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    qr_desk_add_note(&desk, "n", "x");
    QR_CHECK_CODE(QR_CODE_NOT_EMPTY, qr_workflow_delete_base(&desk.workflow, desk.base_id, false, &job, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_delete_base(&desk.workflow, desk.base_id, true, &job, &err));
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_workflow_delete_base(&desk.workflow, desk.base_id, true, &again, &err));
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_DELETE_BASE));
    QR_CHECK_RC(
        QR_OK, qr_workflow_add_base(&desk.workflow, QR_STR("base"), QR_STR("{}"), &again, &err)); /* the name is free */
    qr_desk_close(&desk);
}

/* ---- cancel ---- */

/* CANCEL-1 */
QR_DB_TEST(cancelling_a_stage_job_fails_its_item)
{
    struct qr_desk desk;
    enum qr_job_state state;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_workflow_cancel_job(&desk.workflow, job.id, &state, &err));
    qr_desk_check(&desk);
    QR_CHECK_TEXT("cancelled", qr_desk_item(&desk, note).error_code);
    qr_desk_close(&desk);
}

/* CANCEL-1 */
QR_DB_TEST(a_delete_is_not_cancelled)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    enum qr_job_state state;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, &note, 1, &answer, &err));
    QR_CHECK_CODE(QR_CODE_DELETING, qr_workflow_cancel_job(&desk.workflow, answer.job_id, &state, &err));
    qr_desk_close(&desk);
}

/* CANCEL-2 */
QR_DB_TEST(retrying_a_stage_job_is_the_items_retry)
{
    struct qr_desk desk;
    bool existed;
    qr_uuid new_job;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_FAILED, QR_CODE_CORRUPT, NULL, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_retry_job(&desk.workflow, job.id, &new_job, &existed, &err));
    qr_desk_check(&desk);
    QR_CHECK_INT(2, qr_desk_item(&desk, note).generation);
    qr_desk_close(&desk);
}

/* ---- visibility ---- */

/* HIDE-1, DESIGN: vis_seq rises with everything that changes what search may show */
QR_DB_TEST(vis_seq_rises_when_something_goes_live_or_is_hidden_or_deleted)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    int64_t before = qr_desk_i64(&desk, "SELECT vis_seq FROM base");
    qr_desk_index(&desk, note);
    int64_t after = qr_desk_i64(&desk, "SELECT vis_seq FROM base");
    QR_CHECK(after > before);
    const bool no = false;
    QR_CHECK_RC(QR_OK,
                qr_workflow_patch(&desk.workflow, desk.base_id, note, &(struct qr_item_patch){.enabled = &no}, &err));
    before = after;
    after = qr_desk_i64(&desk, "SELECT vis_seq FROM base");
    QR_CHECK(after > before);
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, &note, 1, &answer, &err));
    QR_CHECK(qr_desk_i64(&desk, "SELECT vis_seq FROM base") > after);
    qr_desk_close(&desk);
}
