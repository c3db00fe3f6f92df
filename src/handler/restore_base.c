/* restore-base: settings that can be read, an index store that is the base's own or is made anew; then what failed is tried
 * again (BASE-2). That it is `ready` is the plan's to write, when this has ended. */
#include "handler/embedding.h"
#include "handler/handlers.h"
#include "handler/raise.h"
#include "handler/rebuild.h"
#include "store/cleanup.h"

enum { ITEMS_A_PAGE = 500 };

struct items_page {
    const struct qr_attempt *attempt;
    qr_str before;
    struct qr_arena *arena;
    struct qr_item *items;
    size_t count;
};

static qr_rc next_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct items_page *page = arg;
    return qr_items_of_base(tx, page->attempt->base.id, page->before, ITEMS_A_PAGE, page->arena, &page->items,
                            &page->count, err);
}

static qr_rc retry_failed(struct qr_attempt *attempt, qr_err *err)
{
    struct qr_raising raising = {.attempt = attempt, .reason = "restore", .only_failed = true};
    char before[(QR_ITEM_DEPTH_MAX + 1) * QR_UUID_BYTES];
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct items_page page = {.attempt = attempt, .arena = &arena};
    do {
        qr_arena_reset(&arena);
        QR_TRY(qr_attempt_go_on(attempt, err));
        QR_TRY(qr_db_read(attempt->run->db, next_page, &page, err));
        for (size_t i = 0; i < page.count; i++) {
            QR_TRY(qr_raise_if_failed(&raising, &page.items[i], err));
        }
        if (page.count) {
            const qr_str last = page.items[page.count - 1].path;
            page.before = (qr_str){before, QR_MIN(last.len, sizeof before)};
            memcpy(before, last.ptr, page.before.len);
        }
    } while (page.count == ITEMS_A_PAGE);
    return qr_raise_report(&raising, err);
}

/* Those whose text is gone are read again. */
static qr_rc reread(struct qr_attempt *attempt, const qr_uuid *ids, size_t count, qr_err *err)
{
    struct qr_raising raising = {.attempt = attempt, .reason = "restore"};
    for (size_t i = 0; i < count; i++) {
        QR_TRY(qr_raise_add(&raising, ids[i], err));
    }
    return qr_raise_report(&raising, err);
}

/* Vectors of another model or dimension are in a store that is the base's own all the same. */
static bool has_other_vectors(const struct qr_base *base)
{
    return strcmp(base->error_code, qr_code_info(QR_CODE_DIMENSION_MISMATCH)->name) == 0;
}

static qr_rc restore(struct qr_attempt *attempt, qr_err *err)
{
    struct qr_batcher *batcher;
    bool is_own;
    QR_TRY(qr_attempt_read_settings(attempt, err));
    QR_TRY(qr_attempt_batcher(attempt, &batcher, err));
    QR_TRY(qr_index_is_own(attempt->context->index, &attempt->base, &is_own, err));
    if (has_other_vectors(&attempt->base)) {
        QR_TRY(qr_embedding_learn_dimension(attempt, err));
    }
    if (!is_own || has_other_vectors(&attempt->base)) {
        qr_uuid *without_text;
        size_t count;
        QR_TRY(qr_index_rebuild(attempt, &without_text, &count, err));
        QR_TRY(reread(attempt, without_text, count, err));
    }
    /* RETRY-4: in a base that was ready all along nothing is taken up by itself */
    return attempt->base.status == QR_BASE_FAILED ? retry_failed(attempt, err) : QR_OK;
}

/* A base that is ready is restored too: recovery does it where the store has lost its stamp (RECOV-4). */
void qr_handle_restore_base(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (qr_attempt_begin_base(&attempt, run, QR_BIT(QR_BASE_READY) | QR_BIT(QR_BASE_FAILED), ret_outcome)) {
        qr_outcome_set(ret_outcome, restore(&attempt, &ret_outcome->error), NULL);
        qr_embedding_put_off(attempt.batcher, ret_outcome);
    }
}
