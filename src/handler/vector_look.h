/* Looking into the vector cache for texts that are to be embedded: what is found there is used, and that counts (PAID-2). */
#pragma once

#include "store/vectors.h"

/* One text; filled in by the caller down to `vector`. */
struct qr_vector_look {
    qr_str text;
    float *vector; /* room for as many floats as the dimension says */

    struct qr_vector_found found;
    unsigned char key[QR_VECTOR_KEY_BYTES];
};

/* One read, and one write where uses are to be written down. Before the chunks' rows are in the index nobody may look (V1 of
 * store/vector_rounds.h). */
qr_rc qr_vectors_look(struct qr_db *db, const char *fingerprint, int dimension, struct qr_vector_look *looks,
                      size_t count, qr_err *err);
