/* Those who wait for vectors, and the threads that make the calls: of the batcher's own where the provider is far away and
 * several calls can be under way, else those who wait. */
#include "embed/batcher.h"

#include "base/mem.h"
#include "embed/batcher_internal.h"

enum {
    CANCEL_LOOK_MS = 1000,
    LOOKS_END_MS = 2,         /* between looks whether the last look at an owner is over */
    WAIT_HERE_MS_MAX = 10000, /* a provider that asks for more time than this is asked all the same, and says why */
    WAIT_MS_MIN = 1000,
    BYTES_A_TOKEN = 4,
    DUE_AGAIN_MS = 1,
};

int64_t qr_batcher_now(const struct qr_batcher *batcher)
{
    return qr_clock_mono_ms(batcher->options.clock);
}

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for texts that are to be embedded");
}

/* ---- entries ---- */

void qr_embed_entry_unref(struct qr_embed_entry *entry)
{
    if (--entry->ref_count == 0) {
        qr_free(entry->text);
        qr_free(entry->vector);
        qr_free(entry);
    }
}

void qr_embed_entry_forget(struct qr_batcher *batcher, struct qr_embed_entry *entry)
{
    if (entry->is_mapped) {
        qr_map_take(&batcher->by_key, (qr_str){(const char *)entry->key, sizeof entry->key});
        entry->is_mapped = false;
    }
}

void qr_embed_entry_remember(struct qr_batcher *batcher, struct qr_embed_entry *entry)
{
    struct qr_embed_entry **place = &batcher->recent[batcher->recent_at++ % RECENT_MAX];
    if (*place) {
        qr_embed_entry_forget(batcher, *place);
        qr_embed_entry_unref(*place);
    }
    *place = entry;
    qr_free(entry->text); /* its key is enough */
    entry->text = NULL;
}

static void forget_recent(struct qr_batcher *batcher)
{
    for (size_t i = 0; i < RECENT_MAX; i++) {
        if (batcher->recent[i]) {
            qr_embed_entry_forget(batcher, batcher->recent[i]);
            qr_embed_entry_unref(batcher->recent[i]);
            batcher->recent[i] = NULL;
        }
    }
}

void qr_embed_entry_tell(struct qr_embed_entry *entry, struct qr_embed_input *input, enum qr_input_state state)
{
    if (state == QR_INPUT_DONE) {
        input->work->dimension = entry->dimension;
        input->vector = entry->vector;
    }
    input->kept_bytes = entry->kept_len;
    qr_embed_input_settle(input, state);
}

void qr_embed_input_settle(struct qr_embed_input *input, enum qr_input_state state)
{
    input->state = state;
    input->next_waiter = NULL;
    input->work->waiting_count--;
}

/* A text that is sure to be too much is not sent whole (M5): as much as fits by our own count. */
static void limit_entry(const struct qr_batcher *batcher, struct qr_embed_entry *entry)
{
    const struct qr_embed_limits *limits = &batcher->provider->limits;
    size_t len = entry->len;
    if (limits->input_tokens_max > 0 && entry->tokens > limits->input_tokens_max) {
        len = (size_t)((double)len * (double)limits->input_tokens_max / (double)entry->tokens);
    }
    if (limits->bytes_max > 0) {
        len = QR_MIN(len, (size_t)limits->bytes_max / 2); /* escapes may double it */
    }
    if (len < entry->len) {
        qr_embed_entry_shorten(entry, len);
    }
}

static struct qr_embed_entry *entry_create(const struct qr_batcher *batcher, const struct qr_embed_input *input,
                                           const unsigned char key[static QR_HASH_BYTES])
{
    struct qr_embed_entry *entry = qr_alloc_zero(sizeof *entry);
    char *text = qr_alloc(input->text.len + 1);
    if (!entry || !text) {
        qr_free(entry);
        qr_free(text);
        return NULL;
    }
    memcpy(text, input->text.ptr, input->text.len);
    memcpy(entry->key, key, sizeof entry->key);
    entry->text = text;
    entry->len = entry->kept_len = input->text.len;
    entry->tokens = QR_MAX(input->tokens > 0 ? input->tokens : (int64_t)(input->text.len / BYTES_A_TOKEN), (int64_t)1);
    entry->is_query = input->work->is_query;
    entry->arrived_mono_ms = qr_batcher_now(batcher);
    entry->ref_count = 1; /* the line's */
    limit_entry(batcher, entry);
    return entry;
}

