#include "base/buf.h"
#include "base/failpoint.h"
#include "base/thread.h"
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

#ifndef QUIRE_FAILPOINTS

QR_TEST(a_build_without_failpoints_accepts_only_the_empty_plan)
{
    qr_err err;
    QR_CHECK(!qr_failpoints_built_in());
    QR_CHECK_RC(QR_OK, qr_failpoints_set(NULL, &err));
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_failpoints_set("test.a=error", &err));
    QR_CHECK_RC(QR_OK, QR_FAILPOINT_RC("test.a", &err));
    QR_CHECK_INT(0, qr_failpoint_hits("test.a"));
    QR_CHECK(!qr_failpoint_name(0));
}

#else

static qr_rc pass_a(qr_err *err)
{
    QR_FAILPOINT("test.a", err);
    return QR_OK;
}

static qr_rc pass_a_elsewhere(qr_err *err)
{
    QR_FAILPOINT("test.a", err);
    return QR_OK;
}

static qr_rc pass_b(qr_err *err)
{
    return QR_FAILPOINT_RC("test.b", err);
}

QR_TEST(names_are_listed_once_and_in_order)
{
    QR_CHECK(qr_failpoints_built_in());
    bool a = false, b = false;
    for (size_t i = 0; qr_failpoint_name(i); i++) {
        a |= strcmp(qr_failpoint_name(i), "test.a") == 0;
        b |= strcmp(qr_failpoint_name(i), "test.b") == 0;
        QR_CHECK(i == 0 || strcmp(qr_failpoint_name(i - 1), qr_failpoint_name(i)) < 0);
    }
    QR_CHECK(a && b);
}

QR_TEST(without_a_plan_nothing_fails_and_hits_are_counted)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, pass_a(&err));
    QR_CHECK_RC(QR_OK, pass_a_elsewhere(&err));
    QR_CHECK_RC(QR_OK, pass_b(&err));
    QR_CHECK_INT(2, qr_failpoint_hits("test.a"));
    QR_CHECK_INT(1, qr_failpoint_hits("test.b"));
    QR_CHECK_INT(0, qr_failpoint_hits("no.such"));
}

QR_TEST(error_fails_every_hit_of_that_point_only)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("test.a=error", &err));
    for (int i = 0; i < 3; i++) {
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, pass_a(&err));
        QR_CHECK_HAS("test.a", err.msg);
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, pass_a_elsewhere(&err));
        QR_CHECK_RC(QR_OK, pass_b(&err));
    }
    QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
    QR_CHECK_RC(QR_OK, pass_a(&err));
}

QR_TEST(at_n_means_only_the_nth_hit_from_the_plan_on)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, pass_a(&err));
    QR_CHECK_RC(QR_OK, qr_failpoints_set("test.a=error@2; test.a=error@4", &err));
    QR_CHECK_INT(0, qr_failpoint_hits("test.a"));
    for (int hit = 1; hit <= 5; hit++) {
        const qr_rc rc = hit % 3 ? pass_a(&err) : pass_a_elsewhere(&err);
        QR_CHECK_INT(hit == 2 || hit == 4 ? QR_UNAVAILABLE : QR_OK, rc);
    }
    QR_CHECK_INT(5, qr_failpoint_hits("test.a"));
}

QR_TEST(a_sleep_waits_and_goes_on)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("test.b=sleep(20)@1", &err));
    const int64_t before_us = qr_thread_mono_us();
    QR_CHECK_RC(QR_OK, pass_b(&err));
    QR_CHECK(qr_thread_mono_us() - before_us >= 20000);
}

QR_TEST(a_crash_ends_the_process_at_once)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("test.b=crash@2", &err));
    const pid_t child = fork();
    if (child == 0) {
        (void)pass_b(&err);
        (void)pass_b(&err);
        _exit(0);
    }
    int status;
    QR_CHECK_INT(child, waitpid(child, &status, 0));
    QR_CHECK(WIFEXITED(status));
    QR_CHECK_INT(99, WEXITSTATUS(status));
}

QR_TEST(a_wrong_plan_is_refused_and_changes_nothing)
{
    static const char *const bad[] = {"test.c=error",
                                      "test.a",
                                      "test.a=",
                                      "test.a=fail",
                                      "test.a=error@",
                                      "test.a=error@0",
                                      "test.a=error@-1",
                                      "test.a=error@x",
                                      "test.a=error@1@2",
                                      "test.a=sleep",
                                      "test.a=sleep()",
                                      "test.a=sleep(x)",
                                      "test.a=sleep(-1)",
                                      "test.a=sleep(5",
                                      "test.a=sleep(99999999)",
                                      "=error",
                                      "test.a=error,test.b=error",
                                      "test.b=error;test.c=error"};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("test.a=error@2", &err));
    QR_CHECK_RC(QR_OK, pass_a(&err));
    for (size_t i = 0; i < QR_COUNT(bad); i++) {
        QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_failpoints_set(bad[i], &err));
        QR_CHECK_HAS("QUIRE_FAILPOINTS", err.msg);
    }
    QR_CHECK_RC(QR_OK, pass_b(&err));
    QR_CHECK_RC(QR_UNAVAILABLE, pass_a(&err)); /* still the second hit of the plan that was in force */
}

QR_TEST(spaces_and_empty_steps_do_no_harm)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set(" test.a = error ;; test.b=sleep(0) ;", &err));
    QR_CHECK_RC(QR_UNAVAILABLE, pass_a(&err));
    QR_CHECK_RC(QR_OK, pass_b(&err));
}

QR_TEST(too_many_steps_are_refused)
{
    struct qr_buf plan;
    qr_err err;
    qr_buf_init(&plan, 0);
    for (int i = 0; i < 32; i++) {
        qr_buf_add_text(&plan, "test.a=error;");
    }
    QR_CHECK_RC(QR_OK, qr_failpoints_set(plan.data, &err));
    qr_buf_add_text(&plan, "test.a=error;");
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_failpoints_set(plan.data, &err));
    qr_buf_done(&plan);
}

QR_TEST(the_plan_comes_from_the_environment)
{
    qr_err err;
    setenv("QUIRE_FAILPOINTS", "test.a=error@1", 1);
    QR_CHECK_RC(QR_OK, qr_failpoints_load_env(&err));
    QR_CHECK_RC(QR_UNAVAILABLE, pass_a(&err));
    setenv("QUIRE_FAILPOINTS", "nonsense", 1);
    QR_CHECK_RC(QR_INVALID, qr_failpoints_load_env(&err));
    unsetenv("QUIRE_FAILPOINTS");
    QR_CHECK_RC(QR_OK, qr_failpoints_load_env(&err));
}

static void *pass_often(void *failures)
{
    for (int i = 0; i < 1000; i++) {
        if (pass_a(NULL) != QR_OK) {
            __atomic_add_fetch((int *)failures, 1, __ATOMIC_SEQ_CST);
        }
    }
    return NULL;
}

QR_TEST(among_threads_the_nth_hit_is_one_hit)
{
    qr_err err;
    int failures = 0;
    pthread_t threads[4];
    QR_CHECK_RC(QR_OK, qr_failpoints_set("test.a=error@1234", &err));
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        QR_CHECK_RC(QR_OK, qr_thread_start(&threads[i], "passer", pass_often, &failures, &err));
    }
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    QR_CHECK_INT(1, failures);
    QR_CHECK_INT(4000, qr_failpoint_hits("test.a"));
}

#endif
