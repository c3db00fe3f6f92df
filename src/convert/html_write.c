/* Writes the main content of a page as Markdown, with the source line of each line and of each line's parts. Pure.
 * Words and lines are html_lines.c's.
 *
 * Links are written as their text, pictures as their alternative text; addresses are no words that somebody looks for. */
#include "convert/html_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
    COLUMNS_MAX = 20,     /* of a cell that spans */
    CELL_BYTES_MAX = 500, /* on average; a table of larger ones only arranges text */
};

/* ---- lists and quotes ---- */

/* Something that begins the next line and indents those after it. */
static void add_marker(struct html_writer *w, const char *marker, bool indents)
{
    const size_t len = strlen(marker);
    if (w->pre_depth || w->cell_depth || w->heading_depth || w->marker_len + len > HTML_PREFIX_BYTES_MAX) {
        return;
    }
    w->marker_at = w->marker_len ? w->marker_at : w->prefix_len;
    memcpy(w->marker + w->marker_len, marker, len);
    w->marker_len += len;
    if (indents && w->prefix_len + len <= HTML_PREFIX_BYTES_MAX) {
        memset(w->prefix + w->prefix_len, ' ', len);
        w->prefix_len += len;
    }
}

static void enter_item(struct html_writer *w)
{
    char marker[16] = "- ";
    struct qr_html_frame *list = w->stack.depth > 1 ? &w->stack.frames[w->stack.depth - 2] : NULL;
    if (list && list->node->v.element.tag == GUMBO_TAG_OL) {
        snprintf(marker, sizeof marker, "%u. ", list->list_number++);
    }
    qr_html_break_line(w, 1);
    add_marker(w, marker, true);
}

static void enter_quote(struct html_writer *w)
{
    qr_html_break_line(w, 2);
    if (!w->pre_depth && !w->cell_depth && !w->heading_depth && w->marker_len == 0 &&
        w->prefix_len + 2 <= HTML_PREFIX_BYTES_MAX) {
        memcpy(w->prefix + w->prefix_len, "> ", 2);
        w->prefix_len += 2;
    }
}

/* ---- code ---- */

static void find_language(struct html_writer *w, const GumboElement *element)
{
    static const char *const prefixes[] = {"language-",  "lang-",  "highlight-source-",
                                           "highlight-", "brush:", "sourceCode "};
    const char *class = qr_html_attribute(element, "class");
    for (size_t i = 0; i < QR_COUNT(prefixes) && !w->language[0]; i++) {
        const char *found = strcasestr(class, prefixes[i]);
        const char *name = found ? found + strlen(prefixes[i]) : "";
        name += strspn(name, " ");
        const size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#-_.");
        const bool is_one = len && len <= HTML_LANGUAGE_BYTES_MAX && strncmp(name, "default", len) != 0 &&
                            strncmp(name, "none", len) != 0;
        if (is_one) {
            memcpy(w->language, name, len);
            w->language[len] = '\0';
        }
    }
}

static void enter_pre(struct html_writer *w, const GumboElement *element)
{
    qr_html_break_line(w, 2);
    if (w->pre_depth++ == 0) {
        qr_buf_clear(&w->pre);
        w->language[0] = '\0';
        find_language(w, element);
        for (size_t i = 2; i <= 3 && i <= w->stack.depth; i++) { /* <div class="highlight-c"><div><pre> */
            find_language(w, &w->stack.frames[w->stack.depth - i].node->v.element);
        }
    }
}

/* Inside of pre: it may say the language, and a second one begins a line. */
static void enter_code(struct html_writer *w, const GumboElement *element)
{
    find_language(w, element);
    if (w->pre.len && w->pre.data[w->pre.len - 1] != '\n' && qr_html_attribute(element, "class")[0]) {
        qr_buf_add_char(&w->pre, '\n');
    }
}

static size_t longest_run(qr_str text, char c)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < text.len; i++) {
        run = text.ptr[i] == c ? run + 1 : 0;
        longest = QR_MAX(longest, run);
    }
    return longest;
}

static void add_fence(struct html_writer *w, size_t len, const char *language)
{
    qr_html_break_line(w, 1);
    qr_html_begin_word(w);
    for (size_t i = 0; i < len; i++) {
        qr_buf_add_char(w->out, '`');
    }
    qr_buf_add_text(w->out, language);
    w->line_is_empty = false;
}

