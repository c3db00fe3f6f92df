/* What is done again and what is left behind: the handlers with everything around them real, over every database. */
#include "base/failpoint.h"
#include "support/workshop.h"

#include <utime.h>

/* ---- again ---- */

/* REFR-4, TYPE-2, I3 */
QR_DB_TEST(a_rescan_touches_only_what_changed_and_keeps_the_ids)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = qr_shop_add_tree(&shop);
    const struct qr_item a = qr_desk_child(&shop.desk, folder, "a.md");
    qr_shop_write(&shop, "tree/b.txt", "bananas are green now, and longer\n");
    qr_shop_write(&shop, "tree/sub/d.txt", "dates\n");
    qr_shop_remove(&shop, "tree/sub/c.md");
    qr_shop_refresh(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK(qr_uuid_equal(a.id, qr_desk_child(&shop.desk, folder, "a.md").id));
    QR_CHECK_INT(1, qr_desk_child(&shop.desk, folder, "a.md").generation);
    QR_CHECK_INT(2, qr_desk_child(&shop.desk, folder, "b.txt").live_generation);
    QR_CHECK_INT(0, qr_shop_hits(&shop, "cherries"));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "dates"));
    QR_CHECK_INT(5, qr_shop_completed(&shop));
    QR_CHECK_INT(5, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_rescan_without_a_change_raises_no_leaf)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = qr_shop_add_tree(&shop);
    const int64_t before = qr_shop_generations(&shop);
    for (int i = 0; i < 3; i++) {
        qr_shop_refresh(&shop, folder);
        qr_shop_work(&shop);
    }
    QR_CHECK_INT(before, qr_shop_generations(&shop));
    QR_CHECK_INT(5, qr_shop_completed(&shop));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_file_that_became_a_folder_is_another_item)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = qr_shop_add_tree(&shop);
    const qr_uuid old = qr_desk_child(&shop.desk, folder, "b.txt").id;
    qr_shop_remove(&shop, "tree/b.txt");
    qr_shop_make_folder(&shop, "tree/b.txt");
    qr_shop_write(&shop, "tree/b.txt/inside.txt", "grapes\n");
    qr_shop_refresh(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK(!qr_desk_has_item(&shop.desk, old));
    const struct qr_item new = qr_desk_child(&shop.desk, folder, "b.txt");
    QR_CHECK_INT(QR_ITEM_DIRECTORY, new.type);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_child(&shop.desk, new.id, "inside.txt").status);
    QR_CHECK_INT(0, qr_shop_hits(&shop, "bananas"));
    qr_shop_close(&shop);
}

