/* What `check` reads of the main database: pages of bounded size, each of one snapshot, and the few rows it may mend.
 * src/check/ decides what is wrong. */
#pragma once

#include "store/items.h"
#include "store/jobs.h"

/* ---- items ---- */

struct qr_check_item {
    qr_uuid id, base_id;
    qr_uuid parent_id; /* as stored: a root's is its base */
    qr_str path;
    int64_t depth, type, status; /* as stored: may be anything */
    bool is_container;
    int64_t generation, live_generation, kept_generation, text_generation, chunk_generation, expanded_generation;
    struct qr_child_counts counts;
    bool expansion_failed;
    qr_str error_code, error_message; /* may be no text at all */
    int64_t chunk_count;
    int64_t stage_jobs; /* open ones of its generation; counted for active items only */
    bool lacks_text;    /* its text was read in this generation or the live one, and there is no artifact of it */
    bool lacks_cleanup; /* it is deleting, and the job it names is not open */
};

struct qr_check_items {
    struct qr_check_item *items; /* in the arena, with everything */
    size_t count;
};
/* Items of the base in the order of their paths, behind `after`. */
qr_rc qr_check_items(struct qr_tx *tx, qr_uuid base_id, qr_str after, int limit, struct qr_arena *arena,
                     struct qr_check_items *ret_page, qr_err *err);
qr_rc qr_check_item(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found,
                    struct qr_check_item *ret_item, qr_err *err);
/* Its children by class, counted. Those of a status that there is not are in none. */
qr_rc qr_check_count_children(struct qr_tx *tx, qr_uuid id, struct qr_child_counts *ret_counts, qr_err *err);
/* Inside a change: the roll-up is the caller's. */
qr_rc qr_check_set_counts(struct qr_tx *tx, qr_uuid id, const struct qr_child_counts *counts, qr_err *err);
/* The next base that items name, whether it is there or not. */
qr_rc qr_check_next_named_base(struct qr_tx *tx, qr_uuid after, bool *ret_found, qr_uuid *ret_id, qr_err *err);
qr_rc qr_check_has_purge(struct qr_tx *tx, qr_uuid item_id, bool *ret_has, qr_err *err);

/* ---- jobs ---- */

struct qr_check_job {
    qr_uuid id, base_id, item_id;
    int64_t queue, state, generation; /* as stored */
    const char *type;
    qr_str code, message;
    /* of open ones */
    bool has_item;
    int64_t item_status, item_generation;
    bool item_is_container;
    qr_str item_path;
    bool has_worker;   /* of running ones */
    bool is_abandoned; /* blocked, and no job of its serial key is in front of it */
};
/* By id, behind `after`. */
qr_rc qr_check_jobs(struct qr_tx *tx, qr_uuid after, int limit, struct qr_arena *arena, struct qr_check_job **ret_jobs,
                    size_t *ret_count, qr_err *err);

/* The next running run; items at work of it are counted. *ret_is_settled: nothing of its base is deleting, so that they must
 * be as many as it says. */
struct qr_check_run {
    qr_uuid id, base_id;
    int64_t active, counted;
    bool is_settled;
};
qr_rc qr_check_next_run(struct qr_tx *tx, qr_uuid after, bool *ret_found, struct qr_check_run *ret_run, qr_err *err);

/* ---- what belongs to items ---- */

struct qr_check_belonging {
    qr_uuid id, base_id, item_id;
    int64_t generation, size_bytes;
    const char *file; /* of an artifact; "" = none */
    bool has_item;
};
struct qr_check_belongings {
    struct qr_check_belonging *rows;
    size_t count;
};
/* Artifact rows by id, asset rows by (id, generation); behind `after`. */
qr_rc qr_check_artifacts(struct qr_tx *tx, qr_uuid after, int limit, struct qr_arena *arena,
                         struct qr_check_belongings *ret_page, qr_err *err);
qr_rc qr_check_assets(struct qr_tx *tx, qr_uuid after, int64_t after_generation, int limit, struct qr_arena *arena,
                      struct qr_check_belongings *ret_page, qr_err *err);
/* Only while there is no item; *ret_removed says whether it was so. */
qr_rc qr_check_remove_artifact(struct qr_tx *tx, qr_uuid id, bool *ret_removed, qr_err *err);
qr_rc qr_check_remove_asset(struct qr_tx *tx, qr_uuid id, int64_t generation, bool *ret_removed, qr_err *err);
