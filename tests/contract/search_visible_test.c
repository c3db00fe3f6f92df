/* Search where much is hidden (search/visible.h): what is shown is right whatever was remembered, and what is remembered is
 * bounded. Deletes do not run here, so that their rows stay in the index. */
#include "search/search.h"
#include "support/workshop.h"

#include <stdio.h>

enum { FILES = 40, TOP_K = 3 };

struct hall {
    struct qr_shop shop;
    struct qr_visible_memory *memory;
    qr_uuid folder;
};

/* A folder "f" with files, in part in a folder below it, and two notes, all of which say "common". */
static void open_hall(struct hall *hall, struct qr_test *t)
{
    qr_err err;
    struct qr_shop *shop = &hall->shop;
    qr_shop_open(shop, t, "{}");
    QR_CHECK_RC(QR_OK, qr_visible_memory_create(&hall->memory, &err));
    qr_shop_make_folder(shop, "f/below");
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, i % 2 ? "f/%d.txt" : "f/below/%d.txt", i);
        qr_shop_write(shop, name, "common common common");
    }
    hall->folder = qr_shop_add_folder(shop, "f", "");
    qr_desk_add_note(&shop->desk, "one", "a common word, among several others");
    qr_desk_add_note(&shop->desk, "two", "a common word, among several others");
    qr_shop_work(shop);
    QR_CHECK_INT(FILES + 2, qr_shop_hits(shop, "common"));
    qr_shop_set_paused(shop, QR_QUEUE_DELETE, true);
}

static void close_hall(struct hall *hall)
{
    qr_visible_memory_free(hall->memory);
    qr_shop_close(&hall->shop);
}

static size_t found(struct hall *hall, struct qr_visible_memory *memory, int top_k)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    const struct qr_search search = {.db = hall->shop.desk.db,
                                     .index = hall->shop.context.index,
                                     .memory = memory,
                                     .base_id = hall->shop.desk.base_id,
                                     .query = QR_STR("common"),
                                     .keeps_chunks = true,
                                     .top_k = top_k};
    struct qr_search_answer answer;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_search_run(&search, &arena, &answer, &err));
    return answer.count;
}

static void set_enabled(struct hall *hall, qr_uuid id, bool enabled)
{
    struct qr_desk *desk = &hall->shop.desk;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_workflow_patch(&desk->workflow, desk->base_id, id,
                                         &(struct qr_item_patch){.enabled = &enabled}, &err));
}

QR_DB_TEST(what_is_below_a_deleted_folder_is_not_found_and_is_remembered_as_a_whole) /* I4 */
{
    struct hall hall;
    open_hall(&hall, t);
    QR_CHECK_INT(TOP_K, found(&hall, hall.memory, TOP_K));
    QR_CHECK_INT(0, qr_visible_memory_ids(hall.memory)); /* nothing was hidden */
    qr_shop_delete(&hall.shop, hall.folder);
    QR_CHECK_INT(2, found(&hall, NULL, TOP_K)); /* without a memory it finds the same */
    QR_CHECK_INT(2, found(&hall, hall.memory, TOP_K));
    QR_CHECK_INT(FILES + 1, qr_visible_memory_ids(hall.memory));
    QR_CHECK_INT(2, found(&hall, hall.memory, TOP_K));
    QR_CHECK_INT(FILES + 1, qr_visible_memory_ids(hall.memory));
    close_hall(&hall);
}

QR_DB_TEST(what_is_below_a_hidden_folder_is_found_again_once_that_is_shown) /* HIDE-1 */
{
    struct hall hall;
    open_hall(&hall, t);
    const qr_uuid below = qr_desk_child(&hall.shop.desk, hall.folder, "below").id;
    for (int round = 0; round < 2; round++) {
        set_enabled(&hall, hall.folder, false);
        QR_CHECK_INT(2, found(&hall, hall.memory, TOP_K));
        QR_CHECK(qr_visible_memory_ids(hall.memory) > 0);
        set_enabled(&hall, below, false);
        set_enabled(&hall, hall.folder, true);
        QR_CHECK_INT(FILES / 2 + 2, found(&hall, hall.memory, QR_SEARCH_TOP_K_MAX));
        set_enabled(&hall, below, true);
        QR_CHECK_INT(FILES + 2, found(&hall, hall.memory, QR_SEARCH_TOP_K_MAX));
        QR_CHECK_INT(0, qr_visible_memory_ids(hall.memory));
    }
    close_hall(&hall);
}

