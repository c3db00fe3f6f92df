#include "base/rand.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void system_fill(struct qr_rand *rand QR_UNUSED, void *bytes, size_t size_bytes)
{
    unsigned char *at = bytes;
    while (size_bytes) {
        const ssize_t got = getrandom(at, size_bytes, 0);
        if (got < 0) {
            assert(errno == EINTR); /* Linux has no other failure once the pool is up: ids must never repeat */
            continue;
        }
        at += got;
        size_bytes -= (size_t)got;
    }
}

struct qr_rand *qr_rand_system(void)
{
    static struct qr_rand system_rand = {system_fill};
    return &system_rand;
}

/* splitmix64: one multiply-xor chain a value, good enough to pick events in a simulation */
static uint64_t seeded_next(struct qr_rand_seeded *seeded)
{
    uint64_t z = (seeded->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void seeded_fill(struct qr_rand *rand, void *bytes, size_t size_bytes)
{
    struct qr_rand_seeded *seeded = QR_CONTAINER_OF(rand, struct qr_rand_seeded, rand);
    unsigned char *at = bytes;
    while (size_bytes) {
        const uint64_t value = seeded_next(seeded);
        const size_t part = QR_MIN(size_bytes, sizeof value);
        memcpy(at, &value, part);
        at += part;
        size_bytes -= part;
    }
}

void qr_rand_seeded_init(struct qr_rand_seeded *seeded, uint64_t seed)
{
    *seeded = (struct qr_rand_seeded){{seeded_fill}, seed};
}

uint64_t qr_rand_u64(struct qr_rand *rand)
{
    uint64_t value;
    rand->fill(rand, &value, sizeof value);
    return value;
}

uint64_t qr_rand_below(struct qr_rand *rand, uint64_t limit)
{
    assert(limit > 0);
    const uint64_t uneven_tail = UINT64_MAX - UINT64_MAX % limit;
    uint64_t value;
    do {
        value = qr_rand_u64(rand);
    } while (value >= uneven_tail);
    return value % limit;
}
