/* The calls of index.h: each takes the base's store, runs the database's functions in transactions of limited size, and
 * gives the store back. Keeps count of what is not durable and not searchable yet. */
#include "index/index.h"

#include "base/failpoint.h"
#include "index/set.h"

#include <assert.h>

enum {
    WRITE_BYTES_MAX = 256 << 10, /* of one transaction: others may write in between, and the log has room for it */
    WRITE_ROWS_MAX = 256,
    LAGGING_BYTES_MAX = 256 << 10, /* then a writer brings the text search up to date: a search must not wait long */
};

static qr_rc read_store(struct qr_index_set *set, qr_uuid base_id, qr_tx_fn *fn, void *request, qr_err *err)
{
    TAKE(taken, set, base_id, err);
    return qr_db_read(taken.store->db, fn, request, err);
}

/* ---- stamp ---- */

/* False: it must be read; *ret_sets then says when the look began. On PostgreSQL other processes set it too: nobody
 * remembers it. */
static bool remembered_stamp(struct qr_index_set *set, const struct index_store *store,
                             char ret_stamp[static QR_INDEX_STAMP_SIZE], uint64_t *ret_sets)
{
    QR_HOLD(&set->lock);
    *ret_sets = store->stamp_sets;
    if (!set->dir || !store->has_stamp) {
        return false;
    }
    memcpy(ret_stamp, store->stamp, QR_INDEX_STAMP_SIZE);
    return true;
}

/* Unless it was set meanwhile: what we read may be the one before. */
static void remember_stamp(struct qr_index_set *set, struct index_store *store, const char *stamp, uint64_t sets)
{
    QR_HOLD(&set->lock);
    if (store->stamp_sets == sets) {
        store->has_stamp = true;
        memcpy(store->stamp, stamp, QR_INDEX_STAMP_SIZE);
    }
}

static void forget_stamp(struct qr_index_set *set, struct index_store *store)
{
    QR_HOLD(&set->lock);
    store->has_stamp = false;
    store->stamp_sets++;
}

qr_rc qr_index_stamp(struct qr_index_set *set, qr_uuid base_id, char ret_stamp[static QR_INDEX_STAMP_SIZE], qr_err *err)
{
    struct rows_store request = {.base_id = base_id};
    uint64_t sets;
    TAKE(taken, set, base_id, err);
    if (remembered_stamp(set, taken.store, ret_stamp, &sets)) {
        return QR_OK;
    }
    QR_TRY(qr_db_read(taken.store->db, set->rows->load_stamp, &request, err));
    memcpy(ret_stamp, request.stamp, QR_INDEX_STAMP_SIZE);
    remember_stamp(set, taken.store, ret_stamp, sets);
    return QR_OK;
}

qr_rc qr_index_set_stamp(struct qr_index_set *set, qr_uuid base_id, const char *stamp, qr_err *err)
{
    struct rows_store request = {.base_id = base_id};
    const size_t len = strlen(stamp);
    if (len >= sizeof request.stamp) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "a stamp has at most %zu bytes", sizeof request.stamp - 1);
    }
    memcpy(request.stamp, stamp, len);
    TAKE(taken, set, base_id, err);
    forget_stamp(set, taken.store);
    const qr_rc rc = qr_db_write(taken.store->db, QR_DURABLE, set->rows->save_stamp, &request, err);
    forget_stamp(set, taken.store); /* of those who looked while it was written */
    return rc;
}

/* ---- writing ---- */

/* One transaction: the lock, the guard, the change. */
struct change {
    const struct rows_driver *rows;
    qr_uuid base_id;
    const struct qr_index_guard *guard; /* may be NULL */
    bool asks;                          /* `fn` asks a guard itself */
    qr_tx_fn *fn;
    void *request;
};

/* X2: between the guard's answer and the commit nobody else can write. */
static qr_rc run_change(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct change *change = arg;
    if (change->rows->lock) {
        struct rows_store request = {.base_id = change->base_id};
        QR_TRY(change->rows->lock(tx, &request, err));
    }
    if (change->guard && change->guard->fn) {
        QR_TRY(change->guard->fn(change->guard->arg, err));
    }
    return change->fn(tx, change->request, err);
}

static qr_rc run_write(struct qr_tx *tx, void *arg, qr_err *err)
{
    QR_TRY(run_change(tx, arg, err));
    QR_FAILPOINT("index.write.before_commit", err);
    return QR_OK;
}

