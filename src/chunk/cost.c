/* The estimate: close to what the usual tokenizers make of English (4 bytes a token) and of CJK (a token a character);
 * other scripts are counted by their bytes, since those tokenizers were hardly trained on them. */
#include "chunk/cost.h"

#include "chunk/split.h"
#include "model/markdown.h"
#include "text/unicode.h"

static bool is_wide(uint32_t code)
{
    return code >= 0x1100 &&
           (code <= 0x11FF || (code >= 0x2E80 && code <= 0xA4CF) || (code >= 0xA960 && code <= 0xA97F) ||
            (code >= 0xAC00 && code <= 0xD7FF) || (code >= 0xF900 && code <= 0xFAFF) ||
            (code >= 0xFF01 && code <= 0xFF9F) || (code >= 0x20000 && code <= 0x3FFFD));
}

int64_t qr_rune_quarters(uint32_t code, size_t len)
{
    return is_wide(code) ? QR_QUARTERS_PER_TOKEN : (int64_t)len;
}

int64_t qr_quarters(qr_str text)
{
    int64_t quarters = 0;
    bool is_gap = false;
    for (size_t at = 0; at < text.len;) {
        if (text.ptr[at] > ' ' && !is_gap) { /* as below, but quickly */
            quarters++;
            at++;
            continue;
        }
        const qr_str rest = {text.ptr + at, text.len - at};
        const size_t space = qr_space_len(rest);
        const struct qr_rune rune = space == 0 ? qr_rune_at(rest) : (struct qr_rune){0};
        if (!space) {
            quarters += qr_rune_quarters(rune.code, rune.len) + (is_gap && quarters > 0);
        }
        is_gap = space > 0;
        at += space ? space : rune.len;
    }
    return quarters;
}

int64_t qr_token_count(qr_str text)
{
    return (qr_quarters(text) + QR_QUARTERS_PER_TOKEN - 1) / QR_QUARTERS_PER_TOKEN;
}
