/* check finds nothing where there is nothing, also while others work, and what takes more than a statement to break. Over
 * every database. */
#include "support/check_fixture.h"
#include "support/fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- no damage ---- */

QR_DB_TEST(a_clean_folder_has_no_findings_and_everything_was_looked_at)
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_desk_add_note(&place.shop.desk, "empty", " \n");
    qr_shop_work(&place.shop);
    const struct qr_found found = qr_place_look(&place, false);
    QR_CHECK_INT(0, found.result.findings);
    QR_CHECK_INT(1, found.result.bases);
    QR_CHECK_INT(7, found.result.items); /* tree, sub, three files, two notes */
    QR_CHECK_INT(4, found.result.chunks);
    QR_CHECK_INT(qr_desk_i64(&place.shop.desk, "SELECT count(*) FROM job"), found.result.jobs);
    QR_CHECK_INT(qr_desk_i64(&place.shop.desk, "SELECT count(*) FROM artifact"), found.result.artifacts);
    qr_shop_close(&place.shop);
}

QR_DB_TEST(work_under_way_is_no_damage)
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_desk_add_note(&place.shop.desk, "waiting", "words");
    qr_shop_reindex(&place.shop, place.folder);
    qr_place_check_clean(&place);
    qr_shop_work(&place.shop);
    qr_place_check_clean(&place); /* the purge of the generation before is still to come */
    qr_shop_work_after(&place.shop, QR_SHOP_PURGE_AFTER_MS);
    qr_place_check_clean(&place);
    qr_shop_close(&place.shop);
}

QR_DB_TEST(what_is_deleting_is_no_damage_whatever_it_is_like) /* K2 */
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_shop_delete(&place.shop, place.folder);
    qr_place_exec(&place, "UPDATE item SET n_completed = 77, live_generation = 50 WHERE depth > 0");
    qr_place_check_clean(&place);
    qr_shop_work(&place.shop);
    qr_place_check_clean(&place);
    qr_shop_close(&place.shop);
}

/* ---- while others work ---- */

struct watch {
    struct qr_place *place;
    atomic_bool is_over;
    int64_t findings;
    char first[400];
    qr_err err;
};

static qr_rc keep_first(void *arg, const struct qr_check_finding *finding, qr_err *err)
{
    struct watch *watch = arg;
    (void)err;
    snprintf(watch->first, sizeof watch->first, "%s %s: %s", finding->invariant, finding->code, finding->message);
    return QR_OK;
}

static void *watch_the_work(void *arg)
{
    struct watch *watch = arg;
    struct qr_check_options options = qr_place_options(watch->place);
    options.page_max = 1;
    options.findings_max = 1;
    options.found = keep_first;
    options.arg = watch;
    do {
        struct qr_check_result result;
        if (qr_check(&options, &result, &watch->err) != QR_OK) {
            break;
        }
        watch->findings += result.findings;
    } while (!atomic_load(&watch->is_over) && watch->findings == 0);
    return NULL;
}

QR_DB_TEST(what_changes_between_two_pages_is_no_damage) /* K1 */
{
    struct qr_place place;
    qr_place_open(&place, t);
    struct watch watch = {.place = &place};
    pthread_t thread;
    QR_CHECK(pthread_create(&thread, NULL, watch_the_work, &watch) == 0);
    for (int round = 0; round < 4; round++) {
        char name[40];
        snprintf(name, sizeof name, "tree/sub/new%d.txt", round);
        qr_shop_write(&place.shop, name, "new words");
        qr_shop_reindex(&place.shop, place.folder);
        qr_shop_work(&place.shop);
        const qr_uuid note = qr_desk_add_note(&place.shop.desk, "short", "words");
        qr_shop_remove(&place.shop, name);
        qr_shop_refresh(&place.shop, place.folder);
        qr_shop_work(&place.shop);
        qr_shop_delete(&place.shop, note);
        qr_shop_work(&place.shop);
    }
    atomic_store(&watch.is_over, true);
    QR_CHECK(pthread_join(thread, NULL) == 0);
    QR_CHECK_TEXT("", watch.first);
    QR_CHECK_TEXT("", watch.err.msg);
    qr_place_check_clean(&place);
    qr_shop_close(&place.shop);
}

