/* HTTPS on a port, before a stand-in for the library: that it is spoken, the exchange of its certificate while clients are
 * connected, and that clients who speak something else, or slowly, disturb nobody. */
#include "http/tls.h"
#include "http/tls_client.h"
#include "support/front_fixture.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

/* ---- certificates ---- */

struct pair {
    char certificate[192], key[192];
};

static void write_file(const char *path, const gnutls_datum_t *content, mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    QR_CHECK(fd >= 0);
    QR_CHECK_INT(0, fchmod(fd, mode));
    QR_CHECK_INT(content->size, write(fd, content->data, content->size));
    close(fd);
}

static void name_files(const struct qr_test *t, const char *name, struct pair *ret_pair)
{
    snprintf(ret_pair->certificate, sizeof ret_pair->certificate, "%s/%s.pem", t->dir, name);
    snprintf(ret_pair->key, sizeof ret_pair->key, "%s/%s.key", t->dir, name);
}

/* A certificate that names itself, by which it is known again: its serial number. */
static struct pair make_pair(const struct qr_test *t, const char *name, unsigned char serial, time_t expires_at)
{
    struct pair pair;
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
    gnutls_datum_t text;
    name_files(t, name, &pair);
    QR_CHECK_INT(0, gnutls_x509_privkey_init(&key));
    QR_CHECK_INT(
        0, gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    QR_CHECK_INT(0, gnutls_x509_crt_init(&certificate));
    QR_CHECK_INT(0, gnutls_x509_crt_set_version(certificate, 3));
    QR_CHECK_INT(0, gnutls_x509_crt_set_serial(certificate, &serial, 1));
    QR_CHECK_INT(0, gnutls_x509_crt_set_activation_time(certificate, 0));
    QR_CHECK_INT(0, gnutls_x509_crt_set_expiration_time(certificate, expires_at));
    QR_CHECK_INT(0, gnutls_x509_crt_set_dn(certificate, "CN=localhost", NULL));
    QR_CHECK_INT(0, gnutls_x509_crt_set_key(certificate, key));
    QR_CHECK_INT(0, gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0));
    QR_CHECK_INT(0, gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &text));
    write_file(pair.certificate, &text, 0644);
    gnutls_free(text.data);
    QR_CHECK_INT(0, gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text));
    write_file(pair.key, &text, 0600);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
    return pair;
}

static const time_t far_away = 4000000000;

static struct quire_port_options options_with(const struct pair *pair)
{
    struct quire_port_options options = usual_port;
    options.tls_certificate = pair ? pair->certificate : NULL;
    options.tls_key = pair ? pair->key : NULL;
    return options;
}

static struct quire_port *start_with_pair(const struct pair *pair)
{
    const struct quire_port_options options = options_with(pair);
    return start_port(&options);
}

/* ---- clients ---- */

struct client {
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

/* What the handshake says: 0, or the error of GnuTLS. */
static int try_handshake(struct client *client, const struct quire_port *port, const char *priorities)
{
    client->fd = connect_port(port);
    QR_CHECK_INT(0, gnutls_certificate_allocate_credentials(&client->credentials));
    QR_CHECK_INT(0, gnutls_init(&client->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL));
    QR_CHECK_INT(0, gnutls_priority_set_direct(client->session, priorities, NULL));
    QR_CHECK_INT(0, gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->credentials));
    gnutls_transport_set_int(client->session, client->fd);
    int code;
    do {
        code = gnutls_handshake(client->session);
    } while (code < 0 && !gnutls_error_is_fatal(code));
    return code;
}

static void end_client(struct client *client)
{
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->credentials);
    close(client->fd);
}

static struct client begin_client(const struct quire_port *port)
{
    struct client client;
    QR_CHECK_INT(0, try_handshake(&client, port, "NORMAL"));
    return client;
}

