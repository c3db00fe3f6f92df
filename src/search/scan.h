/* The best hits of one base that may be shown.
 *
 * S1  Whether a chunk may be shown is asked of the main database: its generation is the item's live one, neither the item
 *     nor anything above it is deleting or disabled (I3, I4, HIDE-1), and the item passes the filter. The index knows nothing
 *     of that. All hits of an answer are judged in one read.
 * S2  The index and the main database are never read at the same time: on PostgreSQL that would be two connections for one
 *     search, and as many searches as there are connections would wait for each other. So hits are found first and judged
 *     then; where some are hidden, it is searched again without those, deeper each time.
 * S3  Whatever hides several hits of a round is learned as a whole (search/visible.h), so that a round or two are enough
 *     however much is hidden.
 * S4  Where the filter names items, the ids of these and of all below them are known before the first round, and whatever is
 *     not among them is passed over inside the scan. Of more than fit into the list nothing is known, and S2 does it.
 * S5  What else the filter says of items is mostly true of many, so that the first round does without. Where it refused hits
 *     and they were too few, the ids of all that pass are listed, and S4 holds for them: two rounds, however few they are. */
#pragma once

#include "base/map.h"
#include "index/index.h"
#include "search/allowed.h"
#include "search/visible.h"

struct qr_scan {
    struct qr_db *db;
    qr_uuid base_id;
    const struct qr_search_filter *filter;
    struct qr_arena *arena;
    struct qr_hidden known;
    struct qr_map hidden;      /* (item, generation) that was judged before, and must not be shown */
    struct qr_allowed allowed; /* S4 */
    bool has_listed;           /* S5: tried once */
};

/* Also to be ended when it could not begin. */
qr_rc qr_scan_begin(struct qr_scan *scan, struct qr_db *db, struct qr_visible_memory *memory, qr_uuid base_id,
                    const struct qr_search_filter *filter, struct qr_arena *arena, qr_err *err);
void qr_scan_done(struct qr_scan *scan);

/* Finds the best `depth` hits that the filter lets through, best first. */
typedef qr_rc qr_leg_fn(void *arg, int depth, qr_index_filter_fn *filter, void *filter_arg,
                        struct qr_index_hit *ret_hits, size_t *ret_count, qr_err *err);

/* The best `wanted` hits of the leg that may be shown, best first; fewer when there are no more. */
qr_rc qr_scan_leg(struct qr_scan *scan, qr_leg_fn *leg, void *arg, int wanted, struct qr_index_hit **ret_hits,
                  size_t *ret_count, qr_err *err);

/* The items of the hits, in their order; NULL for one that may not be shown. All are judged in one read (S1). */
qr_rc qr_scan_judge(struct qr_scan *scan, const struct qr_index_hit *hits, size_t count,
                    const struct qr_item ***ret_items, qr_err *err);
