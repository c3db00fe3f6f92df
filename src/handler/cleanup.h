/* Removing items with everything that belongs to them: what delete-subtree and delete-base do alike. */
#pragma once

#include "handler/common.h"

/* So many items are taken away before the index is made durable once more, and others are let go first. */
enum { QR_CLEANUP_WINDOW = 256 };

/* Removes items, children before their parents, all of which are deleting or below one that is: cancels their jobs, then
 * index rows, then artifacts and rows, then files (TYPE-8). Each step may be repeated. `has_index` false: the index store
 * was dropped as a whole. */
qr_rc qr_cleanup_items(struct qr_attempt *attempt, const struct qr_item *items, size_t count, bool has_index,
                       qr_err *err);
