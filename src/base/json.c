/* JSON on jansson. Foreign text first passes a scan of its bytes, which knows strings and nothing else: it refuses what
 * jansson would recurse into too deeply or blow up in memory, before jansson sees it.
 *
 * jansson (2.14) does not look at failed allocations while it reads a token: it drops the byte and goes on. A text read
 * that way is wrong without an error, or wrongly called malformed; and where the byte was the quote that ends a string, or
 * one behind a backslash, jansson runs past the end of its buffer or aborts. So its allocator is wrapped once in one that
 * takes note and, the first time during a parse, helps out with a block set aside for it: no byte of the string at hand is
 * lost. After that jansson is told that the text ends there, and the outcome is out of memory. */
#include "base/json.h"

#include <pthread.h>

/* Set once, under the once flag. The wrapper passes on to what was set before, so blocks of a host program that uses
 * jansson too stay in its own allocator. */
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static json_malloc_t unwatched_malloc;
static json_free_t unwatched_free;
static _Thread_local unsigned failed_allocations;
static _Thread_local void *spare; /* NULL = none: no parse under way, or it was used */
static _Thread_local size_t spare_bytes;

static void *watched_malloc(size_t size_bytes)
{
    void *block = unwatched_malloc(size_bytes);
    if (!block) {
        failed_allocations++;
        if (size_bytes <= spare_bytes) {
            block = spare;
            spare = NULL;
        }
    }
    return block;
}

static void watch_allocations(void)
{
    json_get_alloc_funcs(&unwatched_malloc, &unwatched_free);
    json_set_alloc_funcs(watched_malloc, unwatched_free);
}

/* ---- parsing ---- */

struct scan {
    unsigned depth;
    size_t values; /* at most this many; a little more than there are */
    bool in_string, escaped;
    size_t string_bytes, string_bytes_max; /* between the quotes: of the string at hand, of the longest one */
};

static void scan_string_byte(struct scan *scan, char c)
{
    scan->string_bytes++;
    scan->string_bytes_max = QR_MAX(scan->string_bytes_max, scan->string_bytes);
    if (scan->escaped) {
        scan->escaped = false;
    } else if (c == '\\') {
        scan->escaped = true;
    } else if (c == '"') {
        scan->in_string = false;
    }
}

static void scan_byte(struct scan *scan, char c)
{
    switch (c) {
    case '"':
        scan->in_string = true;
        scan->string_bytes = 0;
        break;
    case '[':
    case '{':
        scan->depth++;
        scan->values++;
        break;
    case ']':
    case '}':
        scan->depth -= scan->depth > 0; /* too many of them is jansson's to refuse */
        break;
    case ',':
        scan->values++;
        break;
    default:
        break;
    }
}

/* The message with the place, counted in lines and characters from 1. */
static qr_rc fail_at(qr_str text, size_t index, const char *what, qr_err *err)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < index; i++) {
        if (text.ptr[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)text.ptr[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    return qr_fail(err, QR_CODE_BAD_REQUEST, "not valid JSON: line %zu, column %zu: %s", line, column, what);
}

static qr_rc check_limits(qr_str text, const struct qr_json_limits *limits, size_t *ret_string_bytes_max, qr_err *err)
{
    if (text.len > limits->size_bytes_max) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "the JSON text is larger than %zu bytes",
                       limits->size_bytes_max);
    }
    struct scan scan = {0};
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\0') {
            return fail_at(text, i, "NUL is not allowed", err);
        }
        if (scan.in_string) {
            scan_string_byte(&scan, text.ptr[i]);
        } else {
            scan_byte(&scan, text.ptr[i]);
        }
        if (scan.depth > limits->depth_max) {
            return fail_at(text, i, "nested too deeply", err);
        }
        if (limits->values_max && scan.values > limits->values_max) {
            return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "the JSON text has more than %zu values",
                           limits->values_max);
        }
    }
    *ret_string_bytes_max = scan.string_bytes_max;
    return QR_OK;
}

