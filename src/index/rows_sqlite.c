/* The rows of a base in a SQLite file of its own, and FTS5 over them.
 *
 * R1  A row's id is never used twice (AUTOINCREMENT), so that FTS5 cannot mistake one row for another.
 * R2  FTS5 holds exactly the rows with an id up to store.fts_upto. It takes new rows in large batches, at the latest when
 *     they are synced (X6): FTS5 writes a segment whenever a savepoint or a commit comes, and a segment a document costs many
 *     times the document.
 * R3  FTS5 keeps no text of its own: to forget a row it reads the row. So the row goes after its FTS5 entry, in the same
 *     transaction.
 * R4  Each model has a slot. A vector's id is its slot, then the id of its chunk: so the vectors of a model stand beside each
 *     other in the order of their chunks, and are found without an index. */
#include "index/rows.h"
#include "index/tokenizer.h"
#include "index/words.h"

#include <stdlib.h>

enum {
    DELETE_ROWS_MAX = 160,          /* in one transaction: others may write in between */
    CATCH_UP_BYTES_MAX = 160 << 10, /* the same for FTS5, and as much as makes a segment worth it */
    DELETE_VECTORS_MAX = 500,
    SLOT_SHIFT = 48, /* R4: ids of chunks are below it */
};

const struct qr_migration qr_rows_sqlite_migrations[] = {
    {
        .name = "rows",
        /* the small columns first: a scan that needs only them does not read the texts */
        .sql = "CREATE TABLE store (id INTEGER PRIMARY KEY, stamp TEXT NOT NULL, fts_upto INTEGER NOT NULL) STRICT;"
               "INSERT INTO store (id, stamp, fts_upto) VALUES (1, '', 0);"
               "CREATE TABLE chunk_row (id INTEGER PRIMARY KEY AUTOINCREMENT, item_id BLOB NOT NULL, "
               "generation INTEGER NOT NULL, ordinal INTEGER NOT NULL, byte_start INTEGER NOT NULL, "
               "byte_end INTEGER NOT NULL, line_start INTEGER NOT NULL, line_end INTEGER NOT NULL, "
               "page INTEGER NOT NULL, token_count INTEGER NOT NULL, title TEXT NOT NULL, heading TEXT NOT NULL, "
               "text TEXT NOT NULL) STRICT;"
               "CREATE UNIQUE INDEX chunk_row_place ON chunk_row (item_id, generation, ordinal);"
               "CREATE TABLE chunk_vector (id INTEGER PRIMARY KEY, dimension INTEGER NOT NULL, vector BLOB NOT NULL) "
               "STRICT;"
               "CREATE VIRTUAL TABLE chunk_fts USING fts5(title, heading, text, content='chunk_row', "
               "content_rowid='id', tokenize='unicode61 remove_diacritics 2');"
               "INSERT INTO chunk_fts (chunk_fts, rank) VALUES ('rank', 'bm25(4.0, 2.0, 1.0)');",
    },
    {
        .name = "words",
        /* index/tokenizer.h says why a text has its language before it */
        .sql =
            "ALTER TABLE store ADD COLUMN languages INTEGER NOT NULL DEFAULT 0;" /* a qr_languages: those of its rows */
            "ALTER TABLE store ADD COLUMN tokenizer INTEGER NOT NULL DEFAULT 0;" /* the version that made the words */
            "ALTER TABLE chunk_row ADD COLUMN language TEXT NOT NULL DEFAULT 'und';"
            "CREATE VIEW chunk_words AS SELECT id, char(2) || language || char(2) || title AS title, "
            "char(2) || language || char(2) || heading AS heading, "
            "char(2) || language || char(2) || text AS text FROM chunk_row;"
            "DROP TABLE chunk_fts;"
            "CREATE VIRTUAL TABLE chunk_fts USING fts5(title, heading, text, content='chunk_words', "
            "content_rowid='id', tokenize='quire');"
            "INSERT INTO chunk_fts (chunk_fts, rank) VALUES ('rank', 'bm25(4.0, 2.0, 1.0)');"
            "UPDATE store SET fts_upto = 0;",
    },
    {
        .name = "models",
        /* R4; of the vectors from before nobody knows the model: a rebuild, which the version asks for, takes them from the
         * cache */
        .sql = "CREATE TABLE vector_model (slot INTEGER PRIMARY KEY, model INTEGER NOT NULL UNIQUE) STRICT;"
               "DELETE FROM chunk_vector;"
               "UPDATE store SET tokenizer = 0;",
    },
};
const size_t qr_rows_sqlite_migration_count = QR_COUNT(qr_rows_sqlite_migrations);

