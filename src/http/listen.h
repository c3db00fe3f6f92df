/* The listening socket in a data folder. Private to the server. */
#pragma once

#include "base/buf.h"

#include <sys/types.h>

struct qr_listener {
    int fd;             /* whoever serves it takes it, and sets -1 */
    struct qr_buf path; /* <data>/quire.sock */
    dev_t device;
    ino_t inode; /* of the socket that we made */
};

/* Nobody meets a socket that does not listen yet: it gets its name when it does. On failure there is nothing to release.
 */
qr_rc qr_listener_open(struct qr_listener *listener, const char *data_dir, qr_err *err);
/* Removes the socket's name, unless somebody has put another there; nobody can connect any more. */
void qr_listener_hide(const struct qr_listener *listener);
void qr_listener_done(struct qr_listener *listener);
