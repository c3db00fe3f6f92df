/* What is known of characters: their class, which belong together as people see them, where sentences end, and the form in
 * which two spellings of a word are the same. Pure functions over text that need not be valid UTF-8: a byte that does not
 * belong to a valid character is a character of its own, of the class OTHER. */
#pragma once

#include "base/buf.h"

enum qr_rune_class {
    QR_RUNE_OTHER, /* punctuation, symbols, control characters, broken bytes: parts words */
    QR_RUNE_SPACE,
    QR_RUNE_LOWER,
    QR_RUNE_UPPER,
    QR_RUNE_LETTER, /* of scripts without case that part words by spaces */
    QR_RUNE_DIGIT,
    QR_RUNE_MARK,     /* belongs to the character before it: combining marks, vowel signs */
    QR_RUNE_IGNORED,  /* means nothing for a word: soft hyphen, joiners, variation selectors */
    QR_RUNE_CJK,      /* Han, Kana, Hangul: words are found by pairs of characters */
    QR_RUNE_UNSPACED, /* Thai, Lao, Khmer, Myanmar: written without spaces between words */
};

struct qr_rune {
    uint32_t code;
    uint8_t len; /* bytes; 0 = the text is at its end */
    enum qr_rune_class class;
};

extern const uint8_t qr_ascii_classes[0x80]; /* enum qr_rune_class */
struct qr_rune qr_rune_beyond_ascii(qr_str text);

/* The character that the text begins with. */
static inline struct qr_rune qr_rune_at(qr_str text)
{
    if (text.len == 0) {
        return (struct qr_rune){0};
    }
    const unsigned char c = (unsigned char)text.ptr[0];
    if (c < 0x80) {
        return (struct qr_rune){.code = c, .len = 1, .class = (enum qr_rune_class)qr_ascii_classes[c]};
    }
    return qr_rune_beyond_ascii(text);
}

/* The bytes of what people see as the first character of the text: with its marks, a whole flag, a whole family. 0 only
 * for an empty text. */
size_t qr_grapheme_len(qr_str text);

/* The bytes of the first sentence of the text with the space behind it; all of the text when it has one only. A sentence
 * ends behind . ! ? … before a space (not after a single letter, a number or a common abbreviation), behind 。！？ and their
 * like, at an empty line, and in Thai, Lao, Khmer and Myanmar text at a space between letters. */
size_t qr_sentence_len(qr_str text);

/* Takes the next word from *rest: letters and digits with their marks, with apostrophes and points between two of them; of
 * text without spaces one character. Empty when there is none left. *ret_start, which may be NULL, is where it begins in
 * what *rest was. */
qr_str qr_word_next(qr_str *rest, size_t *ret_start);

bool qr_rune_ends_sentence(uint32_t code);      /* . ! ? … and those below */
bool qr_rune_ends_wide_sentence(uint32_t code); /* 。！？ and the like, which need no space behind them */
bool qr_rune_closes(uint32_t code);             /* quotes and brackets that belong to the sentence before them */
bool qr_rune_is_wide(uint32_t code);            /* takes two columns in a terminal */

/* Appends the text as it is compared: case and accents gone, compatible forms made one (ﬁ fi, Ａ a, ß ss, ｶﾞ ガ, İ and ı i),
 * ignored characters left out. What is not valid UTF-8 becomes U+FFFD. */
void qr_fold(struct qr_buf *out, qr_str text);
