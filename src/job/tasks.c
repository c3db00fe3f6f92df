/* Tasks: claimed jobs in memory.
 *
 * A task is in the books (newest … older, in_flight) from its claim until its end is recorded or it is abandoned. An
 * abandoned one lives on, out of the books, until its handler returns, or what it waited for is prepared. */
#include "base/mem.h"
#include "job/runner_internal.h"

#include <assert.h>

enum { ARENA_BYTES_MAX = 256 << 20 };

void qr_tasks_append(struct task_list *list, struct task *task)
{
    task->next = NULL;
    if (list->last) {
        list->last->next = task;
    } else {
        list->first = task;
    }
    list->last = task;
    list->count++;
}

struct task *qr_tasks_take_first(struct task_list *list)
{
    struct task *task = list->first;
    list->first = task->next;
    if (!list->first) {
        list->last = NULL;
    }
    list->count--;
    task->next = NULL;
    return task;
}

void qr_task_free(struct task *task)
{
    qr_arena_done(&task->arena);
    qr_free(task);
}

bool qr_task_is_given_up(const struct task *task)
{
    return task->job.crashes >= QR_JOB_CRASHES_MAX;
}

/* The job's texts move from the claim's memory to the task's. */
static bool copy_job(struct task *task, const struct qr_job *job)
{
    task->job = *job;
    task->job.args = qr_arena_copy(&task->arena, qr_str_of(job->args));
    task->job.code = qr_arena_copy(&task->arena, qr_str_of(job->code));
    task->job.message = qr_arena_copy(&task->arena, qr_str_of(job->message));
    return task->job.args && task->job.code && task->job.message;
}

struct task *qr_task_add(struct qr_runner *runner, const struct qr_job *job)
{
    struct task *task = qr_alloc_zero(sizeof *task);
    if (!task) {
        return NULL;
    }
    qr_arena_init(&task->arena, ARENA_BYTES_MAX);
    if (!copy_job(task, job)) {
        qr_task_free(task);
        return NULL;
    }
    const struct qr_runner_options *options = &runner->options;
    task->runner = runner;
    task->claimed_mono_ms = qr_runner_mono_ms(runner);
    task->run = (struct qr_job_run){
        .job = &task->job, .arena = &task->arena, .db = options->db, .clock = options->clock, .rand = options->rand};
    task->older = runner->newest;
    if (task->older) {
        task->older->newer = task;
    }
    runner->newest = task;
    runner->in_flight[job->queue]++;
    runner->in_flight_count++;
    runner->suspects_in_flight += job->is_suspect;
    qr_tasks_append(&runner->ready[job->queue], task);
    qr_signal_one(&runner->work[job->queue]);
    return task;
}

static void strike_off(struct task *task)
{
    struct qr_runner *runner = task->runner;
    if (task->newer) {
        task->newer->older = task->older;
    } else {
        runner->newest = task->older;
    }
    if (task->older) {
        task->older->newer = task->newer;
    }
    runner->in_flight[task->job.queue]--;
    runner->in_flight_count--;
    runner->suspects_in_flight -= task->job.is_suspect;
}

static void remove_from(struct task_list *list, const struct task *task)
{
    if (list->first == task) {
        qr_tasks_take_first(list);
        return;
    }
    struct task_list rest = {0};
    while (list->first) {
        struct task *at = qr_tasks_take_first(list);
        if (at != task) {
            qr_tasks_append(&rest, at);
        }
    }
    *list = rest;
}

void qr_task_forget(struct task *task)
{
    strike_off(task);
    switch (task->state) {
    case TASK_RUNNING:
        atomic_store(&task->cancelled, true);
        task->state = TASK_ABANDONED;
        return;
    case TASK_READY:
        remove_from(&task->runner->ready[task->job.queue], task);
        break;
    case TASK_ENDED: /* P2 */
        task->state = TASK_ABANDONED;
        return;
    case TASK_PREPARED:
        remove_from(&task->runner->prepared, task);
        break;
    case TASK_ABANDONED:
        assert(!"an abandoned task is in no book");
    }
    qr_task_free(task);
}

void qr_task_hold(struct task *task)
{
    if (task->state == TASK_READY) {
        remove_from(&task->runner->ready[task->job.queue], task);
    }
}

void qr_task_unhold(struct task *task)
{
    if (task->state == TASK_READY) {
        qr_tasks_append(&task->runner->ready[task->job.queue], task);
        qr_signal_one(&task->runner->work[task->job.queue]);
    }
}