/* ---- without memory ---- */

static qr_rc count_finding(void *arg, const struct qr_check_finding *finding, qr_err *err)
{
    (void)arg, (void)finding, (void)err;
    return QR_OK;
}

static void check_or_say_why(void *arg)
{
    struct qr_place *place = arg;
    struct qr_check_options options = qr_place_options(place);
    options.findings_max = 1;
    options.found = count_finding;
    struct qr_check_result result;
    qr_err err = {0};
    const qr_rc rc = qr_check(&options, &result, &err);
    qr_fault_disarm();
    QR_CHECK_INT(rc == QR_OK ? QR_CODE_NONE : QR_CODE_OUT_OF_MEMORY, err.code);
    QR_CHECK(rc != QR_OK || result.findings == 2);
}

QR_TEST(a_check_survives_every_failing_allocation)
{
    struct qr_place place;
    qr_fault_memory_install();
    qr_place_open(&place, t);
    qr_place_exec(&place, "UPDATE item SET n_completed = 7 WHERE name = 'sub'");
    qr_place_write_rows(&place, qr_uuid_next(&place.shop.desk.ids), 1);
    qr_place_look(&place, false); /* opens what stays open */
    /* no sweep of fault.h: what SQLite keeps for later is another number of blocks after each failure */
    uint64_t n = 0;
    do {
        qr_fault_arm(QR_FAULT_MEMORY, ++n);
        check_or_say_why(&place);
    } while (qr_fault_fired());
    QR_CHECK(n > 100);
    qr_shop_close(&place.shop);
}

/* ---- I1 ---- */

QR_DB_TEST(a_job_that_its_item_does_not_wait_for_is_found)
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_place_exec(&place,
                  "UPDATE job SET state = 3, idempotency_key = NULL WHERE id = (SELECT id FROM job WHERE type = "
                  "'process-document' ORDER BY id LIMIT 1)");
    const struct qr_check_finding finding = qr_place_check_one(&place, "I1", "job_unwanted");
    QR_CHECK(!qr_uuid_is_zero(finding.job_id));
    qr_place_exec(&place, "UPDATE job SET generation = 9 WHERE state = 3");
    qr_place_check_one(&place, "I1", "job_outdated");
    qr_place_exec(&place, "UPDATE job SET item_id = id WHERE state = 3");
    qr_place_check_one(&place, "I1", "job_without_item");
    qr_shop_close(&place.shop);
}

/* ---- I3 ---- */

QR_DB_TEST(chunks_that_are_live_and_not_in_the_index_are_found)
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_delete_items(place.shop.context.index, place.shop.desk.base_id, &place.c, 1, &err));
    struct qr_check_finding finding = qr_place_check_one(&place, "I3", "chunks_wrong");
    QR_CHECK(qr_uuid_equal(place.c, finding.item_id));
    qr_shop_reindex(&place.shop, place.folder);
    qr_shop_work(&place.shop);
    qr_place_check_clean(&place);
    qr_place_exec(&place, "UPDATE item SET chunk_count = 3 WHERE type = 3");
    finding = qr_place_check_one(&place, "I3", "chunks_wrong");
    QR_CHECK(qr_uuid_equal(place.note, finding.item_id));
    qr_shop_close(&place.shop);
}

