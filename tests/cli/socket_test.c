/* The program beside a process that owns the data folder: it works through that one's socket, and takes the folder over
 * when that one is gone. The owner is a child of the test that opens the folder and serves it. */
#include "base/proc.h"
#include "base/thread.h"
#include "http/address.h"
#include "http/server.h"
#include "support/child.h"
#include "support/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the program ---- */

enum { ARGS_MAX = 8 };

struct outcome {
    int exit_code;
    struct qr_buf out, errors;
};

static void outcome_done(struct outcome *outcome)
{
    qr_buf_done(&outcome->out);
    qr_buf_done(&outcome->errors);
}

static void run(const char *data_dir, const char *const *args, struct outcome *ret_outcome)
{
    const char *argv[ARGS_MAX + 4] = {QUIRE_BINARY_DIR "/quire", "--data", data_dir};
    const char *env[] = {"HOME=/nonexistent", "PATH=/usr/bin:/bin", NULL};
    for (size_t i = 0; args[i]; i++) {
        QR_CHECK(i < ARGS_MAX);
        argv[i + 3] = args[i];
    }
    const struct qr_proc_options options = {.argv = argv, .env = env, .output_bytes_max = 1 << 20, .timeout_ms = 50000};
    struct qr_proc_result result;
    qr_err err;
    *ret_outcome = (struct outcome){0};
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &ret_outcome->out, &ret_outcome->errors, &result, &err));
    ret_outcome->exit_code = result.exit_code;
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check_run(const char *data_dir, const char *const *args, int exit_code, const char *out, const char *errors)
{
    QR_CLEANUP(outcome_done) struct outcome outcome;
    run(data_dir, args, &outcome);
    if (outcome.exit_code != exit_code) {
        QR_FAIL("%s ends with %d: %s%s", args[0], outcome.exit_code, qr_buf_str(&outcome.out).ptr,
                qr_buf_str(&outcome.errors).ptr);
    }
    QR_CHECK_HAS(out, qr_buf_str(&outcome.out).ptr);
    QR_CHECK_HAS(errors, qr_buf_str(&outcome.errors).ptr);
}

/* ---- the owner ---- */

static volatile sig_atomic_t was_told_to_end;

static void on_term(int number QR_UNUSED)
{
    was_told_to_end = 1;
}

/* Blocks SIGTERM but while it waits: the signal cannot come between the look and the sleep. */
static void wait_for_term(const sigset_t *while_waiting)
{
    while (!was_told_to_end) {
        sigsuspend(while_waiting);
    }
}

enum verdict { SERVES = 's', FOLDER_IS_LOCKED = 'l', SOMETHING_ELSE = 'x' };

static void own(void *data_dir)
{
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &before);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);

    const struct quire_options options = {.data_dir = data_dir, .program = "owner"};
    struct quire *quire = NULL;
    struct quire_error error;
    struct quire_server *server = NULL;
    qr_err err = {0};
    char verdict = SERVES;
    if (quire_open(&options, &quire, &error) != 0) {
        verdict = strcmp(error.code, "data_locked") == 0 ? FOLDER_IS_LOCKED : SOMETHING_ELSE;
    } else if (quire_server_start(quire, data_dir, &server, &err) != QR_OK) {
        verdict = SOMETHING_ELSE;
    }
    child_ack(&verdict, 1);
    if (verdict == SERVES) {
        wait_for_term(&before);
    }
    quire_server_stop(server);
    quire_close(quire);
    exit(0); /* with the leak check */
}

static void start_owner(struct child *owner, char *data_dir)
{
    char verdict = SOMETHING_ELSE;
    child_start(owner, own, data_dir);
    QR_CHECK(child_next_ack(owner, &verdict, 1));
    QR_CHECK_INT(SERVES, verdict);
}

static void stop_owner(struct child *owner)
{
    kill(owner->pid, SIGTERM);
    QR_CHECK_INT(0, child_wait(owner));
}

static char *data_folder(struct qr_test *t)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/data", t->dir);
    return path;
}

static bool socket_exists(const char *data_dir)
{
    char path[512];
    struct stat st;
    snprintf(path, sizeof path, "%s/" QR_SOCKET_NAME, data_dir);
    return lstat(path, &st) == 0;
}

/* ---- working through the owner ---- */

QR_TEST(commands_work_while_another_process_owns_the_folder)
{
    char *data = data_folder(t);
    struct child owner;
    start_owner(&owner, data);
    check_run(data, ARGS("jobs", "ls"), 0, "no jobs", "");
    check_run(data, ARGS("jobs", "pause", "embed"), 0, "embed is paused since", "");
    check_run(data, ARGS("jobs", "queues", "--json"), 0, "\"paused_since\":\"2", "");
    check_run(data, ARGS("check"), 0, "no damage found", "");
    check_run(data, ARGS("check", "--json"), 0, "\"ok\":true", "");
    stop_owner(&owner);
    QR_CHECK(!socket_exists(data));
    check_run(data, ARGS("jobs", "resume", "embed"), 0, "embed is not paused", ""); /* now on its own */
}

