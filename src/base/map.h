/* A hash map from byte strings to pointers. Keys are copied; values are the caller's. */
#pragma once

#include "base/compiler.h"
#include "base/str.h"

struct qr_map_slot;

struct qr_map {
    struct qr_map_slot *slots;
    size_t count, capacity;
    uint64_t seed; /* differs per map, so that nobody can choose keys that collide */
};

void qr_map_init(struct qr_map *map, uint64_t seed);
void qr_map_done(struct qr_map *map);

/* The value, or NULL. */
void *qr_map_find(const struct qr_map *map, qr_str key);
/* Replaces an existing value. False when out of memory; the map is then as before. Values are not NULL. */
bool qr_map_put(struct qr_map *map, qr_str key, void *value) QR_MUST_USE;
/* The value that was removed, or NULL. */
void *qr_map_take(struct qr_map *map, qr_str key);

/* Goes through all entries in no order: start with *cursor = 0. The map must not change meanwhile. */
bool qr_map_next(const struct qr_map *map, size_t *cursor, qr_str *ret_key, void **ret_value);
