/* reindex-subtree: the next generation for the selected roots, whose expansions carry it on (REIDX-3, REIDX-4); or, for a
 * retry, for everything that failed below them (RETRY-3). */
#include "handler/handlers.h"
#include "handler/raise.h"

enum { ITEMS_A_PAGE = 500 };

struct root_look {
    const struct qr_attempt *attempt;
    qr_uuid id;
    struct qr_arena *arena;
    bool is_there;
    struct qr_item item;
};

/* REIDX-3, at entry; the plan looks again under the lock. */
static qr_rc look_at_root(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct root_look *look = arg;
    bool is_deleting;
    QR_TRY(qr_item_find(tx, look->id, look->arena, &look->is_there, &look->item, err));
    if (look->is_there) {
        QR_TRY(qr_item_path_is_deleting(tx, look->item.path, &is_deleting, err));
        look->is_there = !is_deleting && qr_uuid_equal(look->item.base_id, look->attempt->base.id);
    }
    return QR_OK;
}

struct failed_page {
    const struct qr_item *root;
    qr_str after;
    struct qr_arena *arena;
    struct qr_item *items;
    size_t count;
};

static qr_rc next_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct failed_page *page = arg;
    return qr_items_subtree(tx, page->root->base_id, page->root->path, page->after, false, ITEMS_A_PAGE, page->arena,
                            &page->items, &page->count, err);
}

static qr_rc retry_below(struct qr_raising *raising, const struct qr_item *root, qr_err *err)
{
    char after[(QR_ITEM_DEPTH_MAX + 1) * QR_UUID_BYTES];
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct failed_page page = {.root = root, .arena = &arena};
    do {
        qr_arena_reset(&arena);
        QR_TRY(qr_attempt_go_on(raising->attempt, err));
        QR_TRY(qr_db_read(raising->attempt->run->db, next_page, &page, err));
        for (size_t i = 0; i < page.count; i++) {
            QR_TRY(qr_raise_if_failed(raising, &page.items[i], err));
        }
        if (page.count) {
            const qr_str last = page.items[page.count - 1].path;
            page.after = (qr_str){after, QR_MIN(last.len, sizeof after)};
            memcpy(after, last.ptr, page.after.len);
        }
    } while (page.count == ITEMS_A_PAGE);
    return QR_OK;
}

static qr_rc reindex(struct qr_attempt *attempt, qr_err *err)
{
    struct qr_raising raising = {.attempt = attempt};
    const char *what;
    qr_uuid *roots;
    size_t count, there = 0;
    QR_TRY(qr_job_roots(attempt->run, &what, &roots, &count, err));
    raising.only_failed = strcmp(what, "retry") == 0;
    raising.reason = raising.only_failed ? "retry" : "reindex";
    for (size_t i = 0; i < count; i++) {
        struct root_look look = {.attempt = attempt, .id = roots[i], .arena = attempt->run->arena};
        QR_TRY(qr_db_read(attempt->run->db, look_at_root, &look, err));
        if (!look.is_there) {
            continue;
        }
        there++;
        QR_TRY(raising.only_failed ? retry_below(&raising, &look.item, err)
                                   : qr_raise_add(&raising, look.item.id, err));
    }
    if (there == 0) {
        return qr_fail(err, QR_CODE_DELETING, "everything that was selected is deleted");
    }
    return qr_raise_report(&raising, err);
}

void qr_handle_reindex_subtree(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (qr_attempt_begin_base(&attempt, run, QR_BIT(QR_BASE_READY), ret_outcome)) {
        qr_outcome_set(ret_outcome, reindex(&attempt, &ret_outcome->error), NULL);
    }
}
