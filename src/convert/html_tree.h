/* The tree of an HTML page, and what of it counts. Private to convert. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <gumbo.h>

struct qr_html_pool;

struct qr_html_tree {
    struct qr_html_pool *pool; /* owns all of the tree */
    const GumboNode *root;
};

/* Parses. Tags nested beyond any sense are blanked out in the text, which stays where it is as long as the tree.
 * `limit_exceeded` when the tree would need too much memory. */
qr_rc qr_html_tree_init(struct qr_html_tree *tree, char *text, size_t len, qr_err *err);
void qr_html_tree_done(struct qr_html_tree *tree);
/* html_flatten.c: blanks out the tags that are nested too deeply. */
void qr_html_flatten(char *text, size_t len);

/* ---- html_measure.c: the main content ---- */

/* Of an element, in the order of the start tags. What is below a dropped element is in no place of its own, unless it is
 * counted in `size`. */
struct qr_html_place {
    uint32_t size;                    /* elements that have a place: itself and those below */
    uint32_t text, links, link_count; /* bytes of text, of them in links */
    uint32_t cells;                   /* of a row, or of the widest row of a table */
    float score;
    uint8_t flags;
};

enum {
    QR_HTML_DROPPED = 1,    /* is not shown */
    QR_HTML_SUSPECT = 2,    /* called as navigation is called */
    QR_HTML_HAS_BLOCKS = 4, /* what does not go into a table's cell */
    QR_HTML_HAS_H1 = 8,
    QR_HTML_INSIDE = 16, /* main or article, or inside one */
    QR_HTML_EXPLICIT = 32,
    QR_HTML_LIST = 64,   /* may be dropped for being a list of links */
    QR_HTML_LINKY = 128, /* called as a line of links is called */
};

struct qr_html_page {
    struct qr_html_place *places; /* qr_free */
    size_t count;
    const GumboNode *main;    /* what to show, NULL = nothing */
    size_t main_at;           /* its place */
    const GumboNode *heading; /* the h1 that stands apart from it; NULL = none */
    size_t heading_at;
    const GumboNode *title; /* NULL = none */
};

qr_rc qr_html_measure(const GumboNode *root, struct qr_html_page *ret, qr_err *err);
void qr_html_page_done(struct qr_html_page *page);

/* ---- html_write.c ---- */

/* Appends the page as Markdown to `out`, and its struct qr_line_mark to `marks`. */
struct qr_buf;
qr_rc qr_html_write(const struct qr_html_page *page, struct qr_buf *out, struct qr_buf *marks, qr_err *err);

/* ---- what they share ---- */

const char *qr_html_attribute(const GumboElement *element, const char *name); /* "" = none */

/* A stack of any depth: the input's is not ours to choose. */
struct qr_html_frame {
    const GumboNode *node;
    unsigned next; /* child */
    size_t at;     /* place */
    /* of html_write.c, as it was before the element */
    uint32_t list_number;
    uint8_t prefix_len, marker_len;
};
struct qr_html_stack {
    struct qr_html_frame *frames;
    size_t depth, capacity;
};
struct qr_html_frame *qr_html_push(struct qr_html_stack *stack, const GumboNode *node,
                                   size_t at); /* NULL = no memory */
void qr_html_stack_done(struct qr_html_stack *stack);
