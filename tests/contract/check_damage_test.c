/* check finds each kind of damage, names it by its invariant and word, and mends what can be mended. Over every database. */
#include "support/check_fixture.h"

#include <fcntl.h>
#include <unistd.h>

enum before { AS_IT_IS, NEW_NOTE_WAITS, REINDEX_WAITS, NOTE_IS_DELETING, EMPTY_FILE_IN_SUB };

struct damage {
    enum before before;
    const char *sql[3];
    const char *invariant, *code;
    const char *item; /* the finding is about the one of this name; NULL = about none, or any */
    const char *says;
    bool is_mended;
};

static void go_before(struct qr_place *place, enum before before)
{
    struct qr_shop *shop = &place->shop;
    if (before == NEW_NOTE_WAITS) {
        qr_desk_add_note(&shop->desk, "new", "words");
    } else if (before == REINDEX_WAITS) {
        qr_shop_reindex(shop, place->note);
    } else if (before == NOTE_IS_DELETING) {
        qr_shop_delete(shop, place->note);
    } else if (before == EMPTY_FILE_IN_SUB) {
        qr_shop_write(shop, "tree/sub/empty.txt", "");
        qr_shop_refresh(shop, place->folder);
        qr_shop_work(shop);
    }
    qr_place_check_clean(place);
}

static void check_damage(struct qr_test *t, const struct damage *damage)
{
    struct qr_place place;
    qr_place_open(&place, t);
    go_before(&place, damage->before);
    for (size_t i = 0; i < QR_COUNT(damage->sql) && damage->sql[i]; i++) {
        qr_place_exec(&place, damage->sql[i]);
    }
    const struct qr_check_finding finding = qr_place_check_one(&place, damage->invariant, damage->code);
    QR_CHECK_HAS(damage->says ? damage->says : "", finding.message);
    if (damage->item) {
        QR_CHECK_TEXT(damage->item, qr_desk_item(&place.shop.desk, finding.item_id).name);
    }
    if (damage->is_mended) {
        qr_place_check_mended(&place, damage->invariant, damage->code);
    } else {
        qr_place_check_left(&place, damage->invariant, damage->code);
    }
    qr_shop_close(&place.shop);
}

#define QR_DAMAGE_TEST(test_name, ...)                                                                                 \
    QR_DB_TEST(test_name)                                                                                              \
    {                                                                                                                  \
        check_damage(t, &(struct damage){__VA_ARGS__});                                                                \
    }
/* What PostgreSQL does not store, or stores in another way. */
#define QR_SQLITE_DAMAGE_TEST(test_name, ...)                                                                          \
    QR_TEST(test_name)                                                                                                 \
    {                                                                                                                  \
        check_damage(t, &(struct damage){__VA_ARGS__});                                                                \
    }

/* ---- I1 ---- */

QR_DAMAGE_TEST(an_item_at_work_without_a_job_is_found, .before = NEW_NOTE_WAITS,
               .sql = {"UPDATE job SET state = 8 WHERE state = 3"}, .invariant = "I1", .code = "job_missing",
               .item = "new", .says = "run quire wait")

QR_DAMAGE_TEST(
    an_item_at_work_with_two_jobs_is_found, .before = NEW_NOTE_WAITS,
    .sql = {"UPDATE job SET state = 3, idempotency_key = NULL, item_id = (SELECT id FROM item WHERE name = 'new') "
            "WHERE id = (SELECT id FROM job WHERE type = 'process-document' AND state = 5 LIMIT 1)"},
    .invariant = "I1", .code = "jobs_too_many", .item = "new", .says = "has 2 open stage jobs")

QR_DAMAGE_TEST(an_item_of_an_unknown_status_is_found, .sql = {"UPDATE item SET status = 77 WHERE name = 'note'"},
               .invariant = "I1", .code = "status_unknown", .item = "note", .says = "status 77")

QR_DAMAGE_TEST(an_item_of_an_unknown_type_is_found, .sql = {"UPDATE item SET type = 9 WHERE name = 'b.txt'"},
               .invariant = "I1", .code = "status_unknown", .item = "b.txt", .says = "type 9")

/* ---- I3 ---- */

