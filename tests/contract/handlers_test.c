/* The handlers with everything around them real, over every database: what becomes of sources, and what is left behind. */
#include "base/failpoint.h"
#include "support/workshop.h"

#include <unistd.h>
#include <utime.h>

enum { PURGE_AFTER_MS = 31000 };

static int64_t completed(struct qr_shop *shop)
{
    return qr_desk_i64(&shop->desk, "SELECT count(*) FROM item WHERE status = 6");
}

static int64_t generations(struct qr_shop *shop)
{
    return qr_desk_i64(&shop->desk, "SELECT CAST(sum(generation) AS BIGINT) FROM item WHERE is_container = 0");
}

/* A folder with a.md, b.txt, sub/c.md; all of it indexed. */
static qr_uuid add_tree(struct qr_shop *shop)
{
    qr_shop_make_folder(shop, "tree/sub");
    qr_shop_write(shop, "tree/a.md", "# Apples\n\nThey are red.\n");
    qr_shop_write(shop, "tree/b.txt", "bananas are yellow\n");
    qr_shop_write(shop, "tree/sub/c.md", "# Cherries\n\nThey are small.\n");
    const qr_uuid folder = qr_shop_add_folder(shop, "tree", "");
    qr_shop_work(shop);
    return folder;
}

/* ---- a folder from nothing to found ---- */

/* TYPE-1, TYPE-4 */
QR_DB_TEST(a_folder_is_read_to_its_depth_and_found_by_its_words)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = add_tree(&shop);
    QR_CHECK_INT(5, completed(&shop));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, folder).status);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "bananas"));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "cherries"));
    const struct qr_item item = qr_desk_child(&shop.desk, folder, "a.md");
    QR_CHECK_INT(1, item.live_generation);
    QR_CHECK_INT(1, item.chunk_count);
    QR_CHECK(item.has_hash && item.token_count > 0);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE state <> 5"));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_note_is_indexed_and_an_empty_one_is_completed_with_a_warning) /* EMPTY-1 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "remember the milk");
    const qr_uuid empty = qr_desk_add_note(&shop.desk, "empty", " \n\n");
    qr_shop_work(&shop);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "milk"));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, note).status);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, empty).status);
    QR_CHECK_INT(0, qr_desk_item(&shop.desk, empty).chunk_count);
    QR_CHECK_HAS("\"empty\"", qr_desk_item(&shop.desk, empty).warnings);
    qr_shop_close(&shop);
}

QR_DB_TEST(what_cannot_be_read_says_why_and_the_rest_goes_on)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{\"limits\":{\"file_bytes_max\":1000}}");
    qr_shop_make_folder(&shop, "mixed");
    qr_shop_write(&shop, "mixed/fine.txt", "fine words");
    qr_shop_write(&shop, "mixed/bad\xff\nname.txt", "strange name");
    char large[2000];
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = '\0';
    qr_shop_write(&shop, "mixed/large.txt", large);
    const qr_uuid folder = qr_shop_add_folder(&shop, "mixed", "");
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_child(&shop.desk, folder, "fine.txt").status);
    const struct qr_item strange = qr_desk_child(&shop.desk, folder, "bad\xff\nname.txt");
    QR_CHECK_INT(QR_ITEM_COMPLETED, strange.status);
    QR_CHECK(qr_utf8_valid(qr_str_of(strange.name)));
    QR_CHECK_TEXT("too_large", qr_desk_child(&shop.desk, folder, "large.txt").error_code);
    QR_CHECK_INT(QR_ITEM_FAILED, qr_desk_item(&shop.desk, folder).status);
    const qr_uuid missing = qr_shop_add_file(&shop, "nowhere.txt", "");
    qr_shop_work(&shop);
    QR_CHECK_TEXT("source_missing", qr_desk_item(&shop.desk, missing).error_code);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_large_text_is_chunked_by_a_job_of_its_own) /* TYPE-6 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    struct qr_buf text = {0};
    for (int i = 0; text.len < 600 << 10; i++) {
        qr_buf_printf(&text, "Paragraph %d about elephants and their long memory of many things.\n\n", i);
    }
    qr_shop_write(&shop, "large.txt", text.data);
    const qr_uuid file = qr_shop_add_file(&shop, "large.txt", "");
    qr_shop_work(&shop);
    const struct qr_item item = qr_desk_item(&shop.desk, file);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item.status);
    QR_CHECK(item.chunk_count > 200);
    QR_CHECK_INT(item.chunk_count, qr_shop_chunks(&shop, file, 1));
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'chunk-document'"));
    qr_buf_done(&text);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_copy_is_owned_and_outlives_its_path) /* THING-5, REIDX-5 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    qr_shop_write(&shop, "a.txt", "kept words");
    const qr_uuid file = qr_shop_add_file(&shop, "a.txt", "{\"copy\":true}");
    qr_shop_work(&shop);
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM artifact WHERE kind = 1"));
    qr_shop_remove(&shop, "a.txt");
    qr_shop_reindex(&shop, file);
    qr_shop_work(&shop);
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, file).live_generation);
    QR_CHECK_HAS("source_missing", qr_desk_item(&shop.desk, file).warnings);
    qr_shop_close(&shop);
}

/* ---- again ---- */

