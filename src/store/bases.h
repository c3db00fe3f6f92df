/* Bases: their rows. What changes items of a base goes through store/change.h, which locks the row. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"
#include "db/db.h"
#include "model/model_key.h"

/* Stored as these numbers: never renumber. */
enum qr_base_status { QR_BASE_READY = 1, QR_BASE_FAILED = 2, QR_BASE_DELETING = 3 };
const char *qr_base_status_name(enum qr_base_status status);

enum { QR_BASE_NAME_BYTES_MAX = 200 };

struct qr_base {
    qr_uuid id;
    const char *name;
    enum qr_base_status status;
    const char *error_code, *error_message; /* "" = none */
    const char *settings;                   /* JSON as given: model/settings.h reads it */
    int64_t version;                        /* of name and settings */
    int64_t vis_seq, event_seq;
    const char *index_stamp; /* the index store must carry the same; "" = it was never made */
    int64_t created_ms, updated_ms;
    /* Settings say which model is wanted. Both are settings with an `embedding` and nothing else. */
    const char *live_embedding;     /* what search uses, until the wanted one is built; "" = the wanted one */
    const char *previous_embedding; /* what was live before, and is kept; "" = none */
    int64_t
        vector_epoch; /* rises when models change and when the index is made anew: who embedded before looks again */
    int64_t build_missed; /* rises when something goes live without vectors of the wanted model: it was not all built */
    int64_t build_failed; /* chunks that the last build could not embed */
    qr_uuid build_job_id; /* the last build; all zero = none */
};

/* Whether the wanted model is not the live one yet. */
static inline bool qr_base_is_building(const struct qr_base *base)
{
    return base->live_embedding[0] != '\0';
}

/* The models of a base: settings and keys, 0 = none. */
struct qr_base_models {
    struct qr_embedding_settings wanted, live, previous;
    int64_t wanted_key, live_key, previous_key;
};
/* Everything pointed to is in the arena. */
qr_rc qr_base_models(const struct qr_base *base, struct qr_arena *arena, struct qr_base_models *ret_models,
                     qr_err *err);

qr_rc qr_base_add(struct qr_tx *tx, qr_uuid id, qr_str name, qr_str settings, qr_err *err); /* `already_exists` */
qr_rc qr_base_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_base *ret_base,
                   qr_err *err);
/* Not those that are deleting: their name is free again. */
qr_rc qr_base_find_name(struct qr_tx *tx, qr_str name, struct qr_arena *arena, bool *ret_found,
                        struct qr_base *ret_base, qr_err *err);
/* By id, those that are not deleting, above `after`. */
qr_rc qr_bases_list(struct qr_tx *tx, qr_uuid after, int limit, bool with_deleting, struct qr_arena *arena,
                    struct qr_base **ret_bases, size_t *ret_count, qr_err *err);
/* Name and settings; `version_conflict` unless the version is the one given (0 = any). */
qr_rc qr_base_set(struct qr_tx *tx, qr_uuid id, int64_t version, qr_str name, qr_str settings, qr_err *err);
qr_rc qr_base_set_status(struct qr_tx *tx, qr_uuid id, enum qr_base_status status, const char *error_code,
                         const char *error_message, qr_err *err);
qr_rc qr_base_set_stamp(struct qr_tx *tx, qr_uuid id, const char *stamp, qr_err *err);
/* Which models are live and previous, as in struct qr_base; the epoch rises. */
qr_rc qr_base_set_models(struct qr_tx *tx, qr_uuid id, const char *live_embedding, const char *previous_embedding,
                         qr_err *err);
qr_rc qr_base_set_build(struct qr_tx *tx, qr_uuid id, qr_uuid job_id, qr_err *err);
qr_rc qr_base_set_build_failed(struct qr_tx *tx, qr_uuid id, int64_t chunk_count, qr_err *err);
qr_rc qr_base_epoch(struct qr_tx *tx, qr_uuid id, int64_t *ret_epoch, qr_err *err); /* -1: the base is gone */
qr_rc qr_base_raise_epoch(struct qr_tx *tx, qr_uuid id, qr_err *err);
qr_rc qr_base_raise_missed(struct qr_tx *tx, qr_uuid id, qr_err *err);
/* The row itself, after everything that belongs to it. */
qr_rc qr_base_remove(struct qr_tx *tx, qr_uuid id, qr_err *err);
qr_rc qr_base_has_items(struct qr_tx *tx, qr_uuid id, bool *ret_has, qr_err *err);
