/* What a service manager is told: systemd's notifications, a datagram each. Nothing where there is none. */
#pragma once

#include <stdint.h>

/* Lines of VARIABLE=VALUE, as in "READY=1". What cannot be sent is not: nobody could do anything about it. */
void cli_notify(const char *state);
/* How often to say WATCHDOG=1, half of the time after which the process would be killed; 0 = nobody watches it. */
int64_t cli_watchdog_ms(void);
