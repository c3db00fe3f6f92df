/* Owns the processes, their memory and databases, and the calls that are wrapped at link time: qr_db_write (yields, failing
 * commits, lost answers, death before and after a commit), qr_db_wake (lost wake-ups, and those between processes), and
 * qr_db_open, qr_db_close and qr_db_read, which are one step each. */
#include "sim/world.h"

#include "base/io.h"
#include "base/mem.h"
#include "store/schema.h"
#include "support/fault_vfs.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct world world;
struct totals totals;

/* ---- memory: a process that dies gives all of it back ---- */

struct block {
    _Alignas(16) struct block *newer;
    struct block *older;
    int process;
    int magic;
};

enum { BLOCK_MAGIC = 0x5175 };

static struct block *newest[SIM_PROCESSES_MAX];
static int owner; /* for what is allocated outside of a coroutine */

static struct block *link_block(struct block *block, int process)
{
    *block = (struct block){.older = newest[process], .process = process, .magic = BLOCK_MAGIC};
    if (block->older) {
        block->older->newer = block;
    }
    newest[process] = block;
    return block;
}

static void unlink_block(struct block *block)
{
    assert(block->magic == BLOCK_MAGIC);
    if (block->newer) {
        block->newer->older = block->older;
    } else {
        newest[block->process] = block->older;
    }
    if (block->older) {
        block->older->newer = block->newer;
    }
}

#ifdef __SANITIZE_ADDRESS__
/* A crash releases what its process had from qr_alloc. What libraries had from malloc stays, as the stemmers of the crashed one's
 * tokenizers. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libstemmer\n";
}
#endif

static void *alloc_block(size_t size_bytes)
{
    struct block *block = malloc(sizeof *block + size_bytes);
    return block ? link_block(block, sim_process() ? sim_process() : owner) + 1 : NULL;
}

static void release_block(void *memory)
{
    struct block *block = (struct block *)memory - 1;
    unlink_block(block);
    free(block);
}

static void *resize_block(void *memory, size_t size_bytes)
{
    if (!memory) {
        return alloc_block(size_bytes);
    }
    struct block *block = (struct block *)memory - 1;
    const int process = block->process;
    unlink_block(block);
    block = realloc(block, sizeof *block + size_bytes);
    assert(block);
    return link_block(block, process) + 1;
}

static void release_all(int process)
{
    while (newest[process]) {
        release_block(newest[process] + 1);
    }
}

/* ---- the wrapped calls ---- */

qr_rc __real_qr_db_write(struct qr_db *db, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err);
qr_rc __wrap_qr_db_write(struct qr_db *db, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err);
void __real_qr_db_wake(struct qr_db *db, const char *channel);
void __wrap_qr_db_wake(struct qr_db *db, const char *channel);

struct doomed_write {
    qr_tx_fn *fn;
    void *arg;
};

/* Does everything but commit. */
static qr_rc run_doomed(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct doomed_write *write = arg;
    QR_TRY(write->fn(tx, write->arg, err));
    return qr_fail(err, QR_CODE_UNAVAILABLE, "the process dies before the commit");
}

/* Several handles on one file stand for several processes on one server, and there a full disk is all that may happen:
 * after an I/O error the driver asks the file whether the commit is there, and relies on being its only writer. */
static void break_commit(void)
{
    const bool is_full = !world.owns_all || sim_chance(300);
    totals.failed_commits++;
    fault_vfs_plan(&(struct fault_plan){.kind = is_full || sim_chance(500) ? FAULT_WRITE : FAULT_SYNC,
                                        .file = FAULT_FILE_LOG,
                                        .nth = (uint64_t)sim_between(1, 3),
                                        .disk_full = is_full});
}

