/* Folding into the caller's memory. Private to src/text/; others use qr_fold of unicode.h. */
#pragma once

#include "text/unicode.h"

enum {
    UTF8_BYTES_MAX = 4,
    FOLD_SOURCE_BYTES_MAX = 256, /* of a text that is folded at once */
    /* Compatibility and case make at most 18 characters of one of three bytes (U+FDFA). */
    FOLD_CODES_MAX = FOLD_SOURCE_BYTES_MAX * 6 + 2,
    FOLDED_BYTES_MAX = FOLD_CODES_MAX * UTF8_BYTES_MAX,
};

/* The folded form of a valid text of at most FOLD_SOURCE_BYTES_MAX; returns its length. `out` has at least FOLDED_BYTES_MAX.
 */
size_t qr_fold_word(qr_str word, char *out, size_t size);
/* The same with its accents. */
size_t qr_fold_case(qr_str word, char *out, size_t size);