/* REFR-4, TYPE-2, I3 */
QR_DB_TEST(a_rescan_touches_only_what_changed_and_keeps_the_ids)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = add_tree(&shop);
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
    QR_CHECK_INT(5, completed(&shop));
    QR_CHECK_INT(5, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_rescan_without_a_change_raises_no_leaf)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = add_tree(&shop);
    const int64_t before = generations(&shop);
    for (int i = 0; i < 3; i++) {
        qr_shop_refresh(&shop, folder);
        qr_shop_work(&shop);
    }
    QR_CHECK_INT(before, generations(&shop));
    QR_CHECK_INT(5, completed(&shop));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_file_that_became_a_folder_is_another_item)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = add_tree(&shop);
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

QR_DB_TEST(ignored_names_and_excluded_patterns_are_no_items)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    qr_shop_make_folder(&shop, "code/node_modules/x");
    qr_shop_make_folder(&shop, "code/sub");
    qr_shop_write(&shop, "code/.gitignore", "*.log\n");
    qr_shop_write(&shop, "code/sub/a.log", "no\n");
    qr_shop_write(&shop, "code/sub/b.tmp", "no\n");
    qr_shop_write(&shop, "code/sub/c.txt", "yes\n");
    const qr_uuid folder = qr_shop_add_folder(&shop, "code", "{\"exclude\":[\"*.tmp\"]}");
    qr_shop_work(&shop);
    const qr_uuid sub = qr_desk_child(&shop.desk, folder, "sub").id;
    QR_CHECK_INT(1, qr_desk_item(&shop.desk, sub).counts.completed);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE name = 'node_modules'"));
    qr_shop_close(&shop);
}

