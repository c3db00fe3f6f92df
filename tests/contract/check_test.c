/* check finds each kind of damage, names it by its invariant and word, mends what can be mended, and finds nothing where
 * there is nothing. Over every database. */
#include "check/check.h"
#include "support/fault.h"
#include "support/workshop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PURGE_AFTER_MS = 31000, FOUND_MAX = 20 };

/* ---- checking ---- */

struct found {
    struct qr_check_finding findings[FOUND_MAX];
    size_t count;
    struct qr_check_result result;
};

static qr_rc note(void *arg, const struct qr_check_finding *finding, qr_err *err)
{
    struct found *found = arg;
    (void)err;
    QR_CHECK(found->count < FOUND_MAX);
    found->findings[found->count++] = *finding;
    return QR_OK;
}

static struct found look_in_pages(struct qr_shop *shop, int page_max, bool repair)
{
    struct found found = {0};
    const struct qr_check_options options = {
        .db = shop->desk.db,
        .index = shop->context.index,
        .artifacts = &shop->desk.artifacts,
        .ids = &shop->desk.ids,
        .clock = shop->desk.ids.clock,
        .repair = repair,
        .page_max = page_max,
        .findings_max = FOUND_MAX,
        .found = note,
        .arg = &found,
    };
    qr_err err;
    if (qr_check(&options, &found.result, &err) != QR_OK) {
        QR_FAIL("%s (%s)", err.msg, qr_code_info(err.code)->name);
    }
    return found;
}

static struct found look(struct qr_shop *shop, bool repair)
{
    return look_in_pages(shop, 0, repair);
}

static void check_clean(struct qr_shop *shop)
{
    const struct found found = look(shop, false);
    if (found.count) {
        QR_FAIL("%s %s: %s", found.findings[0].invariant, found.findings[0].code, found.findings[0].message);
    }
}

static const struct qr_check_finding *find(const struct found *found, const char *code)
{
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->findings[i].code, code) == 0) {
            return &found->findings[i];
        }
    }
    QR_FAIL("%s was not found, but %zu others: %s", code, found->count, found->count ? found->findings[0].code : "");
}

/* Exactly this one, also the second time: looking changes nothing. */
static struct qr_check_finding check_one(struct qr_shop *shop, const char *invariant, const char *code)
{
    for (int i = 0; i < 2; i++) {
        const struct found found = look_in_pages(shop, i, false); /* the second time in pages of one */
        const struct qr_check_finding *finding = find(&found, code);
        QR_CHECK_TEXT(invariant, finding->invariant);
        QR_CHECK_INT(1, found.count);
        QR_CHECK_INT(1, found.result.findings);
        QR_CHECK_INT(0, found.result.repaired);
        QR_CHECK(!finding->is_repaired);
    }
    return look(shop, false).findings[0];
}

/* The same, and a repair ends it. */
static void check_mended(struct qr_shop *shop, const char *invariant, const char *code)
{
    check_one(shop, invariant, code);
    const struct found found = look(shop, true);
    QR_CHECK_INT(1, found.count);
    QR_CHECK(find(&found, code)->is_repaired);
    QR_CHECK_INT(1, found.result.repaired);
    check_clean(shop);
}

/* ---- a folder with a.md, b.txt, sub/c.md, and a note; all of it indexed ---- */

struct place {
    struct qr_shop shop;
    qr_uuid folder, sub, a, c, note;
};

static void open_place(struct place *place, struct qr_test *t)
{
    struct qr_shop *shop = &place->shop;
    qr_shop_open(shop, t, "{}");
    qr_shop_make_folder(shop, "tree/sub");
    qr_shop_write(shop, "tree/a.md", "# Apples\n\nThey are red.\n");
    qr_shop_write(shop, "tree/b.txt", "bananas are yellow\n");
    qr_shop_write(shop, "tree/sub/c.md", "# Cherries\n\nThey are small.\n");
    place->folder = qr_shop_add_folder(shop, "tree", "");
    place->note = qr_desk_add_note(&shop->desk, "note", "remember the milk");
    qr_shop_work(shop);
    place->sub = qr_desk_child(&shop->desk, place->folder, "sub").id;
    place->a = qr_desk_child(&shop->desk, place->folder, "a.md").id;
    place->c = qr_desk_child(&shop->desk, place->sub, "c.md").id;
    check_clean(shop);
}

