#include "embed_remote/round.h"

#include "job/runner.h"
#include "workflow/place.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 5, LOOK_US = 10000, INPUTS_A_REQUEST = 32 };

/* ---- the threads of the queue ---- */

static int embed_threads; /* of this process; 0 = as it is */

qr_rc __real_qr_runner_start(struct qr_runner **ret_runner, const struct qr_runner_options *options, qr_err *err);
qr_rc __wrap_qr_runner_start(struct qr_runner **ret_runner, const struct qr_runner_options *options, qr_err *err);

/* Put before the library's own by the linker: how many threads there are is no setting. */
qr_rc __wrap_qr_runner_start(struct qr_runner **ret_runner, const struct qr_runner_options *options, qr_err *err)
{
    struct qr_runner_options ours = *options;
    ours.slots[QR_QUEUE_EMBED] = embed_threads ? embed_threads : ours.slots[QR_QUEUE_EMBED];
    return __real_qr_runner_start(ret_runner, &ours, err);
}

/* ---- requests ---- */

static void add_base(struct place *place, const struct server_limits *limits, const char *url)
{
    json_t *embedding =
        limits ? json_pack("{s:s, s:s, s:s, s:{s:i, s:I, s:I}}", "provider", "openai", "model", "bench", "url", url,
                           "limits", "inputs", INPUTS_A_REQUEST, "in_flight", (json_int_t)limits->in_flight_max,
                           "requests_a_minute", (json_int_t)limits->requests_a_minute)
               : json_pack("{s:s}", "provider", "none");
    json_t *body = json_pack("{s:s, s:{s:o}}", "name", "bench", "settings", "embedding", embedding);
    json_t *base = place_call(place, "POST", "/bases", body);
    snprintf(place->base, sizeof place->base, "%s", json_string_value(json_object_get(base, "id")));
    json_decref(base);
}

static void set_queue(struct place *place, const char *name, const char *verb)
{
    char path[64];
    snprintf(path, sizeof path, "/queues/%s/%s", name, verb);
    json_decref(place_call(place, "POST", path, NULL));
}

static bool is_queue_empty(const json_t *queue)
{
    static const char *const states[] = {"blocked", "scheduled", "queued", "running"};
    const json_t *counts = json_object_get(queue, "counts");
    for (size_t i = 0; i < QR_COUNT(states); i++) {
        const json_t *count = json_object_get(counts, states[i]);
        if (json_is_string(count) || json_integer_value(count) > 0) {
            return false;
        }
    }
    return true;
}

/* Whether nothing is left to be read and split. */
static bool is_split(struct place *place)
{
    bool is_split = true;
    size_t i;
    const json_t *queue;
    json_t *queues = place_call(place, "GET", "/queues", NULL);
    json_array_foreach(json_object_get(queues, "data"), i, queue)
    {
        const char *name = json_string_value(json_object_get(queue, "name"));
        const bool counts = strcmp(name, "expand") == 0 || strcmp(name, "convert") == 0;
        is_split = is_split && (!counts || is_queue_empty(queue));
    }
    json_decref(queues);
    return is_split;
}

static void wait_split(struct place *place)
{
    while (!is_split(place)) {
        bench_sleep_us(LOOK_US);
    }
}

/* Until the job that it is has begun it, the item stays what it was. */
static void reindex(struct place *place, const char *id)
{
    json_t *body = json_pack("{s:[s]}", "ids", id);
    json_decref(place_call_base(place, "POST", "/items/reindex", body));
    while (place_has_open(place, "reindex-subtree")) {
        bench_sleep_us(LOOK_US);
    }
    place_wait(place, id);
}

/* ---- the threads that embed ---- */

static bool read_task(const char *id, const char *file, char *text, size_t size)
{
    char path[320];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", id, file);
    FILE *from = fopen(path, "re");
    const bool is_read = from && fgets(text, (int)size, from);
    if (from) {
        fclose(from);
    }
    return is_read;
}

/* By the scheduler's own count, in nanoseconds. They are there for as long as their model is used. */
static double embed_cpu_seconds(void)
{
    double seconds = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; tasks && (task = readdir(tasks));) {
        char name[32], spent[96];
        if (task->d_name[0] != '.' && read_task(task->d_name, "comm", name, sizeof name) &&
            strncmp(name, "embed", strlen("embed")) == 0 && read_task(task->d_name, "schedstat", spent, sizeof spent)) {
            seconds += strtod(spent, NULL) / 1e9;
        }
    }
    if (tasks) {
        closedir(tasks);
    }
    return seconds;
}

