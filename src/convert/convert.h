/* From the bytes of a source to canonical text: valid UTF-8 without NUL, byte order mark and \r.
 *
 * Canonical text is the source itself, line for line, for everything but HTML, which becomes Markdown. `mime` says how
 * the text is structured, for the splitter:
 *     text/markdown  text/plain  text/x-rst  text/org  text/asciidoc  text/x-tex  text/csv  text/tab-separated-values
 *     application/json  application/jsonl  text/x-log  text/x-code;language=NAME (c, python, yaml, xml, sh …) */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "model/stage_result.h"

/* From this byte of the text on it is this page, until the next mark. Offsets rise. */
struct qr_page_mark {
    size_t offset;
    int64_t page; /* from 1 */
};

/* From this byte of the text on it is this line of the source, until the next mark. Offsets rise, lines never fall. */
struct qr_line_mark {
    size_t offset;
    int64_t line; /* from 1 */
};

struct qr_converted {
    qr_str text;             /* canonical */
    const char *mime;        /* how the text is structured */
    const char *source_mime; /* what the source is: text/html where `mime` is text/markdown */
    const char *title;       /* NULL = it has none: its name serves */
    const char *charset;     /* of the source: "utf-8", "utf-16le", "windows-1251" … */
    struct qr_page_mark *pages;
    size_t page_count; /* 0 for what has no pages */
    struct qr_line_mark *lines;
    size_t line_count; /* 0 = line N of the text is line N of the source */
    struct qr_warning *warnings;
    size_t warning_count;
};

/* Converts a source. `name` is its file name or path and decides the format before the content does; NULL or "" where
 * there is none. Everything in *ret lives in the arena. Pure, but for the arena.
 *
 * `unsupported_type`: it is not text, whatever its name says. `limit_exceeded`: HTML that is too large or nested beyond
 * sense. Warnings: `empty` (nothing but white space), `charset_guessed` (no byte order mark, no declaration and not
 * UTF-8), `charset_mixed` (UTF-8 with lines of another encoding, UTF-16 or UTF-32 with parts that are no
 * characters). */
qr_rc qr_convert(qr_str bytes, const char *name, struct qr_arena *arena, struct qr_converted *ret, qr_err *err);
/* The same, with bytes that nobody needs any longer: they are let go before the most memory is needed. */
qr_rc qr_convert_last(struct qr_buf *bytes, const char *name, struct qr_arena *arena, struct qr_converted *ret,
                      qr_err *err);

/* How canonical text is structured, one of the above: by the name of what it was made from (may be empty), else by itself. */
const char *qr_convert_structure(qr_str name, qr_str text);

/* The source line of a byte of the text by its marks; 0 when there are none before it. */
int64_t qr_line_mark_find(const struct qr_line_mark *lines, size_t count, size_t offset);

/* The same for text whose name is not known: Markdown when it has a heading, else plain text. *ret_title: the first
 * Markdown heading, NULL when there is none. */
qr_rc qr_convert_text(qr_str bytes, struct qr_arena *arena, qr_str *ret_text, const char **ret_mime,
                      const char **ret_title, struct qr_warning **ret_warnings, size_t *ret_warning_count, qr_err *err);
/* The first heading of canonical text that says something, cut to a reasonable length; empty when there is none. */
qr_str qr_convert_title(qr_str text);
