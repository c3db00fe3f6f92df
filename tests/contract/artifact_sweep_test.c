/* Artifact files that nobody knows: what is swept, and what failures and power losses leave. A1–A3 are those of
 * artifact/artifact.h. */
#include "support/artifact_fixture.h"
#include "support/child.h"
#include "support/disk.h"
#include "support/fault.h"

#include <sys/stat.h>
#include <unistd.h>

enum { HOUR_MS = 60 * 60 * 1000 };

/* ---- the sweep ---- */

static qr_uuid old_id(const struct qr_shelf *shelf QR_UNUSED, int number)
{
    const qr_uuid id = {.bytes = {[6] = 0x70,
                                  [8] = 0x80,
                                  [13] = (unsigned char)(number >> 8),
                                  [14] = (unsigned char)number,
                                  [15] = (unsigned char)(number % 3)}};
    return id; /* of the year 1970 */
}

static int64_t sweep_all(struct qr_shelf *shelf, int64_t now_ms, int limit, int *ret_rounds)
{
    qr_err err;
    uint32_t cursor = 0;
    int64_t total = 0;
    *ret_rounds = 0;
    do {
        int64_t removed;
        QR_CHECK_RC(QR_OK, qr_artifacts_sweep(&shelf->artifacts, shelf->db, now_ms, &cursor, limit, &removed, &err));
        QR_CHECK(removed <= limit);
        total += removed;
        QR_CHECK(++*ret_rounds < 1000);
    } while (cursor != 0);
    return total;
}

QR_DB_TEST(files_that_no_row_knows_are_swept_once_they_are_an_hour_old) /* A2, RECOV-5 */
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    int rounds;
    QR_CHECK_INT(0, sweep_all(&shelf, HOUR_MS, 10, &rounds)); /* there is no folder yet */
    const struct qr_new_artifact known =
        qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES));
    const struct qr_new_artifact unknown =
        qr_shelf_prepare(&shelf, qr_uuid_next(&shelf.ids), QR_ARTIFACT_TEXT, qr_shelf_bytes('b', QR_SHELF_LARGE_BYTES));
    const int64_t made_ms = qr_uuid_time_ms(unknown.id);
    QR_CHECK_INT(0, sweep_all(&shelf, made_ms + HOUR_MS, 10, &rounds)); /* it may be about to be adopted */
    QR_CHECK(qr_shelf_has_file(&shelf, unknown.file));
    QR_CHECK_INT(1, rounds);
    QR_CHECK_INT(1, sweep_all(&shelf, made_ms + HOUR_MS + 1, 10, &rounds));
    QR_CHECK(!qr_shelf_has_file(&shelf, unknown.file));
    QR_CHECK(qr_shelf_has_file(&shelf, known.file));
    const struct qr_artifact artifact = qr_shelf_find_newest(&shelf, QR_ARTIFACT_TEXT);
    qr_shelf_check_bytes(&shelf, &artifact, qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES));
    qr_shelf_close(&shelf);
}

QR_DB_TEST(a_sweep_goes_on_where_the_one_before_ended) /* RECOV-5 */
{
    enum { FILES = 90, ADOPTED = 30 };
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    qr_err err;
    const qr_str large = qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES);
    for (int i = 0; i < FILES; i++) {
        struct qr_shelf_call call = {.shelf = &shelf, .item_id = QR_SHELF_ITEM, .generation = 1};
        call.made = qr_shelf_prepare(&shelf, old_id(&shelf, i), QR_ARTIFACT_ASSET, large);
        if (i < ADOPTED) {
            QR_CHECK_RC(QR_OK, qr_db_write(shelf.db, QR_RELAXED, qr_shelf_adopt, &call, &err));
        }
    }
    for (int limit = 7; limit > 0; limit -= 6) {
        int rounds;
        const int64_t removed = sweep_all(&shelf, 2 * HOUR_MS, limit, &rounds);
        QR_CHECK_INT(limit == 7 ? FILES - ADOPTED : 0, removed);
        QR_CHECK_INT(ADOPTED, qr_shelf_file_count(&shelf));
        QR_CHECK(rounds >= ADOPTED / limit);
    }
    qr_shelf_close(&shelf);
}

