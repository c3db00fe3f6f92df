/* Everything is measured in processes of its own: their memory is not this one's, and one of them is killed. */
#include "workflow/large.h"

#include "base/uuid.h"
#include "workflow/fill.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTS = 1000, OPEN_FILES_MAX = 1024 };

struct figures {
    double ready_s, ready_cpu_s, list_p50_ms, list_p99_ms, list_cpu_ms, check_s, resident_mb, rate;
};

static double seconds_since(int64_t began_us)
{
    return (double)(bench_now_us() - began_us) / 1e6;
}

typedef struct figures measure_fn(const char *dir, int count, double seconds);

struct apart_request {
    measure_fn *fn;
    const char *dir;
    int count;
    double seconds;
};

static void run_request(const void *arg, void *ret)
{
    const struct apart_request *request = arg;
    *(struct figures *)ret = request->fn(request->dir, request->count, request->seconds);
}

static struct figures measure_apart(measure_fn *fn, const char *dir, int count, double seconds)
{
    const struct apart_request request = {fn, dir, count, seconds};
    struct figures figures;
    bench_apart(run_request, &request, &figures, sizeof figures);
    return figures;
}

static void find_base(struct place *place)
{
    json_t *bases = place_call(place, "GET", "/bases", NULL);
    const json_t *base = json_array_get(json_object_get(bases, "data"), 0);
    snprintf(place->base, sizeof place->base, "%s", json_string_value(json_object_get(base, "id")));
    json_decref(bases);
}

static void open_ready(struct place *place, const char *dir, struct figures *figures)
{
    const double cpu_s = bench_cpu_seconds();
    const int64_t began_us = bench_now_us();
    place_open(place, dir, true);
    figures->ready_s = seconds_since(began_us);
    figures->ready_cpu_s = bench_cpu_seconds() - cpu_s;
}

static struct figures fill(const char *dir, int count, double seconds QR_UNUSED)
{
    fill_items(dir, count, false);
    return (struct figures){0};
}

static struct figures fill_with_jobs(const char *dir, int count, double seconds QR_UNUSED)
{
    fill_items(dir, count, true);
    return (struct figures){0};
}

/* ---- many items ---- */

static void folder_id(int number, char ret_text[static QR_UUID_TEXT_SIZE])
{
    char bytes[QR_UUID_BYTES + 1];
    qr_uuid id;
    snprintf(bytes, sizeof bytes, "fold%012d", number);
    memcpy(id.bytes, bytes, QR_UUID_BYTES);
    qr_uuid_format(id, ret_text);
}

/* The request alone: how long its answer takes to be read is up to the program that asked. */
static json_t *time_list(struct place *place, const char *path, struct bench_times *times)
{
    struct quire_response response;
    const int64_t began_us = bench_now_us();
    const int status = quire_call(place->quire, "GET", path, NULL, &response);
    bench_times_add(times, bench_now_us() - began_us);
    if (status != 200) {
        fprintf(stderr, "bench: GET %s: %s\n", path, response.body);
        exit(1);
    }
    json_t *list = json_loads(response.body, 0, NULL);
    quire_response_done(&response);
    return list;
}

/* Pages of everything, and of folders here and there. */
static void time_lists(struct place *place, int count, struct bench_times *times)
{
    char path[512], items[128], cursor[256] = "", id[QR_UUID_TEXT_SIZE];
    snprintf(items, sizeof items, "/api/v1/bases/%s/items", place->base);
    for (int i = 0; i < LISTS; i++) {
        if (i % 2) {
            folder_id((int)((int64_t)i * 7919 % (count / FILL_CHILDREN)), id);
            snprintf(path, sizeof path, "%s?parent=%s&limit=100", items, id);
        } else {
            snprintf(path, sizeof path, "%s?limit=100%s%s", items, cursor[0] ? "&cursor=" : "", cursor);
        }
        json_t *list = time_list(place, path, times);
        const char *next = json_string_value(json_object_get(list, "next_cursor"));
        if (i % 2 == 0) {
            snprintf(cursor, sizeof cursor, "%s", next ? next : "");
        }
        json_decref(list);
    }
}

static struct figures measure_items(const char *dir, int count, double seconds QR_UNUSED)
{
    struct figures figures = {0};
    struct place place;
    struct bench_times times = {0};
    open_ready(&place, dir, &figures);
    find_base(&place);
    const double cpu_s = bench_cpu_seconds();
    time_lists(&place, count, &times);
    figures.list_cpu_ms = (bench_cpu_seconds() - cpu_s) * 1e3 / LISTS;
    figures.list_p50_ms = bench_times_quantile(&times, 0.5) / 1e3;
    figures.list_p99_ms = bench_times_quantile(&times, 0.99) / 1e3;
    const int64_t began_us = bench_now_us();
    json_t *check = place_call(&place, "POST", "/check", NULL);
    figures.check_s = seconds_since(began_us);
    if (!json_is_true(json_object_get(check, "ok"))) {
        char *text = json_dumps(check, JSON_COMPACT);
        fprintf(stderr, "bench: the check found something: %.300s\n", text);
        free(text);
    }
    json_decref(check);
    figures.resident_mb = bench_resident_mb();
    place_close(&place);
    return figures;
}

