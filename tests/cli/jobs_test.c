/* `quire jobs`, as a user runs it, over a data folder that the test has filled. */
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "store/jobs.h"
#include "store/schema.h"
#include "support/test.h"

#include <sys/stat.h>

/* ---- the program ---- */

enum { ARGS_MAX = 16 };

static char out[65536], errors[8192];

static void keep(const struct qr_buf *from, char *ret_text, size_t size)
{
    QR_CHECK(from->len < size);
    memcpy(ret_text, qr_buf_str(from).ptr, from->len);
    ret_text[from->len] = '\0';
}

/* Runs `quire --data DIR/data jobs …`; leaves what it printed in `out` and `errors`. Returns the exit code. */
static int run(struct qr_test *t, const char *const *args)
{
    char home[256], data[256];
    snprintf(home, sizeof home, "HOME=%s", t->dir);
    snprintf(data, sizeof data, "%s/data", t->dir);
    const char *argv[ARGS_MAX + 5] = {QUIRE_BINARY_DIR "/quire", "--data", data, "jobs"};
    const char *env[] = {home, "PATH=/usr/bin:/bin", NULL};
    for (size_t i = 0; args[i]; i++) {
        QR_CHECK(i < ARGS_MAX);
        argv[i + 4] = args[i];
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf out_buf = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf err_buf = {0};
    const struct qr_proc_options options = {
        .argv = argv, .env = env, .dir = t->dir, .output_bytes_max = sizeof out - 1, .timeout_ms = 30000};
    struct qr_proc_result result;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out_buf, &err_buf, &result, &err));
    keep(&out_buf, out, sizeof out);
    keep(&err_buf, errors, sizeof errors);
    return result.exit_code;
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *run_ok(struct qr_test *t, const char *const *args)
{
    const int exit_code = run(t, args);
    if (exit_code != 0) {
        QR_FAIL("exit code %d: %s%s", exit_code, out, errors);
    }
    return out;
}

static void check_refused(struct qr_test *t, const char *const *args, qr_code code, const char *says)
{
    QR_CHECK_INT(qr_code_info(code)->exit_code, run(t, args));
    QR_CHECK_TEXT("", out);
    QR_CHECK_HAS(says, errors);
    QR_CHECK_HAS(qr_code_info(code)->name, errors);
}

/* ---- the data folder ---- */

enum { ID_SIZE = QR_UUID_TEXT_SIZE };

struct world {
    struct qr_db *db;
    struct qr_uuid_gen ids;
};

static struct world open_world(struct qr_test *t)
{
    struct world world;
    char url[256];
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "data"), 0700, &err));
    snprintf(url, sizeof url, "sqlite:%s/data/quire.db", t->dir);
    const struct qr_db_options options = {
        .url = url, .migrations = qr_schema_migrations, .migration_count = qr_schema_migration_count};
    QR_CHECK_RC(QR_OK, qr_db_open(&world.db, &options, &err));
    qr_uuid_gen_init(&world.ids, qr_clock_system(), qr_rand_system());
    return world;
}

static void close_world(struct world *world)
{
    qr_db_close(world->db);
    qr_uuid_gen_done(&world->ids);
}

struct adding {
    qr_uuid id;
    struct qr_job_spec spec;
};

static qr_rc add_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct adding *adding = arg;
    qr_uuid id;
    return qr_jobs_add(tx, adding->id, &adding->spec, &id, NULL, err);
}

static void add(struct world *world, struct qr_job_spec spec, char ret_id[static ID_SIZE])
{
    struct adding adding = {.id = qr_uuid_next(&world->ids), .spec = spec};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(world->db, QR_DURABLE, add_in_tx, &adding, &err));
    qr_uuid_format(adding.id, ret_id);
}

