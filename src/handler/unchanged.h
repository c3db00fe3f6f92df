/* Whether an attempt would come to what is live already: then it writes nothing, and the live generation stays live (REIDX-7).
 *
 * U1  Known by what decides it and not by its result: the bytes of the source, what the item is called, the settings that
 *     converting and splitting go by, this version of Quire, and the epoch of the base's models and index (`made_of`). Where more
 *     decides than that (a file processor, assets and what was read in them, a source that is gone) there is no `made_of`, and
 *     everything is done again.
 * U2  `made_of`, the warnings and the text are those of the same generation, `text_generation`. Only where that is the live one
 *     are they compared: not after an attempt that came further than reading and then failed.
 * U3  Somebody may reindex because something is lost. So the text, the copy of the source, each row and each vector of the live
 *     generation must be there; a chunk that failed is tried again. And nothing of the wanted one may be there, which an attempt
 *     before this one could have left (GEN-2). */
#pragma once

#include "handler/common.h"

/* Raised when the same bytes become another text or other chunks, between two versions of Quire. */
#define QR_OUTCOME_VERSION 1

/* What Quire holds of an item: the newest of each. */
struct qr_holdings {
    bool has_source, has_text;
    struct qr_artifact source, text;
};

/* For a result that knows the hash of the source. `is_copied`: Quire is to own what was read. */
void qr_note_made_of(const struct qr_attempt *attempt, bool is_copied, struct qr_stage_result *result);

struct qr_unchanged {
    struct qr_attempt *attempt;
    const struct qr_holdings *holdings;
    bool is_copied;
    struct qr_stage_result *result; /* that of those that are unchanged says so afterwards: QR_REACHED_UNCHANGED */
};
/* Looks at several of one base, in one read of its index. */
qr_rc qr_find_unchanged(struct qr_unchanged *looks, size_t count, qr_err *err);