qr_rc __wrap_qr_db_write(struct qr_db *db, enum qr_db_level level, qr_tx_fn *fn, void *arg, qr_err *err)
{
    struct process *process = world_process();
    if (!process || sim_is_held()) { /* inside another call nothing may happen to it alone */
        return __real_qr_db_write(db, level, fn, arg, err);
    }
    if (world.faults && sim_chance(process->is_ending ? 100 : 8)) {
        world_freeze(process); /* the worst moment: all is decided, nothing written */
    }
    sim_yield();
    const bool dies_before = world.faults && sim_chance(4), dies_after = world.faults && sim_chance(6);
    struct doomed_write doomed = {fn, arg};
    sim_hold();
    if (world.faults && sim_chance(25)) {
        break_commit();
    }
    world.is_dirty = world.is_dirty || db == process->db;
    world.committer = process->incarnation;
    world.commit_wall_ms = qr_clock_wall_ms(sim_clock());
    const qr_rc rc = dies_before ? __real_qr_db_write(db, level, run_doomed, &doomed, err)
                                 : __real_qr_db_write(db, level, fn, arg, err);
    fault_vfs_heal();
    sim_release();
    sim_pass_ms(sim_between(0, 2));
    totals.commits++;
    if (dies_before || dies_after) {
        totals.crashes++;
        sim_die();
    }
    const bool answer_is_lost = rc == QR_OK && world.faults && sim_chance(15);
    sim_yield(); /* the oracle looks before anything else is committed */
    totals.lost_answers += answer_is_lost;
    return answer_is_lost ? qr_fail(err, QR_CODE_UNAVAILABLE, "it is committed, and the answer lost") : rc;
}

void __wrap_qr_db_wake(struct qr_db *db, const char *channel)
{
    for (int i = 1; i <= world.process_count; i++) {
        struct process *process = &world.processes[i];
        const bool is_lost = !world.owns_all && world.faults && sim_chance(process->db == db ? 100 : 300);
        totals.lost_wakeups += is_lost;
        if (process->db && !is_lost) {
            __real_qr_db_wake(process->db, channel);
        }
    }
}

/* ---- databases: a process that dies lets go of all of them ---- */

qr_rc __real_qr_db_open(struct qr_db **ret_db, const struct qr_db_options *options, qr_err *err);
qr_rc __wrap_qr_db_open(struct qr_db **ret_db, const struct qr_db_options *options, qr_err *err);
void __real_qr_db_close(struct qr_db *db);
void __wrap_qr_db_close(struct qr_db *db);
qr_rc __real_qr_db_read(struct qr_db *db, qr_tx_fn *fn, void *arg, qr_err *err);
qr_rc __wrap_qr_db_read(struct qr_db *db, qr_tx_fn *fn, void *arg, qr_err *err);

enum { DATABASES_MAX = 64 };

static struct {
    struct qr_db *db;
    int process;
} databases[DATABASES_MAX];

static void note_database(struct qr_db *from, struct qr_db *to, int process)
{
    for (int i = 0; i < DATABASES_MAX; i++) {
        if (databases[i].db == from) {
            databases[i].db = to;
            databases[i].process = process;
            return;
        }
    }
    abort();
}

qr_rc __wrap_qr_db_open(struct qr_db **ret_db, const struct qr_db_options *options, qr_err *err)
{
    sim_yield();
    sim_hold();
    const qr_rc rc = __real_qr_db_open(ret_db, options, err);
    if (rc == QR_OK && sim_process()) {
        note_database(NULL, *ret_db, sim_process());
    }
    sim_release();
    return rc;
}

void __wrap_qr_db_close(struct qr_db *db)
{
    sim_hold();
    if (db && sim_process()) {
        note_database(db, NULL, 0);
    }
    __real_qr_db_close(db);
    sim_release();
}

/* Others go on before it, not behind it: what was just read holds until the reader waits for something. */
qr_rc __wrap_qr_db_read(struct qr_db *db, qr_tx_fn *fn, void *arg, qr_err *err)
{
    sim_yield();
    sim_hold();
    const qr_rc rc = __real_qr_db_read(db, fn, arg, err);
    sim_release();
    return rc;
}

static void close_databases(int process)
{
    for (int i = 0; i < DATABASES_MAX; i++) {
        if (databases[i].db && databases[i].process == process) {
            __real_qr_db_close(databases[i].db);
            databases[i].db = NULL;
        }
    }
}