static void leave_pre(struct html_writer *w)
{
    if (--w->pre_depth) {
        return;
    }
    qr_html_break_line(w, 2);
    qr_str code = qr_buf_str(&w->pre);
    while (code.len && qr_html_is_space(code.ptr[code.len - 1])) {
        code.len--;
    }
    int64_t line = w->pre_line;
    for (size_t i = 0; i < code.len && qr_html_is_space(code.ptr[i]); i++) { /* empty lines at the beginning */
        if (code.ptr[i] == '\n') {
            code = (qr_str){code.ptr + i + 1, code.len - i - 1};
            line++;
            i = (size_t)-1;
        }
    }
    if (code.len == 0) {
        return;
    }
    if (w->cell_depth || w->heading_depth) {
        qr_html_add_text(w, code, line);
        return;
    }
    const size_t fence_len = QR_MAX((size_t)3, longest_run(code, '`') + 1);
    w->line = line;
    add_fence(w, fence_len, w->language);
    while (code.len) {
        const qr_str row = qr_str_split(&code, '\n');
        qr_buf_add_char(w->out, '\n');
        w->line = line++;
        qr_html_mark_line(w);
        qr_buf_add(w->out, row.len ? (qr_str){w->prefix, w->prefix_len} : qr_html_blank_prefix(w));
        for (size_t i = 0; i < row.len; i++) {
            qr_buf_add_char(w->out, row.ptr[i] == '\r' ? ' ' : row.ptr[i]);
        }
    }
    add_fence(w, fence_len, "");
    qr_html_break_line(w, 2);
}

/* ---- tables ---- */

/* Whether it has rows and columns, rather than arranging the page. */
static bool is_data(const GumboElement *element, const struct qr_html_place *place)
{
    return !(place->flags & QR_HTML_HAS_BLOCKS) && place->cells > 1 &&
           strcasecmp(qr_html_attribute(element, "role"), "presentation") != 0 &&
           place->text <= (uint64_t)place->size * CELL_BYTES_MAX;
}

static void enter_cell(struct html_writer *w)
{
    if (w->column == 0) {
        qr_html_add_raw(w, "|");
    }
    w->space = true;
    w->cell_depth++;
}

static void leave_cell(struct html_writer *w, const GumboElement *element)
{
    const int64_t span = strtol(qr_html_attribute(element, "colspan"), NULL, 10);
    w->cell_depth--;
    for (int64_t i = 0; i < QR_MAX((int64_t)1, QR_MIN(span, (int64_t)COLUMNS_MAX)); i++) {
        w->space = true;
        qr_html_add_raw(w, "|");
        w->column++;
    }
    w->space = false;
}

static void leave_row(struct html_writer *w)
{
    if (w->column && w->row++ == 0) { /* the first row is the header: Markdown has no table without one */
        qr_html_break_line(w, 1);
        qr_html_add_raw(w, "|");
        for (unsigned i = 0; i < w->column; i++) {
            qr_buf_add_text(w->out, " --- |");
        }
    }
    qr_html_break_line(w, 1);
}

/* ---- the walk ---- */

enum { PARAGRAPH = 1, LINE = 2 };

static const uint8_t breaks[GUMBO_TAG_LAST + 1] = {
    [GUMBO_TAG_BODY] = PARAGRAPH,    [GUMBO_TAG_ARTICLE] = PARAGRAPH, [GUMBO_TAG_SECTION] = PARAGRAPH,
    [GUMBO_TAG_NAV] = PARAGRAPH,     [GUMBO_TAG_ASIDE] = PARAGRAPH,   [GUMBO_TAG_HEADER] = PARAGRAPH,
    [GUMBO_TAG_FOOTER] = PARAGRAPH,  [GUMBO_TAG_MAIN] = PARAGRAPH,    [GUMBO_TAG_ADDRESS] = PARAGRAPH,
    [GUMBO_TAG_P] = PARAGRAPH,       [GUMBO_TAG_HR] = PARAGRAPH,      [GUMBO_TAG_FIGURE] = PARAGRAPH,
    [GUMBO_TAG_DIV] = PARAGRAPH,     [GUMBO_TAG_CENTER] = PARAGRAPH,  [GUMBO_TAG_TABLE] = PARAGRAPH,
    [GUMBO_TAG_CAPTION] = PARAGRAPH, [GUMBO_TAG_FORM] = PARAGRAPH,    [GUMBO_TAG_FIELDSET] = PARAGRAPH,
    [GUMBO_TAG_DETAILS] = PARAGRAPH, [GUMBO_TAG_SUMMARY] = PARAGRAPH, [GUMBO_TAG_HGROUP] = PARAGRAPH,
    [GUMBO_TAG_DL] = PARAGRAPH,      [GUMBO_TAG_FIGCAPTION] = LINE,   [GUMBO_TAG_LEGEND] = LINE,
    [GUMBO_TAG_TR] = LINE,           [GUMBO_TAG_TD] = LINE,           [GUMBO_TAG_TH] = LINE,
    [GUMBO_TAG_DT] = LINE,           [GUMBO_TAG_OPTION] = LINE,
};

