/* Owns the place and how it is looked at. */
#include "support/check_fixture.h"

/* ---- looking ---- */

qr_rc qr_found_note(void *arg, const struct qr_check_finding *finding, qr_err *err)
{
    struct qr_found *found = arg;
    (void)err;
    QR_CHECK(found->count < QR_FOUND_MAX);
    found->findings[found->count++] = *finding;
    return QR_OK;
}

const struct qr_check_finding *qr_found_find(const struct qr_found *found, const char *code)
{
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->findings[i].code, code) == 0) {
            return &found->findings[i];
        }
    }
    QR_FAIL("%s was not found, but %zu others: %s", code, found->count, found->count ? found->findings[0].code : "");
}

struct qr_check_options qr_place_options(struct qr_place *place)
{
    struct qr_shop *shop = &place->shop;
    return (struct qr_check_options){
        .db = shop->desk.db,
        .index = shop->context.index,
        .artifacts = &shop->desk.artifacts,
        .ids = &shop->desk.ids,
        .clock = shop->desk.ids.clock,
    };
}

static struct qr_found look_in_pages(struct qr_place *place, int page_max, bool repair)
{
    struct qr_found found = {0};
    struct qr_check_options options = qr_place_options(place);
    options.repair = repair;
    options.page_max = page_max;
    options.findings_max = QR_FOUND_MAX;
    options.found = qr_found_note;
    options.arg = &found;
    qr_err err;
    if (qr_check(&options, &found.result, &err) != QR_OK) {
        QR_FAIL("%s (%s)", err.msg, qr_code_info(err.code)->name);
    }
    return found;
}

struct qr_found qr_place_look(struct qr_place *place, bool repair)
{
    return look_in_pages(place, 0, repair);
}

void qr_place_check_clean(struct qr_place *place)
{
    const struct qr_found found = qr_place_look(place, false);
    if (found.count) {
        QR_FAIL("%s %s: %s", found.findings[0].invariant, found.findings[0].code, found.findings[0].message);
    }
}

static void check_only(const struct qr_found *found, const char *invariant, const char *code)
{
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->findings[i].code, code) != 0) {
            QR_FAIL("beside %s: %s: %s", code, found->findings[i].code, found->findings[i].message);
        }
    }
    QR_CHECK_TEXT(invariant, qr_found_find(found, code)->invariant);
    QR_CHECK_INT(1, found->count);
    QR_CHECK_INT(1, found->result.findings);
}

struct qr_check_finding qr_place_check_one(struct qr_place *place, const char *invariant, const char *code)
{
    for (int i = 0; i < 2; i++) {
        const struct qr_found found = look_in_pages(place, i, false); /* the second time in pages of one */
        check_only(&found, invariant, code);
        QR_CHECK_INT(0, found.result.repaired);
        QR_CHECK(!found.findings[0].is_repaired);
    }
    return qr_place_look(place, false).findings[0];
}

void qr_place_check_mended(struct qr_place *place, const char *invariant, const char *code)
{
    qr_place_check_one(place, invariant, code);
    const struct qr_found found = qr_place_look(place, true);
    check_only(&found, invariant, code);
    QR_CHECK(found.findings[0].is_repaired);
    QR_CHECK_INT(1, found.result.repaired);
    qr_place_check_clean(place);
}

void qr_place_check_left(struct qr_place *place, const char *invariant, const char *code)
{
    qr_place_check_one(place, invariant, code);
    const struct qr_found found = qr_place_look(place, true);
    check_only(&found, invariant, code);
    QR_CHECK(!found.findings[0].is_repaired);
    QR_CHECK_INT(0, found.result.repaired);
    qr_place_check_one(place, invariant, code);
}

/* ---- the place ---- */

void qr_place_open(struct qr_place *place, struct qr_test *t)
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
    qr_place_check_clean(place);
}

void qr_place_exec(struct qr_place *place, const char *sql)
{
    qr_desk_exec(&place->shop.desk, sql);
}

void qr_place_write_rows(struct qr_place *place, qr_uuid item_id, int64_t generation)
{
    const struct qr_chunk chunk = {.text = QR_STR("old"), .heading = QR_STR(""), .title = QR_STR("t"), .end = 3};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(place->shop.context.index, place->shop.desk.base_id, item_id, generation,
                                             &chunk, 1, &(struct qr_index_guard){0}, &err));
}
