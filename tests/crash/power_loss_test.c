/* The database when power is lost: DB-1 (an acknowledged durable write is there), DB-2 and DB-14 (a write that failed
 * left nothing, and took nobody with it), and the order of writes.
 *
 * A child runs the real database layer on the disk that loses power (support/disk.h): several producers, durable and
 * relaxed writes, some that fail on purpose, reads, a log small enough that checkpoints run all the time. Each
 * durable write is told to the parent after it was answered. At a planned operation the power goes; then the database
 * is opened again and the ledger checked against what was acknowledged. */
#include "support/child.h"
#include "support/disk.h"
#include "support/ledger.h"
#include "support/test.h"

#include "base/thread.h"

#include <unistd.h>

enum {
    LOSSES = 320,
    FAILED_SYNC_LOSSES = 160,
    CONTROL_LOSSES = 40,
    GENERATIONS = 5, /* losses of one database before a fresh one */
    PRODUCERS = 4,
    PAYLOAD_BYTES_MAX = 6000, /* up to two pages */
    OPERATIONS_MAX = 900,     /* into the steady state: several checkpoints */
    CREATING_OPERATIONS = 40, /* making a database and migrating it take about as many */
    RECOVERY_OPERATIONS = 15, /* opening one that lost power before */
    CHILD_FAILED = 1,
};

/* More in a long run. */
static int times(int losses)
{
    return getenv("QUIRE_TEST_LONG") ? 10 * losses : losses;
}

/* One life of a database, from opening to the loss. */
struct life {
    char path[256];
    char url[270];
    struct disk_options disk;
    int64_t acknowledged[LEDGER_PRODUCERS_MAX];
};

struct ack {
    int32_t producer, number; /* NOBODY: the database is open */
};
enum { NOBODY = -1 };

struct producer {
    struct life *life;
    struct qr_db *db;
    int64_t index, last_number;
    struct qr_rand_seeded chance;
};

static struct qr_db_options db_options(const struct life *life)
{
    return (struct qr_db_options){
        .url = life->url,
        .migrations = ledger_migrations,
        .migration_count = ledger_migration_count,
        .read_deadline_ms = 60000,
        .wal_soft_bytes = 32 << 10,
        .wal_hard_bytes = 128 << 10,
    };
}

/* ---- the child ---- */

QR_NORETURN static void child_failed(const char *doing, const qr_err *err)
{
    fprintf(stderr, "%s: %s: %s\n", doing, qr_code_info(err->code)->name, err->msg);
    _exit(CHILD_FAILED);
}

/* An error that the disk was told to give. */
static bool is_planned(const struct life *life, qr_rc rc)
{
    return rc == QR_IO && life->disk.fail_sync_at;
}

static void write_line(struct producer *producer)
{
    const bool durable = qr_rand_below(&producer->chance.rand, 3) > 0;
    struct ledger_line line = {
        .producer = producer->index,
        .number = producer->last_number + 1,
        .payload_bytes_max = PAYLOAD_BYTES_MAX,
    };
    qr_err err = {0};
    const qr_rc rc = qr_db_write(producer->db, durable ? QR_DURABLE : QR_RELAXED, ledger_add, &line, &err);
    if (is_planned(producer->life, rc)) {
        return; /* it left nothing: the same number will do again */
    }
    if (rc != QR_OK) {
        child_failed("write", &err);
    }
    producer->last_number++;
    if (durable) {
        child_ack(&(struct ack){(int32_t)line.producer, (int32_t)line.number}, sizeof(struct ack));
    }
}

/* Negative numbers: the ledger knows them as lines that nobody completed. */
static void write_line_that_fails(struct producer *producer)
{
    struct ledger_line line = {
        .producer = producer->index,
        .number = -producer->last_number - 1,
        .payload_bytes_max = PAYLOAD_BYTES_MAX,
        .fail = true,
    };
    qr_err err = {0};
    const qr_rc rc = qr_db_write(producer->db, QR_DURABLE, ledger_add, &line, &err);
    if (rc != QR_STALE && !is_planned(producer->life, rc)) {
        child_failed("write that fails on purpose", &err);
    }
}

static qr_rc count_lines(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_get_i64(tx, "SELECT count(*) FROM line", QR_NO_VALS, NULL, arg, err);
}

/* Snapshots in use keep checkpoints from starting the log over: that must not matter. */
static void read_count(struct producer *producer)
{
    int64_t count;
    qr_err err = {0};
    if (qr_db_read(producer->db, count_lines, &count, &err) != QR_OK) {
        child_failed("read", &err);
    }
}

