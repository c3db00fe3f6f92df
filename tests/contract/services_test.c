/* Converters and vision models that are servers, with the whole workflow around them, over every database. */
#include "base/mem.h"
#include "remote/endpoint.h"
#include "support/model_server.h"
#include "support/workshop.h"

#include <stdlib.h>

#define KEY "sk-test-0123456789abcdef"

struct fixture {
    struct qr_model_server *server;
    struct qr_endpoints *all;
    struct qr_shop shop;
};

enum { MINUTE_MS = 60 * 1000, POLL_MS = 5000 };

/* The server's address stands between the parts of the settings, behind the last of which there is a NULL. */
static void set_up(struct fixture *fixture, struct qr_test *t, const char *const *settings, const char *path,
                   struct qr_model_options options)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_err err;
    setenv("no_proxy", "127.0.0.1", 1);
    setenv("QUIRE_TEST_KEY", KEY, 1);
    options.key = KEY;
    fixture->server = qr_model_server_start(&options);
    for (size_t i = 0; settings[i]; i++) {
        qr_buf_printf(&text, "%s%s", i ? qr_model_server_url(fixture->server, path) : "", settings[i]);
    }
    qr_shop_open(&fixture->shop, t, text.data);
    QR_CHECK_RC(QR_OK,
                qr_endpoints_open(&fixture->all, fixture->shop.desk.ids.clock, qr_rand_system(), NULL, NULL, &err));
    fixture->shop.context.endpoints = fixture->all;
}

static void tear_down(struct fixture *fixture)
{
    qr_shop_close(&fixture->shop);
    qr_endpoints_close(fixture->all);
    qr_model_server_stop(fixture->server);
}

static void set_fault(struct fixture *fixture, enum qr_model_fault fault, int64_t number)
{
    qr_model_server_set_steps(fixture->server, &(struct qr_model_step){.from = 1, .fault = fault, .number = number}, 1);
}

static int64_t requests_of(struct fixture *fixture)
{
    struct qr_model_stats stats;
    qr_model_server_stats(fixture->server, &stats);
    return stats.requests;
}

static void check_last_request(struct fixture *fixture, const char *has)
{
    char *request = qr_model_server_last_request(fixture->server);
    QR_CHECK_HAS(has, request);
    qr_free(request);
}

/* Of the open jobs of the type: when the first is due, from now. */
static int64_t due_in_ms(struct fixture *fixture, const char *type)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT min(run_at) FROM job WHERE type = '%s' AND finished_at = 0", type);
    return qr_desk_i64(&fixture->shop.desk, sql) - qr_clock_wall_ms(fixture->shop.desk.ids.clock);
}

static int64_t attempts_of(struct fixture *fixture, const char *type)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT coalesce(max(attempts), 0) FROM job WHERE type = '%s'", type);
    return qr_desk_i64(&fixture->shop.desk, sql);
}

/* ---- docling ---- */

static const char *const DOCLING[] = {"{\"file_processor\":{\"kind\":\"docling\",\"url\":\"",
                                      "\",\"api_key_env\":\"QUIRE_TEST_KEY\",\"extensions\":[\"pdf\"],"
                                      "\"options\":{\"do_ocr\":false,\"ocr_lang\":[\"en\",\"de\"]}}}",
                                      NULL};

static qr_uuid give_file(struct fixture *fixture)
{
    qr_shop_write(&fixture->shop, "a b.pdf", "walrus on the ice");
    const qr_uuid file = qr_shop_add_file(&fixture->shop, "a b.pdf", "");
    qr_shop_work(&fixture->shop);
    return file;
}

static struct qr_item item_of(struct fixture *fixture, qr_uuid id)
{
    return qr_desk_item(&fixture->shop.desk, id);
}

