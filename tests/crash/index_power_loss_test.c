/* The index stores when power is lost: X3 (what was written before a qr_index_sync that returned is there) and the text
 * index, which is equal to the rows after any loss.
 *
 * As in power_loss_test.c, a child works on the disk that loses power: two producers, two bases, in most lives only one open
 * at a time so that stores are closed and opened all the time; writes, deletes, searches. */
#include "db/sqlite.h"
#include "index/tokenizer.h"
#include "support/child.h"
#include "support/disk.h"
#include "support/index_fixture.h"

#include "base/thread.h"

#include <sqlite3.h>
#include <unistd.h>

enum {
    LOSSES = 120,
    CONTROL_LOSSES = 30,
    GENERATIONS = 3, /* losses of one folder before a fresh one */
    PRODUCERS = 2,
    BASES = 2,
    ITEMS_MAX = 3000, /* of a producer in one life */
    SAME_BASE = 8,    /* items before the next base */
    SYNC_EVERY = 5,
    DELETE_EVERY = 6, /* each of these steps deletes the item of the fifth before it */
    OPERATIONS_MAX = 700,
    CHILD_FAILED = 1,
};

struct life {
    char folder[200];
    struct disk_options disk;
    bool acknowledges_early; /* before the sync: the negative control */
    int generation;
    /* steps of the producers in each life until now; 0 = none */
    int begun[GENERATIONS][PRODUCERS], acknowledged[GENERATIONS][PRODUCERS];
};

struct ack {
    int32_t producer, step;
    bool done; /* else: begun */
};

/* ---- what a step does ---- */

static qr_uuid base_of(int step)
{
    return test_id((unsigned)(step / SAME_BASE % BASES));
}

static qr_uuid item_of(int generation, int producer, int step)
{
    return test_id((unsigned)((generation * PRODUCERS + producer) * ITEMS_MAX + step));
}

/* The step whose item this one deletes; 0 = none. */
static int deleted_by(int step)
{
    return step % DELETE_EVERY == 0 ? step - DELETE_EVERY + 1 : 0;
}

static size_t chunks_of(int step)
{
    return 1 + (size_t)step % 3;
}

/* ---- the child ---- */

static void require(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        fprintf(stderr, "%s: %s\n", qr_code_info(err->code)->name, err->msg);
        _exit(CHILD_FAILED);
    }
}

struct producer {
    struct life *life;
    struct qr_index_set *set;
    int number;
};

static void do_step(struct producer *producer, int step)
{
    const struct life *life = producer->life;
    qr_err err = {0};
    struct qr_chunk chunks[3];
    for (size_t i = 0; i < chunks_of(step); i++) {
        chunks[i] = (struct qr_chunk){.ordinal = (int64_t)i, .text = QR_STR("alpha beta gamma"), .title = QR_STR("t")};
    }
    require(qr_index_write_chunks(producer->set, base_of(step), item_of(life->generation, producer->number, step), 1,
                                  chunks, chunks_of(step), NULL, &err),
            &err);
    const int gone = deleted_by(step);
    if (gone) {
        const qr_uuid item = item_of(life->generation, producer->number, gone);
        require(qr_index_delete_items(producer->set, base_of(gone), &item, 1, &err), &err);
    }
    if (step % 4 == 0) {
        struct qr_index_hit hit;
        size_t count;
        require(qr_index_search_text(producer->set, base_of(step), QR_STR("beta"), 1, NULL, NULL, &hit, &count, &err),
                &err);
    }
}

static void sync_all(struct producer *producer)
{
    qr_err err = {0};
    for (unsigned base = 0; base < BASES; base++) {
        require(qr_index_sync(producer->set, test_id(base), &err), &err);
    }
}

static void tell(const struct producer *producer, int step, bool done)
{
    child_ack(&(struct ack){producer->number, step, done}, sizeof(struct ack));
}

static void *produce(void *arg)
{
    struct producer *producer = arg;
    for (int step = 1; step < ITEMS_MAX; step++) {
        tell(producer, step, false);
        do_step(producer, step);
        if (producer->life->acknowledges_early) {
            tell(producer, step, true);
        } else if (step % SYNC_EVERY == 0) {
            sync_all(producer);
            tell(producer, step, true);
        }
    }
    return NULL;
}

