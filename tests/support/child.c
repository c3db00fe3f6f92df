/* Owns the pipe between a child and its parent. */
#include "support/child.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_LOST_ITS_PARENT = 97 };

static int to_parent = -1;

QR_NORETURN static void die(const char *what)
{
    perror(what);
    exit(2);
}

void child_start(struct child *child, void (*fn)(void *arg), void *arg)
{
    int fds[2];
    if (pipe(fds)) {
        die("pipe");
    }
    fflush(NULL);
    child->pid = fork();
    if (child->pid < 0) {
        die("fork");
    }
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        to_parent = fds[1];
        fn(arg);
        _exit(0);
    }
    close(fds[1]);
    child->acks = fds[0];
}

void child_ack(const void *ack, size_t size_bytes)
{
    assert(size_bytes <= CHILD_ACK_BYTES_MAX); /* PIPE_BUF at the least: one write is never mixed with another */
    if (write(to_parent, ack, size_bytes) != (ssize_t)size_bytes) {
        _exit(CHILD_LOST_ITS_PARENT);
    }
}

bool child_next_ack(struct child *child, void *ret_ack, size_t size_bytes)
{
    char *at = ret_ack;
    while (size_bytes) {
        const ssize_t got = read(child->acks, at, size_bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        size_bytes -= (size_t)got;
    }
    return true;
}

int child_wait(struct child *child)
{
    int status;
    close(child->acks);
    if (waitpid(child->pid, &status, 0) != child->pid) {
        die("waitpid");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