QR_DB_TEST(rows_of_a_dead_generation_are_found_and_removed)
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_place_exec(&place, "UPDATE item SET made_of = NULL"); /* so that it is done again */
    qr_shop_reindex(&place.shop, place.folder);
    qr_shop_work(&place.shop);
    qr_shop_work_after(&place.shop, QR_SHOP_PURGE_AFTER_MS);
    qr_place_write_rows(&place, place.a, 1);
    QR_CHECK_INT(1, qr_shop_chunks(&place.shop, place.a, 1));
    qr_place_check_mended(&place, "I3", "generation_dead");
    QR_CHECK_INT(0, qr_shop_chunks(&place.shop, place.a, 1));
    QR_CHECK_INT(1, qr_shop_chunks(&place.shop, place.a, 2));
    qr_shop_close(&place.shop);
}

QR_DB_TEST(what_was_kept_is_clean_and_a_text_that_it_lost_is_mended_by_a_reindex) /* REIDX-7, I7 */
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_shop_reindex(&place.shop, place.folder);
    qr_shop_work(&place.shop);
    QR_CHECK_INT(2, qr_desk_item(&place.shop.desk, place.a).kept_generation);
    qr_place_check_clean(&place);
    qr_place_exec(&place,
                  "DELETE FROM artifact WHERE kind = 2 AND item_id = (SELECT id FROM item WHERE name = 'a.md')");
    qr_place_check_left(&place, "I7", "text_missing");
    qr_shop_reindex(&place.shop, place.a);
    qr_shop_work(&place.shop);
    qr_shop_work_after(&place.shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(3, qr_desk_item(&place.shop.desk, place.a).live_generation);
    qr_place_check_clean(&place);
    qr_shop_close(&place.shop);
}

/* ---- models ---- */

static int64_t key_of(struct qr_place *place, const char *settings)
{
    struct qr_settings parsed;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_settings_parse_text(settings, &place->shop.desk.arena, &parsed, &err));
    return qr_model_key(&parsed.embedding);
}

QR_DB_TEST(live_chunks_without_a_vector_of_the_live_model_are_found) /* I11 */
{
    struct qr_place place;
    qr_err err;
    qr_place_open(&place, t);
    struct qr_shop *shop = &place.shop;
    QR_CHECK_RC(QR_OK, qr_workflow_set_settings(&shop->desk.workflow, shop->desk.base_id, QR_SHOP_HASHED, &err));
    qr_shop_work(shop);
    qr_place_check_clean(&place);
    QR_CHECK_INT(4, qr_shop_vectors_of(shop, key_of(&place, QR_SHOP_HASHED)));
    QR_CHECK_RC(QR_OK, qr_index_keep_models(shop->context.index, shop->desk.base_id, NULL, 0, NULL, &err));
    const struct qr_found found = qr_place_look(&place, true);
    QR_CHECK(found.count == 4 && found.result.repaired == 0);
    QR_CHECK_TEXT("I11", qr_found_find(&found, "vectors_missing")->invariant);
    qr_shop_close(shop);
}

QR_DB_TEST(vectors_of_a_model_that_the_base_does_not_use_are_found_and_removed) /* I7, MODEL-5 */
{
    struct qr_place place;
    qr_err err;
    qr_place_open(&place, t);
    struct qr_shop *shop = &place.shop;
    const float vector[2] = {1, 0};
    QR_CHECK_RC(QR_OK, qr_index_write_vectors(shop->context.index, shop->desk.base_id, place.a, 1,
                                              (struct qr_vector_space){7, 2}, &(struct qr_chunk_vector){0, vector}, 1,
                                              NULL, &err));
    qr_place_check_mended(&place, "I7", "vectors_unknown");
    QR_CHECK_INT(0, qr_shop_vectors_of(shop, 7));
    qr_shop_close(shop);
}

/* ---- I6 ---- */

QR_DB_TEST(a_wrong_status_is_mended_up_to_the_root)
{
    struct qr_place place;
    qr_place_open(&place, t);
    /* everything above c.md believes that it is at work */
    qr_place_exec(&place,
                  "UPDATE item SET n_active = 1, n_completed = n_completed - 1, status = 3 WHERE is_container = 1");
    const struct qr_found found = qr_place_look(&place, true);
    QR_CHECK_INT(found.result.findings, found.result.repaired);
    QR_CHECK(qr_found_find(&found, "status_wrong")->is_repaired);
    QR_CHECK(qr_found_find(&found, "counters_wrong")->is_repaired);
    qr_place_check_clean(&place);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&place.shop.desk, place.folder).status);
    qr_desk_check(&place.shop.desk);
    qr_shop_close(&place.shop);
}

