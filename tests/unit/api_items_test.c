/* Items through quire_call: what requests check, what answers hold, and what search may show. */
#include "base/failpoint.h"
#include "base/fs.h"
#include "support/api_fixture.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- adding ---- */

QR_TEST(one_bad_payload_and_nothing_is_created) /* ADD-1 */
{
    struct quire *quire = api_open_base(t);
    static const struct {
        const char *payload;
        int status;
        const char *says;
    } bad[] = {
        {"3", 422, "items[1].type"},
        {"{}", 422, "items[1].type is one of"},
        {"{\"type\":\"book\"}", 422, "items[1].type is one of"},
        {"{\"type\":\"note\",\"name\":\"n\"}", 422, "items[1].content is missing"},
        {"{\"type\":\"note\",\"name\":\"\",\"content\":\"\"}", 422, "items[1].name must have"},
        {"{\"type\":\"note\",\"name\":\"n\",\"content\":\"\",\"path\":\"/a\"}", 400, "items[1].path"},
        {"{\"type\":\"file\"}", 422, "items[1].path is missing"},
        {"{\"type\":\"file\",\"path\":\"a\"}", 422, "items[1].path must be absolute"},
        {"{\"type\":\"file\",\"path\":\"/a\",\"copy\":1}", 422, "items[1].copy"},
        {"{\"type\":\"url\",\"url\":\"ftp://a\"}", 422, "items[1].url"},
        {"{\"type\":\"directory\",\"path\":\"/a\",\"include\":\"*.md\"}", 422, "items[1].include"},
        {"{\"type\":\"directory\",\"path\":\"/a\",\"exclude\":[\"a\",3]}", 422, "items[1].exclude[1]"},
        {"{\"type\":\"file\",\"path\":\"/a\",\"attributes\":[]}", 422, "items[1].attributes"},
    };
    for (size_t i = 0; i < QR_COUNT(bad); i++) {
        char body[512];
        snprintf(body, sizeof body, "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"c\"},%s]}",
                 bad[i].payload);
        api_check(quire, "POST", API_ITEMS, body, bad[i].status, bad[i].says);
    }
    api_check(quire, "POST", API_ITEMS, "{}", 422, "items must be an array");
    api_check(quire, "POST", API_ITEMS, "{\"items\":[],\"process\":\"later\"}", 422, "process is one of auto, manual");
    api_check(quire, "POST", API_ITEMS, "{\"items\":[],\"on_conflict\":\"x\"}", 422, "on_conflict");
    api_check(quire, "POST", API_ITEMS, "{\"items\":[]}", 202, "{\"items\":[]}");
    api_check(quire, "GET", API_ITEMS, NULL, 200, "{\"data\":[],");
    quire_close(quire);
}

QR_TEST(an_item_that_was_added_shows_every_field) /* ADD-2, STATE-1, STATE-2 */
{
    struct quire *quire = api_open_base(t);
    QR_JSON *answer =
        api_call(quire, "POST", API_ITEMS,
                 "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"four\",\"attributes\":{\"a\":1}}]}", 202);
    const json_t *item = json_array_get(json_object_get(answer, "items"), 0);
    static const char *const fields[] = {
        "id",       "base_id",         "parent_id",    "type",        "name",         "source",      "depth",
        "mime",     "size_bytes",      "content_hash", "status",      "index_status", "generation",  "document_status",
        "enabled",  "live_generation", "attributes",   "chunk_count", "counts",       "token_count", "progress",
        "warnings", "error",           "created_at",   "updated_at",  "indexed_at",   "result",
    };
    for (size_t i = 0; i < QR_COUNT(fields); i++) {
        if (!json_object_get(item, fields[i])) {
            QR_FAIL("there is no %s", fields[i]);
        }
    }
    QR_CHECK_INT(QR_COUNT(fields), json_object_size(item));
    QR_CHECK_TEXT("created", api_text(item, "result"));
    QR_CHECK_TEXT("processing", api_text(item, "status"));
    QR_CHECK_TEXT("queued", api_text(item, "index_status"));
    QR_CHECK_TEXT("processing", api_text(item, "document_status"));
    QR_CHECK_TEXT("process-document", api_text(json_object_get(item, "progress"), "stage"));
    QR_CHECK_INT(4, api_number(item, "size_bytes"));
    QR_CHECK_INT(1, api_number(json_object_get(item, "attributes"), "a"));
    quire_close(quire);
}

