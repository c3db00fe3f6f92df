/* Idempotency (api/once.h; K1 and K2 in store/idempotency.h). */
#include "api/once.h"

#include "api/upload.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "store/idempotency.h"

enum { KEY_BYTES_MAX = 255 };

struct once {
    struct quire *quire;
    unsigned char key[QR_HASH_256_BYTES], request[QR_HASH_BYTES];
    struct qr_arena *arena;
    enum qr_idempotency_state state;
    struct qr_idempotency_answer answer;
    int status; /* of the answer that is to be remembered */
    qr_str body;
};

/* ---- which request it is ---- */

bool qr_once_is_for(const struct qr_route *route)
{
    return strcmp(route->method, "POST") == 0 && route->fn != qr_route_keys_add && route->fn != qr_route_keys_rotate;
}

static qr_rc check_key(qr_str key, qr_err *err)
{
    bool is_good = key.len >= 1 && key.len <= KEY_BYTES_MAX;
    for (size_t i = 0; i < key.len; i++) {
        is_good = is_good && key.ptr[i] > ' ' && key.ptr[i] < 0x7f;
    }
    return is_good ? QR_OK
                   : qr_fail(err, QR_CODE_BAD_REQUEST,
                             "an Idempotency-Key has 1 to %d characters of ASCII, and no spaces", (int)KEY_BYTES_MAX);
}

/* Of files their names and hashes: the boundary between them is another one each time they are sent. */
static qr_rc hash_request(const struct qr_request *request, unsigned char *ret_hash, qr_err *err)
{
    const struct quire_request *from = request->from;
    struct qr_hash_stream *hash = qr_hash_stream_create();
    if (!hash) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
    }
    qr_hash_stream_add(hash, (qr_str){from->target, strlen(from->target) + 1});
    if (request->upload) {
        for (size_t i = 0; i < request->upload->count; i++) {
            const struct qr_upload_file *file = &request->upload->files[i];
            qr_hash_stream_add(hash, (qr_str){file->name, strlen(file->name) + 1});
            qr_hash_stream_add(hash, (qr_str){(const char *)file->bytes.hash, sizeof file->bytes.hash});
        }
    } else {
        qr_hash_stream_add(hash, (qr_str){from->body, from->body ? from->body_size : 0});
    }
    qr_hash_stream_result(hash, ret_hash);
    qr_hash_stream_free(hash);
    return QR_OK;
}

static qr_rc identify(const struct qr_request *request, struct once *once, qr_err *err)
{
    const qr_str key = qr_str_of(request->from->idempotency_key);
    char caller[QR_UUID_TEXT_SIZE];
    QR_TRY(check_key(key, err));
    qr_uuid_format(request->caller.key_id, caller); /* two callers may choose the same */
    qr_hash_256(qr_str_of(caller), key, once->key);
    return hash_request(request, once->request, err);
}

/* ---- the row ---- */

static qr_rc begin_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct once *once = arg;
    qr_arena_reset(once->arena);
    return qr_idempotency_begin(tx, once->key, once->request, qr_clock_wall_ms(once->quire->clock), once->arena,
                                &once->state, &once->answer, err);
}

static qr_rc end_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct once *once = arg;
    return qr_idempotency_end(tx, once->key, once->status, once->body, err);
}

static qr_rc forget_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct once *once = arg;
    return qr_idempotency_forget(tx, once->key, err);
}

/* ---- the call ---- */

static qr_rc answer_again(const struct once *once, struct qr_reply *reply, qr_err *err)
{
    const struct qr_json_limits limits = {.size_bytes_max = SIZE_MAX, .depth_max = 64}; /* our own answer */
    json_t *body = NULL;
    QR_TRY(qr_json_parse(qr_str_of(once->answer.body), &limits, &body, err));
    qr_reply_header(reply, "Idempotency-Replayed", "true");
    return qr_reply_with(reply, once->answer.status, body, err);
}

/* It is done: where this fails the answer is the answer all the same, and the key stays pending. */
static void remember(struct once *once, const struct qr_reply *reply)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    if (qr_json_write(reply->body, &text, NULL) == QR_OK) {
        once->status = reply->status;
        once->body = qr_buf_str(&text);
        (void)qr_db_write(once->quire->db, QR_DURABLE, end_in_tx, once, NULL);
    }
}

static qr_rc call_new(const struct qr_request *request, const struct qr_route *route, struct once *once,
                      struct qr_reply *reply, qr_err *err)
{
    const qr_rc rc = route->fn(request, reply, err);
    (void)QR_FAILPOINT_RC("once.done", NULL);
    if (rc == QR_OK && reply->body && reply->status < 300) {
        remember(once, reply);
    } else {
        (void)qr_db_write(once->quire->db, QR_DURABLE, forget_in_tx, once, NULL); /* K2 */
    }
    return rc;
}

qr_rc qr_once_call(const struct qr_request *request, const struct qr_route *route, struct qr_reply *reply, qr_err *err)
{
    if (!request->from->idempotency_key || !qr_once_is_for(route)) {
        return route->fn(request, reply, err);
    }
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct once once = {.quire = request->quire, .arena = &arena};
    QR_TRY(identify(request, &once, err));
    QR_TRY(qr_db_write(request->quire->db, QR_DURABLE, begin_in_tx, &once, err));
    switch (once.state) {
    case QR_IDEMPOTENCY_NEW:
        return call_new(request, route, &once, reply, err);
    case QR_IDEMPOTENCY_DONE:
        return answer_again(&once, reply, err);
    case QR_IDEMPOTENCY_OTHER:
        return qr_fail(err, QR_CODE_IDEMPOTENCY_MISMATCH, "this Idempotency-Key came with another request");
    case QR_IDEMPOTENCY_PENDING:
        break;
    }
    return qr_fail(err, QR_CODE_IDEMPOTENCY_PENDING, "the first request with this Idempotency-Key has no answer yet");
}
