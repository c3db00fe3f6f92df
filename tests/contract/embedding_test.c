/* Embedding by a server, with the whole workflow around it, over every database: what it does well, and every way in which it
 * does not. */
#include "base/mem.h"
#include "remote/endpoint.h"
#include "support/model_server.h"
#include "support/search_fixture.h"

#include <sys/stat.h>

#include <stdlib.h>

#define KEY "sk-test-0123456789abcdef"

enum { LATER_MS = 30 * 60 * 1000 };

struct fixture {
    struct qr_model_server *server;
    struct qr_endpoints *endpoints;
    struct library library;
    char settings[1000];
};

static struct qr_shop *shop_of(struct fixture *fixture)
{
    return &fixture->library.shop;
}

/* `more` is of the embedding's settings. On the test's clock the server's wishes to wait are waited for when the test says so. */
static void set_up(struct fixture *fixture, struct qr_test *t, struct qr_model_options options, const char *more,
                   bool on_test_clock)
{
    qr_err err;
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("QUIRE_TEST_KEY", KEY, 1);
    options.key = KEY;
    fixture->server = qr_model_server_start(&options);
    snprintf(
        fixture->settings, sizeof fixture->settings,
        "{\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"%s\",\"api_key_env\":\"QUIRE_TEST_KEY\"%s},"
        "\"chunking\":{\"size_tokens\":200}}",
        qr_model_server_url(fixture->server, "/v1"), more);
    library_open(&fixture->library, t, fixture->settings);
    const struct qr_clock *clock = on_test_clock ? shop_of(fixture)->desk.ids.clock : qr_clock_system();
    QR_CHECK_RC(QR_OK, qr_endpoints_open(&fixture->endpoints, clock, qr_rand_system(), NULL, NULL, &err));
    shop_of(fixture)->context.endpoints = fixture->endpoints;
    qr_shop_use_provider(shop_of(fixture), NULL);
    fixture->library.batcher = qr_shop_batcher(shop_of(fixture), fixture->settings);
}

static void tear_down(struct fixture *fixture)
{
    library_close(&fixture->library);
    qr_endpoints_close(fixture->endpoints);
    qr_model_server_stop(fixture->server);
}

static struct qr_model_stats stats_of(struct fixture *fixture)
{
    struct qr_model_stats stats;
    qr_model_server_stats(fixture->server, &stats);
    return stats;
}

static void set_fault(struct fixture *fixture, enum qr_model_fault fault, int64_t number, int64_t upto)
{
    const struct qr_model_step step = {.from = 1, .to = upto, .fault = fault, .number = number};
    qr_model_server_set_steps(fixture->server, &step, fault == QR_FAULT_NONE ? 0 : 1);
}

static qr_uuid add_note(struct fixture *fixture, const char *text)
{
    return qr_desk_add_note(&shop_of(fixture)->desk, "note", text);
}

static void check_completed(struct fixture *fixture, qr_uuid id)
{
    const struct qr_item item = qr_desk_item(&shop_of(fixture)->desk, id);
    if (item.status != QR_ITEM_COMPLETED) {
        QR_FAIL("the item is %s: %s %s", qr_item_status_name(item.status), item.error_code, item.error_message);
    }
}

struct text_read {
    const char *sql;
    char text[600];
};

static qr_rc read_text(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct text_read *read = arg;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, read->sql, QR_NO_VALS, err));
    read->text[0] = '\0';
    if (qr_rows_next(&rows)) {
        snprintf(read->text, sizeof read->text, "%.*s", QR_STR_ARG(qr_rows_str(&rows, 0)));
    }
    return qr_rows_end(&rows, err);
}

/* The text of the first row; static memory. */
static const char *text_of(struct fixture *fixture, const char *sql)
{
    static struct text_read read;
    qr_err err;
    read.sql = sql;
    QR_CHECK_RC(QR_OK, qr_db_read(shop_of(fixture)->desk.db, read_text, &read, &err));
    return read.text;
}

/* ---- well ---- */

