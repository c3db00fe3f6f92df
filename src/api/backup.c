/* Makes backups; the rules are in backup.h. Files are made by whoever calls, in memory that does not grow with them: of each base
 * two numbers are remembered. */
#include "api/backup.h"

#include "artifact/artifact.h"
#include "base/failpoint.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/thread.h"
#include "store/bases.h"
#include "store/schema.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BASES_A_PAGE = 100,
    FILES_A_PAGE = 500,
    COPY_BYTES = 256 << 10,
    ROUNDS_BESIDE_WORK = 2, /* the second has only what changed during the first */
    TRIES = 5,              /* of a store that others write to faster than it is copied */
};

/* An index store that was copied. */
struct copied {
    int64_t commit; /* that was its last */
    int round;      /* in which its base was last seen */
    char stamp[QR_INDEX_STAMP_SIZE];
};

struct backup {
    struct quire *quire;
    const char *target;
    char *partial;        /* B4 */
    struct qr_map copies; /* base id → struct copied */
    int round;
    bool is_moment; /* of B2 */
    struct qr_backup_result result;
};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a backup");
}

/* "PARTIAL/…" */
static qr_rc path_in(const struct backup *backup, struct qr_buf *out, const char *folder, const char *name, qr_err *err)
{
    qr_buf_clear(out);
    qr_buf_printf(out, "%s/%s%s%s", backup->partial, folder, *folder && *name ? "/" : "", name);
    return qr_buf_check(out, err);
}

/* ---- index stores ---- */

static qr_rc store_path(const struct backup *backup, qr_uuid base_id, struct qr_buf *out, qr_err *err)
{
    char name[QR_UUID_TEXT_SIZE + 4], id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(base_id, id);
    snprintf(name, sizeof name, "%s.db", id);
    return path_in(backup, out, "index", name, err);
}

static qr_str key_of(const qr_uuid *id)
{
    return (qr_str){(const char *)id->bytes, QR_UUID_BYTES};
}

static void forget_copy(struct backup *backup, const qr_uuid *id)
{
    qr_free(qr_map_take(&backup->copies, key_of(id)));
}

static qr_rc note_copy(struct backup *backup, const struct qr_base *base, int64_t commit, qr_err *err)
{
    struct copied *copied = qr_alloc_zero(sizeof *copied);
    if (!copied || !qr_map_put(&backup->copies, key_of(&base->id), copied)) {
        qr_free(copied);
        return out_of_memory(err);
    }
    *copied = (struct copied){.commit = commit, .round = backup->round};
    snprintf(copied->stamp, sizeof copied->stamp, "%s", base->index_stamp);
    return QR_OK;
}

static bool is_unchanged(struct backup *backup, const struct qr_base *base, struct copied *copied)
{
    int64_t commit;
    qr_err ignored;
    return copied && strcmp(copied->stamp, base->index_stamp) == 0 &&
           qr_index_last_commit(backup->quire->index, base->id, &commit, &ignored) == QR_OK && commit == copied->commit;
}

/* Beside work one that is written to all the time is left to the moment in which nothing new begins. */
static qr_rc try_to_copy(struct backup *backup, const struct qr_base *base, const char *path, int64_t *ret_commit,
                         qr_err *err)
{
    qr_rc rc = QR_UNAVAILABLE;
    for (int tries = backup->is_moment ? TRIES : 1; rc == QR_UNAVAILABLE && tries > 0; tries--) {
        QR_TRY(qr_fs_remove(backup->quire->io, path, err));
        rc = qr_index_copy(backup->quire->index, base->id, path, ret_commit, err);
    }
    return rc;
}

static qr_rc copy_store(struct backup *backup, const struct qr_base *base, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    int64_t commit;
    forget_copy(backup, &base->id);
    QR_TRY(store_path(backup, base->id, &path, err));
    const qr_rc rc = try_to_copy(backup, base, path.data, &commit, err);
    if (rc == QR_OK) {
        backup->result.copied_again += backup->is_moment;
        return note_copy(backup, base, commit, err);
    }
    if (rc != QR_CORRUPT && rc != QR_NOT_FOUND && (backup->is_moment || rc != QR_UNAVAILABLE)) {
        return rc;
    }
    backup->result.left_out += backup->is_moment; /* derived: it is built again (RECOV-4) */
    return qr_fs_remove(backup->quire->io, path.data, err);
}

