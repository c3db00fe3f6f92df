/* The index stores of the bases: chunk rows with their vectors, and what finds them. First form: rows and FTS5 in one
 * SQLite file a base, on PostgreSQL tables of the main database. Derived: everything can be rebuilt from stored text.
 *
 * X1  A row belongs to (item, generation, ordinal). Rows of a generation are written before it goes live and never after. A
 *     row may have a vector of each of several models; those of a model that is not in use yet are added at any time.
 * X2  Whoever writes rows names a guard. It is asked after the store's write lock is held; when it says no, nothing is
 *     written. So a job that lost its right writes nothing behind the one who takes its rows away.
 * X3  Writes are relaxed. qr_index_sync makes all writes before it durable; the caller swaps only after that, and purges
 *     only after the swap is durable. A delete is repeatable.
 * X4  A store carries a stamp. The main database knows it too; where they differ the store is not this base's store: the
 *     caller rebuilds it.
 * X5  Stores are opened on demand and closed when others are needed more; at most `open_max` at a time.
 * X6  A search knows what was in the store when it was opened, and what was synced before the search began; of what was
 *     written since it may know some. Nothing else can be shown (X3), so it waits for no writer: only the first search of a
 *     store that was just opened does, where rows were left that the text search did not know. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/rand.h"
#include "base/uuid.h"
#include "db/db.h"
#include "text/language.h"
#include "text/query.h"

struct qr_index_set;
struct qr_tokenizer;

struct qr_index_options {
    const char *dir;       /* of the files, one a base; NULL = PostgreSQL: in the database below */
    struct qr_db *main_db; /* used only where dir is NULL */
    int open_max;          /* 0 = 32 */
    /* files: so much memory for vectors of all bases, so that a search does not read their rows; 0 = 256 MB, below 0 = none */
    int64_t vector_bytes_max;
    const char *vfs; /* tests */
    const struct qr_io *io;
    const struct qr_clock *clock;
    struct qr_rand *rand;
    bool single_thread; /* as in qr_db_options */
};

qr_rc qr_index_set_open(struct qr_index_set **ret_set, const struct qr_index_options *options, qr_err *err);
void qr_index_set_close(struct qr_index_set *set);
/* How many stores are open now. */
int qr_index_open_count(struct qr_index_set *set);

/* Every call below opens the base's store where needed, and makes it where there is none. `data_corrupt` and `data_foreign`
 * mean that it must be dropped and rebuilt. */

/* ---- stamp ---- */

enum { QR_INDEX_STAMP_SIZE = 40 };
/* "" for a store that was just made. */
qr_rc qr_index_stamp(struct qr_index_set *set, qr_uuid base_id, char ret_stamp[static QR_INDEX_STAMP_SIZE],
                     qr_err *err);
qr_rc qr_index_set_stamp(struct qr_index_set *set, qr_uuid base_id, const char *stamp, qr_err *err); /* durable */
/* Removes the store, however damaged. Repeatable. */
qr_rc qr_index_drop(struct qr_index_set *set, qr_uuid base_id, qr_err *err);
/* The same for a base that goes: from now on every call about it but these two and qr_index_sync is `not_found`, so that a
 * handler that has not noticed yet does not make the store again behind the one who removed it. */
qr_rc qr_index_retire(struct qr_index_set *set, qr_uuid base_id, qr_err *err);

/* ---- copying; of files only ---- */

/* As qr_db_copy. Beside work it is exact to a commit: what was written and not yet relied on may be in it or not. */
qr_rc qr_index_copy(struct qr_index_set *set, qr_uuid base_id, const char *path, int64_t *ret_commit, qr_err *err);
/* As qr_db_last_commit; begins anew in a store that was dropped and made again, which then has another stamp. */
qr_rc qr_index_last_commit(struct qr_index_set *set, qr_uuid base_id, int64_t *ret_commit, qr_err *err);

/* ---- writing ---- */

struct qr_chunk {
    int64_t ordinal;
    qr_str text;
    int64_t start, end; /* bytes of the canonical text */
    int64_t line_start, line_end;
    int64_t page;   /* 0 = none */
    qr_str heading; /* the path of headings, "A > B"; empty = none */
    int64_t token_count;
    qr_str title; /* of the item, for searching; the same in all chunks */
};

/* QR_OK: still wanted. Runs on the store's writer thread: it may read the main database, and nothing else. */
typedef qr_rc qr_index_guard_fn(void *arg, qr_err *err);
struct qr_index_guard {
    qr_index_guard_fn *fn; /* NULL = always wanted */
    void *arg;
};