/* Runs until the power goes. */
static void live(void *arg)
{
    struct life *life = arg;
    static struct disk_io disk_io;
    struct disk *disk = disk_create(&life->disk);
    disk_io_init(&disk_io, disk);
    disk_vfs_register(disk);
    struct qr_index_set *set;
    qr_err err = {0};
    require(qr_index_set_open(&set,
                              &(struct qr_index_options){
                                  .dir = life->folder,
                                  .open_max = life->acknowledges_early ? BASES : 1 + life->generation % BASES,
                                  .vfs = "powerloss",
                                  .io = &disk_io.io,
                              },
                              &err),
            &err);
    pthread_t threads[PRODUCERS];
    struct producer producers[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){life, set, i};
        require(qr_thread_start(&threads[i], "producer", produce, &producers[i], &err), &err);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* ---- the parent ---- */

static void file_of(const struct life *life, qr_uuid base, const char *suffix, char path[static 300])
{
    char id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(base, id);
    snprintf(path, 300, "%s/%s.db%s", life->folder, id, suffix);
}

static void lose_power_once(struct life *life, int64_t *acknowledged, int *really_dropped)
{
    struct disk_stats *stats = life->disk.stats;
    *stats = (struct disk_stats){0};
    struct child child;
    struct ack ack;
    child_start(&child, live, life);
    while (child_next_ack(&child, &ack, sizeof ack)) {
        life->begun[life->generation][ack.producer] = ack.step;
        if (ack.done) {
            life->acknowledged[life->generation][ack.producer] = ack.step;
            ++*acknowledged;
        }
    }
    const int end = child_wait(&child);
    if (end != DISK_POWER_LOST) {
        QR_FAIL("seed %llu, crash at operation %llu: the child ended with %d instead of losing power",
                (unsigned long long)life->disk.seed, (unsigned long long)life->disk.crash_at, end);
    }
    for (unsigned base = 0; base < BASES; base++) {
        char path[300];
        file_of(life, test_id(base), "-shm", path);
        unlink(path);
    }
    *really_dropped += stats->dropped_writes + stats->torn_writes + stats->dropped_entries > 0;
}

/* Whether what is there of a step's item may be. */
static bool may_have(size_t chunk_count, int step, int acknowledged, int begun)
{
    const int deleter = (step - 1) % DELETE_EVERY == 0 ? step - 1 + DELETE_EVERY : 0;
    if (chunk_count == 0) {
        return step > acknowledged || (deleter && deleter <= begun);
    }
    return chunk_count == chunks_of(step) && !(deleter && deleter <= acknowledged);
}

/* How many items of a life are not as they were acknowledged. */
static int count_wrong(struct index_fixture *f, const struct life *life, int generation, int producer)
{
    int wrong = 0;
    for (int step = 1; step <= life->begun[generation][producer]; step++) {
        const size_t count = index_chunk_count(f, base_of(step), item_of(generation, producer, step), 1);
        wrong += !may_have(count, step, life->acknowledged[generation][producer], life->begun[generation][producer]);
    }
    return wrong;
}

static void check_text_index(const char *path)
{
    sqlite3 *db;
    QR_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    QR_CHECK(qr_sqlite_register_tokenizer(db, &qr_index_tokenizer) == SQLITE_OK);
    char *message = NULL;
    if (sqlite3_exec(db, "INSERT INTO chunk_fts (chunk_fts, rank) VALUES ('integrity-check', 1)", NULL, NULL,
                     &message) != SQLITE_OK) {
        QR_FAIL("%s: %s", path, message);
    }
    sqlite3_close(db);
}

/* Opens the stores on the ordinary file system. */
static int check(const struct life *life)
{
    struct index_fixture f = {.options = {.dir = life->folder}};
    index_fixture_reopen(&f);
    int wrong = 0;
    for (int generation = 0; generation <= life->generation; generation++) {
        for (int producer = 0; producer < PRODUCERS; producer++) {
            wrong += count_wrong(&f, life, generation, producer);
        }
    }
    for (unsigned base = 0; base < BASES; base++) {
        index_hit_count(&f, test_id(base), "beta"); /* brings the text index up to the rows */
    }
    index_fixture_close(&f);
    for (unsigned base = 0; base < BASES; base++) {
        char path[300];
        file_of(life, test_id(base), "", path);
        check_text_index(path);
    }
    return wrong;
}

static void begin_life(struct life *life, struct qr_test *t, int number, struct disk_stats *stats)
{
    char name[32];
    snprintf(name, sizeof name, "index-%d", number);
    *life = (struct life){.disk = {.stats = stats}};
    snprintf(life->folder, sizeof life->folder, "%s", qr_test_path(t, name));
}

QR_TEST_WITH_TIMEOUT(nothing_that_was_synced_is_lost_at_power_loss, 1200) /* X3 */
{
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 21);
    struct disk_stats *stats = disk_stats_map();
    struct life life;
    int64_t acknowledged = 0;
    int really_dropped = 0;
    for (int i = 0; i < LOSSES; i++) {
        if (i % GENERATIONS == 0) {
            begin_life(&life, t, i / GENERATIONS, stats);
        }
        life.generation = i % GENERATIONS;
        life.disk.seed = qr_rand_u64(&chance.rand);
        life.disk.crash_at = 1 + qr_rand_below(&chance.rand, i % 4 ? OPERATIONS_MAX : OPERATIONS_MAX / 8);
        lose_power_once(&life, &acknowledged, &really_dropped);
        if (life.generation == GENERATIONS - 1 || qr_rand_below(&chance.rand, 2)) {
            QR_CHECK_INT(0, check(&life));
        }
    }
    disk_stats_unmap(stats);
    printf("%d losses, %d really dropped writes, %lld syncs checked, 0 lost\n", LOSSES, really_dropped,
           (long long)acknowledged);
    QR_CHECK(really_dropped > LOSSES / 2 && acknowledged > LOSSES);
}

/* Writes are relaxed: without the sync some are lost, or the test above proves nothing. */
QR_TEST_WITH_TIMEOUT(what_was_not_synced_may_be_lost, 600)
{
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 22);
    struct disk_stats *stats = disk_stats_map();
    int64_t acknowledged = 0;
    int really_dropped = 0, lost = 0;
    for (int i = 0; i < CONTROL_LOSSES; i++) {
        struct life life;
        begin_life(&life, t, i, stats);
        life.acknowledges_early = true;
        life.disk.seed = qr_rand_u64(&chance.rand);
        life.disk.crash_at = OPERATIONS_MAX / 2 + qr_rand_below(&chance.rand, OPERATIONS_MAX / 2);
        lose_power_once(&life, &acknowledged, &really_dropped);
        lost += check(&life) > 0;
    }
    disk_stats_unmap(stats);
    printf("negative control: %d of %d losses lost writes that were not synced\n", lost, CONTROL_LOSSES);
    QR_CHECK(lost > CONTROL_LOSSES / 3);
}
