/* The server of a data folder's socket, before a stand-in for the library: what it hands on, what it refuses, and that
 * no client holds up another. */
#include "base/fs.h"
#include "support/fault.h"
#include "support/front_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- clients ---- */

static void check_request(const char *folder, const char *request, int status, const char *has)
{
    const int fd = connect_socket(folder);
    send_bytes(fd, qr_str_of(request));
    check_answer(fd, status, has);
    close(fd);
}

/* ---- requests ---- */

QR_TEST(request_is_handed_on_as_it_came)
{
    struct quire_server *server = start_server(t->dir);
    check_request(t->dir, "GET /a%20b/c?x=%41&y" HEADERS "\r\n", 200, "GET /a%20b/c?x=%41&y -");
    check_request(t->dir, "POST /a" HEADERS "Content-Length: 7\r\n\r\n{\"a\":1}", 200, "POST /a {\"a\":1}");
    check_request(t->dir, "POST /a" HEADERS "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n",
                  200, "POST /a {\"a\":1}");
    check_request(t->dir, "DELETE /missing" HEADERS "\r\n", 404, "DELETE /missing -");
    quire_server_stop(server);
}

QR_TEST(connection_takes_one_request_after_another)
{
    struct quire_server *server = start_server(t->dir);
    const int fd = connect_socket(t->dir);
    for (int i = 0; i < 100; i++) {
        send_bytes(fd, QR_STR("POST /a" HEADERS "Content-Length: 2\r\n\r\n{}"));
        check_answer(fd, 200, "POST /a {}");
    }
    close(fd);
    quire_server_stop(server);
}

QR_TEST(body_with_a_nul_is_handed_on_whole)
{
    struct quire_server *server = start_server(t->dir);
    struct qr_http_response response;
    const int fd = connect_socket(t->dir);
    send_bytes(fd, QR_STR("POST /a" HEADERS "Content-Length: 4\r\n\r\n{}\0x"));
    QR_CHECK(receive(fd, &response));
    QR_CHECK(qr_str_equal(qr_buf_str(&response.body), QR_STR("POST /a {}\0x")));
    qr_http_response_done(&response);
    close(fd);
    quire_server_stop(server);
}

QR_TEST(whoever_opens_the_socket_is_the_local_owner)
{
    struct quire_server *server = start_server(t->dir);
    check_request(t->dir, "GET /who" HEADERS "\r\n", 200, "owner 1 from - key -");
    quire_server_stop(server);
}

QR_TEST(files_are_handed_on_as_they_come)
{
    struct quire_server *server = start_server(t->dir);
    int fd = connect_socket(t->dir);
    send_bytes(fd, QR_STR("POST /stream" HEADERS "Content-Length: 104857600\r\n\r\n")); /* more than a body may have */
    send_body(fd, 100 << 20);
    check_answer(fd, 202, "104857600 bytes in pieces");
    close(fd);
    check_request(t->dir, "POST /stream" HEADERS "Content-Length: 3\r\n\r\nabc", 202, "3 bytes in one piece");
    check_request(t->dir, "POST /stream/refused" HEADERS "Content-Length: 3\r\n\r\nabc", 403, "refused");
    quire_server_stop(server);
}

QR_TEST(body_up_to_64_mb_is_taken_and_more_is_refused)
{
    struct quire_server *server = start_server(t->dir);
    char head[128];
    int fd = connect_socket(t->dir);
    snprintf(head, sizeof head, "POST /a" HEADERS "Content-Length: %d\r\n\r\n", QUIRE_SERVER_BODY_BYTES_MAX);
    send_bytes(fd, qr_str_of(head));
    send_body(fd, QUIRE_SERVER_BODY_BYTES_MAX);
    check_answer(fd, 200, "POST /a 67108864 bytes");
    close(fd);

    snprintf(head, sizeof head, "POST /a" HEADERS "Content-Length: %d\r\n\r\n", QUIRE_SERVER_BODY_BYTES_MAX + 1);
    fd = connect_socket(t->dir);
    send_bytes(fd, qr_str_of(head)); /* refused by its size alone */
    check_answer(fd, 413, "payload_too_large");
    close(fd);

    fd = connect_socket(t->dir);
    snprintf(head, sizeof head, "POST /a" HEADERS "Transfer-Encoding: chunked\r\n\r\n%x\r\n",
             QUIRE_SERVER_BODY_BYTES_MAX + 1);
    send_bytes(fd, qr_str_of(head));
    send_body(fd, QUIRE_SERVER_BODY_BYTES_MAX + 1);
    send_bytes(fd, QR_STR("\r\n0\r\n\r\n"));
    check_answer(fd, 413, "payload_too_large");
    close(fd);
    quire_server_stop(server);
}

