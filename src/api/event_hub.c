/* The thread that reads events, and those who follow them (api/event_hub.h). */
#include "api/event_hub.h"

#include "api/event_ring.h"
#include "api/event_text.h"
#include "api/pieces.h"
#include "api/viewers.h"
#include "base/mem.h"
#include "store/keys.h"

enum {
    LOOK_MS = 1000,         /* at least so often (H1, H4) */
    PAUSE_MS = 25,          /* between two looks: what comes in a burst is handed out together */
    PAGE_EVENTS = 500,      /* read at once */
    SIGHT_COST_TIMES = 20,  /* looking at what they may see takes no more than this part of the time */
    PIECE_BYTES = 16 << 10, /* a follower is given no more at once, but for one event */
};

struct follower {
    struct quire_pieces pieces;
    struct qr_event_hub *hub;
    struct follower *next, *previous;
    struct qr_viewer *viewer;
    struct qr_follow follow; /* the place: H3 */
    bool has_begun;          /* its beginning is written */
    bool is_over;            /* the base that it follows is gone */
    int64_t told_ms;         /* when it was last given something */
    void (*wake)(void *arg);
    void *arg;
};

struct qr_event_hub {
    struct quire *quire;
    int64_t beat_ms;
    struct qr_thread thread;
    struct qr_signal changed;
    struct qr_mutex lock; /* holds what follows */
    bool has_thread, is_ending, is_notified;
    struct follower *first;
    struct qr_viewer *viewers;
    struct qr_event_ring ring;
    int64_t sights_ms; /* when they are looked at again */
};

static int64_t now(void)
{
    return qr_clock_mono_ms(qr_clock_system());
}

/* ---- what a follower is to be told; with the lock held ---- */

static bool is_visible(const struct follower *follower, const struct qr_event_entry *entry)
{
    const struct qr_follow *follow = &follower->follow;
    return qr_viewer_sees(follower->viewer, entry->base_id) &&
           (!follow->has_base || qr_uuid_equal(follow->base_id, entry->base_id));
}

/* H4 */
static bool may_go_on(const struct follower *follower)
{
    const struct qr_follow *follow = &follower->follow;
    return !follower->is_over && qr_viewer_may(follower->viewer) &&
           (!follow->has_base || qr_viewer_sees(follower->viewer, follow->base_id));
}

static bool is_in_ring(const struct follower *follower)
{
    return follower->hub->ring.is_open && follower->follow.place.id >= follower->hub->ring.after_id;
}

static bool is_beat_due(const struct follower *follower)
{
    return now() - follower->told_ms >= follower->hub->beat_ms;
}

static void give(struct follower *follower, const struct qr_event_entry *entry, struct qr_buf *out)
{
    if (is_visible(follower, entry)) {
        qr_buf_add(out, (qr_str){entry->text, entry->len});
        follower->is_over = follower->follow.has_base && entry->ends_base;
    }
    follower->follow.place = entry->place;
}

static void give_from_ring(struct follower *follower, struct qr_buf *out)
{
    const struct qr_event_ring *ring = &follower->hub->ring;
    for (size_t i = qr_event_ring_find(ring, follower->follow.place.id);
         i < ring->count && out->len < PIECE_BYTES && !follower->is_over; i++) {
        give(follower, qr_event_ring_at(ring, i), out);
    }
}

static void begin(struct follower *follower, struct qr_buf *out)
{
    follower->has_begun = true;
    if (follower->follow.is_reset) {
        qr_event_write_reset(follower->follow.place, out);
    } else {
        qr_event_write_start(follower->follow.place, out);
    }
}

/* True: that is all for now. */
static bool give_what_is_there(struct follower *follower, struct qr_buf *out, bool *ret_is_end)
{
    QR_HOLD(&follower->hub->lock);
    *ret_is_end = !may_go_on(follower);
    if (*ret_is_end) {
        return true;
    }
    if (!follower->has_begun) {
        begin(follower, out);
    }
    const bool is_enough = !follower->hub->ring.is_open || is_in_ring(follower);
    if (is_in_ring(follower)) {
        give_from_ring(follower, out);
    }
    if (out->len == 0 && is_enough && is_beat_due(follower)) {
        qr_event_write_beat(follower->follow.place, out);
    }
    if (out->len) {
        follower->told_ms = now();
    }
    return is_enough || out->len;
}

/* ---- who is further behind ---- */

struct page {
    int64_t after_id;
    int limit;
    struct qr_arena *arena;
    struct qr_event *events;
    size_t count;
};

static qr_rc read_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct page *page = arg;
    qr_arena_reset(page->arena);
    return qr_events_after(tx, page->after_id, page->limit, page->arena, &page->events, &page->count, err);
}

