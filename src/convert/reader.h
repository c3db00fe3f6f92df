/* Converting in isolation: every foreign byte is parsed in quire-reader, a program without rights, never in this process.
 *
 * H1  A helper serves one file at a time, and many one after another. After any fault, when it has grown, and now and then
 *     without either, it is replaced.
 * H2  A crash, a loop or a hang costs the file that caused it, and nothing else: of several that were sent together, those
 *     without an answer are nobody's fault until each has been sent alone.
 * H3  What a helper answers is checked like any foreign bytes (reader_wire.h).
 * H4  No helper outlives the reader, nor this process, however that ends. More than there are processors live only while all
 *     are at work, and one that nobody needs is ended after a while. */
#pragma once

#include "convert/convert.h"

#define QR_READER_PROGRAM "quire-reader"

/* What the kernel holds a helper by. One that it lacks is stated, not required: the others stay. */
enum qr_protection {
    QR_PROTECTION_LANDLOCK = 1, /* no files, no network, no signals to others */
    QR_PROTECTION_SECCOMP = 2,  /* no system calls but those for memory and for its one socket */
    QR_PROTECTION_LIMITS = 4,   /* of memory and time of the processor; no files, no processes */
};

struct qr_reader_options {
    const char *program; /* as qr_program_find takes it: QR_READER_PROGRAM, or a path */
    int count_max;       /* helpers at a time, as many as threads convert */
    int64_t timeout_ms;  /* for files that have no limit of their own; 0 = a minute */
    int64_t idle_ms;     /* so long a helper is kept that nobody needs; 0 = half a minute */
};

/* For one file; what is 0 has its default, which grows with the file. */
struct qr_reader_limits {
    int64_t timeout_ms; /* of work; waiting for a helper does not count */
    size_t memory_bytes_max;
    size_t text_bytes_max;
    bool (*is_cancelled)(void *arg); /* asked several times a second; NULL = never */
    void *arg;
};

struct qr_reader;

/* The program must be there; the first helper starts with the first file. */
qr_rc qr_reader_open(struct qr_reader **ret_reader, const struct qr_reader_options *options, qr_err *err);
/* No call may be running or follow. NULL is fine. */
void qr_reader_close(struct qr_reader *reader);

/* One that converts in this process, without isolation: for simulations, and tests of other things. Not to be closed. */
struct qr_reader *qr_reader_direct(void);

/* As qr_convert. Beside its failures: `crashed_worker` when the helper died of the file or answered nonsense, `timeout`,
 * `limit_exceeded` for memory and output, `cancelled`; `unavailable` when no helper can be started, which says nothing of
 * the file. Any thread may call; those that find all helpers busy wait. */
qr_rc qr_reader_convert(struct qr_reader *reader, qr_str bytes, const char *name, const struct qr_reader_limits *limits,
                        struct qr_arena *arena, struct qr_converted *ret, qr_err *err);

/* One of several; name and arena as for one. */
struct qr_reader_file {
    qr_str bytes;
    const char *name;
    struct qr_reader_limits limits;
    struct qr_arena *arena;
    /* what came of it */
    bool is_answered; /* else all below is nothing: it is to be converted by itself */
    qr_rc rc;
    qr_err err;
    struct qr_converted converted;
};

/* Small files, for little more than one of them costs. No answer have those that are large, and those that had none yet when
 * anything went wrong, be it with one of them, with the helper or with us: asked alone, each learns what is its own. */
void qr_reader_convert_several(struct qr_reader *reader, struct qr_reader_file *files, size_t count);

struct qr_reader_stats {
    int64_t started, replaced; /* helpers */
    int64_t faults;            /* files that cost one, asked alone */
    int running;
    unsigned protections; /* of the newest helper; 0 until there was one */
    unsigned landlock_abi;
};
void qr_reader_stats(struct qr_reader *reader, struct qr_reader_stats *ret_stats);
