/* Finds index stores that are missing, damaged or not their base's own, before a search shows less than there is. The next job
 * of the base would meet it too (workflow/plan.c), but a base at rest has none.
 *
 * Stores are opened outside a transaction; what was seen may have changed when it is written down. So it counts only where the
 * base still knows the stamp that was missed, and is ready: the store of a failed one is its restore's. A rebuild under way has
 * the same unique key as the job that is asked for here. */
#include "api/stores.h"

#include "handler/rebuild.h"
#include "workflow/schedule.h"

#include <stdio.h>

enum { EVERY_MS = 3600000 };

static bool is_to_be_looked_at(const struct qr_base *base)
{
    return base->status == QR_BASE_READY && base->index_stamp[0]; /* else it was never made */
}

/* ---- seeing ---- */

struct page {
    qr_uuid after;
    struct qr_arena arena;
    struct qr_base *bases;
    size_t count;
};

static qr_rc load_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct page *page = arg;
    qr_arena_reset(&page->arena);
    return qr_bases_list(tx, page->after, QR_STORES_A_STEP, false, &page->arena, &page->bases, &page->count, err);
}

/* One that cannot be looked at now keeps nobody from looking at the others: its jobs and searches say why. */
static void look_at_base(struct qr_store_look *look, const struct qr_base *base)
{
    qr_err ignored;
    bool is_own;
    if (qr_index_is_own(look->quire->index, base, &is_own, &ignored) == QR_OK && !is_own) {
        const size_t i = look->lost_count++;
        look->lost[i].base_id = base->id;
        snprintf(look->lost[i].stamp, sizeof look->lost[i].stamp, "%s", base->index_stamp);
    }
}

static qr_rc see(void *arg, qr_err *err)
{
    struct qr_store_look *look = arg;
    struct page page = {.after = look->after};
    qr_arena_init(&page.arena, 0);
    look->lost_count = 0;
    const qr_rc rc = qr_db_read(look->quire->db, load_page, &page, err);
    if (rc == QR_OK) {
        for (size_t i = 0; i < page.count; i++) {
            if (is_to_be_looked_at(&page.bases[i])) {
                look_at_base(look, &page.bases[i]);
            }
        }
        look->more = page.count == QR_STORES_A_STEP;
        look->last = look->more ? page.bases[page.count - 1].id : (qr_uuid){0};
    }
    qr_arena_done(&page.arena);
    return rc;
}

/* ---- writing down ---- */

static qr_rc ask_for_rebuild(struct qr_tx *tx, void *arg, bool *ret_more, qr_err *err)
{
    struct qr_store_look *look = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    for (size_t i = 0; i < look->lost_count; i++) {
        struct qr_base base;
        bool found;
        qr_uuid ignored;
        QR_TRY(qr_base_find(tx, look->lost[i].base_id, &arena, &found, &base, err));
        if (found && is_to_be_looked_at(&base) && strcmp(base.index_stamp, look->lost[i].stamp) == 0) {
            QR_TRY(qr_enqueue_base_job(tx, look->quire->workflow.ids, QR_JOB_RESTORE_BASE, base.id, &ignored, err));
        }
    }
    look->after = look->last;
    *ret_more = look->more;
    return QR_OK;
}

struct qr_beat_task qr_store_look_task(struct qr_store_look *look)
{
    return (struct qr_beat_task){"look-at-stores", EVERY_MS, ask_for_rebuild, look, .is_recovery = true, .look = see};
}
