/* A filter that one of many items passes (S4, S5 of search/scan.h): it is found, and not by looking deeper and deeper. */
#include "search/scan.h"
#include "support/workflow_fixture.h"

#include <stdio.h>

enum { ITEMS = 5000, RARE = 4321, WANTED = 10 };

/* Notes in a folder, all of which match; the rare one is far behind. */
struct crowd {
    struct qr_desk desk;
    struct qr_arena arena;
    struct qr_scan scan;
    qr_uuid folder, ids[ITEMS];
    int rounds;
    struct qr_index_hit *found;
    size_t found_count;
};

static qr_rc insert_item(struct qr_tx *tx, const struct crowd *crowd, const qr_uuid *path, int64_t depth, bool is_rare,
                         qr_err *err)
{
    const qr_uuid *parent_id = depth ? &path[depth - 1] : &crowd->desk.base_id;
    char name[40];
    snprintf(name, sizeof name, "%s", is_rare ? "rare.md" : "note");
    return qr_tx_exec(
        tx,
        "INSERT INTO item (id, base_id, parent_id, depth, path, type, is_container, name, key, source, size_bytes, "
        "mtime_ns, status, generation, live_generation, seen_generation, wanted, attributes, created_at, updated_at) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?1, ?9, 0, 0, 6, 1, ?10, 1, 15, ?11, 0, 0)",
        QR_VALS(qr_val_blob(path[depth].bytes, QR_UUID_BYTES), qr_val_blob(crowd->desk.base_id.bytes, QR_UUID_BYTES),
                qr_val_blob(parent_id->bytes, QR_UUID_BYTES), qr_val_i64(depth),
                qr_val_blob(path[0].bytes, (size_t)(depth + 1) * QR_UUID_BYTES),
                qr_val_i64(depth == 0 ? QR_ITEM_DIRECTORY
                           : is_rare  ? QR_ITEM_FILE
                                      : QR_ITEM_NOTE),
                qr_val_i64(depth == 0), qr_val_text(qr_str_of(name)), qr_val_blob(name, is_rare ? strlen(name) : 0),
                qr_val_i64(depth), qr_val_text(is_rare ? QR_STR("{\"tag\":\"rare\"}") : QR_STR(""))),
        NULL, err);
}

static qr_rc insert_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct crowd *crowd = arg;
    QR_TRY(insert_item(tx, crowd, &crowd->folder, 0, false, err));
    for (int i = 0; i < ITEMS; i++) {
        QR_TRY(insert_item(tx, crowd, (qr_uuid[]){crowd->folder, crowd->ids[i]}, 1, i == RARE, err));
    }
    return QR_OK;
}

static void open_crowd(struct crowd *crowd, struct qr_test *t)
{
    qr_err err;
    qr_desk_open(&crowd->desk, t, "{}");
    crowd->folder = qr_uuid_next(&crowd->desk.ids);
    for (int i = 0; i < ITEMS; i++) {
        crowd->ids[i] = qr_uuid_next(&crowd->desk.ids);
    }
    QR_CHECK_RC(QR_OK, qr_db_write(crowd->desk.db, QR_RELAXED, insert_items, crowd, &err));
}

static qr_rc find_all(void *arg, int depth, qr_index_filter_fn *filter, void *filter_arg, struct qr_index_hit *ret_hits,
                      size_t *ret_count, qr_err *err QR_UNUSED)
{
    struct crowd *crowd = arg;
    crowd->rounds++;
    *ret_count = 0;
    for (int i = 0; i < ITEMS && *ret_count < (size_t)depth; i++) {
        if (filter(filter_arg, crowd->ids[i], 1)) {
            ret_hits[(*ret_count)++] = (struct qr_index_hit){crowd->ids[i], .generation = 1, .score = ITEMS - i};
        }
    }
    return QR_OK;
}

