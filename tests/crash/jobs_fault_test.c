/* Allocations of ours, of SQLite and of jansson, each failed once in every call about jobs: those of the store, and the
 * routes. A call that succeeds all the same answers and leaves what it does without a fault; one that fails says that it is
 * out of memory, and has changed nothing. */
#include "api/router.h"
#include "base/arena.h"
#include "store/jobs.h"
#include "store/jobs_find.h"
#include "store/schema.h"
#include "support/fault.h"
#include "support/fault_vfs.h"
#include "support/test.h"

#include <sqlite3.h>

enum { BEGIN_MS = 1000000000, LIST_MAX = 10, POINTS_MAX = 100000 };

/* The jobs of the data folder that every call finds. */
enum { HELD = 1, BLOCKED, QUEUED, DUE, FAILED, OLD, CRASHED, CRASHED_TOO_OFTEN, NEW, WORKER, DEAD_WORKER };

static qr_uuid id_of(int number)
{
    qr_uuid id;
    memset(id.bytes, number * 0x11, sizeof id.bytes);
    return id;
}

/* ---- what there is at first ---- */

static qr_rc add_job(struct qr_tx *tx, int number, struct qr_job_spec spec, qr_err *err)
{
    qr_uuid id;
    spec.queue = QR_QUEUE_CONVERT;
    spec.type = "work";
    spec.args = QR_STR("{\"n\":[1,2,3]}");
    return qr_jobs_add(tx, id_of(number), &spec, &id, NULL, err);
}

static qr_rc claim_job(struct qr_tx *tx, int worker, struct qr_job *ret_job, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_uuid ring = {0};
    qr_arena_init(&arena, 0);
    struct qr_job_claim claim = {.worker_id = id_of(worker),
                                 .queue = QR_QUEUE_CONVERT,
                                 .ring = &ring,
                                 .arena = &arena,
                                 .jobs = ret_job,
                                 .limit = 1};
    QR_TRY(qr_jobs_claim(tx, &claim, err));
    QR_CHECK_INT(1, claim.count);
    return QR_OK;
}

static qr_rc add_ended(struct qr_tx *tx, qr_err *err)
{
    static const struct qr_job_release retry = {
        .outcome = "retried", .code = "timeout", .message = "too slow", .counts_attempt = true};
    struct qr_job job;
    QR_TRY(add_job(tx, FAILED, (struct qr_job_spec){.idempotency_key = QR_STR("failed")}, err));
    QR_TRY(claim_job(tx, WORKER, &job, err));
    QR_TRY(qr_jobs_release(tx, job.id, job.fence, &retry, err));
    QR_TRY(claim_job(tx, WORKER, &job, err));
    QR_TRY(qr_jobs_finish(tx, &job, &(struct qr_job_end){QR_JOB_FAILED, "corrupt", "it cannot be read"}, err));
    QR_TRY(add_job(tx, OLD, (struct qr_job_spec){0}, err));
    QR_TRY(claim_job(tx, WORKER, &job, err));
    return qr_jobs_finish(tx, &job, &(struct qr_job_end){QR_JOB_COMPLETED, "", ""}, err);
}

static qr_rc add_crashed(struct qr_tx *tx, qr_err *err)
{
    struct qr_job job;
    int64_t count;
    for (int number = CRASHED; number <= CRASHED_TOO_OFTEN; number++) {
        QR_TRY(add_job(tx, number, (struct qr_job_spec){0}, err));
        QR_TRY(claim_job(tx, DEAD_WORKER, &job, err));
    }
    const qr_uuid id = id_of(CRASHED_TOO_OFTEN);
    QR_TRY(qr_tx_exec(tx, "UPDATE job SET crashes = ?2 WHERE id = ?1",
                      QR_VALS(qr_val_blob(id.bytes, QR_UUID_BYTES), qr_val_i64(QR_JOB_CRASHES_MAX - 1)), NULL, err));
    return qr_workers_declare_dead(tx, true, id_of(WORKER), &count, err);
}

