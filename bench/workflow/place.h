/* An open data folder as a program uses it: requests, and waiting for what they began. Everything that fails ends the
 * benchmark. */
#pragma once

#include "support.h"

#include <quire/quire.h>

enum { PLACE_ID_SIZE = 40 };

struct place;
/* As quire_call. */
typedef int place_ask_fn(struct place *place, const char *method, const char *path, const char *body,
                         struct quire_response *ret_response);

struct place {
    struct quire *quire;      /* NULL = it is elsewhere */
    place_ask_fn *ask;        /* NULL = the library */
    void *server;             /* of `ask` */
    char base[PLACE_ID_SIZE]; /* that requests are about; set by place_add_base */
};

/* Opens the folder, and begins to work in it unless told otherwise. */
void place_open(struct place *place, const char *dir, bool works);
void place_close(struct place *place);

/* A request as it is, from the text of its body to that of its answer; `path` is the whole one. */
int place_ask(struct place *place, const char *method, const char *path, const char *body,
              struct quire_response *ret_response);
/* The body is taken; NULL = none. `path` is what stands behind /api/v1. Gives the answer's body. */
json_t *place_call(struct place *place, const char *method, const char *path, json_t *body);
/* The same below the base. */
json_t *place_call_base(struct place *place, const char *method, const char *path, json_t *body);

void place_add_base(struct place *place, const char *name);
/* Adds a folder; with `again` one that is there already. */
void place_add_folder(struct place *place, const char *folder, bool again, char ret_id[static PLACE_ID_SIZE]);
/* Until the item, and with it everything below it, is `completed`. */
void place_wait(struct place *place, const char *id);
/* Until nothing of it is at work any more, whether it has succeeded or not. */
void place_wait_over(struct place *place, const char *id);
/* Until what adding it again has begun is over. */
void place_wait_refreshed(struct place *place, const char *id);
/* Whether jobs of the type are open. */
bool place_has_open(struct place *place, const char *type);

/* The transactions since it was opened, of the main database and of the index stores that are open. */
struct place_writes {
    double main_longest_ms, index_longest_ms;
    uint64_t main_count, index_count;
};
struct place_writes place_writes(const struct place *place);
