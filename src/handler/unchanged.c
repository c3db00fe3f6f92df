/* The comparison of what an attempt would make with what is live; its rules are in the header. */
#include "handler/unchanged.h"

#include "base/hash.h"
#include "handler/rebuild.h"
#include "model/model_key.h"

#include <assert.h>
#include <stdio.h>

/* ---- what decides ---- */

/* Each text with its length, so that no two lists of them look the same. */
static void add_text(struct qr_buf *out, const char *text)
{
    qr_buf_printf(out, "%zu:%s,", strlen(text), text);
}

void qr_note_made_of(const struct qr_attempt *attempt, bool is_copied, struct qr_stage_result *result)
{
    const struct qr_settings *settings = &attempt->settings;
    QR_CLEANUP(qr_buf_done) struct qr_buf facts = {0};
    assert(result->has_hash);
    add_text(&facts, QUIRE_VERSION);
    qr_buf_printf(&facts, "%d,%lld,", QR_OUTCOME_VERSION, (long long)attempt->base.vector_epoch);
    add_text(&facts, settings->chunking.strategy);
    add_text(&facts, settings->chunking.separator);
    qr_buf_printf(&facts, "%lld,%lld,", (long long)settings->chunking.size_tokens,
                  (long long)settings->chunking.overlap_tokens);
    add_text(&facts, settings->assets.analysis);
    qr_buf_printf(&facts, "%d,%d,", (int)attempt->item.type, is_copied);
    add_text(&facts, attempt->item.name);
    qr_buf_add(&facts, (qr_str){(const char *)result->content_hash, sizeof result->content_hash});
    result->has_made_of = qr_buf_check(&facts, NULL) == QR_OK; /* without it everything is done again */
    qr_hash_128(result->has_made_of ? qr_buf_str(&facts) : (qr_str){0}, result->made_of);
}

/* ---- what there is of the live generation ---- */

/* U3: of what was copied the copy is that of these bytes. */
static bool is_held(const struct qr_unchanged *look)
{
    const struct qr_holdings *holdings = look->holdings;
    const struct qr_artifacts *artifacts = look->attempt->context->artifacts;
    if (!holdings->has_text || holdings->text.generation != look->attempt->item.live_generation ||
        !qr_artifact_is_there(artifacts, &holdings->text)) {
        return false;
    }
    if (!holdings->has_source) {
        return !look->is_copied;
    }
    const bool is_same = memcmp(holdings->source.hash, look->result->content_hash, sizeof holdings->source.hash) == 0;
    return (is_same || !look->is_copied) && qr_artifact_is_there(artifacts, &holdings->source);
}

/* U1, U2. One that is not to go so far stops where it was asked to. */
static bool may_be_unchanged(const struct qr_unchanged *look)
{
    const struct qr_item *item = &look->attempt->item;
    const struct qr_stage_result *result = look->result;
    const int64_t all = QR_WANT_CHUNK | QR_WANT_INDEX;
    return item->live_generation > 0 && item->text_generation == item->live_generation && item->has_made_of &&
           result->has_made_of && memcmp(item->made_of, result->made_of, sizeof item->made_of) == 0 &&
           (item->wanted & all) == all && is_held(look);
}

/* U3 */
static bool has_its_rows(const struct qr_item *item, int64_t model, const struct qr_index_extent *live,
                         const struct qr_index_extent *wanted)
{
    return live->chunk_count == item->chunk_count && (model == 0 || live->vector_count == item->chunk_count) &&
           wanted->chunk_count == 0;
}

qr_rc qr_find_unchanged(struct qr_unchanged *looks, size_t count, qr_err *err)
{
    struct qr_unchanged *likely[QR_TOGETHER_MAX];
    struct qr_index_extent extents[2 * QR_TOGETHER_MAX]; /* of each the live rows, and those of the wanted generation */
    size_t likely_count = 0;
    assert(count <= QR_TOGETHER_MAX);
    for (size_t i = 0; i < count; i++) {
        if (may_be_unchanged(&looks[i])) {
            const struct qr_item *item = &looks[i].attempt->item;
            extents[2 * likely_count] =
                (struct qr_index_extent){.item_id = item->id, .generation = item->live_generation};
            extents[2 * likely_count + 1] =
                (struct qr_index_extent){.item_id = item->id, .generation = item->generation};
            likely[likely_count++] = &looks[i];
        }
    }
    if (likely_count == 0) {
        return QR_OK;
    }
    struct qr_attempt *first = likely[0]->attempt;
    const int64_t model = qr_embedding_is_on(&first->live) ? qr_model_key(&first->live) : 0;
    QR_TRY(qr_index_require_own(first, err));
    QR_TRY(qr_index_count_extents(first->context->index, first->base.id, model, extents, 2 * likely_count, err));
    for (size_t i = 0; i < likely_count; i++) {
        const struct qr_attempt *attempt = likely[i]->attempt;
        if (has_its_rows(&attempt->item, model, &extents[2 * i], &extents[2 * i + 1])) {
            likely[i]->result->reached = QR_REACHED_UNCHANGED;
            likely[i]->result->vector_epoch = attempt->base.vector_epoch;
        }
    }
    return QR_OK;
}
