/* Guesses the encoding of text that is not UTF-8. Pure.
 *
 * uchardet knows how languages use bytes, but always has an answer. So its answer is tried: text that comes out full of
 * controls, of words of two alphabets or of capitals inside words is not what somebody wrote, and then whatever reads
 * best is taken, or nothing. */
#include "convert/encoding.h"

#include "base/buf.h"

#include <uchardet/uchardet.h>

enum {
    SAMPLE_BYTES_MAX = 1 << 16,
    FEW = 16,               /* so few bytes beyond ASCII are no statistics */
    ODDNESS_FINE = 40,      /* of what uchardet says */
    ODDNESS_MAX = 120,      /* of the best of all */
    HIGH_PERCENT_LATIN = 30 /* more than that is no Latin alphabet */
};

/* ---- what is odd ---- */

enum script {
    COMMON,
    SYMBOL,
    LATIN,
    GREEK,
    CYRILLIC,
    HEBREW,
    ARABIC,
    THAI,
    OTHER_LETTERS,
    WIDE,
    HALF_KANA,
    BOX,
    BROKEN
};

static const struct {
    uint32_t last;
    enum script script;
} ranges[] = {
    {0x40, COMMON},         {0x5A, LATIN},     {0x60, COMMON},          {0x7A, LATIN},    {0x7F, COMMON},
    {0x9F, BROKEN},         {0xA9, SYMBOL},    {0xAA, LATIN},           {0xB4, SYMBOL},   {0xB5, LATIN},
    {0xB9, SYMBOL},         {0xBA, LATIN},     {0xBF, SYMBOL},          {0xD6, LATIN},    {0xD7, SYMBOL},
    {0xF6, LATIN},          {0xF7, SYMBOL},    {0x24F, LATIN},          {0x2FF, COMMON},  {0x36F, COMMON},
    {0x3FF, GREEK},         {0x52F, CYRILLIC}, {0x58F, OTHER_LETTERS},  {0x5FF, HEBREW},  {0x6FF, ARABIC},
    {0xDFF, OTHER_LETTERS}, {0xE7F, THAI},     {0x10FF, OTHER_LETTERS}, {0x11FF, WIDE},   {0x1DFF, OTHER_LETTERS},
    {0x1EFF, LATIN},        {0x1FFF, GREEK},   {0x24FF, COMMON},        {0x259F, BOX},    {0x2E7F, COMMON},
    {0xD7FF, WIDE},         {0xF8FF, BROKEN},  {0xFAFF, WIDE},          {0xFE6F, COMMON}, {0xFEFE, ARABIC},
    {0xFEFF, BROKEN},       {0xFF60, WIDE},    {0xFF9F, HALF_KANA},     {0xFFEF, WIDE},   {0xFFFF, BROKEN},
    {0x1FFFF, COMMON},      {0x3FFFF, WIDE},   {0x10FFFF, BROKEN},
};

static enum script script_of(uint32_t code)
{
    size_t low = 0, high = QR_COUNT(ranges) - 1;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (code <= ranges[middle].last) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return ranges[low].script;
}

static bool is_capital(uint32_t code)
{
    return (code >= 'A' && code <= 'Z') || (code >= 0xC0 && code <= 0xDE) || (code >= 0x391 && code <= 0x3AB) ||
           (code >= 0x400 && code <= 0x42F);
}

static bool is_small(uint32_t code)
{
    return (code >= 'a' && code <= 'z') || (code >= 0xDF && code <= 0xFF) || (code >= 0x3B1 && code <= 0x3CE) ||
           (code >= 0x430 && code <= 0x45F);
}

static uint32_t take_code(qr_str *text)
{
    const size_t len = qr_utf8_char_len(*text);
    const unsigned char *s = (const unsigned char *)text->ptr;
    uint32_t code = len > 1 ? s[0] & (0xFF >> (len + 1)) : s[0];
    for (size_t i = 1; i < len; i++) {
        code = code << 6 | (s[i] & 0x3F);
    }
    *text = (qr_str){text->ptr + QR_MAX(len, (size_t)1), text->len - QR_MAX(len, (size_t)1)};
    return code;
}

static bool is_alphabet(enum script script)
{
    return script >= LATIN && script <= OTHER_LETTERS;
}

struct reader {
    enum script before, before_that;
    uint32_t code_before;
    size_t letters_here; /* of the word so far */
    bool is_foreign;     /* and they are not Latin */
};

