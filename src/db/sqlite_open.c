/* Opening and closing a SQLite database, and the driver's table.
 *
 * A new file is put in place whole, its application id included, before SQLite opens it. So a file that is not empty
 * and does not carry our id in its first page was never ours, and is refused before SQLite has touched it (DB-11). */
#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "db/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- what is there? ---- */

enum { HEADER_BYTES = 100, PAGE_SIZE_OFFSET = 16, PAGE_COUNT_OFFSET = 28, APPLICATION_ID_OFFSET = 68 };

static uint32_t big_endian_u32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static int64_t page_bytes_of(const unsigned char *header)
{
    const int64_t bytes = header[PAGE_SIZE_OFFSET] << 8 | header[PAGE_SIZE_OFFSET + 1];
    return bytes == 1 ? 65536 : bytes;
}

/* Opens a file beside the database (suffix "" = itself) without SQLite. *ret_fd is -1 when there is none. Anything but a
 * plain file is refused: a pipe would wait for ever, and a link to nowhere, a volume that is not mounted perhaps, would be
 * replaced by a new file. */
static qr_rc open_plain(const struct sqlite_db *db, const char *suffix, int flags, int *ret_fd, int64_t *ret_bytes,
                        qr_err *err)
{
    const struct qr_io *io = db->io;
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    qr_buf_printf(&path, "%s%s", db->path, suffix);
    QR_TRY(qr_buf_check(&path, err));
    const int fd = TEMP_FAILURE_RETRY(io->open(io, path.data, flags | O_NONBLOCK, 0));
    *ret_fd = -1;
    *ret_bytes = 0;
    if (fd < 0 && errno == ENOENT) {
        const int link_fd = TEMP_FAILURE_RETRY(io->open(io, path.data, O_PATH | O_NOFOLLOW, 0));
        if (link_fd < 0) {
            return errno == ENOENT ? QR_OK : qr_fail_errno(err, errno, "cannot look at %s", path.data);
        }
        io->close(io, link_fd);
        return qr_fail(err, QR_CODE_DATA_CORRUPT, "%s is a link to a file that is not there", path.data);
    }
    if (fd < 0) {
        return errno == EACCES || errno == EROFS
                   ? qr_fail(err, QR_CODE_DATA_READONLY, "%s cannot be read and written by this user", path.data)
                   : qr_fail_errno(err, errno, "cannot open %s", path.data);
    }
    struct stat st;
    if (TEMP_FAILURE_RETRY(io->fstat(io, fd, &st)) != 0 || !S_ISREG(st.st_mode)) {
        io->close(io, fd);
        return qr_fail(err, QR_CODE_DATA_CORRUPT, "%s is not a plain file", path.data);
    }
    *ret_fd = fd;
    *ret_bytes = st.st_size;
    return QR_OK;
}

/* The size of the log; 0 when there is none. */
static qr_rc measure_log(const struct sqlite_db *db, const char *suffix, int64_t *ret_bytes, qr_err *err)
{
    int fd;
    QR_TRY(open_plain(db, suffix, O_RDONLY, &fd, ret_bytes, err));
    if (fd >= 0) {
        db->io->close(db->io, fd);
    }
    return QR_OK;
}

/* As much of the header as there is. 0, or an errno. */
static int read_header(const struct qr_io *io, int fd, unsigned char header[static HEADER_BYTES], size_t *ret_len)
{
    *ret_len = 0;
    while (*ret_len < HEADER_BYTES) {
        const ssize_t got = TEMP_FAILURE_RETRY(io->read(io, fd, header + *ret_len, HEADER_BYTES - *ret_len));
        if (got <= 0) {
            return got < 0 ? errno : 0;
        }
        *ret_len += (size_t)got;
    }
    return 0;
}

