/* Sends requests by libcurl. A connection is a multi handle with one easy handle in it: the multi handle keeps the open socket
 * for the next request, and lets us look at the cancel flag while we wait. Its endpoint keeps those that are idle.
 *
 * No redirection is followed: the key would go along to whoever is named there. A connection that the server closed while it
 * was idle is found dead, or libcurl sends the request again on a new one when not a byte of an answer has come: once, since
 * the new one is not an old one. */
#include "remote/http.h"

#include "base/mem.h"
#include "remote/endpoint_internal.h"
#include "remote/refusal.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LOOK_MS = 100, /* how often the cancel flag is looked at */
    CONNECT_MS_MAX = 15000,
    ANSWER_BYTES_MAX = 64 << 20,
    SLOW_SHARE = 4,  /* of its time: a server that needs more of it has too much to do at once */
    IDLE_S_MAX = 60, /* servers and what is between close what is idle for longer */
};

struct qr_connection {
    CURLM *multi;
    CURL *easy;
    struct qr_connection *next; /* of those that are idle */
};

/* One request on its way. */
struct transfer {
    struct qr_endpoint *endpoint;
    const struct qr_remote_request *request;
    struct qr_remote_answer *answer;
    const struct qr_key *key;
    struct qr_remote_headers headers;
    struct curl_slist *header_lines;
    curl_mime *mime;
    struct qr_buf url;
    size_t answer_bytes_max;
    bool is_too_long, is_out_of_memory, is_link_local;
    char error[CURL_ERROR_SIZE];
};

void qr_remote_answer_done(struct qr_remote_answer *answer)
{
    qr_buf_done(&answer->body);
}

/* ---- connections ---- */

static void free_connection(struct qr_connection *connection)
{
    if (connection) {
        curl_easy_cleanup(connection->easy);
        curl_multi_cleanup(connection->multi);
        qr_free(connection);
    }
}

void qr_connections_free(struct qr_connection *first)
{
    while (first) {
        struct qr_connection *next = first->next;
        free_connection(first);
        first = next;
    }
}

static struct qr_connection *take_connection(struct qr_endpoint *endpoint)
{
    {
        QR_HOLD(&endpoint->lock);
        struct qr_connection *idle = endpoint->idle; /* the one used last: the others may be left to close */
        if (idle) {
            endpoint->idle = idle->next;
            endpoint->idle_count--;
            return idle;
        }
    }
    struct qr_connection *connection = qr_alloc_zero(sizeof *connection);
    if (connection) {
        connection->multi = curl_multi_init();
        connection->easy = curl_easy_init();
    }
    if (connection && (!connection->multi || !connection->easy)) {
        free_connection(connection);
        return NULL;
    }
    return connection;
}

static void give_connection(struct qr_endpoint *endpoint, struct qr_connection *connection)
{
    curl_easy_reset(connection->easy); /* no key stays in it */
    {
        QR_HOLD(&endpoint->lock);
        if (endpoint->idle_count < endpoint->limits.set.in_flight_max) {
            connection->next = endpoint->idle;
            endpoint->idle = connection;
            endpoint->idle_count++;
            return;
        }
    }
    free_connection(connection);
}

/* ---- connecting ---- */

/* Whether it is of this link only: there clouds keep the machine's credentials, open to whoever asks from the machine. */
static bool is_link_local(const struct curl_sockaddr *address)
{
    if (address->family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)&address->addr;
        return ntohl(v4->sin_addr.s_addr) >> 16 == 0xA9FE; /* 169.254 */
    }
    if (address->family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)&address->addr)->sin6_addr;
        static const unsigned char aws[16] = {0xFD, 0x00, 0x0E, 0xC2, [14] = 0x02, [15] = 0x54};
        const bool is_mapped = IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 169 && v6->s6_addr[13] == 254;
        return is_mapped || IN6_IS_ADDR_LINKLOCAL(v6) || memcmp(v6->s6_addr, aws, sizeof aws) == 0;
    }
    return false;
}

/* Here, since a name may be resolved to anything at any time. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose QR_UNUSED, struct curl_sockaddr *address)
{
    struct transfer *transfer = arg;
    if (is_link_local(address)) {
        transfer->is_link_local = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- receiving ---- */

