/* A full disk (DB-8), on a real file system of a few megabytes: writes are refused with `disk_full` and leave nothing,
 * what was acknowledged is there, reads go on, and when there is space again the same handle writes on.
 *
 * The file system is mounted in a mount namespace of the test's own: it is gone with the process, however that ends. */
#include "support/ledger.h"
#include "support/test.h"

#include "base/fs.h"
#include "base/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DISK_BYTES = 6 << 20,
    ROUNDS = 3, /* of filling the disk and deleting a ballast file */
    BALLAST_BYTES = 1 << 20,
    PRODUCERS = 4,
    REFUSALS = 5, /* that each producer meets before it gives up */
    PAYLOAD_BYTES_MAX = 20000,
};

/* ---- the disk ---- */

static bool put_text(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

/* As root directly, else as root of a user namespace, where the system allows that. */
static bool enter_namespace(void)
{
    if (unshare(CLONE_NEWNS) == 0) {
        return true;
    }
    char user[64], group[64];
    snprintf(user, sizeof user, "0 %u 1", (unsigned)geteuid());
    snprintf(group, sizeof group, "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && put_text("/proc/self/setgroups", "deny") &&
           put_text("/proc/self/uid_map", user) && put_text("/proc/self/gid_map", group);
}

static void mount_small_disk(const char *dir)
{
    char options[64];
    snprintf(options, sizeof options, "size=%d,mode=0700", DISK_BYTES);
    if (!enter_namespace() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("small", dir, "tmpfs", 0, options) != 0) {
        qr_test_skip("a small file system cannot be mounted here (%s)", strerror(errno));
    }
}

static const char *ballast(struct qr_test *t, int round)
{
    char name[32];
    snprintf(name, sizeof name, "ballast-%d", round);
    return qr_test_path(t, name);
}

static void make_ballast(struct qr_test *t)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int fd = open(ballast(t, round), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        QR_CHECK(fd >= 0);
        QR_CHECK_INT(0, posix_fallocate(fd, 0, BALLAST_BYTES));
        close(fd);
    }
}

/* Takes every byte that is left. */
static void fill_up(const char *path)
{
    char block[4096] = {1};
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    QR_CHECK(fd >= 0);
    while (write(fd, block, sizeof block) > 0) {
    }
    QR_CHECK_INT(ENOSPC, errno);
    close(fd);
}

/* ---- the database ---- */

struct producer {
    struct qr_db *db;
    int64_t index, stored;
    int refused;
};

/* Writes until the disk has refused it several times. */
static void *write_until_full(void *arg)
{
    struct producer *producer = arg;
    for (producer->refused = 0; producer->refused < REFUSALS;) {
        struct ledger_line line = {
            .producer = producer->index,
            .number = producer->stored + 1,
            .payload_bytes_max = PAYLOAD_BYTES_MAX,
        };
        qr_err err = {0};
        const qr_rc rc = qr_db_write(producer->db, QR_DURABLE, ledger_add, &line, &err);
        if (rc == QR_OK) {
            producer->stored++;
            continue;
        }
        if (err.code != QR_CODE_DISK_FULL) {
            QR_FAIL("a full disk is answered with %s: %s", qr_code_info(err.code)->name, err.msg);
        }
        producer->refused++;
    }
    return NULL;
}

static void check_ledger(struct qr_db *db, const struct producer producers[static PRODUCERS])
{
    struct ledger_state state;
    qr_err err;
    QR_CHECK_RC(QR_OK, ledger_load(db, &state, &err));
    for (int i = 0; i < PRODUCERS; i++) {
        QR_CHECK_INT(producers[i].stored, state.last_number[i]);
    }
}

static void fill_from_all_sides(struct producer producers[static PRODUCERS])
{
    pthread_t threads[PRODUCERS];
    qr_err err;
    for (int i = 0; i < PRODUCERS; i++) {
        QR_CHECK_RC(QR_OK, qr_thread_start(&threads[i], "producer", write_until_full, &producers[i], &err));
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static qr_rc open_db(struct qr_test *t, struct qr_db **ret_db, qr_err *err)
{
    char url[300];
    snprintf(url, sizeof url, "sqlite:%s", qr_test_path(t, "quire.db"));
    const struct qr_db_options options = {
        .url = url,
        .migrations = ledger_migrations,
        .migration_count = ledger_migration_count,
        .wal_soft_bytes = 256 << 10,
        .wal_hard_bytes = 1 << 20,
    };
    return qr_db_open(ret_db, &options, err);
}

static int64_t sum_stored(const struct producer producers[static PRODUCERS])
{
    int64_t sum = 0;
    for (int i = 0; i < PRODUCERS; i++) {
        sum += producers[i].stored;
    }
    return sum;
}

QR_TEST(a_full_disk_is_an_error_and_writing_goes_on_when_there_is_space) /* DB-8, DB-2 */
{
    struct qr_db *db;
    struct producer producers[PRODUCERS];
    qr_err err;
    mount_small_disk(t->dir);
    make_ballast(t);
    QR_CHECK_RC(QR_OK, open_db(t, &db, &err));
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.db = db, .index = i};
    }
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t stored_before = sum_stored(producers);
        fill_from_all_sides(producers);
        QR_CHECK(sum_stored(producers) > stored_before);
        check_ledger(db, producers); /* reads go on */
        QR_CHECK(unlink(ballast(t, round)) == 0);
    }
    qr_db_close(db);
    QR_CHECK_RC(QR_OK, open_db(t, &db, &err));
    QR_CHECK_RC(QR_OK, qr_db_verify(db, &err));
    check_ledger(db, producers);
    qr_db_close(db);
}

QR_TEST(opening_on_a_full_disk_is_refused_and_leaves_nothing_behind) /* DB-8 */
{
    struct qr_db *db;
    qr_err err;
    mount_small_disk(t->dir);
    fill_up(qr_test_path(t, "filler"));
    QR_CHECK_CODE(QR_CODE_DISK_FULL, open_db(t, &db, &err));
    QR_CHECK(access(qr_test_path(t, "quire.db"), F_OK) != 0);
    QR_CHECK(unlink(qr_test_path(t, "filler")) == 0);
    QR_CHECK_RC(QR_OK, open_db(t, &db, &err));
    qr_db_close(db);
}

static int count_entries(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    QR_CHECK(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

QR_TEST(replacing_a_file_on_a_full_disk_leaves_the_old_one_and_no_other) /* FS-1 */
{
    static char big[64 << 10];
    const char *path = qr_test_path(t, "file"), *filler = qr_test_path(t, "filler");
    qr_err err;
    mount_small_disk(t->dir);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, QR_STR("old"), 0600, &err));
    fill_up(filler);
    QR_CHECK_CODE(QR_CODE_DISK_FULL, qr_fs_replace(qr_io_system(), path, (qr_str){big, sizeof big}, 0600, &err));
    QR_CHECK_INT(2, count_entries(t->dir));
    struct qr_buf content;
    qr_buf_init(&content, 0);
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), path, sizeof big, &content, &err));
    QR_CHECK_STR("old", qr_buf_str(&content));
    qr_buf_done(&content);
    QR_CHECK(unlink(filler) == 0);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, (qr_str){big, sizeof big}, 0600, &err));
    QR_CHECK_INT(1, count_entries(t->dir));
}
