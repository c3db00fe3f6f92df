/* The checks, all about one commit: what was before it, what is after it, who made it. */
#include "sim/oracle.h"

#include <sqlite3.h>
#include <string.h>

enum { WORKERS_MAX = 256, KEY_BYTES = 16 };

struct job {
    /* what was promised */
    bool is_acknowledged;
    int subject;
    int parts_acknowledged;
    /* what the last look saw */
    bool is_there, is_gone;
    qr_uuid id, worker;
    int state;
    int64_t fence, attempts, crashes, finished_ms;
    unsigned char idempotency_key[KEY_BYTES], serial_key[KEY_BYTES];
    bool has_idempotency_key, has_serial_key;
    int finals, parts;
    bool seen_now;
};

struct worker {
    qr_uuid id;
    int incarnation;
    int64_t lease_until_ms;
    bool is_dead, is_gone, seen_now;
};

static struct job jobs[ORACLE_JOBS_MAX];
static int job_count;
static struct worker workers[WORKERS_MAX];
static int worker_count;
static int64_t last_effect;
static bool is_traced;

static sqlite3 *handle;
static sqlite3_stmt *select_jobs, *select_workers, *select_effects, *select_subjects;

static void prepare(const char *sql, sqlite3_stmt **ret_stmt)
{
    if (sqlite3_prepare_v2(handle, sql, -1, ret_stmt, NULL) != SQLITE_OK) {
        QR_FAIL("%s: %s", sql, sqlite3_errmsg(handle));
    }
}

static bool next_row(sqlite3_stmt *stmt)
{
    const int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        QR_FAIL("the oracle cannot look: %s", sqlite3_errmsg(handle));
    }
    return rc == SQLITE_ROW;
}

void oracle_begin(void)
{
    memset(jobs, 0, sizeof jobs);
    job_count = 1;
    worker_count = 0;
    last_effect = 0;
    is_traced = getenv("SIM_TRACE") != NULL;
    QR_CHECK_INT(SQLITE_OK, sqlite3_open_v2(world.path, &handle, SQLITE_OPEN_READWRITE, "fault"));
    prepare(
        "SELECT generation, id, state, fence, attempts, crashes, worker_id, finished_at, idempotency_key, serial_key "
        "FROM job",
        &select_jobs);
    prepare("SELECT id, lease_until, dead FROM worker", &select_workers);
    prepare("SELECT n, job, fence, is_final FROM effect WHERE n > ?1 ORDER BY n", &select_effects);
    prepare(
        "SELECT id, active, (SELECT count(*) FROM job WHERE job.item_id = CAST(printf('subject %08d', subject.id) AS "
        "BLOB) AND state IN (1, 2, 3, 4)) FROM subject",
        &select_subjects);
}

void oracle_end(void)
{
    sqlite3_finalize(select_jobs);
    sqlite3_finalize(select_workers);
    sqlite3_finalize(select_effects);
    sqlite3_finalize(select_subjects);
    sqlite3_close(handle);
}

/* ---- what was promised ---- */

int oracle_new_job(int subject)
{
    if (job_count == ORACLE_JOBS_MAX) {
        return 0;
    }
    jobs[job_count].subject = subject;
    return job_count++;
}

int oracle_subject_of(int number)
{
    return jobs[number].subject;
}

int oracle_pick(qr_uuid *ret_id)
{
    const int start = (int)sim_between(0, job_count - 1);
    for (int i = 0; i < job_count; i++) {
        const int number = (start + i) % job_count;
        if (jobs[number].is_acknowledged && jobs[number].is_there) {
            *ret_id = jobs[number].id;
            return number;
        }
    }
    return 0;
}

static int find_job(qr_uuid id)
{
    for (int i = 1; i < job_count; i++) {
        if ((jobs[i].is_there || jobs[i].is_gone) && qr_uuid_equal(jobs[i].id, id)) {
            return i;
        }
    }
    return 0;
}

void oracle_acknowledge(int number, qr_uuid id, bool existed)
{
    const int found = find_job(id);
    if (!found || (existed ? found == number : found != number)) {
        QR_FAIL("I5: job %d was acknowledged and is not there", number);
    }
    jobs[found].is_acknowledged = true;
}

void oracle_acknowledge_part(int number)
{
    if (++jobs[number].parts_acknowledged > jobs[number].parts) {
        QR_FAIL("I5: a part of job %d was acknowledged and is not there", number);
    }
}

