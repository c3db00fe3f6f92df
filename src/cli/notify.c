/* Owns the address of the service manager, which is in the environment: NOTIFY_SOCKET is a path, or with '@' in front an
 * abstract name. */
#include "cli/notify.h"

#include "base/compiler.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void cli_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof address.sun_path || !strchr("/@", path[0])) {
        return;
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

/* WATCHDOG_PID says whom it is about: a child of ours is not watched. */
int64_t cli_watchdog_ms(void)
{
    const char *time = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!time || (pid && strtoll(pid, NULL, 10) != (long long)getpid())) {
        return 0;
    }
    const long long us = strtoll(time, NULL, 10);
    return us > 0 ? QR_MAX(us / 2000, 1LL) : 0;
}
