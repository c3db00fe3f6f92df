/* The server of a port, before a stand-in for the library: what it refuses, that no client holds up another, deadlines,
 * limits, and that stopping waits for what runs. */
#include "http/guard.h"
#include "http/gzip.h"
#include "http/visitors.h"
#include "support/front_fixture.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <zlib.h>

static void check_bytes(const struct quire_port *port, qr_str request, int status, const char *has)
{
    const int fd = connect_port(port);
    send_bytes(fd, request);
    check_answer(fd, status, has);
    close(fd);
}

static void check_request(const struct quire_port *port, const char *request, int status, const char *has)
{
    check_bytes(port, qr_str_of(request), status, has);
}

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, 0) <= 0;
}

/* ---- requests ---- */

QR_TEST(request_is_handed_on_as_it_came)
{
    struct quire_port *port = start_port(&usual_port);
    check_request(port, "GET /a%20b/c?x=%41&y" HEADERS "\r\n", 200, "GET /a%20b/c?x=%41&y -");
    check_request(port, "POST /a" HEADERS "Content-Length: 7\r\n\r\n{\"a\":1}", 200, "POST /a {\"a\":1}");
    check_request(port, "POST /a" HEADERS "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n", 200,
                  "POST /a {\"a\":1}");
    check_request(port, "GET /who" HEADERS "Authorization: Bearer x\r\nX-Request-Id: mine-1\r\n\r\n", 200,
                  "owner 0 from 127.0.0.1 key Bearer x id mine-1");
    check_request(port, "GET /who" HEADERS "X-Request-Id: not one\r\n\r\n", 200, "-"); /* one of ours */
    quire_port_stop(port);
}

QR_TEST(connection_takes_one_request_after_another)
{
    struct quire_port *port = start_port(&usual_port);
    const int fd = connect_port(port);
    for (int i = 0; i < 100; i++) {
        send_bytes(fd, QR_STR("POST /a" HEADERS "Content-Length: 2\r\n\r\n{}"));
        check_answer(fd, 200, "POST /a {}");
    }
    close(fd);
    quire_port_stop(port);
}

/* /known and /big are known. */
static int recall(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response)
{
    if (strcmp(request->target, "/known") != 0 && strcmp(request->target, "/big") != 0) {
        return 0;
    }
    const struct quire_request known = {.method = "KNOWN", .target = request->target};
    return quire_request_call(quire, &known, ret_response);
}

QR_TEST(an_answer_that_is_at_hand_waits_for_no_thread) /* T1 */
{
    struct quire_port_options options = usual_port;
    options.recall = recall;
    options.threads = 1;
    struct quire_port *port = start_port(&options);
    const int waiting = connect_port(port);
    send_bytes(waiting, QR_STR("GET /wait" HEADERS "\r\n"));
    wait_until_waiting(1); /* the only one there is */
    const int fd = connect_port(port);
    for (int i = 0; i < 3; i++) {
        send_bytes(fd, QR_STR("GET /known" HEADERS "\r\n"));
        check_answer(fd, 200, "KNOWN /known -");
    }
    give_leave();
    check_answer(waiting, 200, "GET /wait -");
    send_bytes(fd, QR_STR("GET /big" HEADERS "Accept-Encoding: gzip\r\n\r\n")); /* to make it small is work */
    check_answer(fd, 200, "\x1f\x8b");
    send_bytes(fd, QR_STR("GET /other" HEADERS "\r\n"));
    check_answer(fd, 200, "GET /other -");
    close(fd);
    close(waiting);
    quire_port_stop(port);
}

QR_TEST(files_are_handed_on_as_they_come)
{
    struct quire_port *port = start_port(&usual_port);
    const int fd = connect_port(port);
    send_bytes(fd, QR_STR("POST /stream" HEADERS "Content-Length: 41943040\r\n\r\n"));
    send_body(fd, 40 << 20);
    check_answer(fd, 202, "41943040 bytes in pieces");
    close(fd);
    check_request(port, "POST /stream" HEADERS "Content-Length: 3\r\n\r\nabc", 202, "3 bytes in one piece");
    check_request(port, "POST /stream/refused" HEADERS "Content-Length: 3\r\n\r\nabc", 403, "refused");
    quire_port_stop(port);
}

