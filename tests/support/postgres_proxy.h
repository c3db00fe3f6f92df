/* A proxy before a PostgreSQL server, on a Unix socket of its own, that cuts connections at chosen moments. */
#pragma once

#include "support/postgres.h"

#include <pthread.h>

enum qr_pg_cut {
    QR_PG_PASS,
    /* at the next COMMIT, once: */
    QR_PG_CUT_BEFORE_COMMIT, /* the server never sees it */
    QR_PG_CUT_AFTER_COMMIT,  /* the server has answered; the client never hears it */
    QR_PG_CUT_DURING_COMMIT, /* the server gets it at once; the client is cut off at qr_pg_proxy_release */
    QR_PG_CUT_AND_HOLD_BACK, /* the client is cut off at once; the server gets it at qr_pg_proxy_release */
    QR_PG_CUT_FOR_GOOD,      /* after the server has answered; and nobody gets through any more */
    /* from now on: */
    QR_PG_REFUSE,
};

struct qr_pg_proxy {
    const struct qr_pg *pg;
    char dir[96];
    int listener;
    pthread_t thread;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    enum qr_pg_cut cut;
    bool is_released;
    int open_count; /* connections being served */
    long refused_count;
};

/* `dir` gets the socket. */
void qr_pg_proxy_start(struct qr_pg_proxy *proxy, const struct qr_pg *pg, const char *dir);
/* Waits until the last connection is gone: the database must be closed. */
void qr_pg_proxy_stop(struct qr_pg_proxy *proxy);

void qr_pg_proxy_set(struct qr_pg_proxy *proxy, enum qr_pg_cut cut);
void qr_pg_proxy_release(struct qr_pg_proxy *proxy);
/* Whether the cut that was set has happened. */
bool qr_pg_proxy_has_cut(struct qr_pg_proxy *proxy);
long qr_pg_proxy_refused(struct qr_pg_proxy *proxy);