static qr_rc look_at_base(struct backup *backup, const struct qr_base *base, qr_err *err)
{
    struct copied *copied = qr_map_find(&backup->copies, key_of(&base->id));
    if (base->index_stamp[0] == '\0') {
        return QR_OK; /* it was never made */
    }
    if (is_unchanged(backup, base, copied)) {
        copied->round = backup->round;
        return QR_OK;
    }
    return copy_store(backup, base, err);
}

struct base_page {
    qr_uuid after;
    struct qr_arena arena;
    struct qr_base *bases;
    size_t count;
};

static qr_rc load_bases(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_page *page = arg;
    qr_arena_reset(&page->arena);
    return qr_bases_list(tx, page->after, BASES_A_PAGE, false, &page->arena, &page->bases, &page->count, err);
}

static qr_rc copy_pages(struct backup *backup, struct base_page *page, qr_err *err)
{
    do {
        QR_TRY(qr_db_read(backup->quire->db, load_bases, page, err));
        for (size_t i = 0; i < page->count; i++) {
            QR_TRY(look_at_base(backup, &page->bases[i], err));
            page->after = page->bases[i].id;
        }
    } while (page->count == BASES_A_PAGE);
    return QR_OK;
}

static qr_rc copy_stores(struct backup *backup, qr_err *err)
{
    struct base_page page = {0};
    backup->round++;
    qr_arena_init(&page.arena, 0);
    const qr_rc rc = copy_pages(backup, &page, err);
    qr_arena_done(&page.arena);
    return rc;
}

/* Those of bases that are gone. */
static qr_rc remove_others(struct backup *backup, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    size_t cursor = 0;
    qr_str key;
    void *value;
    while (qr_map_next(&backup->copies, &cursor, &key, &value)) {
        const struct copied *copied = value;
        qr_uuid id;
        memcpy(id.bytes, key.ptr, sizeof id.bytes);
        if (copied->round != backup->round) {
            QR_TRY(store_path(backup, id, &path, err));
            QR_TRY(qr_fs_remove(backup->quire->io, path.data, err));
        } else {
            backup->result.stores++;
        }
    }
    return QR_OK;
}

/* ---- the moment (B2) ---- */

#define PARTIAL_SUFFIX ".partial"
static const char unnamed_database[] = "quire.db.copy"; /* B4 */

/* A write function that changes nothing: while it runs nobody else's does. It may be run again, and then copies again. */
static qr_rc copy_in_the_moment(struct qr_tx *tx QR_UNUSED, void *arg, qr_err *err)
{
    struct backup *backup = arg;
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    int64_t ignored;
    const int64_t began_us = qr_thread_mono_us();
    backup->is_moment = true;
    backup->result.copied_again = backup->result.left_out = 0;
    QR_TRY(copy_stores(backup, err));
    QR_TRY(path_in(backup, &path, "", unnamed_database, err));
    QR_TRY(qr_fs_remove(backup->quire->io, path.data, err));
    QR_TRY(qr_db_copy(backup->quire->db, path.data, &ignored, err));
    backup->result.held_ms = (qr_thread_mono_us() - began_us) / 1000;
    return QR_OK;
}

/* ---- artifacts (B3) ---- */

static qr_rc copy_bytes(const struct qr_io *io, int from, int to, const char *file, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *bytes = qr_alloc(COPY_BYTES);
    if (!bytes) {
        return out_of_memory(err);
    }
    for (;;) {
        const ssize_t got = TEMP_FAILURE_RETRY(io->read(io, from, bytes, COPY_BYTES));
        if (got <= 0) {
            return got == 0 ? QR_OK : qr_fail_errno(err, errno, "cannot read the artifact %s", file);
        }
        for (ssize_t done = 0; done < got;) {
            const ssize_t put = TEMP_FAILURE_RETRY(io->write(io, to, bytes + done, (size_t)(got - done)));
            if (put < 0) {
                return qr_fail_errno(err, errno, "cannot write the copy of the artifact %s", file);
            }
            done += put;
        }
    }
}

