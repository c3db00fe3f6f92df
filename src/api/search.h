/* The answer of a search as JSON. */
#pragma once

#include "base/json.h"
#include "search/search.h"

/* NULL when memory ran out. `with_reasons`: with what was looked for, and what each leg says of each hit. */
json_t *qr_json_search(const struct qr_search *search, const struct qr_search_answer *answer, bool with_reasons,
                       struct qr_arena *arena);
