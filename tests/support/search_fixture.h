/* A workshop to be searched: items are added and indexed, then questions are asked. */
#pragma once

#include "search/search.h"
#include "support/workshop.h"

struct library {
    struct qr_shop shop;
    struct qr_batcher *batcher; /* NULL unless it was opened with QR_SHOP_HASHED */
    int64_t model;              /* of its base; 0 = none */
    struct qr_arena arena;      /* of the answers */
    struct qr_search search;    /* of the next question; set anew by library_ask */
};

/* Settings under which short paragraphs become chunks of their own. */
#define LIBRARY_SMALL "\"chunking\":{\"size_tokens\":48,\"overlap_tokens\":0}"

void library_open(struct library *library, struct qr_test *t, const char *settings);
void library_close(struct library *library);

/* Adds a note without indexing it; library_work does that for all. */
qr_uuid library_note(struct library *library, const char *name, const char *content);
qr_uuid library_note_with(struct library *library, const char *name, const char *content, const char *attributes);
void library_work(struct library *library);

/* What a question begins with: ten hits, chunks stay as they are. Change it and call library_run. */
struct qr_search library_search(struct library *library, const char *query);
struct qr_search_answer library_run(struct library *library, const struct qr_search *search);
struct qr_search_answer library_ask(struct library *library, const char *query);

/* Whether one of the hits is of the item of that name. */
bool answer_has(const struct qr_search_answer *answer, const char *name);
/* The names of the hits, best first, with a space between them; static memory. */
const char *answer_names(const struct qr_search_answer *answer);
