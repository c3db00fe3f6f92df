/* Child processes: spawned (fork and exec, never fork alone), bounded in time and output, never left behind. */
#pragma once

#include "base/buf.h"

struct qr_proc_options {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH when it has no '/' */
    const char *const *env;  /* NULL-terminated "NAME=value"; NULL = inherit */
    const char *dir;         /* NULL = as the parent; a relative argv[0] with a '/' counts from here */
    qr_str input;            /* written to its standard input, then closed; a child need not read it */
    size_t output_bytes_max; /* of standard output; more is `payload_too_large` and the child is killed */
    int64_t timeout_ms;      /* then it and its process group are killed: `timeout`. 0 = none */
};

struct qr_proc_result {
    int exit_code;     /* -1 when a signal ended it */
    int signal_number; /* 0 when it exited */
};

/* Runs to the end. Standard output goes to `out` (may be NULL: /dev/null), the first few KB of standard error to
 * `errors` (may be NULL). A failure leaves there what was read until then.
 *
 * The child leads a process group of its own and dies with the calling thread. The end of the child is the end: what it
 * left running in its group is killed. No file descriptor but 0–2 is inherited; signals are at their defaults, none
 * blocked. A program that cannot be started is `not_found` or `forbidden`; an exit code other than 0 is not an error
 * here. SIGCHLD must not be ignored in the parent. Safe from any thread. */
qr_rc qr_proc_run(const struct qr_proc_options *options, struct qr_buf *out, struct qr_buf *errors,
                  struct qr_proc_result *ret_result, qr_err *err);
