/* The batcher, over a provider that does what the test says and keeps a record of its calls. */
#include "base/buf.h"
#include "base/sync.h"
#include "embed/batcher.h"
#include "support/fault.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>

enum { DIMENSION = 2, TEXTS_MAX = 64 };

static qr_err err;

/* ---- the provider, the hooks, the clock ---- */

struct model {
    struct qr_provider provider;
    struct qr_batcher *batcher;
    struct qr_buf calls; /* "a,b|c": texts, or the first letters of long ones */
    int call_count, dimension;
    int64_t wait_ms;
    struct qr_embed_next next; /* of which it was asked last */
    qr_rc (*fault)(struct model *model, const struct qr_embed_request *request, qr_err *err);
    const char *bad; /* a text with this in it gets no vector */
    int bad_count;   /* so often; 0 = always */
    /* hooks */
    const void *unwanted; /* the owner that nobody wants */
    struct qr_buf asked, kept;
    int known_dimension;
    qr_code keep_fails;
    bool is_during_call;
};

static int64_t now_ms;  /* of all tests but those with threads */
static int64_t tick_ms; /* passes with each look at the clock */

static int64_t read_clock(const struct qr_clock *clock QR_UNUSED)
{
    return now_ms += tick_ms;
}

static const struct qr_clock test_clock = {read_clock, read_clock};

static void note(struct qr_buf *out, qr_str text)
{
    qr_buf_printf(out, "%s%.*s", out->len && out->data[out->len - 1] != '|' ? "," : "",
                  (int)QR_MIN(text.len, (size_t)12), text.ptr);
}

static void vector_of(qr_str text, float *ret_vector)
{
    double sum = 1;
    for (size_t i = 0; i < text.len; i++) {
        sum = fmod(sum * 31 + (unsigned char)text.ptr[i], 1000);
    }
    ret_vector[0] = (float)cos(sum);
    ret_vector[1] = (float)sin(sum);
}

static qr_rc embed(struct qr_provider *provider, const struct qr_embed_request *request, struct qr_embed_answer *answer,
                   qr_err *error)
{
    struct model *model = provider->arg;
    model->call_count++;
    qr_buf_add_text(&model->calls, model->calls.len ? "|" : "");
    for (size_t i = 0; i < request->count; i++) {
        note(&model->calls, request->texts[i]);
    }
    if (model->fault) {
        QR_TRY(model->fault(model, request, error));
    }
    QR_TRY(qr_embed_answer_begin(answer, request->count, model->dimension, error));
    for (size_t i = 0; i < request->count; i++) {
        vector_of(request->texts[i], answer->vectors + i * (size_t)model->dimension);
        answer->is_bad[i] =
            model->bad && memmem(request->texts[i].ptr, request->texts[i].len, model->bad, strlen(model->bad));
        if (answer->is_bad[i] && model->bad_count > 0 && --model->bad_count == 0) {
            model->bad = NULL;
        }
    }
    return QR_OK;
}

static int64_t wait_ms(struct qr_provider *provider, const struct qr_embed_next *next)
{
    struct model *model = provider->arg;
    model->next = *next;
    return model->wait_ms;
}

static qr_rc look(void *arg, struct qr_embed_asked *asked, size_t count, qr_err *error QR_UNUSED)
{
    struct model *model = arg;
    for (size_t i = 0; i < count; i++) {
        asked[i].is_wanted = asked[i].arg != model->unwanted;
        if (!asked[i].is_wanted) {
            qr_fail(&asked[i].why, QR_CODE_STALE, "nobody wants it");
        }
        note(&model->asked, qr_str_of(asked[i].arg));
    }
    return QR_OK;
}

static qr_rc keep(void *arg, const char *fingerprint, int dimension, const struct qr_embed_paid *paid, size_t count,
                  qr_err *error)
{
    struct model *model = arg;
    QR_CHECK_TEXT("model", fingerprint);
    QR_CHECK_INT(model->dimension, dimension);
    if (model->keep_fails) {
        return qr_fail(error, model->keep_fails, "it cannot be kept");
    }
    for (size_t i = 0; i < count; i++) {
        note(&model->kept, paid[i].text);
    }
    return QR_OK;
}

