/* What deleting a folder costs, and what its cleanup costs others. */
#pragma once

#include "workflow/place.h"

/* Deletes a folder of `count` files, while another one of the same base is indexed. */
void bench_removal(struct bench_report *to, const struct bench_options *options, int count);
