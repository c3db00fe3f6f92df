/* Words and lines of a page that is written as Markdown: what is due before a word, what must be escaped. */
#include "convert/html_writer.h"

void qr_html_break_line(struct html_writer *w, unsigned breaks)
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

void qr_html_mark_line(struct html_writer *w)
{
    if (w->line > w->line_marked || w->marks->len == 0) {
        w->line_marked = QR_MAX(w->line, QR_MAX(w->line_marked, (int64_t)1));
        const struct qr_line_mark mark = {w->out->len, w->line_marked};
        qr_buf_add(w->marks, (qr_str){(const char *)&mark, sizeof mark});
    }
}

qr_str qr_html_blank_prefix(const struct html_writer *w)
{
    qr_str prefix = {w->prefix, QR_MIN(w->prefix_len, w->prefix_before)};
    while (prefix.len && prefix.ptr[prefix.len - 1] == ' ') {
        prefix.len--;
    }
    return prefix;
}

void qr_html_begin_word(struct html_writer *w)
{
    if (w->breaks && w->out->len) {
        qr_buf_add_char(w->out, '\n');
        if (w->breaks > 1) {
            qr_buf_add(w->out, qr_html_blank_prefix(w));
            qr_buf_add_char(w->out, '\n');
        }
        w->line_is_empty = true;
    }
    if (w->line_is_empty) {
        qr_html_mark_line(w);
        qr_buf_add(w->out, (qr_str){w->prefix, w->marker_len ? w->marker_at : w->prefix_len});
        qr_buf_add(w->out, (qr_str){w->marker, w->marker_len});
        w->prefix_before = w->prefix_len;
    } else {
        if (w->space) {
            qr_buf_add_char(w->out, ' ');
        }
        qr_html_mark_line(w);
        qr_buf_add(w->out, (qr_str){w->marker, w->marker_len}); /* in the middle of a line: a list in a heading */
    }
    w->breaks = 0;
    w->space = false;
    w->marker_len = 0;
}

void qr_html_add_raw(struct html_writer *w, const char *text)
{
    qr_html_begin_word(w);
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

static void add_word(struct html_writer *w, qr_str word)
{
    size_t len;
    while ((len = ignored_len(word))) {
        word = (qr_str){word.ptr + len, word.len - len};
    }
    if (word.len == 0) {
        return;
    }
    const bool at_line_start = (w->line_is_empty || w->breaks) && w->marker_len == 0;
    qr_html_begin_word(w);
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

bool qr_html_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void qr_html_add_text(struct html_writer *w, qr_str text, int64_t line)
{
    if (w->pre_depth) {
        w->pre_line = w->pre.len ? w->pre_line : line;
        qr_buf_add(&w->pre, text);
        return;
    }
    w->line = line;
    while (text.len) {
        size_t len = 0;
        while (len < text.len && qr_html_is_space(text.ptr[len])) {
            w->line += text.ptr[len] == '\n';
            len++;
        }
        w->space = w->space || len;
        text = (qr_str){text.ptr + len, text.len - len};
        for (len = 0; len < text.len && !qr_html_is_space(text.ptr[len]);) {
            len++;
        }
        if (len) {
            add_word(w, (qr_str){text.ptr, len});
        }
        text = (qr_str){text.ptr + len, text.len - len};
    }
}
