/* The settings of servers elsewhere: reranking, vision, conversion. */
#include "model/settings.h"
#include "support/fault.h"
#include "support/test.h"

static struct qr_arena arena; /* of the test: each runs in a process of its own */
static qr_err err;

static struct qr_settings parse(const char *text)
{
    struct qr_settings settings;
    qr_test_set_context("%s", text);
    QR_CHECK_RC(QR_OK, qr_settings_parse_text(text, &arena, &settings, &err));
    return settings;
}

#define RERANK(fields)  "{\"retrieval\":{\"rerank\":{" fields "}}}"
#define VISION(fields)  "{\"assets\":{\"analysis\":\"vision\",\"vision\":{" fields "}}}"
#define DOCLING(fields) "{\"file_processor\":{\"kind\":\"docling\",\"extensions\":[\"pdf\"]," fields "}}"
#define URL             "\"url\":\"http://localhost:1\""

QR_TEST(no_service_is_used_unless_it_is_named)
{
    const struct qr_settings settings = parse("");
    QR_CHECK_TEXT("none", settings.retrieval.rerank.provider);
    QR_CHECK_TEXT("", settings.retrieval.rerank.service.url);
    QR_CHECK_INT(50, settings.retrieval.rerank.top_n);
    QR_CHECK_INT(8000, settings.retrieval.rerank.document_bytes);
    QR_CHECK_INT(500000, settings.retrieval.rerank.request_bytes);
    QR_CHECK_INT(1000, settings.assets.vision.max_tokens);
    QR_CHECK_INT(10000000, settings.assets.vision.picture_bytes);
    QR_CHECK_INT(0, settings.file_processor.docling.option_count);
    qr_arena_done(&arena);
}

QR_TEST(a_reranker_is_read_whole)
{
    const struct qr_rerank_settings rerank =
        parse(
            RERANK(
                "\"provider\":\"tei\",\"url\":\"http://h:8080/x\",\"model\":\"m\",\"api_key_env\":\"KEY\",\"top_n\":7,"
                "\"limits\":{\"document_bytes\":1000,\"request_bytes\":2000,\"requests_a_minute\":1,"
                "\"tokens_a_minute\":2,\"in_flight\":3}"))
            .retrieval.rerank;
    QR_CHECK_TEXT("tei", rerank.provider);
    QR_CHECK_TEXT("http://h:8080/x", rerank.service.url);
    QR_CHECK_TEXT("m", rerank.service.model);
    QR_CHECK_TEXT("KEY", rerank.service.api_key_env);
    QR_CHECK_TEXT("", rerank.service.api_key_file);
    QR_CHECK_INT(7, rerank.top_n);
    QR_CHECK_INT(1000, rerank.document_bytes);
    QR_CHECK_INT(2000, rerank.request_bytes);
    QR_CHECK_INT(1, rerank.service.requests_a_minute);
    QR_CHECK_INT(2, rerank.service.tokens_a_minute);
    QR_CHECK_INT(3, rerank.service.in_flight);
    QR_CHECK_TEXT("https://api.cohere.com/v2", parse(RERANK("\"provider\":\"cohere\"")).retrieval.rerank.service.url);
    QR_CHECK_TEXT("https://api.jina.ai/v1", parse(RERANK("\"provider\":\"jina\"")).retrieval.rerank.service.url);
    qr_arena_done(&arena);
}

static bool same(const char *a, const char *b)
{
    const struct qr_settings first = parse(a), second = parse(b);
    return qr_rerank_settings_equal(&first.retrieval.rerank, &second.retrieval.rerank);
}

