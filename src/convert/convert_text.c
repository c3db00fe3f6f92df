/* Text to canonical text: valid UTF-8 without NUL, BOM and \r. Pure, but for the arena.
 *
 * Which encoding it is: what a byte order mark says; else UTF-8 where it is valid; else, for text that is mostly ASCII,
 * Windows-1252, of which Latin-1 is a part. Anything else is called binary rather than turned into nonsense. */
#include "convert/convert.h"

#include "model/markdown.h"

enum {
    CONTROLS_PERCENT_MAX = 5, /* of a text: form feeds and escapes occur, noise has far more */
    HIGH_PERCENT_MAX = 30,    /* beyond, it is some other alphabet than Latin, in a code that we do not know */
    TITLE_BYTES_MAX = 200,
    PERCENT_GRACE = 300, /* in a few bytes a percentage says nothing: three are always fine */
};

struct writer {
    char *text;
    size_t len;
    bool after_cr;
};

/* \r\n and \r become \n. */
static void write_code_point(struct writer *writer, uint32_t code)
{
    if (code == '\n' && writer->after_cr) {
        writer->after_cr = false;
        return;
    }
    writer->after_cr = code == '\r';
    code = code == '\r' ? '\n' : code;
    char *to = writer->text + writer->len;
    if (code < 0x80) {
        to[0] = (char)code;
        writer->len += 1;
    } else if (code < 0x800) {
        to[0] = (char)(0xC0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3F));
        writer->len += 2;
    } else if (code < 0x10000) {
        to[0] = (char)(0xE0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3F));
        to[2] = (char)(0x80 | (code & 0x3F));
        writer->len += 3;
    } else {
        to[0] = (char)(0xF0 | code >> 18);
        to[1] = (char)(0x80 | (code >> 12 & 0x3F));
        to[2] = (char)(0x80 | (code >> 6 & 0x3F));
        to[3] = (char)(0x80 | (code & 0x3F));
        writer->len += 4;
    }
}

static qr_rc fail_binary(const char *why, qr_err *err)
{
    return qr_fail(err, QR_CODE_UNSUPPORTED_TYPE, "it is not text: %s", why);
}

static qr_rc writer_init(struct writer *writer, struct qr_arena *arena, size_t characters_max, size_t bytes_each,
                         qr_err *err)
{
    size_t size;
    *writer = (struct writer){0};
    if (QR_MUL_OVERFLOWS(characters_max, bytes_each, &size) || QR_ADD_OVERFLOWS(size, 1, &size) ||
        !(writer->text = qr_arena_alloc(arena, size))) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for %zu bytes of text", characters_max);
    }
    return QR_OK;
}

/* ---- the encodings ---- */

static qr_rc take_utf8(qr_str bytes, struct qr_arena *arena, qr_str *ret_text, qr_err *err)
{
    struct writer writer;
    QR_TRY(writer_init(&writer, arena, bytes.len, 1, err));
    while (bytes.len) { /* from one \r to the next: most texts have none */
        const char *cr = memchr(bytes.ptr, '\r', bytes.len);
        const size_t len = cr ? (size_t)(cr - bytes.ptr) : bytes.len;
        memcpy(writer.text + writer.len, bytes.ptr, len);
        writer.len += len;
        bytes = (qr_str){bytes.ptr + len, bytes.len - len};
        if (cr) {
            writer.text[writer.len++] = '\n';
            const size_t taken = bytes.len > 1 && bytes.ptr[1] == '\n' ? 2 : 1;
            bytes = (qr_str){bytes.ptr + taken, bytes.len - taken};
        }
    }
    *ret_text = (qr_str){writer.text, writer.len};
    return QR_OK;
}

static uint32_t utf16_unit(const unsigned char *s, bool is_big_endian)
{
    return is_big_endian ? (uint32_t)s[0] << 8 | s[1] : (uint32_t)s[1] << 8 | s[0];
}

static qr_rc take_utf16(qr_str bytes, bool is_big_endian, struct qr_arena *arena, qr_str *ret_text, qr_err *err)
{
    struct writer writer;
    QR_TRY(writer_init(&writer, arena, bytes.len / 2, 3, err)); /* a pair gives 4 bytes, less than 2 × 3 */
    const unsigned char *s = (const unsigned char *)bytes.ptr;
    if (bytes.len % 2) {
        return fail_binary("UTF-16 with half a character at its end", err);
    }
    for (size_t i = 0; i < bytes.len; i += 2) {
        uint32_t code = utf16_unit(s + i, is_big_endian);
        if (code >= 0xD800 && code <= 0xDFFF) {
            const uint32_t low = code <= 0xDBFF && bytes.len - i >= 4 ? utf16_unit(s + i + 2, is_big_endian) : 0;
            if (low < 0xDC00 || low > 0xDFFF) {
                return fail_binary("UTF-16 with half a surrogate pair", err);
            }
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            i += 2;
        }
        write_code_point(&writer, code);
    }
    *ret_text = (qr_str){writer.text, writer.len};
    return QR_OK;
}

