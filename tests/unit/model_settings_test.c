/* The settings of a base. */
#include "model/settings.h"
#include "support/fault.h"
#include "support/test.h"

static struct qr_arena arena; /* of the test: each runs in a process of its own */
static qr_err err;

static struct qr_settings parse(const char *text)
{
    struct qr_settings settings;
    QR_CHECK_RC(QR_OK, qr_settings_parse_text(text, &arena, &settings, &err));
    return settings;
}

static void check_refused(qr_code code, const char *text, const char *message_part)
{
    struct qr_settings settings;
    qr_test_set_context("%s", text);
    QR_CHECK_CODE(code, qr_settings_parse_text(text, &arena, &settings, &err));
    QR_CHECK_HAS(message_part, err.msg);
}

static void check_defaults(const char *text)
{
    const struct qr_settings settings = parse(text);
    QR_CHECK_TEXT("none", settings.embedding.provider);
    QR_CHECK_TEXT("", settings.embedding.model);
    QR_CHECK_INT(0, settings.embedding.dimensions);
    QR_CHECK_TEXT("structured", settings.chunking.strategy);
    QR_CHECK_INT(400, settings.chunking.size_tokens);
    QR_CHECK_INT(0, settings.chunking.overlap_tokens);
    QR_CHECK_TEXT("\n\n", settings.chunking.separator);
    QR_CHECK_TEXT("none", settings.file_processor.kind);
    QR_CHECK_INT(0, settings.file_processor.argc);
    QR_CHECK_INT(0, settings.file_processor.extension_count);
    QR_CHECK_TEXT("off", settings.assets.analysis);
    QR_CHECK_INT(QR_RECOVERY_RESUME, settings.recovery);
    QR_CHECK_INT(100000000, settings.limits.file_bytes_max);
    QR_CHECK_INT(1000000, settings.limits.items_max);
    QR_CHECK_INT(60, settings.limits.depth_max);
}

QR_TEST(settings_that_are_not_given_have_their_defaults)
{
    check_defaults("");
    check_defaults(" {} ");
    check_defaults("{\"embedding\":{},\"chunking\":{},\"file_processor\":{},\"assets\":{},\"limits\":{}}");
    struct qr_settings settings;
    QR_CHECK_RC(QR_OK, qr_settings_parse(NULL, &arena, &settings, &err));
    QR_CHECK_INT(400, settings.chunking.size_tokens);
    qr_arena_done(&arena);
}

QR_TEST(every_setting_is_read)
{
    const struct qr_settings settings = parse(
        "{\"embedding\":{\"provider\":\"hash\",\"model\":\"m\",\"dimensions\":128},"
        "\"chunking\":{\"strategy\":\"separator\",\"size_tokens\":100,\"overlap_tokens\":50,\"separator\":\"--\"},"
        "\"file_processor\":{\"kind\":\"command\",\"argv\":[\"convert\",\"--markdown\"],"
        "\"extensions\":[\"pdf\",\".DocX\"]},"
        "\"assets\":{\"analysis\":\"test\"},\"recovery\":\"abandon\","
        "\"limits\":{\"file_bytes_max\":1000,\"items_max\":10,\"depth_max\":3}}");
    QR_CHECK_TEXT("hash", settings.embedding.provider);
    QR_CHECK_TEXT("m", settings.embedding.model);
    QR_CHECK_INT(128, settings.embedding.dimensions);
    QR_CHECK_TEXT("separator", settings.chunking.strategy);
    QR_CHECK_INT(100, settings.chunking.size_tokens);
    QR_CHECK_INT(50, settings.chunking.overlap_tokens);
    QR_CHECK_TEXT("--", settings.chunking.separator);
    QR_CHECK_TEXT("command", settings.file_processor.kind);
    QR_CHECK_INT(2, settings.file_processor.argc);
    QR_CHECK_TEXT("--markdown", settings.file_processor.argv[1]);
    QR_CHECK(settings.file_processor.argv[2] == NULL);
    QR_CHECK_INT(2, settings.file_processor.extension_count);
    QR_CHECK_TEXT("docx", settings.file_processor.extensions[1]);
    QR_CHECK_TEXT("test", settings.assets.analysis);
    QR_CHECK_INT(QR_RECOVERY_ABANDON, settings.recovery);
    QR_CHECK_INT(1000, settings.limits.file_bytes_max);
    QR_CHECK_INT(10, settings.limits.items_max);
    QR_CHECK_INT(3, settings.limits.depth_max);
    qr_arena_done(&arena);
}

