/* MCP over HTTP: the checks that come before the message, and the answer as a response. There are no sessions and no streams: a
 * POST has one answer, as JSON. */
#include "base/mem.h"
#include "mcp/call.h"

#include <stdio.h>
#include <strings.h>

/* ---- responses ---- */

/* As quire_response_done frees it; `text` is taken. Without memory, the API's own answer to that. */
static int respond(struct quire *quire, int status, struct qr_buf *text, const char *header, const char *value,
                   struct quire_response *ret_response)
{
    struct quire_header *headers = header ? qr_alloc_array(1, sizeof *headers) : NULL;
    struct quire_response response = {.status = status, .content_type = "application/json"};
    response.body = qr_buf_take(text, &response.body_size);
    if (!response.body || (header && !headers)) {
        qr_free((char *)response.body);
        qr_free(headers);
        return quire_call(quire, "POST", QUIRE_MCP_PATH, NULL, ret_response);
    }
    if (headers) {
        *headers = (struct quire_header){header, value};
        response.headers = headers;
        response.header_count = 1;
    }
    *ret_response = response;
    return status;
}

static int refuse(struct quire *quire, qr_code code, const char *message, const char *header, const char *value,
                  struct quire_response *ret_response)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_err err;
    qr_fail(&err, code, "%s", message);
    QR_JSON *json = qr_json_error(&err, NULL);
    if (!json || qr_json_write(json, &text, NULL) != QR_OK) {
        qr_buf_done(&text);
    }
    return respond(quire, qr_code_info(code)->http_status, &text, header, value, ret_response);
}

/* ---- checks ---- */

/* A page of another site may not speak through a browser to a server on this machine. Browsers say whose page it is; other
 * programs say nothing. That the Host itself is ours is the server's to check. */
static bool is_own_origin(const struct quire_request *request)
{
    const char *origin = quire_request_header(request, "Origin"), *host = quire_request_header(request, "Host");
    if (!origin) {
        return true;
    }
    const char *name = strstr(origin, "://");
    return name && host && strcasecmp(name + 3, host) == 0;
}

static bool is_json(const char *content_type)
{
    qr_str rest = qr_str_of(content_type);
    const qr_str type = qr_str_trim(qr_str_split(&rest, ';'));
    return qr_str_equal_any_case(type, QR_STR("application/json"));
}

/* Whoever may not even list bases is not told what there is; clients look for the status, not into the answer of a tool. */
static bool is_unauthorized(const struct quire_mcp *mcp, const struct quire_request *from)
{
    const struct quire_request request = mcp_request_of(from, "GET", "/api/v1/bases?limit=1");
    QR_JSON *answer = NULL;
    int status = 0;
    return !from->is_local_owner && mcp->ask(mcp->arg, &request, &status, &answer, NULL) == QR_OK && status == 401;
}

static int answer_http(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response)
{
    const struct quire_mcp mcp = {.ask = quire_mcp_ask_here, .arg = quire, .is_http = true};
    if (!is_own_origin(request)) {
        return refuse(quire, QR_CODE_FORBIDDEN, "a page of another site may not use this", NULL, NULL, ret_response);
    }
    if (strcmp(request->method, "POST") != 0) {
        return refuse(quire, QR_CODE_METHOD_NOT_ALLOWED, "/mcp takes POST: there are no sessions and no streams",
                      "Allow", "POST", ret_response);
    }
    if (request->content_type && !is_json(request->content_type)) {
        return refuse(quire, QR_CODE_UNSUPPORTED_MEDIA_TYPE, "the body must be JSON: Content-Type: application/json",
                      NULL, NULL, ret_response);
    }
    if (is_unauthorized(&mcp, request)) {
        return refuse(quire, QR_CODE_UNAUTHORIZED, "this needs a key: Authorization: Bearer qk_…", "WWW-Authenticate",
                      "Bearer", ret_response);
    }
    struct quire_mcp_answer answer = {0};
    const qr_str message = {request->body ? request->body : "", request->body ? request->body_size : 0};
    if (quire_mcp_message(&mcp, request, message, &answer, NULL) != QR_OK) {
        qr_buf_done(&answer.text);
        return refuse(quire, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer", NULL, NULL, ret_response);
    }
    return respond(quire, answer.status, &answer.text, NULL, NULL, ret_response);
}

int quire_mcp_http_call(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response)
{
    qr_str target = qr_str_of(request->target);
    const qr_str path = qr_str_split(&target, '?');
    return qr_str_equal(path, QR_STR(QUIRE_MCP_PATH)) ? answer_http(quire, request, ret_response)
                                                      : quire_request_call(quire, request, ret_response);
}