/* The one that is there already (M4), or a new one. */
static struct qr_embed_entry *entry_for(struct qr_batcher *batcher, const struct qr_embed_input *input)
{
    unsigned char key[QR_HASH_BYTES];
    qr_hash_128(input->text, key);
    const qr_str map_key = {(const char *)key, sizeof key};
    struct qr_embed_entry *entry = input->work->is_query ? NULL : qr_map_find(&batcher->by_key, map_key);
    if (entry && (!entry->text || qr_str_equal((qr_str){entry->text, entry->len}, input->text))) {
        return entry;
    }
    const bool is_taken = entry != NULL;
    entry = entry_create(batcher, input, key);
    if (!entry) {
        return NULL;
    }
    if (!input->work->is_query && !is_taken) {
        if (!qr_map_put(&batcher->by_key, map_key, entry)) {
            qr_embed_entry_unref(entry);
            return NULL;
        }
        entry->is_mapped = true;
    }
    qr_embed_line_add(batcher, entry);
    return entry;
}

/* ---- works ---- */

static void detach(struct qr_batcher *batcher, struct qr_embed_input *input)
{
    struct qr_embed_entry *entry = input->entry;
    struct qr_embed_input **link = &entry->waiters;
    while (*link != input) {
        link = &(*link)->next_waiter;
    }
    *link = input->next_waiter;
    if (!entry->waiters && entry->is_in_line) {
        qr_embed_line_take(batcher, entry);
        qr_embed_entry_forget(batcher, entry);
        qr_embed_entry_unref(entry);
    }
}

void qr_embed_input_drop(struct qr_embed_input *input, enum qr_input_state state)
{
    detach(input->work->batcher, input);
    qr_embed_input_settle(input, state);
}

void qr_embed_work_stop(struct qr_embed_work *work, const qr_err *error)
{
    work->has_failed = true;
    work->error = *error;
    for (size_t i = 0; i < work->count && work->waiting_count > 0; i++) {
        if (work->inputs[i].state == QR_INPUT_WAITING && work->inputs[i].entry) {
            qr_embed_input_drop(&work->inputs[i], QR_INPUT_STOPPED);
        }
    }
}

void qr_embed_line_stop(struct qr_batcher *batcher, const qr_err *error)
{
    for (size_t i = 0; i < LISTS; i++) {
        while (batcher->lists[i].first) {
            qr_embed_work_stop(batcher->lists[i].first->waiters->work, error);
        }
    }
    qr_signal_all(&batcher->changed);
}

/* ---- calling; with the lock held ---- */

/* Whether a call can be made now; else *ret_until_mono_ms is when to look again. */
static bool is_time(struct qr_batcher *batcher, bool with_documents, int64_t *ret_until_mono_ms)
{
    struct qr_provider *provider = batcher->provider;
    const int64_t now_ms = qr_batcher_now(batcher);
    struct qr_embed_next next;
    if (!qr_embed_line_is_due(batcher, with_documents, now_ms, ret_until_mono_ms, &next)) {
        return false;
    }
    const int64_t wait_ms = provider->wait_ms ? provider->wait_ms(provider, &next) : 0;
    *ret_until_mono_ms = now_ms + QR_MAX(wait_ms, (int64_t)DUE_AGAIN_MS);
    return wait_ms <= 0 || wait_ms > WAIT_HERE_MS_MAX;
}

static void call_thread(void *arg);

/* As many threads as calls may be under way, and one that documents do not take. */
static qr_rc add_thread(struct qr_batcher *batcher, qr_err *err)
{
    const int max = QR_MIN(batcher->provider->call_threads, (int)CALL_THREADS_MAX) + 1;
    const bool is_empty = batcher->document_count == 0 && batcher->query_count == 0;
    if (batcher->provider->call_threads == 0 || is_empty || batcher->idle_count > 0 || batcher->thread_count >= max) {
        return QR_OK;
    }
    const qr_rc rc = qr_thread_spawn(&batcher->threads[batcher->thread_count], "embed-call", call_thread, batcher, err);
    batcher->thread_count += rc == QR_OK;
    return batcher->thread_count > 0 ? QR_OK : rc; /* with fewer it takes longer */
}

static void make_call(struct qr_batcher *batcher, bool with_documents)
{
    struct call *call = qr_embed_line_take_call(batcher, with_documents);
    if (call) {
        (void)!add_thread(batcher, NULL); /* for what is left */
        qr_embed_call_run(call);
    } else {
        qr_err error;
        out_of_memory(&error);
        qr_embed_line_stop(batcher, &error);
    }
}

