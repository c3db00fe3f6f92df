#include "http/hello.h"

#include "http/port.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's */
static enum MHD_Result answer(void *response, struct MHD_Connection *connection, const char *path QR_UNUSED,
                              const char *method QR_UNUSED, const char *version QR_UNUSED, const char *bytes QR_UNUSED,
                              size_t *size_bytes QR_UNUSED, void **seen)
{
    if (!*seen) { /* the headers: whoever answers to them closes the connection */
        *seen = response;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

static void serve(int ready)
{
    static char text[] = "hello";
    struct MHD_Response *response = MHD_create_response_from_buffer(sizeof text - 1, text, MHD_RESPMEM_PERSISTENT);
    struct MHD_Daemon *daemon =
        MHD_start_daemon(QUIRE_PORT_MHD_FLAGS, 0, NULL, NULL, answer, response, MHD_OPTION_THREAD_POOL_SIZE,
                         (unsigned)QUIRE_PORT_IO_THREADS, MHD_OPTION_END);
    if (!daemon) {
        _exit(1);
    }
    const unsigned port = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    if (write(ready, &port, sizeof port) != sizeof port) {
        _exit(1);
    }
    pause();
}

void hello_start(struct hello *hello)
{
    int ends[2];
    if (pipe(ends) != 0) {
        perror("bench: pipe");
        exit(1);
    }
    fflush(stdout); /* else the child would print it again */
    hello->pid = fork();
    if (hello->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        serve(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (hello->pid < 0 || read(ends[0], &hello->port, sizeof hello->port) != sizeof hello->port) {
        fprintf(stderr, "bench: cannot start a bare server\n");
        exit(1);
    }
    close(ends[0]);
}

void hello_stop(struct hello *hello)
{
    kill(hello->pid, SIGKILL);
    waitpid(hello->pid, NULL, 0);
}
