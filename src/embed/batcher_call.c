/* One call: whether it is still wanted, the provider, and what becomes of each of its texts (M2, M3, M5, M6). */
#include "base/failpoint.h"
#include "base/mem.h"
#include "embed/batcher_internal.h"
#include "text/unicode.h"

#include <assert.h>

enum {
    WAIT_MS_MAX = 2000,       /* for the permission to call, after the look: what was found must still be true */
    WAIT_HERE_MS_MAX = 10000, /* longer waits are written down by those who wait */
    REFUSED_MAX = 2,
    CAPPED_ANSWERS_MAX = 1000, /* after so many calls of what was found to be small enough, more is tried again */
    LIMITED_MAX = 4,           /* a text that was put off more often lets its owners go */
    CLOSING_MS = 2000,         /* what is under way may still end, and is kept */
    CUT_BYTES_MIN = 64,        /* a text of which less is left says nothing */
    CUT_LOOK_BACK = 64,        /* for the beginning of a word */
};

/* ---- the call itself; without the lock ---- */

static bool is_closing(void *arg)
{
    const struct qr_batcher *batcher = arg;
    const int64_t since_ms = atomic_load(&batcher->closing_mono_ms);
    return since_ms > 0 && qr_batcher_now(batcher) >= since_ms + CLOSING_MS;
}

static qr_rc look(struct call *call, qr_err *err)
{
    const struct qr_batcher_hooks *hooks = &call->batcher->options.hooks;
    qr_rc rc = QR_OK;
    if (hooks->look && call->asked_count > 0) {
        rc = hooks->look(hooks->arg, call->asked, call->asked_count, err);
    } else {
        for (size_t i = 0; i < call->asked_count; i++) {
            call->asked[i].is_wanted = true;
        }
    }
    for (size_t i = 0; i < call->count; i++) {
        struct call_item *item = &call->items[i];
        item->is_wanted = item->has_no_owner;
        for (size_t k = 0; k < item->owner_count; k++) {
            item->is_wanted = item->is_wanted || call->asked[item->owners_from + k].is_wanted;
        }
    }
    for (size_t i = 0; i < call->asked_count;
         i++) { /* from here on a work may end: its owners are not looked at any more */
        atomic_fetch_sub(&call->owners[i].work->look_count, 1);
        call->owners[i].work = NULL;
    }
    return rc;
}

static qr_rc check_dimension(struct call *call, qr_err *err)
{
    struct qr_batcher *batcher = call->batcher;
    const int found = call->answer.dimension;
    const int wanted = batcher->provider->dimensions;
    int known;
    QR_TRY(qr_batcher_dimension(batcher, &known, err));
    known = known ? known : wanted;
    if ((wanted && found != wanted) || (known && found != known)) {
        return qr_fail(err, QR_CODE_DIMENSION_MISMATCH,
                       "the model's vectors have %d dimensions now, where %d were asked for or stored before", found,
                       wanted && found != wanted ? wanted : known);
    }
    return QR_OK;
}

/* Those of queries are not kept. */
static qr_rc keep(struct call *call, qr_err *err)
{
    struct qr_batcher *batcher = call->batcher;
    const struct qr_batcher_hooks *hooks = &batcher->options.hooks;
    size_t sent = 0, count = 0;
    for (size_t i = 0; i < call->count; i++) {
        if (!call->items[i].is_wanted) {
            continue;
        }
        const struct qr_embed_entry *entry = call->items[i].entry;
        if (!call->is_bad[sent]) {
            call->paid[count++] = (struct qr_embed_paid){
                .text = {entry->text, entry->len},
                .vector = call->answer.vectors + sent * (size_t)call->answer.dimension,
                .kept_bytes = entry->kept_len,
            };
        }
        sent++;
    }
    if (hooks->keep && !call->is_query && count > 0) {
        QR_TRY(hooks->keep(hooks->arg, batcher->provider->fingerprint, call->answer.dimension, call->paid, count, err));
    }
    if (count > 0 && !call->is_query) {
        atomic_store(&batcher->dimension, call->answer.dimension);
    }
    return QR_OK;
}