QR_TEST(garbage_is_refused_and_harms_nobody)
{
    static const qr_str garbage[] = {
        {"\0\1\2\3\n\n\r\n\r\n", 10},
        {"GET\r\n\r\n", 7},
        {"{\"json\": true}\r\n\r\n", 18},
        {"GET /a HTTP/9.9\r\n\r\n", 19},
        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15},
    };
    struct quire_server *server = start_server(t->dir);
    for (size_t i = 0; i < QR_COUNT(garbage); i++) {
        struct qr_http_response response;
        const int fd = connect_socket(t->dir);
        send_bytes(fd, garbage[i]);
        shutdown(fd, SHUT_WR);
        if (receive(fd, &response)) { /* or closed without a word */
            QR_CHECK(response.status >= 400);
        }
        qr_http_response_done(&response);
        close(fd);
    }
    check_request(t->dir, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    quire_server_stop(server);
}

QR_TEST(head_beyond_the_limit_is_refused)
{
    struct quire_server *server = start_server(t->dir);
    const int fd = connect_socket(t->dir);
    struct qr_http_response response;
    send_bytes(fd, QR_STR("GET /a" HEADERS "X: "));
    send_body(fd, 2 * (size_t)QUIRE_SERVER_HEAD_BYTES_MAX);
    if (receive(fd, &response)) {
        QR_CHECK(response.status == 431 || response.status == 413);
    }
    qr_http_response_done(&response);
    close(fd);
    check_request(t->dir, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    quire_server_stop(server);
}

/* ---- many at once ---- */

QR_TEST(half_a_request_and_a_long_call_hold_up_nobody)
{
    enum { HALVES = 50, LONG = 10 };
    struct quire_server *server = start_server(t->dir);
    int halves[HALVES], waiting[LONG];
    for (int i = 0; i < HALVES; i++) {
        halves[i] = connect_socket(t->dir);
        send_bytes(halves[i], i % 2 ? QR_STR("GET /a HT") : QR_STR("POST /a" HEADERS "Content-Length: 9\r\n\r\n{"));
    }
    for (int i = 0; i < LONG; i++) {
        waiting[i] = connect_socket(t->dir);
        send_bytes(waiting[i], QR_STR("GET /wait" HEADERS "\r\n"));
    }
    wait_until_waiting(LONG);
    check_request(t->dir, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    give_leave();
    for (int i = 0; i < LONG; i++) {
        check_answer(waiting[i], 200, "GET /wait -");
        close(waiting[i]);
    }
    quire_server_stop(server); /* does not wait for the halves */
    for (int i = 0; i < HALVES; i++) {
        close(halves[i]);
    }
}

static void *run_client(void *folder)
{
    for (int i = 0; i < 20; i++) {
        check_request(folder, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    }
    return NULL;
}

QR_TEST(many_clients_are_served_at_once)
{
    enum { CLIENTS = 64 };
    struct quire_server *server = start_server(t->dir);
    pthread_t clients[CLIENTS];
    qr_err err;
    for (int i = 0; i < CLIENTS; i++) {
        QR_CHECK_RC(QR_OK, qr_thread_start(&clients[i], "client", run_client, t->dir, &err));
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i], NULL);
    }
    quire_server_stop(server);
}

QR_TEST(clients_beyond_the_limit_are_hung_up_on_and_the_others_served)
{
    enum { CLIENTS = QUIRE_SERVER_CONNECTIONS_MAX };
    allow_files(2 * CLIENTS + 64);
    struct quire_server *server = start_server(t->dir);
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_socket(t->dir);
        send_bytes(clients[i], QR_STR("GET /wait" HEADERS "Connection: close\r\n\r\n"));
    }
    wait_until_waiting(CLIENTS);
    struct qr_http_response response;
    const int fd = connect_socket(t->dir);
    QR_CHECK(!receive(fd, &response));
    qr_http_response_done(&response);
    close(fd);
    give_leave();
    for (int i = 0; i < CLIENTS; i++) {
        check_answer(clients[i], 200, "GET /wait -");
        close(clients[i]);
    }
    quire_server_stop(server);
}

QR_TEST(client_that_leaves_before_its_answer_harms_nobody)
{
    struct quire_server *server = start_server(t->dir);
    for (int i = 0; i < 10; i++) {
        const int fd = connect_socket(t->dir);
        send_bytes(fd, QR_STR("GET /wait" HEADERS "\r\n"));
        wait_until_waiting(i + 1);
        close(fd);
    }
    give_leave();
    check_request(t->dir, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    quire_server_stop(server);
}

/* ---- the end ---- */

static void *stop_server(void *server)
{
    quire_server_stop(server);
    return NULL;
}

QR_TEST(stopping_waits_for_the_request_that_runs)
{
    struct quire_server *server = start_server(t->dir);
    const int running = connect_socket(t->dir), late = connect_socket(t->dir);
    send_bytes(running, QR_STR("GET /wait" HEADERS "\r\n"));
    wait_until_waiting(1);
    pthread_t stopper;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_thread_start(&stopper, "stopper", stop_server, server, &err));
    int fd;
    while ((fd = try_connect_socket(t->dir)) >= 0) { /* until its name is gone */
        close(fd);
    }
    wait_until_refused(late);
    give_leave();
    check_answer(running, 200, "GET /wait -");
    pthread_join(stopper, NULL);
    close(running);
    close(late);
}