/* Of the certificate that the server showed. */
static int serial_of(const struct client *client)
{
    unsigned count;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(client->session, &count);
    gnutls_x509_crt_t certificate;
    unsigned char serial[32];
    size_t len = sizeof serial;
    QR_CHECK(shown && count == 1);
    QR_CHECK_INT(0, gnutls_x509_crt_init(&certificate));
    QR_CHECK_INT(0, gnutls_x509_crt_import(certificate, shown, GNUTLS_X509_FMT_DER));
    QR_CHECK_INT(0, gnutls_x509_crt_get_serial(certificate, serial, &len));
    gnutls_x509_crt_deinit(certificate);
    return serial[len - 1];
}

static void send_tls(struct client *client, qr_str bytes)
{
    while (bytes.len) {
        const ssize_t sent = gnutls_record_send(client->session, bytes.ptr, bytes.len);
        QR_CHECK(sent > 0 || sent == GNUTLS_E_AGAIN || sent == GNUTLS_E_INTERRUPTED);
        const size_t len = sent > 0 ? (size_t)sent : 0;
        bytes = (qr_str){bytes.ptr + len, bytes.len - len};
    }
}

static void receive_tls(struct client *client, struct qr_http_response *ret_response)
{
    char chunk[16384];
    qr_http_response_init(ret_response, 16 << 20);
    while (ret_response->part != QR_HTTP_COMPLETE) {
        const ssize_t got = gnutls_record_recv(client->session, chunk, sizeof chunk);
        qr_err err;
        if (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED) {
            continue;
        }
        QR_CHECK(got > 0);
        QR_CHECK_RC(QR_OK, qr_http_response_add(ret_response, (qr_str){chunk, (size_t)got}, &err));
    }
}

static void check_tls_answer(struct client *client, int status, const char *has)
{
    struct qr_http_response response;
    receive_tls(client, &response);
    QR_CHECK_INT(status, response.status);
    QR_CHECK_HAS(has, qr_buf_str(&response.body).ptr);
    qr_http_response_done(&response);
}

static void ask(struct client *client, const char *request, int status, const char *has)
{
    send_tls(client, qr_str_of(request));
    check_tls_answer(client, status, has);
}

static void check_served_by(const struct quire_port *port, int serial)
{
    struct client client = begin_client(port);
    QR_CHECK_INT(serial, serial_of(&client));
    ask(&client, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    end_client(&client);
}

static bool is_closed(int fd)
{
    char bytes[64];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0) { /* an alert */
    }
    return got <= 0;
}

/* ---- requests ---- */

QR_TEST(requests_are_answered_over_tls) /* HTTP-10 */
{
    const struct pair pair = make_pair(t, "one", 1, far_away);
    struct quire_port *port = start_with_pair(&pair);
    QR_CHECK(strncmp(quire_port_url(port), "https://127.0.0.1:", strlen("https://127.0.0.1:")) == 0);
    struct client client = begin_client(port);
    ask(&client, "GET /who" HEADERS "X-Request-Id: mine-1\r\n\r\n", 200, "owner 0 from 127.0.0.1 key - id mine-1");
    for (int i = 0; i < 20; i++) {
        ask(&client, "POST /a" HEADERS "Content-Length: 2\r\n\r\n{}", 200, "POST /a {}");
    }
    ask(&client, "GET /big" HEADERS "\r\n", 200, "GET /big");
    ask(&client, "GET /../a" HEADERS "\r\n", 400, "bad_request");
    end_client(&client);
    quire_port_stop(port);
}

QR_TEST(files_are_handed_on_over_tls)
{
    enum { SIZE = 4 << 20 };
    const struct pair pair = make_pair(t, "one", 1, far_away);
    struct quire_port *port = start_with_pair(&pair);
    struct client client = begin_client(port);
    char *zeros = calloc(1, SIZE);
    QR_CHECK(zeros);
    send_tls(&client, QR_STR("POST /stream" HEADERS "Content-Length: 4194304\r\n\r\n"));
    send_tls(&client, (qr_str){zeros, SIZE});
    check_tls_answer(&client, 202, "4194304 bytes in pieces");
    free(zeros);
    end_client(&client);
    quire_port_stop(port);
}