static qr_rc add_all(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    struct qr_job held;
    QR_TRY(qr_worker_register(tx, id_of(WORKER), "worker", err));
    QR_TRY(qr_worker_register(tx, id_of(DEAD_WORKER), "dead", err));
    QR_TRY(add_ended(tx, err));
    QR_TRY(add_crashed(tx, err));
    QR_TRY(add_job(tx, HELD, (struct qr_job_spec){.serial_key = QR_STR("serial"), .time_limit_ms = 1000}, err));
    QR_TRY(claim_job(tx, WORKER, &held, err));
    QR_CHECK_INT(1, held.fence);
    QR_TRY(add_job(tx, BLOCKED, (struct qr_job_spec){.serial_key = QR_STR("serial")}, err));
    QR_TRY(add_job(tx, QUEUED, (struct qr_job_spec){.idempotency_key = QR_STR("queued")}, err));
    return add_job(tx, DUE, (struct qr_job_spec){.run_at_ms = BEGIN_MS + 1}, err);
}

/* ---- one call ---- */

struct run {
    struct quire *quire; /* of a request */
    struct qr_db *db;    /* of a function of the store */
    struct qr_arena arena;
    /* what it answered, as far as it answers that */
    qr_uuid id;
    bool flag;
    int64_t count, next_ms;
    struct qr_job room[LIST_MAX], *jobs;
    size_t job_count;
    struct qr_job_attempt *attempts;
    size_t attempt_count;
    struct qr_reply reply;
};

static struct qr_job_spec spec_of_new(void)
{
    return (struct qr_job_spec){.queue = QR_QUEUE_EMBED, .type = "new", .args = QR_STR("{\"n\":9}")};
}

static qr_rc call_add(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    struct qr_job_spec spec = spec_of_new();
    spec.idempotency_key = QR_STR("new");
    spec.serial_key = QR_STR("serial");
    return qr_jobs_add(tx, id_of(NEW), &spec, &run->id, &run->flag, err);
}

static qr_rc call_add_existing(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    struct qr_job_spec spec = spec_of_new();
    spec.idempotency_key = QR_STR("queued");
    return qr_jobs_add(tx, id_of(NEW), &spec, &run->id, &run->flag, err);
}

static qr_rc call_add_again(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    return qr_jobs_add_again(tx, id_of(FAILED), id_of(NEW), &run->id, &run->flag, err);
}

static qr_rc call_promote_due(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    return qr_jobs_promote_due(tx, &run->count, &run->next_ms, err);
}

static qr_rc call_claim(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    run->id = (qr_uuid){0};
    struct qr_job_claim claim = {.worker_id = id_of(WORKER),
                                 .queue = QR_QUEUE_CONVERT,
                                 .ring = &run->id,
                                 .arena = &run->arena,
                                 .jobs = run->room,
                                 .limit = LIST_MAX};
    struct qr_queue_offer offers[QR_QUEUE_END];
    QR_TRY(qr_worker_require_lease(tx, claim.worker_id, err));
    QR_TRY(qr_jobs_offered(tx, offers, err));
    QR_CHECK(offers[QR_QUEUE_CONVERT].any);
    QR_TRY(qr_jobs_claim(tx, &claim, err));
    run->jobs = run->room;
    run->job_count = claim.count;
    return QR_OK;
}

static qr_rc call_finish(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    QR_TRY(qr_jobs_find(tx, id_of(HELD), &run->arena, &run->flag, &run->room[0], err));
    return qr_jobs_finish(tx, &run->room[0], &(struct qr_job_end){QR_JOB_COMPLETED, "", ""}, err);
}

static qr_rc call_release(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    static const struct qr_job_release release = {
        .outcome = "retried", .code = "timeout", .message = "too slow", .delay_ms = 1000, .counts_attempt = true};
    return qr_jobs_release(tx, id_of(HELD), 1, &release, err);
}

static qr_rc call_cancel(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    enum qr_job_state state = 0;
    const qr_rc rc = qr_jobs_cancel(tx, id_of(HELD), "cancelled", "by a test", &state, err);
    run->count = state;
    return rc;
}

static qr_rc call_prune(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    return qr_jobs_prune(tx, BEGIN_MS + 1, &run->count, err);
}

static qr_rc call_free_jobs(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    return qr_workers_free_jobs(tx, &run->count, err);
}

