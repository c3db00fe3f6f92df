/* What the files of the batcher share. Private to src/embed/batcher*.c.
 *
 *     batcher_queue.c  what waits, by length; what goes into a call
 *     batcher_call.c   one call: the look, the provider, what becomes of its texts
 *     batcher.c        those who wait, and the threads that call */
#pragma once

#include "base/hash.h"
#include "base/map.h"
#include "base/sync.h"
#include "embed/batcher.h"
#include "embed/pace.h"

enum {
    BUCKETS = 48,
    BUCKET_QUERIES = BUCKETS, /* those that wait, whatever their length */
    LISTS,
    CALL_THREADS_MAX = 64,
    RECENT_MAX = 256, /* done and remembered for those who looked into the cache a moment too early (M4) */
};

/* A text that somebody waits for, or that is being asked for. */
struct qr_embed_entry {
    struct qr_embed_entry *before, *behind; /* in its list, while it is in line */
    unsigned char key[QR_HASH_BYTES];
    char *text;
    size_t len, kept_len; /* kept_len: what is sent of it */
    int64_t tokens;       /* of what is sent */
    struct qr_embed_input *waiters;
    int ref_count; /* inputs that know it, and the line or the call that has it */
    int64_t arrived_mono_ms;
    bool is_query, is_in_line, is_mapped;
    bool was_bad;        /* it got no vector that can be used, once */
    bool is_urgent;      /* it waited for its first call already */
    int batch_max;       /* at most so many in its call; 0 = as the provider says */
    int limited_count;   /* calls that the provider put off */
    int refused_count;   /* calls with it alone that will never do */
    uint64_t refused_at; /* when the first call with it was refused: so many good answers had come, and one */
    float *vector;       /* when it is done */
    int dimension;       /* of it */
};

struct entry_list {
    struct qr_embed_entry *first, *last;
};

struct qr_batcher {
    struct qr_batcher_options options;
    struct qr_provider *provider;
    struct qr_mutex lock; /* of all below, and of entries and works */
    struct qr_signal changed;
    struct qr_map by_key; /* texts of documents that wait, are asked for, or were done lately (M4) */
    struct entry_list lists[LISTS];
    struct qr_embed_entry *recent[RECENT_MAX]; /* a ring */
    size_t recent_at;
    size_t document_count, urgent_count, query_count; /* in line */
    int64_t document_tokens, document_bytes;
    int64_t tokens_cap;        /* learnt: a call of more than these was too large; 0 = nothing */
    int capped_answers;        /* since then */
    uint64_t answer_count;     /* good ones */
    uint64_t work_count;       /* so far: each has a number of its own */
    _Atomic int dimension;     /* 0 = not known */
    int calls, document_calls; /* under way */
    struct qr_pace pace;       /* of documents */

    struct qr_thread threads[CALL_THREADS_MAX + 1];
    int thread_count, idle_count;
    _Atomic int64_t closing_mono_ms; /* 0 = it is not */
};

/* One call. */
struct call_item {
    struct qr_embed_entry *entry;
    size_t owners_from, owner_count;
    bool has_no_owner; /* somebody wants it in any case */
    bool is_wanted;
};

struct call_owner {
    struct qr_embed_work *work; /* only until the look is over */
    uint64_t work_id;
};

struct call {
    struct qr_batcher *batcher;
    bool is_query;
    struct call_item *items;
    size_t count;
    int64_t tokens;
    struct qr_embed_asked *asked;
    struct call_owner *owners; /* of each asked */
    size_t asked_count;
    qr_str *texts; /* of the wanted ones, as is_bad */
    bool *is_bad;
    struct qr_embed_paid *paid;
    size_t sent_count;
    struct qr_embed_answer answer;
};

/* ---- the line; all with the lock held ---- */

void qr_embed_line_add(struct qr_batcher *batcher, struct qr_embed_entry *entry);
void qr_embed_line_take(struct qr_batcher *batcher, struct qr_embed_entry *entry);
/* Whether a call is to be made at `now`; else *ret_until_mono_ms is when it might be (INT64_MAX = when something changes). */
bool qr_embed_line_is_due(const struct qr_batcher *batcher, bool with_documents, int64_t now_mono_ms,
                          int64_t *ret_until_mono_ms, struct qr_embed_next *ret_next);
/* Takes the entries of the next call out of the line; NULL when out of memory, and nothing was taken. */
struct call *qr_embed_line_take_call(struct qr_batcher *batcher, bool with_documents);
void qr_embed_call_free(struct call *call);

/* ---- entries and works; with the lock held ---- */

void qr_embed_entry_unref(struct qr_embed_entry *entry);
/* Keeps one that is done, and the caller's reference with it. */
void qr_embed_entry_remember(struct qr_batcher *batcher, struct qr_embed_entry *entry);
/* Nobody waits for it any more, or it is at rest. */
void qr_embed_entry_forget(struct qr_batcher *batcher, struct qr_embed_entry *entry);
/* Tells one who waits for it what became of it. */
void qr_embed_entry_tell(struct qr_embed_entry *entry, struct qr_embed_input *input, enum qr_input_state state);
/* Sends no more than so much of it from now on; false when too little would be left. Not while it is in line. */
bool qr_embed_entry_shorten(struct qr_embed_entry *entry, size_t len_max);
/* It is waited for no more. */
void qr_embed_input_drop(struct qr_embed_input *input, enum qr_input_state state);
void qr_embed_input_settle(struct qr_embed_input *input, enum qr_input_state state);
void qr_embed_work_stop(struct qr_embed_work *work, const qr_err *error);

/* Makes the call; the lock is free meanwhile, and held again after it. */
void qr_embed_call_run(struct call *call);
/* It cannot even be begun. */
void qr_embed_line_stop(struct qr_batcher *batcher, const qr_err *error);

int64_t qr_batcher_now(const struct qr_batcher *batcher);
