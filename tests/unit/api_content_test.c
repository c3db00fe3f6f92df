/* GET …/content in parts: together they are the whole, and none cuts a character. */
#include "support/api_fixture.h"

static const char text[] = "zwölf Boote, 東京湾 🙂 und das Ende";

static void open_note(struct qr_test *t, struct quire **ret_quire, char ret_id[static API_ID_SIZE])
{
    *ret_quire = api_open_base(t);
    api_start_work(*ret_quire);
    api_add_note(*ret_quire, "n", text, ret_id);
    json_decref(api_wait_for(*ret_quire, ret_id, "completed"));
}

QR_TEST(parts_of_a_text_put_together_are_the_whole)
{
    struct quire *quire;
    char id[API_ID_SIZE];
    open_note(t, &quire, id);
    for (int limit = 8; limit < 20; limit++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf whole = {0};
        while (whole.len < sizeof text - 1) {
            char rest[64];
            snprintf(rest, sizeof rest, "/content?offset=%zu&limit=%d", whole.len, limit);
            QR_JSON *part = api_call(quire, "GET", api_item_path(id, rest), NULL, 200);
            QR_CHECK_INT(whole.len, api_number(part, "offset"));
            QR_CHECK_INT(sizeof text - 1, api_number(part, "size_bytes"));
            QR_CHECK(api_text(part, "text")[0] && strlen(api_text(part, "text")) <= (size_t)limit);
            qr_buf_add_text(&whole, api_text(part, "text"));
        }
        QR_CHECK_STR(text, qr_buf_str(&whole));
    }
    quire_close(quire);
}

QR_TEST(a_part_that_begins_inside_a_character_says_where_it_really_begins)
{
    struct quire *quire;
    char id[API_ID_SIZE];
    open_note(t, &quire, id);
    QR_JSON *part = api_call(quire, "GET", api_item_path(id, "/content?offset=3&limit=8"), NULL, 200); /* in the ö */
    QR_CHECK_INT(4, api_number(part, "offset"));
    QR_CHECK_TEXT("lf Boot", api_text(part, "text"));
    QR_JSON *end = api_call(quire, "GET", api_item_path(id, "/content?offset=100000"), NULL, 200);
    QR_CHECK_TEXT("", api_text(end, "text"));
    QR_JSON *whole = api_call(quire, "GET", api_item_path(id, "/content"), NULL, 200);
    QR_CHECK_TEXT(text, api_text(whole, "text"));
    QR_CHECK_INT(0, api_number(whole, "offset"));
    quire_close(quire);
}

QR_TEST(a_part_that_there_cannot_be_is_refused)
{
    struct quire *quire;
    char id[API_ID_SIZE];
    open_note(t, &quire, id);
    static const char *const wrong[] = {"offset=-1", "offset=x", "limit=0", "limit=7", "limit=4194305", "offset=9e9"};
    for (size_t i = 0; i < QR_COUNT(wrong); i++) {
        char rest[64];
        snprintf(rest, sizeof rest, "/content?%s", wrong[i]);
        api_check(quire, "GET", api_item_path(id, rest), NULL, 422, "invalid_value");
    }
    quire_close(quire);
}
