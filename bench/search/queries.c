#include "search/queries.h"

#include "ingest/corpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void query_times_free(struct query_times *times)
{
    bench_times_free(&times->all);
    bench_times_free(&times->cpu);
    for (size_t i = 0; i < QR_COUNT(times->by_words); i++) {
        bench_times_free(&times->by_words[i]);
    }
}

static int64_t thread_cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static int call(struct place *place, const char *body, struct quire_response *ret_response)
{
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/%s/search", place->base);
    return place_ask(place, "POST", path, body, ret_response);
}

/* Words of the corpus are letters only: nothing needs to be escaped. */
unsigned query_write(char body[static QUERY_BODY_SIZE], const char *mode, struct query_source *source)
{
    const unsigned words = 1 + corpus_number(&source->state, QUERY_WORDS_MAX);
    size_t len = (size_t)sprintf(body, "{\"mode\":\"%s\",\"query\":\"", mode);
    for (unsigned i = 0; i < words; i++) {
        len += corpus_add_word(body + len, &source->state);
        body[len++] = ' ';
    }
    strcpy(body + len - 1, "\"}");
    return words;
}

void query_run(struct place *place, const char *mode, struct query_source *source, struct query_times *times)
{
    char body[QUERY_BODY_SIZE];
    struct quire_response response;
    const unsigned words = query_write(body, mode, source);
    const int64_t began_us = bench_now_us(), began_cpu_us = thread_cpu_us();
    const int status = call(place, body, &response);
    const int64_t took_us = bench_now_us() - began_us, cpu_us = thread_cpu_us() - began_cpu_us;
    if (status != 200) {
        fprintf(stderr, "bench: search %s: %s\n", body, response.body);
        exit(1);
    }
    bench_times_add(&times->all, took_us);
    bench_times_add(&times->cpu, cpu_us);
    bench_times_add(&times->by_words[words - 1], took_us);
    times->empty += strstr(response.body, "\"chunk_id\"") == NULL;
    quire_response_done(&response);
}

bool query_has_mode(struct place *place, const char *mode)
{
    char body[128];
    struct quire_response response;
    snprintf(body, sizeof body, "{\"mode\":\"%s\",\"query\":\"the\"}", mode);
    const bool has = call(place, body, &response) == 200;
    quire_response_done(&response);
    return has;
}
