/* The tree of a base in one pass over its paths. An item's children follow it, so a stack of what is open above the current
 * item is all that is kept: the pass counts children, and says which items look wrong. Pages are of different snapshots;
 * check_item.c decides (K1). */
#include "check/check_item.h"

struct open_item {
    qr_uuid id;
    int64_t status;
    bool is_container, is_gone; /* deleting, itself or by what it is in */
    bool is_examined;
    struct qr_child_counts stored, counted;
    bool expansion_failed, is_expanded;
};

struct tree {
    struct qr_checker *checker;
    qr_uuid base_id;
    struct qr_arena *arena;
    struct qr_buf after; /* the path of the last item of the page before */
    struct qr_check_items page;
    struct open_item open[QR_ITEM_DEPTH_MAX + 1];
    size_t open_count;
    int64_t live;
};

/* ---- closing ---- */

static bool same_counts(const struct qr_child_counts *a, const struct qr_child_counts *b)
{
    return a->completed == b->completed && a->failed == b->failed && a->active == b->active && a->idle == b->idle;
}

static qr_rc close_item(struct tree *tree, qr_err *err)
{
    const struct open_item *item = &tree->open[--tree->open_count];
    if (item->is_gone || item->is_examined || !item->is_container) {
        return QR_OK;
    }
    const bool is_right =
        same_counts(&item->stored, &item->counted) &&
        (item->status == QR_ITEM_PREPARING ||
         item->status == (int64_t)qr_item_roll_up(&item->counted, item->expansion_failed, item->is_expanded));
    return is_right ? QR_OK : qr_check_examine(tree->checker, item->id, err);
}

/* Closes what the item is not in. What stays open is a beginning of its path. */
static qr_rc close_others(struct tree *tree, qr_str path, qr_err *err)
{
    size_t common = 0;
    while (common < tree->open_count && (common + 1) * QR_UUID_BYTES <= path.len &&
           memcmp(tree->open[common].id.bytes, path.ptr + common * QR_UUID_BYTES, QR_UUID_BYTES) == 0) {
        common++;
    }
    while (tree->open_count > common) {
        QR_TRY(close_item(tree, err));
    }
    return QR_OK;
}

/* ---- looking ---- */

static bool is_at_its_place(const struct tree *tree, const struct qr_check_item *item, const struct open_item *parent)
{
    const size_t depth = tree->open_count;
    return item->path.len == (depth + 1) * QR_UUID_BYTES && depth <= QR_ITEM_DEPTH_MAX &&
           memcmp(item->path.ptr + depth * QR_UUID_BYTES, item->id.bytes, QR_UUID_BYTES) == 0 &&
           item->depth == (int64_t)depth && (!parent || parent->is_container) &&
           qr_uuid_equal(item->parent_id, parent ? parent->id : tree->base_id);
}

static void open_item(struct tree *tree, const struct qr_check_item *item, bool is_gone, bool is_examined)
{
    tree->open[tree->open_count++] = (struct open_item){
        .id = item->id,
        .status = item->status,
        .is_container = item->is_container,
        .is_gone = is_gone,
        .is_examined = is_examined,
        .stored = item->counts,
        .expansion_failed = item->expansion_failed,
        .is_expanded = item->expanded_generation > 0,
    };
}

static qr_rc look_at(struct tree *tree, const struct qr_check_item *item, qr_err *err)
{
    QR_TRY(close_others(tree, item->path, err));
    struct open_item *parent = tree->open_count ? &tree->open[tree->open_count - 1] : NULL;
    const bool is_placed = is_at_its_place(tree, item, parent);
    const bool is_below_gone = parent && parent->is_gone;
    if (!is_below_gone && (!is_placed || !qr_check_looks_right(item))) {
        QR_TRY(qr_check_examine(tree->checker, item->id, err));
    }
    if (!is_placed) {
        return QR_OK; /* what is in it will be looked at one by one */
    }
    const bool is_gone = is_below_gone || item->status == QR_ITEM_DELETING;
    if (!is_gone && qr_check_status_is_known(item->status)) {
        tree->live += !item->is_container && item->live_generation > 0 && item->chunk_count > 0;
        if (parent) {
            qr_child_counts_add(&parent->counted, (enum qr_item_status)item->status, 1);
        }
    }
    open_item(tree, item, is_gone, !qr_check_looks_right(item));
    return QR_OK;
}

/* ---- the pass ---- */

static qr_rc read_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct tree *tree = arg;
    qr_arena_reset(tree->arena);
    return qr_check_items(tx, tree->base_id, qr_buf_str(&tree->after), tree->checker->page, tree->arena, &tree->page,
                          err);
}

static qr_rc go_through(struct tree *tree, qr_err *err)
{
    do {
        QR_TRY(qr_db_read(tree->checker->options->db, read_page, tree, err));
        for (size_t i = 0; i < tree->page.count; i++) {
            QR_TRY(look_at(tree, &tree->page.items[i], err));
        }
        tree->checker->result->items += (int64_t)tree->page.count;
        if (tree->page.count) {
            qr_buf_clear(&tree->after);
            qr_buf_add(&tree->after, tree->page.items[tree->page.count - 1].path);
            QR_TRY(qr_buf_check(&tree->after, err));
        }
    } while (tree->page.count == (size_t)tree->checker->page);
    while (tree->open_count) {
        QR_TRY(close_item(tree, err));
    }
    return QR_OK;
}

qr_rc qr_check_tree(struct qr_checker *checker, qr_uuid base_id, int64_t *ret_live, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct tree tree = {.checker = checker, .base_id = base_id, .arena = &arena};
    qr_arena_init(&arena, 0);
    qr_buf_init(&tree.after, 0);
    const qr_rc rc = go_through(&tree, err);
    qr_buf_done(&tree.after);
    *ret_live = tree.live;
    return rc;
}