static qr_rc dimension(void *arg, const char *fingerprint QR_UNUSED, int *ret_dimension, qr_err *error QR_UNUSED)
{
    *ret_dimension = ((struct model *)arg)->known_dimension;
    return QR_OK;
}

static void model_open(struct model *model, int inputs_max)
{
    now_ms = 1000;
    tick_ms = 0;
    *model = (struct model){.dimension = DIMENSION};
    model->provider = (struct qr_provider){
        .fingerprint = "model", .limits = {.inputs_max = inputs_max}, .arg = model, .embed = embed, .wait_ms = wait_ms};
    const struct qr_batcher_options options = {
        .provider = &model->provider, .clock = &test_clock, .hooks = {look, keep, dimension, model}};
    QR_CHECK_RC(QR_OK, qr_batcher_create(&model->batcher, &options, &err));
}

static void model_close(struct model *model)
{
    qr_batcher_free(model->batcher);
    qr_buf_done(&model->calls);
    qr_buf_done(&model->asked);
    qr_buf_done(&model->kept);
}

/* ---- those who want vectors ---- */

struct wish {
    struct qr_embed_work work;
    struct qr_embed_input inputs[TEXTS_MAX];
    struct qr_embed_owner owner;
};

/* The texts are words of `text`, with a space between them. */
static void wish_begin(struct wish *wish, struct model *model, const char *text, const char *owner)
{
    *wish = (struct wish){.owner = {.arg = owner}};
    wish->work.inputs = wish->inputs;
    for (qr_str rest = qr_str_of(text); rest.len;) {
        wish->inputs[wish->work.count++] = (struct qr_embed_input){
            .text = qr_str_split(&rest, ' '), .tokens = 1, .owner = owner ? &wish->owner : NULL};
    }
    qr_embed_begin(model->batcher, &wish->work);
}

static void check_done(const struct wish *wish)
{
    for (size_t i = 0; i < wish->work.count; i++) {
        float expected[DIMENSION];
        QR_CHECK_INT(QR_INPUT_DONE, wish->inputs[i].state);
        QR_CHECK_INT(wish->inputs[i].text.len, wish->inputs[i].kept_bytes);
        vector_of(wish->inputs[i].text, expected);
        QR_CHECK(memcmp(expected, wish->inputs[i].vector, sizeof expected) == 0);
    }
}

static void wish_end(struct wish *wish)
{
    QR_CHECK_RC(QR_OK, qr_embed_wait(&wish->work, &err));
    check_done(wish);
    qr_embed_end(&wish->work);
}

static void wish_fail(struct wish *wish, qr_code code)
{
    QR_CHECK_CODE(code, qr_embed_wait(&wish->work, &err));
    qr_embed_end(&wish->work);
}

/* ---- what goes into a call (M1, M4) ---- */

QR_TEST(texts_of_many_share_a_call) /* EMB-1 */
{
    struct model model;
    struct wish a, b;
    model_open(&model, 8);
    wish_begin(&a, &model, "one two", "A");
    wish_begin(&b, &model, "three", "B");
    wish_end(&a);
    wish_end(&b);
    QR_CHECK_TEXT("one,two,three", model.calls.data);
    QR_CHECK_TEXT("A,B", model.asked.data);
    QR_CHECK_TEXT("one,two,three", model.kept.data);
    model_close(&model);
}

QR_TEST(a_call_waits_to_be_filled_and_no_longer_than_it_may) /* EMB-1 */
{
    struct model model;
    struct wish a, b;
    model_open(&model, 3);
    model.provider.linger_ms = 20;
    wish_begin(&a, &model, "one two three", NULL); /* full: at once, time stands still */
    wish_end(&a);
    tick_ms = 1;
    wish_begin(&b, &model, "four", NULL);
    const int64_t began_ms = now_ms;
    wish_end(&b);
    QR_CHECK(now_ms - began_ms >= 18 && now_ms - began_ms <= 60); /* each look takes one */
    QR_CHECK_INT(2, model.call_count);
    model_close(&model);
}

