/* Rounds of one run are told apart by whether the queue of deletes is paused: both kinds meet the same state of the database
 * and the same noise of the machine, and the middle ones are compared. */
#include "workflow/removal.h"

#include "api/instance.h"
#include "workflow/files.h"

#include <stdio.h>
#include <string.h>

enum {
    PART = 20,   /* the other folders are so much smaller: the cleanup must not be over before they are indexed */
    ROUNDS = 5,  /* beside the cleanup, and as many without */
    SEARCHES = 9 /* of each kind */
};

struct hiding {
    double answered_ms; /* the request */
    double hidden_ms;   /* until a look at list and search begins that does not show it */
    double search_ms;   /* how long that search took */
};

static double ms_since(int64_t began_us)
{
    return (double)(bench_now_us() - began_us) / 1e3;
}

static double index_folder(struct place *place, const char *folder)
{
    char id[PLACE_ID_SIZE];
    const int64_t began_us = bench_now_us();
    place_add_folder(place, folder, false, id);
    place_wait(place, id);
    return ms_since(began_us) / 1e3;
}

static bool is_listed(struct place *place, const char *id)
{
    json_t *list = place_call_base(place, "GET", "/items?parent=root", NULL);
    bool found = false;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(list, "data"), i, item)
    {
        found = found || strcmp(json_string_value(json_object_get(item, "id")), id) == 0;
    }
    json_decref(list);
    return found;
}

static bool is_found(struct place *place, const char *folder)
{
    json_t *answer = place_call_base(place, "POST", "/search", json_pack("{s:s, s:i}", "query", "ka lo", "top_k", 50));
    bool found = false;
    size_t i;
    json_t *hit;
    json_array_foreach(json_object_get(answer, "hits"), i, hit)
    {
        const char *source = json_string_value(json_object_get(hit, "source"));
        found = found || (source && strncmp(source, folder, strlen(folder)) == 0);
    }
    json_decref(answer);
    return found;
}

/* The middle one of several. */
static double search_ms(struct place *place, const char *folder, bool *ret_found)
{
    struct bench_times times = {0};
    for (int i = 0; i < SEARCHES; i++) {
        const int64_t began_us = bench_now_us();
        *ret_found = is_found(place, folder);
        bench_times_add(&times, bench_now_us() - began_us);
    }
    const double middle_us = bench_times_quantile(&times, 0.5);
    bench_times_free(&times);
    return middle_us / 1e3;
}

static struct hiding delete_folder(struct place *place, const char *id, const char *folder)
{
    struct hiding hiding;
    const int64_t began_us = bench_now_us();
    json_decref(place_call_base(place, "POST", "/items/delete", json_pack("{s:[s]}", "ids", id)));
    hiding.answered_ms = ms_since(began_us);
    bool found;
    do {
        hiding.hidden_ms = ms_since(began_us);
        const int64_t look_us = bench_now_us();
        found = is_found(place, folder);
        hiding.search_ms = ms_since(look_us);
    } while (found || is_listed(place, id));
    return hiding;
}

/* ---- with the cleanup, and without ---- */

/* Comes back when nothing of the queue runs any more. */
static void set_cleanup(struct place *place, bool runs)
{
    json_decref(place_call(place, "POST", runs ? "/queues/delete/resume" : "/queues/delete/pause", NULL));
    bool is_running = !runs;
    while (is_running) {
        json_t *jobs = place_call(place, "GET", "/jobs?state=running&type=delete-subtree&limit=1", NULL);
        is_running = json_array_size(json_object_get(jobs, "data")) > 0;
        json_decref(jobs);
        bench_sleep_us(1000);
    }
}

struct comparison {
    double alone_s, beside_s; /* the middle ones */
    bool was_running;         /* the cleanup lasted to the end */
};

static void index_round(struct place *place, const struct bench_options *options, int number, bool beside,
                        struct bench_times *times)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/other-%d", options->dir, number);
    set_cleanup(place, beside);
    bench_times_add(times, (int64_t)(index_folder(place, folder) * 1e6));
}

/* First one kind, then the other, and the other way round: who comes second finds a larger database. */
static struct comparison compare(struct place *place, const struct bench_options *options)
{
    struct comparison comparison = {.was_running = true};
    struct bench_times alone = {0}, beside = {0};
    for (int i = 0; i < ROUNDS; i++) {
        for (int half = 0; half < 2; half++) {
            const bool is_beside = (i + half) % 2 == 1;
            index_round(place, options, 2 * i + half, is_beside, is_beside ? &beside : &alone);
        }
        comparison.was_running = comparison.was_running && place_has_open(place, "delete-subtree");
    }
    for (int i = 0; i < ROUNDS; i++) {
        fprintf(stderr, "bench: beside the cleanup %.3f s, without %.3f s\n", beside.us[i] / 1e6, alone.us[i] / 1e6);
    }
    comparison.alone_s = bench_times_quantile(&alone, 0.5) / 1e6;
    comparison.beside_s = bench_times_quantile(&beside, 0.5) / 1e6;
    bench_times_free(&alone);
    bench_times_free(&beside);
    return comparison;
}

