/* What the model server answers to good requests, and its ways to refuse. Private to tests/support/model_*.c. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/sync.h"
#include "support/model_server.h"

enum { QR_MODEL_TASKS_MAX = 256 };

struct qr_model_task { /* a conversion */
    char name[256];
    char *text;
    int polls_left;
    bool has_failed, is_lost;
};

struct qr_model_request {
    char method[8], path[256];
    qr_str head, body; /* both in the connection's buffer */
    enum qr_model_fault fault;
    int64_t fault_number;
};

struct qr_model_answer {
    int status;
    struct qr_buf headers; /* lines with their ends */
    struct qr_buf body;
    const char *type; /* NULL = application/json */
    int64_t inputs, tokens;
};

struct qr_model_tasks {
    struct qr_mutex lock;
    struct qr_model_task all[QR_MODEL_TASKS_MAX];
    int count;
};

void qr_model_vector(qr_str text, int dimension, float *ret_vector);
void qr_model_answer(const struct qr_model_options *options, struct qr_model_tasks *tasks,
                     const struct qr_model_request *request, struct qr_model_answer *answer);
/* The answer of a fault that is one; false for those that are not, or that change a good answer. */
bool qr_model_refuse(enum qr_model_fault fault, int64_t number, const struct qr_model_request *request,
                     struct qr_model_answer *answer);
