/* Owns the batchers and their providers. One that nobody uses is kept for a while: its threads and connections are ready when
 * the next search comes. */
#include "embed/providers.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sync.h"

enum { IDLE_MAX = 8 };

struct shared_provider {
    struct shared_provider *next; /* those used last come first */
    char *name;                   /* all of the settings */
    struct qr_provider *provider;
    struct qr_batcher *batcher;
    int use_count;
};

struct qr_providers {
    struct qr_providers_options options;
    struct qr_mutex lock;
    struct shared_provider *first;
};

qr_rc qr_providers_open(struct qr_providers **ret_providers, const struct qr_providers_options *options, qr_err *err)
{
    struct qr_providers *providers = qr_alloc_zero(sizeof *providers);
    if (!providers) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for embedding providers");
    }
    providers->options = *options;
    qr_mutex_init(&providers->lock);
    *ret_providers = providers;
    return QR_OK;
}

static void release(struct qr_providers *providers, struct shared_provider *shared)
{
    qr_batcher_free(shared->batcher);
    if (shared->provider != providers->options.instead && !providers->options.instead_of) {
        qr_provider_free(shared->provider);
    }
    qr_free(shared->name);
    qr_free(shared);
}

void qr_providers_close(struct qr_providers *providers)
{
    if (!providers) {
        return;
    }
    while (providers->first) {
        struct shared_provider *shared = providers->first;
        providers->first = shared->next;
        release(providers, shared);
    }
    qr_mutex_done(&providers->lock);
    qr_free(providers);
}

/* Two settings that differ in anything are two: limits and prefixes too. */
static char *name_of(const struct qr_embedding_settings *s)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf name = {0};
    const char *const texts[] = {s->provider,     s->model,           s->url,          s->api_key_env,
                                 s->api_key_file, s->document_prefix, s->query_prefix, s->encoding};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        qr_buf_printf(&name, "%zu:%s,", strlen(texts[i]), texts[i]);
    }
    const int64_t numbers[] = {s->dimensions,
                               s->limits.inputs,
                               s->limits.request_tokens,
                               s->limits.request_bytes,
                               s->limits.input_tokens,
                               s->limits.requests_a_minute,
                               s->limits.tokens_a_minute,
                               s->limits.in_flight};
    for (size_t i = 0; i < QR_COUNT(numbers); i++) {
        qr_buf_printf(&name, "%lld,", (long long)numbers[i]);
    }
    return qr_buf_take(&name, NULL);
}

static qr_rc create(struct qr_providers *providers, const struct qr_embedding_settings *settings,
                    struct shared_provider *shared, qr_err *err)
{
    const struct qr_providers_options *options = &providers->options;
    shared->provider = options->instead_of ? options->instead_of(settings, options->instead_arg) : options->instead;
    if (!shared->provider) {
        QR_TRY(qr_provider_create(&shared->provider, settings, options->endpoints, err));
    }
    return qr_batcher_create(
        &shared->batcher,
        &(struct qr_batcher_options){.provider = shared->provider, .clock = options->clock, .hooks = options->hooks},
        err);
}

static struct shared_provider **find(struct qr_providers *providers, const char *name)
{
    struct shared_provider **link = &providers->first;
    while (*link && strcmp((*link)->name, name) != 0) {
        link = &(*link)->next;
    }
    return link;
}

qr_rc qr_providers_get(struct qr_providers *providers, const struct qr_embedding_settings *settings,
                       struct qr_batcher **ret_batcher, qr_err *err)
{
    if (strcmp(settings->provider, "none") == 0) {
        *ret_batcher = NULL;
        return QR_OK;
    }
    char *name = name_of(settings);
    if (!name) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an embedding provider");
    }
    QR_HOLD(&providers->lock);
    struct shared_provider **link = find(providers, name);
    struct shared_provider *shared = *link;
    if (shared) {
        *link = shared->next;
        qr_free(name);
    } else {
        shared = qr_alloc_zero(sizeof *shared);
        const qr_rc rc = shared ? create(providers, settings, shared, err)
                                : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an embedding provider");
        if (rc != QR_OK) {
            if (shared) {
                release(providers, shared);
            }
            qr_free(name);
            return rc;
        }
        shared->name = name;
    }
    shared->use_count++;
    shared->next = providers->first;
    providers->first = shared;
    *ret_batcher = shared->batcher;
    return QR_OK;
}

/* The one that was not used for longest, where there are too many of them. */
static struct shared_provider *take_superfluous(struct qr_providers *providers)
{
    struct shared_provider **last = NULL;
    int count = 0;
    for (struct shared_provider **link = &providers->first; *link; link = &(*link)->next) {
        if ((*link)->use_count == 0) {
            last = link;
            count++;
        }
    }
    if (count <= IDLE_MAX) {
        return NULL;
    }
    struct shared_provider *shared = *last;
    *last = shared->next;
    return shared;
}

void qr_providers_put(struct qr_providers *providers, struct qr_batcher *batcher)
{
    struct shared_provider *superfluous = NULL;
    if (!batcher) {
        return;
    }
    {
        QR_HOLD(&providers->lock);
        for (struct shared_provider *shared = providers->first; shared; shared = shared->next) {
            shared->use_count -= shared->batcher == batcher;
        }
        superfluous = take_superfluous(providers);
    }
    if (superfluous) {
        release(providers, superfluous); /* waits for its threads */
    }
}