static void check_request(struct fixture *fixture, const char *has, const char *has_not)
{
    char *request = qr_model_server_last_request(fixture->server);
    QR_CHECK_HAS(has, request);
    QR_CHECK(!strstr(request, has_not));
    qr_free(request);
}

QR_DB_TEST(what_a_server_embeds_is_found_by_its_meaning_and_paid_for_once) /* EMB-1, PAID-1 */
{
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){.shuffles = true}, "", false);
    struct qr_shop *shop = shop_of(&fixture);
    const qr_uuid folder = qr_shop_add_tree(shop);
    QR_CHECK_INT(5, qr_shop_completed(shop));
    QR_CHECK_INT(3, qr_shop_vectors(shop));
    QR_CHECK_INT(3, stats_of(&fixture).inputs);
    QR_CHECK_INT(stats_of(&fixture).tokens, qr_batcher_provider(fixture.library.batcher)->token_count);
    check_request(&fixture, "Bearer " KEY, "\"dimensions\"");
    check_request(&fixture, "POST /v1/embeddings ", "encoding_format");
    struct qr_search search = library_search(&fixture.library, "bananas yellow");
    search.mode = QR_MODE_VECTOR;
    const struct qr_search_answer answer = library_run(&fixture.library, &search);
    QR_CHECK(answer.count > 0 && answer.degraded == 0);
    QR_CHECK_TEXT("b.txt", answer.hits[0].item->name);
    qr_shop_reindex(shop, folder);
    qr_shop_work(shop);
    QR_CHECK_INT(6, qr_shop_generations(shop));
    QR_CHECK_INT(3 + 1, stats_of(&fixture).inputs); /* and the query */
    tear_down(&fixture);
}

QR_DB_TEST(base64_dimensions_and_prefixes_are_asked_for_where_they_are_configured) /* EMB-1 */
{
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){0},
           ",\"encoding\":\"base64\",\"dimensions\":16,\"document_prefix\":\"passage: \",\"query_prefix\":\"query: \"",
           false);
    const qr_uuid note = add_note(&fixture, "words about rivers");
    qr_shop_work(shop_of(&fixture));
    check_completed(&fixture, note);
    check_request(&fixture, "\"input\":[\"passage: words", "query: ");
    check_request(&fixture, "\"dimensions\":16,\"encoding_format\":\"base64\"", "query: ");
    struct qr_search search = library_search(&fixture.library, "rivers");
    search.mode = QR_MODE_VECTOR;
    const struct qr_search_answer answer = library_run(&fixture.library, &search);
    QR_CHECK(answer.count == 1 && answer.degraded == 0);
    check_request(&fixture, "\"input\":[\"query: rivers\"]", "passage");
    tear_down(&fixture);
}

QR_DB_TEST(documents_that_wait_together_share_requests) /* EMB-1 */
{
    enum { NOTES = 40 };
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){0}, "", false);
    struct qr_shop *shop = shop_of(&fixture);
    for (int i = 0; i < NOTES; i++) {
        char text[60];
        snprintf(text, sizeof text, "note number %d has words of its own", i);
        add_note(&fixture, text);
    }
    qr_shop_work(shop);
    QR_CHECK_INT(NOTES, qr_shop_completed(shop));
    QR_CHECK_INT(NOTES, stats_of(&fixture).inputs);
    QR_CHECK(stats_of(&fixture).requests < NOTES);
    tear_down(&fixture);
}

/* ---- trouble that is tried again ---- */

