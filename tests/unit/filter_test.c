/* Which items may answer a search. */
#include "search/filter.h"
#include "support/test.h"

static qr_err err;

QR_TEST(a_pattern_fits_a_path_or_its_end)
{
    static const struct {
        const char *path, *pattern;
        bool fits;
    } table[] = {
        {"/home/me/docs/apples.md", "apples.md", true},
        {"/home/me/docs/apples.md", "docs/apples.md", true},
        {"/home/me/docs/apples.md", "docs/*", true},
        {"/home/me/docs/apples.md", "docs/", true},
        {"/home/me/docs/sub/apples.md", "docs/", true},
        {"/home/me/docs/apples.md", "*.md", true},
        {"/home/me/docs/apples.md", "*.MD", true},
        {"/home/me/docs/apples.md", "/home/*", true},
        {"/home/me/docs/apples.md", "appl?s.md", true},
        {"/home/me/docs/apples.md", "pples.md", false},
        {"/home/me/docs/apples.md", "ocs/", false},
        {"/home/me/docs/apples.md", "docs", false},
        {"/home/me/docs/apples.md", "*.txt", false},
        {"note", "note", true},
        {"note", "", false},
        {"", "*", true},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a*a*a*a*a*a*a*a*a*a*a*b", false},
    };
    for (size_t i = 0; i < QR_COUNT(table); i++) {
        qr_test_set_context("%s against %s", table[i].path, table[i].pattern);
        QR_CHECK_INT(table[i].fits, qr_path_fits(qr_str_of(table[i].path), qr_str_of(table[i].pattern)));
    }
}

static const qr_uuid folder = {.bytes = {1}}, file = {.bytes = {2}}, other = {.bytes = {3}};

static bool passes(const struct qr_search_filter *filter)
{
    char path[2 * QR_UUID_BYTES];
    memcpy(path, folder.bytes, QR_UUID_BYTES);
    memcpy(path + QR_UUID_BYTES, file.bytes, QR_UUID_BYTES);
    const struct qr_item_facts item = {.id = file,
                                       .path = {path, sizeof path},
                                       .type = QR_ITEM_FILE,
                                       .name = QR_STR("a.md"),
                                       .source = QR_STR("/docs/a.md"),
                                       .attributes = QR_STR("{\"year\":2024,\"tag\":\"red\"}")};
    bool is_passed;
    QR_CHECK_RC(QR_OK, qr_filter_check(filter, &item, &is_passed, &err));
    return is_passed;
}

static bool passes_attributes(const char *json)
{
    QR_JSON *attributes = NULL;
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_str_of(json), &QR_JSON_REQUEST_LIMITS, &attributes, &err));
    return passes(&(struct qr_search_filter){.attributes = attributes});
}

QR_TEST(an_item_passes_what_it_fulfils_and_nothing_else)
{
    QR_CHECK(passes(&(struct qr_search_filter){0}));
    QR_CHECK(passes(&(struct qr_search_filter){.item_ids = &folder, .item_id_count = 1}));
    QR_CHECK(passes(&(struct qr_search_filter){.item_ids = &file, .item_id_count = 1}));
    QR_CHECK(!passes(&(struct qr_search_filter){.item_ids = &other, .item_id_count = 1}));
    QR_CHECK(passes(&(struct qr_search_filter){.types = QR_BIT(QR_ITEM_FILE) | QR_BIT(QR_ITEM_NOTE)}));
    QR_CHECK(!passes(&(struct qr_search_filter){.types = QR_BIT(QR_ITEM_NOTE)}));
    QR_CHECK(!passes(&(struct qr_search_filter){.item_ids = &file, .item_id_count = 0}));
    QR_CHECK(!passes(&(struct qr_search_filter){.types = QR_FILTER_NO_TYPE}));
    QR_CHECK(passes(&(struct qr_search_filter){.types = QR_FILTER_NO_TYPE | QR_BIT(QR_ITEM_FILE)}));
    QR_CHECK(passes(&(struct qr_search_filter){.patterns = {{QR_STR("*.md"), false}}, .pattern_count = 1}));
    QR_CHECK(!passes(&(struct qr_search_filter){.patterns = {{QR_STR("*.md"), true}}, .pattern_count = 1}));
    QR_CHECK(passes_attributes("{\"year\":2024}"));
    QR_CHECK(passes_attributes("{\"year\":[2023,2024],\"tag\":\"red\"}"));
    QR_CHECK(!passes_attributes("{\"year\":\"2024\"}"));
    QR_CHECK(!passes_attributes("{\"year\":2024,\"tag\":\"blue\"}"));
    QR_CHECK(!passes_attributes("{\"tag\":[]}"));
    QR_CHECK(!passes_attributes("{\"absent\":null}"));
}
