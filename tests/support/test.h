/* The test harness: each test runs in a process of its own, so a crash, a hang or a leak is that test's alone.
 *
 *     QR_TEST(lease_is_reclaimable_only_after_ttl) { QR_CHECK_RC(QR_OK, qr_lease_take(lease, &err)); }
 *
 * `t` is the running test. A failed check ends the test. Output, a line a test: "ok NAME", "FAIL NAME" or "skip NAME:
 * why". */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

struct qr_test {
    const char *name;
    void (*fn)(struct qr_test *t);
    const void *param;  /* of a test that runs over several variants */
    unsigned timeout_s; /* 0 = QR_TEST_TIMEOUT_S */
    struct qr_test *next;
    char dir[128]; /* an empty folder of its own, removed afterwards */
};

enum { QR_TEST_TIMEOUT_S = 60 };

void qr_test_register(struct qr_test *test);

#define QR_TEST(test_name) QR_TEST_WITH_TIMEOUT(test_name, 0)
#define QR_TEST_WITH_TIMEOUT(test_name, seconds)                                                                       \
    static void test_name(struct qr_test *t);                                                                          \
    __attribute__((constructor)) static void register_##test_name(void)                                                \
    {                                                                                                                  \
        static struct qr_test test = {.name = #test_name, .fn = (test_name), .timeout_s = (seconds)};                  \
        qr_test_register(&test);                                                                                       \
    }                                                                                                                  \
    static void test_name(struct qr_test *t QR_UNUSED)

/* Runs once in the parent before the first test; `finish` after the last. A binary has at most one pair. */
void qr_test_around_all(void (*start)(void), void (*finish)(void));

/* Ends the test. */
QR_NORETURN void qr_test_fail(const char *file, int line, const char *fmt, ...) QR_PRINTF(3, 4);
/* Ends the test as skipped; the reason must stand in tests/allowed-skips.txt. */
QR_NORETURN void qr_test_skip(const char *fmt, ...) QR_PRINTF(1, 2);

/* Said together with whatever fails from now on, for a check that runs many times; "" = nothing. */
void qr_test_set_context(const char *fmt, ...) QR_PRINTF(1, 2);

#define QR_FAIL(...) qr_test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define QR_CHECK(condition)                                                                                            \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            QR_FAIL("%s", #condition);                                                                                 \
        }                                                                                                              \
    } while (0)
#define QR_CHECK_INT(expected, actual)                                                                                 \
    do {                                                                                                               \
        const long long expected_ = (long long)(expected), actual_ = (long long)(actual);                              \
        if (expected_ != actual_) {                                                                                    \
            QR_FAIL("%s is %lld, not %lld", #actual, actual_, expected_);                                              \
        }                                                                                                              \
    } while (0)
#define QR_CHECK_STR(expected, actual)  qr_test_check_str(__FILE__, __LINE__, #actual, qr_str_of(expected), (actual))
#define QR_CHECK_TEXT(expected, actual) QR_CHECK_STR((expected), qr_str_of(actual))
/* The text contains the part. */
#define QR_CHECK_HAS(part, actual)                                                                                     \
    do {                                                                                                               \
        const char *actual_ = (actual);                                                                                \
        if (!strstr(actual_, (part))) {                                                                                \
            QR_FAIL("%s lacks \"%s\": \"%s\"", #actual, (part), actual_);                                              \
        }                                                                                                              \
    } while (0)
/* Uses the variable `err` of the test for the message; clears it first. */
#define QR_CHECK_RC(expected, expression)                                                                              \
    do {                                                                                                               \
        err = (qr_err){0};                                                                                             \
        const qr_rc rc_ = (expression);                                                                                \
        if (rc_ != (expected)) {                                                                                       \
            QR_FAIL("%s gives rc %d, not %d: %s", #expression, (int)rc_, (int)(expected), err.msg);                    \
        }                                                                                                              \
    } while (0)
/* Fails with this very code. */
#define QR_CHECK_CODE(expected, expression)                                                                            \
    do {                                                                                                               \
        err = (qr_err){0};                                                                                             \
        const qr_rc rc_ = (expression);                                                                                \
        if (rc_ == QR_OK || err.code != (expected)) {                                                                  \
            QR_FAIL("%s gives %s, not %s: %s", #expression, qr_code_info(err.code)->name,                              \
                    qr_code_info(expected)->name, err.msg);                                                            \
        }                                                                                                              \
    } while (0)

void qr_test_check_str(const char *file, int line, const char *what, qr_str expected, qr_str actual);

/* A path below the test's folder; static memory, valid for the next 7 calls. */
const char *qr_test_path(struct qr_test *t, const char *name);

/* A clock that stands still until it is moved. */
struct qr_clock;
const struct qr_clock *qr_test_clock(int64_t wall_ms);
void qr_test_clock_advance(int64_t ms); /* both clocks */
void qr_test_clock_jump(int64_t ms);    /* only the wall clock, either way */

/* Gives up root for good where the test has it; for tests about permissions. */
void qr_test_become_unprivileged(void);
