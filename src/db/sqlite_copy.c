/* Copies a database page by page out of one snapshot. The snapshot is the source connection's own read transaction: without it
 * SQLite would begin again after every commit of others, and never end beside work. It holds back the log, so it is given up
 * where the log has to be emptied; the caller then tries again when less is written. */
#include "db/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { STEP_PAGES = 256 };

struct copy {
    const char *path;
    int64_t commit;
};

/* With our mode, and never in place of something. */
static qr_rc make_file(const struct sqlite_db *db, const char *path, qr_err *err)
{
    const int fd = (int)TEMP_FAILURE_RETRY(db->io->open(db->io, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    if (fd < 0) {
        return qr_fail_errno(err, errno, "cannot make %s", path);
    }
    db->io->close(db->io, fd);
    return QR_OK;
}

/* The message is that of the code: what failed in a step is not always said of the connection. */
static qr_rc fail_target(int sqlite_rc, const char *path, qr_err *err)
{
    const qr_code code = (sqlite_rc & 0xFF) == SQLITE_FULL ? QR_CODE_DISK_FULL : QR_CODE_IO_ERROR;
    return qr_fail(err, code, "cannot write the copy %s: %s", path, sqlite3_errstr(sqlite_rc));
}

/* The copy is of use only when it is whole, so it needs no journal. */
static qr_rc open_target(const struct sqlite_db *db, const char *path, sqlite3 **ret_target, qr_err *err)
{
    QR_TRY(make_file(db, path, err));
    int rc = sqlite3_open_v2(path, ret_target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, db->vfs);
    rc = rc == SQLITE_OK
             ? sqlite3_exec(*ret_target, "PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL", NULL, NULL, NULL)
             : rc;
    return rc == SQLITE_OK ? QR_OK : fail_target(rc, path, err);
}

static qr_rc copy_pages(struct sqlite_db *db, sqlite3_backup *backup, const char *path, qr_err *err)
{
    int rc;
    do {
        if (qr_sqlite_must_give_way(db)) {
            return qr_fail(err, QR_CODE_UNAVAILABLE, "too much is being written for a copy of the whole database");
        }
        rc = sqlite3_backup_step(backup, STEP_PAGES);
    } while (rc == SQLITE_OK);
    return rc == SQLITE_DONE ? QR_OK : fail_target(rc, path, err);
}

static qr_rc copy_into(struct sqlite_db *db, struct sqlite_conn *conn, sqlite3 *target, const char *path, qr_err *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(target, "main", conn->handle, "main");
    if (!backup) {
        return fail_target(sqlite3_errcode(target), path, err);
    }
    qr_rc rc = copy_pages(db, backup, path, err);
    const int finish_rc = sqlite3_backup_finish(backup);
    return rc == QR_OK && finish_rc != SQLITE_OK ? fail_target(finish_rc, path, err) : rc;
}

static qr_rc copy_on(struct sqlite_db *db, struct sqlite_conn *conn, void *arg, qr_err *err)
{
    struct copy *copy = arg;
    sqlite3 *target = NULL;
    QR_TRY(qr_sqlite_conn_exec(conn, "BEGIN", "beginning a copy", err));
    QR_TRY(qr_sqlite_conn_get_i64(conn, "SELECT seq FROM quire_commit WHERE id = 1", &copy->commit, err));
    qr_rc rc = open_target(db, copy->path, &target, err);
    rc = rc == QR_OK ? copy_into(db, conn, target, copy->path, err) : rc;
    if (sqlite3_close(target) != SQLITE_OK && rc == QR_OK) {
        rc = qr_fail(err, QR_CODE_IO_ERROR, "cannot close the copy %s", copy->path);
    }
    (void)!qr_sqlite_conn_exec(conn, "ROLLBACK", "ending a copy", NULL);
    return rc;
}

qr_rc qr_sqlite_copy(struct qr_db *base, const char *path, int64_t *ret_commit, qr_err *err)
{
    struct copy copy = {.path = path};
    QR_TRY(qr_sqlite_long_look(QR_CONTAINER_OF(base, struct sqlite_db, base), copy_on, &copy, err));
    *ret_commit = copy.commit;
    return QR_OK;
}
