/* What docling-serve answers. */
#include "convert/docling_wire.h"
#include "support/test.h"

static qr_err err;

QR_TEST(a_task_is_read_in_each_of_its_states)
{
    static const struct {
        const char *status;
        enum qr_docling_state state;
    } cases[] = {{"\"pending\"", QR_DOCLING_WAITS},  {"\"started\"", QR_DOCLING_RUNS},
                 {"\"success\"", QR_DOCLING_ENDED},  {"\"partial_success\"", QR_DOCLING_ENDED},
                 {"\"skipped\"", QR_DOCLING_ENDED},  {"\"failure\"", QR_DOCLING_FAILED},
                 {"\"revoked\"", QR_DOCLING_FAILED}, {"\"something new\"", QR_DOCLING_RUNS},
                 {"null", QR_DOCLING_WAITS}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct qr_docling_task task;
        char answer[300];
        snprintf(answer, sizeof answer,
                 "{\"task_id\":\"3fa85f64-5717-4562-b3fc-2c963f66afa6\",\"task_type\":\"convert\",\"task_status\":%s,"
                 "\"task_position\":null,\"task_meta\":null,\"error_message\":null}",
                 cases[i].status);
        qr_test_set_context("%s", answer);
        QR_CHECK_RC(QR_OK, qr_docling_read_task(qr_str_of(answer), &task, &err));
        QR_CHECK_TEXT("3fa85f64-5717-4562-b3fc-2c963f66afa6", task.id);
        QR_CHECK_INT(cases[i].state, task.state);
        QR_CHECK_TEXT("", task.reason);
    }
}

QR_TEST(why_a_task_failed_is_made_fit_to_show)
{
    struct qr_docling_task task;
    const char *answer = "{\"task_id\":\"a\",\"task_status\":\"failure\",\"error_message\":\"bad\\n\\u001bpage\"}";
    QR_CHECK_RC(QR_OK, qr_docling_read_task(qr_str_of(answer), &task, &err));
    QR_CHECK_TEXT("bad  page", task.reason);
}

/* Ids come from outside and become a part of an address. */
QR_TEST(a_task_whose_id_could_be_a_path_is_refused)
{
    static const char *const answers[] = {"",
                                          "[]",
                                          "{}",
                                          "{\"task_id\":5}",
                                          "{\"task_id\":\"\"}",
                                          "{\"task_id\":\"../health\"}",
                                          "{\"task_id\":\"..\"}",
                                          "{\"task_id\":\"a/b\"}",
                                          "{\"task_id\":\"a?b\"}",
                                          "{\"task_id\":\"a\\nb\"}",
                                          "{\"task_id\":\"a"};
    for (size_t i = 0; i < QR_COUNT(answers); i++) {
        struct qr_docling_task task;
        qr_test_set_context("%s", answers[i]);
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_docling_read_task(qr_str_of(answers[i]), &task, &err));
    }
}

QR_TEST(a_result_is_its_markdown)
{
    static const struct {
        const char *answer, *markdown;
    } cases[] = {
        {"{\"document\":{\"filename\":\"a.pdf\",\"md_content\":\"# "
         "A\\n\",\"json_content\":null},\"status\":\"success\","
         "\"errors\":[],\"processing_time\":1.5,\"timings\":{}}",
         "# A\n"},
        {"{\"document\":{\"md_content\":\"half\"},\"status\":\"partial_success\",\"errors\":[{\"error_message\":\"x\"}]"
         "}",
         "half"},
        {"{\"document\":{\"md_content\":\"\"},\"status\":\"success\"}", ""},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
        qr_test_set_context("%s", cases[i].answer);
        QR_CHECK_RC(QR_OK, qr_docling_read_result(qr_str_of(cases[i].answer), &out, &err));
        QR_CHECK_STR(cases[i].markdown, qr_buf_str(&out));
    }
}

QR_TEST(a_result_that_is_a_failure_says_why)
{
    static const struct {
        const char *answer, *message;
    } cases[] = {
        {"{\"document\":{\"md_content\":null},\"status\":\"failure\",\"errors\":[{\"component_type\":\"x\","
         "\"module_name\":\"y\",\"error_message\":\"encrypted\"}]}",
         "docling could not convert it (failure): encrypted"},
        {"{\"document\":{\"md_content\":\"\"},\"status\":\"skipped\",\"errors\":[\"too many pages\"]}",
         "docling could not convert it (skipped): too many pages"},
        {"{\"document\":{},\"status\":\"success\"}", "docling could not convert it (success)"},
        {"{\"status\":\"failure\"}", "docling could not convert it (failure)"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
        qr_test_set_context("%s", cases[i].answer);
        QR_CHECK_CODE(QR_CODE_CONVERSION_FAILED, qr_docling_read_result(qr_str_of(cases[i].answer), &out, &err));
        QR_CHECK_TEXT(cases[i].message, err.msg);
        QR_CHECK_INT(0, out.len);
    }
}

QR_TEST(what_is_no_result_is_not_taken_for_one)
{
    static const char *const answers[] = {"",
                                          "PK\x03\x04",
                                          "{}",
                                          "[]",
                                          "{\"document\":{\"md_content\":\"a\"}}",
                                          "{\"document\":{\"md_content\":\"a\"},\"status\":5}",
                                          "{\"document\":{\"md_content\":\"a\"},\"status\":\"succ"};
    for (size_t i = 0; i < QR_COUNT(answers); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
        qr_test_set_context("%s", answers[i]);
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_docling_read_result(qr_str_of(answers[i]), &out, &err));
    }
}