/* ---- workers ---- */

static struct worker *find_worker(qr_uuid id)
{
    for (int i = 0; i < worker_count; i++) {
        if (qr_uuid_equal(workers[i].id, id)) {
            return &workers[i];
        }
    }
    return NULL;
}

static void read_uuid(sqlite3_stmt *stmt, int column, qr_uuid *ret_id)
{
    *ret_id = (qr_uuid){0};
    if (sqlite3_column_bytes(stmt, column) == QR_UUID_BYTES) {
        memcpy(ret_id->bytes, sqlite3_column_blob(stmt, column), QR_UUID_BYTES);
    }
}

static void look_at_worker(void)
{
    qr_uuid id;
    read_uuid(select_workers, 0, &id);
    const int64_t lease_until_ms = sqlite3_column_int64(select_workers, 1);
    const bool is_dead = sqlite3_column_int(select_workers, 2) != 0;
    struct worker *worker = find_worker(id);
    if (!worker) {
        QR_CHECK(worker_count < WORKERS_MAX);
        worker = &workers[worker_count++];
        *worker = (struct worker){.id = id, .incarnation = world.committer, .lease_until_ms = lease_until_ms};
    }
    if (worker->is_dead && (!is_dead || lease_until_ms != worker->lease_until_ms)) {
        QR_FAIL("I9: a worker that was declared dead came back");
    }
    if (!worker->is_dead && is_dead && !world.owns_all && worker->lease_until_ms >= world.commit_wall_ms) {
        QR_FAIL("I9: a worker was declared dead %lld ms before its lease ends",
                (long long)(worker->lease_until_ms - world.commit_wall_ms));
    }
    worker->is_dead = is_dead;
    worker->lease_until_ms = lease_until_ms;
    worker->seen_now = true;
}

static void look_at_workers(void)
{
    for (int i = 0; i < worker_count; i++) {
        workers[i].seen_now = false;
    }
    while (next_row(select_workers)) {
        look_at_worker();
    }
    sqlite3_reset(select_workers);
    for (int i = 0; i < worker_count; i++) {
        workers[i].is_gone = !workers[i].seen_now;
    }
}

/* ---- effects: I2 ---- */

static void look_at_effects(void)
{
    sqlite3_bind_int64(select_effects, 1, last_effect);
    while (next_row(select_effects)) {
        last_effect = sqlite3_column_int64(select_effects, 0);
        const int number = sqlite3_column_int(select_effects, 1);
        const int64_t fence = sqlite3_column_int64(select_effects, 2);
        struct job *job = &jobs[number];
        if (!job->is_there || job->state != QR_JOB_RUNNING || job->fence != fence) {
            QR_FAIL("I2: an effect of job %d under fence %lld, but it was %s under fence %lld", number,
                    (long long)fence, job->is_there ? qr_job_state_name((enum qr_job_state)job->state) : "not there",
                    (long long)job->fence);
        }
        if (sqlite3_column_int(select_effects, 3)) {
            job->finals++;
        } else {
            job->parts++;
        }
    }
    sqlite3_reset(select_effects);
}

/* ---- jobs ---- */

static bool may_reach(int from, int to)
{
    if (from == to) {
        return true;
    }
    for (int next = QR_JOB_BLOCKED; next <= QR_JOB_CANCELLED; next++) {
        /* only forward: the one way back, out of `running`, is a step of its own */
        if (qr_job_state_may_become((enum qr_job_state)from, (enum qr_job_state)next) &&
            (next == to || (next != QR_JOB_RUNNING && next != from && may_reach(next, to)))) {
            return true;
        }
    }
    return false;
}

/* The job ran before the commit and does not under the same fence now: who did that, and might they? */
static void check_taken(int number, const struct job *before, const struct job *now)
{
    const struct worker *holder = find_worker(before->worker);
    if (!holder) {
        QR_FAIL("I9: job %d ran under a worker that nobody registered", number);
    }
    const bool is_open = qr_job_state_is_open((enum qr_job_state)now->state); /* R6: a rescue ends none */
    const bool was_crash = is_open && (now->crashes > before->crashes || before->crashes == QR_JOB_CRASHES_MAX);
    const bool is_cancelled = now->state == QR_JOB_CANCELLED;
    if (was_crash && (holder->is_dead || holder->is_gone)) {
        totals.rescues++;
        return;
    }
    if (now->crashes > before->crashes) {
        QR_FAIL("I9: job %d was taken from a worker that was not dead", number);
    }
    if (!is_cancelled && holder->incarnation != world.committer) {
        QR_FAIL("I9: job %d (fence %lld) was taken from its worker by another process and became %s", number,
                (long long)before->fence, qr_job_state_name((enum qr_job_state)now->state));
    }
}

