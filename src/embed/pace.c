/* See pace.h. Sums are halved when they are of more than two minutes: what is long ago counts less and less. */
#include "embed/pace.h"

enum { FIRST_MS = 1000, EVERY_MS = 10000, SUM_MS_MAX = 120000, MINUTE_MS = 60000 };

static void advance(struct qr_pace *pace, int64_t now_ms)
{
    if (pace->call_count > 0 && now_ms > pace->at_ms) {
        pace->busy_ms += now_ms - pace->at_ms;
        pace->untold_ms += now_ms - pace->at_ms;
    }
    pace->at_ms = now_ms;
}

void qr_pace_begin(struct qr_pace *pace, int64_t now_ms)
{
    advance(pace, now_ms);
    pace->call_count++;
}

void qr_pace_end(struct qr_pace *pace, int64_t now_ms)
{
    advance(pace, now_ms);
    pace->call_count--;
}

int64_t qr_pace_hear(struct qr_pace *pace, int64_t text_count, int64_t now_ms)
{
    advance(pace, now_ms);
    pace->text_count += text_count;
    if (pace->untold_ms < (pace->was_told ? EVERY_MS : FIRST_MS)) {
        return 0;
    }
    const int64_t a_minute = pace->text_count * MINUTE_MS / pace->busy_ms;
    pace->was_told = true;
    pace->untold_ms = 0;
    if (pace->busy_ms > SUM_MS_MAX) {
        pace->busy_ms /= 2;
        pace->text_count /= 2;
    }
    return a_minute > 0 ? a_minute : 1;
}