static qr_rc judge_header(const struct sqlite_db *db, const unsigned char *header, size_t len, int64_t file_bytes,
                          qr_err *err)
{
    static const char magic[16] = "SQLite format 3";
    if (len < HEADER_BYTES || memcmp(header, magic, sizeof magic) != 0) {
        return qr_fail(err, QR_CODE_DATA_CORRUPT, "%s is %s", db->path,
                       len ? "not a database, or its beginning is damaged" : "empty");
    }
    if (big_endian_u32(header + APPLICATION_ID_OFFSET) != SQLITE_APPLICATION_ID) {
        return qr_fail(err, QR_CODE_DATA_FOREIGN, "%s is a database of another program", db->path);
    }
    int64_t log_bytes;
    QR_TRY(measure_log(db, "-wal", &log_bytes, err));
    /* with a log the file may have been left in the middle of being extended; the log has the rest */
    const int64_t said_bytes = page_bytes_of(header) * big_endian_u32(header + PAGE_COUNT_OFFSET);
    if (log_bytes == 0 && file_bytes < said_bytes) {
        return qr_fail(err, QR_CODE_DATA_CORRUPT,
                       "%s has %lld bytes and says itself that it has %lld: its end is missing", db->path,
                       (long long)file_bytes, (long long)said_bytes);
    }
    return QR_OK;
}

/* Looks at the file without SQLite. */
static qr_rc look_at_file(const struct sqlite_db *db, bool *ret_missing, qr_err *err)
{
    int fd;
    int64_t file_bytes;
    QR_TRY(open_plain(db, "", O_RDONLY, &fd, &file_bytes, err));
    *ret_missing = fd < 0;
    if (*ret_missing) {
        return QR_OK;
    }
    unsigned char header[HEADER_BYTES];
    size_t len;
    const int failed = read_header(db->io, fd, header, &len);
    db->io->close(db->io, fd);
    if (failed) {
        return qr_fail_errno(err, failed, "cannot read %s", db->path);
    }
    return judge_header(db, header, len, file_bytes, err);
}

/* ---- what was left ---- */

static qr_rc copy_bytes(const struct qr_io *io, int from_fd, int to_fd, qr_err *err)
{
    char block[64 << 10];
    for (;;) {
        const ssize_t len = TEMP_FAILURE_RETRY(io->read(io, from_fd, block, sizeof block));
        if (len < 0) {
            return qr_fail_errno(err, errno, "cannot read the write-ahead log");
        }
        for (ssize_t done = 0, written; done < len; done += written) {
            written = TEMP_FAILURE_RETRY(io->write(io, to_fd, block + done, (size_t)(len - done)));
            if (written <= 0) {
                return qr_fail_errno(err, written < 0 ? errno : EIO, "cannot write the write-ahead log");
            }
        }
        if (len == 0) {
            break;
        }
    }
    if (TEMP_FAILURE_RETRY(io->fsync(io, to_fd))) {
        return qr_fail_errno(err, errno, "cannot sync the write-ahead log");
    }
    return QR_OK;
}

/* Writes the log's bytes over themselves and syncs them. After a failed sync the kernel still shows what it could not
 * write but calls it clean, so that another sync would be a lie; and a recovery that copies such a log into the file
 * and is cut short by a power loss ruins the file (W4). Also at the start: the process that met the failure may be
 * gone. */
static qr_rc rewrite_log(const struct sqlite_db *db, qr_err *err)
{
    int from_fd, to_fd = -1;
    int64_t bytes;
    QR_TRY(open_plain(db, "-wal", O_RDONLY, &from_fd, &bytes, err));
    if (from_fd < 0) {
        return QR_OK;
    }
    qr_rc rc = open_plain(db, "-wal", O_WRONLY, &to_fd, &bytes, err);
    if (rc == QR_OK && to_fd >= 0) {
        rc = copy_bytes(db->io, from_fd, to_fd, err);
        db->io->close(db->io, to_fd);
    }
    db->io->close(db->io, from_fd);
    return rc;
}

/* ---- the write connection ---- */

