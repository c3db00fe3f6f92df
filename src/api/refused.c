/* Jobs that wait for an endpoint do not wait longer than it refuses (AGAIN-2). */
#include "api/refused.h"

#include "job/beat.h"
#include "store/circuits.h"

/* ---- all ---- */

enum { STEPS_AT_ONCE = 4, STEPS_A_LOOK = 20, EVERY_MS = 60000 };

struct forward_call {
    struct qr_refused_cursor at, next;
    bool has_more;
};

static qr_rc forward_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct forward_call *call = arg;
    int64_t count;
    return qr_jobs_forward_refused(tx, &call->at, &call->next, &call->has_more, &count, err);
}

/* Lost on a crash, it costs a wait of minutes and nothing else: so it need not be durable. */
static qr_rc forward_some(struct quire *quire, int steps_max, struct qr_refused_cursor *at, bool *ret_more, qr_err *err)
{
    struct forward_call call = {.at = *at, .has_more = true};
    for (int i = 0; i < steps_max && call.has_more; i++) {
        QR_TRY(qr_db_write(quire->db, QR_RELAXED, forward_in_tx, &call, err));
        *at = call.at = call.next;
    }
    *ret_more = call.has_more;
    return QR_OK;
}

/* The first at once, in the thread that got the answer; the rest by the beat, which also finds those whose put-off was being
 * written down meanwhile. */
void qr_refused_bring_forward(struct quire *quire)
{
    struct qr_refused_cursor at = {0};
    bool ignored;
    (void)forward_some(quire, STEPS_AT_ONCE, &at, &ignored, NULL);
    quire->are_refused_left = true;
}

static qr_rc look_for_rest(void *arg, qr_err *err)
{
    struct qr_refused_look *look = arg;
    if (atomic_exchange(&look->quire->are_refused_left, false)) {
        look->at = (struct qr_refused_cursor){0};
        look->has_more = true;
    }
    return look->has_more ? forward_some(look->quire, STEPS_A_LOOK, &look->at, &look->has_more, err) : QR_OK;
}

static qr_rc say_whether_more(struct qr_tx *tx QR_UNUSED, void *arg, bool *ret_more, qr_err *err QR_UNUSED)
{
    const struct qr_refused_look *look = arg;
    *ret_more = look->has_more;
    return QR_OK;
}

struct qr_beat_task qr_refused_task(struct qr_refused_look *look)
{
    return (struct qr_beat_task){"bring-refused-forward", EVERY_MS, say_whether_more, look, .look = look_for_rest};
}

/* ---- trying again ---- */

static qr_rc is_any_open(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_circuit_is_any(tx, arg, err);
}

static qr_rc try_in_tx(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t count;
    return qr_jobs_try_refused(tx, &count, err);
}

qr_rc qr_refused_try_again(struct quire *quire, qr_err *err)
{
    bool is_any;
    QR_TRY(qr_db_read(quire->db, is_any_open, &is_any, err));
    return is_any ? qr_db_write(quire->db, QR_RELAXED, try_in_tx, NULL, err) : QR_OK;
}
