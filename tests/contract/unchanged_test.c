/* A generation that would come to what is live (REIDX-7): nothing is written, the live one stays; and everything that makes a
 * difference, or is not there any more, is written anew. Over every database. */
#include "embed/provider.h"
#include "support/workshop.h"

#include <stdio.h>

static const char *const plain = "{}";

struct shown {
    struct qr_item item;
    size_t extents;
    int64_t artifacts, purges, vis_seq;
};

static struct shown look(struct qr_shop *shop, qr_uuid id)
{
    return (struct shown){
        .item = qr_desk_item(&shop->desk, id),
        .extents = qr_shop_extents(shop),
        .artifacts = qr_desk_i64(&shop->desk, "SELECT count(*) FROM artifact"),
        .purges = qr_desk_i64(&shop->desk, "SELECT count(*) FROM job WHERE type = 'purge'"),
        .vis_seq = qr_desk_i64(&shop->desk, "SELECT vis_seq FROM base"),
    };
}

static qr_uuid add_one(struct qr_shop *shop, const char *name, const char *content, const char *options)
{
    qr_shop_write(shop, name, content);
    const qr_uuid id = qr_shop_add_file(shop, name, options);
    qr_shop_work(shop);
    QR_CHECK_INT(1, qr_desk_item(&shop->desk, id).live_generation);
    return id;
}

static void reindex(struct qr_shop *shop, qr_uuid id)
{
    qr_shop_reindex(shop, id);
    qr_shop_work(shop);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop->desk, id).status);
}

/* The generation is the next, and all else is as it was. */
static void check_kept(struct qr_shop *shop, qr_uuid id, const struct shown *before)
{
    const struct shown after = look(shop, id);
    QR_CHECK_INT(before->item.generation + 1, after.item.generation);
    QR_CHECK_INT(after.item.generation, after.item.kept_generation);
    QR_CHECK_INT(before->item.live_generation, after.item.live_generation);
    QR_CHECK_INT(before->item.chunk_count, after.item.chunk_count);
    QR_CHECK_INT(before->item.token_count, after.item.token_count);
    QR_CHECK_INT(before->extents, after.extents);
    QR_CHECK_INT(before->artifacts, after.artifacts);
    QR_CHECK_INT(before->purges, after.purges);
    QR_CHECK_INT(before->vis_seq, after.vis_seq);
    QR_CHECK_TEXT("", after.item.error_code);
}

/* All of it was done again. */
static void check_written(struct qr_shop *shop, qr_uuid id)
{
    const struct qr_item item = qr_desk_item(&shop->desk, id);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item.status);
    QR_CHECK_INT(item.generation, item.live_generation);
    QR_CHECK_INT(item.chunk_count, qr_shop_chunks(shop, id, item.live_generation));
}

/* ---- nothing has changed ---- */

QR_DB_TEST(a_generation_that_comes_to_what_is_live_writes_nothing) /* REIDX-7, I3, PAID-1 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, QR_SHOP_HASHED);
    const qr_uuid folder = qr_shop_add_tree(&shop);
    const qr_uuid file = qr_desk_child(&shop.desk, folder, "a.md").id;
    const int64_t vectors = qr_shop_vectors(&shop);
    for (int i = 0; i < 3; i++) {
        const struct shown before = look(&shop, file);
        reindex(&shop, folder);
        check_kept(&shop, file, &before);
        QR_CHECK_INT(5, qr_shop_completed(&shop));
        QR_CHECK_INT(vectors, qr_shop_vectors(&shop));
    }
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE is_container = 0 AND (generation <> 4 OR "
                                            "kept_generation <> 4 OR live_generation <> 1)"));
    QR_CHECK_INT(3, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'index-chunks'"));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "bananas"));
    qr_shop_close(&shop);
}

QR_DB_TEST(what_quire_owns_is_compared_too) /* REIDX-7 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, plain);
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "words of a note");
    qr_shop_work(&shop);
    const qr_uuid copy = add_one(&shop, "a.txt", "copied words", "{\"copy\":true}");
    const struct shown note_before = look(&shop, note), copy_before = look(&shop, copy);
    reindex(&shop, note);
    check_kept(&shop, note, &note_before);
    reindex(&shop, copy);
    check_kept(&shop, copy, &copy_before);
    qr_shop_remove(&shop, "a.txt");
    reindex(&shop, copy);
    check_written(&shop, copy);
    QR_CHECK_INT(1, qr_shop_chunks(&shop, copy, 3));
    qr_shop_close(&shop);
}

/* EMPTY-1: without chunks there is nothing to look for in the index */
QR_DB_TEST(an_empty_document_stays_what_it_is)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, plain);
    const qr_uuid file = add_one(&shop, "a.txt", "", "");
    const struct shown before = look(&shop, file);
    reindex(&shop, file);
    check_kept(&shop, file, &before);
    QR_CHECK_TEXT(before.item.warnings, qr_desk_item(&shop.desk, file).warnings);
    QR_CHECK_HAS("empty", before.item.warnings);
    qr_shop_close(&shop);
}