/* As a search that began before the swap of a generation: the rows of the new one are seen by the next round. */
static qr_rc find_replaced(void *arg, int depth QR_UNUSED, qr_index_filter_fn *filter, void *filter_arg,
                           struct qr_index_hit *ret_hits, size_t *ret_count, qr_err *err QR_UNUSED)
{
    struct crowd *crowd = arg;
    *ret_hits = (struct qr_index_hit){crowd->ids[0], .generation = crowd->rounds++};
    *ret_count = filter(filter_arg, ret_hits->item_id, ret_hits->generation);
    return QR_OK;
}

static void scan_by(struct crowd *crowd, qr_leg_fn *leg, struct qr_search_filter filter)
{
    qr_err err;
    qr_arena_init(&crowd->arena, 0);
    crowd->rounds = 0;
    QR_CHECK_RC(QR_OK,
                qr_scan_begin(&crowd->scan, crowd->desk.db, NULL, crowd->desk.base_id, &filter, &crowd->arena, &err));
    QR_CHECK_RC(QR_OK, qr_scan_leg(&crowd->scan, leg, crowd, WANTED, &crowd->found, &crowd->found_count, &err));
    qr_scan_done(&crowd->scan);
}

static void scan(struct crowd *crowd, struct qr_search_filter filter)
{
    scan_by(crowd, find_all, filter);
}

/* Once with any items, once only among those of the folder. */
static void check_rare(struct crowd *crowd, struct qr_search_filter filter)
{
    for (size_t named = 0; named < 2; named++) {
        filter.item_ids = named ? &crowd->folder : NULL;
        filter.item_id_count = named;
        scan(crowd, filter);
        QR_CHECK_INT(1, crowd->found_count);
        QR_CHECK(qr_uuid_equal(crowd->ids[RARE], crowd->found[0].item_id));
        QR_CHECK_INT(2, crowd->rounds);
        qr_arena_done(&crowd->arena);
    }
}

QR_DB_TEST(one_item_of_thousands_that_passes_is_found_in_two_rounds) /* S5 */
{
    static struct crowd crowd;
    open_crowd(&crowd, t);
    check_rare(&crowd, (struct qr_search_filter){.types = QR_BIT(QR_ITEM_FILE)});
    check_rare(&crowd, (struct qr_search_filter){.patterns = {{QR_STR("*.md"), false}}, .pattern_count = 1});
    QR_JSON *attributes = json_pack("{s:s}", "tag", "rare");
    check_rare(&crowd, (struct qr_search_filter){.attributes = attributes});
    qr_desk_close(&crowd.desk);
}

QR_DB_TEST(a_filter_that_enough_hits_pass_costs_no_second_round)
{
    static struct crowd crowd;
    open_crowd(&crowd, t);
    scan(&crowd, (struct qr_search_filter){.types = QR_BIT(QR_ITEM_NOTE)});
    QR_CHECK_INT(WANTED, crowd.found_count);
    QR_CHECK_INT(1, crowd.rounds);
    qr_arena_done(&crowd.arena);
    qr_desk_close(&crowd.desk);
}

QR_DB_TEST(what_passes_and_is_hidden_is_not_shown) /* S1 */
{
    static struct crowd crowd;
    open_crowd(&crowd, t);
    qr_desk_exec(&crowd.desk, "UPDATE item SET enabled = 0 WHERE name = 'rare.md'");
    scan(&crowd, (struct qr_search_filter){.types = QR_BIT(QR_ITEM_FILE)});
    QR_CHECK_INT(0, crowd.found_count);
    qr_arena_done(&crowd.arena);
    qr_desk_close(&crowd.desk);
}

QR_DB_TEST(an_item_whose_generation_is_replaced_meanwhile_is_found) /* S2 */
{
    static struct crowd crowd;
    open_crowd(&crowd, t);
    scan_by(&crowd, find_replaced, (struct qr_search_filter){0});
    QR_CHECK_INT(1, crowd.found_count);
    QR_CHECK_INT(1, crowd.found[0].generation);
    qr_arena_done(&crowd.arena);
    qr_desk_close(&crowd.desk);
}