QR_TEST(a_provider_is_told_what_the_next_call_would_be) /* EMB-1, EMB-2 */
{
    struct model model;
    struct wish full, rest;
    struct qr_embed_input input = {.text = QR_STR("query")};
    struct qr_embed_work query = {.inputs = &input, .count = 1, .is_query = true};
    model_open(&model, 2);
    wish_begin(&full, &model, "one two", NULL);
    wish_end(&full);
    QR_CHECK(model.next.is_full && !model.next.is_query);
    QR_CHECK_INT(2, model.next.tokens);
    wish_begin(&rest, &model, "three", NULL);
    wish_end(&rest);
    QR_CHECK(!model.next.is_full && !model.next.is_query);
    qr_embed_begin(model.batcher, &query);
    QR_CHECK_RC(QR_OK, qr_embed_wait(&query, &err));
    QR_CHECK(model.next.is_query);
    qr_embed_end(&query);
    model_close(&model);
}

QR_TEST(texts_of_a_call_are_of_about_one_length) /* EMB-1 */
{
    struct model model;
    struct wish a;
    model_open(&model, 2);
    wish_begin(&a, &model, "aa a-very-long-text-indeed bb another-long-text-it-is cc", NULL);
    wish_end(&a);
    QR_CHECK_TEXT("aa,bb|cc,a-very-long-|another-long", model.calls.data);
    model_close(&model);
}

QR_TEST(the_oldest_text_is_never_passed_over)
{
    struct model model;
    struct wish old, young;
    model_open(&model, 1);
    wish_begin(&old, &model, "a-very-long-text-indeed", NULL);
    now_ms++;
    wish_begin(&young, &model, "aa bb", NULL);
    wish_end(&young);
    QR_CHECK_TEXT("a-very-long-|aa|bb", model.calls.data);
    wish_end(&old);
    model_close(&model);
}

QR_TEST(calls_keep_to_the_limits_of_tokens_and_bytes) /* EMB-1 */
{
    struct model model;
    struct wish a, b;
    model_open(&model, 0);
    model.provider.limits.tokens_max = 2;
    wish_begin(&a, &model, "a b c d e", NULL);
    wish_end(&a);
    QR_CHECK_TEXT("a,b|c,d|e", model.calls.data);
    qr_buf_clear(&model.calls);
    model.provider.limits = (struct qr_embed_limits){.bytes_max = 40};
    wish_begin(&b, &model, "aaaaaaaaaa bbbbbbbbbb cccccccccc", NULL);
    wish_end(&b);
    QR_CHECK_TEXT("aaaaaaaaaa,bbbbbbbbbb|cccccccccc", model.calls.data);
    model_close(&model);
}

QR_TEST(a_query_goes_before_documents_and_does_not_wait) /* EMB-2 */
{
    struct model model;
    struct wish documents;
    struct qr_embed_input input = {.text = QR_STR("query")};
    struct qr_embed_work query = {.inputs = &input, .count = 1, .is_query = true};
    model_open(&model, 2);
    model.provider.linger_ms = 20;
    wish_begin(&documents, &model, "a b c d", NULL);
    qr_embed_begin(model.batcher, &query);
    wish_end(&documents);
    QR_CHECK_TEXT("query|a,b|c,d", model.calls.data);
    QR_CHECK_TEXT("a,b,c,d", model.kept.data); /* what people typed is not kept */
    QR_CHECK_RC(QR_OK, qr_embed_wait(&query, &err));
    QR_CHECK_INT(QR_INPUT_DONE, input.state);
    qr_embed_end(&query);
    model_close(&model);
}

QR_TEST(a_text_that_two_want_is_paid_for_once) /* PAID-1 */
{
    struct model model;
    struct wish a, b, c;
    model_open(&model, 8);
    wish_begin(&a, &model, "same same other", "A");
    wish_begin(&b, &model, "same", "B");
    wish_end(&a);
    wish_begin(&c, &model, "same", "C"); /* who had looked into the cache before it was there */
    wish_end(&b);
    wish_end(&c);
    QR_CHECK_TEXT("same,other", model.calls.data);
    model_close(&model);
}

/* ---- whether it is wanted (M2), and what was paid for (M3) ---- */

