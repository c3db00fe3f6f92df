/* Lists of items in other orders than the tree's, over every database: total, both ways, page by page, by an index. */
#include "store/items.h"
#include "support/workflow_fixture.h"

#include <sqlite3.h>

/* Names and contents so that every order is another one, with equals in each. */
static const struct {
    const char *name, *content;
} NOTES[] = {{"pear", "22"}, {"Apple", "4444"}, {"fig", "333"}, {"apple", "22"}, {"fig", "1"}, {"Äpfel", "55555"}};

enum { COUNT = QR_COUNT(NOTES) };

struct page {
    struct qr_item_filter filter;
    struct qr_arena *arena;
    struct qr_item *items;
    size_t count;
    qr_str next;
};

static qr_rc load(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct page *page = arg;
    return qr_items_list(tx, &page->filter, page->arena, &page->items, &page->count, &page->next, err);
}

/* "name/size name/size …" of all pages of this many items. */
static const char *listed(struct qr_desk *desk, struct qr_item_filter filter, int limit)
{
    static char line[1024];
    struct page page = {.filter = filter, .arena = &desk->arena};
    size_t len = 0;
    line[0] = '\0';
    page.filter.base_id = desk->base_id;
    page.filter.limit = limit;
    do {
        qr_err err;
        QR_CHECK_RC(QR_OK, qr_db_read(desk->db, load, &page, &err));
        QR_CHECK(page.count <= (size_t)limit);
        for (size_t i = 0; i < page.count; i++) {
            len += (size_t)snprintf(line + len, sizeof line - len, "%s%s/%lld", len ? " " : "", page.items[i].name,
                                    (long long)page.items[i].size_bytes);
        }
        page.filter.after = page.next;
    } while (page.next.len);
    return line;
}

static void open_with_notes(struct qr_desk *desk, struct qr_test *t)
{
    qr_desk_open(desk, t, "{}");
    for (size_t i = 0; i < COUNT; i++) {
        qr_desk_add_note(desk, NOTES[i].name, NOTES[i].content);
        qr_test_clock_advance(i % 2); /* two of a moment */
    }
}

static void check_order(struct qr_desk *desk, enum qr_item_order order, bool is_backward, const char *expected)
{
    for (int limit = 1; limit <= COUNT + 1; limit++) {
        for (int has_parent = 0; has_parent < 2; has_parent++) {
            const struct qr_item_filter filter = {.order = order, .is_backward = is_backward, .has_parent = has_parent};
            QR_CHECK_TEXT(expected, listed(desk, filter, limit));
        }
    }
}

QR_DB_TEST(every_order_is_total_and_the_same_in_pages_of_any_size)
{
    struct qr_desk desk;
    open_with_notes(&desk, t);
    check_order(&desk, QR_ORDER_NAME, false, "Apple/4 apple/2 fig/3 fig/1 pear/2 Äpfel/5");
    check_order(&desk, QR_ORDER_NAME, true, "Äpfel/5 pear/2 fig/1 fig/3 apple/2 Apple/4");
    check_order(&desk, QR_ORDER_SIZE, false, "fig/1 pear/2 apple/2 fig/3 Apple/4 Äpfel/5");
    check_order(&desk, QR_ORDER_SIZE, true, "Äpfel/5 Apple/4 fig/3 apple/2 pear/2 fig/1");
    check_order(&desk, QR_ORDER_CREATED, false, "pear/2 Apple/4 fig/3 apple/2 fig/1 Äpfel/5");
    check_order(&desk, QR_ORDER_CREATED, true, "Äpfel/5 fig/1 apple/2 fig/3 Apple/4 pear/2");
    check_order(&desk, QR_ORDER_UPDATED, false, "pear/2 Apple/4 fig/3 apple/2 fig/1 Äpfel/5");
    check_order(&desk, QR_ORDER_UPDATED, true, "Äpfel/5 fig/1 apple/2 fig/3 Apple/4 pear/2");
    qr_desk_close(&desk);
}