QR_TEST(answer_in_pieces_is_whole_over_tls) /* HTTP-9 */
{
    const struct pair pair = make_pair(t, "one", 1, far_away);
    struct quire_port *port = start_with_pair(&pair);
    struct client client = begin_client(port);
    send_tls(&client, QR_STR("GET /pieces" HEADERS "\r\n"));
    struct qr_http_response response;
    receive_tls(&client, &response);
    QR_CHECK_INT(200, response.status);
    QR_CHECK_INT(PIECES_BYTES, (int64_t)strspn(response.body.data, "x"));
    qr_http_response_done(&response);
    ask(&client, "GET /a" HEADERS "\r\n", 200, "GET /a -"); /* the connection goes on */
    end_client(&client);
    quire_port_stop(port);
}

static void receive_until(struct client *client, const char *text)
{
    char all[4096] = "";
    size_t len = 0;
    while (!strstr(all, text)) {
        const ssize_t got = gnutls_record_recv(client->session, all + len, sizeof all - 1 - len);
        QR_CHECK(got > 0 || got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED);
        len += got > 0 ? (size_t)got : 0;
        all[len] = '\0';
    }
}

/* Its connection is set aside while there is nothing to send, also when the certificate is another one meanwhile. */
QR_TEST(events_come_over_tls) /* EVENT-5 */
{
    const struct pair pair = make_pair(t, "one", 1, far_away), other = make_pair(t, "two", 2, far_away);
    const struct quire_port_options next = options_with(&other);
    struct quire_port *port = start_with_pair(&pair);
    struct client client = begin_client(port);
    qr_err err;
    send_tls(&client, QR_STR("GET /feed" HEADERS "\r\n"));
    receive_until(&client, "200 OK");
    publish();
    receive_until(&client, "event 1\n");
    QR_CHECK_RC(QR_OK, quire_port_reload(port, &next, &err));
    check_served_by(port, 2);
    publish();
    receive_until(&client, "event 2\n");
    quire_port_stop(port);
    end_client(&client);
}

QR_TEST(only_tls_1_2_and_later_are_spoken) /* HTTP-10 */
{
    static const struct {
        const char *priorities;
        bool is_taken;
    } cases[] = {
        {"NORMAL:-VERS-ALL:+VERS-TLS1.3", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0", false},
    };
    const struct pair pair = make_pair(t, "one", 1, far_away);
    struct quire_port *port = start_with_pair(&pair);
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct client client;
        QR_CHECK_INT(cases[i].is_taken, try_handshake(&client, port, cases[i].priorities) == 0);
        end_client(&client);
    }
    quire_port_stop(port);
}

/* T1 and HTTP-3 hold here too: the connection is set aside in the middle of TLS. */
QR_TEST(stopping_waits_for_the_request_that_runs_over_tls) /* HTTP-3 */
{
    const struct pair pair = make_pair(t, "one", 1, far_away);
    struct quire_port *port = start_with_pair(&pair);
    struct client client = begin_client(port);
    send_tls(&client, QR_STR("GET /wait" HEADERS "\r\n"));
    wait_until_waiting(1);
    check_served_by(port, 1);
    give_leave();
    quire_port_stop(port);
    check_tls_answer(&client, 200, "GET /wait -");
    end_client(&client);
}

/* ---- the certificate is exchanged ---- */

