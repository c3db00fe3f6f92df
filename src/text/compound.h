/* Words and what is made of several: where one begins and ends, and its parts. Private to src/text/. Pure. */
#pragma once

#include "text/unicode.h"

enum { COMPOUND_PARTS_MAX = 32 };

struct compound_part {
    size_t start, end;
    char joiner; /* stands before it in the whole; '\0' = nothing does */
    bool has_digit;
};

struct compound {
    struct compound_part
        parts[COMPOUND_PARTS_MAX]; /* letters or digits; what changes too often between them stays one */
    size_t count;                  /* at least one */
    size_t end;
    size_t next;        /* where the text goes on: behind 's as well */
    const char *suffix; /* "++" or "#" of a programming language, or "" */
    bool is_ascii, has_digit;
};

/* Reads what begins at `at` with a letter or digit. */
void qr_compound_read(qr_str text, size_t at, struct compound *ret_compound);

/* The end of the URL that begins at `at`, or 0 when none does; *ret_named is where it begins to differ from others: behind
 * https:// and www. */
size_t qr_url_end(qr_str text, size_t at, size_t *ret_named);
