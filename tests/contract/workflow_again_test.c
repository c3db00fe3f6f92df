/* The entry points and the plan, over every database: what is built again, and how stages follow each other. Handlers are not
 * here: the test says what stages find. */
#include "support/workflow_fixture.h"

static const char *const none[1];

/* The reindex job, as its handler does it. */
static void run_reindex(struct qr_desk *desk, qr_uuid root_id)
{
    const struct qr_job job = qr_desk_claim_type(desk, QR_JOB_REINDEX_SUBTREE);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_desk_part(desk, &job, &(struct qr_raise_part){&root_id, 1, "reindex", false}, &err));
    QR_CHECK_RC(QR_OK, qr_desk_end(desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, NULL, &err));
}

/* ---- reindex ---- */

/* REIDX-1 */
QR_DB_TEST(a_reindex_is_refused_while_something_is_not_at_rest)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    struct qr_status_counts counts;
    struct qr_reindex_estimate estimate;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt", "b.txt"}, 2);
    qr_desk_index(&desk, qr_desk_child(&desk, folder, "a.txt").id);
    const struct qr_selection selection = {desk.base_id, &folder, 1};
    QR_CHECK_CODE(QR_CODE_NOT_TERMINAL, qr_workflow_reindex(&desk.workflow, &selection, false, &desk.arena, &answer,
                                                            &counts, &estimate, &err));
    QR_CHECK_INT(2, counts.of[QR_ITEM_PROCESSING]); /* the file and its folder */
    QR_CHECK_INT(0, qr_desk_open_jobs(&desk, QR_JOB_REINDEX_SUBTREE));
    qr_desk_close(&desk);
}

/* REIDX-2, REIDX-4, REIDX-6, I3 */
QR_DB_TEST(a_reindex_keeps_the_old_generation_live_until_the_new_one_is_complete)
{
    struct qr_desk desk;
    struct qr_selection_answer answer, again;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    const qr_uuid child = qr_desk_child(&desk, folder, "a.txt").id;
    qr_desk_index(&desk, child);
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_desk_reindex, &folder, 1, &answer, &err));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, folder).status); /* the request itself changes nothing */
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_desk_reindex, &folder, 1, &again, &err));
    QR_CHECK(qr_uuid_equal(answer.job_id, again.job_id));
    run_reindex(&desk, folder);
    QR_CHECK_INT(QR_ITEM_PREPARING, qr_desk_item(&desk, folder).status);
    qr_desk_expand(&desk, folder, (const char *const[]){"a.txt"}, 1);
    QR_CHECK_INT(2, qr_desk_item(&desk, child).generation);
    QR_CHECK_INT(1, qr_desk_item(&desk, child).live_generation);
    qr_desk_index(&desk, child);
    QR_CHECK_INT(2, qr_desk_item(&desk, child).live_generation);
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_PURGE));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, folder).status);
    qr_desk_close(&desk);
}

/* A folder with a.txt in it, both indexed, whose reindex is about to list it again. */
static struct qr_job begin_expansion_again(struct qr_desk *desk, qr_uuid *ret_folder, qr_uuid *ret_child)
{
    struct qr_selection_answer answer;
    qr_err err;
    *ret_folder = qr_desk_add_folder(desk, "/d");
    qr_desk_expand(desk, *ret_folder, (const char *const[]){"a.txt"}, 1);
    *ret_child = qr_desk_child(desk, *ret_folder, "a.txt").id;
    qr_desk_index(desk, *ret_child);
    QR_CHECK_RC(QR_OK, qr_desk_select(desk, qr_desk_reindex, ret_folder, 1, &answer, &err));
    run_reindex(desk, *ret_folder);
    return qr_desk_claim(desk, *ret_folder, QR_JOB_PREPARE_ROOT);
}

/* RECOV-5, I7 */
QR_DB_TEST(a_file_that_cannot_be_taken_any_more_has_what_was_begun_of_it_purged)
{
    struct qr_desk desk;
    qr_uuid folder, child;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const struct qr_job job = begin_expansion_again(&desk, &folder, &child);
    struct qr_found_child found = {.change = QR_CHILD_CHANGED,
                                   .id = child,
                                   .type = QR_ITEM_FILE,
                                   .key = QR_STR("a.txt"),
                                   .name = QR_STR("a.txt"),
                                   .source = QR_STR("/d/a.txt"),
                                   .size_bytes = 1,
                                   .error_code = "too_large",
                                   .error_message = "it has grown"};
    QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_expand_part){.children = &found, .count = 1}, &err));
    QR_CHECK_INT(QR_ITEM_FAILED, qr_desk_item(&desk, child).status);
    QR_CHECK_INT(2, qr_desk_item(&desk, child).generation);
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_PURGE));
    qr_desk_close(&desk);
}

