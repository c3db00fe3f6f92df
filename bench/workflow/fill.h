/* Fills a data folder with items, past all entry points: a million of them would take longer to add than to measure. */
#pragma once

#include <stdbool.h>

enum { FILL_CHILDREN = 100 }; /* of a folder */

/* Empty notes in folders below one root, all of one base, in a data folder that is made here. At rest, or each with the job
 * that it waits for. The ids of folders are "fold" and twelve digits. */
void fill_items(const char *dir, int count, bool with_jobs);
