/* The language of a text: by its script, then by its most frequent small words. Pure. */
#pragma once

#include "base/str.h"

/* The numbers are stored: new ones go before COUNT. */
enum qr_language {
    QR_LANGUAGE_UNKNOWN, /* too short or unclear; stemmed by the rules of its script's commonest language */
    QR_LANGUAGE_ENGLISH,
    QR_LANGUAGE_GERMAN,
    QR_LANGUAGE_FRENCH,
    QR_LANGUAGE_SPANISH,
    QR_LANGUAGE_PORTUGUESE,
    QR_LANGUAGE_ITALIAN,
    QR_LANGUAGE_DUTCH,
    QR_LANGUAGE_SWEDISH,
    QR_LANGUAGE_NORWEGIAN,
    QR_LANGUAGE_DANISH,
    QR_LANGUAGE_FINNISH,
    QR_LANGUAGE_HUNGARIAN,
    QR_LANGUAGE_ROMANIAN,
    QR_LANGUAGE_TURKISH,
    QR_LANGUAGE_POLISH,
    QR_LANGUAGE_CZECH,
    QR_LANGUAGE_RUSSIAN,
    QR_LANGUAGE_UKRAINIAN,
    QR_LANGUAGE_GREEK,
    QR_LANGUAGE_ARABIC,
    QR_LANGUAGE_HEBREW,
    QR_LANGUAGE_HINDI,
    QR_LANGUAGE_CHINESE,
    QR_LANGUAGE_JAPANESE,
    QR_LANGUAGE_KOREAN,
    QR_LANGUAGE_THAI,
    QR_LANGUAGE_COUNT,
};

/* A set of languages, for what a base holds: QR_BIT(language) each. */
typedef uint32_t qr_languages;

/* Looks at the first few thousand bytes. The same text always gives the same answer. */
enum qr_language qr_language_detect(qr_str text);

/* Whether it is one of the small words ("the", "und", "of") of these languages or of English, or a single Latin letter: it says
 * nothing of what a text is about. Other scripts have none here. */
bool qr_language_is_small_word(qr_str word, qr_languages languages);

/* ISO 639-1, "en"; "und" for UNKNOWN. */
const char *qr_language_code(enum qr_language language);
/* UNKNOWN for what is none. */
enum qr_language qr_language_find(qr_str code);