static qr_rc make_folder_of(struct backup *backup, struct qr_buf *path, qr_err *err)
{
    char *name = strrchr(path->data, '/');
    *name = '\0';
    const qr_rc rc =
        TEMP_FAILURE_RETRY(backup->quire->io->mkdir(backup->quire->io, path->data, 0700)) == 0 || errno == EEXIST
            ? QR_OK
            : qr_fail_errno(err, errno, "cannot make the folder %s", path->data);
    *name = '/';
    return rc;
}

static qr_rc copy_open_artifact(struct backup *backup, int from, const char *file, qr_err *err)
{
    const struct qr_io *io = backup->quire->io;
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_TRY(path_in(backup, &path, "artifacts", file, err));
    QR_TRY(make_folder_of(backup, &path, err));
    const int to = (int)TEMP_FAILURE_RETRY(io->open(io, path.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    if (to < 0) {
        return qr_fail_errno(err, errno, "cannot make %s", path.data);
    }
    qr_rc rc = copy_bytes(io, from, to, file, err);
    if (io->close(io, to) != 0 && rc == QR_OK) {
        rc = qr_fail_errno(err, errno, "cannot close %s", path.data);
    }
    backup->result.artifacts += rc == QR_OK;
    return rc;
}

static qr_rc copy_artifact(struct backup *backup, const char *file, qr_err *err)
{
    const struct qr_io *io = backup->quire->io;
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    qr_buf_printf(&path, "%s/%s", backup->quire->artifact_dir, file);
    QR_TRY(qr_buf_check(&path, err));
    const int from = (int)TEMP_FAILURE_RETRY(io->open(io, path.data, O_RDONLY | O_NOFOLLOW, 0));
    if (from < 0 && errno == ENOENT) {
        backup->result.missing++; /* damage from before, which is no reason to have no backup */
        return QR_OK;
    }
    if (from < 0) {
        return qr_fail_errno(err, errno, "cannot open the artifact %s", file);
    }
    const qr_rc rc = copy_open_artifact(backup, from, file, err);
    io->close(io, from);
    return rc;
}

struct file_page {
    char after[QR_UUID_TEXT_SIZE + 8];
    struct qr_arena arena;
    const char **files;
    size_t count;
};

static qr_rc load_files(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct file_page *page = arg;
    qr_arena_reset(&page->arena);
    return qr_artifacts_list_files(tx, page->after, FILES_A_PAGE, &page->arena, &page->files, &page->count, err);
}

static qr_rc copy_listed(struct backup *backup, struct qr_db *copy, struct file_page *page, qr_err *err)
{
    do {
        QR_TRY(qr_db_read(copy, load_files, page, err));
        for (size_t i = 0; i < page->count; i++) {
            QR_TRY(copy_artifact(backup, page->files[i], err));
            snprintf(page->after, sizeof page->after, "%s", page->files[i]);
        }
    } while (page->count == FILES_A_PAGE);
    return QR_OK;
}

/* By the rows of the copy: those of the database that is in use have changed since. */
static qr_rc copy_artifacts(struct backup *backup, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf url = {0};
    qr_buf_printf(&url, "sqlite:%s/%s", backup->partial, unnamed_database);
    QR_TRY(qr_buf_check(&url, err));
    const struct qr_db_options options = {.url = url.data,
                                          .migrations = qr_schema_migrations,
                                          .migration_count = qr_schema_migration_count,
                                          .clock = backup->quire->clock,
                                          .single_thread = true,
                                          .io = backup->quire->io};
    struct qr_db *copy;
    QR_TRY(qr_db_open(&copy, &options, err));
    struct file_page page = {0};
    qr_arena_init(&page.arena, 0);
    const qr_rc rc = copy_listed(backup, copy, &page, err);
    qr_arena_done(&page.arena);
    qr_db_close(copy); /* which leaves no log behind */
    return rc;
}

/* ---- the folder (B4) ---- */

static void free_path(char **path)
{
    free(*path); /* NOLINT: realpath's own memory */
}

/* Where the nearest folder above it that is there really is; NULL = there is none, or no memory. */
static char *real_folder_above(const char *target)
{
    char *resolved = NULL;
    for (qr_str above = qr_path_parent(qr_str_of(target)); !resolved; above = qr_path_parent(above)) {
        char text[PATH_MAX];
        if (above.len >= sizeof text) {
            return NULL;
        }
        memcpy(text, above.ptr, above.len);
        text[above.len] = '\0';
        resolved = realpath(text, NULL);
        if (above.len <= 1) {
            break;
        }
    }
    return resolved;
}

/* Nothing but ours stands in the data folder: a backup among the indexes or artifacts would be swept as rubbish, or taken for one
 * of them. */
static qr_rc check_apart(const struct quire *quire, const char *target, qr_err *err)
{
    QR_CLEANUP(free_path) char *data = realpath(qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR), NULL);
    QR_CLEANUP(free_path) char *above = real_folder_above(target);
    if (!data || !above) {
        return QR_OK; /* making it says what is wrong */
    }
    qr_str rest = qr_str_of(above);
    if (!qr_str_starts_with(rest, qr_str_of(data))) {
        return QR_OK;
    }
    rest = (qr_str){rest.ptr + strlen(data), rest.len - strlen(data)};
    const bool is_beside = rest.len && rest.ptr[0] != '/' && strcmp(data, "/") != 0;
    return is_beside || qr_str_equal(rest, QR_STR("/backups"))
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE,
                         "%s is in the data folder: a backup goes elsewhere, or into %s/backups", target, data);
}