/* ---- FTS5 ---- */

static qr_rc load_fts_upto(struct qr_tx *tx, int64_t *ret_id, qr_err *err)
{
    *ret_id = 0;
    return qr_tx_get_i64(tx, "SELECT fts_upto FROM store WHERE id = 1", QR_NO_VALS, NULL, ret_id, err);
}

static qr_rc learn(struct qr_tx *tx, int64_t id, const qr_str columns[static MADE_COLUMNS], size_t *bytes, qr_err *err)
{
    *bytes += columns[0].len + columns[1].len + columns[2].len;
    return qr_tx_exec(
        tx, "INSERT INTO chunk_fts (rowid, title, heading, text) VALUES (?1, ?2, ?3, ?4)",
        QR_VALS(qr_val_i64(id), qr_val_text(columns[0]), qr_val_text(columns[1]), qr_val_text(columns[2])), NULL, err);
}

static qr_rc learn_words(struct qr_tx *tx, const struct made_rows *made, const struct made_chunk *chunk, size_t *bytes,
                         qr_err *err)
{
    qr_str columns[MADE_COLUMNS];
    size_t at = chunk->offset;
    for (size_t i = 0; i < MADE_COLUMNS; i++) {
        columns[i] = (qr_str){made->text.data + at, chunk->lens[i]};
        at += chunk->lens[i];
    }
    return learn(tx, chunk->id, columns, bytes, err);
}

static qr_rc learn_text(struct qr_tx *tx, int64_t id, size_t *bytes, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT title, heading, text FROM chunk_words WHERE id = ?1", QR_VALS(qr_val_i64(id)),
                       err));
    if (qr_rows_next(&rows)) {
        const qr_str columns[MADE_COLUMNS] = {qr_rows_str(&rows, 0), qr_rows_str(&rows, 1), qr_rows_str(&rows, 2)};
        QR_TRY(learn(tx, id, columns, bytes, err));
    }
    return qr_rows_end(&rows, err);
}

/* R2: up to the row that was the last when it began, or CATCH_UP_BYTES_MAX of text. */
static qr_rc catch_up(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_store *request = arg;
    request->ret_more = false;
    int64_t upto;
    QR_TRY(load_fts_upto(tx, &upto, err));
    if (request->upto_id == 0) {
        QR_TRY(qr_tx_get_i64(tx, "SELECT max(id) FROM chunk_row", QR_NO_VALS, NULL, &request->upto_id, err));
    }
    const int64_t before = upto;
    size_t bytes = 0;
    qr_made_rows_forget(request->made, upto);
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT id FROM chunk_row WHERE id > ?1 AND id <= ?2 ORDER BY id",
                       QR_VALS(qr_val_i64(upto), qr_val_i64(request->upto_id)), err));
    while (qr_rows_next(&rows)) {
        if (bytes > CATCH_UP_BYTES_MAX) {
            request->ret_more = true;
            break;
        }
        upto = qr_rows_i64(&rows, 0);
        const struct made_chunk *chunk = qr_made_rows_find(request->made, upto);
        QR_TRY(chunk ? learn_words(tx, request->made, chunk, &bytes, err) : learn_text(tx, upto, &bytes, err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    if (upto == before) {
        return QR_OK;
    }
    return qr_tx_exec(tx, "UPDATE store SET fts_upto = ?1 WHERE id = 1", QR_VALS(qr_val_i64(upto)), NULL, err);
}

/* ---- removing ---- */

/* Rows that are to go, gathered first: a query must not see changes to what it goes through. */
struct doomed {
    int64_t ids[DELETE_ROWS_MAX];
    size_t count;
};

static bool is_full(const struct doomed *doomed)
{
    return doomed->count == QR_COUNT(doomed->ids);
}

/* Adds what the query finds while there is room. */
static qr_rc gather(struct qr_tx *tx, struct doomed *doomed, const char *sql, const struct qr_val *vals,
                    size_t val_count, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, sql, vals, val_count, err));
    while (!is_full(doomed) && qr_rows_next(&rows)) {
        doomed->ids[doomed->count++] = qr_rows_i64(&rows, 0);
    }
    return qr_rows_end(&rows, err);
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* FTS5 writes a segment whenever ids do not grow, therefore in their order, and all before anything else. */
static qr_rc forget_text(struct qr_tx *tx, struct doomed *doomed, qr_err *err)
{
    int64_t fts_upto;
    QR_TRY(load_fts_upto(tx, &fts_upto, err));
    qsort(doomed->ids, doomed->count, sizeof *doomed->ids, compare_ids);
    for (size_t i = 0; i < doomed->count && doomed->ids[i] <= fts_upto; i++) { /* R2 */
        QR_TRY(
            qr_tx_exec(tx, "DELETE FROM chunk_fts WHERE rowid = ?1", QR_VALS(qr_val_i64(doomed->ids[i])), NULL, err));
    }
    return QR_OK;
}

static qr_rc delete_doomed(struct qr_tx *tx, struct doomed *doomed, qr_err *err)
{
    if (doomed->count == 0) {
        return QR_OK;
    }
    QR_TRY(forget_text(tx, doomed, err)); /* R3 */
    for (size_t i = 0; i < doomed->count; i++) {
        const struct qr_val id = qr_val_i64(doomed->ids[i]);
        QR_TRY(qr_tx_exec(tx, "DELETE FROM chunk_vector WHERE id IN (SELECT (slot << 48) + ?1 FROM vector_model)", &id,
                          1, NULL, err));
        QR_TRY(qr_tx_exec(tx, "DELETE FROM chunk_row WHERE id = ?1", &id, 1, NULL, err));
    }
    return QR_OK;
}

static qr_rc delete_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_delete *request = arg;
    struct doomed doomed = {.count = 0};
    size_t done = 0;
    for (; done < request->count; done++) {
        QR_TRY(gather(
            tx, &doomed,
            "SELECT id FROM chunk_row WHERE item_id = ?1 AND generation <> ?2 AND generation <> ?3 AND (?3 = 0 OR "
            "generation < ?3)",
            QR_VALS(rows_id_val(&request->item_ids[done]), qr_val_i64(request->kept_generations[0]),
                    qr_val_i64(request->kept_generations[1])),
            err));
        if (is_full(&doomed)) {
            break; /* this item may have more */
        }
    }
    QR_TRY(delete_doomed(tx, &doomed, err));
    request->ret_done = done;
    return QR_OK;
}