/* ---- a round ---- */

struct child_request {
    const struct round_request *round;
    const char *data_dir;
    const struct served *server;
};

static void measure_reindex(struct place *place, const char *id, const struct served *server,
                            struct round_figures *figures)
{
    const int64_t requests = server_stats(server).requests;
    const int64_t began_us = bench_now_us();
    reindex(place, id);
    figures->reindex_s = (double)(bench_now_us() - began_us) / 1e6;
    figures->reindex_calls = (double)(server_stats(server).requests - requests);
}

static void run_child(const void *arg, void *ret)
{
    const struct child_request *request = arg;
    const struct round_request *round = request->round;
    struct round_figures *figures = ret;
    struct place place;
    char id[PLACE_ID_SIZE];
    const double cpu_s = bench_cpu_seconds();
    embed_threads = round->threads;
    place_open(&place, request->data_dir, true);
    add_base(&place, round->limits, round->limits ? server_url(request->server) : NULL);
    set_queue(&place, "embed", "pause");
    const int64_t added_us = bench_now_us();
    place_add_folder(&place, round->folder, false, id);
    wait_split(&place);
    const int64_t began_us = bench_now_us();
    set_queue(&place, "embed", "resume");
    place_wait(&place, id);
    figures->whole_s = (double)(bench_now_us() - began_us) / 1e6;
    figures->first_s = (double)(bench_now_us() - added_us) / 1e6;
    figures->cpu_s = bench_cpu_seconds() - cpu_s;
    figures->embed_cpu_s = embed_cpu_seconds();
    figures->peak_mb = bench_peak_mb();
    if (round->with_reindex) {
        measure_reindex(&place, id, request->server, figures);
    }
    place_close(&place);
}

static void take_served(const struct served *server, const struct server_limits *limits, struct round_figures *figures)
{
    const struct qr_model_stats stats = server_stats(server);
    figures->inputs = (double)stats.inputs;
    figures->requests = (double)stats.requests;
    figures->refused = (double)stats.limited;
    figures->steady_a_second = server_rate(server, SERVER_STEADY_FROM, SERVER_STEADY_TO);
    figures->whole_a_second = figures->inputs / figures->whole_s;
    figures->capacity = server_capacity(limits, INPUTS_A_REQUEST);
}

static struct round_figures run_once(const struct round_request *round)
{
    char data_dir[512];
    struct round_figures figures;
    struct served *server = round->limits ? server_begin(round->limits) : NULL;
    snprintf(data_dir, sizeof data_dir, "%s/embed-data", round->options->dir);
    const struct child_request request = {round, data_dir, server};
    bench_apart(run_child, &request, &figures, sizeof figures);
    bench_remove(data_dir);
    if (server) {
        take_served(server, round->limits, &figures);
        server_end(server);
        server_free(server);
    }
    fprintf(stderr,
            "bench: %s: %.0f inputs in %.0f requests, %.2f s, steady %.0f/s of %.0f/s, CPU %.2f s, peak %.0f MB\n",
            round->folder, figures.inputs, figures.requests, figures.whole_s, figures.steady_a_second, figures.capacity,
            figures.cpu_s, figures.peak_mb);
    return figures;
}

static int compare_times(const void *a, const void *b)
{
    const struct round_figures *x = a, *y = b;
    return (x->whole_s > y->whole_s) - (x->whole_s < y->whole_s);
}

struct round_figures round_run(const struct round_request *request, int rounds)
{
    struct round_figures figures[ROUNDS_MAX];
    double cpu_s[ROUNDS_MAX], peak_mb = 0;
    rounds = QR_MIN(rounds, (int)ROUNDS_MAX);
    for (int i = 0; i < rounds; i++) {
        figures[i] = run_once(request);
        cpu_s[i] = figures[i].cpu_s;
        peak_mb = QR_MAX(peak_mb, figures[i].peak_mb);
    }
    qsort(figures, (size_t)rounds, sizeof figures[0], compare_times);
    struct round_figures middle = figures[rounds / 2];
    middle.cpu_s = bench_median(cpu_s, (size_t)rounds);
    middle.peak_mb = peak_mb;
    return middle;
}
