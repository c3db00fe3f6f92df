/* Hands bodies out in pieces of the reader's size. */
#include "api/pieces.h"

#include <quire/quire.h>

long long quire_pieces_size(const struct quire_pieces *pieces)
{
    return pieces->size_bytes;
}

/* What was made stays until it is taken. Of those without an end many wait with nothing, so they hold no memory meanwhile. */
static size_t take(struct quire_pieces *pieces, char *bytes, size_t size)
{
    const size_t len = QR_MIN(size, pieces->made.len - pieces->taken);
    if (len) {
        memcpy(bytes, pieces->made.data + pieces->taken, len);
    }
    pieces->taken += len;
    if (pieces->taken == pieces->made.len) {
        pieces->taken = 0;
        qr_buf_clear(&pieces->made);
        if (pieces->size_bytes < 0) {
            qr_buf_done(&pieces->made);
            pieces->made = (struct qr_buf){0};
        }
    }
    return len;
}

long quire_pieces_read(struct quire_pieces *pieces, char *bytes, size_t size)
{
    bool is_end = false;
    if (pieces->made.len == 0 && (pieces->kind->read(pieces, &pieces->made, &is_end, NULL) != QR_OK ||
                                  qr_buf_check(&pieces->made, NULL) != QR_OK)) {
        return QUIRE_PIECES_BROKEN;
    }
    const size_t len = take(pieces, bytes, size);
    return len ? (long)len : is_end ? QUIRE_PIECES_END : 0;
}

void quire_pieces_on_wake(struct quire_pieces *pieces, void (*wake)(void *arg), void *arg)
{
    if (pieces->kind->on_wake) {
        pieces->kind->on_wake(pieces, wake, arg);
    }
}

void quire_pieces_free(struct quire_pieces *pieces)
{
    if (pieces) {
        qr_buf_done(&pieces->made);
        pieces->kind->free(pieces);
    }
}
