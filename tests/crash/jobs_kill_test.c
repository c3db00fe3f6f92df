/* The process that runs jobs dies at every failpoint, sleeps past its lease, or finds its clock moved, on both databases. An
 * oracle in the parent keeps what was acknowledged: once the queue is drained, every job has taken effect exactly once (I5,
 * I9), and so has every slot of periodic work (B1). `job_demo` shows the same to people. */
#include "base/failpoint.h"
#include "base/proc.h"
#include "store/jobs.h"
#include "support/db_fixture.h"
#include "support/job_ledger.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { EXIT_CRASHED = 99 /* of a failpoint's `crash` */, STEP_JOBS = 60, SLOTS = 4, HANDLER_US = 1000, BEAT_MS = 2 };

static struct job_ledger ledger;

/* ---- one process after the other ---- */

/* Lets a process live; it is killed when that many jobs are done (0 = never). How it ended: the exit code, or minus the
 * signal. */
static int live(struct job_ledger_plan plan, int64_t kill_at)
{
    struct job_ledger_state state = {0};
    struct child child;
    bool killed = false;
    plan.slots = SLOTS;
    plan.handler_us = HANDLER_US;
    plan.name = "test";
    job_ledger_start(&child, &plan);
    while (job_ledger_listen(&child, &ledger, &state)) {
        if (kill_at && state.done >= kill_at && !killed) {
            kill(child.pid, SIGKILL);
            killed = true;
        }
    }
    return child_wait(&child);
}

/* A predecessor is killed in the middle and leaves jobs to be freed; the next one dies at the failpoint; the third drains.
 * *job_count is how many jobs there are before and afterwards. */
static void die_at(const char *url, const char *failpoint, int64_t *job_count)
{
    const int64_t before = *job_count;
    struct job_ledger_plan plan = {.url = url, .job_count = before + STEP_JOBS, .beat_ms = BEAT_MS};
    /* where the machine is slow to kill it, it has ended by itself: then there is no predecessor, which is fine too */
    const int predecessor = live(plan, before + STEP_JOBS / 4);
    QR_CHECK(predecessor == -SIGKILL || predecessor == 0);
    plan.job_count += STEP_JOBS;
    plan.failpoint = failpoint;
    const int end = live(plan, 0);
    if (end == 0) {
        QR_FAIL("%s was never hit", failpoint);
    }
    QR_CHECK_INT(EXIT_CRASHED, end);
    plan.failpoint = NULL;
    QR_CHECK_INT(0, live(plan, 0));
    *job_count = plan.job_count;
}

static struct job_ledger_verdict check_once_each(const char *url, int64_t job_count)
{
    struct job_ledger_verdict verdict;
    qr_err err;
    QR_CHECK_RC(QR_OK, job_ledger_judge(url, &ledger, &verdict, &err));
    QR_CHECK_INT(0, verdict.lost);
    QR_CHECK_INT(0, verdict.twice);
    QR_CHECK_INT(job_count, verdict.jobs);
    QR_CHECK_INT(job_count, verdict.completed);
    QR_CHECK_INT(0, verdict.slots_wrong);
    return verdict;
}

/* ---- failpoints ---- */

/* The others are workflow_kill_test.c's. */
static bool is_ours(qr_str name)
{
    static const char *const prefixes[] = {"jobs.", "beat.", "db."};
    bool is_one = false;
    for (size_t i = 0; i < QR_COUNT(prefixes); i++) {
        is_one = is_one || qr_str_starts_with(name, qr_str_of(prefixes[i]));
    }
    return is_one;
}

QR_DB_TEST_WITH_TIMEOUT(jobs_take_effect_once_though_the_process_dies_at_every_failpoint, 240)
{
    static const int hits[] = {1, 3}; /* a round records many: few rounds may do */
    const struct qr_db_options options = qr_test_db_options(t, NULL, 0);
    int64_t job_count = 0, slot_count = 0, crash_count = 0;
    const char *name;
    QR_CHECK(qr_failpoints_built_in());
    for (size_t i = 0; (name = qr_failpoint_name(i)); i++) {
        for (size_t k = 0; is_ours(qr_str_of(name)) && k < QR_COUNT(hits); k++) {
            char failpoint[128];
            snprintf(failpoint, sizeof failpoint, "%s=crash@%d", name, hits[k]);
            qr_test_set_context("%s", failpoint);
            die_at(options.url, failpoint, &job_count);
            slot_count = check_once_each(options.url, job_count).slots;
            crash_count++;
        }
    }
    qr_test_set_context("%s", "");
    QR_CHECK(crash_count >= 14 && slot_count >= crash_count);
    printf("%lld crashes, %lld jobs and %lld slots of periodic work, each once\n", (long long)crash_count,
           (long long)job_count, (long long)slot_count);
}

