/* Owns the proxy: one thread accepts, one more serves each connection. */
#include "support/postgres_proxy.h"

#include "support/test.h"

#include "base/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { CHUNK_SIZE = 65536 };

#define SOCKET_NAME ".s.PGSQL.5432"

/* how the driver's last message of a transaction ends, with its NUL */
static const char COMMIT_END[] = "; COMMIT";

struct link {
    struct qr_pg_proxy *proxy;
    int client, server;
};

static struct sockaddr_un address_in(const char *dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/" SOCKET_NAME, dir);
    return address;
}

static bool send_all(int fd, const char *bytes, ssize_t len)
{
    while (len > 0) {
        const ssize_t sent = send(fd, bytes, (size_t)len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        len -= sent;
    }
    return true;
}

/* What to do about a message of the client's; a cut that was set is used up by a COMMIT. */
static enum qr_pg_cut take_cut(struct qr_pg_proxy *proxy, const char *bytes, ssize_t len)
{
    QR_LOCKED(&proxy->lock);
    const enum qr_pg_cut cut = proxy->cut;
    if (cut == QR_PG_PASS || cut == QR_PG_REFUSE || !memmem(bytes, (size_t)len, COMMIT_END, sizeof COMMIT_END)) {
        return QR_PG_PASS;
    }
    proxy->cut = cut == QR_PG_CUT_FOR_GOOD ? QR_PG_REFUSE : QR_PG_PASS;
    return cut;
}

static void wait_for_release(struct qr_pg_proxy *proxy)
{
    QR_LOCKED(&proxy->lock);
    while (!proxy->is_released) {
        pthread_cond_wait(&proxy->changed, &proxy->lock);
    }
}

static void cut_at_commit(struct link *link, enum qr_pg_cut cut, const char *bytes, ssize_t len)
{
    switch (cut) {
    case QR_PG_CUT_AFTER_COMMIT:
    case QR_PG_CUT_FOR_GOOD:
        send_all(link->server, bytes, len);
        break;
    case QR_PG_CUT_DURING_COMMIT:
        send_all(link->server, bytes, len);
        wait_for_release(link->proxy);
        shutdown(link->client, SHUT_RDWR);
        break;
    case QR_PG_CUT_AND_HOLD_BACK:
        shutdown(link->client, SHUT_RDWR);
        wait_for_release(link->proxy);
        send_all(link->server, bytes, len);
        break;
    case QR_PG_PASS:
    case QR_PG_CUT_BEFORE_COMMIT:
    case QR_PG_REFUSE:
        return;
    }
    char answer[256]; /* the server has done with it */
    const ssize_t got = recv(link->server, answer, sizeof answer, 0);
    (void)got;
}

/* Carries what is there in one direction; false at the end. */
static bool carry(struct link *link, bool from_client)
{
    char bytes[CHUNK_SIZE];
    const ssize_t len = recv(from_client ? link->client : link->server, bytes, sizeof bytes, 0);
    if (len <= 0) {
        return false;
    }
    if (from_client) {
        const enum qr_pg_cut cut = take_cut(link->proxy, bytes, len);
        if (cut != QR_PG_PASS) {
            cut_at_commit(link, cut, bytes, len);
            return false;
        }
    }
    return send_all(from_client ? link->server : link->client, bytes, len);
}

static void *serve_link(void *arg)
{
    struct link *link = arg;
    struct pollfd fds[] = {{.fd = link->client, .events = POLLIN}, {.fd = link->server, .events = POLLIN}};
    bool is_open = true;
    while (is_open && poll(fds, 2, -1) > 0) {
        is_open = (!fds[0].revents || carry(link, true)) && (!fds[1].revents || carry(link, false));
    }
    close(link->client);
    close(link->server);
    struct qr_pg_proxy *proxy = link->proxy;
    free(link);
    QR_LOCKED(&proxy->lock);
    proxy->open_count--;
    pthread_cond_broadcast(&proxy->changed);
    return NULL;
}

static bool refuses(struct qr_pg_proxy *proxy)
{
    QR_LOCKED(&proxy->lock);
    proxy->refused_count += proxy->cut == QR_PG_REFUSE;
    return proxy->cut == QR_PG_REFUSE;
}

static void start_link(struct qr_pg_proxy *proxy, int client)
{
    const struct sockaddr_un address = address_in(proxy->pg->dir);
    const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (refuses(proxy) || connect(server, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(server);
        close(client);
        return;
    }
    struct link *link = malloc(sizeof *link);
    QR_CHECK(link);
    *link = (struct link){proxy, client, server};
    {
        QR_LOCKED(&proxy->lock);
        proxy->open_count++;
    }
    pthread_t thread;
    QR_CHECK(pthread_create(&thread, NULL, serve_link, link) == 0);
    pthread_detach(thread);
}

static void *accept_main(void *arg)
{
    struct qr_pg_proxy *proxy = arg;
    int client;
    while ((client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        start_link(proxy, client);
    }
    return NULL;
}

void qr_pg_proxy_start(struct qr_pg_proxy *proxy, const struct qr_pg *pg, const char *dir)
{
    *proxy = (struct qr_pg_proxy){.pg = pg};
    snprintf(proxy->dir, sizeof proxy->dir, "%s", dir);
    pthread_mutex_init(&proxy->lock, NULL);
    pthread_cond_init(&proxy->changed, NULL);
    const struct sockaddr_un address = address_in(dir);
    proxy->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    QR_CHECK(bind(proxy->listener, (const struct sockaddr *)&address, sizeof address) == 0);
    QR_CHECK(listen(proxy->listener, 64) == 0);
    QR_CHECK(pthread_create(&proxy->thread, NULL, accept_main, proxy) == 0);
}

void qr_pg_proxy_stop(struct qr_pg_proxy *proxy)
{
    shutdown(proxy->listener, SHUT_RDWR); /* wakes accept */
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    QR_LOCKED(&proxy->lock);
    while (proxy->open_count > 0) {
        pthread_cond_wait(&proxy->changed, &proxy->lock);
    }
}

void qr_pg_proxy_set(struct qr_pg_proxy *proxy, enum qr_pg_cut cut)
{
    QR_LOCKED(&proxy->lock);
    proxy->cut = cut;
}

void qr_pg_proxy_release(struct qr_pg_proxy *proxy)
{
    QR_LOCKED(&proxy->lock);
    proxy->is_released = true;
    pthread_cond_broadcast(&proxy->changed);
}

bool qr_pg_proxy_has_cut(struct qr_pg_proxy *proxy)
{
    QR_LOCKED(&proxy->lock);
    return proxy->cut == QR_PG_PASS;
}

long qr_pg_proxy_refused(struct qr_pg_proxy *proxy)
{
    QR_LOCKED(&proxy->lock);
    return proxy->refused_count;
}