QR_DB_TEST(items_deleted_one_by_one_are_remembered_together) /* I4 */
{
    struct hall hall;
    open_hall(&hall, t);
    const qr_uuid below = qr_desk_child(&hall.shop.desk, hall.folder, "below").id;
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.txt", i);
        qr_shop_delete(&hall.shop, qr_desk_child(&hall.shop.desk, i % 2 ? hall.folder : below, name).id);
    }
    QR_CHECK_INT(2, found(&hall, hall.memory, TOP_K));
    QR_CHECK_INT(FILES, qr_visible_memory_ids(hall.memory));
    close_hall(&hall);
}

QR_DB_TEST(what_was_remembered_is_forgotten_after_the_cleanup)
{
    struct hall hall;
    open_hall(&hall, t);
    qr_shop_delete(&hall.shop, hall.folder);
    QR_CHECK_INT(2, found(&hall, hall.memory, TOP_K));
    QR_CHECK_INT(FILES + 1, qr_visible_memory_ids(hall.memory));
    qr_shop_set_paused(&hall.shop, QR_QUEUE_DELETE, false);
    qr_shop_work(&hall.shop);
    QR_CHECK_INT(2, qr_shop_hits(&hall.shop, "common"));
    qr_desk_add_note(&hall.shop.desk, "three", "as common as the others"); /* vis_seq rises */
    qr_shop_work(&hall.shop);
    QR_CHECK_INT(3, found(&hall, hall.memory, TOP_K));
    QR_CHECK_INT(0, qr_visible_memory_ids(hall.memory));
    close_hall(&hall);
}

/* ---- bounds ---- */

static void learn_below(struct hall *hall, struct qr_hidden *hidden, qr_uuid id, size_t ids_max)
{
    const struct qr_item item = qr_desk_item(&hall->shop.desk, id);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_hidden_learn_below(hidden, item.path, ids_max, &err));
}

QR_DB_TEST(a_part_of_what_is_hidden_is_right_and_all_of_it_replaces_the_part)
{
    struct hall hall;
    struct qr_hidden hidden;
    qr_err err;
    open_hall(&hall, t);
    set_enabled(&hall, hall.folder, false);
    QR_CHECK_RC(QR_OK, qr_hidden_begin(&hidden, hall.memory, hall.shop.desk.db, hall.shop.desk.base_id, &err));
    learn_below(&hall, &hidden, hall.folder, 5);
    QR_CHECK_INT(5, qr_visible_memory_ids(hall.memory));
    qr_hidden_done(&hidden);
    QR_CHECK_INT(2, found(&hall, hall.memory, TOP_K));
    QR_CHECK_INT(FILES + 1, qr_visible_memory_ids(hall.memory));
    close_hall(&hall);
}

QR_DB_TEST(what_hides_nothing_is_not_remembered)
{
    struct hall hall;
    struct qr_hidden hidden;
    qr_err err;
    open_hall(&hall, t);
    QR_CHECK_RC(QR_OK, qr_hidden_begin(&hidden, hall.memory, hall.shop.desk.db, hall.shop.desk.base_id, &err));
    learn_below(&hall, &hidden, hall.folder, QR_HIDDEN_IDS_MAX);
    QR_CHECK_RC(QR_OK, qr_hidden_learn_deleting(&hidden, QR_HIDDEN_IDS_MAX, &err));
    QR_CHECK_INT(0, hidden.count);
    qr_hidden_done(&hidden);
    QR_CHECK_INT(0, qr_visible_memory_ids(hall.memory));
    close_hall(&hall);
}

