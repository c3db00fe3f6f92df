/* Embedding, and its one promise about money: at most one batch is paid for twice after a crash (PAID-1, I8).
 *
 * Chunks are read in pages, of one document or of many. What the cache does not have is handed to the model's batcher, which
 * asks before each call whether it is still wanted (GEN-1) and has the answer kept before anybody hears of it. Several pages
 * are under way, so that calls can be; the oldest is waited for, and its vectors are written to the index. What is in memory
 * is a few pages, however many chunks there are. */
#include "handler/embedding.h"

#include "handler/vector_look.h"
#include "store/models.h"
#include "store/vectors.h"

enum {
    PAGE_CHUNKS = 128,
    PAGES = 6,                /* of which each may fill several calls */
    TURN_CHUNKS = 64,         /* of a document, before it is the next one's turn */
    TOGETHER_CHUNKS_MAX = 64, /* of a document among others, where the model takes the thread that waits */
    READ_CHUNKS_MAX = 1024,   /* for a page, also of such that have their vectors */
    DOCUMENTS_A_READ = 64,
};

/* ---- pages ---- */

struct chunk {
    struct qr_embed_document *document;
    int64_t ordinal;
    qr_str text;
    int64_t token_count;
    const float *cached; /* NULL = it is asked for */
    bool is_shortened;   /* what was cached */
    size_t input;        /* which of the page's, then */
};

struct page {
    struct qr_arena arena;
    struct chunk chunks[PAGE_CHUNKS];
    size_t count, read_count;
    struct qr_embed_input inputs[PAGE_CHUNKS];
    struct qr_embed_work work;
    int dimension; /* of what came from the cache */
};

struct embedding {
    struct qr_batcher *batcher; /* NULL = chunks are only counted */
    const struct qr_embed_feed *feed;
    struct qr_embed_document *first, **end; /* those that have chunks to read */
    bool leaves_large;
    size_t document_count, chunk_count; /* that it had so far */
    struct page *pages;                 /* a ring: `open_count` of them are under way, from `oldest` on */
    size_t oldest, open_count;
};

static void set_error(struct qr_embed_document *document, qr_rc rc, const qr_err *error)
{
    if (document->rc == QR_OK) {
        document->rc = rc;
        document->error = *error;
    }
}

/* ---- documents in line ---- */

static void enqueue(struct embedding *embedding, struct qr_embed_document *document)
{
    document->next = NULL;
    *embedding->end = document;
    embedding->end = &document->next;
}

static struct qr_embed_document *dequeue(struct embedding *embedding)
{
    struct qr_embed_document *document = embedding->first;
    embedding->first = document->next;
    embedding->end = embedding->first ? embedding->end : &embedding->first;
    return document;
}

static void end_if_over(const struct embedding *embedding, struct qr_embed_document *document)
{
    if (document->is_read && document->open_count == 0) {
        embedding->feed->end(embedding->feed->arg, document);
    }
}

/* It has no more chunks to read, or no more are wanted. */
static void leave_line(const struct embedding *embedding, struct qr_embed_document *document)
{
    document->is_read = true;
    end_if_over(embedding, document);
}

/* So many documents could be under way besides those that are, by what they had so far. */
static size_t room_for_documents(const struct embedding *embedding)
{
    const size_t average = QR_MAX(embedding->chunk_count / QR_MAX(embedding->document_count, (size_t)1), (size_t)1);
    return (PAGES - embedding->open_count) * PAGE_CHUNKS / average;
}

static bool take_documents(struct embedding *embedding, const struct page *page)
{
    struct qr_embed_document *next =
        embedding->feed->take(embedding->feed->arg, PAGE_CHUNKS - page->count, room_for_documents(embedding));
    while (next) {
        struct qr_embed_document *document = next;
        next = document->next;
        enqueue(embedding, document);
        embedding->document_count++;
    }
    return embedding->first != NULL;
}

/* ---- what they have already ---- */

struct counting {
    const char *fingerprint;
    const struct qr_chunk_span *span;
    int64_t shortened_count;
};