QR_DB_TEST(docling_converts_a_file_while_it_is_asked_now_and_then) /* TYPE-5 */
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){.task_polls = 2});
    const qr_uuid file = give_file(&fixture);
    QR_CHECK_TEXT("task-0", item_of(&fixture, file).ticket);
    check_last_request(&fixture, "POST /v1/convert/file/async ");
    check_last_request(&fixture, "X-Api-Key: " KEY);
    check_last_request(&fixture, "filename=\"a b.pdf\"");
    check_last_request(&fixture, "name=\"to_formats\"\r\n\r\nmd\r\n");
    check_last_request(&fixture, "name=\"image_export_mode\"\r\n\r\nplaceholder\r\n");
    check_last_request(&fixture, "name=\"do_ocr\"\r\n\r\nfalse\r\n");
    check_last_request(&fixture, "name=\"ocr_lang\"\r\n\r\nde\r\n");
    QR_CHECK_INT(POLL_MS, due_in_ms(&fixture, "check-file-processing"));
    qr_shop_work_after(&fixture.shop, POLL_MS);
    QR_CHECK_INT(QR_ITEM_PROCESSING, item_of(&fixture, file).status);
    check_last_request(&fixture, "GET /v1/status/poll/task-0 ");
    qr_shop_work_after(&fixture.shop, POLL_MS);
    QR_CHECK_INT(QR_ITEM_PROCESSING, item_of(&fixture, file).status);
    qr_shop_work_after(&fixture.shop, POLL_MS);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, file).status);
    QR_CHECK_TEXT("", item_of(&fixture, file).ticket);
    QR_CHECK_INT(1, qr_shop_hits(&fixture.shop, "walrus"));
    tear_down(&fixture);
}

QR_DB_TEST(a_file_that_docling_cannot_convert_fails_and_says_why)
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_TASK_FAILED, 0);
    const qr_uuid file = give_file(&fixture);
    qr_shop_work_after(&fixture.shop, POLL_MS);
    QR_CHECK_TEXT("conversion_failed", item_of(&fixture, file).error_code);
    QR_CHECK_HAS("docling could not convert it", item_of(&fixture, file).error_message);
    tear_down(&fixture);
}

/* It does not say since when it runs: that is counted from the first look that saw it, and a restart forgets nothing. */
QR_DB_TEST(docling_has_thirty_minutes_of_its_running_time) /* TYPE-5 */
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){.task_polls = 100});
    const qr_uuid file = give_file(&fixture);
    qr_shop_work_after(&fixture.shop, 10 * 60 * MINUTE_MS); /* it waits for us as long as it likes */
    QR_CHECK_TEXT("task-0\n1 1036000000", item_of(&fixture, file).ticket);
    qr_endpoints_close(fixture.all); /* another process takes over */
    qr_err err;
    QR_CHECK_RC(QR_OK,
                qr_endpoints_open(&fixture.all, fixture.shop.desk.ids.clock, qr_rand_system(), NULL, NULL, &err));
    fixture.shop.context.endpoints = fixture.all;
    qr_shop_work_after(&fixture.shop, 29 * MINUTE_MS);
    QR_CHECK_INT(QR_ITEM_PROCESSING, item_of(&fixture, file).status);
    qr_test_clock_jump(-10 * MINUTE_MS); /* a clock that is set back costs time, not the file */
    qr_shop_work_after(&fixture.shop, 10 * MINUTE_MS + 30 * 1000);
    QR_CHECK_INT(QR_ITEM_PROCESSING, item_of(&fixture, file).status);
    qr_shop_work_after(&fixture.shop, MINUTE_MS);
    QR_CHECK_TEXT("conversion_timeout", item_of(&fixture, file).error_code);
    tear_down(&fixture);
}

QR_DB_TEST(a_task_that_docling_lost_is_begun_again_but_not_for_ever) /* TYPE-5 */
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_TASK_LOST, 0);
    const qr_uuid file = give_file(&fixture);
    qr_shop_work_after(&fixture.shop, POLL_MS);
    QR_CHECK_TEXT("task-1\n2 0", item_of(&fixture, file).ticket);
    for (int i = 0; i < 18; i++) {
        qr_shop_work_after(&fixture.shop, POLL_MS);
    }
    QR_CHECK_TEXT("task-19\n20 0", item_of(&fixture, file).ticket);
    qr_shop_work_after(&fixture.shop, POLL_MS);
    QR_CHECK_TEXT("conversion_failed", item_of(&fixture, file).error_code);
    QR_CHECK_HAS("lost it 20 times", item_of(&fixture, file).error_message);
    tear_down(&fixture);
}

