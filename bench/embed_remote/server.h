/* The model server in a process of its own, so that what it costs is not ours, with a record of what it served when. */
#pragma once

#include "support/model_server.h"

struct served;

enum { DIMENSION = 384 }; /* as small models have */

/* What it can do. 0 = without limit. */
struct server_limits {
    int64_t inputs_a_second;   /* one after the other, as one processor works */
    int64_t latency_ms;        /* each request takes so long, whatever is in it … */
    int64_t in_flight_max;     /* … and so many are worked on at a time: more are refused */
    int64_t requests_a_minute; /* more are refused */
};

struct served *server_begin(const struct server_limits *limits);
int server_port(const struct served *server);
/* As settings name it; static memory. */
const char *server_url(const struct served *server);
/* What it has counted by now, to within a few milliseconds. */
struct qr_model_stats server_stats(const struct served *server);
/* Ends the process; what was recorded stays. */
void server_end(struct served *server);
void server_free(struct served *server);

/* The steady state: a limit a minute lets a beginning through at once, and at the end requests are not full. */
#define SERVER_STEADY_FROM 0.4
#define SERVER_STEADY_TO   0.9
/* Inputs a second of what it answered between the parts `from` and `to` of all its answers, 0 … 1. */
double server_rate(const struct served *server, double from, double to);
/* The inputs a second that the limits allow, with `inputs` in each request. */
double server_capacity(const struct server_limits *limits, double inputs);