static qr_rc count_shortened(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct counting *counting = arg;
    bool has_shortened;
    counting->shortened_count = 0;
    QR_TRY(qr_model_has_shortened(tx, counting->fingerprint, &has_shortened, err));
    for (size_t i = 0; has_shortened && i < counting->span->count; i++) {
        const struct qr_chunk_row *row = &counting->span->rows[i];
        unsigned char key[QR_VECTOR_KEY_BYTES];
        bool is_shortened = false;
        if (row->has_vector || row->has_failed) {
            qr_vector_key(counting->fingerprint, row->chunk.text, key);
            QR_TRY(qr_vector_is_shortened(tx, key, &is_shortened, err));
        }
        counting->shortened_count += is_shortened;
    }
    return QR_OK;
}

/* Of chunks that an attempt before this one embedded, the cache is asked whether they were shortened. */
static qr_rc count_chunks(const struct embedding *embedding, struct qr_embed_document *document,
                          const struct qr_chunk_span *span, qr_err *err)
{
    struct qr_embedded *embedded = &document->embedded;
    bool has_some = false;
    for (size_t i = 0; i < span->count; i++) {
        const struct qr_chunk_row *row = &span->rows[i];
        embedded->token_count += row->chunk.token_count;
        embedded->failed_count += row->has_failed;
        has_some = has_some || row->has_vector || row->has_failed;
    }
    embedded->chunk_count += (int64_t)span->count;
    if (has_some && embedding->batcher) {
        struct counting counting = {.fingerprint = qr_batcher_provider(embedding->batcher)->fingerprint, .span = span};
        QR_TRY(qr_db_read(document->attempt->run->db, count_shortened, &counting, err));
        embedded->shortened_count += counting.shortened_count;
    }
    return QR_OK;
}

/* ---- reading ---- */

static int64_t turn_chunks(const struct embedding *embedding)
{
    return embedding->leaves_large ? TOGETHER_CHUNKS_MAX + 1 : TURN_CHUNKS;
}

static void add_chunk(const struct embedding *embedding, struct page *page, struct qr_embed_document *document,
                      const struct qr_chunk *chunk, bool has_result)
{
    document->next_ordinal = chunk->ordinal + 1;
    if (embedding->batcher && !has_result) {
        document->open_count++;
        page->chunks[page->count++] = (struct chunk){
            .document = document, .ordinal = chunk->ordinal, .text = chunk->text, .token_count = chunk->token_count};
    }
}

/* What was read of a document goes into the page. One that has more is in line again, behind the others. */
static void take_span(struct embedding *embedding, struct page *page, struct qr_embed_document *document,
                      const struct qr_chunk_span *span, bool is_all)
{
    qr_err error = {0};
    if (embedding->leaves_large && !is_all) {
        document->is_large = true;
        set_error(document, qr_fail(&error, QR_CODE_TOO_LARGE, "it is to be embedded alone"), &error);
    } else {
        const qr_rc rc = count_chunks(embedding, document, span, &error);
        if (rc != QR_OK) {
            set_error(document, rc, &error);
        }
    }
    for (size_t i = 0; i < span->count && document->rc == QR_OK; i++) {
        const struct qr_chunk_row *row = &span->rows[i];
        add_chunk(embedding, page, document, &row->chunk, row->has_vector || row->has_failed);
    }
    page->read_count += span->count;
    embedding->chunk_count += span->count;
    if (is_all || document->rc != QR_OK) {
        leave_line(embedding, document);
    } else {
        enqueue(embedding, document);
    }
}

/* The first in line and those behind it that can be read with it: of its base, and wanted. */
static size_t choose_documents(struct embedding *embedding, size_t max, struct qr_chunk_span *spans,
                               struct qr_embed_document **ret_documents)
{
    size_t count = 0;
    while (count < max && embedding->first) {
        struct qr_embed_document *document = embedding->first;
        qr_err error = {0};
        const qr_rc rc = document->rc == QR_OK ? qr_attempt_go_on(document->attempt, &error) : document->rc;
        if (rc != QR_OK) {
            set_error(document, rc, &error);
            leave_line(embedding, dequeue(embedding));
            continue;
        }
        const bool is_other = count > 0 && (!qr_uuid_equal(document->item->base_id, ret_documents[0]->item->base_id) ||
                                            document->model != ret_documents[0]->model);
        if (is_other) {
            break;
        }
        spans[count] = (struct qr_chunk_span){.item_id = document->item->id,
                                              .generation = document->generation,
                                              .first = document->next_ordinal,
                                              .last = document->next_ordinal + turn_chunks(embedding) - 1};
        ret_documents[count++] = dequeue(embedding);
    }
    return count;
}