void bench_many_items(struct bench_report *to, const struct bench_options *options, int count)
{
    char dir[512];
    snprintf(dir, sizeof dir, "%s/many-items", options->dir);
    measure_apart(fill, dir, count, 0); /* else the others would inherit its memory */
    const struct figures figures = measure_apart(measure_items, dir, count, options->seconds);
    bench_report_heading(to, "Many items");
    bench_report_number(to, "many_items", count, "", "items");
    bench_report_goal(to, "many_ready_s", figures.ready_s, false, 1, "from opening until work goes on, s");
    bench_report_number(to, "many_ready_cpu_s", figures.ready_cpu_s, "s", "    CPU of that");
    bench_report_number(to, "many_list_p50_ms", figures.list_p50_ms, "ms", "a list of 100 of them, p50");
    bench_report_goal(to, "many_list_p99_ms", figures.list_p99_ms, false, 20, "    p99, ms");
    bench_report_number(to, "many_list_cpu_ms", figures.list_cpu_ms, "ms", "    CPU of one");
    bench_report_goal(to, "many_check_s", figures.check_s, false, 60, "the check of everything, s");
    bench_report_goal(to, "many_resident_mb", figures.resident_mb, false, 200, "resident memory after that, MB");
}

/* ---- many jobs, and a kill ---- */

static int64_t completed_count(struct place *place)
{
    char path[128], id[QR_UUID_TEXT_SIZE];
    int64_t count = 0;
    bool has_some = true;
    for (int folder = 0; has_some; folder++) { /* jobs are done in the order of their ids */
        folder_id(folder, id);
        snprintf(path, sizeof path, "/items/%s", id);
        json_t *item = place_call_base(place, "GET", path, NULL);
        const json_int_t done = json_integer_value(json_object_get(json_object_get(item, "counts"), "completed"));
        has_some = done > 0;
        count += done;
        json_decref(item);
    }
    return count;
}

/* Works for so long; the rate is that of items completed. */
static struct figures measure_jobs(const char *dir, int count QR_UNUSED, double seconds)
{
    struct figures figures = {0};
    struct place place;
    open_ready(&place, dir, &figures);
    find_base(&place);
    const int64_t before = completed_count(&place), began_us = bench_now_us();
    bench_sleep_us((int64_t)(seconds * 1e6));
    figures.rate = (double)(completed_count(&place) - before) / seconds_since(began_us);
    figures.resident_mb = bench_resident_mb();
    return figures; /* the process just ends */
}

static void work_and_die(const char *dir, double seconds)
{
    const pid_t child = fork();
    if (child == 0) {
        struct place place;
        place_open(&place, dir, true);
        for (;;) {
            pause();
        }
    }
    bench_sleep_us((int64_t)(seconds * 1e6));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

void bench_many_jobs(struct bench_report *to, const struct bench_options *options, int count)
{
    char dir[512];
    snprintf(dir, sizeof dir, "%s/many-jobs", options->dir);
    measure_apart(fill_with_jobs, dir, count, 0);
    work_and_die(dir, options->seconds);
    const struct figures figures = measure_apart(measure_jobs, dir, count, options->seconds);
    bench_report_heading(to, "Many open jobs, after kill -9");
    bench_report_number(to, "open_jobs", count, "", "jobs that were open");
    bench_report_goal(to, "killed_ready_s", figures.ready_s, false, 1, "from opening until work goes on, s");
    bench_report_number(to, "killed_ready_cpu_s", figures.ready_cpu_s, "s", "    CPU of that");
    bench_report_goal(to, "killed_rate", figures.rate, true, 1, "items completed a second from then on");
    bench_report_goal(to, "killed_resident_mb", figures.resident_mb, false, 200, "resident memory, MB");
}

/* ---- many bases ---- */

static void add_note(struct place *place)
{
    json_t *body = json_pack("{s:[{s:s, s:s, s:s}]}", "items", "type", "note", "name", "note", "content",
                             "# A note\n\nIts only words.\n");
    json_decref(place_call_base(place, "POST", "/items", body));
}

static bool is_completed(struct place *place)
{
    json_t *list = place_call_base(place, "GET", "/items", NULL);
    const json_t *item = json_array_get(json_object_get(list, "data"), 0);
    const char *status = json_string_value(json_object_get(item, "status"));
    const bool is_completed = status && strcmp(status, "completed") == 0;
    json_decref(list);
    return is_completed;
}

static struct figures measure_bases(const char *dir, int count, double seconds QR_UNUSED)
{
    struct figures figures = {0};
    struct place place;
    const struct rlimit limit = {OPEN_FILES_MAX, OPEN_FILES_MAX};
    char name[64];
    setrlimit(RLIMIT_NOFILE, &limit);
    place_open(&place, dir, true);
    char(*bases)[PLACE_ID_SIZE] = calloc((size_t)count, sizeof bases[0]);
    const int64_t began_us = bench_now_us();
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "base %d", i);
        place_add_base(&place, name);
        memcpy(bases[i], place.base, sizeof place.base);
        add_note(&place);
    }
    for (int i = 0; i < count; i++) {
        memcpy(place.base, bases[i], sizeof place.base);
        while (!is_completed(&place)) {
            bench_sleep_us(10000);
        }
    }
    figures.rate = count / seconds_since(began_us);
    figures.resident_mb = bench_resident_mb();
    place_close(&place);
    free(bases);
    return figures;
}

void bench_many_bases(struct bench_report *to, const struct bench_options *options, int count)
{
    char dir[512];
    snprintf(dir, sizeof dir, "%s/many-bases", options->dir);
    const struct figures figures = measure_apart(measure_bases, dir, count, options->seconds);
    bench_report_heading(to, "Many bases under a limit of 1,024 open files");
    bench_report_number(to, "bases", count, "", "bases, each with a note that was completed");
    bench_report_number(to, "bases_per_s", figures.rate, "bases/s", "    made, filled and indexed");
    bench_report_goal(to, "bases_resident_mb", figures.resident_mb, false, 200, "resident memory, MB");
}
