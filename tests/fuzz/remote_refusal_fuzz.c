/* Whatever a server answers: its headers give bounded numbers, its words are one clean line, and no key is in them. The input
 * is a status (two bytes), header lines up to an empty one, and the body. */
#include "remote/headers.h"
#include "remote/key.h"
#include "remote/refusal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

#define KEY "sk-fuzz-0123456789"

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static qr_str read_headers(qr_str text, struct qr_remote_headers *headers)
{
    enum { DAY_MS = 86400000 };
    while (text.len > 0) {
        const qr_str line = qr_str_split(&text, '\n');
        if (qr_str_trim(line).len == 0) {
            break;
        }
        qr_remote_headers_add(headers, line, 1700000000000);
        require(headers->retry_after_ms >= 0 && headers->retry_after_ms <= DAY_MS);
        require(headers->requests.reset_ms >= 0 && headers->requests.reset_ms <= DAY_MS);
        require(headers->tokens.reset_ms >= 0 && headers->tokens.reset_ms <= DAY_MS);
        require(headers->requests.remaining >= 0 && headers->tokens.remaining >= 0);
    }
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    char words[QR_REFUSAL_WORDS_SIZE];
    struct qr_remote_headers headers = {0};
    QR_KEY_TEXT(key);
    if (size_bytes < 2) {
        return 0;
    }
    const int status = 100 + (bytes[0] << 8 | bytes[1]) % 500;
    const qr_str body = read_headers((qr_str){(const char *)bytes + 2, size_bytes - 2}, &headers);
    const enum qr_refusal refusal = qr_refusal_read(status, body, words);
    require((refusal == QR_REFUSAL_NONE) == (status >= 200 && status < 300));
    require(qr_utf8_valid(qr_str_of(words)));
    for (const char *at = words; *at; at++) {
        require((unsigned char)*at >= ' ' && *at != 0x7F);
    }
    qr_buf_add_text(&key.text, KEY);
    if (key.text.failed == QR_CODE_NONE) {
        qr_key_scrub(&key, words);
        require(!strstr(words, KEY));
    }
    return 0;
}