QR_TEST(new_certificate_is_for_new_connections_and_the_others_go_on) /* HTTP-10 */
{
    const struct pair first = make_pair(t, "one", 1, far_away), second = make_pair(t, "two", 2, far_away);
    const struct quire_port_options options = options_with(&second);
    struct quire_port *port = start_with_pair(&first);
    struct client before = begin_client(port);
    qr_err err;
    QR_CHECK_INT(1, serial_of(&before));
    QR_CHECK_RC(QR_OK, quire_port_reload(port, &options, &err));
    check_served_by(port, 2);
    ask(&before, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    end_client(&before);
    /* the same names with other content, as programs that get certificates put them there */
    QR_CHECK_INT(0, rename(first.certificate, second.certificate));
    QR_CHECK_INT(0, rename(first.key, second.key));
    check_served_by(port, 2);
    QR_CHECK_RC(QR_OK, quire_port_reload(port, &options, &err));
    check_served_by(port, 1);
    quire_port_stop(port);
}

struct comers {
    const struct quire_port *port;
    _Atomic bool is_over;
};

static void *come_and_go(void *arg)
{
    const struct comers *comers = arg;
    while (!comers->is_over) {
        struct client client = begin_client(comers->port);
        ask(&client, "GET /a" HEADERS "\r\n", 200, "GET /a -");
        end_client(&client);
    }
    return NULL;
}

QR_TEST(exchange_meets_handshakes) /* HTTP-10 */
{
    const struct pair pairs[] = {make_pair(t, "one", 1, far_away), make_pair(t, "two", 2, far_away)};
    struct quire_port *port = start_with_pair(&pairs[0]);
    struct comers comers = {.port = port};
    pthread_t threads[2];
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        QR_CHECK_INT(0, pthread_create(&threads[i], NULL, come_and_go, &comers));
    }
    for (int i = 1; i <= 15; i++) {
        const struct quire_port_options options = options_with(&pairs[i % 2]);
        qr_err err;
        QR_CHECK_RC(QR_OK, quire_port_reload(port, &options, &err));
        check_served_by(port, i % 2 + 1);
    }
    comers.is_over = true;
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    quire_port_stop(port);
}

/* Each is refused at the start too. */
QR_TEST(what_cannot_be_used_changes_nothing) /* HTTP-10 */
{
    static const gnutls_datum_t no_pem = {(unsigned char *)"no certificate", 14};
    const struct pair good = make_pair(t, "good", 1, far_away), other = make_pair(t, "other", 2, far_away);
    struct pair garbage, missing, open = make_pair(t, "open", 3, far_away);
    name_files(t, "garbage", &garbage);
    name_files(t, "missing", &missing);
    write_file(garbage.certificate, &no_pem, 0644);
    write_file(garbage.key, &no_pem, 0600);
    QR_CHECK_INT(0, chmod(open.key, 0644));
    const struct {
        const char *certificate, *key, *says;
    } cases[] = {
        {missing.certificate, good.key, "missing.pem"},     {good.certificate, missing.key, "missing.key"},
        {garbage.certificate, good.key, "garbage.pem"},     {good.certificate, garbage.key, "garbage.key"},
        {good.certificate, other.key, "is not the key of"}, {open.certificate, open.key, "by everybody"},
    };
    struct quire_port *port = start_with_pair(&good), *none = NULL;
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct quire_port_options options = options_with(&good);
        qr_err err;
        options.tls_certificate = cases[i].certificate;
        options.tls_key = cases[i].key;
        options.request_ms = 1; /* none of it is taken: with this nobody would be answered */
        options.body_bytes_max = 0;
        QR_CHECK(quire_port_reload(port, &options, &err) != QR_OK);
        QR_CHECK_HAS(cases[i].says, err.msg);
        check_served_by(port, 1);
        QR_CHECK(quire_port_start(&library, &options, &none, &err) != QR_OK);
        QR_CHECK_HAS(cases[i].says, err.msg);
    }
    quire_port_stop(port);
}

QR_TEST(expired_certificate_is_told_of)
{
    const struct pair pair = make_pair(t, "old", 1, 1000000000), good = make_pair(t, "new", 2, far_away);
    struct quire_port_options options = options_with(&pair), next = options_with(&good);
    char text[1024] = "";
    int pipes[2];
    qr_err err;
    QR_CHECK_INT(0, pipe(pipes));
    const struct qr_log log = {.fd = pipes[1], .clock = qr_clock_system()};
    options.log = &log;
    struct quire_port *port = start_port(&options);
    QR_CHECK(read(pipes[0], text, sizeof text - 1) > 0);
    QR_CHECK_HAS("certificate_expired", text);
    QR_CHECK_HAS("until=2001-09-09T01:46:40", text);
    QR_CHECK_RC(QR_OK, quire_port_reload(port, &next, &err));
    memset(text, 0, sizeof text);
    QR_CHECK(read(pipes[0], text, sizeof text - 1) > 0);
    QR_CHECK_HAS("certificate_in_force", text);
    QR_CHECK_HAS("new.pem", text);
    quire_port_stop(port);
    close(pipes[0]);
    close(pipes[1]);
}

