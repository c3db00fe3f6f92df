#include "embed_remote/documents.h"

#include "base/compiler.h"
#include "ingest/corpus.h"
#include "workflow/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WORDS_A_SENTENCE = 14, SENTENCES_A_CHUNK = 9, SENTENCES_A_PARAGRAPH = 4 };

void documents_make_small(const char *dir, int chunks, unsigned seed)
{
    files_make(dir, chunks / DOCUMENTS_SMALL_CHUNKS, seed);
}

void documents_make_medium(const char *dir, int chunks, unsigned seed)
{
    corpus_make(dir, QR_MAX(chunks / CORPUS_CHUNKS_A_FILE, 1), seed);
}

static void write_sentence(FILE *file, uint64_t *state)
{
    char word[CORPUS_WORD_SIZE];
    for (int i = 0; i < WORDS_A_SENTENCE; i++) {
        const size_t len = corpus_add_word(word, state);
        fwrite(word, 1, len, file);
        fputc(i + 1 < WORDS_A_SENTENCE ? ' ' : '.', file);
    }
}

void documents_make_large(const char *dir, int chunks, unsigned seed)
{
    char path[600];
    uint64_t state = seed * 2654435761u + 1;
    int failed = mkdir(dir, 0755) != 0 && errno != EEXIST;
    for (int i = 0; !failed && i * DOCUMENTS_LARGE_CHUNKS < chunks; i++) {
        snprintf(path, sizeof path, "%s/document-%05d.md", dir, i);
        FILE *file = fopen(path, "we");
        for (int k = 1; file && k <= DOCUMENTS_LARGE_CHUNKS * SENTENCES_A_CHUNK; k++) {
            write_sentence(file, &state);
            fputs(k % SENTENCES_A_PARAGRAPH ? " " : "\n\n", file);
        }
        failed = !file || fclose(file) != 0;
    }
    if (failed) {
        fprintf(stderr, "bench: %s: %s\n", dir, strerror(errno));
        exit(1);
    }
}