static void *produce(void *arg)
{
    for (struct producer *producer = arg;;) {
        switch (qr_rand_below(&producer->chance.rand, 8)) {
        case 0:
            write_line_that_fails(producer);
            break;
        case 1:
        case 2:
            read_count(producer);
            break;
        default:
            write_line(producer);
        }
    }
    return NULL;
}

static void start(void *(*fn)(void *arg), void *arg)
{
    pthread_t thread;
    qr_err err = {0};
    if (qr_thread_start(&thread, "test", fn, arg, &err) != QR_OK) {
        child_failed("thread", &err);
    }
}

/* Runs until the power goes. */
static void live(void *arg)
{
    struct life *life = arg;
    static struct disk_io io;
    struct disk *disk = disk_create(&life->disk);
    disk_vfs_register(disk);
    disk_io_init(&io, disk);
    struct qr_db_options options = db_options(life);
    options.vfs = "powerloss";
    options.io = &io.io;
    struct qr_db *db;
    struct ledger_state state;
    qr_err err = {0};
    qr_rc rc = qr_db_open(&db, &options, &err);
    if (is_planned(life, rc)) {
        rc = qr_db_open(&db, &options, &err);
    }
    if (rc != QR_OK || ledger_load(db, &state, &err) != QR_OK) {
        child_failed("open after a loss", &err);
    }
    const int64_t lost = ledger_count_lost(&state, life->acknowledged);
    if (lost > 0) {
        fprintf(stderr, "%lld acknowledged writes lost\n", (long long)lost);
        _exit(CHILD_FAILED);
    }
    child_ack(&(struct ack){NOBODY, 0}, sizeof(struct ack));
    static struct producer producers[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){life, db, i, state.last_number[i], {{NULL}, 0}};
        qr_rand_seeded_init(&producers[i].chance, life->disk.seed * PRODUCERS + (uint64_t)i);
        start(produce, &producers[i]);
    }
    pause();
}

/* ---- the parent ---- */

struct tally {
    int losses, really_dropped;
    int while_opening, while_checkpointing, while_committing;
    int64_t acknowledged;
};

static void lose_power_once(struct life *life, struct tally *tally)
{
    struct disk_stats *stats = life->disk.stats;
    *stats = (struct disk_stats){0};
    struct child child;
    struct ack ack;
    bool opened = false;
    child_start(&child, live, life);
    while (child_next_ack(&child, &ack, sizeof ack)) {
        if (ack.producer == NOBODY) {
            opened = true;
            continue;
        }
        life->acknowledged[ack.producer] = ack.number;
        tally->acknowledged++;
    }
    const int end = child_wait(&child);
    if (end != DISK_POWER_LOST) {
        QR_FAIL("seed %llu, crash at operation %llu: the child ended with %d instead of losing power",
                (unsigned long long)life->disk.seed, (unsigned long long)life->disk.crash_at, end);
    }
    char shared_memory[300];
    snprintf(shared_memory, sizeof shared_memory, "%s-shm", life->path);
    unlink(shared_memory);

    const qr_str during = qr_str_of(stats->lost_during);
    tally->losses++;
    tally->really_dropped += stats->dropped_writes + stats->torn_writes + stats->dropped_entries > 0;
    tally->while_opening += !opened;
    tally->while_checkpointing += opened && qr_str_ends_with(during, QR_STR(".db"));
    tally->while_committing += opened && qr_str_ends_with(during, QR_STR("-wal"));
}

/* Opens on the ordinary file system. The rc says whether all that was acknowledged is there and whole. */
static qr_rc check(const struct life *life, qr_err *err)
{
    const struct qr_db_options options = db_options(life);
    struct qr_db *db;
    QR_TRY(qr_db_open(&db, &options, err));
    struct ledger_state state;
    qr_rc rc = qr_db_verify(db, err);
    if (rc == QR_OK) {
        rc = ledger_load(db, &state, err);
    }
    if (rc == QR_OK) {
        const int64_t lost = ledger_count_lost(&state, life->acknowledged);
        rc = lost ? qr_fail(err, QR_CODE_DATA_CORRUPT, "%lld acknowledged writes lost", (long long)lost) : QR_OK;
    }
    qr_db_close(db);
    return rc;
}

static void begin_life(struct life *life, struct qr_test *t, int number, struct disk_stats *stats, bool lies)
{
    char name[32];
    snprintf(name, sizeof name, "%d.db", number);
    *life = (struct life){.disk = {.stats = stats, .lies = lies}};
    snprintf(life->path, sizeof life->path, "%s", qr_test_path(t, name));
    snprintf(life->url, sizeof life->url, "sqlite:%s", life->path);
}

