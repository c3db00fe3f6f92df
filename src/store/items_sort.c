/* Lists of items by name, age, last change and size: each order has an index (base, value, id), so that a page of a base is one
 * look into it. The id makes the order total, and what is added meanwhile shifts no page.
 *
 * Of a folder, either its items are sorted, which costs as many as there are; or where these are many, the order of the whole
 * base is walked and the others passed over, a bounded number a page. Indexes by folder would make the first cheaper, and
 * every file that is read dearer.
 *
 * A place in a list is the order's number, the id of the last item, and its value. */
#include "base/buf.h"
#include "store/ids.h"
#include "store/items_row.h"

enum {
    PLACE_HEAD_BYTES = 1 + QR_UUID_BYTES,
    SORTED_MAX = 5000, /* of a folder; a few milliseconds */
};

static const char *const values[QR_ORDER_END] = {
    [QR_ORDER_NAME] = "name",
    [QR_ORDER_CREATED] = "id", /* ids of later ones are greater */
    [QR_ORDER_UPDATED] = "updated_at",
    [QR_ORDER_SIZE] = "size_bytes",
};

static int64_t number_of(enum qr_item_order order, const struct qr_item *item)
{
    return order == QR_ORDER_UPDATED ? item->updated_ms : order == QR_ORDER_SIZE ? item->size_bytes : 0;
}

const char *qr_item_sort_place(const struct qr_item_filter *filter, const struct qr_item *item, struct qr_arena *arena,
                               size_t *ret_len)
{
    const int64_t number = number_of(filter->order, item);
    const qr_str value =
        filter->order == QR_ORDER_NAME ? qr_str_of(item->name) : (qr_str){(const char *)&number, sizeof number};
    char *place = qr_arena_alloc(arena, PLACE_HEAD_BYTES + value.len);
    if (place) {
        place[0] = (char)filter->order;
        memcpy(place + 1, item->id.bytes, QR_UUID_BYTES);
        memcpy(place + PLACE_HEAD_BYTES, value.ptr, value.len);
        *ret_len = PLACE_HEAD_BYTES + value.len;
    }
    return place;
}

/* Where a list begins, or goes on. */
struct place {
    qr_uuid id;
    qr_str name;
    int64_t number;
};

/* It comes from outside. */
static qr_rc read_place(const struct qr_item_filter *filter, struct place *ret_place, qr_err *err)
{
    const qr_str after = filter->after;
    const size_t value_len = after.len - QR_MIN(after.len, (size_t)PLACE_HEAD_BYTES);
    bool is_one = after.len >= PLACE_HEAD_BYTES && after.ptr[0] == (char)filter->order;
    *ret_place = (struct place){0};
    if (is_one) {
        memcpy(ret_place->id.bytes, after.ptr + 1, QR_UUID_BYTES);
        ret_place->name = (qr_str){after.ptr + PLACE_HEAD_BYTES, value_len};
        is_one = filter->order == QR_ORDER_NAME
                     ? qr_utf8_valid(ret_place->name) && !memchr(ret_place->name.ptr, '\0', value_len)
                     : value_len == sizeof ret_place->number;
    }
    if (!is_one) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "cursor is not one that a list in this order has answered with");
    }
    if (filter->order != QR_ORDER_NAME) {
        memcpy(&ret_place->number, ret_place->name.ptr, sizeof ret_place->number);
    }
    return QR_OK;
}

static qr_rc write_sql(const struct qr_item_filter *filter, bool is_of_parent, struct qr_buf *sql, qr_err *err)
{
    const char *value = values[filter->order], *direction = filter->is_backward ? " DESC" : "",
               *behind = filter->is_backward ? "<" : ">";
    const bool is_by_id = filter->order == QR_ORDER_CREATED;
    qr_buf_printf(sql, "SELECT " QR_ITEM_COLUMNS " FROM item WHERE %s = ?1",
                  is_of_parent ? "status <> 8 AND parent_id" : "base_id");
    if (filter->after.len && is_by_id) {
        qr_buf_printf(sql, " AND id %s ?3", behind);
    } else if (filter->after.len) {
        qr_buf_printf(sql, " AND (%s, id) %s (?4, ?3)", value, behind);
    }
    qr_buf_printf(sql, " ORDER BY %s%s", value, direction);
    if (!is_by_id) {
        qr_buf_printf(sql, ", id%s", direction);
    }
    qr_buf_add_text(sql, " LIMIT ?2");
    return qr_buf_check(sql, err);
}

static const qr_uuid *parent_of(const struct qr_item_filter *filter)
{
    static const qr_uuid none;
    return qr_uuid_equal(filter->parent_id, none) ? &filter->base_id : &filter->parent_id;
}

static qr_rc can_be_sorted(struct qr_tx *tx, const struct qr_item_filter *filter, bool *ret_can, qr_err *err)
{
    int64_t count = 0;
    bool found;
    *ret_can = false;
    if (!filter->has_parent) {
        return QR_OK;
    }
    QR_TRY(qr_tx_get_i64(tx,
                         "SELECT count(*) FROM (SELECT 1 FROM item WHERE parent_id = ?1 AND status <> 8 LIMIT ?2) "
                         "AS part",
                         QR_VALS(qr_val_uuid(parent_of(filter)), qr_val_i64(SORTED_MAX + 1)), &found, &count, err));
    *ret_can = count <= SORTED_MAX;
    return QR_OK;
}

qr_rc qr_items_query_sorted(struct qr_tx *tx, const struct qr_item_filter *filter, int limit, struct qr_rows *rows,
                            qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf sql = {0};
    struct place place = {0};
    bool is_of_parent;
    if (filter->after.len) {
        QR_TRY(read_place(filter, &place, err));
    }
    QR_TRY(can_be_sorted(tx, filter, &is_of_parent, err));
    QR_TRY(write_sql(filter, is_of_parent, &sql, err));
    const struct qr_val vals[] = {
        qr_val_uuid(is_of_parent ? parent_of(filter) : &filter->base_id),
        qr_val_i64(limit),
        qr_val_uuid(&place.id),
        filter->order == QR_ORDER_NAME ? qr_val_text(place.name) : qr_val_i64(place.number),
    };
    const size_t val_count = filter->after.len == 0 ? 2 : filter->order == QR_ORDER_CREATED ? 3 : 4;
    return qr_tx_query(tx, rows, sql.data, vals, val_count, err);
}
