/* What we are measured against: the chunks of an index, each inserted into a bare FTS5 table. */
#pragma once

#include <stdint.h>

/* Of the index store `from` into a new database at `path`. Gives the seconds that the inserts took, without reading them. */
double bare_insert(const char *from, const char *path, int64_t *ret_count);
