/* Other job systems in the same run: bench/peers/run measures them, this puts them beside our own figures. */
#pragma once

#include "support.h"

/* Our full cycle, jobs a second; 0 = not measured. */
struct cycle_rates {
    double relaxed, durable;
};

/* `postgres_url` is a server that the peers may use, "" = none. A peer without a figure is a row with its reason. */
void bench_peers(struct bench_report *report, const struct bench_options *options, const char *postgres_url,
                 struct cycle_rates sqlite, struct cycle_rates postgres);
