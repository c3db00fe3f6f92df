/* docling-serve on the wire. */
#include "convert/docling_wire.h"

#include "base/json.h"
#include "convert/processor.h"

#include <stdio.h>

/* Characters may be escaped, and some put the document in other forms beside the one that was asked for. */
static const struct qr_json_limits answer_limits = {
    .size_bytes_max = 2 * (size_t)QR_PROCESSOR_OUTPUT_BYTES_MAX, .depth_max = 64, .values_max = 1 << 20};

static qr_rc fail_answer(const char *what, qr_err *err)
{
    return qr_fail(err, QR_CODE_UNAVAILABLE, "the answer of docling-serve %s", what);
}

bool qr_docling_is_task_id(const char *text)
{
    const size_t len = strlen(text);
    return len > 0 && len < QR_DOCLING_TASK_SIZE && text[0] != '.' &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == len;
}

/* One line, as much of it as fits. */
static void copy_reason(const char *text, char *ret_reason, size_t size)
{
    const qr_str fitting = qr_utf8_prefix(qr_str_of(text ? text : ""), size - 1);
    snprintf(ret_reason, size, "%.*s", QR_STR_ARG(fitting));
    for (char *c = ret_reason; *c; c++) {
        *c = (unsigned char)*c < ' ' || *c == 0x7F ? ' ' : *c;
    }
}

/* ---- tasks ---- */

/* A word that a newer server may have means that it has not ended: time limits hold. */
static enum qr_docling_state state_of(const char *status)
{
    static const struct {
        const char *status;
        enum qr_docling_state state;
    } states[] = {{"pending", QR_DOCLING_WAITS},         {"queued", QR_DOCLING_WAITS},
                  {"started", QR_DOCLING_RUNS},          {"success", QR_DOCLING_ENDED},
                  {"partial_success", QR_DOCLING_ENDED}, {"skipped", QR_DOCLING_ENDED},
                  {"failure", QR_DOCLING_FAILED},        {"failed", QR_DOCLING_FAILED},
                  {"revoked", QR_DOCLING_FAILED},        {"cancelled", QR_DOCLING_FAILED}};
    for (size_t i = 0; i < QR_COUNT(states); i++) {
        if (strcmp(states[i].status, status) == 0) {
            return states[i].state;
        }
    }
    return QR_DOCLING_RUNS;
}

qr_rc qr_docling_read_task(qr_str answer, struct qr_docling_task *ret_task, qr_err *err)
{
    QR_JSON *json = NULL;
    qr_err ignored = {0};
    if (qr_json_parse(answer, &answer_limits, &json, &ignored) != QR_OK) {
        return fail_answer("is not JSON, or too long", err);
    }
    const char *id = json_string_value(json_object_get(json, "task_id"));
    const char *status = json_string_value(json_object_get(json, "task_status"));
    const char *reason = json_string_value(json_object_get(json, "error_message"));
    if (!id || !qr_docling_is_task_id(id)) {
        return fail_answer("names no task", err);
    }
    *ret_task = (struct qr_docling_task){.state = state_of(status ? status : "pending")};
    snprintf(ret_task->id, sizeof ret_task->id, "%s", id);
    copy_reason(reason, ret_task->reason, sizeof ret_task->reason);
    return QR_OK;
}

/* ---- results ---- */

/* "errors": [{"component_type", "module_name", "error_message"}], or texts. */
static const char *first_error(const json_t *result)
{
    const json_t *error = json_array_get(json_object_get(result, "errors"), 0);
    const char *message = json_string_value(json_object_get(error, "error_message"));
    return message ? message : json_string_value(error);
}

static qr_rc fail_conversion(const json_t *result, const char *status, qr_err *err)
{
    char reason[300];
    copy_reason(first_error(result), reason, sizeof reason);
    return qr_fail(err, QR_CODE_CONVERSION_FAILED, "docling could not convert it (%.40s)%s%s", status,
                   reason[0] ? ": " : "", reason);
}

qr_rc qr_docling_read_result(qr_str answer, struct qr_buf *out, qr_err *err)
{
    QR_JSON *json = NULL;
    qr_err ignored = {0};
    if (qr_json_parse(answer, &answer_limits, &json, &ignored) != QR_OK) {
        return fail_answer("is not JSON, or too long", err);
    }
    const json_t *markdown = json_object_get(json_object_get(json, "document"), "md_content");
    const char *status = json_string_value(json_object_get(json, "status"));
    if (!status) {
        return fail_answer("has no status", err);
    }
    const bool is_whole = strcmp(status, "success") == 0 || strcmp(status, "partial_success") == 0;
    if (!is_whole || !json_is_string(markdown)) { /* what is said to be a part of it is better than nothing */
        return fail_conversion(json, status, err);
    }
    if (json_string_length(markdown) > QR_PROCESSOR_OUTPUT_BYTES_MAX) {
        return qr_fail(err, QR_CODE_CONVERSION_FAILED, "docling makes more than %d MB of it",
                       QR_PROCESSOR_OUTPUT_BYTES_MAX >> 20);
    }
    qr_buf_add_text(out, json_string_value(markdown));
    return qr_buf_check(out, err);
}