QR_TEST(what_is_added_by_hand_rests) /* ADD-2 */
{
    struct quire *quire = api_open_base(t);
    api_check(quire, "POST", API_ITEMS,
              "{\"process\":\"manual\",\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"c\"}]}", 202,
              "\"status\":\"idle\",\"index_status\":\"not_indexed\",\"document_status\":\"uploaded\"");
    api_check(quire, "GET", "/api/v1/jobs", NULL, 200, "{\"data\":[],");
    quire_close(quire);
}

QR_TEST(the_same_source_is_added_skipped_or_updated)
{
    struct quire *quire = api_open_base(t);
    static const char file[] = "{\"on_conflict\":\"%s\",\"items\":[{\"type\":\"file\",\"path\":\"/no/where.md\"}]}";
    static const char *const steps[][2] = {
        {"create", "created"}, {"skip", "skipped"}, {"update", "updated"}, {"create", "created"}};
    for (size_t i = 0; i < QR_COUNT(steps); i++) {
        char body[256], result[64];
        snprintf(body, sizeof body, file, steps[i][0]);
        snprintf(result, sizeof result, "\"result\":\"%s\"", steps[i][1]);
        api_check(quire, "POST", API_ITEMS, body, 202, result);
    }
    api_check(quire, "GET", API_ITEMS "?source=/no/where.md", NULL, 200, "\"source\":\"/no/where.md\"");
    api_check(quire, "GET", API_ITEMS "?source=/no/where", NULL, 200, "{\"data\":[],");
    quire_close(quire);
}

#ifdef QUIRE_FAILPOINTS
QR_TEST(items_whose_jobs_could_not_be_queued_are_in_the_error) /* ADD-4 */
{
    struct quire *quire = api_open_base(t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("jobs.enqueue=error@2", &err));
    QR_JSON *answer = api_call(quire, "POST", API_ITEMS,
                               "{\"items\":[{\"type\":\"note\",\"name\":\"a\",\"content\":\"1\"},"
                               "{\"type\":\"note\",\"name\":\"b\",\"content\":\"2\"}]}",
                               503);
    const json_t *error = json_object_get(answer, "error");
    const json_t *items = json_object_get(json_object_get(error, "details"), "items");
    QR_CHECK_TEXT("enqueue_failed", api_text(error, "code"));
    QR_CHECK_INT(2, json_array_size(items));
    QR_CHECK_TEXT("processing", api_text(json_array_get(items, 0), "status"));
    QR_CHECK_TEXT("failed", api_text(json_array_get(items, 1), "status"));
    QR_CHECK_TEXT("enqueue_failed", api_text(json_object_get(json_array_get(items, 1), "error"), "code"));
    quire_close(quire);
}
#endif

/* ---- lists ---- */

QR_TEST(pages_of_a_list_follow_each_other_without_a_gap)
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE], path[512] = API_ITEMS "?limit=2&parent=root";
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        api_add_note(quire, names[i], "text", id);
    }
    size_t seen = 0;
    for (;;) {
        QR_JSON *answer = api_call(quire, "GET", path, NULL, 200);
        const json_t *item;
        size_t i;
        json_array_foreach(json_object_get(answer, "data"), i, item)
        {
            QR_CHECK_TEXT(names[seen++], api_text(item, "name"));
        }
        if (!api_text(answer, "next_cursor")[0]) {
            break;
        }
        snprintf(path, sizeof path, "%s?limit=2&parent=root&cursor=%s", API_ITEMS, api_text(answer, "next_cursor"));
    }
    QR_CHECK_INT(QR_COUNT(names), seen);
    api_check(quire, "GET", API_ITEMS "?q=C", NULL, 200, "\"name\":\"c\"");
    api_check(quire, "GET", API_ITEMS "?type=file", NULL, 200, "{\"data\":[],");
    api_check(quire, "GET", API_ITEMS "?status=failed", NULL, 200, "{\"data\":[],");
    api_check(quire, "GET", API_ITEMS "?status=deleting", NULL, 422, "status is one of");
    api_check(quire, "GET", API_ITEMS "?type=book", NULL, 422, "type is one of");
    api_check(quire, "GET", API_ITEMS "?limit=0", NULL, 422, "limit");
    api_check(quire, "GET", API_ITEMS "?cursor=xyz", NULL, 422, "cursor");
    api_check(quire, "GET", API_ITEMS "?parent=00000000", NULL, 404, "\"not_found\"");
    quire_close(quire);
}

