/* Searches, one after another, and how long each took. */
#pragma once

#include "workflow/place.h"

enum { QUERY_WORDS_MAX = 6, QUERY_BODY_SIZE = 512 };

struct query_times {
    struct bench_times all;
    struct bench_times cpu;                       /* of the thread that asks, which does the work too */
    struct bench_times by_words[QUERY_WORDS_MAX]; /* of one word, of two … */
    size_t empty;                                 /* that found nothing */
};
void query_times_free(struct query_times *times);

/* The next query: one to six words, drawn from the corpus. */
struct query_source {
    uint64_t state;
};

/* The body of a request. Gives the number of its words. */
unsigned query_write(char body[static QUERY_BODY_SIZE], const char *mode, struct query_source *source);
/* Searches once in the place's base, in the mode ("text", "hybrid"). The time is that of the call, from the request's text to
 * the answer's. */
void query_run(struct place *place, const char *mode, struct query_source *source, struct query_times *times);
/* Whether the mode is there. */
bool query_has_mode(struct place *place, const char *mode);
