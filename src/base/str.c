/* Borrowed strings. Pure. */
#include "base/str.h"

#include <strings.h>

bool qr_str_equal_any_case(qr_str a, qr_str b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

int qr_str_compare(qr_str a, qr_str b)
{
    const size_t shorter = QR_MIN(a.len, b.len);
    const int order = shorter ? memcmp(a.ptr, b.ptr, shorter) : 0;
    if (order != 0) {
        return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool qr_str_starts_with(qr_str text, qr_str prefix)
{
    return text.len >= prefix.len && qr_str_equal((qr_str){text.ptr, prefix.len}, prefix);
}

bool qr_str_ends_with(qr_str text, qr_str suffix)
{
    if (suffix.len == 0) {
        return true; /* and the text may be NULL, from which nothing can be counted */
    }
    return text.len >= suffix.len && qr_str_equal((qr_str){text.ptr + text.len - suffix.len, suffix.len}, suffix);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

qr_str qr_str_trim(qr_str text)
{
    while (text.len && is_space(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len && is_space(text.ptr[text.len - 1])) {
        text.len--;
    }
    return text;
}

qr_str qr_str_split(qr_str *text, char separator)
{
    const char *found = text->len ? memchr(text->ptr, separator, text->len) : NULL;
    if (!found) {
        const qr_str whole = *text;
        *text = (qr_str){text->ptr ? text->ptr + text->len : NULL, 0};
        return whole;
    }
    const qr_str before = {text->ptr, (size_t)(found - text->ptr)};
    *text = (qr_str){found + 1, text->len - before.len - 1};
    return before;
}

bool qr_str_to_i64(qr_str text, int64_t *ret_value)
{
    const bool negative = text.len && text.ptr[0] == '-';
    if (negative) {
        text.ptr++;
        text.len--;
    }
    if (text.len == 0) {
        return false;
    }
    int64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        const int64_t digit = negative ? -(text.ptr[i] - '0') : text.ptr[i] - '0';
        if (QR_MUL_OVERFLOWS(value, (int64_t)10, &value) || QR_ADD_OVERFLOWS(value, digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return true;
}

size_t qr_utf8_char_len(qr_str text)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max, len;
    } forms[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    const unsigned char *s = (const unsigned char *)text.ptr;
    if (text.len == 0 || s[0] < 0x80) {
        return text.len ? 1 : 0;
    }
    for (size_t i = 0; i < QR_COUNT(forms); i++) {
        if (s[0] < forms[i].first_min || s[0] > forms[i].first_max) {
            continue;
        }
        const size_t len = forms[i].len;
        if (text.len < len || s[1] < forms[i].second_min || s[1] > forms[i].second_max) {
            return 0;
        }
        for (size_t k = 2; k < len; k++) {
            if ((s[k] & 0xC0) != 0x80) {
                return 0;
            }
        }
        return len;
    }
    return 0;
}

int qr_hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool qr_utf8_valid(qr_str text)
{
    size_t i = 0;
    while (i < text.len) {
        /* eight ASCII bytes at a time: most text is */
        uint64_t word;
        if (text.len - i >= sizeof word) {
            memcpy(&word, text.ptr + i, sizeof word);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof word;
                continue;
            }
        }
        const size_t len = qr_utf8_char_len((qr_str){text.ptr + i, text.len - i});
        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

qr_str qr_utf8_prefix(qr_str text, size_t len_max)
{
    if (text.len <= len_max) {
        return text;
    }
    size_t len = len_max;
    while (len > 0 && ((unsigned char)text.ptr[len] & 0xC0) == 0x80) {
        len--;
    }
    return (qr_str){text.ptr, len};
}

unsigned qr_str_distance(qr_str a, qr_str b, unsigned limit)
{
    enum { WORD_MAX = 64 }; /* longer words are not typing mistakes of one another */
    if (a.len > WORD_MAX || b.len > WORD_MAX) {
        return limit;
    }
    unsigned row[WORD_MAX + 1];
    for (unsigned j = 0; j <= b.len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            const unsigned substitute = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            diagonal = row[j];
            row[j] = QR_MIN(substitute, QR_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return QR_MIN(row[b.len], limit);
}

struct qr_nearest qr_nearest_to(qr_str word)
{
    /* up to a third of it mistyped, and always room for two letters swapped */
    return (struct qr_nearest){.word = word, .distance = QR_MAX(3u, (unsigned)QR_MIN(word.len, 64u) / 3 + 1)};
}

void qr_nearest_offer(struct qr_nearest *nearest, qr_str name)
{
    const unsigned distance = qr_str_distance(nearest->word, name, nearest->distance);
    if (distance < nearest->distance) {
        nearest->distance = distance;
        nearest->name = name;
    }
}