static bool is_heading(GumboTag tag)
{
    return tag >= GUMBO_TAG_H1 && tag <= GUMBO_TAG_H6;
}

static bool is_list(GumboTag tag)
{
    return tag == GUMBO_TAG_UL || tag == GUMBO_TAG_OL || tag == GUMBO_TAG_DIR || tag == GUMBO_TAG_MENU;
}

static bool is_pre(GumboTag tag)
{
    return tag == GUMBO_TAG_PRE || tag == GUMBO_TAG_XMP || tag == GUMBO_TAG_LISTING || tag == GUMBO_TAG_PLAINTEXT;
}

static void break_for(struct html_writer *w, GumboTag tag)
{
    if (breaks[tag]) {
        qr_html_break_line(w, breaks[tag] == PARAGRAPH ? 2 : 1);
    }
}

static void enter_list(struct html_writer *w, struct qr_html_frame *frame)
{
    const char *start = qr_html_attribute(&frame->node->v.element, "start");
    const long first = start[0] ? strtol(start, NULL, 10) : 1;
    frame->list_number = first >= 0 && first < 1000000 ? (uint32_t)first : 1;
    qr_html_break_line(w, w->prefix_len ? 1 : 2);
}

static void enter_heading(struct html_writer *w, GumboTag tag)
{
    char marker[8] = "######";
    qr_html_break_line(w, 2);
    snprintf(marker + (tag - GUMBO_TAG_H1) + 1, 2, " ");
    add_marker(w, marker, false);
    w->heading_depth++;
}

static void enter_element(struct html_writer *w, struct qr_html_frame *frame)
{
    const GumboElement *element = &frame->node->v.element;
    const GumboTag tag = element->tag;
    if (is_heading(tag)) {
        enter_heading(w, tag);
    } else if (is_list(tag)) {
        enter_list(w, frame);
    } else if (is_pre(tag)) {
        enter_pre(w, element);
    } else if (tag == GUMBO_TAG_CODE && w->pre_depth) {
        enter_code(w, element);
    } else if (tag == GUMBO_TAG_LI) {
        enter_item(w);
    } else if (tag == GUMBO_TAG_BLOCKQUOTE) {
        enter_quote(w);
    } else if (tag == GUMBO_TAG_DD) {
        qr_html_break_line(w, 1);
        add_marker(w, ": ", true);
    } else if (tag == GUMBO_TAG_TABLE && !w->table_depth && !w->pre_depth && !w->heading_depth &&
               is_data(element, &w->page->places[frame->at])) {
        qr_html_break_line(w, 2);
        w->table_depth = w->stack.depth;
        w->row = 0;
    } else if (w->table_depth && tag == GUMBO_TAG_TR) {
        qr_html_break_line(w, 1);
        w->column = 0;
    } else if (w->table_depth && (tag == GUMBO_TAG_TD || tag == GUMBO_TAG_TH)) {
        enter_cell(w);
    } else {
        break_for(w, tag);
    }
}

static void leave_element(struct html_writer *w, const struct qr_html_frame *frame)
{
    const GumboElement *element = &frame->node->v.element;
    const GumboTag tag = element->tag;
    if (is_pre(tag)) {
        leave_pre(w);
    } else if (w->table_depth && (tag == GUMBO_TAG_TD || tag == GUMBO_TAG_TH)) {
        leave_cell(w, element);
    } else if (w->table_depth && tag == GUMBO_TAG_TR) {
        leave_row(w);
    }
    w->heading_depth -= is_heading(tag);
    w->prefix_len = frame->prefix_len;
    w->marker_len = QR_MIN(w->marker_len, (size_t)frame->marker_len); /* of an element without a word */
    if (w->table_depth == w->stack.depth + 1) {
        w->table_depth = 0;
    }
    if (w->table_depth && (tag == GUMBO_TAG_TD || tag == GUMBO_TAG_TH || tag == GUMBO_TAG_TR)) {
        return;
    }
    if (is_heading(tag) || is_pre(tag) || tag == GUMBO_TAG_BLOCKQUOTE) {
        qr_html_break_line(w, 2);
    } else if (is_list(tag)) {
        qr_html_break_line(w, w->prefix_len ? 1 : 2);
    } else if (tag == GUMBO_TAG_LI || tag == GUMBO_TAG_DD) {
        qr_html_break_line(w, 1);
    } else {
        break_for(w, tag);
    }
}

