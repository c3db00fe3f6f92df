/* What only the SQLite driver promises: the group-commit writer (W1–W6 in sqlite_writer.c), the bounds of the log, and
 * files that are not ours. */
#include "db/sqlite.h"

#include "support/fault_vfs.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct qr_migration MIGRATIONS[] = {
    {"row", "CREATE TABLE row (id INTEGER PRIMARY KEY, bytes BLOB) STRICT"},
};

static struct qr_db_options options_for(struct qr_test *t)
{
    static char url[256];
    snprintf(url, sizeof url, "sqlite:%s/quire.db", t->dir);
    fault_vfs_register();
    return (struct qr_db_options){
        .url = url, .migrations = MIGRATIONS, .migration_count = QR_COUNT(MIGRATIONS), .vfs = "fault"};
}

static struct qr_db *open_with(const struct qr_db_options *options)
{
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_open(&db, options, &err));
    return db;
}

static struct qr_db *open_db(struct qr_test *t)
{
    const struct qr_db_options options = options_for(t);
    return open_with(&options);
}

static struct qr_db_stats stats_of(struct qr_db *db)
{
    struct qr_db_stats stats;
    qr_db_stats(db, &stats);
    return stats;
}

static qr_rc insert_row(struct qr_tx *tx, void *arg, qr_err *err)
{
    static const char bytes[2000];
    return qr_tx_exec(tx, "INSERT INTO row (id, bytes) VALUES (?1, ?2)",
                      QR_VALS(qr_val_i64(*(int64_t *)arg), qr_val_blob(bytes, sizeof bytes)), NULL, err);
}

static qr_rc count_rows(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_get_i64(tx, "SELECT count(*) FROM row", QR_NO_VALS, NULL, arg, err);
}

static int64_t row_count(struct qr_db *db)
{
    qr_err err = {0};
    int64_t count = -1;
    QR_CHECK_RC(QR_OK, qr_db_read(db, count_rows, &count, &err));
    return count;
}

/* ---- batches ---- */

/* Functions that are known to wait together: the writer is held inside a first function until all of them are queued.
 */
enum { WAITING = 6 };

struct held_batch {
    struct qr_db *db;
    sem_t writer_is_held, let_go;
    pthread_t holder, threads[WAITING];
    struct waiting {
        struct held_batch *batch;
        int64_t id;
        qr_tx_fn *fn;
        qr_rc rc;
    } waiting[WAITING];
};

static qr_rc hold_writer(struct qr_tx *tx QR_UNUSED, void *arg, qr_err *err)
{
    struct held_batch *batch = arg;
    sem_post(&batch->writer_is_held);
    sem_wait(&batch->let_go);
    return qr_fail(err, QR_CODE_CANCELLED, "only holds"); /* and so commits nothing */
}

static void *run_holder(void *arg)
{
    struct held_batch *batch = arg;
    qr_db_write(batch->db, QR_RELAXED, hold_writer, batch, NULL);
    return NULL;
}

static void *run_waiting(void *arg)
{
    struct waiting *waiting = arg;
    qr_err err = {0};
    waiting->rc = qr_db_write(waiting->batch->db, QR_DURABLE, waiting->fn, &waiting->id, &err);
    return NULL;
}

static void wait_until_queued(struct qr_db *base, size_t count)
{
    struct sqlite_db *db = QR_CONTAINER_OF(base, struct sqlite_db, base);
    for (;;) {
        pthread_mutex_lock(&db->lock);
        const size_t queued = db->queue_count;
        pthread_mutex_unlock(&db->lock);
        if (queued == count) {
            return;
        }
        sched_yield();
    }
}

/* Row ids are 1 … WAITING; `odd` runs the function for id `odd_id`, insert_row the others. */
static void hold_batch(struct held_batch *batch, struct qr_db *db, int64_t odd_id, qr_tx_fn *odd)
{
    *batch = (struct held_batch){.db = db};
    sem_init(&batch->writer_is_held, 0, 0);
    sem_init(&batch->let_go, 0, 0);
    pthread_create(&batch->holder, NULL, run_holder, batch);
    sem_wait(&batch->writer_is_held);
    for (size_t i = 0; i < WAITING; i++) {
        const int64_t id = (int64_t)i + 1;
        batch->waiting[i] = (struct waiting){batch, id, id == odd_id ? odd : insert_row, QR_BUG};
        pthread_create(&batch->threads[i], NULL, run_waiting, &batch->waiting[i]);
    }
    wait_until_queued(db, WAITING);
}

