/* What it costs to read files in a program without rights. */
#pragma once

#include "support.h"

/* A thousand small files through the reader, and in this process, as a part of the time that indexing them takes. */
void bench_isolation(struct bench_report *to, const struct bench_options *options);
