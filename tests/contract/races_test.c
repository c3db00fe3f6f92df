/* Races by name, each with the order of events that hurts most: everything is real, and what comes between is done from inside
 * a service's call, or by a worker of the test that holds a job while the others go on. */
#include "support/jobs_fixture.h"
#include "support/workshop.h"
#include "workflow/process.h"
#include "workflow/schedule.h"

#include <string.h>
#include <unistd.h>

enum { LEASE_MS = 121000 };

static void check_nothing_left(struct qr_shop *shop)
{
    QR_CHECK_INT(0, qr_desk_i64(&shop->desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(0, qr_desk_i64(&shop->desk, "SELECT count(*) FROM artifact"));
    QR_CHECK_INT(0, qr_desk_i64(&shop->desk, "SELECT count(*) FROM job WHERE state IN (1, 2, 3, 4)"));
}

/* The folder with a.md and b.md. */
static qr_uuid add_two_files(struct qr_shop *shop)
{
    qr_shop_write(shop, "a.md", "alpha words");
    qr_shop_write(shop, "b.md", "beta words");
    return qr_shop_add_folder(shop, "", "");
}

/* ---- siblings ---- */

struct both {
    struct qr_desk *desk;
    struct qr_job jobs[2];
};

static qr_rc end_both(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct both *both = arg;
    const struct qr_plan *plan = &both->desk->plan;
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1, .token_count = 1};
    const struct qr_outcome outcome = {.kind = QR_OUTCOME_COMPLETED, .result = &result};
    struct qr_ended ended[2];
    QR_TRY(plan->lock(tx, &both->desk->base_id, 1, plan->arg, err));
    for (size_t i = 0; i < 2; i++) {
        QR_TRY(qr_jobs_finish(tx, &both->jobs[i], &(struct qr_job_end){QR_JOB_COMPLETED, "", "", false}, err));
        ended[i] = (struct qr_ended){&both->jobs[i], QR_JOB_COMPLETED, &outcome};
    }
    return plan->ended(tx, ended, 2, plan->arg, err);
}

/* STATE-5, I6 */
QR_DB_TEST(two_siblings_that_finish_together_complete_their_folders)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid root = qr_desk_add_folder(&desk, "/somewhere");
    qr_desk_expand(&desk, root, (const char *const[]){"inner/"}, 1);
    const qr_uuid inner = qr_desk_child(&desk, root, "inner").id;
    qr_desk_expand(&desk, inner, (const char *const[]){"a.md", "b.md"}, 2);
    struct both both = {.desk = &desk};
    both.jobs[0] = qr_desk_claim(&desk, qr_desk_child(&desk, inner, "a.md").id, QR_JOB_PROCESS_DOCUMENT);
    both.jobs[1] = qr_desk_claim(&desk, qr_desk_child(&desk, inner, "b.md").id, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_db_write(desk.db, QR_DURABLE, end_both, &both, &err));
    qr_desk_check(&desk);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, inner).status);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&desk, root).status);
    QR_CHECK_INT(2, qr_desk_item(&desk, inner).counts.completed);
    qr_desk_close(&desk);
}

/* An expansion that failed and a look that finds a change, in one round: the newer attempt goes on (I1, STATE-6). */
struct expansion_and_refresh {
    struct qr_desk *desk;
    struct qr_job expansion, refresh;
};

static qr_rc end_expansion_and_refresh(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct expansion_and_refresh *both = arg;
    const struct qr_plan *plan = &both->desk->plan;
    struct qr_refresh_result changed = {.is_changed = true};
    const struct qr_outcome looked = {.kind = QR_OUTCOME_COMPLETED, .result = &changed};
    struct qr_outcome failed = {.kind = QR_OUTCOME_FAILED};
    qr_fail(&failed.error, QR_CODE_SOURCE_MISSING, "the folder is away");
    const struct qr_ended ended[2] = {{&both->expansion, QR_JOB_FAILED, &failed},
                                      {&both->refresh, QR_JOB_COMPLETED, &looked}};
    QR_TRY(plan->lock(tx, &both->desk->base_id, 1, plan->arg, err));
    QR_TRY(qr_jobs_finish(tx, &both->expansion, &(struct qr_job_end){QR_JOB_FAILED, "", "", false}, err));
    QR_TRY(qr_jobs_finish(tx, &both->refresh, &(struct qr_job_end){QR_JOB_COMPLETED, "", "", false}, err));
    return plan->ended(tx, ended, 2, plan->arg, err);
}

