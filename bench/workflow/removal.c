#include "workflow/removal.h"

#include "workflow/files.h"

#include <stdio.h>
#include <string.h>

enum { PART = 10 }; /* the other folder is a tenth: the cleanup must not be over before it is indexed */

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

static struct hiding delete_folder(struct place *place, const char *id, const char *folder)
{
    struct hiding hiding;
    const int64_t began_us = bench_now_us();
    json_decref(place_call_base(place, "POST", "/items/delete", json_pack("{s:[s]}", "ids", id)));
    hiding.answered_ms = ms_since(began_us);
    int64_t look_us;
    do {
        hiding.hidden_ms = ms_since(began_us);
        look_us = bench_now_us();
    } while (is_found(place, folder) || is_listed(place, id));
    hiding.search_ms = ms_since(look_us);
    return hiding;
}

static void wait_removed(struct place *place)
{
    while (place_has_open(place, "delete-subtree")) {
        bench_sleep_us(10000);
    }
}

void bench_removal(struct bench_report *to, const struct bench_options *options, int count)
{
    struct place place;
    char doomed[512], alone[512], beside[512], dir[512], id[PLACE_ID_SIZE];
    snprintf(doomed, sizeof doomed, "%s/doomed/", options->dir);
    snprintf(alone, sizeof alone, "%s/alone", options->dir);
    snprintf(beside, sizeof beside, "%s/beside", options->dir);
    snprintf(dir, sizeof dir, "%s/removal-data", options->dir);
    files_make(doomed, count, 3);
    files_make(alone, count / PART, 4);
    files_make(beside, count / PART, 5);
    place_open(&place, dir, true);
    place_add_base(&place, "bench");
    place_add_folder(&place, doomed, false, id);
    place_wait(&place, id);
    const int64_t search_us = bench_now_us();
    const bool was_found = is_found(&place, doomed); /* else a search that hides it would prove nothing */
    const double search_ms = ms_since(search_us);
    const double alone_s = index_folder(&place, alone);
    const int64_t began_us = bench_now_us();
    const struct hiding hiding = delete_folder(&place, id, doomed);
    const double beside_s = index_folder(&place, beside);
    const bool was_running = place_has_open(&place, "delete-subtree");
    wait_removed(&place);
    const double removed_s = ms_since(began_us) / 1e3;
    const struct place_writes writes = place_writes(&place);
    place_close(&place);

    bench_report_heading(to, "Deleting a folder of that size, while another one is indexed");
    bench_report_goal(to, "delete_answered_ms", hiding.answered_ms, false, 50, "until the request is answered, ms");
    bench_report_goal(to, "delete_hidden_ms", was_found ? hiding.hidden_ms : -1, false, 50,
                      "until it is neither listed nor found, ms");
    bench_report_number(to, "search_before_ms", search_ms, "ms", "a search for frequent words before");
    bench_report_number(to, "search_after_ms", hiding.search_ms, "ms",
                        "    after, and a list, while the cleanup begins");
    bench_report_number(to, "removed_per_s", count / removed_s, "items/s", "its cleanup, beside the other folder");
    bench_report_number(to, "index_alone_s", alone_s, "s", "indexing the other folder alone");
    bench_report_number(to, "index_beside_s", beside_s, "s",
                        was_running ? "    beside the cleanup" : "    beside the cleanup, which ended earlier");
    bench_report_goal(to, "slower_by_cleanup", beside_s / alone_s, false, 1.25, "    so many times as long");
    bench_report_goal(to, "delete_longest_main_ms", writes.main_longest_ms, false, 50,
                      "the longest transaction of the main database, ms");
    bench_report_goal(to, "delete_longest_index_ms", writes.index_longest_ms, false, 50, "    of an index store");
}