QR_DB_TEST(a_sweep_removes_half_written_files_and_leaves_strangers_alone)
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    int rounds;
    qr_artifact_discard(&shelf.artifacts, &(struct qr_new_artifact){.file = "00/none"});
    QR_CHECK(mkdir(shelf.dir, 0700) == 0 && mkdir(qr_shelf_path(&shelf, "00"), 0700) == 0);
    qr_shelf_write_to(qr_shelf_path(&shelf, "00/.quire-tmp-0123456789abcdef"), "half");
    qr_shelf_write_to(qr_shelf_path(&shelf, "00/README"), "a stranger's");
    qr_shelf_write_to(qr_shelf_path(&shelf, "00/00000000-0000-7000-8000-000000000001"), "in the wrong folder");
    QR_CHECK_INT(0, mkdir(qr_shelf_path(&shelf, "00/folder"), 0700));
    const int64_t now_ms = qr_clock_wall_ms(qr_clock_system());
    QR_CHECK_INT(0, sweep_all(&shelf, now_ms, 10, &rounds)); /* it may be in the making */
    QR_CHECK_INT(1, sweep_all(&shelf, now_ms + 2 * HOUR_MS, 10, &rounds));
    QR_CHECK(!qr_shelf_has_file(&shelf, "00/.quire-tmp-0123456789abcdef"));
    QR_CHECK_INT(3, qr_shelf_file_count(&shelf));
    qr_shelf_close(&shelf);
}

/* ---- when something fails ---- */

static enum qr_fault_kind kind; /* of the sweep under way */

static void check_verdict(qr_rc rc, const qr_err *err)
{
    static const qr_rc expected[] = {
        [QR_FAULT_MEMORY] = QR_NOMEM, [QR_FAULT_IO_EIO] = QR_IO, [QR_FAULT_IO_ENOSPC] = QR_FULL};
    if (rc == QR_OK) {
        return;
    }
    QR_CHECK(qr_fault_fired());
    QR_CHECK(kind <= QR_FAULT_IO_ENOSPC); /* an interruption is never noticed */
    QR_CHECK_INT(expected[kind], rc);
    QR_CHECK_INT(rc, err->rc);
}

/* Adopts, finds, reads and removes what was prepared; the first failure ends it. */
static qr_rc live_and_die(struct qr_shelf_call *call, qr_str bytes, struct qr_buf *out, qr_err *err)
{
    struct qr_shelf *shelf = call->shelf;
    QR_TRY(qr_db_write(shelf->db, QR_RELAXED, qr_shelf_adopt, call, err));
    QR_TRY(qr_db_read(shelf->db, qr_shelf_find, call, err));
    QR_CHECK(call->found);
    const qr_rc rc = qr_artifact_read(&shelf->artifacts, shelf->db, &call->artifact, out, err);
    QR_CHECK(rc == QR_OK ? qr_str_equal(bytes, qr_buf_str(out)) : out->len == 0);
    QR_TRY(rc);
    QR_TRY(qr_db_write(shelf->db, QR_RELAXED, qr_shelf_remove, call, err));
    qr_artifacts_unlink(&shelf->artifacts, call->files, call->file_count);
    return QR_OK;
}

/* One life with the n-th call failing. What failed can be done again, and in the end nothing is left. */
static void live_with_fault(struct qr_shelf *shelf, uint64_t n)
{
    qr_err err = {0};
    const qr_str bytes = qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES);
    struct qr_shelf_call call = {.shelf = shelf,
                                 .item_id = QR_SHELF_ITEM,
                                 .generation = 1,
                                 .kind = QR_ARTIFACT_TEXT,
                                 .ids = &QR_SHELF_ITEM,
                                 .count = 1};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    qr_fault_arm(kind, n);
    qr_rc rc = qr_artifact_prepare(&shelf->artifacts, qr_uuid_next(&shelf->ids), QR_ARTIFACT_TEXT, bytes, &shelf->arena,
                                   &call.made, &err);
    const bool was_prepared = rc == QR_OK;
    rc = was_prepared ? live_and_die(&call, bytes, &out, &err) : rc;
    qr_fault_disarm();
    check_verdict(rc, &err);
    if (was_prepared) {
        QR_CHECK_RC(QR_OK, qr_db_write(shelf->db, QR_RELAXED, qr_shelf_remove, &call, &err));
        qr_artifact_discard(&shelf->artifacts, &call.made);
    }
    QR_CHECK_INT(0, qr_shelf_row_count(shelf));
    QR_CHECK_INT(0, qr_shelf_file_count(shelf));
}

