/* Addresses of sockets in folders. */
#include "http/address.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static bool write_path(struct sockaddr_un *un, const char *folder, const char *name)
{
    const int len = snprintf(un->sun_path, sizeof un->sun_path, "%s/%s", folder, name);
    return len > 0 && (size_t)len < sizeof un->sun_path;
}

qr_rc qr_socket_address_init(struct qr_socket_address *address, const char *folder, const char *name, qr_err *err)
{
    *address = (struct qr_socket_address){.un.sun_family = AF_UNIX, .folder_fd = -1};
    if (write_path(&address->un, folder, name)) {
        return QR_OK;
    }
    const struct qr_io *io = qr_io_system();
    const int fd = io->open(io, folder, O_PATH | O_DIRECTORY, 0);
    if (fd < 0) {
        return qr_fail_errno(err, errno, "cannot open folder %s", folder);
    }
    char short_folder[sizeof "/proc/self/fd/-2147483648"];
    snprintf(short_folder, sizeof short_folder, "/proc/self/fd/%d", fd);
    address->folder_fd = fd;
    if (!write_path(&address->un, short_folder, name)) {
        qr_socket_address_done(address);
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the name %s is too long for a socket", name);
    }
    return QR_OK;
}

void qr_socket_address_done(struct qr_socket_address *address)
{
    if (address->folder_fd >= 0) {
        qr_io_system()->close(qr_io_system(), address->folder_fd);
        address->folder_fd = -1;
    }
}