static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    const qr_str line = {bytes, size * count};
    qr_remote_headers_add(&transfer->headers, line, qr_clock_wall_ms(transfer->endpoint->all->clock));
    return line.len;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    struct qr_buf *body = &transfer->answer->body;
    const size_t len = size * count;
    if (len > transfer->answer_bytes_max - body->len) {
        transfer->is_too_long = true;
        return 0;
    }
    qr_buf_add(body, (qr_str){bytes, len});
    transfer->is_out_of_memory = body->failed != QR_CODE_NONE;
    return transfer->is_out_of_memory ? 0 : len;
}

/* ---- preparing ---- */

static bool add_header(struct transfer *transfer, const char *line)
{
    struct curl_slist *longer = curl_slist_append(transfer->header_lines, line);
    transfer->header_lines = longer ? longer : transfer->header_lines;
    return longer != NULL;
}

static bool add_key(struct transfer *transfer)
{
    const struct qr_endpoint *endpoint = transfer->endpoint;
    QR_CLEANUP(qr_buf_done) struct qr_buf line = {0};
    if (transfer->key->text.len == 0) {
        return true;
    }
    qr_buf_printf(&line, "%s%s", endpoint->key_header[0] ? endpoint->key_header : "Authorization",
                  endpoint->key_header[0] ? ": " : ": Bearer ");
    qr_buf_add(&line, qr_buf_str(&transfer->key->text));
    const bool is_added = line.failed == QR_CODE_NONE && add_header(transfer, line.data);
    if (line.data) {
        explicit_bzero(line.data, line.capacity);
    }
    return is_added;
}

static qr_rc add_part(struct transfer *transfer, const struct qr_remote_part *part, qr_err *err)
{
    curl_mimepart *added = curl_mime_addpart(transfer->mime);
    if (!added || curl_mime_name(added, part->name)) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a request");
    }
    if (part->path && access(part->path, R_OK) != 0) {
        return qr_fail_errno(err, errno, "%s cannot be sent", part->path);
    }
    CURLcode failed = part->path ? curl_mime_filedata(added, part->path)
                                 : curl_mime_data(added, part->bytes.ptr ? part->bytes.ptr : "", part->bytes.len);
    failed = failed == CURLE_OK && part->file_name ? curl_mime_filename(added, part->file_name) : failed;
    failed = failed == CURLE_OK && part->mime ? curl_mime_type(added, part->mime) : failed;
    return failed == CURLE_OK
               ? QR_OK
               : qr_fail(err, QR_CODE_IO_ERROR, "%s cannot be sent: %s", part->name, curl_easy_strerror(failed));
}

static qr_rc set_body(struct transfer *transfer, CURL *easy, qr_err *err)
{
    const struct qr_remote_request *request = transfer->request;
    if (request->part_count > 0) {
        transfer->mime = curl_mime_init(easy);
        for (size_t i = 0; transfer->mime && i < request->part_count; i++) {
            QR_TRY(add_part(transfer, &request->parts[i], err));
        }
        curl_easy_setopt(easy, CURLOPT_MIMEPOST, transfer->mime);
    } else if (request->json.len > 0 || strcmp(request->method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->json.len);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->json.len ? request->json.ptr : "");
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    return QR_OK;
}

static qr_rc set_headers(struct transfer *transfer, CURL *easy, qr_err *err)
{
    const bool has_json = transfer->request->part_count == 0 && transfer->request->json.len > 0;
    if (!add_header(transfer, "Accept: application/json") ||
        !add_header(transfer, "Expect:") || /* a server that knows nothing of it would cost a second */
        (has_json && !add_header(transfer, "Content-Type: application/json")) || !add_key(transfer)) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a request");
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->header_lines);
    return QR_OK;
}

/* As the program curl does; the library leaves it to us. */
static void set_certificates(CURL *easy)
{
    const char *bundle = getenv("CURL_CA_BUNDLE"), *file = getenv("SSL_CERT_FILE"), *dir = getenv("SSL_CERT_DIR");
    bundle = bundle && *bundle ? bundle : file;
    if (bundle && *bundle) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, bundle);
    }
    if (dir && *dir) {
        curl_easy_setopt(easy, CURLOPT_CAPATH, dir);
    }
}

static qr_rc prepare(struct transfer *transfer, CURL *easy, int64_t timeout_ms, qr_err *err)
{
    qr_buf_printf(&transfer->url, "%s%s%s", transfer->endpoint->url, transfer->request->path,
                  transfer->endpoint->query);
    QR_TRY(qr_buf_check(&transfer->url, err));
    curl_easy_setopt(easy, CURLOPT_URL, transfer->url.data);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a cancel does not wait for the resolver */
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)QR_MIN(timeout_ms, (int64_t)CONNECT_MS_MAX));
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_S_MAX);
    curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "quire/" QUIRE_VERSION);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    set_certificates(easy);
    QR_TRY(set_body(transfer, easy, err));
    return set_headers(transfer, easy, err);
}

