/* Classes of characters by Unicode's categories (utf8proc) and a few ranges of our own for scripts without spaces, and what
 * follows from them: graphemes, words, sentences. */
#include "text/unicode.h"

#include <utf8proc.h>

struct range {
    uint32_t first, last;
};

/* Han, Kana, Bopomofo, Hangul. Signs of repetition belong to them, punctuation does not. */
static const struct range CJK[] = {
    {0x1100, 0x11FF}, {0x2E80, 0x2FD5}, {0x3005, 0x3007}, {0x3021, 0x3029}, {0x3031, 0x3035},   {0x3038, 0x303C},
    {0x3041, 0x3096}, {0x309D, 0x309F}, {0x30A1, 0x30FA}, {0x30FC, 0x30FF}, {0x3105, 0x312F},   {0x3131, 0x318E},
    {0x31A0, 0x31BF}, {0x31F0, 0x31FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xD7B0, 0xD7FB}, {0xF900, 0xFAFF}, {0xFF66, 0xFF9D}, {0xFFA0, 0xFFDC}, {0x1AFF0, 0x1B16F}, {0x20000, 0x3FFFD},
};

/* Thai, Lao, Myanmar, Khmer: letters and signs, not digits and punctuation. */
static const struct range UNSPACED[] = {
    {0x0E01, 0x0E3A}, {0x0E40, 0x0E4E}, {0x0E81, 0x0ECE}, {0x0EDC, 0x0EDF}, {0x1000, 0x103F}, {0x1050, 0x108F},
    {0x109A, 0x109D}, {0x1780, 0x17D3}, {0x17D7, 0x17D7}, {0x17DC, 0x17DD}, {0xA9E0, 0xA9EF}, {0xAA60, 0xAA76},
};

static bool is_in(uint32_t code, const struct range *ranges, size_t count)
{
    size_t low = 0;
    while (count) {
        const size_t half = count / 2;
        if (code > ranges[low + half].last) {
            low += half + 1;
            count -= half + 1;
        } else if (code < ranges[low + half].first) {
            count = half;
        } else {
            return true;
        }
    }
    return false;
}

static enum qr_rune_class class_by_category(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LL:
        return QR_RUNE_LOWER;
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return QR_RUNE_UPPER;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return QR_RUNE_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return QR_RUNE_DIGIT;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return QR_RUNE_MARK;
    case UTF8PROC_CATEGORY_CF:
        return code == 0x200B ? QR_RUNE_SPACE : QR_RUNE_IGNORED; /* the first parts words, of no width */
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return QR_RUNE_SPACE;
    default:
        return code == 0x85 ? QR_RUNE_SPACE : QR_RUNE_OTHER;
    }
}

static enum qr_rune_class class_of(uint32_t code)
{
    if (code >= 0xE00 && is_in(code, CJK, QR_COUNT(CJK))) {
        return QR_RUNE_CJK;
    }
    if (code == 0xFF9E || code == 0xFF9F) { /* half-width voicing marks, letters to Unicode */
        return QR_RUNE_MARK;
    }
    if (code >= 0xE00 && code <= 0xAA76 && is_in(code, UNSPACED, QR_COUNT(UNSPACED))) {
        return QR_RUNE_UNSPACED;
    }
    return class_by_category(code);
}

#define S QR_RUNE_SPACE
#define U QR_RUNE_UPPER
#define L QR_RUNE_LOWER
#define D QR_RUNE_DIGIT
const uint8_t qr_ascii_classes[0x80] = {
    ['\t'] = S, ['\n'] = S, ['\v'] = S, ['\f'] = S, ['\r'] = S, [' '] = S, ['0'] = D, ['1'] = D, ['2'] = D, ['3'] = D,
    ['4'] = D,  ['5'] = D,  ['6'] = D,  ['7'] = D,  ['8'] = D,  ['9'] = D, ['A'] = U, ['B'] = U, ['C'] = U, ['D'] = U,
    ['E'] = U,  ['F'] = U,  ['G'] = U,  ['H'] = U,  ['I'] = U,  ['J'] = U, ['K'] = U, ['L'] = U, ['M'] = U, ['N'] = U,
    ['O'] = U,  ['P'] = U,  ['Q'] = U,  ['R'] = U,  ['S'] = U,  ['T'] = U, ['U'] = U, ['V'] = U, ['W'] = U, ['X'] = U,
    ['Y'] = U,  ['Z'] = U,  ['a'] = L,  ['b'] = L,  ['c'] = L,  ['d'] = L, ['e'] = L, ['f'] = L, ['g'] = L, ['h'] = L,
    ['i'] = L,  ['j'] = L,  ['k'] = L,  ['l'] = L,  ['m'] = L,  ['n'] = L, ['o'] = L, ['p'] = L, ['q'] = L, ['r'] = L,
    ['s'] = L,  ['t'] = L,  ['u'] = L,  ['v'] = L,  ['w'] = L,  ['x'] = L, ['y'] = L, ['z'] = L,
};
#undef S
#undef U
#undef L
#undef D

