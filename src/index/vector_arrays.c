/* Who may look into an array, who reads for it, and what is taken from whom. */
#include "index/vector_arrays.h"

#include "base/mem.h"

#include <assert.h>

enum {
    RECENT_USES = 16, /* A3 */
    CHANGED_ITEMS_MIN = 256,
    CHANGED_PART = 4, /* A4: more than these, and than this part of all */
};

struct vector_array {
    /* set when it is made */
    struct vector_arrays *arrays;
    qr_uuid base_id;
    struct qr_vector_space space;

    /* under the lock */
    struct vector_array *next;
    int users;          /* with users it stays */
    int scanners;       /* who look into the content: it does not change meanwhile */
    bool is_being_read; /* A2 */
    bool is_lost;       /* meanwhile: what is read does not count for others */
    bool is_loaded;     /* else nothing of the content counts */
    uint64_t last_use;
    uint64_t rests_until_use; /* there was no room */
    struct qr_map changed;    /* ids of items that were marked since they were read */
    struct vector_content content;
};

void qr_vector_arrays_init(struct vector_arrays *arrays, size_t bytes_max)
{
    *arrays = (struct vector_arrays){.bytes_max = bytes_max};
    qr_mutex_init(&arrays->lock);
    qr_signal_init(&arrays->changed);
}

/* ---- memory; under the lock ---- */

static void clear(struct vector_array *array)
{
    assert(array->scanners == 0);
    array->arrays->bytes -= array->content.granted_bytes;
    qr_vector_content_clear(&array->content);
    qr_map_done(&array->changed);
    array->is_loaded = false;
}

static void remove_array(struct vector_array *array)
{
    struct vector_array **link = &array->arrays->first;
    while (*link != array) {
        link = &(*link)->next;
    }
    *link = array->next;
    clear(array);
    qr_free(array);
}

/* The one to take memory from, or NULL (A3). */
static struct vector_array *find_unused(const struct vector_arrays *arrays)
{
    struct vector_array *oldest = NULL;
    for (struct vector_array *array = arrays->first; array; array = array->next) {
        const bool may_go = array->users == 0 && array->last_use + RECENT_USES < arrays->uses;
        if (may_go && (!oldest || array->last_use < oldest->last_use)) {
            oldest = array;
        }
    }
    return oldest;
}

static bool grant(void *arg, size_t more_bytes)
{
    struct vector_arrays *arrays = arg;
    QR_HOLD(&arrays->lock);
    while (more_bytes > arrays->bytes_max - arrays->bytes) {
        struct vector_array *unused = find_unused(arrays);
        if (!unused) {
            return false;
        }
        remove_array(unused);
    }
    arrays->bytes += more_bytes;
    return true;
}

/* Gives back what the content was granted and does not need. */
static void give_back(struct vector_arrays *arrays, struct vector_content *content)
{
    arrays->bytes -= content->granted_bytes - content->bytes;
    content->granted_bytes = content->bytes;
}

void qr_vector_arrays_done(struct vector_arrays *arrays)
{
    while (arrays->first) {
        remove_array(arrays->first);
    }
    qr_signal_done(&arrays->changed);
    qr_mutex_done(&arrays->lock);
}

/* ---- changes ---- */

/* With users it is read anew by the next one. */
static void lose(struct vector_array *array)
{
    if (array->users == 0) {
        remove_array(array);
    } else {
        array->is_loaded = false;
        array->is_lost = true;
        qr_map_done(&array->changed);
    }
}

static void note_changed(struct vector_array *array, const qr_uuid *item_id)
{
    if (!array->is_loaded && !array->is_being_read) {
        return; /* all of it will be read */
    }
    const size_t changed_max = CHANGED_ITEMS_MIN + array->content.segments.count / CHANGED_PART;
    const qr_str key = {(const char *)item_id->bytes, QR_UUID_BYTES};
    if (array->changed.count >= changed_max || !qr_map_put(&array->changed, key, array)) {
        lose(array); /* A4 */
    }
}

void qr_vector_arrays_mark(struct vector_arrays *arrays, qr_uuid base_id, qr_uuid item_id)
{
    QR_HOLD(&arrays->lock);
    for (struct vector_array *array = arrays->first, *next; array; array = next) {
        next = array->next;
        if (qr_uuid_equal(array->base_id, base_id)) {
            note_changed(array, &item_id);
        }
    }
}

void qr_vector_arrays_forget(struct vector_arrays *arrays, qr_uuid base_id)
{
    QR_HOLD(&arrays->lock);
    for (struct vector_array *array = arrays->first, *next; array; array = next) {
        next = array->next;
        if (qr_uuid_equal(array->base_id, base_id)) {
            lose(array);
        }
    }
}

/* ---- users ---- */

static struct vector_array *find(const struct vector_arrays *arrays, const struct vector_search *search)
{
    struct vector_array *array = arrays->first;
    while (array && !(qr_uuid_equal(array->base_id, search->base_id) && array->space.model == search->space.model &&
                      array->space.dimension == search->space.dimension)) {
        array = array->next;
    }
    return array;
}

static struct vector_array *add(struct vector_arrays *arrays, const struct vector_search *search)
{
    struct vector_array *array = qr_alloc_zero(sizeof *array);
    if (array) {
        array->arrays = arrays;
        array->base_id = search->base_id;
        array->space = search->space;
        array->next = arrays->first;
        qr_map_init(&array->changed, 1); /* ids are ours: nobody chooses keys that collide */
        qr_vector_content_init(&array->content, search->space.dimension, grant, arrays);
        arrays->first = array;
    }
    return array;
}

