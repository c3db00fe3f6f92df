/* Whatever a reranker answers: every score is between 0 and 1, or there is none. */
#include "search/rerank_wire.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

enum { COUNT_MAX = 9 };

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    const qr_str answer = {(const char *)bytes, size_bytes};
    for (size_t count = 1; count <= COUNT_MAX; count += 4) {
        double *scores = malloc(count * sizeof *scores); /* what is beyond it is seen */
        qr_err err = {0};
        size_t scored = 0;
        require(scores != NULL);
        if (qr_rerank_read(answer, count, scores, &err) == QR_OK) {
            for (size_t i = 0; i < count; i++) {
                require(scores[i] == -1 || (scores[i] >= 0 && scores[i] <= 1));
                scored += scores[i] >= 0;
            }
            require(scored > 0);
        } else {
            require(err.code == QR_CODE_UNAVAILABLE);
        }
        free(scores);
    }
    return 0;
}