/* ---- writing ---- */

static qr_rc insert_chunk(struct qr_tx *tx, const struct rows_write *request, const struct qr_chunk *chunk,
                          size_t words_at, qr_err *err)
{
    int64_t id = 0;
    const enum qr_language language = request->words->chunks[words_at].language;
    QR_TRY(
        qr_tx_exec(tx,
                   "INSERT INTO chunk_row (item_id, generation, ordinal, byte_start, byte_end, line_start, line_end, "
                   "page, token_count, title, heading, text, language) "
                   "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                   QR_VALS(rows_id_val(&request->item_id), qr_val_i64(request->generation), qr_val_i64(chunk->ordinal),
                           qr_val_i64(chunk->start), qr_val_i64(chunk->end), qr_val_i64(chunk->line_start),
                           qr_val_i64(chunk->line_end), qr_val_i64(chunk->page), qr_val_i64(chunk->token_count),
                           qr_val_text(chunk->title), qr_val_text(chunk->heading), qr_val_text(chunk->text),
                           qr_val_text(qr_str_of(qr_language_code(language)))),
                   NULL, err));
    QR_TRY(qr_tx_get_i64(tx, "SELECT last_insert_rowid()", QR_NO_VALS, NULL, &id, err));
    qr_made_rows_put(request->made, id, request->words, words_at);
    return QR_OK;
}

/* Mostly there is nothing to remove, and that costs one look into the index. */
static qr_rc clear_from(struct qr_tx *tx, const struct rows_write *request, qr_err *err)
{
    struct doomed doomed;
    do {
        doomed.count = 0;
        QR_TRY(gather(
            tx, &doomed, "SELECT id FROM chunk_row WHERE item_id = ?1 AND generation = ?2 AND ordinal >= ?3",
            QR_VALS(rows_id_val(&request->item_id), qr_val_i64(request->generation), qr_val_i64(request->from_ordinal)),
            err));
        QR_TRY(delete_doomed(tx, &doomed, err));
    } while (is_full(&doomed));
    return QR_OK;
}

/* A query asks for the words of each. Languages stay when their rows go: that costs a little, a missing one costs hits. */
static qr_rc note_languages(struct qr_tx *tx, qr_languages languages, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE store SET languages = languages | ?1 WHERE id = 1 AND languages & ?1 <> ?1",
                      QR_VALS(qr_val_i64(languages)), NULL, err);
}