static void put_back(struct embedding *embedding, struct qr_embed_document *const *documents, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        documents[i - 1]->next = embedding->first;
        embedding->end = embedding->first ? embedding->end : &documents[i - 1]->next;
        embedding->first = documents[i - 1];
    }
}

/* Chunks of up to `max` documents in one read. Where that fails it may be one document's alone: then the first finds out for
 * itself, and the others have their turn again. */
static void read_documents(struct embedding *embedding, struct page *page, size_t max)
{
    struct qr_chunk_span spans[DOCUMENTS_A_READ];
    struct qr_embed_document *documents[DOCUMENTS_A_READ];
    const size_t rows_max = PAGE_CHUNKS - page->count;
    const size_t count = choose_documents(embedding, max, spans, documents);
    size_t done = 0;
    qr_err error = {0};
    if (count == 0) {
        return;
    }
    const qr_rc rc = qr_index_load_spans_upto(documents[0]->attempt->context->index, documents[0]->item->base_id,
                                              documents[0]->model, spans, count, rows_max, &page->arena, &done, &error);
    if (rc != QR_OK && count > 1) {
        put_back(embedding, documents, count);
        read_documents(embedding, page, 1);
        return;
    }
    if (rc != QR_OK) {
        set_error(documents[0], rc, &error);
        leave_line(embedding, documents[0]);
        return;
    }
    put_back(embedding, documents + done, count - done);
    for (size_t i = 0, rows = 0; i < done; i++) {
        rows += spans[i].count;
        const bool is_all = (int64_t)spans[i].count < turn_chunks(embedding) && rows < rows_max;
        take_span(embedding, page, documents[i], &spans[i], is_all);
    }
}

/* How many documents can be read at once. */
static size_t readable(const struct embedding *embedding, const struct page *page)
{
    const size_t room = PAGE_CHUNKS - page->count;
    if (page->read_count >= READ_CHUNKS_MAX) {
        return 0;
    }
    return embedding->leaves_large ? room > TOGETHER_CHUNKS_MAX : QR_MIN(room, (size_t)DOCUMENTS_A_READ);
}

/* False: there is nothing left to read now. */
static bool read_page(struct embedding *embedding, struct page *page)
{
    qr_arena_reset(&page->arena);
    page->count = page->read_count = 0;
    size_t max;
    while ((max = readable(embedding, page)) > 0) {
        if (!embedding->first && !take_documents(embedding, page)) {
            return page->count > 0;
        }
        read_documents(embedding, page, max);
    }
    return true;
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
        page->chunks[i].is_shortened = looks[i].found.is_found && looks[i].found.kept_bytes > 0;
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

/* Those of its documents that are over end with it. */
static void page_close(const struct embedding *embedding, struct page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        page->chunks[i].document->open_count--;
        end_if_over(embedding, page->chunks[i].document);
    }
}

/* False: there is nothing left to read now. */
static bool page_begin(struct embedding *embedding)
{
    struct page *page = &embedding->pages[(embedding->oldest + embedding->open_count) % PAGES];
    qr_err error = {0};
    if (!read_page(embedding, page)) {
        return false;
    }
    const qr_rc rc = page->count > 0 ? look_into_cache(embedding, page, &error) : QR_OK;
    if (rc != QR_OK) {
        page_fail(page, rc, &error);
        page_close(embedding, page);
    } else if (page->count > 0) {
        ask(embedding, page);
        const struct qr_attempt *attempt = page->chunks[0].document->attempt;
        qr_vector_counts_add(attempt->context->counts, attempt->run->db, attempt->run->clock,
                             page->count - page->work.count, page->work.count);
        embedding->open_count++;
    }
    return true;
}

/* ---- the index ---- */

static void collect_vector(const struct page *page, const struct chunk *chunk, struct qr_chunk_vector *vectors,
                           size_t *count, qr_rc rc, const qr_err *error)
{
    struct qr_embed_document *document = chunk->document;
    const struct qr_embed_input *input = chunk->cached ? NULL : &page->inputs[chunk->input];
    if (!input || input->state == QR_INPUT_DONE || input->state == QR_INPUT_FAILED) {
        const bool has_failed = input && input->state == QR_INPUT_FAILED;
        const float *vector = !input ? chunk->cached : has_failed ? NULL : input->vector;
        const bool is_shortened = input ? !has_failed && input->kept_bytes < input->text.len : chunk->is_shortened;
        document->embedded.failed_count += has_failed;
        document->embedded.shortened_count += is_shortened;
        vectors[(*count)++] = (struct qr_chunk_vector){chunk->ordinal, vector};
    } else if (input->state == QR_INPUT_UNWANTED) {
        set_error(document, document->owner.why.rc, &document->owner.why);
    } else {
        set_error(document, rc, error);
    }
}