QR_TEST(what_nobody_wants_is_left_out_right_before_the_call) /* GEN-1, I8 */
{
    struct model model;
    struct wish a, b;
    static const char owner_b[] = "B";
    model_open(&model, 2);
    model.unwanted = owner_b;
    wish_begin(&a, &model, "one four", "A");
    wish_begin(&b, &model, "two six ten", owner_b);
    QR_CHECK_RC(QR_OK, qr_embed_wait(&b.work, &err));
    QR_CHECK(b.owner.is_unwanted && b.owner.why.code == QR_CODE_STALE);
    for (size_t i = 0; i < b.work.count; i++) {
        QR_CHECK_INT(QR_INPUT_UNWANTED, b.inputs[i].state);
    }
    qr_embed_end(&b.work);
    wish_end(&a);
    QR_CHECK_TEXT("one|four", model.calls.data); /* nothing of B, and B was asked about once */
    QR_CHECK_TEXT("A,B,A", model.asked.data);
    model_close(&model);
}

QR_TEST(a_text_is_asked_for_while_one_of_its_owners_wants_it)
{
    struct model model;
    struct wish a, b;
    static const char owner_b[] = "B";
    model_open(&model, 2);
    model.unwanted = owner_b;
    wish_begin(&a, &model, "same", "A");
    wish_begin(&b, &model, "same", owner_b);
    wish_end(&a);
    QR_CHECK_INT(1, model.call_count);
    QR_CHECK_RC(QR_OK, qr_embed_wait(&b.work, &err));
    qr_embed_end(&b.work);
    model_close(&model);
}

QR_TEST(nobody_is_told_before_it_is_kept) /* PAID-1 */
{
    struct model model;
    struct wish a;
    model_open(&model, 8);
    model.keep_fails = QR_CODE_DISK_FULL;
    wish_begin(&a, &model, "one", "A");
    wish_fail(&a, QR_CODE_DISK_FULL);
    model.keep_fails = QR_CODE_NONE;
    wish_begin(&a, &model, "one", "A");
    wish_end(&a);
    QR_CHECK_TEXT("one|one", model.calls.data);
    model_close(&model);
}

static struct wish *left_early;

static qr_rc leave_during_the_call(struct model *model, const struct qr_embed_request *request QR_UNUSED,
                                   qr_err *error QR_UNUSED)
{
    model->fault = NULL;
    qr_embed_end(&left_early->work);
    return QR_OK;
}

QR_TEST(what_is_paid_for_is_kept_though_nobody_waits_for_it_any_more) /* GEN-1, PAID-1 */
{
    struct model model;
    struct wish a, b;
    model_open(&model, 8);
    wish_begin(&a, &model, "one", "A");
    wish_begin(&b, &model, "two", "B");
    model.fault = leave_during_the_call;
    left_early = &b;
    wish_end(&a);
    QR_CHECK_TEXT("one,two", model.kept.data);
    model_close(&model);
}

/* ---- too much, and bad ones (M5) ---- */

static qr_rc take_two_at_most(struct model *model QR_UNUSED, const struct qr_embed_request *request, qr_err *error)
{
    return request->count > 2 ? qr_fail(error, QR_CODE_PAYLOAD_TOO_LARGE, "too many") : QR_OK;
}

QR_TEST(what_is_too_large_is_halved_and_the_next_calls_are_smaller) /* EMB-3 */
{
    struct model model;
    struct wish a, b;
    model_open(&model, 8);
    model.fault = take_two_at_most;
    wish_begin(&a, &model, "a b c d e f", NULL);
    wish_end(&a);
    QR_CHECK_TEXT("a,b,c,d,e,f|a,b,c|d,e|f,a|b,c", model.calls.data);
    qr_buf_clear(&model.calls);
    wish_begin(&b, &model, "g h i", NULL);
    wish_end(&b);
    QR_CHECK_TEXT("g,h|i", model.calls.data);
    model_close(&model);
}

static qr_rc take_short_ones(struct model *model QR_UNUSED, const struct qr_embed_request *request, qr_err *error)
{
    for (size_t i = 0; i < request->count; i++) {
        if (request->texts[i].len > 150) {
            return qr_fail(error, QR_CODE_PAYLOAD_TOO_LARGE, "too long");
        }
    }
    return QR_OK;
}

