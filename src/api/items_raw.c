/* GET /api/v1/bases/{b}/items/{i}/raw: the original bytes, so that neither side has to hold a file: a part of them, or all in pieces
 * where the caller takes those.
 *
 * Where they come from is as for reading (REIDX-5): those that Quire owns for this generation; else the path as it is now;
 * else the newest that Quire owns. */
#include "api/items.h"
#include "api/pieces.h"
#include "artifact/artifact.h"
#include "base/mem.h"
#include "source/file.h"

#include <stdio.h>

enum { PART_BYTES_MAX = 4 << 20, PIECE_BYTES = 256 << 10 };

struct raw {
    const struct qr_request *request;
    struct qr_arena *arena;
    int64_t offset, limit; /* 0 = all of it, where that is not more than a part */
    bool is_range;         /* they are of a Range header */
    int64_t range_first;   /* -1 = the last `range_last` bytes */
    int64_t range_last;    /* -1 = to the end */
    struct qr_reply *reply;
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

/* One range of bytes; any other Range is ignored, as the standard says. */
static void read_range(struct raw *raw)
{
    const char *header = raw->request->from->range;
    qr_str text = qr_str_of(header);
    if (!header || raw->offset || raw->limit || !qr_str_starts_with(text, QR_STR("bytes=")) ||
        memchr(text.ptr, ',', text.len)) {
        return;
    }
    text = (qr_str){text.ptr + strlen("bytes="), text.len - strlen("bytes=")};
    const bool has_dash = memchr(text.ptr, '-', text.len) != NULL;
    const qr_str first = qr_str_split(&text, '-');
    raw->range_first = raw->range_last = -1;
    const bool is_first = first.len == 0 || (qr_str_to_i64(first, &raw->range_first) && raw->range_first >= 0);
    const bool is_last = text.len == 0 || (qr_str_to_i64(text, &raw->range_last) && raw->range_last >= 0);
    raw->is_range = has_dash && is_first && is_last && first.len + text.len > 0 &&
                    (first.len == 0 || text.len == 0 || raw->range_first <= raw->range_last);
}

/* Which bytes these are, now that it is known how many there are. Content-Range says so where it is no more than a part. */
static qr_rc place_range(struct raw *raw, int64_t size_bytes, qr_err *err)
{
    int64_t first = raw->range_first, last = raw->range_last;
    if (first < 0) {
        first = QR_MAX(size_bytes - last, (int64_t)0);
        last = raw->range_last == 0 ? -1 : size_bytes - 1; /* none of the last bytes cannot be had */
    } else {
        last = last < 0 ? size_bytes - 1 : QR_MIN(last, size_bytes - 1);
    }
    if (first >= size_bytes || last < first) {
        qr_reply_header(raw->reply, "Content-Range", "bytes */%lld", (long long)size_bytes);
        return qr_fail(err, QR_CODE_RANGE_NOT_SATISFIABLE, "it has %lld bytes", (long long)size_bytes);
    }
    raw->offset = first;
    raw->limit = last - first + 1;
    if (!raw->request->from->takes_pieces) {
        raw->limit = QR_MIN(raw->limit, (int64_t)PART_BYTES_MAX);
    }
    raw->reply->status = 206;
    qr_reply_header(raw->reply, "Content-Range", "bytes %lld-%lld/%lld", (long long)first,
                    (long long)(first + raw->limit - 1), (long long)size_bytes);
    return QR_OK;
}

/* `etag` is that of what is there now: a range that is meant for something else is not taken. */
static qr_rc tell_version(struct raw *raw, const char *etag, int64_t size_bytes, qr_err *err)
{
    const char *wanted = raw->request->from->if_range;
    qr_reply_header(raw->reply, "ETag", "%s", etag);
    qr_reply_header(raw->reply, "Accept-Ranges", "bytes");
    return raw->is_range && (!wanted || strcmp(wanted, etag) == 0) ? place_range(raw, size_bytes, err) : QR_OK;
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

/* ---- in pieces ---- */

static int64_t wanted_bytes(const struct raw *raw, int64_t size_bytes)
{
    const int64_t left = size_bytes - QR_MIN(raw->offset, size_bytes);
    return raw->limit ? QR_MIN(raw->limit, left) : left;
}

/* The rest of a content, from `offset` on. */
struct raw_pieces {
    struct quire_pieces pieces;
    struct quire *quire;
    struct qr_artifact owned; /* `file` is at `place`; not where it is a path */
    int64_t offset, end;
    struct qr_file_facts facts; /* of the path, when it was begun */
    bool is_path, no_links;
    char place[];
};

static qr_rc read_piece(struct raw_pieces *raw, size_t len, struct qr_buf *out, qr_err *err)
{
    struct qr_file_facts facts;
    if (!raw->is_path) {
        return qr_artifact_read_part(&raw->quire->artifacts, raw->quire->db, &raw->owned, raw->offset, len, out, err);
    }
    QR_TRY(qr_file_read_part((struct qr_file_place){raw->place, raw->no_links}, raw->offset, len, out, &facts, err));
    return facts.size_bytes == raw->facts.size_bytes && facts.mtime_ns == raw->facts.mtime_ns
               ? QR_OK
               : qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "it changes while it is read");
}

static qr_rc read_pieces(struct quire_pieces *pieces, struct qr_buf *out, bool *ret_is_end, qr_err *err)
{
    struct raw_pieces *raw = (struct raw_pieces *)pieces;
    const size_t len = (size_t)QR_MIN(raw->end - raw->offset, (int64_t)PIECE_BYTES);
    *ret_is_end = len == 0;
    if (len == 0) {
        return QR_OK;
    }
    QR_TRY(read_piece(raw, len, out, err));
    raw->offset += (int64_t)out->len;
    return out->len == len ? QR_OK : qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "it ends too early");
}