/* Many of the losses while the database is made, migrated or recovered, the others anywhere after. */
static void plan_loss(struct life *life, int generation, struct qr_rand *chance)
{
    const bool early = qr_rand_below(chance, 5) < (generation == 0 ? 3 : 2);
    const uint64_t opening = generation == 0 ? CREATING_OPERATIONS : RECOVERY_OPERATIONS;
    life->disk.seed = qr_rand_u64(chance);
    life->disk.crash_at = 1 + qr_rand_below(chance, early ? opening : OPERATIONS_MAX);
}

QR_TEST_WITH_TIMEOUT(no_acknowledged_write_is_lost_at_power_loss, 1800) /* DB-1, DB-2, DB-14 */
{
    struct tally tally = {0};
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 1);
    struct disk_stats *stats = disk_stats_map();
    struct life life;
    qr_err err;
    for (int i = 0; i < times(LOSSES); i++) {
        const int generation = i % GENERATIONS;
        if (generation == 0) {
            begin_life(&life, t, i / GENERATIONS, stats, false);
        }
        plan_loss(&life, generation, &chance.rand);
        lose_power_once(&life, &tally);
        /* not each time: the next life must also cope with what this one left, and may itself be cut short there */
        if (generation == GENERATIONS - 1 || qr_rand_below(&chance.rand, 2)) {
            QR_CHECK_RC(QR_OK, check(&life, &err));
        }
    }
    disk_stats_unmap(stats);
    printf("%d losses, %d really dropped writes, %lld acknowledged writes checked, 0 lost (%d while opening, %d while "
           "committing, %d while checkpointing)\n",
           tally.losses, tally.really_dropped, (long long)tally.acknowledged, tally.while_opening,
           tally.while_committing, tally.while_checkpointing);
    QR_CHECK(tally.losses >= 300 && tally.really_dropped >= LOSSES / 2);
    QR_CHECK(tally.while_opening >= LOSSES / 10 && tally.while_committing >= LOSSES / 4);
    QR_CHECK(tally.while_checkpointing >= LOSSES / 20);
    QR_CHECK(tally.acknowledged >= LOSSES);
}

/* After a failed sync the kernel calls clean what it could not write. A database that just goes on loses what it had
 * acknowledged before or acknowledges next. */
QR_TEST_WITH_TIMEOUT(no_acknowledged_write_is_lost_after_a_failed_sync, 600) /* DB-1, DB-2, DB-9 */
{
    struct tally tally = {0};
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 5);
    struct disk_stats *stats = disk_stats_map();
    int failed_syncs = 0;
    for (int i = 0; i < times(FAILED_SYNC_LOSSES); i++) {
        struct life life;
        qr_err err;
        begin_life(&life, t, i, stats, false);
        life.disk.seed = qr_rand_u64(&chance.rand);
        life.disk.fail_sync_at = 1 + qr_rand_below(&chance.rand, OPERATIONS_MAX / 2);
        /* either while the database copes with it, or when it believes to have done so */
        life.disk.crash_at = life.disk.fail_sync_at + 1 + qr_rand_below(&chance.rand, i % 2 ? 25 : OPERATIONS_MAX / 4);
        lose_power_once(&life, &tally);
        failed_syncs += stats->failed_syncs > 0;
        QR_CHECK_RC(QR_OK, check(&life, &err));
    }
    disk_stats_unmap(stats);
    printf("%d losses after %d failed syncs, %lld acknowledged writes checked, 0 lost\n", tally.losses, failed_syncs,
           (long long)tally.acknowledged);
    QR_CHECK(failed_syncs > FAILED_SYNC_LOSSES / 2);
}

/* The same test must fail where syncs do nothing, as they would with synchronous = OFF: else it proves nothing. */
QR_TEST_WITH_TIMEOUT(a_disk_that_lies_about_syncs_loses_acknowledged_writes, 120)
{
    struct tally tally = {0};
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 2);
    struct disk_stats *stats = disk_stats_map();
    int lost = 0;
    for (int i = 0; i < CONTROL_LOSSES; i++) {
        struct life life;
        begin_life(&life, t, i, stats, true);
        life.disk.seed = qr_rand_u64(&chance.rand);
        life.disk.crash_at = CREATING_OPERATIONS + 1 + qr_rand_below(&chance.rand, OPERATIONS_MAX);
        lose_power_once(&life, &tally);
        lost += check(&life, NULL) != QR_OK;
    }
    disk_stats_unmap(stats);
    printf("negative control: %d of %d losses on a disk that lies lost acknowledged writes\n", lost, CONTROL_LOSSES);
    QR_CHECK(lost > CONTROL_LOSSES / 2);
}
