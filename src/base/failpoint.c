/* Owns the plan of failpoints: mutable state of the process outside a context, but only in builds for tests. The other such
 * states are the allocation hooks of mem.c and json.c, because memory is the process's. */
#include "base/failpoint.h"

#include <stdlib.h>

#ifndef QUIRE_FAILPOINTS

bool qr_failpoints_built_in(void)
{
    return false;
}

qr_rc qr_failpoints_set(const char *plan, qr_err *err)
{
    if (plan && plan[0]) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "QUIRE_FAILPOINTS is set, but this build has no failpoints: use `make build-failpoints`");
    }
    return QR_OK;
}

uint64_t qr_failpoint_hits(const char *name QR_UNUSED)
{
    return 0;
}

const char *qr_failpoint_name(size_t index QR_UNUSED)
{
    return NULL;
}

#else

#include "base/thread.h"

#include <assert.h>
#include <time.h>
#include <unistd.h>

enum { NAMES_MAX = 512, STEPS_MAX = 32, EXIT_CRASHED = 99, SLEEP_MS_MAX = 600000 };

enum action { ACTION_ERROR, ACTION_CRASH, ACTION_SLEEP };

struct step {
    size_t point; /* index into names */
    enum action action;
    int64_t sleep_ms;
    uint64_t only_hit; /* 0 = every hit */
};

/* the linker gathers one pointer a failpoint here */
extern const struct qr_failpoint *const __start_qr_failpoints[] __attribute__((weak));
extern const struct qr_failpoint *const __stop_qr_failpoints[] __attribute__((weak));

static pthread_once_t names_once = PTHREAD_ONCE_INIT;
static const char *names[NAMES_MAX];
static size_t name_count;

static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;
static struct step plan[STEPS_MAX];
static size_t plan_count;
static uint64_t hits[NAMES_MAX];

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void gather_names(void)
{
    for (const struct qr_failpoint *const *at = __start_qr_failpoints; at < __stop_qr_failpoints; at++) {
        assert(name_count < NAMES_MAX);
        names[name_count++] = (*at)->name;
    }
    qsort(names, name_count, sizeof names[0], compare_names);
    size_t kept = 0;
    for (size_t i = 0; i < name_count; i++) {
        if (kept == 0 || strcmp(names[kept - 1], names[i]) != 0) {
            names[kept++] = names[i];
        }
    }
    name_count = kept;
}

const char *qr_failpoint_name(size_t index)
{
    pthread_once(&names_once, gather_names);
    return index < name_count ? names[index] : NULL;
}

static size_t find_name(qr_str name)
{
    pthread_once(&names_once, gather_names);
    size_t i = 0;
    while (i < name_count && !qr_str_equal(qr_str_of(names[i]), name)) {
        i++;
    }
    return i;
}

bool qr_failpoints_built_in(void)
{
    return true;
}

static bool parse_action(qr_str text, struct step *step)
{
    if (qr_str_equal(text, QR_STR("error"))) {
        step->action = ACTION_ERROR;
        return true;
    }
    if (qr_str_equal(text, QR_STR("crash"))) {
        step->action = ACTION_CRASH;
        return true;
    }
    const qr_str open = QR_STR("sleep(");
    if (!qr_str_starts_with(text, open) || !qr_str_ends_with(text, QR_STR(")"))) {
        return false;
    }
    step->action = ACTION_SLEEP;
    const qr_str ms = {text.ptr + open.len, text.len - open.len - 1};
    return qr_str_to_i64(ms, &step->sleep_ms) && step->sleep_ms >= 0 && step->sleep_ms <= SLEEP_MS_MAX;
}

/* "name=action" or "name=action@n" */
static qr_rc parse_step(qr_str text, struct step *ret_step, qr_err *err)
{
    struct step step = {0};
    qr_str rest = text;
    const qr_str name = qr_str_trim(qr_str_split(&rest, '='));
    step.point = find_name(name);
    if (step.point == name_count) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "QUIRE_FAILPOINTS: no failpoint is called \"%.*s\"; `quire config --failpoints` lists them",
                       QR_STR_ARG(name));
    }
    const bool numbered = rest.len && memchr(rest.ptr, '@', rest.len);
    const qr_str action = qr_str_trim(qr_str_split(&rest, '@'));
    int64_t only_hit = 0;
    if (!parse_action(action, &step) || (numbered && (!qr_str_to_i64(rest, &only_hit) || only_hit < 1))) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "QUIRE_FAILPOINTS: \"%.*s\" is not name=action[@n] with error, crash or sleep(ms)",
                       QR_STR_ARG(text));
    }
    step.only_hit = (uint64_t)only_hit;
    *ret_step = step;
    return QR_OK;
}

qr_rc qr_failpoints_set(const char *text, qr_err *err)
{
    struct step steps[STEPS_MAX];
    size_t count = 0;
    qr_str rest = qr_str_of(text);
    while (rest.len) {
        const qr_str part = qr_str_trim(qr_str_split(&rest, ';'));
        if (part.len == 0) {
            continue;
        }
        if (count == STEPS_MAX) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "QUIRE_FAILPOINTS: more than %d steps", (int)STEPS_MAX);
        }
        QR_TRY(parse_step(part, &steps[count++], err));
    }
    QR_LOCKED(&plan_lock);
    memcpy(plan, steps, count * sizeof steps[0]);
    plan_count = count;
    memset(hits, 0, sizeof hits);
    return QR_OK;
}

uint64_t qr_failpoint_hits(const char *name)
{
    const size_t i = find_name(qr_str_of(name));
    QR_LOCKED(&plan_lock);
    return i < name_count ? hits[i] : 0;
}

static bool step_for_hit(size_t point, struct step *ret_step)
{
    QR_LOCKED(&plan_lock);
    const uint64_t hit = ++hits[point];
    for (size_t i = 0; i < plan_count; i++) {
        if (plan[i].point == point && (plan[i].only_hit == 0 || plan[i].only_hit == hit)) {
            *ret_step = plan[i];
            return true;
        }
    }
    return false;
}

qr_rc qr_failpoint_hit(const struct qr_failpoint *point, qr_err *err)
{
    struct step step;
    if (!step_for_hit(find_name(qr_str_of(point->name)), &step)) {
        return QR_OK;
    }
    switch (step.action) {
    case ACTION_CRASH:
        _exit(EXIT_CRASHED);
    case ACTION_SLEEP:
        nanosleep(&(struct timespec){step.sleep_ms / 1000, step.sleep_ms % 1000 * 1000000}, NULL);
        return QR_OK;
    case ACTION_ERROR:
        break;
    }
    return qr_fail(err, QR_CODE_UNAVAILABLE, "failpoint %s", point->name);
}

#endif

qr_rc qr_failpoints_load_env(qr_err *err)
{
    return qr_failpoints_set(getenv("QUIRE_FAILPOINTS"), err);
}
