/* How chunks look in statements and rows, on every database. */
#include "index/rows.h"

qr_uuid qr_index_rows_id(const struct qr_rows *rows, int column)
{
    qr_uuid id = {0};
    const qr_str bytes = qr_rows_str(rows, column);
    if (bytes.len == QR_UUID_BYTES) {
        memcpy(id.bytes, bytes.ptr, QR_UUID_BYTES);
    }
    return id;
}

struct qr_val qr_index_vector_val(const struct qr_chunk_vector *vector, int dimension)
{
    return qr_val_blob(vector->vector, vector->vector ? (size_t)dimension * sizeof *vector->vector : 0);
}

/* False when memory ran out. */
static bool copy_text(struct qr_arena *arena, const struct qr_rows *rows, int column, qr_str *ret_text)
{
    const qr_str text = qr_rows_str(rows, column);
    ret_text->ptr = qr_arena_copy(arena, text);
    ret_text->len = text.len;
    return ret_text->ptr != NULL;
}

static bool read_chunk(struct qr_arena *arena, const struct qr_rows *rows, struct qr_chunk_row *ret_row)
{
    struct qr_chunk *chunk = &ret_row->chunk;
    *chunk = (struct qr_chunk){
        .ordinal = qr_rows_i64(rows, 0),
        .start = qr_rows_i64(rows, 1),
        .end = qr_rows_i64(rows, 2),
        .line_start = qr_rows_i64(rows, 3),
        .line_end = qr_rows_i64(rows, 4),
        .page = qr_rows_i64(rows, 5),
        .token_count = qr_rows_i64(rows, 6),
    };
    ret_row->has_vector = qr_rows_i64(rows, 10) > 0;
    ret_row->has_failed = !qr_rows_is_null(rows, 10) && qr_rows_i64(rows, 10) == 0;
    return copy_text(arena, rows, 7, &chunk->title) && copy_text(arena, rows, 8, &chunk->heading) &&
           copy_text(arena, rows, 9, &chunk->text);
}

qr_rc qr_index_rows_collect(struct qr_rows *rows, struct rows_chunks *request, qr_err *err)
{
    request->ret_count = 0;
    request->ret_rows = qr_arena_array(request->arena, (size_t)request->limit, sizeof *request->ret_rows);
    bool has_memory = request->ret_rows != NULL;
    while (has_memory && request->ret_count < (size_t)request->limit && qr_rows_next(rows)) {
        struct qr_chunk_row *row = &request->ret_rows[request->ret_count++];
        row->item_id = request->item_id;
        row->generation = request->generation;
        has_memory = read_chunk(request->arena, rows, row);
    }
    QR_TRY(qr_rows_end(rows, err));
    return has_memory ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for %d chunks", request->limit);
}

qr_rc qr_index_rows_collect_extents(struct qr_rows *rows, struct rows_extents *request, qr_err *err)
{
    request->ret_count = 0;
    while (request->ret_count < (size_t)request->limit && qr_rows_next(rows)) {
        request->ret_extents[request->ret_count++] = (struct qr_index_extent){
            .item_id = qr_index_rows_id(rows, 0),
            .generation = qr_rows_i64(rows, 1),
            .chunk_count = qr_rows_i64(rows, 2),
            .vector_count = qr_rows_i64(rows, 3),
            .failed_count = qr_rows_i64(rows, 4),
        };
    }
    return qr_rows_end(rows, err);
}

qr_rc qr_index_rows_take_counts(struct qr_rows *rows, struct qr_index_extent *extent, qr_err *err)
{
    if (qr_rows_next(rows)) {
        extent->chunk_count = qr_rows_i64(rows, 0);
        extent->vector_count = qr_rows_i64(rows, 1);
        extent->failed_count = qr_rows_i64(rows, 2);
    }
    return qr_rows_end(rows, err);
}

qr_rc qr_index_rows_collect_models(struct qr_rows *rows, struct rows_models *request, qr_err *err)
{
    request->ret_count = 0;
    while (request->ret_count < (size_t)request->limit && qr_rows_next(rows)) {
        request->ret_models[request->ret_count++] = qr_rows_i64(rows, 0);
    }
    return qr_rows_end(rows, err);
}

void qr_index_rows_stamp(struct qr_rows *rows, struct rows_store *request)
{
    qr_str stamp = qr_rows_next(rows) ? qr_rows_str(rows, 0) : QR_STR("");
    stamp.len = QR_MIN(stamp.len, sizeof request->stamp - 1);
    memcpy(request->stamp, stamp.ptr, stamp.len);
    request->stamp[stamp.len] = '\0';
}

struct qr_index_hit qr_index_rows_hit(const struct qr_rows *rows)
{
    return (struct qr_index_hit){
        .item_id = qr_index_rows_id(rows, 0),
        .generation = qr_rows_i64(rows, 1),
        .ordinal = qr_rows_i64(rows, 2),
    };
}

bool qr_index_is_kept_model(const struct rows_models *request, int64_t model)
{
    for (size_t i = 0; i < QR_COUNT(request->kept); i++) {
        if (request->kept[i] == model) {
            return true;
        }
    }
    return false;
}

qr_rc qr_index_fail_no_chunk(const struct rows_vectors *request, const struct qr_chunk_vector *vector, qr_err *err)
{
    return qr_fail(err, QR_CODE_NOT_FOUND, "there is no chunk %lld of generation %lld to hold a vector",
                   (long long)vector->ordinal, (long long)request->generation);
}