/* Whether a new search knows of it. */
static bool is_remembered(struct hall *hall, qr_uuid base_id, qr_uuid id)
{
    struct qr_hidden hidden;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_hidden_begin(&hidden, hall->memory, hall->shop.desk.db, base_id, &err));
    const bool is = qr_hidden_has(&hidden, id);
    qr_hidden_done(&hidden);
    return is;
}

QR_DB_TEST(of_a_base_the_newest_sets_are_remembered)
{
    enum { FOLDERS = QR_HIDDEN_SETS_MAX + 3 };
    struct hall hall;
    struct qr_hidden hidden;
    qr_uuid files[FOLDERS];
    char name[32];
    qr_err err;
    open_hall(&hall, t);
    struct qr_desk *desk = &hall.shop.desk;
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(name, sizeof name, "g/%d", i);
        qr_shop_make_folder(&hall.shop, name);
        snprintf(name, sizeof name, "g/%d/file.txt", i);
        qr_shop_write(&hall.shop, name, "common");
    }
    const qr_uuid above = qr_shop_add_folder(&hall.shop, "g", "");
    qr_shop_work(&hall.shop);
    QR_CHECK_RC(QR_OK, qr_hidden_begin(&hidden, hall.memory, desk->db, desk->base_id, &err));
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(name, sizeof name, "%d", i);
        const qr_uuid folder = qr_desk_child(desk, above, name).id;
        files[i] = qr_desk_child(desk, folder, "file.txt").id;
        set_enabled(&hall, folder, false);
        learn_below(&hall, &hidden, folder, QR_HIDDEN_IDS_MAX);
        QR_CHECK(qr_hidden_has(&hidden, files[i]));
    }
    qr_hidden_done(&hidden);
    QR_CHECK_INT(QR_HIDDEN_SETS_MAX, qr_visible_memory_ids(hall.memory));
    QR_CHECK(!is_remembered(&hall, desk->base_id, files[0]));
    QR_CHECK(is_remembered(&hall, desk->base_id, files[FOLDERS - 1]));
    close_hall(&hall);
}

static qr_rc add_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    char name[QR_UUID_TEXT_SIZE];
    const qr_uuid *id = arg;
    qr_uuid_format(*id, name);
    return qr_base_add(tx, *id, qr_str_of(name), QR_STR("{}"), err);
}

QR_DB_TEST(the_base_that_was_searched_longest_ago_is_forgotten_first)
{
    enum { BASES = 66, KEPT = 64 };
    struct hall hall;
    qr_uuid bases[BASES], notes[BASES];
    qr_err err;
    open_hall(&hall, t);
    struct qr_desk *desk = &hall.shop.desk;
    const qr_uuid own_base = desk->base_id;
    for (int i = 0; i < BASES; i++) {
        struct qr_hidden hidden;
        bases[i] = qr_uuid_next(&desk->ids);
        QR_CHECK_RC(QR_OK, qr_db_write(desk->db, QR_RELAXED, add_base, &bases[i], &err));
        desk->base_id = bases[i];
        notes[i] = qr_desk_add_note(desk, "note", "words");
        qr_shop_delete(&hall.shop, notes[i]);
        QR_CHECK_RC(QR_OK, qr_hidden_begin(&hidden, hall.memory, desk->db, bases[i], &err));
        QR_CHECK_RC(QR_OK, qr_hidden_learn_deleting(&hidden, QR_HIDDEN_IDS_MAX, &err));
        QR_CHECK_INT(1, hidden.count);
        qr_hidden_done(&hidden);
        QR_CHECK(is_remembered(&hall, bases[0], notes[0])); /* is searched again and again */
    }
    desk->base_id = own_base;
    QR_CHECK_INT(KEPT, qr_visible_memory_ids(hall.memory));
    QR_CHECK(!is_remembered(&hall, bases[1], notes[1]));
    QR_CHECK(is_remembered(&hall, bases[BASES - 1], notes[BASES - 1]));
    close_hall(&hall);
}