QR_DB_TEST(an_emptied_or_missing_folder_touches_nothing) /* TYPE-3 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    qr_shop_make_folder(&shop, "disk");
    qr_shop_write(&shop, "disk/a.txt", "on a disk\n");
    const qr_uuid folder = qr_shop_add_folder(&shop, "disk", "");
    qr_shop_work(&shop);
    qr_shop_remove(&shop, "disk/a.txt");
    qr_shop_refresh(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_TEXT("source_missing", qr_desk_item(&shop.desk, folder).expand_code);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_child(&shop.desk, folder, "a.txt").status);
    qr_shop_remove(&shop, "disk");
    qr_shop_retry(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_TEXT("source_missing", qr_desk_item(&shop.desk, folder).expand_code);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "disk"));
    qr_shop_close(&shop);
}

/* REIDX-4, REIDX-6 */
QR_DB_TEST(a_reindex_reaches_every_item_and_the_old_rows_are_purged)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = qr_shop_add_tree(&shop);
    qr_shop_set_settings(&shop, "{\"chunking\":{\"size_tokens\":100}}"); /* so that none comes to what is live */
    qr_shop_reindex(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(6, qr_shop_generations(&shop));
    QR_CHECK_INT(0,
                 qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE is_container = 0 AND live_generation <> 2"));
    QR_CHECK_INT(6, qr_shop_extents(&shop));
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(3, qr_shop_extents(&shop));
    QR_CHECK_INT(3, qr_desk_i64(&shop.desk, "SELECT count(*) FROM artifact"));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "bananas"));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_reindex_whose_path_is_gone_uses_the_stored_text) /* REIDX-5 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    qr_shop_write(&shop, "a.txt", "only once");
    const qr_uuid file = qr_shop_add_file(&shop, "a.txt", "");
    qr_shop_work(&shop);
    qr_shop_remove(&shop, "a.txt");
    qr_shop_reindex(&shop, file);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    const struct qr_item item = qr_desk_item(&shop.desk, file);
    QR_CHECK_INT(2, item.live_generation);
    QR_CHECK_HAS("source_missing", item.warnings);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "once"));
    qr_shop_close(&shop);
}

/* REFR-2, REFR-3 */
QR_DB_TEST(a_refresh_of_a_file_goes_by_its_content)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    qr_shop_write(&shop, "a.txt", "first");
    const qr_uuid file = qr_shop_add_file(&shop, "a.txt", "");
    qr_shop_work(&shop);
    QR_CHECK_INT(0,
                 utime(qr_shop_path(&shop, "a.txt"), &(struct utimbuf){1000, 1000})); /* another time, the same words */
    qr_shop_refresh(&shop, file);
    qr_shop_work(&shop);
    QR_CHECK_INT(1, qr_desk_item(&shop.desk, file).generation);
    qr_shop_write(&shop, "a.txt", "second");
    qr_shop_refresh(&shop, file);
    qr_shop_work(&shop);
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, file).live_generation);
    qr_shop_write(&shop, "a.txt", "");
    qr_shop_refresh(&shop, file);
    qr_shop_work(&shop);
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, file).generation);
    QR_CHECK_HAS("refresh_failed", qr_desk_item(&shop.desk, file).warnings);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_retry_of_a_folder_takes_up_what_failed_below_it) /* RETRY-3 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    qr_shop_make_folder(&shop, "tree/sub");
    qr_shop_write(&shop, "tree/a.txt", "fine");
    qr_shop_write(&shop, "tree/sub/b.txt", "bin\x01\x02\x03\x04\x05\x06\x07");
    const qr_uuid folder = qr_shop_add_folder(&shop, "tree", "");
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_FAILED, qr_desk_item(&shop.desk, folder).status);
    qr_shop_write(&shop, "tree/sub/b.txt", "better now");
    qr_shop_retry(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, folder).status);
    QR_CHECK_INT(1, qr_desk_child(&shop.desk, folder, "a.txt").generation);
    qr_shop_close(&shop);
}

/* ---- deleting ---- */

