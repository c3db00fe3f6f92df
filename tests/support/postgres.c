/* Owns the PostgreSQL servers that tests start. */
#include "support/postgres.h"

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_WAITS_MAX = 3000, READY_WAIT_MS = 10, ARGS_MAX = 32, PATH_SIZE = 256 };

#define SUPERUSER "quire"

/* Works in a test and in the parent of all tests alike. */
QR_NORETURN static void QR_PRINTF(1, 2) die(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("PostgreSQL fixture: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(1);
}

/* ---- the programs ---- */

static bool find_in_path(const char *name, char ret_path[static PATH_SIZE])
{
    qr_str dirs = qr_str_of(getenv("PATH"));
    while (dirs.len) {
        const qr_str dir = qr_str_split(&dirs, ':');
        snprintf(ret_path, PATH_SIZE, "%.*s/%s", QR_STR_ARG(dir), name);
        if (access(ret_path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* Debian keeps the server's programs out of PATH. */
static bool find_program(const char *name, char ret_path[static PATH_SIZE])
{
    char pattern[PATH_SIZE];
    snprintf(pattern, sizeof pattern, "/usr/lib/postgresql/*/bin/%s", name);
    glob_t found;
    const bool is_found = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (is_found) {
        snprintf(ret_path, PATH_SIZE, "%s", found.gl_pathv[found.gl_pathc - 1]);
    }
    globfree(&found);
    return is_found || find_in_path(name, ret_path);
}

bool qr_pg_installed(void)
{
    char path[PATH_SIZE];
    return find_program("initdb", path) && find_program("postgres", path);
}

/* ---- its user: PostgreSQL refuses to run as root ---- */

static const struct passwd *server_user(void)
{
    const struct passwd *user = getpwnam("postgres");
    user = user ? user : getpwnam("nobody");
    if (!user) {
        die("neither a user postgres nor nobody");
    }
    return user;
}

static void become(const struct passwd *user)
{
    if (setgroups(0, NULL) || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid)) {
        die("cannot become %s: %s", user->pw_name, strerror(errno));
    }
}

/* Starts a program as that user; it ends when this process does. */
static pid_t spawn(const struct qr_pg *pg, const char *const *args)
{
    /* looked up before the fork: other threads may run, and hold locks that the child would wait for */
    const struct passwd *user = geteuid() == 0 ? server_user() : NULL;
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) {
        die("fork: %s", strerror(errno));
    }
    if (child > 0) {
        return child;
    }
    if (user) {
        become(user);
    }
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* only now: changing the user clears it */
    if (getppid() != parent) {
        _exit(1);
    }
    char log[PATH_SIZE];
    snprintf(log, sizeof log, "%s/log", pg->dir);
    const int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir(pg->dir)) {
        die("%s: %s", log, strerror(errno));
    }
    execv(args[0], (char *const *)args);
    die("%s: %s", args[0], strerror(errno));
}

static void show_log(const struct qr_pg *pg)
{
    char path[PATH_SIZE], line[512];
    snprintf(path, sizeof path, "%s/log", pg->dir);
    FILE *log = fopen(path, "r");
    while (log && fgets(line, sizeof line, log)) {
        fputs(line, stderr);
    }
    if (log) {
        fclose(log);
    }
}

/* ---- starting and ending ---- */

static void make_dir(struct qr_pg *pg, const char *parent)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(pg->dir, sizeof pg->dir, "%s/qpg-XXXXXX", parent ? parent : tmp ? tmp : "/tmp");
    if (!mkdtemp(pg->dir)) {
        die("%s: %s", pg->dir, strerror(errno));
    }
    if (geteuid() == 0 && chown(pg->dir, server_user()->pw_uid, server_user()->pw_gid)) {
        die("chown %s: %s", pg->dir, strerror(errno));
    }
    chmod(pg->dir, 0755);
}

static void run_to_its_end(const struct qr_pg *pg, const char *const *args)
{
    int status;
    const pid_t child = spawn(pg, args);
    if (waitpid(child, &status, 0) != child || status != 0) {
        show_log(pg);
        die("%s failed", args[0]);
    }
}

static void create_cluster(const struct qr_pg *pg)
{
    char program[PATH_SIZE];
    if (!find_program("initdb", program)) {
        die("initdb is not installed");
    }
    const char *const args[] = {program, "-D",   "data",       "--no-sync", "-A",      "trust",
                                "-E",    "UTF8", "--locale=C", "-U",        SUPERUSER, NULL};
    run_to_its_end(pg, args);
}

/* The first who needs it makes it; whoever is killed at that leaves it unmade. */
static void make_pattern(const char *shared, const char *pattern)
{
    char lock_path[PATH_SIZE];
    snprintf(lock_path, sizeof lock_path, "%s/cluster.lock", shared);
    const int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0 || flock(lock, LOCK_EX)) {
        die("%s: %s", lock_path, strerror(errno));
    }
    if (access(pattern, F_OK) != 0) {
        struct qr_pg pg = {0};
        make_dir(&pg, shared);
        create_cluster(&pg);
        if (rename(pg.dir, pattern)) {
            die("%s: %s", pattern, strerror(errno));
        }
    }
    close(lock);
}

