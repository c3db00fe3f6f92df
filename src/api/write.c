/* See write.h. */
#include "api/write.h"

#include "base/failpoint.h"

struct write {
    qr_tx_fn *fn;
    void *arg;
};

static qr_rc write_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct write *write = arg;
    QR_TRY(write->fn(tx, write->arg, err));
    QR_FAILPOINT("request.before_commit", err);
    return QR_OK;
}

qr_rc qr_request_write(const struct qr_request *request, qr_tx_fn *fn, void *arg, qr_err *err)
{
    struct write write = {fn, arg};
    QR_TRY(qr_db_write(request->quire->db, QR_DURABLE, write_in_tx, &write, err));
    (void)QR_FAILPOINT_RC("request.after_commit", NULL);
    return QR_OK;
}

qr_rc qr_reply_made(struct qr_reply *reply, qr_rc rc, int status, json_t *body, qr_err *err)
{
    if (rc != QR_OK) {
        json_decref(body);
        return rc;
    }
    return qr_reply_with(reply, status, body, err);
}