/* The write has happened, and the writer is told that it failed. */
QR_DB_TEST_WITH_TIMEOUT(lost_answers_lose_and_repeat_no_job, 120)
{
    static const int hits[] = {4, 9, 15, 22};
    const struct qr_db_options options = qr_test_db_options(t, NULL, 0);
    struct job_ledger_plan plan = {.url = options.url};
    for (size_t i = 0; i < QR_COUNT(hits); i++) {
        char failpoint[128];
        snprintf(failpoint, sizeof failpoint, "db.write.after_commit=error@%d", hits[i]);
        plan.failpoint = failpoint;
        plan.job_count += STEP_JOBS;
        QR_CHECK_INT(0, live(plan, 0));
        check_once_each(options.url, plan.job_count);
    }
}

QR_TEST(every_failpoint_of_jobs_that_the_program_lists_is_known_here)
{
    const char *const argv[] = {QUIRE_BINARY_DIR "/quire", "config", "--failpoints", NULL};
    const struct qr_proc_options options = {.argv = argv, .output_bytes_max = 65536, .timeout_ms = 30000};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_proc_result result;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out, NULL, &result, &err));
    QR_CHECK_INT(0, result.exit_code);
    for (qr_str lines = qr_buf_str(&out); lines.len;) {
        const qr_str line = qr_str_split(&lines, '\n');
        bool is_known = !is_ours(line);
        const char *name;
        for (size_t i = 0; (name = qr_failpoint_name(i)); i++) {
            is_known = is_known || qr_str_equal(qr_str_of(name), line);
        }
        if (!is_known) {
            QR_FAIL("%.*s is not linked into this test", QR_STR_ARG(line));
        }
    }
}

/* ---- a clock that the parent moves for all processes ---- */

struct shared_clock {
    struct qr_clock clock;
    atomic_int_least64_t wall_ms, mono_ms; /* ahead of the system's */
};

static int64_t shared_wall_ms(const struct qr_clock *clock)
{
    return qr_clock_wall_ms(qr_clock_system()) +
           atomic_load(&QR_CONTAINER_OF(clock, struct shared_clock, clock)->wall_ms);
}

static int64_t shared_mono_ms(const struct qr_clock *clock)
{
    return qr_clock_mono_ms(qr_clock_system()) +
           atomic_load(&QR_CONTAINER_OF(clock, struct shared_clock, clock)->mono_ms);
}

static struct shared_clock *share_clock(void)
{
    struct shared_clock *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    QR_CHECK(shared != MAP_FAILED);
    shared->clock = (struct qr_clock){shared_wall_ms, shared_mono_ms};
    return shared;
}

static void pass_lease(struct shared_clock *shared)
{
    atomic_fetch_add(&shared->wall_ms, QR_WORKER_LEASE_MS + 1000);
    atomic_fetch_add(&shared->mono_ms, QR_WORKER_LEASE_MS + 1000);
}

/* Stops it, and returns when it has stopped. */
static void stop_process(const struct child *child)
{
    int status;
    QR_CHECK(kill(child->pid, SIGSTOP) == 0);
    QR_CHECK(waitpid(child->pid, &status, WUNTRACED) == child->pid && WIFSTOPPED(status));
}

static void listen_until_done(struct child *child, int64_t done)
{
    struct job_ledger_state state = {0};
    while (state.done < done) {
        QR_CHECK(job_ledger_listen(child, &ledger, &state));
    }
}

static int listen_to_the_end(struct child *child)
{
    struct job_ledger_state state;
    while (job_ledger_listen(child, &ledger, &state)) {
    }
    return child_wait(child);
}

