/* Loaded into the servers of a benchmark (LD_PRELOAD) where the disk is too fast to show what a sync costs elsewhere: each
 * fsync and fdatasync takes BENCH_SYNC_DELAY_US longer, as in our own files. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void delay(void)
{
    const char *text = getenv("BENCH_SYNC_DELAY_US");
    const long us = text ? atol(text) : 0;
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

int fsync(int fd)
{
    delay();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    delay();
    return (int)syscall(SYS_fdatasync, fd);
}
