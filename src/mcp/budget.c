/* Results that cost no more than was asked for (MCP-2). What is counted is the result as it is sent, text and structure, with its
 * quotes and escapes: whichever part of it a client hands to its model, it is not more. */
#include "mcp/call.h"

#include <assert.h>

enum { QUARTERS_PER_TOKEN = 4, ID_BYTES = 40 };

static int64_t quarters(qr_str text)
{
    int64_t sum = 0;
    for (size_t at = 0; at < text.len;) {
        const size_t len = qr_utf8_char_len((qr_str){text.ptr + at, text.len - at});
        sum += len >= 3 ? QUARTERS_PER_TOKEN : (int64_t)QR_MAX(len, (size_t)1);
        at += QR_MAX(len, (size_t)1);
    }
    return sum;
}

int64_t mcp_tokens(qr_str text)
{
    return (quarters(text) + QUARTERS_PER_TOKEN - 1) / QUARTERS_PER_TOKEN;
}

/* ---- results ---- */

static json_t *result_of(const struct mcp_call *call, json_t *text, bool is_error)
{
    json_t *result = json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text", text, "isError", is_error);
    if (result && call->is_modern && json_object_set_new(result, "resultType", json_string("complete")) != 0) {
        json_decref(result);
        return NULL;
    }
    return result;
}

json_t *mcp_result(const struct mcp_call *call, const json_t *structured)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    if (!structured || qr_json_write(structured, &text, NULL) != QR_OK) {
        return NULL;
    }
    json_t *result = result_of(call, json_stringn(text.data, text.len), false);
    if (result && json_object_set_new(result, "structuredContent", json_deep_copy(structured)) != 0) {
        json_decref(result);
        return NULL;
    }
    return result;
}

static qr_rc cost(const json_t *result, int64_t *ret_tokens, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_TRY(qr_json_write(result, &text, err));
    *ret_tokens = mcp_tokens(qr_buf_str(&text));
    return QR_OK;
}

/* "not_found: there is no base x. Next: …", cut where even that is too much. */
json_t *mcp_error_result(const struct mcp_call *call, const qr_err *err)
{
    const struct qr_code_info *info = qr_code_info(err->code);
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_buf_printf(&text, "%s: %s. Next: %s", info->name, err->msg, info->advice);
    for (size_t len = text.len;; len /= 2) {
        const qr_str shown = qr_utf8_prefix(qr_buf_str(&text), len);
        QR_JSON *result = result_of(call, json_stringn(shown.ptr, shown.len), true);
        int64_t tokens = 0;
        if (!result || qr_buf_check(&text, NULL) != QR_OK || cost(result, &tokens, NULL) != QR_OK) {
            return NULL;
        }
        if (tokens <= call->max_tokens || len == 0) {
            return json_incref(result);
        }
    }
}

/* ---- what fits ---- */

/* *ret_result is NULL where it does not fit. */
static qr_rc try(const struct mcp_call *call, mcp_render_fn *render, void *arg, size_t count, json_t **ret_result,
                 qr_err *err)
{
    QR_JSON *structured = render(arg, count);
    QR_JSON *result = structured ? mcp_result(call, structured) : NULL;
    int64_t tokens = 0;
    if (!result) {
        return mcp_out_of_memory(err);
    }
    QR_TRY(cost(result, &tokens, err));
    *ret_result = tokens <= call->max_tokens ? json_incref(result) : NULL;
    return QR_OK;
}

qr_rc mcp_fit(const struct mcp_call *call, mcp_render_fn *render, void *arg, size_t count_max, size_t *ret_count,
              json_t **ret_result, qr_err *err)
{
    QR_JSON *best = NULL;
    size_t fits = 0, fits_not = count_max;
    QR_TRY(try(call, render, arg, count_max, &best, err));
    if (best || count_max == 0) {
        *ret_count = count_max;
        *ret_result = json_incref(best);
        return QR_OK;
    }
    QR_TRY(try(call, render, arg, 0, &best, err));
    while (best && fits_not - fits > 1) {
        const size_t middle = fits + (fits_not - fits) / 2;
        json_t *result = NULL;
        QR_TRY(try(call, render, arg, middle, &result, err));
        if (result) {
            json_decref(best);
            best = result;
        }
        *(result ? &fits : &fits_not) = middle;
    }
    *ret_count = fits;
    *ret_result = json_incref(best);
    return QR_OK;
}

qr_rc mcp_no_room(const struct mcp_call *call, qr_err *err)
{
    return qr_fail(err, QR_CODE_INVALID_VALUE, "max_tokens %lld has no room for one entry: ask for more, such as %d",
                   (long long)call->max_tokens, MCP_MAX_TOKENS_DEFAULT);
}

/* ---- shorter texts ---- */

static json_t *shortened_text(const json_t *value, size_t bytes_max)
{
    const qr_str text = {json_string_value(value), json_string_length(value)};
    if (text.len <= QR_MAX(bytes_max, (size_t)ID_BYTES)) {
        return json_stringn(text.ptr, text.len);
    }
    const qr_str kept = qr_utf8_prefix(text, QR_MAX(bytes_max, (size_t)ID_BYTES));
    return json_sprintf("%.*s…", QR_STR_ARG(kept));
}

/* Of our own answers, which are a few levels deep. */
static json_t *shortened_members(const json_t *value, size_t bytes_max)
{
    QR_JSON *copy = json_is_array(value) ? json_array() : json_object();
    const char *name;
    json_t *member;
    size_t i;
    json_array_foreach(value, i, member)
    {
        if (json_array_append_new(copy, mcp_shortened(member, bytes_max)) != 0) {
            return NULL;
        }
    }
    json_object_foreach((json_t *)value, name, member)
    {
        if (json_object_set_new(copy, name, mcp_shortened(member, bytes_max)) != 0) {
            return NULL;
        }
    }
    return json_incref(copy);
}

json_t *mcp_shortened(const json_t *value, size_t bytes_max)
{
    if (json_is_string(value)) {
        return shortened_text(value, bytes_max);
    }
    return json_is_array(value) || json_is_object(value) ? shortened_members(value, bytes_max) : json_deep_copy(value);
}

static json_t *render_shortened(void *arg, size_t count)
{
    return mcp_shortened(arg, count);
}

static json_t *render_members(void *arg, size_t count)
{
    QR_JSON *object = json_object();
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)arg, name, member)
    {
        if (count-- == 0) {
            break;
        }
        if (json_object_set_new(object, name, mcp_shortened(member, 0)) != 0) {
            return NULL;
        }
    }
    return json_incref(object);
}

qr_rc mcp_fit_texts(const struct mcp_call *call, const json_t *structured, json_t **ret_result, qr_err *err)
{
    enum { TEXT_BYTES_MAX = 64 << 10 }; /* longer than any that is shortened */
    QR_JSON *result = NULL;
    size_t count = 0;
    if (!structured) {
        return mcp_out_of_memory(err);
    }
    QR_TRY(mcp_fit(call, render_shortened, (void *)structured, TEXT_BYTES_MAX, &count, &result, err));
    if (!result) {
        QR_TRY(mcp_fit(call, render_members, (void *)structured, json_object_size(structured), &count, &result, err));
    }
    *ret_result = json_incref(result);
    return result ? QR_OK : mcp_no_room(call, err);
}