static void transfer_done(struct transfer *transfer)
{
    for (struct curl_slist *line = transfer->header_lines; line; line = line->next) {
        explicit_bzero(line->data, strlen(line->data));
    }
    curl_slist_free_all(transfer->header_lines);
    curl_mime_free(transfer->mime);
    qr_buf_done(&transfer->url);
}

/* ---- sending ---- */

static bool is_cancelled(const struct qr_remote_request *request)
{
    return request->is_cancelled && request->is_cancelled(request->cancel_arg);
}

/* What became of it: CURLE_ABORTED_BY_CALLBACK when it was cancelled. */
static CURLcode perform(struct qr_connection *connection, const struct qr_remote_request *request)
{
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    int running = 1;
    if (curl_multi_add_handle(connection->multi, connection->easy) != CURLM_OK) {
        return CURLE_OUT_OF_MEMORY;
    }
    while (running && !is_cancelled(request)) {
        if (curl_multi_perform(connection->multi, &running) != CURLM_OK) {
            break;
        }
        if (running) {
            curl_multi_poll(connection->multi, NULL, 0, LOOK_MS, NULL);
        }
    }
    int left;
    const CURLMsg *message = running ? NULL : curl_multi_info_read(connection->multi, &left);
    if (message && message->msg == CURLMSG_DONE) {
        result = message->data.result;
    }
    curl_multi_remove_handle(connection->multi, connection->easy);
    return result;
}

/* ---- judging ---- */

static qr_rc fail_transfer(const struct transfer *transfer, CURLcode failed, qr_err *err)
{
    const char *url = transfer->endpoint->url;
    if (transfer->is_too_long) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "%s: its answer has more than %zu bytes", url,
                       transfer->answer_bytes_max);
    }
    if (transfer->is_out_of_memory || failed == CURLE_OUT_OF_MEMORY) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an answer of %s", url);
    }
    if (failed == CURLE_ABORTED_BY_CALLBACK) {
        return qr_fail(err, QR_CODE_CANCELLED, "cancelled");
    }
    if (transfer->is_link_local) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "%s has a link-local address, and those are not asked", url);
    }
    char words[CURL_ERROR_SIZE];
    snprintf(words, sizeof words, "%s", transfer->error[0] ? transfer->error : curl_easy_strerror(failed));
    qr_key_scrub(transfer->key, words);
    return qr_fail(err, failed == CURLE_OPERATION_TIMEDOUT ? QR_CODE_TIMEOUT : QR_CODE_UNAVAILABLE, "%s: %s", url,
                   words);
}

/* "https://…/embeddings answers 404: model x not found" */
static void read_refusal(const struct transfer *transfer)
{
    struct qr_remote_answer *answer = transfer->answer;
    char words[QR_REFUSAL_WORDS_SIZE];
    answer->refusal = qr_refusal_read(answer->status, qr_buf_str(&answer->body), words);
    if (answer->refusal == QR_REFUSAL_NONE) {
        return;
    }
    if (answer->status >= 300 && answer->status < 400 && transfer->headers.location[0]) {
        snprintf(words, sizeof words, "it has moved to %.200s", transfer->headers.location);
    }
    qr_key_scrub(transfer->key, words);
    qr_fail(&answer->reason, qr_refusal_code(answer->refusal), "%s%s answers %d%s%s", transfer->endpoint->url,
            transfer->request->path, answer->status, words[0] ? ": " : "", words);
}

static enum qr_verdict verdict_of(const struct qr_remote_answer *answer)
{
    switch (answer->refusal) {
    case QR_REFUSAL_ENDPOINT:
        return QR_VERDICT_REFUSED;
    case QR_REFUSAL_LIMITED:
    case QR_REFUSAL_SERVER:
        return QR_VERDICT_UNKNOWN;
    case QR_REFUSAL_NONE:
    case QR_REFUSAL_TOO_LARGE:
    case QR_REFUSAL_REQUEST:
        break;
    }
    return QR_VERDICT_ANSWERED;
}

static struct qr_permit_outcome outcome_of(const struct transfer *transfer, qr_rc rc)
{
    const struct qr_remote_answer *answer = transfer->answer;
    if (rc != QR_OK) {
        return (struct qr_permit_outcome){.verdict = rc == QR_CANCELLED ? QR_VERDICT_UNUSED : QR_VERDICT_UNKNOWN};
    }
    return (struct qr_permit_outcome){.verdict = verdict_of(answer),
                                      .is_good = answer->refusal == QR_REFUSAL_NONE,
                                      .is_limited = answer->refusal == QR_REFUSAL_LIMITED,
                                      .headers = &transfer->headers,
                                      .refusal = &answer->reason};
}

