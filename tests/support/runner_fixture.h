/* A runner in a test: one handler whose behaviour is a script, a plan that writes effects, and ways to wait for both.
 *
 * Effects are rows that the plan writes: one for each part and each end of an attempt, unique by (job, fence, kind). */
#pragma once

#include "job/runner_internal.h"
#include "support/jobs_fixture.h"

#include <semaphore.h>

enum { QR_SCENE_ALWAYS = -1 };

/* What a handler does, and what it saw. */
struct qr_script {
    enum qr_outcome_kind kind; /* of the first `times` runs, QR_SCENE_ALWAYS = of all; then it completes */
    int times;
    qr_code code;
    int64_t delay_ms;
    bool waits;   /* for the gate, or until it is told to end */
    bool ignores; /* being told to end: waits for the semaphore alone */
    bool is_told; /* waits until it is told to end; then does what it does */
    bool reports; /* a part first */
    atomic_bool gate;
    sem_t unstick;
    atomic_int runs, running, running_max, was_told;
    atomic_int part_rc;
};

struct qr_scene {
    struct qr_world world;
    struct qr_runner *runner;
    struct qr_script script;
    atomic_int refusals; /* how often the plan says no, counted down; negative = always */
    qr_code refusal;
    atomic_int on_stuck_calls;
    struct qr_runner_options options;
    struct qr_handler handlers[2];
};

/* Two slots for convert, one for delete; NULL = the clock of the test. The handlers are "work", which follows the script, and
 * "quick". What the test is about is set before qr_scene_start. */
void qr_scene_open(struct qr_scene *scene, struct qr_test *t, const struct qr_clock *clock);
/* As qr_world_open_at. */
void qr_scene_open_at(struct qr_scene *scene, struct qr_db_options options, const struct qr_clock *clock);
void qr_scene_start(struct qr_scene *scene);
/* In order, with time enough. */
void qr_scene_stop(struct qr_scene *scene);
void qr_scene_close(struct qr_scene *scene);

/* Until the counter of a script is that high. */
void qr_scene_wait_for(atomic_int *counter, int value);
/* Until no handler of the script runs, those whose jobs were taken from them among them. */
void qr_scene_wait_until_returned(struct qr_scene *scene);
struct qr_runner_stats qr_scene_stats(struct qr_scene *scene);
void qr_scene_wait_until_put_off(struct qr_scene *scene);
/* Moves the test's clock to where the one job is due that was put off. Returns how long that was. */
int64_t qr_scene_go_to_next(struct qr_scene *scene);
/* What the runner writes in a while in which nothing happens. */
uint64_t qr_scene_writes_in_a_while(struct qr_scene *scene);

#define QR_EFFECTS   "SELECT count(*) FROM effect WHERE "
#define QR_COMPLETED "SELECT count(*) FROM job WHERE state = 5"