/* ---- selections ---- */

QR_TEST(selections_are_checked_as_a_whole) /* REQ-3, REQ-4, REIDX-1, RETRY-1 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE], body[256];
    api_add_note(quire, "n", "text", id);
    static const char *const actions[] = {API_ITEMS "/reindex", API_ITEMS "/retry", API_ITEMS "/refresh"};
    for (size_t i = 0; i < QR_COUNT(actions); i++) {
        api_check(quire, "POST", actions[i], "{\"ids\":[\"x\"]}", 422, "ids[0] is not an id");
        api_check(quire, "POST", actions[i], "{}", 422, "ids must be an array");
        api_check(quire, "POST", actions[i], "{\"ids\":[]}", 202, "{\"accepted\":[],\"skipped\":[],\"job_id\":null}");
        snprintf(body, sizeof body, "{\"ids\":[\"%s\",\"01900000-0000-7000-8000-000000000000\"]}", id);
        api_check(quire, "POST", actions[i], body, 404, "\"not_found\"");
    }
    snprintf(body, sizeof body, "{\"ids\":[\"%s\",\"%s\"]}", id, id);
    api_check(quire, "POST", API_ITEMS "/reindex", body, 409, "\"details\":{\"counts\":{\"processing\":1}}");
    api_check(quire, "POST", API_ITEMS "/retry", body, 202, "\"reason\":\"already_in_progress\"}]");
    api_check(quire, "POST", API_ITEMS "/refresh", body, 202, "\"reason\":\"no_source\"}]");
    quire_close(quire);
}

QR_TEST(a_delete_does_not_tell_that_another_base_has_an_id) /* REQ-3 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE], body[256];
    api_add_note(quire, "n", "text", id);
    json_decref(api_call(quire, "POST", "/api/v1/bases", "{\"name\":\"other\"}", 201));
    const char *const ids[] = {id, "01900000-0000-7000-8000-000000000000"};
    for (size_t i = 0; i < QR_COUNT(ids); i++) {
        snprintf(body, sizeof body, "{\"ids\":[\"%s\"]}", ids[i]);
        api_check(quire, "POST", "/api/v1/bases/other/items/delete", body, 202,
                  "{\"accepted\":[],\"skipped\":[],\"job_id\":null}");
    }
    api_check(quire, "GET", api_item_path(id, ""), NULL, 200, id);
    quire_close(quire);
}

QR_TEST(what_is_deleted_is_gone_from_every_answer_at_once) /* DEL-4 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE], body[256];
    api_add_note(quire, "n", "quince jam", id);
    api_start_work(quire);
    json_decref(api_wait_for(quire, id, "completed"));
    QR_CHECK_INT(1, api_search(quire, "quince"));
    quire_stop_work(quire, 10000); /* so that nothing is cleaned up */
    snprintf(body, sizeof body, "{\"ids\":[\"%s\",\"01900000-0000-7000-8000-000000000000\"]}", id);
    api_check(quire, "POST", API_ITEMS "/delete", body, 202, "\"job_id\":\"");
    QR_CHECK_INT(0, api_search(quire, "quince"));
    api_check(quire, "GET", API_ITEMS, NULL, 200, "{\"data\":[],");
    static const char *const rests[] = {"", "/content", "/chunks", "/assets", "/events"};
    for (size_t i = 0; i < QR_COUNT(rests); i++) {
        api_check(quire, "GET", api_item_path(id, rests[i]), NULL, 404, "\"not_found\"");
    }
    quire_close(quire);
}

/* ---- one item ---- */

