/* Titles, from a bounded part of the text: a title is at its beginning. */
#include "convert/title.h"

#include "convert/convert.h"
#include "model/markdown.h"

#include <strings.h>

enum {
    LOOK_BYTES_MAX = 64 << 10,
    LOOK_LINES_MAX = 200,
    LINE_BYTES_MAX = 120, /* a longer first line is a paragraph */
};

static qr_str skip(qr_str text, size_t len)
{
    return (qr_str){text.ptr + len, text.len - len};
}

static qr_str cut(qr_str title)
{
    return qr_str_trim(qr_utf8_prefix(title, QR_TITLE_BYTES_MAX));
}

static qr_str beginning(qr_str text)
{
    return qr_utf8_prefix(text, LOOK_BYTES_MAX);
}

static bool starts_with_word(qr_str line, const char *word)
{
    const size_t len = strlen(word);
    return line.len >= len && strncasecmp(line.ptr, word, len) == 0;
}

static qr_str unquote(qr_str value)
{
    value = qr_str_trim(value);
    const bool is_quoted =
        value.len >= 2 && (value.ptr[0] == '"' || value.ptr[0] == '\'') && value.ptr[value.len - 1] == value.ptr[0];
    return is_quoted ? (qr_str){value.ptr + 1, value.len - 2} : value;
}

/* ---- front matter: YAML between ---, TOML between +++ ---- */

static qr_str front_matter_title(qr_str text)
{
    qr_str rest = beginning(text), title = {0};
    const qr_str fence = qr_str_trim(qr_str_split(&rest, '\n'));
    const bool is_yaml = qr_str_equal(fence, QR_STR("---")), is_toml = qr_str_equal(fence, QR_STR("+++"));
    while (rest.len && (is_yaml || is_toml)) {
        const qr_str line = qr_str_split(&rest, '\n');
        const qr_str inner = qr_str_trim(line);
        if (qr_str_equal(inner, fence) || (is_yaml && qr_str_equal(inner, QR_STR("...")))) {
            return cut(title);
        }
        if (title.len == 0 && starts_with_word(line, "title")) {
            const qr_str value = qr_str_trim(skip(line, strlen("title")));
            title = value.len && value.ptr[0] == (is_yaml ? ':' : '=') ? unquote(skip(value, 1)) : title;
        }
    }
    return (qr_str){0}; /* none, or never closed */
}

/* ---- Markdown and plain text ---- */

/* A script's comments look like headings; its first line gives it away. */
qr_str qr_convert_title(qr_str text)
{
    struct qr_md_fence fence = {0};
    if (qr_str_starts_with(text, QR_STR("#!"))) {
        return (qr_str){0};
    }
    while (text.len) {
        const qr_str line = qr_str_split(&text, '\n');
        const struct qr_md_line found = qr_md_take_line(&fence, line);
        if (found.kind == QR_MD_HEADING && found.title.len) {
            return qr_utf8_prefix(found.title, QR_TITLE_BYTES_MAX);
        }
    }
    return (qr_str){0};
}

static bool is_line_of(qr_str line, const char *marks)
{
    line = qr_str_trim(line);
    if (line.len < 3 || !strchr(marks, line.ptr[0])) {
        return false;
    }
    for (size_t i = 1; i < line.len; i++) {
        if (line.ptr[i] != line.ptr[0]) {
            return false;
        }
    }
    return true;
}

/* The first line that is underlined with one of the marks. */
static qr_str underlined(qr_str text, const char *marks)
{
    qr_str rest = beginning(text), before = {0};
    for (int i = 0; rest.len && i < LOOK_LINES_MAX; i++) {
        const qr_str line = qr_str_split(&rest, '\n');
        const qr_str title = qr_str_trim(before);
        if (is_line_of(line, marks) && title.len && title.len <= LINE_BYTES_MAX && !is_line_of(title, marks)) {
            return cut(title);
        }
        before = line;
    }
    return (qr_str){0};
}

qr_str qr_title_markdown(qr_str text)
{
    const qr_str title = front_matter_title(text);
    if (title.len) {
        return title;
    }
    const qr_str heading = qr_convert_title(text), other = underlined(text, "=");
    return other.len && (heading.len == 0 || other.ptr < heading.ptr) ? other : heading;
}

