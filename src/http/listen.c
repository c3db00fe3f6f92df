/* Makes and removes <data>/quire.sock.
 *
 * L1  The name quire.sock leads to a socket that listens, or to one whose owner is dead; never to one half made. It is
 *     bound under a temporary name, and renamed when it listens.
 * L2  The socket is this user's alone from birth: bind takes over the mode that fchmod has set. */
#include "http/listen.h"

#include "base/fs.h"
#include "http/address.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* With the prefix that whoever owns the folder next sweeps away, should we die before the renaming. */
#define TEMP_NAME QR_FS_TEMP_PREFIX "socket"

static qr_rc bind_and_listen(int fd, const char *data_dir, qr_err *err)
{
    struct qr_socket_address address;
    QR_TRY(qr_socket_address_init(&address, data_dir, TEMP_NAME, err));
    const bool ok = fchmod(fd, 0600) == 0 && /* L2 */
                    bind(fd, (const struct sockaddr *)&address.un, sizeof address.un) == 0 &&
                    listen(fd, SOMAXCONN) == 0;
    const int failed = errno;
    qr_socket_address_done(&address);
    return ok ? QR_OK : qr_fail_errno(err, failed, "cannot make a socket in %s", data_dir);
}

static qr_rc name_socket(struct qr_listener *listener, const char *temp_path, qr_err *err)
{
    const struct qr_io *io = qr_io_system();
    struct stat st;
    if (lstat(temp_path, &st) != 0 || io->rename(io, temp_path, listener->path.data) != 0) { /* L1 */
        return qr_fail_errno(err, errno, "cannot make the socket %s", listener->path.data);
    }
    listener->device = st.st_dev;
    listener->inode = st.st_ino;
    return QR_OK;
}

static qr_rc open_named(struct qr_listener *listener, const char *data_dir, qr_err *err)
{
    const struct qr_io *io = qr_io_system();
    QR_CLEANUP(qr_buf_done) struct qr_buf temp_path = {0};
    qr_buf_printf(&temp_path, "%s/" TEMP_NAME, data_dir);
    qr_buf_printf(&listener->path, "%s/" QR_SOCKET_NAME, data_dir);
    QR_TRY(qr_buf_check(&temp_path, err));
    QR_TRY(qr_buf_check(&listener->path, err));
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0) {
        return qr_fail_errno(err, errno, "cannot make a socket");
    }
    io->unlink(io, temp_path.data); /* of a start that was killed */
    qr_rc rc = bind_and_listen(listener->fd, data_dir, err);
    if (rc == QR_OK) {
        rc = name_socket(listener, temp_path.data, err);
    }
    if (rc != QR_OK) {
        io->unlink(io, temp_path.data);
    }
    return rc;
}

qr_rc qr_listener_open(struct qr_listener *listener, const char *data_dir, qr_err *err)
{
    *listener = (struct qr_listener){.fd = -1};
    const qr_rc rc = open_named(listener, data_dir, err);
    if (rc != QR_OK) {
        qr_listener_done(listener);
    }
    return rc;
}

void qr_listener_hide(const struct qr_listener *listener)
{
    struct stat st;
    if (lstat(listener->path.data, &st) == 0 && st.st_dev == listener->device && st.st_ino == listener->inode) {
        qr_io_system()->unlink(qr_io_system(), listener->path.data);
    }
}

void qr_listener_done(struct qr_listener *listener)
{
    if (listener->fd >= 0) {
        close(listener->fd);
        listener->fd = -1;
    }
    qr_buf_done(&listener->path);
}
