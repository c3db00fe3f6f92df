/* The headers of a message, by which proxies route it: they must say what the message says, or a proxy and we would see two
 * different requests. */
#include "mcp/headers.h"

#include "base/base64.h"

/* A name that is not plain ASCII comes as =?base64?…?=. */
static bool says(const char *header, const char *name)
{
    static const qr_str before = QR_STR("=?base64?"), behind = QR_STR("?=");
    qr_str text = qr_str_of(header);
    if (text.len < before.len + behind.len || !qr_str_starts_with(text, before) || !qr_str_ends_with(text, behind)) {
        return strcmp(header, name) == 0;
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf decoded = {0};
    text = (qr_str){text.ptr + before.len, text.len - before.len - behind.len};
    return qr_base64_read(text, &decoded) && qr_str_equal(qr_buf_str(&decoded), qr_str_of(name));
}

const char *mcp_header_mismatch(const struct quire_request *from, const char *method, const json_t *params)
{
    const char *method_header = quire_request_header(from, "Mcp-Method");
    const char *name_header = quire_request_header(from, "Mcp-Name");
    const char *name = strcmp(method, "tools/call") == 0 ? mcp_text(params, "name") : NULL;
    if (!method_header || strcmp(method_header, method) != 0) {
        return "the header Mcp-Method does not say which method it is";
    }
    return name && (!name_header || !says(name_header, name)) ? "the header Mcp-Name does not say which tool it is"
                                                              : NULL;
}