static void finish_batch(struct held_batch *batch)
{
    sem_post(&batch->let_go);
    pthread_join(batch->holder, NULL);
    for (size_t i = 0; i < WAITING; i++) {
        pthread_join(batch->threads[i], NULL);
    }
}

QR_TEST(all_that_wait_share_one_commit_and_one_sync) /* DB-1 */
{
    struct qr_db *db = open_db(t);
    struct held_batch batch;
    hold_batch(&batch, db, 0, NULL);
    const uint64_t commits = stats_of(db).commits;
    const uint64_t syncs = fault_vfs_calls(FAULT_SYNC);
    finish_batch(&batch);
    QR_CHECK_INT(commits + 1, stats_of(db).commits);
    QR_CHECK_INT(syncs + 1, fault_vfs_calls(FAULT_SYNC));
    QR_CHECK_INT(WAITING, row_count(db));
    qr_db_close(db);
}

static qr_rc insert_and_fail(struct qr_tx *tx, void *arg, qr_err *err)
{
    QR_TRY(insert_row(tx, arg, err));
    return qr_fail(err, QR_CODE_VERSION_CONFLICT, "refused");
}

QR_TEST(a_failing_function_is_undone_alone_in_its_batch) /* DB-14 DB-2 */
{
    struct qr_db *db = open_db(t);
    struct held_batch batch;
    hold_batch(&batch, db, 3, insert_and_fail);
    const uint64_t commits = stats_of(db).commits;
    finish_batch(&batch);
    for (size_t i = 0; i < WAITING; i++) {
        QR_CHECK_INT(batch.waiting[i].id == 3 ? QR_CONFLICT : QR_OK, batch.waiting[i].rc);
    }
    QR_CHECK_INT(commits + 1, stats_of(db).commits);
    QR_CHECK_INT(WAITING - 1, row_count(db));
    qr_db_close(db);
}

QR_TEST(after_a_rollback_of_the_whole_batch_each_function_runs_again) /* DB-3 DB-8 */
{
    struct qr_db *db = open_db(t);
    struct held_batch batch;
    hold_batch(&batch, db, 3, insert_and_fail);
    const uint64_t reruns = stats_of(db).reruns;
    fault_vfs_plan(&(struct fault_plan){.kind = FAULT_WRITE, .file = FAULT_FILE_LOG, .nth = 2, .disk_full = true});
    finish_batch(&batch);
    QR_CHECK_INT(1, fault_vfs_failed());
    for (size_t i = 0; i < WAITING; i++) {
        QR_CHECK_INT(batch.waiting[i].id == 3 ? QR_CONFLICT : QR_OK, batch.waiting[i].rc);
    }
    QR_CHECK_INT(reruns + WAITING, stats_of(db).reruns);
    QR_CHECK_INT(WAITING - 1, row_count(db));
    qr_db_close(db);
}

QR_TEST(a_copy_for_which_the_disk_has_no_room_says_so)
{
    struct qr_db *db = open_db(t);
    int64_t commit;
    qr_err err;
    fault_vfs_plan(&(struct fault_plan){.kind = FAULT_WRITE, .file = FAULT_FILE_DATABASE, .nth = 1, .disk_full = true});
    QR_CHECK_CODE(QR_CODE_DISK_FULL, qr_db_copy(db, qr_test_path(t, "copy.db"), &commit, &err));
    QR_CHECK_INT(1, fault_vfs_failed());
    QR_CHECK_HAS("disk is full", err.msg);
    qr_db_close(db);
}