/* A short page is all there was when it was read, so that nothing is missing up to what the ring has. */
static qr_rc give_page(struct follower *follower, const struct page *page, struct qr_buf *out, qr_err *err)
{
    QR_HOLD(&follower->hub->lock);
    size_t i = 0;
    for (; i < page->count && out->len < PIECE_BYTES && !follower->is_over; i++) {
        struct qr_event_entry entry;
        QR_TRY(qr_event_entry_make(&page->events[i], &entry, err));
        give(follower, &entry, out);
        qr_event_entry_done(&entry);
    }
    const struct qr_event_ring *ring = &follower->hub->ring;
    if (i == page->count && page->count < (size_t)page->limit && follower->follow.place.id < ring->after_id) {
        follower->follow.place = (struct qr_event_place){.id = ring->after_id};
    }
    follower->told_ms = out->len ? now() : follower->told_ms;
    return qr_buf_check(out, err);
}

static int64_t place_of(struct follower *follower)
{
    QR_HOLD(&follower->hub->lock);
    return follower->follow.place.id;
}

static qr_rc catch_up(struct follower *follower, struct qr_buf *out, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct page page = {.after_id = place_of(follower), .limit = PAGE_EVENTS, .arena = &arena};
    qr_arena_init(&arena, 0);
    QR_TRY(qr_db_read(follower->hub->quire->db, read_page, &page, err));
    return give_page(follower, &page, out, err);
}

static qr_rc read_events(struct quire_pieces *pieces, struct qr_buf *out, bool *ret_is_end, qr_err *err)
{
    struct follower *follower = (struct follower *)pieces;
    while (!give_what_is_there(follower, out, ret_is_end)) {
        QR_TRY(catch_up(follower, out, err));
        if (out->len) {
            return QR_OK;
        }
    }
    return QR_OK;
}

/* ---- the thread ---- */

static void on_notice(void *arg, const char *channel)
{
    struct qr_event_hub *hub = arg;
    QR_HOLD(&hub->lock);
    hub->is_notified = true;
    if (strcmp(channel, QR_KEYS_CHANNEL) == 0) {
        hub->sights_ms = 0;
    }
    qr_signal_one(&hub->changed);
}

/* With the lock held. One that has nothing to be told of what is new has seen it: H3. */
static bool has_news(struct follower *follower)
{
    const struct qr_event_ring *ring = &follower->hub->ring;
    if (!follower->has_begun || !is_in_ring(follower)) {
        return true;
    }
    for (size_t i = qr_event_ring_find(ring, follower->follow.place.id); i < ring->count; i++) {
        if (is_visible(follower, qr_event_ring_at(ring, i))) {
            return true;
        }
        follower->follow.place = qr_event_ring_at(ring, i)->place;
    }
    return false;
}

static void wake_followers(struct qr_event_hub *hub)
{
    QR_HOLD(&hub->lock);
    for (struct follower *follower = hub->first; follower; follower = follower->next) {
        if (follower->wake && (!may_go_on(follower) || is_beat_due(follower) || has_news(follower))) {
            follower->wake(follower->arg);
        }
    }
}

static qr_rc find_newest(struct qr_tx *tx, void *arg, qr_err *err)
{
    bool is_kept;
    return qr_events_find_place(tx, (struct qr_event_place){0}, &is_kept, arg, err);
}

static qr_rc open_ring(struct qr_event_hub *hub, qr_err *err)
{
    struct qr_event_place newest;
    QR_TRY(qr_db_read(hub->quire->db, find_newest, &newest, err));
    QR_HOLD(&hub->lock);
    return qr_event_ring_open(&hub->ring, newest, err);
}

static qr_rc add_page(struct qr_event_hub *hub, const struct page *page, qr_err *err)
{
    QR_HOLD(&hub->lock);
    for (size_t i = 0; i < page->count; i++) {
        QR_TRY(qr_event_ring_add(&hub->ring, &page->events[i], err));
    }
    return QR_OK;
}

static bool has_ring(struct qr_event_hub *hub, int64_t *ret_newest_id)
{
    QR_HOLD(&hub->lock);
    *ret_newest_id = hub->ring.newest.id;
    return hub->ring.is_open;
}

/* H1 */
static qr_rc look_for_events(struct qr_event_hub *hub, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct page page = {.limit = PAGE_EVENTS, .count = PAGE_EVENTS, .arena = &arena};
    qr_arena_init(&arena, 0);
    if (!has_ring(hub, &page.after_id)) {
        return open_ring(hub, err);
    }
    while (page.count == PAGE_EVENTS) {
        QR_TRY(qr_db_read(hub->quire->db, read_page, &page, err));
        QR_TRY(add_page(hub, &page, err));
        page.after_id = page.count ? page.events[page.count - 1].place.id : page.after_id;
    }
    return QR_OK;
}

