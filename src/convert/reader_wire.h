/* What quire and quire-reader say to each other, over one socket. Both are of the same build, so numbers go as they are in
 * memory; what the reader answers is foreign bytes all the same, since it may have been taken over by what it read.
 *
 *     reader: hello                             once, when it has given up its rights
 *     quire:  request, name, bytes              for each file
 *     reader: answer, `len` bytes               what qr_answer_encode makes, the text and a NUL
 *
 * Answers come in the order of the requests, of which several may be sent at once. The reader may keep answers for a moment
 * to send several at once, too; never while it waits for a request. */
#pragma once

#include "convert/convert.h"

enum {
    QR_READER_MAGIC = 0x51524452,
    QR_READER_PROTOCOL = 2, /* raised with every change here */
    QR_READER_NAME_BYTES_MAX = 4096,
    QR_READER_EXIT_MEMORY = 78, /* how it ends when a library does not survive running out of memory */
};

struct qr_reader_hello {
    uint32_t magic, protocol;
    uint32_t protections; /* bits of enum qr_protection */
    uint32_t landlock_abi;
    char version[16]; /* of Quire */
};

struct qr_reader_request {
    uint32_t magic, name_len;
    uint64_t bytes_len;
    uint64_t text_bytes_max;
};

struct qr_reader_answer {
    uint32_t magic, reserved;
    uint64_t len;
};

/* More than this is never an answer to a request with this limit. */
size_t qr_answer_bytes_max(size_t text_bytes_max);

/* All of an answer but the text and its NUL, which follow. */
void qr_answer_encode(const struct qr_converted *converted, struct qr_buf *out);
/* The whole of an answer that is an error. */
void qr_answer_encode_error(const qr_err *error, struct qr_buf *out);

/* Checks everything: what comes out keeps what convert.h says of it. Texts are in `answer`, which must live as long; the
 * rest is in the arena. An error that the reader reports is returned as this call's, `out_of_memory` as `limit_exceeded`,
 * since it has less than we have. An answer that makes no sense is `crashed_worker`. */
qr_rc qr_answer_parse(qr_str answer, size_t text_bytes_max, struct qr_arena *arena, struct qr_converted *ret,
                      qr_err *err);
