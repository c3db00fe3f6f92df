/* Documents that are generated: Markdown with headings, paragraphs and sentences, its words as frequent as in a language. The
 * same seed makes the same ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    CORPUS_WORD_SIZE = 32,
    CORPUS_CHUNKS_A_FILE = 10, /* on average, with the splitter's defaults */
};

/* Adds the next word to `out`, without a NUL, and gives its length. The words of a text, and of a query, are such words. */
size_t corpus_add_word(char out[static CORPUS_WORD_SIZE], uint64_t *state);
/* A number from 0 to `below` - 1. */
unsigned corpus_number(uint64_t *state, unsigned below);

/* Makes `count` documents below `dir`, which it makes too, a hundred in a folder. Gives their bytes. */
size_t corpus_make(const char *dir, int count, unsigned seed);