static void check_put_off(struct qr_test *t, enum qr_model_fault fault, int64_t number, int64_t wait_ms_min)
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){0});
    set_fault(&fixture, fault, number);
    const qr_uuid file = give_file(&fixture);
    QR_CHECK_INT(QR_ITEM_PROCESSING, item_of(&fixture, file).status);
    QR_CHECK_INT(0, attempts_of(&fixture, "process-document"));
    QR_CHECK(due_in_ms(&fixture, "process-document") >= wait_ms_min);
    QR_CHECK_INT(1, requests_of(&fixture));
    qr_shop_work_after(&fixture.shop, wait_ms_min / 2);
    QR_CHECK_INT(1, requests_of(&fixture));
    set_fault(&fixture, QR_FAULT_NONE, 0);
    qr_shop_work_after(&fixture.shop, 10 * MINUTE_MS);
    QR_CHECK_TEXT("task-0", item_of(&fixture, file).ticket);
    set_fault(&fixture, fault, number); /* while it is asked, too */
    qr_shop_work_after(&fixture.shop, POLL_MS);
    QR_CHECK_INT(QR_ITEM_PROCESSING, item_of(&fixture, file).status);
    QR_CHECK_INT(0, attempts_of(&fixture, "check-file-processing"));
    QR_CHECK(due_in_ms(&fixture, "check-file-processing") >= wait_ms_min);
    set_fault(&fixture, QR_FAULT_NONE, 0);
    qr_shop_work_after(&fixture.shop, 20 * MINUTE_MS);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, file).status);
    tear_down(&fixture);
}

QR_DB_TEST(a_docling_that_is_busy_costs_no_attempt) /* AGAIN-2 */
{
    check_put_off(t, QR_FAULT_429_RETRY_AFTER, 90, 90 * 1000);
}

QR_DB_TEST(a_docling_that_does_not_know_the_key_costs_no_attempt) /* AGAIN-2 */
{
    check_put_off(t, QR_FAULT_401, 0, 30 * 1000);
}

QR_DB_TEST(a_file_that_docling_refuses_has_failed)
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_422, 0);
    const qr_uuid file = give_file(&fixture);
    QR_CHECK_TEXT("conversion_failed", item_of(&fixture, file).error_code);
    QR_CHECK_HAS("answers 422", item_of(&fixture, file).error_message);
    tear_down(&fixture);
}

/* Tried again, as whatever may be better the next time. */
QR_DB_TEST(a_docling_that_answers_with_nonsense_is_asked_again)
{
    static const enum qr_model_fault faults[] = {QR_FAULT_500, QR_FAULT_BAD_JSON, QR_FAULT_TRUNCATED,
                                                 QR_FAULT_502_HTML};
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){0});
    const qr_uuid file = give_file(&fixture);
    for (size_t i = 0; i < QR_COUNT(faults); i++) {
        qr_test_set_context("fault %d", (int)faults[i]);
        set_fault(&fixture, faults[i], 0);
        qr_shop_work_after(&fixture.shop, 30 * MINUTE_MS);
        QR_CHECK_INT((int64_t)i + 1, attempts_of(&fixture, "check-file-processing"));
        QR_CHECK_TEXT("task-0", item_of(&fixture, file).ticket);
    }
    set_fault(&fixture, QR_FAULT_NONE, 0);
    qr_shop_work_after(&fixture.shop, 30 * MINUTE_MS);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, file).status);
    tear_down(&fixture);
}

/* A result counts for the generation that asked for it: an update throws it away, though the task has ended well. */
QR_DB_TEST(a_result_of_docling_for_an_old_generation_changes_nothing) /* TYPE-5, GEN-1 */
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){.task_polls = 1});
    const qr_uuid file = give_file(&fixture);
    qr_shop_write(&fixture.shop, "a b.pdf", "penguins in the snow");
    qr_shop_refresh(&fixture.shop, file);
    qr_shop_work(&fixture.shop);
    QR_CHECK_INT(2, item_of(&fixture, file).generation);
    QR_CHECK_TEXT("task-1", item_of(&fixture, file).ticket);
    for (int i = 0; i < 3; i++) {
        qr_shop_work_after(&fixture.shop, POLL_MS);
    }
    QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, file).status);
    QR_CHECK_INT(0, qr_shop_hits(&fixture.shop, "walrus"));
    QR_CHECK_INT(1, qr_shop_hits(&fixture.shop, "penguins"));
    tear_down(&fixture);
}

QR_DB_TEST(a_result_of_docling_for_another_item_changes_nothing) /* TYPE-5 */
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING, "", (struct qr_model_options){.task_polls = 1});
    const qr_uuid first = give_file(&fixture);
    qr_shop_write(&fixture.shop, "c.pdf", "penguins in the snow");
    const qr_uuid second = qr_shop_add_file(&fixture.shop, "c.pdf", "");
    qr_shop_work(&fixture.shop);
    QR_CHECK_TEXT("task-1", item_of(&fixture, second).ticket);
    qr_shop_delete(&fixture.shop, first); /* its task goes on there */
    for (int i = 0; i < 3; i++) {
        qr_shop_work_after(&fixture.shop, POLL_MS);
    }
    QR_CHECK(!qr_desk_has_item(&fixture.shop.desk, first));
    QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, second).status);
    QR_CHECK_INT(0, qr_shop_hits(&fixture.shop, "walrus"));
    QR_CHECK_INT(1, qr_shop_hits(&fixture.shop, "penguins"));
    tear_down(&fixture);
}

