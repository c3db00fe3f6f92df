/* How the models of a base look: which is live, wanted and previous, and how far the build of the wanted one is. */
#pragma once

#include "base/json.h"
#include "handler/estimate.h"
#include "store/bases.h"
#include "store/jobs.h"

/* The job that builds, where one is needed. */
struct qr_build_view {
    bool found;
    struct qr_job job;
};
qr_rc qr_build_view_load(struct qr_tx *tx, const struct qr_base *base, struct qr_arena *arena,
                         struct qr_build_view *ret_view, qr_err *err);

/* {"live": …, "wanted": …, "previous": … or null, "failed_chunks": n}; NULL when out of memory. */
json_t *qr_json_base_models(const struct qr_base *base);
/* {"status", "done", "total", "from", "to", "error"}, null where the wanted model is live. */
json_t *qr_json_model_build(const struct qr_base *base, const struct qr_build_view *view);
/* {"chunks", "to_embed", "cached", "tokens", "is_sampled", "seconds": n or null} */
json_t *qr_json_estimate(const struct qr_estimate *estimate);