/* ---- other clients ---- */

QR_TEST(plain_http_to_a_tls_port_disturbs_nobody) /* HTTP-10 */
{
    const struct pair pair = make_pair(t, "one", 1, far_away);
    struct quire_port *port = start_with_pair(&pair);
    struct client good = begin_client(port);
    for (int i = 0; i < 10; i++) {
        const int fd = connect_port(port);
        send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
        QR_CHECK(is_closed(fd));
        close(fd);
    }
    ask(&good, "GET /a" HEADERS "\r\n", 200, "GET /a -");
    end_client(&good);
    quire_port_stop(port);
}

QR_TEST(tls_to_a_plain_port_disturbs_nobody) /* HTTP-10 */
{
    struct quire_port *port = start_with_pair(NULL);
    QR_CHECK(strncmp(quire_port_url(port), "http://", strlen("http://")) == 0);
    const int fd = connect_port(port);
    struct client client;
    QR_CHECK(try_handshake(&client, port, "NORMAL") < 0);
    end_client(&client);
    send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
    check_answer(fd, 200, "GET /a -");
    close(fd);
    quire_port_stop(port);
}

QR_TEST(slow_handshakes_are_hung_up_on) /* HTTP-2 */
{
    enum { CLIENTS = 20 };
    const struct pair pair = make_pair(t, "one", 1, far_away);
    struct quire_port_options options = options_with(&pair);
    options.request_ms = 500;
    struct quire_port *port = start_port(&options);
    int clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = connect_port(port);
        send_bytes(clients[i], i % 2 ? QR_STR("\x16\x03\x01\x02\x00\x01") : QR_STR("")); /* the head of a hello */
    }
    struct client idle = begin_client(port); /* and one that shakes hands and then says nothing */
    check_served_by(port, 1);
    for (int i = 0; i < CLIENTS; i++) {
        QR_CHECK(is_closed(clients[i]));
        close(clients[i]);
    }
    QR_CHECK(is_closed(idle.fd));
    end_client(&idle);
    quire_port_stop(port);
}

static int free_descriptor(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    QR_CHECK(fd >= 0);
    close(fd);
    return fd;
}

QR_TEST(clients_that_vanish_leave_nothing_over_tls) /* HTTP-2 */
{
    const struct pair pair = make_pair(t, "one", 1, far_away);
    struct quire_port_options options = options_with(&pair);
    options.request_ms = 600000;
    struct quire_port *port = start_port(&options);
    check_served_by(port, 1);
    const int before = free_descriptor();
    for (int i = 0; i < 5; i++) {
        close(connect_port(port));
        const int fd = connect_port(port);
        send_bytes(fd, QR_STR("\x16\x03\x01\x02\x00\x01"));
        close(fd);
        struct client client = begin_client(port);
        end_client(&client);
        client = begin_client(port);
        send_tls(&client, QR_STR("GET /big" HEADERS "\r\n"));
        end_client(&client);
        client = begin_client(port);
        send_tls(&client, QR_STR("POST /stream" HEADERS "Content-Length: 9\r\n\r\n{"));
        end_client(&client);
    }
    check_served_by(port, 1);
    while (free_descriptor() > before) { /* long before the deadline */
        usleep(1000);
    }
    quire_port_stop(port);
    QR_CHECK_INT(0, library.streams);
}

/* ---- our own client ---- */

