#include "search/beside.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 5, QUERIES_A_LOOK = 50, WARM_QUERIES = 20 };

struct round {
    double p50_ms, p99_ms, indexed_per_s;
};

static json_t *call_other(struct place *place, const char *other, const char *method, const char *path, json_t *body)
{
    struct place there = *place;
    snprintf(there.base, sizeof there.base, "%s", other);
    return place_call_base(&there, method, path, body);
}

/* Files below the folder that are completed, and whether all of it is at rest. */
static json_int_t count_completed(struct place *place, const char *other, const char *id, bool *ret_is_over)
{
    char path[64];
    json_int_t completed = 0;
    size_t i;
    json_t *part;
    snprintf(path, sizeof path, "/items/%s", id);
    json_t *item = call_other(place, other, "GET", path, NULL);
    const char *status = json_string_value(json_object_get(item, "status"));
    *ret_is_over = !status || strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0;
    json_decref(item);
    snprintf(path, sizeof path, "/items?parent=%s&limit=200", id);
    json_t *parts = call_other(place, other, "GET", path, NULL);
    json_array_foreach(json_object_get(parts, "data"), i, part)
    {
        completed += json_integer_value(json_object_get(json_object_get(part, "counts"), "completed"));
    }
    json_decref(parts);
    return completed;
}

static void add_folder(struct place *place, const char *other, const char *folder, char ret_id[static PLACE_ID_SIZE])
{
    struct place there = *place;
    snprintf(there.base, sizeof there.base, "%s", other);
    place_add_folder(&there, folder, false, ret_id);
}

/* Until the first files are through. */
static void wait_begun(struct place *place, const char *other, const char *id)
{
    bool is_over = false;
    while (count_completed(place, other, id, &is_over) == 0 && !is_over) {
        bench_sleep_us(5000);
    }
}

static void remove_folder(struct place *place, const char *other, const char *id)
{
    json_decref(call_other(place, other, "POST", "/items/delete", json_pack("{s:[s]}", "ids", id)));
    while (place_has_open(place, "delete-subtree")) {
        bench_sleep_us(5000);
    }
}

/* With `id` it ends, too, when that is indexed. */
static void search_for(struct place *place, const char *other, const char *id, double seconds,
                       struct query_source *source, struct query_times *times)
{
    const int64_t end_us = bench_now_us() + (int64_t)(seconds * 1e6);
    bool is_over = false;
    for (int i = 1; bench_now_us() < end_us && !is_over; i++) {
        query_run(place, "text", source, times);
        if (id && i % QUERIES_A_LOOK == 0) {
            count_completed(place, other, id, &is_over);
        }
    }
}

static struct round take_times(struct query_times *times)
{
    const struct round round = {.p50_ms = bench_times_quantile(&times->all, 0.5) / 1e3,
                                .p99_ms = bench_times_quantile(&times->all, 0.99) / 1e3};
    query_times_free(times);
    return round;
}

static struct round idle_round(struct place *place, double seconds, struct query_source *source)
{
    struct query_times warm = {0}, times = {0};
    for (int i = 0; i < WARM_QUERIES; i++) {
        query_run(place, "text", source, &warm);
    }
    query_times_free(&warm);
    search_for(place, NULL, NULL, seconds, source, &times);
    return take_times(&times);
}

static struct round busy_round(struct place *place, const char *other, const char *folder, double seconds,
                               struct query_source *source)
{
    struct query_times times = {0};
    char id[PLACE_ID_SIZE];
    bool is_over;
    add_folder(place, other, folder, id);
    wait_begun(place, other, id);
    const json_int_t before = count_completed(place, other, id, &is_over);
    const int64_t began_us = bench_now_us();
    search_for(place, other, id, seconds, source, &times);
    const json_int_t indexed = count_completed(place, other, id, &is_over) - before;
    const double took_s = (double)(bench_now_us() - began_us) / 1e6;
    remove_folder(place, other, id);
    struct round round = take_times(&times);
    round.indexed_per_s = (double)indexed / took_s;
    return round;
}

struct beside_figures beside_measure(struct place *place, const char *other, const char *folder, double seconds)
{
    double idle_p50[ROUNDS], idle_p99[ROUNDS], busy_p50[ROUNDS], busy_p99[ROUNDS], indexed[ROUNDS];
    struct query_source source = {.state = 77};
    for (int i = 0; i < ROUNDS; i++) {
        const struct round idle = idle_round(place, seconds, &source);
        const struct round busy = busy_round(place, other, folder, seconds, &source);
        fprintf(stderr, "bench: idle p50 %.2f p99 %.2f ms; busy p50 %.2f p99 %.2f ms, %.0f files/s\n", idle.p50_ms,
                idle.p99_ms, busy.p50_ms, busy.p99_ms, busy.indexed_per_s);
        idle_p50[i] = idle.p50_ms;
        idle_p99[i] = idle.p99_ms;
        busy_p50[i] = busy.p50_ms;
        busy_p99[i] = busy.p99_ms;
        indexed[i] = busy.indexed_per_s;
    }
    return (struct beside_figures){bench_median(idle_p50, ROUNDS), bench_median(idle_p99, ROUNDS),
                                   bench_median(busy_p50, ROUNDS), bench_median(busy_p99, ROUNDS),
                                   bench_median(indexed, ROUNDS)};
}
