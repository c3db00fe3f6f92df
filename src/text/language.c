/* Tells languages apart by script, and those of the Latin and Cyrillic scripts by their commonest words. A word of WORDS that
 * several languages share counts for each of them; the language with clearly the most wins. */
#include "text/language.h"

#include "text/fold.h"

#include <endian.h>

enum {
    SAMPLE_BYTES_MAX = 800, /* enough for a hundred words, and little time for a chunk */
    STOP_WORD_BYTES_MAX = 8,
    STOP_WORDS_MIN = 2,   /* one may stand in a text of any language */
    STOP_WORD_SHARE = 12, /* at least one word in so many */
    LETTERS_MIN = 6,      /* to tell a script */
    KANA_SHARE = 20,      /* Japanese has at least one Kana in so many characters */
};

static const char CODES[QR_LANGUAGE_COUNT][4] = {
    [QR_LANGUAGE_UNKNOWN] = "und",  [QR_LANGUAGE_ENGLISH] = "en",  [QR_LANGUAGE_GERMAN] = "de",
    [QR_LANGUAGE_FRENCH] = "fr",    [QR_LANGUAGE_SPANISH] = "es",  [QR_LANGUAGE_PORTUGUESE] = "pt",
    [QR_LANGUAGE_ITALIAN] = "it",   [QR_LANGUAGE_DUTCH] = "nl",    [QR_LANGUAGE_SWEDISH] = "sv",
    [QR_LANGUAGE_NORWEGIAN] = "no", [QR_LANGUAGE_DANISH] = "da",   [QR_LANGUAGE_FINNISH] = "fi",
    [QR_LANGUAGE_HUNGARIAN] = "hu", [QR_LANGUAGE_ROMANIAN] = "ro", [QR_LANGUAGE_TURKISH] = "tr",
    [QR_LANGUAGE_POLISH] = "pl",    [QR_LANGUAGE_CZECH] = "cs",    [QR_LANGUAGE_RUSSIAN] = "ru",
    [QR_LANGUAGE_UKRAINIAN] = "uk", [QR_LANGUAGE_GREEK] = "el",    [QR_LANGUAGE_ARABIC] = "ar",
    [QR_LANGUAGE_HEBREW] = "he",    [QR_LANGUAGE_HINDI] = "hi",    [QR_LANGUAGE_CHINESE] = "zh",
    [QR_LANGUAGE_JAPANESE] = "ja",  [QR_LANGUAGE_KOREAN] = "ko",   [QR_LANGUAGE_THAI] = "th",
};

const char *qr_language_code(enum qr_language language)
{
    return CODES[language];
}

enum qr_language qr_language_find(qr_str code)
{
    for (int i = 0; i < QR_LANGUAGE_COUNT; i++) {
        if (qr_str_equal(code, qr_str_of(CODES[i]))) {
            return (enum qr_language)i;
        }
    }
    return QR_LANGUAGE_UNKNOWN;
}

#define EN QR_BIT(QR_LANGUAGE_ENGLISH)
#define DE QR_BIT(QR_LANGUAGE_GERMAN)
#define FR QR_BIT(QR_LANGUAGE_FRENCH)
#define ES QR_BIT(QR_LANGUAGE_SPANISH)
#define PT QR_BIT(QR_LANGUAGE_PORTUGUESE)
#define IT QR_BIT(QR_LANGUAGE_ITALIAN)
#define NL QR_BIT(QR_LANGUAGE_DUTCH)
#define SV QR_BIT(QR_LANGUAGE_SWEDISH)
#define NO QR_BIT(QR_LANGUAGE_NORWEGIAN)
#define DA QR_BIT(QR_LANGUAGE_DANISH)
#define FI QR_BIT(QR_LANGUAGE_FINNISH)
#define HU QR_BIT(QR_LANGUAGE_HUNGARIAN)
#define RO QR_BIT(QR_LANGUAGE_ROMANIAN)
#define TR QR_BIT(QR_LANGUAGE_TURKISH)
#define PL QR_BIT(QR_LANGUAGE_POLISH)
#define CS QR_BIT(QR_LANGUAGE_CZECH)

static const struct stop_word {
    char word[STOP_WORD_BYTES_MAX + 1];
    qr_languages languages;
} WORDS[] = {
#include "text/language_words.h"
};