QR_TEST(a_setting_that_is_not_known_is_refused_by_its_whole_path)
{
    check_refused(QR_CODE_UNKNOWN_FIELD, "{\"chunkin\":{}}", "\"chunkin\"; did you mean \"chunking\"?");
    check_refused(QR_CODE_UNKNOWN_FIELD, "{\"chunking\":{\"size_token\":1}}",
                  "\"chunking.size_token\"; did you mean \"chunking.size_tokens\"?");
    check_refused(QR_CODE_UNKNOWN_FIELD, "{\"limits\":{\"xxxxxxxxxxxx\":1}}",
                  "\"limits.xxxxxxxxxxxx\"; known: file_bytes_max items_max depth_max");
    qr_arena_done(&arena);
}

QR_TEST(a_value_out_of_its_range_is_refused_with_what_is_allowed) /* CFG-2 */
{
    static const struct {
        const char *text, *message_part;
    } cases[] = {
        {"[]", "must be a JSON object"},
        {"null", "must be a JSON object"},
        {"{\"chunking\":5}", "chunking must be an object with the fields: strategy size_tokens"},
        {"{\"limits\":null}", "limits must be an object"},
        {"{\"chunking\":{\"size_tokens\":15}}", "chunking.size_tokens must be a whole number from 16 to 8192"},
        {"{\"chunking\":{\"size_tokens\":8193}}", "chunking.size_tokens must be"},
        {"{\"chunking\":{\"size_tokens\":\"400\"}}", "chunking.size_tokens must be"},
        {"{\"chunking\":{\"size_tokens\":400.0}}", "chunking.size_tokens must be"},
        {"{\"chunking\":{\"overlap_tokens\":-1}}", "chunking.overlap_tokens must be a whole number from 0 to 200"},
        {"{\"chunking\":{\"size_tokens\":100,\"overlap_tokens\":51}}", "chunking.overlap_tokens must be"},
        {"{\"chunking\":{\"strategy\":\"none\"}}", "chunking.strategy must be one of: structured separator"},
        {"{\"chunking\":{\"strategy\":7}}", "chunking.strategy must be one of"},
        {"{\"chunking\":{\"separator\":\"\"}}", "chunking.separator must not be empty"},
        {"{\"chunking\":{\"separator\":[]}}", "chunking.separator must be text"},
        {"{\"embedding\":{\"provider\":\"hash \"}}", "embedding.provider must be one of: none hash openai"},
        {"{\"embedding\":{\"provider\":\"openai\"}}", "embedding.model must be given where embedding.provider is"},
        {"{\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"localhost:11434\"}}",
         "embedding.url must be"},
        {"{\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"http://\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"http://me:pw@host\"}}",
         "embedding.url must be"},
        {"{\"embedding\":{\"url\":\"ftp://host/v1\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"url\":\"http://host:99999/v1\"}}", "embedding.url must be such as"},
        {"{\"embedding\":{\"url\":\"http://host:65536\"}}", "with a port up to 65535"},
        {"{\"embedding\":{\"url\":\"http://host:0\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"url\":\"http://host:+1\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"url\":\"http://host:/v1\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"url\":\"http://host:80x/v1\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"url\":\"http://[::1\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"url\":\"http:///v1\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"url\":\"http://host/v1\\n\"}}", "embedding.url must be"},
        {"{\"embedding\":{\"model\":\"a\\nb\"}}", "embedding.model must have no control characters"},
        {"{\"embedding\":{\"model\":\"a\\u007f\"}}", "embedding.model must have no control characters"},
        {"{\"embedding\":{\"api_key_env\":\"sk-0123\"}}", "embedding.api_key_env must be the name of"},
        {"{\"embedding\":{\"api_key_env\":\"1KEY\"}}", "embedding.api_key_env must be the name of"},
        {"{\"embedding\":{\"api_key_file\":\"sk-0123\"}}", "embedding.api_key_file must be an absolute path"},
        {"{\"embedding\":{\"api_key_env\":\"A\",\"api_key_file\":\"/b\"}}", "only one of embedding.api_key_env"},
        {"{\"embedding\":{\"encoding\":\"int8\"}}", "embedding.encoding must be one of: float base64"},
        {"{\"embedding\":{\"limits\":{\"inputs\":0}}}", "embedding.limits.inputs must be a whole number from 1"},
        {"{\"embedding\":{\"limits\":{\"request_bytes\":9999}}}", "embedding.limits.request_bytes must be"},
        {"{\"embedding\":{\"limits\":7}}", "limits must be an object"},
        {"{\"embedding\":{\"provider\":\"\"}}", "embedding.provider must be one of"},
        {"{\"embedding\":{\"dimensions\":4097}}", "embedding.dimensions must be"},
        {"{\"embedding\":{\"model\":1}}", "embedding.model must be text of at most 200 bytes"},
        {"{\"retrieval\":{\"mode\":\"best\"}}", "retrieval.mode must be one of: auto text vector hybrid"},
        {"{\"retrieval\":{\"top_k\":101}}", "retrieval.top_k must be a whole number from 1 to 100"},
        {"{\"retrieval\":{\"threshold\":1.01}}", "retrieval.threshold must be a number from 0 to 1"},
        {"{\"retrieval\":{\"threshold\":\"0.5\"}}", "retrieval.threshold must be"},
        {"{\"retrieval\":{\"fusion\":\"sum\"}}", "retrieval.fusion must be one of: weighted rrf"},
        {"{\"retrieval\":{\"weights\":{\"text\":-0.1}}}", "retrieval.weights.text must be"},
        {"{\"retrieval\":{\"weights\":{\"text\":0,\"vector\":0}}}", "one of retrieval.weights must be above 0"},
        {"{\"retrieval\":{\"weights\":[1]}}", "weights must be an object"},
        {"{\"file_processor\":{\"kind\":\"command\"}}", "file_processor.argv must not be empty"},
        {"{\"file_processor\":{\"kind\":\"command\",\"argv\":[\"x\"]}}", "file_processor.extensions must not be empty"},
        {"{\"file_processor\":{\"argv\":\"x\"}}", "file_processor.argv must be a list"},
        {"{\"file_processor\":{\"argv\":[\"x\",\"\"]}}", "file_processor.argv must be a list"},
        {"{\"file_processor\":{\"argv\":[\"x\",1]}}", "file_processor.argv must be a list"},
        {"{\"file_processor\":{\"extensions\":[\"tar.gz\"]}}", "file_processor.extensions must hold the last part"},
        {"{\"file_processor\":{\"extensions\":[\".\"]}}", "file_processor.extensions must hold"},
        {"{\"file_processor\":{\"extensions\":[\"a/b\"]}}", "file_processor.extensions must hold"},
        {"{\"assets\":{\"analysis\":\"on\"}}", "assets.analysis must be one of: off test"},
        {"{\"recovery\":\"forget\"}", "recovery must be one of: resume abandon"},
        {"{\"limits\":{\"file_bytes_max\":0}}", "limits.file_bytes_max must be a whole number from 1 to 2147483647"},
        {"{\"limits\":{\"items_max\":0}}", "limits.items_max must be"},
        {"{\"limits\":{\"depth_max\":61}}", "limits.depth_max must be a whole number from 1 to 60"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        check_refused(QR_CODE_INVALID_VALUE, cases[i].text, cases[i].message_part);
    }
    check_refused(QR_CODE_BAD_REQUEST, "{", "not valid JSON");
    qr_arena_done(&arena);
}

QR_TEST(the_error_never_quotes_the_value) /* I10 */
{
    struct qr_settings settings;
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE,
                  qr_settings_parse_text("{\"embedding\":{\"provider\":\"sk-secret\"}}", &arena, &settings, &err));
    QR_CHECK(!strstr(err.msg, "secret"));
    qr_arena_done(&arena);
}