/* REIDX-4, REIDX-6 */
QR_DB_TEST(a_reindex_reaches_every_item_and_the_old_rows_are_purged)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = add_tree(&shop);
    qr_shop_reindex(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(6, generations(&shop));
    QR_CHECK_INT(0,
                 qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE is_container = 0 AND live_generation <> 2"));
    QR_CHECK_INT(6, qr_shop_extents(&shop));
    qr_shop_work_after(&shop, PURGE_AFTER_MS);
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
    qr_shop_work_after(&shop, PURGE_AFTER_MS);
    qr_shop_work_after(&shop, PURGE_AFTER_MS);
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
    const qr_uuid folder = add_tree(&shop);
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
    add_tree(&shop);
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

/* ---- embedding ---- */

#define HASHED "{\"embedding\":{\"provider\":\"hash\"}}"

/* PAID-1, I8 */
QR_DB_TEST(what_was_embedded_once_is_never_paid_for_again)
{
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, HASHED);
    QR_CHECK_RC(QR_OK, qr_provider_create(&shop.context.provider, "hash", "", 0, &err));
    const qr_uuid folder = add_tree(&shop);
    QR_CHECK_INT(5, completed(&shop));
    QR_CHECK_INT(3, shop.context.provider->call_count);
    struct qr_chunk_row *rows;
    size_t count;
    QR_CHECK_RC(QR_OK,
                qr_index_chunks(shop.context.index, shop.desk.base_id, qr_desk_child(&shop.desk, folder, "a.md").id, 1,
                                0, false, 10, &shop.desk.arena, &rows, &count, &err));
    QR_CHECK(count == 1 && rows[0].has_vector);
    qr_shop_reindex(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(6, generations(&shop));
    QR_CHECK_INT(5, completed(&shop));
    QR_CHECK_INT(3, shop.context.provider->call_count);
    qr_provider_free(shop.context.provider);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_chunk_that_cannot_be_embedded_fails_the_item_and_the_old_one_stays_live) /* EMPTY-2, REIDX-6 */
{
    struct qr_shop shop;
    bool changed;
    qr_err err;
    qr_shop_open(&shop, t, HASHED);
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "good words");
    qr_shop_work(&shop);
    QR_CHECK_RC(QR_OK, qr_workflow_update(&shop.desk.workflow, shop.desk.base_id, note,
                                          QR_STR("bad words " QR_HASH_UNEMBEDDABLE), &changed, &err));
    qr_shop_work(&shop);
    const struct qr_item item = qr_desk_item(&shop.desk, note);
    QR_CHECK_TEXT("chunks_failed", item.error_code);
    QR_CHECK_INT(1, item.live_generation);
    QR_CHECK_INT(1, qr_shop_chunks(&shop, note, 1));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_provider_that_is_down_is_tried_again) /* AGAIN-1 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, HASHED);
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", QR_HASH_PROVIDER_DOWN);
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&shop.desk, note).status);
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT attempts FROM job WHERE type = 'index-chunks' AND state = 2"));
    qr_shop_close(&shop);
}

/* ---- converters ---- */

struct fake_processor {
    struct qr_processor processor;
    enum qr_ticket_state state;
    int submits, cancels;
    int64_t running_ms;
};

static qr_rc fake_submit(struct qr_processor *processor, const char *path, const char *name QR_UNUSED,
                         struct qr_arena *arena, const char **ret_ticket, qr_err *err QR_UNUSED)
{
    struct fake_processor *fake = processor->arg;
    QR_CHECK_INT(0, access(path, R_OK));
    *ret_ticket = qr_arena_printf(arena, "T-%d", ++fake->submits);
    return QR_OK;
}

static qr_rc fake_poll(struct qr_processor *processor, const char *ticket QR_UNUSED, enum qr_ticket_state *ret_state,
                       int64_t *ret_running_ms, struct qr_buf *out, qr_err *err)
{
    struct fake_processor *fake = processor->arg;
    *ret_state = fake->state;
    *ret_running_ms = fake->running_ms;
    if (fake->state == QR_TICKET_DONE) {
        qr_buf_add_text(out, "# Converted\n\nzebras\n");
    } else if (fake->state == QR_TICKET_FAILED) {
        qr_fail(err, QR_CODE_CONVERSION_FAILED, "it is encrypted");
    }
    return QR_OK;
}

static void fake_cancel(struct qr_processor *processor, const char *ticket QR_UNUSED)
{
    struct fake_processor *fake = processor->arg;
    fake->cancels++;
}

#define CONVERTED "{\"file_processor\":{\"kind\":\"command\",\"argv\":[\"x\"],\"extensions\":[\"pdf\"]}}"

static qr_uuid give_to_converter(struct qr_shop *shop, struct qr_test *t, struct fake_processor *fake)
{
    qr_shop_open(shop, t, CONVERTED);
    fake->processor = (struct qr_processor){
        .name = "fake", .arg = fake, .submit = fake_submit, .poll = fake_poll, .cancel = fake_cancel};
    shop->context.processor = &fake->processor;
    qr_shop_write(shop, "a.pdf", "%PDF");
    const qr_uuid file = qr_shop_add_file(shop, "a.pdf", "");
    qr_shop_work(shop);
    QR_CHECK_TEXT("T-1", qr_desk_item(&shop->desk, file).ticket);
    return file;
}

QR_DB_TEST(a_converters_answer_becomes_the_text) /* TYPE-5 */
{
    struct qr_shop shop;
    struct fake_processor fake = {.state = QR_TICKET_RUNNING};
    const qr_uuid file = give_to_converter(&shop, t, &fake);
    qr_shop_work_after(&shop, 5000);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&shop.desk, file).status);
    fake.state = QR_TICKET_DONE;
    qr_shop_work_after(&shop, 5000);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, file).status);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "zebras"));
    QR_CHECK_INT(1, fake.submits);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_ticket_that_the_converter_lost_is_handed_in_again)
{
    struct qr_shop shop;
    struct fake_processor fake = {.state = QR_TICKET_UNKNOWN};
    const qr_uuid file = give_to_converter(&shop, t, &fake);
    qr_shop_work_after(&shop, 5000);
    QR_CHECK_TEXT("T-2", qr_desk_item(&shop.desk, file).ticket);
    fake.state = QR_TICKET_FAILED;
    qr_shop_work_after(&shop, 5000);
    QR_CHECK_TEXT("conversion_failed", qr_desk_item(&shop.desk, file).error_code);
    QR_CHECK_HAS("encrypted", qr_desk_item(&shop.desk, file).error_message);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_converter_has_thirty_minutes_of_its_own_time_and_a_day_in_all) /* TYPE-5 */
{
    struct qr_shop shop;
    struct fake_processor fake = {.state = QR_TICKET_WAITING};
    const qr_uuid file = give_to_converter(&shop, t, &fake);
    qr_shop_work_after(&shop, 23 * 3600 * 1000);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&shop.desk, file).status);
    fake.running_ms = 31 * 60 * 1000;
    qr_shop_work_after(&shop, 5000);
    QR_CHECK_TEXT("conversion_timeout", qr_desk_item(&shop.desk, file).error_code);
    QR_CHECK(fake.cancels > 0);
    qr_shop_close(&shop);
}

