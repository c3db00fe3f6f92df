/* Our own files when power is lost (FS-1): what qr_fs_replace, qr_fs_remove and qr_fs_make_dirs acknowledged is there,
 * and a file is always the old one or the new one, whole. As in power_loss_test.c, a child works on the disk that loses
 * power until it does. */
#include "support/child.h"
#include "support/disk.h"
#include "support/test.h"

#include "base/fs.h"
#include "base/rand.h"

#include <unistd.h>

enum {
    LOSSES = 200,
    CONTROL_LOSSES = 40,
    GENERATIONS = 10, /* losses of one folder before a fresh one */
    FILES = 3,
    CONTENT_BYTES_MAX = 3000,
    OPERATIONS_MAX = 80, /* a replace is about six */
    REMOVE_EVERY = 5,    /* versions that are removals */
    CHILD_FAILED = 1,
};

struct life {
    char folder[200];
    struct disk_options disk;
    int64_t begun[FILES], acknowledged[FILES]; /* versions; a removal is one too */
};

struct ack {
    int32_t file, version;
    bool done; /* else: begun */
};

static bool is_removal(int64_t version)
{
    return version % REMOVE_EVERY == 0;
}

static void path_of(const struct life *life, int file, char path[static 256])
{
    snprintf(path, 256, "%s/file-%d", life->folder, file);
}

/* The version, then bytes that follow from it, the length included. */
static qr_str content_of(int file, int64_t version, char bytes[static CONTENT_BYTES_MAX])
{
    struct qr_rand_seeded sequence;
    qr_rand_seeded_init(&sequence, (uint64_t)version * FILES + (uint64_t)file);
    const size_t len = sizeof version + qr_rand_below(&sequence.rand, CONTENT_BYTES_MAX - sizeof version);
    sequence.rand.fill(&sequence.rand, bytes, len);
    memcpy(bytes, &version, sizeof version);
    return (qr_str){bytes, len};
}

/* ---- the child ---- */

static void require(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        fprintf(stderr, "%s: %s\n", qr_code_info(err->code)->name, err->msg);
        _exit(CHILD_FAILED);
    }
}

static void tell(int file, int64_t version, bool done)
{
    child_ack(&(struct ack){file, (int32_t)version, done}, sizeof(struct ack));
}

/* Runs until the power goes. */
static void live(void *arg)
{
    struct life *life = arg;
    static struct disk_io disk_io;
    disk_io_init(&disk_io, disk_create(&life->disk));
    const struct qr_io *io = &disk_io.io;
    qr_err err = {0};
    require(qr_fs_make_dirs(io, life->folder, 0755, &err), &err);
    for (int turn = 0;; turn++) {
        const int file = turn % FILES;
        const int64_t version = ++life->begun[file];
        char path[256], bytes[CONTENT_BYTES_MAX];
        path_of(life, file, path);
        tell(file, version, false);
        require(is_removal(version) ? qr_fs_remove(io, path, &err)
                                    : qr_fs_replace(io, path, content_of(file, version, bytes), 0644, &err),
                &err);
        tell(file, version, true);
    }
}

/* ---- the parent ---- */

static void lose_power_once(struct life *life, int *really_dropped, int64_t *acknowledged)
{
    struct disk_stats *stats = life->disk.stats;
    *stats = (struct disk_stats){0};
    struct child child;
    struct ack ack;
    child_start(&child, live, life);
    while (child_next_ack(&child, &ack, sizeof ack)) {
        life->begun[ack.file] = ack.version;
        if (ack.done) {
            life->acknowledged[ack.file] = ack.version;
            ++*acknowledged;
        }
    }
    const int end = child_wait(&child);
    if (end != DISK_POWER_LOST) {
        QR_FAIL("seed %llu, crash at operation %llu: the child ended with %d instead of losing power",
                (unsigned long long)life->disk.seed, (unsigned long long)life->disk.crash_at, end);
    }
    *really_dropped += stats->dropped_writes + stats->torn_writes + stats->dropped_entries > 0;
}

/* What is at a path is exactly this version. */
static bool is_version(int file, int64_t version, bool there, qr_str actual)
{
    char bytes[CONTENT_BYTES_MAX];
    if (version == 0 || is_removal(version)) {
        return !there;
    }
    return there && qr_str_equal(actual, content_of(file, version, bytes));
}

/* Every file is the last acknowledged version, or a later one that was begun, whole. */
static bool is_intact(struct life *life)
{
    bool intact = true;
    for (int file = 0; file < FILES; file++) {
        char path[256];
        path_of(life, file, path);
        struct qr_buf buf;
        qr_buf_init(&buf, 0);
        const bool there = qr_fs_read(qr_io_system(), path, CONTENT_BYTES_MAX, &buf, NULL) == QR_OK;
        bool known = false;
        for (int64_t version = life->acknowledged[file]; !known && version <= life->begun[file]; version++) {
            known = is_version(file, version, there, qr_buf_str(&buf));
            if (known) {
                life->acknowledged[file] = version; /* seen after the loss: it cannot go back any more */
            }
        }
        intact = intact && known;
        qr_buf_done(&buf);
    }
    return intact;
}

static void begin_life(struct life *life, struct qr_test *t, int number, struct disk_stats *stats, bool lies)
{
    char name[32];
    snprintf(name, sizeof name, "%d/made/anew", number);
    *life = (struct life){.disk = {.stats = stats, .lies = lies}};
    snprintf(life->folder, sizeof life->folder, "%s", qr_test_path(t, name));
}

static void plan_loss(struct life *life, struct qr_rand *chance)
{
    life->disk.seed = qr_rand_u64(chance);
    life->disk.crash_at = 1 + qr_rand_below(chance, OPERATIONS_MAX);
}

QR_TEST_WITH_TIMEOUT(a_replaced_file_is_old_or_new_and_acknowledged_ones_are_there, 120) /* FS-1 */
{
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 3);
    struct disk_stats *stats = disk_stats_map();
    struct life life;
    int really_dropped = 0;
    int64_t acknowledged = 0;
    for (int i = 0; i < LOSSES; i++) {
        if (i % GENERATIONS == 0) {
            begin_life(&life, t, i / GENERATIONS, stats, false);
        }
        plan_loss(&life, &chance.rand);
        lose_power_once(&life, &really_dropped, &acknowledged);
        if (!is_intact(&life)) {
            QR_FAIL("seed %llu, crash at operation %llu (%s): a file is neither old nor new",
                    (unsigned long long)life.disk.seed, (unsigned long long)life.disk.crash_at, stats->lost_during);
        }
    }
    disk_stats_unmap(stats);
    printf("%d losses, %d really dropped writes, %lld acknowledged writes checked, 0 lost\n", LOSSES, really_dropped,
           (long long)acknowledged);
    QR_CHECK(really_dropped > LOSSES / 2 && acknowledged > LOSSES);
}

QR_TEST(a_disk_that_lies_about_syncs_loses_acknowledged_files)
{
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 4);
    struct disk_stats *stats = disk_stats_map();
    int really_dropped = 0, lost = 0;
    int64_t acknowledged = 0;
    for (int i = 0; i < CONTROL_LOSSES; i++) {
        struct life life;
        begin_life(&life, t, i, stats, true);
        plan_loss(&life, &chance.rand);
        lose_power_once(&life, &really_dropped, &acknowledged);
        lost += !is_intact(&life);
    }
    disk_stats_unmap(stats);
    printf("negative control: %d of %d losses on a disk that lies lost acknowledged files\n", lost, CONTROL_LOSSES);
    QR_CHECK(lost > CONTROL_LOSSES / 2);
}
