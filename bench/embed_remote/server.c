#include "embed_remote/server.h"

#include "support.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_US = 2000, SAMPLES_MAX = 1 << 18 };

struct sample {
    int64_t at_us, inputs;
};

struct served { /* shared by both processes */
    struct server_limits limits;
    _Atomic int port; /* 0 = it is not up yet */
    atomic_bool ends;
    struct qr_model_stats stats;
    _Atomic size_t sample_count; /* written behind what it counts, and behind `stats` */
    struct sample samples[SAMPLES_MAX];
    pid_t pid;
};

/* ---- its process ---- */

static void note(struct served *served, struct qr_model_server *server)
{
    struct qr_model_stats stats;
    qr_model_server_stats(server, &stats);
    const size_t count = atomic_load(&served->sample_count);
    const int64_t known = count ? served->samples[count - 1].inputs : 0;
    served->stats = stats;
    if (stats.inputs > known && count < SAMPLES_MAX) {
        served->samples[count] = (struct sample){bench_now_us(), stats.inputs};
        atomic_store(&served->sample_count, count + 1);
    }
}

static void serve(struct served *served)
{
    const struct qr_model_step slow = {.from = 1, .fault = QR_FAULT_SLOW, .number = served->limits.latency_ms};
    const struct qr_model_options options = {.dimension = DIMENSION,
                                             .inputs_a_second = served->limits.inputs_a_second,
                                             .in_flight_max = served->limits.in_flight_max,
                                             .requests_a_minute = served->limits.requests_a_minute,
                                             .steps = &slow,
                                             .step_count = served->limits.latency_ms ? 1 : 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct qr_model_server *server = qr_model_server_start(&options);
    atomic_store(&served->port, qr_model_server_port(server));
    while (!atomic_load(&served->ends)) {
        bench_sleep_us(LOOK_US);
        note(served, server);
    }
    qr_model_server_stop(server);
    _exit(0);
}

/* ---- the one that measures ---- */

struct served *server_begin(const struct server_limits *limits)
{
    struct served *served = mmap(NULL, sizeof *served, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (served == MAP_FAILED) {
        perror("bench: mmap");
        exit(1);
    }
    served->limits = *limits;
    fflush(stdout); /* else the child would print it again */
    served->pid = fork();
    if (served->pid < 0) {
        perror("bench: fork");
        exit(1);
    }
    if (served->pid == 0) {
        serve(served);
    }
    while (atomic_load(&served->port) == 0) {
        if (waitpid(served->pid, NULL, WNOHANG) != 0) {
            fprintf(stderr, "bench: the model server has died\n");
            exit(1);
        }
        bench_sleep_us(LOOK_US);
    }
    return served;
}

int server_port(const struct served *server)
{
    return atomic_load(&server->port);
}

const char *server_url(const struct served *server)
{
    static char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/v1", server_port(server));
    return url;
}

struct qr_model_stats server_stats(const struct served *server)
{
    bench_sleep_us(INT64_C(5) * LOOK_US);
    return server->stats;
}

void server_end(struct served *server)
{
    bench_sleep_us(INT64_C(5) * LOOK_US); /* its last look */
    atomic_store(&server->ends, true);
    waitpid(server->pid, NULL, 0);
}

void server_free(struct served *server)
{
    munmap(server, sizeof *server);
}

/* ---- what it served ---- */

/* The first sample with at least this part of all inputs. */
static const struct sample *sample_at(const struct served *server, double part)
{
    const size_t count = atomic_load(&server->sample_count);
    const double wanted = part * (double)server->samples[count - 1].inputs;
    size_t i = 0;
    while (i + 1 < count && (double)server->samples[i].inputs < wanted) {
        i++;
    }
    return &server->samples[i];
}

double server_rate(const struct served *server, double from, double to)
{
    if (atomic_load(&server->sample_count) == 0) {
        return 0;
    }
    const struct sample *first = sample_at(server, from), *last = sample_at(server, to);
    const double seconds = (double)(last->at_us - first->at_us) / 1e6;
    return seconds > 0 ? (double)(last->inputs - first->inputs) / seconds : 0;
}

double server_capacity(const struct server_limits *limits, double inputs)
{
    double capacity = limits->inputs_a_second ? (double)limits->inputs_a_second : 1e9;
    if (limits->latency_ms && limits->in_flight_max) {
        capacity = QR_MIN(capacity, (double)limits->in_flight_max * inputs * 1e3 / (double)limits->latency_ms);
    }
    if (limits->requests_a_minute) {
        capacity = QR_MIN(capacity, (double)limits->requests_a_minute * inputs / 60);
    }
    return capacity;
}
