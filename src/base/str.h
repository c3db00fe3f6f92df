/* Borrowed strings: a pointer and a length, never owned, not NUL-terminated. */
#pragma once

#include "base/compiler.h"

#include <string.h>

typedef struct qr_str {
    const char *ptr;
    size_t len;
} qr_str;

#define QR_STR(literal) ((qr_str){"" literal, sizeof(literal) - 1})
/* printf("%.*s", QR_STR_ARG(s)); cut at 2 GB, since a negative precision would print to the next NUL */
#define QR_STR_ARG(s) (int)QR_MIN((s).len, (size_t)INT32_MAX), (s).ptr

static inline qr_str qr_str_of(const char *text)
{
    return (qr_str){text, text ? strlen(text) : 0};
}

static inline bool qr_str_equal(qr_str a, qr_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* The same but for the case of ASCII's letters. */
bool qr_str_equal_any_case(qr_str a, qr_str b);

/* Byte order, shorter first. */
int qr_str_compare(qr_str a, qr_str b);
bool qr_str_starts_with(qr_str text, qr_str prefix);
bool qr_str_ends_with(qr_str text, qr_str suffix);
qr_str qr_str_trim(qr_str text);

/* The part before the first `separator`, which is taken from *text together with it; the whole of *text, leaving it
 * empty, when there is none. */
qr_str qr_str_split(qr_str *text, char separator);

/* Whole decimal number, perhaps with a minus; false when there is anything else in the text or it does not fit. */
bool qr_str_to_i64(qr_str text, int64_t *ret_value);

/* 0 to 15 of a hexadecimal digit in either case, -1 of anything else. */
int qr_hex_digit(char c);

/* Valid UTF-8 by the strict definition: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool qr_utf8_valid(qr_str text);
/* The length in bytes of the valid character that the text begins with; 0 when it begins otherwise or is empty. */
size_t qr_utf8_char_len(qr_str text);
/* The longest prefix of at most `len_max` bytes that does not cut a character. */
qr_str qr_utf8_prefix(qr_str text, size_t len_max);

/* How many single-character edits lead from one to the other, or `limit` if that many or more: for "did you mean". */
unsigned qr_str_distance(qr_str a, qr_str b, unsigned limit);

/* "Did you mean …": offer every name there is, then `name` is the one most like the word, ptr NULL when none is close.
 */
struct qr_nearest {
    qr_str word;
    unsigned distance;
    qr_str name;
};
struct qr_nearest qr_nearest_to(qr_str word);
void qr_nearest_offer(struct qr_nearest *nearest, qr_str name);