QR_DB_TEST(an_expansion_that_fails_together_with_a_refresh_leaves_the_newer_one_preparing)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    const qr_uuid root = qr_desk_add_folder(&desk, "/somewhere");
    struct qr_selection_answer answer;
    QR_CHECK_RC(QR_OK, qr_workflow_refresh(&desk.workflow, &(struct qr_selection){desk.base_id, &root, 1}, &desk.arena,
                                           &answer, &err));
    struct expansion_and_refresh both = {.desk = &desk};
    both.expansion = qr_desk_claim(&desk, root, QR_JOB_PREPARE_ROOT);
    both.refresh = qr_desk_claim_type(&desk, QR_JOB_REFRESH_SOURCE);
    QR_CHECK_RC(QR_OK, qr_db_write(desk.db, QR_DURABLE, end_expansion_and_refresh, &both, &err));
    qr_desk_check(&desk);
    const struct qr_item item = qr_desk_item(&desk, root);
    QR_CHECK_INT(QR_ITEM_PREPARING, item.status);
    QR_CHECK_INT(2, item.generation);
    qr_desk_close(&desk);
}

/* ---- reindex ---- */

/* REIDX-3, REIDX-4 */
QR_DB_TEST(overlapping_reindex_requests_end_in_one_complete_generation)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid root = add_two_files(&shop);
    qr_shop_work(&shop);
    const qr_uuid child = qr_desk_child(&shop.desk, root, "a.md").id;
    qr_shop_reindex(&shop, child);
    qr_shop_reindex(&shop, root);
    qr_shop_reindex(&shop, child); /* the open job answers */
    QR_CHECK_INT(2, qr_desk_open_jobs(&shop.desk, QR_JOB_REINDEX_SUBTREE));
    qr_shop_work(&shop);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    const struct qr_item item = qr_desk_item(&shop.desk, child), sibling = qr_desk_child(&shop.desk, root, "b.md");
    QR_CHECK_INT(QR_ITEM_COMPLETED, item.status);
    QR_CHECK_INT(item.generation, qr_item_done_generation(&item));
    QR_CHECK(item.generation >= 2 && item.generation <= 3);
    /* the second to begin may find the first under way: then it leaves its root alone (REIDX-3) */
    QR_CHECK_INT(sibling.generation, qr_item_done_generation(&sibling));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, root).status);
    QR_CHECK_INT(2, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

/* ---- deletes ---- */

/* DEL-2, DEL-5, I7 */
QR_DB_TEST(a_parent_that_is_deleted_during_the_delete_of_its_child_leaves_nothing)
{
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    qr_shop_make_folder(&shop, "inner");
    qr_shop_write(&shop, "inner/a.md", "alpha words");
    qr_shop_write(&shop, "b.md", "beta words");
    const qr_uuid root = qr_shop_add_folder(&shop, "", "");
    qr_shop_work(&shop);
    qr_shop_delete(&shop, qr_desk_child(&shop.desk, root, "inner").id);
    const struct qr_job held = qr_desk_claim_type(&shop.desk, QR_JOB_DELETE_SUBTREE);
    qr_shop_delete(&shop, root);
    qr_desk_exec(&shop.desk, "UPDATE job SET state = 3, fence = fence + 1 WHERE state = 4"); /* its lease ran out */
    qr_shop_work(&shop);
    check_nothing_left(&shop);
    QR_CHECK_INT(0, qr_shop_extents(&shop));
    QR_CHECK_RC(QR_LOST, qr_desk_end(&shop.desk, &held, QR_JOB_COMPLETED, QR_CODE_NONE, NULL, &err));
    qr_shop_close(&shop);
}

/* THING-4, DEL-4, I4 */
QR_DB_TEST(a_name_that_is_being_deleted_is_added_again_as_another_item)
{
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid root = add_two_files(&shop);
    qr_shop_work(&shop);
    const qr_uuid first = qr_desk_child(&shop.desk, root, "a.md").id;
    qr_shop_delete(&shop, first);
    const struct qr_job held = qr_desk_claim_type(&shop.desk, QR_JOB_DELETE_SUBTREE);
    /* a look at the folder while the cleanup stands still */
    QR_CHECK(qr_desk_has_item(&shop.desk, first));
    qr_desk_exec(&shop.desk, "UPDATE job SET state = 2, run_at = 9000000000000 WHERE type = 'delete-subtree'");
    qr_shop_refresh(&shop, root);
    qr_shop_work_but_deletes(&shop);
    const struct qr_item second = qr_desk_child(&shop.desk, root, "a.md");
    QR_CHECK(!qr_uuid_equal(first, second.id));
    QR_CHECK_INT(QR_ITEM_COMPLETED, second.status);
    qr_desk_exec(&shop.desk, "UPDATE job SET run_at = 1 WHERE type = 'delete-subtree'");
    qr_shop_work(&shop);
    QR_CHECK(!qr_desk_has_item(&shop.desk, first));
    QR_CHECK_INT(1, qr_shop_chunks(&shop, second.id, 1));
    QR_CHECK_INT(0, qr_shop_chunks(&shop, first, 1));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "alpha"));
    QR_CHECK_RC(QR_LOST, qr_desk_end(&shop.desk, &held, QR_JOB_COMPLETED, QR_CODE_NONE, NULL, &err));
    qr_shop_close(&shop);
}