/* NULL where there is no memory. */
static struct vector_array *take(struct vector_arrays *arrays, const struct vector_search *search)
{
    QR_HOLD(&arrays->lock);
    struct vector_array *array = find(arrays, search);
    array = array ? array : add(arrays, search);
    if (array) {
        array->users++;
        array->last_use = ++arrays->uses;
    }
    return array;
}

static void give(struct vector_array *array)
{
    QR_HOLD(&array->arrays->lock);
    if (--array->users == 0 && !array->is_loaded) {
        clear(array); /* it was lost meanwhile; what remains says when to try again */
    }
}

/* ---- reading ---- */

/* Under the lock. */
static void wait_for_scanners(struct vector_array *array)
{
    while (array->scanners > 0) {
        qr_signal_wait(&array->arrays->changed, &array->arrays->lock);
    }
}

enum entrance { MAY_LOOK, MUST_READ, HAS_NO_ROOM };

static void begin_reading(struct vector_array *array, struct vector_reading *ret_reading)
{
    array->is_being_read = true;
    array->is_lost = false;
    *ret_reading = (struct vector_reading){.space = array->space, .is_whole = !array->is_loaded};
    if (ret_reading->is_whole) {
        wait_for_scanners(array);
        clear(array);
    }
    qr_vector_content_init(&ret_reading->content, array->space.dimension, grant, array->arrays);
    ret_reading->items = array->changed;
    qr_map_init(&array->changed, array->changed.seed);
}

static enum entrance enter(struct vector_array *array, struct vector_reading *ret_reading)
{
    QR_HOLD(&array->arrays->lock);
    while (array->is_being_read) {
        qr_signal_wait(&array->arrays->changed, &array->arrays->lock);
    }
    if (array->is_loaded && array->changed.count == 0) {
        array->scanners++;
        return MAY_LOOK;
    }
    if (!array->is_loaded && array->arrays->uses < array->rests_until_use) {
        return HAS_NO_ROOM;
    }
    begin_reading(array, ret_reading);
    return MUST_READ;
}

static void take_whole(struct vector_array *array, struct vector_content *content)
{
    array->content = *content; /* it was cleared before */
    qr_vector_content_init(content, array->space.dimension, grant, array->arrays);
}

static bool take_items(struct vector_array *array, struct vector_reading *reading)
{
    size_t cursor = 0;
    qr_str item_id;
    void *value;
    array->content.granted_bytes += reading->content.granted_bytes;
    reading->content.granted_bytes = 0;
    while (qr_map_next(&reading->items, &cursor, &item_id, &value)) {
        if (!qr_vector_content_replace(&array->content, &reading->content, item_id)) {
            return false;
        }
    }
    return true;
}

/* False when memory ran out. */
static bool take_over(struct vector_array *array, struct vector_reading *reading)
{
    if (reading->is_whole) {
        take_whole(array, &reading->content);
    } else if (!take_items(array, reading)) {
        return false;
    }
    give_back(array->arrays, &array->content);
    return true;
}

/* True: the array is as was read, and the caller may look. */
static bool end_reading(struct vector_array *array, struct vector_reading *reading, bool is_read)
{
    QR_HOLD(&array->arrays->lock);
    wait_for_scanners(array);
    const bool may_look = is_read && !reading->is_out_of_room && take_over(array, reading);
    if (may_look) {
        array->is_loaded = !array->is_lost;
        array->scanners++;
    } else {
        clear(array);
        array->rests_until_use = is_read ? array->arrays->uses + RECENT_USES : 0;
    }
    array->arrays->bytes -= reading->content.granted_bytes;
    qr_vector_content_clear(&reading->content);
    qr_map_done(&reading->items);
    array->is_being_read = false;
    qr_signal_all(&array->arrays->changed);
    return may_look;
}

/* ---- searching ---- */

static void look(struct vector_array *array, const struct cosine *cosine, struct hits *hits)
{
    qr_vector_content_scan(&array->content, cosine, hits);
    QR_HOLD(&array->arrays->lock);
    if (--array->scanners == 0) {
        qr_signal_all(&array->arrays->changed);
    }
}

static qr_rc enter_or_read(struct vector_array *array, const struct vector_search *search, bool *ret_may_look,
                           qr_err *err)
{
    struct vector_reading reading;
    const enum entrance entrance = enter(array, &reading);
    *ret_may_look = entrance == MAY_LOOK;
    if (entrance == MUST_READ) {
        const qr_rc rc = search->read(search->read_arg, &reading, err);
        *ret_may_look = end_reading(array, &reading, rc == QR_OK);
        return rc;
    }
    return QR_OK;
}

qr_rc qr_vector_arrays_search(struct vector_arrays *arrays, const struct vector_search *search, struct hits *hits,
                              bool *ret_is_done, qr_err *err)
{
    *ret_is_done = false;
    struct vector_array *array = arrays->bytes_max ? take(arrays, search) : NULL;
    if (!array) {
        return QR_OK;
    }
    bool may_look;
    const qr_rc rc = enter_or_read(array, search, &may_look, err);
    if (may_look) {
        look(array, search->cosine, hits);
        *ret_is_done = true;
    }
    give(array);
    return rc;
}
