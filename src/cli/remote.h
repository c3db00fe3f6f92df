/* Requests to the process that owns the data folder, over its socket (http/server.h), or to a server (http/port.h). */
#pragma once

#include "http/response.h"
#include "http/tls_client.h"

enum {
    CLI_REMOTE_CONNECT_MS = 5000, /* an owner that does not even accept is taken for none */
    CLI_REMOTE_ANSWER_BYTES_MAX = 256 << 20,
};

struct cli_remote {
    const char *data_dir; /* the caller's; NULL = a server */
    char host[256], port[8];
    char key[300]; /* for the server; "" = none */
    bool is_https;
    int fd;                    /* of the next request; -1 = not connected */
    struct qr_tls_client *tls; /* over it; NULL = plain HTTP, or not connected */
};

/* Connects. `unavailable` when nobody is there. On failure there is nothing to close. */
qr_rc cli_remote_open(struct cli_remote *remote, const char *data_dir, qr_err *err);
/* "http://127.0.0.1:7700" or "https://…", the port may be left out. HTTPS trusts whom the system trusts, or SSL_CERT_FILE. `usage` for another form, `bad_request` for what is no key. */
qr_rc cli_remote_open_server(struct cli_remote *remote, const char *url, qr_str key, qr_err *err);
void cli_remote_close(struct cli_remote *remote);

/* Sends a request and waits for the answer, as long as it takes: Ctrl-C ends the waiting. `body` may be NULL. The answer
 * is to be released also after a failure. */
qr_rc cli_remote_call(struct cli_remote *remote, const char *method, const char *path, const char *body,
                      struct qr_http_response *ret_response, qr_err *err);

/* A connection on which the owner or the server says that something has happened. */
struct cli_follow {
    int fd;         /* readable: look again. -1 = there is none, or it has ended */
    bool has_begun; /* the answer's */
};

/* There is none where it cannot be had, or over HTTPS: then looking now and then has to do. */
void cli_remote_follow(const struct cli_remote *remote, struct cli_follow *ret_follow);
/* Forgets what was said. */
void cli_follow_read(struct cli_follow *follow);
void cli_follow_close(struct cli_follow *follow);