/* Replaces what there is of (item, generation) from the first chunk's ordinal on: a first batch (ordinal 0), or an empty
 * one, clears the generation's rows (GEN-2). Ordinals grow. A large batch is written in several steps, each after its own
 * look at the guard; one that fails may leave the first of them. */
qr_rc qr_index_write_chunks(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                            const struct qr_chunk *chunks, size_t count, const struct qr_index_guard *guard,
                            qr_err *err);
/* Several small documents of a base for the price of one commit: each as if qr_index_write_chunks had got all its chunks. The
 * guard is asked about all that one transaction will write; those that it does not want are left out. */
struct qr_index_document {
    qr_uuid item_id;
    int64_t generation;
    const struct qr_chunk *chunks;         /* to be written, or … */
    const struct qr_chunk_vector *vectors; /* … those of chunks that are there */
    size_t count;
    const void *owner; /* for the guard */
    bool is_wanted;    /* what it said */
};
/* As qr_index_guard_fn; sets is_wanted of each. */
typedef qr_rc qr_index_documents_guard_fn(struct qr_index_document *documents, size_t count, void *arg, qr_err *err);
qr_rc qr_index_write_documents(struct qr_index_set *set, qr_uuid base_id, struct qr_index_document *documents,
                               size_t count, qr_index_documents_guard_fn *guard, void *arg, qr_err *err);
/* Whose vectors: those of one model never mix with those of another. */
struct qr_vector_space {
    int64_t model; /* qr_model_key; never 0 */
    int dimension;
};
/* Vectors of chunks; `dimension` floats each. A chunk that failed for good: vector NULL. `not_found`: no such chunk. */
struct qr_chunk_vector {
    int64_t ordinal;
    const float *vector;
};
qr_rc qr_index_write_vectors(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                             struct qr_vector_space space, const struct qr_chunk_vector *vectors, size_t count,
                             const struct qr_index_guard *guard, qr_err *err);
/* The vectors of several documents of a base, as qr_index_write_documents writes their chunks. */
qr_rc qr_index_write_vectors_of(struct qr_index_set *set, qr_uuid base_id, struct qr_vector_space space,
                                struct qr_index_document *documents, size_t count, qr_index_documents_guard_fn *guard,
                                void *arg, qr_err *err);
/* X3, X6. */
qr_rc qr_index_sync(struct qr_index_set *set, qr_uuid base_id, qr_err *err);

/* ---- removing; relaxed, repeatable ---- */

qr_rc qr_index_delete_items(struct qr_index_set *set, qr_uuid base_id, const qr_uuid *item_ids, size_t count,
                            qr_err *err);
/* All generations of the item but these two (0 = none), and but those above the wanted one: they began after the caller
 * looked. */
qr_rc qr_index_purge_item(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t live_generation,
                          int64_t wanted_generation, qr_err *err);

/* Vectors of all models but these, in steps of limited size, each after its own look at the guard; at least one step is made,
 * so that it comes after whatever was written before. */
qr_rc qr_index_keep_models(struct qr_index_set *set, qr_uuid base_id, const int64_t *models, size_t count,
                           const struct qr_index_guard *guard, qr_err *err);

/* ---- reading ---- */

struct qr_chunk_row {
    qr_uuid item_id;
    int64_t generation;
    struct qr_chunk chunk;       /* texts are in the arena */
    bool has_vector, has_failed; /* of the model that was asked about */
};
/* Chunks of (item, generation) from `from_ordinal` on, and what they have of the model (0 = none). */
qr_rc qr_index_chunks(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                      int64_t from_ordinal, int64_t model, int limit, struct qr_arena *arena,
                      struct qr_chunk_row **ret_rows, size_t *ret_count, qr_err *err);
/* Only those that have no vector of the model and have not failed. */
qr_rc qr_index_chunks_without_vector(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                                     int64_t from_ordinal, int64_t model, int limit, struct qr_arena *arena,
                                     struct qr_chunk_row **ret_rows, size_t *ret_count, qr_err *err);

/* Chunks of an item that stand one behind the other. */
struct qr_chunk_span {
    qr_uuid item_id;
    int64_t generation, first, last;
    struct qr_chunk_row *rows; /* what there is of them, in the arena */
    size_t count;
};
/* Fills in the rows of all, in one read. */
qr_rc qr_index_load_spans(struct qr_index_set *set, qr_uuid base_id, struct qr_chunk_span *spans, size_t count,
                          struct qr_arena *arena, qr_err *err);

