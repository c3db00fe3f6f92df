/* Answers in pieces, on the port and on the socket, before a stand-in for the library. */
#include "support/front_fixture.h"

static const struct quire_port_options usual = {
    .listen = "127.0.0.1:0",
    .hosts = "",
    .threads = 1, /* so that one which waited in it would hold up all */
    .connections_max = 1024,
    .request_ms = 60000,
    .bytes_per_s_min = 1024,
    .body_bytes_max = 1 << 20,
    .last_answers_ms = 600000, /* stopping would wait for so long */
};

/* What comes until the text was among it. */
static void receive_until(int fd, const char *text)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf all = {0};
    char byte;
    do {
        QR_CHECK(recv(fd, &byte, 1, 0) == 1);
        qr_buf_add_char(&all, byte);
    } while (!strstr(qr_buf_str(&all).ptr, text));
}

static int open_feed(int fd)
{
    send_bytes(fd, QR_STR("GET /feed" HEADERS "\r\n"));
    receive_until(fd, "200 OK");
    return fd;
}

static void check_whole(int fd)
{
    struct qr_http_response response;
    send_bytes(fd, QR_STR("GET /pieces" HEADERS "Accept-Encoding: gzip\r\n\r\n"));
    QR_CHECK(receive(fd, &response));
    QR_CHECK_INT(200, response.status);
    QR_CHECK_INT(PIECES_BYTES, (int64_t)response.body.len);
    QR_CHECK_INT(PIECES_BYTES, (int64_t)strspn(response.body.data, "x"));
    qr_http_response_done(&response);
    send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
    check_answer(fd, 200, "GET /a"); /* the connection goes on */
    close(fd);
}

/* ---- with an end ---- */

QR_TEST(pieces_are_sent_as_one_whole) /* HTTP-9 */
{
    struct quire_port *port = start_port(&usual);
    struct quire_server *server;
    qr_err err;
    QR_CHECK_RC(QR_OK, quire_server_start(&library, t->dir, &server, &err));
    check_whole(connect_port(port));
    check_whole(connect_socket(t->dir));
    quire_port_stop(port);
    quire_server_stop(server);
    wait_for_pieces(0);
}

static void check_broken(int fd)
{
    struct qr_http_response response;
    send_bytes(fd, QR_STR("GET /pieces/broken" HEADERS "\r\n"));
    QR_CHECK(!receive(fd, &response));
    qr_http_response_done(&response);
    close(fd);
}

QR_TEST(answer_that_breaks_is_not_taken_for_whole) /* HTTP-9 */
{
    struct quire_port *port = start_port(&usual);
    struct quire_server *server;
    qr_err err;
    QR_CHECK_RC(QR_OK, quire_server_start(&library, t->dir, &server, &err));
    check_broken(connect_port(port));
    check_broken(connect_socket(t->dir));
    quire_port_stop(port);
    quire_server_stop(server);
    wait_for_pieces(0);
}

static void *stop_port(void *port)
{
    quire_port_stop(port);
    return NULL;
}

QR_TEST(server_that_stops_sends_the_rest_of_what_has_an_end) /* HTTP-3 */
{
    struct quire_port *port = start_port(&usual);
    const int fd = connect_port(port);
    struct qr_http_response response;
    send_bytes(fd, QR_STR("GET /pieces" HEADERS "\r\n"));
    wait_for_pieces(1);
    pthread_t stopper;
    QR_CHECK_INT(0, pthread_create(&stopper, NULL, stop_port, port));
    QR_CHECK(receive(fd, &response));
    pthread_join(stopper, NULL);
    QR_CHECK_INT(PIECES_BYTES, (int64_t)response.body.len);
    qr_http_response_done(&response);
    close(fd);
}

/* ---- without one ---- */

QR_TEST(event_reaches_all_who_wait_and_they_hold_up_nobody) /* EVENT-5 */
{
    enum { CLIENTS = 50, EVENTS = 20 };
    int fds[CLIENTS];
    struct quire_port *port = start_port(&usual);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = open_feed(connect_port(port));
    }
    for (int event = 1; event <= EVENTS; event++) {
        publish();
        if (event % 5 == 0) {
            const int fd = connect_port(port);
            send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
            check_answer(fd, 200, "GET /a");
            close(fd);
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        receive_until(fds[i], "event 20\n");
    }
    quire_port_stop(port);
    for (int i = 0; i < CLIENTS; i++) {
        close(fds[i]);
    }
}

