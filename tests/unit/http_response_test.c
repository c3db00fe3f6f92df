/* The reader of HTTP answers: every form of a body, in any pieces; and what it refuses. */
#include "http/response.h"
#include "support/fault.h"
#include "support/test.h"

enum { BODY_BYTES_MAX = 64 };

/* Hands the bytes over in pieces of `step`, then ends the connection. */
static qr_rc read_answer(struct qr_http_response *response, qr_str bytes, size_t step, qr_err *err)
{
    qr_http_response_init(response, BODY_BYTES_MAX);
    while (bytes.len) {
        const size_t len = QR_MIN(step, bytes.len);
        QR_TRY(qr_http_response_add(response, (qr_str){bytes.ptr, len}, err));
        bytes = (qr_str){bytes.ptr + len, bytes.len - len};
    }
    return qr_http_response_end(response, err);
}

static void check_read(const char *answer, int status, const char *body)
{
    for (size_t step = 1; step <= strlen(answer); step++) {
        struct qr_http_response response;
        qr_err err;
        qr_test_set_context("in pieces of %zu", step);
        QR_CHECK_RC(QR_OK, read_answer(&response, qr_str_of(answer), step, &err));
        QR_CHECK_INT(status, response.status);
        QR_CHECK_STR(body, qr_buf_str(&response.body));
        qr_http_response_done(&response);
    }
    qr_test_set_context("%s", "");
}

static void check_refused(qr_str answer, qr_code code)
{
    for (size_t step = 1; step <= answer.len; step = step * 2 + 1) {
        struct qr_http_response response;
        qr_err err;
        qr_test_set_context("%.60s", answer.ptr);
        QR_CHECK_CODE(code, read_answer(&response, answer, step, &err));
        qr_http_response_done(&response);
    }
}

QR_TEST(answer_is_read_in_any_pieces)
{
    check_read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello");
    check_read("HTTP/1.1 200 OK\r\ncontent-LENGTH:5 \r\nDate: now\r\n\r\nhello and more", 200, "hello");
    check_read("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "");
    check_read("HTTP/1.0 200\nX: y\n\nto the end", 200, "to the end");
    check_read("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
    check_read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", 201, "{}");
}

QR_TEST(chunks_are_put_together)
{
    check_read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0A;x=y\r\n0123456789\r\n0\r\n\r\n",
               200, "abc0123456789");
    check_read("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\nTrailer: yes\r\n\r\nmore", 200, "");
}

QR_TEST(answer_that_is_not_http_is_refused)
{
    static const char *const answers[] = {
        "hello\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 +20 OK\r\n\r\n",
        "HTTP/1.1 700 OK\r\n\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < QR_COUNT(answers); i++) {
        check_refused(qr_str_of(answers[i]), QR_CODE_UNAVAILABLE);
    }
    check_refused(QR_STR("HTTP/1.1 200 OK\r\nA: \0b\r\n\r\n"), QR_CODE_UNAVAILABLE);
}

QR_TEST(cut_answer_is_never_taken_for_a_whole_one)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < QR_COUNT(answers); i++) {
        for (size_t len = 0; len < strlen(answers[i]); len++) {
            struct qr_http_response response;
            qr_err err;
            QR_CHECK_CODE(QR_CODE_UNAVAILABLE, read_answer(&response, (qr_str){answers[i], len}, 7, &err));
            qr_http_response_done(&response);
        }
    }
}

QR_TEST(answer_beyond_the_limit_is_refused)
{
    char text[256];
    static const char *const heads[] = {"Content-Length: 65\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n41\r\n",
                                        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", "\r\n"};
    for (size_t i = 0; i < QR_COUNT(heads); i++) {
        snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n%s%065d", heads[i], 0);
        check_refused(qr_str_of(text), QR_CODE_PAYLOAD_TOO_LARGE);
    }
}

QR_TEST(head_without_end_is_refused)
{
    static const char *const pieces[] = {"x", "A: b\r\n", "HTTP/1.1 100 Continue\r\n\r\n"};
    for (size_t i = 0; i < QR_COUNT(pieces); i++) {
        struct qr_http_response response;
        size_t sent = 0;
        qr_err err;
        qr_http_response_init(&response, BODY_BYTES_MAX);
        qr_rc rc = qr_http_response_add(&response, QR_STR("HTTP/1.1 100 Continue\r\n"), &err);
        rc = rc == QR_OK && i == 2 ? qr_http_response_add(&response, QR_STR("\r\n"), &err) : rc;
        while (rc == QR_OK) {
            rc = qr_http_response_add(&response, qr_str_of(pieces[i]), &err);
            sent += strlen(pieces[i]);
            QR_CHECK(sent <= QR_HTTP_HEAD_BYTES_MAX);
        }
        QR_CHECK_INT(QR_UNAVAILABLE, rc);
        qr_http_response_done(&response);
    }
}

static void read_without_memory(void *arg QR_UNUSED)
{
    struct qr_http_response response;
    qr_err err = {0};
    const qr_rc rc = read_answer(
        &response, QR_STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), 9, &err);
    qr_fault_disarm();
    QR_CHECK_INT(qr_fault_fired() ? QR_NOMEM : QR_OK, rc);
    qr_http_response_done(&response);
}

QR_TEST(reading_survives_every_failing_allocation)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, read_without_memory, NULL);
}
