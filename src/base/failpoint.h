/* Failpoints: named places where a test can make the real program fail, die or wait.
 *
 * A build with -DQUIRE_FAILPOINTS=ON reads QUIRE_FAILPOINTS="name=action[@n];…" with the actions `error`, `crash`
 * (_exit) and `sleep(ms)`; `@n` = only the n-th hit. `quire config --failpoints` lists the names. In every other build
 * the macros are empty. */
#pragma once

#include "base/compiler.h"
#include "base/err.h"
#include "base/str.h"

#ifdef QUIRE_FAILPOINTS

struct qr_failpoint {
    const char *name;
};

qr_rc qr_failpoint_hit(const struct qr_failpoint *point, qr_err *err);

/* An expression: the rc of the failpoint. */
#define QR_FAILPOINT_RC(point_name, err)                                                                               \
    (__extension__({                                                                                                   \
        static const struct qr_failpoint qr_point_ = {point_name};                                                     \
        static const struct qr_failpoint *const qr_point_listed_ __attribute__((section("qr_failpoints"), used)) =     \
            &qr_point_;                                                                                                \
        qr_failpoint_hit(&qr_point_, err);                                                                             \
    }))

#else
#define QR_FAILPOINT_RC(point_name, err) ((void)(err), QR_OK)
#endif

/* A statement: leaves the function with the failpoint's error. */
#define QR_FAILPOINT(point_name, err) QR_TRY(QR_FAILPOINT_RC(point_name, err))

bool qr_failpoints_built_in(void);

/* Replaces the plan in force and counts hits from 0 again; NULL or "" switches all off. An unknown name, action or
 * syntax is an error and changes nothing. Without built-in failpoints only the empty plan is accepted. */
qr_rc qr_failpoints_set(const char *plan, qr_err *err);
/* Takes the plan from the environment. Called once by each front end before it starts. */
qr_rc qr_failpoints_load_env(qr_err *err);

/* How often the named point was reached since the plan was set; `@n` counts the same way. */
uint64_t qr_failpoint_hits(const char *name);

/* The name at `index` in byte order without repeats, or NULL past the end. */
const char *qr_failpoint_name(size_t index);
