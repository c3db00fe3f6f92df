/* build-vectors: every live chunk of the base gets a vector of the wanted model; then that becomes the live one (MODEL).
 *
 * B1  A pass goes through the index and embeds what has no vector yet. Where it is broken off, the next one goes on: what is
 *     paid for is in the cache, what is written is in the index, and neither is done again.
 * B2  What goes live meanwhile has its vectors, or raises build_missed. So after a pass in which that and the epoch stayed as
 *     they were nothing is missing, and the plan, which looks at both under the base lock, may switch; else there is another
 *     pass.
 * B3  The index is synced before the switch is asked for: a live model has its vectors after a power loss, too.
 * B4  Vectors of models that are neither live, wanted nor previous are taken away: before the first pass, which is also a
 *     write behind all those of the build before, and after the switch.
 * B5  Trouble of the provider is waited for, however long it takes; chunks that it will never take are counted. */
#include "base/failpoint.h"
#include "handler/embedding.h"
#include "handler/handlers.h"
#include "handler/rebuild.h"

enum {
    EXTENTS_A_PAGE = 200,
    TROUBLE_WAIT_MS = 30000,
    WORK_MS_MAX = 600000, /* of one attempt: then others get their turn, and no time limit is near */
    BREAK_MS = 1000,
};

struct build {
    struct qr_attempt *attempt;
    struct qr_base_models models;
    struct qr_index_extent extents[EXTENTS_A_PAGE];
    size_t extent_count;
    /* of the extents: the items whose generation is live, and not deleted */
    struct qr_arena arena;
    bool is_live[EXTENTS_A_PAGE];
    struct qr_item items[EXTENTS_A_PAGE];
    int64_t done, total, failed; /* chunks */
    int64_t until_mono_ms;
    bool takes_a_break;
};

/* ---- the base ---- */

/* Its models, its epoch and what was missed, all of one moment. */
static qr_rc look_at_base(struct build *build, qr_err *err)
{
    struct qr_attempt *attempt = build->attempt;
    QR_TRY(qr_attempt_reload_base(attempt, err));
    return qr_base_models(&attempt->base, attempt->run->arena, &build->models, err);
}

/* B4 */
static qr_rc forget_others(struct build *build, qr_err *err)
{
    const int64_t kept[] = {build->models.live_key, build->models.wanted_key, build->models.previous_key};
    const struct qr_index_guard guard = qr_attempt_guard(build->attempt);
    QR_TRY(qr_index_keep_models(build->attempt->context->index, build->attempt->base.id, kept, QR_COUNT(kept), &guard,
                                err));
    QR_FAILPOINT("build.others.gone", err);
    return QR_OK;
}

/* ---- a page of the index ---- */

static qr_rc next_page(struct build *build, qr_uuid *after_item, int64_t *after_generation, qr_err *err)
{
    const struct qr_attempt *attempt = build->attempt;
    QR_TRY(qr_attempt_go_on(attempt, err));
    QR_TRY(qr_index_extents(attempt->context->index, attempt->base.id, build->models.wanted_key, *after_item,
                            *after_generation, EXTENTS_A_PAGE, build->extents, &build->extent_count, err));
    if (build->extent_count) {
        *after_item = build->extents[build->extent_count - 1].item_id;
        *after_generation = build->extents[build->extent_count - 1].generation;
    }
    return QR_OK;
}

static int64_t missing_of(const struct qr_index_extent *extent)
{
    return extent->chunk_count - extent->vector_count - extent->failed_count;
}

/* Nothing is paid for what nobody can find. */
static qr_rc find_live(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct build *build = arg;
    qr_arena_reset(&build->arena);
    for (size_t i = 0; i < build->extent_count; i++) {
        const struct qr_index_extent *extent = &build->extents[i];
        bool found = false, is_deleting = false;
        if (missing_of(extent) > 0) {
            QR_TRY(qr_item_find(tx, extent->item_id, &build->arena, &found, &build->items[i], err));
        }
        if (found) {
            QR_TRY(qr_item_path_is_deleting(tx, build->items[i].path, &is_deleting, err));
        }
        build->is_live[i] = found && !is_deleting && build->items[i].live_generation == extent->generation;
    }
    return QR_OK;
}