QR_TEST(a_text_that_is_too_long_is_shortened_at_a_word_and_the_others_stay_whole) /* EMB-3, EMPTY-2 */
{
    struct model model;
    char text[401];
    model_open(&model, 8);
    model.fault = take_short_ones;
    for (size_t i = 0; i < 400; i++) {
        text[i] = i % 10 == 9 ? ' ' : 'x';
    }
    text[400] = '\0';
    struct qr_embed_input inputs[] = {{.text = QR_STR("short")}, {.text = qr_str_of(text)}};
    struct qr_embed_work work = {.inputs = inputs, .count = 2};
    qr_embed_begin(model.batcher, &work);
    QR_CHECK_RC(QR_OK, qr_embed_wait(&work, &err));
    QR_CHECK_INT(QR_INPUT_DONE, inputs[0].state);
    QR_CHECK_INT(5, inputs[0].kept_bytes);
    QR_CHECK_INT(QR_INPUT_DONE, inputs[1].state);
    QR_CHECK(inputs[1].kept_bytes >= 64 && inputs[1].kept_bytes <= 150);
    QR_CHECK(text[inputs[1].kept_bytes] == ' ');
    qr_embed_end(&work);
    model_close(&model);
}

static qr_rc take_nothing(struct model *model QR_UNUSED, const struct qr_embed_request *request, qr_err *error)
{
    return memmem(request->texts[0].ptr, request->texts[0].len, "xx", 2) ||
                   (request->count > 1 && memmem(request->texts[1].ptr, request->texts[1].len, "xx", 2))
               ? qr_fail(error, QR_CODE_PAYLOAD_TOO_LARGE, "too long")
               : QR_OK;
}

QR_TEST(a_text_of_which_nothing_is_taken_fails_alone) /* EMPTY-2 */
{
    struct model model;
    char text[401];
    model_open(&model, 8);
    model.fault = take_nothing;
    memset(text, 'x', 400);
    text[400] = '\0';
    struct qr_embed_input inputs[] = {{.text = qr_str_of(text)}, {.text = QR_STR("short")}};
    struct qr_embed_work work = {.inputs = inputs, .count = 2};
    qr_embed_begin(model.batcher, &work);
    QR_CHECK_RC(QR_OK, qr_embed_wait(&work, &err));
    QR_CHECK_INT(QR_INPUT_FAILED, inputs[0].state);
    QR_CHECK_INT(QR_INPUT_DONE, inputs[1].state);
    QR_CHECK(model.call_count < 10);
    qr_embed_end(&work);
    model_close(&model);
}

QR_TEST(a_text_that_is_longer_than_the_model_takes_is_not_even_sent_whole) /* EMB-3 */
{
    struct model model;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    for (int i = 0; i < 60; i++) {
        qr_buf_add_text(&text, "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC"); /* one character for people: 11 bytes */
    }
    model_open(&model, 8);
    model.provider.limits.input_tokens_max = 50;
    struct qr_embed_input input = {.text = qr_buf_str(&text), .tokens = 165};
    struct qr_embed_work work = {.inputs = &input, .count = 1};
    qr_embed_begin(model.batcher, &work);
    QR_CHECK_RC(QR_OK, qr_embed_wait(&work, &err));
    QR_CHECK_INT(1, model.call_count);
    QR_CHECK(input.kept_bytes <= 200 && input.kept_bytes > 150 && input.kept_bytes % 11 == 0);
    qr_embed_end(&work);
    model_close(&model);
}

QR_TEST(a_bad_vector_is_asked_for_once_more_alone) /* EMB-4 */
{
    struct model model;
    struct wish a;
    model_open(&model, 8);
    model.bad = "two";
    model.bad_count = 1;
    wish_begin(&a, &model, "one two six", NULL);
    wish_end(&a);
    QR_CHECK_TEXT("one,two,six|two", model.calls.data);
    model_close(&model);
}

QR_TEST(a_text_that_never_gets_a_vector_fails_alone) /* EMPTY-2, EMB-4 */
{
    struct model model;
    struct wish a;
    model_open(&model, 8);
    model.bad = "two";
    wish_begin(&a, &model, "one two six", NULL);
    QR_CHECK_RC(QR_OK, qr_embed_wait(&a.work, &err));
    QR_CHECK_INT(QR_INPUT_DONE, a.inputs[0].state);
    QR_CHECK_INT(QR_INPUT_FAILED, a.inputs[1].state);
    QR_CHECK_INT(QR_INPUT_DONE, a.inputs[2].state);
    QR_CHECK_TEXT("one,two,six|two", model.calls.data);
    QR_CHECK_TEXT("one,six", model.kept.data);
    qr_embed_end(&a.work);
    model_close(&model);
}

