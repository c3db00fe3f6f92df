/* The embedding models of a process: who names the same settings shares one. */
#include "embed/providers.h"
#include "support/fault.h"
#include "support/test.h"

static qr_err err;

static struct qr_embedding_settings hash_settings(const char *model)
{
    return (struct qr_embedding_settings){.provider = "hash",
                                          .model = model,
                                          .url = "",
                                          .api_key_env = "",
                                          .api_key_file = "",
                                          .document_prefix = "",
                                          .query_prefix = "",
                                          .encoding = ""};
}

static struct qr_providers *open_all(void)
{
    struct qr_providers *providers;
    QR_CHECK_RC(QR_OK, qr_providers_open(&providers, &(struct qr_providers_options){.clock = qr_clock_system()}, &err));
    return providers;
}

static struct qr_batcher *get(struct qr_providers *providers, const struct qr_embedding_settings *settings)
{
    struct qr_batcher *batcher;
    QR_CHECK_RC(QR_OK, qr_providers_get(providers, settings, &batcher, &err));
    return batcher;
}

QR_TEST(the_same_settings_share_a_model_and_anything_else_is_another) /* EMB-1 */
{
    struct qr_providers *providers = open_all();
    struct qr_embedding_settings settings = hash_settings("m"), none = hash_settings("");
    struct qr_batcher *first = get(providers, &settings);
    QR_CHECK(first == get(providers, &settings));
    settings.limits.inputs = 7;
    struct qr_batcher *other = get(providers, &settings);
    QR_CHECK(first != other);
    QR_CHECK_TEXT(qr_batcher_provider(first)->fingerprint, qr_batcher_provider(other)->fingerprint);
    none.provider = "none";
    QR_CHECK(get(providers, &none) == NULL);
    qr_providers_put(providers, NULL);
    qr_providers_put(providers, first);
    qr_providers_put(providers, first);
    qr_providers_put(providers, other);
    QR_CHECK(first == (settings = hash_settings("m"), get(providers, &settings))); /* kept for the next one */
    qr_providers_put(providers, first);
    qr_providers_close(providers);
}

QR_TEST(of_those_that_nobody_uses_only_a_few_are_kept)
{
    struct qr_providers *providers = open_all();
    const struct qr_embedding_settings used = hash_settings("used");
    struct qr_batcher *batcher = get(providers, &used);
    for (int i = 0; i < 40; i++) {
        char model[16];
        snprintf(model, sizeof model, "m%d", i);
        const struct qr_embedding_settings settings = hash_settings(model);
        qr_providers_put(providers, get(providers, &settings));
    }
    QR_CHECK(batcher == get(providers, &used)); /* what is used is never taken away */
    qr_providers_put(providers, batcher);
    qr_providers_put(providers, batcher);
    qr_providers_close(providers);
}

QR_TEST(a_server_needs_a_network)
{
    struct qr_providers *providers = open_all();
    struct qr_embedding_settings settings = hash_settings("m");
    struct qr_batcher *batcher;
    settings.provider = "openai";
    settings.url = "http://127.0.0.1:1/v1";
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_providers_get(providers, &settings, &batcher, &err));
    qr_providers_close(providers);
}

static void get_under_fault(void *arg QR_UNUSED)
{
    struct qr_providers *providers = NULL;
    struct qr_batcher *batcher = NULL;
    const struct qr_embedding_settings settings = hash_settings("m");
    qr_rc rc = qr_providers_open(&providers, &(struct qr_providers_options){.clock = qr_clock_system()}, &err);
    rc = rc == QR_OK ? qr_providers_get(providers, &settings, &batcher, &err) : rc;
    qr_fault_disarm();
    QR_CHECK(rc == QR_OK || (qr_fault_fired() && rc == QR_NOMEM));
    if (rc == QR_OK) {
        qr_providers_put(providers, batcher);
    }
    qr_providers_close(providers);
}

QR_TEST(getting_one_survives_every_failed_allocation)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, get_under_fault, NULL);
}
