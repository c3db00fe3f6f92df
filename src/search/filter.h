/* Which items may answer a search. Pure, but for the arena. */
#pragma once

#include "base/json.h"
#include "store/items_facts.h"

enum { QR_FILTER_IDS_MAX = 200, QR_FILTER_PATTERNS_MAX = 16 };

/* One of the types of a filter that no item has: alone it lets nothing through. */
#define QR_FILTER_NO_TYPE QR_BIT(0)

struct qr_path_pattern {
    qr_str pattern;
    bool is_excluded;
};

struct qr_search_filter {
    const qr_uuid *item_ids; /* only these and what is in them, of none of them nothing; NULL = all */
    size_t item_id_count;
    uint32_t types;                                          /* QR_BIT(enum qr_item_type); 0 = all */
    struct qr_path_pattern patterns[QR_FILTER_PATTERNS_MAX]; /* all must fit, or not */
    size_t pattern_count;
    const json_t *attributes; /* each must be there and equal, or be one of a list; NULL = any */
};

/* Whether no item whatever can pass. */
bool qr_filter_fits_none(const struct qr_search_filter *filter);
/* `invalid_value` never: an item whose attributes cannot be read has none. */
qr_rc qr_filter_check(const struct qr_search_filter *filter, const struct qr_item_facts *item, bool *ret_passes,
                      qr_err *err);

/* Whether the path, or an end of it that begins behind a slash, fits: * is anything, ? one byte. A pattern that
 * ends with a slash, of a folder without stars, means everything below it. The case of ASCII letters does not count. */
bool qr_path_fits(qr_str path, qr_str pattern);
