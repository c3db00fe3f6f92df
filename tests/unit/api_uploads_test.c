/* Files that come with a request, through the public interface: on both databases, in pieces, and whatever fails. */
#include "api/instance.h"
#include "base/buf.h"
#include "support/api_fixture.h"
#include "support/fault.h"
#include "support/postgres.h"

#include <dirent.h>
#include <unistd.h>

enum { LARGE_BYTES = 400 << 10 }; /* more than a row takes */

static const char form_type[] = "multipart/form-data; boundary=xyz";

static void add_part(struct qr_buf *form, const char *name, char filling, size_t size_bytes)
{
    qr_buf_printf(form, "--xyz\r\nContent-Disposition: form-data; name=\"f\"; filename=\"%s\"\r\n\r\n", name);
    for (size_t i = 0; i < size_bytes; i++) {
        qr_buf_add_char(form, filling);
    }
    qr_buf_add_text(form, "\r\n");
}

static struct quire_request request_of(const struct qr_buf *form)
{
    return (struct quire_request){.method = "POST",
                                  .target = API_BASE "/uploads",
                                  .body = form->data,
                                  .body_size = form->len,
                                  .content_type = form_type,
                                  .is_local_owner = 1};
}

static void make_form(struct qr_buf *form)
{
    qr_buf_init(form, 0);
    add_part(form, "docs/small.txt", 'a', 5);
    add_part(form, "docs/large.txt", 'b', LARGE_BYTES);
    qr_buf_add_text(form, "--xyz--\r\n");
    QR_CHECK_INT(QR_CODE_NONE, form->failed);
}

/* Files in the data folder that uploads may have left: temporary ones, marks, and artifacts. */
static int count_files(const char *folder, bool is_inside)
{
    DIR *dir = opendir(folder);
    int count = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            count += count_files(path, is_inside || strcmp(entry->d_name, "artifacts") == 0);
        } else if (entry->d_type == DT_REG) {
            count += is_inside || strncmp(entry->d_name, ".quire-", 7) == 0;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

static void check_upload(struct quire *quire)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf form;
    make_form(&form);
    const struct quire_request request = request_of(&form);
    struct quire_response response;
    char id[API_ID_SIZE];
    QR_CHECK_INT(202, quire_request_call(quire, &request, &response));
    json_t *answer = NULL;
    qr_err err;
    QR_CHECK_RC(QR_OK,
                qr_json_parse((qr_str){response.body, response.body_size}, &QR_JSON_REQUEST_LIMITS, &answer, &err));
    quire_response_done(&response);
    const json_t *items = json_object_get(answer, "items");
    QR_CHECK_INT(3, json_array_size(items));
    QR_CHECK_TEXT("directory", api_text(json_array_get(items, 0), "type"));
    QR_CHECK_TEXT(api_text(json_array_get(items, 0), "id"), api_text(json_array_get(items, 2), "parent_id"));
    QR_CHECK_INT(LARGE_BYTES, api_number(json_array_get(items, 2), "size_bytes"));
    api_keep_id(json_array_get(items, 2), id);
    QR_CHECK_INT(200, quire_call(quire, "GET", api_item_path(id, "/raw"), NULL, &response));
    QR_CHECK_INT(LARGE_BYTES, response.body_size);
    QR_CHECK(response.body[0] == 'b' && quire_response_header(&response, "etag"));
    quire_response_done(&response);
    json_decref(answer);
}

QR_TEST(files_that_come_with_a_request_are_items) /* HTTP-4 */
{
    struct quire *quire = api_open_base(t);
    check_upload(quire);
    QR_CHECK_INT(1, count_files(qr_test_path(t, "data"), false));
    quire_close(quire);
}