/* ---- files ---- */

static char *template_bytes;
static size_t template_len;
enum { MIGRATIONS_MAX = 64 };
static struct qr_migration migrations[MIGRATIONS_MAX];
static struct qr_io io;

static int sync_nothing(const struct qr_io *self QR_UNUSED, int fd QR_UNUSED)
{
    return 0;
}

const struct qr_io *world_io(void)
{
    return &io;
}

static struct qr_db *open_db(const char *path)
{
    char url[300];
    snprintf(url, sizeof url, "sqlite:%s", path);
    qr_err err = {0};
    struct qr_db *db;
    QR_CHECK_RC(QR_OK, qr_db_open(&db,
                                  &(struct qr_db_options){.url = url,
                                                          .migrations = migrations,
                                                          .migration_count = qr_schema_migration_count + 1,
                                                          .clock = sim_clock(),
                                                          .rand = sim_rand(),
                                                          .single_thread = true,
                                                          .vfs = "fault",
                                                          .io = &io},
                                  &err));
    return db;
}

static void read_template(const char *path)
{
    FILE *file = fopen(path, "rb");
    QR_CHECK(file);
    fseek(file, 0, SEEK_END);
    template_len = (size_t)ftell(file);
    rewind(file);
    template_bytes = malloc(template_len);
    QR_CHECK(template_bytes && fread(template_bytes, 1, template_len, file) == template_len);
    fclose(file);
}

void world_prepare(struct qr_test *t)
{
    static const struct qr_mem_hooks hooks = {alloc_block, resize_block, release_block};
    qr_mem_set_hooks(&hooks);
    fault_vfs_register();
    fault_vfs_set_sync((struct fault_sync){.skip = true});
    io = *qr_io_system();
    io.fsync = sync_nothing;
    sim_begin(0);
    world.t = t;
    QR_CHECK(qr_schema_migration_count + 1 < QR_COUNT(migrations));
    memcpy(migrations, qr_schema_migrations, qr_schema_migration_count * sizeof migrations[0]);
    migrations[qr_schema_migration_count] =
        (struct qr_migration){"sim", "CREATE TABLE effect (n INTEGER PRIMARY KEY, job INTEGER NOT NULL, fence INTEGER "
                                     "NOT NULL, is_final INTEGER NOT NULL) STRICT;"
                                     "CREATE TABLE subject (id INTEGER PRIMARY KEY, active INTEGER NOT NULL) STRICT;"
                                     "INSERT INTO subject VALUES (1, 0), (2, 0), (3, 0), (4, 0);"};
    const char *path = qr_test_path(t, "template.db");
    qr_db_close(open_db(path));
    read_template(path);
}

/* ---- processes ---- */

struct process *world_process(void)
{
    const int number = sim_process();
    return number ? &world.processes[number] : NULL;
}

/* Whoever looks after processes; outside of all of them. */
static void restart_later(void *arg)
{
    struct process *process = arg;
    sim_sleep(sim_chance(700) ? sim_between(0, 3000) : sim_between(0, 200000));
    if (!process->is_up) {
        world_start(process);
    }
}

static void end_process(struct process *process)
{
    sim_drop_process(process->number);
    close_databases(process->number);
    if (process->has_ids) {
        qr_uuid_gen_done(&process->ids);
    }
    if (process->has_stopped && newest[process->number]) {
        QR_FAIL("a runner that was stopped leaves memory behind");
    }
    release_all(process->number);
    *process = (struct process){.number = process->number};
    sim_detach(sim_spawn(0, restart_later, process));
}