QR_TEST(lists_have_a_limit)
{
    struct qr_buf text;
    qr_buf_init(&text, 0);
    qr_buf_add_text(&text, "{\"file_processor\":{\"argv\":[\"x\"");
    for (int i = 0; i < 64; i++) {
        qr_buf_add_text(&text, ",\"x\"");
    }
    qr_buf_add_text(&text, "]}}");
    check_refused(QR_CODE_INVALID_VALUE, text.data, "file_processor.argv must be a list of at most 64 texts");
    qr_buf_done(&text);
    qr_arena_done(&arena);
}

QR_TEST(the_processor_takes_the_files_with_its_extensions) /* JOB-2 */
{
    struct qr_settings settings =
        parse("{\"file_processor\":{\"kind\":\"command\",\"argv\":[\"x\"],\"extensions\":[\"pdf\",\"docx\"]}}");
    QR_CHECK(qr_settings_has_processor(&settings, QR_STR("a.pdf")));
    QR_CHECK(qr_settings_has_processor(&settings, QR_STR("A.B.DOCX")));
    QR_CHECK(!qr_settings_has_processor(&settings, QR_STR("pdf")));
    QR_CHECK(!qr_settings_has_processor(&settings, QR_STR(".pdf")));
    QR_CHECK(!qr_settings_has_processor(&settings, QR_STR("a.md")));
    QR_CHECK(!qr_settings_has_processor(&settings, QR_STR("")));
    settings.file_processor.kind = "none";
    QR_CHECK(!qr_settings_has_processor(&settings, QR_STR("a.pdf")));
    qr_arena_done(&arena);
}