/* The bytes of a new database; sqlite3_free. NULL when memory ran out. */
static unsigned char *make_image(sqlite3_int64 *ret_len)
{
    static const char script[] = "CREATE TABLE quire_commit (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;"
                                 "INSERT INTO quire_commit (id, seq) VALUES (1, 0);"
                                 "PRAGMA application_id = " QR_STRINGIFY(SQLITE_APPLICATION_ID);
    sqlite3 *memory = NULL;
    unsigned char *image = NULL;
    if (sqlite3_open_v2(":memory:", &memory, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) == SQLITE_OK &&
        sqlite3_exec(memory, script, NULL, NULL, NULL) == SQLITE_OK) {
        image = sqlite3_serialize(memory, "main", ret_len, 0);
    }
    sqlite3_close(memory);
    return image;
}

/* What belongs to a database that is not there any more would be taken for the new one's; and it may hold the only copy
 * of acknowledged writes. */
static qr_rc refuse_remains(const struct sqlite_db *db, const char *suffix, qr_err *err)
{
    int64_t bytes;
    QR_TRY(measure_log(db, suffix, &bytes, err));
    return bytes == 0 ? QR_OK
                      : qr_fail(err, QR_CODE_DATA_CORRUPT, "%s%s is there, but the database it belongs to is gone",
                                db->path, suffix);
}

/* Puts a complete file in place at once: a power loss while SQLite itself makes one would leave a beginning by which we
 * could not tell our own from a foreign or a damaged file. */
static qr_rc create_file(const struct sqlite_db *db, qr_err *err)
{
    QR_TRY(refuse_remains(db, "-wal", err));
    QR_TRY(refuse_remains(db, "-journal", err));
    sqlite3_int64 len;
    unsigned char *image = make_image(&len);
    if (!image) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a new database");
    }
    const qr_rc rc = qr_fs_replace(db->io, db->path, (qr_str){(const char *)image, (size_t)len}, 0600, err);
    sqlite3_free(image);
    return rc == QR_DENIED ? qr_fail(err, QR_CODE_DATA_READONLY, "cannot make %s: permission denied", db->path) : rc;
}

static qr_rc use_wal(struct sqlite_conn *conn, qr_err *err)
{
    sqlite3_stmt *stmt;
    bool is_wal = false;
    int rc = sqlite3_prepare_v2(conn->handle, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt);
    }
    if (rc == SQLITE_ROW) {
        const char *mode = (const char *)sqlite3_column_text(stmt, 0);
        is_wal = mode && strcmp(mode, "wal") == 0;
        rc = sqlite3_step(stmt); /* only this commits the switch */
    }
    qr_rc result = QR_OK;
    if (rc != SQLITE_DONE) {
        result = qr_sqlite_conn_fail(conn, rc, "switching to the write-ahead log", err);
    } else if (!is_wal) {
        result = qr_fail(err, QR_CODE_IO_ERROR, "this file system cannot hold a write-ahead log");
    }
    sqlite3_finalize(stmt);
    return result;
}

static int remember_frames(void *arg, sqlite3 *handle QR_UNUSED, const char *name QR_UNUSED, int frames)
{
    struct sqlite_db *db = arg;
    db->wal_frames = frames;
    return SQLITE_OK;
}

/* Everything that is in the log goes to the file and is synced: after a failed sync the log's pages may be on disk or
 * not, whatever the kernel says now (W4). Also ends an old log of any size. */
