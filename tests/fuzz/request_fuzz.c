/* Any request to the library: a line with method and target, then the body; a '$' stands for the id of a note. It is answered, never
 * with 500, and the answer is JSON where it says so. Half of them come from a key that may edit a base, half from the local owner,
 * who may not name what lies outside. */
#include "base/buf.h"
#include "base/json.h"

#include <assert.h>
#include <ftw.h>
#include <quire/quire.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    struct quire *quire;
    pid_t owner;
    char dir[256], note_id[64], authorization[128];
} world;

static int remove_entry(const char *path, const struct stat *stat QR_UNUSED, int flag QR_UNUSED,
                        struct FTW *place QR_UNUSED)
{
    return remove(path);
}

static void close_world(void)
{
    if (world.owner == getpid()) {
        quire_close(world.quire);
        nftw(world.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
}

/* The text of a field of the answer, which must be good. */
static void ask_for(const char *method, const char *target, const char *body, const char *list, const char *field,
                    char *ret_text, size_t size)
{
    struct quire_response response;
    const int status = quire_call(world.quire, method, target, body, &response);
    json_t *answer = json_loadb(response.body, response.body_size, 0, NULL);
    const json_t *from = list ? json_array_get(json_object_get(answer, list), 0) : answer;
    const char *text = json_string_value(json_object_get(from, field));
    assert(status / 100 == 2 && text);
    snprintf(ret_text, size, "%s", text);
    json_decref(answer);
    quire_response_done(&response);
}

static void open_world(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(world.dir, sizeof world.dir, "%s/request-fuzz-XXXXXX", tmp ? tmp : "/tmp");
    assert(mkdtemp(world.dir));
    const struct quire_options options = {.data_dir = world.dir};
    struct quire_error error;
    const int status = quire_open(&options, &world.quire, &error);
    assert(status == 0);
    world.owner = getpid();
    atexit(close_world);
    char ignored[64], secret[64];
    ask_for("POST", "/api/v1/bases", "{\"name\":\"b\"}", NULL, "id", ignored, sizeof ignored);
    ask_for("POST", "/api/v1/bases/b/items",
            "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"words\"}],\"process\":\"manual\"}", "items",
            "id", world.note_id, sizeof world.note_id);
    ask_for("POST", "/api/v1/keys", "{\"name\":\"k\",\"roles\":{\"b\":\"editor\"}}", NULL, "secret", secret,
            sizeof secret);
    snprintf(world.authorization, sizeof world.authorization, "Bearer %s", secret);
}

/* With the note's id, and without what ends a C string. */
static void put(struct qr_buf *out, qr_str text, bool is_line)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '$') {
            qr_buf_add_text(out, world.note_id);
        } else if (!is_line || text.ptr[i] != '\0') {
            qr_buf_add_char(out, text.ptr[i]);
        }
    }
    qr_buf_add_char(out, '\0');
    assert(out->failed == QR_CODE_NONE);
}

/* The owner's requests that would fill the disk or leave the machine. */
static bool is_beyond(const char *target, const struct qr_buf *body)
{
    return strstr(target, "/backup") || memmem(body->data, body->len, "://", 3) ||
           memmem(body->data, body->len, "openai", 6);
}

static void check(const struct quire_response *response)
{
    assert(response->status >= 200 && response->status < 600 && response->status != 500);
    if (response->body_size && strcasecmp(response->content_type, "application/json") == 0) {
        json_t *json = json_loadb(response->body, response->body_size, 0, NULL);
        assert(json);
        assert(response->status < 400 || json_object_get(json, "error") || json_object_get(json, "error_code"));
        json_decref(json);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!world.quire) {
        open_world();
    }
    qr_str rest = {(const char *)data, size};
    qr_str line = qr_str_split(&rest, '\n');
    const bool is_owner = qr_str_starts_with(line, QR_STR("!"));
    line = is_owner ? (qr_str){line.ptr + 1, line.len - 1} : line;
    QR_CLEANUP(qr_buf_done) struct qr_buf method = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    put(&method, qr_str_split(&line, ' '), true);
    put(&target, line, true);
    put(&body, rest, false);
    if (is_owner && is_beyond(target.data, &body)) {
        return 0;
    }
    const struct quire_request request = {.method = method.data,
                                          .target = target.data,
                                          .body = body.data,
                                          .body_size = body.len - 1,
                                          .is_local_owner = is_owner,
                                          .authorization = is_owner ? NULL : world.authorization,
                                          .remote_address = is_owner ? NULL : "192.0.2.1"};
    struct quire_response response;
    quire_request_call(world.quire, &request, &response);
    check(&response);
    quire_response_done(&response);
    return 0;
}