/* Claims what is queued for a worker, and lets the one job end as `release` or `state` says. */
struct running {
    qr_uuid worker_id;
    enum qr_queue queue;
    const struct qr_job_release *release;
    enum qr_job_state state; /* 0 = it goes on */
    const char *code, *message;
    int64_t progress;
};

static qr_rc run_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct running *running = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_job job;
    qr_uuid ring = {0};
    qr_arena_init(&arena, 0);
    QR_TRY(qr_worker_register(tx, running->worker_id, "somewhere, pid 7", err));
    struct qr_job_claim claim = {.worker_id = running->worker_id,
                                 .queue = running->queue,
                                 .ring = &ring,
                                 .arena = &arena,
                                 .jobs = &job,
                                 .limit = 1};
    QR_TRY(qr_jobs_claim(tx, &claim, err));
    QR_CHECK_INT(1, claim.count);
    if (running->progress) {
        QR_TRY(qr_jobs_set_progress(tx, job.id, job.fence, running->progress, 40, err));
    }
    if (running->release) {
        QR_TRY(qr_jobs_release(tx, job.id, job.fence, running->release, err));
    }
    const struct qr_job_end end = {.state = running->state, .code = running->code, .message = running->message};
    return running->state ? qr_jobs_finish(tx, &job, &end, err) : QR_OK;
}

static void run_job(struct world *world, struct running running)
{
    qr_err err;
    running.worker_id = qr_uuid_next(&world->ids);
    QR_CHECK_RC(QR_OK, qr_db_write(world->db, QR_DURABLE, run_in_tx, &running, &err));
}

/* ---- lists ---- */

/* The same second whenever it is asked for in a test. */
static int64_t tomorrow_ms(void)
{
    static int64_t ms;
    ms = ms ? ms : qr_clock_wall_ms(qr_clock_system()) / 1000 * 1000 + 86400000;
    return ms;
}

static const char *tomorrow_text(void)
{
    static char text[QR_TIME_TEXT_SIZE];
    qr_time_format(tomorrow_ms(), text);
    text[strlen("2100-01-01")] = ' ';
    text[strlen("2100-01-01 00:00:00")] = '\0';
    return text;
}

QR_TEST(jobs_are_listed_newest_first_and_filtered)
{
    char until[64];
    char converted[ID_SIZE], failed[ID_SIZE], later[ID_SIZE];
    struct world world = open_world(t);
    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_EMBED, .type = "index-chunks"}, failed);
    run_job(&world,
            (struct running){
                .queue = QR_QUEUE_EMBED, .state = QR_JOB_FAILED, .code = "invalid_value", .message = "no such model"});
    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "process-document"}, converted);
    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "chunk-document", .run_at_ms = tomorrow_ms()},
        later);
    close_world(&world);

    const char *text = run_ok(t, ARGS("ls"));
    QR_CHECK(qr_str_starts_with(qr_str_of(text), QR_STR("JOB  ")));
    QR_CHECK(strstr(text, later) < strstr(text, converted) && strstr(text, converted) < strstr(text, failed));
    snprintf(until, sizeof until, "until %s", tomorrow_text());
    QR_CHECK_HAS(until, text);
    QR_CHECK_HAS("invalid_value", text);

    QR_CHECK_HAS(failed, run_ok(t, ARGS("ls", "--state", "failed")));
    QR_CHECK(!strstr(out, converted));
    QR_CHECK_HAS(later, run_ok(t, ARGS("ls", "--queue=convert", "--type", "chunk-document")));
    QR_CHECK(!strstr(out, converted));
    QR_CHECK_TEXT("no jobs\n", run_ok(t, ARGS("ls", "--type", "a&state=b %")));
    QR_CHECK_TEXT("no jobs\n", run_ok(t, ARGS("ls", "--base", failed)));
    QR_CHECK_TEXT("{\"data\":[],\"next_cursor\":null}\n", run_ok(t, ARGS("ls", "--item", failed, "--json")));
    check_refused(t, ARGS("ls", "--state", "broken"), QR_CODE_INVALID_VALUE, "state is one of blocked");
    check_refused(t, ARGS("ls", "--limit", "201"), QR_CODE_INVALID_VALUE, "from 1 to 200");
    check_refused(t, ARGS("ls", "--cursor", "x"), QR_CODE_INVALID_VALUE, "cursor is not one that a list has answered with");
}

