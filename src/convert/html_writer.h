/* A page that is being written as Markdown. Private to html_write.c and html_lines.c.
 *
 * White space is written late: `breaks` and `space` say what is due before the next word, so that elements without text
 * leave no trace. A marker ("- ", "## ") waits in the same way. */
#pragma once

#include "base/buf.h"
#include "convert/convert.h"
#include "convert/html_tree.h"

enum {
    HTML_PREFIX_BYTES_MAX = 48, /* lists and quotes deeper than that are written as if they were less deep */
    HTML_LANGUAGE_BYTES_MAX = 24,
};

struct html_writer {
    struct qr_buf *out, *marks;
    int64_t line, line_marked;
    unsigned breaks; /* line ends due: 1, or 2 for a paragraph */
    bool space;      /* due between words */
    bool line_is_empty;
    char prefix[HTML_PREFIX_BYTES_MAX];
    size_t prefix_len, prefix_before; /* of this and of the line before */
    char marker[HTML_PREFIX_BYTES_MAX];
    size_t marker_len, marker_at; /* and where in the prefix it stands */

    const struct qr_html_page *page;
    struct qr_html_stack stack;
    size_t next_place;
    unsigned heading_depth, cell_depth, pre_depth;
    struct qr_buf pre;
    int64_t pre_line;
    char language[HTML_LANGUAGE_BYTES_MAX + 1];
    size_t table_depth; /* of the stack, where a table of data is open; 0 = none is */
    unsigned row, column;
};

bool qr_html_is_space(char c);

/* ---- html_lines.c ---- */

/* So many line ends are due; in a cell or a heading a space is. */
void qr_html_break_line(struct html_writer *w, unsigned breaks);
/* Notes the source line of what comes next. */
void qr_html_mark_line(struct html_writer *w);
/* What stands in an empty line between two lines: quotes go on, indents do not. */
qr_str qr_html_blank_prefix(const struct html_writer *w);
/* Writes what is due before a word. */
void qr_html_begin_word(struct html_writer *w);
/* As it is, behind what is due. */
void qr_html_add_raw(struct html_writer *w, const char *text);
/* The words of the text, which begins in that line of the source; inside code all of it. */
void qr_html_add_text(struct html_writer *w, qr_str text, int64_t line);