static qr_rc check_target(const struct quire *quire, const char *target, qr_err *err)
{
    const size_t len = strlen(target);
    if (target[0] != '/' || target[len - 1] == '/') {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "path must be the absolute path of a folder that is not there yet");
    }
    QR_TRY(check_apart(quire, target, err));
    if (rmdir(target) == 0 || errno == ENOENT) { /* an empty one is made way for */
        return QR_OK;
    }
    const bool is_there = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR || errno == EBUSY;
    return is_there
               ? qr_fail(err, QR_CODE_ALREADY_EXISTS, "%s is there already; a backup goes into a new folder", target)
               : qr_fail_errno(err, errno, "cannot make %s", target);
}

static qr_rc make_folders(struct backup *backup, qr_err *err)
{
    static const char *const folders[] = {"", "index", "artifacts"};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    if (access(backup->partial, F_OK) == 0) {
        return qr_fail(err, QR_CODE_ALREADY_EXISTS,
                       "%s is left from a backup that did not end, or one is being made: remove it if none is",
                       backup->partial);
    }
    for (size_t i = 0; i < QR_COUNT(folders); i++) {
        QR_TRY(path_in(backup, &path, folders[i], "", err));
        QR_TRY(qr_fs_make_dirs(backup->quire->io, path.data, 0700, err));
    }
    return QR_OK;
}

static int remove_entry(const char *path, const struct stat *stat QR_UNUSED, int flag QR_UNUSED,
                        struct FTW *place QR_UNUSED)
{
    (void)remove(path);
    return 0;
}

