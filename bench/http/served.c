#include "http/served.h"

#include "http/client.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_server(const char *data_dir, int out)
{
    char log[600];
    snprintf(log, sizeof log, "%s.log", data_dir);
    const int err = open(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("QUIRE_SERVER_ADDRESS_REQUESTS", "0", 1);
    setenv("QUIRE_SERVER_ADDRESS_CONNECTIONS", "0", 1);
    setenv("QUIRE_SERVER_ADDRESS_STREAMS", "0", 1);
    setenv("QUIRE_SERVER_CONNECTIONS", "4096", 1);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execl(BENCH_QUIRE, BENCH_QUIRE, "--data", data_dir, "serve", "--listen", "127.0.0.1:0", (char *)NULL);
    _exit(1);
}

void served_start(struct served *served, const char *data_dir)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        perror("bench: pipe");
        exit(1);
    }
    fflush(stdout); /* else the child would print it again */
    served->pid = fork();
    if (served->pid == 0) {
        run_server(data_dir, ends[1]);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    if (served->pid < 0 || !out || fscanf(out, "listening on http://127.0.0.1:%u", &served->port) != 1) {
        fprintf(stderr, "bench: quire serve does not start: see %s.log\n", data_dir);
        exit(1);
    }
    fclose(out);
}

static int ask(struct place *place, const char *method, const char *path, const char *body,
               struct quire_response *ret_response)
{
    const struct served *served = place->server;
    const int fd = client_connect(served->port); /* one that was kept may have waited too long */
    const int status = client_ask(fd, method, path, body, ret_response);
    close(fd);
    return status;
}

void served_place(struct served *served, struct place *place)
{
    *place = (struct place){.ask = ask, .server = served};
}

void served_stop(struct served *served)
{
    int status;
    kill(served->pid, SIGTERM);
    if (waitpid(served->pid, &status, 0) != served->pid || status != 0) {
        fprintf(stderr, "bench: quire serve has not ended well\n");
        exit(1);
    }
}

static double status_mb(const struct served *served, const char *field)
{
    char path[64], line[256];
    double kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)served->pid);
    FILE *status = fopen(path, "r");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kb = atof(line + strlen(field));
        }
    }
    if (status) {
        fclose(status);
    }
    return kb / 1024;
}

double served_resident_mb(const struct served *served)
{
    return status_mb(served, "VmRSS:");
}

double served_peak_mb(const struct served *served)
{
    return status_mb(served, "VmHWM:");
}