static qr_rc write_chunks(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_write *request = arg;
    QR_TRY(clear_from(tx, request, err));
    qr_languages languages = 0;
    for (size_t i = 0; i < request->count; i++) {
        const size_t words_at = request->first_words + i;
        languages |= QR_BIT(request->words->chunks[words_at].language);
        QR_TRY(insert_chunk(tx, request, &request->chunks[i], words_at, err));
    }
    return note_languages(tx, languages, err);
}

/* ---- vectors (R4) ---- */

qr_rc qr_rows_sqlite_vector_offset(struct qr_tx *tx, int64_t model, int64_t *ret_offset, qr_err *err)
{
    int64_t slot = 0;
    QR_TRY(qr_tx_get_i64(tx, "SELECT slot FROM vector_model WHERE model = ?1", QR_VALS(qr_val_i64(model)), NULL, &slot,
                         err));
    *ret_offset = slot << SLOT_SHIFT;
    return QR_OK;
}

static qr_rc make_vector_offset(struct qr_tx *tx, int64_t model, int64_t *ret_offset, qr_err *err)
{
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO vector_model (slot, model) SELECT coalesce(max(slot), 0) + 1, ?1 FROM vector_model "
                      "WHERE true ON CONFLICT (model) DO NOTHING",
                      QR_VALS(qr_val_i64(model)), NULL, err));
    return qr_rows_sqlite_vector_offset(tx, model, ret_offset, err);
}

static qr_rc write_vectors(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_vectors *request = arg;
    const int dimension = request->space.dimension;
    int64_t offset;
    QR_TRY(make_vector_offset(tx, request->space.model, &offset, err));
    for (size_t i = 0; i < request->count; i++) {
        const struct qr_chunk_vector *vector = &request->vectors[i];
        int64_t changes;
        QR_TRY(qr_tx_exec(tx,
                          "INSERT INTO chunk_vector (id, dimension, vector) SELECT id + ?6, ?4, ?5 FROM chunk_row "
                          "WHERE item_id = ?1 AND generation = ?2 AND ordinal = ?3 "
                          "ON CONFLICT (id) DO UPDATE SET dimension = excluded.dimension, vector = excluded.vector",
                          QR_VALS(rows_id_val(&request->item_id), qr_val_i64(request->generation),
                                  qr_val_i64(vector->ordinal), qr_val_i64(vector->vector ? dimension : 0),
                                  qr_index_vector_val(vector, dimension), qr_val_i64(offset)),
                          &changes, err));
        if (changes == 0) {
            return qr_index_fail_no_chunk(request, vector, err);
        }
    }
    return QR_OK;
}

/* A slot whose model is not to be kept; 0 = there is none. */
static qr_rc find_doomed_slot(struct qr_tx *tx, const struct rows_models *request, int64_t *ret_slot, qr_err *err)
{
    *ret_slot = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT slot, model FROM vector_model ORDER BY slot", QR_NO_VALS, err));
    while (*ret_slot == 0 && qr_rows_next(&rows)) {
        *ret_slot = qr_index_is_kept_model(request, qr_rows_i64(&rows, 1)) ? 0 : qr_rows_i64(&rows, 0);
    }
    return qr_rows_end(&rows, err);
}

static qr_rc keep_models(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_models *request = arg;
    int64_t slot, deleted;
    request->ret_more = false;
    QR_TRY(find_doomed_slot(tx, request, &slot, err));
    if (slot == 0) {
        return QR_OK;
    }
    QR_TRY(qr_tx_exec(
        tx, "DELETE FROM chunk_vector WHERE id IN (SELECT id FROM chunk_vector WHERE id >= ?1 AND id < ?2 LIMIT ?3)",
        QR_VALS(qr_val_i64(slot << SLOT_SHIFT), qr_val_i64((slot + 1) << SLOT_SHIFT), qr_val_i64(DELETE_VECTORS_MAX)),
        &deleted, err));
    if (deleted < DELETE_VECTORS_MAX) {
        QR_TRY(qr_tx_exec(tx, "DELETE FROM vector_model WHERE slot = ?1", QR_VALS(qr_val_i64(slot)), NULL, err));
    }
    request->ret_more = true;
    return QR_OK;
}

/* ---- stamp; words of another tokenizer are as good as none (X4) ---- */

static qr_rc load_stamp(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_store *request = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT stamp FROM store WHERE id = 1 AND tokenizer = ?1",
                       QR_VALS(qr_val_i64(QR_TOKENIZER_VERSION)), err));
    qr_index_rows_stamp(&rows, request);
    return qr_rows_end(&rows, err);
}