/* REIDX-6: a failed reindex loses nothing */
QR_DB_TEST(a_failed_reindex_leaves_the_old_generation_live)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    qr_desk_index(&desk, note);
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_desk_reindex, &note, 1, &answer, &err));
    run_reindex(&desk, note);
    qr_desk_fail(&desk, note, QR_CODE_CORRUPT);
    const struct qr_item item = qr_desk_item(&desk, note);
    QR_CHECK_INT(QR_ITEM_FAILED, item.status);
    QR_CHECK_INT(1, item.live_generation);
    QR_CHECK_INT(2, item.error_generation);
    qr_desk_close(&desk);
}

/* REIDX-3: delete wins */
QR_DB_TEST(a_reindex_job_leaves_alone_what_was_deleted_or_taken_up_meanwhile)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    bool changed;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid deleted = qr_desk_add_note(&desk, "n", "x"), updated = qr_desk_add_note(&desk, "m", "y");
    qr_desk_index(&desk, deleted);
    qr_desk_index(&desk, updated);
    const qr_uuid both[] = {deleted, updated};
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_desk_reindex, both, 2, &answer, &err));
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, &deleted, 1, &answer, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_update(&desk.workflow, desk.base_id, updated, QR_STR("z"), &changed, &err));
    const struct qr_job job = qr_desk_claim_type(&desk, QR_JOB_REINDEX_SUBTREE);
    QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_raise_part){both, 2, "reindex", false}, &err));
    QR_CHECK_INT(1, qr_desk_item(&desk, deleted).generation);
    QR_CHECK_INT(2, qr_desk_item(&desk, updated).generation);
    qr_desk_close(&desk);
}

/* ---- update ---- */

/* UPD-1, GEN-1, I2 */
QR_DB_TEST(an_update_supersedes_the_attempt_under_way)
{
    struct qr_desk desk;
    bool changed;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "old");
    const struct qr_job old = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_workflow_update(&desk.workflow, desk.base_id, note, QR_STR("new"), &changed, &err));
    QR_CHECK(changed);
    qr_desk_check(&desk);
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1};
    QR_CHECK_CODE(QR_CODE_LOST, qr_desk_end(&desk, &old, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_INT(0, qr_desk_item(&desk, note).live_generation);
    qr_desk_index(&desk, note);
    QR_CHECK_INT(2, qr_desk_item(&desk, note).live_generation);
    qr_desk_close(&desk);
}

/* UPD-2 */
QR_DB_TEST(identical_content_changes_nothing)
{
    struct qr_desk desk;
    bool changed;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "same");
    qr_desk_index(&desk, note);
    QR_CHECK_RC(QR_OK, qr_workflow_update(&desk.workflow, desk.base_id, note, QR_STR("same"), &changed, &err));
    QR_CHECK(!changed);
    QR_CHECK_INT(1, qr_desk_item(&desk, note).generation);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, note).status);
    qr_desk_close(&desk);
}

/* ---- retry ---- */

/* RETRY-1, RETRY-4 */
QR_DB_TEST(a_retry_takes_what_failed_and_says_why_not_the_rest)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid failed = qr_desk_add_note(&desk, "a", "1"), completed = qr_desk_add_note(&desk, "b", "2"),
                  active = qr_desk_add_note(&desk, "c", "3");
    qr_desk_fail(&desk, failed, QR_CODE_CORRUPT);
    qr_desk_index(&desk, completed);
    const qr_uuid ids[] = {failed, completed, active};
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_retry, ids, 3, &answer, &err));
    QR_CHECK_INT(1, answer.accepted_count);
    QR_CHECK(qr_uuid_equal(failed, answer.accepted[0]));
    QR_CHECK_INT(2, answer.skipped_count);
    QR_CHECK_TEXT("already_indexed", answer.skipped[0].reason);
    QR_CHECK_TEXT("already_in_progress", answer.skipped[1].reason);
    QR_CHECK_INT(2, qr_desk_item(&desk, failed).generation);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&desk, failed).status);
    qr_desk_close(&desk);
}

/* RETRY-2 */
QR_DB_TEST(a_job_that_nobody_claimed_for_ten_minutes_is_taken_over_by_a_retry)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "a", "1");
    qr_test_clock_advance(10 * 60 * 1000);
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_retry, &note, 1, &answer, &err));
    QR_CHECK_INT(0, answer.accepted_count);
    qr_test_clock_advance(1);
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_retry, &note, 1, &answer, &err));
    QR_CHECK_INT(1, answer.accepted_count);
    QR_CHECK_INT(1, qr_desk_i64(&desk, "SELECT count(*) FROM item_generation WHERE reason = 'stale_takeover'"));
    qr_desk_close(&desk);
}

