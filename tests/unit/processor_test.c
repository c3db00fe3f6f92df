/* The converter that is a program: its result, its failures, and that it outlives us. */
#include "base/fs.h"
#include "convert/processor.h"
#include "support/test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static qr_err err;
static struct qr_arena arena;

static struct qr_processor *open_with(struct qr_test *t, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, "converter", NULL};
    struct qr_processor *processor;
    QR_CHECK_RC(QR_OK, qr_processor_command(&processor, argv, qr_test_path(t, "tickets"), &err));
    return processor;
}

static const char *submit(struct qr_processor *processor, const char *path)
{
    const char *ticket;
    QR_CHECK_RC(QR_OK, processor->submit(processor, path, "name", &arena, &ticket, &err));
    return ticket;
}

/* Asks until it has ended; the test's time limit is the limit. */
static enum qr_ticket_state wait_for(struct qr_processor *processor, const char *ticket, struct qr_buf *out)
{
    enum qr_ticket_state state;
    int64_t running_ms;
    for (;;) {
        err = (qr_err){0};
        QR_CHECK_INT(QR_OK, processor->poll(processor, ticket, &state, &running_ms, out, &err));
        if (state != QR_TICKET_RUNNING) {
            return state;
        }
        sched_yield();
    }
}

static void check_done(struct qr_processor *processor, const char *ticket, const char *expected)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    QR_CHECK_INT(QR_TICKET_DONE, wait_for(processor, ticket, &out));
    QR_CHECK_STR(expected, qr_buf_str(&out));
}

static void check_failed(struct qr_processor *processor, const char *ticket, const char *why)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    QR_CHECK_INT(QR_TICKET_FAILED, wait_for(processor, ticket, &out));
    QR_CHECK_INT(QR_CODE_CONVERSION_FAILED, err.code);
    QR_CHECK_HAS(why, err.msg);
    QR_CHECK_INT(0, out.len);
}

static void check_state(struct qr_processor *processor, const char *ticket, enum qr_ticket_state expected)
{
    enum qr_ticket_state state;
    int64_t running_ms;
    QR_CHECK_RC(QR_OK, processor->poll(processor, ticket, &state, &running_ms, NULL, &err));
    QR_CHECK_INT(expected, state);
    QR_CHECK(running_ms >= 0);
}

static void done(struct qr_processor *processor)
{
    qr_processor_free(processor);
    qr_arena_done(&arena);
}

static const char *put(struct qr_test *t, const char *name, const char *content)
{
    const char *path = qr_test_path(t, name);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, qr_str_of(content), 0644, &err));
    return path;
}

QR_TEST(the_result_is_what_the_program_writes_however_often_it_is_asked_for)
{
    struct qr_processor *processor = open_with(t, "echo '# From'; cat \"$1\"; echo noise >&2");
    const char *ticket = submit(processor, put(t, "a \"strange\" $name; 'x'", "content\n"));
    check_done(processor, ticket, "# From\ncontent\n");
    check_done(processor, ticket, "# From\ncontent\n");
    processor->cancel(processor, ticket);
    check_state(processor, ticket, QR_TICKET_UNKNOWN);
    QR_CHECK_INT(0, rmdir(qr_test_path(t, "tickets"))); /* nothing is left of it */
    done(processor);
}

QR_TEST(a_path_is_never_an_option)
{
    struct qr_processor *processor = open_with(t, "printf %s \"$1\"");
    check_done(processor, submit(processor, "-rf"), "./-rf");
    done(processor);
}

QR_TEST(failures_say_why)
{
    struct qr_processor *processor = open_with(t, "printf 'page 3 \\001 is\\nbroken' >&2; echo half; exit 7");
    const char *ticket = submit(processor, "/x");
    check_failed(processor, ticket, "ended with status 7: page 3 ? is");
    check_failed(processor, ticket, "ended with status 7");
    done(processor);
    const char *const argv[] = {"/nowhere/converter", NULL};
    QR_CHECK_RC(QR_OK, qr_processor_command(&processor, argv, qr_test_path(t, "tickets"), &err));
    check_failed(processor, submit(processor, "/x"), "cannot be started");
    done(processor);
    const char *const none[] = {NULL};
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_processor_command(&processor, none, t->dir, &err));
}

QR_TEST(output_without_end_is_a_failure)
{
    struct qr_processor *processor = open_with(t, "yes | head -c 100000000; exit 0");
    check_failed(processor, submit(processor, "/x"), "more than 64 MB");
    done(processor);
}

QR_TEST(errors_without_end_do_not_stop_it)
{
    struct qr_processor *processor = open_with(t, "yes error | head -c 1000000 >&2; echo fine");
    check_done(processor, submit(processor, "/x"), "fine\n");
    done(processor);
}