static qr_rc save_stamp(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_store *request = arg;
    return qr_tx_exec(tx, "UPDATE store SET stamp = ?1, tokenizer = ?2 WHERE id = 1",
                      QR_VALS(qr_val_text(qr_str_of(request->stamp)), qr_val_i64(QR_TOKENIZER_VERSION)), NULL, err);
}

static qr_rc load_languages(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_store *request = arg;
    request->ret_languages = 0;
    return qr_tx_get_i64(tx, "SELECT languages FROM store WHERE id = 1", QR_NO_VALS, NULL, &request->ret_languages,
                         err);
}

/* ---- reading ---- */

static qr_rc chunks(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_chunks *request = arg;
    int64_t offset;
    QR_TRY(qr_rows_sqlite_vector_offset(tx, request->model, &offset, err));
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT " ROWS_CHUNK_COLUMNS " FROM chunk_row c LEFT JOIN chunk_vector v ON v.id = c.id + ?6 "
                       "WHERE c.item_id = ?1 AND c.generation = ?2 AND c.ordinal >= ?3 "
                       "AND (?4 = 0 OR v.id IS NULL) ORDER BY c.ordinal LIMIT ?5",
                       QR_VALS(rows_id_val(&request->item_id), qr_val_i64(request->generation),
                               qr_val_i64(request->from_ordinal), qr_val_i64(request->without_vector),
                               qr_val_i64(request->limit), qr_val_i64(offset)),
                       err));
    return qr_index_rows_collect(&rows, request, err);
}

static qr_rc extents(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_extents *request = arg;
    int64_t offset;
    QR_TRY(qr_rows_sqlite_vector_offset(tx, request->model, &offset, err));
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT c.item_id, c.generation, count(*), count(nullif(v.dimension, 0)), "
                       "count(v.dimension) - count(nullif(v.dimension, 0)) "
                       "FROM chunk_row c LEFT JOIN chunk_vector v ON v.id = c.id + ?4 "
                       "WHERE (c.item_id, c.generation) > (?1, ?2) GROUP BY c.item_id, c.generation "
                       "ORDER BY c.item_id, c.generation LIMIT ?3",
                       QR_VALS(rows_id_val(&request->after_item), qr_val_i64(request->after_generation),
                               qr_val_i64(request->limit), qr_val_i64(offset)),
                       err));
    return qr_index_rows_collect_extents(&rows, request, err);
}

static qr_rc count_extents(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct rows_named *request = arg;
    int64_t offset;
    QR_TRY(qr_rows_sqlite_vector_offset(tx, request->model, &offset, err));
    for (size_t i = 0; i < request->count; i++) {
        struct qr_index_extent *extent = &request->extents[i];
        QR_ROWS(rows);
        QR_TRY(qr_tx_query(tx, &rows,
                           "SELECT count(*), count(nullif(v.dimension, 0)), "
                           "count(v.dimension) - count(nullif(v.dimension, 0)) "
                           "FROM chunk_row c LEFT JOIN chunk_vector v ON v.id = c.id + ?3 "
                           "WHERE c.item_id = ?1 AND c.generation = ?2",
                           QR_VALS(rows_id_val(&extent->item_id), qr_val_i64(extent->generation), qr_val_i64(offset)),
                           err));
        QR_TRY(qr_index_rows_take_counts(&rows, extent, err));
    }
    return QR_OK;
}

static qr_rc models(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct rows_models *request = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT model FROM vector_model m WHERE EXISTS (SELECT 1 FROM chunk_vector v WHERE "
                       "v.id >= m.slot << 48 AND v.id < (m.slot + 1) << 48) ORDER BY model LIMIT ?1",
                       QR_VALS(qr_val_i64(request->limit)), err));
    return qr_index_rows_collect_models(&rows, request, err);
}

const struct rows_driver qr_rows_sqlite = {
    .write_chunks = write_chunks,
    .write_vectors = write_vectors,
    .delete_items = delete_items,
    .keep_models = keep_models,
    .catch_up = catch_up,
    .sync = catch_up, /* X6; each commit is written, and a durable one syncs the log with all commits before it */
    .load_stamp = load_stamp,
    .save_stamp = save_stamp,
    .load_languages = load_languages,
    .chunks = chunks,
    .extents = extents,
    .count_extents = count_extents,
    .models = models,
    .search_text = qr_rows_sqlite_search_text,
    .search_vector = qr_rows_sqlite_search_vector,
    .read_vectors = qr_rows_sqlite_read_vectors,
    .fits = qr_rows_sqlite_fits,
    .count_words = qr_rows_sqlite_count_words,
};