/* The same, with what they have of the model, and `rows_max` rows at most: *ret_done spans have all that there is of them, or
 * as much as there was room for. */
qr_rc qr_index_load_spans_upto(struct qr_index_set *set, qr_uuid base_id, int64_t model, struct qr_chunk_span *spans,
                               size_t count, size_t rows_max, struct qr_arena *arena, size_t *ret_done, qr_err *err);

/* What there is, in the order of (item, generation), behind the given pair: for check, purge and the building of vectors. */
struct qr_index_extent {
    qr_uuid item_id;
    int64_t generation, chunk_count;
    int64_t vector_count, failed_count; /* of the model */
};
qr_rc qr_index_extents(struct qr_index_set *set, qr_uuid base_id, int64_t model, qr_uuid after_item,
                       int64_t after_generation, int limit, struct qr_index_extent *ret_extents, size_t *ret_count,
                       qr_err *err);
/* What there is of the (item, generation) that each names: fills in its numbers, all in one read. */
qr_rc qr_index_count_extents(struct qr_index_set *set, qr_uuid base_id, int64_t model, struct qr_index_extent *extents,
                             size_t count, qr_err *err);
/* The models of which there are vectors, at most `limit`. */
qr_rc qr_index_models(struct qr_index_set *set, qr_uuid base_id, int limit, int64_t *ret_models, size_t *ret_count,
                      qr_err *err);

/* ---- searching ---- */

struct qr_index_hit {
    qr_uuid item_id;
    int64_t generation, ordinal;
    double score; /* larger is better */
};

/* For qsort: the better score first; equal ones in the order of (item, generation, ordinal). */
int qr_index_hit_compare(const void *a, const void *b);

/* Asked of candidates inside the scan; false: not to be shown. May be NULL. */
typedef bool qr_index_filter_fn(void *arg, qr_uuid item_id, int64_t generation);

/* The best `limit` chunks that the filter lets through. `query` is what a person typed: words, any of which may match; those
 * of title and heading weigh more. While the storage takes no writes, the last chunks before may be missing. */
qr_rc qr_index_search_text(struct qr_index_set *set, qr_uuid base_id, qr_str query, int limit,
                           qr_index_filter_fn *filter, void *arg, struct qr_index_hit *ret_hits, size_t *ret_count,
                           qr_err *err);
/* The same for a query with phrases, fields and exclusions. */
struct qr_text_query {
    const struct qr_clause *clauses; /* those about items are passed over */
    size_t count;
    bool is_relaxed; /* nothing need occur, and words that begin like one of it fit too */
    struct qr_tokenizer *tokenizer;

    /* what the search says of it */
    bool was_cut;  /* there were more words than are looked for */
    bool left_out; /* words that occur nearly everywhere: they would not change the order */
};
qr_rc qr_index_search_query(struct qr_index_set *set, qr_uuid base_id, struct qr_text_query *query, int limit,
                            qr_index_filter_fn *filter, void *arg, struct qr_index_hit *ret_hits, size_t *ret_count,
                            qr_err *err);
/* Which of the hits fulfil what the query says must occur and must not: for those that something else has found. */
qr_rc qr_index_fits(struct qr_index_set *set, qr_uuid base_id, const struct qr_text_query *query,
                    const struct qr_index_hit *hits, size_t count, bool *ret_fits, qr_err *err);
/* In how many chunks each of the words occurs (of index/words.h, with its other forms), and of how many. Counts may be a
 * little old. */
struct qr_index_totals {
    int64_t rows;
    int64_t places; /* words in them, each as often as it occurs; 0 = not known */
};
qr_rc qr_index_count_words(struct qr_index_set *set, qr_uuid base_id, const qr_str *words, size_t count,
                           int64_t *ret_counts, struct qr_index_totals *ret_totals, qr_err *err);
/* The languages of what is in the store. */
qr_rc qr_index_languages(struct qr_index_set *set, qr_uuid base_id, qr_languages *ret_languages, qr_err *err);
/* By cosine, exact. Vectors of another model or dimension are passed over. */
qr_rc qr_index_search_vector(struct qr_index_set *set, qr_uuid base_id, struct qr_vector_space space,
                             const float *vector, int limit, qr_index_filter_fn *filter, void *arg,
                             struct qr_index_hit *ret_hits, size_t *ret_count, qr_err *err);
