/* The provider `openai`: any server that speaks the OpenAI embeddings operation. One call is one request; what comes back is
 * told apart in the words of embed/provider.h, the batcher decides what follows. */
#include "embed/openai.h"

#include "embed/openai_wire.h"
#include "remote/http.h"

enum {
    IN_FLIGHT = 8,
    CALLS_A_REQUEST = 2, /* one is with the server while another is looked at or kept: no place there stays empty */
    LINGER_MS = 20,
    IN_FLIGHT_LOOK_MS = 20, /* while as many requests are under way as the endpoint takes */
    AHEAD_MS_MAX = 500, /* of a server that answers sooner, the next requests are made ready before there is a place */
    BYTES_A_DIMENSION = 40, /* of an answer, more than any server writes */
    BYTES_AROUND = 65536,
};

struct openai_provider {
    struct qr_provider provider;
    struct qr_embedding_settings settings; /* texts are below */
    struct qr_endpoint *endpoint;
    char fingerprint[QR_FINGERPRINT_SIZE];
    struct qr_arena arena;
};

static qr_rc fail_for(const struct qr_remote_answer *answer, qr_err *err)
{
    const char *words = answer->reason.msg;
    switch (answer->refusal) {
    case QR_REFUSAL_TOO_LARGE:
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "the embedding server takes less at once: %s", words);
    case QR_REFUSAL_LIMITED:
        return qr_fail(err, QR_CODE_RATE_LIMITED, "the embedding server asks to wait: %s", words);
    case QR_REFUSAL_ENDPOINT:
        return qr_fail(err, QR_CODE_ENDPOINT_REFUSED, "the embedding server refuses us: %s", words);
    case QR_REFUSAL_REQUEST: /* 400 and 422 may be about one of the texts; 404 and the others are about all that we ask */
        return qr_fail(err,
                       answer->status == 400 || answer->status == 422 ? QR_CODE_BAD_REQUEST : QR_CODE_EMBEDDING_FAILED,
                       "the embedding server does not take the request: %s", words);
    case QR_REFUSAL_NONE:
    case QR_REFUSAL_SERVER:
        break;
    }
    return qr_fail(err, QR_CODE_EMBEDDING_FAILED, "the embedding server has trouble: %s", words);
}

static qr_rc embed(struct qr_provider *provider, const struct qr_embed_request *request,
                   struct qr_embed_answer *ret_answer, qr_err *err)
{
    struct openai_provider *openai = QR_CONTAINER_OF(provider, struct openai_provider, provider);
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_REMOTE_ANSWER(answer);
    qr_openai_write_request(&openai->settings, request, &body);
    QR_TRY(qr_buf_check(&body, err));
    const struct qr_remote_request http = {
        .method = "POST",
        .path = "/embeddings",
        .json = qr_buf_str(&body),
        .tokens = request->tokens,
        .priority = request->is_query ? QR_PRIORITY_QUERY : QR_PRIORITY_DOCUMENT,
        .wait_ms_max = request->wait_ms_max,
        .answer_bytes_max = request->count * QR_DIMENSIONS_MAX * BYTES_A_DIMENSION + BYTES_AROUND,
        .is_cancelled = request->is_cancelled,
        .cancel_arg = request->cancel_arg,
    };
    atomic_fetch_add(&provider->call_count, 1);
    QR_TRY(qr_remote_send(openai->endpoint, &http, &answer, err));
    return answer.refusal == QR_REFUSAL_NONE
               ? qr_openai_read_answer(qr_buf_str(&answer.body), request->count, ret_answer, err)
               : fail_for(&answer, err);
}

/* A place that is given back is to be taken at once: looking whether texts are wanted comes before. But what was found must still
 * be true when it is sent, and a call that is not full may yet become so. A query is first in line in any case (N2). */
static int64_t wait_ms(struct qr_provider *provider, const struct qr_embed_next *next)
{
    const struct openai_provider *openai = QR_CONTAINER_OF(provider, struct openai_provider, provider);
    const enum qr_priority priority = next->is_query ? QR_PRIORITY_QUERY : QR_PRIORITY_DOCUMENT;
    const int64_t wait_ms = qr_endpoint_look_ms(openai->endpoint, priority, next->tokens);
    if (wait_ms > 0 || next->is_query) {
        return wait_ms;
    }
    return qr_endpoint_has_place(openai->endpoint, next->is_full ? AHEAD_MS_MAX : 0) ? 0 : IN_FLIGHT_LOOK_MS;
}

static int64_t put_off_ms(struct qr_provider *provider)
{
    return qr_endpoint_wait_ms(QR_CONTAINER_OF(provider, struct openai_provider, provider)->endpoint, 0);
}

static void release(struct qr_provider *provider)
{
    struct openai_provider *openai = QR_CONTAINER_OF(provider, struct openai_provider, provider);
    if (openai->endpoint) {
        qr_endpoint_put(openai->endpoint);
    }
    qr_arena_done(&openai->arena);
    qr_free(openai);
}

/* The settings with texts of their own. */
static bool copy_settings(struct openai_provider *openai, const struct qr_embedding_settings *settings)
{
    struct qr_embedding_settings *copy = &openai->settings;
    const char **texts[] = {&copy->provider,     &copy->model,           &copy->url,          &copy->api_key_env,
                            &copy->api_key_file, &copy->document_prefix, &copy->query_prefix, &copy->encoding};
    *copy = *settings;
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        *texts[i] = qr_arena_copy(&openai->arena, qr_str_of(*texts[i]));
        if (!*texts[i]) {
            return false;
        }
    }
    return true;
}

static qr_rc init(struct openai_provider *openai, const struct qr_embedding_settings *settings,
                  struct qr_endpoints *endpoints, qr_err *err)
{
    if (!copy_settings(openai, settings)) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an embedding provider");
    }
    if (!endpoints) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "there is no network here for the embedding provider \"openai\"");
    }
    const struct qr_endpoint_options options = {
        .url = openai->settings.url,
        .api_key_env = openai->settings.api_key_env,
        .api_key_file = openai->settings.api_key_file,
        .limits = {.requests_a_minute = settings->limits.requests_a_minute,
                   .tokens_a_minute = settings->limits.tokens_a_minute,
                   .in_flight_max = (int)settings->limits.in_flight},
    };
    return qr_endpoint_get(endpoints, &options, &openai->endpoint, err);
}

qr_rc qr_provider_openai_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                                struct qr_endpoints *endpoints, qr_err *err)
{
    struct openai_provider *openai = qr_alloc_zero(sizeof *openai);
    if (!openai) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an embedding provider");
    }
    qr_arena_init(&openai->arena, 0);
    qr_embedding_fingerprint(settings, openai->fingerprint);
    openai->provider = (struct qr_provider){
        .fingerprint = openai->fingerprint,
        .dimensions = settings->dimensions,
        .limits = {.inputs_max = (int)settings->limits.inputs,
                   .tokens_max = settings->limits.request_tokens,
                   .bytes_max = settings->limits.request_bytes,
                   .input_tokens_max = settings->limits.input_tokens},
        .call_threads =
            CALLS_A_REQUEST * (settings->limits.in_flight > 0 ? (int)settings->limits.in_flight : IN_FLIGHT),
        .linger_ms = LINGER_MS,
        .embed = embed,
        .wait_ms = wait_ms,
        .put_off_ms = put_off_ms,
        .free = release,
    };
    const qr_rc rc = init(openai, settings, endpoints, err);
    if (rc != QR_OK) {
        release(&openai->provider);
        return rc;
    }
    *ret_provider = &openai->provider;
    return QR_OK;
}
