#include "api/event_text.h"

#include "api/jobs.h"
#include "base/json.h"

#include <inttypes.h>

enum { RETRY_MS = 2000 }; /* how long clients wait before they come again */

static void write_id(struct qr_event_place place, struct qr_buf *out)
{
    qr_buf_printf(out, "id: %" PRId64 "-%" PRIx64 "\n", place.id, (uint64_t)place.at_ms);
}

static json_t *json_of(const struct qr_event *event)
{
    const bool is_run = event->kind == QR_EVENT_RUN;
    const bool has_item = !qr_uuid_is_zero(event->item_id);
    const char *status = is_run ? event->code : event->status ? qr_item_status_name(event->status) : NULL;
    const char *code = !is_run && event->code[0] ? event->code : NULL;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:s?, s:s?}", "kind", qr_event_kind_name(event->kind), "at",
                     qr_json_time(event->place.at_ms), "base_id", qr_json_uuid(event->base_id), "item_id",
                     has_item && !is_run ? qr_json_uuid(event->item_id) : json_null(), "run_id",
                     is_run ? qr_json_uuid(event->item_id) : json_null(), "generation", (json_int_t)event->generation,
                     "status", status, "code", code);
}

qr_rc qr_event_write(const struct qr_event *event, struct qr_buf *out, qr_err *err)
{
    QR_JSON *json = json_of(event);
    write_id(event->place, out);
    qr_buf_printf(out, "event: %s\ndata: ", qr_event_kind_name(event->kind));
    if (!json) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an event");
    }
    QR_TRY(qr_json_write(json, out, err));
    qr_buf_add_text(out, "\n\n");
    return qr_buf_check(out, err);
}

void qr_event_write_start(struct qr_event_place place, struct qr_buf *out)
{
    qr_buf_printf(out, "retry: %d\n", (int)RETRY_MS);
    write_id(place, out);
    qr_buf_add_text(out, "\n");
}

void qr_event_write_reset(struct qr_event_place place, struct qr_buf *out)
{
    qr_buf_printf(out, "retry: %d\n\n", (int)RETRY_MS);
    write_id(place, out);
    qr_buf_add_text(out, "event: reset\ndata: {\"kind\":\"reset\"}\n\n");
}

void qr_event_write_beat(struct qr_event_place place, struct qr_buf *out)
{
    qr_buf_add_text(out, ":\n");
    write_id(place, out);
    qr_buf_add_text(out, "\n");
}

bool qr_event_place_parse(qr_str text, struct qr_event_place *ret_place)
{
    enum { HEX_DIGITS_MAX = 12 };
    const qr_str id = qr_str_split(&text, '-');
    struct qr_event_place place = {0};
    if (!qr_str_to_i64(id, &place.id) || place.id < 0 || text.len == 0 || text.len > HEX_DIGITS_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        const int digit = qr_hex_digit(text.ptr[i]);
        if (digit < 0) {
            return false;
        }
        place.at_ms = place.at_ms << 4 | digit;
    }
    *ret_place = place;
    return true;
}