static qr_rc fail_parse(const json_error_t *error, qr_err *err)
{
    const char *what = error->text;
    switch (json_error_code(error)) {
    case json_error_out_of_memory:
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while reading JSON");
    case json_error_null_character:
    case json_error_null_byte_in_key:
        what = "NUL is not allowed";
        break;
    default:
        break;
    }
    /* jansson ends with the text it stumbled over: " near '…'" */
    const char *quote = strstr(what, " near '");
    const size_t len = quote ? (size_t)(quote - what) : strlen(what);
    return qr_fail(err, QR_CODE_BAD_REQUEST, "not valid JSON: line %d, column %d: %.*s", error->line, error->column,
                   (int)len, what);
}

/* Byte by byte, so that nothing more is read once an allocation has failed. */
struct reader {
    qr_str rest;
    unsigned failed_before;
};

static size_t read_byte(void *buffer, size_t size_bytes QR_UNUSED, void *arg)
{
    struct reader *reader = arg;
    if (reader->rest.len == 0 || failed_allocations != reader->failed_before) {
        return 0;
    }
    *(char *)buffer = *reader->rest.ptr++;
    reader->rest.len--;
    return 1;
}

qr_rc qr_json_parse(qr_str text, const struct qr_json_limits *limits, json_t **ret_value, qr_err *err)
{
    size_t string_bytes_max = 0;
    QR_TRY(check_limits(text, limits, &string_bytes_max, err));
    pthread_once(&watch_once, watch_allocations);
    /* jansson doubles its buffer: at most to twice the string, its quotes and the NUL */
    spare_bytes = 2 * (string_bytes_max + 3);
    spare = unwatched_malloc(spare_bytes);
    if (!spare) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while reading JSON");
    }
    struct reader reader = {text, failed_allocations};
    json_error_t error;
    json_t *value = json_load_callback(read_byte, &reader, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (spare) {
        unwatched_free(spare);
        spare = NULL;
    }
    if (failed_allocations != reader.failed_before) {
        json_decref(value);
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while reading JSON");
    }
    if (!value) {
        return fail_parse(&error, err);
    }
    *ret_value = value;
    return QR_OK;
}

/* ---- fields ---- */

static bool is_listed(const char *fields, const char *name)
{
    qr_str rest = qr_str_of(fields);
    while (rest.len) {
        if (qr_str_equal(qr_str_split(&rest, ' '), qr_str_of(name))) {
            return true;
        }
    }
    return false;
}

static qr_rc unknown_field(const char *path, const char *fields, const char *name, qr_err *err)
{
    enum { SHOWN_BYTES_MAX = 100 };
    const qr_str shown = qr_utf8_prefix(qr_str_of(name), SHOWN_BYTES_MAX);
    struct qr_nearest nearest = qr_nearest_to(qr_str_of(name));
    qr_str rest = qr_str_of(fields);
    while (rest.len) {
        qr_nearest_offer(&nearest, qr_str_split(&rest, ' '));
    }
    if (nearest.name.ptr) {
        return qr_fail(err, QR_CODE_UNKNOWN_FIELD, "no field is called \"%s%.*s\"; did you mean \"%s%.*s\"?", path,
                       QR_STR_ARG(shown), path, QR_STR_ARG(nearest.name));
    }
    return qr_fail(err, QR_CODE_UNKNOWN_FIELD, "no field is called \"%s%.*s\"; known: %s", path, QR_STR_ARG(shown),
                   fields[0] ? fields : "none");
}

qr_rc qr_json_require_fields(const json_t *object, const char *path, const char *fields, qr_err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (!is_listed(fields, name)) {
            return unknown_field(path, fields, name, err);
        }
    }
    return QR_OK;
}

/* ---- writing ---- */

static int append(const char *bytes, size_t size_bytes, void *out)
{
    struct qr_buf *buf = out;
    qr_buf_add(buf, (qr_str){bytes, size_bytes});
    return buf->failed == QR_CODE_NONE ? 0 : -1;
}

