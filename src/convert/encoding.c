/* Which encoding bytes are in, and their canonical text: valid UTF-8 without NUL, BOM and \r. Pure, but for the arena.
 *
 * In this order: what a byte order mark says; UTF-8 where it is valid, whatever is declared; what the content declares;
 * UTF-16 and UTF-32 by where their NULs are; UTF-8 that some lines are not; a guess (charset_guess.c). What gives no
 * plausible text is called binary rather than turned into nonsense, unless it is ASCII but for a few stray bytes. */
#include "convert/encoding.h"

#include "base/buf.h"

#include <strings.h>

enum {
    CONTROLS_PERCENT_MAX = 5, /* of a text: form feeds and escapes occur, noise has far more */
    PERCENT_GRACE = 300,      /* in a few bytes a percentage says nothing: three are always fine */
    ODDNESS_MAX = 200,        /* of UTF-16 and UTF-32 without a mark */
    BAD_PERCENT_MAX = 1,      /* of characters beyond ASCII that a declared or guessed encoding may not have */
    STRAY_PERCENT_MAX = 1,    /* of all bytes: so few strange ones do not make a text binary */
    BROKEN_PERCENT_MAX = 5,   /* of the characters of UTF-16 and UTF-32; with a mark, and the same grace */
    BROKEN_UNITS_MIN = 16,    /* without a mark, one broken of fewer is no text */
    REPLACEMENT = 0xFFFD,
    PROBE_BYTES = 4096,
    DECLARED_WITHIN = 1024, /* as the web has it */
};

static qr_rc fail_binary(const char *why, qr_err *err)
{
    return qr_fail(err, QR_CODE_UNSUPPORTED_TYPE, "it is not text: %s", why);
}

static qr_rc out_of_memory(size_t size_bytes, qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for %zu bytes of text", size_bytes);
}

static qr_str skip(qr_str text, size_t len)
{
    return (qr_str){text.ptr + len, text.len - len};
}

static qr_str skip_marks(qr_str text)
{
    const qr_str mark = QR_STR("\xEF\xBB\xBF");
    while (qr_str_starts_with(text, mark)) {
        text = skip(text, mark.len);
    }
    return text;
}

/* ---- UTF-8 ---- */

/* A copy with \n for each line end. */
static qr_rc take_utf8(qr_str text, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err)
{
    text = skip_marks(text);
    char *const copy = text.len < SIZE_MAX ? qr_arena_alloc(arena, text.len + 1) : NULL;
    char *to = copy;
    if (!copy) {
        return out_of_memory(text.len, err);
    }
    while (text.len) { /* from one \r to the next: most texts have none */
        const char *cr = memchr(text.ptr, '\r', text.len);
        const size_t len = cr ? (size_t)(cr - text.ptr) : text.len;
        memcpy(to, text.ptr, len);
        to += len;
        text = skip(text, len);
        if (cr) {
            *to++ = '\n';
            text = skip(text, text.len > 1 && text.ptr[1] == '\n' ? 2 : 1);
        }
    }
    ret->text = copy;
    ret->len = (size_t)(to - copy);
    return QR_OK;
}

static void add_code_point(struct qr_buf *out, uint32_t code)
{
    const char bytes[] = {(char)(0xF0 | code >> 18), (char)(0x80 | (code >> 12 & 0x3F)),
                          (char)(0x80 | (code >> 6 & 0x3F)), (char)(0x80 | (code & 0x3F))};
    if (code < 0x80) {
        qr_buf_add_char(out, (char)code);
    } else if (code < 0x800) {
        const char two[] = {(char)(0xC0 | code >> 6), bytes[3]};
        qr_buf_add(out, (qr_str){two, 2});
    } else if (code < 0x10000) {
        const char three[] = {(char)(0xE0 | code >> 12), bytes[2], bytes[3]};
        qr_buf_add(out, (qr_str){three, 3});
    } else {
        qr_buf_add(out, (qr_str){bytes, 4});
    }
}

/* ---- UTF-16 and UTF-32 ---- */

struct unicode_form {
    const char *charset;
    size_t width;
    bool is_big_endian;
    qr_str mark;
};