/* ---- I7 ---- */

QR_DB_TEST(index_rows_of_no_item_are_found_and_removed)
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_place_write_rows(&place, qr_uuid_next(&place.shop.desk.ids), 1);
    qr_place_check_mended(&place, "I7", "index_orphan");
    QR_CHECK_INT(4, qr_shop_extents(&place.shop));
    qr_shop_close(&place.shop);
}

/* A note of more bytes than a row holds. */
static qr_uuid add_large_note(struct qr_place *place)
{
    enum { BYTES = QR_ARTIFACT_ROW_BYTES_MAX + 4000 };
    char *text = malloc(BYTES + 1);
    QR_CHECK(text);
    for (size_t i = 0; i < BYTES; i++) {
        text[i] = i % 80 == 79 ? '\n' : i % 8 == 7 ? ' ' : (char)('a' + i % 23);
    }
    text[BYTES] = '\0';
    const qr_uuid note = qr_desk_add_note(&place->shop.desk, "large", text);
    free(text);
    qr_shop_work(&place->shop);
    return note;
}

QR_TEST(a_lost_file_is_found)
{
    struct qr_place place;
    qr_place_open(&place, t);
    add_large_note(&place);
    qr_place_check_clean(&place);

    qr_place_exec(&place, "UPDATE artifact SET size_bytes = size_bytes + 1 WHERE file <> '' AND kind = 1");
    const struct qr_check_finding finding = qr_place_check_one(&place, "I7", "file_missing");
    QR_CHECK(!qr_uuid_is_zero(finding.item_id));
    qr_shop_close(&place.shop);
}

QR_TEST(a_file_of_nothing_is_found_once_it_is_old_and_removed)
{
    struct qr_place place;
    qr_place_open(&place, t);
    struct qr_arena *arena = &place.shop.desk.arena;
    struct qr_new_artifact artifact;
    qr_err err;
    char *bytes = calloc(1, QR_ARTIFACT_ROW_BYTES_MAX + 1);
    QR_CHECK(bytes);
    QR_CHECK_RC(QR_OK,
                qr_artifact_prepare(&place.shop.desk.artifacts, qr_uuid_next(&place.shop.desk.ids), QR_ARTIFACT_TEXT,
                                    (qr_str){bytes, QR_ARTIFACT_ROW_BYTES_MAX + 1}, arena, &artifact, &err));
    free(bytes);
    qr_place_check_clean(&place); /* somebody may be about to adopt it */
    qr_shop_work_after(&place.shop, 3600001);
    qr_place_check_mended(&place, "I7", "file_orphan");
    qr_shop_close(&place.shop);
}

/* ---- many ---- */

QR_DB_TEST(findings_beyond_the_limit_are_counted_and_repaired_all_the_same)
{
    struct qr_place place;
    qr_place_open(&place, t);
    qr_place_exec(&place, "UPDATE item SET n_idle = 3, n_completed = 0 WHERE is_container = 1");
    struct qr_found found = {0};
    const struct qr_check_options options = {.db = place.shop.desk.db,
                                             .ids = &place.shop.desk.ids,
                                             .clock = place.shop.desk.ids.clock,
                                             .repair = true,
                                             .findings_max = 1,
                                             .found = qr_found_note,
                                             .arg = &found};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_check(&options, &found.result, &err));
    QR_CHECK_INT(1, found.count);
    QR_CHECK(found.result.findings > 1);
    QR_CHECK_INT(found.result.findings, found.result.repaired);
    qr_place_check_clean(&place);
    qr_shop_close(&place.shop);
}
