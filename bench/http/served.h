/* A data folder that `quire serve` serves, in a process of its own, without limits by address: all clients are one. */
#pragma once

#include "workflow/place.h"

#include <sys/types.h>

struct served {
    pid_t pid;
    unsigned port;
};

/* Comes back when it listens. What it logs goes to a file beside the data folder. */
void served_start(struct served *served, const char *data_dir);
/* place_* with this place ask the server. */
void served_place(struct served *served, struct place *place);
void served_stop(struct served *served);

/* In megabytes: now, and the most so far. */
double served_resident_mb(const struct served *served);
double served_peak_mb(const struct served *served);
