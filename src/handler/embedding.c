/* Embedding, and its one promise about money: at most one batch is paid for twice after a crash (PAID-1, I8).
 *
 * Chunks are read in pages, of one document or of many. What the cache does not have is handed to the model's batcher, which
 * asks before each call whether it is still wanted (GEN-1) and has the answer kept before anybody hears of it. Several pages
 * are under way, so that calls can be; the oldest is waited for, and its vectors are written to the index. What is in memory
 * is a few pages, however many chunks there are. */
#include "handler/embedding.h"

#include "base/failpoint.h"
#include "handler/vector_look.h"
#include "store/models.h"
#include "store/vectors.h"

enum {
    PAGE_CHUNKS = 128,
    PAGES = 4,                /* of which each may fill several calls */
    TOGETHER_CHUNKS_MAX = 64, /* of a document among others */
    ROWS_A_PAGE = 500,
};

/* ---- the hooks of batchers ---- */

struct asking {
    struct qr_embed_asked *asked;
    size_t count;
};

static qr_rc look_at_owners(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct asking *asking = arg;
    for (size_t i = 0; i < asking->count; i++) {
        struct qr_embed_asked *asked = &asking->asked[i];
        QR_TRY(qr_attempt_check_in(tx, asked->arg, &asked->is_wanted, &asked->why, err));
    }
    return QR_OK;
}

static qr_rc look(void *arg, struct qr_embed_asked *asked, size_t count, qr_err *err)
{
    return qr_db_read(arg, look_at_owners, &(struct asking){asked, count}, err);
}

struct keeping {
    const char *fingerprint;
    int dimension;
    const struct qr_embed_paid *paid;
    size_t count;
};

static qr_rc write_paid(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct keeping *keeping = arg;
    bool has_shortened = false;
    for (size_t i = 0; i < keeping->count; i++) {
        const struct qr_embed_paid *paid = &keeping->paid[i];
        const bool is_shortened = paid->kept_bytes < paid->text.len;
        unsigned char key[QR_VECTOR_KEY_BYTES];
        qr_vector_key(keeping->fingerprint, paid->text, key);
        QR_TRY(qr_vector_add(tx, key, paid->vector, keeping->dimension, is_shortened ? (int64_t)paid->kept_bytes : 0,
                             err));
        has_shortened = has_shortened || is_shortened;
    }
    QR_TRY(qr_model_note(tx, keeping->fingerprint, keeping->dimension, has_shortened, err));
    QR_FAILPOINT("embed.batch.before_commit", err);
    return QR_OK;
}

/* Under no fence: what was paid for is kept, whoever the jobs belong to by now. */
static qr_rc keep(void *arg, const char *fingerprint, int dimension, const struct qr_embed_paid *paid, size_t count,
                  qr_err *err)
{
    struct keeping keeping = {fingerprint, dimension, paid, count};
    QR_TRY(qr_db_write(arg, QR_DURABLE, write_paid, &keeping, err));
    QR_FAILPOINT("embed.batch.stored", err);
    return QR_OK;
}

struct learning {
    const char *fingerprint;
    int dimension;
    bool has_shortened;
};

static qr_rc read_dimension(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct learning *learning = arg;
    return qr_model_dimension(tx, learning->fingerprint, &learning->dimension, err);
}

static qr_rc known_dimension(void *arg, const char *fingerprint, int *ret_dimension, qr_err *err)
{
    struct learning learning = {.fingerprint = fingerprint};
    QR_TRY(qr_db_read(arg, read_dimension, &learning, err));
    *ret_dimension = learning.dimension;
    return QR_OK;
}

struct pace_call {
    const char *fingerprint;
    int64_t texts_a_minute;
};

static qr_rc write_pace(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct pace_call *call = arg;
    return qr_model_set_pace(tx, call->fingerprint, call->texts_a_minute, err);
}

/* For estimates: nothing depends on it. */
static void note_pace(void *arg, const char *fingerprint, int64_t texts_a_minute)
{
    (void)qr_db_write(arg, QR_RELAXED, write_pace, &(struct pace_call){fingerprint, texts_a_minute}, NULL);
}

struct qr_batcher_hooks qr_embedding_hooks(struct qr_db *db)
{
    return (struct qr_batcher_hooks){look, keep, known_dimension, db, note_pace};
}

