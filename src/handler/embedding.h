/* Vectors for the chunks that have none. */
#pragma once

#include "handler/common.h"

struct qr_embedded {
    int64_t chunk_count, token_count; /* of the generation, when all is done */
    int64_t failed_count;             /* of its chunks, that can never be embedded */
    int64_t shortened_count;          /* that were too long for the model */
};

/* One of several documents that are embedded together. */
struct qr_embed_document {
    struct qr_attempt *attempt; /* that wants it; may be the same for several */
    const struct qr_item *item;
    int64_t generation;
    int64_t model; /* the batcher's: qr_model_key */

    bool is_large; /* it is too large to be done with others, whose thread it would keep: nothing was done */
    qr_rc rc;      /* what came of it */
    qr_err error;
    struct qr_embedded embedded;

    /* under way */
    struct qr_embed_owner owner;
    int64_t next_ordinal, done_count;
    size_t open_count; /* of its chunks, whose vectors are not written yet */
    bool is_read;
    struct qr_embed_document *next;
    void *taken_with; /* of the feed */
};

struct qr_embed_document qr_embed_document_of(struct qr_attempt *attempt, const struct qr_item *item,
                                              int64_t generation, int64_t model);

/* From the cache, else from the model, whose answers are in the cache, durable, before they are used (PAID-1). Each document
 * has its own end: what one meets is not the others' trouble. All are of the batcher's model; NULL = the bases embed nothing,
 * and they are only counted. */
void qr_embed_documents(struct qr_batcher *batcher, struct qr_embed_document *documents, size_t count);
/* The same for documents that come one after the other, for as long as they do. */
struct qr_embed_feed {
    /* Up to `max` documents, one behind the other by `next`; NULL = there are none now. There will be room for `room`. */
    struct qr_embed_document *(*take)(void *arg, size_t max, size_t room);
    /* What came of one is known; it is not looked at any more. */
    void (*end)(void *arg, struct qr_embed_document *document);
    void *arg;
};
void qr_embed_stream(struct qr_batcher *batcher, const struct qr_embed_feed *feed);
/* The same for one, for the live model of its base, and for the wanted one. `stale_generation` also where the models of the
 * base are not those any more that the attempt knows. */
qr_rc qr_embed_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation,
                      struct qr_embedded *ret_embedded, qr_err *err);
qr_rc qr_embed_wanted_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation,
                             struct qr_embedded *ret_embedded, qr_err *err);

/* After qr_outcome_set: what the model puts off waits for as long as the model says (AGAIN-2). */
void qr_embedding_put_off(struct qr_batcher *batcher, struct qr_outcome *outcome);

/* For a base that failed because of its model's dimension: asks the model, and stores what it is now. */
qr_rc qr_embedding_learn_dimension(struct qr_attempt *attempt, qr_err *err);

/* What batchers ask and tell: owners are attempts, vectors go to the cache. */
struct qr_batcher_hooks qr_embedding_hooks(struct qr_db *db);
/* One of them. Under no fence: what was paid for is kept, whoever the jobs belong to by now. */
qr_rc qr_embedding_keep(void *db, const char *fingerprint, int dimension, const struct qr_embed_paid *paid,
                        size_t count, qr_err *err);
