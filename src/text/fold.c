/* The form in which two spellings of a word are the same: compatible forms made one and case folded (Unicode's NFKC and
 * case folding, by utf8proc), then accents taken away.
 *
 * Accents are those that people leave out when they type: marks over Latin and Greek letters, vowel points of Hebrew and
 * Arabic, the nukta. Marks that make another letter stay: й and ї, voiced Kana, vowel signs of Indian scripts. Most characters
 * of most texts never reach utf8proc: QUICK has what becomes of them. */
#include "text/fold.h"

#include <utf8proc.h>

/* U+00C0 to U+017F. */
static const char LATIN[0x180 - 0xC0][3] = {
    "a", "a", "a",  "a", "a", "a", "ae", "c",  "e", "e", "e",  "e",  "i", "i", "i",  "i",  "d", "n", "o",  "o",
    "o", "o", "o",  "",  "o", "u", "u",  "u",  "u", "y", "th", "ss", "a", "a", "a",  "a",  "a", "a", "ae", "c",
    "e", "e", "e",  "e", "i", "i", "i",  "i",  "d", "n", "o",  "o",  "o", "o", "o",  "",   "o", "u", "u",  "u",
    "u", "y", "th", "y", "a", "a", "a",  "a",  "a", "a", "c",  "c",  "c", "c", "c",  "c",  "c", "c", "d",  "d",
    "d", "d", "e",  "e", "e", "e", "e",  "e",  "e", "e", "e",  "e",  "g", "g", "g",  "g",  "g", "g", "g",  "g",
    "h", "h", "h",  "h", "i", "i", "i",  "i",  "i", "i", "i",  "i",  "i", "i", "ij", "ij", "j", "j", "k",  "k",
    "k", "l", "l",  "l", "l", "l", "l",  "l",  "l", "l", "l",  "n",  "n", "n", "n",  "n",  "n", "n", "n",  "n",
    "o", "o", "o",  "o", "o", "o", "oe", "oe", "r", "r", "r",  "r",  "r", "r", "s",  "s",  "s", "s", "s",  "s",
    "s", "s", "t",  "t", "t", "t", "t",  "t",  "u", "u", "u",  "u",  "u", "u", "u",  "u",  "u", "u", "u",  "u",
    "w", "w", "y",  "y", "y", "z", "z",  "z",  "z", "z", "z",  "s",
};

/* Letters that Unicode does not decompose. */
static const struct {
    uint32_t code;
    const char *plain;
} PLAIN[] = {
    {0x00E6, "ae"}, {0x00F0, "d"}, {0x00F8, "o"}, {0x00FE, "th"}, {0x0111, "d"}, {0x0127, "h"}, {0x0131, "i"},
    {0x0138, "k"},  {0x0142, "l"}, {0x014B, "n"}, {0x0153, "oe"}, {0x0167, "t"}, {0x0180, "b"}, {0x01DD, "e"},
    {0x0259, "e"},  {0x026B, "l"}, {0x0268, "i"}, {0x0289, "u"},  {0x00B7, ""},  {0x02BC, ""},  {0x02B9, ""},
};

/* ---- one character without utf8proc ---- */

/* A character that becomes one character; 0 = not known here. */
static uint32_t quick_one(uint32_t code)
{
    if (code >= 0x3400 && code <= 0xD7A3) {
        return code <= 0x9FFF || code >= 0xAC00 ? code : 0; /* Han, Hangul */
    }
    if (code >= 0x3041 && code <= 0x30FE) {
        return code <= 0x3096 || (code >= 0x30A1 && code != 0x30FB) ? code : 0; /* Kana */
    }
    if (code >= 0x0410 && code <= 0x044F) {
        return code < 0x0430 ? code + 0x20 : code;
    }
    if (code == 0x0401 || code == 0x0451) {
        return 0x0435; /* ё е */
    }
    if (code >= 0x0E01 && code <= 0x0E4E) {
        return code != 0x0E33 ? code : 0; /* Thai */
    }
    if (code >= 0x0904 && code <= 0x094D) {
        return (code <= 0x0928 || (code >= 0x092A && code != 0x0931 && code != 0x0934 && code != 0x093C)) ? code : 0;
    }
    if (code >= 0x0627 && code <= 0x064A) {
        return code != 0x0640 && code != 0x0649 ? code : 0; /* Arabic */
    }
    return 0;
}

static size_t put(char *out, uint32_t code)
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)out);
}