/* Also of a write that failed: whether it was stored may not be known. True when much text waits for the search. */
static bool count_write(struct qr_index_set *set, struct index_store *store, size_t bytes)
{
    QR_HOLD(&set->lock);
    store->writes++;
    store->lagging_bytes += bytes;
    const bool is_much = store->lagging_bytes > LAGGING_BYTES_MAX;
    if (is_much) {
        store->lagging_bytes = 0; /* one thread cares for it */
    }
    return is_much;
}

/* Gives the writes that will be known when all rows are that there are now. */
static uint64_t begin_catching_up(struct qr_index_set *set, struct index_store *store)
{
    QR_HOLD(&set->lock);
    store->lagging_bytes = 0;
    return store->writes;
}

/* Brings the text search up to what was written before. */
static qr_rc catch_up(struct qr_index_set *set, struct index_store *store, qr_err *err)
{
    if (!set->rows->catch_up) {
        return QR_OK;
    }
    const uint64_t writes = begin_catching_up(set, store);
    struct rows_store request = {.base_id = store->base_id, .made = &store->made};
    do {
        QR_TRY(qr_db_write(store->db, QR_RELAXED, set->rows->catch_up, &request, err));
    } while (request.ret_more);
    QR_HOLD(&set->lock);
    store->searchable = QR_MAX(store->searchable, writes);
    return QR_OK;
}

/* X6: nothing else can be shown, and behind the writer a search would wait for as long as there is something to index. */
static bool is_searchable(struct qr_index_set *set, const struct index_store *store)
{
    QR_HOLD(&set->lock);
    return store->searchable > 0 && store->searchable >= store->synced;
}

/* Where nothing can be written, a search finds what it found before. */
static bool is_no_reason_to_fail(qr_rc rc)
{
    return rc == QR_FULL || rc == QR_IO || rc == QR_DENIED || rc == QR_UNAVAILABLE || rc == QR_TIMEOUT;
}

qr_rc qr_index_make_searchable(struct qr_index_set *set, struct index_store *store, qr_err *err)
{
    const qr_rc rc = is_searchable(set, store) ? QR_OK : catch_up(set, store, err);
    return is_no_reason_to_fail(rc) ? QR_OK : rc;
}

static qr_rc make_write(struct qr_index_set *set, struct index_store *store, struct change *change, size_t bytes,
                        qr_err *err)
{
    change->rows = set->rows;
    const bool takes_turns = !set->dir && (change->asks || (change->guard && change->guard->fn));
    if (takes_turns) {
        qr_mutex_lock(&set->guard_turn);
    }
    const qr_rc rc = qr_db_write(store->db, QR_RELAXED, run_write, change, err);
    if (takes_turns) {
        qr_mutex_unlock(&set->guard_turn);
    }
    const bool is_lagging = count_write(set, store, bytes);
    QR_TRY(rc);
    QR_FAILPOINT("index.write.after_commit", err);
    return is_lagging ? catch_up(set, store, err) : QR_OK;
}

static size_t chunk_bytes(const struct qr_chunk *chunk)
{
    return chunk->text.len + chunk->heading.len + chunk->title.len;
}

/* Before the transaction: the store's writer has enough to do. On PostgreSQL the database makes no use of them. */
static qr_rc make_words(struct qr_index_set *set, struct made_words *words, const struct qr_index_document *documents,
                        size_t count, qr_err *err)
{
    size_t chunks = 0;
    for (size_t i = 0; i < count; i++) {
        chunks += documents[i].count;
    }
    if (!set->dir || chunks == 0) {
        return QR_OK;
    }
    QR_TRY(qr_made_words_init(words, chunks, err));
    struct qr_tokenizer *tokenizer = NULL;
    QR_TRY(qr_index_take_tokenizer(set, &tokenizer, err));
    qr_rc rc = QR_OK;
    for (size_t i = 0; i < count && rc == QR_OK; i++) {
        rc = qr_made_words_add(words, tokenizer, documents[i].chunks, documents[i].count, err);
    }
    qr_index_give_tokenizer(set, tokenizer);
    return rc;
}

/* How many of the chunks go into one transaction. */
static size_t fitting_chunks(const struct qr_chunk *chunks, size_t count, size_t *ret_bytes)
{
    size_t fitting = 0;
    *ret_bytes = 0;
    while (fitting < QR_MIN(count, WRITE_ROWS_MAX) && *ret_bytes < WRITE_BYTES_MAX) {
        *ret_bytes += chunk_bytes(&chunks[fitting++]);
    }
    return fitting;
}

