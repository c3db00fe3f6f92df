/* What the splitter must know of characters: which belong together and what they cost. Pure; coarse tables of our own. */
#pragma once

#include "base/str.h"

struct qr_char {
    uint32_t code;
    size_t len;     /* bytes; 0 = the text is at its end */
    bool is_space;  /* as qr_space_len has it */
    bool is_wide;   /* Chinese, Japanese, Korean: written without spaces, a token each */
    bool is_joined; /* a combining mark or the like: belongs to the character before */
};

/* The first character of valid UTF-8. */
struct qr_char qr_char_at(qr_str text);

bool qr_char_ends_sentence(uint32_t code); /* . ! ? … 。 */
bool qr_char_closes(uint32_t code);        /* quotes and brackets that may follow the end of a sentence; 、， too */
bool qr_char_is_regional(uint32_t code);   /* two of them make a flag */