static void tell_pace(struct call *call)
{
    struct qr_batcher *batcher = call->batcher;
    const struct qr_batcher_hooks *hooks = &batcher->options.hooks;
    int64_t texts_a_minute;
    {
        QR_HOLD(&batcher->lock);
        texts_a_minute = qr_pace_hear(&batcher->pace, (int64_t)call->sent_count, qr_batcher_now(batcher));
    }
    if (texts_a_minute && hooks->pace) {
        hooks->pace(hooks->arg, batcher->provider->fingerprint, texts_a_minute);
    }
}

static void count_call(const struct call *call, qr_rc rc)
{
    struct qr_embed_counts *counts = call->batcher->options.hooks.counts;
    if (counts) {
        atomic_fetch_add(&counts->calls, 1);
        atomic_fetch_add(&counts->failed_calls, rc != QR_OK);
        atomic_fetch_add(&counts->texts, rc == QR_OK ? call->sent_count : 0);
        atomic_fetch_add(&counts->tokens, rc == QR_OK ? (uint64_t)call->answer.token_count : 0);
    }
}

static qr_rc ask_provider(struct call *call, qr_err *err)
{
    struct qr_provider *provider = call->batcher->provider;
    for (size_t i = 0; i < call->count; i++) {
        if (call->items[i].is_wanted) {
            call->texts[call->sent_count++] = (qr_str){call->items[i].entry->text, call->items[i].entry->kept_len};
        }
    }
    if (call->sent_count == 0) {
        return QR_OK;
    }
    const struct qr_embed_request request = {.texts = call->texts,
                                             .count = call->sent_count,
                                             .tokens = call->tokens,
                                             .is_query = call->is_query,
                                             .wait_ms_max = WAIT_MS_MAX,
                                             .is_cancelled = is_closing,
                                             .cancel_arg = call->batcher};
    call->answer.is_bad = call->is_bad;
    const qr_rc rc = provider->embed(provider, &request, &call->answer, err);
    count_call(call, rc);
    QR_TRY(rc);
    atomic_fetch_add(&provider->token_count, call->answer.token_count);
    QR_FAILPOINT("embed.batch.answered", err);
    QR_TRY(check_dimension(call, err));
    QR_TRY(keep(call, err));
    if (!call->is_query) {
        tell_pace(call);
    }
    return QR_OK;
}

/* ---- what becomes of the texts; with the lock ---- */

static void put_back(struct qr_batcher *batcher, struct qr_embed_entry *entry)
{
    if (!entry->waiters) {
        qr_embed_entry_forget(batcher, entry);
        qr_embed_entry_unref(entry);
        return;
    }
    entry->is_urgent = true;
    qr_embed_line_add(batcher, entry);
}

/* The result goes to all who wait for it, also those that came while it was asked for. */
static void settle_entry(struct qr_batcher *batcher, struct qr_embed_entry *entry, enum qr_input_state state)
{
    while (entry->waiters) {
        struct qr_embed_input *input = entry->waiters;
        entry->waiters = input->next_waiter;
        qr_embed_entry_tell(entry, input, state);
    }
    if (state == QR_INPUT_DONE && entry->is_mapped) {
        qr_embed_entry_remember(batcher, entry);
        return;
    }
    qr_embed_entry_forget(batcher, entry);
    qr_embed_entry_unref(entry);
}

/* It can never be embedded; `error` says why, as the provider did. */
static void settle_failed(struct qr_batcher *batcher, struct qr_embed_entry *entry, const qr_err *error)
{
    for (struct qr_embed_input *input = entry->waiters; input; input = input->next_waiter) {
        if (input->owner) {
            input->owner->refusal = *error;
        }
    }
    settle_entry(batcher, entry, QR_INPUT_FAILED);
}

/* The works of those who wait for what was in the call. */
static void stop_works(struct call *call, const qr_err *error)
{
    for (size_t i = 0; i < call->count; i++) {
        struct qr_embed_entry *entry = call->items[i].entry;
        while (entry && entry->waiters) {
            qr_embed_work_stop(entry->waiters->work, error); /* takes it from the entry */
        }
        if (entry) {
            qr_embed_entry_forget(call->batcher, entry);
            qr_embed_entry_unref(entry);
        }
    }
}

