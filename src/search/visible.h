/* What is hidden, remembered: so that a search over mostly hidden rows passes over them without asking the main database
 * about each.
 *
 * V1  It is right in one direction: what it calls hidden was hidden when the search began. What it does not know is judged
 *     by the main database, as is everything that is shown (S1).
 * V2  Whatever hides something is a set: the ids below a container that is deleting or not enabled, or those items that are
 *     deleting each for itself. Ids are never used again and items never move, so a set holds as long as its container
 *     hides, which is looked at again whenever the base's vis_seq has risen.
 * V3  It is learned only when hits were hidden, and is bounded: by sets a base, bases, and ids in all. A part of a set is as
 *     right as all of it. The base that was searched longest ago is forgotten first. */
#pragma once

#include "store/items.h"

enum {
    QR_HIDDEN_SETS_MAX = 32,      /* of a base */
    QR_HIDDEN_IDS_MAX = 2 << 20,  /* of all bases: 32 MB */
    QR_HIDDEN_PART_MAX = 1 << 16, /* what may be learned in the hope that it is worth it */
};

/* What is known of all bases. Shared by all threads. */
struct qr_visible_memory;
qr_rc qr_visible_memory_create(struct qr_visible_memory **ret_memory, qr_err *err);
void qr_visible_memory_free(struct qr_visible_memory *memory);
/* How many ids it holds. */
size_t qr_visible_memory_ids(struct qr_visible_memory *memory);

/* What one search knows. Without a memory (NULL) it begins with nothing. Also to be ended when it could not begin. */
struct qr_hidden_set;
struct qr_hidden {
    struct qr_visible_memory *memory;
    struct qr_db *db;
    qr_uuid base_id;
    struct qr_hidden_set *sets[QR_HIDDEN_SETS_MAX];
    size_t count;
};
qr_rc qr_hidden_begin(struct qr_hidden *hidden, struct qr_visible_memory *memory, struct qr_db *db, qr_uuid base_id,
                      qr_err *err);
void qr_hidden_done(struct qr_hidden *hidden);

bool qr_hidden_has(const struct qr_hidden *hidden, qr_uuid item_id);

/* Learns at most `ids_max` of what is below the container with that path, if it still hides. */
qr_rc qr_hidden_learn_below(struct qr_hidden *hidden, qr_str root_path, size_t ids_max, qr_err *err);
/* The same of the items that are deleting each for itself. */
qr_rc qr_hidden_learn_deleting(struct qr_hidden *hidden, size_t ids_max, qr_err *err);
