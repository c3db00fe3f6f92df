/* Requests to the API, and reading what it answers. */
#include "mcp/call.h"

#include "base/json_error.h"

qr_rc mcp_out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the answer");
}

const char *mcp_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

json_int_t mcp_number(const json_t *object, const char *name, json_int_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

json_t *mcp_get(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return value ? value : json_null();
}

void mcp_add_path(const struct mcp_call *call, struct qr_buf *target, const char *rest)
{
    const char *base = mcp_text(call->args, "base"), *item = mcp_text(call->args, "item");
    qr_buf_add_text(target, "/api/v1/bases/");
    qr_url_add_encoded(target, base ? base : "default");
    if (item) {
        qr_buf_add_text(target, "/items/");
        qr_url_add_encoded(target, item);
    }
    qr_buf_add_text(target, rest);
}

/* ---- requests ---- */

qr_rc quire_mcp_ask_here(void *arg, const struct quire_request *request, int *ret_status, json_t **ret_answer,
                         qr_err *err)
{
    const struct qr_json_limits limits = {.size_bytes_max = SIZE_MAX, .depth_max = 64}; /* our own answer */
    struct quire_response response;
    *ret_status = quire_request_call(arg, request, &response);
    const qr_rc rc = qr_json_parse((qr_str){response.body, response.body_size}, &limits, ret_answer, err);
    quire_response_done(&response);
    return rc;
}

qr_rc mcp_ask(const struct mcp_call *call, const char *method, const struct qr_buf *target, const json_t *body,
              json_t **ret_answer, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_JSON *answer = NULL;
    int status = 0;
    QR_TRY(qr_buf_check(target, err));
    if (body) {
        QR_TRY(qr_json_write(body, &text, err));
    }
    /* who asks, and nothing of what their own request was about */
    const struct quire_request request = {
        .method = method,
        .target = qr_buf_str(target).ptr,
        .body = body ? text.data : NULL,
        .body_size = text.len,
        .is_local_owner = call->from->is_local_owner,
        .authorization = call->from->authorization,
        .remote_address = call->from->remote_address,
        .request_id = call->from->request_id,
    };
    QR_TRY(call->mcp->ask(call->mcp->arg, &request, &status, &answer, err));
    if (status >= 400) {
        return qr_json_read_error(answer, err);
    }
    *ret_answer = json_incref(answer);
    return QR_OK;
}
