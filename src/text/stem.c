/* The stemmers of libstemmer, and a table of the stems of recent short words: words repeat, and looking one up takes a tenth
 * of stemming it. */
#include "text/stem.h"

#include "base/mem.h"

#include <libstemmer.h>

/* `mark` is stored in indexes: it never changes. Lower case letters and digits occur in words. */
static const struct {
    const char *algorithm; /* NULL = libstemmer has none */
    enum script script;
    char mark;
} LANGUAGES[QR_LANGUAGE_COUNT] = {
    [QR_LANGUAGE_ENGLISH] = {"english", SCRIPT_LATIN, '\0'},
    [QR_LANGUAGE_GERMAN] = {"german", SCRIPT_LATIN, 'D'},
    [QR_LANGUAGE_FRENCH] = {"french", SCRIPT_LATIN, 'F'},
    [QR_LANGUAGE_SPANISH] = {"spanish", SCRIPT_LATIN, 'S'},
    [QR_LANGUAGE_PORTUGUESE] = {"portuguese", SCRIPT_LATIN, 'P'},
    [QR_LANGUAGE_ITALIAN] = {"italian", SCRIPT_LATIN, 'I'},
    [QR_LANGUAGE_DUTCH] = {"dutch", SCRIPT_LATIN, 'N'},
    [QR_LANGUAGE_SWEDISH] = {"swedish", SCRIPT_LATIN, 'V'},
    [QR_LANGUAGE_NORWEGIAN] = {"norwegian", SCRIPT_LATIN, 'O'},
    [QR_LANGUAGE_DANISH] = {"danish", SCRIPT_LATIN, 'A'},
    [QR_LANGUAGE_FINNISH] = {"finnish", SCRIPT_LATIN, 'U'},
    [QR_LANGUAGE_HUNGARIAN] = {"hungarian", SCRIPT_LATIN, 'H'},
    [QR_LANGUAGE_ROMANIAN] = {"romanian", SCRIPT_LATIN, 'R'},
    [QR_LANGUAGE_TURKISH] = {"turkish", SCRIPT_LATIN, 'T'},
    [QR_LANGUAGE_POLISH] = {NULL, SCRIPT_LATIN, 'L'},
    [QR_LANGUAGE_CZECH] = {NULL, SCRIPT_LATIN, 'C'},
    [QR_LANGUAGE_RUSSIAN] = {"russian", SCRIPT_CYRILLIC, '\0'},
    [QR_LANGUAGE_UKRAINIAN] = {NULL, SCRIPT_CYRILLIC, 'K'},
    [QR_LANGUAGE_GREEK] = {"greek", SCRIPT_GREEK, '\0'},
    [QR_LANGUAGE_ARABIC] = {"arabic", SCRIPT_ARABIC, '\0'},
    [QR_LANGUAGE_HINDI] = {"hindi", SCRIPT_DEVANAGARI, '\0'},
};

/* For words whose document has a language of another script, or none that is known. */
static const enum qr_language DEFAULTS[SCRIPT_COUNT] = {
    [SCRIPT_LATIN] = QR_LANGUAGE_ENGLISH,    [SCRIPT_GREEK] = QR_LANGUAGE_GREEK,
    [SCRIPT_CYRILLIC] = QR_LANGUAGE_RUSSIAN, [SCRIPT_ARABIC] = QR_LANGUAGE_ARABIC,
    [SCRIPT_DEVANAGARI] = QR_LANGUAGE_HINDI,
};

enum script qr_script_of(uint32_t code)
{
    if (code < 0x0250 || (code >= 0x1E00 && code <= 0x1EFF)) {
        return SCRIPT_LATIN;
    }
    if ((code >= 0x0370 && code <= 0x03FF) || (code >= 0x1F00 && code <= 0x1FFF)) {
        return SCRIPT_GREEK;
    }
    if (code >= 0x0400 && code <= 0x052F) {
        return SCRIPT_CYRILLIC;
    }
    if ((code >= 0x0600 && code <= 0x077F) || (code >= 0xFB50 && code <= 0xFEFC)) {
        return SCRIPT_ARABIC;
    }
    return code >= 0x0900 && code <= 0x097F ? SCRIPT_DEVANAGARI : SCRIPT_NONE;
}