QR_TEST(rerankers_are_the_same_whatever_their_limits)
{
    QR_CHECK(same("", "{}"));
    QR_CHECK(same(RERANK("\"provider\":\"jina\",\"top_n\":3"),
                  RERANK("\"provider\":\"jina\",\"limits\":{\"in_flight\":1}")));
    QR_CHECK(!same(RERANK("\"provider\":\"jina\""), ""));
    QR_CHECK(!same(RERANK("\"provider\":\"jina\",\"model\":\"a\""), RERANK("\"provider\":\"jina\",\"model\":\"b\"")));
    QR_CHECK(!same(RERANK("\"provider\":\"jina\"," URL), RERANK("\"provider\":\"jina\"")));
    QR_CHECK(!same(RERANK("\"provider\":\"jina\",\"api_key_env\":\"A\""), RERANK("\"provider\":\"jina\"")));
    qr_arena_done(&arena);
}

QR_TEST(a_vision_model_is_read_whole)
{
    const struct qr_vision_settings vision =
        parse(VISION(URL ",\"model\":\"m\",\"api_key_file\":\"/k\",\"prompt\":\"p\",\"max_tokens\":0,"
                         "\"limits\":{\"picture_bytes\":5000,\"in_flight\":2}"))
            .assets.vision;
    QR_CHECK_TEXT("http://localhost:1", vision.service.url);
    QR_CHECK_TEXT("m", vision.service.model);
    QR_CHECK_TEXT("/k", vision.service.api_key_file);
    QR_CHECK_TEXT("p", vision.prompt);
    QR_CHECK_INT(0, vision.max_tokens);
    QR_CHECK_INT(5000, vision.picture_bytes);
    QR_CHECK_INT(2, vision.service.in_flight);
    QR_CHECK_TEXT("https://api.openai.com/v1", parse(VISION("\"model\":\"m\"")).assets.vision.service.url);
    qr_arena_done(&arena);
}

QR_TEST(options_of_docling_become_fields_of_a_form)
{
    const struct qr_docling_settings docling =
        parse(DOCLING(URL ",\"api_key_env\":\"K\",\"limits\":{\"requests_a_minute\":9},\"options\":{\"do_ocr\":false,"
                          "\"ocr_lang\":[\"en\",\"de\"],\"images_scale\":1.5,\"document_timeout\":60,"
                          "\"table_mode\":\"fast\",\"none\":[]}"))
            .file_processor.docling;
    static const struct qr_form_field fields[] = {{"do_ocr", "false"},        {"ocr_lang", "en"},
                                                  {"ocr_lang", "de"},         {"images_scale", "1.5"},
                                                  {"document_timeout", "60"}, {"table_mode", "fast"}};
    QR_CHECK_TEXT("K", docling.service.api_key_env);
    QR_CHECK_INT(9, docling.service.requests_a_minute);
    QR_CHECK_INT(QR_COUNT(fields), docling.option_count);
    for (size_t i = 0; i < QR_COUNT(fields); i++) {
        QR_CHECK_TEXT(fields[i].name, docling.options[i].name);
        QR_CHECK_TEXT(fields[i].value, docling.options[i].value);
    }
    qr_arena_done(&arena);
}

