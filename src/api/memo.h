/* Answers to GETs that are given again as long as nothing was written: who waits for an item asks for it over and over.
 *
 * M1  Given again is only what would be made again: no transaction was committed since before it was read, or is being committed.
 *     Only answers of routes that depend on nothing but the main database and the target are kept (qr_route.is_kept).
 * M2  Who asks is decided about by the same database. Kept is only what the local owner is told: at the folder's socket, or on
 *     the loopback as long as there is no key. To make one is to write, which ends the answer with the decision. Somebody
 *     with a key is looked up each time.
 * M3  Memory is bounded, and nothing waits: not for the database, nor for more than a copy. */
#pragma once

#include "base/sync.h"

#include <quire/quire.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    QR_MEMO_ANSWERS_MAX = 256,
    QR_MEMO_ANSWER_BYTES_MAX = 64 << 10,
    QR_MEMO_BYTES_MAX = 1 << 20, /* of all */
};

struct qr_memo {
    struct qr_mutex lock; /* holds what follows */
    struct qr_memo_answer *answers[QR_MEMO_ANSWERS_MAX];
    size_t bytes;
};

void qr_memo_init(struct qr_memo *memo);
void qr_memo_done(struct qr_memo *memo);

/* The answer that was kept at this qr_db_version; a copy. False = none, or out of memory. */
bool qr_memo_find(struct qr_memo *memo, const struct quire_request *request, uint64_t version,
                  struct quire_response *ret_response);
/* Keeps a copy, where it is one for that and there is room. `version` is from before the request was decided about (M1), and
 * that was for the local owner (M2). */
void qr_memo_keep(struct qr_memo *memo, const struct quire_request *request, uint64_t version,
                  const struct quire_response *response);