static void run_sql(struct place *place, const char *sql)
{
    qr_desk_exec(&place->shop.desk, sql);
}

static void write_rows(struct place *place, qr_uuid item_id, int64_t generation)
{
    const struct qr_chunk chunk = {.text = QR_STR("old"), .heading = QR_STR(""), .title = QR_STR("t"), .end = 3};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(place->shop.context.index, place->shop.desk.base_id, item_id, generation,
                                             &chunk, 1, &(struct qr_index_guard){0}, &err));
}

/* ---- no damage ---- */

QR_DB_TEST(a_clean_folder_has_no_findings_and_everything_was_looked_at)
{
    struct place place;
    open_place(&place, t);
    qr_desk_add_note(&place.shop.desk, "empty", " \n");
    qr_shop_work(&place.shop);
    const struct found found = look(&place.shop, false);
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
    struct place place;
    open_place(&place, t);
    qr_desk_add_note(&place.shop.desk, "waiting", "words");
    qr_shop_reindex(&place.shop, place.folder);
    check_clean(&place.shop);
    qr_shop_work(&place.shop);
    check_clean(&place.shop); /* the purge of the generation before is still to come */
    qr_shop_work_after(&place.shop, PURGE_AFTER_MS);
    check_clean(&place.shop);
    qr_shop_close(&place.shop);
}

QR_DB_TEST(what_is_deleting_is_no_damage_whatever_it_is_like) /* K2 */
{
    struct place place;
    open_place(&place, t);
    qr_shop_delete(&place.shop, place.folder);
    run_sql(&place, "UPDATE item SET n_completed = 77, live_generation = 50 WHERE depth > 0");
    check_clean(&place.shop);
    qr_shop_work(&place.shop);
    check_clean(&place.shop);
    qr_shop_close(&place.shop);
}

/* ---- while others work ---- */

struct watch {
    struct qr_shop *shop;
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
    const struct qr_check_options options = {.db = watch->shop->desk.db,
                                             .index = watch->shop->context.index,
                                             .artifacts = &watch->shop->desk.artifacts,
                                             .ids = &watch->shop->desk.ids,
                                             .clock = watch->shop->desk.ids.clock,
                                             .page_max = 1,
                                             .findings_max = 1,
                                             .found = keep_first,
                                             .arg = watch};
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
    struct place place;
    open_place(&place, t);
    struct watch watch = {.shop = &place.shop};
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
    check_clean(&place.shop);
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
    struct place *place = arg;
    const struct qr_check_options options = {.db = place->shop.desk.db,
                                             .index = place->shop.context.index,
                                             .artifacts = &place->shop.desk.artifacts,
                                             .ids = &place->shop.desk.ids,
                                             .clock = place->shop.desk.ids.clock,
                                             .findings_max = 1,
                                             .found = count_finding};
    struct qr_check_result result;
    qr_err err = {0};
    const qr_rc rc = qr_check(&options, &result, &err);
    qr_fault_disarm();
    QR_CHECK_INT(rc == QR_OK ? QR_CODE_NONE : QR_CODE_OUT_OF_MEMORY, err.code);
    QR_CHECK(rc != QR_OK || result.findings == 2);
}

