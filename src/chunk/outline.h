/* The one pass over a text: finds its places and headings, a little ahead of who cuts it. */
#pragma once

#include "base/err.h"
#include "chunk/structure.h"

/* From `at` on there is a heading, or another context. */
struct qr_heading {
    size_t at;
    int level;
    qr_str title;      /* empty = none at this level any more */
    bool follows_body; /* there is text between it and the heading before */
};

struct qr_outline {
    qr_str text;
    qr_str separator; /* a border behind each; empty = none */
    const struct qr_structure *structure;
    union qr_structure_state state;
    /* how far it came */
    size_t at;
    int64_t quarters; /* of everything visible before `at` */
    int64_t line;
    size_t visible_end; /* 0 = nothing was visible yet */
    int64_t visible_line;
    size_t line_begin, border_at, sentence_from;
    bool is_prose, has_line, after_blank; /* the line; whether there was one; whether those before it were blank */
    bool has_newline;                     /* in the white space before `at` */
    bool has_body;                        /* since the last heading */
    bool has_ended, has_ended_wide, is_unspaced; /* the last visible character: ends a sentence; is Thai or the like */
    enum qr_strength pending;                    /* of the place before what is visible next */
    int level;
    /* what was found and not yet taken */
    struct qr_place *places;
    size_t first_place, place_count, place_capacity;
    struct qr_heading *headings;
    size_t first_heading, heading_count, heading_capacity;
    bool is_out_of_memory;
    char header[QR_TITLE_BYTES_MAX + 8]; /* the names of a table's columns */
    uint64_t *work;                      /* counts the bytes that are looked at */
};

/* Everything is borrowed; quarters_max is what a piece may hold. */
void qr_outline_init(struct qr_outline *outline, qr_str text, const char *mime, qr_str separator, int64_t quarters_max);
void qr_outline_done(struct qr_outline *outline);

/* Reads on until the text up to there costs more than `quarters`, or to its end. */
qr_rc qr_outline_until(struct qr_outline *outline, int64_t quarters, qr_err *err);
static inline bool qr_outline_is_done(const struct qr_outline *outline)
{
    return outline->at == outline->text.len;
}

/* For structures that are not read by lines. */
void qr_outline_add_heading(struct qr_outline *outline, size_t at, int level, qr_str title, bool follows_body);
/* "name | city | age" of the row, over the whole text. */
void qr_outline_add_header(struct qr_outline *outline, qr_str row, char delimiter);

/* True when the point before the white space that ends at `next` ends a sentence. Looks at what is near only; `from` is
 * where the sentence or its line begins, or later. */
bool qr_point_ends_sentence(qr_str text, size_t from, size_t end, size_t next);

/* Not inside what people see as one character; of the characters before `at` only the last is looked at, which is no flag and
 * no joiner. */
bool qr_breaks_before(qr_str text, size_t at);