/* ---- a pass ---- */

static qr_rc count_all(struct build *build, qr_err *err)
{
    qr_uuid after = {0};
    int64_t after_generation = 0;
    build->done = build->total = 0;
    do {
        QR_TRY(next_page(build, &after, &after_generation, err));
        for (size_t i = 0; i < build->extent_count; i++) {
            build->total += build->extents[i].chunk_count;
            build->done += build->extents[i].chunk_count - missing_of(&build->extents[i]);
        }
    } while (build->extent_count == EXTENTS_A_PAGE);
    qr_job_progress(build->attempt->run, build->done, build->total);
    return QR_OK;
}

static qr_rc note_item(struct build *build, size_t i, qr_rc rc, const struct qr_embedded *embedded, qr_err *err)
{
    if (rc == QR_NOT_FOUND) { /* its rows are gone meanwhile; or everything is */
        return qr_attempt_check(build->attempt, err);
    }
    QR_TRY(rc);
    build->failed += embedded->failed_count;
    build->done += missing_of(&build->extents[i]);
    qr_job_progress(build->attempt->run, build->done, build->total);
    QR_FAILPOINT("build.item.done", err);
    return QR_OK;
}

static qr_rc embed_alone(struct build *build, size_t i, qr_err *err)
{
    struct qr_embedded embedded = {0};
    const qr_rc rc =
        qr_embed_wanted_chunks(build->attempt, &build->items[i], build->extents[i].generation, &embedded, err);
    return note_item(build, i, rc, &embedded, err);
}

/* Small documents share calls: one each would cost as many as there are documents. */
static qr_rc embed_together(struct build *build, const size_t *which, size_t count, qr_err *err)
{
    struct qr_attempt *attempt = build->attempt;
    struct qr_embed_document documents[QR_TOGETHER_MAX];
    struct qr_batcher *batcher;
    QR_TRY(qr_attempt_wanted_batcher(attempt, &batcher, err));
    for (size_t i = 0; i < count; i++) {
        documents[i] = qr_embed_document_of(attempt, &build->items[which[i]], build->extents[which[i]].generation,
                                            build->models.wanted_key);
    }
    qr_embed_documents(batcher, documents, count);
    for (size_t i = 0; i < count; i++) {
        const struct qr_embed_document *document = &documents[i];
        if (document->is_large) {
            QR_TRY(embed_alone(build, which[i], err));
        } else {
            *err = document->error;
            QR_TRY(note_item(build, which[i], document->rc, &document->embedded, err));
        }
    }
    return QR_OK;
}

static bool is_break_due(struct build *build)
{
    build->takes_a_break = build->takes_a_break || qr_clock_mono_ms(build->attempt->run->clock) >= build->until_mono_ms;
    return build->takes_a_break;
}

static qr_rc build_page(struct build *build, qr_err *err)
{
    size_t which[QR_TOGETHER_MAX], count = 0;
    QR_TRY(qr_db_read(build->attempt->run->db, find_live, build, err));
    for (size_t i = 0; i < build->extent_count && !is_break_due(build); i++) {
        if (!build->is_live[i]) {
            build->failed += build->extents[i].failed_count;
        } else {
            which[count++] = i;
        }
        if (count == QR_TOGETHER_MAX || (count > 0 && i + 1 == build->extent_count)) {
            QR_TRY(embed_together(build, which, count, err));
            count = 0;
        }
    }
    return QR_OK;
}

static qr_rc make_pass(struct build *build, qr_err *err)
{
    qr_uuid after = {0};
    int64_t after_generation = 0;
    build->failed = 0;
    QR_TRY(qr_index_require_own(build->attempt, err));
    QR_TRY(count_all(build, err));
    do {
        QR_TRY(next_page(build, &after, &after_generation, err));
        QR_TRY(build_page(build, err));
    } while (build->extent_count == EXTENTS_A_PAGE && !build->takes_a_break);
    return QR_OK;
}

/* ---- the whole ---- */