QR_TEST(pages_of_a_list_follow_the_cursor)
{
    char ids[5][ID_SIZE], line[128];
    struct world world = open_world(t);
    for (size_t i = 0; i < QR_COUNT(ids); i++) {
        add(&world, (struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "test"}, ids[i]);
    }
    close_world(&world);
    const char *text = run_ok(t, ARGS("ls", "--limit", "2"));
    QR_CHECK(strstr(text, ids[4]) && strstr(text, ids[3]) && !strstr(text, ids[2]));
    snprintf(line, sizeof line, "there are more: --cursor %s\n", ids[3]);
    QR_CHECK_HAS(line, text);
    text = run_ok(t, ARGS("ls", "--limit", "3", "--cursor", ids[3]));
    QR_CHECK(!strstr(text, ids[3]) && strstr(text, ids[2]) && strstr(text, ids[0]));
    QR_CHECK(!strstr(text, "there are more"));
}

/* ---- why it waits ---- */

static void check_why(struct qr_test *t, const char *id, const char *sentence, const char *reason)
{
    char expected[64];
    QR_CHECK(qr_str_starts_with(qr_str_of(run_ok(t, ARGS("show", id))), qr_str_of(sentence)));
    snprintf(expected, sizeof expected, "\"waiting\":{\"reason\":\"%s\"", reason);
    QR_CHECK_HAS(expected, run_ok(t, ARGS("show", id, "--json")));
}

QR_TEST(show_says_why_a_job_waits)
{
    char until[128];
    char holder[ID_SIZE], blocked[ID_SIZE], planned[ID_SIZE], retried[ID_SIZE], snoozed[ID_SIZE], expected[256];
    const struct qr_job_spec serial = {.queue = QR_QUEUE_DELETE, .type = "delete-base", .serial_key = QR_STR("base")};
    struct world world = open_world(t);
    add(&world, serial, holder);
    add(&world, serial, blocked);
    check_why(t, holder, "It waits for a process that runs jobs: none is there.\n", "no_worker");
    snprintf(expected, sizeof expected, "It waits for job %s (queued), which goes first", holder);
    check_why(t, blocked, expected, "blocked");

    run_job(&world, (struct running){.queue = QR_QUEUE_DELETE, .progress = 12});
    check_why(t, holder, "It is running since 20", "running");
    QR_CHECK_HAS(", 12 of 40 done; worker \"somewhere, pid 7\" holds it, lease until 20",
                 run_ok(t, ARGS("show", holder)));

    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_EXPAND, .type = "prepare-root", .run_at_ms = tomorrow_ms()},
        planned);
    snprintf(until, sizeof until, "It waits until %s UTC: it was added for that time.\n", tomorrow_text());
    check_why(t, planned, until, "scheduled");

    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_EMBED, .type = "index-chunks"}, retried);
    run_job(&world, (struct running){.queue = QR_QUEUE_EMBED,
                                     .release = &(struct qr_job_release){.outcome = "retried",
                                                                         .code = "unavailable",
                                                                         .message = "the \033[31mmodel\nis away",
                                                                         .delay_ms = 3600000,
                                                                         .counts_attempt = true}});
    check_why(t, retried, "It waits until 20", "scheduled");
    QR_CHECK_HAS("tried again, because the last attempt failed: the ?[31mmodel?is away (unavailable).\n",
                 run_ok(t, ARGS("show", retried)));
    QR_CHECK_HAS("\nattempts   1 failed, 0 crashed\n", out);
    QR_CHECK_HAS("  retried: the ?[31mmodel?is away (unavailable)\n", out);
    QR_CHECK(!strchr(out, '\033'));

    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_ASSETS, .type = "analyze-asset"}, snoozed);
    run_job(&world, (struct running){
                        .queue = QR_QUEUE_ASSETS,
                        .release = &(struct qr_job_release){
                            .outcome = "snoozed", .code = "", .message = "too many at once", .delay_ms = 3600000}});
    check_why(t, snoozed, "It waits until 20", "scheduled");
    QR_CHECK_HAS(" UTC, because it put itself off: too many at once.\n", run_ok(t, ARGS("show", snoozed)));
    close_world(&world);
}