static struct qr_viewer *next_viewer(struct qr_event_hub *hub, struct qr_viewer *viewer, struct qr_sight *sight)
{
    QR_HOLD(&hub->lock);
    struct qr_viewer *next = viewer ? qr_viewer_next(viewer) : hub->viewers;
    if (next) {
        (void)qr_viewer_hold_again(next);
    }
    if (viewer) {
        if (sight) {
            qr_viewer_set(viewer, sight);
        }
        qr_viewer_release(&hub->viewers, viewer);
    }
    return next;
}

/* Whether it is time to; a notice that comes from here on makes it so again. */
static bool begin_sights(struct qr_event_hub *hub, int64_t now_ms)
{
    QR_HOLD(&hub->lock);
    const bool is_time = now_ms >= hub->sights_ms;
    hub->sights_ms = is_time ? now_ms + LOOK_MS : hub->sights_ms;
    return is_time;
}

static void end_sights(struct qr_event_hub *hub, int64_t took_ms)
{
    QR_HOLD(&hub->lock);
    if (hub->sights_ms) {
        hub->sights_ms = now() + QR_MAX(took_ms * SIGHT_COST_TIMES, (int64_t)LOOK_MS);
    }
}

/* H4. Where the database cannot be asked they keep what they had: it has no events for them either. */
static void look_at_sights(struct qr_event_hub *hub)
{
    const int64_t began_ms = now();
    if (!begin_sights(hub, began_ms)) {
        return;
    }
    struct qr_viewer *viewer = next_viewer(hub, NULL, NULL);
    while (viewer) {
        struct qr_sight sight = {0};
        const qr_rc rc = qr_viewer_look(hub->quire, viewer, &sight, NULL);
        viewer = next_viewer(hub, viewer, rc == QR_OK ? &sight : NULL);
    }
    end_sights(hub, now() - began_ms);
}

/* False: it ends. Nobody is waited for where nobody follows: then what is new is not even read. */
static bool wait_for_something(struct qr_event_hub *hub)
{
    QR_HOLD(&hub->lock);
    const int64_t looked_ms = now();
    while (!hub->is_ending && !hub->first) {
        qr_event_ring_close(&hub->ring);
        qr_signal_wait(&hub->changed, &hub->lock);
    }
    while (!hub->is_ending &&
           qr_signal_wait_until(&hub->changed, &hub->lock, qr_clock_system(), looked_ms + PAUSE_MS)) {
    }
    while (!hub->is_ending && !hub->is_notified &&
           qr_signal_wait_until(&hub->changed, &hub->lock, qr_clock_system(),
                                looked_ms + QR_MIN((int64_t)LOOK_MS, hub->beat_ms))) {
    }
    hub->is_notified = false;
    return !hub->is_ending;
}

static void run(void *arg)
{
    struct qr_event_hub *hub = arg;
    (void)!qr_db_listen(hub->quire->db, QR_EVENTS_CHANNEL, on_notice, hub, NULL); /* else it looks from time to time */
    (void)!qr_db_listen(hub->quire->db, QR_KEYS_CHANNEL, on_notice, hub, NULL);
    do {
        look_at_sights(hub);
        (void)!look_for_events(hub, NULL); /* the next look finds them */
        wake_followers(hub);
    } while (wait_for_something(hub));
    qr_db_unlisten(hub->quire->db, hub);
}

/* ---- life ---- */

qr_rc qr_event_hub_create(struct qr_event_hub **ret_hub, struct quire *quire, int64_t beat_ms, qr_err *err)
{
    struct qr_event_hub *hub = qr_alloc_zero(sizeof *hub);
    if (!hub) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for events");
    }
    hub->quire = quire;
    hub->beat_ms = beat_ms;
    qr_mutex_init(&hub->lock);
    qr_signal_init(&hub->changed);
    *ret_hub = hub;
    return QR_OK;
}

static void end_thread(struct qr_event_hub *hub)
{
    QR_HOLD(&hub->lock);
    hub->is_ending = true;
    qr_signal_one(&hub->changed);
}

void qr_event_hub_free(struct qr_event_hub *hub)
{
    if (!hub) {
        return;
    }
    if (hub->has_thread) {
        end_thread(hub);
        qr_thread_join(&hub->thread);
    }
    qr_event_ring_close(&hub->ring);
    qr_signal_done(&hub->changed);
    qr_mutex_done(&hub->lock);
    qr_free(hub);
}