/* A program that waits until the other end of its pipe is opened. */
static const char waiting[] = "read word <\"$1\"; echo \"$word\"";

static const char *make_pipe(struct qr_test *t)
{
    const char *path = qr_test_path(t, "pipe");
    QR_CHECK_INT(0, mkfifo(path, 0600));
    return path;
}

static void write_to_pipe(const char *path)
{
    const int fd = open(path, O_WRONLY);
    QR_CHECK(fd >= 0);
    QR_CHECK_INT(6, write(fd, "hello\n", 6));
    close(fd);
}

QR_TEST(it_outlives_the_process_that_started_it)
{
    const char *path = make_pipe(t);
    int fds[2];
    QR_CHECK_INT(0, pipe(fds));
    const pid_t child = fork();
    QR_CHECK(child >= 0);
    if (child == 0) {
        struct qr_processor *processor = open_with(t, waiting);
        const char *ticket = submit(processor, path);
        QR_CHECK(write(fds[1], ticket, strlen(ticket) + 1) > 0);
        kill(getpid(), SIGKILL);
    }
    char ticket[64];
    QR_CHECK(read(fds[0], ticket, sizeof ticket) > 0);
    QR_CHECK_INT(child, waitpid(child, NULL, 0));
    struct qr_processor *processor = open_with(t, waiting);
    check_state(processor, ticket, QR_TICKET_RUNNING);
    write_to_pipe(path);
    check_done(processor, ticket, "hello\n");
    done(processor);
    close(fds[0]);
    close(fds[1]);
}

QR_TEST(cancel_kills_it_with_its_children)
{
    const char *path = make_pipe(t);
    const char *pid_file = qr_test_path(t, "child");
    char script[512];
    snprintf(script, sizeof script, "sh -c 'echo $$ >%s.tmp; mv %s.tmp %s; read w <\"$0\"' \"$1\" & wait", pid_file,
             pid_file, pid_file);
    struct qr_processor *processor = open_with(t, script);
    const char *ticket = submit(processor, path);
    while (access(pid_file, F_OK)) {
        sched_yield();
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), pid_file, 100, &text, &err));
    const pid_t child = (pid_t)atoi(text.data);
    processor->cancel(processor, ticket);
    check_state(processor, ticket, QR_TICKET_UNKNOWN);
    char state_path[64];
    snprintf(state_path, sizeof state_path, "/proc/%d/stat", (int)child);
    for (bool is_gone = false; !is_gone;) { /* gone, or dead and waiting for whoever inherited it */
        qr_buf_clear(&text);
        is_gone = qr_fs_read(qr_io_system(), state_path, 4096, &text, NULL) != QR_OK || strstr(text.data, ") Z ");
    }
    done(processor);
}

QR_TEST(a_killed_program_is_a_failure_and_another_process_is_left_alone)
{
    const char *path = make_pipe(t);
    struct qr_processor *processor = open_with(t, waiting);
    const char *ticket = submit(processor, path);
    /* the record now names a process that has another start time: this one */
    QR_CLEANUP(qr_buf_done) struct qr_buf start = {0}, forged = {0}, name = {0};
    qr_buf_printf(&name, "%s/%s/start", qr_test_path(t, "tickets"), ticket);
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), name.data, 1000, &start, &err));
    const char *boot = strrchr(start.data, ' ');
    qr_buf_printf(&forged, "%d 1%s", (int)getpid(), boot);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), name.data, qr_buf_str(&forged), 0600, &err));
    check_failed(processor, ticket, "ended without a result");
    processor->cancel(processor, ticket); /* and we are still here */
    write_to_pipe(path);
    done(processor);
}

QR_TEST(nothing_of_an_earlier_boot_counts) /* C2 */
{
    struct qr_processor *processor = open_with(t, "echo fine");
    const char *ticket = submit(processor, "/x");
    check_done(processor, ticket, "fine\n");
    QR_CLEANUP(qr_buf_done) struct qr_buf name = {0};
    qr_buf_printf(&name, "%s/%s/start", qr_test_path(t, "tickets"), ticket);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), name.data, QR_STR("1 1 another-boot\n"), 0600, &err));
    check_state(processor, ticket, QR_TICKET_UNKNOWN);
    done(processor);
}

QR_TEST(a_strange_ticket_is_unknown)
{
    struct qr_processor *processor = open_with(t, "echo");
    static const char *const tickets[] = {"", ".", "..", "../x", "c", "c/../x", "C12", "c0123456789"};
    for (size_t i = 0; i < QR_COUNT(tickets); i++) {
        check_state(processor, tickets[i], QR_TICKET_UNKNOWN);
        processor->cancel(processor, tickets[i]);
    }
    done(processor);
}
