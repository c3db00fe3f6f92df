/* One helper process: starting it, a question and its answer, its end. Private to convert. */
#pragma once

#include "convert/reader.h"

#include <sys/types.h>
#include <time.h>

struct qr_child {
    const char *program; /* the pool's */
    pid_t pid;
    int pid_fd; /* not its number, which could be somebody else's should another part of the process have reaped it */
    int socket;
    clockid_t cpu_clock;
    int64_t file_count;
    int64_t measured_count; /* of them, when its size was last looked at */
    int64_t idle_since_us;
    size_t start_bytes, start_resident_bytes; /* its address space when it was ready, and what it had of it */
    bool is_ready;                            /* it has said so */
    unsigned protections, landlock_abi;
    /* what is in force */
    size_t memory_limit_bytes;
    int64_t cpu_limit_ms, cpu_limit_due_us;
};

/* Starts the program. The helper dies with the thread that calls this. */
qr_rc qr_child_start(struct qr_child *child, const char *program, char *const *env, qr_err *err);
/* Waits until it has given up its rights. On failure it has been ended. */
qr_rc qr_child_greet(struct qr_child *child, qr_err *err);

/* False when it has died, or said something, while nobody asked it anything. */
bool qr_child_is_ready(const struct qr_child *child);
/* True when it has become too large to keep. */
bool qr_child_has_grown(const struct qr_child *child);

/* The file's name is short and not NULL, its limits are all set. *ret_is_usable: the helper can be asked again; else it has been
 * ended. */
qr_rc qr_child_ask(struct qr_child *child, const struct qr_reader_file *file, struct qr_converted *ret,
                   bool *ret_is_usable, qr_err *err);

enum {
    QR_CHILD_TOGETHER_MAX = 32,
    /* So much is in the socket's buffer before any of it is read: neither side ever waits for the other to read. */
    QR_CHILD_TOGETHER_BYTES_MAX = 96 << 10,
};
/* Several at once, within these bounds, whose limits of memory and time are the first one's. False: it has been ended, and those
 * that have no answer are to be asked alone. */
bool qr_child_ask_several(struct qr_child *child, struct qr_reader_file *files, size_t count);

void qr_child_end(struct qr_child *child);