QR_DB_TEST(zombie_that_wakes_after_its_lease_changes_nothing) /* I2, I9 */
{
    const struct qr_db_options options = qr_test_db_options(t, NULL, 0);
    struct shared_clock *shared = share_clock();
    struct job_ledger_plan plan = {.url = options.url,
                                   .job_count = SLOTS,
                                   .handler_us = 1000000,
                                   .slots = SLOTS,
                                   .name = "zombie",
                                   .has_others = true,
                                   .clock = &shared->clock};
    struct job_ledger_state state = {0};
    struct child zombie;
    job_ledger_start(&zombie, &plan);
    while (state.running < SLOTS) { /* then all are in their handlers, and no transaction is open */
        QR_CHECK(job_ledger_listen(&zombie, &ledger, &state));
    }
    stop_process(&zombie);
    pass_lease(shared);
    struct job_ledger_plan other = plan;
    other.handler_us = HANDLER_US;
    other.name = "other";
    struct child child;
    job_ledger_start(&child, &other);
    QR_CHECK_INT(0, listen_to_the_end(&child));
    check_once_each(options.url, SLOTS);

    QR_CHECK(kill(zombie.pid, SIGCONT) == 0); /* its handlers return and want to record what they did */
    QR_CHECK_INT(0, listen_to_the_end(&zombie));
    check_once_each(options.url, SLOTS);
}

QR_DB_TEST(process_that_slept_past_its_lease_goes_on_under_a_new_one) /* I9 */
{
    const struct qr_db_options options = qr_test_db_options(t, NULL, 0);
    struct shared_clock *shared = share_clock();
    struct job_ledger_plan plan = {.url = options.url,
                                   .job_count = STEP_JOBS,
                                   .handler_us = 20000,
                                   .slots = SLOTS,
                                   .name = "sleeper",
                                   .clock = &shared->clock};
    struct child child;
    job_ledger_start(&child, &plan);
    listen_until_done(&child, STEP_JOBS / 4);
    stop_process(&child);
    pass_lease(shared);
    QR_CHECK(kill(child.pid, SIGCONT) == 0);
    QR_CHECK_INT(0, listen_to_the_end(&child));
    check_once_each(options.url, STEP_JOBS);
}

QR_DB_TEST(jumps_of_the_clock_lose_and_repeat_nothing)
{
    static const int64_t jumps_ms[] = {-3600000, 7200000, -86400000};
    const struct qr_db_options options = qr_test_db_options(t, NULL, 0);
    struct shared_clock *shared = share_clock();
    struct job_ledger_plan plan = {.url = options.url,
                                   .job_count = STEP_JOBS,
                                   .handler_us = 10000,
                                   .slots = SLOTS,
                                   .name = "jumper",
                                   .clock = &shared->clock};
    struct child child;
    job_ledger_start(&child, &plan);
    for (size_t i = 0; i < QR_COUNT(jumps_ms); i++) {
        listen_until_done(&child, STEP_JOBS / 5 * (int64_t)(i + 1));
        atomic_fetch_add(&shared->wall_ms, jumps_ms[i]);
    }
    QR_CHECK_INT(0, listen_to_the_end(&child));
    check_once_each(options.url, STEP_JOBS);
}

/* ---- a server that is killed ---- */

QR_TEST_WITH_TIMEOUT(server_that_is_killed_under_load_loses_and_repeats_no_job, 180)
{
    enum { JOBS = 2000, KILLS = 3 };
    if (!qr_pg_installed()) {
        qr_test_skip("PostgreSQL is not installed");
    }
    struct qr_pg pg = {.fsync = true};
    qr_pg_start(&pg, NULL);
    struct job_ledger_plan plan = {.url = qr_pg_url(&pg, "jobs"),
                                   .job_count = JOBS,
                                   .handler_us = HANDLER_US,
                                   .slots = SLOTS,
                                   .name = "test"}; /* completions are not asked to be durable: they must be */
    struct child child;
    job_ledger_start(&child, &plan);
    for (int i = 0; i < KILLS; i++) {
        listen_until_done(&child, JOBS / (KILLS + 1) * (i + 1));
        qr_pg_crash(&pg);
        qr_pg_resume(&pg);
    }
    QR_CHECK_INT(0, listen_to_the_end(&child));
    check_once_each(plan.url, JOBS);
    qr_pg_remove(&pg);
}