QR_TEST(an_item_is_followed_from_its_text_to_its_chunks) /* CHUNKS-1, STATE-3 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE], other[API_ID_SIZE], prefix[API_ID_SIZE];
    api_add_note(quire, "n", "# Quinces\\n\\nQuinces are sour.", id);
    api_check(quire, "GET", api_item_path(id, "/chunks"), NULL, 409, "\"not_completed\"");
    api_check(quire, "GET", api_item_path(id, "/content"), NULL, 409, "\"not_completed\"");
    api_start_work(quire);
    QR_JSON *item = api_wait_for(quire, id, "completed");
    QR_CHECK_TEXT("success", api_text(item, "index_status"));
    QR_CHECK_TEXT("processed", api_text(item, "document_status"));
    QR_CHECK_INT(1, api_number(item, "live_generation"));
    QR_CHECK_INT(1, api_number(item, "chunk_count"));
    api_check(quire, "GET", api_item_path(id, "/content"), NULL, 200, "{\"text\":\"# Quinces\\n\\nQuinces are sour.");
    api_check(quire, "GET", api_item_path(id, "/chunks"), NULL, 200, "\"heading\":\"Quinces\"");
    api_check(quire, "GET", api_item_path(id, "/chunks"), NULL, 200, ":1:0\",\"ordinal\":0");
    api_check(quire, "GET", api_item_path(id, "/chunks"), NULL, 200, "\"status\":\"indexed\"");
    api_check(quire, "GET", api_item_path(id, "/chunks?cursor=1"), NULL, 200, "{\"data\":[],");
    api_check(quire, "GET", api_item_path(id, "/assets"), NULL, 200, "{\"data\":[],");
    api_check(quire, "GET", api_item_path(id, "/events"), NULL, 200,
              "\"stage\":\"process-document\",\"state\":\"completed\"");
    snprintf(prefix, sizeof prefix, "%.20s", id);
    api_check(quire, "GET", api_item_path(prefix, ""), NULL, 200, id);
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"other\"}", 201, "other");
    snprintf(other, sizeof other, "%s", id);
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/other/items/%s/chunks", other);
    api_check(quire, "GET", path, NULL, 404, "\"not_found\"");
    quire_close(quire);
}

QR_TEST(new_content_is_the_next_generation_and_the_same_content_is_none) /* UPD-1, UPD-2 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE];
    api_add_note(quire, "n", "quince", id);
    api_check(quire, "PUT", api_item_path(id, "/content"), "{\"content\":\"quince\"}", 202, "\"generation\":1");
    api_check(quire, "PUT", api_item_path(id, "/content"), "{\"content\":\"medlar\"}", 202, "\"generation\":2");
    api_check(quire, "PUT", api_item_path(id, "/content"), "{}", 422, "content is missing");
    api_check(quire, "GET", api_item_path(id, "/events"), NULL, 200, "\"reason\":\"update\"");
    api_start_work(quire);
    json_decref(api_wait_for(quire, id, "completed"));
    QR_CHECK_INT(0, api_search(quire, "quince"));
    QR_CHECK_INT(1, api_search(quire, "medlar"));
    quire_close(quire);
}

QR_TEST(the_content_of_a_file_in_a_folder_is_not_changed_by_request) /* UPD-3 */
{
    struct quire *quire = api_open_base(t);
    char folder[API_ID_SIZE], body[300];
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "docs"), 0700, &err));
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "docs/a.txt"), QR_STR("quince\n"), 0600, &err));
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"directory\",\"path\":\"%s\"}]}", qr_test_path(t, "docs"));
    QR_JSON *added = api_call(quire, "POST", API_ITEMS, body, 202);
    api_keep_id(json_array_get(json_object_get(added, "items"), 0), folder);
    api_start_work(quire);
    json_decref(api_wait_for(quire, folder, "completed"));
    snprintf(body, sizeof body, API_ITEMS "?parent=%s", folder);
    QR_JSON *list = api_call(quire, "GET", body, NULL, 200);
    char file[API_ID_SIZE];
    api_keep_id(json_array_get(json_object_get(list, "data"), 0), file);
    api_check(quire, "PUT", api_item_path(file, "/content"), "{\"content\":\"medlar\"}", 422,
              "comes from the folder: change it there");
    api_check(quire, "GET", api_item_path(file, ""), NULL, 200, "\"generation\":1");
    QR_CHECK_INT(1, api_search(quire, "quince"));
    QR_CHECK_INT(0, api_search(quire, "medlar"));
    quire_close(quire);
}

