#include "ingest/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_US = 25000 };

static double resident_mb(long pid)
{
    char path[64];
    long pages = 0, ignored;
    snprintf(path, sizeof path, "/proc/%ld/statm", pid);
    FILE *statm = fopen(path, "re");
    if (statm) { /* else it has ended meanwhile */
        if (fscanf(statm, "%ld %ld", &ignored, &pages) != 2) {
            pages = 0;
        }
        fclose(statm);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* A child that has not yet started its program shares the memory of this process. What a helper's program is may be kept from
 * us; it is another one then. */
static bool is_still_us(long pid)
{
    char path[64], theirs[512], ours[512];
    snprintf(path, sizeof path, "/proc/%ld/exe", pid);
    const ssize_t their_len = readlink(path, theirs, sizeof theirs);
    const ssize_t our_len = readlink("/proc/self/exe", ours, sizeof ours);
    return their_len > 0 && their_len == our_len && memcmp(theirs, ours, (size_t)our_len) == 0;
}

/* A child belongs to the thread that has started it. */
static double children_mb(const char *thread)
{
    char path[300];
    double mb = 0;
    long pid;
    snprintf(path, sizeof path, "/proc/self/task/%s/children", thread);
    FILE *children = fopen(path, "re");
    while (children && fscanf(children, "%ld", &pid) == 1) {
        mb += is_still_us(pid) ? 0 : resident_mb(pid);
    }
    if (children) {
        fclose(children);
    }
    return mb;
}

static double all_mb(void)
{
    double mb = resident_mb(getpid());
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    while (threads && (entry = readdir(threads))) {
        if (entry->d_name[0] != '.') {
            mb += children_mb(entry->d_name);
        }
    }
    if (threads) {
        closedir(threads);
    }
    return mb;
}

static void *look_on(void *arg)
{
    struct memory_watch *watch = arg;
    while (!atomic_load(&watch->ends)) {
        const double mb = all_mb();
        watch->peak_mb = mb > watch->peak_mb ? mb : watch->peak_mb;
        bench_sleep_us(LOOK_US);
    }
    return NULL;
}

void memory_watch_begin(struct memory_watch *watch)
{
    watch->peak_mb = 0;
    atomic_init(&watch->ends, false);
    if (pthread_create(&watch->thread, NULL, look_on, watch) != 0) {
        perror("bench: a thread");
        exit(1);
    }
}

double memory_watch_end(struct memory_watch *watch)
{
    atomic_store(&watch->ends, true);
    pthread_join(watch->thread, NULL);
    return watch->peak_mb;
}
