/* The sequence of events, over every database. */
#include "store/events.h"

#include "base/sync.h"
#include "store/change.h"
#include "store/ids.h"
#include "support/workflow_fixture.h"

#include <stdatomic.h>

struct reading {
    struct qr_event_place asked, newest;
    bool is_kept;
    struct qr_arena *arena;
    struct qr_event *events;
    size_t count;
};

static qr_rc read_after(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct reading *reading = arg;
    QR_TRY(qr_events_find_place(tx, reading->asked, &reading->is_kept, &reading->newest, err));
    return qr_events_after(tx, reading->asked.id, 100, reading->arena, &reading->events, &reading->count, err);
}

static struct reading read_events(struct qr_db *db, struct qr_arena *arena, int64_t id, int64_t at_ms)
{
    struct reading reading = {.asked = {id, at_ms}, .arena = arena};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, read_after, &reading, &err));
    return reading;
}

QR_DB_TEST(events_of_all_changes_are_one_sequence) /* EVENT-1, C3 */
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    QR_CHECK_INT(0, read_events(desk.db, &desk.arena, 0, 0).newest.id);
    const qr_uuid a = qr_desk_add_note(&desk, "a", "apples");
    const qr_uuid b = qr_desk_add_note(&desk, "b", "bananas");
    qr_desk_index(&desk, b);
    qr_desk_fail(&desk, a, QR_CODE_CORRUPT);
    const struct reading all = read_events(desk.db, &desk.arena, 0, 0);
    QR_CHECK_INT(4, (int64_t)all.count);
    QR_CHECK(all.is_kept);
    for (size_t i = 0; i < all.count; i++) {
        QR_CHECK_INT((int64_t)i + 1, all.events[i].place.id);
        QR_CHECK_INT(1000000000, all.events[i].place.at_ms);
        QR_CHECK(qr_uuid_equal(desk.base_id, all.events[i].base_id));
    }
    QR_CHECK_TEXT("added", qr_event_kind_name(all.events[0].kind));
    QR_CHECK_TEXT("live", qr_event_kind_name(all.events[2].kind));
    QR_CHECK(qr_uuid_equal(b, all.events[2].item_id));
    QR_CHECK_TEXT("status", qr_event_kind_name(all.events[3].kind));
    QR_CHECK_INT(QR_ITEM_FAILED, all.events[3].status);
    QR_CHECK_TEXT("corrupt", all.events[3].code);
    QR_CHECK_INT(4, all.newest.id);
    QR_CHECK_INT(1, (int64_t)read_events(desk.db, &desk.arena, 3, 0).count);
    qr_desk_close(&desk);
}

QR_DB_TEST(place_is_known_by_its_id_and_its_time) /* EVENT-2, E2 */
{
    struct qr_desk desk;
    qr_desk_open(&desk, t, "{}");
    (void)qr_desk_add_note(&desk, "a", "apples");
    (void)qr_desk_add_note(&desk, "b", "bananas");
    QR_CHECK(read_events(desk.db, &desk.arena, 2, 1000000000).is_kept);
    QR_CHECK(read_events(desk.db, &desk.arena, 2, 0).is_kept);
    QR_CHECK(!read_events(desk.db, &desk.arena, 3, 0).is_kept);         /* of the future */
    QR_CHECK(!read_events(desk.db, &desk.arena, 2, 999999999).is_kept); /* another event had that id */
    QR_CHECK(read_events(desk.db, &desk.arena, 0, 0).is_kept);
    qr_desk_exec(&desk, "DELETE FROM event WHERE id = 1"); /* with its base */
    QR_CHECK(read_events(desk.db, &desk.arena, 1, 7).is_kept);
    qr_desk_close(&desk);
}

struct pruning {
    qr_uuid base_id;
    int64_t before_ms, count;
    int limit;
};

static qr_rc prune(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct pruning *pruning = arg;
    return qr_events_prune(tx, pruning->base_id, pruning->before_ms, pruning->limit, &pruning->count, err);
}

QR_DB_TEST(place_before_what_was_pruned_is_not_kept) /* EVENT-2, E3 */
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    for (int i = 0; i < 5; i++) {
        (void)qr_desk_add_note(&desk, i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : i == 3 ? "d" : "e", "text");
    }
    struct pruning pruning = {.base_id = desk.base_id, .before_ms = 1000000000, .limit = 2};
    QR_CHECK_RC(QR_OK, qr_db_write(desk.db, QR_RELAXED, prune, &pruning, &err));
    QR_CHECK_INT(0, pruning.count); /* they are not older */
    QR_CHECK(read_events(desk.db, &desk.arena, 0, 0).is_kept);
    pruning.before_ms++;
    QR_CHECK_RC(QR_OK, qr_db_write(desk.db, QR_RELAXED, prune, &pruning, &err));
    QR_CHECK_INT(2, pruning.count);
    QR_CHECK(!read_events(desk.db, &desk.arena, 0, 0).is_kept);
    QR_CHECK(!read_events(desk.db, &desk.arena, 1, 0).is_kept);
    const struct reading rest = read_events(desk.db, &desk.arena, 2, 1000000000);
    QR_CHECK(rest.is_kept);
    QR_CHECK_INT(3, (int64_t)rest.count);
    QR_CHECK_INT(3, rest.events[0].place.id);
    qr_desk_close(&desk);
}

/* ---- at once ---- */

enum { WRITERS = 4, WRITES = 40 };

struct writer {
    struct qr_db *db;
    qr_uuid base_id;
    atomic_int *left;
    struct qr_thread thread;
    int64_t seq;
};

static qr_rc write_one(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct writer *writer = arg;
    int64_t id;
    QR_TRY(qr_events_take_ids(tx, 1, &id, err));
    return qr_tx_exec(tx,
                      "INSERT INTO event (base_id, seq, at, item_id, kind, generation, status, code, id) "
                      "VALUES (?1, ?2, 1, NULL, 7, 0, 0, '', ?3)",
                      QR_VALS(qr_val_uuid(&writer->base_id), qr_val_i64(writer->seq), qr_val_i64(id)), NULL, err);
}

static void write_many(void *arg)
{
    struct writer *writer = arg;
    qr_err err;
    for (int i = 0; i < WRITES; i++) {
        writer->seq = i + 1;
        QR_CHECK_RC(QR_OK, qr_db_write(writer->db, QR_RELAXED, write_one, writer, &err));
    }
    atomic_fetch_sub(writer->left, 1);
}

QR_DB_TEST(reader_never_passes_an_event_that_is_committed_later) /* EVENT-1, E1 */
{
    struct qr_desk desk;
    struct writer writers[WRITERS];
    atomic_int left = WRITERS;
    int64_t seen = 0;
    qr_err err;
    qr_desk_open(&desk, t, "{}");
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.db = desk.db, .base_id.bytes = {(unsigned char)(i + 1)}, .left = &left};
        QR_CHECK_RC(QR_OK, qr_thread_spawn(&writers[i].thread, "writer", write_many, &writers[i], &err));
    }
    bool is_last = false;
    while (!is_last) {
        is_last = atomic_load(&left) == 0;
        const struct reading reading = read_events(desk.db, &desk.arena, seen, 0);
        for (size_t i = 0; i < reading.count; i++) {
            QR_CHECK_INT(++seen, reading.events[i].place.id);
        }
        is_last = is_last && reading.count < 100;
        qr_arena_reset(&desk.arena);
    }
    QR_CHECK_INT(WRITERS * WRITES, seen);
    for (int i = 0; i < WRITERS; i++) {
        qr_thread_join(&writers[i].thread);
    }
    qr_desk_close(&desk);
}
