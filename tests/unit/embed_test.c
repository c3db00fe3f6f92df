/* Embedding providers: `none` and `hash`. */
#include "embed/provider.h"
#include "support/fault.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>

static qr_err err;

static struct qr_embedding_settings settings_of(const char *kind, const char *model, int dimensions)
{
    return (struct qr_embedding_settings){.provider = kind,
                                          .model = model,
                                          .url = "",
                                          .api_key_env = "",
                                          .api_key_file = "",
                                          .dimensions = dimensions,
                                          .document_prefix = "",
                                          .query_prefix = "",
                                          .encoding = ""};
}

static qr_rc try_create(const char *kind, const char *model, int dimensions, struct qr_provider **ret_provider)
{
    const struct qr_embedding_settings settings = settings_of(kind, model, dimensions);
    return qr_provider_create(ret_provider, &settings, NULL, &err);
}

static struct qr_provider *create(const char *model, int dimensions)
{
    struct qr_provider *provider;
    QR_CHECK_RC(QR_OK, try_create("hash", model, dimensions, &provider));
    return provider;
}

enum { DIMENSION = 64 };

/* The answer's vectors are the caller's to free. */
static struct qr_embed_answer ask(struct qr_provider *provider, const qr_str *texts, size_t count, bool *is_bad)
{
    struct qr_embed_answer answer = {.is_bad = is_bad};
    QR_CHECK_RC(QR_OK,
                provider->embed(provider, &(struct qr_embed_request){.texts = texts, .count = count}, &answer, &err));
    return answer;
}

static void embed(struct qr_provider *provider, const char *text, float *ret_vector)
{
    const qr_str input = qr_str_of(text);
    bool is_bad = true;
    const struct qr_embed_answer answer = ask(provider, &input, 1, &is_bad);
    QR_CHECK_INT(DIMENSION, answer.dimension);
    QR_CHECK(!is_bad);
    memcpy(ret_vector, answer.vectors, DIMENSION * sizeof(float));
    qr_free(answer.vectors);
}

static bool same(const float *a, const float *b)
{
    for (int i = 0; i < DIMENSION; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

static double product(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < DIMENSION; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

QR_TEST(none_is_no_provider_and_an_unknown_one_is_refused)
{
    struct qr_provider *provider = (struct qr_provider *)&err;
    QR_CHECK_RC(QR_OK, try_create("none", "", 0, &provider));
    QR_CHECK(provider == NULL);
    qr_provider_free(provider);
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, try_create("oracle", "", 0, &provider));
    QR_CHECK_HAS("\"oracle\"", err.msg);
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, try_create("hash", "", 4097, &provider));
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, try_create("hash", "", -1, &provider));
}

QR_TEST(the_same_text_has_the_same_vector_of_length_1)
{
    struct qr_provider *a = create("", 0), *b = create("", 0);
    static const char *const texts[] = {"", " \n", "word", "The quick brown fox, the fox.", "äöü 東京", "a b c a b c"};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        float first[DIMENSION], second[DIMENSION];
        embed(a, texts[i], first);
        embed(b, texts[i], second);
        QR_CHECK(same(first, second));
        QR_CHECK(fabs(product(first, first) - 1) < 1e-5);
    }
    qr_provider_free(a);
    qr_provider_free(b);
}

QR_TEST(texts_with_common_words_are_near_each_other)
{
    struct qr_provider *provider = create("", 0);
    float text[DIMENSION], same[DIMENSION], near[DIMENSION], far[DIMENSION];
    embed(provider, "The quick brown fox jumps", text);
    embed(provider, "the QUICK, brown: fox jumps!", same);
    embed(provider, "A quick brown fox runs", near);
    embed(provider, "quarterly revenue statement", far);
    QR_CHECK(product(text, same) > 0.999);
    QR_CHECK(product(text, near) > product(text, far) + 0.2);
    qr_provider_free(provider);
}

QR_TEST(another_model_or_dimension_has_another_fingerprint_and_other_vectors)
{
    struct qr_provider *a = create("", 0), *b = create("other", 0), *c = create("", 32);
    QR_CHECK(strcmp(a->fingerprint, b->fingerprint) != 0);
    QR_CHECK(strcmp(a->fingerprint, c->fingerprint) != 0);
    QR_CHECK_INT(32, c->dimensions);
    float of_a[DIMENSION], of_b[DIMENSION];
    embed(a, "some words about something", of_a);
    embed(b, "some words about something", of_b);
    QR_CHECK(!same(of_a, of_b));
    qr_provider_free(a);
    qr_provider_free(b);
    qr_provider_free(c);
}

QR_TEST(a_text_that_cannot_be_embedded_fails_alone) /* EMPTY-2 */
{
    struct qr_provider *provider = create("", 0);
    float alone[DIMENSION];
    const qr_str texts[] = {QR_STR("one"), QR_STR("this is " QR_HASH_UNEMBEDDABLE ", sadly"), QR_STR("three")};
    bool is_bad[3] = {true};
    const struct qr_embed_answer answer = ask(provider, texts, 3, is_bad);
    QR_CHECK(!is_bad[0] && is_bad[1] && !is_bad[2]);
    embed(provider, "three", alone);
    QR_CHECK(same(alone, answer.vectors + (size_t)2 * DIMENSION));
    qr_free(answer.vectors);
    qr_provider_free(provider);
}

QR_TEST(a_provider_that_is_down_fails_the_call_so_that_it_is_tried_again) /* AGAIN-1 */
{
    struct qr_provider *provider = create("", 0);
    const qr_str texts[] = {QR_STR("one"), QR_STR("QUIRE-PROVIDER-DOWN")};
    bool is_bad[2];
    struct qr_embed_answer answer = {.is_bad = is_bad};
    QR_CHECK_CODE(QR_CODE_EMBEDDING_FAILED,
                  provider->embed(provider, &(struct qr_embed_request){.texts = texts, .count = 2}, &answer, &err));
    QR_CHECK_INT(QR_POLICY_RETRY, qr_code_info(err.code)->policy);
    QR_CHECK_INT(1, atomic_load(&provider->call_count));
    qr_provider_free(provider);
}

enum { THREADS = 4, CALLS = 200 };

static void *call_often(void *arg)
{
    struct qr_provider *provider = arg;
    float vector[DIMENSION];
    for (int i = 0; i < CALLS; i++) {
        embed(provider, "many threads share it", vector);
    }
    return NULL;
}

QR_TEST(calls_are_counted_across_threads) /* I8 */
{
    struct qr_provider *provider = create("", 0);
    pthread_t threads[THREADS];
    QR_CHECK_INT(0, atomic_load(&provider->call_count));
    for (int i = 0; i < THREADS; i++) {
        QR_CHECK_INT(0, pthread_create(&threads[i], NULL, call_often, provider));
    }
    for (int i = 0; i < THREADS; i++) {
        QR_CHECK_INT(0, pthread_join(threads[i], NULL));
    }
    QR_CHECK_INT(THREADS * CALLS, atomic_load(&provider->call_count));
    qr_provider_free(provider);
}

static void create_under_fault(void *arg QR_UNUSED)
{
    struct qr_provider *provider = NULL;
    const qr_rc rc = try_create("hash", "m", 0, &provider);
    qr_fault_disarm();
    QR_CHECK_INT(qr_fault_fired() ? QR_NOMEM : QR_OK, rc);
    qr_provider_free(provider);
}

QR_TEST(creating_one_survives_every_failed_allocation)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, create_under_fault, NULL);
}