/* ---- assets ---- */

/* TYPE-7 */
QR_DB_TEST(text_read_from_a_picture_becomes_a_part_of_its_document_once)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{\"assets\":{\"analysis\":\"test\"}}");
    const qr_uuid note = qr_desk_add_note(
        &shop.desk, "note",
        "# Report\n\n![asset](data:QUIRE-TEST,TEXT: walrus)\n\n![asset](data:QUIRE-TEST,nothing here)\n");
    qr_shop_work(&shop);
    qr_shop_work(&shop);
    const struct qr_item item = qr_desk_item(&shop.desk, note);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item.status);
    QR_CHECK_INT(2, item.live_generation);
    QR_CHECK_INT(2, item.generation);
    QR_CHECK_INT(2, qr_desk_i64(&shop.desk, "SELECT count(*) FROM asset WHERE analysis_status = 3 AND generation = 2"));
    QR_CHECK_INT(2, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'analyze-asset'"));
    qr_shop_work_after(&shop, PURGE_AFTER_MS);
    qr_shop_reindex(&shop, note);
    qr_shop_work(&shop);
    QR_CHECK_INT(3, qr_desk_item(&shop.desk, note).live_generation);
    qr_shop_work_after(&shop, PURGE_AFTER_MS);
    QR_CHECK_INT(1, qr_shop_extents(&shop));
    QR_CHECK(qr_shop_hits(&shop, "walrus") >= 1);
    QR_CHECK_INT(2, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'analyze-asset'"));
    qr_shop_close(&shop);
}

/* ---- restoring ---- */

/* THING-2, BASE-2, RECOV-4 */
QR_DB_TEST(a_failed_base_holds_its_jobs_and_is_restored_from_what_is_stored)
{
    struct qr_shop shop;
    qr_uuid job_id;
    qr_err err;
    qr_shop_open(&shop, t, HASHED);
    QR_CHECK_RC(QR_OK, qr_provider_create(&shop.context.provider, "hash", "", 0, &err));
    add_tree(&shop);
    const qr_uuid later = qr_desk_add_note(&shop.desk, "later", "held back");
    QR_CHECK_RC(QR_OK, qr_workflow_fail_base(&shop.desk.workflow, shop.desk.base_id, "data_corrupt", "by test", &err));
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&shop.desk, later).status);
    QR_CHECK_RC(QR_OK, qr_index_drop(shop.context.index, shop.desk.base_id, &err));
    QR_CHECK_INT(0, qr_shop_extents(&shop));
    const int64_t calls = shop.context.provider->call_count;
    QR_CHECK_RC(QR_OK, qr_workflow_restore_base(&shop.desk.workflow, shop.desk.base_id, &job_id, &err));
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_BASE_READY, qr_desk_i64(&shop.desk, "SELECT status FROM base"));
    QR_CHECK_INT(3, qr_shop_extents(&shop));
    QR_CHECK_INT(3, qr_shop_vectors(&shop));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "bananas"));
    QR_CHECK_INT(calls, shop.context.provider->call_count); /* PAID-1 */
    qr_shop_work_after(&shop, 61000);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, later).status);
    qr_provider_free(shop.context.provider);
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
        const qr_uuid folder = add_tree(&shop);
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

