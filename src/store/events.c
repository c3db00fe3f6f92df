/* Reads the table `event`, owns `event_clock`. */
#include "store/events.h"

#include "store/ids.h"

#include <assert.h>

const char *qr_event_kind_name(enum qr_event_kind kind)
{
    static const char *const names[] = {
        [QR_EVENT_ADDED] = "added",   [QR_EVENT_STATUS] = "status", [QR_EVENT_LIVE] = "live",
        [QR_EVENT_HIDDEN] = "hidden", [QR_EVENT_SHOWN] = "shown",   [QR_EVENT_DELETED] = "deleted",
        [QR_EVENT_BASE] = "base",     [QR_EVENT_RUN] = "run"};
    assert(kind >= QR_EVENT_ADDED && kind <= QR_EVENT_RUN);
    return names[kind];
}

qr_rc qr_events_take_ids(struct qr_tx *tx, int64_t count, int64_t *ret_first_id, qr_err *err)
{
    int64_t last = 0;
    QR_TRY(qr_tx_get_i64(tx, "UPDATE event_clock SET last_id = last_id + ?1 WHERE id = 1 RETURNING last_id",
                         QR_VALS(qr_val_i64(count)), NULL, &last, err));
    *ret_first_id = last - count + 1;
    return QR_OK;
}

/* ---- reading ---- */

/* 0 = there is none: its base was deleted, or it was never there. */
static qr_rc time_of(struct qr_tx *tx, int64_t id, int64_t *ret_at_ms, qr_err *err)
{
    *ret_at_ms = 0;
    return id <= 0 ? QR_OK
                   : qr_tx_get_i64(tx, "SELECT at FROM event WHERE id = ?1 AND id > 0", QR_VALS(qr_val_i64(id)), NULL,
                                   ret_at_ms, err);
}

qr_rc qr_events_find_place(struct qr_tx *tx, struct qr_event_place asked, bool *ret_is_kept,
                           struct qr_event_place *ret_newest, qr_err *err)
{
    QR_ROWS(rows);
    int64_t last = 0, pruned = 0, at_ms;
    QR_TRY(qr_tx_query(tx, &rows, "SELECT last_id, pruned_id FROM event_clock WHERE id = 1", QR_NO_VALS, err));
    if (qr_rows_next(&rows)) {
        last = qr_rows_i64(&rows, 0);
        pruned = qr_rows_i64(&rows, 1);
    }
    QR_TRY(qr_rows_end(&rows, err));
    QR_TRY(time_of(tx, asked.id, &at_ms, err));
    const bool is_another = at_ms && asked.at_ms && at_ms != asked.at_ms; /* E2 */
    *ret_is_kept = asked.id >= pruned && asked.id <= last && !is_another;
    *ret_newest = (struct qr_event_place){.id = last};
    return time_of(tx, last, &ret_newest->at_ms, err);
}

static qr_rc read_event(const struct qr_rows *rows, struct qr_arena *arena, struct qr_event *ret_event, qr_err *err)
{
    *ret_event = (struct qr_event){
        .place = {qr_rows_i64(rows, 0), qr_rows_i64(rows, 1)},
        .base_id = qr_rows_uuid(rows, 2),
        .item_id = qr_rows_uuid(rows, 3),
        .kind = (enum qr_event_kind)qr_rows_i64(rows, 4),
        .generation = qr_rows_i64(rows, 5),
        .status = (enum qr_item_status)qr_rows_i64(rows, 6),
        .code = qr_arena_copy(arena, qr_rows_str(rows, 7)),
    };
    return ret_event->code ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for events");
}

qr_rc qr_events_after(struct qr_tx *tx, int64_t id, int limit, struct qr_arena *arena, struct qr_event **ret_events,
                      size_t *ret_count, qr_err *err)
{
    assert(limit > 0);
    struct qr_event *events = qr_arena_array(arena, (size_t)limit, sizeof events[0]);
    size_t count = 0;
    QR_ROWS(rows);
    if (!events) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for events");
    }
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT id, at, base_id, item_id, kind, generation, status, code FROM event "
                       "WHERE id > ?1 AND id > 0 ORDER BY id LIMIT ?2",
                       QR_VALS(qr_val_i64(id), qr_val_i64(limit)), err));
    while (qr_rows_next(&rows)) {
        assert(count < (size_t)limit);
        QR_TRY(read_event(&rows, arena, &events[count++], err));
    }
    QR_TRY(qr_rows_end(&rows, err));
    *ret_events = events;
    *ret_count = count;
    return QR_OK;
}

/* ---- age ---- */

static qr_rc note_pruned(struct qr_tx *tx, int64_t id, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE event_clock SET pruned_id = ?1 WHERE id = 1 AND pruned_id < ?1",
                      QR_VALS(qr_val_i64(id)), NULL, err);
}

static qr_rc remove_old(struct qr_tx *tx, qr_uuid base_id, int64_t below_seq, int64_t before_ms, int64_t *ret_count,
                        int64_t *ret_newest_id, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "DELETE FROM event WHERE base_id = ?1 AND seq < ?2 AND at < ?3 RETURNING id",
                       QR_VALS(qr_val_uuid(&base_id), qr_val_i64(below_seq), qr_val_i64(before_ms)), err));
    *ret_count = *ret_newest_id = 0;
    while (qr_rows_next(&rows)) {
        *ret_newest_id = QR_MAX(*ret_newest_id, qr_rows_i64(&rows, 0));
        ++*ret_count;
    }
    return qr_rows_end(&rows, err);
}

/* They are in the order of time: if the oldest is young, all are. */
qr_rc qr_events_prune(struct qr_tx *tx, qr_uuid base_id, int64_t before_ms, int limit, int64_t *ret_count, qr_err *err)
{
    int64_t oldest_seq = 0, newest_id = 0;
    bool found;
    *ret_count = 0;
    QR_TRY(
        qr_tx_get_i64(tx,
                      "SELECT seq FROM (SELECT seq, at FROM event WHERE base_id = ?1 ORDER BY seq LIMIT 1) AS oldest "
                      "WHERE at < ?2",
                      QR_VALS(qr_val_uuid(&base_id), qr_val_i64(before_ms)), &found, &oldest_seq, err));
    if (!found) {
        return QR_OK;
    }
    QR_TRY(remove_old(tx, base_id, oldest_seq + limit, before_ms, ret_count, &newest_id, err));
    return newest_id ? note_pruned(tx, newest_id, err) : QR_OK;
}
