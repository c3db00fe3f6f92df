/* Stems of words by language. Private to src/text/. */
#pragma once

#include "base/err.h"
#include "text/language.h"

enum script {
    SCRIPT_NONE, /* of no language that has a stemmer */
    SCRIPT_LATIN,
    SCRIPT_GREEK,
    SCRIPT_CYRILLIC,
    SCRIPT_ARABIC,
    SCRIPT_DEVANAGARI,
    SCRIPT_COUNT,
};

enum script qr_script_of(uint32_t code);

/* The languages whose stemmers words of this script go through: of a document its own, or the script's default where that
 * is another one's; of a query all that documents may have had. `script` is not NONE. */
qr_languages qr_stem_languages(enum script script, qr_languages languages, bool is_query);

/* The letter that stands behind a stem of the language; '\0' for the language that is the script's default. */
char qr_stem_mark(enum qr_language language);

struct sb_stemmer;
struct stem_entry;

struct stems {
    struct sb_stemmer *stemmers[QR_LANGUAGE_COUNT]; /* made when they are needed */
    struct stem_entry *recent;                      /* by word; NULL until needed */
    bool remembers;                                 /* what it was asked: worth it for more than a query */
};
void qr_stems_done(struct stems *stems);

/* The stem of a word in lower case; valid until the next call. Of a language without a stemmer it is the word. */
qr_rc qr_stem(struct stems *stems, enum qr_language language, qr_str word, qr_str *ret_stem, qr_err *err);
