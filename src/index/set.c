/* Owns the open stores: which are open, who uses them, which is closed when another is needed more (X5).
 *
 * S1  There is at most one entry a base, and an entry from before its file is opened until after it is closed. So a file
 *     is never open twice, and nobody opens one that is being closed or removed.
 * S2  A store with users is not closed.
 * S3  Files are opened, closed and removed without the lock: a slow one keeps only those waiting who want it.
 * S4  At most open_max entries hold an open file. Who needs a further one closes the one that was used longest ago, or
 *     waits for one to be given back; a call takes one store and needs no second one before it gives it back. */
#include "index/set.h"

#include "base/fs.h"
#include "base/mem.h"
#include "index/tokenizer.h"
#include "text/tokens.h"

#include <stdio.h>

enum { OPEN_MAX_DEFAULT = 32, VECTOR_BYTES_MAX_DEFAULT = 256 << 20, FOLDER_MODE = 0700 };

static qr_str key_of(const qr_uuid *base_id)
{
    return (qr_str){(const char *)base_id->bytes, QR_UUID_BYTES};
}

/* ---- files ---- */

/* "DIR/BASE.db" and what SQLite puts behind it. */
static qr_rc add_path(struct qr_buf *out, const struct qr_index_set *set, qr_uuid base_id, const char *suffix,
                      qr_err *err)
{
    char id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(base_id, id);
    qr_buf_printf(out, "%s/%s.db%s", set->dir, id, suffix);
    return qr_buf_check(out, err);
}

static qr_rc open_file(const struct qr_index_set *set, qr_uuid base_id, struct qr_db **ret_db, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf url = {0};
    qr_buf_add_text(&url, "sqlite:");
    QR_TRY(add_path(&url, set, base_id, "", err));
    const struct qr_db_options options = {
        .url = url.data,
        .migrations = qr_rows_sqlite_migrations,
        .migration_count = qr_rows_sqlite_migration_count,
        .clock = set->options.clock,
        .rand = set->options.rand,
        .is_background = true,
        .single_thread = set->options.single_thread,
        .tokenizer = &qr_index_tokenizer,
        .vfs = set->vfs,
        .io = set->options.io,
    };
    return qr_db_open(ret_db, &options, err);
}

/* The database goes first, durably: a log without its database is refused, while a database without its log could pass
 * for an older state of itself. */
static qr_rc remove_files(const struct qr_index_set *set, qr_uuid base_id, qr_err *err)
{
    static const char *const SUFFIXES[] = {"", "-wal", "-shm", "-journal"};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    for (size_t i = 0; i < QR_COUNT(SUFFIXES); i++) {
        qr_buf_clear(&path);
        QR_TRY(add_path(&path, set, base_id, SUFFIXES[i], err));
        QR_TRY(qr_fs_remove(set->options.io, path.data, err));
    }
    return QR_OK;
}

/* ---- entries; under the lock ---- */

static qr_rc add_entry(struct qr_index_set *set, qr_uuid base_id, enum store_state state,
                       struct index_store **ret_store, qr_err *err)
{
    struct index_store *store = qr_alloc_zero(sizeof *store);
    if (!store || !qr_map_put(&set->stores, key_of(&base_id), store)) {
        qr_free(store);
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an index store");
    }
    qr_word_counts_init(&store->words, set->stores.seed);
    qr_row_lengths_init(&store->lengths, set->stores.seed);
    store->base_id = base_id;
    store->state = state;
    store->writes = 1; /* what earlier processes left counts as written */
    *ret_store = store;
    return QR_OK;
}

static void remove_entry(struct qr_index_set *set, struct index_store *store)
{
    qr_map_take(&set->stores, key_of(&store->base_id));
    qr_vector_arrays_forget(&set->vectors, store->base_id);
    qr_word_counts_done(&store->words);
    qr_row_lengths_done(&store->lengths);
    qr_made_rows_done(&store->made);
    qr_free(store);
    qr_signal_all(&set->changed);
}

static void use(struct qr_index_set *set, struct index_store *store)
{
    store->users++;
    store->last_use = ++set->uses;
}

/* The unused one whose last use is longest ago, or NULL. */
static struct index_store *find_idle(const struct qr_index_set *set)
{
    struct index_store *oldest = NULL;
    size_t cursor = 0;
    qr_str key;
    void *value;
    while (qr_map_next(&set->stores, &cursor, &key, &value)) {
        struct index_store *store = value;
        if (store->state == STORE_OPEN && store->users == 0 && (!oldest || store->last_use < oldest->last_use)) {
            oldest = store;
        }
    }
    return oldest;
}

