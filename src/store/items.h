/* Items: rows, the tree, looking things up. Changing them: store/change.h. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"
#include "db/db.h"
#include "model/item.h"

struct qr_item {
    qr_uuid id, base_id;
    qr_uuid parent_id; /* all zero = a root */
    int64_t depth;     /* 0 = a root */
    qr_str path;       /* the ids of its ancestors from the root on, then its own: a subtree is a range of paths */
    enum qr_item_type type;
    bool is_container;
    const char *name; /* for people */
    qr_str key;       /* unique among the living of a parent. Children: the name inside it, raw; roots: their id */
    qr_str source;    /* path or URL, raw bytes; empty = Quire owns the bytes */
    bool no_links; /* a key named the path, or that of a folder above: it has no link, and none is followed (KEY-7) */
    const char *mime; /* "" = not known yet */
    int64_t size_bytes, mtime_ns;
    bool has_hash;
    unsigned char content_hash[16];
    /* all that decided what became of the source, of text_generation; false = more than that did (handler/unchanged.h) */
    bool has_made_of;
    unsigned char made_of[16];

    enum qr_item_status status;
    int64_t generation, live_generation;
    int64_t kept_generation; /* the newest that was found to come to what is live, and wrote nothing; 0 = none */
    int64_t text_generation, chunk_generation, expanded_generation;
    int64_t force_generation; /* containers: children that were not scheduled since this expansion are due (reindex) */
    int64_t seen_generation;  /* children: the parent's generation that scheduled them last */
    struct qr_child_counts counts;
    const char *expand_code;                              /* "" = the expansion did not fail */
    const char *error_stage, *error_code, *error_message; /* "" = none */
    int64_t error_generation, error_ms;
    const char *warnings; /* JSON array, "" = none */
    bool enabled;
    const char *attributes;           /* JSON object, "" = none */
    const char *options;              /* how it was added (include, exclude, copy): JSON object, "" = none */
    int64_t chunk_count, token_count; /* of the live generation */
    int64_t wanted;                   /* QR_WANT_*: how far it is to go */
    qr_uuid run_id;                   /* all zero = none */
    const char *ticket;               /* of a converter, "" = none */
    int64_t ticket_ms;                /* since when */
    qr_uuid cleanup_job_id;           /* of a deleting root; all zero = its job could not be queued */
    int64_t created_ms, updated_ms, indexed_ms;

    enum qr_item_status stored_status; /* of the row; store/change.c needs the difference */
    int64_t stored_live_generation;
    bool stored_enabled;
    qr_uuid stored_run_id;
};

/* The newest that came to its end, going live or not (REIDX-7). */
static inline int64_t qr_item_done_generation(const struct qr_item *item)
{
    return QR_MAX(item->live_generation, item->kept_generation);
}

qr_rc qr_item_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_item *ret_item,
                   qr_err *err);
/* The living child of that key. */
qr_rc qr_item_find_key(struct qr_tx *tx, qr_uuid parent_id, qr_str key, struct qr_arena *arena, bool *ret_found,
                       struct qr_item *ret_item, qr_err *err);
/* The oldest living root of that source. */
qr_rc qr_item_find_root(struct qr_tx *tx, qr_uuid base_id, qr_str source, struct qr_arena *arena, bool *ret_found,
                        struct qr_item *ret_item, qr_err *err);
/* The living item of that path or URL, wherever in the tree. */
qr_rc qr_item_find_source(struct qr_tx *tx, qr_uuid base_id, qr_str source, struct qr_arena *arena, bool *ret_found,
                          struct qr_item *ret_item, qr_err *err);
/* The item whose id, as text, begins like this, within the base. `not_found`, `invalid_value` when there are several. */
qr_rc qr_item_find_prefix(struct qr_tx *tx, qr_uuid base_id, qr_str prefix, qr_uuid *ret_id, qr_err *err);

/* Whether one of the item's ancestors, or itself, is deleting; its base is not looked at. */
qr_rc qr_item_path_is_deleting(struct qr_tx *tx, qr_str path, bool *ret_is, qr_err *err);
/* Whether one of its ancestors, or itself, is not enabled. */
qr_rc qr_item_path_is_disabled(struct qr_tx *tx, qr_str path, bool *ret_is, qr_err *err);

/* ---- lists ---- */

/* The order of a list. */
enum qr_item_order {
    QR_ORDER_TREE,    /* the whole tree as it stands; children by name, roots by age */
    QR_ORDER_NAME,    /* by bytes */
    QR_ORDER_CREATED, /* as they were added */
    QR_ORDER_UPDATED,
    QR_ORDER_SIZE,
    QR_ORDER_END,
};

struct qr_item_filter {
    qr_uuid base_id;
    bool has_parent;
    qr_uuid parent_id; /* with has_parent: its children by name, all zero = the roots by age; else the whole tree */
    enum qr_item_status status; /* 0 = any; as stored */
    enum qr_item_type type;     /* 0 = any */
    const char *name_part;      /* NULL = any; the case of ASCII letters does not count */
    qr_str after;               /* from where the answer before ended; empty = from the beginning */
    enum qr_item_order order;
    bool is_backward; /* not of QR_ORDER_TREE */
    int limit;
};
/* Never what is deleting. Looks at a bounded number of rows, so it may return fewer than there are: *ret_next, in the arena,
 * is where to go on, empty at the end. `invalid_value` for an `after` of a list in another order. */
qr_rc qr_items_list(struct qr_tx *tx, const struct qr_item_filter *filter, struct qr_arena *arena,
                    struct qr_item **ret_items, size_t *ret_count, qr_str *ret_next, qr_err *err);