static void boot(void *arg)
{
    struct process *process = arg;
    sim_hold();
    process->db = open_db(world.path);
    qr_uuid_gen_init(&process->ids, sim_clock(), sim_rand());
    process->has_ids = true;
    sim_release();
    struct qr_runner_options options = {
        .db = process->db,
        .ids = &process->ids,
        .clock = sim_clock(),
        .rand = sim_rand(),
        .handlers = world.handlers,
        .handler_count = world.handler_count,
        .plan = world.plan,
        .name = "simulated",
        .owns_all = world.owns_all,
        .poll_ms = world.owns_all ? 0 : 5000,
    };
    for (int queue = 1; queue <= SIM_QUEUE_COUNT; queue++) {
        options.slots[queue] = (int)sim_between(1, 3);
    }
    qr_err err = {0};
    struct qr_runner *runner = NULL;
    qr_rc rc = world.open_parts ? world.open_parts(process, &options, &err) : QR_OK;
    rc = rc == QR_OK ? qr_runner_start(&runner, &options, &err) : rc;
    rc = rc == QR_OK && world.start_parts ? world.start_parts(process, &err) : rc;
    if (rc != QR_OK) {
        totals.crashes++;
        sim_die(); /* a process that cannot start ends, and is started again */
    }
    process->runner = runner;
    world.start_actors(process);
}

void world_start(struct process *process)
{
    process->is_up = true;
    process->incarnation = ++world.incarnations;
    sim_detach(sim_spawn(process->number, boot, process));
}

void world_crash(struct process *process)
{
    totals.crashes++;
    end_process(process);
}

void world_freeze(struct process *process)
{
    const int64_t ms = sim_chance(700) ? sim_between(QR_WORKER_LEASE_MS, 2 * QR_WORKER_LEASE_MS)
                                       : sim_between(1000, 4 * QR_WORKER_LEASE_MS);
    totals.zombies++;
    sim_freeze(process->number, sim_now_ms() + ms);
}

static void shut_down(void *arg)
{
    struct process *process = world_process();
    struct qr_runner *runner = process->runner;
    process->runner = NULL;
    totals.shutdowns++;
    const int64_t grace_ms = *(int64_t *)arg;
    qr_free(arg);
    if (world.stop_parts) {
        world.stop_parts(process);
    }
    const bool has_stopped = qr_runner_stop(runner, grace_ms);
    if (world.close_parts && has_stopped) {
        world.close_parts(process);
    }
    process->has_stopped = has_stopped; /* not before: it may be killed while it closes */
    sim_die();
}

void world_shut_down(struct process *process, int64_t grace_ms)
{
    if (process->runner && !process->is_ending) {
        owner = process->number;
        int64_t *arg = qr_alloc(sizeof *arg);
        owner = 0;
        *arg = grace_ms;
        process->is_ending = true;
        sim_detach(sim_spawn(process->number, shut_down, arg));
    }
}

void world_tend(int died)
{
    if (died) {
        end_process(&world.processes[died]);
    }
    for (int i = 1; i <= world.process_count; i++) {
        struct process *process = &world.processes[i];
        if (!process->is_up && !world.faults) {
            world_start(process);
        }
    }
}

/* ---- runs ---- */

void world_begin(uint64_t seed)
{
    sim_begin(seed);
    world.run++;
    snprintf(world.path, sizeof world.path, "%s/run-%d.db", world.t->dir, world.run);
    const int fd = open(world.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    QR_CHECK(fd >= 0 && write(fd, template_bytes, template_len) == (ssize_t)template_len);
    close(fd);
    world.owns_all = sim_chance((unsigned)world.alone_per_mille);
    world.process_count = world.owns_all ? 1 : (int)sim_between(2, world.processes_max);
    world.faults = true;
    world.is_dirty = false;
    world.incarnations = 0;
    memset(world.processes, 0, sizeof world.processes);
    for (int i = 1; i <= world.process_count; i++) {
        world.processes[i].number = i;
        world_start(&world.processes[i]);
    }
}

void world_end(void)
{
    for (int i = 1; i <= world.process_count; i++) {
        end_process(&world.processes[i]);
    }
    sim_end();
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < QR_COUNT(suffixes); i++) {
        char path[300];
        snprintf(path, sizeof path, "%s%s", world.path, suffixes[i]);
        unlink(path);
    }
}