qr_rc qr_index_write_chunks(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                            const struct qr_chunk *chunks, size_t count, const struct qr_index_guard *guard,
                            qr_err *err)
{
    TAKE(taken, set, base_id, err);
    size_t done = 0;
    do {
        size_t bytes;
        QR_CLEANUP(qr_made_words_done) struct made_words words = {0};
        struct rows_write request = {
            .base_id = base_id,
            .item_id = item_id,
            .generation = generation,
            .from_ordinal = done < count ? chunks[done].ordinal : 0,
            .chunks = chunks + done,
            .count = fitting_chunks(chunks + done, count - done, &bytes),
            .words = &words,
            .made = &taken.store->made,
        };
        const struct qr_index_document part = {.chunks = request.chunks, .count = request.count};
        QR_TRY(make_words(set, &words, &part, 1, err));
        struct change change = {.base_id = base_id, .guard = guard, .fn = set->rows->write_chunks, .request = &request};
        const qr_rc rc = make_write(set, taken.store, &change, bytes, err);
        qr_vector_arrays_mark(&set->vectors, base_id, item_id);
        QR_TRY(rc);
        done += request.count;
    } while (done < count);
    return QR_OK;
}

/* Documents that share a transaction. */
struct documents {
    const struct rows_driver *rows;
    qr_uuid base_id;
    struct qr_index_document *documents;
    size_t count;
    qr_index_documents_guard_fn *guard;
    void *arg;
    const struct made_words *words;
    struct made_rows *made;
};

static qr_rc write_documents(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct documents *all = arg;
    size_t words_at = 0;
    QR_TRY(all->guard(all->documents, all->count, all->arg, err)); /* X2 */
    for (size_t i = 0; i < all->count; i++) {
        const struct qr_index_document *document = &all->documents[i];
        struct rows_write request = {
            .base_id = all->base_id,
            .item_id = document->item_id,
            .generation = document->generation,
            .chunks = document->chunks,
            .count = document->count,
            .words = all->words,
            .first_words = words_at,
            .made = all->made,
        };
        words_at += document->count;
        if (document->is_wanted) {
            QR_TRY(all->rows->write_chunks(tx, &request, err));
        }
    }
    return QR_OK;
}

/* How many of the documents go into one transaction; at least one. */
static size_t fitting_documents(const struct qr_index_document *documents, size_t count, size_t *ret_bytes)
{
    size_t fitting = 0, rows = 0;
    *ret_bytes = 0;
    while (fitting < count && rows < WRITE_ROWS_MAX && *ret_bytes < WRITE_BYTES_MAX) {
        const struct qr_index_document *document = &documents[fitting++];
        rows += document->count;
        for (size_t i = 0; i < document->count; i++) {
            *ret_bytes += chunk_bytes(&document->chunks[i]);
        }
    }
    return fitting;
}

qr_rc qr_index_write_documents(struct qr_index_set *set, qr_uuid base_id, struct qr_index_document *documents,
                               size_t count, qr_index_documents_guard_fn *guard, void *arg, qr_err *err)
{
    TAKE(taken, set, base_id, err);
    for (size_t done = 0; done < count;) {
        size_t bytes;
        QR_CLEANUP(qr_made_words_done) struct made_words words = {0};
        struct documents request = {.rows = set->rows,
                                    .base_id = base_id,
                                    .documents = documents + done,
                                    .count = fitting_documents(documents + done, count - done, &bytes),
                                    .guard = guard,
                                    .arg = arg,
                                    .words = &words,
                                    .made = &taken.store->made};
        QR_TRY(make_words(set, &words, request.documents, request.count, err));
        struct change change = {.base_id = base_id, .asks = true, .fn = write_documents, .request = &request};
        const qr_rc rc = make_write(set, taken.store, &change, bytes, err);
        for (size_t i = 0; i < request.count; i++) {
            qr_vector_arrays_mark(&set->vectors, base_id, request.documents[i].item_id);
        }
        QR_TRY(rc);
        done += request.count;
    }
    return QR_OK;
}

static size_t vectors_a_write(struct qr_vector_space space)
{
    return QR_MIN(WRITE_ROWS_MAX, 1 + WRITE_BYTES_MAX / ((size_t)space.dimension * sizeof(float)));
}

