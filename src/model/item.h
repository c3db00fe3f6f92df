/* Items: their types, states and classes as tables, and the pure decisions about them. docs/SEMANTICS.md §2. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* ---- types; stored as these numbers: never renumber ---- */

enum qr_item_type {
    QR_ITEM_DIRECTORY = 1,
    QR_ITEM_FILE = 2,
    QR_ITEM_NOTE = 3,
    QR_ITEM_URL = 4,
};

const char *qr_item_type_name(enum qr_item_type type);
/* 0 when there is none of that name. */
enum qr_item_type qr_item_type_find(qr_str name);

/* ---- status; stored as these numbers: never renumber ---- */

enum qr_item_status {
    QR_ITEM_IDLE = 1,
    QR_ITEM_PREPARING = 2,  /* container: its expansion is queued or running */
    QR_ITEM_PROCESSING = 3, /* leaf: its next stage is queued or waits; container: something below is active */
    QR_ITEM_READING =
        4, /* derived, as EMBEDDING: a leaf that is `processing` and whose stage job runs. Not stored, so */
    QR_ITEM_EMBEDDING = 5, /* that a claim costs no write of the item and a crash leaves nothing untrue behind */
    QR_ITEM_COMPLETED = 6,
    QR_ITEM_FAILED = 7,
    QR_ITEM_DELETING = 8, /* one-way */
};

/* SQL: the stored states in which an item waits for a stage job; a container that is `processing` does not. */
#define QR_ITEM_ACTIVE_SQL "(2, 3)"

const char *qr_item_status_name(enum qr_item_status status);
enum qr_item_status qr_item_status_find(qr_str name);
bool qr_item_status_is_active(enum qr_item_status status);
bool qr_item_status_is_terminal(enum qr_item_status status);
/* Whether the status may follow; the one setter asserts it. */
bool qr_item_status_may_become(enum qr_item_status from, enum qr_item_status to);

/* ---- roll-up (STATE-5, STATE-6) ---- */

/* The children of a container by class; those that are deleting do not count. */
struct qr_child_counts {
    int64_t completed, failed, active, idle;
};

/* Adds `by` (1, -1) to the class of the status. */
void qr_child_counts_add(struct qr_child_counts *counts, enum qr_item_status status, int64_t by);
/* What a container that is neither preparing nor deleting is. */
enum qr_item_status qr_item_roll_up(const struct qr_child_counts *counts, bool expansion_failed, bool is_expanded);

/* ---- what is derived in answers (STATE-1, STATE-2) ---- */

struct qr_item_progress {
    enum qr_item_status status;
    bool is_container;
    int64_t generation, live_generation, text_generation, expanded_generation;
    bool was_claimed; /* a stage job of this generation was begun */
};
const char *qr_item_index_status(const struct qr_item_progress *item);
const char *qr_item_document_status(const struct qr_item_progress *item);

/* ---- stages of a leaf that a run asks for (PROC-1); bits ---- */

enum {
    QR_WANT_PROCESS = 1, /* read and convert; for containers: expand */
    QR_WANT_CHUNK = 2,
    QR_WANT_ASSETS = 4,
    QR_WANT_INDEX = 8,
    QR_WANT_ALL = 15,
};

/* The one that its generation needs next, whether it is asked for or not; 0 = none. `done_generation` is that of a leaf which is
 * live, or was found to come to what is live (REIDX-7). */
int64_t qr_item_needs(bool is_container, int64_t generation, int64_t text_generation, int64_t chunk_generation,
                      int64_t done_generation, int64_t expanded_generation);

enum { QR_ITEM_DEPTH_MAX = 60 };
