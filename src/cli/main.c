/* The program `quire`. */
#include "base/failpoint.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* A program may be started with standard streams closed. Then the next file opened, the database perhaps, would get
 * their number, and a message printed would be written into it. */
static bool open_closed_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

static int run(struct cli *cli, int argc, char **argv)
{
    qr_err err = {0};
    if (cli_parse(cli, argc, argv, &err) != QR_OK || qr_failpoints_load_env(&err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    if (cli->help && cli->json) {
        qr_fail(&err, QR_CODE_USAGE, "help is text for people: leave --json away");
        return cli_fail(cli, &err);
    }
    if (cli->help && cli->command) {
        cli_print_command_help(cli->command);
        return 0;
    }
    if (cli->help) {
        cli_print_overview(stdout);
        return 0;
    }
    if (!cli->command) {
        qr_fail(&err, QR_CODE_USAGE, "there is no command; `quire help` lists them");
        return cli_fail(cli, &err);
    }
    return cli->command->run(cli);
}

int main(int argc, char **argv)
{
    if (!open_closed_streams()) {
        return qr_code_info(QR_CODE_IO_ERROR)->exit_code;
    }
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the write, not the end of the process */
    struct cli cli = {0};
    qr_config_init(&cli.config);
    int exit_code = run(&cli, argc, argv);
    cli_done(&cli);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        /* the answer did not arrive: whoever asked must not take it for done */
        qr_err err;
        qr_fail_errno(&err, errno, "cannot write to standard output");
        cli_print_error(&err);
        exit_code = exit_code ? exit_code : qr_code_info(err.code)->exit_code;
    }
    return exit_code;
}
