/* A million items, a million open jobs, thousands of bases. Takes minutes. */
#pragma once

#include "workflow/place.h"

/* Items at rest: how soon it is ready, how long lists and the check take, the memory. */
void bench_many_items(struct bench_report *to, const struct bench_options *options, int count);
/* Items that all wait for their job, in a process that is killed. */
void bench_many_jobs(struct bench_report *to, const struct bench_options *options, int count);
/* Bases with one note each, under a limit of open files. */
void bench_many_bases(struct bench_report *to, const struct bench_options *options, int count);
