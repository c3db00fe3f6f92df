/* Writes the main content of a page as Markdown, with the source line of each line and of each line's parts. Pure.
 *
 * White space is written late: `breaks` and `space` say what is due before the next word, so that elements without text
 * leave no trace. A marker ("- ", "## ") waits in the same way. Links are written as their text, pictures as their
 * alternative text; addresses are no words that somebody looks for. */
#include "convert/html_tree.h"

#include "base/buf.h"
#include "convert/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
    PREFIX_BYTES_MAX = 48, /* lists and quotes deeper than that are written as if they were less deep */
    COLUMNS_MAX = 20,      /* of a cell that spans */
    CELL_BYTES_MAX = 500,  /* on average; a table of larger ones only arranges text */
    LANGUAGE_BYTES_MAX = 24,
};

struct writer {
    struct qr_buf *out, *marks;
    int64_t line, line_marked;
    unsigned breaks; /* line ends due: 1, or 2 for a paragraph */
    bool space;      /* due between words */
    bool line_is_empty;
    char prefix[PREFIX_BYTES_MAX];
    size_t prefix_len, prefix_before; /* of this and of the line before */
    char marker[PREFIX_BYTES_MAX];
    size_t marker_len, marker_at; /* and where in the prefix it stands */

    const struct qr_html_page *page;
    struct qr_html_stack stack;
    size_t next_place;
    unsigned heading_depth, cell_depth, pre_depth;
    struct qr_buf pre;
    int64_t pre_line;
    char language[LANGUAGE_BYTES_MAX + 1];
    size_t table_depth; /* of the stack, where a table of data is open; 0 = none is */
    unsigned row, column;
};

/* ---- words and lines ---- */

static void break_line(struct writer *w, unsigned breaks)
{
    if (w->pre_depth) {
        if (w->pre.len && w->pre.data[w->pre.len - 1] != '\n') {
            qr_buf_add_char(&w->pre, '\n');
        }
    } else if (w->cell_depth || w->heading_depth) {
        w->space = true;
    } else if (w->marker_len == 0) {
        w->breaks = QR_MAX(w->breaks, breaks);
    }
}

static void mark_line(struct writer *w)
{
    if (w->line > w->line_marked || w->marks->len == 0) {
        w->line_marked = QR_MAX(w->line, QR_MAX(w->line_marked, (int64_t)1));
        const struct qr_line_mark mark = {w->out->len, w->line_marked};
        qr_buf_add(w->marks, (qr_str){(const char *)&mark, sizeof mark});
    }
}

static qr_str blank_prefix(const struct writer *w)
{
    qr_str prefix = {w->prefix, QR_MIN(w->prefix_len, w->prefix_before)};
    while (prefix.len && prefix.ptr[prefix.len - 1] == ' ') {
        prefix.len--;
    }
    return prefix;
}

/* Writes what is due before a word. */
static void begin_word(struct writer *w)
{
    if (w->breaks && w->out->len) {
        qr_buf_add_char(w->out, '\n');
        if (w->breaks > 1) {
            qr_buf_add(w->out, blank_prefix(w));
            qr_buf_add_char(w->out, '\n');
        }
        w->line_is_empty = true;
    }
    if (w->line_is_empty) {
        mark_line(w);
        qr_buf_add(w->out, (qr_str){w->prefix, w->marker_len ? w->marker_at : w->prefix_len});
        qr_buf_add(w->out, (qr_str){w->marker, w->marker_len});
        w->prefix_before = w->prefix_len;
    } else {
        if (w->space) {
            qr_buf_add_char(w->out, ' ');
        }
        mark_line(w);
        qr_buf_add(w->out, (qr_str){w->marker, w->marker_len}); /* in the middle of a line: a list in a heading */
    }
    w->breaks = 0;
    w->space = false;
    w->marker_len = 0;
}