/* A provider during whose first call something happens to the item. */
struct disturbed_provider {
    struct qr_provider provider;
    struct qr_shop *shop;
    qr_uuid item_id;
    void (*disturb)(const struct disturbed_provider *disturbed);
};

static qr_rc embed_disturbed(struct qr_provider *provider, const qr_str *texts QR_UNUSED, size_t count,
                             struct qr_embedding *ret, qr_err *err QR_UNUSED)
{
    const struct disturbed_provider *disturbed = provider->arg;
    for (size_t i = 0; i < count; i++) {
        memset(ret[i].vector, 0, (size_t)provider->dimension * sizeof(float));
        ret[i].vector[0] = 1;
    }
    if (atomic_fetch_add(&provider->call_count, 1) == 0) {
        disturbed->disturb(disturbed);
    }
    return QR_OK;
}

/* A note of three chunks, each of which is a call. */
static void add_disturbed(struct qr_shop *shop, struct qr_test *t, struct disturbed_provider *disturbed)
{
    qr_shop_open(
        shop, t,
        "{\"embedding\":{\"provider\":\"hash\"},\"chunking\":{\"strategy\":\"separator\",\"separator\":\"---\","
        "\"size_tokens\":16}}");
    disturbed->provider.fingerprint = "disturbed";
    disturbed->provider.dimension = 4;
    disturbed->provider.batch_inputs_max = 1;
    disturbed->provider.embed = embed_disturbed;
    disturbed->provider.arg = disturbed;
    disturbed->shop = shop;
    shop->context.provider = &disturbed->provider;
    disturbed->item_id =
        qr_desk_add_note(&shop->desk, "note",
                         "first of the old parts, long enough to stand on its own here --- second of the old parts, "
                         "long enough to stand "
                         "on its own here --- third of the old parts, long enough to stand on its own");
}

static void update_it(const struct disturbed_provider *disturbed)
{
    const struct qr_desk *desk = &disturbed->shop->desk;
    bool changed;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_update(&desk->workflow, desk->base_id, disturbed->item_id, QR_STR("new words"),
                                          &changed, &err));
}