static const struct qr_embed_asked *asked_about(const struct call *call, const struct call_item *item,
                                                const struct qr_embed_input *input)
{
    for (size_t k = 0; input->owner && k < item->owner_count; k++) {
        const size_t at = item->owners_from + k;
        if (call->asked[at].arg == input->owner->arg && call->owners[at].work_id == input->work->id) {
            return &call->asked[at];
        }
    }
    return NULL; /* it came after the look */
}

/* M2: all of the owner's texts, wherever they are. */
static void drop_owner(struct qr_embed_owner *owner, struct qr_embed_work *work, const qr_err *why)
{
    owner->is_unwanted = true;
    owner->why = *why;
    for (size_t i = 0; i < work->count; i++) {
        struct qr_embed_input *input = &work->inputs[i];
        if (input->owner == owner && input->state == QR_INPUT_WAITING) {
            qr_embed_input_drop(input, QR_INPUT_UNWANTED);
        }
    }
}

static void drop_unwanted(struct call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        struct call_item *item = &call->items[i];
        bool again = true;
        while (again) {
            again = false;
            for (struct qr_embed_input *input = item->entry->waiters; input; input = input->next_waiter) {
                const struct qr_embed_asked *asked = asked_about(call, item, input);
                if (asked && !asked->is_wanted) {
                    drop_owner(input->owner, input->work, &asked->why);
                    again = true; /* the list is another one now */
                    break;
                }
            }
        }
    }
}

/* Takes those that were left out from the call, back to the line where somebody came to want them meanwhile. */
static void put_back_unsent(struct call *call)
{
    size_t kept = 0;
    for (size_t i = 0; i < call->count; i++) {
        if (call->items[i].is_wanted) {
            call->items[kept++] = call->items[i];
        } else {
            put_back(call->batcher, call->items[i].entry);
        }
    }
    call->count = kept;
}

/* ---- too much (M5) ---- */

/* At the end of a word, where one is near; never inside of what people see as one character. */
static size_t cut_place(qr_str text, size_t len_max)
{
    size_t at = 0, word_end = 0;
    const size_t from = len_max > CUT_LOOK_BACK ? len_max - CUT_LOOK_BACK : 0;
    at = qr_utf8_prefix(text, from).len;
    for (;;) {
        const size_t step = qr_grapheme_len((qr_str){text.ptr + at, text.len - at});
        if (step == 0 || at + step > len_max) {
            break;
        }
        const char c = text.ptr[at];
        word_end = at > 0 && (c == ' ' || c == '\n' || c == '\t') ? at : word_end;
        at += step;
    }
    return word_end ? word_end : at;
}

bool qr_embed_entry_shorten(struct qr_embed_entry *entry, size_t len_max)
{
    const size_t len = cut_place((qr_str){entry->text, entry->kept_len}, len_max);
    if (len < CUT_BYTES_MIN || len >= entry->kept_len) {
        return false;
    }
    entry->tokens = QR_MAX(entry->tokens * (int64_t)len / (int64_t)entry->kept_len, (int64_t)1);
    entry->kept_len = len;
    return true;
}

static void halve(struct call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        call->items[i].entry->batch_max = (int)((call->count + 1) / 2);
        put_back(call->batcher, call->items[i].entry);
    }
}

static void make_smaller(struct call *call, const qr_err *error)
{
    struct qr_batcher *batcher = call->batcher;
    if (call->count > 1) {
        batcher->tokens_cap = (call->tokens + 1) / 2;
        batcher->capped_answers = 0;
        halve(call);
        return;
    }
    struct qr_embed_entry *entry = call->items[0].entry;
    batcher->tokens_cap = 0; /* it was this one, not that they were many */
    if (qr_embed_entry_shorten(entry, entry->kept_len / 2)) {
        put_back(batcher, entry);
    } else {
        settle_failed(batcher, entry, error);
    }
}

/* What was refused may be one of the texts, or all that we ever ask. A text is to blame only if others got their answer since:
 * so it lets them go first. */
