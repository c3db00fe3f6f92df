/* The converter that is a docling-serve: what it is asked, and what is not believed. */
#include "convert/processor.h"
#include "remote/endpoint.h"
#include "support/model_server.h"
#include "support/test.h"

#include <stdlib.h>

struct fixture {
    struct qr_model_server *server;
    struct qr_endpoints *all;
    struct qr_docling_settings settings;
    struct qr_processor *processor;
    struct qr_arena arena;
    bool is_cancelled;
};

static bool is_cancelled(void *arg)
{
    return ((struct fixture *)arg)->is_cancelled;
}

static void set_up(struct fixture *fixture)
{
    qr_err err;
    setenv("no_proxy", "127.0.0.1", 1);
    *fixture = (struct fixture){.server = qr_model_server_start(&(struct qr_model_options){.task_polls = 1})};
    fixture->settings.service = (struct qr_service_settings){
        .url = qr_model_server_url(fixture->server, ""), .api_key_env = "", .api_key_file = ""};
    qr_arena_init(&fixture->arena, 0);
    QR_CHECK_RC(QR_OK, qr_endpoints_open(&fixture->all, qr_clock_system(), qr_rand_system(), NULL, NULL, &err));
    const struct qr_docling_options options = {
        .settings = &fixture->settings, .endpoints = fixture->all, .is_cancelled = is_cancelled, .cancel_arg = fixture};
    QR_CHECK_RC(QR_OK, qr_processor_docling(&fixture->processor, &options, &err));
}

static void tear_down(struct fixture *fixture)
{
    qr_processor_free(fixture->processor);
    qr_endpoints_close(fixture->all);
    qr_model_server_stop(fixture->server);
    qr_arena_done(&fixture->arena);
}

static qr_rc submit(struct fixture *fixture, struct qr_test *t, const char **ret_ticket, qr_err *err)
{
    const char *path = qr_test_path(t, "a.pdf");
    FILE *file = fopen(path, "w");
    QR_CHECK(file && fputs("walrus", file) >= 0 && fclose(file) == 0);
    return fixture->processor->submit(fixture->processor, path, "a.pdf", &fixture->arena, ret_ticket, err);
}

static qr_rc poll(struct fixture *fixture, const char *ticket, enum qr_ticket_state *ret_state, struct qr_buf *out,
                  qr_err *err)
{
    int64_t running_ms;
    const qr_rc rc = fixture->processor->poll(fixture->processor, ticket, ret_state, &running_ms, out, err);
    QR_CHECK_INT(-1, running_ms); /* it does not tell */
    return rc;
}

static int64_t requests_of(struct fixture *fixture)
{
    struct qr_model_stats stats;
    qr_model_server_stats(fixture->server, &stats);
    return stats.requests;
}

QR_TEST(a_task_can_be_asked_about_any_number_of_times)
{
    struct fixture fixture;
    enum qr_ticket_state state;
    const char *ticket;
    qr_err err;
    set_up(&fixture);
    QR_CHECK_RC(QR_OK, submit(&fixture, t, &ticket, &err));
    for (int i = 0; i < 3; i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
        QR_CHECK_RC(QR_OK, poll(&fixture, ticket, &state, &out, &err));
        QR_CHECK_INT(i == 0 ? QR_TICKET_RUNNING : QR_TICKET_DONE, state);
        QR_CHECK_STR(i == 0 ? "" : "# a.pdf\n\nwalrus", qr_buf_str(&out));
    }
    fixture.processor->cancel(fixture.processor, ticket); /* there is no way to: nothing happens */
    QR_CHECK_INT(6, requests_of(&fixture));
    tear_down(&fixture);
}

/* Its server takes "task-0x" for task-0. */
QR_TEST(an_answer_about_another_task_is_not_believed)
{
    struct fixture fixture;
    enum qr_ticket_state state;
    const char *ticket;
    qr_err err;
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    set_up(&fixture);
    QR_CHECK_RC(QR_OK, submit(&fixture, t, &ticket, &err));
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, poll(&fixture, "task-0x", &state, &out, &err));
    QR_CHECK_HAS("another task", err.msg);
    QR_CHECK_INT(0, out.len);
    tear_down(&fixture);
}

QR_TEST(a_ticket_of_another_kind_of_converter_is_not_asked_about)
{
    static const char *const tickets[] = {"", "..", "a/b", "a b", "a?b", "a%2f"};
    struct fixture fixture;
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    set_up(&fixture);
    for (size_t i = 0; i < QR_COUNT(tickets); i++) {
        enum qr_ticket_state state;
        qr_err err;
        QR_CHECK_RC(QR_OK, poll(&fixture, tickets[i], &state, &out, &err));
        QR_CHECK_INT(QR_TICKET_UNKNOWN, state);
    }
    QR_CHECK_INT(0, requests_of(&fixture));
    tear_down(&fixture);
}

QR_TEST(a_result_that_is_gone_is_a_task_that_was_lost)
{
    struct fixture fixture;
    enum qr_ticket_state state;
    const char *ticket;
    qr_err err;
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    set_up(&fixture);
    QR_CHECK_RC(QR_OK, submit(&fixture, t, &ticket, &err));
    QR_CHECK_RC(QR_OK, poll(&fixture, ticket, &state, &out, &err));
    qr_model_server_set_steps(fixture.server,
                              &(struct qr_model_step){.from = 1, .fault = QR_FAULT_404, .path = "/result/"}, 1);
    QR_CHECK_RC(QR_OK, poll(&fixture, ticket, &state, &out, &err));
    QR_CHECK_INT(QR_TICKET_UNKNOWN, state);
    tear_down(&fixture);
}

QR_TEST(a_hanging_docling_lets_go_when_its_job_is_cancelled)
{
    struct fixture fixture;
    enum qr_ticket_state state;
    qr_err err;
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    set_up(&fixture);
    qr_model_server_set_steps(fixture.server, &(struct qr_model_step){.from = 1, .fault = QR_FAULT_HANG}, 1);
    fixture.is_cancelled = true;
    QR_CHECK_CODE(QR_CODE_CANCELLED, poll(&fixture, "task-0", &state, &out, &err));
    tear_down(&fixture);
}
