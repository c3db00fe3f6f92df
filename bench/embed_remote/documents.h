/* Folders of generated documents, small, medium (ten chunks) and large. The same seed makes the same ones. */
#pragma once

enum {
    DOCUMENTS_SMALL_CHUNKS = 1,   /* of a small document, about */
    DOCUMENTS_LARGE_CHUNKS = 500, /* of a large one, about */
};

/* Makes files of about so many chunks together below `dir`, which it makes too. */
void documents_make_small(const char *dir, int chunks, unsigned seed);
void documents_make_medium(const char *dir, int chunks, unsigned seed);
void documents_make_large(const char *dir, int chunks, unsigned seed);