/* TYPE-8, I7 */
QR_DB_TEST(a_delete_leaves_nothing_behind)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = qr_shop_add_tree(&shop);
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "stays");
    qr_shop_work(&shop);
    qr_shop_delete(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK(qr_desk_has_item(&shop.desk, note));
    QR_CHECK_INT(2, qr_desk_i64(&shop.desk, "SELECT count(*) FROM artifact")); /* the note's source and text */
    QR_CHECK_INT(1, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_delete_while_everything_waits_cancels_the_work_below) /* DEL-5 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    qr_shop_make_folder(&shop, "tree");
    qr_shop_write(&shop, "tree/a.txt", "never read");
    const qr_uuid folder = qr_shop_add_folder(&shop, "tree", "");
    qr_shop_delete(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE state IN (1, 2, 3, 4)"));
    QR_CHECK_INT(0, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_delete_cancels_stages_that_wait_and_leaves_other_deletes_alone) /* DEL-5 */
{
    struct qr_shop shop;
    bool changed;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "words");
    qr_shop_work(&shop);
    QR_CHECK_RC(
        QR_OK, qr_workflow_update(&shop.desk.workflow, shop.desk.base_id, note, QR_STR("other words"), &changed, &err));
    qr_shop_work(&shop); /* the purge of the first generation waits */
    qr_shop_set_paused(&shop, QR_QUEUE_CONVERT, true);
    QR_CHECK_RC(QR_OK, qr_workflow_update(&shop.desk.workflow, shop.desk.base_id, note, QR_STR("new"), &changed, &err));
    qr_shop_delete(&shop, note);
    qr_shop_work_deletes(&shop);
    QR_CHECK(!qr_desk_has_item(&shop.desk, note));
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'process-document' AND state = 8 "
                                            "AND code = 'deleting'"));
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE state IN (3, 4)"));
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'purge' AND state = 2"));
    qr_test_clock_advance(QR_SHOP_PURGE_AFTER_MS);
    qr_shop_work_deletes(&shop);
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'purge' AND state IN (5, 7)"));
    QR_CHECK_INT(0, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_root_that_is_not_marked_is_never_deleted)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "stays");
    const qr_uuid other = qr_desk_add_note(&shop.desk, "other", "goes");
    qr_shop_work(&shop);
    qr_shop_delete(&shop, other);
    char text[QR_UUID_TEXT_SIZE], sql[256];
    qr_uuid_format(note, text);
    snprintf(sql, sizeof sql,
             "UPDATE job SET args = '{\"what\":\"delete\",\"roots\":[\"%s\"]}' WHERE type = 'delete-subtree'", text);
    qr_desk_exec(&shop.desk, sql);
    qr_shop_work(&shop);
    QR_CHECK(qr_desk_has_item(&shop.desk, note));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, note).status);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_base_is_deleted_with_everything_in_it) /* BASE-1, I7 */
{
    struct qr_shop shop;
    qr_uuid job_id;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    qr_shop_add_tree(&shop);
    qr_desk_add_note(&shop.desk, "waits", "its job is cancelled");
    QR_CHECK_RC(QR_OK, qr_workflow_delete_base(&shop.desk.workflow, shop.desk.base_id, true, &job_id, &err));
    qr_shop_work(&shop);
    static const char *const tables[] = {"base", "item", "artifact", "event", "run", "asset", "item_generation"};
    for (size_t i = 0; i < QR_COUNT(tables); i++) {
        char sql[64];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", tables[i]);
        qr_test_set_context("%s", tables[i]);
        QR_CHECK_INT(0, qr_desk_i64(&shop.desk, sql));
    }
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE state IN (1, 2, 3, 4)"));
    qr_shop_close(&shop);
}

QR_TEST(a_damaged_index_keeps_no_delete_from_its_end) /* DEL-1 */
{
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "words");
    qr_shop_work(&shop);
    qr_index_set_close(shop.context.index);
    char command[512];
    snprintf(command, sizeof command, "for f in $(find %s -type f); do echo damaged >$f; done", shop.index_dir);
    QR_CHECK_INT(0, system(command));
    QR_CHECK_RC(QR_OK, qr_index_set_open(&shop.context.index, &shop.index_options, &err));
    qr_shop_delete(&shop, note);
    qr_shop_work(&shop);
    QR_CHECK(!qr_desk_has_item(&shop.desk, note));
    qr_shop_close(&shop);
}

/* ---- restoring ---- */