/* ---- vision ---- */

static const char *const VISION[] = {
    "{\"assets\":{\"analysis\":\"vision\",\"vision\":{\"url\":\"",
    "\",\"model\":\"m\",\"api_key_env\":\"QUIRE_TEST_KEY\",\"limits\":{\"picture_bytes\":1000}}}}", NULL};

/* 12 bytes that begin like a PNG */
#define PICTURE "![plan](data:image/png;base64,iVBORw0KGgpQTEFO)"

static qr_uuid add_report(struct fixture *fixture, const char *text)
{
    const qr_uuid note = qr_desk_add_note(&fixture->shop.desk, "report", text);
    qr_shop_work(&fixture->shop);
    return note;
}

static int64_t assets_of_state(struct fixture *fixture, int state)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(DISTINCT id) FROM asset WHERE analysis_status = %d", state);
    return qr_desk_i64(&fixture->shop.desk, sql);
}

enum { ANALYSIS_COMPLETED = 3, ANALYSIS_FAILED = 4 };

QR_DB_TEST(what_a_vision_model_sees_becomes_a_part_of_the_document) /* TYPE-7 */
{
    struct fixture fixture;
    set_up(&fixture, t, VISION, "/v1", (struct qr_model_options){0});
    const qr_uuid note = add_report(&fixture, "# Report\n\n" PICTURE "\n\nzebras\n\n" PICTURE "\n");
    qr_shop_work(&fixture.shop);
    check_last_request(&fixture, "POST /v1/chat/completions ");
    check_last_request(&fixture, "Authorization: Bearer " KEY);
    check_last_request(&fixture, "data:image/png;base64,iVBORw0KGgpQTEFO");
    QR_CHECK_INT(1, requests_of(&fixture)); /* the same picture twice is paid once */
    QR_CHECK_INT(1, assets_of_state(&fixture, ANALYSIS_COMPLETED));
    QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, note).status);
    qr_shop_work_after(&fixture.shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(1, qr_shop_hits(&fixture.shop, "harbour"));
    QR_CHECK_INT(1, qr_shop_hits(&fixture.shop, "zebras"));
    QR_CHECK_INT(0, qr_shop_hits(&fixture.shop, "iVBORw0KGgpQTEFO")); /* nobody searches in that */
    tear_down(&fixture);
}

QR_DB_TEST(a_vision_model_that_takes_nothing_now_costs_no_attempt) /* AGAIN-2, TYPE-7 */
{
    static const struct {
        enum qr_model_fault fault;
        int64_t number, wait_ms_min;
    } cases[] = {{QR_FAULT_429_RETRY_AFTER, 90, 90 * 1000}, {QR_FAULT_403, 0, 30 * 1000}};
    struct fixture fixture;
    set_up(&fixture, t, VISION, "/v1", (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_429_RETRY_AFTER, 90);
    const qr_uuid note = add_report(&fixture, "# Report\n\n" PICTURE "\n\nzebras\n");
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("case %zu", i);
        set_fault(&fixture, cases[i].fault, cases[i].number);
        qr_shop_work_after(&fixture.shop, 10 * MINUTE_MS);
        QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, note).status);
        QR_CHECK_INT(1, qr_shop_hits(&fixture.shop, "zebras"));
        QR_CHECK_INT(0, attempts_of(&fixture, "analyze-asset"));
        QR_CHECK(due_in_ms(&fixture, "analyze-asset") >= cases[i].wait_ms_min);
    }
    set_fault(&fixture, QR_FAULT_NONE, 0);
    qr_shop_work_after(&fixture.shop, 10 * MINUTE_MS);
    qr_shop_work(&fixture.shop);
    QR_CHECK_INT(1, assets_of_state(&fixture, ANALYSIS_COMPLETED));
    QR_CHECK_INT(1, qr_shop_hits(&fixture.shop, "harbour"));
    tear_down(&fixture);
}