qr_rc qr_index_write_vectors(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                             struct qr_vector_space space, const struct qr_chunk_vector *vectors, size_t count,
                             const struct qr_index_guard *guard, qr_err *err)
{
    if (space.dimension < 1) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "a vector has at least one dimension");
    }
    TAKE(taken, set, base_id, err);
    const size_t fitting = vectors_a_write(space);
    for (size_t done = 0; done < count; done += fitting) {
        struct rows_vectors request = {
            .base_id = base_id,
            .item_id = item_id,
            .generation = generation,
            .space = space,
            .vectors = vectors + done,
            .count = QR_MIN(fitting, count - done),
        };
        struct change change = {
            .base_id = base_id, .guard = guard, .fn = set->rows->write_vectors, .request = &request};
        const qr_rc rc = make_write(set, taken.store, &change, 0, err);
        qr_vector_arrays_mark(&set->vectors, base_id, item_id);
        QR_TRY(rc);
    }
    return QR_OK;
}

/* Vectors that share a transaction. */
struct vectors_of {
    const struct rows_driver *rows;
    qr_uuid base_id;
    struct qr_vector_space space;
    struct qr_index_document *documents;
    size_t count;
    qr_index_documents_guard_fn *guard;
    void *arg;
};

static qr_rc write_vectors_of(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct vectors_of *all = arg;
    QR_TRY(all->guard(all->documents, all->count, all->arg, err)); /* X2 */
    for (size_t i = 0; i < all->count; i++) {
        const struct qr_index_document *document = &all->documents[i];
        struct rows_vectors request = {
            .base_id = all->base_id,
            .item_id = document->item_id,
            .generation = document->generation,
            .space = all->space,
            .vectors = document->vectors,
            .count = document->count,
        };
        if (document->is_wanted) {
            QR_TRY(all->rows->write_vectors(tx, &request, err));
        }
    }
    return QR_OK;
}

/* How many of the documents go into one transaction; at least one. */
static size_t fitting_vectors(const struct qr_index_document *documents, size_t count, size_t rows_max)
{
    size_t fitting = 1, rows = documents[0].count;
    while (fitting < count && rows + documents[fitting].count <= rows_max) {
        rows += documents[fitting++].count;
    }
    return fitting;
}

qr_rc qr_index_write_vectors_of(struct qr_index_set *set, qr_uuid base_id, struct qr_vector_space space,
                                struct qr_index_document *documents, size_t count, qr_index_documents_guard_fn *guard,
                                void *arg, qr_err *err)
{
    if (space.dimension < 1) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "a vector has at least one dimension");
    }
    TAKE(taken, set, base_id, err);
    const size_t rows_max = vectors_a_write(space);
    for (size_t done = 0; done < count;) {
        struct vectors_of request = {.rows = set->rows,
                                     .base_id = base_id,
                                     .space = space,
                                     .documents = documents + done,
                                     .count = fitting_vectors(documents + done, count - done, rows_max),
                                     .guard = guard,
                                     .arg = arg};
        struct change change = {.base_id = base_id, .asks = true, .fn = write_vectors_of, .request = &request};
        const qr_rc rc = make_write(set, taken.store, &change, 0, err);
        for (size_t i = 0; i < request.count; i++) {
            qr_vector_arrays_mark(&set->vectors, base_id, request.documents[i].item_id);
        }
        QR_TRY(rc);
        done += request.count;
    }
    return QR_OK;
}

/* ---- durability ---- */

static bool is_synced(struct qr_index_set *set, const struct index_store *store)
{
    QR_HOLD(&set->lock);
    return store->synced == store->writes;
}

/* X6: what is durable can be found, too. */
static void note_synced(struct qr_index_set *set, struct index_store *store, uint64_t writes)
{
    QR_HOLD(&set->lock);
    store->synced = QR_MAX(store->synced, writes);
    store->searchable = QR_MAX(store->searchable, writes);
}

static qr_rc sync_store(struct qr_index_set *set, qr_uuid base_id, qr_err *err)
{
    TAKE(taken, set, base_id, err);
    QR_FAILPOINT("index.sync.before", err);
    /* on PostgreSQL other processes write too: nobody counts */
    if (set->dir && is_synced(set, taken.store)) {
        return QR_OK;
    }
    const uint64_t writes = begin_catching_up(set, taken.store);
    struct rows_store request = {.base_id = base_id, .made = &taken.store->made};
    do {
        QR_TRY(qr_db_write(taken.store->db, QR_DURABLE, set->rows->sync, &request, err));
    } while (request.ret_more);
    note_synced(set, taken.store, writes);
    QR_FAILPOINT("index.sync.after", err);
    return QR_OK;
}