/* How much of it makes no sense behind what stands before. */
static unsigned odd_points(const struct reader *at, uint32_t code, enum script script)
{
    if (script == BROKEN) {
        return 4;
    }
    if (code < 0x80 && at->code_before < 0x80) {
        return 0;
    }
    if (is_alphabet(script) && is_alphabet(at->before)) {
        const bool is_mixed = script != at->before;
        return is_mixed || (is_capital(code) && is_small(at->code_before)) ? 1 : 0;
    }
    if (is_alphabet(script) && (at->before == SYMBOL || at->before == BOX) && is_alphabet(at->before_that)) {
        return 2; /* a symbol between two letters */
    }
    return script == HALF_KANA || (script == BOX && at->before != BOX);
}

static void go_on(struct reader *at, uint32_t code, enum script script)
{
    const bool is_letter = is_alphabet(script);
    at->letters_here = is_letter ? at->letters_here + 1 : 0;
    at->is_foreign = is_letter && script != LATIN;
    at->before_that = at->before;
    at->before = script;
    at->code_before = code;
}

unsigned qr_text_oddness(qr_str text)
{
    struct reader at = {0};
    size_t odd = 0, beyond_ascii = 0;
    while (text.len) {
        const uint32_t code = take_code(&text);
        const enum script script = script_of(code);
        odd += odd_points(&at, code, script);
        if (!is_alphabet(script) && at.letters_here == 1 && at.is_foreign) {
            odd++; /* a letter alone: one accented letter of Latin text looks so in another alphabet */
        }
        beyond_ascii += code >= 0x80;
        go_on(&at, code, script);
    }
    odd += at.letters_here == 1 && at.is_foreign;
    return beyond_ascii ? (unsigned)(odd * 1000 / beyond_ascii) : 0;
}

/* ---- the candidates ---- */

/* Lines with bytes beyond ASCII, which alone say something. */
static void take_sample(qr_str bytes, struct qr_buf *sample, size_t *ret_high)
{
    *ret_high = 0;
    while (bytes.len && sample->len < SAMPLE_BYTES_MAX) {
        qr_str line = bytes;
        line.len = QR_MIN(line.len, (size_t)SAMPLE_BYTES_MAX - sample->len);
        const char *end = memchr(line.ptr, '\n', line.len);
        line.len = end ? (size_t)(end - line.ptr) + 1 : line.len;
        size_t high = 0;
        for (size_t i = 0; i < line.len; i++) {
            high += (unsigned char)line.ptr[i] >= 0x80;
        }
        if (high) {
            qr_buf_add(sample, line);
        }
        *ret_high += high;
        bytes = (qr_str){bytes.ptr + line.len, bytes.len - line.len};
    }
}

/* UINT32_MAX when the encoding is not to be had. */
static qr_rc read_as(const char *charset, qr_str sample, unsigned *ret_oddness, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    size_t bad;
    const bool is_known = qr_charset_convert(charset, sample, &text, &bad);
    QR_TRY(qr_buf_check(&text, err));
    *ret_oddness = is_known ? qr_text_oddness(qr_buf_str(&text)) : UINT32_MAX;
    return QR_OK;
}

static const char *ask_uchardet(qr_str sample)
{
    uchardet_t detector = uchardet_new();
    const char *found = NULL;
    if (uchardet_handle_data(detector, sample.ptr, sample.len) == 0) {
        uchardet_data_end(detector);
        found = qr_charset_find(qr_str_of(uchardet_get_charset(detector)));
    }
    uchardet_delete(detector);
    return found;
}

qr_rc qr_charset_guess(qr_str bytes, const char **ret_charset, qr_err *err)
{
    static const char *const others[] = {"windows-1252", "windows-1251", "koi8-r",    "gb18030",
                                         "cp932",        "euc-jp",       "uhc",       "big5-hkscs",
                                         "windows-1253", "iso-8859-15",  "iso-8859-2"};
    QR_CLEANUP(qr_buf_done) struct qr_buf sample = {0};
    size_t high;
    take_sample(bytes, &sample, &high);
    QR_TRY(qr_buf_check(&sample, err));
    const qr_str text = qr_buf_str(&sample);
    unsigned best = UINT32_MAX, oddness;
    const char *found = NULL;
    if (high <= FEW && high * 100 <= text.len * HIGH_PERCENT_LATIN) {
        found = others[0];
        QR_TRY(read_as(found, text, &best, err));
    }
    if (best > ODDNESS_FINE && (found = ask_uchardet(text))) {
        QR_TRY(read_as(found, text, &best, err));
    }
    for (size_t i = 0; i < QR_COUNT(others) && best > ODDNESS_FINE; i++) {
        QR_TRY(read_as(others[i], text, &oddness, err));
        if (oddness < best) {
            best = oddness;
            found = others[i];
        }
    }
    *ret_charset = best <= ODDNESS_MAX ? found : NULL;
    return QR_OK;
}