QR_DB_TEST(what_is_hidden_is_kept_and_stays_hidden) /* REIDX-7, HIDE-1 */
{
    struct qr_shop shop;
    qr_err err;
    qr_shop_open(&shop, t, plain);
    const qr_uuid file = add_one(&shop, "a.txt", "hidden words", "");
    for (int i = 0; i < 2; i++) {
        const bool enabled = i == 1;
        QR_CHECK_RC(QR_OK, qr_workflow_patch(&shop.desk.workflow, shop.desk.base_id, file,
                                             &(struct qr_item_patch){.enabled = &enabled}, &err));
        const struct shown before = look(&shop, file);
        reindex(&shop, file);
        check_kept(&shop, file, &before);
        QR_CHECK_INT(enabled, qr_desk_item(&shop.desk, file).enabled);
    }
    qr_shop_close(&shop);
}

/* ---- something is different ---- */

static void change_text(struct qr_shop *shop, qr_uuid id QR_UNUSED)
{
    qr_shop_write(shop, "a.txt", "one word, two words and a third");
}

static void change_splitting(struct qr_shop *shop, qr_uuid id QR_UNUSED)
{
    qr_shop_set_settings(shop, "{\"embedding\":{\"provider\":\"hash\"},\"chunking\":{\"overlap_tokens\":7}}");
}

static void change_analysis(struct qr_shop *shop, qr_uuid id QR_UNUSED)
{
    qr_shop_set_settings(shop, "{\"embedding\":{\"provider\":\"hash\"},\"assets\":{\"analysis\":\"test\"}}");
}

static void change_model(struct qr_shop *shop, qr_uuid id QR_UNUSED)
{
    qr_shop_set_settings(shop, "{\"embedding\":{\"provider\":\"hash\",\"dimensions\":64}}");
    qr_shop_work(shop);
}

static void change_name(struct qr_shop *shop, qr_uuid id)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_patch(&shop->desk.workflow, shop->desk.base_id, id,
                                         &(struct qr_item_patch){.name = "another.txt"}, &err));
}

/* Whoever does not know what decided does everything again. */
static void forget_what_decided(struct qr_shop *shop, qr_uuid id QR_UNUSED)
{
    qr_desk_exec(&shop->desk, "UPDATE item SET made_of = NULL");
}

/* ---- something is lost ---- */

static void lose_rows(struct qr_shop *shop, qr_uuid id)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_delete_items(shop->context.index, shop->desk.base_id, &id, 1, &err));
}

static void lose_vectors(struct qr_shop *shop, qr_uuid id QR_UNUSED)
{
    const struct qr_index_guard always = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_keep_models(shop->context.index, shop->desk.base_id, NULL, 0, &always, &err));
    QR_CHECK_INT(0, qr_shop_vectors(shop));
}

/* EMPTY-2: it may be embedded by now */
static void fail_chunk(struct qr_shop *shop, qr_uuid id)
{
    const struct qr_chunk_vector none = {.ordinal = 0};
    const struct qr_index_guard always = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK,
                qr_index_write_vectors(shop->context.index, shop->desk.base_id, id, 1,
                                       (struct qr_vector_space){qr_shop_live_model(shop), 4}, &none, 1, &always, &err));
}

static void lose_text(struct qr_shop *shop, qr_uuid id QR_UNUSED)
{
    qr_desk_exec(&shop->desk, "DELETE FROM artifact WHERE kind = 2");
}

/* GEN-2: an attempt that was lost has written some of them */
static void leave_rows_behind(struct qr_shop *shop, qr_uuid id)
{
    const struct qr_chunk chunk = {.text = QR_STR("leftover"), .end = 8, .title = QR_STR("x"), .heading = QR_STR("")};
    const struct qr_index_guard always = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(shop->context.index, shop->desk.base_id, id, 2, &chunk, 1, &always, &err));
    QR_CHECK_INT(1, qr_shop_hits(shop, "leftover"));
}

static void drop_store(struct qr_shop *shop, qr_uuid id QR_UNUSED)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_drop(shop->context.index, shop->desk.base_id, &err));
}

static const struct difference {
    const char *name;
    void (*make)(struct qr_shop *shop, qr_uuid id);
} differences[] = {
    {"text", change_text},
    {"splitting", change_splitting},
    {"analysis", change_analysis},
    {"model", change_model},
    {"name", change_name},
    {"not known", forget_what_decided},
    {"rows lost", lose_rows},
    {"vectors lost", lose_vectors},
    {"a chunk failed", fail_chunk},
    {"text lost", lose_text},
    {"rows left behind", leave_rows_behind},
    {"store lost", drop_store},
};