static const struct unicode_form forms[] = {
    /* the mark of UTF-32LE begins with that of UTF-16LE */
    {"utf-32le", 4, false, {"\xFF\xFE\0\0", 4}},
    {"utf-32be", 4, true, {"\0\0\xFE\xFF", 4}},
    {"utf-16le", 2, false, {"\xFF\xFE", 2}},
    {"utf-16be", 2, true, {"\xFE\xFF", 2}},
};

static uint32_t unit_at(const unsigned char *s, const struct unicode_form *form)
{
    uint32_t unit = 0;
    for (size_t i = 0; i < form->width; i++) {
        unit = unit << 8 | s[form->is_big_endian ? i : form->width - 1 - i];
    }
    return unit;
}

struct units {
    size_t count;  /* of characters, the broken ones among them */
    size_t broken; /* half a surrogate pair, no code of Unicode, cut at the end */
    bool has_nul;
};

/* The character that begins with the unit; *ret_size: its bytes, a pair's twice the width. */
static uint32_t code_at(const struct unicode_form *form, qr_str bytes, size_t *ret_size)
{
    *ret_size = QR_MIN(form->width, bytes.len);
    if (bytes.len < form->width) {
        return UINT32_MAX;
    }
    const unsigned char *s = (const unsigned char *)bytes.ptr;
    const uint32_t code = unit_at(s, form);
    if (form->width == 2 && code >= 0xD800 && code <= 0xDBFF && bytes.len >= 4) {
        const uint32_t low = unit_at(s + 2, form);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *ret_size = 4;
            return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return code;
}

/* `replacement` stands for what is broken. */
static struct units add_units(const struct unicode_form *form, qr_str bytes, uint32_t replacement, struct qr_buf *out)
{
    struct units units = {0};
    size_t size;
    for (; bytes.len && out->failed == QR_CODE_NONE && !units.has_nul; bytes = skip(bytes, size)) {
        const uint32_t code = code_at(form, bytes, &size);
        const bool is_broken = code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF);
        units.count++;
        units.broken += is_broken;
        units.has_nul = code == 0;
        add_code_point(out, is_broken ? replacement : code);
    }
    return units;
}

static qr_rc take_units(const struct unicode_form *form, qr_str bytes, struct qr_arena *arena, struct qr_decoded *ret,
                        qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    const struct units units = add_units(form, bytes, REPLACEMENT, &text);
    QR_TRY(qr_buf_check(&text, err));
    if (units.has_nul) {
        return fail_binary("it has NUL characters", err);
    }
    if (units.broken &&
        (units.broken * 2 >= units.count || units.broken * 100 > units.count * BROKEN_PERCENT_MAX + PERCENT_GRACE)) {
        return fail_binary("UTF-16 or UTF-32 with too much that is no character", err);
    }
    ret->charset = form->charset;
    ret->is_mixed = units.broken > 0;
    return take_utf8(qr_buf_str(&text), arena, ret, err);
}

/* Without a mark to say so. One broken character in a hundred and one more: the probe may have cut a pair. */
static bool reads_well(const struct units *units)
{
    const size_t broken_max = units->count < BROKEN_UNITS_MIN ? 0 : 1 + units->count * STRAY_PERCENT_MAX / 100;
    return !units->has_nul && units->broken <= broken_max;
}

/* Two letters of ASCII make one character of Chinese: text with a NUL in it is no UTF-16 for that. */
static bool is_ascii_with_nul(qr_str bytes)
{
    size_t ascii_pairs = 0, pairs = 0, units = 0;
    for (size_t i = 0; i + 1 < bytes.len; i += 2, units++) {
        const unsigned char a = (unsigned char)bytes.ptr[i], b = (unsigned char)bytes.ptr[i + 1];
        pairs += a && b;
        ascii_pairs += a >= 0x20 && a < 0x7F && b >= 0x20 && b < 0x7F;
    }
    return pairs * 2 > units && ascii_pairs * 100 > pairs * 95;
}