static bool have_same_vectors(const struct qr_settings *a, const struct qr_settings *b)
{
    char of_a[QR_FINGERPRINT_SIZE], of_b[QR_FINGERPRINT_SIZE];
    qr_embedding_fingerprint(&a->embedding, of_a);
    qr_embedding_fingerprint(&b->embedding, of_b);
    return strcmp(of_a, of_b) == 0;
}

static bool same_vectors(const char *a, const char *b)
{
    const struct qr_settings of_a = parse(a), of_b = parse(b);
    return have_same_vectors(&of_a, &of_b);
}

QR_TEST(only_the_embedding_decides_whether_vectors_are_shared)
{
    const struct qr_settings a = parse("{\"embedding\":{\"provider\":\"hash\"},\"chunking\":{\"size_tokens\":100}}");
    const struct qr_settings same = parse("{\"embedding\":{\"provider\":\"hash\"},\"recovery\":\"abandon\"}");
    const struct qr_settings model = parse("{\"embedding\":{\"provider\":\"hash\",\"model\":\"m\"}}");
    const struct qr_settings dimensions = parse("{\"embedding\":{\"provider\":\"hash\",\"dimensions\":32}}");
    const struct qr_settings none = parse("{}");
    QR_CHECK(have_same_vectors(&a, &same));
    QR_CHECK(!have_same_vectors(&a, &model));
    QR_CHECK(!have_same_vectors(&a, &dimensions));
    QR_CHECK(!have_same_vectors(&a, &none));
    qr_arena_done(&arena);
}

#define OPENAI "\"provider\":\"openai\",\"model\":\"m\""

QR_TEST(a_server_has_safe_limits_and_an_address_by_default)
{
    struct qr_settings settings = parse("{\"embedding\":{" OPENAI "}}");
    QR_CHECK_TEXT("https://api.openai.com/v1", settings.embedding.url);
    QR_CHECK_INT(32, settings.embedding.limits.inputs);
    QR_CHECK_INT(100000, settings.embedding.limits.request_tokens);
    QR_CHECK_INT(1500000, settings.embedding.limits.request_bytes);
    QR_CHECK_INT(0, settings.embedding.limits.input_tokens);
    QR_CHECK_INT(0, settings.embedding.dimensions);
    settings = parse("{\"embedding\":{" OPENAI ",\"url\":\"http://[::1]:8080/v1\",\"api_key_file\":\"/run/key\","
                     "\"document_prefix\":\"passage: \",\"query_prefix\":\"query: \",\"encoding\":\"base64\","
                     "\"limits\":{\"inputs\":8,\"request_tokens\":1,\"request_bytes\":10000,\"input_tokens\":512,"
                     "\"requests_a_minute\":100,\"tokens_a_minute\":1000,\"in_flight\":2}}}");
    QR_CHECK_TEXT("http://[::1]:8080/v1", settings.embedding.url);
    QR_CHECK_TEXT("/run/key", settings.embedding.api_key_file);
    QR_CHECK_TEXT("passage: ", settings.embedding.document_prefix);
    QR_CHECK_TEXT("query: ", settings.embedding.query_prefix);
    QR_CHECK_TEXT("base64", settings.embedding.encoding);
    QR_CHECK_INT(512, settings.embedding.limits.input_tokens);
    QR_CHECK_INT(100, settings.embedding.limits.requests_a_minute);
    QR_CHECK_INT(1000, settings.embedding.limits.tokens_a_minute);
    QR_CHECK_INT(2, settings.embedding.limits.in_flight);
    qr_arena_done(&arena);
}