QR_DB_TEST(any_difference_and_any_loss_is_written_anew) /* REIDX-7, REIDX-6, RECOV-4, I7, I11 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, QR_SHOP_HASHED);
    for (size_t i = 0; i < QR_COUNT(differences); i++) {
        qr_test_set_context("%s", differences[i].name);
        const qr_uuid file = add_one(&shop, "a.txt", "one word and another", "");
        differences[i].make(&shop, file);
        qr_shop_reindex(&shop, file);
        qr_shop_work(&shop);
        qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS); /* and what waits for a lost store */
        qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
        check_written(&shop, file);
        QR_CHECK_INT(2, qr_desk_item(&shop.desk, file).live_generation);
        QR_CHECK_INT(1, qr_shop_extents(&shop));
        QR_CHECK_INT(1, qr_shop_vectors(&shop));
        QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM artifact WHERE kind = 2 AND generation = 2"));
        QR_CHECK_INT(0, qr_shop_hits(&shop, "leftover"));
        const struct shown before = look(&shop, file);
        reindex(&shop, file);
        check_kept(&shop, file, &before); /* from now on it is known again */
        qr_shop_delete(&shop, file);
        qr_shop_set_settings(&shop, QR_SHOP_HASHED);
        qr_shop_work(&shop);
    }
    qr_shop_close(&shop);
}

/* I7: `check` says of a file that is gone: reindex it */
QR_DB_TEST(a_copy_that_is_lost_is_made_again)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, plain);
    const qr_uuid file = add_one(&shop, "a.txt", "copied words", "{\"copy\":true}");
    qr_desk_exec(&shop.desk, "DELETE FROM artifact WHERE kind = 1");
    reindex(&shop, file);
    check_written(&shop, file);
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM artifact WHERE kind = 1"));
    qr_desk_exec(&shop.desk, "UPDATE artifact SET file = 'ff/nothing', bytes = NULL WHERE kind = 1");
    reindex(&shop, file);
    check_written(&shop, file);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM artifact WHERE file <> ''"));
    qr_shop_close(&shop);
}

/* ---- what came between ---- */

/* REIDX-5: what was made of stored bytes says so, until the file is back */
QR_DB_TEST(a_source_that_comes_back_is_read_again)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, plain);
    const qr_uuid file = add_one(&shop, "a.txt", "one word", "");
    qr_shop_remove(&shop, "a.txt");
    reindex(&shop, file);
    QR_CHECK_HAS("source_missing", qr_desk_item(&shop.desk, file).warnings);
    reindex(&shop, file);
    check_written(&shop, file); /* it is not known what a source would say that is gone */
    qr_shop_write(&shop, "a.txt", "one word");
    reindex(&shop, file);
    check_written(&shop, file);
    QR_CHECK_TEXT("", qr_desk_item(&shop.desk, file).warnings);
    qr_shop_close(&shop);
}

static void write_binary(struct qr_shop *shop, const char *name)
{
    static const char bytes[] = "\0\1\2\3\0\0\0\377\376\0\0";
    FILE *stream = fopen(qr_shop_path(shop, name), "wb");
    QR_CHECK(stream && fwrite(bytes, 1, sizeof bytes, stream) == sizeof bytes && fclose(stream) == 0);
}