static void call_thread(void *arg)
{
    struct qr_batcher *batcher = arg;
    QR_HOLD(&batcher->lock);
    while (atomic_load(&batcher->closing_mono_ms) == 0) {
        const bool with_documents = batcher->document_calls < batcher->provider->call_threads;
        int64_t until_ms;
        if (is_time(batcher, with_documents, &until_ms)) {
            make_call(batcher, with_documents);
            continue;
        }
        batcher->idle_count++;
        if (until_ms == INT64_MAX) {
            qr_signal_wait(&batcher->changed, &batcher->lock);
        } else {
            qr_signal_wait_until(&batcher->changed, &batcher->lock, batcher->options.clock, until_ms);
        }
        batcher->idle_count--;
    }
}

/* ---- asking ---- */

static qr_rc hand_in(struct qr_batcher *batcher, struct qr_embed_work *work, qr_err *err)
{
    for (size_t i = 0; i < work->count; i++) {
        struct qr_embed_input *input = &work->inputs[i];
        struct qr_embed_entry *entry = entry_for(batcher, input);
        if (!entry) {
            return out_of_memory(err);
        }
        entry->ref_count++;
        input->entry = entry;
        work->waiting_count++;
        if (entry->vector) {
            input->was_there = true;
            qr_embed_entry_tell(entry, input, QR_INPUT_DONE);
        } else {
            input->next_waiter = entry->waiters;
            entry->waiters = input;
        }
    }
    return add_thread(batcher, err);
}

void qr_embed_begin(struct qr_batcher *batcher, struct qr_embed_work *work)
{
    QR_HOLD(&batcher->lock);
    work->batcher = batcher;
    work->id = ++batcher->work_count;
    work->waiting_count = 0;
    work->dimension = 0;
    work->has_failed = false;
    atomic_init(&work->look_count, 0);
    for (size_t i = 0; i < work->count; i++) {
        struct qr_embed_input *input = &work->inputs[i];
        input->state = QR_INPUT_WAITING;
        input->vector = NULL;
        input->was_there = false;
        input->entry = NULL;
        input->next_waiter = NULL;
        input->work = work;
    }
    qr_err error = {0};
    if (hand_in(batcher, work, &error) != QR_OK) {
        qr_embed_work_stop(work, &error); /* waiting for it says so */
    }
    qr_signal_all(&batcher->changed);
}

/* Until something changes, or it is time to look. */
static void wait_for_change(struct qr_embed_work *work, int64_t until_mono_ms)
{
    struct qr_batcher *batcher = work->batcher;
    const int64_t now_ms = qr_batcher_now(batcher);
    int64_t until_ms = until_mono_ms;
    until_ms = work->is_cancelled ? QR_MIN(until_ms, now_ms + CANCEL_LOOK_MS) : until_ms;
    until_ms = work->deadline_mono_ms ? QR_MIN(until_ms, work->deadline_mono_ms) : until_ms;
    if (until_ms == INT64_MAX) {
        qr_signal_wait(&batcher->changed, &batcher->lock);
    } else {
        qr_signal_wait_until(&batcher->changed, &batcher->lock, batcher->options.clock, until_ms);
    }
}

static bool is_over(struct qr_embed_work *work)
{
    qr_err error;
    if (work->waiting_count == 0) {
        return true;
    }
    if (work->is_cancelled && work->is_cancelled(work->cancel_arg)) {
        qr_fail(&error, QR_CODE_CANCELLED, "it was told to end");
    } else if (work->deadline_mono_ms && qr_batcher_now(work->batcher) >= work->deadline_mono_ms) {
        qr_fail(&error, QR_CODE_TIMEOUT, "the model did not answer in time");
    } else {
        return false;
    }
    qr_embed_work_stop(work, &error);
    return true;
}

qr_rc qr_embed_wait(struct qr_embed_work *work, qr_err *err)
{
    struct qr_batcher *batcher = work->batcher;
    QR_HOLD(&batcher->lock);
    while (!is_over(work)) {
        int64_t until_ms = INT64_MAX;
        if (batcher->provider->call_threads == 0 && is_time(batcher, true, &until_ms)) {
            make_call(batcher, true);
        } else {
            wait_for_change(work, batcher->provider->call_threads == 0 ? until_ms : INT64_MAX);
        }
    }
    if (work->has_failed) {
        *err = work->error;
        return err->rc;
    }
    return QR_OK;
}

