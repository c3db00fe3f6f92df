/* From libmicrohttpd's view of a request to the library's, and back (http/exchange.h). */
#include "http/exchange.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/secret.h"
#include "base/thread.h"
#include "http/gzip.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* ---- what all share ---- */

void qr_front_init(struct qr_front *front)
{
    pthread_mutex_init(&front->lock, NULL);
    qr_cond_init(&front->changed);
    qr_feeds_init(&front->feeds);
    front->boot = qr_rand_u64(qr_rand_system());
}

void qr_front_done(struct qr_front *front)
{
    qr_feeds_done(&front->feeds);
    pthread_cond_destroy(&front->changed);
    pthread_mutex_destroy(&front->lock);
}

static void refuse_more(struct qr_front *front)
{
    QR_LOCKED(&front->lock);
    front->is_stopping = true;
}

/* A call cannot be broken off, and waits for nothing that we hold. What it answers with may have no end, and ends at once. */
void qr_front_drain(struct qr_front *front, int64_t last_answers_ms)
{
    refuse_more(front);
    qr_feeds_end(&front->feeds);
    QR_LOCKED(&front->lock);
    while (front->calling) {
        pthread_cond_wait(&front->changed, &front->lock);
    }
    const int64_t deadline_us = qr_thread_mono_us() + last_answers_ms * 1000;
    while (front->answering && qr_cond_wait_until_us(&front->changed, &front->lock, deadline_us)) {
    }
}

/* ---- life ---- */

struct qr_exchange *qr_exchange_create(struct qr_front *front, const char *target, struct MHD_Connection *connection)
{
    struct qr_exchange *exchange = qr_alloc_zero(sizeof *exchange);
    if (!exchange) {
        return NULL;
    }
    exchange->front = front;
    exchange->connection = connection;
    exchange->body_bytes_max = front->body_bytes_max;
    exchange->began_us = qr_thread_mono_us();
    qr_buf_init(&exchange->body, exchange->body_bytes_max);
    exchange->target = qr_copy_string(target);
    exchange->target_end = (uintptr_t)(target + strlen(target));
    return exchange;
}

static void log_exchange(const struct qr_exchange *exchange)
{
    qr_str query = qr_str_of(exchange->target); /* which may hold what was searched for */
    const qr_str path = qr_str_split(&query, '?');
    if (exchange->front->log && exchange->request.method) {
        qr_log(exchange->front->log, QR_LOG_INFO, "request", qr_field_text("id", exchange->id),
               qr_field_text("method", exchange->request.method), qr_field_str("path", path),
               qr_field_i64("status", exchange->status), qr_field_i64("bytes", (int64_t)exchange->sent_bytes),
               qr_field_i64("took_us", qr_thread_mono_us() - exchange->began_us),
               qr_field_text("from", exchange->request.remote_address ? exchange->request.remote_address : "socket"));
    }
}

static void drop_body(struct qr_exchange *exchange)
{
    if (exchange->body.len) {
        QR_LOCKED(&exchange->front->lock);
        exchange->front->buffered_bytes -= exchange->body.len;
    }
    qr_buf_done(&exchange->body);
}

/* The same, but the memory is kept for the next piece. */
static void forget_body(struct qr_exchange *exchange)
{
    QR_LOCKED(&exchange->front->lock);
    exchange->front->buffered_bytes -= exchange->body.len;
    qr_buf_clear(&exchange->body);
}

static void end_answer(struct qr_exchange *exchange)
{
    struct qr_front *front = exchange->front;
    if (exchange->is_counted) {
        exchange->is_counted = false;
        QR_LOCKED(&front->lock);
        front->answering--;
        pthread_cond_signal(&front->changed);
    }
}

