/* What stores the rows of a base: one table of functions a database. Private to src/index/.
 *
 * Each function runs inside a transaction of db.h, with one of the requests below as its argument. A write function may
 * run several times; what it returns it sets anew each time. */
#pragma once

#include "index/index.h"
#include "index/made_words.h"

/* A part of a large write: one transaction. */
struct rows_write {
    qr_uuid base_id, item_id;
    int64_t generation;
    int64_t from_ordinal; /* what there is from here on goes */
    const struct qr_chunk *chunks;
    size_t count;
    const struct made_words *words; /* SQLite: of these chunks, from `first_words` on */
    size_t first_words;
    struct made_rows *made; /* where they are kept */
};

struct rows_vectors {
    qr_uuid base_id, item_id;
    int64_t generation;
    struct qr_vector_space space;
    const struct qr_chunk_vector *vectors;
    size_t count;
};

struct rows_delete {
    qr_uuid base_id;
    const qr_uuid *item_ids;
    size_t count;
    int64_t kept_generations[2]; /* 0 = none */
    size_t ret_done;             /* so many items have nothing left; one transaction takes a limited number of rows */
};

enum { KEPT_MODELS_MAX = 3 };

/* Of the models of a base: which there are, or which are to stay. */
struct rows_models {
    qr_uuid base_id;
    int64_t kept[KEPT_MODELS_MAX]; /* 0 = none */
    int limit;
    int64_t *ret_models;
    size_t ret_count;
    bool ret_more; /* there is more to be done in a further transaction */
};

/* One that a base has to itself: its stamp, what is left to be done. */
struct rows_store {
    qr_uuid base_id;
    char stamp[QR_INDEX_STAMP_SIZE];
    int64_t ret_languages;  /* a qr_languages */
    int64_t upto_id;        /* catching up: what is written after the first transaction is not waited for; at first 0 */
    struct made_rows *made; /* catching up: words that are there already */
    bool ret_more;          /* there is more to be done in a further transaction */
};

struct rows_chunks {
    qr_uuid base_id, item_id;
    int64_t generation, from_ordinal;
    int64_t model;
    bool without_vector;
    int limit;
    struct qr_arena *arena;
    struct qr_chunk_row *ret_rows;
    size_t ret_count;
};

struct rows_extents {
    qr_uuid base_id, after_item;
    int64_t after_generation, model;
    int limit;
    struct qr_index_extent *ret_extents;
    size_t ret_count;
};

/* Counts what there is of those that are named. */
struct rows_named {
    qr_uuid base_id;
    int64_t model;
    struct qr_index_extent *extents;
    size_t count;
};

struct word_counts;
struct row_lengths;

struct rows_search {
    qr_uuid base_id;
    struct qr_text_query *query; /* of text */
    struct word_counts *counts;  /* SQLite: what is remembered of the store */
    struct row_lengths *lengths;
    const float *vector; /* of vectors */
    struct qr_vector_space space;
    int limit;
    qr_index_filter_fn *filter;
    void *filter_arg;
    struct qr_index_hit *ret_hits;
    size_t ret_count;
};

struct rows_fits {
    qr_uuid base_id;
    const struct qr_text_query *query;
    const struct qr_index_hit *hits;
    size_t count;
    bool *ret_fits;
};

struct rows_counts {
    qr_uuid base_id;
    struct word_counts *counts; /* NULL = nothing is remembered */
    const qr_str *words;
    size_t count;
    int64_t *ret_counts;
    struct qr_index_totals *ret_totals;
};

struct rows_driver {
    /* Takes the store's write lock (X2), and makes the store where there is none. NULL = every write function has it. */
    qr_tx_fn *lock; /* rows_store */
    qr_tx_fn *write_chunks;
    qr_tx_fn *write_vectors;
    qr_tx_fn *delete_items; /* also of all generations but two */
    qr_tx_fn *keep_models;  /* rows_models */
    /* Brings what lags behind the rows up to them. NULL = nothing does. */
    qr_tx_fn *catch_up; /* rows_store */
    /* After its durable commit everything before it is durable and caught up. */
    qr_tx_fn *sync;                    /* rows_store */
    qr_tx_fn *load_stamp, *save_stamp; /* rows_store */
    qr_tx_fn *load_languages;          /* rows_store */
    qr_tx_fn *drop;                    /* rows_store; NULL = the store is a file */

    qr_tx_fn *chunks;
    qr_tx_fn *extents;
    qr_tx_fn *count_extents; /* rows_named */
    qr_tx_fn *models;        /* rows_models */
    qr_tx_fn *search_text;
    qr_tx_fn *search_vector;
    qr_tx_fn *read_vectors; /* a vector_reading; NULL = none are kept in memory */
    qr_tx_fn *fits;
    qr_tx_fn *count_words;
};

extern const struct rows_driver qr_rows_sqlite;
extern const struct rows_driver qr_rows_postgres;
qr_tx_fn qr_rows_sqlite_search_text, qr_rows_sqlite_search_vector, qr_rows_sqlite_read_vectors, qr_rows_sqlite_fits,
    qr_rows_sqlite_count_words;

/* What is to be added to a chunk's id to get that of its vector, on SQLite; 0 where there is none of the model. */
qr_rc qr_rows_sqlite_vector_offset(struct qr_tx *tx, int64_t model, int64_t *ret_offset, qr_err *err);

extern const struct qr_migration qr_rows_sqlite_migrations[];
extern const size_t qr_rows_sqlite_migration_count;

/* ---- what both share (rows.c) ---- */

static inline struct qr_val rows_id_val(const qr_uuid *id)
{
    return qr_val_blob(id->bytes, QR_UUID_BYTES);
}
/* All zero for anything that is not an id. */
qr_uuid qr_index_rows_id(const struct qr_rows *rows, int column);

/* The vector's floats as bytes; no vector is no byte. */
struct qr_val qr_index_vector_val(const struct qr_chunk_vector *vector, int dimension);

/* The columns of a chunk, and its state: dimension is NULL without a vector and 0 for one that failed. */
#define ROWS_CHUNK_COLUMNS                                                                                             \
    "c.ordinal, c.byte_start, c.byte_end, c.line_start, c.line_end, c.page, c.token_count, c.title, c.heading, "       \
    "c.text, v.dimension"
/* Collects the rows of a query of these columns; closes it. */
qr_rc qr_index_rows_collect(struct qr_rows *rows, struct rows_chunks *request, qr_err *err);
/* Collects the rows (item, generation, chunks, vectors, failures); closes it. */
qr_rc qr_index_rows_collect_extents(struct qr_rows *rows, struct rows_extents *request, qr_err *err);
/* The numbers in the only row; closes it. */
qr_rc qr_index_rows_take_counts(struct qr_rows *rows, struct qr_index_extent *extent, qr_err *err);
/* Collects the models in the first column; closes it. */
qr_rc qr_index_rows_collect_models(struct qr_rows *rows, struct rows_models *request, qr_err *err);
/* The stamp in the first row, "" where there is none. */
void qr_index_rows_stamp(struct qr_rows *rows, struct rows_store *request);
/* The hit in the columns (item, generation, ordinal), without its score. */
struct qr_index_hit qr_index_rows_hit(const struct qr_rows *rows);
bool qr_index_is_kept_model(const struct rows_models *request, int64_t model);
/* A vector has no chunk to belong to. */
qr_rc qr_index_fail_no_chunk(const struct rows_vectors *request, const struct qr_chunk_vector *vector, qr_err *err);