/* Gives the lock away meanwhile (S3). */
static void close_store(struct qr_index_set *set, struct index_store *store)
{
    store->state = STORE_CLOSING;
    qr_mutex_unlock(&set->lock);
    qr_db_close(store->db);
    qr_mutex_lock(&set->lock);
    remove_entry(set, store);
}

/* Closes one, or waits until something has changed (S4). */
static void make_room(struct qr_index_set *set)
{
    struct index_store *idle = find_idle(set);
    if (idle) {
        close_store(set, idle);
    } else {
        qr_signal_wait(&set->changed, &set->lock);
    }
}

/* Gives the lock away meanwhile (S3). */
static qr_rc open_store(struct qr_index_set *set, qr_uuid base_id, struct index_store **ret_store, qr_err *err)
{
    struct index_store *store = NULL;
    QR_TRY(add_entry(set, base_id, STORE_OPENING, &store, err));
    use(set, store);
    qr_mutex_unlock(&set->lock);
    const qr_rc rc = open_file(set, base_id, &store->db, err);
    qr_mutex_lock(&set->lock);
    if (rc != QR_OK) {
        remove_entry(set, store); /* who waited for it tries for himself */
        return rc;
    }
    store->state = STORE_OPEN;
    qr_signal_all(&set->changed);
    *ret_store = store;
    return QR_OK;
}

qr_rc qr_index_take(struct qr_index_set *set, qr_uuid base_id, struct index_store **ret_store, qr_err *err)
{
    if (!set->dir) {
        *ret_store = &set->shared;
        return QR_OK;
    }
    QR_HOLD(&set->lock);
    for (;;) {
        struct index_store *store = qr_map_find(&set->stores, key_of(&base_id));
        if (store && store->state == STORE_OPEN && !store->is_leaving) {
            use(set, store);
            *ret_store = store;
            return QR_OK;
        }
        if (qr_map_find(&set->retired, key_of(&base_id))) {
            return qr_fail(err, QR_CODE_NOT_FOUND, "the base of this index is gone");
        }
        if (store) {
            qr_signal_wait(&set->changed, &set->lock);
        } else if (set->stores.count >= (size_t)set->options.open_max) {
            make_room(set);
        } else {
            return open_store(set, base_id, ret_store, err);
        }
    }
}

void qr_index_give(struct qr_index_set *set, struct index_store *store)
{
    if (!set->dir) {
        return;
    }
    QR_HOLD(&set->lock);
    if (--store->users == 0) {
        qr_signal_all(&set->changed);
    }
}

int qr_index_open_count(struct qr_index_set *set)
{
    QR_HOLD(&set->lock);
    return (int)set->stores.count;
}

/* ---- tokenizers ---- */

qr_rc qr_index_take_tokenizer(struct qr_index_set *set, struct qr_tokenizer **ret_tokenizer, qr_err *err)
{
    {
        QR_HOLD(&set->lock);
        if (set->tokenizer_count) {
            *ret_tokenizer = set->tokenizers[--set->tokenizer_count];
            return QR_OK;
        }
    }
    return qr_tokenizer_create(ret_tokenizer, err);
}

/* A simulated process ends without closing the set, and what libstemmer keeps is not in our memory: there none is kept. */
void qr_index_give_tokenizer(struct qr_index_set *set, struct qr_tokenizer *tokenizer)
{
    {
        QR_HOLD(&set->lock);
        if (set->tokenizer_count < TOKENIZERS_MAX && !set->options.single_thread) {
            set->tokenizers[set->tokenizer_count++] = tokenizer;
            return;
        }
    }
    qr_tokenizer_free(tokenizer);
}

/* ---- dropping ---- */

/* The base's entry, without users and in the state of closing; made where there was none. */
static qr_rc seize(struct qr_index_set *set, qr_uuid base_id, struct index_store **ret_store, qr_err *err)
{
    struct index_store *store = NULL;
    while ((store = qr_map_find(&set->stores, key_of(&base_id)))) {
        if (store->state == STORE_OPEN && store->users == 0) {
            store->state = STORE_CLOSING;
            *ret_store = store;
            return QR_OK;
        }
        store->is_leaving = true;
        qr_signal_wait(&set->changed, &set->lock);
    }
    return add_entry(set, base_id, STORE_CLOSING, ret_store, err);
}