QR_TEST(client_that_does_not_read_its_answer_does_not_keep_the_server_from_stopping)
{
    struct quire_server *server = start_server(t->dir);
    const int fd = connect_socket(t->dir);
    char first;
    send_bytes(fd, QR_STR("GET /big" HEADERS "\r\n"));
    QR_CHECK_INT(1, recv(fd, &first, 1, 0)); /* it is being sent, and has no room for all of it */
    quire_server_stop(server);
    close(fd);
}

/* ---- the socket ---- */

QR_TEST(socket_is_the_users_alone)
{
    umask(0);
    struct quire_server *server = start_server(t->dir);
    struct stat st;
    QR_CHECK(lstat(qr_test_path(t, QR_SOCKET_NAME), &st) == 0);
    QR_CHECK(S_ISSOCK(st.st_mode));
    QR_CHECK_INT(0600, st.st_mode & 07777);
    quire_server_stop(server);
    QR_CHECK(lstat(qr_test_path(t, QR_SOCKET_NAME), &st) != 0 && errno == ENOENT);
}

QR_TEST(what_a_dead_owner_left_is_replaced)
{
    struct qr_socket_address address;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_socket_address_init(&address, t->dir, QR_SOCKET_NAME, &err));
    const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    QR_CHECK(bind(dead, (const struct sockaddr *)&address.un, sizeof address.un) == 0);
    close(dead);
    QR_CHECK_RC(QR_OK,
                qr_fs_replace(qr_io_system(), qr_test_path(t, QR_FS_TEMP_PREFIX "socket"), QR_STR("x"), 0600, &err));
    QR_CHECK_INT(-1, try_connect_socket(t->dir));
    struct quire_server *server = start_server(t->dir);
    check_request(t->dir, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    QR_CHECK(access(qr_test_path(t, QR_FS_TEMP_PREFIX "socket"), F_OK) != 0);
    quire_server_stop(server);
}

QR_TEST(socket_of_somebody_else_is_not_removed)
{
    struct quire_server *first = start_server(t->dir), *second = start_server(t->dir);
    quire_server_stop(first);
    check_request(t->dir, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    quire_server_stop(second);
    QR_CHECK_INT(-1, try_connect_socket(t->dir));
}

QR_TEST(folder_with_a_long_path_is_served)
{
    char name[256], folder[512];
    memset(name, 'x', 200);
    name[200] = '\0';
    snprintf(folder, sizeof folder, "%s/%s", t->dir, name);
    QR_CHECK(mkdir(folder, 0700) == 0);
    struct quire_server *server;
    qr_err err;
    QR_CHECK_RC(QR_OK, quire_server_start(&library, folder, &server, &err));
    check_request(folder, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    quire_server_stop(server);
    QR_CHECK_INT(-1, try_connect_socket(folder));
}

QR_TEST(folder_that_cannot_be_written_is_an_error)
{
    struct quire_server *server = NULL;
    qr_err err;
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, quire_server_start(&library, qr_test_path(t, "missing"), &server, &err));
    QR_CHECK(mkdir(qr_test_path(t, "closed"), 0500) == 0);
    qr_test_become_unprivileged();
    QR_CHECK_CODE(QR_CODE_FORBIDDEN, quire_server_start(&library, qr_test_path(t, "closed"), &server, &err));
    QR_CHECK(!server);
}

QR_TEST(nothing_stays_open_after_the_end)
{
    for (int i = 0; i < 3; i++) {
        quire_server_stop(start_server(t->dir));
        const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        static int first = -1;
        first = first < 0 ? fd : first;
        QR_CHECK_INT(first, fd);
        close(fd);
    }
}

static void start_and_stop(void *arg)
{
    struct qr_test *t = arg;
    struct quire_server *server = NULL;
    qr_err err = {0};
    const qr_rc rc = quire_server_start(&library, t->dir, &server, &err);
    qr_fault_disarm();
    QR_CHECK_INT(qr_fault_fired() ? QR_NOMEM : QR_OK, rc);
    quire_server_stop(server);
    QR_CHECK(access(qr_test_path(t, QR_SOCKET_NAME), F_OK) != 0);
    QR_CHECK(access(qr_test_path(t, QR_FS_TEMP_PREFIX "socket"), F_OK) != 0);
}

QR_TEST(starting_survives_every_failing_allocation)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, start_and_stop, t);
}
