/* The least that a client can do: what the same server gives to threads that send one request after another and throw the
 * answers away. */
#pragma once

#include "embed_remote/server.h"

enum { BARE_INPUTS = 32 }; /* in a request */

/* Inputs a second, asked for by so many threads at a time, for so long. */
double bare_rate(const struct server_limits *limits, int threads, double seconds);
