/* An answer's body that is made while it is sent; behind `struct quire_pieces` of the public header. */
#pragma once

#include "base/buf.h"

struct quire_pieces;

struct qr_pieces_kind {
    /* Appends what comes next; nothing: there is nothing yet, or *ret_is_end. Fails where the rest cannot be had. */
    qr_rc (*read)(struct quire_pieces *pieces, struct qr_buf *out, bool *ret_is_end, qr_err *err);
    /* NULL: there is always something, until the end. */
    void (*on_wake)(struct quire_pieces *pieces, void (*wake)(void *arg), void *arg);
    void (*free)(struct quire_pieces *pieces);
};

/* The first member of what a kind has of its own. */
struct quire_pieces {
    const struct qr_pieces_kind *kind;
    int64_t size_bytes; /* -1 = nobody knows */
    struct qr_buf made; /* and not taken yet */
    size_t taken;
};