static qr_rc refuse_two(struct model *model, const struct qr_embed_request *request, qr_err *error)
{
    for (size_t i = 0; i < request->count; i++) {
        if (!model->bad || qr_str_equal(request->texts[i], QR_STR("two"))) {
            return qr_fail(error, QR_CODE_BAD_REQUEST, "not this one");
        }
    }
    return QR_OK;
}

QR_TEST(a_text_that_is_refused_is_found_and_fails_alone) /* EMB-4 */
{
    struct model model;
    struct wish a;
    model_open(&model, 8);
    model.fault = refuse_two;
    model.bad = "no vector is bad";
    wish_begin(&a, &model, "two one six ten", "A");
    QR_CHECK_RC(QR_OK, qr_embed_wait(&a.work, &err));
    QR_CHECK_INT(QR_INPUT_FAILED, a.inputs[0].state);
    QR_CHECK_TEXT("not this one", a.owner.refusal.msg);
    for (size_t i = 1; i < 4; i++) {
        QR_CHECK_INT(QR_INPUT_DONE, a.inputs[i].state);
    }
    qr_embed_end(&a.work);
    model_close(&model);
}

QR_TEST(a_model_that_refuses_everything_is_not_the_texts_fault) /* EMB-4, AGAIN-1 */
{
    struct model model;
    struct wish a;
    model_open(&model, 8);
    wish_begin(&a, &model, "good", NULL); /* and it has answered before */
    wish_end(&a);
    model.fault = refuse_two; /* with no `bad`: all */
    wish_begin(&a, &model, "two one six ten", NULL);
    wish_fail(&a, QR_CODE_EMBEDDING_FAILED);
    QR_CHECK_HAS("not this one", err.msg);
    QR_CHECK(model.call_count < 12);
    model_close(&model);
}

/* ---- trouble (M6) ---- */

static qr_rc be_limited_twice(struct model *model, const struct qr_embed_request *request QR_UNUSED, qr_err *error)
{
    return model->call_count <= 2 ? qr_fail(error, QR_CODE_RATE_LIMITED, "slower") : QR_OK;
}

QR_TEST(a_short_wait_is_waited_for_here) /* AGAIN-2 */
{
    struct model model;
    struct wish a;
    model_open(&model, 8);
    model.fault = be_limited_twice;
    wish_begin(&a, &model, "one", NULL);
    wish_end(&a);
    QR_CHECK_INT(3, model.call_count);
    model_close(&model);
}

static qr_rc be_limited(struct model *model QR_UNUSED, const struct qr_embed_request *request QR_UNUSED, qr_err *error)
{
    return qr_fail(error, QR_CODE_RATE_LIMITED, "slower");
}

QR_TEST(a_long_wait_ends_the_work_so_that_it_can_be_put_off) /* AGAIN-2 */
{
    struct model model;
    struct wish a;
    model_open(&model, 8);
    model.fault = be_limited;
    model.wait_ms = 60000; /* it is asked all the same, and says why */
    wish_begin(&a, &model, "one", NULL);
    wish_fail(&a, QR_CODE_RATE_LIMITED);
    QR_CHECK_INT(1, model.call_count);
    QR_CHECK_INT(60000, qr_batcher_wait_ms(model.batcher));
    model.wait_ms = 0;
    wish_begin(&a, &model, "one", NULL);
    wish_fail(&a, QR_CODE_RATE_LIMITED);
    QR_CHECK_INT(6, model.call_count); /* not for ever */
    QR_CHECK_INT(1000, qr_batcher_wait_ms(model.batcher));
    model_close(&model);
}

static qr_rc fail_second(struct model *model, const struct qr_embed_request *request QR_UNUSED, qr_err *error)
{
    return model->call_count == 2 ? qr_fail(error, QR_CODE_UNAVAILABLE, "gone") : QR_OK;
}