/* AGAIN-1, EMB-5: network, 5xx and answers that cannot be used cost an attempt, never the item. */
QR_DB_TEST_WITH_TIMEOUT(a_server_in_trouble_is_asked_again_later, 240)
{
    static const struct {
        enum qr_model_fault fault;
        int64_t number;
        const char *code;
    } cases[] = {
        {QR_FAULT_500, 0, "embedding_failed"},      {QR_FAULT_502_HTML, 0, "embedding_failed"},
        {QR_FAULT_404, 0, "embedding_failed"},      {QR_FAULT_TRUNCATED, 0, "unavailable"},
        {QR_FAULT_EOF, 0, "unavailable"},           {QR_FAULT_RESET, 0, "unavailable"},
        {QR_FAULT_BAD_JSON, 0, "embedding_failed"}, {QR_FAULT_WRONG_COUNT, 0, "embedding_failed"},
        {QR_FAULT_HUGE, 4 << 20, "unavailable"},    {QR_FAULT_400, 0, "embedding_failed"},
        {QR_FAULT_422, 0, "embedding_failed"},
    };
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){0}, "", false);
    struct qr_shop *shop = shop_of(&fixture);
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        char text[60];
        qr_test_set_context("case %zu", i);
        snprintf(text, sizeof text, "words of case %zu", i);
        set_fault(&fixture, cases[i].fault, cases[i].number, 0);
        const qr_uuid note = add_note(&fixture, text);
        qr_shop_work(shop);
        QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&shop->desk, note).status);
        QR_CHECK_INT(1, qr_desk_i64(&shop->desk, "SELECT attempts FROM job WHERE type = 'index-chunks' AND state = 2"));
        QR_CHECK_TEXT(cases[i].code,
                      text_of(&fixture, "SELECT code FROM job WHERE type = 'index-chunks' AND state = 2"));
        set_fault(&fixture, QR_FAULT_NONE, 0, 0);
        qr_shop_work_after(shop, LATER_MS);
        check_completed(&fixture, note);
    }
    QR_CHECK_INT(QR_COUNT(cases), qr_shop_vectors(shop));
    tear_down(&fixture);
}

/* ---- waiting (AGAIN-2) ---- */

static void check_put_off(struct fixture *fixture, const char *code)
{
    struct qr_desk *desk = &shop_of(fixture)->desk;
    QR_CHECK_INT(0, qr_desk_i64(desk, "SELECT attempts FROM job WHERE type = 'index-chunks' AND state = 2"));
    QR_CHECK_TEXT(code, text_of(fixture, "SELECT code FROM job WHERE type = 'index-chunks' AND state = 2"));
    QR_CHECK(!strstr(text_of(fixture, "SELECT message FROM job WHERE type = 'index-chunks' AND state = 2"), KEY));
}

QR_DB_TEST(a_server_that_asks_to_wait_costs_no_attempt_and_is_left_alone_meanwhile) /* AGAIN-2 */
{
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){0}, "", true);
    struct qr_shop *shop = shop_of(&fixture);
    set_fault(&fixture, QR_FAULT_429_RETRY_AFTER, 40, 1);
    const qr_uuid note = add_note(&fixture, "words that wait");
    qr_shop_work(shop);
    check_put_off(&fixture, "rate_limited");
    qr_shop_work_after(shop, 20 * 1000);
    QR_CHECK_INT(1, stats_of(&fixture).requests);
    qr_shop_work_after(shop, 60 * 1000);
    check_completed(&fixture, note);
    QR_CHECK_INT(2, stats_of(&fixture).requests);
    tear_down(&fixture);
}

QR_DB_TEST(a_server_that_is_loading_for_a_moment_is_waited_for) /* AGAIN-2 */
{
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){0}, "", false);
    set_fault(&fixture, QR_FAULT_503_LOADING, 0, 1);
    const qr_uuid note = add_note(&fixture, "words that wait");
    qr_shop_work(shop_of(&fixture));
    const struct qr_item item = qr_desk_item(&shop_of(&fixture)->desk, note);
    if (item.status != QR_ITEM_COMPLETED) { /* or put off, where it was asked to wait for longer */
        check_put_off(&fixture, "rate_limited");
    }
    tear_down(&fixture);
}

