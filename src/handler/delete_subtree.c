/* delete-subtree: takes away what is marked as deleting, from the deepest up (TYPE-8, DEL-5). A root that is not marked is
 * never touched, whatever the job says.
 *
 * Nobody waits for it: what is deleting is hidden already. So after each window it lets those go first that somebody waits
 * for, and sleeps several times as long as it has worked. */
#include "handler/cleanup.h"
#include "handler/handlers.h"

enum { REST_FACTOR = 6, REST_MS_MIN = 20, REST_MS_MAX = 10000 };

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

/* Jobs that bring items on their way, whether they wait or run. */
static qr_rc look_for_others(struct qr_tx *tx, void *arg, qr_err *err)
{
    static const enum qr_queue queues[] = {QR_QUEUE_EXPAND, QR_QUEUE_CONVERT, QR_QUEUE_EMBED};
    static const enum qr_job_state states[] = {QR_JOB_QUEUED, QR_JOB_RUNNING};
    bool *others_wait = arg;
    *others_wait = false;
    for (size_t i = 0; i < QR_COUNT(queues) * QR_COUNT(states) && !*others_wait; i++) {
        int64_t count;
        QR_TRY(qr_jobs_count(tx, queues[i / QR_COUNT(states)], states[i % QR_COUNT(states)], 1, &count, err));
        *others_wait = count > 0;
    }
    return QR_OK;
}

/* *ret_rests: it is not over, but others wait. */
static qr_rc delete_root(struct qr_attempt *attempt, qr_uuid root_id, int64_t *done, bool *ret_rests, qr_err *err)
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
        if (window.count == QR_CLEANUP_WINDOW) {
            QR_TRY(qr_db_read(attempt->run->db, look_for_others, ret_rests, err));
            if (*ret_rests) {
                return QR_OK;
            }
        }
    }
}

static qr_rc delete_roots(struct qr_attempt *attempt, bool *ret_rests, qr_err *err)
{
    qr_uuid *roots;
    size_t count;
    int64_t done = attempt->run->job->progress_done;
    *ret_rests = false;
    QR_TRY(qr_job_roots(attempt->run, NULL, &roots, &count, err));
    for (size_t i = 0; i < count && !*ret_rests; i++) {
        QR_TRY(delete_root(attempt, roots[i], &done, ret_rests, err));
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
    const int64_t began_ms = qr_clock_mono_ms(run->clock);
    bool rests;
    const qr_rc rc = delete_roots(&attempt, &rests, &ret_outcome->error);
    qr_outcome_set(ret_outcome, rc, NULL);
    if (rc == QR_OK && rests) {
        const int64_t rest_ms = REST_FACTOR * (qr_clock_mono_ms(run->clock) - began_ms);
        ret_outcome->kind = QR_OUTCOME_SNOOZED;
        ret_outcome->delay_ms = QR_MIN(QR_MAX(rest_ms, (int64_t)REST_MS_MIN), (int64_t)REST_MS_MAX);
        ret_outcome->level = QR_RELAXED;
    }
}