/* GEN-1, I2, I8, UPD-1 */
QR_DB_TEST(an_update_during_embedding_ends_the_calls_for_the_old_words)
{
    struct qr_shop shop;
    struct disturbed_provider disturbed = {.disturb = update_it};
    add_disturbed(&shop, t, &disturbed);
    qr_shop_work(&shop);
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, disturbed.item_id).live_generation);
    QR_CHECK_INT(2, disturbed.provider.call_count); /* the one in flight, and one for the new words */
    QR_CHECK_INT(1, qr_shop_vectors(&shop));        /* X2: the one in flight wrote nothing */
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE state = 6"));
    qr_shop_work_after(&shop, PURGE_AFTER_MS);
    QR_CHECK_INT(1, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

static qr_rc pause_deletes(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_queue_set_paused(tx, QR_QUEUE_DELETE, *(const bool *)arg, err);
}

static void set_deletes_paused(struct qr_shop *shop, bool paused)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(shop->desk.db, QR_RELAXED, pause_deletes, &paused, &err));
}

static void delete_it(const struct disturbed_provider *disturbed)
{
    qr_shop_delete(disturbed->shop, disturbed->item_id);
}

/* GEN-1, DEL-4, I8: the mark is enough, whenever the cleanup comes */
QR_DB_TEST(a_delete_during_embedding_ends_the_calls)
{
    struct qr_shop shop;
    struct disturbed_provider disturbed = {.disturb = delete_it};
    add_disturbed(&shop, t, &disturbed);
    set_deletes_paused(&shop, true);
    qr_shop_work_but_deletes(&shop);
    QR_CHECK_INT(1, disturbed.provider.call_count);
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE state = 7 AND type = 'index-chunks'"));
    set_deletes_paused(&shop, false);
    qr_shop_work(&shop);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(0, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_folder_deeper_than_the_limit_says_so)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{\"limits\":{\"depth_max\":1}}");
    qr_shop_make_folder(&shop, "deep/er");
    qr_shop_write(&shop, "deep/er/a.txt", "too deep\n");
    qr_shop_write(&shop, "deep/b.txt", "fine\n");
    const qr_uuid folder = qr_shop_add_folder(&shop, "deep", "");
    qr_shop_work(&shop);
    QR_CHECK_TEXT("limit_exceeded", qr_desk_child(&shop.desk, folder, "er").expand_code);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_child(&shop.desk, folder, "b.txt").status);
    qr_shop_close(&shop);
}

/* TYPE-1: that child and later ones are failed, the job fails, a rerun takes up exactly those */
QR_DB_TEST(children_whose_jobs_could_not_be_queued_are_taken_up_by_the_next_expansion)
{
    if (!qr_failpoints_built_in()) {
        return;
    }
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    qr_shop_make_folder(&shop, "many");
    qr_shop_write(&shop, "many/a.txt", "one");
    qr_shop_write(&shop, "many/b.txt", "two");
    qr_shop_write(&shop, "many/c.txt", "three");
    const qr_uuid folder = qr_shop_add_folder(&shop, "many", "");
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error", &err));
    qr_shop_work(&shop);
    QR_CHECK_TEXT("enqueue_failed", qr_desk_item(&shop.desk, folder).expand_code);
    QR_CHECK_INT(3, qr_desk_item(&shop.desk, folder).counts.failed);
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    qr_shop_retry(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, folder).status);
    QR_CHECK_INT(3, qr_desk_item(&shop.desk, folder).counts.completed);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_folder_with_more_entries_than_a_part_is_registered_whole)
{
    enum { FILES = 600 };
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    qr_shop_make_folder(&shop, "wide");
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "wide/%d.txt", i);
        FILE *file = fopen(qr_shop_path(&shop, name), "w");
        QR_CHECK(file && fprintf(file, "number %d\n", i) > 0 && fclose(file) == 0);
    }
    const qr_uuid folder = qr_shop_add_folder(&shop, "wide", "");
    qr_shop_work(&shop);
    QR_CHECK_INT(FILES, qr_desk_item(&shop.desk, folder).counts.completed);
    qr_shop_delete(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(0, qr_shop_extents(&shop));
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