/* C1 controls, and those that turn the direction of text; \u00a0 and \u00e9 are neither. */
#define HOSTILE   "a\302\200b\302\23331mc\302\205d\u202ee\u202af\u2066g\u2069h\x7fi\u00a0\u00e9"
#define HARMLESS  "a?b?31mc?d?e?f?g?h?i\u00a0\u00e9"
#define NO_RAW(t) QR_CHECK(!strstr((t), "\302\233") && !strstr((t), "\u202e") && !strstr((t), "\u2066"))

QR_TEST(characters_that_turn_text_or_move_the_cursor_are_not_printed)
{
    char retried[ID_SIZE], failed[ID_SIZE];
    struct world world = open_world(t);
    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_EMBED, .type = "index-chunks"}, retried);
    run_job(&world, (struct running){
                        .queue = QR_QUEUE_EMBED,
                        .release = &(struct qr_job_release){
                            .outcome = "retried", .code = "unavailable", .message = HOSTILE, .delay_ms = 3600000}});
    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "t\u202et"}, failed);
    run_job(&world, (struct running){
                        .queue = QR_QUEUE_CONVERT, .state = QR_JOB_FAILED, .code = "c\302\233c", .message = HOSTILE});
    close_world(&world);

    QR_CHECK_HAS("because the last attempt failed: " HARMLESS " (unavailable)", run_ok(t, ARGS("show", retried)));
    QR_CHECK_HAS("  retried: " HARMLESS " (unavailable)\n", out);
    NO_RAW(out);
    QR_CHECK_HAS(HARMLESS " (c?c)", run_ok(t, ARGS("show", failed)));
    NO_RAW(out);
    QR_CHECK_HAS("t?t", run_ok(t, ARGS("ls")));
    QR_CHECK_HAS("c?c", out);
    NO_RAW(out);
}

QR_TEST(show_says_when_a_job_is_due_and_when_its_queue_is_paused)
{
    char running[ID_SIZE], due[ID_SIZE], other[ID_SIZE];
    const struct qr_job_spec spec = {.queue = QR_QUEUE_CONVERT, .type = "process-document"};
    struct world world = open_world(t);
    add(&world, spec, running);
    run_job(&world, (struct running){.queue = QR_QUEUE_CONVERT});
    add(&world, spec, due);
    add(&world, spec, other);
    close_world(&world);
    check_why(t, due, "It is due since 20", "due");
    QR_CHECK_HAS("waits for its turn: 1 other job is queued in convert.\n", run_ok(t, ARGS("show", due)));

    QR_CHECK_HAS("convert is paused since 20", run_ok(t, ARGS("pause", "convert")));
    check_why(t, due, "It waits because the queue convert is paused since 20", "queue_paused");
    QR_CHECK_HAS("`quire jobs resume convert`", run_ok(t, ARGS("show", due)));
    QR_CHECK_HAS("\nconvert          0          0          2          1          0  20", run_ok(t, ARGS("queues")));
    QR_CHECK_TEXT("convert is not paused\n", run_ok(t, ARGS("resume", "convert")));
    check_why(t, due, "It is due since 20", "due");
    QR_CHECK_HAS("{\"name\":\"convert\",\"paused_since\":null,\"counts\":{\"blocked\":0,\"scheduled\":0,\"queued\":2,",
                 run_ok(t, ARGS("queues", "--json")));
    check_refused(t, ARGS("pause", "lunch"), QR_CODE_NOT_FOUND, "there is no such queue");
}