/* 0x80–0x9F; 0 = not assigned. Above, the code is the byte. */
static const uint16_t windows_1252[] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178,
};

static qr_rc take_windows_1252(qr_str bytes, struct qr_arena *arena, qr_str *ret_text, qr_err *err)
{
    size_t high = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        high += (unsigned char)bytes.ptr[i] >= 0x80;
    }
    if (high * 100 > bytes.len * HIGH_PERCENT_MAX + PERCENT_GRACE) {
        return fail_binary("neither UTF-8 nor mostly Latin letters", err);
    }
    struct writer writer;
    QR_TRY(writer_init(&writer, arena, bytes.len + 2 * high, 1, err));
    for (size_t i = 0; i < bytes.len; i++) {
        const unsigned char byte = (unsigned char)bytes.ptr[i];
        const uint32_t code = byte >= 0x80 && byte <= 0x9F ? windows_1252[byte - 0x80] : byte;
        if (code == 0) {
            return fail_binary("bytes that no known encoding has", err);
        }
        write_code_point(&writer, code);
    }
    *ret_text = (qr_str){writer.text, writer.len};
    return QR_OK;
}

static qr_str skip_boms(qr_str bytes)
{
    const qr_str bom = QR_STR("\xEF\xBB\xBF");
    while (qr_str_starts_with(bytes, bom)) {
        bytes = (qr_str){bytes.ptr + bom.len, bytes.len - bom.len};
    }
    return bytes;
}

static qr_rc decode(qr_str bytes, struct qr_arena *arena, qr_str *ret_text, qr_err *err)
{
    if (qr_str_starts_with(bytes, QR_STR("\xFF\xFE")) || qr_str_starts_with(bytes, QR_STR("\xFE\xFF"))) {
        return take_utf16((qr_str){bytes.ptr + 2, bytes.len - 2}, bytes.ptr[0] == '\xFE', arena, ret_text, err);
    }
    if (bytes.len && memchr(bytes.ptr, '\0', bytes.len)) { /* before any work on a large binary */
        return fail_binary("it has NUL bytes", err);
    }
    return qr_utf8_valid(bytes) ? take_utf8(bytes, arena, ret_text, err)
                                : take_windows_1252(bytes, arena, ret_text, err);
}

/* ---- what the text is ---- */

static qr_rc require_text(qr_str text, qr_err *err)
{
    size_t controls = 0;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if (c == '\0') {
            return fail_binary("it has NUL characters", err);
        }
        controls += (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    }
    if (controls * 100 > text.len * CONTROLS_PERCENT_MAX + PERCENT_GRACE) {
        return fail_binary("it is full of control characters", err);
    }
    return QR_OK;
}

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
            return qr_utf8_prefix(found.title, TITLE_BYTES_MAX);
        }
    }
    return (qr_str){0};
}

static const struct qr_warning warning_empty = {"empty", "there is nothing but white space in it"};

qr_rc qr_convert_text(qr_str bytes, struct qr_arena *arena, qr_str *ret_text, const char **ret_mime,
                      const char **ret_title, struct qr_warning **ret_warnings, size_t *ret_warning_count, qr_err *err)
{
    qr_str text;
    QR_TRY(decode(skip_boms(bytes), arena, &text, err));
    text = skip_boms(text);
    QR_TRY(require_text(text, err));
    const qr_str title = qr_convert_title(text);
    const bool is_empty = qr_is_blank(text);
    const char *kept_title = title.len ? qr_arena_copy(arena, title) : NULL;
    struct qr_warning *warnings = is_empty ? qr_arena_alloc(arena, sizeof *warnings) : NULL;
    if ((title.len && !kept_title) || (is_empty && !warnings)) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    if (is_empty) {
        *warnings = warning_empty;
    }
    *ret_text = text;
    *ret_mime = title.len ? "text/markdown" : "text/plain";
    *ret_title = kept_title;
    *ret_warnings = warnings;
    *ret_warning_count = is_empty;
    return QR_OK;
}