QR_TEST(a_failed_call_ends_the_work_of_those_who_were_in_it_only) /* EMB-5 */
{
    struct model model;
    struct wish a, b, c;
    model_open(&model, 2);
    model.fault = fail_second;
    wish_begin(&a, &model, "one two", NULL);
    now_ms++;
    wish_begin(&b, &model, "six ten", NULL);
    now_ms++;
    wish_begin(&c, &model, "abc xyz", NULL);
    wish_fail(&b, QR_CODE_UNAVAILABLE);
    wish_end(&c);
    wish_end(&a);
    QR_CHECK_TEXT("one,two|six,ten|abc,xyz", model.calls.data);
    model_close(&model);
}

QR_TEST(a_dimension_that_changed_is_an_error_and_nothing_is_kept) /* EMB-6 */
{
    struct model model;
    struct wish a;
    model_open(&model, 8);
    wish_begin(&a, &model, "one", NULL);
    wish_end(&a);
    model.dimension = 3;
    wish_begin(&a, &model, "two", NULL);
    wish_fail(&a, QR_CODE_DIMENSION_MISMATCH);
    QR_CHECK_TEXT("one", model.kept.data);
    model_close(&model);
    model_open(&model, 8);
    model.known_dimension = 3; /* of an earlier process */
    wish_begin(&a, &model, "one", NULL);
    wish_fail(&a, QR_CODE_DIMENSION_MISMATCH);
    model.known_dimension = 0;
    qr_batcher_forget_dimension(model.batcher);
    model.provider.dimensions = 3; /* as the settings have it */
    wish_begin(&a, &model, "one", NULL);
    wish_fail(&a, QR_CODE_DIMENSION_MISMATCH);
    model_close(&model);
}

QR_TEST(a_probe_says_what_the_dimension_is_now_and_keeps_nothing) /* EMB-6, GEN-1 */
{
    struct model model;
    static const char owner[] = "A";
    int found = 0;
    model_open(&model, 8);
    model.known_dimension = 5;
    QR_CHECK_RC(QR_OK, qr_batcher_probe(model.batcher, owner, &found, &err));
    QR_CHECK_INT(DIMENSION, found);
    QR_CHECK_INT(0, model.kept.len);
    model.unwanted = owner;
    QR_CHECK_CODE(QR_CODE_STALE, qr_batcher_probe(model.batcher, owner, &found, &err));
    QR_CHECK_INT(1, model.call_count);
    model.unwanted = NULL;
    model.provider.dimensions = 3;
    QR_CHECK_CODE(QR_CODE_DIMENSION_MISMATCH, qr_batcher_probe(model.batcher, owner, &found, &err));
    model_close(&model);
}

static bool yes(void *arg QR_UNUSED)
{
    return true;
}

QR_TEST(who_is_cancelled_or_out_of_time_stops_waiting_and_its_texts_are_not_asked_for) /* EMB-2, GEN-1 */
{
    struct model model;
    struct qr_embed_input input = {.text = QR_STR("query")};
    model_open(&model, 8);
    struct qr_embed_work work = {.inputs = &input, .count = 1, .is_cancelled = yes};
    qr_embed_begin(model.batcher, &work);
    QR_CHECK_CODE(QR_CODE_CANCELLED, qr_embed_wait(&work, &err));
    QR_CHECK_INT(QR_INPUT_STOPPED, input.state);
    qr_embed_end(&work);
    work = (struct qr_embed_work){.inputs = &input, .count = 1, .is_query = true, .deadline_mono_ms = now_ms};
    qr_embed_begin(model.batcher, &work);
    QR_CHECK_CODE(QR_CODE_TIMEOUT, qr_embed_wait(&work, &err));
    qr_embed_end(&work);
    QR_CHECK_INT(0, model.call_count);
    model_close(&model);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 30, CALL_THREADS = 3 };

static struct {
    struct qr_mutex lock;
    int under_way, most, calls;
} seen;

