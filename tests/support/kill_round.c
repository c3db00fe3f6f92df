/* Owns the process that is killed and the comparison after it. */
#include "support/kill_round.h"

#include "support/child.h"

#include "base/thread.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_FAILED = 1, READ_DEADLINE_MS = 60000 };

struct ack {
    int32_t producer, number;
};

struct producer {
    const struct kill_plan *plan;
    struct qr_db *db;
    int64_t index, last_number;
    atomic_int_least64_t *ack_count;
};

static struct qr_db_options db_options(const struct kill_plan *plan)
{
    return (struct qr_db_options){
        .url = plan->url,
        .migrations = ledger_migrations,
        .migration_count = ledger_migration_count,
        .read_deadline_ms = READ_DEADLINE_MS,
    };
}

/* ---- the child ---- */

QR_NORETURN static void kill_this_process(void)
{
    kill(getpid(), SIGKILL);
    for (;;) {
        pause();
    }
}

static void require(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        fprintf(stderr, "%s: %s\n", qr_code_info(err->code)->name, err->msg);
        _exit(CHILD_FAILED);
    }
}

static void *produce(void *arg)
{
    for (struct producer *producer = arg;;) {
        struct ledger_line line = {
            .producer = producer->index,
            .number = producer->last_number + 1,
            .payload_bytes_max = producer->plan->payload_bytes_max,
        };
        qr_err err = {0};
        require(qr_db_write(producer->db, producer->plan->level, ledger_add, &line, &err), &err);
        producer->last_number++;
        child_ack(&(struct ack){(int32_t)line.producer, (int32_t)line.number}, sizeof(struct ack));
        if (atomic_fetch_add(producer->ack_count, 1) + 1 == producer->plan->after_acks) {
            kill_this_process();
        }
    }
    return NULL;
}

/* Waits for what a killed process may still have under way on a server. */
static qr_rc wait_for_others(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE ticket SET last = last WHERE id = 1", QR_NO_VALS, NULL, err);
}

/* Runs until it is killed. */
static void live(void *arg)
{
    const struct kill_plan *plan = arg;
    const struct qr_db_options options = db_options(plan);
    static struct producer producers[LEDGER_PRODUCERS_MAX];
    static atomic_int_least64_t ack_count;
    struct ledger_state state;
    struct qr_db *db;
    qr_err err = {0};
    require(qr_db_open(&db, &options, &err), &err);
    require(qr_db_write(db, QR_RELAXED, wait_for_others, NULL, &err), &err);
    require(ledger_load(db, &state, &err), &err);
    for (int i = 0; i < plan->producers; i++) {
        pthread_t thread;
        producers[i] = (struct producer){plan, db, i, state.last_number[i], &ack_count};
        require(qr_thread_start(&thread, "producer", produce, &producers[i], &err), &err);
    }
    if (plan->after_ms) {
        const struct timespec delay = {plan->after_ms / 1000, plan->after_ms % 1000 * 1000000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &delay, NULL);
        kill_this_process();
    }
    pause();
}

/* ---- the parent ---- */

static qr_rc let_it_live(const struct kill_plan *plan, struct kill_history *history, struct kill_result *result,
                         qr_err *err)
{
    const int64_t began_us = qr_thread_mono_us();
    struct child child;
    struct ack ack;
    child_start(&child, live, (void *)(uintptr_t)plan);
    while (child_next_ack(&child, &ack, sizeof ack)) {
        history->acknowledged[ack.producer] = ack.number;
        result->acknowledged++;
        if (plan->progress) {
            plan->progress(plan->progress_arg, result->acknowledged);
        }
    }
    const int end = child_wait(&child);
    result->written_us = qr_thread_mono_us() - began_us;
    if (end != -SIGKILL) {
        return qr_fail(err, QR_CODE_INTERNAL, "the writing process ended with %d before it was killed", end);
    }
    return QR_OK;
}

static qr_rc compare(const struct kill_plan *plan, const struct kill_history *history, struct kill_result *result,
                     qr_err *err)
{
    const struct qr_db_options options = db_options(plan);
    const int64_t began_us = qr_thread_mono_us();
    struct qr_db *db;
    QR_TRY(qr_db_open(&db, &options, err));
    result->opened_us = qr_thread_mono_us() - began_us;
    struct ledger_state state;
    qr_rc rc = qr_db_verify(db, err);
    if (rc == QR_OK) {
        rc = ledger_load(db, &state, err);
    }
    qr_db_close(db);
    QR_TRY(rc);
    result->found = state.line_count;
    result->lost = ledger_count_lost(&state, history->acknowledged);
    return QR_OK;
}

qr_rc kill_round(const struct kill_plan *plan, struct kill_history *history, struct kill_result *ret_result,
                 qr_err *err)
{
    struct kill_result result = {0};
    QR_TRY(let_it_live(plan, history, &result, err));
    QR_TRY(compare(plan, history, &result, err));
    *ret_result = result;
    return QR_OK;
}