/* What is in a container, at any depth, from the counters of the containers in it: costs what there is of those. What is below
 * something that is deleting may still count. */
struct qr_item_totals {
    int64_t containers; /* below it */
    int64_t leaves, completed, failed, active, idle;
};
qr_rc qr_items_totals(struct qr_tx *tx, const struct qr_item *container, struct qr_item_totals *ret_totals,
                      qr_err *err);
/* How many of all bases are not at rest. Counts at most `limit` of each. */
struct qr_item_counts {
    int64_t idle, active, deleting;
};
qr_rc qr_items_count(struct qr_tx *tx, int64_t limit, struct qr_item_counts *ret_counts, qr_err *err);
/* How many are at rest, a part of them at a time: `limit` items of all bases in the order of their ids, behind `after`, are added to the
 * counts, and `after` becomes the last one. All zero at the end. */
struct qr_rest_counts {
    qr_uuid after;
    int64_t completed, failed;
};
qr_rc qr_items_count_rest(struct qr_tx *tx, int64_t limit, struct qr_rest_counts *counts, qr_err *err);

/* Living children of a container in the order of their keys, above `after_key`; light rows for reconciling. */
struct qr_child_row {
    qr_uuid id;
    enum qr_item_type type;
    enum qr_item_status status;
    qr_str key;
    int64_t size_bytes, mtime_ns;
    int64_t generation, seen_generation;
    const char *error_code;
};
qr_rc qr_items_children(struct qr_tx *tx, qr_uuid parent_id, qr_str after_key, int limit, struct qr_arena *arena,
                        struct qr_child_row **ret_rows, size_t *ret_count, qr_err *err);

/* Items of a subtree, the root included, in the order of their paths: from `after` (empty = from the root) on, or with
 * `backward` from `after` (empty = the end) down, so that children come before their parents. */
qr_rc qr_items_subtree(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, qr_str after, bool backward, int limit,
                       struct qr_arena *arena, struct qr_item **ret_items, size_t *ret_count, qr_err *err);

/* What of the subtree is not at rest, by status: what is `idle` or active and not below something that is deleting. Stops
 * counting at `limit`. Costs what it finds, not what is there. */
struct qr_status_counts {
    int64_t of[QR_ITEM_DELETING + 1];
    int64_t total;
};
qr_rc qr_items_count_open(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, int64_t limit,
                          struct qr_status_counts *ret_counts, qr_err *err);

/* Whether something in the subtree is deleting. Costs what is there: for requests that people make. */
qr_rc qr_items_has_deleting(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, bool *ret_has, qr_err *err);

/* Leaves of the subtree and their chunks, of at most `limit` items. */
qr_rc qr_items_sum_subtree(struct qr_tx *tx, qr_uuid base_id, qr_str root_path, int64_t limit, int64_t *ret_leaves,
                           int64_t *ret_chunks, int64_t *ret_tokens, qr_err *err);

/* Idle items of the base that need this stage next (a bit of QR_WANT_*), in the order of depth and id. */
qr_rc qr_items_idle(struct qr_tx *tx, qr_uuid base_id, int64_t needs, int limit, struct qr_arena *arena,
                    struct qr_item **ret_items, size_t *ret_count, qr_err *err);
/* Items of the run that are at work: with an open stage job. */
qr_rc qr_items_of_run(struct qr_tx *tx, qr_uuid run_id, qr_uuid after_id, int limit, struct qr_arena *arena,
                      struct qr_item **ret_items, size_t *ret_count, qr_err *err);
/* Whether it waits for a stage job: an active leaf, or a container that is being expanded. */
static inline bool qr_item_is_at_work(bool is_container, enum qr_item_status status)
{
    return status == QR_ITEM_PREPARING || (!is_container && status == QR_ITEM_PROCESSING);
}

/* RETRY-3: what another attempt is for; a container that is failed only because of what is in it is not. */
static inline bool qr_item_has_failed_itself(const struct qr_item *item)
{
    return item->status == QR_ITEM_FAILED && (!item->is_container || item->expand_code[0]);
}

/* ---- for recovery and check: across bases, in the order of ids, bounded ---- */

/* Active leaves and preparing containers without an open stage job, among the next `limit` active items behind *cursor,
 * which is moved on; at the end it is empty again. */
struct qr_item_cursor {
    qr_uuid base_id;
    char path[(QR_ITEM_DEPTH_MAX + 1) * QR_UUID_BYTES];
    size_t path_len;
};
qr_rc qr_items_without_job(struct qr_tx *tx, struct qr_item_cursor *cursor, int limit, struct qr_arena *arena,
                           struct qr_item **ret_items, size_t *ret_count, qr_err *err);
/* Deleting roots (their parent is not deleting) of bases that are not; whether a job has them is the caller's to see. */
qr_rc qr_items_deleting_roots(struct qr_tx *tx, qr_uuid after, int limit, struct qr_arena *arena,
                              struct qr_item **ret_items, size_t *ret_count, qr_err *err);

/* ---- history: why a generation was raised ---- */

qr_rc qr_item_note_generation(struct qr_tx *tx, qr_uuid item_id, int64_t generation, const char *reason, qr_err *err);
struct qr_generation_note {
    int64_t generation, at_ms;
    const char *reason; /* "update", "reindex", "retry", "stale_takeover", "refresh", "assets", "restore", "expand" */
};
qr_rc qr_item_generations(struct qr_tx *tx, qr_uuid item_id, struct qr_arena *arena,
                          struct qr_generation_note **ret_notes, size_t *ret_count, qr_err *err);