/* THING-2, BASE-2, RECOV-4 */
QR_DB_TEST(a_failed_base_holds_its_jobs_and_is_restored_from_what_is_stored)
{
    struct qr_shop shop;
    qr_uuid job_id;
    qr_err err;
    qr_shop_open(&shop, t, QR_SHOP_HASHED);
    const struct qr_provider *provider = qr_batcher_provider(qr_shop_batcher(&shop, QR_SHOP_HASHED));
    qr_shop_add_tree(&shop);
    const qr_uuid later = qr_desk_add_note(&shop.desk, "later", "held back");
    QR_CHECK_RC(QR_OK, qr_workflow_fail_base(&shop.desk.workflow, shop.desk.base_id, "data_corrupt", "by test", &err));
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&shop.desk, later).status);
    QR_CHECK_RC(QR_OK, qr_index_drop(shop.context.index, shop.desk.base_id, &err));
    QR_CHECK_INT(0, qr_shop_extents(&shop));
    const int64_t calls = provider->call_count;
    QR_CHECK_RC(QR_OK, qr_workflow_restore_base(&shop.desk.workflow, shop.desk.base_id, &job_id, &err));
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_BASE_READY, qr_desk_i64(&shop.desk, "SELECT status FROM base"));
    QR_CHECK_INT(4, qr_shop_extents(&shop));
    QR_CHECK_INT(4, qr_shop_vectors(&shop));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "bananas"));
    QR_CHECK_INT(calls + 1, provider->call_count);                           /* PAID-1: that of `later` */
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, later).status); /* at once: no clock was moved */
    qr_shop_close(&shop);
}

/* ---- crashes in between ---- */

/* TYPE-1, TYPE-8: each step may be repeated */
QR_DB_TEST(a_failure_at_any_step_of_a_cleanup_is_mended_by_the_next_attempt)
{
    if (!qr_failpoints_built_in()) {
        return;
    }
    static const char *const points[] = {"delete.cancel.done", "delete.index_rows.done", "delete.rows.before_commit",
                                         "delete.rows.done",   "delete.files.done",      "expand.batch.committed"};
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    for (size_t i = 0; i < QR_COUNT(points); i++) {
        char plan[96];
        qr_test_set_context("%s", points[i]);
        snprintf(plan, sizeof plan, "%s=error@1", points[i]);
        QR_CHECK_RC(QR_OK, qr_failpoints_set(plan, &err));
        const qr_uuid folder = qr_shop_add_tree(&shop);
        qr_shop_work_after(&shop, 2000);
        qr_shop_delete(&shop, folder);
        qr_shop_work(&shop);
        qr_shop_work_after(&shop, 2000);
        qr_shop_work_after(&shop, 4000);
        QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
        QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM artifact"));
        QR_CHECK_INT(0, qr_shop_extents(&shop));
        QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    }
    qr_shop_close(&shop);
}

/* ---- what is not wanted any more ---- */

/* GEN-1, I2, I8, UPD-1 */
QR_DB_TEST(an_update_during_embedding_ends_the_calls_for_the_old_words)
{
    struct qr_shop shop;
    struct qr_disturbed disturbed = {.disturb = qr_disturb_by_update};
    qr_disturbed_open(&disturbed, &shop, t);
    qr_shop_work(&shop);
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, disturbed.item_id).live_generation);
    QR_CHECK_INT(2, disturbed.provider.call_count); /* the one in flight, and one for the new words */
    QR_CHECK_INT(1, qr_shop_vectors(&shop));        /* X2: the one in flight wrote nothing */
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE state = 6"));
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(1, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

static void delete_it(const struct qr_disturbed *disturbed)
{
    qr_shop_delete(disturbed->shop, disturbed->item_id);
}

/* GEN-1, DEL-4, I8: the mark is enough, whenever the cleanup comes */
QR_DB_TEST(a_delete_during_embedding_ends_the_calls)
{
    struct qr_shop shop;
    struct qr_disturbed disturbed = {.disturb = delete_it};
    qr_disturbed_open(&disturbed, &shop, t);
    qr_shop_set_paused(&shop, QR_QUEUE_DELETE, true);
    qr_shop_work_but_deletes(&shop);
    QR_CHECK_INT(1, disturbed.provider.call_count);
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE state = 7 AND type = 'index-chunks'"));
    qr_shop_set_paused(&shop, QR_QUEUE_DELETE, false);
    qr_shop_work(&shop);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(0, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}
