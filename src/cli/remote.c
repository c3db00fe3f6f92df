/* The client side of the socket: a connection a request, so that there is nothing to keep in step with the owner. */
#include "cli/remote.h"

#include "base/config.h"
#include "http/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- the connection ---- */

static void set_send_timeout(int fd, int timeout_ms)
{
    const struct timeval value = {.tv_sec = timeout_ms / 1000, .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value); /* 0 = none; connecting obeys it too */
}

static qr_rc connect_to(const struct qr_socket_address *address, int *ret_fd, qr_err *err)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return qr_fail_errno(err, errno, "cannot make a socket");
    }
    set_send_timeout(fd, CLI_REMOTE_CONNECT_MS);
    if (TEMP_FAILURE_RETRY(connect(fd, (const struct sockaddr *)&address->un, sizeof address->un)) != 0) {
        close(fd);
        return qr_fail(err, QR_CODE_UNAVAILABLE, "the process that owned the data folder does not answer any more");
    }
    set_send_timeout(fd, 0);
    *ret_fd = fd;
    return QR_OK;
}

/* The first of its addresses that answers. */
static qr_rc connect_to_server(struct cli_remote *remote, qr_err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int failed = getaddrinfo(remote->host, remote->port, &hints, &found);
    if (failed) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "the server %s cannot be found: %s", remote->host,
                       gai_strerror(failed));
    }
    for (const struct addrinfo *at = found; at && remote->fd < 0; at = at->ai_next) {
        const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0) {
            set_send_timeout(fd, CLI_REMOTE_CONNECT_MS);
        }
        if (fd >= 0 && TEMP_FAILURE_RETRY(connect(fd, at->ai_addr, at->ai_addrlen)) == 0) {
            set_send_timeout(fd, 0);
            remote->fd = fd;
        } else if (fd >= 0) {
            close(fd);
        }
    }
    freeaddrinfo(found);
    return remote->fd >= 0 ? QR_OK
                           : qr_fail(err, QR_CODE_UNAVAILABLE, "the server %s does not answer on port %s", remote->host,
                                     remote->port);
}

static qr_rc begin_tls(struct cli_remote *remote, qr_err *err)
{
    const char *trusted = getenv("SSL_CERT_FILE");
    const struct qr_tls_client_options options = {
        .host = remote->host, .trust_file = trusted && *trusted ? trusted : NULL, .timeout_ms = CLI_REMOTE_CONNECT_MS};
    const qr_rc rc = qr_tls_client_open(&remote->tls, remote->fd, &options, err);
    if (rc != QR_OK) {
        cli_remote_close(remote);
    }
    return rc;
}

static qr_rc connect_remote(struct cli_remote *remote, qr_err *err)
{
    struct qr_socket_address address;
    if (!remote->data_dir) {
        QR_TRY(connect_to_server(remote, err));
        return remote->is_https ? begin_tls(remote, err) : QR_OK;
    }
    QR_TRY(qr_socket_address_init(&address, remote->data_dir, QR_SOCKET_NAME, err));
    const qr_rc rc = connect_to(&address, &remote->fd, err);
    qr_socket_address_done(&address);
    return rc;
}

qr_rc cli_remote_open(struct cli_remote *remote, const char *data_dir, qr_err *err)
{
    *remote = (struct cli_remote){.data_dir = data_dir, .fd = -1};
    return connect_remote(remote, err);
}

/* The part between "://" and a slash: HOST, HOST:PORT, [::1]:PORT. */
static bool split_authority(struct cli_remote *remote, qr_str authority)
{
    const char *end = authority.len && authority.ptr[0] == '[' ? memchr(authority.ptr, ']', authority.len) : NULL;
    qr_str host = {authority.ptr + (end ? 1 : 0), 0};
    qr_str port = authority;
    if (end) {
        host.len = (size_t)(end - host.ptr);
        port = (qr_str){end + 1, authority.len - host.len - 2};
        (void)qr_str_split(&port, ':');
    } else {
        host = qr_str_split(&port, ':');
    }
    int64_t number = remote->is_https ? 443 : 80;
    if (host.len == 0 || host.len >= sizeof remote->host ||
        (port.len && (!qr_str_to_i64(port, &number) || number < 1 || number > 65535))) {
        return false;
    }
    snprintf(remote->host, sizeof remote->host, "%.*s", QR_STR_ARG(host));
    snprintf(remote->port, sizeof remote->port, "%d", (int)number);
    return true;
}

qr_rc cli_remote_open_server(struct cli_remote *remote, const char *url, qr_str key, qr_err *err)
{
    *remote = (struct cli_remote){.fd = -1, .is_https = qr_str_starts_with(qr_str_of(url), QR_STR("https://"))};
    const bool is_http = remote->is_https || qr_str_starts_with(qr_str_of(url), QR_STR("http://"));
    qr_str rest = qr_str_of(is_http ? strstr(url, "://") + strlen("://") : "");
    const qr_str authority = qr_str_split(&rest, '/');
    if (!is_http || rest.len || !split_authority(remote, authority)) {
        return qr_fail(err, QR_CODE_USAGE, "--server takes http://HOST:PORT or https://HOST:PORT");
    }
    if (key.len >= sizeof remote->key || !qr_config_is_plain(key.len ? key : QR_STR("none"))) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "the key for the server is not one");
    }
    snprintf(remote->key, sizeof remote->key, "%.*s", QR_STR_ARG(key));
    return connect_remote(remote, err);
}