QR_TEST(a_check_survives_every_failing_allocation)
{
    struct place place;
    qr_fault_memory_install();
    open_place(&place, t);
    run_sql(&place, "UPDATE item SET n_completed = 7 WHERE name = 'sub'");
    write_rows(&place, qr_uuid_next(&place.shop.desk.ids), 1);
    look(&place.shop, false); /* opens what stays open */
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

QR_DB_TEST(an_item_at_work_without_a_job_is_found)
{
    struct place place;
    open_place(&place, t);
    const qr_uuid waiting = qr_desk_add_note(&place.shop.desk, "waiting", "words");
    run_sql(&place, "UPDATE job SET state = 8 WHERE state = 3");
    const struct qr_check_finding finding = check_one(&place.shop, "I1", "job_missing");
    QR_CHECK(qr_uuid_equal(waiting, finding.item_id));
    QR_CHECK_HAS("run quire wait", finding.message);
    qr_shop_close(&place.shop);
}

QR_DB_TEST(a_job_that_its_item_does_not_wait_for_is_found)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "UPDATE job SET state = 3, idempotency_key = NULL WHERE id = (SELECT id FROM job WHERE type = "
                    "'process-document' ORDER BY id LIMIT 1)");
    const struct qr_check_finding finding = check_one(&place.shop, "I1", "job_unwanted");
    QR_CHECK(!qr_uuid_is_zero(finding.job_id));
    run_sql(&place, "UPDATE job SET generation = 9 WHERE state = 3");
    check_one(&place.shop, "I1", "job_outdated");
    run_sql(&place, "UPDATE job SET item_id = id WHERE state = 3");
    check_one(&place.shop, "I1", "job_without_item");
    qr_shop_close(&place.shop);
}

/* ---- I3 ---- */

QR_DB_TEST(a_live_generation_above_the_wanted_one_is_found)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "UPDATE item SET expanded_generation = 5 WHERE depth = 0 AND is_container = 1");
    check_one(&place.shop, "I3", "generations_wrong");
    qr_shop_close(&place.shop);
}

QR_DB_TEST(chunks_that_are_live_and_not_in_the_index_are_found)
{
    struct place place;
    open_place(&place, t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_delete_items(place.shop.context.index, place.shop.desk.base_id, &place.c, 1, &err));
    struct qr_check_finding finding = check_one(&place.shop, "I3", "chunks_wrong");
    QR_CHECK(qr_uuid_equal(place.c, finding.item_id));
    qr_shop_reindex(&place.shop, place.folder);
    qr_shop_work(&place.shop);
    check_clean(&place.shop);
    run_sql(&place, "UPDATE item SET chunk_count = 3 WHERE type = 3");
    finding = check_one(&place.shop, "I3", "chunks_wrong");
    QR_CHECK(qr_uuid_equal(place.note, finding.item_id));
    qr_shop_close(&place.shop);
}

QR_DB_TEST(rows_of_a_dead_generation_are_found_and_removed)
{
    struct place place;
    open_place(&place, t);
    qr_shop_reindex(&place.shop, place.folder);
    qr_shop_work(&place.shop);
    qr_shop_work_after(&place.shop, PURGE_AFTER_MS);
    write_rows(&place, place.a, 1);
    QR_CHECK_INT(1, qr_shop_chunks(&place.shop, place.a, 1));
    check_mended(&place.shop, "I3", "generation_dead");
    QR_CHECK_INT(0, qr_shop_chunks(&place.shop, place.a, 1));
    QR_CHECK_INT(1, qr_shop_chunks(&place.shop, place.a, 2));
    qr_shop_close(&place.shop);
}

/* ---- I4 ---- */

QR_DB_TEST(a_delete_that_no_job_does_is_found)
{
    struct place place;
    open_place(&place, t);
    qr_shop_delete(&place.shop, place.note);
    run_sql(&place, "UPDATE job SET state = 8 WHERE state = 3");
    const struct qr_check_finding finding = check_one(&place.shop, "I4", "delete_without_job");
    QR_CHECK(qr_uuid_equal(place.note, finding.item_id));
    qr_shop_close(&place.shop);
}

QR_DB_TEST(an_item_whose_parent_is_gone_is_found)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "UPDATE item SET n_completed = n_completed - 1 WHERE depth = 0 AND is_container = 1");
    run_sql(&place, "DELETE FROM item WHERE name = 'sub'");
    const struct qr_check_finding finding = check_one(&place.shop, "I4", "parent_missing");
    QR_CHECK(qr_uuid_equal(place.c, finding.item_id));
    qr_shop_close(&place.shop);
}