/* PROC-3: what is removed below a deleted folder was at work for the run */
QR_DB_TEST(a_run_whose_last_items_are_deleted_ends)
{
    struct qr_shop shop;
    struct qr_run run;
    struct qr_added *added;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    struct qr_desk *desk = &shop.desk;
    const struct qr_add_item item = {.type = QR_ITEM_DIRECTORY, .source = QR_STR("/somewhere")};
    const struct qr_add add = {.base_id = desk->base_id, .items = &item, .count = 1, .is_manual = true};
    QR_CHECK_RC(QR_OK, qr_workflow_add(&desk->workflow, &add, &desk->arena, &added, &err));
    const qr_uuid root = added[0].id;
    const struct qr_process process = {.base_id = desk->base_id, .wanted = QR_WANT_ALL};
    QR_CHECK_RC(QR_OK, qr_workflow_process(&desk->workflow, &process, &run, &err));
    qr_desk_expand(desk, root, (const char *const[]){"a.md"}, 1);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_child(desk, root, "a.md").status);
    QR_CHECK_INT(QR_RUN_RUNNING, qr_desk_i64(desk, "SELECT status FROM run"));
    qr_shop_delete(&shop, root);
    qr_shop_work(&shop);
    check_nothing_left(&shop);
    QR_CHECK_INT(QR_RUN_COMPLETED, qr_desk_i64(desk, "SELECT status FROM run"));
    qr_shop_close(&shop);
}

/* ---- during a call ---- */

/* UPD-1, GEN-1, I2, I8 */
QR_DB_TEST(an_update_during_embedding_wins_and_is_searched_alone)
{
    struct qr_shop shop;
    struct qr_disturbed disturbed = {.disturb = qr_disturb_by_update};
    qr_disturbed_open(&disturbed, &shop, t);
    qr_shop_work(&shop);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, disturbed.item_id).live_generation);
    QR_CHECK_INT(2, disturbed.provider.call_count);
    QR_CHECK_INT(1, qr_shop_extents(&shop));
    QR_CHECK_INT(0, qr_shop_hits(&shop, "second"));
    qr_shop_close(&shop);
}

static void delete_base(const struct qr_disturbed *disturbed)
{
    const struct qr_desk *desk = &disturbed->shop->desk;
    qr_uuid job_id;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_delete_base(&desk->workflow, desk->base_id, true, &job_id, &err));
    while (qr_desk_i64(&disturbed->shop->desk, "SELECT count(*) FROM base") > 0) {
        qr_world_pause_briefly(); /* the call comes back when all is gone */
    }
}

