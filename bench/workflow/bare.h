/* What we are measured against: a loop that reads the files of a folder and inserts their texts into FTS5. No states, no jobs,
 * no second thread, one transaction for a thousand files, and nothing to show whether a file changed. */
#pragma once

#include <stdint.h>

/* Into a new database at `path`. Gives the time it took. */
int64_t bare_index(const char *folder, const char *path, int *ret_count);