/* Bytes with NULs, of which the beginning reads well in one of the forms. */
static qr_rc take_unmarked_units(qr_str bytes, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err)
{
    const struct unicode_form *best = NULL;
    unsigned best_oddness = ODDNESS_MAX + 1;
    const qr_str beginning = {bytes.ptr, QR_MIN(bytes.len, (size_t)PROBE_BYTES)};
    for (size_t i = 0; i < QR_COUNT(forms) && !is_ascii_with_nul(beginning); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        const struct units units = add_units(&forms[i], beginning, '?', &text); /* which is not odd */
        QR_TRY(qr_buf_check(&text, err));
        /* the wrong order of bytes makes Chinese of Latin: with ASCII in it, it is right */
        const bool has_ascii = text.len && (memchr(text.data, ' ', text.len) || memchr(text.data, '\n', text.len) ||
                                            (text.data[0] > ' ' && text.data[0] < 0x7F));
        const unsigned oddness =
            !reads_well(&units) || !has_ascii ? ODDNESS_MAX + 1 : qr_text_oddness(qr_buf_str(&text));
        if (oddness < best_oddness) {
            best = &forms[i];
            best_oddness = oddness;
        }
    }
    if (!best) {
        return fail_binary("it has NUL bytes", err);
    }
    ret->is_guessed = true;
    return take_units(best, bytes, arena, ret, err);
}

/* ---- UTF-8 with lines that are not ---- */

struct line_counts {
    size_t good, bad; /* lines beyond ASCII: UTF-8, and not */
};

static struct line_counts count_lines(qr_str bytes)
{
    struct line_counts counts = {0};
    while (bytes.len) {
        const qr_str line = qr_str_split(&bytes, '\n');
        size_t i = 0;
        while (i < line.len && (unsigned char)line.ptr[i] < 0x80) {
            i++;
        }
        const bool is_utf8 = qr_utf8_valid(skip(line, i));
        counts.good += i < line.len && is_utf8;
        counts.bad += !is_utf8;
    }
    return counts;
}

/* What is UTF-8 stays, other bytes are read as Windows-1252. */
static void mend_line(qr_str line, struct qr_buf *out)
{
    while (line.len && out->failed == QR_CODE_NONE) {
        size_t good = 0, len, bad;
        while (good < line.len && (len = qr_utf8_char_len(skip(line, good)))) {
            good += len;
        }
        qr_buf_add(out, (qr_str){line.ptr, good});
        line = skip(line, good);
        if (line.len) {
            qr_charset_convert("windows-1252", (qr_str){line.ptr, 1}, out, &bad);
            line = skip(line, 1);
        }
    }
}

static qr_rc take_mixed(qr_str bytes, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    while (bytes.len && text.failed == QR_CODE_NONE) {
        const char *end = memchr(bytes.ptr, '\n', bytes.len);
        const qr_str line = {bytes.ptr, end ? (size_t)(end - bytes.ptr) + 1 : bytes.len};
        if (qr_utf8_valid(line)) {
            qr_buf_add(&text, line);
        } else {
            mend_line(line, &text);
        }
        bytes = skip(bytes, line.len);
    }
    QR_TRY(qr_buf_check(&text, err));
    ret->charset = "utf-8";
    ret->is_mixed = true;
    return take_utf8(qr_buf_str(&text), arena, ret, err);
}

/* ---- other encodings ---- */

static size_t count_high(qr_str bytes)
{
    size_t high = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        high += (unsigned char)bytes.ptr[i] >= 0x80;
    }
    return high;
}

/* *ret_is_taken: the encoding reads it. */
static qr_rc take_charset(const char *charset, qr_str bytes, struct qr_arena *arena, bool *ret_is_taken,
                          struct qr_decoded *ret, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    size_t bad = 0;
    const bool is_known = qr_charset_convert(charset, bytes, &text, &bad);
    QR_TRY(qr_buf_check(&text, err));
    *ret_is_taken = is_known && bad * 100 <= count_high(bytes) * BAD_PERCENT_MAX;
    if (!*ret_is_taken) {
        return QR_OK;
    }
    ret->charset = charset;
    return take_utf8(qr_buf_str(&text), arena, ret, err);
}

