/* Whether a folder, with everything below it, still is what is known of it: a look that changes nothing. An expansion spares
 * such a folder a job of its own, and all writes: adding a large tree again costs little more than reading its names. */
#pragma once

#include "handler/common.h"
#include "source/walk.h"

enum { QR_SAME_ENTRIES_MAX = 200000 }; /* looked at by one job; folders beyond that get their own */

struct qr_same_look {
    struct qr_attempt *attempt;
    const struct qr_walk_options *options; /* of the expansion; its folder is not looked at */
    int64_t entries;                       /* looked at so far */
};

/* Only of a folder that is `completed`: so are all of its children then, and none of them is due. False also where the look
 * could not be made: the folder's own job will say why. */
qr_rc qr_folder_is_same(struct qr_same_look *look, qr_uuid folder_id, qr_str source, bool *ret_is, qr_err *err);

/* Size or time of a file differ from what is known. */
bool qr_file_differs(const struct qr_child_row *row, const struct qr_entry *entry);