static qr_rc count_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_get_i64(tx, "SELECT count(*) FROM item", QR_NO_VALS, NULL, arg, err);
}

/* With nothing else to do. */
static double removed_per_s(struct place *place)
{
    int64_t before = 0, after = 0;
    qr_err err;
    set_cleanup(place, false);
    bench_must(qr_db_read(place->quire->db, count_items, &before, &err), &err);
    const int64_t began_us = bench_now_us();
    set_cleanup(place, true);
    while (place_has_open(place, "delete-subtree")) {
        bench_sleep_us(10000);
    }
    const double took_ms = ms_since(began_us);
    bench_must(qr_db_read(place->quire->db, count_items, &after, &err), &err);
    return (double)(before - after) * 1e3 / took_ms;
}

/* ---- all of it ---- */

struct figures {
    bool was_found; /* else a search that hides it would prove nothing */
    double idle_search_ms, hidden_search_ms, removed_per_s;
    struct hiding hiding;
    struct comparison comparison;
    struct place_writes writes;
};

static void make_folders(const struct bench_options *options, int count, char doomed[static 512], char kept[static 512])
{
    char path[512];
    snprintf(doomed, 512, "%s/doomed/", options->dir);
    snprintf(kept, 512, "%s/kept", options->dir);
    files_make(doomed, count, 3);
    files_make(kept, count / PART, 4);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        snprintf(path, sizeof path, "%s/other-%d", options->dir, i);
        files_make(path, count / PART, 5 + (unsigned)i);
    }
}

static struct figures measure(const struct bench_options *options, int count)
{
    struct figures figures;
    struct place place;
    char doomed[512], kept[512], dir[512], id[PLACE_ID_SIZE];
    bool found;
    make_folders(options, count, doomed, kept);
    snprintf(dir, sizeof dir, "%s/removal-data", options->dir);
    place_open(&place, dir, true);
    place_add_base(&place, "bench");
    place_add_folder(&place, doomed, false, id);
    place_wait(&place, id);
    index_folder(&place, kept);
    figures.idle_search_ms = search_ms(&place, doomed, &figures.was_found);
    set_cleanup(&place, false);
    figures.hiding = delete_folder(&place, id, doomed);
    figures.hidden_search_ms = search_ms(&place, doomed, &found);
    figures.comparison = compare(&place, options);
    figures.removed_per_s = removed_per_s(&place);
    figures.writes = place_writes(&place);
    place_close(&place);
    return figures;
}

void bench_removal(struct bench_report *to, const struct bench_options *options, int count)
{
    const struct figures figures = measure(options, count);
    const struct hiding *hiding = &figures.hiding;
    const struct comparison *comparison = &figures.comparison;
    bench_report_heading(to, "Deleting a folder of that size, and its cleanup while another one is indexed");
    bench_report_goal(to, "delete_answered_ms", hiding->answered_ms, false, 50, "until the request is answered, ms");
    bench_report_goal(to, "delete_hidden_ms", figures.was_found ? hiding->hidden_ms : -1, false, 50,
                      "until it is neither listed nor found, ms");
    bench_report_number(to, "search_idle_ms", figures.idle_search_ms, "ms", "a search for frequent words before");
    bench_report_number(to, "search_first_deleted_ms", hiding->search_ms, "ms", "    the first one after");
    bench_report_goal(to, "search_deleted", figures.hidden_search_ms / figures.idle_search_ms, false, 3,
                      "search while most is deleted against idle");
    bench_report_number(to, "index_alone_s", comparison->alone_s, "s", "indexing another folder, the cleanup paused");
    bench_report_number(to, "index_beside_s", comparison->beside_s, "s",
                        comparison->was_running ? "    beside the cleanup"
                                                : "    beside the cleanup, which ended earlier");
    bench_report_goal(to, "slower_by_cleanup", comparison->beside_s / comparison->alone_s, false, 1.2,
                      "    so many times as long");
    bench_report_number(to, "removed_per_s", figures.removed_per_s, "items/s", "the cleanup with nothing else to do");
    bench_report_goal(to, "delete_longest_main_ms", figures.writes.main_longest_ms, false, 50,
                      "the longest transaction of the main database, ms");
    bench_report_goal(to, "delete_longest_index_ms", figures.writes.index_longest_ms, false, 50,
                      "    of an index store");
}
