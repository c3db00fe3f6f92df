/* Markdown, line by line: ATX headings and fences as CommonMark has them, except that a fence may be indented as far as it
 * likes, since lists indent theirs. */
#include "model/markdown.h"

size_t qr_space_len(qr_str text)
{
    if (text.len == 0) {
        return 0;
    }
    const unsigned char *s = (const unsigned char *)text.ptr;
    if (s[0] < 0x80) {
        return s[0] == ' ' || (s[0] >= '\t' && s[0] <= '\r');
    }
    if (s[0] == 0xC2 && text.len >= 2) {
        return s[1] == 0xA0 || s[1] == 0x85 ? 2 : 0; /* no-break space, next line */
    }
    if (text.len < 3) {
        return 0;
    }
    const bool is_space = (s[0] == 0xE2 && s[1] == 0x80 && (s[2] <= 0x8B || s[2] == 0xA8 || s[2] == 0xA9)) ||
                          (s[0] == 0xE3 && s[1] == 0x80 && s[2] == 0x80); /* U+2000–200B, 2028, 2029, 3000 */
    return is_space ? 3 : 0;
}

bool qr_is_blank(qr_str text)
{
    size_t len;
    while ((len = qr_space_len(text))) {
        text = (qr_str){text.ptr + len, text.len - len};
    }
    return text.len == 0;
}

static size_t run_of(qr_str text, char c)
{
    size_t len = 0;
    while (len < text.len && text.ptr[len] == c) {
        len++;
    }
    return len;
}

static qr_str skip(qr_str text, size_t len)
{
    return (qr_str){text.ptr + len, text.len - len};
}

static qr_str skip_indent(qr_str line)
{
    while (line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t')) {
        line = skip(line, 1);
    }
    return line;
}

static bool opens(qr_str line, struct qr_md_fence *ret_fence)
{
    const char mark = line.len ? line.ptr[0] : '\0';
    const size_t len = mark == '`' || mark == '~' ? run_of(line, mark) : 0;
    if (len < 3 || line.len >= QR_MD_LINE_BYTES_MAX ||
        (mark == '`' && memchr(line.ptr + len, '`', line.len - len))) { /* code inside a line */
        return false;
    }
    *ret_fence = (struct qr_md_fence){mark, len};
    return true;
}

static bool closes(qr_str line, const struct qr_md_fence *fence)
{
    const size_t len = run_of(line, fence->mark);
    return len >= fence->len && qr_str_trim(skip(line, len)).len == 0;
}

/* "## Title ##" */
static bool is_heading(qr_str line, struct qr_md_line *ret_line)
{
    const size_t indent = run_of(line, ' ');
    line = skip(line, indent);
    const size_t level = run_of(line, '#');
    if (indent > 3 || level < 1 || level > 6 ||
        (level < line.len && line.ptr[level] != ' ' && line.ptr[level] != '\t')) {
        return false;
    }
    qr_str title = qr_str_trim(skip(line, level));
    size_t len = title.len;
    while (len && title.ptr[len - 1] == '#') {
        len--;
    }
    if (len == 0 || title.ptr[len - 1] == ' ' || title.ptr[len - 1] == '\t') {
        title.len = len;
    }
    *ret_line = (struct qr_md_line){QR_MD_HEADING, (int)level, qr_str_trim(title)};
    return true;
}

struct qr_md_line qr_md_take_line(struct qr_md_fence *fence, qr_str line)
{
    line = qr_utf8_prefix(line, QR_MD_LINE_BYTES_MAX);
    const qr_str inner = skip_indent(line);
    if (fence->len) {
        if (!closes(inner, fence)) {
            return (struct qr_md_line){QR_MD_TEXT};
        }
        *fence = (struct qr_md_fence){0};
        return (struct qr_md_line){QR_MD_FENCE};
    }
    struct qr_md_line heading;
    if (is_heading(line, &heading)) {
        return heading;
    }
    return (struct qr_md_line){opens(inner, fence) ? QR_MD_FENCE : QR_MD_TEXT};
}