static void check_change(int number, const struct job *before, const struct job *now)
{
    if (!may_reach(before->state, now->state) && before->state != QR_JOB_RUNNING) {
        QR_FAIL("job %d went from %s to %s", number, qr_job_state_name((enum qr_job_state)before->state),
                qr_job_state_name((enum qr_job_state)now->state));
    }
    if (!qr_job_state_is_open((enum qr_job_state)before->state) &&
        (now->fence != before->fence || now->finished_ms != before->finished_ms)) {
        QR_FAIL("job %d changed after it had ended", number);
    }
    if (now->fence < before->fence) {
        QR_FAIL("I9: the fence of job %d fell from %lld to %lld", number, (long long)before->fence,
                (long long)now->fence);
    }
    const bool same_claim = before->state == QR_JOB_RUNNING && now->state == QR_JOB_RUNNING &&
                            now->fence == before->fence && qr_uuid_equal(now->worker, before->worker);
    if (before->state == QR_JOB_RUNNING && !same_claim) {
        check_taken(number, before, now);
        if (now->fence == before->fence &&
            (qr_job_state_is_open((enum qr_job_state)now->state) || now->state == QR_JOB_CANCELLED)) {
            QR_FAIL("I9: job %d changed hands under one fence", number);
        }
    }
    if (now->state == QR_JOB_RUNNING && !same_claim) {
        const struct worker *holder = find_worker(now->worker);
        if (!holder || holder->is_dead || holder->is_gone || holder->lease_until_ms < world.commit_wall_ms ||
            holder->incarnation != world.committer) {
            QR_FAIL("I9: job %d was claimed without a valid lease", number);
        }
        if (now->fence <= before->fence) {
            QR_FAIL("I9: job %d was claimed without a new fence", number);
        }
    }
}

/* SIM_TRACE=1: what a run did, to be read beside a failing check. */
static void trace(int number, const struct job *now)
{
    const struct job *before = &jobs[number];
    if (is_traced && (!before->is_there || before->state != now->state || before->fence != now->fence)) {
        const struct worker *holder = find_worker(now->worker);
        printf("%9lld ms, process %d: job %d %s, fence %lld, worker of %d, attempts %lld, crashes %lld, finals %d\n",
               (long long)sim_now_ms(), world.committer, number, qr_job_state_name((enum qr_job_state)now->state),
               (long long)now->fence, holder ? holder->incarnation : 0, (long long)now->attempts,
               (long long)now->crashes, now->finals);
        fflush(stdout);
    }
}

static bool read_key(int column, unsigned char ret_key[static KEY_BYTES])
{
    if (sqlite3_column_bytes(select_jobs, column) != KEY_BYTES) {
        return false;
    }
    memcpy(ret_key, sqlite3_column_blob(select_jobs, column), KEY_BYTES);
    return true;
}

static void look_at_job(void)
{
    const int number = sqlite3_column_int(select_jobs, 0);
    QR_CHECK(number > 0 && number < job_count);
    struct job *job = &jobs[number];
    struct job now = *job;
    read_uuid(select_jobs, 1, &now.id);
    now.state = sqlite3_column_int(select_jobs, 2);
    now.fence = sqlite3_column_int64(select_jobs, 3);
    now.attempts = sqlite3_column_int64(select_jobs, 4);
    now.crashes = sqlite3_column_int64(select_jobs, 5);
    read_uuid(select_jobs, 6, &now.worker);
    now.finished_ms = sqlite3_column_int64(select_jobs, 7);
    now.has_idempotency_key = read_key(8, now.idempotency_key);
    now.has_serial_key = read_key(9, now.serial_key);
    if (job->seen_now) {
        QR_FAIL("job %d is there twice", number);
    }
    if (job->is_gone) {
        QR_FAIL("job %d came back", number);
    }
    if (job->is_there) {
        check_change(number, job, &now);
    } else {
        totals.jobs++;
    }
    now.is_there = now.seen_now = true;
    trace(number, &now);
    if (now.attempts > QR_JOB_ATTEMPTS_MAX || now.crashes > QR_JOB_CRASHES_MAX) {
        QR_FAIL("job %d was tried too often", number);
    }
    const bool is_told = now.state == QR_JOB_COMPLETED || now.state == QR_JOB_FAILED || now.state == QR_JOB_SKIPPED;
    if (now.finals != is_told) {
        QR_FAIL("I2: job %d is %s with %d final effects", number, qr_job_state_name((enum qr_job_state)now.state),
                now.finals);
    }
    *job = now;
}