void qr_embed_end(struct qr_embed_work *work)
{
    struct qr_batcher *batcher = work->batcher;
    QR_HOLD(&batcher->lock);
    qr_err ended;
    qr_fail(&ended, QR_CODE_CANCELLED, "nobody waits for it any more");
    qr_embed_work_stop(work, &ended);
    while (atomic_load(&work->look_count) > 0) { /* which reads what the caller is about to free */
        qr_signal_wait_until(&batcher->changed, &batcher->lock, batcher->options.clock,
                             qr_batcher_now(batcher) + LOOKS_END_MS);
    }
    for (size_t i = 0; i < work->count; i++) {
        if (work->inputs[i].entry) {
            qr_embed_entry_unref(work->inputs[i].entry);
            work->inputs[i].entry = NULL;
            work->inputs[i].vector = NULL;
        }
    }
}

/* ---- the whole ---- */

qr_rc qr_batcher_create(struct qr_batcher **ret_batcher, const struct qr_batcher_options *options, qr_err *err)
{
    struct qr_batcher *batcher = qr_alloc_zero(sizeof *batcher);
    if (!batcher) {
        return out_of_memory(err);
    }
    batcher->options = *options;
    batcher->provider = options->provider;
    qr_mutex_init(&batcher->lock);
    qr_signal_init(&batcher->changed);
    qr_map_init(&batcher->by_key, (uint64_t)(uintptr_t)batcher);
    *ret_batcher = batcher;
    return QR_OK;
}

void qr_batcher_free(struct qr_batcher *batcher)
{
    if (!batcher) {
        return;
    }
    qr_mutex_lock(&batcher->lock);
    atomic_store(&batcher->closing_mono_ms, QR_MAX(qr_batcher_now(batcher), (int64_t)1));
    qr_signal_all(&batcher->changed);
    qr_mutex_unlock(&batcher->lock);
    for (int i = 0; i < batcher->thread_count; i++) {
        qr_thread_join(&batcher->threads[i]);
    }
    forget_recent(batcher);
    qr_map_done(&batcher->by_key);
    qr_signal_done(&batcher->changed);
    qr_mutex_done(&batcher->lock);
    qr_free(batcher);
}

struct qr_provider *qr_batcher_provider(struct qr_batcher *batcher)
{
    return batcher->provider;
}

qr_rc qr_batcher_dimension(struct qr_batcher *batcher, int *ret_dimension, qr_err *err)
{
    const struct qr_batcher_hooks *hooks = &batcher->options.hooks;
    int dimension = atomic_load(&batcher->dimension);
    if (dimension == 0 && hooks->dimension) {
        QR_TRY(hooks->dimension(hooks->arg, batcher->provider->fingerprint, &dimension, err));
        atomic_store(&batcher->dimension, dimension);
    }
    *ret_dimension = dimension;
    return QR_OK;
}

static qr_rc look_at_owner(struct qr_batcher *batcher, const void *owner, qr_err *err)
{
    const struct qr_batcher_hooks *hooks = &batcher->options.hooks;
    struct qr_embed_asked asked = {.arg = owner, .is_wanted = true};
    if (hooks->look) {
        QR_TRY(hooks->look(hooks->arg, &asked, 1, err));
    }
    if (!asked.is_wanted) {
        *err = asked.why;
        return asked.why.rc;
    }
    return QR_OK;
}

qr_rc qr_batcher_probe(struct qr_batcher *batcher, const void *owner, int *ret_dimension, qr_err *err)
{
    struct qr_provider *provider = batcher->provider;
    const qr_str word = QR_STR("dimension");
    bool is_bad;
    struct qr_embed_answer answer = {.is_bad = &is_bad};
    const struct qr_embed_request request = {
        .texts = &word, .count = 1, .tokens = 1, .is_query = true, .wait_ms_max = WAIT_HERE_MS_MAX};
    QR_TRY(look_at_owner(batcher, owner, err));
    QR_TRY(provider->embed(provider, &request, &answer, err));
    qr_free(answer.vectors);
    if (provider->dimensions && answer.dimension != provider->dimensions) {
        return qr_fail(err, QR_CODE_DIMENSION_MISMATCH,
                       "the model's vectors have %d dimensions, where %d are asked for", answer.dimension,
                       provider->dimensions);
    }
    *ret_dimension = answer.dimension;
    return QR_OK;
}

void qr_batcher_forget_dimension(struct qr_batcher *batcher)
{
    QR_HOLD(&batcher->lock);
    atomic_store(&batcher->dimension, 0);
    forget_recent(batcher);
}

int64_t qr_batcher_wait_ms(struct qr_batcher *batcher)
{
    struct qr_provider *provider = batcher->provider;
    const int64_t wait_ms = provider->put_off_ms ? provider->put_off_ms(provider)
                            : provider->wait_ms  ? provider->wait_ms(provider, &(struct qr_embed_next){0})
                                                 : 0;
    return QR_MAX(wait_ms, (int64_t)WAIT_MS_MIN);
}