QR_TEST(files_that_come_with_a_request_are_items_on_postgresql_too) /* HTTP-4 */
{
    if (!qr_pg_installed()) {
        qr_test_skip("PostgreSQL is not installed");
    }
    struct qr_pg pg = {0};
    qr_pg_start(&pg, t->dir);
    const struct quire_setting settings[] = {{"database.url", qr_pg_url(&pg, "quire")}};
    const struct quire_options options = {
        .data_dir = qr_test_path(t, "data"), .settings = settings, .setting_count = 1};
    struct quire_error error;
    struct quire *quire;
    QR_CHECK_INT(0, quire_open(&options, &quire, &error));
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201, "\"status\":\"ready\"");
    check_upload(quire);
    quire_close(quire);
    qr_pg_remove(&pg);
}

QR_TEST(stream_that_is_cancelled_leaves_nothing) /* HTTP-4 */
{
    struct quire *quire = api_open_base(t);
    QR_CLEANUP(qr_buf_done) struct qr_buf form;
    make_form(&form);
    const struct quire_request request = request_of(&form);
    struct quire_response response;
    struct quire_stream *stream;
    QR_CHECK(quire_stream_is_for(&request));
    for (size_t len = 0; len <= form.len; len += form.len / 7) {
        QR_CHECK_INT(0, quire_stream_open(quire, &request, &stream, &response));
        QR_CHECK_INT(0, quire_stream_write(stream, form.data, len));
        quire_stream_cancel(stream);
        QR_CHECK_INT(0, count_files(qr_test_path(t, "data"), false));
    }
    struct quire_request lost = request;
    lost.target = "/api/v1/bases/missing/uploads";
    QR_CHECK_INT(404, quire_request_call(quire, &lost, &response));
    quire_response_done(&response);
    QR_CHECK_INT(0, count_files(qr_test_path(t, "data"), false));
    api_check(quire, "GET", API_ITEMS, NULL, 200, "\"data\":[]");
    quire_close(quire);
}

static qr_rc fail_base(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE base SET status = 2", QR_NO_VALS, NULL, err);
}

QR_TEST(upload_that_is_refused_when_it_is_written_leaves_nothing) /* HTTP-4 */
{
    struct quire *quire = api_open_base(t);
    QR_CLEANUP(qr_buf_done) struct qr_buf form;
    qr_err err;
    make_form(&form);
    const struct quire_request request = request_of(&form);
    struct quire_response response;
    QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_DURABLE, fail_base, NULL, &err));
    QR_CHECK_INT(409, quire_request_call(quire, &request, &response));
    quire_response_done(&response);
    QR_CHECK_INT(0, count_files(qr_test_path(t, "data"), false));
    quire_close(quire);
}

/* Whatever fails, the answer says so; sent again it is done, once, or it is not known how far it came. */
static void upload_under_faults(struct quire *quire, const struct qr_buf *form, const char *key)
{
    struct quire_request request = request_of(form);
    struct quire_response response;
    request.idempotency_key = key;
    const int status = quire_request_call(quire, &request, &response);
    if (status != 202 && !(status == 503 && qr_fault_fired())) {
        QR_FAIL("an upload answers %d: %s", status, response.body);
    }
    quire_response_done(&response);
    qr_fault_disarm();
    const int again = quire_request_call(quire, &request, &response);
    if (again != 202 && !(again == 409 && qr_fault_fired())) {
        QR_FAIL("after %d the upload answers %d: %s", status, again, response.body);
    }
    quire_response_done(&response);
}

QR_TEST_WITH_TIMEOUT(upload_survives_every_failure_of_memory, 300) /* HTTP-4, HTTP-5 */
{
    qr_fault_memory_install();
    struct quire *quire = api_open_base(t);
    QR_CLEANUP(qr_buf_done) struct qr_buf form;
    make_form(&form);
    uint64_t n = 1;
    bool has_failed = true;
    while (has_failed) {
        char key[32];
        qr_test_set_context("failing allocation no. %llu", (unsigned long long)n);
        snprintf(key, sizeof key, "key-%llu", (unsigned long long)n);
        qr_fault_arm(QR_FAULT_MEMORY, n);
        upload_under_faults(quire, &form, key);
        has_failed = qr_fault_fired();
        n += 1 + n / 50;
    }
    qr_test_set_context("%s", "");
    quire_close(quire);
}