QR_DB_TEST(a_picture_that_cannot_be_looked_at_fails_and_its_document_does_not) /* TYPE-7 */
{
    static const struct {
        enum qr_model_fault fault;
        const char *code;
    } cases[] = {{QR_FAULT_400, "bad_request"}, {QR_FAULT_413, "too_large"}};
    struct fixture fixture;
    set_up(&fixture, t, VISION, "/v1", (struct qr_model_options){0});
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        char sql[200];
        qr_test_set_context("%s", cases[i].code);
        set_fault(&fixture, cases[i].fault, 0);
        const qr_uuid note = add_report(&fixture, "# Report\n\n" PICTURE "\n\nzebras\n");
        qr_shop_work(&fixture.shop);
        QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, note).status);
        QR_CHECK_INT(1, item_of(&fixture, note).generation);
        QR_CHECK_INT((int64_t)i + 1, assets_of_state(&fixture, ANALYSIS_FAILED));
        snprintf(sql, sizeof sql, "SELECT count(*) FROM asset WHERE code = '%s'", cases[i].code);
        QR_CHECK_INT(1, qr_desk_i64(&fixture.shop.desk, sql));
    }
    tear_down(&fixture);
}

QR_DB_TEST(pictures_that_are_too_large_are_not_sent)
{
    struct fixture fixture;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    set_up(&fixture, t, VISION, "/v1", (struct qr_model_options){0});
    qr_buf_add_text(&text, "![plan](data:image/png;base64,iVBORw0KGgpQ");
    for (int i = 0; i < 300; i++) {
        qr_buf_add_text(&text, "AAAAAAAA");
    }
    qr_buf_add_text(&text, ")\n\n![bitmap](data:image/bmp;base64,Qk0AAA==)\n\nzebras\n");
    const qr_uuid note = add_report(&fixture, text.data);
    qr_shop_work(&fixture.shop);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, note).status);
    QR_CHECK_INT(0, requests_of(&fixture));
    QR_CHECK_INT(1, qr_desk_i64(&fixture.shop.desk, "SELECT count(*) FROM asset"));
    QR_CHECK_INT(1, qr_desk_i64(&fixture.shop.desk, "SELECT count(*) FROM asset WHERE code = 'too_large'"));
    tear_down(&fixture);
}

QR_DB_TEST(a_vision_model_that_answers_with_nonsense_is_asked_again)
{
    struct fixture fixture;
    set_up(&fixture, t, VISION, "/v1", (struct qr_model_options){0});
    set_fault(&fixture, QR_FAULT_BAD_JSON, 0);
    const qr_uuid note = add_report(&fixture, "# Report\n\n" PICTURE "\n");
    QR_CHECK_INT(1, attempts_of(&fixture, "analyze-asset"));
    set_fault(&fixture, QR_FAULT_NONE, 0);
    qr_shop_work_after(&fixture.shop, 10 * MINUTE_MS);
    qr_shop_work(&fixture.shop);
    QR_CHECK_INT(2, item_of(&fixture, note).live_generation);
    tear_down(&fixture);
}

/* ---- both ---- */

static const char *const DOCLING_AND_VISION[] = {"{\"file_processor\":{\"kind\":\"docling\",\"url\":\"",
                                                 "\",\"api_key_env\":\"QUIRE_TEST_KEY\",\"extensions\":[\"pdf\"]},"
                                                 "\"assets\":{\"analysis\":\"vision\",\"vision\":{\"url\":\"",
                                                 "\",\"model\":\"m\",\"api_key_env\":\"QUIRE_TEST_KEY\"}}}", NULL};

QR_DB_TEST(pictures_of_a_converted_file_are_looked_at) /* TYPE-5, TYPE-7 */
{
    struct fixture fixture;
    set_up(&fixture, t, DOCLING_AND_VISION, "", (struct qr_model_options){0});
    qr_shop_write(&fixture.shop, "a.pdf", "walrus\n\n" PICTURE "\n");
    const qr_uuid file = qr_shop_add_file(&fixture.shop, "a.pdf", "");
    qr_shop_work(&fixture.shop);
    check_last_request(&fixture, "name=\"image_export_mode\"\r\n\r\nembedded\r\n");
    qr_shop_work_after(&fixture.shop, POLL_MS); /* it becomes text, and the picture is looked at */
    qr_shop_work_after(&fixture.shop, POLL_MS); /* and is a part of it: converted once more */
    qr_shop_work_after(&fixture.shop, POLL_MS);
    qr_shop_work_after(&fixture.shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(QR_ITEM_COMPLETED, item_of(&fixture, file).status);
    QR_CHECK_INT(2, item_of(&fixture, file).live_generation);
    QR_CHECK_INT(1, assets_of_state(&fixture, ANALYSIS_COMPLETED));
    QR_CHECK_INT(1, qr_shop_hits(&fixture.shop, "walrus"));
    QR_CHECK(qr_shop_hits(&fixture.shop, "harbour") >= 1);
    tear_down(&fixture);
}
