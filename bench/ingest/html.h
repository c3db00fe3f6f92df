/* HTML to Markdown: by us in this process, and by pandoc. */
#pragma once

#include "support.h"

/* What there is of HTML below /usr/share, up to some megabytes: a few, or with --large thirty. */
void bench_html(struct bench_report *to, const struct bench_options *options);