QR_DB_TEST(what_changes_is_the_latest_and_what_is_in_a_folder_is_listed_alone)
{
    struct qr_desk desk;
    open_with_notes(&desk, t);
    const qr_uuid folder = qr_desk_add_folder(&desk, "/somewhere");
    qr_test_clock_advance(5);
    qr_desk_expand(&desk, folder, (const char *const[]){"b.md", "a.md", "c.md"}, 3);
    struct qr_item_filter inside = {.order = QR_ORDER_NAME, .is_backward = true, .has_parent = true};
    inside.parent_id = folder;
    QR_CHECK_TEXT("c.md/1 b.md/1 a.md/1", listed(&desk, inside, 2));
    qr_test_clock_advance(5);
    qr_desk_index(&desk, qr_desk_child(&desk, folder, "b.md").id);
    inside.order = QR_ORDER_UPDATED;
    QR_CHECK(strncmp(listed(&desk, inside, 2), "b.md/", 5) == 0);
    const struct qr_item_filter all = {.order = QR_ORDER_NAME, .type = QR_ITEM_FILE};
    QR_CHECK_TEXT("a.md/1 b.md/1 c.md/1", listed(&desk, all, 1));
    /* what is deleted is in no list from then on, with all that is in it (DEL-4) */
    struct qr_selection_answer answer;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_desk_select(&desk, qr_workflow_delete, &folder, 1, &answer, &err));
    QR_CHECK_TEXT("", listed(&desk, all, 1));
    QR_CHECK_TEXT("", listed(&desk, inside, 1));
    qr_desk_close(&desk);
}

QR_DB_TEST(what_is_added_between_two_pages_shifts_neither)
{
    struct qr_desk desk;
    open_with_notes(&desk, t);
    qr_err err;
    struct page page = {.filter = {.base_id = desk.base_id, .order = QR_ORDER_NAME, .limit = 2}, .arena = &desk.arena};
    QR_CHECK_RC(QR_OK, qr_db_read(desk.db, load, &page, &err));
    qr_desk_add_note(&desk, "Aaa", "x");
    page.filter.after = page.next;
    QR_CHECK_RC(QR_OK, qr_db_read(desk.db, load, &page, &err));
    QR_CHECK_TEXT("fig", page.items[0].name);
    QR_CHECK_TEXT("fig", page.items[1].name);
    qr_desk_close(&desk);
}

QR_DB_TEST(a_place_of_another_order_or_of_nobody_is_refused)
{
    struct qr_desk desk;
    open_with_notes(&desk, t);
    qr_err err;
    struct page page = {.filter = {.base_id = desk.base_id, .order = QR_ORDER_SIZE, .limit = 2}, .arena = &desk.arena};
    QR_CHECK_RC(QR_OK, qr_db_read(desk.db, load, &page, &err));
    page.filter.after = page.next;
    page.filter.order = QR_ORDER_UPDATED;
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_db_read(desk.db, load, &page, &err));
    page.filter.order = QR_ORDER_NAME;
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_db_read(desk.db, load, &page, &err));
    static const char bytes[] = "\1xxxxxxxxxxxxxxxx\377\0x";
    for (size_t len = 1; len < sizeof bytes; len++) {
        if (len == 17) {
            continue; /* an empty name */
        }
        page.filter.after = (qr_str){bytes, len};
        QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_db_read(desk.db, load, &page, &err));
    }
    qr_desk_close(&desk);
}

/* ---- totals ---- */

struct totals {
    struct qr_item item;
    struct qr_item_totals totals;
};

static qr_rc sum_up(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct totals *totals = arg;
    return qr_items_totals(tx, &totals->item, &totals->totals, err);
}

static void check_totals(struct qr_desk *desk, qr_uuid folder, struct qr_item_totals expected)
{
    struct totals totals = {.item = qr_desk_item(desk, folder)};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(desk->db, sum_up, &totals, &err));
    QR_CHECK_INT(expected.containers, totals.totals.containers);
    QR_CHECK_INT(expected.leaves, totals.totals.leaves);
    QR_CHECK_INT(expected.completed, totals.totals.completed);
    QR_CHECK_INT(expected.failed, totals.totals.failed);
    QR_CHECK_INT(expected.active, totals.totals.active);
    QR_CHECK_INT(expected.idle, totals.totals.idle);
}

QR_DB_TEST(totals_are_of_the_leaves_at_any_depth)
{
    struct qr_desk desk;
    open_with_notes(&desk, t);
    const qr_uuid folder = qr_desk_add_folder(&desk, "/somewhere"), other = qr_desk_add_folder(&desk, "/elsewhere");
    check_totals(&desk, folder, (struct qr_item_totals){0});
    qr_desk_expand(&desk, folder, (const char *const[]){"a.md", "b.md", "sub/"}, 3);
    qr_desk_expand(&desk, other, (const char *const[]){"x.md"}, 1);
    check_totals(&desk, folder, (struct qr_item_totals){.containers = 1, .leaves = 2, .active = 2});
    const qr_uuid sub = qr_desk_child(&desk, folder, "sub").id;
    qr_desk_expand(&desk, sub, (const char *const[]){"c.md", "d.md"}, 2);
    qr_desk_index(&desk, qr_desk_child(&desk, folder, "a.md").id);
    qr_desk_fail(&desk, qr_desk_child(&desk, sub, "c.md").id, QR_CODE_CORRUPT);
    check_totals(&desk, folder,
                 (struct qr_item_totals){.containers = 1, .leaves = 4, .completed = 1, .failed = 1, .active = 2});
    qr_desk_index(&desk, qr_desk_child(&desk, sub, "d.md").id);
    qr_desk_index(&desk, qr_desk_child(&desk, folder, "b.md").id);
    check_totals(&desk, folder, (struct qr_item_totals){.containers = 1, .leaves = 4, .completed = 3, .failed = 1});
    check_totals(&desk, sub, (struct qr_item_totals){.leaves = 2, .completed = 1, .failed = 1});
    qr_desk_close(&desk);
}