/* Nothing of a retired base is to be kept: who syncs several goes on with the others. */
qr_rc qr_index_sync(struct qr_index_set *set, qr_uuid base_id, qr_err *err)
{
    const qr_rc rc = sync_store(set, base_id, err);
    return rc == QR_NOT_FOUND && qr_index_is_retired(set, base_id) ? QR_OK : rc;
}

/* ---- removing ---- */

/* It must be made durable like any write. */
static void count_delete(struct qr_index_set *set, struct index_store *store)
{
    QR_HOLD(&set->lock);
    store->writes++;
}

/* Also the one of which only a part went; where it failed, all. */
static void mark_deleted(struct qr_index_set *set, const struct rows_delete *request, qr_rc rc)
{
    const size_t touched = rc == QR_OK ? QR_MIN(request->ret_done + 1, request->count) : request->count;
    for (size_t i = 0; i < touched; i++) {
        qr_vector_arrays_mark(&set->vectors, request->base_id, request->item_ids[i]);
    }
}

static qr_rc delete_rows(struct qr_index_set *set, struct rows_delete *request, qr_err *err)
{
    TAKE(taken, set, request->base_id, err);
    while (request->count > 0) {
        struct change change = {
            .rows = set->rows, .base_id = request->base_id, .fn = set->rows->delete_items, .request = request};
        const qr_rc rc = qr_db_write(taken.store->db, QR_RELAXED, run_change, &change, err);
        count_delete(set, taken.store);
        mark_deleted(set, request, rc);
        QR_TRY(rc);
        QR_FAILPOINT("index.delete.after_commit", err);
        request->item_ids += request->ret_done;
        request->count -= request->ret_done;
    }
    return QR_OK;
}

qr_rc qr_index_delete_items(struct qr_index_set *set, qr_uuid base_id, const qr_uuid *item_ids, size_t count,
                            qr_err *err)
{
    struct rows_delete request = {.base_id = base_id, .item_ids = item_ids, .count = count};
    return delete_rows(set, &request, err);
}

qr_rc qr_index_purge_item(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t live_generation,
                          int64_t wanted_generation, qr_err *err)
{
    struct rows_delete request = {
        .base_id = base_id,
        .item_ids = &item_id,
        .count = 1,
        .kept_generations = {live_generation, wanted_generation},
    };
    return delete_rows(set, &request, err);
}

qr_rc qr_index_keep_models(struct qr_index_set *set, qr_uuid base_id, const int64_t *models, size_t count,
                           const struct qr_index_guard *guard, qr_err *err)
{
    struct rows_models request = {.base_id = base_id};
    assert(count <= QR_COUNT(request.kept));
    if (count) {
        memcpy(request.kept, models, count * sizeof models[0]);
    }
    TAKE(taken, set, base_id, err);
    do {
        struct change change = {.base_id = base_id, .guard = guard, .fn = set->rows->keep_models, .request = &request};
        const qr_rc rc = make_write(set, taken.store, &change, 0, err);
        qr_vector_arrays_forget(&set->vectors, base_id);
        QR_TRY(rc);
    } while (request.ret_more);
    return QR_OK;
}

/* ---- reading ---- */

static qr_rc load_chunks(struct qr_index_set *set, struct rows_chunks request, struct qr_chunk_row **ret_rows,
                         size_t *ret_count, qr_err *err)
{
    QR_TRY(read_store(set, request.base_id, set->rows->chunks, &request, err));
    *ret_rows = request.ret_rows;
    *ret_count = request.ret_count;
    return QR_OK;
}

static struct rows_chunks chunks_from(qr_uuid base_id, qr_uuid item_id, int64_t generation, int64_t from_ordinal,
                                      int64_t model, int limit, struct qr_arena *arena)
{
    return (struct rows_chunks){
        .base_id = base_id,
        .item_id = item_id,
        .generation = generation,
        .from_ordinal = from_ordinal,
        .model = model,
        .limit = QR_MAX(limit, 0),
        .arena = arena,
    };
}

qr_rc qr_index_chunks(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                      int64_t from_ordinal, int64_t model, int limit, struct qr_arena *arena,
                      struct qr_chunk_row **ret_rows, size_t *ret_count, qr_err *err)
{
    return load_chunks(set, chunks_from(base_id, item_id, generation, from_ordinal, model, limit, arena), ret_rows,
                       ret_count, err);
}

