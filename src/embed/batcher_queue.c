/* What waits for a call, in lists by length: the texts of a call are of about one length, because a model pads them all to
 * the longest. The oldest decides which length is next, so that none waits for ever. */
#include "base/mem.h"
#include "embed/batcher_internal.h"

enum {
    BYTES_AROUND_A_TEXT = 8, /* quotes, a comma, some escapes */
    ASKED_LOOK_BACK = 32,
};

/* Two lists for each doubling. */
static size_t list_of(const struct qr_embed_entry *entry)
{
    if (entry->is_query) {
        return BUCKET_QUERIES;
    }
    const size_t len = QR_MAX(entry->kept_len, (size_t)2);
    const unsigned power = 63U - (unsigned)__builtin_clzll(len);
    return QR_MIN((size_t)2 * power + (len >> (power - 1) & 1), (size_t)BUCKETS - 1);
}

static int64_t bytes_of(const struct qr_embed_entry *entry)
{
    return (int64_t)entry->kept_len + BYTES_AROUND_A_TEXT;
}

/* By the time of arrival: one that comes back goes before those that came after it. */
void qr_embed_line_add(struct qr_batcher *batcher, struct qr_embed_entry *entry)
{
    struct entry_list *list = &batcher->lists[list_of(entry)];
    struct qr_embed_entry *before = list->last;
    while (before && before->arrived_mono_ms > entry->arrived_mono_ms) {
        before = before->before;
    }
    entry->before = before;
    entry->behind = before ? before->behind : list->first;
    *(before ? &before->behind : &list->first) = entry;
    *(entry->behind ? &entry->behind->before : &list->last) = entry;
    entry->is_in_line = true;
    if (entry->is_query) {
        batcher->query_count++;
        return;
    }
    batcher->document_count++;
    batcher->urgent_count += entry->is_urgent;
    batcher->document_tokens += entry->tokens;
    batcher->document_bytes += bytes_of(entry);
}

void qr_embed_line_take(struct qr_batcher *batcher, struct qr_embed_entry *entry)
{
    struct entry_list *list = &batcher->lists[list_of(entry)];
    *(entry->before ? &entry->before->behind : &list->first) = entry->behind;
    *(entry->behind ? &entry->behind->before : &list->last) = entry->before;
    entry->is_in_line = false;
    if (entry->is_query) {
        batcher->query_count--;
        return;
    }
    batcher->document_count--;
    batcher->urgent_count -= entry->is_urgent;
    batcher->document_tokens -= entry->tokens;
    batcher->document_bytes -= bytes_of(entry);
}

/* ---- when ---- */

static size_t inputs_max(const struct qr_batcher *batcher)
{
    const int limit = batcher->provider->limits.inputs_max;
    return limit > 0 ? (size_t)limit : SIZE_MAX;
}

static int64_t tokens_max(const struct qr_batcher *batcher)
{
    const int64_t limit = batcher->provider->limits.tokens_max > 0 ? batcher->provider->limits.tokens_max : INT64_MAX;
    return batcher->tokens_cap > 0 ? QR_MIN(limit, batcher->tokens_cap) : limit;
}

static int64_t bytes_max(const struct qr_batcher *batcher)
{
    return batcher->provider->limits.bytes_max > 0 ? batcher->provider->limits.bytes_max : INT64_MAX;
}

static size_t oldest_list(const struct qr_batcher *batcher)
{
    size_t oldest = BUCKETS;
    for (size_t i = 0; i < BUCKETS; i++) {
        const struct qr_embed_entry *first = batcher->lists[i].first;
        if (first && (oldest == BUCKETS || first->arrived_mono_ms < batcher->lists[oldest].first->arrived_mono_ms)) {
            oldest = i;
        }
    }
    return oldest;
}

static bool is_full(const struct qr_batcher *batcher)
{
    return batcher->document_count >= inputs_max(batcher) || batcher->document_tokens >= tokens_max(batcher) ||
           batcher->document_bytes >= bytes_max(batcher);
}

bool qr_embed_line_is_due(const struct qr_batcher *batcher, bool with_documents, int64_t now_mono_ms,
                          int64_t *ret_until_mono_ms, struct qr_embed_next *ret_next)
{
    *ret_until_mono_ms = INT64_MAX;
    *ret_next = (struct qr_embed_next){.is_query = batcher->query_count > 0};
    if (ret_next->is_query) {
        return true;
    }
    if (batcher->document_count == 0 || !with_documents) {
        return false;
    }
    ret_next->tokens = QR_MIN(batcher->document_tokens, tokens_max(batcher));
    ret_next->is_full = is_full(batcher);
    if (batcher->urgent_count > 0 || ret_next->is_full) {
        return true;
    }
    const struct qr_embed_entry *oldest = batcher->lists[oldest_list(batcher)].first;
    *ret_until_mono_ms = oldest->arrived_mono_ms + batcher->provider->linger_ms;
    return *ret_until_mono_ms <= now_mono_ms;
}

/* ---- what ---- */

struct choice {
    struct qr_batcher *batcher;
    struct qr_embed_entry **entries;
    size_t count, count_max; /* lowered by what must not be with many */
    int64_t tokens, bytes;
};