/* With a permit. */
static qr_rc exchange(struct transfer *transfer, int64_t timeout_ms, qr_err *err)
{
    struct qr_connection *connection = take_connection(transfer->endpoint);
    if (!connection) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a connection");
    }
    qr_rc rc = prepare(transfer, connection->easy, timeout_ms, err);
    if (rc == QR_OK) {
        const CURLcode failed = perform(connection, transfer->request);
        long status = 0;
        curl_easy_getinfo(connection->easy, CURLINFO_RESPONSE_CODE, &status);
        transfer->answer->status = (int)status;
        transfer->answer->retry_after_ms = transfer->headers.retry_after_ms;
        rc = failed == CURLE_OK ? QR_OK : fail_transfer(transfer, failed, err);
    }
    if (rc == QR_OK) {
        read_refusal(transfer);
    }
    transfer_done(transfer);
    give_connection(transfer->endpoint, connection);
    return rc;
}

/* ---- what is waited for, for people ---- */

static void begin_to_wait(struct qr_endpoint *endpoint, struct qr_unanswered *one)
{
    QR_HOLD(&endpoint->lock);
    *one = (struct qr_unanswered){qr_clock_wall_ms(endpoint->all->clock), endpoint->unanswered};
    endpoint->unanswered = one;
}

static void end_to_wait(struct qr_endpoint *endpoint, const struct qr_unanswered *one)
{
    QR_HOLD(&endpoint->lock);
    struct qr_unanswered **at = &endpoint->unanswered;
    while (*at != one) {
        at = &(*at)->next;
    }
    *at = one->next;
}

static qr_rc send_with_key(struct qr_endpoint *endpoint, const struct qr_remote_request *request,
                           const struct qr_key *key, struct qr_remote_answer *ret_answer, qr_err *err)
{
    struct transfer transfer = {
        .endpoint = endpoint,
        .request = request,
        .answer = ret_answer,
        .key = key,
        .answer_bytes_max = request->answer_bytes_max ? request->answer_bytes_max : (size_t)ANSWER_BYTES_MAX,
    };
    const struct qr_permit_ask ask = {.priority = request->priority,
                                      .tokens = request->tokens,
                                      .wait_ms_max = request->wait_ms_max,
                                      .key_mark = key->mark,
                                      .is_cancelled = request->is_cancelled,
                                      .cancel_arg = request->cancel_arg};
    struct qr_permit permit;
    QR_TRY(qr_permit_take(endpoint, &ask, &permit, err));
    int64_t timeout_ms;
    {
        QR_HOLD(&endpoint->lock);
        timeout_ms = endpoint->timeout_ms;
    }
    const int64_t begun_ms = qr_clock_mono_ms(endpoint->all->clock);
    struct qr_unanswered unanswered;
    begin_to_wait(endpoint, &unanswered);
    const qr_rc rc = exchange(&transfer, timeout_ms, err);
    end_to_wait(endpoint, &unanswered);
    struct qr_permit_outcome outcome = outcome_of(&transfer, rc);
    outcome.took_ms = qr_clock_mono_ms(endpoint->all->clock) - begun_ms;
    outcome.is_slow = rc == QR_TIMEOUT || outcome.took_ms >= timeout_ms / SLOW_SHARE;
    qr_permit_give(endpoint, &permit, &outcome);
    return rc;
}

qr_rc qr_remote_send(struct qr_endpoint *endpoint, const struct qr_remote_request *request,
                     struct qr_remote_answer *ret_answer, qr_err *err)
{
    QR_KEY_TEXT(key);
    qr_err local = {0};
    qr_remote_answer_done(ret_answer);
    *ret_answer = (struct qr_remote_answer){0};
    const qr_rc rc = qr_key_load(&key, endpoint->key_env, endpoint->key_file, &local);
    if (rc != QR_OK && local.code == QR_CODE_ENDPOINT_REFUSED) {
        qr_err_prefix(&local, "%s", endpoint->url);
        return qr_permit_refuse(endpoint, &local, err);
    }
    if (rc != QR_OK) {
        return qr_fail(err, local.code, "%s", local.msg);
    }
    return send_with_key(endpoint, request, &key, ret_answer, err);
}
