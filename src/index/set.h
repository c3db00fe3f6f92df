/* The open stores. Private to src/index/. */
#pragma once

#include "base/map.h"
#include "base/sync.h"
#include "index/row_lengths.h"
#include "index/rows.h"
#include "index/vector_arrays.h"
#include "index/word_counts.h"

enum { TOKENIZERS_MAX = 4 };

enum store_state { STORE_OPENING, STORE_OPEN, STORE_CLOSING };

struct index_store {
    qr_uuid base_id;
    struct qr_db *db;         /* belongs to whoever opens or closes it; may be used while taken */
    struct word_counts words; /* these two have locks of their own; not of PostgreSQL */
    struct row_lengths lengths;
    struct made_rows made; /* belongs to the write transaction */

    /* under the set's lock */
    enum store_state state;
    int users;
    bool is_leaving;      /* is to be dropped: nobody may take it any more */
    uint64_t last_use;    /* by the set's count of uses */
    uint64_t writes;      /* so many were made */
    uint64_t synced;      /* so many of them are durable */
    uint64_t searchable;  /* so many of them the text search knows; 0 = nobody has looked */
    size_t lagging_bytes; /* of text that it does not know, about */
    bool has_stamp;       /* `stamp` is what the file says: it is asked for before every document */
    uint64_t stamp_sets;  /* so often somebody began or ended to set it */
    char stamp[QR_INDEX_STAMP_SIZE];
};

struct qr_index_set {
    /* set at open, never changed */
    char *dir; /* NULL = PostgreSQL */
    char *vfs;
    const struct rows_driver *rows;
    struct qr_index_options options;
    struct index_store shared;    /* PostgreSQL: the one place for all bases */
    struct vector_arrays vectors; /* has a lock of its own; not of PostgreSQL */

    struct qr_mutex lock;  /* guards everything below */
    struct qr_map stores;  /* base id → struct index_store */
    struct qr_map retired; /* base ids: never to be made again */
    struct qr_signal changed;
    uint64_t uses;
    struct qr_tokenizer *tokenizers[TOKENIZERS_MAX]; /* those that nobody uses: they know words already */
    size_t tokenizer_count;

    /* Held on PostgreSQL while a write waits for its guard: both need a connection of the same pool, and writes that hold
     * the last ones would wait for each other. */
    struct qr_mutex guard_turn;
};

/* The base's store, opened where needed; it stays open until it is given back. */
qr_rc qr_index_take(struct qr_index_set *set, qr_uuid base_id, struct index_store **ret_store, qr_err *err);
void qr_index_give(struct qr_index_set *set, struct index_store *store);
/* For making words (made.h). */
qr_rc qr_index_take_tokenizer(struct qr_index_set *set, struct qr_tokenizer **ret_tokenizer, qr_err *err);
void qr_index_give_tokenizer(struct qr_index_set *set, struct qr_tokenizer *tokenizer);
bool qr_index_is_retired(struct qr_index_set *set, qr_uuid base_id);

/* Takes a store and gives it back at the end of the scope. */
struct index_taken {
    struct qr_index_set *set;
    struct index_store *store;
};
static inline void qr_index_give_back(struct index_taken *taken)
{
    if (taken->store) {
        qr_index_give(taken->set, taken->store);
    }
}
#define TAKE(name, set, base_id, err)                                                                                  \
    QR_CLEANUP(qr_index_give_back) struct index_taken name = {(set), NULL};                                            \
    QR_TRY(qr_index_take((set), (base_id), &name.store, (err)))

/* Brings the text search up to what X6 says. Mostly it is; not where an earlier process left rows behind. Where nothing can be
 * written, it stays as it is. */
qr_rc qr_index_make_searchable(struct qr_index_set *set, struct index_store *store, qr_err *err);
