/* Reading a file whole, as it is at one moment. */
#pragma once

#include "base/buf.h"
#include "base/io.h"

/* Where a file is. */
struct qr_file_place {
    const char *path;
    bool no_links; /* none is followed in any part of it, which is absolute then; else in all but the last */
};

struct qr_file_facts {
    int64_t size_bytes, mtime_ns;
};

/* Appends the bytes of a regular file (links in the path's last part are not followed). `source_missing`,
 * `source_unreadable` (also a folder or device), `too_large` beyond size_bytes_max, without reading it. Where the file
 * changed while it was read (size or time), it is read again, a few times; then `source_unreadable` says that it keeps
 * changing. Never blocks on a pipe. A failure leaves `out` as it was. Messages do not name the path: it may be any bytes,
 * and whoever shows the message knows it. */
qr_rc qr_file_read(struct qr_file_place place, int64_t size_bytes_max, struct qr_buf *out,
                   struct qr_file_facts *ret_facts, qr_err *err);
/* Appends at most `len_max` bytes from `offset` on, fewer only at the end, and says how long the file is now. For what is
 * handed on as it is: parts of a file that changes are of different moments. The failures of qr_file_read. */
qr_rc qr_file_read_part(struct qr_file_place place, int64_t offset, size_t len_max, struct qr_buf *out,
                        struct qr_file_facts *ret_facts, qr_err *err);
qr_rc qr_file_look(struct qr_file_place place, struct qr_file_facts *ret_facts, qr_err *err);

/* The same as qr_file_read through an I/O table, for tests that change a file while it is read. */
qr_rc qr_file_read_io(const struct qr_io *io, struct qr_file_place place, int64_t size_bytes_max, struct qr_buf *out,
                      struct qr_file_facts *ret_facts, qr_err *err);
