/* Converts a source: refuses what is no text, decodes it, finds its format, lets that do its work, names it and adds the
 * warnings. Pure, but for the arena. */
#include "convert/convert.h"

#include "base/json.h"
#include "convert/formats.h"
#include "convert/title.h"
#include "model/markdown.h"

#include <stdlib.h>

enum { WARNINGS_MAX = 3 };

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
}

static qr_rc decode(qr_str bytes, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err)
{
    const char *binary = qr_format_binary(bytes);
    if (binary) {
        return qr_fail(err, QR_CODE_UNSUPPORTED_TYPE, "it is not text: by its content it is %s", binary);
    }
    return qr_decode(bytes, qr_charset_declared(bytes), arena, ret, err);
}

static void warn(struct qr_converted *converted, const char *code, const char *message)
{
    converted->warnings[converted->warning_count++] = (struct qr_warning){code, message};
}

static qr_rc add_warnings(const struct qr_decoded *decoded, struct qr_arena *arena, struct qr_converted *ret,
                          qr_err *err)
{
    const bool is_empty = qr_is_blank(ret->text);
    if (!is_empty && !decoded->is_guessed && !decoded->is_mixed) {
        return QR_OK;
    }
    ret->warnings = qr_arena_array(arena, WARNINGS_MAX, sizeof *ret->warnings);
    if (!ret->warnings) {
        return out_of_memory(err);
    }
    if (is_empty) {
        warn(ret, "empty", "there is nothing but white space in it");
    }
    if (decoded->is_guessed) {
        const char *message = qr_arena_printf(
            arena, "it does not say its encoding; it was read as %s, the most likely one", decoded->charset);
        if (!message) {
            return out_of_memory(err);
        }
        warn(ret, "charset_guessed", message);
    }
    if (decoded->is_mixed) {
        warn(ret, "charset_mixed",
             strcmp(decoded->charset, "utf-8") == 0
                 ? "it is UTF-8 with bytes that are not; those were read as windows-1252"
                 : "it is UTF-16 or UTF-32 with parts that are no characters; U+FFFD stands for them");
    }
    return QR_OK;
}

static qr_rc keep_title(qr_str title, struct qr_arena *arena, struct qr_converted *ret, qr_err *err)
{
    if (title.len == 0) {
        return QR_OK;
    }
    char *kept = qr_arena_copy_utf8(arena, title);
    if (!kept) {
        return out_of_memory(err);
    }
    for (char *c = kept; *c; c++) {
        *c = (unsigned char)*c < 0x20 || *c == 0x7F ? ' ' : *c; /* it is for one line */
    }
    const qr_str trimmed = qr_str_trim(qr_str_of(kept));
    ret->title = trimmed.len ? qr_arena_copy(arena, trimmed) : NULL;
    return trimmed.len && !ret->title ? out_of_memory(err) : QR_OK;
}

/* The title inside JSON has its escapes; one that does not parse is not worth an error. */
static qr_rc keep_json_title(qr_str escaped, struct qr_arena *arena, struct qr_converted *ret, qr_err *err)
{
    static const struct qr_json_limits limits = {.size_bytes_max = 64 << 10, .depth_max = 1, .values_max = 2};
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_JSON *list = NULL;
    qr_buf_add_text(&text, "[\"");
    qr_buf_add(&text, escaped);
    qr_buf_add_text(&text, "\"]");
    QR_TRY(qr_buf_check(&text, err));
    qr_err ignored = {0};
    const qr_rc rc = qr_json_parse(qr_buf_str(&text), &limits, &list, &ignored);
    if (rc == QR_NOMEM) {
        return out_of_memory(err);
    }
    const char *title = rc == QR_OK ? json_string_value(json_array_get(list, 0)) : NULL;
    return title ? keep_title(qr_utf8_prefix(qr_str_of(title), QR_TITLE_BYTES_MAX), arena, ret, err) : QR_OK;
}

static qr_rc name_it(const struct qr_format *format, qr_str name, struct qr_arena *arena, struct qr_converted *ret,
                     qr_err *err)
{
    if (ret->title || format->convert) {
        return QR_OK;
    }
    if (!format->find_title) {
        return keep_title(qr_utf8_prefix(qr_file_name(name), QR_TITLE_BYTES_MAX), arena, ret, err);
    }
    const qr_str title = format->find_title(ret->text);
    return format->find_title == qr_title_json ? keep_json_title(title, arena, ret, err)
                                               : keep_title(title, arena, ret, err);
}

static qr_rc convert_decoded(struct qr_decoded *decoded, const char *name, struct qr_arena *arena,
                             struct qr_converted *ret, qr_err *err)
{
    struct qr_converted converted = {.text = {decoded->text, decoded->len}, .charset = decoded->charset};
    const struct qr_format *format = qr_format_by_name(qr_str_of(name));
    format = format ? format : qr_format_by_content(converted.text);
    converted.mime = format->mime;
    converted.source_mime = format->source_mime;
    if (format->convert) {
        QR_TRY(format->convert(decoded, arena, &converted, err));
    }
    QR_TRY(name_it(format, qr_str_of(name), arena, &converted, err));
    QR_TRY(add_warnings(decoded, arena, &converted, err));
    *ret = converted;
    return QR_OK;
}

qr_rc qr_convert(qr_str bytes, const char *name, struct qr_arena *arena, struct qr_converted *ret, qr_err *err)
{
    struct qr_decoded decoded;
    QR_TRY(decode(bytes, arena, &decoded, err));
    return convert_decoded(&decoded, name, arena, ret, err);
}

qr_rc qr_convert_last(struct qr_buf *bytes, const char *name, struct qr_arena *arena, struct qr_converted *ret,
                      qr_err *err)
{
    struct qr_decoded decoded;
    const qr_rc rc = decode(qr_buf_str(bytes), arena, &decoded, err);
    qr_buf_done(bytes);
    return rc == QR_OK ? convert_decoded(&decoded, name, arena, ret, err) : rc;
}

int64_t qr_line_mark_find(const struct qr_line_mark *lines, size_t count, size_t offset)
{
    size_t low = 0, high = count; /* the first mark behind the offset */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (lines[middle].offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low ? lines[low - 1].line : 0;
}

qr_rc qr_convert_text(qr_str bytes, struct qr_arena *arena, qr_str *ret_text, const char **ret_mime,
                      const char **ret_title, struct qr_warning **ret_warnings, size_t *ret_warning_count, qr_err *err)
{
    struct qr_decoded decoded;
    struct qr_converted converted = {0};
    QR_TRY(decode(bytes, arena, &decoded, err));
    converted.text = (qr_str){decoded.text, decoded.len};
    const qr_str title = qr_convert_title(converted.text);
    QR_TRY(keep_title(title, arena, &converted, err));
    QR_TRY(add_warnings(&decoded, arena, &converted, err));
    *ret_text = converted.text;
    *ret_mime = title.len ? "text/markdown" : "text/plain";
    *ret_title = converted.title;
    *ret_warnings = converted.warnings;
    *ret_warning_count = converted.warning_count;
    return QR_OK;
}

const char *qr_convert_structure(qr_str name, qr_str text)
{
    const struct qr_format *format = qr_format_by_name(name);
    return format ? format->mime : qr_format_by_content(text)->mime;
}