/* A generation that failed before it had a text left everything as it was; its purge is still made. */
QR_DB_TEST(after_a_failure_to_read_the_same_source_is_kept)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, plain);
    const qr_uuid file = add_one(&shop, "a.txt", "one word", "");
    write_binary(&shop, "a.txt");
    qr_shop_reindex(&shop, file);
    qr_shop_work(&shop);
    QR_CHECK_INT(QR_ITEM_FAILED, qr_desk_item(&shop.desk, file).status);
    qr_shop_write(&shop, "a.txt", "one word");
    qr_shop_retry(&shop, file);
    qr_shop_work(&shop);
    const struct qr_item item = qr_desk_item(&shop.desk, file);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item.status);
    QR_CHECK_INT(3, item.kept_generation);
    QR_CHECK_INT(1, item.live_generation);
    QR_CHECK_TEXT("", item.error_code);
    QR_CHECK_INT(0, item.error_generation);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(1, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

static qr_rc embed(struct qr_provider *provider, const struct qr_embed_request *request,
                   struct qr_embed_answer *ret_answer, qr_err *err)
{
    enum { DIMENSION = 4 };
    atomic_fetch_add(&provider->call_count, 1);
    QR_TRY(qr_embed_answer_begin(ret_answer, request->count, DIMENSION, err));
    for (size_t i = 0; i < request->count * DIMENSION; i++) {
        ret_answer->vectors[i] = 1;
    }
    for (size_t i = 0; i < request->count; i++) {
        ret_answer->is_bad[i] = memmem(request->texts[i].ptr, request->texts[i].len, "unspeakable", 11) != NULL;
    }
    return QR_OK;
}

/* EMPTY-2. The text and the warnings are then those of the attempt that failed: they are not compared. */
QR_DB_TEST(after_a_failure_to_embed_everything_is_done_again)
{
    struct qr_shop shop;
    struct qr_provider provider = {.fingerprint = "unchanged", .limits.inputs_max = 4, .embed = embed};
    qr_shop_open(&shop, t, QR_SHOP_HASHED);
    qr_shop_use_provider(&shop, &provider);
    const qr_uuid file = add_one(&shop, "a.txt", "one word", "");
    qr_shop_write(&shop, "a.txt", "unspeakable words, which come as far as to their text");
    for (int i = 0; i < 2; i++) { /* the second time nothing has changed since: but that is not what is live */
        qr_shop_reindex(&shop, file);
        qr_shop_work(&shop);
        QR_CHECK_TEXT("chunks_failed", qr_desk_item(&shop.desk, file).error_code);
        QR_CHECK_INT(1, qr_desk_item(&shop.desk, file).live_generation);
        QR_CHECK_INT(0, qr_desk_item(&shop.desk, file).kept_generation);
    }
    const int64_t calls = provider.call_count;
    qr_shop_write(&shop, "a.txt", "one word");
    reindex(&shop, file);
    check_written(&shop, file);
    QR_CHECK_INT(4, qr_desk_item(&shop.desk, file).live_generation);
    QR_CHECK_INT(calls, provider.call_count);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(1, qr_shop_extents(&shop));
    qr_shop_close(&shop);
}

/* RECOV-5: the content of the one between is left to nobody else */
QR_DB_TEST(what_a_superseded_generation_left_is_purged)
{
    struct qr_shop shop;
    bool changed;
    qr_err err;
    qr_shop_open(&shop, t, plain);
    const qr_uuid note = qr_desk_add_note(&shop.desk, "note", "words");
    qr_shop_work(&shop);
    const struct qr_workflow *workflow = &shop.desk.workflow;
    QR_CHECK_RC(QR_OK, qr_workflow_update(workflow, shop.desk.base_id, note, QR_STR("other"), &changed, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_update(workflow, shop.desk.base_id, note, QR_STR("words"), &changed, &err));
    qr_shop_work(&shop);
    const struct qr_item item = qr_desk_item(&shop.desk, note);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item.status);
    QR_CHECK_INT(3, item.kept_generation);
    QR_CHECK_INT(1, item.live_generation);
    qr_shop_work_after(&shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM artifact WHERE generation = 2"));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "words"));
    qr_shop_close(&shop);
}

/* When the stage has looked, and is about to be recorded. */
static void raise_epoch(struct qr_shop *shop)
{
    if (qr_desk_i64(&shop->desk, "SELECT count(*) FROM job WHERE type = 'process-document' AND state = 4") == 0) {
        shop->before_record = raise_epoch;
        return;
    }
    qr_desk_exec(&shop->desk, "UPDATE base SET vector_epoch = vector_epoch + 1");
}

/* MODEL-2: the index that was looked into may have been dropped since */
QR_DB_TEST(what_was_found_in_an_index_of_another_epoch_does_not_count)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, plain);
    const qr_uuid file = add_one(&shop, "a.txt", "one word", "");
    qr_shop_reindex(&shop, file);
    shop.before_record = raise_epoch;
    qr_shop_work(&shop);
    check_written(&shop, file);
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, file).live_generation);
    QR_CHECK_INT(0, qr_desk_item(&shop.desk, file).kept_generation);
    qr_shop_close(&shop);
}

/* REFR-3: a warning about the source goes when it was read */
QR_DB_TEST(a_warning_of_a_refresh_goes_and_others_stay)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, plain);
    const qr_uuid file = add_one(&shop, "a.txt", "one word", "");
    qr_desk_exec(&shop.desk, "UPDATE item SET warnings = '[{\"code\":\"truncated\",\"message\":\"m\"},"
                             "{\"code\":\"refresh_failed\",\"message\":\"m\"}]'");
    const struct shown before = look(&shop, file);
    reindex(&shop, file);
    check_kept(&shop, file, &before);
    QR_CHECK_TEXT("[{\"code\":\"truncated\",\"message\":\"m\"}]", qr_desk_item(&shop.desk, file).warnings);
    qr_shop_close(&shop);
}
