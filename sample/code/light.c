/* The character of the light: two flashes every twenty seconds. */
#include <stdbool.h>

enum { PERIOD_MS = 20000, FLASH_MS = 400, GAP_MS = 4600 };

/* Whether the lamp shows at this moment. */
bool light_is_on(long time_ms)
{
    long phase = time_ms % PERIOD_MS;
    return phase < FLASH_MS || (phase >= FLASH_MS + GAP_MS && phase < 2 * FLASH_MS + GAP_MS);
}
