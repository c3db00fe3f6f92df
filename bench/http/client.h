/* A connection to a server on this machine, for what wrk cannot do: requests of which the answer is looked at, clients that only
 * listen, large bodies. What fails ends the benchmark. */
#pragma once

#include <quire/quire.h>
#include <stdbool.h>

int client_connect(unsigned port);
/* Sends a request and reads its answer, which is released with quire_response_done. The connection stays. */
int client_ask(int fd, const char *method, const char *path, const char *body, struct quire_response *ret_response);
/* Asks for events and gives the connection on which they come; -1 = that is not what is answered. */
int client_listen(unsigned port, const char *path);
/* Sends one file of so many bytes, which are other ones for another `seed`. Gives the status of the answer. */
int client_upload(unsigned port, const char *path, size_t size_bytes, unsigned seed);

/* The bytes that an upload repeats. */
enum { CLIENT_BLOCK_BYTES = 1 << 20 };
void client_fill(char block[static CLIENT_BLOCK_BYTES], unsigned seed);
