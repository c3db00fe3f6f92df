/* The copy of a data folder that is in use.
 *
 * B1  What is copied is what a crash at one moment would have left: the main database as it was at that moment, each index store
 *     as it was then or with writes that no record relies on yet. So opening it is a recovery like any other.
 * B2  That moment is a write function of the main database: nothing is committed there until the copies are made. Before it all
 *     stores are copied beside work; in it only those that have changed since, which their last commit tells.
 * B3  Files of artifacts are copied afterwards, those that the copied rows name; none of them is removed meanwhile (A4 of
 *     artifact/artifact.h).
 * B4  It is written to TARGET.partial, its database under another name, and gets its names when all of it is synced: what has the name
 *     of a backup is whole. */
#pragma once

#include "api/instance.h"

struct qr_backup_result {
    int64_t stores;       /* index stores that were copied */
    int64_t left_out;     /* that are damaged: they are built again from what is stored */
    int64_t copied_again; /* in the moment of B2 */
    int64_t artifacts;    /* files */
    int64_t missing;      /* that the database names and that were not there: `check` tells of them */
    int64_t size_bytes;
    int64_t held_ms, took_ms; /* writes waited so long; all of it */
};

/* `target` is absolute, not in the data folder but for DATA/backups, and not there or an empty folder: else `already_exists`. */
qr_rc qr_backup_make(struct quire *quire, const char *target, struct qr_backup_result *ret_result, qr_err *err);

/* Removes what a process that was killed has left below DATA/backups; called by the one that opens the folder. */
void qr_backup_sweep(const char *data_dir);