static qr_rc embed_in_threads(struct qr_provider *provider QR_UNUSED, const struct qr_embed_request *request,
                              struct qr_embed_answer *answer, qr_err *error)
{
    bool is_limited;
    {
        QR_HOLD(&seen.lock);
        seen.under_way += !request->is_query;
        seen.most = QR_MAX(seen.most, seen.under_way);
        is_limited = ++seen.calls % 7 == 0;
    }
    sched_yield();
    qr_rc rc = is_limited ? qr_fail(error, QR_CODE_RATE_LIMITED, "slower") : QR_OK;
    rc = rc == QR_OK ? qr_embed_answer_begin(answer, request->count, DIMENSION, error) : rc;
    for (size_t i = 0; rc == QR_OK && i < request->count; i++) {
        vector_of(request->texts[i], answer->vectors + i * DIMENSION);
    }
    QR_HOLD(&seen.lock);
    seen.under_way -= !request->is_query;
    return rc;
}

static void *want_vectors(void *arg)
{
    struct qr_batcher *batcher = arg;
    const unsigned self = (unsigned)(uintptr_t)pthread_self();
    for (unsigned round = 0; round < ROUNDS; round++) {
        char texts[20][40];
        struct wish wish = {.owner = {.arg = "X"}};
        wish.work.inputs = wish.inputs;
        wish.work.is_query = round % 5 == 4;
        wish.work.count = wish.work.is_query ? 1 : 20;
        for (unsigned i = 0; i < wish.work.count; i++) {
            snprintf(texts[i], sizeof texts[i], "%u of %u in %u", i % 15, i % 2 ? self : 0,
                     round); /* some are shared */
            wish.inputs[i] = (struct qr_embed_input){.text = qr_str_of(texts[i]), .owner = &wish.owner};
        }
        qr_embed_begin(batcher, &wish.work);
        if (round % 10 != 7) { /* else it leaves at once */
            qr_err error;
            const qr_rc rc = qr_embed_wait(&wish.work, &error);
            QR_CHECK(rc == QR_OK || error.code == QR_CODE_RATE_LIMITED);
            if (rc == QR_OK) {
                check_done(&wish);
            }
        }
        qr_embed_end(&wish.work);
    }
    return NULL;
}

QR_TEST(many_threads_get_their_vectors_by_calls_of_a_few) /* EMB-1, EMB-2 */
{
    struct qr_provider provider = {.fingerprint = "model",
                                   .limits = {.inputs_max = 8},
                                   .call_threads = CALL_THREADS,
                                   .linger_ms = 1,
                                   .embed = embed_in_threads};
    const struct qr_batcher_options options = {.provider = &provider, .clock = qr_clock_system()};
    struct qr_batcher *batcher;
    pthread_t threads[THREADS];
    qr_mutex_init(&seen.lock);
    QR_CHECK_RC(QR_OK, qr_batcher_create(&batcher, &options, &err));
    for (int i = 0; i < THREADS; i++) {
        QR_CHECK_INT(0, pthread_create(&threads[i], NULL, want_vectors, batcher));
    }
    for (int i = 0; i < THREADS; i++) {
        QR_CHECK_INT(0, pthread_join(threads[i], NULL));
    }
    qr_batcher_free(batcher);
    QR_CHECK(seen.most <= CALL_THREADS);
    qr_mutex_done(&seen.lock);
}

/* ---- memory ---- */

static void use_under_fault(void *arg QR_UNUSED)
{
    struct qr_provider provider = {
        .fingerprint = "model", .limits = {.inputs_max = 2}, .embed = embed_in_threads, .linger_ms = 0};
    const struct qr_batcher_options options = {.provider = &provider, .clock = &test_clock};
    struct qr_batcher *batcher = NULL;
    struct qr_embed_input inputs[] = {{.text = QR_STR("one")}, {.text = QR_STR("two")}, {.text = QR_STR("one")}};
    struct qr_embed_work work = {.inputs = inputs, .count = 3};
    seen.calls = 0;
    qr_rc rc = qr_batcher_create(&batcher, &options, &err);
    if (rc == QR_OK) {
        qr_embed_begin(batcher, &work);
        rc = qr_embed_wait(&work, &err);
        qr_embed_end(&work);
    }
    qr_fault_disarm();
    QR_CHECK(rc == QR_OK || (qr_fault_fired() && rc == QR_NOMEM));
    qr_batcher_free(batcher);
}

QR_TEST(a_batcher_survives_every_failed_allocation)
{
    qr_mutex_init(&seen.lock);
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, use_under_fault, NULL);
    qr_mutex_done(&seen.lock);
}
