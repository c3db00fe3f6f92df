/* What handlers work with, and what they all do first. */
#pragma once

#include "artifact/artifact.h"
#include "convert/analyser.h"
#include "convert/processor.h"
#include "convert/reader.h"
#include "embed/providers.h"
#include "handler/vector_counts.h"
#include "index/index.h"
#include "job/handler.h"
#include "model/job_type.h"
#include "model/settings.h"
#include "remote/endpoint.h"
#include "store/bases.h"
#include "store/items.h"

struct qr_handler_context {
    struct qr_db *db;
    struct qr_uuid_gen *ids;
    struct qr_index_set *index;
    const struct qr_artifacts *artifacts;
    struct qr_reader *reader;        /* through which foreign bytes are converted */
    const char *work_dir;            /* for converters that leave files */
    struct qr_endpoints *endpoints;  /* servers elsewhere; NULL in tests that need none */
    struct qr_providers *providers;  /* of embeddings */
    struct qr_vector_counts *counts; /* of the vector cache; NULL = nobody counts */
    /* Tests put their own here; NULL = by the base's settings. */
    struct qr_processor *processor;
    struct qr_analyser *analyser;
};

/* The handlers of all job types; `context` must outlive the runner. Returns how many (QR_JOB_TYPE_END - 1). */
size_t qr_handlers(struct qr_handler_context *context, struct qr_handler ret_handlers[static QR_JOB_TYPE_END]);