static void add_raw(struct writer *w, const char *text)
{
    begin_word(w);
    qr_buf_add_text(w->out, text);
    w->line_is_empty = false;
}

/* A line that begins like a heading or a fence, and is none. */
static bool needs_escape(qr_str word)
{
    return word.ptr[0] == '#' || qr_str_starts_with(word, QR_STR("```")) || qr_str_starts_with(word, QR_STR("~~~"));
}

/* The bytes of a character that is none to a reader: a soft hyphen, or a byte order mark somewhere. */
static size_t ignored_len(qr_str text)
{
    return qr_str_starts_with(text, QR_STR("\u00AD")) ? 2 : qr_str_starts_with(text, QR_STR("\uFEFF")) ? 3 : 0;
}

static void add_word(struct writer *w, qr_str word)
{
    size_t len;
    while ((len = ignored_len(word))) {
        word = (qr_str){word.ptr + len, word.len - len};
    }
    if (word.len == 0) {
        return;
    }
    const bool at_line_start = (w->line_is_empty || w->breaks) && w->marker_len == 0;
    begin_word(w);
    if (at_line_start && needs_escape(word)) {
        qr_buf_add_char(w->out, '\\');
    }
    w->line_is_empty = false;
    while (word.len) {
        for (len = 0; len < word.len && !(w->cell_depth && word.ptr[len] == '|') && word.ptr[len] != '\xC2' &&
                      word.ptr[len] != '\xEF';) {
            len++;
        }
        qr_buf_add(w->out, (qr_str){word.ptr, len});
        word = (qr_str){word.ptr + len, word.len - len};
        if (word.len) {
            const size_t ignored = ignored_len(word);
            if (word.ptr[0] == '|') {
                qr_buf_add_char(w->out, '\\'); /* it would end the cell */
            }
            qr_buf_add(w->out, (qr_str){word.ptr, ignored ? 0 : 1});
            word = (qr_str){word.ptr + QR_MAX(ignored, (size_t)1), word.len - QR_MAX(ignored, (size_t)1)};
        }
    }
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void add_text(struct writer *w, qr_str text, int64_t line)
{
    if (w->pre_depth) {
        w->pre_line = w->pre.len ? w->pre_line : line;
        qr_buf_add(&w->pre, text);
        return;
    }
    w->line = line;
    while (text.len) {
        size_t len = 0;
        while (len < text.len && is_space(text.ptr[len])) {
            w->line += text.ptr[len] == '\n';
            len++;
        }
        w->space = w->space || len;
        text = (qr_str){text.ptr + len, text.len - len};
        for (len = 0; len < text.len && !is_space(text.ptr[len]);) {
            len++;
        }
        if (len) {
            add_word(w, (qr_str){text.ptr, len});
        }
        text = (qr_str){text.ptr + len, text.len - len};
    }
}

/* ---- lists and quotes ---- */

/* Something that begins the next line and indents those after it. */
static void add_marker(struct writer *w, const char *marker, bool indents)
{
    const size_t len = strlen(marker);
    if (w->pre_depth || w->cell_depth || w->heading_depth || w->marker_len + len > PREFIX_BYTES_MAX) {
        return;
    }
    w->marker_at = w->marker_len ? w->marker_at : w->prefix_len;
    memcpy(w->marker + w->marker_len, marker, len);
    w->marker_len += len;
    if (indents && w->prefix_len + len <= PREFIX_BYTES_MAX) {
        memset(w->prefix + w->prefix_len, ' ', len);
        w->prefix_len += len;
    }
}

static void enter_item(struct writer *w)
{
    char marker[16] = "- ";
    struct qr_html_frame *list = w->stack.depth > 1 ? &w->stack.frames[w->stack.depth - 2] : NULL;
    if (list && list->node->v.element.tag == GUMBO_TAG_OL) {
        snprintf(marker, sizeof marker, "%u. ", list->list_number++);
    }
    break_line(w, 1);
    add_marker(w, marker, true);
}

static void enter_quote(struct writer *w)
{
    break_line(w, 2);
    if (!w->pre_depth && !w->cell_depth && !w->heading_depth && w->marker_len == 0 &&
        w->prefix_len + 2 <= PREFIX_BYTES_MAX) {
        memcpy(w->prefix + w->prefix_len, "> ", 2);
        w->prefix_len += 2;
    }
}

/* ---- code ---- */

static void find_language(struct writer *w, const GumboElement *element)
{
    static const char *const prefixes[] = {"language-",  "lang-",  "highlight-source-",
                                           "highlight-", "brush:", "sourceCode "};
    const char *class = qr_html_attribute(element, "class");
    for (size_t i = 0; i < QR_COUNT(prefixes) && !w->language[0]; i++) {
        const char *found = strcasestr(class, prefixes[i]);
        const char *name = found ? found + strlen(prefixes[i]) : "";
        name += strspn(name, " ");
        const size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#-_.");
        const bool is_one =
            len && len <= LANGUAGE_BYTES_MAX && strncmp(name, "default", len) != 0 && strncmp(name, "none", len) != 0;
        if (is_one) {
            memcpy(w->language, name, len);
            w->language[len] = '\0';
        }
    }
}

static void enter_pre(struct writer *w, const GumboElement *element)
{
    break_line(w, 2);
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
static void enter_code(struct writer *w, const GumboElement *element)
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

static void add_fence(struct writer *w, size_t len, const char *language)
{
    break_line(w, 1);
    begin_word(w);
    for (size_t i = 0; i < len; i++) {
        qr_buf_add_char(w->out, '`');
    }
    qr_buf_add_text(w->out, language);
    w->line_is_empty = false;
}

static void leave_pre(struct writer *w)
{
    if (--w->pre_depth) {
        return;
    }
    break_line(w, 2);
    qr_str code = qr_buf_str(&w->pre);
    while (code.len && is_space(code.ptr[code.len - 1])) {
        code.len--;
    }
    int64_t line = w->pre_line;
    for (size_t i = 0; i < code.len && is_space(code.ptr[i]); i++) { /* empty lines at the beginning */
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
        add_text(w, code, line);
        return;
    }
    const size_t fence_len = QR_MAX((size_t)3, longest_run(code, '`') + 1);
    w->line = line;
    add_fence(w, fence_len, w->language);
    while (code.len) {
        const qr_str row = qr_str_split(&code, '\n');
        qr_buf_add_char(w->out, '\n');
        w->line = line++;
        mark_line(w);
        qr_buf_add(w->out, row.len ? (qr_str){w->prefix, w->prefix_len} : blank_prefix(w));
        for (size_t i = 0; i < row.len; i++) {
            qr_buf_add_char(w->out, row.ptr[i] == '\r' ? ' ' : row.ptr[i]);
        }
    }
    add_fence(w, fence_len, "");
    break_line(w, 2);
}

/* ---- tables ---- */

/* Whether it has rows and columns, rather than arranging the page. */
static bool is_data(const GumboElement *element, const struct qr_html_place *place)
{
    return !(place->flags & QR_HTML_HAS_BLOCKS) && place->cells > 1 &&
           strcasecmp(qr_html_attribute(element, "role"), "presentation") != 0 &&
           place->text <= (uint64_t)place->size * CELL_BYTES_MAX;
}

static void enter_cell(struct writer *w)
{
    if (w->column == 0) {
        add_raw(w, "|");
    }
    w->space = true;
    w->cell_depth++;
}

static void leave_cell(struct writer *w, const GumboElement *element)
{
    const int64_t span = strtol(qr_html_attribute(element, "colspan"), NULL, 10);
    w->cell_depth--;
    for (int64_t i = 0; i < QR_MAX((int64_t)1, QR_MIN(span, (int64_t)COLUMNS_MAX)); i++) {
        w->space = true;
        add_raw(w, "|");
        w->column++;
    }
    w->space = false;
}

static void leave_row(struct writer *w)
{
    if (w->column && w->row++ == 0) { /* the first row is the header: Markdown has no table without one */
        break_line(w, 1);
        add_raw(w, "|");
        for (unsigned i = 0; i < w->column; i++) {
            qr_buf_add_text(w->out, " --- |");
        }
    }
    break_line(w, 1);
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

static void break_for(struct writer *w, GumboTag tag)
{
    if (breaks[tag]) {
        break_line(w, breaks[tag] == PARAGRAPH ? 2 : 1);
    }
}

static void enter_list(struct writer *w, struct qr_html_frame *frame)
{
    const char *start = qr_html_attribute(&frame->node->v.element, "start");
    const long first = start[0] ? strtol(start, NULL, 10) : 1;
    frame->list_number = first >= 0 && first < 1000000 ? (uint32_t)first : 1;
    break_line(w, w->prefix_len ? 1 : 2);
}

static void enter_heading(struct writer *w, GumboTag tag)
{
    char marker[8] = "######";
    break_line(w, 2);
    snprintf(marker + (tag - GUMBO_TAG_H1) + 1, 2, " ");
    add_marker(w, marker, false);
    w->heading_depth++;
}

static void enter_element(struct writer *w, struct qr_html_frame *frame)
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
        break_line(w, 1);
        add_marker(w, ": ", true);
    } else if (tag == GUMBO_TAG_TABLE && !w->table_depth && !w->pre_depth && !w->heading_depth &&
               is_data(element, &w->page->places[frame->at])) {
        break_line(w, 2);
        w->table_depth = w->stack.depth;
        w->row = 0;
    } else if (w->table_depth && tag == GUMBO_TAG_TR) {
        break_line(w, 1);
        w->column = 0;
    } else if (w->table_depth && (tag == GUMBO_TAG_TD || tag == GUMBO_TAG_TH)) {
        enter_cell(w);
    } else {
        break_for(w, tag);
    }
}

static void leave_element(struct writer *w, const struct qr_html_frame *frame)
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
        break_line(w, 2);
    } else if (is_list(tag)) {
        break_line(w, w->prefix_len ? 1 : 2);
    } else if (tag == GUMBO_TAG_LI || tag == GUMBO_TAG_DD) {
        break_line(w, 1);
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
static bool enter_node(struct writer *w, const GumboNode *node)
{
    switch (node->type) {
    case GUMBO_NODE_TEXT:
    case GUMBO_NODE_CDATA:
    case GUMBO_NODE_WHITESPACE:
        add_text(w, qr_str_of(node->v.text.text), node->v.text.start_pos.line);
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
        break_line(w, 1);
    } else if (element->tag == GUMBO_TAG_IMG) {
        add_text(w, qr_str_of(qr_html_attribute(element, "alt")), element->start_pos.line);
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

static qr_rc write_node(struct writer *w, const GumboNode *node, size_t at, qr_err *err)
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

static qr_rc write_page(struct writer *w, const struct qr_html_page *page, qr_err *err)
{
    if (page->heading) {
        QR_TRY(write_node(w, page->heading, page->heading_at, err));
    }
    if (page->main) {
        break_line(w, 2);
        QR_TRY(write_node(w, page->main, page->main_at, err));
    }
    if (w->out->len) {
        qr_buf_add_char(w->out, '\n');
    }
    return qr_buf_check(w->out, err);
}

qr_rc qr_html_write(const struct qr_html_page *page, struct qr_buf *out, struct qr_buf *marks, qr_err *err)
{
    struct writer writer = {.out = out, .marks = marks, .page = page, .line_is_empty = true};
    const qr_rc rc = write_page(&writer, page, err);
    qr_buf_done(&writer.pre);
    qr_html_stack_done(&writer.stack);
    return rc;
}