static qr_rc call_list(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    const struct qr_job_filter filter = {.queue = QR_QUEUE_CONVERT, .type = "work", .limit = LIST_MAX};
    return qr_jobs_list(tx, &filter, &run->arena, &run->jobs, &run->job_count, &run->id, err);
}

static qr_rc call_find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    QR_TRY(qr_jobs_find_prefix(tx, QR_STR("55"), &run->id, err));
    QR_TRY(qr_jobs_find(tx, run->id, &run->arena, &run->flag, &run->room[0], err));
    run->jobs = run->room;
    run->job_count = 1;
    return QR_OK;
}

static qr_rc call_attempts(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run *run = arg;
    return qr_jobs_attempts(tx, id_of(FAILED), &run->arena, &run->attempts, &run->attempt_count, err);
}

/* Either a function of the store or a request. */
struct call {
    const char *name;
    qr_tx_fn *write, *read;
    const char *method, *target;
};

static const struct call store_calls[] = {
    {"add", .write = call_add},
    {"add an existing one", .write = call_add_existing},
    {"add again", .write = call_add_again},
    {"promote due", .write = call_promote_due},
    {"claim", .write = call_claim},
    {"finish", .write = call_finish},
    {"release", .write = call_release},
    {"cancel", .write = call_cancel},
    {"prune", .write = call_prune},
    {"free jobs", .write = call_free_jobs},
    {"list", .read = call_list},
    {"find", .read = call_find},
    {"attempts", .read = call_attempts},
};

#define JOB "/api/v1/jobs/"
static const struct call requests[] = {
    {"GET jobs", .method = "GET", .target = "/api/v1/jobs?limit=3&queue=convert&type=w%6Frk"},
    {"GET a running job", .method = "GET", .target = JOB "11"},
    {"GET a blocked job", .method = "GET", .target = JOB "22"},
    {"GET a queued job", .method = "GET", .target = JOB "33"},
    {"GET a failed job", .method = "GET", .target = JOB "55"},
    {"GET no job", .method = "GET", .target = JOB "ff"},
    {"POST cancel", .method = "POST", .target = JOB "11/cancel"},
    {"POST retry", .method = "POST", .target = JOB "55/retry"},
    {"GET queues", .method = "GET", .target = "/api/v1/queues"},
    {"POST pause", .method = "POST", .target = "/api/v1/queues/convert/pause"},
    {"POST resume", .method = "POST", .target = "/api/v1/queues/convert/resume"},
};

/* QR_OK, or the rc with `err` set; a request's error is in its reply. */
static qr_rc make_call(const struct call *call, struct run *run, qr_err *err)
{
    if (call->write) {
        return qr_db_write(run->db, QR_DURABLE, call->write, run, err);
    }
    if (call->read) {
        return qr_db_read(run->db, call->read, run, err);
    }
    const struct quire_request request = {.method = call->method, .target = call->target, .is_local_owner = 1};
    qr_router_call(run->quire, &request, &run->reply);
    return QR_OK;
}

/* ---- what is compared, as text; from the system's memory, which is not counted ---- */

static void print_uuid(FILE *out, qr_uuid id)
{
    char text[QR_UUID_TEXT_SIZE];
    qr_uuid_format(id, text);
    fprintf(out, "%s ", text);
}

static char *answer_of(const struct run *run)
{
    char *text = NULL;
    size_t size_bytes;
    FILE *out = open_memstream(&text, &size_bytes);
    print_uuid(out, run->id);
    fprintf(out, "%d %lld %lld\n", run->flag, (long long)run->count, (long long)run->next_ms);
    for (size_t i = 0; i < run->job_count; i++) {
        const struct qr_job *job = &run->jobs[i];
        print_uuid(out, job->id);
        fprintf(out, "%s %s %lld %s %s %s\n", job->type, qr_job_state_name(job->state), (long long)job->fence,
                job->args, job->code, job->message);
    }
    for (size_t i = 0; i < run->attempt_count; i++) {
        const struct qr_job_attempt *attempt = &run->attempts[i];
        fprintf(out, "%lld %s %s %s\n", (long long)attempt->fence, attempt->outcome, attempt->code, attempt->message);
    }
    fprintf(out, "%d ", run->reply.status);
    if (run->reply.body) {
        QR_CHECK_INT(0, json_dumpf(run->reply.body, out, JSON_SORT_KEYS));
    }
    fclose(out);
    return text;
}