QR_TEST(after_a_failed_sync_the_file_is_opened_anew_and_the_answer_is_the_truth) /* DB-2 DB-9 */
{
    struct qr_db *db = open_db(t);
    struct held_batch batch;
    hold_batch(&batch, db, 0, NULL);
    fault_vfs_plan(&(struct fault_plan){.kind = FAULT_SYNC, .file = FAULT_FILE_LOG, .nth = 1});
    finish_batch(&batch);
    QR_CHECK_INT(1, fault_vfs_failed());
    QR_CHECK_INT(1, stats_of(db).reopens);
    const qr_rc rc = batch.waiting[0].rc;
    for (size_t i = 0; i < WAITING; i++) {
        QR_CHECK_INT(rc, batch.waiting[i].rc); /* one commit: all or none */
    }
    const int64_t stored = rc == QR_OK ? WAITING : 0;
    QR_CHECK_INT(stored, row_count(db));
    qr_err err = {0};
    int64_t id = 100;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, insert_row, &id, &err)); /* it works again */
    qr_db_close(db);
    db = open_db(t);
    QR_CHECK_INT(stored + 1, row_count(db));
    qr_db_close(db);
}

QR_TEST(storage_that_stays_away_is_an_error_that_says_what_is_not_known) /* DB-9 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    int64_t id = 1;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, insert_row, &id, &err));
    fault_vfs_plan(&(struct fault_plan){.kind = FAULT_SYNC, .nth = 1, .for_good = true});
    id = 2;
    QR_CHECK_CODE(QR_CODE_IO_ERROR, qr_db_write(db, QR_DURABLE, insert_row, &id, &err));
    QR_CHECK_HAS("not known", err.msg);
    id = 3;
    QR_CHECK_CODE(QR_CODE_IO_ERROR, qr_db_write(db, QR_DURABLE, insert_row, &id, &err));
    fault_vfs_heal();
    id = 4;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, insert_row, &id, &err));
    const int64_t count = row_count(db);
    QR_CHECK(count == 2 || count == 3); /* 1 and 4, perhaps 2, never 3: that one met a closed file */
    QR_CHECK_RC(QR_OK, qr_db_verify(db, &err));
    qr_db_close(db);
}

static qr_rc fail_on_purpose(struct qr_tx *tx QR_UNUSED, void *arg QR_UNUSED, qr_err *err)
{
    return qr_fail(err, QR_CODE_NOT_FOUND, "on purpose");
}

QR_TEST(the_version_changes_with_each_commit_and_only_then)
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    int64_t id = 1;
    const uint64_t first = qr_db_version(db);
    QR_CHECK(first > 0 && first % 2 == 0);
    QR_CHECK_INT(0, row_count(db));
    QR_CHECK_RC(QR_NOT_FOUND, qr_db_write(db, QR_RELAXED, fail_on_purpose, NULL, &err));
    QR_CHECK_INT(first, qr_db_version(db));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, insert_row, &id, &err));
    const uint64_t second = qr_db_version(db);
    QR_CHECK(second > first && second % 2 == 0);
    fault_vfs_plan(&(struct fault_plan){.kind = FAULT_SYNC, .nth = 1}); /* of a commit that is then in doubt */
    id = 2;
    (void)!qr_db_write(db, QR_DURABLE, insert_row, &id, &err);
    fault_vfs_heal();
    QR_CHECK(qr_db_version(db) > second && qr_db_version(db) % 2 == 0);
    qr_db_close(db);
}

QR_TEST(a_durable_write_syncs_the_log_and_a_relaxed_one_does_not) /* DB-1 DB-4 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    int64_t id = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t before = fault_vfs_calls(FAULT_SYNC);
        id++;
        QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, insert_row, &id, &err));
        QR_CHECK(fault_vfs_calls(FAULT_SYNC) > before);
        before = fault_vfs_calls(FAULT_SYNC);
        id++;
        QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, insert_row, &id, &err));
        QR_CHECK_INT(before, fault_vfs_calls(FAULT_SYNC));
    }
    qr_db_close(db);
}

struct lone_write {
    struct qr_db *db;
    enum qr_db_level level;
    int64_t id;
    pthread_t thread;
};

static void *run_lone_write(void *arg)
{
    struct lone_write *w = arg;
    qr_db_write(w->db, w->level, insert_row, &w->id, NULL);
    return NULL;
}

QR_TEST(a_batch_is_as_durable_as_the_strictest_of_its_writes) /* DB-1 */
{
    struct qr_db *db = open_db(t);
    struct held_batch held = {.db = db};
    sem_init(&held.writer_is_held, 0, 0);
    sem_init(&held.let_go, 0, 0);
    pthread_create(&held.holder, NULL, run_holder, &held);
    sem_wait(&held.writer_is_held);
    struct lone_write writes[] = {{db, QR_RELAXED, 1, 0}, {db, QR_DURABLE, 2, 0}, {db, QR_RELAXED, 3, 0}};
    for (size_t i = 0; i < QR_COUNT(writes); i++) {
        pthread_create(&writes[i].thread, NULL, run_lone_write, &writes[i]);
        wait_until_queued(db, i + 1); /* in this order */
    }
    const uint64_t commits = stats_of(db).commits;
    const uint64_t syncs = fault_vfs_calls(FAULT_SYNC);
    sem_post(&held.let_go);
    pthread_join(held.holder, NULL);
    for (size_t i = 0; i < QR_COUNT(writes); i++) {
        pthread_join(writes[i].thread, NULL);
    }
    QR_CHECK_INT(commits + 1, stats_of(db).commits);
    QR_CHECK_INT(syncs + 1, fault_vfs_calls(FAULT_SYNC));
    qr_db_close(db);
}

