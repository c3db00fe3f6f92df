/* Zipf's law: the n-th most frequent word is n times rarer than the first. The first ones are English, so that the language
 * is found and its words are stemmed; the others are made of syllables, the rarer the longer. */
#include "ingest/corpus.h"

#include "base/compiler.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    WORDS = 50000,
    FILES_A_FOLDER = 100,
    SECTIONS_MAX = 19,
    PARAGRAPHS_MAX = 3,
    SENTENCES_MIN = 3,
    SENTENCES_MAX = 6,
    SENTENCE_WORDS_MIN = 6,
    SENTENCE_WORDS_MAX = 22,
};

static const char *const frequent[] = {
    "the",  "of",   "and",  "to",    "in",   "a",     "is",    "that", "for",    "it",    "as",    "was",   "with",
    "be",   "by",   "on",   "not",   "he",   "this",  "are",   "or",   "his",    "from",  "at",    "which", "but",
    "have", "an",   "had",  "they",  "you",  "were",  "there", "one",  "all",    "we",    "can",   "her",   "has",
    "been", "if",   "more", "when",  "will", "would", "who",   "so",   "no",     "their", "other", "than",  "its",
    "time", "into", "only", "files", "used", "these", "may",   "each", "system", "some",  "first", "could",
};

static const char *const syllables[] = {"ka", "lo",  "mi", "ner", "tas", "vu", "ri",  "sen", "do", "pal", "qui",
                                        "re", "est", "on", "tri", "um",  "ba", "cor", "del", "fi", "gar", "hu"};

static uint64_t next_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

unsigned corpus_number(uint64_t *state, unsigned below)
{
    return (unsigned)(next_number(state) % below);
}

size_t corpus_add_word(char out[static CORPUS_WORD_SIZE], uint64_t *state)
{
    const double part = (double)next_number(state) / 2147483648.0;
    size_t word = (size_t)(pow((double)WORDS, part) - 1);
    if (word < QR_COUNT(frequent)) {
        memcpy(out, frequent[word], strlen(frequent[word]));
        return strlen(frequent[word]);
    }
    size_t len = 0;
    for (; word > 0; word /= QR_COUNT(syllables)) {
        const char *syllable = syllables[word % QR_COUNT(syllables)];
        memcpy(out + len, syllable, strlen(syllable));
        len += strlen(syllable);
    }
    return len;
}

/* ---- documents ---- */

static unsigned between(uint64_t *state, unsigned least, unsigned most)
{
    return least + corpus_number(state, most - least + 1);
}

static void write_words(FILE *file, uint64_t *state, unsigned count)
{
    char word[CORPUS_WORD_SIZE];
    for (unsigned i = 0; i < count; i++) {
        const size_t len = corpus_add_word(word, state);
        if (i == 0) {
            word[0] = (char)(word[0] - 'a' + 'A');
        } else {
            fputc(' ', file);
        }
        fwrite(word, 1, len, file);
    }
}

static void write_paragraph(FILE *file, uint64_t *state)
{
    const unsigned sentences = between(state, SENTENCES_MIN, SENTENCES_MAX);
    for (unsigned i = 0; i < sentences; i++) {
        write_words(file, state, between(state, SENTENCE_WORDS_MIN, SENTENCE_WORDS_MAX));
        fputs(i + 1 < sentences ? ". " : ".\n\n", file);
    }
}

static void write_document(FILE *file, uint64_t *state)
{
    const unsigned sections = between(state, 1, SECTIONS_MAX);
    fputs("# ", file);
    write_words(file, state, between(state, 2, 6));
    fputs("\n\n", file);
    for (unsigned i = 0; i < sections; i++) {
        fputs("## ", file);
        write_words(file, state, between(state, 1, 5));
        fputs("\n\n", file);
        const unsigned paragraphs = between(state, 1, PARAGRAPHS_MAX);
        for (unsigned k = 0; k < paragraphs; k++) {
            write_paragraph(file, state);
        }
    }
}

/* ---- files ---- */

static void fail(const char *path)
{
    fprintf(stderr, "bench: %s: %s\n", path, strerror(errno));
    exit(1);
}

static void make_folder(const char *path)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        fail(path);
    }
}

size_t corpus_make(const char *dir, int count, unsigned seed)
{
    char path[600];
    uint64_t state = seed * 2654435761u + 1;
    size_t bytes = 0;
    make_folder(dir);
    for (int i = 0; i < count; i++) {
        if (i % FILES_A_FOLDER == 0) {
            snprintf(path, sizeof path, "%s/part-%05d", dir, i / FILES_A_FOLDER);
            make_folder(path);
        }
        snprintf(path, sizeof path, "%s/part-%05d/document-%07d.md", dir, i / FILES_A_FOLDER, i);
        FILE *file = fopen(path, "we");
        if (!file) {
            fail(path);
        }
        write_document(file, &state);
        bytes += (size_t)ftell(file);
        if (fclose(file) != 0) {
            fail(path);
        }
    }
    return bytes;
}
