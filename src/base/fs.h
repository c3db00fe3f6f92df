/* File helpers on the table of io.h. What returns QR_OK is durable where the comment says so: bytes and folder entry
 * synced. Calls that a signal interrupts are made again. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"

/* Appends the whole file; `payload_too_large` when it has more than len_max bytes, without reading on. A failure may
 * leave a part of the file in `out`. */
qr_rc qr_fs_read(const struct qr_io *io, const char *path, size_t len_max, struct qr_buf *out, qr_err *err);
/* Appends at most `len_max` bytes of an open file from `offset` on, fewer only at its end. Returns 0, or an errno. */
int qr_fs_read_part(int fd, int64_t offset, size_t len_max, struct qr_buf *out);

/* Opens what is at an absolute path that has no link in any part, O_CLOEXEC: whoever may put a link in place of a folder
 * decides nothing. -1 and errno; a link on the way is ENOTDIR, one at the end is what O_NOFOLLOW makes of it. */
int qr_fs_open_without_links(const char *path, int flags);

/* Files that a process which was killed in qr_fs_replace leaves behind have this prefix, in the target's folder.
 * Whoever owns the folder may remove them at its start. */
#define QR_FS_TEMP_PREFIX ".quire-tmp-"

/* Puts `content` at `path`: afterwards, also after a power loss at any moment, there is the old file or the new one,
 * whole. Durable on QR_OK. A failed call leaves no temporary file. A symbolic link at `path` is replaced, not followed.
 * `mode` is the new file's, less the umask. */
qr_rc qr_fs_replace(const struct qr_io *io, const char *path, qr_str content, mode_t mode, qr_err *err);

/* Gives a file that is written and synced its name, in place of another one. Durable on QR_OK; on failure it may stand under
 * either name. */
qr_rc qr_fs_move(const struct qr_io *io, const char *from, const char *to, qr_err *err);

/* Removes what qr_fs_replace left in a folder when its process was killed. Only for the one owner of the folder: a file that
 * is being written looks the same. What cannot be removed stays. */
void qr_fs_sweep(const struct qr_io *io, const char *folder);

/* Makes the folder and those above it that are missing; durable. An existing one is fine; anything else in its place is
 * `already_exists`. */
qr_rc qr_fs_make_dirs(const struct qr_io *io, const char *path, mode_t mode, qr_err *err);

/* Removes a file; it need not exist. Durable. */
qr_rc qr_fs_remove(const struct qr_io *io, const char *path, qr_err *err);

/* An exclusive lock on a file, held until it is released or the process ends, however it ends. */
struct qr_file_lock {
    const struct qr_io *io;
    int fd; /* -1 = not held */
};

/* Takes the lock and writes who holds it into the file: "pid PID, COMMAND, since TIME". `path` is a file of its own in
 * the folder it guards; it is made when missing and never deleted, since a deleted file could be locked by one process
 * while another locks its successor.
 * Another holder, this process included: `data_locked`, naming its pid. A folder or file that cannot be written:
 * `data_readonly`. On failure the lock is not held. */
qr_rc qr_file_lock_take(struct qr_file_lock *lock, const struct qr_io *io, const struct qr_clock *clock,
                        const char *path, const char *command, qr_err *err);
/* Does nothing when it is not held. */
void qr_file_lock_release(struct qr_file_lock *lock);

/* The folder that holds the path's last name, as dirname(1): "." when there is none, "/" for the root. */
qr_str qr_path_parent(qr_str path);