static qr_rc take_guessed(qr_str bytes, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err)
{
    const char *charset;
    bool is_taken = false;
    QR_TRY(qr_charset_guess(bytes, &charset, err));
    ret->is_guessed = true;
    if (charset) {
        QR_TRY(take_charset(charset, bytes, arena, &is_taken, ret, err));
    }
    if (!is_taken && count_high(bytes) * 100 <= bytes.len * STRAY_PERCENT_MAX) {
        ret->is_guessed = false;
        return take_mixed(bytes, arena, ret, err);
    }
    return is_taken ? QR_OK : fail_binary("no known encoding makes sense of its bytes", err);
}

static qr_rc take_undeclared(qr_str bytes, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err)
{
    const struct line_counts lines = count_lines(bytes);
    /* one line in five: in other encodings next to none is valid UTF-8 by chance */
    return lines.good * 4 >= lines.bad ? take_mixed(bytes, arena, ret, err) : take_guessed(bytes, arena, ret, err);
}

/* ISO-2022-JP is ASCII that escapes into Japanese. */
static bool looks_like_iso_2022_jp(qr_str bytes)
{
    return memmem(bytes.ptr, bytes.len, "\x1B$B", 3) || memmem(bytes.ptr, bytes.len, "\x1B$@", 3);
}

static qr_rc decode(qr_str bytes, qr_str declared, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err)
{
    for (size_t i = 0; i < QR_COUNT(forms); i++) {
        if (qr_str_starts_with(bytes, forms[i].mark)) {
            return take_units(&forms[i], skip(bytes, forms[i].mark.len), arena, ret, err);
        }
    }
    if (bytes.len && memchr(bytes.ptr, '\0', bytes.len)) {
        return take_unmarked_units(bytes, arena, ret, err);
    }
    bool is_taken = false;
    if (qr_utf8_valid(bytes)) {
        if (bytes.len && looks_like_iso_2022_jp(bytes)) {
            QR_TRY(take_charset("iso-2022-jp", bytes, arena, &is_taken, ret, err));
        }
        return is_taken ? QR_OK : take_utf8(bytes, arena, ret, err);
    }
    const char *charset = qr_charset_find(declared);
    if (charset) {
        QR_TRY(take_charset(charset, bytes, arena, &is_taken, ret, err));
    }
    return is_taken ? QR_OK : take_undeclared(bytes, arena, ret, err);
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

qr_rc qr_decode(qr_str bytes, qr_str declared, struct qr_arena *arena, struct qr_decoded *ret, qr_err *err)
{
    struct qr_decoded decoded = {.charset = "utf-8"};
    QR_TRY(decode(skip_marks(bytes), declared, arena, &decoded, err));
    QR_TRY(require_text((qr_str){decoded.text, decoded.len}, err));
    *ret = decoded;
    return QR_OK;
}

/* ---- declarations ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == ':';
}

static qr_str name_behind(qr_str text, const char *key)
{
    const size_t key_len = strlen(key);
    for (size_t i = 0; i + key_len < text.len; i++) {
        if (strncasecmp(text.ptr + i, key, key_len) != 0) {
            continue;
        }
        qr_str name = skip(text, i + key_len);
        while (name.len && (name.ptr[0] == ' ' || name.ptr[0] == '"' || name.ptr[0] == '\'')) {
            name = skip(name, 1);
        }
        size_t len = 0;
        while (len < name.len && is_name_char(name.ptr[len])) {
            len++;
        }
        if (len) {
            return (qr_str){name.ptr, len};
        }
    }
    return (qr_str){0};
}

qr_str qr_charset_declared(qr_str bytes)
{
    /* <meta charset="…">, content="text/html; charset=…" · <?xml encoding="…"?> · # -*- coding: … -*-, fileencoding=… */
    static const char *const keys[] = {"charset=", "encoding=", "coding:", "coding="};
    const qr_str head = {bytes.ptr, QR_MIN(bytes.len, (size_t)DECLARED_WITHIN)};
    for (size_t i = 0; i < QR_COUNT(keys); i++) {
        const qr_str name = name_behind(head, keys[i]);
        if (qr_charset_find(name)) {
            return name;
        }
    }
    return (qr_str){0};
}
