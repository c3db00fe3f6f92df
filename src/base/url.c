/* The characters that RFC 3986 calls unreserved stay as they are. */
#include "base/url.h"

void qr_url_add_encoded(struct qr_buf *out, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.~", c)) {
            qr_buf_add_char(out, (char)c);
        } else {
            qr_buf_printf(out, "%%%02X", c);
        }
    }
}