/* BASE-1, I7, I8 */
QR_DB_TEST(a_base_that_is_deleted_during_embedding_leaves_nothing)
{
    struct qr_shop shop;
    struct qr_disturbed disturbed = {.disturb = delete_base};
    qr_disturbed_open(&disturbed, &shop, t);
    qr_shop_work(&shop);
    check_nothing_left(&shop);
    QR_CHECK_INT(1, disturbed.provider.call_count);
    char id[QR_UUID_TEXT_SIZE], path[260];
    qr_uuid_format(shop.desk.base_id, id);
    snprintf(path, sizeof path, "%s/%s.db", shop.index_dir, id);
    QR_CHECK(access(path, F_OK) != 0);
    qr_shop_close(&shop);
}

/* ---- a rebuild of the index ---- */

static qr_rc enqueue_restore(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_desk *desk = arg;
    qr_uuid job_id;
    return qr_enqueue_base_job(tx, &desk->ids, QR_JOB_RESTORE_BASE, desk->base_id, &job_id, err);
}

struct rebuilt {
    struct qr_shop *shop;
    bool is_rebuilt; /* announced since, and the store is the base's own again */
};

static qr_rc look_whether_rebuilt(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rebuilt *rebuilt = arg;
    char stamp[QR_INDEX_STAMP_SIZE];
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_base base;
    bool found;
    qr_arena_init(&arena, 0);
    QR_TRY(qr_base_find(tx, rebuilt->shop->desk.base_id, &arena, &found, &base, err));
    QR_TRY(qr_index_stamp(rebuilt->shop->context.index, base.id, stamp, err));
    rebuilt->is_rebuilt = base.vector_epoch > 0 && strcmp(stamp, base.index_stamp) == 0;
    return QR_OK;
}

/* The store is lost and made anew, in the worst moment: chunks are in it that no record tells of yet. */
static void rebuild_index(struct qr_shop *shop)
{
    struct rebuilt rebuilt = {.shop = shop};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_drop(shop->context.index, shop->desk.base_id, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(shop->desk.db, QR_DURABLE, enqueue_restore, &shop->desk, &err));
    while (!rebuilt.is_rebuilt) {
        qr_world_pause_briefly();
        QR_CHECK_RC(QR_OK, qr_db_read(shop->desk.db, look_whether_rebuilt, &rebuilt, &err));
    }
}

/* MODEL-2, I7 */
QR_DB_TEST(chunks_that_a_rebuild_of_the_index_dropped_before_their_record_are_written_again)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    shop.before_record = rebuild_index;
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "the words of the note");
    qr_shop_work(&shop);
    qr_shop_work_after(&shop, 61000);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, note).status);
    QR_CHECK_INT(1, qr_shop_chunks(&shop, note, 1));
    QR_CHECK_INT(1, qr_desk_item(&shop.desk, note).chunk_count);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "words"));
    qr_shop_close(&shop);
}

/* MODEL-2: chunks that are still to be embedded; and those that the rebuild has seen, which stay. */
QR_DB_TEST(only_chunks_that_a_rebuild_cannot_have_seen_are_written_again)
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, QR_SHOP_HASHED);
    const qr_uuid note = qr_desk_add_note(&desk, "note", "words");
    struct qr_stage_result result = {.reached = QR_REACHED_CHUNKS, .chunk_count = 1};
    const struct qr_job early = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    qr_desk_exec(&desk, "UPDATE base SET vector_epoch = 1");
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &early, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    result.vector_epoch = 1;
    const struct qr_job chunks = qr_desk_claim(&desk, note, QR_JOB_CHUNK_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &chunks, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    const struct qr_job index = qr_desk_claim(&desk, note, QR_JOB_INDEX_CHUNKS);
    qr_desk_exec(&desk, "UPDATE base SET vector_epoch = 2");
    result.reached = QR_REACHED_INDEX;
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &index, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_INT(1, qr_desk_open_jobs(&desk, QR_JOB_INDEX_CHUNKS));
    qr_desk_close(&desk);
}

/* ---- converters ---- */

/* During whose first answer the item is updated. */
struct slow_processor {
    struct qr_processor processor;
    struct qr_disturbed item;
    int polls;
};