QR_TEST(what_is_not_enabled_is_not_found_but_listed) /* HIDE-1 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE];
    api_add_note(quire, "n", "quince", id);
    api_start_work(quire);
    json_decref(api_wait_for(quire, id, "completed"));
    api_check(quire, "PATCH", api_item_path(id, ""), "{\"enabled\":false}", 200, "\"enabled\":false");
    QR_CHECK_INT(0, api_search(quire, "quince"));
    api_check(quire, "GET", API_ITEMS, NULL, 200, id);
    api_check(quire, "PATCH", api_item_path(id, ""), "{\"enabled\":true,\"name\":\"m\",\"attributes\":{\"k\":\"v\"}}",
              200, "\"attributes\":{\"k\":\"v\"}");
    QR_CHECK_INT(1, api_search(quire, "quince"));
    api_check(quire, "PATCH", api_item_path(id, ""), "{\"enabled\":1}", 422, "enabled must be");
    api_check(quire, "PATCH", api_item_path(id, ""), "{\"name\":\"\"}", 422, "name has");
    api_check(quire, "PATCH", api_item_path(id, ""), "{\"status\":\"completed\"}", 400, "\"unknown_field\"");
    quire_close(quire);
}

QR_TEST(what_is_hidden_takes_no_place_among_the_hits) /* HIDE-1 */
{
    enum { HIDDEN = 30 };
    struct quire *quire = api_open_base(t);
    char ids[HIDDEN][API_ID_SIZE], shown[API_ID_SIZE];
    for (size_t i = 0; i < HIDDEN; i++) {
        api_add_note(quire, "n", "quince", ids[i]);
    }
    api_add_note(quire, "other", "many words stand around this one quince and make it the last that is found", shown);
    api_start_work(quire);
    for (size_t i = 0; i < HIDDEN; i++) {
        json_decref(api_wait_for(quire, ids[i], "completed"));
        json_decref(api_call(quire, "PATCH", api_item_path(ids[i], ""), "{\"enabled\":false}", 200));
    }
    json_decref(api_wait_for(quire, shown, "completed"));
    api_check(quire, "POST", API_BASE "/search", "{\"query\":\"quince\",\"top_k\":1}", 200, shown);
    quire_close(quire);
}

/* ---- original bytes ---- */

static void check_raw(struct quire *quire, const char *path, qr_str expected, const char *type)
{
    struct quire_response response;
    QR_CHECK_INT(200, quire_call(quire, "GET", path, NULL, &response));
    QR_CHECK_TEXT(type, response.content_type);
    QR_CHECK(qr_str_equal(expected, (qr_str){response.body, response.body_size}));
    quire_response_done(&response);
}