QR_TEST(event_that_wakes_while_the_last_one_is_read_is_not_lost) /* EVENT-5 */
{
    struct quire_port *port = start_port(&usual);
    const int fd = connect_port(port);
    send_bytes(fd, QR_STR("GET /feed/late" HEADERS "\r\n"));
    receive_until(fd, "event 1\n");
    close(fd);
    quire_port_stop(port);
}

QR_TEST(server_that_stops_ends_feeds_at_once) /* EVENT-5 */
{
    enum { CLIENTS = 100 };
    int fds[CLIENTS];
    struct quire_port *port = start_port(&usual);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connect_port(port);
        send_bytes(fds[i], QR_STR("GET /feed" HEADERS "\r\n"));
    }
    wait_for_pieces(CLIENTS);
    quire_port_stop(port);
    for (int i = 0; i < CLIENTS; i++) {
        struct qr_http_response response;
        (void)receive(fds[i], &response);
        qr_http_response_done(&response);
        close(fds[i]);
    }
    wait_for_pieces(0);
}

QR_TEST(feed_of_the_socket_gets_events_and_ends_with_the_server) /* EVENT-5 */
{
    struct quire_server *server;
    qr_err err;
    QR_CHECK_RC(QR_OK, quire_server_start(&library, t->dir, &server, &err));
    const int fd = open_feed(connect_socket(t->dir));
    publish();
    receive_until(fd, "event 1\n");
    publish();
    receive_until(fd, "event 2\n");
    quire_server_stop(server);
    wait_for_pieces(0);
    close(fd);
}

QR_TEST(clients_that_leave_leave_nothing) /* EVENT-5 */
{
    enum { CLIENTS = 20 };
    int fds[CLIENTS];
    struct quire_port *port = start_port(&usual);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = open_feed(connect_port(port));
    }
    wait_for_pieces(CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        close(fds[i]);
    }
    wait_for_pieces(0); /* though nothing is published */
    quire_port_stop(port);
}

QR_TEST(client_that_does_not_read_is_hung_up_on) /* EVENT-5 */
{
    struct quire_port_options options = usual;
    options.request_ms = 100;
    options.bytes_per_s_min = 1 << 20;
    struct quire_port *port = start_port(&options);
    const int idle = open_feed(connect_port(port));
    const int fd = connect_port(port);
    send_bytes(fd, QR_STR("GET /feed/flood" HEADERS "\r\n"));
    wait_for_pieces(2);
    wait_for_pieces(1);
    publish();
    receive_until(idle, "event 1\n"); /* waiting is no fault */
    close(fd);
    close(idle);
    quire_port_stop(port);
}

static void check_refused(int fd, int status, const char *has)
{
    send_bytes(fd, QR_STR("GET /feed" HEADERS "\r\n"));
    check_answer(fd, status, has);
    close(fd);
}

QR_TEST(feeds_are_limited_in_all_and_for_an_address) /* EVENT-5 */
{
    struct quire_port_options options = usual;
    options.streams_max = 2;
    struct quire_port *port = start_port(&options);
    const int a = open_feed(connect_port(port)), b = open_feed(connect_port(port));
    check_refused(connect_port(port), 503, "unavailable");
    close(a);
    wait_for_pieces(1);
    const int c = open_feed(connect_port(port));
    quire_port_stop(port);
    close(b);
    close(c);
    options = usual;
    options.address_streams_max = 1;
    port = start_port(&options);
    const int d = open_feed(connect_port(port));
    check_refused(connect_port(port), 429, "rate_limited");
    quire_port_stop(port);
    close(d);
}

QR_TEST(head_of_a_feed_is_only_that)
{
    struct quire_port *port = start_port(&usual);
    const int fd = connect_port(port);
    send_bytes(fd, QR_STR("HEAD /feed" HEADERS "\r\n"));
    receive_until(fd, "\r\n\r\n");
    send_bytes(fd, QR_STR("HEAD /pieces" HEADERS "\r\n"));
    receive_until(fd, "Content-Length: 12582912");
    receive_until(fd, "\r\n\r\n");
    send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
    check_answer(fd, 200, "GET /a");
    wait_for_pieces(0);
    close(fd);
    quire_port_stop(port);
}