static bool is_active(const struct job *job)
{
    return job->is_there && job->state != QR_JOB_BLOCKED && qr_job_state_is_open((enum qr_job_state)job->state);
}

/* J2 and J3 for one job against all others. */
static void check_keys(int number)
{
    const struct job *job = &jobs[number];
    const bool is_blocked = job->state == QR_JOB_BLOCKED;
    bool has_holder = false;
    for (int i = 1; i < job_count; i++) {
        const struct job *other = &jobs[i];
        if (i == number || !other->is_there || !qr_job_state_is_open((enum qr_job_state)other->state)) {
            continue;
        }
        if (job->has_idempotency_key && other->has_idempotency_key &&
            memcmp(job->idempotency_key, other->idempotency_key, KEY_BYTES) == 0) {
            QR_FAIL("J2: jobs %d and %d are open with one idempotency key", number, i);
        }
        const bool same_key =
            job->has_serial_key && other->has_serial_key && memcmp(job->serial_key, other->serial_key, KEY_BYTES) == 0;
        has_holder = has_holder || (same_key && is_active(other));
        if (same_key && is_active(job) && is_active(other)) {
            QR_FAIL("J2, I9: jobs %d and %d are active with one serial key", number, i);
        }
    }
    if (is_blocked && !has_holder) {
        QR_FAIL("J3: job %d is blocked by nobody", number);
    }
}

static void look_at_jobs(void)
{
    for (int i = 1; i < job_count; i++) {
        jobs[i].seen_now = false;
    }
    while (next_row(select_jobs)) {
        look_at_job();
    }
    sqlite3_reset(select_jobs);
    for (int i = 1; i < job_count; i++) {
        if (jobs[i].is_there && !jobs[i].seen_now) {
            if (qr_job_state_is_open((enum qr_job_state)jobs[i].state)) {
                QR_FAIL("I5: job %d vanished while it was %s", i, qr_job_state_name((enum qr_job_state)jobs[i].state));
            }
            jobs[i].is_there = false;
            jobs[i].is_gone = true;
        }
    }
    for (int i = 1; i < job_count; i++) {
        if (jobs[i].is_there && qr_job_state_is_open((enum qr_job_state)jobs[i].state)) {
            check_keys(i);
        }
    }
}

/* I1 on the test's own things. */
static void look_at_subjects(void)
{
    while (next_row(select_subjects)) {
        const int active = sqlite3_column_int(select_subjects, 1), open = sqlite3_column_int(select_subjects, 2);
        if (active != open) {
            QR_FAIL("I1: subject %d is %s and has %d open jobs", sqlite3_column_int(select_subjects, 0),
                    active ? "active" : "at rest", open);
        }
    }
    sqlite3_reset(select_subjects);
}

void oracle_check(void)
{
    sqlite3_exec(handle, "BEGIN", NULL, NULL, NULL);
    look_at_workers();
    look_at_effects();
    look_at_jobs();
    look_at_subjects();
    sqlite3_exec(handle, "COMMIT", NULL, NULL, NULL);
}

bool oracle_is_open(int number)
{
    return jobs[number].is_there && qr_job_state_is_open((enum qr_job_state)jobs[number].state);
}

int oracle_open_count(void)
{
    int count = 0;
    for (int i = 1; i < job_count; i++) {
        count += oracle_is_open(i);
    }
    return count;
}

void oracle_check_drained(void)
{
    for (int i = 1; i < job_count; i++) {
        if (jobs[i].is_acknowledged && !jobs[i].is_gone && !jobs[i].is_there) {
            QR_FAIL("I5: job %d was acknowledged and is not there", i);
        }
        if (jobs[i].is_there && qr_job_state_is_open((enum qr_job_state)jobs[i].state)) {
            QR_FAIL("I5: job %d is still %s (attempts %lld, crashes %lld) %lld s after the last fault", i,
                    qr_job_state_name((enum qr_job_state)jobs[i].state), (long long)jobs[i].attempts,
                    (long long)jobs[i].crashes, (long long)(sim_now_ms() / 1000));
        }
    }
}