/* Making a cluster takes longer than most suites: the programs of one run share a folder with one to copy. */
static void copy_cluster(const struct qr_pg *pg, const char *shared)
{
    char pattern[PATH_SIZE], data[PATH_SIZE + 8], program[PATH_SIZE];
    snprintf(pattern, sizeof pattern, "%s/cluster", shared);
    make_pattern(shared, pattern);
    if (!find_in_path("cp", program)) {
        die("cp is not installed");
    }
    snprintf(data, sizeof data, "%s/data", pattern);
    const char *const args[] = {program, "-a", data, "data", NULL};
    run_to_its_end(pg, args);
}

static PGconn *connect_to(const struct qr_pg *pg, const char *schema)
{
    char options[PATH_SIZE] = "";
    if (schema) {
        snprintf(options, sizeof options, "-csearch_path=%s", schema);
    }
    const char *const keys[] = {"host", "user", "dbname", "options", NULL};
    const char *const values[] = {pg->dir, SUPERUSER, "postgres", options, NULL};
    return PQconnectdbParams(keys, values, 0);
}

static void wait_until_ready(struct qr_pg *pg)
{
    for (int i = 0; i < READY_WAITS_MAX; i++) {
        PGconn *conn = connect_to(pg, NULL);
        const bool is_ready = PQstatus(conn) == CONNECTION_OK;
        PQfinish(conn);
        if (is_ready) {
            return;
        }
        int status;
        if (waitpid(pg->postmaster, &status, WNOHANG) == pg->postmaster) {
            break;
        }
        nanosleep(&(struct timespec){0, READY_WAIT_MS * 1000000L}, NULL);
    }
    show_log(pg);
    die("the server in %s does not answer", pg->dir);
}

void qr_pg_resume(struct qr_pg *pg)
{
    char program[PATH_SIZE], sockets[PATH_SIZE];
    if (!find_program("postgres", program)) {
        die("postgres is not installed");
    }
    snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", pg->dir);
    /* clang-format off */
    const char *const args[] = {
        program, "-D", "data", "-c", "listen_addresses=", "-c", sockets, "-c", pg->fsync ? "fsync=on" : "fsync=off",
        "-c", "max_connections=40", "-c", "shared_buffers=16MB", "-c", "deadlock_timeout=50ms", NULL};
    /* clang-format on */
    pg->postmaster = spawn(pg, args);
    wait_until_ready(pg);
}

void qr_pg_start(struct qr_pg *pg, const char *parent)
{
    const char *shared = getenv("QUIRE_TEST_SHARED_DIR"); /* of tests/run */
    make_dir(pg, parent);
    if (shared) {
        copy_cluster(pg, shared);
    } else {
        create_cluster(pg);
    }
    qr_pg_resume(pg);
}

static void end_with(struct qr_pg *pg, int signal_number)
{
    if (pg->postmaster > 0) {
        kill(pg->postmaster, signal_number);
        kill(pg->postmaster, SIGCONT); /* frozen it would not end */
        while (waitpid(pg->postmaster, NULL, 0) < 0 && errno == EINTR) {
        }
        pg->postmaster = 0;
    }
}

void qr_pg_stop(struct qr_pg *pg)
{
    end_with(pg, SIGINT);
}

void qr_pg_crash(struct qr_pg *pg)
{
    end_with(pg, SIGQUIT);
}

/* The postmaster first: it begins no more processes then. */
static void signal_all(const struct qr_pg *pg, int signal_number)
{
    char path[PATH_SIZE], children[4096];
    kill(pg->postmaster, signal_number);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pg->postmaster, (int)pg->postmaster);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t len = fd < 0 ? -1 : read(fd, children, sizeof children - 1);
    if (len <= 0) {
        die("%s: %s", path, strerror(errno));
    }
    close(fd);
    children[len] = '\0';
    for (char *rest, *at = strtok_r(children, " ", &rest); at; at = strtok_r(NULL, " ", &rest)) {
        kill((pid_t)atoi(at), signal_number);
    }
}

void qr_pg_freeze(struct qr_pg *pg)
{
    signal_all(pg, SIGSTOP);
}

void qr_pg_thaw(struct qr_pg *pg)
{
    signal_all(pg, SIGCONT);
}

static int remove_entry(const char *path, const struct stat *st QR_UNUSED, int type QR_UNUSED,
                        struct FTW *ftw QR_UNUSED)
{
    return remove(path);
}

void qr_pg_remove(struct qr_pg *pg)
{
    end_with(pg, SIGQUIT);
    if (pg->dir[0]) {
        nftw(pg->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        pg->dir[0] = '\0';
    }
}

/* ---- talking to it ---- */

const char *qr_pg_url(struct qr_pg *pg, const char *schema)
{
    static char urls[8][512];
    static unsigned next;
    char sql[PATH_SIZE];
    snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS %s", schema);
    qr_pg_ask(pg, NULL, sql);
    char *url = urls[next++ % QR_COUNT(urls)];
    snprintf(url, sizeof urls[0],
             "postgresql://" SUPERUSER "@/postgres?host=%s&sslmode=disable&options=-csearch_path%%3D%s", pg->dir,
             schema);
    return url;
}

static void ignore_notice(void *arg QR_UNUSED, const PGresult *notice QR_UNUSED)
{
}

long long qr_pg_ask(struct qr_pg *pg, const char *schema, const char *sql)
{
    PGconn *conn = connect_to(pg, schema);
    PQsetNoticeReceiver(conn, ignore_notice, NULL);
    PGresult *result = PQexec(conn, sql);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        die("%s: %s", sql, PQerrorMessage(conn));
    }
    const long long answer = PQntuples(result) > 0 ? atoll(PQgetvalue(result, 0, 0)) : 0;
    PQclear(result);
    PQfinish(conn);
    return answer;
}
