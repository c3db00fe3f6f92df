/* delete-subtree: takes away what is marked as deleting, from the deepest up (TYPE-8, DEL-5). A root that is not marked is
 * never touched, whatever the job says. */
#include "handler/cleanup.h"
#include "handler/handlers.h"

struct window {
    const struct qr_attempt *attempt;
    qr_uuid root_id;
    struct qr_arena *arena;
    struct qr_item *items;
    size_t count;
};

static qr_rc next_window(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct window *window = arg;
    struct qr_item root;
    bool found, is_deleting;
    window->count = 0;
    QR_TRY(qr_item_find(tx, window->root_id, window->arena, &found, &root, err));
    if (!found || !qr_uuid_equal(root.base_id, window->attempt->base.id)) {
        return QR_OK;
    }
    QR_TRY(qr_item_path_is_deleting(tx, root.path, &is_deleting, err));
    return is_deleting ? qr_items_subtree(tx, root.base_id, root.path, (qr_str){0}, true, QR_CLEANUP_WINDOW,
                                          window->arena, &window->items, &window->count, err)
                       : QR_OK;
}

static qr_rc delete_root(struct qr_attempt *attempt, qr_uuid root_id, int64_t *done, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    for (;;) {
        struct window window = {.attempt = attempt, .root_id = root_id, .arena = &arena};
        qr_arena_reset(&arena);
        QR_TRY(qr_db_read(attempt->run->db, next_window, &window, err));
        if (window.count == 0) {
            return QR_OK;
        }
        QR_TRY(qr_cleanup_items(attempt, window.items, window.count, true, err));
        *done += (int64_t)window.count;
        qr_job_progress(attempt->run, *done, 0);
    }
}

static qr_rc delete_roots(struct qr_attempt *attempt, qr_err *err)
{
    qr_uuid *roots;
    size_t count;
    int64_t done = 0;
    QR_TRY(qr_job_roots(attempt->run, NULL, &roots, &count, err));
    for (size_t i = 0; i < count; i++) {
        QR_TRY(delete_root(attempt, roots[i], &done, err));
    }
    return QR_OK;
}

/* DEL-1: also where the base has failed. One that is deleting has its own job, which drops the index store as a whole. */
void qr_handle_delete_subtree(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin_base(&attempt, run, QR_BIT(QR_BASE_READY) | QR_BIT(QR_BASE_FAILED), ret_outcome)) {
        return;
    }
    /* of settings that cannot be read only the file processor would be needed */
    (void)!qr_settings_parse_text(attempt.base.settings, run->arena, &attempt.settings, NULL);
    qr_outcome_set(ret_outcome, delete_roots(&attempt, &ret_outcome->error), NULL);
}
