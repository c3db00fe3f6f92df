/* Randomness comes from a source that is handed in, so that tests own it. */
#pragma once

#include "base/compiler.h"

struct qr_rand {
    void (*fill)(struct qr_rand *rand, void *bytes, size_t size_bytes);
};

/* The kernel's; safe from any thread. */
struct qr_rand *qr_rand_system(void);

/* A repeatable sequence for tests and simulations. Not thread-safe, not secret. */
struct qr_rand_seeded {
    struct qr_rand rand;
    uint64_t state;
};
void qr_rand_seeded_init(struct qr_rand_seeded *seeded, uint64_t seed);

uint64_t qr_rand_u64(struct qr_rand *rand);
/* Even over 0 … limit-1; limit > 0. */
uint64_t qr_rand_below(struct qr_rand *rand, uint64_t limit);