/* ---- cancel and retry ---- */

QR_TEST(open_job_is_cancelled_and_an_ended_one_is_not)
{
    char id[ID_SIZE], expected[128];
    struct world world = open_world(t);
    add(&world, (struct qr_job_spec){.queue = QR_QUEUE_CONVERT, .type = "test"}, id);
    close_world(&world);
    snprintf(expected, sizeof expected, "cancelled %s\n", id);
    QR_CHECK_TEXT(expected, run_ok(t, ARGS("cancel", id)));
    QR_CHECK(qr_str_starts_with(qr_str_of(run_ok(t, ARGS("show", id))), QR_STR("It has ended: cancelled at 20")));
    check_refused(t, ARGS("cancel", id), QR_CODE_NOT_OPEN, "the job is cancelled: only an open one is cancelled");
    check_refused(t, ARGS("cancel", "ffffffff"), QR_CODE_NOT_FOUND, "there is no job ffffffff");
}

QR_TEST(failed_job_is_added_again)
{
    char id[ID_SIZE], text[128];
    struct world world = open_world(t);
    add(&world,
        (struct qr_job_spec){.queue = QR_QUEUE_EMBED, .type = "index-chunks", .args = QR_STR("{\"dimension\":7}")}, id);
    check_refused(t, ARGS("retry", id), QR_CODE_NOT_TERMINAL, "the job is queued: it has not ended yet");
    run_job(&world,
            (struct running){.queue = QR_QUEUE_EMBED, .state = QR_JOB_FAILED, .code = "internal", .message = ""});
    close_world(&world);
    snprintf(text, sizeof text, "`quire jobs retry %s` tries it again.\n", id);
    QR_CHECK_HAS(text, run_ok(t, ARGS("show", id)));
    QR_CHECK_HAS(", queued\n", run_ok(t, ARGS("retry", id)));
    QR_CHECK_HAS("\"state\":\"queued\"", run_ok(t, ARGS("ls", "--state", "queued", "--json")));
    QR_CHECK_HAS("\"type\":\"index-chunks\"", out);
    char new_id[ID_SIZE];
    snprintf(new_id, sizeof new_id, "%.36s", strstr(out, "\"id\":\"") + strlen("\"id\":\""));
    QR_CHECK(strcmp(new_id, id) != 0);
    QR_CHECK_HAS("\nargs       {\"dimension\":7}\n", run_ok(t, ARGS("show", new_id)));
    check_refused(t, ARGS("retry", new_id), QR_CODE_NOT_TERMINAL, "the job is queued");
}

/* ---- the command line ---- */

QR_TEST(wrong_use_of_jobs_is_a_usage_error)
{
    QR_CHECK_INT(2, run(t, (const char *const[]){NULL}));
    QR_CHECK_HAS("say what to do: quire jobs ls", errors);
    check_refused(t, ARGS("shw", "x"), QR_CODE_USAGE, "quire jobs has no shw; did you mean show?");
    check_refused(t, ARGS("show"), QR_CODE_USAGE, "say which one: quire jobs show JOB");
    check_refused(t, ARGS("ls", "x"), QR_CODE_USAGE, "x is one argument too many");
    check_refused(t, ARGS("show", "x", "--state", "failed"), QR_CODE_USAGE, "the options of quire jobs are for ls");
    check_refused(t, ARGS("show", "x/y"), QR_CODE_NOT_FOUND, "there is no job");
    QR_CHECK_INT(4, run(t, ARGS("show", "x", "--json")));
    QR_CHECK_HAS("{\"error\":{\"code\":\"not_found\"", out);
    QR_CHECK_TEXT("", errors);
}
