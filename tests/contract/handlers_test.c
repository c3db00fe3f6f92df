/* What becomes of sources: the handlers with everything around them real, over every database. What comes after, changes and
 * deletes, is in handlers_cleanup_test.c. */
#include "base/failpoint.h"
#include "support/workshop.h"

#include <unistd.h>

/* ---- a folder from nothing to found ---- */

/* TYPE-1, TYPE-4 */
QR_DB_TEST(a_folder_is_read_to_its_depth_and_found_by_its_words)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = qr_shop_add_tree(&shop);
    QR_CHECK_INT(5, qr_shop_completed(&shop));
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

/* ---- expansion ---- */

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
    qr_shop_make_folder(&shop, "many/sub");
    qr_shop_write(&shop, "many/a.txt", "one");
    qr_shop_write(&shop, "many/b.txt", "two");
    qr_shop_write(&shop, "many/sub/c.txt", "three");
    const qr_uuid folder = qr_shop_add_folder(&shop, "many", "");
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error", &err));
    qr_shop_work(&shop);
    QR_CHECK_TEXT("enqueue_failed", qr_desk_item(&shop.desk, folder).expand_code);
    QR_CHECK_TEXT("enqueue_failed", qr_desk_child(&shop.desk, folder, "sub").expand_code);
    QR_CHECK_INT(3, qr_desk_item(&shop.desk, folder).counts.failed);
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    qr_shop_retry(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, folder).status);
    QR_CHECK_INT(3, qr_desk_item(&shop.desk, folder).counts.completed);
    QR_CHECK_INT(1, qr_desk_child(&shop.desk, folder, "sub").counts.completed);
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

/* ---- embedding ---- */

/* PAID-1, I8 */
QR_DB_TEST(what_was_embedded_once_is_never_paid_for_again)
{
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, QR_SHOP_HASHED);
    const struct qr_provider *provider = qr_batcher_provider(qr_shop_batcher(&shop, QR_SHOP_HASHED));
    const qr_uuid folder = qr_shop_add_tree(&shop);
    QR_CHECK_INT(5, qr_shop_completed(&shop));
    QR_CHECK_INT(3, provider->call_count);
    struct qr_chunk_row *rows;
    size_t count;
    QR_CHECK_RC(QR_OK,
                qr_index_chunks(shop.context.index, shop.desk.base_id, qr_desk_child(&shop.desk, folder, "a.md").id, 1,
                                0, qr_shop_live_model(&shop), 10, &shop.desk.arena, &rows, &count, &err));
    QR_CHECK(count == 1 && rows[0].has_vector);
    qr_shop_reindex(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(6, qr_shop_generations(&shop));
    QR_CHECK_INT(5, qr_shop_completed(&shop));
    QR_CHECK_INT(3, provider->call_count);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_chunk_that_cannot_be_embedded_fails_the_item_and_the_old_one_stays_live) /* EMPTY-2, REIDX-6 */
{
    struct qr_shop shop;
    bool changed;
    qr_err err;
    qr_shop_open(&shop, t, QR_SHOP_HASHED);
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
    qr_shop_open(&shop, t, QR_SHOP_HASHED);
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
    QR_CHECK_TEXT("T-2\n2 0", qr_desk_item(&shop.desk, file).ticket);
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
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    qr_shop_reindex(&shop, note);
    qr_shop_work(&shop);
    QR_CHECK_INT(3, qr_desk_item(&shop.desk, note).live_generation);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(1, qr_shop_extents(&shop));
    QR_CHECK(qr_shop_hits(&shop, "walrus") >= 1);
    QR_CHECK_INT(2, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'analyze-asset'"));
    qr_shop_close(&shop);
}