/* ---- pages ---- */

struct chunk {
    struct qr_embed_document *document;
    int64_t ordinal;
    qr_str text;
    int64_t token_count;
    const float *cached; /* NULL = it is asked for */
    size_t input;        /* which of the page's, then */
};

struct page {
    struct qr_arena arena;
    struct chunk chunks[PAGE_CHUNKS];
    size_t count;
    struct qr_embed_input inputs[PAGE_CHUNKS];
    struct qr_embed_work work;
    int dimension; /* of what came from the cache */
};

struct embedding {
    struct qr_batcher *batcher;
    struct qr_embed_document *documents;
    size_t count, next; /* the next that has chunks to read */
    struct page *pages; /* a ring: `open_count` of them are under way, from `oldest` on */
    size_t oldest, open_count;
};

static void set_error(struct qr_embed_document *document, qr_rc rc, const qr_err *error)
{
    if (document->rc == QR_OK) {
        document->rc = rc;
        document->error = *error;
    }
}

/* Some of the document's chunks without a vector. */
static qr_rc read_chunks(struct page *page, struct qr_embed_document *document, qr_err *err)
{
    struct qr_chunk_row *rows;
    const int room = (int)(PAGE_CHUNKS - page->count);
    size_t count;
    QR_TRY(qr_attempt_go_on(document->attempt, err));
    QR_TRY(qr_index_chunks_without_vector(document->attempt->context->index, document->item->base_id,
                                          document->item->id, document->generation, document->next_ordinal,
                                          document->model, room, &page->arena, &rows, &count, err));
    for (size_t i = 0; i < count; i++) {
        page->chunks[page->count++] = (struct chunk){.document = document,
                                                     .ordinal = rows[i].chunk.ordinal,
                                                     .text = rows[i].chunk.text,
                                                     .token_count = rows[i].chunk.token_count};
        document->next_ordinal = rows[i].chunk.ordinal + 1;
    }
    document->is_read = count < (size_t)room;
    return QR_OK;
}

/* Where it is one of several, all of it or nothing. */
static qr_rc read_document(const struct embedding *embedding, struct page *page, struct qr_embed_document *document,
                           qr_err *err)
{
    const size_t before = page->count;
    QR_TRY(read_chunks(page, document, err));
    if (embedding->count > 1 && (!document->is_read || page->count - before > TOGETHER_CHUNKS_MAX)) {
        page->count = before;
        document->is_large = true;
        return qr_fail(err, QR_CODE_TOO_LARGE, "it is to be embedded alone");
    }
    return QR_OK;
}

static void read_page(struct embedding *embedding, struct page *page)
{
    const size_t room_min = embedding->count > 1 ? TOGETHER_CHUNKS_MAX + 1 : 1;
    while (embedding->next < embedding->count && page->count + room_min <= PAGE_CHUNKS) {
        struct qr_embed_document *document = &embedding->documents[embedding->next];
        qr_err error = {0};
        const qr_rc rc = document->rc == QR_OK ? read_document(embedding, page, document, &error) : document->rc;
        if (rc != QR_OK) {
            set_error(document, rc, &error);
        }
        embedding->next += rc != QR_OK || document->is_read;
    }
}

/* ---- the cache ---- */

/* While no dimension is known there is nothing to find. */
static qr_rc look_into_cache(const struct embedding *embedding, struct page *page, qr_err *err)
{
    QR_TRY(qr_batcher_dimension(embedding->batcher, &page->dimension, err));
    if (page->dimension == 0) {
        return QR_OK;
    }
    const size_t dimension = (size_t)page->dimension;
    struct qr_vector_look *looks = qr_arena_array(&page->arena, page->count, sizeof looks[0]);
    float *vectors = qr_arena_array(&page->arena, page->count * dimension, sizeof vectors[0]);
    if (!looks || !vectors) {
        return qr_handler_out_of_memory(err);
    }
    for (size_t i = 0; i < page->count; i++) {
        looks[i] = (struct qr_vector_look){.text = page->chunks[i].text, .vector = vectors + i * dimension};
    }
    QR_TRY(qr_vectors_look(page->chunks[0].document->attempt->run->db,
                           qr_batcher_provider(embedding->batcher)->fingerprint, page->dimension, looks, page->count,
                           err));
    for (size_t i = 0; i < page->count; i++) {
        page->chunks[i].cached = looks[i].found.is_found ? looks[i].vector : NULL;
    }
    return QR_OK;
}

