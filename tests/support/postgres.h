/* A real PostgreSQL server of the tests' own: in a temporary folder, on a Unix socket, run by an unprivileged user. It
 * ends with the process that started it. */
#pragma once

#include "base/compiler.h"

#include <sys/types.h>

struct qr_pg {
    char dir[96]; /* holds the data and the socket; "" = not started */
    bool fsync;   /* set before qr_pg_start: off is enough where the server is not crashed */
    pid_t postmaster;
};

bool qr_pg_installed(void);

/* Creates a database cluster in a new folder below `parent` (NULL = the system's temporary folder; keep it short, a
 * socket's path ends at 107 bytes), starts the server and waits until it answers. Ends the test, or the whole run when
 * called outside one, on failure. */
void qr_pg_start(struct qr_pg *pg, const char *parent);

/* Ends the server: in order, waiting for nobody; or as a crash does, without writing anything more. */
void qr_pg_stop(struct qr_pg *pg);
void qr_pg_crash(struct qr_pg *pg);
/* Starts it again over the same folder, and waits until it answers. */
void qr_pg_resume(struct qr_pg *pg);

/* Its processes stand still, as on a machine that is out of breath: connections stay open and nothing answers. Those that
 * begin meanwhile are not served either. */
void qr_pg_freeze(struct qr_pg *pg);
void qr_pg_thaw(struct qr_pg *pg);

/* Ends it if need be and removes the folder. */
void qr_pg_remove(struct qr_pg *pg);

/* A connection URL whose tables live in this schema ([a-z0-9_]), which is created. Static memory, valid for the next 7
 * calls. The server must run. */
const char *qr_pg_url(struct qr_pg *pg, const char *schema);

/* Runs SQL as the administrator, beside the code under test; a failure ends the test. Gives the first value as an
 * integer, 0 where there is none. */
long long qr_pg_ask(struct qr_pg *pg, const char *schema, const char *sql);