qr_rc qr_json_write(const json_t *value, struct qr_buf *out, qr_err *err)
{
    if (json_dump_callback(value, append, out, JSON_COMPACT | JSON_ENCODE_ANY) == 0) {
        return qr_buf_check(out, err);
    }
    QR_TRY(qr_buf_check(out, err));
    /* a value that refers to itself would fail too, but nobody builds one */
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while writing JSON");
}

/* The code point of a valid character of up to 3 bytes; longer ones are no controls. */
static unsigned code_point(qr_str c)
{
    const unsigned char *s = (const unsigned char *)c.ptr;
    switch (c.len) {
    case 1:
        return s[0];
    case 2:
        return (s[0] & 0x1FU) << 6 | (s[1] & 0x3FU);
    case 3:
        return (s[0] & 0x0FU) << 12 | (s[1] & 0x3FU) << 6 | (s[2] & 0x3FU);
    default:
        return 0xFFFF;
    }
}

static bool needs_escape(unsigned point)
{
    return point < 0x20 || point == '"' || point == '\\' || (point >= 0x7F && point < 0xA0) || point == 0x2028 ||
           point == 0x2029;
}

static void add_escape(struct qr_buf *out, unsigned point)
{
    switch (point) {
    case '"':
        qr_buf_add_text(out, "\\\"");
        return;
    case '\\':
        qr_buf_add_text(out, "\\\\");
        return;
    case '\n':
        qr_buf_add_text(out, "\\n");
        return;
    case '\r':
        qr_buf_add_text(out, "\\r");
        return;
    case '\t':
        qr_buf_add_text(out, "\\t");
        return;
    default:
        qr_buf_printf(out, "\\u%04x", point);
        return;
    }
}

void qr_json_add_string(struct qr_buf *out, qr_str text)
{
    qr_buf_add_char(out, '"');
    size_t plain_from = 0; /* runs of plain characters are added in one go */
    for (size_t i = 0; i < text.len;) {
        const size_t len = qr_utf8_char_len((qr_str){text.ptr + i, text.len - i});
        const unsigned point = len ? code_point((qr_str){text.ptr + i, len}) : 0xFFFD;
        if (len && !needs_escape(point)) {
            i += len;
            continue;
        }
        qr_buf_add(out, (qr_str){text.ptr + plain_from, i - plain_from});
        if (len) {
            add_escape(out, point);
        } else {
            qr_buf_add_text(out, "\xEF\xBF\xBD");
        }
        i += len ? len : 1;
        plain_from = i;
    }
    if (plain_from < text.len) {
        qr_buf_add(out, (qr_str){text.ptr + plain_from, text.len - plain_from});
    }
    qr_buf_add_char(out, '"');
}

/* ---- errors ---- */

/* jansson takes only valid UTF-8, and a message may quote a file name or have been cut within a character. */
static json_t *message_string(const char *msg)
{
    char clean[QR_ERR_MSG_SIZE * 3];
    size_t used = 0;
    for (qr_str rest = qr_str_of(msg); rest.len;) {
        const size_t len = qr_utf8_char_len(rest);
        const qr_str c = len ? (qr_str){rest.ptr, len} : QR_STR("\xEF\xBF\xBD");
        memcpy(clean + used, c.ptr, c.len);
        used += c.len;
        const size_t taken = len ? len : 1;
        rest = (qr_str){rest.ptr + taken, rest.len - taken};
    }
    return json_stringn(clean, used);
}

json_t *qr_json_error(const qr_err *err, json_t *details)
{
    json_t *error = json_object();
    json_t *whole = json_object();
    /* each _new call takes its value and fails when that is NULL */
    bool ok = error && whole;
    ok = json_object_set_new(error, "code", json_string(qr_code_info(err->code)->name)) == 0 && ok;
    ok = json_object_set_new(error, "message", message_string(err->msg)) == 0 && ok;
    if (details) {
        ok = json_object_set_new(error, "details", details) == 0 && ok;
    }
    ok = json_object_set_new(whole, "error", error) == 0 && ok;
    if (!ok) {
        json_decref(whole);
        return NULL;
    }
    return whole;
}