/* ---- the model ---- */

static bool is_cancelled(void *arg)
{
    const struct page *page = arg;
    for (size_t i = 0; i < page->count; i++) {
        if (!qr_job_is_cancelled(page->chunks[i].document->attempt->run)) {
            return false; /* the look finds those of the others */
        }
    }
    return true;
}

static void ask(const struct embedding *embedding, struct page *page)
{
    page->work = (struct qr_embed_work){.inputs = page->inputs, .is_cancelled = is_cancelled, .cancel_arg = page};
    for (size_t i = 0; i < page->count; i++) {
        struct chunk *chunk = &page->chunks[i];
        if (!chunk->cached) {
            chunk->input = page->work.count;
            page->inputs[page->work.count++] = (struct qr_embed_input){
                .text = chunk->text, .tokens = chunk->token_count, .owner = &chunk->document->owner};
        }
    }
    qr_embed_begin(embedding->batcher, &page->work);
}

static void page_fail(struct page *page, qr_rc rc, const qr_err *error)
{
    for (size_t i = 0; i < page->count; i++) {
        set_error(page->chunks[i].document, rc, error);
    }
}

/* False: there is nothing left to read. */
static bool page_begin(struct embedding *embedding)
{
    struct page *page = &embedding->pages[(embedding->oldest + embedding->open_count) % PAGES];
    qr_err error = {0};
    qr_arena_reset(&page->arena);
    page->count = 0;
    read_page(embedding, page);
    if (page->count == 0) {
        return false;
    }
    const qr_rc rc = look_into_cache(embedding, page, &error);
    if (rc != QR_OK) {
        page_fail(page, rc, &error);
        return true;
    }
    ask(embedding, page);
    embedding->open_count++;
    return true;
}

/* ---- the index ---- */

static void collect_vector(const struct page *page, const struct chunk *chunk, struct qr_chunk_vector *vectors,
                           size_t *count, qr_rc rc, const qr_err *error)
{
    struct qr_embed_document *document = chunk->document;
    const struct qr_embed_input *input = chunk->cached ? NULL : &page->inputs[chunk->input];
    if (!input || input->state == QR_INPUT_DONE || input->state == QR_INPUT_FAILED) {
        const float *vector = !input ? chunk->cached : input->state == QR_INPUT_DONE ? input->vector : NULL;
        vectors[(*count)++] = (struct qr_chunk_vector){chunk->ordinal, vector};
    } else if (input->state == QR_INPUT_UNWANTED) {
        set_error(document, document->owner.why.rc, &document->owner.why);
    } else {
        set_error(document, rc, error);
    }
}

/* Those of one document, which stand together. What was done of one that is not over is in the cache. */
static void write_document(struct embedding *embedding, struct page *page, size_t from, size_t to, qr_rc rc,
                           const qr_err *error)
{
    struct qr_embed_document *document = page->chunks[from].document;
    struct qr_attempt *attempt = document->attempt;
    const struct qr_index_guard guard = qr_attempt_vector_guard(attempt);
    const struct qr_vector_space space = {document->model, QR_MAX(QR_MAX(page->work.dimension, page->dimension), 1)};
    struct qr_chunk_vector vectors[PAGE_CHUNKS];
    size_t count = 0;
    qr_err own = {0};
    for (size_t i = from; i < to; i++) {
        collect_vector(page, &page->chunks[i], vectors, &count, rc, error);
    }
    if (document->rc != QR_OK) {
        return;
    }
    const qr_rc written = qr_index_write_vectors(attempt->context->index, document->item->base_id, document->item->id,
                                                 document->generation, space, vectors, count, &guard, &own);
    if (written != QR_OK) {
        set_error(document, written, &own);
    }
    document->done_count += (int64_t)count;
    if (embedding->count == 1 && qr_uuid_equal(document->item->id, attempt->item.id)) {
        qr_job_progress(attempt->run, document->done_count, 0);
    }
}

/* What came from the memory of the batcher may not be in the cache any more; it must be, before it is in the index (V1 of
 * store/vector_rounds.h). */
