/* Which structure a mime names, and what the structures ask of lines alike. */
#include "chunk/structure.h"

static const struct qr_structure *const structures[] = {
    &qr_structure_markdown, &qr_structure_plain, &qr_structure_rst,  &qr_structure_org,
    &qr_structure_asciidoc, &qr_structure_tex,   &qr_structure_code, &qr_structure_csv,
    &qr_structure_tsv,      &qr_structure_log,   &qr_structure_json, &qr_structure_jsonl,
};

const struct qr_structure *qr_structure_find(const char *mime)
{
    if (!mime) {
        return &qr_structure_markdown;
    }
    const size_t len = strcspn(mime, "; ");
    for (size_t i = 0; i < QR_COUNT(structures); i++) {
        if (qr_str_equal((qr_str){mime, len}, qr_str_of(structures[i]->mime))) {
            return structures[i];
        }
    }
    return &qr_structure_plain;
}

qr_str qr_line_take(qr_str *rest)
{
    const size_t seen = QR_MIN(rest->len, (size_t)QR_LINE_BYTES_MAX);
    const char *newline = memchr(rest->ptr, '\n', seen);
    const qr_str line = {rest->ptr, newline ? (size_t)(newline - rest->ptr) : seen};
    if (!newline && seen < rest->len) {
        newline = memchr(rest->ptr + seen, '\n', rest->len - seen);
    }
    const size_t used = newline ? (size_t)(newline - rest->ptr) + 1 : rest->len;
    *rest = (qr_str){rest->ptr + used, rest->len - used};
    return line;
}

qr_str qr_line_after(const struct qr_line *line)
{
    if (line->is_cut || line->text.len == line->rest.len) {
        return (qr_str){line->rest.ptr, 0};
    }
    const size_t from = line->text.len + 1;
    qr_str rest = {line->rest.ptr + from, QR_MIN(line->rest.len - from, (size_t)QR_LINE_BYTES_MAX)};
    return qr_line_take(&rest);
}

size_t qr_line_indent(qr_str line)
{
    size_t columns = 0;
    for (size_t i = 0; i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t'); i++) {
        columns = line.ptr[i] == ' ' ? columns + 1 : (columns / 4 + 1) * 4;
    }
    return columns;
}

qr_str qr_line_inner(qr_str line)
{
    return qr_str_trim(line);
}

bool qr_line_is_item(qr_str inner)
{
    enum { DIGITS_MAX = 9 };
    static const qr_str bullets[] = {QR_STR("•"), QR_STR("–"), QR_STR("・")};
    if (inner.len < 2) {
        return false;
    }
    if (strchr("-*+", inner.ptr[0]) && inner.ptr[0]) {
        return inner.ptr[1] == ' ' || inner.ptr[1] == '\t';
    }
    for (size_t i = 0; i < QR_COUNT(bullets); i++) {
        if (qr_str_starts_with(inner, bullets[i])) {
            return true;
        }
    }
    size_t len = 0;
    while (len < inner.len && len < DIGITS_MAX && inner.ptr[len] >= '0' && inner.ptr[len] <= '9') {
        len++;
    }
    const bool is_letter = len == 0 && ((inner.ptr[0] >= 'a' && inner.ptr[0] <= 'z'));
    len += is_letter;
    return len && len + 1 < inner.len && (inner.ptr[len] == ')' || (inner.ptr[len] == '.' && !is_letter)) &&
           inner.ptr[len + 1] == ' ';
}

char qr_line_underline(qr_str line)
{
    const qr_str inner = qr_str_trim(line);
    if (inner.len < 3 || inner.ptr != line.ptr || !strchr("=-~^\"'`#*+.:_", inner.ptr[0]) || !inner.ptr[0]) {
        return '\0';
    }
    for (size_t i = 1; i < inner.len; i++) {
        if (inner.ptr[i] != inner.ptr[0]) {
            return '\0';
        }
    }
    return inner.ptr[0];
}