static qr_rc settle_log(struct sqlite_conn *conn, qr_err *err)
{
    const int rc = sqlite3_wal_checkpoint_v2(conn->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return rc == SQLITE_OK ? QR_OK : qr_sqlite_conn_fail(conn, rc, "recovering the write-ahead log", err);
}

/* What the log says counts before what the file's header says; and a file that is refused is left as it is, its log too. */
static qr_rc judge_content(const struct sqlite_db *db, struct sqlite_conn *conn, qr_err *err)
{
    int64_t application_id, has_schema, version = 0;
    QR_TRY(qr_sqlite_conn_get_i64(conn, "PRAGMA application_id", &application_id, err));
    if (application_id != SQLITE_APPLICATION_ID) {
        return qr_fail(err, QR_CODE_DATA_FOREIGN, "%s is a database of another program", db->path);
    }
    QR_TRY(qr_sqlite_conn_get_i64(conn, "SELECT count(*) FROM sqlite_schema WHERE name = 'quire_schema'", &has_schema,
                                  err));
    if (has_schema) {
        QR_TRY(qr_sqlite_conn_get_i64(conn, "SELECT coalesce(max(version), 0) FROM quire_schema", &version, err));
    }
    return qr_db_check_version(version, db->schema_known, err);
}

static qr_rc connect_writer(struct sqlite_db *db, struct sqlite_conn *conn, qr_err *err)
{
    QR_TRY(judge_content(db, conn, err));
    QR_TRY(use_wal(conn, err));
    QR_TRY(qr_sqlite_conn_exec(conn, "PRAGMA synchronous = FULL", "opening the database", err));
    db->writer_level = QR_DURABLE;
    QR_TRY(settle_log(conn, err));
    QR_TRY(qr_sqlite_conn_get_i64(conn, "PRAGMA page_size", &db->page_bytes, err));
    QR_TRY(qr_sqlite_conn_get_i64(conn, "SELECT seq FROM quire_commit WHERE id = 1", &db->commit_seq, err));
    conn->bound_bytes_max = db->wal_hard_bytes / 4;
    db->wal_frames = 0;
    db->next_help_bytes = 0;
    sqlite3_wal_hook(conn->handle, remember_frames, db);
    return QR_OK;
}

static qr_rc make_file(const struct sqlite_db *db, bool may_create, qr_err *err)
{
    if (!may_create) {
        return qr_fail(err, QR_CODE_IO_ERROR, "%s is gone", db->path);
    }
    return create_file(db, err);
}

qr_rc qr_sqlite_writer_connect(struct sqlite_db *db, bool may_create, qr_err *err)
{
    bool is_missing;
    QR_TRY(look_at_file(db, &is_missing, err));
    QR_TRY(is_missing ? make_file(db, may_create, err) : rewrite_log(db, err));
    struct sqlite_conn *conn;
    QR_TRY(qr_sqlite_conn_open(&conn, db, SQLITE_ROLE_WRITER, err));
    const qr_rc rc = connect_writer(db, conn, err);
    if (rc != QR_OK) {
        qr_sqlite_conn_close(conn);
        return rc;
    }
    db->writer = conn;
    return QR_OK;
}

/* ---- the handle ---- */

static void free_db(struct sqlite_db *db)
{
    if (db->writer && !db->checkpoint_failed && db->writer->seen_storage_error == QR_CODE_NONE) {
        sqlite3_db_config(db->writer->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    }
    qr_sqlite_conn_close(db->writer);
    pthread_cond_destroy(&db->work);
    pthread_cond_destroy(&db->reader_changed);
    pthread_cond_destroy(&db->checkpoint_changed);
    pthread_mutex_destroy(&db->lock);
    qr_db_done(&db->base);
    qr_free(db->path);
    qr_free(db->vfs);
    qr_free(db);
}

static struct sqlite_db *make_db(const struct qr_db_options *options)
{
    struct sqlite_db *db = qr_alloc_zero(sizeof *db);
    if (!db) {
        return NULL;
    }
    qr_db_init(&db->base);
    db->base.version = 2;
    pthread_mutex_init(&db->lock, NULL);
    qr_cond_init(&db->work);
    qr_cond_init(&db->reader_changed);
    qr_cond_init(&db->checkpoint_changed);
    db->clock = options->clock;
    db->io = options->io;
    db->readers_max = options->readers_max;
    db->read_deadline_ms = options->read_deadline_ms;
    db->wal_soft_bytes = options->wal_soft_bytes;
    db->wal_hard_bytes = options->wal_hard_bytes;
    db->schema_known = (int64_t)options->migration_count;
    db->is_background = options->is_background;
    db->single_thread = options->single_thread;
    db->tokenizer = options->tokenizer;
    db->queue_end = &db->queue;
    db->path = qr_copy_string(options->url + strlen("sqlite:"));
    db->vfs = options->vfs ? qr_copy_string(options->vfs) : NULL;
    if (!db->path || (options->vfs && !db->vfs)) {
        free_db(db);
        return NULL;
    }
    return db;
}

static void stop(struct sqlite_db *db)
{
    QR_LOCKED(&db->lock);
    db->stopping = true;
    pthread_cond_broadcast(&db->work);
    pthread_cond_broadcast(&db->checkpoint_changed);
}

static qr_rc start_threads(struct sqlite_db *db, qr_err *err)
{
    QR_TRY(qr_thread_start(&db->checkpoint_thread, "quire-wal", qr_sqlite_checkpoint_main, db, err));
    const qr_rc rc = qr_thread_start(&db->writer_thread, "quire-write", qr_sqlite_writer_main, db, err);
    if (rc != QR_OK) {
        stop(db);
        pthread_join(db->checkpoint_thread, NULL);
    }
    return rc;
}

/* SQLite counts its memory under one lock of the process, which every allocation takes: writers of two databases would wait for
 * each other there, for counts that nobody reads. Where the program around us has used SQLite before, this is refused, and it
 * stays as the program wants it. */
static void count_no_memory(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static qr_rc sqlite_open(struct qr_db **ret_db, const struct qr_db_options *options, qr_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count_no_memory);
    struct sqlite_db *db = make_db(options);
    if (!db) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the database");
    }
    qr_rc rc = qr_sqlite_writer_connect(db, true, err);
    if (rc == QR_OK && !db->single_thread) {
        rc = start_threads(db, err);
    }
    if (rc != QR_OK) {
        free_db(db);
        return rc;
    }
    *ret_db = &db->base;
    return QR_OK;
}

static void sqlite_close(struct qr_db *base)
{
    struct sqlite_db *db = QR_CONTAINER_OF(base, struct sqlite_db, base);
    stop(db);
    if (!db->single_thread) {
        pthread_join(db->writer_thread, NULL);
        pthread_join(db->checkpoint_thread, NULL);
    }
    qr_sqlite_readers_stop(db);
    free_db(db);
}

static void sqlite_stats(struct qr_db *base, struct qr_db_stats *ret_stats)
{
    struct sqlite_db *db = QR_CONTAINER_OF(base, struct sqlite_db, base);
    QR_LOCKED(&db->lock);
    *ret_stats = db->stats;
}

const struct qr_driver qr_driver_sqlite = {
    .name = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .write = qr_sqlite_write,
    .read = qr_sqlite_read,
    .stats = sqlite_stats,
    .verify = qr_sqlite_verify,
    .copy = qr_sqlite_copy,
    .exec = qr_sqlite_exec,
    .script = qr_sqlite_script,
    .savepoint = qr_sqlite_savepoint,
    .release = qr_sqlite_release,
    .rollback_to = qr_sqlite_rollback_to,
    .now_ms = qr_sqlite_now_ms,
    .lock_schema = qr_sqlite_lock_schema,
    .has_table = qr_sqlite_has_table,
    .query = qr_sqlite_query,
    .rows_next = qr_sqlite_rows_next,
    .rows_close = qr_sqlite_rows_close,
    .rows_is_null = qr_sqlite_rows_is_null,
    .rows_i64 = qr_sqlite_rows_i64,
    .rows_f64 = qr_sqlite_rows_f64,
    .rows_str = qr_sqlite_rows_str,
    .postings = qr_sqlite_postings,
};
