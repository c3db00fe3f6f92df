/* Serves an open data folder on a TCP port: HTTP/1.1, the requests of quire_request_call, for whoever can reach it.
 *
 * T1  Threads that move bytes never work: a request whose body is whole is handed to the pool, its connection suspended
 *     meanwhile (http/pool.h). So neither a long call nor a slow client holds up another. Only /healthz, which needs nothing,
 *     is answered at once: it says that the process lives also when every thread of the pool waits; and an answer that is at
 *     hand (quire_request_recall), which takes less than handing over.
 * T2  Every connection has a deadline at every moment, but while its request is worked on: for the headers, for the body,
 *     for reading the answer, for the next request. Bytes that move give time, at a rate; so a large body is no
 *     trouble, and one byte a second does not keep a connection. Who waits for events has none until there is one.
 * T3  Without a key nobody but this machine is listened to.
 * T4  What can change while it serves changes as a whole or not at all, and disturbs no connection. */
#pragma once

#include "http/exchange.h"

struct quire_port;

enum {
    QUIRE_PORT_IO_THREADS = 2, /* they only move bytes (T1) */
    QUIRE_PORT_MHD_FLAGS = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC,
};

struct quire_port_options {
    const char *listen;                    /* "127.0.0.1:7700", "[::1]:0" */
    const char *hosts;                     /* as struct qr_guard_hosts */
    const char *tls_certificate, *tls_key; /* files, as struct qr_tls_files; NULL = plain HTTP */
    bool has_keys;                         /* T3 */
    int threads;
    int connections_max, address_connections_max;
    int streams_max, address_streams_max; /* of answers without an end, in all and for an address; 0 = any number */
    int64_t address_requests_per_s;
    int64_t request_ms, bytes_per_s_min; /* T2 */
    size_t body_bytes_max;
    int64_t last_answers_ms;  /* how long stopping waits for clients that still send or read */
    const struct qr_log *log; /* NULL = no lines */
    qr_request_fn *call;      /* NULL = quire_request_call */
    qr_request_fn *recall;    /* quire_request_recall; NULL = every request is handed over */
};

/* Begins to serve: once it returns, whoever connects is answered. *ret_port is set only on success. Starts threads, with
 * every signal blocked. `forbidden` by T3. */
qr_rc quire_port_start(struct quire *quire, const struct quire_port_options *options, struct quire_port **ret_port,
                       qr_err *err);
/* T4: takes from `options` hosts, what one address may do, times, the size of bodies, and the certificate, whose files are
 * read again also where they have the same names. The rest is as it was when it began. */
qr_rc quire_port_reload(struct quire_port *port, const struct quire_port_options *options, qr_err *err);
/* "http://127.0.0.1:7700", with the real port; "https://…" with a certificate. */
const char *quire_port_url(const struct quire_port *port);
/* Takes no more connections, refuses requests that come now (`shutting_down`), waits for those that run and for their
 * answers to be sent. Before quire_close. NULL is fine. */
void quire_port_stop(struct quire_port *port);