static void free_pieces(struct quire_pieces *pieces)
{
    qr_free(pieces);
}

/* `facts` are of a path; NULL: of the artifact. */
static qr_rc answer_in_pieces(struct raw *raw, int64_t size_bytes, const struct qr_file_facts *facts, qr_err *err)
{
    static const struct qr_pieces_kind kind = {.read = read_pieces, .free = free_pieces};
    const char *place = facts ? raw->item.source.ptr : raw->owned.file;
    const size_t place_size = strlen(place) + 1;
    struct raw_pieces *pieces = qr_alloc_zero(sizeof *pieces + place_size);
    if (!pieces) {
        return qr_answer_out_of_memory(err);
    }
    *pieces = (struct raw_pieces){.pieces = {.kind = &kind, .size_bytes = wanted_bytes(raw, size_bytes)},
                                  .quire = raw->request->quire,
                                  .owned = raw->owned,
                                  .offset = raw->offset,
                                  .end = raw->offset + wanted_bytes(raw, size_bytes),
                                  .is_path = facts != NULL,
                                  .no_links = raw->item.no_links};
    if (facts) {
        pieces->facts = *facts;
    }
    memcpy(pieces->place, place, place_size);
    pieces->owned.file = pieces->place;
    raw->reply->pieces = &pieces->pieces;
    return QR_OK;
}

/* ---- the bytes ---- */

/* Nobody is to take a part for the whole. */
static qr_rc require_fits(const struct raw *raw, int64_t size_bytes, qr_err *err)
{
    return wanted_bytes(raw, size_bytes) <= PART_BYTES_MAX
               ? QR_OK
               : qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE,
                         "it has %lld bytes: ask for parts with offset and a limit of at most %d",
                         (long long)size_bytes, (int)PART_BYTES_MAX);
}

static bool goes_in_pieces(const struct raw *raw, int64_t size_bytes)
{
    return raw->request->from->takes_pieces && wanted_bytes(raw, size_bytes) > PART_BYTES_MAX;
}

static size_t part_len(const struct raw *raw)
{
    return (size_t)(raw->limit ? raw->limit : PART_BYTES_MAX);
}

static qr_rc read_owned(struct raw *raw, qr_err *err)
{
    struct quire *quire = raw->request->quire;
    char etag[2 * sizeof raw->owned.hash + 3] = "\"";
    for (size_t i = 0; i < sizeof raw->owned.hash; i++) {
        snprintf(etag + 1 + 2 * i, sizeof etag - 1 - 2 * i, "%02x\"", raw->owned.hash[i]);
    }
    QR_TRY(tell_version(raw, etag, raw->owned.size_bytes, err));
    if (goes_in_pieces(raw, raw->owned.size_bytes)) {
        return answer_in_pieces(raw, raw->owned.size_bytes, NULL, err);
    }
    QR_TRY(require_fits(raw, raw->owned.size_bytes, err));
    return qr_artifact_read_part(&quire->artifacts, quire->db, &raw->owned, raw->offset, part_len(raw), raw->out, err);
}

static qr_rc read_path(struct raw *raw, qr_err *err)
{
    const struct qr_file_place place = {raw->item.source.ptr, raw->item.no_links};
    struct qr_file_facts facts;
    char etag[64];
    QR_TRY(qr_file_look(place, &facts, err));
    snprintf(etag, sizeof etag, "\"%llx-%llx\"", (unsigned long long)facts.size_bytes,
             (unsigned long long)facts.mtime_ns);
    QR_TRY(tell_version(raw, etag, facts.size_bytes, err));
    if (goes_in_pieces(raw, facts.size_bytes)) {
        return answer_in_pieces(raw, facts.size_bytes, &facts, err);
    }
    QR_TRY(qr_file_read_part(place, raw->offset, part_len(raw), raw->out, &facts, err));
    if (raw->reply->status == 206 && (int64_t)raw->out->len != raw->limit) {
        return qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "it changes while it is read");
    }
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
    if (rc == QR_OK || err->code != QR_CODE_SOURCE_MISSING || !raw->has_owned) {
        return rc;
    }
    raw->reply->header_count = 0; /* they were about the path */
    raw->reply->status = 200;
    return read_owned(raw, err);
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
    reply->status = 200;
    struct raw raw = {.request = request, .arena = &arena, .out = &reply->bytes, .reply = reply};
    QR_TRY(read_number(request, "offset", 0, INT64_MAX / 2, &raw.offset, err));
    QR_TRY(read_number(request, "limit", 1, PART_BYTES_MAX, &raw.limit, err));
    read_range(&raw);
    QR_TRY(qr_db_read(request->quire->db, load_raw, &raw, err));
    QR_TRY(read_raw(&raw, err));
    reply->content_type = content_type(&raw.item);
    return QR_OK;
}