static void set_wake(struct quire_pieces *pieces, void (*wake)(void *arg), void *arg)
{
    struct follower *follower = (struct follower *)pieces;
    QR_HOLD(&follower->hub->lock);
    follower->wake = wake;
    follower->arg = arg;
}

static void leave(struct follower *follower)
{
    struct qr_event_hub *hub = follower->hub;
    QR_HOLD(&hub->lock);
    *(follower->previous ? &follower->previous->next : &hub->first) = follower->next;
    if (follower->next) {
        follower->next->previous = follower->previous;
    }
    qr_viewer_release(&hub->viewers, follower->viewer);
}

static void free_follower(struct quire_pieces *pieces)
{
    leave((struct follower *)pieces);
    qr_free(pieces);
}

static const struct qr_pieces_kind kind = {.read = read_events, .on_wake = set_wake, .free = free_follower};

static qr_rc require_thread(struct qr_event_hub *hub, qr_err *err)
{
    if (!hub->has_thread) {
        QR_TRY(qr_thread_spawn(&hub->thread, "quire-events", run, hub, err));
        hub->has_thread = true;
    }
    return QR_OK;
}

static qr_rc enter(struct qr_event_hub *hub, const struct quire_request *from, struct follower *follower, qr_err *err)
{
    QR_HOLD(&hub->lock);
    QR_TRY(require_thread(hub, err));
    follower->viewer = qr_viewer_hold(&hub->viewers, from);
    if (!follower->viewer) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for events");
    }
    follower->next = hub->first;
    if (follower->next) {
        follower->next->previous = follower;
    }
    hub->first = follower;
    hub->is_notified = true;
    qr_signal_one(&hub->changed);
    return QR_OK;
}

/* What it may see is known from the beginning. */
static qr_rc look_at_sight(struct qr_event_hub *hub, struct qr_viewer *viewer, qr_err *err)
{
    struct qr_sight sight;
    QR_TRY(qr_viewer_look(hub->quire, viewer, &sight, err));
    QR_HOLD(&hub->lock);
    qr_viewer_set(viewer, &sight);
    return QR_OK;
}

/* ---- once ---- */

static struct qr_viewer *hold_viewer(struct qr_event_hub *hub, const struct quire_request *from)
{
    QR_HOLD(&hub->lock);
    return qr_viewer_hold(&hub->viewers, from);
}

static void release_viewer(struct qr_event_hub *hub, struct qr_viewer *viewer)
{
    QR_HOLD(&hub->lock);
    qr_viewer_release(&hub->viewers, viewer);
}

static qr_rc tell_pages(struct follower *follower, struct qr_buf *out, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct page page = {.limit = PAGE_EVENTS, .count = PAGE_EVENTS, .arena = &arena};
    qr_arena_init(&arena, 0);
    while (page.count == PAGE_EVENTS && out->len < PIECE_BYTES && !follower->is_over) {
        page.after_id = place_of(follower);
        QR_TRY(qr_db_read(follower->hub->quire->db, read_page, &page, err));
        QR_TRY(give_page(follower, &page, out, err));
    }
    return QR_OK;
}

qr_rc qr_event_hub_tell(struct qr_event_hub *hub, const struct quire_request *from, const struct qr_follow *follow,
                        struct qr_buf *out, qr_err *err)
{
    struct follower follower = {.hub = hub, .follow = *follow, .viewer = hold_viewer(hub, from)};
    if (!follower.viewer) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for events");
    }
    begin(&follower, out);
    qr_rc rc = look_at_sight(hub, follower.viewer, err);
    rc = rc == QR_OK ? tell_pages(&follower, out, err) : rc;
    release_viewer(hub, follower.viewer);
    return rc;
}

/* ---- for as long as somebody reads ---- */

qr_rc qr_event_hub_follow(struct qr_event_hub *hub, const struct quire_request *from, const struct qr_follow *follow,
                          struct quire_pieces **ret_pieces, qr_err *err)
{
    struct follower *follower = qr_alloc_zero(sizeof *follower);
    if (!follower) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for events");
    }
    *follower =
        (struct follower){.pieces = {.kind = &kind, .size_bytes = -1}, .hub = hub, .follow = *follow, .told_ms = now()};
    qr_rc rc = enter(hub, from, follower, err);
    if (rc != QR_OK) {
        qr_free(follower);
        return rc;
    }
    rc = look_at_sight(hub, follower->viewer, err);
    if (rc != QR_OK) {
        free_follower(&follower->pieces);
        return rc;
    }
    *ret_pieces = &follower->pieces;
    return QR_OK;
}