static qr_rc submit(struct qr_processor *processor QR_UNUSED, const char *path QR_UNUSED, const char *name QR_UNUSED,
                    struct qr_arena *arena QR_UNUSED, const char **ret_ticket, qr_err *err QR_UNUSED)
{
    *ret_ticket = "the ticket";
    return QR_OK;
}

static qr_rc poll(struct qr_processor *processor, const char *ticket QR_UNUSED, enum qr_ticket_state *ret_state,
                  int64_t *ret_running_ms, struct qr_buf *out, qr_err *err QR_UNUSED)
{
    struct slow_processor *slow = processor->arg;
    *ret_running_ms = 0;
    *ret_state = QR_TICKET_DONE;
    qr_buf_add_text(out, slow->polls == 0 ? "old words" : "new words");
    if (slow->polls++ == 0) {
        qr_disturb_by_update(&slow->item);
    }
    return QR_OK;
}

static void cancel(struct qr_processor *processor QR_UNUSED, const char *ticket QR_UNUSED)
{
}

/* I2, TYPE-5 */
QR_DB_TEST(a_converters_result_that_comes_after_an_update_is_thrown_away)
{
    struct qr_shop shop;
    struct slow_processor slow = {
        .processor = {.name = "slow", .arg = &slow, .submit = submit, .poll = poll, .cancel = cancel},
        .item.shop = &shop};
    qr_shop_open(&shop, t, "{\"file_processor\":{\"kind\":\"command\",\"argv\":[\"cat\"],\"extensions\":[\"pdf\"]}}");
    shop.context.processor = &slow.processor;
    qr_shop_write(&shop, "a.pdf", "bytes");
    slow.item.item_id = qr_shop_add_file(&shop, "a.pdf", "");
    qr_shop_work(&shop);
    qr_shop_work_after(&shop, 6000);
    QR_CHECK_INT(0, qr_shop_hits(&shop, "old"));
    qr_shop_work_after(&shop, 6000);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    const struct qr_item item = qr_desk_item(&shop.desk, slow.item.item_id);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item.status);
    QR_CHECK_INT(2, item.live_generation);
    QR_CHECK_INT(0, qr_shop_hits(&shop, "old"));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "new"));
    qr_shop_close(&shop);
}

/* ---- workers that come back ---- */

/* FENCE-1, FENCE-2, I2 */
QR_DB_TEST(a_worker_frozen_past_its_lease_changes_nothing_when_it_comes_back)
{
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "the words of the note");
    const struct qr_job held = qr_desk_claim(&shop.desk, note, QR_JOB_PROCESS_DOCUMENT);
    qr_shop_work_after(&shop, LEASE_MS);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, note).status);
    struct qr_stage_result late = {.reached = QR_REACHED_INDEX, .chunk_count = 77};
    QR_CHECK_RC(QR_LOST, qr_desk_end(&shop.desk, &held, QR_JOB_COMPLETED, QR_CODE_NONE, &late, &err));
    QR_CHECK_INT(1, qr_desk_item(&shop.desk, note).chunk_count);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "words"));
    qr_shop_close(&shop);
}

/* TYPE-1 */
QR_DB_TEST(an_expansion_that_died_half_way_is_finished_by_the_next_attempt_with_the_same_items)
{
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid root = add_two_files(&shop);
    const struct qr_job held = qr_desk_claim(&shop.desk, root, QR_JOB_PREPARE_ROOT);
    struct qr_found_child child = {.change = QR_CHILD_NEW,
                                   .type = QR_ITEM_FILE,
                                   .key = QR_STR("a.md"),
                                   .name = QR_STR("a.md"),
                                   .source = qr_str_of(qr_shop_path(&shop, "a.md")),
                                   .size_bytes = 11};
    struct qr_expand_part part = {.children = &child, .count = 1};
    QR_CHECK_RC(QR_OK, qr_desk_part(&shop.desk, &held, &part, &err));
    const qr_uuid first = qr_desk_child(&shop.desk, root, "a.md").id;
    qr_shop_work(&shop);
    QR_CHECK(qr_uuid_equal(first, qr_desk_child(&shop.desk, root, "a.md").id));
    QR_CHECK_INT(3, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, root).status);
    QR_CHECK_RC(QR_LOST, qr_desk_part(&shop.desk, &held, &part, &err));
    qr_shop_close(&shop);
}
