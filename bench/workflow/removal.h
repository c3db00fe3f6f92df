/* What deleting a folder costs, and what its cleanup costs others. */
#pragma once

#include "workflow/place.h"

/* Deletes a folder of `count` files; others of the same base are indexed beside the cleanup and without it, in turns. */
void bench_removal(struct bench_report *to, const struct bench_options *options, int count);
