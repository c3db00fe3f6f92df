/* Open addressing with linear probing; at most three quarters full. Removal closes the gap by moving later entries of
 * the run back, so there are no tombstones and a map that is filled and emptied for ever never slows down. */
#include "base/map.h"

#include "base/mem.h"

#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct qr_map_slot {
    char *key; /* NULL = free */
    size_t key_len;
    uint64_t hash;
    void *value;
};

enum { CAPACITY_MIN = 16 }; /* a power of two, as every capacity */

void qr_map_init(struct qr_map *map, uint64_t seed)
{
    *map = (struct qr_map){.seed = seed};
}

void qr_map_done(struct qr_map *map)
{
    for (size_t i = 0; i < map->capacity; i++) {
        qr_free(map->slots[i].key);
    }
    qr_free(map->slots);
    *map = (struct qr_map){.seed = map->seed};
}

/* The slot that holds the key, or the free one where it would go. */
static size_t probe(const struct qr_map *map, qr_str key, uint64_t hash)
{
    const size_t mask = map->capacity - 1;
    size_t i = hash & mask;
    while (map->slots[i].key) {
        const struct qr_map_slot *slot = &map->slots[i];
        if (slot->hash == hash && qr_str_equal((qr_str){slot->key, slot->key_len}, key)) {
            break;
        }
        i = (i + 1) & mask;
    }
    return i;
}

static uint64_t hash_of(const struct qr_map *map, qr_str key)
{
    return XXH3_64bits_withSeed(key.len ? key.ptr : "", key.len, map->seed);
}

void *qr_map_find(const struct qr_map *map, qr_str key)
{
    if (map->count == 0) {
        return NULL;
    }
    return map->slots[probe(map, key, hash_of(map, key))].value;
}

static bool grow(struct qr_map *map)
{
    size_t capacity = CAPACITY_MIN;
    if (map->capacity && QR_MUL_OVERFLOWS(map->capacity, (size_t)2, &capacity)) {
        return false;
    }
    struct qr_map_slot *slots = qr_alloc_array(capacity, sizeof *slots);
    if (!slots) {
        return false;
    }
    struct qr_map bigger = {slots, map->count, capacity, map->seed};
    for (size_t i = 0; i < map->capacity; i++) {
        const struct qr_map_slot *slot = &map->slots[i];
        if (slot->key) {
            slots[probe(&bigger, (qr_str){slot->key, slot->key_len}, slot->hash)] = *slot;
        }
    }
    qr_free(map->slots);
    *map = bigger;
    return true;
}

static char *copy_key(qr_str key)
{
    char *copy = qr_alloc(key.len);
    if (copy && key.len) {
        memcpy(copy, key.ptr, key.len);
    }
    return copy;
}

bool qr_map_put(struct qr_map *map, qr_str key, void *value)
{
    assert(value);
    if (map->count + 1 > map->capacity / 4 * 3 && !grow(map)) {
        return false;
    }
    const uint64_t hash = hash_of(map, key);
    struct qr_map_slot *slot = &map->slots[probe(map, key, hash)];
    if (!slot->key) {
        char *copy = copy_key(key);
        if (!copy) {
            return false;
        }
        *slot = (struct qr_map_slot){copy, key.len, hash, NULL};
        map->count++;
    }
    slot->value = value;
    return true;
}

/* Moves entries behind the gap back while that brings them nearer to their home. */
static void close_gap(struct qr_map *map, size_t gap)
{
    const size_t mask = map->capacity - 1;
    for (size_t i = (gap + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
        const size_t home = map->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            map->slots[gap] = map->slots[i];
            gap = i;
        }
    }
    map->slots[gap] = (struct qr_map_slot){0};
}

void *qr_map_take(struct qr_map *map, qr_str key)
{
    if (map->count == 0) {
        return NULL;
    }
    const size_t i = probe(map, key, hash_of(map, key));
    void *value = map->slots[i].value;
    if (value) {
        qr_free(map->slots[i].key);
        close_gap(map, i);
        map->count--;
    }
    return value;
}

bool qr_map_next(const struct qr_map *map, size_t *cursor, qr_str *ret_key, void **ret_value)
{
    for (; *cursor < map->capacity; (*cursor)++) {
        const struct qr_map_slot *slot = &map->slots[*cursor];
        if (slot->key) {
            *ret_key = (qr_str){slot->key, slot->key_len};
            *ret_value = slot->value;
            (*cursor)++;
            return true;
        }
    }
    return false;
}
