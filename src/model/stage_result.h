/* What the stages find out: handlers return these, the plan turns them into rows and next jobs. Everything pointed to
 * lives in the arena of the attempt. */
#pragma once

#include "base/str.h"
#include "base/uuid.h"
#include "model/item.h"

struct qr_warning {
    const char *code; /* of API.md: "empty", "no_text", "source_missing" … */
    const char *message;
};

/* ---- prepare-root: one part for each batch of children that changed ---- */

enum { QR_EXPAND_BATCH_MAX = 250 };

enum qr_child_change {
    QR_CHILD_NEW,     /* not known yet */
    QR_CHILD_CHANGED, /* other size or time than recorded */
    QR_CHILD_WANTED,  /* unchanged, but an attempt is due: a reindex that has not reached it, or a failed enqueue */
    QR_CHILD_GONE,    /* known, and not there any more */
};

struct qr_found_child {
    enum qr_child_change change;
    qr_uuid id; /* all zero for a new one */
    enum qr_item_type type;
    qr_str key;    /* the name inside the parent, as the source spells it: any bytes but NUL and '/' */
    qr_str name;   /* for people: valid UTF-8 */
    qr_str source; /* the path to open it by: any bytes */
    int64_t size_bytes, mtime_ns;
    const char *error_code,
        *error_message; /* it cannot be taken (too large …): the item is `failed` with it; NULL = fine */
};

struct qr_expand_part {
    struct qr_found_child *children;
    size_t count;
    bool enqueue_failed; /* the plan's answer: some of them are `failed`, and so must be the job */
};

/* The final result; missing or emptied sources are failures (`source_missing`). */
struct qr_expand_result {
    int64_t seen_count;
    struct qr_warning *warnings;
    size_t warning_count;
};

/* ---- process-document, check-file-processing, chunk-document, index-chunks ---- */

/* How far the attempt has come: small documents go through several stages inside one claim. */
enum qr_reached {
    QR_REACHED_NOTHING,
    QR_REACHED_TICKET,    /* given to a converter: `ticket` */
    QR_REACHED_CONTAINER, /* it holds other files */
    QR_REACHED_UNCHANGED, /* it would come to what is live: nothing was written (REIDX-7) */
    QR_REACHED_TEXT,      /* canonical text is stored (see `text`) */
    QR_REACHED_CHUNKS,    /* and its chunk rows are in the index store */
    QR_REACHED_INDEX,     /* and their vectors; durable before the swap */
};

/* Bytes that the plan makes the item's own: inline, or a file that was written under a temporary name. */
struct qr_new_artifact {
    qr_uuid id;
    int kind; /* enum qr_artifact_kind */
    qr_str bytes;
    const char *file; /* instead of bytes: its name below the artifact folder; NULL = inline */
    int64_t size_bytes;
    unsigned char hash[16];
};

struct qr_new_asset {
    qr_uuid id;
    const char *kind; /* "picture", "table" */
    const char *mime;
    const char *place; /* where in the document, for people */
    bool is_analysed;  /* the same one was in an earlier generation, and its analysis stands */
    struct qr_new_artifact bytes;
};

struct qr_stage_result {
    enum qr_reached reached;
    bool source_was_read; /* the next eight are set */
    int64_t size_bytes, mtime_ns;
    bool has_hash;
    unsigned char content_hash[16];
    bool has_made_of; /* the next is all that decided what became of it */
    unsigned char made_of[16];
    const char *mime;  /* NULL = unknown */
    const char *title; /* NULL = none */
    const char *ticket;
    struct qr_new_artifact *text;   /* NULL when the text was stored before */
    struct qr_new_artifact *source; /* the bytes that were read, where Quire is to own them; NULL = not */
    struct qr_new_asset *assets;
    size_t asset_count;
    int64_t chunk_count, token_count; /* from CHUNKS on */
    int64_t vector_epoch;             /* of the base, when the stage began: from CHUNKS on, and UNCHANGED */
    bool lacks_wanted_vectors;        /* of the model that is being built: those of the live one are there */
    struct qr_warning *warnings;
    size_t warning_count;
};

/* ---- reindex-subtree, restore-base: a part for each batch of items that get the next generation ---- */

enum { QR_RAISE_BATCH_MAX = 100 };

struct qr_raise_part {
    const qr_uuid *ids;
    size_t count;
    const char *reason; /* "reindex", "retry", "restore" */
    bool only_failed;   /* those that are not failed any more are left alone; else roots that are not at rest */
};

/* ---- build-vectors ---- */

/* Every live chunk has its vector of the wanted model, as far as it was known when the base had these numbers, and all of it
 * is durable. */
struct qr_switch_part {
    int64_t vector_epoch, build_missed;
    int64_t failed_count; /* chunks that cannot be embedded */
    bool has_switched;    /* the plan's answer: the wanted model is the live one; else there is more to be built */
};

/* ---- refresh-source ---- */

struct qr_refresh_result {
    bool is_missing_or_unreadable; /* `warning` says why; nothing else changes */
    struct qr_warning warning;
    bool is_changed;
    int64_t size_bytes, mtime_ns;
};

/* ---- analyze-asset ---- */

struct qr_asset_result {
    qr_uuid asset_id;
    qr_str text; /* empty = none was found */
};
