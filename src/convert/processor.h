/* A converter that works apart from us: a file is given to it, it answers with a ticket, and is asked from time to time. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/settings.h"

struct qr_endpoints;

enum qr_ticket_state { QR_TICKET_WAITING, QR_TICKET_RUNNING, QR_TICKET_DONE, QR_TICKET_FAILED, QR_TICKET_UNKNOWN };

struct qr_processor {
    const char *name;
    void *arg;
    /* Hands the file over; the ticket is valid UTF-8 of at most 500 bytes, in the arena. */
    qr_rc (*submit)(struct qr_processor *processor, const char *path, const char *name, struct qr_arena *arena,
                    const char **ret_ticket, qr_err *err);
    /* *ret_running_ms: how long it has been running there, queueing not counted; -1 = it does not tell. DONE: the result (Markdown) is appended.
     * FAILED: err says why, with the code `conversion_failed`; the call itself returns QR_OK. UNKNOWN: there is no such
     * ticket any more, hand the file over again. A ticket may be asked about any number of times until it is cancelled. */
    qr_rc (*poll)(struct qr_processor *processor, const char *ticket, enum qr_ticket_state *ret_state,
                  int64_t *ret_running_ms, struct qr_buf *out, qr_err *err);
    /* Ends it where it still runs and forgets it, also one that is done; best effort. */
    void (*cancel)(struct qr_processor *processor, const char *ticket);
    /* After `rate_limited` and `endpoint_refused`: how long until it is worth trying again; NULL = it does not know. */
    int64_t (*wait_ms)(struct qr_processor *processor);
    void (*free)(struct qr_processor *processor);
};

/* What a program may write: more is `conversion_failed`. */
enum { QR_PROCESSOR_OUTPUT_BYTES_MAX = 64 << 20 };

/* A program on this machine: it gets the path as its last argument and writes Markdown to standard output; a ticket is a
 * folder below `dir`, which is made when missing. It survives us: a restart finds its result. argv is NULL-terminated. */
qr_rc qr_processor_command(struct qr_processor **ret_processor, const char *const *argv, const char *dir, qr_err *err);
/* docling-serve (convert/docling_wire.h). `with_pictures`: they stand in the Markdown, as data: URLs. The settings must outlive
 * it. `is_cancelled` may be NULL. */
struct qr_docling_options {
    const struct qr_docling_settings *settings;
    struct qr_endpoints *endpoints;
    bool with_pictures;
    bool (*is_cancelled)(void *arg);
    void *cancel_arg;
};
qr_rc qr_processor_docling(struct qr_processor **ret_processor, const struct qr_docling_options *options, qr_err *err);
void qr_processor_free(struct qr_processor *processor);