QR_TEST(original_bytes_are_those_that_quire_keeps_or_the_file_as_it_is_now) /* REIDX-5 */
{
    struct quire *quire = api_open_base(t);
    qr_err err;
    char body[512], id[API_ID_SIZE], note[API_ID_SIZE];
    const char *path = qr_test_path(t, "a.txt");
    const qr_str bytes = {"one\0two\r\n", 9};
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, bytes, 0600, &err));
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"file\",\"path\":\"%s\"}]}", path);
    QR_JSON *added = api_call(quire, "POST", API_ITEMS, body, 202);
    api_keep_id(json_array_get(json_object_get(added, "items"), 0), id);
    check_raw(quire, api_item_path(id, "/raw"), bytes, "application/octet-stream");
    check_raw(quire, api_item_path(id, "/raw?offset=2&limit=3"), (qr_str){"e\0t", 3}, "application/octet-stream");
    check_raw(quire, api_item_path(id, "/raw?offset=9"), QR_STR(""), "application/octet-stream");
    check_raw(quire, api_item_path(id, "/raw?offset=1000&limit=1"), QR_STR(""), "application/octet-stream");
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, QR_STR("now"), 0600, &err));
    check_raw(quire, api_item_path(id, "/raw"), QR_STR("now"), "application/octet-stream");
    QR_CHECK_RC(QR_OK, qr_fs_remove(qr_io_system(), path, &err));
    api_check(quire, "GET", api_item_path(id, "/raw"), NULL, 404, "source_missing");
    api_add_note(quire, "n", "typed", note);
    check_raw(quire, api_item_path(note, "/raw"), QR_STR("typed"), "text/plain; charset=utf-8");
    check_raw(quire, api_item_path(note, "/raw?offset=1&limit=2"), QR_STR("yp"), "text/plain; charset=utf-8");
    api_check(quire, "GET", api_item_path(id, "/raw?limit=0"), NULL, 422, "limit");
    api_check(quire, "GET", api_item_path(id, "/raw?limit=4194305"), NULL, 422, "4194304");
    api_check(quire, "GET", api_item_path(id, "/raw?offset=-1"), NULL, 422, "offset");
    api_check(quire, "GET", api_item_path("00000000-0000-7000-8000-000000000000", "/raw"), NULL, 404, "not_found");
    quire_close(quire);
}

QR_TEST(what_is_too_long_for_one_answer_is_taken_in_parts)
{
    enum { SIZE = (4 << 20) + 3 };
    struct quire *quire = api_open_base(t);
    char body[512], id[API_ID_SIZE];
    const char *path = qr_test_path(t, "long.txt");
    QR_CHECK(truncate(path, 0) != 0 && creat(path, 0600) >= 0 && truncate(path, SIZE) == 0);
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"file\",\"path\":\"%s\"}]}", path);
    QR_JSON *added = api_call(quire, "POST", API_ITEMS, body, 202);
    api_keep_id(json_array_get(json_object_get(added, "items"), 0), id);
    api_check(quire, "GET", api_item_path(id, "/raw"), NULL, 413, "4194307 bytes");
    check_raw(quire, api_item_path(id, "/raw?offset=4194304"), (qr_str){"\0\0\0", 3}, "application/octet-stream");
    check_raw(quire, api_item_path(id, "/raw?offset=4194303&limit=2"), (qr_str){"\0\0", 2}, "application/octet-stream");
    quire_close(quire);
}

/* All of it is zeros. */
static int64_t read_pieces(struct quire *quire, const char *target, const char *range, int status, long *ret_end)
{
    struct quire_response response;
    const struct quire_request request = {
        .method = "GET", .target = target, .range = range, .is_local_owner = 1, .takes_pieces = 1};
    static char bytes[100000];
    int64_t size = 0;
    QR_CHECK_INT(status, quire_request_call(quire, &request, &response));
    QR_CHECK(response.pieces && response.body_size == 0 && quire_response_header(&response, "ETag"));
    while ((*ret_end = quire_pieces_read(response.pieces, bytes, sizeof bytes)) > 0) {
        QR_CHECK(bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)*ret_end - 1) == 0);
        size += *ret_end;
    }
    QR_CHECK(*ret_end != QUIRE_PIECES_END || size == quire_pieces_size(response.pieces));
    quire_response_done(&response);
    return size;
}

QR_TEST(what_is_too_long_for_one_answer_comes_in_pieces_to_whom_takes_them) /* HTTP-9 */
{
    enum { SIZE = (9 << 20) + 3 };
    struct quire *quire = api_open_base(t);
    char body[512], id[API_ID_SIZE];
    const char *path = qr_test_path(t, "long.txt");
    long end;
    QR_CHECK(creat(path, 0600) >= 0 && truncate(path, SIZE) == 0);
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"file\",\"path\":\"%s\"}]}", path);
    QR_JSON *added = api_call(quire, "POST", API_ITEMS, body, 202);
    api_keep_id(json_array_get(json_object_get(added, "items"), 0), id);
    QR_CHECK_INT(SIZE, read_pieces(quire, api_item_path(id, "/raw"), NULL, 200, &end));
    QR_CHECK_INT(QUIRE_PIECES_END, end);
    QR_CHECK_INT(SIZE - 5, read_pieces(quire, api_item_path(id, "/raw?offset=5"), NULL, 200, &end));
    QR_CHECK_INT(6 << 20, read_pieces(quire, api_item_path(id, "/raw"), "bytes=1-6291456", 206, &end));
    QR_CHECK_INT(QUIRE_PIECES_END, end);
    quire_close(quire);
}

