/* HTML to Markdown: parses (html_tree.c), finds the main content (html_measure.c), writes it down (html_write.c), and keeps
 * what came out. Pure, but for the arena. */
#include "convert/html.h"

#include "base/buf.h"
#include "convert/html_tree.h"
#include "convert/title.h"

enum { HTML_BYTES_MAX = 64 << 20 }; /* its tree takes many times as much */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The text of <title>. */
static void read_title(const struct qr_html_page *page, struct qr_buf *title)
{
    for (unsigned i = 0; page->title && i < page->title->v.element.children.length; i++) {
        const GumboNode *child = page->title->v.element.children.data[i];
        qr_str rest = child->type == GUMBO_NODE_TEXT ? qr_str_of(child->v.text.text) : (qr_str){0};
        for (size_t k = 0; k < rest.len; k++) { /* any white space is one space */
            const bool is_gap = is_space(rest.ptr[k]);
            if (!is_gap || (title->len && title->data[title->len - 1] != ' ')) {
                qr_buf_add_char(title, is_gap ? ' ' : rest.ptr[k]);
            }
        }
    }
}

/* It, or the first heading. */
static qr_rc keep_title(const struct qr_buf *title, qr_str text, struct qr_arena *arena, const char **ret_title,
                        qr_err *err)
{
    QR_TRY(qr_buf_check(title, err));
    qr_str found = qr_str_trim(qr_utf8_prefix(qr_buf_str(title), QR_TITLE_BYTES_MAX));
    found = found.len ? found : qr_convert_title(text);
    *ret_title = found.len ? qr_arena_copy(arena, found) : NULL;
    return found.len && !*ret_title ? qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory") : QR_OK;
}

static qr_rc keep(const struct qr_buf *out, const struct qr_buf *marks, struct qr_arena *arena,
                  struct qr_converted *ret, qr_err *err)
{
    char *text = qr_arena_copy(arena, qr_buf_str(out));
    struct qr_line_mark *lines = qr_arena_alloc(arena, marks->len);
    if (!text || !lines) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for %zu bytes of text", out->len);
    }
    if (marks->len) {
        memcpy(lines, marks->data, marks->len);
    }
    ret->text = (qr_str){text, out->len};
    ret->lines = lines;
    ret->line_count = marks->len / sizeof *lines;
    return QR_OK;
}

qr_rc qr_convert_html(struct qr_decoded *decoded, struct qr_arena *arena, struct qr_converted *ret, qr_err *err)
{
    if (decoded->len > HTML_BYTES_MAX) {
        return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "an HTML page of %zu bytes; at most %d are read", decoded->len,
                       (int)HTML_BYTES_MAX);
    }
    QR_CLEANUP(qr_html_tree_done) struct qr_html_tree tree = {0};
    QR_CLEANUP(qr_html_page_done) struct qr_html_page page = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf marks = {0}; /* of struct qr_line_mark */
    QR_CLEANUP(qr_buf_done) struct qr_buf title = {0};
    QR_TRY(qr_html_tree_init(&tree, decoded->text, decoded->len, err));
    QR_TRY(qr_html_measure(tree.root, &page, err));
    QR_TRY(qr_html_write(&page, &out, &marks, err));
    read_title(&page, &title);
    qr_html_tree_done(&tree); /* large: before more is asked for */
    QR_TRY(keep(&out, &marks, arena, ret, err));
    return keep_title(&title, ret->text, arena, &ret->title, err);
}