static qr_rc drop_file(struct qr_index_set *set, qr_uuid base_id, qr_err *err)
{
    struct index_store *store = NULL;
    QR_HOLD(&set->lock);
    QR_TRY(seize(set, base_id, &store, err));
    qr_mutex_unlock(&set->lock);
    qr_db_close(store->db);
    const qr_rc rc = remove_files(set, base_id, err);
    qr_mutex_lock(&set->lock);
    remove_entry(set, store);
    return rc;
}

static qr_rc drop_rows(struct qr_index_set *set, qr_uuid base_id, qr_err *err)
{
    struct rows_store request = {.base_id = base_id};
    do {
        QR_TRY(qr_db_write(set->shared.db, QR_DURABLE, set->rows->drop, &request, err));
    } while (request.ret_more);
    return QR_OK;
}

qr_rc qr_index_drop(struct qr_index_set *set, qr_uuid base_id, qr_err *err)
{
    return set->dir ? drop_file(set, base_id, err) : drop_rows(set, base_id, err);
}

static qr_rc note_retired(struct qr_index_set *set, qr_uuid base_id, qr_err *err)
{
    QR_HOLD(&set->lock);
    const bool is_noted =
        qr_map_find(&set->retired, key_of(&base_id)) || qr_map_put(&set->retired, key_of(&base_id), set);
    return is_noted ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an index store");
}

bool qr_index_is_retired(struct qr_index_set *set, qr_uuid base_id)
{
    QR_HOLD(&set->lock);
    return qr_map_find(&set->retired, key_of(&base_id)) != NULL;
}

qr_rc qr_index_retire(struct qr_index_set *set, qr_uuid base_id, qr_err *err)
{
    if (set->dir) {
        QR_TRY(note_retired(set, base_id, err));
    }
    return qr_index_drop(set, base_id, err);
}

/* ---- the set ---- */

static qr_rc copy_options(struct qr_index_set *set, const struct qr_index_options *options, qr_err *err)
{
    set->options = *options;
    set->options.open_max = options->open_max > 0 ? options->open_max : OPEN_MAX_DEFAULT;
    set->options.io = options->io ? options->io : qr_io_system();
    set->shared.db = options->main_db;
    set->rows = options->dir ? &qr_rows_sqlite : &qr_rows_postgres;
    set->dir = options->dir ? qr_copy_string(options->dir) : NULL;
    set->vfs = options->vfs ? qr_copy_string(options->vfs) : NULL;
    if ((options->dir && !set->dir) || (options->vfs && !set->vfs)) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the index stores");
    }
    return set->dir ? qr_fs_make_dirs(set->options.io, set->dir, FOLDER_MODE, err) : QR_OK;
}

static size_t vector_bytes_max(const struct qr_index_options *options)
{
    const int64_t bytes = options->vector_bytes_max ? options->vector_bytes_max : VECTOR_BYTES_MAX_DEFAULT;
    return bytes > 0 ? (size_t)bytes : 0;
}

qr_rc qr_index_set_open(struct qr_index_set **ret_set, const struct qr_index_options *options, qr_err *err)
{
    struct qr_index_set *set = qr_alloc_zero(sizeof *set);
    if (!set) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the index stores");
    }
    qr_mutex_init(&set->lock);
    qr_mutex_init(&set->guard_turn);
    qr_signal_init(&set->changed);
    const uint64_t seed = qr_rand_u64(options->rand ? options->rand : qr_rand_system());
    qr_map_init(&set->stores, seed);
    qr_map_init(&set->retired, seed);
    qr_vector_arrays_init(&set->vectors, vector_bytes_max(options));
    const qr_rc rc = copy_options(set, options, err);
    if (rc != QR_OK) {
        qr_index_set_close(set);
        return rc;
    }
    *ret_set = set;
    return QR_OK;
}

void qr_index_set_close(struct qr_index_set *set)
{
    if (!set) {
        return;
    }
    size_t cursor = 0;
    qr_str key;
    void *value;
    while (qr_map_next(&set->stores, &cursor, &key, &value)) {
        struct index_store *store = value;
        qr_db_close(store->db);
        qr_word_counts_done(&store->words);
        qr_row_lengths_done(&store->lengths);
        qr_made_rows_done(&store->made);
        qr_free(store);
    }
    while (set->tokenizer_count) {
        qr_tokenizer_free(set->tokenizers[--set->tokenizer_count]);
    }
    qr_map_done(&set->stores);
    qr_map_done(&set->retired);
    qr_vector_arrays_done(&set->vectors);
    qr_signal_done(&set->changed);
    qr_mutex_done(&set->guard_turn);
    qr_mutex_done(&set->lock);
    qr_free(set->dir);
    qr_free(set->vfs);
    qr_free(set);
}
