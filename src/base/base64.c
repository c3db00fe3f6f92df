/* Base64. Stateless. */
#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void qr_base64_add(struct qr_buf *out, qr_str bytes)
{
    const size_t len = (bytes.len + 2) / 3 * 4;
    char *to = qr_buf_reserve(out, len);
    if (!to) {
        return;
    }
    for (size_t i = 0; i < bytes.len; i += 3) {
        const size_t left = QR_MIN(bytes.len - i, (size_t)3);
        const unsigned first = (unsigned char)bytes.ptr[i];
        const unsigned second = left > 1 ? (unsigned char)bytes.ptr[i + 1] : 0;
        const unsigned third = left > 2 ? (unsigned char)bytes.ptr[i + 2] : 0;
        *to++ = digits[first >> 2];
        *to++ = digits[(first & 3) << 4 | second >> 4];
        *to++ = left > 1 ? digits[(second & 15) << 2 | third >> 6] : '=';
        *to++ = left > 2 ? digits[third & 63] : '=';
    }
    qr_buf_grown(out, len);
}

int qr_base64_digit(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

bool qr_base64_read(qr_str text, struct qr_buf *out)
{
    unsigned bits = 0;
    size_t count = 0, padding = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        const int value = qr_base64_digit(c);
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            continue;
        }
        if (c == '=') {
            padding++;
            continue;
        }
        if (value < 0 || padding > 0) {
            return false;
        }
        bits = bits << 6 | (unsigned)value;
        if (++count % 4 != 1) {
            qr_buf_add_char(out, (char)(bits >> (6 - (count - 1) % 4 * 2) & 0xFF));
        }
    }
    return count % 4 != 1 && padding <= 2 && (padding == 0 || (count + padding) % 4 == 0);
}
