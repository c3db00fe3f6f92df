/* From rows to items. */
#include "store/items_row.h"

#include "store/ids.h"

static qr_str copy_bytes(struct qr_arena *arena, qr_str bytes, bool *failed)
{
    const char *copy = qr_arena_copy(arena, bytes);
    *failed = *failed || !copy;
    return (qr_str){copy, copy ? bytes.len : 0};
}

static const char *copy_text(struct qr_arena *arena, qr_str text, bool *failed)
{
    if (text.len == 0) {
        return ""; /* most texts of most items: nothing to copy */
    }
    const char *copy = qr_arena_copy(arena, text);
    *failed = *failed || !copy;
    return copy;
}

static bool copy_hash(qr_str hash, unsigned char ret_hash[static 16])
{
    if (hash.len == 16) {
        memcpy(ret_hash, hash.ptr, 16);
    }
    return hash.len == 16;
}

qr_rc qr_rows_item(const struct qr_rows *rows, struct qr_arena *arena, struct qr_item *ret_item, qr_err *err)
{
    bool failed = false;
    struct qr_item item = {
        .id = qr_rows_uuid(rows, 0),
        .base_id = qr_rows_uuid(rows, 1),
        .parent_id = qr_rows_uuid(rows, 2),
        .depth = qr_rows_i64(rows, 3),
        .path = copy_bytes(arena, qr_rows_str(rows, 4), &failed),
        .type = (enum qr_item_type)qr_rows_i64(rows, 5),
        .is_container = qr_rows_i64(rows, 6) != 0,
        .name = copy_text(arena, qr_rows_str(rows, 7), &failed),
        .key = copy_bytes(arena, qr_rows_str(rows, 8), &failed),
        .source = copy_bytes(arena, qr_rows_str(rows, 9), &failed),
        .mime = copy_text(arena, qr_rows_str(rows, 10), &failed),
        .size_bytes = qr_rows_i64(rows, 11),
        .mtime_ns = qr_rows_i64(rows, 12),
        .status = (enum qr_item_status)qr_rows_i64(rows, 14),
        .generation = qr_rows_i64(rows, 15),
        .live_generation = qr_rows_i64(rows, 16),
        .text_generation = qr_rows_i64(rows, 17),
        .chunk_generation = qr_rows_i64(rows, 18),
        .expanded_generation = qr_rows_i64(rows, 19),
        .force_generation = qr_rows_i64(rows, 20),
        .seen_generation = qr_rows_i64(rows, 21),
        .counts = {.completed = qr_rows_i64(rows, 22),
                   .failed = qr_rows_i64(rows, 23),
                   .active = qr_rows_i64(rows, 24),
                   .idle = qr_rows_i64(rows, 25)},
        .expand_code = copy_text(arena, qr_rows_str(rows, 26), &failed),
        .error_stage = copy_text(arena, qr_rows_str(rows, 27), &failed),
        .error_code = copy_text(arena, qr_rows_str(rows, 28), &failed),
        .error_message = copy_text(arena, qr_rows_str(rows, 29), &failed),
        .error_generation = qr_rows_i64(rows, 30),
        .error_ms = qr_rows_i64(rows, 31),
        .warnings = copy_text(arena, qr_rows_str(rows, 32), &failed),
        .enabled = qr_rows_i64(rows, 33) != 0,
        .attributes = copy_text(arena, qr_rows_str(rows, 34), &failed),
        .options = copy_text(arena, qr_rows_str(rows, 35), &failed),
        .chunk_count = qr_rows_i64(rows, 36),
        .token_count = qr_rows_i64(rows, 37),
        .wanted = qr_rows_i64(rows, 38),
        .run_id = qr_rows_uuid(rows, 39),
        .ticket = copy_text(arena, qr_rows_str(rows, 40), &failed),
        .ticket_ms = qr_rows_i64(rows, 41),
        .created_ms = qr_rows_i64(rows, 42),
        .updated_ms = qr_rows_i64(rows, 43),
        .indexed_ms = qr_rows_i64(rows, 44),
        .cleanup_job_id = qr_rows_uuid(rows, 45),
        .kept_generation = qr_rows_i64(rows, 46),
        .no_links = qr_rows_i64(rows, 48) != 0,
    };
    item.has_hash = copy_hash(qr_rows_str(rows, 13), item.content_hash);
    item.has_made_of = copy_hash(qr_rows_str(rows, 47), item.made_of);
    if (item.depth == 0) {
        item.parent_id = (qr_uuid){0}; /* the row says the base */
    }
    item.stored_status = item.status;
    item.stored_live_generation = item.live_generation;
    item.stored_enabled = item.enabled;
    item.stored_run_id = item.run_id;
    if (failed) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an item");
    }
    *ret_item = item;
    return QR_OK;
}

qr_rc qr_item_list_add(struct qr_item_list *list, const struct qr_rows *rows, qr_err *err)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? list->capacity * 2 : 32;
        struct qr_item *items = qr_arena_array(list->arena, capacity, sizeof items[0]);
        if (!items) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a list of items");
        }
        if (list->count) {
            memcpy(items, list->items, list->count * sizeof items[0]);
        }
        list->items = items;
        list->capacity = capacity;
    }
    QR_TRY(qr_rows_item(rows, list->arena, &list->items[list->count], err));
    list->count++;
    return QR_OK;
}

/* Ids are UUIDv7: a path never ends with sixteen bytes of 0xff, so there is always a byte to raise. */
qr_rc qr_path_end(qr_str path, struct qr_arena *arena, qr_str *ret_end, qr_err *err)
{
    char *end = qr_arena_copy(arena, path);
    if (!end) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a subtree");
    }
    size_t len = path.len;
    while (len > 0 && (unsigned char)end[len - 1] == 0xff) {
        len--;
    }
    if (len > 0) {
        end[len - 1] = (char)((unsigned char)end[len - 1] + 1);
    }
    *ret_end = (qr_str){end, len};
    return QR_OK;
}