/* Padded with NUL: their order as numbers is that of the words. */
static uint64_t key_of(const char word[static STOP_WORD_BYTES_MAX])
{
    uint64_t key;
    memcpy(&key, word, sizeof key);
    return be64toh(key);
}

static qr_languages languages_of(const char word[static STOP_WORD_BYTES_MAX])
{
    const uint64_t key = key_of(word);
    size_t low = 0, count = QR_COUNT(WORDS);
    while (count) {
        const size_t half = count / 2;
        const uint64_t found = key_of(WORDS[low + half].word);
        if (found == key) {
            return WORDS[low + half].languages;
        }
        if (found < key) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return 0;
}

/* The languages in which it is common; 0 = in none. */
static qr_languages languages_of_word(qr_str word)
{
    char folded[FOLDED_BYTES_MAX];
    if (word.len > (size_t)2 * STOP_WORD_BYTES_MAX) {
        return 0;
    }
    const size_t len = qr_fold_word(word, folded, sizeof folded);
    if (len > STOP_WORD_BYTES_MAX) {
        return 0;
    }
    memset(folded + len, 0, STOP_WORD_BYTES_MAX - len);
    return languages_of(folded);
}

bool qr_language_is_small_word(qr_str word, qr_languages languages)
{
    /* common in English, and yet somebody may look for them */
    static const char *const others[] = {"first", "good", "made", "new", "people", "time", "two", "way", "well"};
    for (size_t i = 0; i < QR_COUNT(others); i++) {
        if (qr_str_equal_any_case(word, qr_str_of(others[i]))) {
            return false;
        }
    }
    const bool is_letter = word.len == 1 && ((word.ptr[0] | 0x20) >= 'a' && (word.ptr[0] | 0x20) <= 'z');
    return is_letter || (languages_of_word(word) & (languages | EN)) != 0;
}

/* ---- what a sample is made of ---- */

struct sample {
    size_t latin, cyrillic, ukrainian, greek, arabic, hebrew, devanagari, han, kana, hangul, thai, others; /* letters */
    size_t words;                                                                                          /* Latin */
    size_t stop_words[QR_LANGUAGE_COUNT]; /* by language */
};

static void count_word(struct sample *sample, qr_str word)
{
    for (qr_languages left = languages_of_word(word); left; left &= left - 1) {
        sample->stop_words[__builtin_ctz(left)]++;
    }
}

static size_t *script_of(struct sample *sample, uint32_t code)
{
    if (code < 0x0250 || (code >= 0x1E00 && code <= 0x1EFF)) {
        return &sample->latin;
    }
    if (code >= 0x0400 && code <= 0x052F) {
        return &sample->cyrillic;
    }
    if ((code >= 0x0370 && code <= 0x03FF) || (code >= 0x1F00 && code <= 0x1FFF)) {
        return &sample->greek;
    }
    if ((code >= 0x0600 && code <= 0x077F) || (code >= 0xFB50 && code <= 0xFEFC)) {
        return &sample->arabic;
    }
    if (code >= 0x0590 && code <= 0x05FF) {
        return &sample->hebrew;
    }
    if (code >= 0x0900 && code <= 0x097F) {
        return &sample->devanagari;
    }
    if ((code >= 0xAC00 && code <= 0xD7A3) || (code >= 0x1100 && code <= 0x11FF)) {
        return &sample->hangul;
    }
    if ((code >= 0x3041 && code <= 0x30FF) || (code >= 0xFF66 && code <= 0xFF9F)) {
        return &sample->kana;
    }
    if (code >= 0x2E80 && code <= 0x3FFFF) {
        return &sample->han;
    }
    return code >= 0x0E00 && code <= 0x0E7F ? &sample->thai : &sample->others;
}

static bool is_letter(enum qr_rune_class class)
{
    return class == QR_RUNE_LOWER || class == QR_RUNE_UPPER || class == QR_RUNE_LETTER || class == QR_RUNE_CJK ||
           class == QR_RUNE_UNSPACED;
}

/* Whether the word stands alone, as words of sentences do and parts of names and numbers do not. */
static bool stands_alone(qr_str text, size_t start, size_t end)
{
    const char before = start ? text.ptr[start - 1] : ' ', behind = end < text.len ? text.ptr[end] : ' ';
    const char next = end + 1 < text.len ? text.ptr[end + 1] : ' ';
    const bool begins = before == ' ' || before == '\n' || before == '(' || before == '"' || before == '\'';
    return begins && (behind == ' ' || behind == '\n' || behind == ')' || behind == '\'' ||
                      (strchr(",.;:!?\"", behind) && (next == ' ' || next == '\n')));
}

static void end_word(struct sample *sample, qr_str text, size_t start, size_t end)
{
    if (end - start < 2) {
        return; /* as likely a name, or the number of a list */
    }
    sample->words++;
    if (stands_alone(text, start, end)) {
        count_word(sample, (qr_str){text.ptr + start, end - start});
    }
}

static void take_sample(struct sample *sample, qr_str text)
{
    size_t start = 0, end = 0; /* of a Latin word; the same = none has begun */
    for (size_t at = 0; at < text.len;) {
        const struct qr_rune rune = qr_rune_at((qr_str){text.ptr + at, text.len - at});
        size_t *script = is_letter(rune.class) ? script_of(sample, rune.code) : NULL;
        if (script) {
            ++*script;
            /* і ї є ґ */
            sample->ukrainian +=
                rune.code == 0x0456 || rune.code == 0x0457 || rune.code == 0x0454 || rune.code == 0x0491;
        }
        const bool is_joined = rune.class == QR_RUNE_MARK || rune.class == QR_RUNE_IGNORED;
        if (script == &sample->latin) {
            start = end > start ? start : at;
            end = at + rune.len;
        } else if (is_joined && end == at) {
            end = at + rune.len;
        } else if (end > start) {
            end_word(sample, text, start, end);
            start = end = 0;
        }
        at += rune.len;
    }
    if (end > start) {
        end_word(sample, text, start, end);
    }
}

/* ---- judgement ---- */

static enum qr_language latin_language(const struct sample *sample)
{
    enum qr_language best = QR_LANGUAGE_UNKNOWN;
    size_t most = 0, second = 0;
    for (int i = 0; i < QR_LANGUAGE_COUNT; i++) {
        const size_t count = sample->stop_words[i];
        if (count > most) {
            second = most;
            most = count;
            best = (enum qr_language)i;
        } else if (count > second) {
            second = count;
        }
    }
    const bool is_clear = most >= STOP_WORDS_MIN && most > second && most * STOP_WORD_SHARE >= sample->words;
    return is_clear ? best : QR_LANGUAGE_UNKNOWN;
}

static enum qr_language judge(const struct sample *sample)
{
    const size_t cjk = sample->han + sample->kana + sample->hangul;
    const struct {
        size_t letters;
        enum qr_language language;
    } scripts[] = {
        {sample->cyrillic, sample->ukrainian * 40 > sample->cyrillic ? QR_LANGUAGE_UKRAINIAN : QR_LANGUAGE_RUSSIAN},
        {sample->greek, QR_LANGUAGE_GREEK},
        {sample->arabic, QR_LANGUAGE_ARABIC},
        {sample->hebrew, QR_LANGUAGE_HEBREW},
        {sample->devanagari, QR_LANGUAGE_HINDI},
        {sample->thai, QR_LANGUAGE_THAI},
        {cjk * 3, /* a character says as much as three letters */
         sample->hangul * 2 > cjk          ? QR_LANGUAGE_KOREAN
         : sample->kana * KANA_SHARE > cjk ? QR_LANGUAGE_JAPANESE
                                           : QR_LANGUAGE_CHINESE},
    };
    size_t most = QR_MAX(sample->latin, sample->others);
    enum qr_language language = sample->latin >= sample->others ? latin_language(sample) : QR_LANGUAGE_UNKNOWN;
    for (size_t i = 0; i < QR_COUNT(scripts); i++) {
        if (scripts[i].letters > most && scripts[i].letters >= LETTERS_MIN) {
            most = scripts[i].letters;
            language = scripts[i].language;
        }
    }
    return language;
}

enum qr_language qr_language_detect(qr_str text)
{
    struct sample sample = {0};
    take_sample(&sample, qr_utf8_prefix(text, SAMPLE_BYTES_MAX));
    return judge(&sample);
}
