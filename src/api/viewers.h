/* What those may see who follow events, found out again from time to time: a key that was ended, or has lost a role, sees nothing more.
 * All who ask with the same key share one, so that a thousand of them are one question. The caller holds a lock over a list. */
#pragma once

#include "api/instance.h"

#include <quire/quire.h>

/* What somebody may see now. */
struct qr_sight {
    bool may;            /* anything at all: the key is in force */
    bool sees_all;       /* bases */
    struct qr_buf bases; /* their ids, in order; where it does not see all */
};

struct qr_viewer;

/* A holder more of whoever asks like that; NULL = out of memory. */
struct qr_viewer *qr_viewer_hold(struct qr_viewer **list, const struct quire_request *from);
void qr_viewer_release(struct qr_viewer **list, struct qr_viewer *viewer);
bool qr_viewer_may(const struct qr_viewer *viewer);
bool qr_viewer_sees(const struct qr_viewer *viewer, qr_uuid base_id);
/* Also a viewer with no sight yet may see nothing. Takes it. */
void qr_viewer_set(struct qr_viewer *viewer, struct qr_sight *sight);
struct qr_viewer *qr_viewer_next(const struct qr_viewer *viewer);
/* The same viewer with one holder more. */
struct qr_viewer *qr_viewer_hold_again(struct qr_viewer *viewer);

/* Asks the database, without a lock. Needs the viewer to be held. */
qr_rc qr_viewer_look(struct quire *quire, const struct qr_viewer *viewer, struct qr_sight *ret_sight, qr_err *err);