QR_TEST(file_that_changes_while_it_is_sent_is_broken_off) /* HTTP-9 */
{
    struct quire *quire = api_open_base(t);
    char body[512], id[API_ID_SIZE], bytes[100];
    const char *path = qr_test_path(t, "long.txt");
    struct quire_response response;
    long got;
    QR_CHECK(creat(path, 0600) >= 0 && truncate(path, 5 << 20) == 0);
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"file\",\"path\":\"%s\"}]}", path);
    QR_JSON *added = api_call(quire, "POST", API_ITEMS, body, 202);
    api_keep_id(json_array_get(json_object_get(added, "items"), 0), id);
    const struct quire_request request = {
        .method = "GET", .target = api_item_path(id, "/raw"), .is_local_owner = 1, .takes_pieces = 1};
    QR_CHECK_INT(200, quire_request_call(quire, &request, &response));
    QR_CHECK(quire_pieces_read(response.pieces, bytes, sizeof bytes) == sizeof bytes);
    QR_CHECK(truncate(path, 6 << 20) == 0);
    while ((got = quire_pieces_read(response.pieces, bytes, sizeof bytes)) > 0) {
    }
    QR_CHECK_INT(QUIRE_PIECES_BROKEN, got);
    quire_response_done(&response);
    quire_close(quire);
}

QR_TEST(a_folder_has_no_bytes_and_lists_can_be_sorted)
{
    struct quire *quire = api_open_base(t);
    char body[512], id[API_ID_SIZE];
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"directory\",\"path\":\"%s\"}]}", qr_test_path(t, ""));
    QR_JSON *added = api_call(quire, "POST", API_ITEMS, body, 202);
    api_keep_id(json_array_get(json_object_get(added, "items"), 0), id);
    api_check(quire, "GET", api_item_path(id, "/raw"), NULL, 404, "holds other items");
    api_add_note(quire, "b", "22", id);
    api_add_note(quire, "a", "1", id);
    QR_JSON *first = api_call(quire, "GET", API_ITEMS "?type=note&sort=-size&limit=1", NULL, 200);
    QR_CHECK_TEXT("b", api_text(json_array_get(json_object_get(first, "data"), 0), "name"));
    char path[512];
    snprintf(path, sizeof path, API_ITEMS "?type=note&sort=-size&cursor=%s", api_text(first, "next_cursor"));
    QR_JSON *second = api_call(quire, "GET", path, NULL, 200);
    QR_CHECK_TEXT("a", api_text(json_array_get(json_object_get(second, "data"), 0), "name"));
    snprintf(path, sizeof path, API_ITEMS "?type=note&sort=name&cursor=%s", api_text(first, "next_cursor"));
    api_check(quire, "GET", path, NULL, 422, "cursor is not one");
    api_check(quire, "GET", api_item_path(id, "/totals"), NULL, 200, "\"total\":1,");
    api_check(quire, "GET", API_ITEMS "?sort=colour", NULL, 422, "sort is one of");
    api_check(quire, "GET", API_ITEMS "?sort=-", NULL, 422, "sort is one of");
    quire_close(quire);
}