void qr_exchange_free(struct qr_exchange *exchange)
{
    exchange->sent_bytes += exchange->feed ? qr_feed_sent_bytes(exchange->feed) : 0;
    if (exchange->target) {
        qr_secret_hide(exchange->target); /* KEY-9: one that was sent in the wrong place */
    }
    log_exchange(exchange);
    drop_body(exchange);
    quire_stream_cancel(exchange->stream);
    if (exchange->has_response) {
        quire_response_done(&exchange->response);
    }
    end_answer(exchange);
    qr_feed_release(exchange->feed);
    qr_free(exchange->target);
    qr_free(exchange);
}

/* ---- the request ---- */

struct reading {
    struct qr_exchange *exchange;
    bool is_too_many, has_nul;
};

static enum MHD_Result read_header(void *arg, enum MHD_ValueKind kind QR_UNUSED, const char *name, size_t name_len,
                                   const char *value, size_t value_len)
{
    struct reading *reading = arg;
    struct quire_request *request = &reading->exchange->request;
    if (request->header_count == QR_EXCHANGE_HEADERS_MAX) {
        reading->is_too_many = true;
        return MHD_NO;
    }
    value = value ? value : "";
    /* Of a value libmicrohttpd 0.9.75 hands out what stands before a NUL, as if that were all, and takes it so itself where it
     * finds the body's length: so it still has one meaning, and one that the client could have written plainly. Where
     * the whole of it is handed out it is refused. */
    reading->has_nul = reading->has_nul || strlen(name) != name_len || strlen(value) != value_len;
    reading->exchange->headers[request->header_count++] = (struct quire_header){name, value};
    return MHD_YES;
}

/* The client's own where it can stand in a line, so that it finds it again. */
static void choose_id(struct qr_exchange *exchange)
{
    const char *given = quire_request_header(&exchange->request, "X-Request-Id");
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (given && *given && strlen(given) < sizeof exchange->id && strspn(given, allowed) == strlen(given)) {
        snprintf(exchange->id, sizeof exchange->id, "%s", given);
    } else {
        snprintf(exchange->id, sizeof exchange->id, "%016" PRIx64 "-%llu", exchange->front->boot,
                 atomic_fetch_add(&exchange->front->sequence, 1));
    }
}

static void fill_request(struct qr_exchange *exchange, const char *method, const char *remote_address)
{
    struct quire_request *request = &exchange->request;
    exchange->is_head = strcmp(method, "HEAD") == 0;
    request->method = exchange->is_head ? "GET" : method; /* the body is left out when it is sent */
    request->target = exchange->target;
    request->headers = exchange->headers;
    request->is_local_owner = exchange->front->is_local_owner;
    request->remote_address = remote_address;
    request->request_id = exchange->id;
    request->content_type = quire_request_header(request, "Content-Type");
    request->authorization = quire_request_header(request, "Authorization");
    request->idempotency_key = quire_request_header(request, "Idempotency-Key");
    request->if_match = quire_request_header(request, "If-Match");
    request->if_none_match = quire_request_header(request, "If-None-Match");
    request->range = quire_request_header(request, "Range");
    request->if_range = quire_request_header(request, "If-Range");
    request->takes_pieces = 1;
    exchange->wants_gzip = qr_gzip_is_accepted(quire_request_header(request, "Accept-Encoding"));
}

static qr_rc fail_size(const struct qr_exchange *exchange, qr_err *err)
{
    const size_t max = exchange->body_bytes_max;
    const bool is_whole = max && max % (1 << 20) == 0;
    return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "the body has more than %zu %s, which is the most that is taken",
                   is_whole ? max >> 20 : max, is_whole ? "MB" : "bytes");
}

static qr_rc check_length(const struct qr_exchange *exchange, qr_err *err)
{
    const char *length = quire_request_header(&exchange->request, "Content-Length");
    int64_t value = 0;
    if (length && (!qr_str_to_i64(qr_str_of(length), &value) || (uint64_t)value > exchange->body_bytes_max)) {
        return fail_size(exchange, err);
    }
    return QR_OK;
}