/* The chunks of a page by document: those that stand together are one part. */
struct parts {
    struct qr_index_document parts[PAGE_CHUNKS];
    struct qr_embed_document *documents[PAGE_CHUNKS]; /* of each */
    size_t count;
    struct qr_chunk_vector vectors[PAGE_CHUNKS];
    struct qr_vector_space space;
};

/* What was done of a document that is not to be written is in the cache. */
static void collect_parts(const struct page *page, struct parts *parts, qr_rc rc, const qr_err *error)
{
    size_t vector_count = 0;
    for (size_t from = 0, to = 0; from < page->count; from = to) {
        struct qr_embed_document *document = page->chunks[from].document;
        const size_t first = vector_count;
        for (; to < page->count && page->chunks[to].document == document; to++) {
            collect_vector(page, &page->chunks[to], parts->vectors, &vector_count, rc, error);
        }
        parts->documents[parts->count] = document;
        parts->parts[parts->count++] = (struct qr_index_document){.item_id = document->item->id,
                                                                  .generation = document->generation,
                                                                  .vectors = parts->vectors + first,
                                                                  .count = vector_count - first,
                                                                  .owner = document->attempt};
    }
}

static void note_written(const struct embedding *embedding, struct qr_embed_document *document, size_t count)
{
    const struct qr_attempt *attempt = document->attempt;
    document->done_count += (int64_t)count;
    if (!document->is_read && embedding->batcher && qr_uuid_equal(document->item->id, attempt->item.id)) {
        qr_job_progress(attempt->run, document->done_count, 0);
    }
}

static qr_rc write_part(const struct parts *parts, size_t i, qr_err *err)
{
    const struct qr_index_document *part = &parts->parts[i];
    struct qr_attempt *attempt = parts->documents[i]->attempt;
    const struct qr_index_guard guard = qr_attempt_vector_guard(attempt);
    return qr_index_write_vectors(attempt->context->index, parts->documents[i]->item->base_id, part->item_id,
                                  part->generation, parts->space, part->vectors, part->count, &guard, err);
}

/* Those of one base: together, else each finds out for itself what is wrong. */
static void write_parts(const struct embedding *embedding, struct parts *parts, size_t from, size_t to)
{
    const struct qr_embed_document *first = parts->documents[from];
    const qr_rc rc = qr_index_write_vectors_of(first->attempt->context->index, first->item->base_id, parts->space,
                                               parts->parts + from, to - from, qr_attempts_vector_guard,
                                               first->attempt->run->db, NULL);
    for (size_t i = from; i < to; i++) {
        qr_err own = {0};
        const bool is_written = rc == QR_OK && parts->parts[i].is_wanted;
        const qr_rc alone = is_written ? QR_OK : write_part(parts, i, &own);
        if (alone != QR_OK) {
            set_error(parts->documents[i], alone, &own);
        }
        note_written(embedding, parts->documents[i], parts->parts[i].count);
    }
}

static void drop_failed(struct parts *parts)
{
    size_t kept = 0;
    for (size_t i = 0; i < parts->count; i++) {
        parts->parts[kept] = parts->parts[i];
        parts->documents[kept] = parts->documents[i];
        kept += parts->documents[i]->rc == QR_OK;
    }
    parts->count = kept;
}