QR_DB_TEST(an_item_at_a_wrong_place_is_found)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "UPDATE item SET depth = 5 WHERE name = 'c.md'");
    check_one(&place.shop, "I4", "path_wrong");
    run_sql(&place, "UPDATE item SET depth = 2 WHERE name = 'c.md'");
    check_clean(&place.shop);
    run_sql(&place, "UPDATE item SET path = id WHERE name = 'c.md'");
    check_one(&place.shop, "I4", "path_wrong");
    qr_shop_close(&place.shop);
}

/* ---- I5, I9 ---- */

QR_DB_TEST(jobs_that_nobody_will_do_are_found)
{
    struct place place;
    open_place(&place, t);
    qr_shop_reindex(&place.shop, place.note); /* a job that waits */
    run_sql(&place, "UPDATE job SET type = 'dream' WHERE state = 3");
    check_one(&place.shop, "I5", "job_type_unknown");
    run_sql(&place, "UPDATE job SET state = 77 WHERE state = 3");
    check_one(&place.shop, "I5", "job_state_unknown");
    qr_shop_close(&place.shop);
}

QR_DB_TEST(a_job_that_waits_for_nobody_and_one_without_a_worker_are_found)
{
    struct place place;
    open_place(&place, t);
    qr_shop_reindex(&place.shop, place.note);
    run_sql(&place, "UPDATE job SET state = 1 WHERE state = 3");
    check_one(&place.shop, "I5", "job_abandoned");
    run_sql(&place, "UPDATE job SET state = 4, worker_id = id WHERE state = 1");
    check_one(&place.shop, "I9", "worker_missing");
    qr_shop_close(&place.shop);
}

/* ---- I6 ---- */

QR_DB_TEST(wrong_counters_are_found_and_mended)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "UPDATE item SET n_completed = 7 WHERE name = 'sub'");
    check_mended(&place.shop, "I6", "counters_wrong");
    QR_CHECK_INT(1, qr_desk_item(&place.shop.desk, place.sub).counts.completed);
    qr_shop_close(&place.shop);
}

QR_DB_TEST(a_wrong_status_is_mended_up_to_the_root)
{
    struct place place;
    open_place(&place, t);
    /* everything above c.md believes that it is at work */
    run_sql(&place, "UPDATE item SET n_active = 1, n_completed = n_completed - 1, status = 3 WHERE is_container = 1");
    const struct found found = look(&place.shop, true);
    QR_CHECK_INT(found.result.findings, found.result.repaired);
    QR_CHECK(find(&found, "status_wrong")->is_repaired);
    QR_CHECK(find(&found, "counters_wrong")->is_repaired);
    check_clean(&place.shop);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&place.shop.desk, place.folder).status);
    qr_desk_check(&place.shop.desk);
    qr_shop_close(&place.shop);
}

QR_DB_TEST(a_run_that_counts_wrong_is_found)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "INSERT INTO run (id, base_id, stages, status, level, level_gate, active, created_at) SELECT id, "
                    "id, 15, 1, 0, 0, 4, 1 FROM base");
    const struct qr_check_finding finding = check_one(&place.shop, "I6", "run_wrong");
    QR_CHECK_HAS("counts 4 items at work, but there are 0", finding.message);
    qr_shop_close(&place.shop);
}

/* ---- I7 ---- */

QR_DB_TEST(index_rows_of_no_item_are_found_and_removed)
{
    struct place place;
    open_place(&place, t);
    write_rows(&place, qr_uuid_next(&place.shop.desk.ids), 1);
    check_mended(&place.shop, "I7", "index_orphan");
    QR_CHECK_INT(4, qr_shop_extents(&place.shop));
    qr_shop_close(&place.shop);
}

QR_DB_TEST(artifacts_of_no_item_are_found_and_removed)
{
    struct place place;
    open_place(&place, t);
    const int64_t artifacts = qr_desk_i64(&place.shop.desk, "SELECT count(*) FROM artifact");
    run_sql(&place, "INSERT INTO artifact (id, base_id, item_id, generation, kind, size_bytes, hash, file) SELECT id, "
                    "id, id, 1, 2, 0, id, '' FROM base");
    check_mended(&place.shop, "I7", "artifact_orphan");
    QR_CHECK_INT(artifacts, qr_desk_i64(&place.shop.desk, "SELECT count(*) FROM artifact"));
    qr_shop_close(&place.shop);
}

