/* The database when the storage fails: every I/O call of SQLite's fails once, then for good. Whatever happens, an
 * answer is the truth (DB-2), the handle works again by itself when the storage does (DB-9), and nothing leaks. */
#include "support/child.h"
#include "support/fault_vfs.h"
#include "support/ledger.h"
#include "support/test.h"

#include "base/io.h"

#include <unistd.h>

enum {
    WRITES = 6,
    WRITES_MAX = 500,
    PAYLOAD_BYTES_MAX = 9000,
    CALLS_MAX = 2000,   /* of one kind in one run: a sweep that does not end is a bug */
    FOR_GOOD_STEP = 11, /* these runs wait for the storage several times each */
};

struct run {
    char path[200], url[210];
    struct fault_plan plan;
    bool small_log; /* so that it is copied and emptied all the time */
    struct qr_db *db;
    int64_t stored; /* lines that were answered with OK */
    bool in_doubt;  /* the last answer was that it is not known yet */
};

static int no_sync(const struct qr_io *io QR_UNUSED, int fd QR_UNUSED)
{
    return 0;
}

/* Nothing here loses power, so nothing is really synced. */
static struct qr_io fast_io;

static void begin(struct run *run, struct qr_test *t)
{
    *run = (struct run){0};
    snprintf(run->path, sizeof run->path, "%s", qr_test_path(t, "quire.db"));
    snprintf(run->url, sizeof run->url, "sqlite:%s", run->path);
    unlink(run->path);
    unlink(qr_test_path(t, "quire.db-wal"));
    unlink(qr_test_path(t, "quire.db-shm"));
    fast_io = *qr_io_system();
    fast_io.fsync = no_sync;
    fault_vfs_register();
    fault_vfs_set_sync((struct fault_sync){.skip = true});
}

static struct qr_db_options db_options(const struct run *run)
{
    return (struct qr_db_options){
        .url = run->url,
        .migrations = ledger_migrations,
        .migration_count = ledger_migration_count,
        .readers_max = 2,
        .wal_soft_bytes = run->small_log ? 24 << 10 : 0,
        .wal_hard_bytes = run->small_log ? 96 << 10 : 0,
        .vfs = "fault",
        .io = &fast_io,
    };
}

QR_NORETURN static void fail(const struct run *run, const char *doing, const qr_err *err)
{
    QR_FAIL("%s call %llu%s%s fails: %s: %s: %s", fault_kind_name(run->plan.kind), (unsigned long long)run->plan.nth,
            run->plan.for_good ? " and all after it" : "", run->plan.disk_full ? " (full)" : "", doing,
            qr_code_info(err->code)->name, err->msg);
}

static void write_line(struct run *run, enum qr_db_level level, bool must_succeed)
{
    struct ledger_line line = {.number = run->stored + 1, .payload_bytes_max = PAYLOAD_BYTES_MAX};
    qr_err err = {0};
    const qr_rc rc = qr_db_write(run->db, level, ledger_add, &line, &err);
    if (rc == QR_OK) {
        run->stored++;
        return;
    }
    run->in_doubt = strstr(err.msg, "not known") != NULL;
    if (must_succeed || (rc != QR_IO && rc != QR_FULL)) {
        fail(run, "write", &err);
    }
}

/* The ledger holds exactly what was answered with OK. */
static void check_ledger(struct run *run)
{
    struct ledger_state state;
    qr_err err = {0};
    if (ledger_load(run->db, &state, &err) != QR_OK || qr_db_verify(run->db, &err) != QR_OK) {
        fail(run, "look at everything", &err);
    }
    if (run->in_doubt && state.line_count == run->stored + 1) {
        run->stored++;
    }
    run->in_doubt = false;
    if (state.line_count != run->stored) {
        qr_fail(&err, QR_CODE_DATA_CORRUPT, "%lld lines, answered OK were %lld", (long long)state.line_count,
                (long long)run->stored);
        fail(run, "compare", &err);
    }
}

static void open_db(struct run *run)
{
    const struct qr_db_options options = db_options(run);
    qr_err err = {0};
    if (qr_db_open(&run->db, &options, &err) == QR_OK) {
        return;
    }
    if (!fault_vfs_failed()) {
        fail(run, "open", &err);
    }
    if (run->plan.for_good) {
        fault_vfs_heal();
    }
    if (qr_db_open(&run->db, &options, &err) != QR_OK) {
        fail(run, "open again", &err);
    }
}

static void reopen(struct run *run)
{
    const struct qr_db_options options = db_options(run);
    qr_err err = {0};
    if (qr_db_open(&run->db, &options, &err) != QR_OK) {
        fail(run, "open at the end", &err);
    }
}

static void work(struct run *run)
{
    open_db(run);
    for (int i = 0; i < WRITES && !run->in_doubt; i++) {
        write_line(run, i % 2 ? QR_RELAXED : QR_DURABLE, false);
        struct ledger_state state;
        qr_err err = {0};
        if (ledger_load(run->db, &state, &err) == QR_CORRUPT) {
            fail(run, "read", &err);
        }
    }
}

