/* The client side of the socket: a connection a request, so that there is nothing to keep in step with the owner. */
#include "cli/remote.h"

#include "http/address.h"

#include <errno.h>
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

static qr_rc connect_remote(struct cli_remote *remote, qr_err *err)
{
    struct qr_socket_address address;
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

void cli_remote_close(struct cli_remote *remote)
{
    if (remote->fd >= 0) {
        close(remote->fd);
        remote->fd = -1;
    }
}

/* ---- requests ---- */

/* Nothing in the path may end the line that it stands in. */
static qr_rc write_head(struct qr_buf *head, const char *method, const char *path, size_t body_len, qr_err *err)
{
    for (const char *at = path; *at; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7f) {
            return qr_fail(err, QR_CODE_BAD_REQUEST, "a path has no spaces and no control characters");
        }
    }
    qr_buf_printf(head, "%s %s HTTP/1.1\r\nHost: quire\r\nConnection: close\r\n", method, path);
    qr_buf_printf(head, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body_len);
    return qr_buf_check(head, err);
}

/* An owner that has heard enough closes, perhaps after it has said why: that is for the reader to find. */
static qr_rc send_all(int fd, qr_str bytes, qr_err *err)
{
    while (bytes.len) {
        const ssize_t sent = TEMP_FAILURE_RETRY(send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL));
        if (sent < 0) {
            return errno == EPIPE || errno == ECONNRESET
                       ? QR_OK
                       : qr_fail_errno(err, errno, "cannot send to the process that owns the data folder");
        }
        bytes = (qr_str){bytes.ptr + sent, bytes.len - (size_t)sent};
    }
    return QR_OK;
}

static qr_rc receive(int fd, struct qr_http_response *response, qr_err *err)
{
    char chunk[16 * 1024];
    while (response->part != QR_HTTP_COMPLETE) {
        const ssize_t got = TEMP_FAILURE_RETRY(recv(fd, chunk, sizeof chunk, 0));
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
    QR_TRY(write_head(&head, method, path, content.len, err));
    if (remote->fd < 0) {
        QR_TRY(connect_remote(remote, err));
    }
    qr_rc rc = send_all(remote->fd, qr_buf_str(&head), err);
    if (rc == QR_OK) {
        rc = send_all(remote->fd, content, err);
    }
    if (rc == QR_OK) {
        rc = receive(remote->fd, ret_response, err);
    }
    cli_remote_close(remote);
    return rc;
}
