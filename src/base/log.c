/* Log lines. A line is put together in memory and written by one call of at most PIPE_BUF bytes, which the kernel does
 * not mix with others, also on a pipe. What does not fit is left out field by field, so a line is always well-formed.
 */
#include "base/log.h"

#include "base/buf.h"
#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define TEXT_TAIL " truncated=true\n"
#define JSON_TAIL ",\"truncated\":true}\n"

enum {
    LINE_BYTES_MAX = PIPE_BUF,
    FIELDS_BYTES_MAX = LINE_BYTES_MAX - (int)sizeof JSON_TAIL, /* the longer tail */
    VALUE_BYTES_MAX = 1024, /* of a text value before escaping: a message fits, a document does not */
};

static const char *level_name(enum qr_log_level level)
{
    switch (level) {
    case QR_LOG_DEBUG:
        return "debug";
    case QR_LOG_INFO:
        return "info";
    case QR_LOG_WARN:
        return "warn";
    case QR_LOG_ERROR:
        return "error";
    }
    return "error";
}

/* Whether the value can stand without quotes. */
static bool is_plain(qr_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        const char c = value.ptr[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '=' || c == '\\') {
            return false;
        }
    }
    return value.len > 0;
}

static void add_f64(struct qr_buf *line, enum qr_log_format format, double value)
{
    if (!isfinite(value) && format == QR_LOG_JSON) {
        qr_buf_add_text(line, "null");
        return;
    }
    char text[40];
    snprintf(text, sizeof text, "%.15g", value);
    for (char *at = text; *at; at++) {
        *at = *at == ',' ? '.' : *at; /* a host program may have set a locale */
    }
    qr_buf_add_text(line, text);
}

static void add_i64(struct qr_buf *line, int64_t value)
{
    enum { DIGITS_MAX = 20 };
    char text[DIGITS_MAX + 1];
    char *at = text + sizeof text;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0) {
        *--at = '-';
    }
    qr_buf_add(line, (qr_str){at, (size_t)(text + sizeof text - at)});
}

static void add_value(struct qr_buf *line, enum qr_log_format format, const struct qr_field *field)
{
    switch (field->type) {
    case QR_FIELD_TEXT: {
        const qr_str text = qr_utf8_prefix(field->text, VALUE_BYTES_MAX);
        if (format == QR_LOG_TEXT && is_plain(text)) {
            qr_buf_add(line, text);
        } else {
            qr_json_add_string(line, text);
        }
        return;
    }
    case QR_FIELD_I64:
        add_i64(line, field->i64);
        return;
    case QR_FIELD_F64:
        add_f64(line, format, field->f64);
        return;
    case QR_FIELD_BOOL:
        qr_buf_add_text(line, field->flag ? "true" : "false");
        return;
    }
}

/* False when the value was cut, or did not fit at all; the line is then as before. */
static bool add_field(struct qr_buf *line, enum qr_log_format format, const struct qr_field *field)
{
    const size_t len_before = line->len;
    if (format == QR_LOG_JSON) {
        qr_buf_add_text(line, len_before ? ",\"" : "{\"");
        qr_buf_add_text(line, field->key);
        qr_buf_add_text(line, "\":");
    } else {
        qr_buf_add_text(line, len_before ? " " : "");
        qr_buf_add_text(line, field->key);
        qr_buf_add_char(line, '=');
    }
    add_value(line, format, field);
    if (line->failed != QR_CODE_PAYLOAD_TOO_LARGE) {
        return field->type != QR_FIELD_TEXT || field->text.len <= VALUE_BYTES_MAX;
    }
    line->failed = QR_CODE_NONE;
    line->len = len_before;
    line->data[len_before] = '\0';
    return false;
}

static void write_line(int fd, qr_str line)
{
    ssize_t written;
    do {
        written = write(fd, line.ptr, line.len);
    } while (written < 0 && errno == EINTR);
}

void qr_log_write(const struct qr_log *log, enum qr_log_level level, const char *event, const struct qr_field *fields,
                  size_t field_count)
{
    if (level < log->level_min) {
        return;
    }
    const enum qr_log_format format = log->format; /* of the whole line */
    char now[QR_TIME_TEXT_SIZE];
    qr_time_format(qr_clock_wall_ms(log->clock), now);
    const struct qr_field head[] = {
        qr_field_text("time", now),
        qr_field_text("level", level_name(level)),
        qr_field_text("event", event),
    };
    struct qr_buf line;
    qr_buf_init(&line, FIELDS_BYTES_MAX);
    bool whole = true;
    for (size_t i = 0; i < QR_COUNT(head); i++) {
        whole = add_field(&line, format, &head[i]) && whole;
    }
    for (size_t i = 0; i < field_count; i++) {
        whole = add_field(&line, format, &fields[i]) && whole;
    }
    line.len_max = LINE_BYTES_MAX;
    if (format == QR_LOG_JSON) {
        qr_buf_add_text(&line, whole ? "}\n" : JSON_TAIL);
    } else {
        qr_buf_add_text(&line, whole ? "\n" : TEXT_TAIL);
    }
    if (line.failed == QR_CODE_NONE) {
        write_line(log->fd, qr_buf_str(&line));
    }
    qr_buf_done(&line);
}

void qr_log_err(const struct qr_log *log, enum qr_log_level level, const char *event, const qr_err *err)
{
    qr_log(log, level, event, qr_field_text("error", qr_code_info(err->code)->name),
           qr_field_text("message", err->msg));
}
