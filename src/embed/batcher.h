/* Texts of many come together here, and go to the provider in calls that are worth making. One batcher a provider, shared by
 * all handlers and searches of the process.
 *
 * M1  A call holds texts of about one length, from whoever wants them, within the provider's limits. It is made when it is
 *     full, when the first of its texts has waited for `linger_ms`, or at once for queries, which go before documents and
 *     find a free thread however many documents are under way.
 * M2  Right before the call it is asked whether its texts are still wanted (GEN-1): one look at all of their owners. What is
 *     not wanted is left out, and nothing more of that owner is asked for.
 * M3  What was paid for is kept (PAID-1) before anybody is told of it, also when nobody waits for it any more.
 * M4  A text that is waited for or asked for already is not asked for twice, whoever wants it.
 * M5  What is too large is halved down to one text; then the text is shortened. A text without a vector that can be used is
 *     asked for once more alone, then it has failed. Neither touches the others of its call.
 * M6  Any other failure ends the work of those whose texts were in the call. Where the provider asks for time, and it is not
 *     much, it is waited for here; else the work ends, so that it can be put off durably (AGAIN-2).
 * M7  Memory is bounded by what those who wait have handed in. */
#pragma once

#include "base/clock.h"
#include "embed/provider.h"

struct qr_batcher;

/* Somebody who wants vectors, and who may stop wanting them. */
struct qr_embed_owner {
    const void *arg;  /* for the look */
    bool is_unwanted; /* what was found; then `why` */
    qr_err why;
    qr_err refusal; /* of the last of its texts that failed: what the provider said */
};

struct qr_embed_asked {
    const void *arg; /* of the owner */
    bool is_wanted;  /* the answer; else `why` */
    qr_err why;
};

struct qr_embed_paid {
    qr_str text;         /* the whole, as it was asked for */
    const float *vector; /* of `dimension` floats */
    size_t kept_bytes;   /* of the text: so much was embedded */
};

/* What a process has asked its models for. Added to by any thread. */
struct qr_embed_counts {
    _Atomic uint64_t calls, failed_calls, texts, tokens; /* tokens as the provider counts them */
};

/* What a batcher has to ask and to tell. Each may be NULL. Called from any thread, without locks. */
struct qr_batcher_hooks {
    qr_rc (*look)(void *arg, struct qr_embed_asked *asked, size_t count, qr_err *err);
    /* Durable when it returns. `dimension_mismatch` where the model's vectors had another dimension before. */
    qr_rc (*keep)(void *arg, const char *fingerprint, int dimension, const struct qr_embed_paid *paid, size_t count,
                  qr_err *err);
    /* The dimension that the model's vectors have had so far; 0 = there are none. */
    qr_rc (*dimension)(void *arg, const char *fingerprint, int *ret_dimension, qr_err *err);
    void *arg;
    /* How many texts of documents it embeds a minute; told seldom, after some were kept. */
    void (*pace)(void *arg, const char *fingerprint, int64_t texts_a_minute);
    struct qr_embed_counts *counts;
};

struct qr_batcher_options {
    struct qr_provider *provider; /* must outlive it */
    const struct qr_clock *clock;
    struct qr_batcher_hooks hooks;
};

qr_rc qr_batcher_create(struct qr_batcher **ret_batcher, const struct qr_batcher_options *options, qr_err *err);
/* No work may be under way. NULL is nothing. Calls in flight may take two more seconds. */
void qr_batcher_free(struct qr_batcher *batcher);
struct qr_provider *qr_batcher_provider(struct qr_batcher *batcher);
/* 0 = not known yet: nothing was ever embedded. */
qr_rc qr_batcher_dimension(struct qr_batcher *batcher, int *ret_dimension, qr_err *err);
/* What the model's dimension is now, whatever is stored: one call with a word, if its owner still wants it. Nothing is kept. */
qr_rc qr_batcher_probe(struct qr_batcher *batcher, const void *owner, int *ret_dimension, qr_err *err);
/* What is stored is another one now. */
void qr_batcher_forget_dimension(struct qr_batcher *batcher);
/* How long until the provider takes something again, at least a second: for who was told `rate_limited` or
 * `endpoint_refused`. */
int64_t qr_batcher_wait_ms(struct qr_batcher *batcher);

/* ---- asking ---- */

enum qr_input_state {
    QR_INPUT_WAITING,
    QR_INPUT_DONE,     /* `vector` */
    QR_INPUT_FAILED,   /* it can never be embedded */
    QR_INPUT_UNWANTED, /* its owner's */
    QR_INPUT_STOPPED,  /* the work ended before */
};

struct qr_embed_entry;
struct qr_embed_work;

struct qr_embed_input {
    qr_str text;                  /* valid UTF-8, not empty */
    int64_t tokens;               /* about so many; 0 = estimate them */
    struct qr_embed_owner *owner; /* NULL = wanted in any case */

    /* what came of it, to be read when the work is over */
    enum qr_input_state state;
    const float *vector; /* until the work ends */
    size_t kept_bytes;   /* of the text; less than all: it had to be shortened */
    bool was_there;      /* others had it already: it was kept for them, and may have been evicted since (PAID-2) */

    /* the batcher's */
    struct qr_embed_entry *entry;
    struct qr_embed_input *next_waiter;
    struct qr_embed_work *work;
};

/* Several inputs that are waited for together. Filled in by the caller down to `cancel_arg`; its memory stays in place. */
struct qr_embed_work {
    struct qr_embed_input *inputs;
    size_t count;
    bool is_query;                   /* M1 */
    int64_t deadline_mono_ms;        /* 0 = none; beyond it `timeout` */
    bool (*is_cancelled)(void *arg); /* may be NULL; looked at every second */
    void *cancel_arg;

    int dimension; /* of the vectors, when there are some */
    /* the batcher's */
    struct qr_batcher *batcher;
    uint64_t id;
    size_t waiting_count;
    bool has_failed;
    qr_err error;
    _Atomic int look_count; /* looks at its owners under way */
};

/* Hands them in; then qr_embed_end must be called. */
void qr_embed_begin(struct qr_batcher *batcher, struct qr_embed_work *work);
/* Waits until all are at rest. On failure some may be done all the same, and what was paid for is kept. */
qr_rc qr_embed_wait(struct qr_embed_work *work, qr_err *err);
/* Gives up what is not at rest, and lets go of the vectors. */
void qr_embed_end(struct qr_embed_work *work);