/* One life of a database under the plan. False when the planned call never came. */
static bool run_once(struct qr_test *t, const struct fault_plan *plan)
{
    struct run run;
    begin(&run, t);
    run.plan = *plan;
    run.small_log = true;
    fault_vfs_plan(plan);
    work(&run);
    if (fault_vfs_failed()) { /* else the call may come while closing */
        fault_vfs_heal();
        check_ledger(&run);
        write_line(&run, QR_DURABLE, true);
        check_ledger(&run);
    }
    qr_db_close(run.db);
    fault_vfs_heal();
    reopen(&run);
    check_ledger(&run);
    qr_db_close(run.db);
    return fault_vfs_failed() > 0;
}

/* Fails the first call of each kind, then the second, and so on until a run has no such call any more. */
static void sweep(struct qr_test *t, struct fault_plan plan, uint64_t step)
{
    uint64_t runs = 0;
    for (int kind = 0; kind < FAULT_KIND_COUNT; kind++) {
        if (plan.disk_full && kind != FAULT_WRITE && kind != FAULT_TRUNCATE) {
            continue;
        }
        plan.kind = (enum fault_kind)kind;
        for (plan.nth = 1; run_once(t, &plan); plan.nth += step) {
            QR_CHECK(plan.nth < CALLS_MAX);
            runs++;
        }
    }
    printf("%llu runs with a failing call\n", (unsigned long long)runs);
}

QR_TEST_WITH_TIMEOUT(every_call_fails_once, 300) /* DB-2, DB-9 */
{
    sweep(t, (struct fault_plan){0}, 1);
}

QR_TEST_WITH_TIMEOUT(every_call_fails_until_the_storage_is_well_again, 300) /* DB-2, DB-9 */
{
    sweep(t, (struct fault_plan){.for_good = true}, FOR_GOOD_STEP);
}

QR_TEST_WITH_TIMEOUT(every_write_finds_the_disk_full_once, 300) /* DB-2, DB-8 */
{
    sweep(t, (struct fault_plan){.disk_full = true}, 1);
}

static uint64_t count_reopens(struct qr_db *db)
{
    struct qr_db_stats stats;
    qr_db_stats(db, &stats);
    return stats.reopens;
}

static void write_line_whose_sync_fails(struct run *run)
{
    run->plan = (struct fault_plan){.kind = FAULT_SYNC, .file = FAULT_FILE_LOG, .nth = 1};
    fault_vfs_plan(&run->plan);
    write_line(run, QR_DURABLE, false);
    QR_CHECK_INT(1, fault_vfs_failed());
}

/* Whether a commit is in the log after its sync failed is open. The answer tells which it is, and it stays so. */
QR_TEST(after_a_commit_whose_sync_failed_the_answer_is_the_truth) /* DB-2, DB-9 */
{
    struct run run;
    begin(&run, t);
    open_db(&run);
    write_line(&run, QR_DURABLE, true);
    const uint64_t reopens_before = count_reopens(run.db);
    write_line_whose_sync_fails(&run);
    QR_CHECK(count_reopens(run.db) > reopens_before);
    check_ledger(&run);
    write_line(&run, QR_DURABLE, true);
    check_ledger(&run);
    qr_db_close(run.db);
    reopen(&run);
    check_ledger(&run);
    qr_db_close(run.db);
}

/* What SQLite has copied from the log into the file without a sync is not copied again after the sync failed: only a
 * database that is opened anew starts over from the whole log. */
QR_TEST(after_a_failed_checkpoint_the_database_is_opened_anew) /* DB-9 */
{
    struct run run;
    begin(&run, t);
    run.small_log = true;
    open_db(&run);
    const uint64_t reopens_before = count_reopens(run.db);
    run.plan = (struct fault_plan){.kind = FAULT_SYNC, .file = FAULT_FILE_DATABASE, .nth = 1};
    fault_vfs_plan(&run.plan);
    for (int i = 0; i < WRITES_MAX && count_reopens(run.db) == reopens_before; i++) {
        write_line(&run, QR_DURABLE, false);
    }
    QR_CHECK(fault_vfs_failed() == 1 && count_reopens(run.db) > reopens_before);
    check_ledger(&run);
    qr_db_close(run.db);
}

static void die_after_a_failed_sync(void *arg)
{
    struct run *run = arg;
    open_db(run);
    write_line(run, QR_DURABLE, true);
    write_line_whose_sync_fails(run);
    child_ack(&run->stored, sizeof run->stored);
    _exit(0); /* without closing anything */
}

QR_TEST(the_answer_after_a_failed_sync_is_the_truth_also_when_the_process_dies) /* DB-2, DB-9 */
{
    struct run run;
    begin(&run, t);
    struct child child;
    child_start(&child, die_after_a_failed_sync, &run);
    QR_CHECK(child_next_ack(&child, &run.stored, sizeof run.stored));
    QR_CHECK_INT(0, child_wait(&child));
    reopen(&run);
    check_ledger(&run);
    qr_db_close(run.db);
}