/* ---- the log ---- */

static int64_t log_file_bytes(struct qr_test *t)
{
    struct stat st;
    return stat(qr_test_path(t, "quire.db-wal"), &st) == 0 ? (int64_t)st.st_size : 0;
}

static struct qr_db *open_with_small_log(struct qr_test *t)
{
    struct qr_db_options options = options_for(t);
    options.wal_soft_bytes = 64 << 10;
    options.wal_hard_bytes = 1 << 20;
    options.read_deadline_ms = 20;
    fault_vfs_set_sync((struct fault_sync){.skip = true});
    return open_with(&options);
}

QR_TEST(the_log_stays_below_its_hard_limit_under_load) /* DB-7 */
{
    struct qr_db *db = open_with_small_log(t);
    qr_err err = {0};
    for (int64_t id = 1; id <= 3000; id++) {
        QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, insert_row, &id, &err));
        QR_CHECK(log_file_bytes(t) <= 1 << 20);
    }
    QR_CHECK(stats_of(db).wal_bytes_max <= 1 << 20);
    qr_db_close(db);
}

static qr_rc insert_large(struct qr_tx *tx, void *arg, qr_err *err)
{
    static const char bytes[300 << 10];
    return qr_tx_exec(tx, "INSERT INTO row (id, bytes) VALUES (1000, ?1)", QR_VALS(qr_val_blob(bytes, *(size_t *)arg)),
                      NULL, err);
}

QR_TEST(a_function_too_large_for_the_log_is_refused_and_one_that_fits_is_not) /* DB-7 */
{
    struct qr_db *db = open_with_small_log(t);
    qr_err err = {0};
    size_t size = 300 << 10; /* the limit is a quarter of 1 MB */
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE, qr_db_write(db, QR_DURABLE, insert_large, &size, &err));
    QR_CHECK_INT(0, row_count(db));
    size = 250 << 10;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, insert_large, &size, &err));
    QR_CHECK(log_file_bytes(t) <= 1 << 20);
    qr_db_close(db);
}

struct held_read {
    struct qr_db *db;
    sem_t reading, let_go;
};

static qr_rc hold_snapshot(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct held_read *held = arg;
    int64_t count;
    QR_TRY(count_rows(tx, &count, err));
    sem_post(&held->reading);
    sem_wait(&held->let_go);
    return QR_OK;
}

static void *run_held_read(void *arg)
{
    struct held_read *held = arg;
    qr_db_read(held->db, hold_snapshot, held, NULL);
    return NULL;
}

QR_TEST(a_read_that_never_ends_makes_writes_unavailable_but_the_log_keeps_its_limit) /* DB-7 */
{
    struct qr_db *db = open_with_small_log(t);
    struct held_read held = {.db = db};
    sem_init(&held.reading, 0, 0);
    sem_init(&held.let_go, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, run_held_read, &held);
    sem_wait(&held.reading);
    qr_err err = {0};
    qr_rc rc = QR_OK;
    int64_t id = 0;
    while (rc == QR_OK && id < 3000) {
        id++;
        rc = qr_db_write(db, QR_RELAXED, insert_row, &id, &err);
        QR_CHECK(log_file_bytes(t) <= 1 << 20);
    }
    QR_CHECK_INT(QR_UNAVAILABLE, rc);
    sem_post(&held.let_go);
    pthread_join(thread, NULL);
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, insert_row, &id, &err));
    QR_CHECK_INT(id, row_count(db));
    qr_db_close(db);
}

