/* The vectors of one model in memory, those of an item beside each other. Belongs to one thread, or to nobody who changes it.
 * Private to src/index/. */
#pragma once

#include "base/map.h"
#include "index/hits.h"

/* So much about one vector is kept beside it. */
struct vector_place {
    int64_t generation, ordinal;
    double length;
};

/* Those of an item. */
struct vector_segment {
    qr_uuid item_id;
    size_t count, capacity;
    struct vector_place *places;
    float *vectors;
};

/* Whether there is memory for so many bytes more. */
typedef bool vector_room_fn(void *arg, size_t more_bytes);

struct vector_content {
    size_t dimension;
    struct qr_map segments;      /* item id → struct vector_segment */
    struct vector_segment *last; /* the one that was added to: rows of an item mostly come one after the other */
    size_t bytes;                /* of all, about */
    size_t granted_bytes;        /* so many were asked for */
    vector_room_fn *room;
    void *room_arg;
};

void qr_vector_content_init(struct vector_content *content, int dimension, vector_room_fn *room, void *arg);
/* Frees it; what was granted is the caller's to give back. It can be filled again. */
void qr_vector_content_clear(struct vector_content *content);

/* `bytes` is what the row has. False: no room. */
bool qr_vector_content_add(struct vector_content *content, const struct qr_index_hit *hit, qr_str bytes);
/* The item's vectors are those of `from` from now on, perhaps none. False: no memory; then they are none. */
bool qr_vector_content_replace(struct vector_content *content, struct vector_content *from, qr_str item_id);

/* Offers all that may be shown. */
void qr_vector_content_scan(const struct vector_content *content, const struct cosine *cosine, struct hits *hits);