qr_languages qr_stem_languages(enum script script, qr_languages languages, bool is_query)
{
    qr_languages found = 0;
    for (qr_languages left = languages; left; left &= left - 1) {
        const int language = __builtin_ctz(left);
        if (language < QR_LANGUAGE_COUNT && LANGUAGES[language].script == script) {
            found |= QR_BIT(language);
        }
    }
    return found && !is_query ? found : found | QR_BIT(DEFAULTS[script]);
}

char qr_stem_mark(enum qr_language language)
{
    return LANGUAGES[language].mark;
}

/* ---- recent words ---- */

enum { RECENT_WORDS = 8192 /* a power of two */, RECENT_WORD_BYTES_MAX = 20 };

struct stem_entry {
    char word[RECENT_WORD_BYTES_MAX], stem[RECENT_WORD_BYTES_MAX];
    uint8_t word_len, stem_len, language;
};

static size_t slot_of(enum qr_language language, qr_str word)
{
    uint64_t hash = (uint64_t)language << 8 | word.len;
    for (size_t i = 0; i < word.len; i += sizeof(uint64_t)) {
        uint64_t bytes = 0;
        memcpy(&bytes, word.ptr + i, QR_MIN(sizeof bytes, word.len - i));
        hash = (hash ^ bytes) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash % RECENT_WORDS;
}

static bool is_of(const struct stem_entry *entry, enum qr_language language, qr_str word)
{
    return entry->language == language && entry->word_len == word.len && memcmp(entry->word, word.ptr, word.len) == 0;
}

static void remember(struct stem_entry *entry, enum qr_language language, qr_str word, qr_str stem)
{
    if (stem.len > RECENT_WORD_BYTES_MAX) {
        return;
    }
    entry->language = (uint8_t)language;
    entry->word_len = (uint8_t)word.len;
    entry->stem_len = (uint8_t)stem.len;
    memcpy(entry->word, word.ptr, word.len);
    memcpy(entry->stem, stem.ptr, stem.len);
}

/* ---- stemming ---- */

static qr_rc fail_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the stems of words");
}

static qr_rc ask_stemmer(struct stems *stems, enum qr_language language, qr_str word, qr_str *ret_stem, qr_err *err)
{
    struct sb_stemmer **stemmer = &stems->stemmers[language];
    if (!*stemmer && !(*stemmer = sb_stemmer_new(LANGUAGES[language].algorithm, NULL))) {
        return fail_memory(err);
    }
    const sb_symbol *stem = sb_stemmer_stem(*stemmer, (const sb_symbol *)word.ptr, (int)word.len);
    if (!stem) {
        return fail_memory(err);
    }
    *ret_stem = (qr_str){(const char *)stem, (size_t)sb_stemmer_length(*stemmer)};
    if (ret_stem->len == 0) {
        *ret_stem = word;
    }
    return QR_OK;
}

qr_rc qr_stem(struct stems *stems, enum qr_language language, qr_str word, qr_str *ret_stem, qr_err *err)
{
    if (!LANGUAGES[language].algorithm) {
        *ret_stem = word;
        return QR_OK;
    }
    if (!stems->remembers || word.len > RECENT_WORD_BYTES_MAX) {
        return ask_stemmer(stems, language, word, ret_stem, err);
    }
    if (!stems->recent && !(stems->recent = qr_alloc_array(RECENT_WORDS, sizeof *stems->recent))) {
        return fail_memory(err);
    }
    struct stem_entry *entry = &stems->recent[slot_of(language, word)];
    if (!is_of(entry, language, word)) {
        QR_TRY(ask_stemmer(stems, language, word, ret_stem, err));
        remember(entry, language, word, *ret_stem);
        return QR_OK;
    }
    *ret_stem = (qr_str){entry->stem, entry->stem_len};
    return QR_OK;
}

void qr_stems_done(struct stems *stems)
{
    for (int i = 0; i < QR_LANGUAGE_COUNT; i++) {
        sb_stemmer_delete(stems->stemmers[i]);
    }
    qr_free(stems->recent);
}