QR_TEST(client_speaks_only_to_the_server_that_it_asked_for)
{
    const struct pair pair = make_pair(t, "one", 1, far_away), other = make_pair(t, "other", 2, far_away);
    const struct {
        const char *host, *trusted;
        bool is_known;
    } cases[] = {{"localhost", pair.certificate, true},
                 {"other.example", pair.certificate, false},
                 {"localhost", other.certificate, false},
                 {"localhost", "/nonexistent", false}};
    struct quire_port *port = start_with_pair(&pair);
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        const struct qr_tls_client_options options = {
            .host = cases[i].host, .trust_file = cases[i].trusted, .timeout_ms = 60000};
        struct qr_tls_client *client = NULL;
        qr_err err;
        char answer[64];
        const int fd = connect_port(port);
        const qr_rc rc = qr_tls_client_open(&client, fd, &options, &err);
        QR_CHECK_INT(cases[i].is_known, rc == QR_OK);
        if (client) {
            const qr_str request = QR_STR("GET /a" HEADERS "Connection: close\r\n\r\n");
            QR_CHECK_INT(request.len, qr_tls_client_send(client, request.ptr, request.len));
            QR_CHECK(qr_tls_client_recv(client, answer, sizeof answer) > 12 && memcmp(answer, "HTTP/1.1 200", 12) == 0);
            while (qr_tls_client_recv(client, answer, sizeof answer) > 0) {
            }
        }
        qr_tls_client_close(client);
        close(fd);
    }
    quire_port_stop(port);
}

/* ---- the other settings ---- */

QR_TEST(new_settings_are_for_the_next_request) /* HTTP-11 */
{
    struct quire_port_options options = options_with(NULL);
    struct quire_port *port = start_port(&options);
    const int fd = connect_port(port);
    qr_err err;
    send_bytes(fd, QR_STR("GET /a HTTP/1.1\r\nHost: wiki.example\r\n\r\n"));
    check_answer(fd, 421, "foreign_host");
    close(fd);
    const int other = connect_port(port);
    send_bytes(other, QR_STR("POST /a" HEADERS "Content-Length: 3\r\n\r\n123"));
    check_answer(other, 200, "POST /a 123");
    char hosts[] = "wiki.example";
    options.hosts = hosts;
    options.body_bytes_max = 2;
    options.address_requests_per_s = 1;
    QR_CHECK_RC(QR_OK, quire_port_reload(port, &options, &err));
    memset(hosts, 'x', sizeof hosts - 1); /* it has its own copy */
    send_bytes(other, QR_STR("GET /a HTTP/1.1\r\nHost: wiki.example\r\n\r\n"));
    check_answer(other, 200, "GET /a -");
    send_bytes(other, QR_STR("POST /a" HEADERS "Content-Length: 3\r\n\r\n123"));
    check_answer(other, 413, "payload_too_large");
    close(other);
    const int last = connect_port(port);
    int status = 200;
    for (int i = 0; i < 3 && status == 200; i++) { /* two at once may come */
        struct qr_http_response response;
        send_bytes(last, QR_STR("GET /a" HEADERS "\r\n"));
        QR_CHECK(receive(last, &response));
        status = response.status;
        qr_http_response_done(&response);
    }
    QR_CHECK_INT(429, status);
    close(last);
    quire_port_stop(port);
}

QR_TEST(new_limit_of_connections_is_for_the_next_one) /* HTTP-11 */
{
    struct quire_port_options options = options_with(NULL);
    struct quire_port *port = start_port(&options);
    const int fd = connect_port(port);
    qr_err err;
    send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
    check_answer(fd, 200, "GET /a -");
    options.address_connections_max = 1;
    QR_CHECK_RC(QR_OK, quire_port_reload(port, &options, &err));
    const int refused = connect_port(port);
    QR_CHECK(is_closed(refused));
    close(refused);
    send_bytes(fd, QR_STR("GET /a" HEADERS "\r\n"));
    check_answer(fd, 200, "GET /a -"); /* who is there stays */
    close(fd);
    quire_port_stop(port);
}