QR_DB_TEST(assets_of_no_item_are_found_and_removed)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "INSERT INTO asset (id, base_id, item_id, generation, kind, mime, place, artifact_id, "
                    "analysis_status, text, code, message, created_at, updated_at) SELECT id, id, id, 1, 'image', '', "
                    "'', id, 3, '', '', '', 1, 1 FROM base");
    check_mended(&place.shop, "I7", "asset_orphan");
    qr_shop_close(&place.shop);
}

QR_DB_TEST(a_text_that_is_not_stored_is_found)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "DELETE FROM artifact WHERE kind = 2 AND item_id = (SELECT id FROM item WHERE name = 'a.md')");
    const struct qr_check_finding finding = check_one(&place.shop, "I7", "text_missing");
    QR_CHECK(qr_uuid_equal(place.a, finding.item_id));
    qr_shop_close(&place.shop);
}

QR_DB_TEST(an_index_of_another_base_is_found)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "UPDATE base SET index_stamp = 'another'");
    check_one(&place.shop, "I7", "index_foreign");
    qr_shop_close(&place.shop);
}

/* A note of more bytes than a row holds. */
static qr_uuid add_large_note(struct place *place)
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
    struct place place;
    open_place(&place, t);
    add_large_note(&place);
    check_clean(&place.shop);

    run_sql(&place, "UPDATE artifact SET size_bytes = size_bytes + 1 WHERE file <> '' AND kind = 1");
    const struct qr_check_finding finding = check_one(&place.shop, "I7", "file_missing");
    QR_CHECK(!qr_uuid_is_zero(finding.item_id));
    qr_shop_close(&place.shop);
}

QR_TEST(a_file_of_nothing_is_found_once_it_is_old_and_removed)
{
    struct place place;
    open_place(&place, t);
    struct qr_arena *arena = &place.shop.desk.arena;
    struct qr_new_artifact artifact;
    qr_err err;
    char *bytes = calloc(1, QR_ARTIFACT_ROW_BYTES_MAX + 1);
    QR_CHECK(bytes);
    QR_CHECK_RC(QR_OK,
                qr_artifact_prepare(&place.shop.desk.artifacts, qr_uuid_next(&place.shop.desk.ids), QR_ARTIFACT_TEXT,
                                    (qr_str){bytes, QR_ARTIFACT_ROW_BYTES_MAX + 1}, arena, &artifact, &err));
    free(bytes);
    check_clean(&place.shop); /* somebody may be about to adopt it */
    qr_shop_work_after(&place.shop, 3600001);
    check_mended(&place.shop, "I7", "file_orphan");
    qr_shop_close(&place.shop);
}

/* ---- I10 ---- */

QR_DB_TEST(errors_without_a_known_code_are_found)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "UPDATE item SET error_code = 'kaboom' WHERE name = 'a.md'");
    check_one(&place.shop, "I10", "error_code_unknown");
    qr_shop_close(&place.shop);
}

/* ---- many ---- */

QR_DB_TEST(findings_beyond_the_limit_are_counted_and_repaired_all_the_same)
{
    struct place place;
    open_place(&place, t);
    run_sql(&place, "UPDATE item SET n_idle = 3, n_completed = 0 WHERE is_container = 1");
    struct found found = {0};
    const struct qr_check_options options = {.db = place.shop.desk.db,
                                             .ids = &place.shop.desk.ids,
                                             .clock = place.shop.desk.ids.clock,
                                             .repair = true,
                                             .findings_max = 1,
                                             .found = note,
                                             .arg = &found};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_check(&options, &found.result, &err));
    QR_CHECK_INT(1, found.count);
    QR_CHECK(found.result.findings > 1);
    QR_CHECK_INT(found.result.findings, found.result.repaired);
    check_clean(&place.shop);
    qr_shop_close(&place.shop);
}