static void print_table(FILE *out, sqlite3 *db, const char *table)
{
    char sql[128];
    sqlite3_stmt *stmt;
    snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY 1, 2", table);
    QR_CHECK_INT(SQLITE_OK, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        fprintf(out, "%s:", table);
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            if (sqlite3_column_type(stmt, i) != SQLITE_BLOB) {
                fprintf(out, " %s", (const char *)sqlite3_column_text(stmt, i));
                continue;
            }
            const unsigned char *bytes = sqlite3_column_blob(stmt, i);
            fprintf(out, " %02x%02x%02x", bytes[0], bytes[1], bytes[2]);
        }
        fputc('\n', out);
    }
    QR_CHECK_INT(SQLITE_OK, sqlite3_finalize(stmt));
}

/* All that the database says about jobs, after it was closed. */
static char *state_of(struct qr_test *t)
{
    static const char *const tables[] = {"job", "job_attempt", "worker", "queue_pause"};
    char *text = NULL;
    size_t size_bytes;
    sqlite3 *db;
    FILE *out = open_memstream(&text, &size_bytes);
    QR_CHECK_INT(SQLITE_OK, sqlite3_open(qr_test_path(t, "data/quire.db"), &db));
    for (size_t i = 0; i < QR_COUNT(tables); i++) {
        print_table(out, db, tables[i]);
    }
    QR_CHECK_INT(SQLITE_OK, sqlite3_close(db));
    fclose(out);
    return text;
}

/* ---- the data folder ---- */

static struct qr_io io;
static struct qr_rand_seeded seeded;

static int sync_nothing(const struct qr_io *self QR_UNUSED, int fd QR_UNUSED)
{
    return 0;
}

/* The same ids and times in every run. */
static struct quire *open_data(struct qr_test *t)
{
    const struct qr_config_flag settings[] = {{"--data", QR_STR("data.dir"), qr_str_of(qr_test_path(t, "data"))},
                                              {"--set", QR_STR("database.connections"), QR_STR("1")}};
    qr_rand_seeded_init(&seeded, 1);
    const struct qr_instance_options options = {.settings = settings,
                                                .setting_count = QR_COUNT(settings),
                                                .program = "test",
                                                .io = &io,
                                                .clock = qr_test_clock(BEGIN_MS),
                                                .rand = &seeded.rand};
    struct quire *quire;
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_instance_open(&quire, &options, &err));
    return quire;
}

/* Without the threads of an instance, which cost more than the calls. */
static struct qr_db *open_db(struct qr_test *t)
{
    char url[256];
    snprintf(url, sizeof url, "sqlite:%s", qr_test_path(t, "data/quire.db"));
    const struct qr_db_options options = {.url = url,
                                          .migrations = qr_schema_migrations,
                                          .migration_count = qr_schema_migration_count,
                                          .clock = qr_test_clock(BEGIN_MS),
                                          .single_thread = true,
                                          .io = &io};
    struct qr_db *db;
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    return db;
}

static void close_data(struct run *run)
{
    if (run->quire) {
        qr_instance_close(run->quire);
    } else {
        qr_db_close(run->db);
    }
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 20];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    QR_CHECK(in && out);
    const size_t len = fread(bytes, 1, sizeof bytes, in);
    QR_CHECK(len > 0 && len < sizeof bytes && fwrite(bytes, 1, len, out) == len);
    fclose(in);
    fclose(out);
}

static void prepare(struct qr_test *t)
{
    qr_err err = {0};
    qr_fault_memory_install();
    fault_vfs_register();
    fault_vfs_set_sync((struct fault_sync){.skip = true});
    QR_CHECK_INT(SQLITE_OK, sqlite3_vfs_register(sqlite3_vfs_find("fault"), true));
    io = *qr_io_system();
    io.fsync = sync_nothing;
    struct quire *quire = open_data(t);
    QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_RELAXED, add_all, NULL, &err));
    qr_instance_close(quire);
    copy_file(qr_test_path(t, "data/quire.db"), qr_test_path(t, "template.db"));
}

