/* How much memory this process and those that it has started have together, at the worst moment. */
#pragma once

#include "support.h"

#include <pthread.h>
#include <stdatomic.h>

struct memory_watch {
    pthread_t thread;
    atomic_bool ends;
    double peak_mb;
};

/* Looks many times a second, in a thread of its own. */
void memory_watch_begin(struct memory_watch *watch);
/* Pages that several of them share count several times. */
double memory_watch_end(struct memory_watch *watch);