static qr_rc keep_again(const struct embedding *embedding, const struct page *page, qr_err *err)
{
    struct qr_embed_paid paid[PAGE_CHUNKS];
    size_t count = 0;
    for (size_t i = 0; i < page->work.count; i++) {
        const struct qr_embed_input *input = &page->inputs[i];
        if (input->state == QR_INPUT_DONE && input->was_there) {
            paid[count++] = (struct qr_embed_paid){input->text, input->vector, input->kept_bytes};
        }
    }
    return count == 0
               ? QR_OK
               : keep(page->chunks[0].document->attempt->run->db, qr_batcher_provider(embedding->batcher)->fingerprint,
                      page->work.dimension, paid, count, err);
}

static void page_end(struct embedding *embedding)
{
    struct page *page = &embedding->pages[embedding->oldest];
    qr_err error = {0};
    qr_rc rc = qr_embed_wait(&page->work, &error);
    qr_err not_kept = {0};
    const qr_rc kept = keep_again(embedding, page, &not_kept);
    if (kept != QR_OK) {
        page_fail(page, kept, &not_kept);
        rc = kept;
        error = not_kept;
    }
    for (size_t from = 0, to = 0; from < page->count; from = to) {
        while (to < page->count && page->chunks[to].document == page->chunks[from].document) {
            to++;
        }
        write_document(embedding, page, from, to, rc, &error);
    }
    qr_embed_end(&page->work);
    embedding->oldest = (embedding->oldest + 1) % PAGES;
    embedding->open_count--;
}

static void embed_all(struct embedding *embedding)
{
    for (size_t i = 0; i < PAGES; i++) {
        qr_arena_init(&embedding->pages[i].arena, 0);
    }
    bool has_more = true;
    while (has_more || embedding->open_count > 0) {
        if (has_more && embedding->open_count < PAGES) {
            has_more = page_begin(embedding);
        } else {
            page_end(embedding);
        }
    }
    for (size_t i = 0; i < PAGES; i++) {
        qr_arena_done(&embedding->pages[i].arena);
    }
}

/* ---- counting ---- */

struct counting {
    const char *fingerprint; /* NULL = nothing is embedded */
    bool looks_for_shortened;
    const struct qr_chunk_row *rows;
    size_t count;
    int64_t shortened_count;
};

static qr_rc begin_counting(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct counting *counting = arg;
    return qr_model_has_shortened(tx, counting->fingerprint, &counting->looks_for_shortened, err);
}

static qr_rc count_shortened(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct counting *counting = arg;
    counting->shortened_count = 0;
    for (size_t i = 0; i < counting->count; i++) {
        unsigned char key[QR_VECTOR_KEY_BYTES];
        bool is_shortened;
        qr_vector_key(counting->fingerprint, counting->rows[i].chunk.text, key);
        QR_TRY(qr_vector_is_shortened(tx, key, &is_shortened, err));
        counting->shortened_count += is_shortened;
    }
    return QR_OK;
}

static qr_rc count_page(const struct qr_embed_document *document, struct counting *counting,
                        struct qr_embedded *embedded, qr_err *err)
{
    for (size_t i = 0; i < counting->count; i++) {
        embedded->token_count += counting->rows[i].chunk.token_count;
        embedded->failed_count += counting->rows[i].has_failed;
    }
    embedded->chunk_count += (int64_t)counting->count;
    if (counting->looks_for_shortened && counting->count > 0) {
        QR_TRY(qr_db_read(document->attempt->run->db, count_shortened, counting, err));
        embedded->shortened_count += counting->shortened_count;
    }
    return QR_OK;
}

static qr_rc count_chunks(struct qr_embed_document *document, struct counting *counting, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_embedded embedded = {0};
    int64_t from = 0;
    do {
        struct qr_chunk_row *rows;
        qr_arena_reset(&arena);
        QR_TRY(qr_attempt_go_on(document->attempt, err));
        QR_TRY(qr_index_chunks(document->attempt->context->index, document->item->base_id, document->item->id,
                               document->generation, from, document->model, ROWS_A_PAGE, &arena, &rows,
                               &counting->count, err));
        counting->rows = rows;
        QR_TRY(count_page(document, counting, &embedded, err));
        from = counting->count > 0 ? rows[counting->count - 1].chunk.ordinal + 1 : from;
    } while (counting->count == ROWS_A_PAGE);
    document->embedded = embedded;
    return QR_OK;
}

