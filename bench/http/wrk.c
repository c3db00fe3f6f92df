#include "http/wrk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool wrk_is_there(void)
{
    return system("command -v wrk >/dev/null") == 0;
}

struct wrk_figures wrk_run(const struct wrk_load *load)
{
    char command[1024], line[256];
    double requests = 0, took_us = 0, p50_us = 0, p99_us = 0, errors = 0;
    bool is_found = false;
    snprintf(command, sizeof command, "BENCH_BODIES='%s' wrk -t1 -c%d -d%.0fs -s '%s' 'http://127.0.0.1:%u%s'",
             load->bodies ? load->bodies : "", load->connections, ceil(load->seconds), BENCH_WRK_SCRIPT, load->port,
             load->path);
    FILE *out = popen(command, "r");
    while (out && fgets(line, sizeof line, out)) {
        is_found = is_found ||
                   sscanf(line, "figures %lf %lf %lf %lf %lf", &requests, &took_us, &p50_us, &p99_us, &errors) == 5;
    }
    if (!out || pclose(out) != 0 || !is_found || errors > 0 || requests < 1) {
        fprintf(stderr, "bench: wrk of %s: %.0f answers, %.0f errors\n", load->path, requests, errors);
        exit(1);
    }
    return (struct wrk_figures){requests, requests / (took_us / 1e6), p50_us / 1e3, p99_us / 1e3};
}
