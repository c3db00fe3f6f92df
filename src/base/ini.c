/* The INI parser: one pass, nothing copied. Pure. */
#include "base/ini.h"

struct parser {
    const char *file;
    int line;
    qr_str section; /* empty before the first one */
};

static qr_rc malformed(const struct parser *parser, const char *why, qr_err *err)
{
    return qr_fail(err, QR_CODE_BAD_REQUEST, "%s:%d: %s", parser->file, parser->line, why);
}

static qr_rc parse_section(struct parser *parser, qr_str line, qr_err *err)
{
    if (line.ptr[line.len - 1] != ']') {
        return malformed(parser, "a section is written [name], with nothing behind it", err);
    }
    parser->section = qr_str_trim((qr_str){line.ptr + 1, line.len - 2});
    if (parser->section.len == 0) {
        return malformed(parser, "the section has no name", err);
    }
    return QR_OK;
}

static qr_rc parse_entry(const struct parser *parser, qr_str line, struct qr_ini_entry *ret_entry, qr_err *err)
{
    if (!memchr(line.ptr, '=', line.len)) {
        return malformed(parser, "neither a [section] nor a key = value", err);
    }
    qr_str rest = line;
    const qr_str key = qr_str_trim(qr_str_split(&rest, '='));
    if (key.len == 0) {
        return malformed(parser, "there is no key before the '='", err);
    }
    if (parser->section.len == 0) {
        return malformed(parser, "a key before the first [section]", err);
    }
    *ret_entry = (struct qr_ini_entry){parser->section, key, qr_str_trim(rest), parser->line};
    return QR_OK;
}

static qr_rc parse_line(struct parser *parser, qr_str line, qr_ini_fn *fn, void *arg, qr_err *err)
{
    if (line.len > QR_INI_LINE_BYTES_MAX) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "%s:%d: the line is longer than %d bytes", parser->file, parser->line,
                       (int)QR_INI_LINE_BYTES_MAX);
    }
    if (!qr_utf8_valid(line) || (line.len && memchr(line.ptr, '\0', line.len))) {
        return malformed(parser, "the line is not UTF-8 text", err);
    }
    line = qr_str_trim(line);
    if (line.len == 0 || line.ptr[0] == '#' || line.ptr[0] == ';') {
        return QR_OK;
    }
    if (line.ptr[0] == '[') {
        return parse_section(parser, line, err);
    }
    struct qr_ini_entry entry;
    QR_TRY(parse_entry(parser, line, &entry, err));
    return fn(arg, &entry, err);
}

qr_rc qr_ini_parse(qr_str text, const char *file, qr_ini_fn *fn, void *arg, qr_err *err)
{
    const qr_str byte_order_mark = QR_STR("\xEF\xBB\xBF");
    if (text.len > QR_INI_FILE_BYTES_MAX) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "%s: larger than %d bytes", file, (int)QR_INI_FILE_BYTES_MAX);
    }
    if (qr_str_starts_with(text, byte_order_mark)) {
        text = (qr_str){text.ptr + byte_order_mark.len, text.len - byte_order_mark.len};
    }
    struct parser parser = {.file = file};
    while (text.len) {
        parser.line++;
        QR_TRY(parse_line(&parser, qr_str_split(&text, '\n'), fn, arg, err));
    }
    return QR_OK;
}