/* "¶" and the like behind a heading: a link to itself. */
static bool is_permalink(const GumboElement *element)
{
    if (element->tag != GUMBO_TAG_A || element->children.length != 1) {
        return false;
    }
    const GumboNode *child = element->children.data[0];
    const qr_str text = child->type == GUMBO_NODE_TEXT ? qr_str_trim(qr_str_of(child->v.text.text)) : QR_STR("-");
    return qr_str_equal(text, QR_STR("¶")) || qr_str_equal(text, QR_STR("#")) || qr_str_equal(text, QR_STR("§")) ||
           qr_str_equal(text, QR_STR("\U0001F517"));
}

/* False when out of memory. */
static bool enter_node(struct html_writer *w, const GumboNode *node)
{
    switch (node->type) {
    case GUMBO_NODE_TEXT:
    case GUMBO_NODE_CDATA:
    case GUMBO_NODE_WHITESPACE:
        qr_html_add_text(w, qr_str_of(node->v.text.text), node->v.text.start_pos.line);
        return true;
    case GUMBO_NODE_ELEMENT:
        break;
    default:
        return true;
    }
    const GumboElement *element = &node->v.element;
    const size_t at = w->next_place;
    const struct qr_html_place *place = &w->page->places[at];
    if (place->flags & QR_HTML_DROPPED || (w->heading_depth && is_permalink(element))) {
        w->next_place += place->size;
        return true;
    }
    w->next_place++;
    w->line = element->start_pos.line ? element->start_pos.line : w->line; /* implied ones are nowhere */
    if (element->tag == GUMBO_TAG_BR && w->pre_depth) {
        qr_buf_add_char(&w->pre, '\n');
    } else if (element->tag == GUMBO_TAG_BR) {
        qr_html_break_line(w, 1);
    } else if (element->tag == GUMBO_TAG_IMG) {
        qr_html_add_text(w, qr_str_of(qr_html_attribute(element, "alt")), element->start_pos.line);
    }
    struct qr_html_frame *frame = qr_html_push(&w->stack, node, at);
    if (!frame) {
        return false;
    }
    frame->prefix_len = (uint8_t)w->prefix_len;
    frame->marker_len = (uint8_t)w->marker_len;
    enter_element(w, frame);
    return true;
}

static qr_rc write_node(struct html_writer *w, const GumboNode *node, size_t at, qr_err *err)
{
    w->next_place = at;
    bool has_memory = enter_node(w, node);
    while (has_memory && w->stack.depth) {
        struct qr_html_frame *frame = &w->stack.frames[w->stack.depth - 1];
        const GumboVector *children = &frame->node->v.element.children;
        if (frame->next < children->length) {
            has_memory = enter_node(w, children->data[frame->next++]);
        } else {
            const struct qr_html_frame left = *frame;
            w->stack.depth--;
            leave_element(w, &left);
        }
    }
    if (!has_memory) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an HTML page");
    }
    QR_TRY(qr_buf_check(w->marks, err));
    QR_TRY(qr_buf_check(&w->pre, err));
    return qr_buf_check(w->out, err);
}

/* ---- the page ---- */

static qr_rc write_page(struct html_writer *w, const struct qr_html_page *page, qr_err *err)
{
    if (page->heading) {
        QR_TRY(write_node(w, page->heading, page->heading_at, err));
    }
    if (page->main) {
        qr_html_break_line(w, 2);
        QR_TRY(write_node(w, page->main, page->main_at, err));
    }
    if (w->out->len) {
        qr_buf_add_char(w->out, '\n');
    }
    return qr_buf_check(w->out, err);
}

qr_rc qr_html_write(const struct qr_html_page *page, struct qr_buf *out, struct qr_buf *marks, qr_err *err)
{
    struct html_writer writer = {.out = out, .marks = marks, .page = page, .line_is_empty = true};
    const qr_rc rc = write_page(&writer, page, err);
    qr_buf_done(&writer.pre);
    qr_html_stack_done(&writer.stack);
    return rc;
}
