/* Uses are written down before they are relied on: an entry that a round of pruning evicts in between is put back, since its
 * vector is at hand. */
#include "handler/vector_look.h"

#include "base/mem.h"

#include <stdlib.h>

struct looking {
    int dimension;
    struct qr_vector_look *looks;
    size_t count;
    struct qr_vector_look **touched; /* by key: two who touch the same do not wait in a circle */
    size_t touched_count;
};

static qr_rc find_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct looking *looking = arg;
    for (size_t i = 0; i < looking->count; i++) {
        struct qr_vector_look *look = &looking->looks[i];
        QR_TRY(qr_vector_use(tx, look->key, looking->dimension, look->vector, &look->found, err));
    }
    return QR_OK;
}

static qr_rc touch_all(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct looking *looking = arg;
    for (size_t i = 0; i < looking->touched_count; i++) {
        const struct qr_vector_look *look = looking->touched[i];
        QR_TRY(qr_vector_touch(tx, look->key, look->vector, looking->dimension, look->found.kept_bytes, err));
    }
    return QR_OK;
}

static int compare_keys(const void *a, const void *b)
{
    const struct qr_vector_look *const *first = a, *const *second = b;
    return memcmp((*first)->key, (*second)->key, QR_VECTOR_KEY_BYTES);
}

/* In a round durably: one that goes on after a power loss may be past the chunks that are given these vectors. */
static qr_rc write_down(struct qr_db *db, struct looking *looking, qr_err *err)
{
    bool is_in_round = false;
    for (size_t i = 0; i < looking->count; i++) {
        struct qr_vector_look *look = &looking->looks[i];
        if (look->found.is_found && look->found.is_to_be_touched) {
            looking->touched[looking->touched_count++] = look;
            is_in_round = is_in_round || look->found.is_in_round;
        }
    }
    if (looking->touched_count == 0) {
        return QR_OK;
    }
    qsort(looking->touched, looking->touched_count, sizeof looking->touched[0], compare_keys);
    return qr_db_write(db, is_in_round ? QR_DURABLE : QR_RELAXED, touch_all, looking, err);
}

qr_rc qr_vectors_look(struct qr_db *db, const char *fingerprint, int dimension, struct qr_vector_look *looks,
                      size_t count, qr_err *err)
{
    struct looking looking = {.dimension = dimension, .looks = looks, .count = count};
    if (count == 0) {
        return QR_OK;
    }
    QR_CLEANUP(qr_free_ptr) struct qr_vector_look **touched = qr_alloc(count * sizeof(struct qr_vector_look *));
    if (!touched) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a look into the cache");
    }
    looking.touched = touched;
    for (size_t i = 0; i < count; i++) {
        qr_vector_key(fingerprint, looks[i].text, looks[i].key);
    }
    QR_TRY(qr_db_read(db, find_all, &looking, err));
    return write_down(db, &looking, err);
}