QR_DAMAGE_TEST(a_live_generation_above_the_wanted_one_is_found,
               .sql = {"UPDATE item SET expanded_generation = 5 WHERE depth = 0 AND is_container = 1"},
               .invariant = "I3", .code = "generations_wrong", .item = "tree")

QR_DAMAGE_TEST(a_kept_generation_above_the_wanted_one_is_found,
               .sql = {"UPDATE item SET kept_generation = 9 WHERE name = 'note'"}, .invariant = "I3",
               .code = "generations_wrong", .item = "note", .says = "kept 9")

/* ---- I4 ---- */

QR_DAMAGE_TEST(a_delete_that_no_job_does_is_found, .before = NOTE_IS_DELETING,
               .sql = {"UPDATE job SET state = 8 WHERE state = 3"}, .invariant = "I4", .code = "delete_without_job",
               .item = "note")

QR_DAMAGE_TEST(an_item_whose_parent_is_gone_is_found,
               .sql = {"UPDATE item SET n_completed = n_completed - 1 WHERE depth = 0 AND is_container = 1",
                       "DELETE FROM item WHERE name = 'sub'"},
               .invariant = "I4", .code = "parent_missing", .item = "c.md")

QR_DAMAGE_TEST(items_whose_base_is_gone_are_found, .sql = {"DELETE FROM base"}, .invariant = "I4",
               .code = "base_missing")

QR_DAMAGE_TEST(an_item_within_another_base_is_found, .before = EMPTY_FILE_IN_SUB,
               .sql = {"INSERT INTO base (id, name, status, settings, version, created_at, updated_at) SELECT id, "
                       "'other', 1, '{}', 1, 1, 1 FROM item WHERE name = 'note'",
                       "UPDATE item SET base_id = (SELECT id FROM base WHERE name = 'other') WHERE name = "
                       "'empty.txt'"},
               .invariant = "I4", .code = "parent_foreign", .item = "empty.txt")

QR_DAMAGE_TEST(an_item_within_what_is_no_container_is_found,
               .sql = {"UPDATE item SET is_container = 0, expanded_generation = 0, live_generation = 0, chunk_count = "
                       "0 WHERE name = 'sub'"},
               .invariant = "I4", .code = "parent_wrong", .item = "c.md")

QR_DAMAGE_TEST(an_item_at_a_wrong_depth_is_found, .sql = {"UPDATE item SET depth = 5 WHERE name = 'c.md'"},
               .invariant = "I4", .code = "path_wrong", .item = "c.md")

QR_DAMAGE_TEST(an_item_at_a_wrong_place_is_found, .sql = {"UPDATE item SET path = id WHERE name = 'c.md'"},
               .invariant = "I4", .code = "path_wrong", .item = "c.md")

/* ---- I5, I9 ---- */

QR_DAMAGE_TEST(jobs_that_nobody_will_do_are_found, .before = REINDEX_WAITS,
               .sql = {"UPDATE job SET type = 'dream' WHERE state = 3"}, .invariant = "I5", .code = "job_type_unknown")

QR_DAMAGE_TEST(jobs_of_an_unknown_state_are_found, .before = REINDEX_WAITS,
               .sql = {"UPDATE job SET type = 'dream', state = 77 WHERE state = 3"}, .invariant = "I5",
               .code = "job_state_unknown")

QR_DAMAGE_TEST(a_job_that_waits_for_nobody_is_found, .before = REINDEX_WAITS,
               .sql = {"UPDATE job SET state = 1 WHERE state = 3"}, .invariant = "I5", .code = "job_abandoned")

QR_DAMAGE_TEST(a_job_without_a_worker_is_found, .before = REINDEX_WAITS,
               .sql = {"UPDATE job SET state = 4, worker_id = id WHERE state = 3"}, .invariant = "I9",
               .code = "worker_missing")

/* ---- I6 ---- */

QR_DAMAGE_TEST(wrong_counters_are_found_and_mended, .sql = {"UPDATE item SET n_completed = 7 WHERE name = 'sub'"},
               .invariant = "I6", .code = "counters_wrong", .item = "sub", .says = "counts 7 completed",
               .is_mended = true)