static void find_refused(struct call *call, const qr_err *error)
{
    struct qr_batcher *batcher = call->batcher;
    for (size_t i = 0; i < call->count; i++) {
        struct qr_embed_entry *entry = call->items[i].entry;
        entry->refused_at = entry->refused_at ? entry->refused_at : batcher->answer_count + 1;
    }
    if (call->count > 1) {
        halve(call);
        return;
    }
    struct qr_embed_entry *entry = call->items[0].entry;
    if (batcher->answer_count + 1 > entry->refused_at) {
        settle_failed(batcher, entry, error);
    } else if (++entry->refused_count < REFUSED_MAX) {
        entry->arrived_mono_ms = qr_batcher_now(batcher);
        put_back(batcher, entry);
    } else {
        qr_err trouble;
        qr_fail(&trouble, QR_CODE_EMBEDDING_FAILED, "%s", error->msg);
        stop_works(call, &trouble);
    }
}

/* ---- the end of it ---- */

static void settle_answer(struct call *call)
{
    struct qr_batcher *batcher = call->batcher;
    const size_t dimension = (size_t)call->answer.dimension;
    batcher->answer_count++;
    if (++batcher->capped_answers >= CAPPED_ANSWERS_MAX) {
        batcher->tokens_cap = 0; /* the server may be another one by now */
    }
    for (size_t i = 0; i < call->count; i++) {
        struct qr_embed_entry *entry = call->items[i].entry;
        if (!call->is_bad[i]) {
            entry->vector = qr_alloc(dimension * sizeof(float));
            if (entry->vector) {
                entry->dimension = (int)dimension;
                memcpy(entry->vector, call->answer.vectors + i * dimension, dimension * sizeof(float));
            }
        }
        if (call->is_bad[i] && !entry->was_bad) {
            entry->was_bad = true;
            entry->batch_max = 1;
            put_back(batcher, entry);
        } else if (!call->is_bad[i] && !entry->vector) {
            put_back(batcher, entry); /* no memory now; it is kept, but has to be asked for again by who has some */
        } else if (call->is_bad[i]) {
            qr_err error;
            qr_fail(&error, QR_CODE_CHUNKS_FAILED, "the answer has no numbers for it that can be used");
            settle_failed(batcher, entry, &error);
        } else {
            settle_entry(batcher, entry, QR_INPUT_DONE);
        }
    }
}

static void wait_or_stop(struct call *call, const qr_err *error)
{
    struct qr_provider *provider = call->batcher->provider;
    const struct qr_embed_next again = {.tokens = call->tokens, .is_query = call->is_query};
    const int64_t wait_ms = provider->wait_ms ? provider->wait_ms(provider, &again) : 0;
    bool stops = wait_ms > WAIT_HERE_MS_MAX || call->is_query;
    for (size_t i = 0; i < call->count; i++) {
        stops = ++call->items[i].entry->limited_count > LIMITED_MAX || stops;
    }
    if (stops) {
        stop_works(call, error);
        return;
    }
    for (size_t i = 0; i < call->count; i++) {
        put_back(call->batcher, call->items[i].entry);
    }
}

static void settle(struct call *call, qr_rc rc, const qr_err *error)
{
    if (rc == QR_OK) {
        settle_answer(call);
    } else if (error->code == QR_CODE_PAYLOAD_TOO_LARGE) {
        make_smaller(call, error);
    } else if (error->code == QR_CODE_BAD_REQUEST) {
        find_refused(call, error);
    } else if (error->code == QR_CODE_RATE_LIMITED) {
        wait_or_stop(call, error);
    } else {
        stop_works(call, error);
    }
}

void qr_embed_call_run(struct call *call)
{
    struct qr_batcher *batcher = call->batcher;
    qr_err error = {0};
    batcher->calls++;
    if (!call->is_query) {
        batcher->document_calls++;
        qr_pace_begin(&batcher->pace, qr_batcher_now(batcher));
    }
    qr_mutex_unlock(&batcher->lock);
    qr_rc rc = look(call, &error);
    const bool was_looked_at = rc == QR_OK;
    rc = rc == QR_OK ? ask_provider(call, &error) : rc;
    qr_mutex_lock(&batcher->lock);
    batcher->calls--;
    if (!call->is_query) {
        batcher->document_calls--;
        qr_pace_end(&batcher->pace, qr_batcher_now(batcher));
    }
    if (was_looked_at) {
        drop_unwanted(call);
        put_back_unsent(call);
    }
    if (call->count > 0) {
        settle(call, rc, &error);
    }
    qr_signal_all(&batcher->changed);
    qr_embed_call_free(call);
}