static uint32_t decode(const unsigned char *s, size_t len)
{
    switch (len) {
    case 2:
        return (uint32_t)(s[0] & 0x1F) << 6 | (s[1] & 0x3F);
    case 3:
        return (uint32_t)(s[0] & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
    default:
        return (uint32_t)(s[0] & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 | (uint32_t)(s[2] & 0x3F) << 6 |
               (s[3] & 0x3F);
    }
}

struct qr_rune qr_rune_beyond_ascii(qr_str text)
{
    const size_t len = qr_utf8_char_len(text);
    if (len == 0) {
        return (struct qr_rune){.code = 0xFFFD, .len = 1, .class = QR_RUNE_OTHER};
    }
    const uint32_t code = decode((const unsigned char *)text.ptr, len);
    return (struct qr_rune){.code = code, .len = (uint8_t)len, .class = class_of(code)};
}

static qr_str rest_from(qr_str text, size_t from)
{
    return (qr_str){text.ptr + from, text.len - from};
}

size_t qr_grapheme_len(qr_str text)
{
    struct qr_rune before = qr_rune_at(text);
    utf8proc_int32_t state = 0;
    size_t len = before.len;
    while (len < text.len) {
        const unsigned char next = (unsigned char)text.ptr[len];
        if (next < 0x80 && before.code < 0x80) { /* only \r\n are one */
            return before.code == '\r' && next == '\n' ? len + 1 : len;
        }
        const struct qr_rune rune = qr_rune_at(rest_from(text, len));
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)before.code, (utf8proc_int32_t)rune.code, &state)) {
            break;
        }
        len += rune.len;
        before = rune;
    }
    return len;
}

/* ---- sentences ---- */

static bool is_one_of(uint32_t code, const uint32_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (codes[i] == code) {
            return true;
        }
    }
    return false;
}

bool qr_rune_ends_wide_sentence(uint32_t code)
{
    static const uint32_t ENDS[] = {0x3002, 0xFF01, 0xFF0E, 0xFF1F, 0xFF61, 0xFE52, 0xFE56, 0xFE57};
    return code >= 0x3002 && is_one_of(code, ENDS, QR_COUNT(ENDS));
}

bool qr_rune_ends_sentence(uint32_t code)
{
    /* … ‼ ⁇ ⁈ ⁉, and those of Armenian, Arabic and Urdu, Devanagari, Myanmar, Ethiopic, Khmer */
    static const uint32_t ENDS[] = {'.',    '!',    '?',    0x2026, 0x203C, 0x2047, 0x2048, 0x2049, 0x0589, 0x061F,
                                    0x06D4, 0x0964, 0x0965, 0x104A, 0x104B, 0x1362, 0x1367, 0x17D4, 0x17D5};
    return is_one_of(code, ENDS, QR_COUNT(ENDS)) || qr_rune_ends_wide_sentence(code);
}

bool qr_rune_closes(uint32_t code)
{
    static const uint32_t CLOSERS[] = {'"',    '\'',   ')',    ']',    '}',    0x00BB, 0x2019, 0x201D, 0x203A,
                                       0x3009, 0x300B, 0x300D, 0x300F, 0x3011, 0x3015, 0xFF09, 0xFF3D, 0xFF63};
    return is_one_of(code, CLOSERS, QR_COUNT(CLOSERS));
}

bool qr_rune_is_wide(uint32_t code)
{
    return code >= 0x1100 && utf8proc_charwidth((utf8proc_int32_t)code) == 2;
}

static bool is_abbreviation(qr_str word)
{
    static const char *const KNOWN[] = {"mr",  "mrs", "ms",  "dr",   "prof", "st",  "vs",  "etc", "eg",  "ie",
                                        "cf",  "al",  "fig", "figs", "eq",   "no",  "vol", "pp",  "ed",  "eds",
                                        "ca",  "bzw", "vgl", "nr",   "abs",  "art", "bd",  "usw", "sr",  "sra",
                                        "dra", "ud",  "av",  "inc",  "ltd",  "co",  "jr",  "ph",  "dept"};
    char lower[8];
    if (word.len >= sizeof lower) {
        return false;
    }
    for (size_t i = 0; i < word.len; i++) {
        lower[i] = (char)(word.ptr[i] | 0x20);
    }
    for (size_t i = 0; i < QR_COUNT(KNOWN); i++) {
        if (qr_str_equal((qr_str){lower, word.len}, qr_str_of(KNOWN[i]))) {
            return true;
        }
    }
    return false;
}