/* ---- files that are not ours ---- */

static void write_file(const char *path, const void *bytes, size_t len)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    QR_CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    close(fd);
}

/* Opening is refused with this code, and neither the file nor its neighbours change. */
static void check_refused(struct qr_test *t, qr_code code)
{
    const char *path = qr_test_path(t, "quire.db");
    static char before[1 << 16], after[1 << 16];
    int fd = open(path, O_RDONLY);
    const ssize_t before_len = read(fd, before, sizeof before);
    close(fd);
    const struct qr_db_options options = options_for(t);
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_CODE(code, qr_db_open(&db, &options, &err));
    QR_CHECK_HAS("quire.db", err.msg);
    fd = open(path, O_RDONLY);
    const ssize_t after_len = read(fd, after, sizeof after);
    close(fd);
    QR_CHECK(before_len == after_len && memcmp(before, after, (size_t)before_len) == 0);
    QR_CHECK(access(qr_test_path(t, "quire.db-wal"), F_OK) != 0);
}

QR_TEST(a_file_that_is_no_database_is_refused_and_untouched) /* DB-11 */
{
    write_file(qr_test_path(t, "quire.db"), "Dear diary, today", 17);
    check_refused(t, QR_CODE_DATA_CORRUPT);
}

QR_TEST(a_database_of_another_program_is_refused_and_untouched) /* DB-11 */
{
    sqlite3 *other;
    QR_CHECK(sqlite3_open(qr_test_path(t, "quire.db"), &other) == SQLITE_OK);
    QR_CHECK(sqlite3_exec(other, "PRAGMA application_id = 7; CREATE TABLE theirs (x)", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(other);
    check_refused(t, QR_CODE_DATA_FOREIGN);
}

QR_TEST(a_database_that_lost_its_beginning_is_refused_and_untouched) /* DB-11 */
{
    qr_db_close(open_db(t));
    const int fd = open(qr_test_path(t, "quire.db"), O_WRONLY);
    static const char zeros[100];
    QR_CHECK(pwrite(fd, zeros, sizeof zeros, 0) == sizeof zeros);
    close(fd);
    check_refused(t, QR_CODE_DATA_CORRUPT);
}

QR_TEST(an_empty_or_cut_file_is_refused_and_untouched) /* DB-11 */
{
    qr_db_close(open_db(t));
    const char *path = qr_test_path(t, "quire.db");
    struct stat st;
    QR_CHECK_INT(0, stat(path, &st));
    QR_CHECK_INT(0, truncate(path, st.st_size - 1));
    check_refused(t, QR_CODE_DATA_CORRUPT);
    QR_CHECK_INT(0, truncate(path, 0));
    check_refused(t, QR_CODE_DATA_CORRUPT);
}

/* The code with which opening is refused. */
static qr_code code_of_opening(struct qr_test *t)
{
    const struct qr_db_options options = options_for(t);
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK(qr_db_open(&db, &options, &err) != QR_OK);
    return err.code;
}

QR_TEST(a_link_to_nowhere_a_pipe_or_a_folder_is_refused_and_left) /* DB-11 */
{
    const char *path = qr_test_path(t, "quire.db");
    char target[256];
    QR_CHECK_INT(0, symlink("/nowhere/at/all", path));
    QR_CHECK_INT(QR_CODE_DATA_CORRUPT, code_of_opening(t));
    QR_CHECK(readlink(path, target, sizeof target) > 0);
    QR_CHECK_INT(0, unlink(path));
    QR_CHECK_INT(0, mkfifo(path, 0600));
    QR_CHECK_INT(QR_CODE_DATA_CORRUPT, code_of_opening(t));
    QR_CHECK_INT(0, unlink(path));
    QR_CHECK_INT(0, mkdir(path, 0700));
    QR_CHECK_INT(QR_CODE_DATA_CORRUPT, code_of_opening(t));
    QR_CHECK_INT(0, rmdir(path));
    QR_CHECK_INT(0, mkfifo(qr_test_path(t, "quire.db-wal"), 0600));
    QR_CHECK_INT(QR_CODE_DATA_CORRUPT, code_of_opening(t));
}

/* Changes the database as another program would, and leaves the change in the log. */
static void change_and_die(struct qr_test *t, const char *sql)
{
    sqlite3 *other;
    QR_CHECK(sqlite3_open(qr_test_path(t, "quire.db"), &other) == SQLITE_OK);
    QR_CHECK(sqlite3_db_config(other, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) == SQLITE_OK);
    QR_CHECK(sqlite3_exec(other, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(other);
    QR_CHECK(log_file_bytes(t) > 0);
}

QR_TEST(a_newer_schema_that_is_still_in_the_log_is_refused_and_left_there) /* DB-11 */
{
    qr_db_close(open_db(t));
    change_and_die(t, "INSERT INTO quire_schema VALUES (2, 'later', 0)");
    const int64_t log_bytes = log_file_bytes(t);
    QR_CHECK_INT(QR_CODE_SCHEMA_NEWER, code_of_opening(t));
    QR_CHECK_INT(log_bytes, log_file_bytes(t));
}

QR_TEST(a_schema_version_below_zero_is_damage) /* DB-11 */
{
    qr_db_close(open_db(t));
    change_and_die(t, "UPDATE quire_schema SET version = -5");
    QR_CHECK_INT(QR_CODE_DATA_CORRUPT, code_of_opening(t));
}

QR_TEST(an_id_of_another_program_that_is_still_in_the_log_is_refused) /* DB-11 */
{
    qr_db_close(open_db(t));
    change_and_die(t, "PRAGMA application_id = 7");
    QR_CHECK_INT(QR_CODE_DATA_FOREIGN, code_of_opening(t));
}

QR_TEST(a_log_whose_database_is_gone_is_refused_and_untouched) /* DB-11 */
{
    write_file(qr_test_path(t, "quire.db-wal"), "acknowledged", 12);
    const struct qr_db_options options = options_for(t);
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_CODE(QR_CODE_DATA_CORRUPT, qr_db_open(&db, &options, &err));
    QR_CHECK_HAS("quire.db-wal", err.msg);
    QR_CHECK(access(qr_test_path(t, "quire.db"), F_OK) != 0);
    QR_CHECK_INT(12, log_file_bytes(t));
}

QR_TEST(a_file_that_vanishes_under_a_fault_is_not_replaced_by_an_empty_one) /* DB-9 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    int64_t id = 1;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, insert_row, &id, &err));
    QR_CHECK_INT(0, rename(qr_test_path(t, "quire.db"), qr_test_path(t, "away.db")));
    QR_CHECK_INT(0, rename(qr_test_path(t, "quire.db-wal"), qr_test_path(t, "away.db-wal")));
    fault_vfs_plan(&(struct fault_plan){.kind = FAULT_SYNC, .nth = 1});
    id = 2;
    QR_CHECK_CODE(QR_CODE_IO_ERROR, qr_db_write(db, QR_DURABLE, insert_row, &id, &err));
    QR_CHECK(access(qr_test_path(t, "quire.db"), F_OK) != 0);
    QR_CHECK_INT(0, rename(qr_test_path(t, "away.db"), qr_test_path(t, "quire.db")));
    QR_CHECK_INT(0, rename(qr_test_path(t, "away.db-wal"), qr_test_path(t, "quire.db-wal")));
    id = 3;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, insert_row, &id, &err)); /* the storage is back */
    QR_CHECK(row_count(db) >= 2);
    qr_db_close(db);
}

QR_TEST(damage_inside_is_found_by_verify) /* DB-11 */
{
    struct qr_db *db = open_db(t);
    qr_err err = {0};
    for (int64_t id = 1; id <= 50; id++) {
        QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, insert_row, &id, &err));
    }
    qr_db_close(db);
    const int fd = open(qr_test_path(t, "quire.db"), O_WRONLY);
    char garbage[4096];
    memset(garbage, 0x5A, sizeof garbage);
    QR_CHECK(pwrite(fd, garbage, sizeof garbage, 10 * 4096) == sizeof garbage);
    close(fd);
    db = open_db(t);
    QR_CHECK_CODE(QR_CODE_DATA_CORRUPT, qr_db_verify(db, &err));
    qr_db_close(db);
}
