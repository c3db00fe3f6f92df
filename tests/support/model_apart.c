#include "support/model_apart.h"

#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A byte asks for the counts; the end of the pipe is the end. */
static void serve(int from, int to)
{
    struct qr_model_stats stats;
    char asked;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct qr_model_server *server = qr_model_server_start(&(struct qr_model_options){0});
    const int port = qr_model_server_port(server);
    bool is_heard = write(to, &port, sizeof port) == (ssize_t)sizeof port;
    while (is_heard && read(from, &asked, 1) == 1) {
        qr_model_server_stats(server, &stats);
        is_heard = write(to, &stats, sizeof stats) == (ssize_t)sizeof stats;
    }
    qr_model_server_stop(server);
    _exit(0);
}

void qr_model_apart_start(struct qr_model_apart *apart)
{
    int to[2], from[2], port;
    QR_CHECK_INT(0, pipe2(to, O_CLOEXEC));
    QR_CHECK_INT(0, pipe2(from, O_CLOEXEC));
    apart->pid = fork();
    QR_CHECK(apart->pid >= 0);
    if (apart->pid == 0) {
        close(to[1]);
        close(from[0]);
        serve(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    apart->to = to[1];
    apart->from = from[0];
    QR_CHECK_INT(sizeof port, read(apart->from, &port, sizeof port));
    snprintf(apart->url, sizeof apart->url, "http://127.0.0.1:%d/v1", port);
}

void qr_model_apart_stats(struct qr_model_apart *apart, struct qr_model_stats *ret_stats)
{
    QR_CHECK_INT(1, write(apart->to, "?", 1));
    QR_CHECK_INT(sizeof *ret_stats, read(apart->from, ret_stats, sizeof *ret_stats));
}

void qr_model_apart_stop(struct qr_model_apart *apart)
{
    close(apart->to);
    close(apart->from);
    QR_CHECK_INT(apart->pid, waitpid(apart->pid, NULL, 0));
}
