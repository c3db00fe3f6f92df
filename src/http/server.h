/* Serves an open data folder on its socket, <data>/quire.sock: HTTP/1.1, the requests of quire_call, for this user only
 * (mode 0600). So a second program works through the process that owns the folder. */
#pragma once

#include "base/err.h"

#include <quire/quire.h>

struct quire_server;

enum {
    QUIRE_SERVER_BODY_BYTES_MAX = 64 << 20, /* as qr_json_parse takes at most */
    QUIRE_SERVER_HEAD_BYTES_MAX = 32 << 10, /* request line and headers; libmicrohttpd wipes as much after each */
    QUIRE_SERVER_CONNECTIONS_MAX = 512,     /* each has a thread; whoever comes then is hung up on */
    QUIRE_SERVER_STREAMS_MAX = 128,         /* of these, that follow events */
    QUIRE_SERVER_IDLE_S = 30,               /* a connection on which nothing moves is closed */
    QUIRE_SERVER_LAST_ANSWERS_MS = 2000,    /* how long stopping waits for clients that do not read */
};

/* Begins to serve: once it returns, whoever connects is answered. For the process that holds the folder's lock: a socket
 * that is there already is left over from a dead owner, and is replaced. `data_dir` is the folder that `quire` has open.
 * *ret_server is set only on success. Starts threads, with every signal blocked. */
qr_rc quire_server_start(struct quire *quire, const char *data_dir, struct quire_server **ret_server, qr_err *err);

/* Removes the socket, refuses requests that come now (`shutting_down`), waits for those that run and for their answers
 * to be sent. Before quire_close. NULL is fine. */
void quire_server_stop(struct quire_server *server);
