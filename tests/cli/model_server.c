/* The model server as a program, for benchmarks and for trying things out by hand:
 *
 *     model_server [NAME=NUMBER…]     port dimension requests_a_minute tokens_a_minute inputs_a_second in_flight_max
 *                                     inputs_max input_tokens_max tells_limits
 *
 * Prints its address, serves until its input ends, then prints what it counted. */
#include "support/model_server.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

static bool set_option(struct qr_model_options *options, const char *argument)
{
    qr_str value = qr_str_of(argument);
    const qr_str name = qr_str_split(&value, '=');
    int64_t number;
    const struct {
        const char *name;
        int *small;
        int64_t *large;
    } known[] = {{"port", &options->port, NULL},
                 {"dimension", &options->dimension, NULL},
                 {"requests_a_minute", NULL, &options->requests_a_minute},
                 {"tokens_a_minute", NULL, &options->tokens_a_minute},
                 {"inputs_a_second", NULL, &options->inputs_a_second},
                 {"in_flight_max", NULL, &options->in_flight_max},
                 {"inputs_max", NULL, &options->inputs_max},
                 {"input_tokens_max", NULL, &options->input_tokens_max}};
    if (!qr_str_to_i64(value, &number) || number < 0 || number > INT32_MAX) {
        return false;
    }
    if (qr_str_equal(name, QR_STR("tells_limits"))) {
        options->tells_limits = number != 0;
        return true;
    }
    for (size_t i = 0; i < QR_COUNT(known); i++) {
        if (qr_str_equal(name, qr_str_of(known[i].name))) {
            if (known[i].small) {
                *known[i].small = (int)number;
            } else {
                *known[i].large = number;
            }
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    struct qr_model_options options = {0};
    struct qr_model_stats stats;
    for (int i = 1; i < argc; i++) {
        if (!set_option(&options, argv[i])) {
            fprintf(stderr, "model_server: %s is no option; NAME=NUMBER is\n", argv[i]);
            return 2;
        }
    }
    struct qr_model_server *server = qr_model_server_start(&options);
    puts(qr_model_server_url(server, "/v1"));
    fflush(stdout);
    while (getchar() != EOF) {
    }
    qr_model_server_stats(server, &stats);
    printf("requests=%lld answered=%lld limited=%lld inputs=%lld tokens=%lld in_flight_max=%lld connections=%lld\n",
           (long long)stats.requests, (long long)stats.answered, (long long)stats.limited, (long long)stats.inputs,
           (long long)stats.tokens, (long long)stats.in_flight_max, (long long)stats.connections);
    qr_model_server_stop(server);
    return 0;
}