/* All of it at once: a sync a file would take a millisecond and more for each. */
static qr_rc sync_all(const struct backup *backup, qr_err *err)
{
    const int fd = open(backup->partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int rc = fd < 0 ? -1 : syncfs(fd);
    const int errnum = errno;
    if (fd >= 0) {
        close(fd);
    }
    return rc == 0 ? QR_OK : qr_fail_errno(err, errnum, "cannot sync %s", backup->partial);
}

static qr_rc name_it(struct backup *backup, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf from = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf to = {0};
    QR_TRY(sync_all(backup, err));
    QR_TRY(path_in(backup, &from, "", unnamed_database, err));
    QR_TRY(path_in(backup, &to, "", "quire.db", err));
    QR_TRY(qr_fs_move(backup->quire->io, from.data, to.data, err));
    QR_FAILPOINT("backup.before_name", err);
    return qr_fs_move(backup->quire->io, backup->partial, backup->target, err);
}

static _Thread_local int64_t counted_bytes; /* nftw has no argument */

static int count_entry(const char *path QR_UNUSED, const struct stat *stat, int flag, struct FTW *place QR_UNUSED)
{
    counted_bytes += flag == FTW_F ? stat->st_size : 0;
    return 0;
}

enum { WALK_FDS = 8 };

static qr_rc fill(struct backup *backup, qr_err *err)
{
    struct quire *quire = backup->quire;
    for (int i = 0; i < ROUNDS_BESIDE_WORK; i++) {
        QR_TRY(copy_stores(backup, err));
    }
    QR_FAILPOINT("backup.stores_copied", err);
    QR_TRY(qr_db_write(quire->db, QR_RELAXED, copy_in_the_moment, backup, err));
    QR_TRY(remove_others(backup, err));
    QR_FAILPOINT("backup.database_copied", err);
    QR_TRY(copy_artifacts(backup, err));
    QR_FAILPOINT("backup.artifacts_copied", err);
    counted_bytes = 0;
    (void)nftw(backup->partial, count_entry, WALK_FDS, FTW_PHYS);
    backup->result.size_bytes = counted_bytes;
    return name_it(backup, err);
}

static void free_copies(struct backup *backup)
{
    size_t cursor = 0;
    qr_str key;
    void *value;
    while (qr_map_next(&backup->copies, &cursor, &key, &value)) {
        qr_free(value);
    }
    qr_map_done(&backup->copies);
}

static qr_rc make(struct backup *backup, qr_err *err)
{
    QR_TRY(make_folders(backup, err));
    atomic_fetch_add(&backup->quire->artifacts.keepers, 1); /* B3: before the moment */
    const qr_rc rc = fill(backup, err);
    atomic_fetch_sub(&backup->quire->artifacts.keepers, 1);
    if (rc != QR_OK) {
        (void)nftw(backup->partial, remove_entry, WALK_FDS, FTW_PHYS | FTW_DEPTH);
    }
    return rc;
}

qr_rc qr_backup_make(struct quire *quire, const char *target, struct qr_backup_result *ret_result, qr_err *err)
{
    if (!quire->artifact_dir) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "the data is in PostgreSQL, artifacts and indexes included: back it up with pg_dump");
    }
    const int64_t began_us = qr_thread_mono_us();
    struct backup backup = {.quire = quire, .target = target};
    struct qr_buf partial = {0};
    QR_TRY(check_target(quire, target, err));
    qr_buf_printf(&partial, "%s" PARTIAL_SUFFIX, target);
    backup.partial = qr_buf_take(&partial, NULL);
    if (!backup.partial) {
        return out_of_memory(err);
    }
    qr_map_init(&backup.copies, qr_rand_u64(quire->rand));
    const qr_rc rc = make(&backup, err);
    free_copies(&backup);
    qr_free(backup.partial);
    if (rc == QR_OK) {
        backup.result.took_ms = (qr_thread_mono_us() - began_us) / 1000;
        *ret_result = backup.result;
    }
    return rc;
}

void qr_backup_sweep(const char *data_dir)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    qr_buf_printf(&path, "%s/backups", data_dir);
    DIR *dir = qr_buf_check(&path, NULL) == QR_OK ? opendir(path.data) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (qr_str_ends_with(qr_str_of(entry->d_name), QR_STR(PARTIAL_SUFFIX))) {
            qr_buf_clear(&path);
            qr_buf_printf(&path, "%s/backups/%s", data_dir, entry->d_name);
            if (qr_buf_check(&path, NULL) == QR_OK) {
                (void)nftw(path.data, remove_entry, WALK_FDS, FTW_PHYS | FTW_DEPTH);
            }
        }
    }
    if (dir) {
        closedir(dir);
    }
}