/* A model that takes nothing at all is no model to switch to. What it was marked with goes: another try is a new one. */
static qr_rc require_some(struct build *build, qr_err *err)
{
    const struct qr_index_guard guard = qr_attempt_guard(build->attempt);
    const int64_t kept[] = {build->models.live_key, build->models.previous_key};
    if (build->failed == 0 || build->failed < build->total) {
        return QR_OK;
    }
    if (qr_base_is_building(&build->attempt->base)) {
        QR_TRY(qr_index_keep_models(build->attempt->context->index, build->attempt->base.id, kept, QR_COUNT(kept),
                                    &guard, err));
    }
    return qr_fail(err, QR_CODE_CHUNKS_FAILED, "none of %lld chunks can be embedded; the model before stays",
                   (long long)build->total);
}

/* *ret_is_done: the wanted model is live. */
static qr_rc pass_and_switch(struct build *build, bool *ret_is_done, qr_err *err)
{
    struct qr_attempt *attempt = build->attempt;
    QR_TRY(look_at_base(build, err));
    struct qr_switch_part part = {.vector_epoch = attempt->base.vector_epoch,
                                  .build_missed = attempt->base.build_missed};
    if (build->models.wanted_key != 0) {
        QR_TRY(make_pass(build, err));
        if (build->takes_a_break) {
            return QR_OK;
        }
        QR_TRY(require_some(build, err));
        QR_TRY(qr_index_sync(attempt->context->index, attempt->base.id, err)); /* B3 */
        QR_FAILPOINT("build.pass.synced", err);
    }
    part.failed_count = build->failed;
    QR_TRY(qr_job_report_part(attempt->run, QR_DURABLE, &part, err));
    QR_FAILPOINT("model.switch.after_commit", err);
    *ret_is_done = part.has_switched;
    return QR_OK;
}

static qr_rc build_all(struct build *build, qr_err *err)
{
    bool is_done = false;
    QR_TRY(look_at_base(build, err));
    QR_TRY(forget_others(build, err));
    while (!is_done && !is_break_due(build)) {
        const qr_rc rc = pass_and_switch(build, &is_done, err);
        QR_TRY(rc == QR_STALE ? qr_attempt_check(build->attempt, err) : rc); /* the index was made anew: once more */
    }
    if (!is_done) {
        return QR_OK;
    }
    QR_TRY(look_at_base(build, err));
    return forget_others(build, err);
}

/* B5 */
static bool is_trouble(const qr_err *error)
{
    return qr_code_info(error->code)->policy == QR_POLICY_RETRY && error->code != QR_CODE_CANCELLED;
}

static void set_outcome(const struct build *build, qr_rc rc, struct qr_outcome *outcome)
{
    qr_outcome_set(outcome, rc, NULL);
    if (rc == QR_OK && build->takes_a_break) {
        outcome->kind = QR_OUTCOME_SNOOZED;
        outcome->delay_ms = BREAK_MS;
        outcome->level = QR_RELAXED;
    } else if (outcome->kind == QR_OUTCOME_FAILED && is_trouble(&outcome->error)) {
        outcome->kind = QR_OUTCOME_SNOOZED;
        outcome->delay_ms = QR_MAX(outcome->delay_ms, (int64_t)TROUBLE_WAIT_MS);
        outcome->level = QR_RELAXED;
    }
}

void qr_handle_build_vectors(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (!qr_attempt_begin_base(&attempt, run, QR_BIT(QR_BASE_READY), ret_outcome)) {
        return;
    }
    struct build *build = qr_arena_alloc(run->arena, sizeof *build);
    if (!build) {
        qr_outcome_set(ret_outcome, qr_handler_out_of_memory(&ret_outcome->error), NULL);
        return;
    }
    *build = (struct build){.attempt = &attempt, .until_mono_ms = qr_clock_mono_ms(run->clock) + WORK_MS_MAX};
    qr_arena_init(&build->arena, 0);
    const qr_rc rc = build_all(build, &ret_outcome->error);
    qr_arena_done(&build->arena);
    set_outcome(build, rc, ret_outcome);
    qr_embedding_put_off(attempt.wanted_batcher, ret_outcome);
}