/* RETRY-3 */
QR_DB_TEST(a_container_whose_expansion_failed_is_expanded_again)
{
    struct qr_desk desk;
    struct qr_selection_answer answer;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/gone");
    const struct qr_job job = qr_desk_claim(&desk, folder, QR_JOB_PREPARE_ROOT);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_FAILED, QR_CODE_SOURCE_MISSING, NULL, &err));
    QR_CHECK_INT(QR_ITEM_FAILED, qr_desk_item(&desk, folder).status);
    QR_CHECK_TEXT("source_missing", qr_desk_item(&desk, folder).expand_code);
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_retry, &folder, 1, &answer, &err));
    QR_CHECK_INT(QR_ITEM_PREPARING, qr_desk_item(&desk, folder).status);
    qr_desk_expand(&desk, folder, none, 0);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, folder).status);
    qr_desk_close(&desk);
}

/* ---- stages ---- */

/* AGAIN-5 */
QR_DB_TEST(a_stage_that_declines_without_a_reason_is_a_failure)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_SKIPPED, QR_CODE_NONE, NULL, &err));
    QR_CHECK_TEXT("stage_skipped", qr_desk_item(&desk, note).error_code);
    qr_desk_close(&desk);
}

/* JOB-1, TYPE-6: each stage queues the next */
QR_DB_TEST(each_stage_queues_the_next_in_its_own_transaction)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    static const struct {
        enum qr_job_type type;
        enum qr_reached reached;
    } stages[] = {{QR_JOB_PROCESS_DOCUMENT, QR_REACHED_TEXT},
                  {QR_JOB_CHUNK_DOCUMENT, QR_REACHED_CHUNKS},
                  {QR_JOB_INDEX_CHUNKS, QR_REACHED_INDEX}};
    for (size_t i = 0; i < QR_COUNT(stages); i++) {
        const struct qr_job job = qr_desk_claim(&desk, note, stages[i].type);
        struct qr_stage_result result = {.reached = stages[i].reached, .chunk_count = 1};
        QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    }
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, note).status);
    qr_desk_close(&desk);
}

/* TYPE-5: the ticket is kept on the item */
QR_DB_TEST(a_converters_ticket_is_kept_and_asked_for_after_five_seconds)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid note = qr_desk_add_note(&desk, "n", "x");
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    struct qr_stage_result result = {.reached = QR_REACHED_TICKET, .ticket = "T-1"};
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_TEXT("T-1", qr_desk_item(&desk, note).ticket);
    QR_CHECK_INT(5000, qr_desk_i64(&desk, "SELECT run_at - created_at FROM job WHERE type = 'check-file-processing'"));
    qr_desk_close(&desk);
}

/* ---- expansion ---- */

/* TYPE-1: a rerun registers nothing twice */
QR_DB_TEST(an_expansion_that_is_run_again_registers_nothing_twice)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid folder = qr_desk_add_folder(&desk, "/d");
    const struct qr_job job = qr_desk_claim(&desk, folder, QR_JOB_PREPARE_ROOT);
    struct qr_found_child child = {
        .change = QR_CHILD_NEW, .type = QR_ITEM_FILE, .key = QR_STR("a.txt"), .name = QR_STR("a.txt")};
    for (int i = 0; i < 2; i++) {
        QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_expand_part){&child, 1, false}, &err));
    }
    QR_CHECK_INT(2, qr_desk_i64(&desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(1, qr_desk_item(&desk, folder).counts.active);
    qr_desk_close(&desk);
}

/* TYPE-2 and a name can be used again at once (THING-4) */
QR_DB_TEST(a_child_that_is_gone_is_deleted_and_its_name_is_free)
{
    struct qr_desk desk;
    qr_uuid folder, old;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const struct qr_job job = begin_expansion_again(&desk, &folder, &old);
    struct qr_found_child gone = {.change = QR_CHILD_GONE, .id = old};
    QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_expand_part){&gone, 1, false}, &err));
    QR_CHECK_INT(QR_ITEM_DELETING, qr_desk_item(&desk, old).status);
    struct qr_found_child new = {
        .change = QR_CHILD_NEW, .type = QR_ITEM_FILE, .key = QR_STR("a.txt"), .name = QR_STR("a.txt")};
    QR_CHECK_RC(QR_OK, qr_desk_part(&desk, &job, &(struct qr_expand_part){&new, 1, false}, &err));
    QR_CHECK(!qr_uuid_equal(old, qr_desk_child(&desk, folder, "a.txt").id));
    qr_desk_close(&desk);
}
