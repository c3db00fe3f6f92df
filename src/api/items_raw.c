/* GET /api/v1/bases/{b}/items/{i}/raw: the original bytes, a part at a time, so that neither side has to hold a file.
 *
 * Where they come from is as for reading (REIDX-5): those that Quire owns for this generation; else the path as it is now;
 * else the newest that Quire owns. */
#include "api/items.h"
#include "artifact/artifact.h"
#include "source/file.h"

enum { PART_BYTES_MAX = 4 << 20 };

struct raw {
    const struct qr_request *request;
    struct qr_arena *arena;
    int64_t offset, limit; /* 0 = all of it, where that is not more than a part */
    struct qr_item item;
    bool has_owned;
    struct qr_artifact owned;
    struct qr_buf *out;
};

/* ---- the request ---- */

static qr_rc read_number(const struct qr_request *request, const char *name, int64_t min, int64_t max,
                         int64_t *ret_number, qr_err *err)
{
    const char *text = qr_request_query(request, name);
    if (text && (!qr_str_to_i64(qr_str_of(text), ret_number) || *ret_number < min || *ret_number > max)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s is a whole number from %lld to %lld", name, (long long)min,
                       (long long)max);
    }
    return QR_OK;
}

static qr_rc load_raw(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct raw *raw = arg;
    struct qr_base base;
    qr_arena_reset(raw->arena);
    QR_TRY(qr_request_base(tx, raw->request, raw->arena, &base, err));
    QR_TRY(qr_request_item(tx, raw->request, &base, raw->arena, &raw->item, err));
    return qr_artifact_find(tx, raw->item.id, QR_ARTIFACT_SOURCE, 0, raw->arena, &raw->has_owned, &raw->owned, err);
}

/* ---- the bytes ---- */

/* Nobody is to take a part for the whole. */
static qr_rc require_fits(const struct raw *raw, int64_t size_bytes, qr_err *err)
{
    return raw->limit || size_bytes - QR_MIN(raw->offset, size_bytes) <= PART_BYTES_MAX
               ? QR_OK
               : qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE,
                         "it has %lld bytes: ask for parts with offset and a limit of at most %d",
                         (long long)size_bytes, (int)PART_BYTES_MAX);
}

static size_t part_len(const struct raw *raw)
{
    return (size_t)(raw->limit ? raw->limit : PART_BYTES_MAX);
}

static qr_rc read_owned(struct raw *raw, qr_err *err)
{
    struct quire *quire = raw->request->quire;
    QR_TRY(require_fits(raw, raw->owned.size_bytes, err));
    return qr_artifact_read_part(&quire->artifacts, quire->db, &raw->owned, raw->offset, part_len(raw), raw->out, err);
}

static qr_rc read_path(struct raw *raw, qr_err *err)
{
    struct qr_file_facts facts;
    QR_TRY(qr_file_read_part(raw->item.source.ptr, raw->offset, part_len(raw), raw->out, &facts, err));
    return require_fits(raw, facts.size_bytes, err);
}

static qr_rc read_raw(struct raw *raw, qr_err *err)
{
    const struct qr_item *item = &raw->item;
    if (item->type == QR_ITEM_DIRECTORY) {
        return qr_fail(err, QR_CODE_NOT_FOUND, "%s has no bytes of its own: it holds other items", item->name);
    }
    if (raw->has_owned && (raw->owned.generation == item->generation || item->source.len == 0)) {
        return read_owned(raw, err);
    }
    if (item->source.len == 0 || item->type == QR_ITEM_URL) {
        return raw->has_owned ? read_owned(raw, err)
                              : qr_fail(err, QR_CODE_NOT_COMPLETED, "%s has not been fetched yet", item->name);
    }
    const qr_rc rc = read_path(raw, err);
    return rc != QR_OK && err->code == QR_CODE_SOURCE_MISSING && raw->has_owned ? read_owned(raw, err) : rc;
}

/* A note is text; of a file, what it was found to be. A browser must not take a foreign page for one of ours, so it is told
 * nothing that it would show or run. */
static const char *content_type(const struct qr_item *item)
{
    return item->type == QR_ITEM_NOTE ? "text/plain; charset=utf-8" : "application/octet-stream";
}

qr_rc qr_route_raw(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    *reply = (struct qr_reply){.status = 200};
    struct raw raw = {.request = request, .arena = &arena, .out = &reply->bytes};
    QR_TRY(read_number(request, "offset", 0, INT64_MAX / 2, &raw.offset, err));
    QR_TRY(read_number(request, "limit", 1, PART_BYTES_MAX, &raw.limit, err));
    QR_TRY(qr_db_read(request->quire->db, load_raw, &raw, err));
    QR_TRY(read_raw(&raw, err));
    reply->content_type = content_type(&raw.item);
    return QR_OK;
}