/* ---- what it costs ---- */

static char heard[4096]; /* the list's statement, as SQLite heard it */

static int hear(unsigned event QR_UNUSED, void *context QR_UNUSED, void *statement, void *unused QR_UNUSED)
{
    const char *text = sqlite3_sql(statement);
    if (text && strstr(text, "FROM item WHERE") && strstr(text, "LIMIT ?2")) {
        snprintf(heard, sizeof heard, "%s", text);
    }
    return 0;
}

static int listen_to(sqlite3 *connection, char **error QR_UNUSED, const void *api QR_UNUSED)
{
    return sqlite3_trace_v2(connection, SQLITE_TRACE_STMT, hear, NULL);
}

static qr_rc explain(struct qr_tx *tx, void *arg, qr_err *err)
{
    char sql[5000];
    const char *index = arg;
    snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", heard);
    QR_ROWS(rows);
    const struct qr_val vals[] = {qr_val_null(), qr_val_null(), qr_val_null(), qr_val_null()};
    QR_TRY(qr_tx_query(tx, &rows, sql, vals, strstr(heard, "?4") ? 4 : 3, err));
    int steps = 0;
    while (qr_rows_next(&rows)) {
        const char *step = qr_rows_str(&rows, 3).ptr;
        QR_CHECK_HAS(index, step);
        steps++;
    }
    QR_CHECK_INT(1, steps); /* no sorting */
    return qr_rows_end(&rows, err);
}

QR_DB_TEST(a_page_is_one_look_into_the_index_of_its_order)
{
    static const char *const indexes[QR_ORDER_END] = {"", "item_by_name", "item_by_age", "item_by_update",
                                                      "item_by_size"};
    if (qr_test_on_postgres(t)) {
        return; /* has the same indexes, and plans by what tables hold */
    }
    QR_CHECK(sqlite3_auto_extension((void (*)(void))listen_to) == SQLITE_OK);
    struct qr_desk desk;
    open_with_notes(&desk, t);
    for (enum qr_item_order order = QR_ORDER_NAME; order < QR_ORDER_END; order++) {
        for (int is_backward = 0; is_backward < 2; is_backward++) {
            const struct qr_item_filter filter = {.order = order, .is_backward = is_backward};
            qr_err err;
            listed(&desk, filter, 2);
            QR_CHECK_HAS("?3", heard); /* that of a further page */
            QR_CHECK_RC(QR_OK, qr_db_read(desk.db, explain, (void *)(uintptr_t)indexes[order], &err));
        }
    }
    qr_desk_close(&desk);
}

QR_DB_TEST(a_folder_of_many_is_listed_without_sorting_it)
{
    enum { MANY = 5100 };
    struct qr_desk desk;
    open_with_notes(&desk, t);
    const qr_uuid folder = qr_desk_add_folder(&desk, "/somewhere");
    static char names[MANY][12];
    static const char *list[MANY];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "f%05d.md", (i * 7919) % MANY);
        list[i] = names[i];
    }
    qr_desk_expand(&desk, folder, list, MANY);
    qr_err err;
    struct page page = {.filter = {.base_id = desk.base_id,
                                   .has_parent = true,
                                   .parent_id = folder,
                                   .order = QR_ORDER_NAME,
                                   .is_backward = true,
                                   .limit = 200},
                        .arena = &desk.arena};
    int next = MANY;
    do {
        QR_CHECK_RC(QR_OK, qr_db_read(desk.db, load, &page, &err));
        for (size_t i = 0; i < page.count; i++) {
            snprintf(names[0], sizeof names[0], "f%05d.md", --next);
            QR_CHECK_TEXT(names[0], page.items[i].name);
        }
        page.filter.after = page.next;
    } while (page.next.len);
    QR_CHECK_INT(0, next);
    qr_desk_close(&desk);
}