/* The name of the setting, and what is allowed. Never the value: it may be a secret. */
QR_TEST(a_wrong_setting_of_a_service_is_named)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {RERANK("\"provider\":\"tei\""), "retrieval.rerank.url must be given"},
        {RERANK("\"provider\":\"bge\""), "retrieval.rerank.provider must be one of: none cohere jina tei"},
        {RERANK("\"url\":\"localhost:8080\""), "retrieval.rerank.url must be such as"},
        {RERANK("\"url\":\"http://u:p@h\""), "without user and password"},
        {RERANK("\"top_n\":0"), "retrieval.rerank.top_n must be a whole number from 1 to 200"},
        {RERANK("\"top_n\":201"), "retrieval.rerank.top_n"},
        {RERANK("\"limits\":{\"document_bytes\":1}"), "retrieval.rerank.limits.document_bytes"},
        {RERANK("\"limits\":{\"in_flight\":65}"), "retrieval.rerank.limits.in_flight"},
        {RERANK("\"limits\":5"), "limits must be an object"},
        {RERANK("\"api_key_env\":\"sk-SECRET\""), "retrieval.rerank.api_key_env must be the name of an environment"},
        {RERANK("\"api_key_env\":\"A\",\"api_key_file\":\"/b\""), "only one of"},
        {"{\"assets\":{\"analysis\":\"vision\"}}", "assets.vision.model must be given"},
        {VISION("\"model\":\"m\",\"api_key_file\":\"SECRET\""), "assets.vision.api_key_file must be an absolute path"},
        {VISION("\"model\":\"m\",\"max_tokens\":-1"), "assets.vision.max_tokens"},
        {VISION("\"model\":\"m\",\"limits\":{\"picture_bytes\":1}"), "assets.vision.limits.picture_bytes"},
        {"{\"file_processor\":{\"kind\":\"docling\"," URL "}}", "file_processor.extensions must not be empty"},
        {DOCLING("\"argv\":[]"), "file_processor.url must be given"},
        {DOCLING(URL ",\"options\":[]"), "file_processor.options must be an object"},
        {DOCLING(URL ",\"options\":{\"to_formats\":\"html\"}"), "given by Quire"},
        {DOCLING(URL ",\"options\":{\"callbacks\":\"x\"}"), "given by Quire"},
        {DOCLING(URL ",\"options\":{\"a b\":\"x\"}"), "names of docling-serve's options"},
        {DOCLING(URL ",\"options\":{\"a\":{\"headers\":\"SECRET\"}}"), "must hold texts"},
        {DOCLING(URL ",\"options\":{\"a\":[[1]]}"), "must hold texts"},
        {DOCLING(URL ",\"options\":{\"a\":null}"), "must hold texts"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct qr_settings settings;
        qr_test_set_context("%s", cases[i].text);
        QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_settings_parse_text(cases[i].text, &arena, &settings, &err));
        QR_CHECK_HAS(cases[i].message, err.msg);
        QR_CHECK(!strstr(err.msg, "SECRET"));
    }
    qr_arena_done(&arena);
}

QR_TEST(a_field_that_no_service_has_is_refused)
{
    static const char *const texts[] = {RERANK("\"api_key\":\"SECRET\""), VISION("\"model\":\"m\",\"key\":1"),
                                        RERANK("\"limits\":{\"rpm\":1}"), DOCLING(URL ",\"model\":\"m\"")};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        struct qr_settings settings;
        qr_test_set_context("%s", texts[i]);
        QR_CHECK_CODE(QR_CODE_UNKNOWN_FIELD, qr_settings_parse_text(texts[i], &arena, &settings, &err));
        QR_CHECK(!strstr(err.msg, "SECRET"));
    }
    qr_arena_done(&arena);
}

static void parse_under_fault(void *arg)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena own;
    struct qr_settings settings;
    qr_err failure = {0};
    qr_arena_init(&own, 0);
    const qr_rc rc = qr_settings_parse_text(arg, &own, &settings, &failure);
    qr_fault_disarm();
    QR_CHECK(rc == QR_OK || (qr_fault_fired() && rc == QR_NOMEM && failure.code == QR_CODE_OUT_OF_MEMORY));
}

QR_TEST(memory_that_runs_out_is_said_and_nothing_else)
{
    char text[] = "{\"retrieval\":{\"rerank\":{\"provider\":\"tei\"," URL ",\"model\":\"m\",\"api_key_env\":\"K\"}},"
                  "\"assets\":{\"analysis\":\"vision\",\"vision\":{" URL ",\"model\":\"m\",\"prompt\":\"p\"}},"
                  "\"file_processor\":{\"kind\":\"docling\",\"extensions\":[\"pdf\"]," URL
                  ",\"options\":{\"do_ocr\":true,\"ocr_lang\":[\"en\",\"de\"],\"images_scale\":1.5,\"pages\":3}}}";
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, parse_under_fault, text);
}