/* ---- the sweep ---- */

struct expected {
    char *before, *after, *answer;
};

/* A reply has no body where there was no memory even for its error. */
static bool says_out_of_memory(const struct call *call, const char *answer, qr_rc rc, const qr_err *err)
{
    if (!call->method) {
        return rc != QR_OK && err->code == QR_CODE_OUT_OF_MEMORY;
    }
    return strstr(answer, "out_of_memory") || !strchr(answer, '{');
}

static void check_run(const struct call *call, const struct expected *expected, const char *answer, const char *state,
                      qr_rc rc, const qr_err *err)
{
    const bool is_same = rc == QR_OK && strcmp(expected->answer, answer) == 0;
    if (!is_same && !says_out_of_memory(call, answer, rc, err)) {
        QR_FAIL("the answer is neither the usual one nor `out_of_memory`: %d %s\n%s", (int)rc, err->msg, answer);
    }
    QR_CHECK_TEXT(is_same ? expected->after : expected->before, state);
}

/* The call with its n-th allocation failing, 0 = none: then it sets what is expected. False when there were fewer. */
static bool run_failing(struct qr_test *t, const struct call *call, uint64_t n, struct expected *expected)
{
    const int64_t blocks_before = qr_fault_blocks();
    struct run run = {0};
    qr_err err = {0};
    qr_test_set_context("%s, failing allocation no. %llu", call->name, (unsigned long long)n);
    copy_file(qr_test_path(t, "template.db"), qr_test_path(t, "data/quire.db"));
    if (call->method) {
        run.quire = open_data(t);
    } else {
        run.db = open_db(t);
    }
    qr_test_clock_advance(10);
    qr_arena_init(&run.arena, 0);
    qr_fault_arm(QR_FAULT_MEMORY, n);
    const qr_rc rc = make_call(call, &run, &err);
    qr_fault_disarm();
    char *answer = rc == QR_OK ? answer_of(&run) : strdup("");
    json_decref(run.reply.body);
    qr_arena_done(&run.arena);
    close_data(&run);
    char *state = state_of(t);
    if (n == 0) {
        QR_CHECK_RC(QR_OK, rc);
        expected->answer = answer;
        expected->after = state;
    } else {
        check_run(call, expected, answer, state, rc, &err);
        free(answer);
        free(state);
    }
    QR_CHECK_INT(blocks_before, qr_fault_blocks());
    return qr_fault_fired();
}

/* Each allocation in a long test, else every eleventh: most of them are SQLite's and behind one door. */
static uint64_t sweep(struct qr_test *t, const struct call *call)
{
    const uint64_t stride = getenv("QUIRE_TEST_LONG") ? 1 : 11;
    struct expected expected = {0};
    copy_file(qr_test_path(t, "template.db"), qr_test_path(t, "data/quire.db"));
    expected.before = state_of(t);
    run_failing(t, call, 0, &expected);
    uint64_t points = 0;
    while (run_failing(t, call, 1 + points * stride, &expected)) {
        points++;
        QR_CHECK(points < POINTS_MAX);
    }
    free(expected.before);
    free(expected.after);
    free(expected.answer);
    QR_CHECK(points > 0);
    return points;
}

static void sweep_all(struct qr_test *t, const struct call *calls, size_t count)
{
    uint64_t points = 0;
    prepare(t);
    for (size_t i = 0; i < count; i++) {
        points += sweep(t, &calls[i]);
    }
    qr_test_set_context("%s", "");
    printf("     failed %llu allocations in turn, in %zu calls\n", (unsigned long long)points, count);
}

QR_TEST_WITH_TIMEOUT(a_failing_allocation_in_the_store_of_jobs_changes_nothing_or_is_not_noticed, 300) /* DB-2 J1 */
{
    sweep_all(t, store_calls, QR_COUNT(store_calls));
}

QR_TEST_WITH_TIMEOUT(a_failing_allocation_in_a_route_of_jobs_changes_nothing_or_is_not_noticed, 300)
{
    sweep_all(t, requests, QR_COUNT(requests));
}
