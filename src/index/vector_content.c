/* A map of segments, each two arrays: a scan goes through the vectors of an item one behind the other. */
#include "index/vector_content.h"

#include "base/mem.h"

enum {
    SEGMENT_BYTES = 256,       /* beside its vectors: itself, its place in the map, what the allocator adds */
    ROOM_STEP_BYTES = 1 << 20, /* asked for at a time */
};

void qr_vector_content_init(struct vector_content *content, int dimension, vector_room_fn *room, void *arg)
{
    *content = (struct vector_content){.dimension = (size_t)dimension, .room = room, .room_arg = arg};
    qr_map_init(&content->segments, 1); /* ids are ours: nobody chooses keys that collide */
}

static void free_segment(struct vector_segment *segment)
{
    if (segment) {
        qr_free(segment->places);
        qr_free(segment->vectors);
        qr_free(segment);
    }
}

void qr_vector_content_clear(struct vector_content *content)
{
    size_t cursor = 0;
    qr_str key;
    void *segment;
    while (qr_map_next(&content->segments, &cursor, &key, &segment)) {
        free_segment(segment);
    }
    qr_map_done(&content->segments);
    qr_map_init(&content->segments, 1);
    content->bytes = content->granted_bytes = 0;
    content->last = NULL;
}

/* ---- adding ---- */

static size_t vector_bytes(const struct vector_content *content)
{
    return content->dimension * sizeof(float) + sizeof(struct vector_place);
}

static size_t segment_bytes(const struct vector_content *content, const struct vector_segment *segment)
{
    return SEGMENT_BYTES + segment->capacity * vector_bytes(content);
}

static bool ask_for_room(struct vector_content *content, size_t bytes)
{
    const bool is_granted = content->room(content->room_arg, bytes);
    content->granted_bytes += is_granted ? bytes : 0;
    return is_granted;
}

static bool has_room(struct vector_content *content, size_t more_bytes)
{
    if (content->bytes + more_bytes > content->granted_bytes && !ask_for_room(content, more_bytes + ROOM_STEP_BYTES) &&
        !ask_for_room(content, more_bytes)) {
        return false;
    }
    content->bytes += more_bytes;
    return true;
}

static struct vector_segment *take_segment(struct vector_content *content, const qr_uuid *item_id)
{
    const qr_str key = {(const char *)item_id->bytes, QR_UUID_BYTES};
    struct vector_segment *segment = qr_map_find(&content->segments, key);
    if (segment || !has_room(content, SEGMENT_BYTES)) {
        return segment;
    }
    segment = qr_alloc_zero(sizeof *segment);
    if (segment && !qr_map_put(&content->segments, key, segment)) {
        qr_free(segment);
        return NULL;
    }
    if (segment) {
        segment->item_id = *item_id;
    }
    return segment;
}

/* What it does not need others may have. */
static void trim(struct vector_content *content, struct vector_segment *segment)
{
    if (segment->count == segment->capacity || segment->count == 0) {
        return;
    }
    struct vector_place *places = qr_resize(segment->places, segment->count * sizeof *places);
    segment->places = places ? places : segment->places;
    float *vectors = qr_resize(segment->vectors, segment->count * content->dimension * sizeof *vectors);
    segment->vectors = vectors ? vectors : segment->vectors;
    content->bytes -= (segment->capacity - segment->count) * vector_bytes(content);
    segment->capacity = segment->count;
}

/* NULL: no room. */
static struct vector_segment *segment_of(struct vector_content *content, const qr_uuid *item_id)
{
    if (!content->last || !qr_uuid_equal(content->last->item_id, *item_id)) {
        if (content->last) {
            trim(content, content->last);
        }
        content->last = take_segment(content, item_id);
    }
    return content->last;
}

static bool grow(struct vector_content *content, struct vector_segment *segment)
{
    enum { FIRST = 4, DOUBLED_MAX = 1024 }; /* a long document does not take twice what it needs */
    const size_t more = segment->count ? QR_MIN(segment->count, (size_t)DOUBLED_MAX) : (size_t)FIRST;
    const size_t capacity = segment->capacity + more;
    if (!has_room(content, more * vector_bytes(content))) {
        return false;
    }
    struct vector_place *places = qr_resize(segment->places, capacity * sizeof *places);
    segment->places = places ? places : segment->places;
    float *vectors = qr_resize(segment->vectors, capacity * content->dimension * sizeof *vectors);
    segment->vectors = vectors ? vectors : segment->vectors;
    segment->capacity = places && vectors ? capacity : segment->capacity;
    return places && vectors;
}

bool qr_vector_content_add(struct vector_content *content, const struct qr_index_hit *hit, qr_str bytes)
{
    struct vector_segment *segment = segment_of(content, &hit->item_id);
    if (!segment || (segment->count == segment->capacity && !grow(content, segment))) {
        return false;
    }
    float *vector = segment->vectors + segment->count * content->dimension;
    struct vector_place *place = &segment->places[segment->count++];
    *place = (struct vector_place){.generation = hit->generation, .ordinal = hit->ordinal};
    if (bytes.len == content->dimension * sizeof *vector) {
        memcpy(vector, bytes.ptr, bytes.len);
        place->length = qr_vector_length(vector, content->dimension);
    } else { /* a damaged row: it has no direction */
        memset(vector, 0, content->dimension * sizeof *vector);
    }
    return true;
}

bool qr_vector_content_replace(struct vector_content *content, struct vector_content *from, qr_str item_id)
{
    content->last = from->last = NULL;
    struct vector_segment *old = qr_map_take(&content->segments, item_id);
    if (old) {
        content->bytes -= segment_bytes(content, old);
        free_segment(old);
    }
    struct vector_segment *segment = qr_map_take(&from->segments, item_id);
    if (!segment) {
        return true;
    }
    from->bytes -= segment_bytes(from, segment);
    if (!qr_map_put(&content->segments, item_id, segment)) {
        free_segment(segment);
        return false;
    }
    content->bytes += segment_bytes(content, segment);
    return true;
}

/* ---- scanning ---- */

static void scan_segment(const struct vector_segment *segment, const struct cosine *cosine, struct hits *hits)
{
    for (size_t i = 0; i < segment->count; i++) {
        const struct vector_place *place = &segment->places[i];
        if (qr_hits_may_show(hits, segment->item_id, place->generation)) {
            const struct qr_index_hit hit = {
                .item_id = segment->item_id,
                .generation = place->generation,
                .ordinal = place->ordinal,
                .score = qr_cosine_of(cosine, segment->vectors + i * cosine->dimension, place->length),
            };
            qr_hits_offer(hits, &hit);
        }
    }
}

void qr_vector_content_scan(const struct vector_content *content, const struct cosine *cosine, struct hits *hits)
{
    size_t cursor = 0;
    qr_str key;
    void *segment;
    while (qr_map_next(&content->segments, &cursor, &key, &segment)) {
        scan_segment(segment, cosine, hits);
    }
}
