/* serve: owns the data folder, runs jobs, and takes requests on a port and on the folder's socket until it is told to
 * end. */
#include "base/thread.h"
#include "cli/items.h"
#include "cli/notify.h"
#include "cli/reload.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* Two for each connection would do; nobody needs to know what the shell's limit is. */
static void allow_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool has_keys(struct cli *cli)
{
    QR_JSON *answer = NULL;
    int status = 0;
    return cli_ask(cli, "GET", "/api/v1/keys?limit=1", NULL, &status, &answer, NULL) == QR_OK && status == 200 &&
           json_array_size(json_object_get(answer, "data")) > 0;
}

static qr_rc start_port(struct cli *cli, struct quire_port **ret_port, qr_err *err)
{
    struct quire_port_options options = cli_port_options(cli, &cli->config);
    options.has_keys = has_keys(cli);
    return quire_port_start(cli->quire, &options, ret_port, err);
}

/* Whether a request is answered: what is told to who watches this process. Not whether it could work: a full disk is not mended by
 * a restart. */
static bool is_healthy(struct cli *cli)
{
    QR_JSON *answer = NULL;
    int status = 0;
    return cli_ask(cli, "GET", "/healthz", NULL, &status, &answer, NULL) == QR_OK && status == 200;
}

/* ---- signals, which are blocked since the work was started ---- */

/* Whether there is a terminal that this process belongs to. */
static bool has_terminal(void)
{
    const int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static void reload(struct cli *cli, struct quire_port *port)
{
    char state[64];
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)qr_thread_mono_us());
    cli_notify(state);
    cli_reload(cli, port);
    cli_notify("READY=1");
}

/* The next signal; 0 = it was time for the watchdog. */
static int wait_for_signal(int64_t watchdog_ms)
{
    const struct timespec pause = {watchdog_ms / 1000, watchdog_ms % 1000 * 1000000};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    const int number = watchdog_ms ? sigtimedwait(&set, NULL, &pause) : sigwaitinfo(&set, NULL);
    return QR_MAX(number, 0);
}

/* SIGHUP is sent by who wants new settings taken, and when the terminal is closed that it was started in: then it ends, as anything
 * that runs there. */
static void wait_for_the_end(struct cli *cli, struct quire_port *port)
{
    const int64_t watchdog_ms = cli_watchdog_ms();
    const bool began_in_terminal = has_terminal();
    int number = 0;
    while (number == 0) {
        number = wait_for_signal(watchdog_ms);
        if (number == 0 && watchdog_ms && is_healthy(cli)) {
            cli_notify("WATCHDOG=1");
        }
        if (number == SIGHUP && (!began_in_terminal || has_terminal())) {
            reload(cli, port);
            number = 0;
        }
    }
    qr_log(&cli->log, QR_LOG_INFO, "ending",
           qr_field_text("signal", number == SIGINT    ? "SIGINT"
                                   : number == SIGTERM ? "SIGTERM"
                                                       : "SIGHUP"));
}

static void block_reloads(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before threads are started: they inherit it */
}

static int serve_until_told(struct cli *cli)
{
    struct quire_port *port = NULL;
    qr_err err = {0};
    if (start_port(cli, &port, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    printf("listening on %s\n", quire_port_url(port));
    fflush(stdout);
    cli_notify("READY=1");
    wait_for_the_end(cli, port);
    cli_notify("STOPPING=1");
    quire_stop_waiting(cli->quire);
    quire_port_stop(port);
    return 0;
}

static int serve(struct cli *cli)
{
    if (!cli->quire) {
        qr_err err;
        qr_fail(&err, QR_CODE_DATA_LOCKED, "another process owns the data folder");
        return cli_fail(cli, &err);
    }
    struct cli_work work;
    allow_files();
    block_reloads();
    int exit_code = cli_start_work(&work, cli);
    exit_code = exit_code ? exit_code : serve_until_told(cli);
    cli_stop_work(&work);
    return exit_code;
}

int cmd_serve(struct cli *cli)
{
    return cli_with_data(cli, serve);
}
