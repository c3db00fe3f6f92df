/* What a folder costs, from nothing to all of it completed, and again when nothing has changed. */
#pragma once

#include "workflow/place.h"

/* `count` files in a new data folder, against the bare loop and a tenth of them. */
void bench_folder(struct bench_report *to, const struct bench_options *options, int count);
