/* A process that is going to die, and what it told us before: acknowledgements over a pipe, so that the parent knows
 * what was promised however the child ends. */
#pragma once

#include "base/compiler.h"

#include <sys/types.h>

struct child {
    pid_t pid;
    int acks; /* the reading end */
};

/* The longest acknowledgement: written and read whole, also by many threads at once. */
enum { CHILD_ACK_BYTES_MAX = 512 };

/* Forks; fn runs in the child and should not return (0 is then its exit code). No other thread may be running. */
void child_start(struct child *child, void (*fn)(void *arg), void *arg);

/* In the child: tells the parent. Any thread. */
void child_ack(const void *ack, size_t size_bytes);

/* In the parent: the next acknowledgement; false when the child is gone. */
bool child_next_ack(struct child *child, void *ret_ack, size_t size_bytes);

/* Waits for the end. The exit code, or minus the signal. */
int child_wait(struct child *child);