QR_TEST(refusals_of_the_owner_are_reported_as_ones_own)
{
    char *data = data_folder(t);
    struct child owner;
    start_owner(&owner, data);
    check_run(data, ARGS("jobs", "show", "00000000"), 4, "", "(not_found)");
    check_run(data, ARGS("jobs", "show", "x", "--json"), 4, "{\"error\":{\"code\":\"not_found\"", "");
    check_run(data, ARGS("jobs", "ls", "--state", "unknown"), 2, "", "(invalid_value)");
    stop_owner(&owner);
}

QR_TEST(folder_with_a_long_path_is_worked_through_its_owner)
{
    static char data[512];
    snprintf(data, sizeof data, "%s/%0200d", t->dir, 0);
    struct child owner;
    start_owner(&owner, data);
    check_run(data, ARGS("jobs", "ls"), 0, "no jobs", "");
    stop_owner(&owner);
    QR_CHECK(!socket_exists(data));
}

struct client {
    pthread_t thread;
    const char *data_dir;
};

static void *run_client(void *arg)
{
    const struct client *client = arg;
    check_run(client->data_dir, ARGS("jobs", "ls"), 0, "no jobs", "");
    return NULL;
}

QR_TEST(many_programs_work_through_one_owner_at_once)
{
    enum { CLIENTS = 64 };
    static struct client clients[CLIENTS];
    char *data = data_folder(t);
    struct child owner;
    qr_err err;
    start_owner(&owner, data);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].data_dir = data;
        QR_CHECK_RC(QR_OK, qr_thread_start(&clients[i].thread, "client", run_client, &clients[i], &err));
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
    }
    stop_owner(&owner);
}

/* ---- what others delete ---- */

struct adding {
    pthread_t thread;
    const char *data_dir, *file;
    struct outcome outcome;
};

static void *run_add(void *arg)
{
    struct adding *adding = arg;
    run(adding->data_dir, ARGS("add", "-b", "b", adding->file), &adding->outcome);
    return NULL;
}

/* Adds a.txt to the base b of an owner that runs no jobs, so that it waits; returns when it is there. */
static void begin_to_add(struct qr_test *t, struct adding *adding, const char *data)
{
    QR_CLEANUP(outcome_done) struct outcome made;
    qr_err err;
    FILE *file = fopen(qr_test_path(t, "a.txt"), "w");
    QR_CHECK(file && fputs("words", file) >= 0 && fclose(file) == 0);
    *adding = (struct adding){.data_dir = data, .file = qr_test_path(t, "a.txt")};
    run(data, ARGS("base", "create", "b"), &made);
    QR_CHECK_RC(QR_OK, qr_thread_start(&adding->thread, "add", run_add, adding, &err));
    for (bool is_there = false; !is_there;) {
        QR_CLEANUP(outcome_done) struct outcome listed;
        run(data, ARGS("ls", "-b", "b"), &listed);
        is_there = strstr(qr_buf_str(&listed.out).ptr, "a.txt") != NULL;
    }
}

QR_TEST(who_adds_to_a_base_that_is_deleted_meanwhile_is_told)
{
    char *data = data_folder(t);
    struct child owner;
    struct adding adding;
    start_owner(&owner, data);
    begin_to_add(t, &adding, data);
    check_run(data, ARGS("base", "rm", "b", "--yes"), 0, "deleted ", "");
    pthread_join(adding.thread, NULL);
    QR_CHECK_INT(3, adding.outcome.exit_code);
    QR_CHECK_HAS("the base b was deleted meanwhile", qr_buf_str(&adding.outcome.errors).ptr);
    outcome_done(&adding.outcome);
    stop_owner(&owner);
}

QR_TEST(who_waits_for_an_item_that_is_deleted_meanwhile_is_told)
{
    char *data = data_folder(t);
    struct child owner;
    struct adding adding;
    start_owner(&owner, data);
    begin_to_add(t, &adding, data);
    check_run(data, ARGS("rm", "-b", "b", adding.file), 0, "", "");
    pthread_join(adding.thread, NULL);
    QR_CHECK_INT(1, adding.outcome.exit_code);
    QR_CHECK_HAS("a.txt was deleted meanwhile", qr_buf_str(&adding.outcome.errors).ptr);
    outcome_done(&adding.outcome);
    stop_owner(&owner);
}

/* ---- owners that die, and owners that race ---- */