static void write_page(const struct embedding *embedding, const struct page *page, qr_rc rc, const qr_err *error)
{
    struct parts parts = {.count = 0};
    parts.space.model = page->chunks[0].document->model;
    parts.space.dimension = QR_MAX(QR_MAX(page->work.dimension, page->dimension), 1);
    collect_parts(page, &parts, rc, error);
    drop_failed(&parts);
    for (size_t from = 0, to = 0; from < parts.count; from = to) {
        const qr_uuid base_id = parts.documents[from]->item->base_id;
        while (to < parts.count && qr_uuid_equal(parts.documents[to]->item->base_id, base_id)) {
            to++;
        }
        write_parts(embedding, &parts, from, to);
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
    return count == 0 ? QR_OK
                      : qr_embedding_keep(page->chunks[0].document->attempt->run->db,
                                          qr_batcher_provider(embedding->batcher)->fingerprint, page->work.dimension,
                                          paid, count, err);
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
    write_page(embedding, page, rc, &error);
    qr_embed_end(&page->work);
    page_close(embedding, page);
    embedding->oldest = (embedding->oldest + 1) % PAGES;
    embedding->open_count--;
}

static void embed_all(struct embedding *embedding)
{
    for (size_t i = 0; i < PAGES; i++) {
        qr_arena_init(&embedding->pages[i].arena, 0);
    }
    bool goes_on = true;
    while (goes_on) {
        const bool has_begun = embedding->open_count < PAGES && page_begin(embedding);
        goes_on = has_begun || embedding->open_count > 0;
        if (!has_begun && goes_on) {
            page_end(embedding);
        }
    }
    for (size_t i = 0; i < PAGES; i++) {
        qr_arena_done(&embedding->pages[i].arena);
    }
}

/* ---- the whole ---- */

static void fail_all(const struct qr_embed_feed *feed)
{
    struct qr_embed_document *next = feed->take(feed->arg, PAGE_CHUNKS, 0);
    while (next) {
        struct qr_embed_document *document = next;
        next = document->next;
        document->rc = qr_handler_out_of_memory(&document->error);
        feed->end(feed->arg, document);
    }
}

static void embed_fed(struct qr_batcher *batcher, const struct qr_embed_feed *feed, bool leaves_large)
{
    struct embedding embedding = {.batcher = batcher, .feed = feed, .leaves_large = leaves_large};
    embedding.end = &embedding.first;
    embedding.pages = qr_alloc_zero(PAGES * sizeof embedding.pages[0]);
    if (!embedding.pages) {
        fail_all(feed);
        return;
    }
    embed_all(&embedding);
    qr_free(embedding.pages);
}

/* A model in this process takes the thread that waits for it. */
static bool is_local(struct qr_batcher *batcher)
{
    return batcher && qr_batcher_provider(batcher)->call_threads == 0;
}

void qr_embed_stream(struct qr_batcher *batcher, const struct qr_embed_feed *feed)
{
    embed_fed(batcher, feed, is_local(batcher));
}

/* Documents that are all there. */
struct fixed_feed {
    struct qr_embed_document *documents;
    size_t count, next;
};

static struct qr_embed_document *take_fixed(void *arg, size_t max, size_t room QR_UNUSED)
{
    struct fixed_feed *fixed = arg;
    struct qr_embed_document *first = NULL;
    const size_t count = QR_MIN(max, fixed->count - fixed->next);
    for (size_t i = fixed->next + count; i > fixed->next; i--) {
        fixed->documents[i - 1].next = first;
        first = &fixed->documents[i - 1];
    }
    fixed->next += count;
    return first;
}

static void end_fixed(void *arg QR_UNUSED, struct qr_embed_document *document QR_UNUSED)
{
    /* they are the caller's */
}

struct qr_embed_document qr_embed_document_of(struct qr_attempt *attempt, const struct qr_item *item,
                                              int64_t generation, int64_t model)
{
    return (struct qr_embed_document){
        .attempt = attempt, .item = item, .generation = generation, .model = model, .owner = {.arg = attempt}};
}

void qr_embed_documents(struct qr_batcher *batcher, struct qr_embed_document *documents, size_t count)
{
    struct fixed_feed fixed = {documents, count, 0};
    const struct qr_embed_feed feed = {take_fixed, end_fixed, &fixed};
    embed_fed(batcher, &feed, count > 1 && is_local(batcher));
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
    struct qr_embed_document document = qr_embed_document_of(attempt, item, generation, qr_model_key(&attempt->live));
    return embed_one(batcher, &document, ret_embedded, err);
}

qr_rc qr_embed_wanted_chunks(struct qr_attempt *attempt, const struct qr_item *item, int64_t generation,
                             struct qr_embedded *ret_embedded, qr_err *err)
{
    struct qr_batcher *batcher;
    QR_TRY(qr_attempt_wanted_batcher(attempt, &batcher, err));
    struct qr_embed_document document =
        qr_embed_document_of(attempt, item, generation, qr_model_key(&attempt->settings.embedding));
    return embed_one(batcher, &document, ret_embedded, err);
}
