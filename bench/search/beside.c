#include "search/beside.h"

#include <stdio.h>
#include <string.h>

enum {
    ROUNDS = 5,
    QUERIES_A_LOOK = 50,
    WARM_QUERIES = 20,
    FILES_MIN = 200,
    FILES_MAX = 19000, /* parts of a hundred, which are asked for in one request */
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

/* ---- one query after another ---- */

static void warm_up(struct beside *beside, struct query_source *source)
{
    struct query_times warm = {0};
    for (int i = 0; i < WARM_QUERIES; i++) {
        query_run(beside->place, "text", source, &warm);
    }
    query_times_free(&warm);
}

/* It ends, too, when what is indexed is through. */
struct beside_round beside_search(struct beside *beside, const char *id)
{
    struct query_times times = {0};
    bool is_over = false;
    if (!id) {
        warm_up(beside, beside->arg);
    }
    const int64_t end_us = bench_now_us() + (int64_t)(beside->seconds * 1e6);
    for (int i = 1; bench_now_us() < end_us && !is_over; i++) {
        query_run(beside->place, "text", beside->arg, &times);
        if (id && i % QUERIES_A_LOOK == 0) {
            count_completed(beside->place, beside->other, id, &is_over);
        }
    }
    const struct beside_round round = {.p50_ms = bench_times_quantile(&times.all, 0.5) / 1e3,
                                       .p99_ms = bench_times_quantile(&times.all, 0.99) / 1e3};
    query_times_free(&times);
    return round;
}

/* ---- rounds ---- */

static struct beside_round busy_round(struct beside *beside, double *ret_indexed_per_s)
{
    char id[PLACE_ID_SIZE];
    bool is_over;
    add_folder(beside->place, beside->other, beside->folder, id);
    wait_begun(beside->place, beside->other, id);
    const json_int_t before = count_completed(beside->place, beside->other, id, &is_over);
    const int64_t began_us = bench_now_us();
    const struct beside_round round = beside->search(beside, id);
    const json_int_t indexed = count_completed(beside->place, beside->other, id, &is_over) - before;
    *ret_indexed_per_s = (double)indexed / ((double)(bench_now_us() - began_us) / 1e6);
    if (is_over) {
        fprintf(stderr, "bench: all was indexed before the round was over\n");
    }
    remove_folder(beside->place, beside->other, id);
    return round;
}

struct beside_figures beside_measure(struct beside *beside)
{
    double idle_p50[ROUNDS], idle_p99[ROUNDS], busy_p50[ROUNDS], busy_p99[ROUNDS], indexed[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        const struct beside_round idle = beside->search(beside, NULL);
        const struct beside_round busy = busy_round(beside, &indexed[i]);
        fprintf(stderr, "bench: idle p50 %.2f p99 %.2f ms; busy p50 %.2f p99 %.2f ms, %.0f files/s\n", idle.p50_ms,
                idle.p99_ms, busy.p50_ms, busy.p99_ms, indexed[i]);
        idle_p50[i] = idle.p50_ms;
        idle_p99[i] = idle.p99_ms;
        busy_p50[i] = busy.p50_ms;
        busy_p99[i] = busy.p99_ms;
    }
    return (struct beside_figures){bench_median(idle_p50, ROUNDS), bench_median(idle_p99, ROUNDS),
                                   bench_median(busy_p50, ROUNDS), bench_median(busy_p99, ROUNDS),
                                   bench_median(indexed, ROUNDS)};
}

int beside_files(double files_per_s, double seconds)
{
    return (int)QR_MIN(QR_MAX(files_per_s * seconds * 1.5, (double)FILES_MIN), (double)FILES_MAX);
}

/* ---- the report ---- */

void beside_report(struct bench_report *to, const struct beside_figures *figures, const char *key, const char *heading)
{
    char name[64];
    bench_report_heading(to, heading);
    snprintf(name, sizeof name, "%s_idle_p99_ms", key);
    bench_report_number(to, name, figures->idle_p99_ms, "ms", "p99 of rounds without, the middle one");
    snprintf(name, sizeof name, "%s_p50_ms", key);
    bench_report_number(to, name, figures->busy_p50_ms, "ms", "p50 of rounds with it");
    snprintf(name, sizeof name, "%s_p99_ms", key);
    bench_report_number(to, name, figures->busy_p99_ms, "ms", "    p99");
    snprintf(name, sizeof name, "%s_p99_against_idle", key);
    bench_report_goal(to, name, figures->busy_p99_ms / figures->idle_p99_ms, false, 3, "    p99 against idle");
    snprintf(name, sizeof name, "%s_indexed_per_s", key);
    bench_report_number(to, name, figures->indexed_per_s, "files/s", "indexed meanwhile");
}