QR_DB_TEST(a_key_that_is_refused_holds_everything_up_and_costs_nothing) /* AGAIN-2, I10 */
{
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){0}, "", true);
    struct qr_shop *shop = shop_of(&fixture);
    setenv("QUIRE_TEST_KEY", "sk-wrong", 1);
    const qr_uuid note = add_note(&fixture, "words behind a key");
    qr_shop_work(shop);
    check_put_off(&fixture, "endpoint_refused");
    QR_CHECK(!strstr(text_of(&fixture, "SELECT message FROM job WHERE type = 'index-chunks'"), "sk-wrong"));
    QR_CHECK_INT(QR_ITEM_PROCESSING, qr_desk_item(&shop->desk, note).status);
    const qr_uuid second = add_note(&fixture, "more words");
    qr_shop_work(shop);
    QR_CHECK_INT(1, stats_of(&fixture).requests); /* the circuit is open */
    setenv("QUIRE_TEST_KEY", KEY, 1);
    qr_shop_work_after(shop, LATER_MS);
    qr_shop_work_after(shop, LATER_MS);
    check_completed(&fixture, note);
    check_completed(&fixture, second);
    tear_down(&fixture);
}

/* ---- too much ---- */

static void long_text(struct qr_buf *out, const char *word, int words)
{
    for (int i = 0; i < words; i++) {
        qr_buf_printf(out, "%s%d ", word, i);
    }
}

/* EMB-3: whatever the server calls it */
QR_DB_TEST_WITH_TIMEOUT(a_text_that_is_too_long_for_the_server_is_shortened_and_the_item_says_so, 240)
{
    static const enum qr_model_dialect dialects[] = {QR_DIALECT_OPENAI, QR_DIALECT_OLLAMA, QR_DIALECT_LLAMACPP,
                                                     QR_DIALECT_TEI, QR_DIALECT_VLLM};
    for (size_t i = 0; i < QR_COUNT(dialects); i++) {
        struct fixture fixture;
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        struct qr_test own = *t;
        qr_test_set_context("dialect %zu", i);
        snprintf(own.dir, sizeof own.dir, "%s/%zu", t->dir, i);
        QR_CHECK_INT(0, mkdir(own.dir, 0700));
        if (i > 0 && qr_test_on_postgres(t)) {
            return; /* one database for all of them: one dialect is enough */
        }
        set_up(&fixture, &own, (struct qr_model_options){.dialect = dialects[i], .input_tokens_max = 40}, "", false);
        struct qr_shop *shop = shop_of(&fixture);
        long_text(&text, "lengthy", 60);
        const qr_uuid note = add_note(&fixture, text.data);
        const qr_uuid other = add_note(&fixture, "a short one");
        qr_shop_work(shop);
        check_completed(&fixture, note);
        check_completed(&fixture, other);
        QR_CHECK_HAS("truncated", qr_desk_item(&shop->desk, note).warnings);
        QR_CHECK(!strstr(qr_desk_item(&shop->desk, other).warnings, "truncated"));
        const int64_t paid = stats_of(&fixture).inputs;
        qr_shop_reindex(shop, note);
        qr_shop_work(shop);
        QR_CHECK_INT(paid, stats_of(&fixture).inputs);
        QR_CHECK_HAS("truncated", qr_desk_item(&shop->desk, note).warnings);
        tear_down(&fixture);
    }
}

QR_DB_TEST(a_server_with_smaller_limits_than_ours_gets_smaller_requests) /* EMB-3 */
{
    enum { NOTES = 24 };
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){.inputs_max = 5}, "", false);
    for (int i = 0; i < NOTES; i++) {
        char text[60];
        snprintf(text, sizeof text, "note number %d has words of its own", i);
        add_note(&fixture, text);
    }
    qr_shop_work(shop_of(&fixture));
    QR_CHECK_INT(NOTES, qr_shop_completed(shop_of(&fixture)));
    QR_CHECK_INT(NOTES, stats_of(&fixture).inputs); /* what is refused is not paid for */
    tear_down(&fixture);
}

QR_DB_TEST(an_item_whose_chunks_are_refused_says_what_the_server_said) /* EMPTY-2, I10 */
{
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){.input_tokens_max = 1}, "", false);
    struct qr_shop *shop = shop_of(&fixture);
    const qr_uuid note = add_note(&fixture, "more than the server takes");
    qr_shop_work(shop);
    QR_CHECK_TEXT("chunks_failed", qr_desk_item(&shop->desk, note).error_code);
    QR_CHECK_HAS("1 of 1 chunks cannot be embedded: the embedding server takes less at once: ",
                 qr_desk_item(&shop->desk, note).error_message);
    QR_CHECK_HAS("maximum context length", qr_desk_item(&shop->desk, note).error_message);
    tear_down(&fixture);
}