static void check_url(const char *expected, const char *given)
{
    const char *text = qr_arena_printf(&arena, "{\"embedding\":{\"url\":\"%s\"}}", given);
    qr_test_set_context("%s", given);
    QR_CHECK_TEXT(expected, parse(text).embedding.url);
}

QR_TEST(the_operation_at_the_end_of_an_address_is_not_asked_for_twice)
{
    check_url("http://h/v1", "http://h/v1/embeddings");
    check_url("http://h/v1", "http://h/v1/embeddings/");
    check_url("http://h/v1", "http://h/v1///");
    check_url("http://h:65535", "http://h:65535/embeddings//");
    check_url("http://[::1]:1", "http://[::1]:1/");
    check_url("http://embeddings", "http://embeddings/");
    check_url("http://h/my-embeddings", "http://h/my-embeddings");
    check_url("http://h/embeddings/v1", "http://h/embeddings/v1");
    qr_arena_done(&arena);
}

QR_TEST(a_fingerprint_names_what_makes_the_vectors_of_documents_and_nothing_else) /* PAID-1 */
{
    static const char plain[] = "{\"embedding\":{" OPENAI "}}";
    char fingerprint[QR_FINGERPRINT_SIZE];
    QR_CHECK(same_vectors(plain, "{\"embedding\":{" OPENAI ",\"url\":\"http://localhost/v1\"}}"));
    QR_CHECK(same_vectors(plain, "{\"embedding\":{" OPENAI ",\"api_key_env\":\"K\",\"encoding\":\"float\"}}"));
    QR_CHECK(same_vectors(plain, "{\"embedding\":{" OPENAI ",\"query_prefix\":\"q\",\"limits\":{\"inputs\":1}}}"));
    QR_CHECK(!same_vectors(plain, "{\"embedding\":{" OPENAI ",\"document_prefix\":\"p\"}}"));
    QR_CHECK(!same_vectors(plain, "{\"embedding\":{" OPENAI ",\"dimensions\":8}}"));
    QR_CHECK(!same_vectors(plain, "{\"embedding\":{\"provider\":\"openai\",\"model\":\"mm\"}}"));
    QR_CHECK(!same_vectors(plain, "{\"embedding\":{\"provider\":\"hash\",\"model\":\"m\"}}"));
    struct qr_settings settings = parse(plain);
    qr_embedding_fingerprint(&settings.embedding, fingerprint);
    /* what is stored must be found by every later version */
    QR_CHECK_TEXT("openai:ea31b06c768cc52c3d348eacd18b3ff4", fingerprint);
    settings = parse("{}");
    qr_embedding_fingerprint(&settings.embedding, fingerprint);
    QR_CHECK_TEXT("", fingerprint);
    qr_arena_done(&arena);
}

static void parse_under_fault(void *arg)
{
    struct qr_settings settings;
    struct qr_arena own;
    qr_arena_init(&own, 0);
    err = (qr_err){0};
    const qr_rc rc = qr_settings_parse_text(arg, &own, &settings, &err);
    qr_fault_disarm();
    QR_CHECK(rc == QR_OK || (qr_fault_fired() && rc == QR_NOMEM && err.code == QR_CODE_OUT_OF_MEMORY));
    qr_arena_done(&own);
}

QR_TEST(reading_settings_survives_every_failed_allocation)
{
    qr_fault_memory_install();
    static char text[] = "{\"embedding\":{\"provider\":\"hash\",\"model\":\"m\"},\"chunking\":{\"separator\":\"--\"},"
                         "\"file_processor\":{\"kind\":\"command\",\"argv\":[\"x\"],\"extensions\":[\"pdf\"]},"
                         "\"recovery\":\"abandon\"}";
    parse_under_fault(text); /* the first time jansson keeps a little */
    qr_fault_sweep(QR_FAULT_MEMORY, parse_under_fault, text);
}