QR_TEST(upload_whose_client_leaves_is_cancelled) /* HTTP-4 */
{
    struct quire_port *port = start_port(&usual_port);
    for (int i = 0; i < 10; i++) {
        const int fd = connect_port(port);
        send_bytes(fd, QR_STR("POST /stream" HEADERS "Content-Length: 41943040\r\n\r\n"));
        send_body(fd, 1 << 20);
        close(fd);
    }
    quire_port_stop(port);
    QR_CHECK_INT(0, library.streams);
}

QR_TEST(body_beyond_the_limit_is_refused) /* HTTP-7 */
{
    struct quire_port *port = start_port(&usual_port);
    check_request(port, "POST /a" HEADERS "Content-Length: 1048577\r\n\r\n", 413, "payload_too_large");
    const int fd = connect_port(port);
    send_bytes(fd, QR_STR("POST /a" HEADERS "Transfer-Encoding: chunked\r\n\r\n100001\r\n"));
    send_body(fd, (1 << 20) + 1);
    send_bytes(fd, QR_STR("\r\n0\r\n\r\n"));
    check_answer(fd, 413, "payload_too_large");
    close(fd);
    quire_port_stop(port);
}

static void check_body(const struct quire_port *port, const char *head, size_t size, int status, const char *has)
{
    const int fd = connect_port(port);
    send_bytes(fd, qr_str_of(head));
    send_body(fd, size);
    check_answer(fd, status, has);
    close(fd);
}

QR_TEST(large_bodies_of_strangers_are_not_kept) /* HTTP-7 */
{
    struct quire_port *port = start_port(&usual_port);
    static const char large[] = "POST /a" HEADERS "Content-Length: 600000\r\n\r\n";
    check_body(port, large, 600000, 200, "600000 bytes");
    library.has_keys = true;
    check_body(port, large, 600000, 401, "unauthorized");
    check_body(port, "POST /a" HEADERS "Authorization: Bearer k\r\nContent-Length: 600000\r\n\r\n", 600000, 200,
               "600000 bytes");
    check_body(port, "POST /a" HEADERS "Content-Length: 1001\r\n\r\n", 1001, 200,
               "1001 bytes"); /* the library's to refuse */
    library.has_keys = false;
    quire_port_stop(port);
}

/* ---- the guard ---- */