/* ---- bad vectors ---- */

QR_DB_TEST(a_bad_vector_is_asked_for_again_and_costs_its_item_only_when_it_stays) /* EMB-4, EMPTY-2 */
{
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){0}, "", false);
    struct qr_shop *shop = shop_of(&fixture);
    set_fault(&fixture, QR_FAULT_NAN, 0, 1);
    const qr_uuid first = add_note(&fixture, "the first words");
    qr_shop_work(shop);
    check_completed(&fixture, first);
    set_fault(&fixture, QR_FAULT_ZERO, 0, 0);
    const qr_uuid second = add_note(&fixture, "the second words");
    qr_shop_work(shop);
    QR_CHECK_TEXT("chunks_failed", qr_desk_item(&shop->desk, second).error_code);
    QR_CHECK_TEXT("1 of 1 chunks cannot be embedded: the answer has no numbers for it that can be used",
                  qr_desk_item(&shop->desk, second).error_message);
    tear_down(&fixture);
}

/* ---- the dimension (EMB-6) ---- */

QR_DB_TEST(a_model_whose_dimension_changes_fails_the_base_until_it_is_restored) /* THING-2, EMB-6 */
{
    struct fixture fixture;
    qr_uuid job_id;
    qr_err err;
    set_up(&fixture, t, (struct qr_model_options){.dimension = 48}, "", false);
    struct qr_shop *shop = shop_of(&fixture);
    const qr_uuid first = add_note(&fixture, "the first words");
    qr_shop_work(shop);
    check_completed(&fixture, first);
    QR_CHECK_INT(48, qr_desk_i64(&shop->desk, "SELECT dimension FROM embedding_model"));
    const int port = qr_model_server_port(fixture.server);
    qr_model_server_stop(fixture.server);
    fixture.server = qr_model_server_start(&(struct qr_model_options){.port = port, .dimension = 32, .key = KEY});
    add_note(&fixture, "the second words");
    qr_shop_work(shop);
    QR_CHECK_INT(QR_BASE_FAILED, qr_desk_i64(&shop->desk, "SELECT status FROM base"));
    QR_CHECK_TEXT("dimension_mismatch", text_of(&fixture, "SELECT error_code FROM base"));
    QR_CHECK_RC(QR_OK, qr_workflow_restore_base(&shop->desk.workflow, shop->desk.base_id, &job_id, &err));
    qr_shop_work(shop);
    qr_shop_work_after(shop, 60 * 1000); /* what was held looks again after a while */
    QR_CHECK_INT(2, qr_shop_completed(shop));
    QR_CHECK_INT(32, qr_desk_i64(&shop->desk, "SELECT dimension FROM embedding_model"));
    struct qr_search search = library_search(&fixture.library, "first");
    search.mode = QR_MODE_VECTOR;
    const struct qr_search_answer answer = library_run(&fixture.library, &search);
    QR_CHECK(answer.count == 2 && answer.degraded == 0);
    tear_down(&fixture);
}

/* ---- searching ---- */

QR_DB_TEST(a_search_does_not_wait_for_a_server_that_hangs) /* EMB-2 */
{
    struct fixture fixture;
    set_up(&fixture, t, (struct qr_model_options){0}, "", false);
    const qr_uuid note = add_note(&fixture, "words about rivers");
    qr_shop_work(shop_of(&fixture));
    check_completed(&fixture, note);
    set_fault(&fixture, QR_FAULT_HANG, 0, 0);
    struct qr_search search = library_search(&fixture.library, "rivers");
    search.mode = QR_MODE_HYBRID;
    search.model_wait_ms = 100;
    const struct qr_search_answer answer = library_run(&fixture.library, &search);
    QR_CHECK(answer.count == 1 && answer.mode == QR_MODE_TEXT && answer.degraded == QR_DEGRADED_VECTOR);
    tear_down(&fixture);
}