static void count_all(struct qr_batcher *batcher, struct qr_embed_document *documents, size_t count)
{
    struct counting counting = {.fingerprint = batcher ? qr_batcher_provider(batcher)->fingerprint : NULL};
    qr_err error = {0};
    const qr_rc begun = batcher ? qr_db_read(documents[0].attempt->run->db, begin_counting, &counting, &error) : QR_OK;
    for (size_t i = 0; i < count; i++) {
        qr_rc rc = documents[i].rc == QR_OK ? begun : documents[i].rc;
        rc = rc == QR_OK ? count_chunks(&documents[i], &counting, &error) : rc;
        if (rc != QR_OK) {
            set_error(&documents[i], rc, &error);
        }
    }
}

/* ---- the whole ---- */

void qr_embed_documents(struct qr_batcher *batcher, struct qr_embed_document *documents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct qr_embed_document *document = &documents[i];
        *document = (struct qr_embed_document){.attempt = document->attempt,
                                               .item = document->item,
                                               .generation = document->generation,
                                               .model = document->model,
                                               .owner = {.arg = document->attempt}};
    }
    if (batcher && count > 0) {
        struct embedding embedding = {.batcher = batcher, .documents = documents, .count = count};
        embedding.pages = qr_alloc_zero(PAGES * sizeof embedding.pages[0]);
        if (!embedding.pages) {
            for (size_t i = 0; i < count; i++) {
                documents[i].rc = qr_handler_out_of_memory(&documents[i].error);
            }
            return;
        }
        embed_all(&embedding);
        qr_free(embedding.pages);
    }
    if (count > 0) {
        count_all(batcher, documents, count);
    }
}

static qr_rc embed_one(struct qr_batcher *batcher, struct qr_embed_document *document, struct qr_embedded *ret_embedded,
                       qr_err *err)
{
    qr_embed_documents(batcher, document, 1);
    if (document->rc != QR_OK) {
        *err = document->error;
        return document->rc;
    }
    *ret_embedded = document->embedded;
    return QR_OK;
}

qr_rc qr_embed_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation,
                      struct qr_embedded *ret_embedded, qr_err *err)
{
    struct qr_batcher *batcher;
    QR_TRY(qr_attempt_batcher(attempt, &batcher, err));
    struct qr_embed_document document = {
        .attempt = attempt, .item = item, .generation = generation, .model = qr_model_key(&attempt->live)};
    return embed_one(batcher, &document, ret_embedded, err);
}

qr_rc qr_embed_wanted_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation,
                             struct qr_embedded *ret_embedded, qr_err *err)
{
    struct qr_batcher *batcher;
    QR_TRY(qr_attempt_wanted_batcher(attempt, &batcher, err));
    struct qr_embed_document document = {.attempt = attempt,
                                         .item = item,
                                         .generation = generation,
                                         .model = qr_model_key(&attempt->settings.embedding)};
    return embed_one(batcher, &document, ret_embedded, err);
}

void qr_embedding_put_off(struct qr_batcher *batcher, struct qr_outcome *outcome)
{
    const bool waits = qr_code_info(outcome->error.code)->policy == QR_POLICY_WAIT;
    if (batcher && outcome->kind == QR_OUTCOME_SNOOZED && waits) {
        outcome->delay_ms = QR_MAX(outcome->delay_ms, qr_batcher_wait_ms(batcher));
    }
}

static qr_rc set_dimension(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct learning *learning = arg;
    return qr_model_set_dimension(tx, learning->fingerprint, learning->dimension, err);
}

qr_rc qr_embedding_learn_dimension(struct qr_attempt *attempt, qr_err *err)
{
    struct qr_batcher *batcher;
    int known, found;
    QR_TRY(qr_attempt_batcher(attempt, &batcher, err));
    if (!batcher) {
        return QR_OK;
    }
    QR_TRY(qr_batcher_dimension(batcher, &known, err));
    QR_TRY(qr_batcher_probe(batcher, attempt, &found, err));
    if (found == known) {
        return QR_OK;
    }
    struct learning learning = {.fingerprint = qr_batcher_provider(batcher)->fingerprint, .dimension = found};
    QR_TRY(qr_job_write(attempt->run, QR_DURABLE, set_dimension, &learning, err));
    qr_batcher_forget_dimension(batcher);
    return QR_OK;
}
