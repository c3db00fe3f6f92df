/* The items that a search may find at all, as a list of ids: so that the scan of an index passes over everything else without
 * asking the main database about it. A list that would become too long is not made; it is then not known. */
#pragma once

#include "search/filter.h"

struct qr_allowed {
    qr_uuid *ids; /* in the arena, sorted */
    size_t count, capacity;
    bool is_known; /* the list says all; else anything may be found */
};

/* What the filter names, and all below it. */
qr_rc qr_allowed_list_named(struct qr_allowed *allowed, struct qr_db *db, qr_uuid base_id,
                            const struct qr_search_filter *filter, struct qr_arena *arena, qr_err *err);
/* Of these, or of all that there is, what passes the filter: every item is looked at. */
qr_rc qr_allowed_list_passing(struct qr_allowed *allowed, struct qr_db *db, qr_uuid base_id,
                              const struct qr_search_filter *filter, struct qr_arena *arena, qr_err *err);

bool qr_allowed_has(const struct qr_allowed *allowed, const qr_uuid *id);
