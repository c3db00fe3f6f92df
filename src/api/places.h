/* Requests that wait for a model, each in a thread of the server. A model may take as long as it likes to say nothing: so a part
 * of the threads is kept for what needs none, and a server that stops waits for none. */
#pragma once

#include "api/instance.h"

enum {
    QR_PLACELESS_WAIT_MS = 300
}; /* enough for a model that is well, and soon over where all threads ask one that hangs */

/* At most so many wait long. */
int qr_places(const struct quire *quire);
/* False when as many wait. */
bool qr_place_take(struct quire *quire);
void qr_place_leave(struct quire *quire);

/* Whether nobody is to wait any more; `quire` is the one that is asked. */
bool qr_waiting_is_over(void *quire);
