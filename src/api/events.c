/* GET /api/v1/events: what happens in bases, as text/event-stream (api/event_hub.h). */
#include "api/event_hub.h"
#include "api/event_text.h"
#include "api/lookup.h"

struct asking {
    const struct qr_request *request;
    bool has_place, is_ours; /* a Last-Event-ID was sent, and is one */
    struct qr_event_place asked;
    struct qr_follow follow;
};

static void read_place(struct asking *asking)
{
    const char *header = quire_request_header(asking->request->from, "Last-Event-ID");
    asking->has_place = header && *header;
    asking->is_ours = asking->has_place && qr_event_place_parse(qr_str_of(header), &asking->asked);
}

static qr_rc find_start(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct asking *asking = arg;
    struct qr_follow *follow = &asking->follow;
    const char *base = qr_request_query(asking->request, "base");
    struct qr_event_place newest;
    bool is_kept;
    *follow = (struct qr_follow){.has_base = base != NULL};
    if (base) {
        QR_TRY(qr_access_find_base(tx, asking->request, qr_str_of(base), &follow->base_id, err));
    }
    QR_TRY(qr_events_find_place(tx, asking->asked, &is_kept, &newest, err));
    follow->is_reset = asking->has_place && (!asking->is_ours || !is_kept);
    follow->place = asking->has_place && !follow->is_reset ? asking->asked : newest;
    return QR_OK;
}

qr_rc qr_route_events(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct asking asking = {.request = request};
    struct quire *quire = request->quire;
    read_place(&asking);
    QR_TRY(qr_db_read(quire->db, find_start, &asking, err));
    qr_reply_header(reply, "Cache-Control", "no-store");
    qr_reply_header(reply, "X-Accel-Buffering", "no");
    reply->status = 200;
    reply->content_type = "text/event-stream";
    return request->from->takes_pieces
               ? qr_event_hub_follow(quire->events, request->from, &asking.follow, &reply->pieces, err)
               : qr_event_hub_tell(quire->events, request->from, &asking.follow, &reply->bytes, err);
}