qr_rc qr_index_chunks_without_vector(struct qr_index_set *set, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                                     int64_t from_ordinal, int64_t model, int limit, struct qr_arena *arena,
                                     struct qr_chunk_row **ret_rows, size_t *ret_count, qr_err *err)
{
    struct rows_chunks request = chunks_from(base_id, item_id, generation, from_ordinal, model, limit, arena);
    request.without_vector = true;
    return load_chunks(set, request, ret_rows, ret_count, err);
}

struct loading {
    const struct rows_driver *rows;
    qr_uuid base_id;
    int64_t model;
    struct qr_chunk_span *spans;
    size_t count, rows_max;
    struct qr_arena *arena;
    size_t done;
};

static qr_rc load_spans(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct loading *loading = arg;
    size_t room = loading->rows_max;
    for (loading->done = 0; loading->done < loading->count && room > 0; loading->done++) {
        struct qr_chunk_span *span = &loading->spans[loading->done];
        struct rows_chunks request = {
            .base_id = loading->base_id,
            .item_id = span->item_id,
            .generation = span->generation,
            .from_ordinal = span->first,
            .model = loading->model,
            .limit = (int)QR_MIN((size_t)(span->last - span->first + 1), room),
            .arena = loading->arena,
        };
        QR_TRY(loading->rows->chunks(tx, &request, err));
        while (request.ret_count && request.ret_rows[request.ret_count - 1].chunk.ordinal > span->last) {
            request.ret_count--;
        }
        span->rows = request.ret_rows;
        span->count = request.ret_count;
        room -= span->count;
    }
    return QR_OK;
}

qr_rc qr_index_load_spans(struct qr_index_set *set, qr_uuid base_id, struct qr_chunk_span *spans, size_t count,
                          struct qr_arena *arena, qr_err *err)
{
    size_t done;
    return qr_index_load_spans_upto(set, base_id, 0, spans, count, SIZE_MAX, arena, &done, err);
}

qr_rc qr_index_load_spans_upto(struct qr_index_set *set, qr_uuid base_id, int64_t model, struct qr_chunk_span *spans,
                               size_t count, size_t rows_max, struct qr_arena *arena, size_t *ret_done, qr_err *err)
{
    struct loading loading = {set->rows, base_id, model, spans, count, rows_max, arena, 0};
    if (count > 0) {
        QR_TRY(read_store(set, base_id, load_spans, &loading, err));
    }
    *ret_done = loading.done;
    return QR_OK;
}

qr_rc qr_index_extents(struct qr_index_set *set, qr_uuid base_id, int64_t model, qr_uuid after_item,
                       int64_t after_generation, int limit, struct qr_index_extent *ret_extents, size_t *ret_count,
                       qr_err *err)
{
    struct rows_extents request = {
        .base_id = base_id,
        .model = model,
        .after_item = after_item,
        .after_generation = after_generation,
        .limit = QR_MAX(limit, 0),
        .ret_extents = ret_extents,
    };
    QR_TRY(read_store(set, base_id, set->rows->extents, &request, err));
    *ret_count = request.ret_count;
    return QR_OK;
}

qr_rc qr_index_count_extents(struct qr_index_set *set, qr_uuid base_id, int64_t model, struct qr_index_extent *extents,
                             size_t count, qr_err *err)
{
    struct rows_named request = {.base_id = base_id, .model = model, .extents = extents, .count = count};
    return read_store(set, base_id, set->rows->count_extents, &request, err);
}

qr_rc qr_index_models(struct qr_index_set *set, qr_uuid base_id, int limit, int64_t *ret_models, size_t *ret_count,
                      qr_err *err)
{
    struct rows_models request = {.base_id = base_id, .limit = QR_MAX(limit, 0), .ret_models = ret_models};
    QR_TRY(read_store(set, base_id, set->rows->models, &request, err));
    *ret_count = request.ret_count;
    return QR_OK;
}

/* ---- copying ---- */

qr_rc qr_index_copy(struct qr_index_set *set, qr_uuid base_id, const char *path, int64_t *ret_commit, qr_err *err)
{
    TAKE(taken, set, base_id, err);
    return qr_db_copy(taken.store->db, path, ret_commit, err);
}

qr_rc qr_index_last_commit(struct qr_index_set *set, qr_uuid base_id, int64_t *ret_commit, qr_err *err)
{
    TAKE(taken, set, base_id, err);
    return qr_db_last_commit(taken.store->db, ret_commit, err);
}
