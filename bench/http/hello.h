/* What libmicrohttpd costs at least: a server that answers "hello" whatever is asked, on as many threads as ours has for bytes and
 * with the same flags, in a process of its own. */
#pragma once

#include <sys/types.h>

struct hello {
    pid_t pid;
    unsigned port;
};

void hello_start(struct hello *hello);
void hello_stop(struct hello *hello);