void cli_remote_close(struct cli_remote *remote)
{
    qr_tls_client_close(remote->tls);
    remote->tls = NULL;
    if (remote->fd >= 0) {
        close(remote->fd);
        remote->fd = -1;
    }
}

/* ---- requests ---- */

/* Nothing in the path may end the line that it stands in. */
static qr_rc write_head(const struct cli_remote *remote, struct qr_buf *head, const char *method, const char *path,
                        size_t body_len, qr_err *err)
{
    for (const char *at = path; *at; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7f) {
            return qr_fail(err, QR_CODE_BAD_REQUEST, "a path has no spaces and no control characters");
        }
    }
    qr_buf_printf(head, "%s %s HTTP/1.1\r\nConnection: close\r\n", method, path);
    if (remote->data_dir) {
        qr_buf_add_text(head, "Host: quire\r\n");
    } else {
        qr_buf_printf(head, strchr(remote->host, ':') ? "Host: [%s]:%s\r\n" : "Host: %s:%s\r\n", remote->host,
                      remote->port);
    }
    if (remote->key[0]) {
        qr_buf_printf(head, "Authorization: Bearer %s\r\n", remote->key);
    }
    qr_buf_printf(head, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body_len);
    return qr_buf_check(head, err);
}

/* An owner that has heard enough closes, perhaps after it has said why: that is for the reader to find. */
static qr_rc send_all(struct cli_remote *remote, qr_str bytes, qr_err *err)
{
    while (bytes.len) {
        const ssize_t sent = remote->tls ? qr_tls_client_send(remote->tls, bytes.ptr, bytes.len)
                                         : TEMP_FAILURE_RETRY(send(remote->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL));
        if (sent < 0) {
            return errno == EPIPE || errno == ECONNRESET
                       ? QR_OK
                       : qr_fail_errno(err, errno, "cannot send to the process that owns the data folder");
        }
        bytes = (qr_str){bytes.ptr + sent, bytes.len - (size_t)sent};
    }
    return QR_OK;
}

static qr_rc receive(struct cli_remote *remote, struct qr_http_response *response, qr_err *err)
{
    char chunk[16 * 1024];
    while (response->part != QR_HTTP_COMPLETE) {
        const ssize_t got = remote->tls ? qr_tls_client_recv(remote->tls, chunk, sizeof chunk)
                                        : TEMP_FAILURE_RETRY(recv(remote->fd, chunk, sizeof chunk, 0));
        if (got > 0) {
            QR_TRY(qr_http_response_add(response, (qr_str){chunk, (size_t)got}, err));
        } else if (got < 0 && errno != ECONNRESET) {
            return qr_fail_errno(err, errno, "cannot read from the process that owns the data folder");
        } else if (qr_http_response_end(response, err) != QR_OK) {
            return qr_fail(
                err, QR_CODE_UNAVAILABLE,
                "the process that owns the data folder ended before it answered: the request may have taken effect "
                "or not");
        }
    }
    return QR_OK;
}

qr_rc cli_remote_call(struct cli_remote *remote, const char *method, const char *path, const char *body,
                      struct qr_http_response *ret_response, qr_err *err)
{
    const qr_str content = qr_str_of(body);
    QR_CLEANUP(qr_buf_done) struct qr_buf head = {0};
    qr_http_response_init(ret_response, CLI_REMOTE_ANSWER_BYTES_MAX);
    QR_TRY(write_head(remote, &head, method, path, content.len, err));
    if (remote->fd < 0) {
        QR_TRY(connect_remote(remote, err));
    }
    qr_rc rc = send_all(remote, qr_buf_str(&head), err);
    if (rc == QR_OK) {
        rc = send_all(remote, content, err);
    }
    if (rc == QR_OK) {
        rc = receive(remote, ret_response, err);
    }
    cli_remote_close(remote);
    return rc;
}

/* ---- following events ---- */

void cli_remote_follow(const struct cli_remote *remote, struct cli_follow *ret_follow)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf head = {0};
    struct cli_remote other = *remote;
    *ret_follow = (struct cli_follow){.fd = -1};
    other.fd = -1;
    other.tls = NULL;
    if (remote->is_https || write_head(&other, &head, "GET", "/api/v1/events", 0, NULL) != QR_OK ||
        connect_remote(&other, NULL) != QR_OK) {
        return;
    }
    if (send_all(&other, qr_buf_str(&head), NULL) == QR_OK) {
        ret_follow->fd = other.fd;
    } else {
        cli_remote_close(&other);
    }
}

void cli_follow_close(struct cli_follow *follow)
{
    if (follow->fd >= 0) {
        close(follow->fd);
        follow->fd = -1;
    }
}

/* What happened is asked for elsewhere: that something did is enough. An answer that is none of events ends it. */
void cli_follow_read(struct cli_follow *follow)
{
    static const char wanted[] = "HTTP/1.1 200";
    char bytes[4096];
    ssize_t got;
    while ((got = recv(follow->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        const bool is_answer =
            follow->has_begun || (got >= (ssize_t)strlen(wanted) && memcmp(bytes, wanted, strlen(wanted)) == 0);
        follow->has_begun = true;
        if (!is_answer) {
            break;
        }
    }
    if (got >= 0 || (errno != EAGAIN && errno != EINTR)) {
        cli_follow_close(follow);
    }
}