/* Folds all of a short text whose characters are all known; *ret_len stays when one is not. */
static bool fold_quick(qr_str text, char *out, size_t size, size_t *ret_len)
{
    size_t len = 0;
    for (size_t at = 0; at < text.len;) {
        if (len + UTF8_BYTES_MAX > size) {
            return false;
        }
        const unsigned char c = (unsigned char)text.ptr[at];
        if (c < 0x80) {
            out[len++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
            at++;
            continue;
        }
        const struct qr_rune rune = qr_rune_at((qr_str){text.ptr + at, text.len - at});
        if (rune.code >= 0xC0 && rune.code < 0x180) {
            const char *plain = LATIN[rune.code - 0xC0];
            const size_t plain_len = strlen(plain);
            memcpy(out + len, plain, plain_len);
            len += plain_len;
        } else {
            const uint32_t one = quick_one(rune.code);
            if (!one) {
                return false;
            }
            len += put(out + len, one);
        }
        at += rune.len;
    }
    *ret_len = len;
    return true;
}

/* ---- any text ---- */

static bool is_accent(uint32_t code, uint32_t base)
{
    if (code >= 0x0300 && code <= 0x036F) {
        const bool is_cyrillic = base >= 0x0400 && base <= 0x052F;
        return !is_cyrillic || code <= 0x0301 || (code == 0x0308 && base == 0x0435);
    }
    return (code >= 0x0591 && code <= 0x05C7 && code != 0x05BE) || (code >= 0x064B && code <= 0x065F) ||
           code == 0x0670 || code == 0x0640 || (code >= 0x06D6 && code <= 0x06ED) ||
           (code >= 0x1AB0 && code <= 0x1AFF) || (code >= 0x1DC0 && code <= 0x1DFF) ||
           (code >= 0x20D0 && code <= 0x20FF) || (code >= 0xFE00 && code <= 0xFE2F) || code == 0x093C ||
           code == 0x09BC || code == 0x0A3C || code == 0x0ABC || code == 0x0B3C;
}

/* What people write for one another: the forms of Persian and Arabic letters, digits of all scripts, chandrabindu. */
static uint32_t unify(uint32_t code)
{
    static const uint32_t ZEROS[] = {0x0660, 0x06F0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6,
                                     0x0C66, 0x0CE6, 0x0D66, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x17E0};
    switch (code) {
    case 0x06CC:
    case 0x0649:
        return 0x064A;
    case 0x06A9:
        return 0x0643;
    case 0x06C1:
        return 0x0647;
    case 0x0901:
        return 0x0902;
    default:
        break;
    }
    for (size_t i = 0; i < QR_COUNT(ZEROS); i++) {
        if (code >= ZEROS[i] && code <= ZEROS[i] + 9) {
            return '0' + (code - ZEROS[i]);
        }
    }
    return code;
}

static const char *plain_of(uint32_t code)
{
    for (size_t i = 0; i < QR_COUNT(PLAIN); i++) {
        if (PLAIN[i].code == code) {
            return PLAIN[i].plain;
        }
    }
    return NULL;
}

/* Takes accents away in place; room for twice as many codes. */
static size_t strip(utf8proc_int32_t *codes, size_t count, size_t room)
{
    utf8proc_int32_t plain_codes[FOLD_CODES_MAX];
    size_t out = 0;
    uint32_t base = 0;
    for (size_t i = 0; i < count && out + 2 <= room; i++) {
        const uint32_t code = (uint32_t)codes[i];
        if (is_accent(code, base)) {
            continue;
        }
        const char *plain = code >= 0x80 ? plain_of(code) : NULL;
        if (!plain) {
            plain_codes[out++] = code >= 0x80 ? (utf8proc_int32_t)unify(code) : codes[i];
        }
        for (; plain && *plain; plain++) {
            plain_codes[out++] = (unsigned char)*plain;
        }
        base = code;
    }
    /* cppcheck-suppress uninitvar ; so many are set */
    memcpy(codes, plain_codes, out * sizeof *codes);
    return out;
}

/* A valid text of at most FOLD_SOURCE_BYTES_MAX. */
static size_t fold_fully(qr_str text, bool keeps_accents, char *out, size_t size)
{
    utf8proc_int32_t codes[FOLD_CODES_MAX];
    const utf8proc_option_t options = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE;
    utf8proc_ssize_t count = utf8proc_decompose((const utf8proc_uint8_t *)text.ptr, (utf8proc_ssize_t)text.len, codes,
                                                FOLD_CODES_MAX, options);
    if (count < 0 || count > FOLD_CODES_MAX) {
        return 0;
    }
    if (!keeps_accents) {
        count = (utf8proc_ssize_t)strip(codes, (size_t)count, FOLD_CODES_MAX);
    }
    count = utf8proc_normalize_utf32(codes, count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    size_t len = 0;
    for (utf8proc_ssize_t i = 0; i < count && len + UTF8_BYTES_MAX <= size; i++) {
        len += put(out + len, (uint32_t)codes[i]);
    }
    return len;
}

size_t qr_fold_word(qr_str word, char *out, size_t size)
{
    size_t len;
    if (fold_quick(word, out, size, &len)) {
        return len;
    }
    return fold_fully(word, false, out, size);
}

size_t qr_fold_case(qr_str word, char *out, size_t size)
{
    return fold_fully(word, true, out, size);
}

/* As much of the text as is folded at once: whole graphemes, all valid; 0 = the text begins with a broken byte. */
static size_t piece_len(qr_str text)
{
    size_t len = 0;
    while (len < text.len) {
        const qr_str rest = {text.ptr + len, text.len - len};
        if (qr_utf8_char_len(rest) == 0) {
            break;
        }
        const size_t next = qr_grapheme_len(qr_utf8_prefix(rest, FOLD_SOURCE_BYTES_MAX));
        if (len && len + next > FOLD_SOURCE_BYTES_MAX) {
            break;
        }
        len += next;
    }
    return len;
}

void qr_fold(struct qr_buf *out, qr_str text)
{
    while (text.len) {
        char folded[FOLDED_BYTES_MAX];
        size_t len = piece_len(text);
        if (len == 0) {
            qr_buf_add(out, QR_STR("\xEF\xBF\xBD"));
            len = 1;
        } else {
            qr_buf_add(out, (qr_str){folded, qr_fold_word((qr_str){text.ptr, len}, folded, sizeof folded)});
        }
        text = (qr_str){text.ptr + len, text.len - len};
    }
}