QR_DAMAGE_TEST(a_run_that_counts_wrong_is_found,
               .sql = {"INSERT INTO run (id, base_id, stages, status, level, level_gate, active, created_at) SELECT "
                       "id, id, 15, 1, 0, 0, 4, 1 FROM base"},
               .invariant = "I6", .code = "run_wrong", .says = "counts 4 items at work, but there are 0")

/* ---- I7 ---- */

QR_DAMAGE_TEST(artifacts_of_no_item_are_found_and_removed,
               .sql = {"INSERT INTO artifact (id, base_id, item_id, generation, kind, size_bytes, hash, file) SELECT "
                       "id, id, id, 1, 2, 0, id, '' FROM base"},
               .invariant = "I7", .code = "artifact_orphan", .is_mended = true)

QR_DAMAGE_TEST(assets_of_no_item_are_found_and_removed,
               .sql = {"INSERT INTO asset (id, base_id, item_id, generation, kind, mime, place, artifact_id, "
                       "analysis_status, text, code, message, created_at, updated_at) SELECT id, id, id, 1, 'image', "
                       "'', '', id, 3, '', '', '', 1, 1 FROM base"},
               .invariant = "I7", .code = "asset_orphan", .is_mended = true)

QR_DAMAGE_TEST(a_text_that_is_not_stored_is_found,
               .sql = {"DELETE FROM artifact WHERE kind = 2 AND item_id = (SELECT id FROM item WHERE name = 'a.md')"},
               .invariant = "I7", .code = "text_missing", .item = "a.md")

QR_DAMAGE_TEST(an_index_of_another_base_is_found, .sql = {"UPDATE base SET index_stamp = 'another'"}, .invariant = "I7",
               .code = "index_foreign")

static void overwrite(const char *path, const char *bytes, size_t size_bytes)
{
    const int fd = open(path, O_WRONLY | O_TRUNC);
    QR_CHECK(fd >= 0 && write(fd, bytes, size_bytes) == (ssize_t)size_bytes);
    close(fd);
}

QR_TEST(an_index_that_cannot_be_read_is_found_until_it_is_built_again) /* X5 */
{
    struct qr_place place;
    char id[QR_UUID_TEXT_SIZE], path[256];
    qr_err err;
    qr_place_open(&place, t);
    struct qr_shop *shop = &place.shop;
    qr_uuid_format(shop->desk.base_id, id);
    snprintf(path, sizeof path, "%s/%s.db", shop->index_dir, id);
    qr_index_set_close(shop->context.index);
    overwrite(path, "no database", 11);
    QR_CHECK_RC(QR_OK, qr_index_set_open(&shop->context.index, &shop->index_options, &err));
    qr_place_check_left(&place, "I7", "index_damaged");
    qr_shop_reindex(shop, place.note); /* the job that needs it builds it anew */
    qr_shop_work(shop);
    qr_shop_work_after(shop, QR_SHOP_PURGE_AFTER_MS);
    qr_place_check_clean(&place);
    QR_CHECK_INT(1, qr_shop_hits(shop, "cherries"));
    qr_shop_close(shop);
}

/* ---- I10 ---- */

QR_DAMAGE_TEST(errors_without_a_known_code_are_found,
               .sql = {"UPDATE item SET error_code = 'kaboom' WHERE name = 'a.md'"}, .invariant = "I10",
               .code = "error_code_unknown", .item = "a.md")

QR_DAMAGE_TEST(failed_jobs_without_a_known_code_are_found,
               .sql = {"UPDATE job SET state = 6, code = 'kaboom' WHERE id = (SELECT id FROM job ORDER BY id LIMIT 1)"},
               .invariant = "I10", .code = "error_code_unknown")

QR_SQLITE_DAMAGE_TEST(errors_that_are_no_text_are_found,
                      .sql = {"UPDATE item SET error_message = CAST(X'61ff62' AS TEXT) WHERE name = 'a.md'"},
                      .invariant = "I10", .code = "text_invalid", .item = "a.md")

QR_SQLITE_DAMAGE_TEST(messages_of_jobs_that_are_no_text_are_found,
                      .sql = {"UPDATE job SET message = CAST(X'61ff62' AS TEXT) WHERE id = (SELECT id FROM job ORDER "
                              "BY id LIMIT 1)"},
                      .invariant = "I10", .code = "text_invalid")
