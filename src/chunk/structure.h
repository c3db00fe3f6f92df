/* How texts are structured, a structure a mime: what each line of it is, or, where lines mean nothing, where its units end. */
#pragma once

#include "chunk/place.h"
#include "model/markdown.h"

struct qr_outline;

enum {
    QR_LINE_BYTES_MAX = QR_MD_LINE_BYTES_MAX, /* of a line that a structure gets to see */
    QR_HEADING_LEVELS = 6,
    QR_CONTEXT_LEVEL = QR_HEADING_LEVELS + 1, /* below the headings: what a piece is in the middle of */
    QR_TITLE_BYTES_MAX = 200,
};

/* A line that is not blank. */
struct qr_line {
    qr_str text; /* without its end; at most QR_LINE_BYTES_MAX */
    bool is_cut; /* it goes on */
    bool after_blank, is_first;
    qr_str rest; /* of the text, from the line's beginning: to look ahead */
};

/* The line behind it, as far as it is looked at; empty at the end. */
qr_str qr_line_after(const struct qr_line *line);
/* Takes the next line from *rest, which is left behind its end; at most QR_LINE_BYTES_MAX of it are given. */
qr_str qr_line_take(qr_str *rest);
size_t qr_line_indent(qr_str line); /* columns of spaces, a tab to the next 4th */
qr_str qr_line_inner(qr_str line);  /* without white space around it */
/* "- ", "12. ", "a) " and the like at the beginning of the inner line. */
bool qr_line_is_item(qr_str inner);
/* "=====": three or more of one punctuation character and nothing else; '\0' when it is not. */
char qr_line_underline(qr_str line);

/* What a line is. All zero: it goes on with what the lines before it are, and has no sentences. */
struct qr_line_is {
    enum qr_strength before; /* of the place before it */
    bool is_prose;           /* it has sentences */
    int level;               /* of the heading that begins here, 0 = none */
    qr_str title;            /* of it, a part of the text */
    bool is_also_body;       /* it is more than a heading: the next one may be cut from it */
    bool is_mark;            /* the line under a heading */
    int clears_level;        /* what follows is no longer under the heading of this level, 0 = it is */
    bool sets_context;       /* what a piece that begins here or below is in the middle of: a table, a language */
    qr_str context;          /* empty = nothing any more */
};

enum { QR_SYMBOLS_DEEP = 4, QR_JSON_DEEP = 64, QR_RST_MARKS = QR_HEADING_LEVELS };

/* A function, or a class with functions in it; what is below it is indented further. */
struct qr_code_symbol {
    size_t indent;
    bool is_container;
    bool is_open; /* its body has begun */
};

/* Everything that is kept from line to line; each structure has its own. */
union qr_structure_state {
    struct {
        struct qr_md_fence fence;
        qr_str language;
        bool in_front, in_table, table_is_cut, after_block, in_list, in_code, is_set, expects_mark;
        int64_t quarters_max;
        qr_str table_header;
    } markdown;
    struct {
        char marks[QR_RST_MARKS][2]; /* rst: how its headings are drawn, in the order of their levels */
        int mark_count;
        int expects_marks; /* lines of the heading that are still to come */
        char until[8];     /* the line that ends literal text: "----" */
        bool in_literal, is_set, after_literal, in_list;
        qr_str language;
    } markup;
    struct {
        unsigned family; /* which languages' rules hold, as code_symbol.h has them */
        struct qr_code_symbol symbols[QR_SYMBOLS_DEEP];
        int depth;
        int titled; /* the deepest level that has a title */
        bool in_comment;
        bool in_lead;        /* comments and the like above a symbol */
        bool title_is_taken; /* there already */
        bool after_end;      /* the line before it closed a symbol */
    } code;
    struct {
        char delimiter;
        bool in_quotes, at_field, has_row, has_header;
        size_t quoted_bytes;
    } table;
    struct {
        bool has_stamps, is_known;
    } log;
    struct {
        bool is_lines, in_string, is_escaped;
        int depth;
        uint8_t levels[QR_JSON_DEEP]; /* that the keys in it have */
        size_t string_at, string_end; /* of the last string */
        bool has_key, expects_member;
        int level_set; /* the deepest level that has a title */
    } json;
};

struct qr_structure {
    const char *mime;
    int tiny_part; /* a section below 1/tiny_part of the size takes the next one in; 0 = as usual */
    void (*init)(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max);
    /* One of the two. */
    struct qr_line_is (*line)(union qr_structure_state *state, const struct qr_line *line);
    /* Reads on from `at` to the end of a unit or to `to`, and says where it came; *ret_strength: of the place before what
     * is visible next, QR_NO_PLACE = none. */
    size_t (*advance)(union qr_structure_state *state, struct qr_outline *outline, size_t at, size_t to,
                      enum qr_strength *ret_strength);
};

/* NULL is Markdown; what is not known is plain text. */
const struct qr_structure *qr_structure_find(const char *mime);

extern const struct qr_structure qr_structure_markdown, qr_structure_plain, qr_structure_rst, qr_structure_org,
    qr_structure_asciidoc, qr_structure_tex, qr_structure_code, qr_structure_csv, qr_structure_tsv, qr_structure_log,
    qr_structure_json, qr_structure_jsonl;