static bool fits(const struct choice *choice, const struct qr_embed_entry *entry)
{
    const size_t max = entry->batch_max > 0 ? QR_MIN(choice->count_max, (size_t)entry->batch_max) : choice->count_max;
    return choice->count == 0 ||
           (choice->count < max && choice->tokens + entry->tokens <= tokens_max(choice->batcher) &&
            choice->bytes + bytes_of(entry) <= bytes_max(choice->batcher));
}

static void choose_from(struct choice *choice, size_t list)
{
    struct qr_embed_entry *entry = choice->batcher->lists[list].first, *behind;
    for (; entry && choice->count < choice->count_max; entry = behind) {
        behind = entry->behind;
        if (fits(choice, entry)) {
            choice->entries[choice->count++] = entry;
            choice->tokens += entry->tokens;
            choice->bytes += bytes_of(entry);
            choice->count_max =
                entry->batch_max > 0 ? QR_MIN(choice->count_max, (size_t)entry->batch_max) : choice->count_max;
        } else if (entry->batch_max == 0) {
            return; /* full; those of its list are as long */
        }
    }
}

static void choose(struct choice *choice, bool is_query)
{
    if (is_query) {
        choose_from(choice, BUCKET_QUERIES);
        return;
    }
    const size_t start = oldest_list(choice->batcher);
    choose_from(choice, start);
    for (size_t distance = 1; distance < BUCKETS; distance++) {
        if (distance <= start) {
            choose_from(choice, start - distance);
        }
        if (start + distance < BUCKETS) {
            choose_from(choice, start + distance);
        }
    }
}

/* ---- the call ---- */

void qr_embed_call_free(struct call *call)
{
    if (call) {
        qr_free(call->items);
        qr_free(call->asked);
        qr_free(call->owners);
        qr_free(call->texts);
        qr_free(call->is_bad);
        qr_free(call->paid);
        qr_free(call->answer.vectors);
        qr_free(call);
    }
}

static size_t count_waiters(const struct choice *choice)
{
    size_t count = 0;
    for (size_t i = 0; i < choice->count; i++) {
        for (const struct qr_embed_input *input = choice->entries[i]->waiters; input; input = input->next_waiter) {
            count++;
        }
    }
    return count;
}

static struct call *create_call(const struct choice *choice)
{
    const size_t waiters = count_waiters(choice) + 1;
    struct call *call = qr_alloc_zero(sizeof *call);
    if (!call) {
        return NULL;
    }
    call->batcher = choice->batcher;
    call->items = qr_alloc_zero(choice->count * sizeof call->items[0]);
    call->asked = qr_alloc_zero(waiters * sizeof call->asked[0]);
    call->owners = qr_alloc_zero(waiters * sizeof call->owners[0]);
    call->texts = qr_alloc_zero(choice->count * sizeof call->texts[0]);
    call->is_bad = qr_alloc_zero(choice->count * sizeof call->is_bad[0]);
    call->paid = qr_alloc_zero(choice->count * sizeof call->paid[0]);
    if (!call->items || !call->asked || !call->owners || !call->texts || !call->is_bad || !call->paid) {
        qr_embed_call_free(call);
        return NULL;
    }
    return call;
}

/* Texts of one owner are near each other: it is enough to look a little back. */
static bool find_asked(const struct call *call, const struct qr_embed_input *input, size_t *ret_at)
{
    const size_t least = call->asked_count > ASKED_LOOK_BACK ? call->asked_count - ASKED_LOOK_BACK : 0;
    for (size_t i = call->asked_count; i > least; i--) {
        if (call->owners[i - 1].work == input->work && call->asked[i - 1].arg == input->owner->arg) {
            *ret_at = i - 1;
            return true;
        }
    }
    return false;
}

/* The owners of one text stand together. */
static void add_owners(struct call *call, struct call_item *item)
{
    const bool is_alone = item->entry->waiters && !item->entry->waiters->next_waiter;
    item->owners_from = call->asked_count;
    for (struct qr_embed_input *input = item->entry->waiters; input; input = input->next_waiter) {
        if (!input->owner) {
            item->has_no_owner = true;
            continue;
        }
        item->owner_count++;
        if (is_alone && find_asked(call, input, &item->owners_from)) {
            return;
        }
        call->owners[call->asked_count] = (struct call_owner){input->work, input->work->id};
        call->asked[call->asked_count++] = (struct qr_embed_asked){.arg = input->owner->arg};
        atomic_fetch_add(&input->work->look_count, 1);
    }
}

struct call *qr_embed_line_take_call(struct qr_batcher *batcher, bool with_documents)
{
    const bool is_query = batcher->query_count > 0;
    const size_t in_line = is_query ? batcher->query_count : with_documents ? batcher->document_count : 0;
    struct choice choice = {.batcher = batcher, .count_max = QR_MIN(inputs_max(batcher), in_line)};
    choice.entries = qr_alloc(QR_MAX(choice.count_max, (size_t)1) * sizeof(struct qr_embed_entry *));
    if (!choice.entries) {
        return NULL;
    }
    choose(&choice, is_query);
    struct call *call = create_call(&choice);
    if (call) {
        call->is_query = is_query;
        call->tokens = choice.tokens;
        for (size_t i = 0; i < choice.count; i++) {
            qr_embed_line_take(batcher, choice.entries[i]);
            call->items[call->count] = (struct call_item){.entry = choice.entries[i]};
            add_owners(call, &call->items[call->count++]);
        }
    }
    qr_free(choice.entries);
    return call;
}