/* A NUL in the request line ends the path for libmicrohttpd, and what stands behind it would be ignored. Its version stands
 * right behind the path, so anything in between gives that away. */
static bool target_goes_on(const struct qr_exchange *exchange, const char *version)
{
    enum { LINE_BYTES_MAX = 64 << 10 }; /* farther away it is not in the same line */
    const uintptr_t gap = (uintptr_t)version - exchange->target_end;
    return gap > 1 && gap < LINE_BYTES_MAX;
}

static qr_rc check_site(const struct qr_exchange *exchange, qr_err *err)
{
    struct qr_front *front = exchange->front;
    QR_LOCKED(&front->lock);
    return front->is_local_owner ? QR_OK
                                 : qr_guard_site(exchange->headers, exchange->request.header_count, &front->hosts, err);
}

qr_rc qr_exchange_begin(struct qr_exchange *exchange, const char *method, const char *version,
                        const char *remote_address, qr_err *err)
{
    struct reading reading = {.exchange = exchange};
    exchange->has_begun = true;
    MHD_get_connection_values_n(exchange->connection, MHD_HEADER_KIND, read_header, &reading);
    fill_request(exchange, method, remote_address);
    choose_id(exchange);
    if (!exchange->target) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
    }
    if (target_goes_on(exchange, version)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "the path holds a NUL or a space");
    }
    if (reading.is_too_many || reading.has_nul) {
        return qr_fail(err, QR_CODE_BAD_REQUEST,
                       reading.has_nul ? "a header holds a NUL" : "there are more than 100 headers");
    }
    const struct quire_request *request = &exchange->request;
    QR_TRY(qr_guard_target(qr_str_of(exchange->target), err));
    QR_TRY(qr_guard_headers(request->headers, request->header_count, strcmp(version, MHD_HTTP_VERSION_1_0) != 0, err));
    QR_TRY(check_site(exchange, err));
    exchange->is_known = exchange->front->is_local_owner;
    exchange->is_stream = quire_stream_is_for(request);
    return exchange->is_stream ? QR_OK : check_length(exchange, err); /* how large files may be is the library's */
}

static qr_rc add_to_body(struct qr_exchange *exchange, qr_str piece, qr_err *err)
{
    struct qr_front *front = exchange->front;
    if (piece.len > exchange->body_bytes_max - exchange->body.len) {
        return fail_size(exchange, err);
    }
    QR_LOCKED(&front->lock);
    if (piece.len > QR_EXCHANGE_BUFFERED_BYTES_MAX - front->buffered_bytes) { /* S2 */
        return qr_fail(err, QR_CODE_UNAVAILABLE, "too many large requests come at once");
    }
    const size_t before = exchange->body.len;
    qr_buf_add(&exchange->body, piece);
    front->buffered_bytes += exchange->body.len - before;
    return qr_buf_check(&exchange->body, err);
}

void qr_exchange_take(struct qr_exchange *exchange, const char *bytes, size_t size_bytes)
{
    if (exchange->refusal.code == QR_CODE_NONE && !exchange->has_response &&
        add_to_body(exchange, (qr_str){bytes, size_bytes}, &exchange->refusal) != QR_OK) {
        drop_body(exchange);
    }
}

qr_rc qr_exchange_end_body(struct qr_exchange *exchange, qr_err *err)
{
    struct qr_front *front = exchange->front;
    if (exchange->refusal.code != QR_CODE_NONE) {
        *err = exchange->refusal;
        return qr_code_info(err->code)->rc;
    }
    exchange->request.body = exchange->body.len ? exchange->body.data : NULL;
    exchange->request.body_size = exchange->body.len;
    QR_LOCKED(&front->lock);
    if (front->is_stopping) {
        return qr_fail(err, QR_CODE_SHUTTING_DOWN, "the process that owns the data folder is ending");
    }
    exchange->is_counted = true;
    front->answering++;
    front->calling++;
    return QR_OK;
}

/* ---- pieces (S3, S4) ---- */

