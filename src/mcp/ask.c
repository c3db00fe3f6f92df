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

bool mcp_add_members(json_t *object, const json_t *from, const char *const *names, size_t count)
{
    bool ok = object != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        ok = json_object_set(object, names[i], mcp_get(from, names[i])) == 0;
    }
    return ok;
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

struct quire_request mcp_request_of(const struct quire_request *from, const char *method, const char *target)
{
    return (struct quire_request){.method = method,
                                  .target = target,
                                  .is_local_owner = from->is_local_owner,
                                  .authorization = from->authorization,
                                  .remote_address = from->remote_address,
                                  .request_id = from->request_id};
}

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
    struct quire_request request = mcp_request_of(call->from, method, qr_buf_str(target).ptr);
    request.body = body ? text.data : NULL;
    request.body_size = text.len;
    QR_TRY(call->mcp->ask(call->mcp->arg, &request, &status, &answer, err));
    if (status >= 400) {
        return qr_json_read_error(answer, err);
    }
    *ret_answer = json_incref(answer);
    return QR_OK;
}