static void fail_each_in_turn(struct qr_test *t)
{
    enum { POINTS_MAX = 20000 };
    for (uint64_t n = 1; n < POINTS_MAX; n++) {
        const int64_t blocks = qr_fault_blocks(), files = qr_fault_files();
        struct qr_shelf shelf;
        qr_test_set_context("kind %d, no. %llu", (int)kind, (unsigned long long)n);
        qr_shelf_open(&shelf, t); /* anew each time: a database keeps what it has prepared */
        shelf.artifacts.io = qr_fault_io();
        live_with_fault(&shelf, n);
        qr_shelf_close(&shelf);
        QR_CHECK_INT(blocks, qr_fault_blocks());
        QR_CHECK_INT(files, qr_fault_files());
        if (!qr_fault_fired()) {
            printf("     failed %llu of kind %d in turn\n", (unsigned long long)n - 1, (int)kind);
            QR_CHECK(n > 5);
            return;
        }
    }
    QR_FAIL("it never ends");
}

QR_TEST_WITH_TIMEOUT(every_failure_leaves_an_artifact_whole_or_nothing, 300) /* A2, A3 */
{
    qr_fault_memory_install();
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t); /* what is made only once is there from now on */
    qr_shelf_close(&shelf);
    for (kind = QR_FAULT_MEMORY; kind <= QR_FAULT_IO_SHORT; kind++) {
        fail_each_in_turn(t);
    }
}

/* ---- power loss ---- */

struct life {
    char folder[200];
    struct disk_options disk;
};

struct ack {
    char file[60];
};

/* Makes artifacts until the power goes; each that is acknowledged could be adopted. */
static void live(void *arg)
{
    const struct life *life = arg;
    static struct disk_io disk_io;
    struct qr_arena arena;
    struct qr_uuid_gen ids;
    qr_err err = {0};
    disk_io_init(&disk_io, disk_create(&life->disk));
    qr_arena_init(&arena, 0);
    qr_uuid_gen_init(&ids, qr_clock_system(), qr_rand_system());
    const struct qr_artifacts artifacts = {life->folder, &disk_io.io};
    for (;;) {
        struct qr_new_artifact made;
        if (qr_artifact_prepare(&artifacts, qr_uuid_next(&ids), QR_ARTIFACT_TEXT,
                                qr_shelf_bytes('p', QR_SHELF_LARGE_BYTES), &arena, &made, &err) != QR_OK) {
            _exit(1);
        }
        struct ack ack = {0};
        snprintf(ack.file, sizeof ack.file, "%s", made.file);
        child_ack(&ack, sizeof ack);
    }
}

QR_TEST_WITH_TIMEOUT(a_file_that_could_be_adopted_is_whole_after_power_loss, 120) /* A2, I5 */
{
    enum { LOSSES = 40, ACKS_MAX = 64 };
    struct qr_shelf shelf = {0};
    int64_t kept = 0;
    for (int i = 0; i < LOSSES; i++) {
        struct life life = {.disk = {.seed = (uint64_t)i + 1, .crash_at = 1 + (uint64_t)i * 2}};
        char name[20];
        snprintf(name, sizeof name, "life-%d", i);
        snprintf(life.folder, sizeof life.folder, "%s", qr_test_path(t, name));
        snprintf(shelf.dir, sizeof shelf.dir, "%s", life.folder);
        struct child child;
        struct ack acks[ACKS_MAX];
        int count = 0;
        child_start(&child, live, &life);
        while (count < ACKS_MAX && child_next_ack(&child, &acks[count], sizeof acks[0])) {
            count++;
        }
        QR_CHECK_INT(DISK_POWER_LOST, child_wait(&child));
        const qr_str expected = qr_shelf_bytes('p', QR_SHELF_LARGE_BYTES);
        for (int k = 0; k < count; k++) {
            static char bytes[QR_SHELF_LARGE_BYTES + 1];
            FILE *file = fopen(qr_shelf_path(&shelf, acks[k].file), "r");
            QR_CHECK(file);
            QR_CHECK_INT(QR_SHELF_LARGE_BYTES, fread(bytes, 1, sizeof bytes, file));
            fclose(file);
            QR_CHECK(memcmp(bytes, expected.ptr, QR_SHELF_LARGE_BYTES) == 0);
        }
        kept += count;
    }
    QR_CHECK(kept > 0);
}