QR_TEST(killed_owner_leaves_the_folder_to_the_next)
{
    char *data = data_folder(t);
    struct child owner;
    start_owner(&owner, data);
    check_run(data, ARGS("jobs", "pause", "convert"), 0, "convert is paused since", "");
    kill(owner.pid, SIGKILL);
    QR_CHECK_INT(-SIGKILL, child_wait(&owner));
    QR_CHECK(socket_exists(data)); /* and nobody behind it */
    check_run(data, ARGS("jobs", "queues", "--json"), 0, "\"paused_since\":\"2", "");
    start_owner(&owner, data); /* replaces it */
    check_run(data, ARGS("jobs", "resume", "convert"), 0, "convert is not paused", "");
    stop_owner(&owner);
    QR_CHECK(!socket_exists(data));
}

QR_TEST(of_racing_owners_one_serves)
{
    enum { OWNERS = 4, ROUNDS = 5 };
    char *data = data_folder(t);
    for (int round = 0; round < ROUNDS; round++) {
        struct child owners[OWNERS];
        int serving = -1;
        for (int i = 0; i < OWNERS; i++) {
            child_start(&owners[i], own, data);
        }
        for (int i = 0; i < OWNERS; i++) {
            char verdict = SOMETHING_ELSE;
            QR_CHECK(child_next_ack(&owners[i], &verdict, 1));
            QR_CHECK(verdict == FOLDER_IS_LOCKED || (verdict == SERVES && serving < 0));
            serving = verdict == SERVES ? i : serving;
        }
        QR_CHECK(serving >= 0);
        check_run(data, ARGS("jobs", "ls"), 0, "no jobs", "");
        for (int i = 0; i < OWNERS; i++) {
            if (i != serving) {
                QR_CHECK_INT(0, child_wait(&owners[i]));
            }
        }
        stop_owner(&owners[serving]);
    }
}

static void hold_without_serving(void *data_dir)
{
    const struct quire_options options = {.data_dir = data_dir, .program = "silent"};
    struct quire *quire;
    char verdict = quire_open(&options, &quire, NULL) == 0 ? SERVES : SOMETHING_ELSE;
    child_ack(&verdict, 1);
    pause();
}

QR_TEST(owner_that_does_not_serve_leaves_the_folder_locked)
{
    char *data = data_folder(t), verdict = SOMETHING_ELSE;
    struct child owner;
    child_start(&owner, hold_without_serving, data);
    QR_CHECK(child_next_ack(&owner, &verdict, 1));
    QR_CHECK_INT(SERVES, verdict);
    check_run(data, ARGS("jobs", "ls"), 5, "", "(data_locked)");
    check_run(data, ARGS("check", "--json"), 5, "\"code\":\"data_locked\"", "");
    kill(owner.pid, SIGKILL);
    child_wait(&owner);
}

/* ---- owners that misbehave ---- */

struct bad_owner {
    char *data_dir;
    qr_str answer;
};

/* Holds the lock; answers every connection with the same bytes and closes it. */
static void answer_badly(void *arg)
{
    const struct bad_owner *bad = arg;
    const struct quire_options options = {.data_dir = bad->data_dir};
    struct quire *quire;
    struct qr_socket_address address;
    char verdict = SERVES, request[4096];
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (quire_open(&options, &quire, NULL) != 0 ||
        qr_socket_address_init(&address, bad->data_dir, QR_SOCKET_NAME, NULL) != QR_OK ||
        bind(listener, (const struct sockaddr *)&address.un, sizeof address.un) != 0 || listen(listener, 8) != 0) {
        verdict = SOMETHING_ELSE;
    }
    child_ack(&verdict, 1);
    for (;;) {
        const int fd = accept(listener, NULL, NULL);
        const ssize_t got = recv(fd, request, sizeof request, 0);
        if (got > 0) {
            (void)!send(fd, bad->answer.ptr, bad->answer.len, MSG_NOSIGNAL);
        }
        close(fd);
    }
}

QR_TEST(bad_answer_of_an_owner_is_an_error)
{
    static const struct {
        qr_str answer;
        const char *says;
    } cases[] = {
        {{"", 0}, "may have taken effect or not"},
        {{"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", 41}, "may have taken effect or not"},
        {{"garbage\r\n\r\n", 11}, "not proper HTTP"},
        {{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html", 43}, "status 200 and no JSON"},
        {{"HTTP/1.1 431 No\r\n\r\n<html>", 25}, "status 431 and no JSON"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        char verdict = SOMETHING_ELSE;
        static char data[256];
        snprintf(data, sizeof data, "%s/%zu", t->dir, i);
        struct bad_owner bad = {data, cases[i].answer};
        struct child owner;
        child_start(&owner, answer_badly, &bad);
        QR_CHECK(child_next_ack(&owner, &verdict, 1));
        QR_CHECK_INT(SERVES, verdict);
        check_run(data, ARGS("jobs", "ls"), 5, "", cases[i].says);
        kill(owner.pid, SIGKILL);
        child_wait(&owner);
    }
}