static bool has_letter(qr_str line)
{
    for (size_t i = 0; i < line.len; i++) {
        const unsigned char c = (unsigned char)line.ptr[i];
        if (c >= 0x80 || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
            return true;
        }
    }
    return false;
}

qr_str qr_title_plain(qr_str text)
{
    const qr_str title = qr_title_markdown(text);
    if (title.len) {
        return title;
    }
    qr_str rest = beginning(text);
    while (rest.len) {
        const qr_str line = qr_str_split(&rest, '\n');
        if (qr_is_blank(line)) {
            continue;
        }
        const qr_str next = qr_str_split(&rest, '\n');
        const bool stands_alone = qr_is_blank(next) || is_line_of(next, "=-~*#_");
        return stands_alone && has_letter(line) && line.len <= LINE_BYTES_MAX ? cut(qr_str_trim(line)) : (qr_str){0};
    }
    return (qr_str){0};
}

/* ---- others ---- */

qr_str qr_title_rst(qr_str text)
{
    return underlined(text, "=-~^\"'`#*+:.<>_");
}

/* The rest of the first line that begins with the word. */
static qr_str behind(qr_str text, const char *word)
{
    qr_str rest = beginning(text);
    for (int i = 0; rest.len && i < LOOK_LINES_MAX; i++) {
        const qr_str line = qr_str_split(&rest, '\n');
        if (starts_with_word(line, word) && qr_str_trim(skip(line, strlen(word))).len) {
            return cut(qr_str_trim(skip(line, strlen(word))));
        }
    }
    return (qr_str){0};
}

qr_str qr_title_org(qr_str text)
{
    const qr_str title = behind(text, "#+title:");
    return title.len ? title : behind(text, "* ");
}

qr_str qr_title_asciidoc(qr_str text)
{
    const qr_str title = behind(text, "= ");
    return title.len ? title : behind(text, "== ");
}

qr_str qr_title_tex(qr_str text)
{
    const qr_str head = beginning(text);
    const char *found = head.len ? memmem(head.ptr, head.len, "\\title{", 7) : NULL;
    if (!found) {
        return (qr_str){0};
    }
    qr_str rest = skip(head, (size_t)(found - head.ptr) + 7);
    const qr_str title = qr_str_split(&rest, '}');
    return rest.len && !memchr(title.ptr, '\n', title.len) ? cut(qr_str_trim(title)) : (qr_str){0};
}

/* ---- JSON ---- */

/* The string that the text begins with, without its quotes; what is behind it in *rest. */
static qr_str take_string(qr_str text, qr_str *rest)
{
    for (size_t i = 1; i < text.len; i++) {
        if (text.ptr[i] == '\\') {
            i++;
        } else if (text.ptr[i] == '"') {
            *rest = skip(text, i + 1);
            return (qr_str){text.ptr + 1, i - 1};
        }
    }
    *rest = (qr_str){text.ptr + text.len, 0};
    return (qr_str){0};
}

static qr_str member_value(qr_str *rest)
{
    qr_str value = qr_str_trim(*rest);
    if (value.len == 0 || value.ptr[0] != ':') {
        return (qr_str){0};
    }
    value = qr_str_trim(skip(value, 1));
    return value.len && value.ptr[0] == '"' ? take_string(value, rest) : (qr_str){0};
}

qr_str qr_title_json(qr_str text)
{
    qr_str rest = qr_str_trim(beginning(text)), name = {0};
    size_t depth = 0;
    if (rest.len == 0 || rest.ptr[0] != '{') {
        return (qr_str){0};
    }
    while (rest.len) {
        const char c = rest.ptr[0];
        if (c != '"') {
            depth += c == '{' || c == '[';
            depth -= (c == '}' || c == ']') && depth;
            rest = skip(rest, 1);
            continue;
        }
        const qr_str key = take_string(rest, &rest);
        const bool is_title = depth == 1 && qr_str_equal(key, QR_STR("title"));
        const bool is_name = depth == 1 && qr_str_equal(key, QR_STR("name"));
        const qr_str value = is_title || is_name ? member_value(&rest) : (qr_str){0};
        if (is_title && value.len) {
            return value;
        }
        name = is_name && name.len == 0 ? value : name;
    }
    return name;
}