static void end_work(struct qr_front *front)
{
    QR_LOCKED(&front->lock);
    front->calling--;
    pthread_cond_signal(&front->changed);
}

bool qr_exchange_has_piece(struct qr_exchange *exchange)
{
    struct qr_front *front = exchange->front;
    if (exchange->body.len < QR_EXCHANGE_PIECE_BYTES || (!exchange->is_stream && exchange->is_known)) {
        return false;
    }
    QR_LOCKED(&front->lock);
    if (front->is_stopping) { /* the rest is dropped, and refused at its end */
        qr_fail(&exchange->refusal, QR_CODE_SHUTTING_DOWN, "the process that owns the data folder is ending");
        return false;
    }
    front->calling++;
    return true;
}

/* What has come goes to the library. A refusal, which is the answer already, has no stream. */
static void pass_on(struct qr_exchange *exchange)
{
    struct qr_front *front = exchange->front;
    if (!exchange->stream && !exchange->has_response) {
        exchange->has_response =
            quire_stream_open(front->quire, &exchange->request, &exchange->stream, &exchange->response) != 0;
    }
    if (exchange->stream) {
        (void)quire_stream_write(exchange->stream, qr_buf_str(&exchange->body).ptr, exchange->body.len);
    }
}

static void ask_who(struct qr_exchange *exchange)
{
    exchange->is_known = true;
    if (quire_request_is_strange(exchange->front->quire, &exchange->request)) {
        qr_fail(&exchange->refusal, QR_CODE_UNAUTHORIZED, "this needs a key that is valid: Authorization: Bearer qk_…");
        drop_body(exchange);
    }
}

void qr_exchange_write(struct qr_exchange *exchange)
{
    if (exchange->is_stream) {
        pass_on(exchange);
        forget_body(exchange);
    } else {
        ask_who(exchange);
    }
    end_work(exchange->front);
}

/* ---- the call ---- */

/* A picture is small already, and a part of bytes is counted as they are. */
static bool is_worth_compressing(const struct quire_response *response)
{
    return response->body_size > QR_EXCHANGE_GZIP_BYTES_MIN && response->status == 200 &&
           (strncmp(response->content_type, "application/json", strlen("application/json")) == 0 ||
            strncmp(response->content_type, "text/", strlen("text/")) == 0);
}

static void compress(struct qr_exchange *exchange)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf small = {0};
    struct quire_response *response = &exchange->response;
    if (!exchange->wants_gzip || !is_worth_compressing(response) ||
        !qr_gzip_compress((qr_str){response->body, response->body_size}, &small)) {
        return;
    }
    size_t len;
    char *body = qr_buf_take(&small, &len);
    if (body) {
        struct quire_response plain = {.body = response->body};
        quire_response_done(&plain);
        response->body = body;
        response->body_size = len;
        exchange->is_gzip = true;
    }
}

bool qr_exchange_recall(struct qr_exchange *exchange)
{
    struct qr_front *front = exchange->front;
    if (!front->recall || exchange->is_stream ||
        front->recall(front->quire, &exchange->request, &exchange->response) == 0) {
        return false;
    }
    exchange->has_response = true;
    if (exchange->wants_gzip && is_worth_compressing(&exchange->response)) {
        return false; /* that is work, for qr_exchange_call */
    }
    end_work(front);
    return true;
}

void qr_exchange_call(struct qr_exchange *exchange)
{
    struct qr_front *front = exchange->front;
    if (exchange->is_stream) {
        pass_on(exchange);
        if (exchange->stream) {
            quire_stream_end(exchange->stream, &exchange->response);
            exchange->stream = NULL;
        }
    } else if (!exchange->has_response) {
        front->call(front->quire, &exchange->request, &exchange->response);
    }
    exchange->has_response = true;
    compress(exchange);
    drop_body(exchange);
    end_work(front);
}

/* ---- the answer ---- */