QR_TEST(a_hit_of_a_page_is_opened_at_its_words)
{
    struct quire *quire = api_open_base(t);
    qr_err err;
    char body[512];
    static const char page[] =
        "<html><body><main><h1>Fruit</h1><p>Apples are red.</p>\n\n"
        "<ul><li>and in autumn the <b>quince</b>, at last, is ripe</li></ul></main></body></html>";
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "a page.html"), qr_str_of(page), 0600, &err));
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"file\",\"path\":\"%s\"}]}", qr_test_path(t, "a page.html"));
    QR_JSON *added = api_call(quire, "POST", API_ITEMS, body, 202);
    api_start_work(quire);
    json_decref(api_wait_for(quire, api_text(json_array_get(json_object_get(added, "items"), 0), "id"), "completed"));
    QR_JSON *answer = api_call(quire, "POST", API_BASE "/search", "{\"query\":\"the quince\"}", 200);
    const json_t *hit = json_array_get(json_object_get(answer, "hits"), 0);
    QR_CHECK_HAS("/a%20page.html#:~:text=in%20autumn%20the%20quince%2C%20at%20last%2C%20is%20ripe",
                 api_text(hit, "uri"));
    QR_CHECK_INT(1, json_array_size(json_object_get(hit, "highlights"))); /* not "the" */
    quire_close(quire);
}

QR_TEST(search_checks_its_request_and_says_where_hits_are)
{
    struct quire *quire = api_open_base(t);
    qr_err err;
    char body[512];
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "docs"), 0700, &err));
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "docs/a b.md"), QR_STR("one\n\n# Two\n\nquince\n"),
                                     0600, &err));
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"directory\",\"path\":\"%s\"}]}", qr_test_path(t, "docs"));
    QR_JSON *added = api_call(quire, "POST", API_ITEMS, body, 202);
    api_start_work(quire);
    json_decref(api_wait_for(quire, api_text(json_array_get(json_object_get(added, "items"), 0), "id"), "completed"));
    QR_JSON *answer =
        api_call(quire, "POST", API_BASE "/search", "{\"query\":\"quince\",\"mode\":\"text\",\"top_k\":1}", 200);
    const json_t *hit = json_array_get(json_object_get(answer, "hits"), 0);
    QR_CHECK_TEXT("text", api_text(answer, "mode"));
    QR_CHECK_INT(1, api_number(hit, "rank"));
    QR_CHECK_TEXT("a b.md", api_text(hit, "name"));
    QR_CHECK_HAS("file:///", api_text(hit, "uri"));
    QR_CHECK_HAS("/docs/a%20b.md#L", api_text(hit, "uri"));
    QR_CHECK_HAS("quince", api_text(hit, "text"));
    QR_CHECK_HAS(api_text(hit, "item_id"), api_text(hit, "chunk_id"));
    api_check(quire, "POST", API_BASE "/search", "{}", 422, "query has");
    api_check(quire, "POST", API_BASE "/search", "{\"query\":\"a\",\"top_k\":0}", 422, "top_k");
    api_check(quire, "POST", API_BASE "/search", "{\"query\":\"a\",\"top_k\":101}", 422, "top_k");
    api_check(quire, "POST", API_BASE "/search", "{\"query\":\"a\",\"mode\":\"magic\"}", 422, "mode");
    quire_close(quire);
}

QR_TEST(cancelling_a_stage_job_fails_its_item_and_its_retry_is_the_items) /* CANCEL-1, CANCEL-2 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE], path[128];
    api_add_note(quire, "n", "text", id);
    snprintf(path, sizeof path, "/api/v1/jobs?item=%s", id);
    QR_JSON *jobs = api_call(quire, "GET", path, NULL, 200);
    const json_t *job = json_array_get(json_object_get(jobs, "data"), 0);
    snprintf(path, sizeof path, "/api/v1/jobs/%s/retry", api_text(job, "id"));
    api_check(quire, "POST", path, NULL, 409, "\"not_terminal\"");
    snprintf(path, sizeof path, "/api/v1/jobs/%s/cancel", api_text(job, "id"));
    api_check(quire, "POST", path, NULL, 200, "\"state\":\"cancelled\"");
    api_check(quire, "POST", path, NULL, 409, "\"not_open\"");
    api_check(quire, "GET", api_item_path(id, ""), NULL, 200, "\"code\":\"cancelled\"");
    snprintf(path, sizeof path, "/api/v1/jobs/%s/retry", api_text(job, "id"));
    api_check(quire, "POST", path, NULL, 202,
              "\"type\":\"process-document\",\"queue\":\"convert\",\"state\":\"queued\"");
    api_check(quire, "GET", api_item_path(id, ""), NULL, 200, "\"generation\":2");
    quire_close(quire);
}