/* Refused with 400, or hung up on without a word where libmicrohttpd does not call it HTTP at all. Closed in any case. */
static const qr_str malformed[] = {
    QR_STR("POST /a" HEADERS "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
    QR_STR("POST /a" HEADERS "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}"),
    QR_STR("POST /a" HEADERS "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    QR_STR("POST /a" HEADERS "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n"),
    QR_STR("POST /a" HEADERS "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    QR_STR("POST /a" HEADERS "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    QR_STR("POST /a" HEADERS "Transfer-Encoding: identity\r\n\r\n"),
    QR_STR("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    QR_STR("POST /a" HEADERS "Content-Length: -1\r\n\r\n"),
    QR_STR("POST /a" HEADERS "Content-Length: +2\r\n\r\n{}"),
    QR_STR("POST /a" HEADERS "Content-Length: 0x2\r\n\r\n{}"),
    QR_STR("POST /a" HEADERS "Content-Length: 2, 2\r\n\r\n{}"),
    QR_STR("POST /a" HEADERS "Content-Length: 99999999999999999999\r\n\r\n"),
    QR_STR("GET /a HTTP/1.1\r\n\r\n"),
    QR_STR("GET /a" HEADERS "Host: other\r\n\r\n"),
    QR_STR("GET /a HTTP/1.1\r\nHost: a b\r\n\r\n"),
    QR_STR("GET /a HTTP/1.1\r\nHost:\r\n\r\n"),
    QR_STR("GET /a/../b" HEADERS "\r\n"),
    QR_STR("GET /a/%2e%2E/b" HEADERS "\r\n"),
    QR_STR("GET /a/%2e%2e%2fb" HEADERS "\r\n"),
    QR_STR("GET /a%00b" HEADERS "\r\n"),
    QR_STR("GET /a%c0%ae%c0%ae/b" HEADERS "\r\n"),
    QR_STR("GET /a%ff" HEADERS "\r\n"),
    QR_STR("GET /a%2" HEADERS "\r\n"),
    QR_STR("GET /a%zz" HEADERS "\r\n"),
    QR_STR("GET /a%0d%0ab" HEADERS "\r\n"),
    QR_STR("GET http://localhost/a" HEADERS "\r\n"),
    QR_STR("OPTIONS *" HEADERS "\r\n"),
    QR_STR("GET /a" HEADERS "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n"),
    QR_STR("GET /a" HEADERS "X\1: y\r\n\r\n"),
    QR_STR("GET /a\0b" HEADERS "\r\n"),
    QR_STR("POST /a" HEADERS "Expect: the best\r\nContent-Length: 2\r\n\r\n{}"),
};

QR_TEST(malformed_requests_are_refused_and_hung_up_on) /* HTTP-1 */
{
    struct quire_port *port = start_port(&usual_port);
    for (size_t i = 0; i < QR_COUNT(malformed); i++) {
        struct qr_http_response response;
        const int fd = connect_port(port);
        send_bytes(fd, malformed[i]);
        if (receive(fd, &response) && response.status / 100 != 4) {
            QR_FAIL("request %zu is answered with %d: %s", i, response.status, qr_buf_str(&response.body).ptr);
        }
        qr_http_response_done(&response);
        QR_CHECK(is_closed(fd));
        close(fd);
    }
    check_request(port, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    quire_port_stop(port);
}

QR_TEST(foreign_hosts_and_other_sites_are_refused) /* HTTP-6 */
{
    struct quire_port_options options = usual_port;
    options.hosts = "notes.example.org, other.example.org";
    struct quire_port *port = start_port(&options);
    check_request(port, "GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "foreign_host");
    check_request(port, "GET /a HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 421, "foreign_host");
    check_request(port, "GET /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", 200, "GET /a");
    check_request(port, "GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200, "GET /a");
    check_request(port, "GET /a HTTP/1.1\r\nHost: Other.example.org\r\n\r\n", 200, "GET /a");
    check_request(port, "POST /a" HEADERS "Origin: http://evil.example\r\nContent-Length: 0\r\n\r\n", 403,
                  "cross_site");
    check_request(port, "POST /a" HEADERS "Origin: null\r\nContent-Length: 0\r\n\r\n", 403, "cross_site");
    check_request(port, "POST /a" HEADERS "Sec-Fetch-Site: cross-site\r\nContent-Length: 0\r\n\r\n", 403, "cross_site");
    check_request(port,
                  "POST /a" HEADERS "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n"
                  "Content-Length: 0\r\n\r\n",
                  200, "POST /a");
    check_request(port,
                  "POST /a" HEADERS "Origin: http://app.example\r\nAuthorization: Bearer k\r\n"
                  "Content-Length: 0\r\n\r\n",
                  200, "POST /a");
    quire_port_stop(port);
}

QR_TEST(without_a_key_only_this_machine_is_listened_to) /* HTTP-6 */
{
    struct quire_port_options options = usual_port;
    struct quire_port *port = NULL;
    qr_err err;
    options.listen = "0.0.0.0:0";
    QR_CHECK_CODE(QR_CODE_FORBIDDEN, quire_port_start(&library, &options, &port, &err));
    options.listen = "::1:7700";
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, quire_port_start(&library, &options, &port, &err));
    options.listen = "127.0.0.1:65536";
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, quire_port_start(&library, &options, &port, &err));
    options.listen = "0.0.0.0:0";
    options.has_keys = true;
    port = start_port(&options);
    check_request(port, "GET /a HTTP/1.1\r\nHost: any.example\r\n\r\n", 200, "GET /a"); /* a key is asked for anyway */
    options.listen = quire_port_url(port) + strlen("http://");
    struct quire_port *second = NULL;
    QR_CHECK_CODE(QR_CODE_UNAVAILABLE, quire_port_start(&library, &options, &second, &err));
    quire_port_stop(port);
}

/* ---- many at once ---- */

QR_TEST(half_a_request_and_a_long_call_hold_up_nobody)
{
    enum { HALVES = 50, LONG = 3 };
    struct quire_port *port = start_port(&usual_port);
    int halves[HALVES], waiting[LONG];
    for (int i = 0; i < HALVES; i++) {
        halves[i] = connect_port(port);
        send_bytes(halves[i], i % 2 ? QR_STR("GET /a HT") : QR_STR("POST /a" HEADERS "Content-Length: 9\r\n\r\n{"));
    }
    for (int i = 0; i < LONG; i++) {
        waiting[i] = connect_port(port);
        send_bytes(waiting[i], QR_STR("GET /wait" HEADERS "\r\n"));
    }
    wait_until_waiting(LONG);
    check_request(port, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    give_leave();
    for (int i = 0; i < LONG; i++) {
        check_answer(waiting[i], 200, "GET /wait -");
        close(waiting[i]);
    }
    quire_port_stop(port); /* does not wait for the halves */
    for (int i = 0; i < HALVES; i++) {
        close(halves[i]);
    }
}

QR_TEST(whether_it_lives_is_said_while_every_thread_waits) /* HTTP-12 */
{
    struct quire_port *port = start_port(&usual_port);
    int waiting[4];
    QR_CHECK_INT(usual_port.threads, QR_COUNT(waiting));
    for (size_t i = 0; i < QR_COUNT(waiting); i++) {
        waiting[i] = connect_port(port);
        send_bytes(waiting[i], QR_STR("GET /wait" HEADERS "\r\n"));
    }
    wait_until_waiting(QR_COUNT(waiting));
    check_request(port, "GET /healthz" HEADERS "\r\n", 200, "GET /healthz -");
    give_leave();
    for (size_t i = 0; i < QR_COUNT(waiting); i++) {
        check_answer(waiting[i], 200, "GET /wait -");
        close(waiting[i]);
    }
    quire_port_stop(port);
}

static void *run_client(void *port)
{
    for (int i = 0; i < 20; i++) {
        check_request(port, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    }
    return NULL;
}

QR_TEST(many_clients_are_served_at_once)
{
    enum { CLIENTS = 32 };
    struct quire_port *port = start_port(&usual_port);
    pthread_t clients[CLIENTS];
    qr_err err;
    for (int i = 0; i < CLIENTS; i++) {
        QR_CHECK_RC(QR_OK, qr_thread_start(&clients[i], "client", run_client, port, &err));
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i], NULL);
    }
    quire_port_stop(port);
}

static int free_descriptor(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    QR_CHECK(fd >= 0);
    close(fd);
    return fd;
}

QR_TEST(slow_clients_are_hung_up_on_and_disturb_nobody) /* HTTP-2 */
{
    enum { CLIENTS = 300 };
    struct quire_port_options options = usual_port;
    options.request_ms = 300;
    allow_files(3 * CLIENTS);
    const int before = free_descriptor();
    struct quire_port *port = start_port(&options);
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_port(port);
        send_bytes(clients[i], i % 3 == 0   ? QR_STR("GET /a HTTP/1.1\r\nHo")
                               : i % 3 == 1 ? QR_STR("POST /a" HEADERS "Content-Length: 90\r\n\r\n{")
                                            : QR_STR(""));
    }
    const int good = connect_port(port);
    send_bytes(good, QR_STR("GET /a" HEADERS "\r\n"));
    check_answer(good, 200, "GET /a -");
    close(good);
    for (int i = 0; i < CLIENTS; i++) {
        while (send_bytes(clients[i], i % 3 == 1 ? QR_STR(" ") : QR_STR("")) && !is_closed(clients[i])) {
        }
        close(clients[i]);
    }
    check_request(port, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    quire_port_stop(port);
    QR_CHECK_INT(before, free_descriptor());
}

/* A byte now and then does not keep a connection: only as many as the rate asks for. */
QR_TEST(bytes_that_trickle_give_no_time) /* HTTP-2 */
{
    struct quire_port_options options = usual_port;
    options.request_ms = 300;
    options.bytes_per_s_min = 1 << 20;
    struct quire_port *port = start_port(&options);
    const int fd = connect_port(port);
    send_bytes(fd, QR_STR("POST /a" HEADERS "Content-Length: 1000000\r\n\r\n"));
    char byte;
    while (send_bytes(fd, QR_STR("x")) && recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
        usleep(1000);
    }
    close(fd);
    quire_port_stop(port);
}

QR_TEST(call_that_takes_long_has_no_deadline) /* HTTP-2 */
{
    struct quire_port_options options = usual_port;
    options.request_ms = 100;
    struct quire_port *port = start_port(&options);
    const int fd = connect_port(port), slow = connect_port(port);
    send_bytes(fd, QR_STR("GET /wait" HEADERS "\r\n"));
    wait_until_waiting(1);
    QR_CHECK(is_closed(slow)); /* so the time is over for the other one too */
    give_leave();
    check_answer(fd, 200, "GET /wait -");
    close(fd);
    close(slow);
    quire_port_stop(port);
}

QR_TEST(client_that_does_not_read_is_hung_up_on) /* HTTP-2 */
{
    struct quire_port_options options = usual_port;
    options.request_ms = 200;
    options.bytes_per_s_min = 1 << 30;
    options.last_answers_ms = 100000; /* stopping would wait so long: the deadline comes before it */
    struct quire_port *port = start_port(&options);
    const int fd = connect_port(port);
    const int small = 4096; /* otherwise the kernel takes it all */
    char first;
    QR_CHECK_INT(0, setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small));
    send_bytes(fd, QR_STR("GET /big" HEADERS "\r\n"));
    QR_CHECK_INT(1, recv(fd, &first, 1, 0));
    quire_port_stop(port);
    close(fd);
}

QR_TEST(clients_that_vanish_in_any_phase_leave_nothing) /* HTTP-2 */
{
    static const char *const phases[] = {
        "",
        "GET /a HT",
        "GET /a" HEADERS,
        "POST /a" HEADERS "Content-Length: 9\r\n\r\n{",
        "POST /stream" HEADERS "Content-Length: 9\r\n\r\n{",
        "GET /a" HEADERS "\r\n",
        "GET /big" HEADERS "\r\n",
    };
    struct quire_port_options options = usual_port;
    options.request_ms = 600000;
    struct quire_port *port = start_port(&options);
    check_request(port, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    const int before = free_descriptor();
    for (int i = 0; i < 10; i++) {
        for (size_t k = 0; k < QR_COUNT(phases); k++) {
            const int fd = connect_port(port);
            send_bytes(fd, qr_str_of(phases[k]));
            close(fd);
        }
    }
    check_request(port, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    while (free_descriptor() > before) { /* long before the deadline, which is beyond the test's own */
        usleep(1000);
    }
    quire_port_stop(port);
    QR_CHECK_INT(0, library.streams);
}

QR_TEST(client_that_has_said_all_is_answered)
{
    struct quire_port *port = start_port(&usual_port);
    const int fd = connect_port(port);
    send_bytes(fd, QR_STR("GET /wait" HEADERS "\r\n"));
    shutdown(fd, SHUT_WR);
    wait_until_waiting(1);
    give_leave();
    check_answer(fd, 200, "GET /wait -");
    close(fd);
    quire_port_stop(port);
}

/* ---- limits ---- */

QR_TEST(connections_from_one_address_are_limited) /* HTTP-7 */
{
    enum { MAX = 5 };
    struct quire_port_options options = usual_port;
    options.address_connections_max = MAX;
    struct quire_port *port = start_port(&options);
    int clients[MAX];
    for (int i = 0; i < MAX; i++) {
        clients[i] = connect_port(port);
        send_bytes(clients[i], QR_STR("GET /a" HEADERS "\r\n"));
        check_answer(clients[i], 200, "GET /a -");
    }
    const int fd = connect_port(port);
    QR_CHECK(is_closed(fd));
    close(fd);
    for (int i = 0; i < MAX; i++) {
        close(clients[i]);
    }
    for (bool is_let_in = false; !is_let_in;) { /* once the server has seen that they are gone */
        struct qr_http_response response;
        const int again = connect_port(port);
        is_let_in = send_bytes(again, QR_STR("GET /a" HEADERS "\r\n")) && receive(again, &response);
        qr_http_response_done(&response);
        close(again);
    }
    quire_port_stop(port);
}

QR_TEST(requests_from_one_address_are_limited) /* HTTP-7 */
{
    struct quire_port_options options = usual_port;
    options.address_requests_per_s = 1;
    struct quire_port *port = start_port(&options);
    int refused = 0;
    for (int i = 0; i < 50; i++) {
        struct qr_http_response response;
        const int fd = connect_port(port); /* another connection is no way around it */
        send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
        QR_CHECK(receive(fd, &response));
        QR_CHECK(response.status == 200 || response.status == 429);
        QR_CHECK(response.status == 200 || strstr(response.body.data, "rate_limited"));
        refused += response.status == 429;
        qr_http_response_done(&response);
        close(fd);
    }
    QR_CHECK(refused > 0);
    quire_port_stop(port);
}

QR_TEST(bucket_of_an_address_fills_with_time)
{
    struct qr_visitors visitors;
    qr_visitors_init(&visitors, 1, 2, 10);
    QR_CHECK(qr_visitors_enter(&visitors, "a", 0) && qr_visitors_may_enter(&visitors, "a"));
    QR_CHECK(qr_visitors_enter(&visitors, "a", 0) && !qr_visitors_may_enter(&visitors, "a"));
    QR_CHECK(qr_visitors_enter(&visitors, "b", 0) && qr_visitors_may_enter(&visitors, "c"));
    for (int i = 0; i < 20; i++) { /* a burst of two seconds */
        QR_CHECK_INT(0, qr_visitors_ask(&visitors, "a", 0));
    }
    QR_CHECK_INT(1, qr_visitors_ask(&visitors, "a", 0));
    QR_CHECK_INT(0, qr_visitors_ask(&visitors, "b", 0));
    QR_CHECK_INT(1, qr_visitors_ask(&visitors, "a", 99999));
    QR_CHECK_INT(0, qr_visitors_ask(&visitors, "a", 100000));
    qr_visitors_leave(&visitors, "a", 100000);
    qr_visitors_leave(&visitors, "a", 100000);
    QR_CHECK(qr_visitors_enter(&visitors, "a", 100000)); /* closing and coming back is no way around it */
    QR_CHECK_INT(1, qr_visitors_ask(&visitors, "a", 100000));
    qr_visitors_leave(&visitors, "a", 10000000);
    qr_visitors_leave(&visitors, "b", 10000000);
    QR_CHECK_INT(0, visitors.addresses.count); /* and then nothing is known of them */
    qr_visitors_done(&visitors);
}

/* ---- the end ---- */

static void *stop_port(void *port)
{
    quire_port_stop(port);
    return NULL;
}

QR_TEST(stopping_waits_for_the_request_that_runs) /* HTTP-3 */
{
    struct quire_port *port = start_port(&usual_port);
    char url[128];
    snprintf(url, sizeof url, "%s", quire_port_url(port));
    const int running = connect_port(port), late = connect_port(port);
    send_bytes(late, QR_STR("GET /a" HEADERS "\r\n")); /* so that it is accepted */
    check_answer(late, 200, "GET /a -");
    send_bytes(running, QR_STR("GET /wait" HEADERS "\r\n"));
    wait_until_waiting(1);
    pthread_t stopper;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_thread_start(&stopper, "stopper", stop_port, port, &err));
    wait_until_refused(late);
    give_leave();
    check_answer(running, 200, "GET /wait -");
    pthread_join(stopper, NULL);
    close(running);
    close(late);
}

struct comers {
    struct sockaddr_in address;
    atomic_bool is_over;
};

static void *come_and_go(void *arg)
{
    struct comers *comers = arg;
    while (!comers->is_over) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)connect(fd, (const struct sockaddr *)&comers->address, sizeof comers->address);
        close(fd);
    }
    return NULL;
}

/* libmicrohttpd ends the process when it is told to stop listening the moment it is awake (http/port.c). */
QR_TEST(stopping_while_clients_come_ends_well)
{
    for (int i = 0; i < 100; i++) {
        struct quire_port *port = start_port(&usual_port);
        struct comers comers = {.address = address_of_port(port)};
        pthread_t thread;
        qr_err err;
        QR_CHECK_RC(QR_OK, qr_thread_start(&thread, "comers", come_and_go, &comers, &err));
        close(connect_port(port));
        quire_port_stop(port);
        comers.is_over = true;
        pthread_join(thread, NULL);
    }
}

QR_TEST(nothing_stays_open_after_the_end)
{
    const int before = free_descriptor();
    for (int i = 0; i < 3; i++) {
        quire_port_stop(start_port(&usual_port));
        QR_CHECK_INT(before, free_descriptor());
    }
}

/* ---- gzip ---- */

QR_TEST(answers_are_compressed_where_that_is_asked_for)
{
    struct quire_port *port = start_port(&usual_port);
    struct qr_http_response response;
    const int fd = connect_port(port);
    send_bytes(fd, QR_STR("GET /big" HEADERS "Accept-Encoding: br, gzip;q=0.8\r\n\r\n"));
    QR_CHECK(receive(fd, &response));
    QR_CHECK_INT(200, response.status);
    QR_CHECK(response.body.len < 100000);
    z_stream stream = {.next_in = (Bytef *)response.body.data, .avail_in = (uInt)response.body.len};
    QR_CHECK_INT(Z_OK, inflateInit2(&stream, 31));
    char *plain = qr_alloc(9 << 20);
    stream.next_out = (Bytef *)plain;
    stream.avail_out = 9 << 20;
    QR_CHECK_INT(Z_STREAM_END, inflate(&stream, Z_FINISH));
    QR_CHECK(stream.total_out > 8 << 20 && memcmp(plain, "GET /big 000", 12) == 0);
    inflateEnd(&stream);
    qr_free(plain);
    qr_http_response_done(&response);
    close(fd);
    check_request(port, "GET /a" HEADERS "Accept-Encoding: gzip\r\n\r\n", 200, "GET /a -"); /* too small */
    quire_port_stop(port);
    QR_CHECK(qr_gzip_is_accepted("gzip") && qr_gzip_is_accepted("a, GZIP") && qr_gzip_is_accepted("*"));
    QR_CHECK(!qr_gzip_is_accepted(NULL) && !qr_gzip_is_accepted("gzip;q=0") && !qr_gzip_is_accepted("gzip; q=0.000"));
    QR_CHECK(!qr_gzip_is_accepted("deflate") && !qr_gzip_is_accepted(""));
}