static void release_body(void *body)
{
    struct quire_response response = {.body = body};
    quire_response_done(&response);
}

static bool add_headers(const struct qr_exchange *exchange, struct MHD_Response *out, const char *content_type)
{
    const struct quire_response *response = &exchange->response;
    bool ok = MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) == MHD_YES &&
              MHD_add_response_header(out, "X-Request-Id", exchange->id) == MHD_YES &&
              MHD_add_response_header(out, "X-Content-Type-Options", "nosniff") == MHD_YES;
    for (size_t i = 0; ok && exchange->has_response && i < response->header_count; i++) {
        ok = MHD_add_response_header(out, response->headers[i].name, response->headers[i].value) == MHD_YES;
    }
    if (ok && exchange->is_gzip) {
        ok = MHD_add_response_header(out, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip") == MHD_YES &&
             MHD_add_response_header(out, MHD_HTTP_HEADER_VARY, "Accept-Encoding") == MHD_YES;
    }
    if (ok && exchange->must_close) {
        ok = MHD_add_response_header(out, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
    }
    return ok;
}

/* Takes the response. */
static enum MHD_Result queue(struct qr_exchange *exchange, int status, const char *content_type,
                             struct MHD_Response *out)
{
    if (!out) {
        return MHD_NO; /* no memory even for that: the connection is closed */
    }
    exchange->status = status;
    const enum MHD_Result result = add_headers(exchange, out, content_type)
                                       ? MHD_queue_response(exchange->connection, (unsigned)status, out)
                                       : MHD_NO;
    MHD_destroy_response(out);
    return result;
}

/* Without an end it is not among those that are waited for. */
static enum MHD_Result send_in_pieces(struct qr_exchange *exchange)
{
    struct quire_response *response = &exchange->response;
    struct quire_pieces *pieces = response->pieces;
    struct MHD_Response *out = NULL;
    qr_err err;
    response->pieces = NULL;
    if (exchange->is_head && quire_pieces_size(pieces) < 0) { /* libmicrohttpd would send its end all the same */
        quire_pieces_free(pieces);
        out = MHD_create_response_from_buffer(0, (char *)"", MHD_RESPMEM_PERSISTENT);
        return queue(exchange, response->status, response->content_type, out);
    }
    if (qr_feed_create(&exchange->front->feeds, exchange->connection, exchange->request.remote_address, pieces,
                       &exchange->feed, &out, &err) != QR_OK) {
        return qr_exchange_refuse(exchange, &err);
    }
    if (qr_feed_is_endless(exchange->feed)) {
        end_answer(exchange);
    }
    return queue(exchange, response->status, response->content_type, out);
}

enum MHD_Result qr_exchange_send(struct qr_exchange *exchange)
{
    struct quire_response *response = &exchange->response;
    if (response->pieces) {
        return send_in_pieces(exchange);
    }
    struct MHD_Response *out =
        MHD_create_response_from_buffer_with_free_callback(response->body_size, (char *)response->body, release_body);
    exchange->sent_bytes = response->body_size;
    if (out) {
        response->body = NULL; /* the answer's now */
    }
    return queue(exchange, response->status, response->content_type, out);
}

/* An error of the server's own; the library has its own way. */
enum MHD_Result qr_exchange_refuse(struct qr_exchange *exchange, const qr_err *err)
{
    QR_JSON *value = qr_json_error(err, NULL);
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    if (!value || qr_json_write(value, &text, NULL) != QR_OK) {
        return MHD_NO;
    }
    const int status = qr_code_info(err->code)->http_status;
    exchange->must_close = true; /* what of the body is still to come nobody reads */
    exchange->sent_bytes = text.len;
    struct MHD_Response *out = MHD_create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_COPY);
    if (out && (status == 429 || status == 503)) {
        (void)MHD_add_response_header(out, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    if (out && status == 401) {
        (void)MHD_add_response_header(out, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"quire\"");
    }
    return queue(exchange, status, "application/json", out);
}
