/* Any bytes as the answer of an embedding server: it is refused, or every vector is of length 1 or bad. The first byte says how
 * many were asked for. */
#include "embed/openai_wire.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_vectors(const struct qr_embed_answer *answer, size_t count)
{
    require(answer->dimension > 0 && answer->dimension <= QR_DIMENSIONS_MAX && answer->token_count >= 0);
    for (size_t i = 0; i < count; i++) {
        double square = 0;
        for (int k = 0; k < answer->dimension; k++) {
            const double value = (double)answer->vectors[i * (size_t)answer->dimension + (size_t)k];
            square += value * value;
        }
        require(answer->is_bad[i] || fabs(square - 1) < 1e-3);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { COUNT_MAX = 16 };
    bool is_bad[COUNT_MAX] = {false};
    struct qr_embed_answer answer = {.is_bad = is_bad};
    qr_err err = {0};
    if (size == 0) {
        return 0;
    }
    const size_t count = 1 + data[0] % COUNT_MAX;
    char *copy = qr_alloc(size); /* of just this size, so that a step beyond it is seen */
    require(copy);
    memcpy(copy, data + 1, size - 1);
    const qr_rc rc = qr_openai_read_answer((qr_str){copy, size - 1}, count, &answer, &err);
    require(rc == QR_OK || err.code == QR_CODE_EMBEDDING_FAILED);
    if (rc == QR_OK) {
        check_vectors(&answer, count);
        qr_free(answer.vectors);
    }
    qr_free(copy);
    return 0;
}
