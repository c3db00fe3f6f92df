/* An open data folder: what every route works on. Behind `struct quire` of the public header. */
#pragma once

#include "api/health.h"
#include "api/memo.h"
#include "api/meter.h"
#include "base/config.h"
#include "base/fs.h"
#include "base/sync.h"
#include "base/uuid.h"
#include "db/db.h"
#include "embed/providers.h"
#include "handler/vector_counts.h"
#include "index/index.h"
#include "remote/endpoint.h"
#include "search/visible.h"
#include "workflow/workflow.h"

#include <stdatomic.h>

/* What is configured. One that was replaced stays until the end, since requests may still look at it; that happens only when
 * somebody has changed something. */
struct qr_instance_settings {
    struct qr_config config;
    struct qr_instance_settings *before;
};

struct quire {
    _Atomic(struct qr_instance_settings *) settings; /* never NULL once it is open; by qr_instance_config */
    const struct qr_io *io;
    const struct qr_clock *clock;
    struct qr_rand *rand;
    struct qr_uuid_gen ids;
    struct qr_file_lock lock; /* not held on PostgreSQL */
    struct qr_db *db;
    struct qr_artifacts artifacts;
    struct qr_index_set *index;
    struct qr_visible_memory *visible;   /* of searches */
    struct qr_endpoints *endpoints;      /* servers elsewhere that it works with */
    struct qr_providers *providers;      /* embedding models */
    struct qr_vector_counts counts;      /* of the vector cache, that are not stored yet */
    struct qr_embed_counts embed_counts; /* of the models */
    struct qr_meter meter;
    struct qr_health health;
    struct qr_memo memo;           /* answers that are given again */
    struct qr_mutex openapi_lock;  /* holds what follows */
    struct qr_buf openapi_json;    /* made when it is first asked for; api/openapi.c */
    struct qr_buf openapi_page;    /* the same for people */
    struct qr_event_hub *events;   /* those who follow them */
    _Atomic bool are_refused_left; /* jobs that wait for an endpoint that answers again; api/refused.h */
    struct qr_workflow workflow;
    struct qr_work *work;                      /* NULL = this process runs no jobs; api/wire.h */
    struct qr_mutex work_lock;                 /* of `work`, for requests that ask it something */
    char *artifact_dir, *index_dir, *work_dir; /* NULL on PostgreSQL, where the database holds everything */
    char id[QR_UUID_TEXT_SIZE];                /* of this body of data, the same since its first opening */
    char created_at[QR_TIME_TEXT_SIZE];
    _Atomic int models_waiting; /* requests that wait for a model in a thread of the server; api/places.h */
    _Atomic bool is_waiting_over;
    _Atomic uint64_t audit_lost;   /* lines that could not be written; api/audit.h */
    _Atomic uint64_t audit_untold; /* of these, that no later line has told of */
};

struct qr_instance_options {
    const struct qr_config_flag *settings; /* data.dir must be among them */
    size_t setting_count;
    const char *program;          /* who holds the folder, for others */
    const struct qr_io *io;       /* NULL = the system's */
    const struct qr_clock *clock; /* NULL = the system's, on PostgreSQL the server's */
    struct qr_rand *rand;         /* NULL = the system's */
};

/* Fails with the codes of qr_db_open, with `data_locked`, and with `data_readonly` where the folder cannot be written.
 */
qr_rc qr_instance_open(struct quire **ret_quire, const struct qr_instance_options *options, qr_err *err);
void qr_instance_close(struct quire *quire);

/* For one look: what is asked for twice may have changed between. */
static inline const struct qr_config *qr_instance_config(const struct quire *quire)
{
    return &quire->settings->config;
}
/* Takes those of the settings that can change while it is open (enum qr_config_when). All of them must be good, also those
 * that are not taken. One thread at a time. */
qr_rc qr_instance_reload(struct quire *quire, const struct qr_config_flag *settings, size_t count, qr_err *err);