static bool is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether a point behind `before`, the sentence so far, may be no more than part of a word. */
static bool point_abbreviates(qr_str before)
{
    size_t start = before.len;
    while (start && is_ascii_letter(before.ptr[start - 1])) {
        start--;
    }
    const qr_str word = rest_from(before, start);
    const bool is_initial =
        word.len == 1 && (start == 0 || before.ptr[start - 1] == ' ' || before.ptr[start - 1] == '.');
    const bool is_numbered = word.len == 0 && start && before.ptr[start - 1] >= '0' && before.ptr[start - 1] <= '9' &&
                             start <= 3; /* "12. " at the beginning: a list */
    return is_initial || is_numbered || is_abbreviation(word);
}

static size_t skip_spaces(qr_str text, size_t from, size_t *ret_lines)
{
    struct qr_rune rune;
    *ret_lines = 0;
    while ((rune = qr_rune_at(rest_from(text, from))).class == QR_RUNE_SPACE) {
        *ret_lines += rune.code == '\n' || rune.code == 0x2029;
        from += rune.len;
    }
    return from;
}

/* Behind the sign that may end a sentence at `at`: where it ends with what belongs to it, or 0 when it does not end. */
static size_t end_behind(qr_str text, size_t at, struct qr_rune sign)
{
    bool is_wide = qr_rune_ends_wide_sentence(sign.code);
    size_t end = at + sign.len;
    struct qr_rune next;
    while ((next = qr_rune_at(rest_from(text, end))).len &&
           (qr_rune_ends_sentence(next.code) || qr_rune_closes(next.code))) {
        is_wide = is_wide || qr_rune_ends_wide_sentence(next.code);
        end += next.len;
    }
    size_t lines;
    const size_t behind = skip_spaces(text, end, &lines);
    if (behind == text.len || is_wide) {
        return behind;
    }
    if (behind == end) {
        return 0;
    }
    const bool goes_on = qr_rune_at(rest_from(text, behind)).class == QR_RUNE_LOWER;
    return sign.code == '.' && (goes_on || point_abbreviates((qr_str){text.ptr, at})) ? 0 : behind;
}

size_t qr_sentence_len(qr_str text)
{
    enum qr_rune_class before = QR_RUNE_OTHER;
    bool has_begun = false;
    for (size_t at = 0; at < text.len;) {
        const struct qr_rune rune = qr_rune_at(rest_from(text, at));
        if (rune.class == QR_RUNE_SPACE) {
            size_t lines;
            const size_t behind = skip_spaces(text, at, &lines);
            const enum qr_rune_class next = qr_rune_at(rest_from(text, behind)).class;
            if (has_begun && (lines > 1 || (before == QR_RUNE_UNSPACED && next == QR_RUNE_UNSPACED))) {
                return behind;
            }
            at = behind;
        } else {
            const size_t end = has_begun && qr_rune_ends_sentence(rune.code) ? end_behind(text, at, rune) : 0;
            if (end) {
                return end;
            }
            has_begun = has_begun || rune.class != QR_RUNE_OTHER;
            at += rune.len;
        }
        before = rune.class;
    }
    return text.len;
}

/* ---- words ---- */

static bool is_word_class(enum qr_rune_class class)
{
    return class >= QR_RUNE_LOWER && class <= QR_RUNE_DIGIT;
}

/* The bytes of a sign that may stand inside a word: an apostrophe, a point. */
static size_t inner_sign_len(qr_str text)
{
    if (text.len && (text.ptr[0] == '\'' || text.ptr[0] == '.' || text.ptr[0] == '_')) {
        return 1;
    }
    return qr_str_starts_with(text, QR_STR("’")) ? 3 : 0;
}

static size_t word_len(qr_str text)
{
    size_t len = qr_rune_at(text).len;
    while (len < text.len) {
        struct qr_rune next = qr_rune_at(rest_from(text, len));
        const size_t sign = inner_sign_len(rest_from(text, len));
        if (sign) {
            next = qr_rune_at(rest_from(text, len + sign));
        }
        const bool is_joined = !sign && (next.class == QR_RUNE_MARK || next.class == QR_RUNE_IGNORED);
        if (!is_joined && !is_word_class(next.class)) {
            break;
        }
        len += sign + next.len;
    }
    return len;
}

qr_str qr_word_next(qr_str *rest, size_t *ret_start)
{
    const qr_str all = *rest;
    size_t start = 0, len = 0;
    while (start < all.len && len == 0) {
        const qr_str at = rest_from(all, start);
        const struct qr_rune rune = qr_rune_at(at);
        if (is_word_class(rune.class)) {
            len = word_len(at);
        } else if (rune.class == QR_RUNE_CJK || rune.class == QR_RUNE_UNSPACED) {
            len = qr_grapheme_len(at);
        } else {
            start += rune.len;
        }
    }
    *rest = rest_from(all, start + len);
    if (ret_start) {
        *ret_start = start;
    }
    return (qr_str){all.ptr + start, len};
}
