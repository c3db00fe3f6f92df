/* The model server in a process of its own: for tests that fork, which no other thread may run beside. */
#pragma once

#include "support/model_server.h"

#include <sys/types.h>

struct qr_model_apart {
    pid_t pid;
    int to, from; /* pipes */
    char url[64]; /* "http://127.0.0.1:PORT/v1" */
};

/* Before there are threads. */
void qr_model_apart_start(struct qr_model_apart *apart);
void qr_model_apart_stats(struct qr_model_apart *apart, struct qr_model_stats *ret_stats);
void qr_model_apart_stop(struct qr_model_apart *apart);
