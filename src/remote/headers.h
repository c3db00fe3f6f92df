/* What a server says about its limits in the headers of an answer. Pure. */
#pragma once

#include "base/str.h"

struct qr_told {       /* of requests or of tokens */
    bool is_known;     /* remaining and reset are */
    int64_t remaining; /* that may still be asked for … */
    int64_t reset_ms;  /* … within this time from now */
};

struct qr_remote_headers {
    int64_t retry_after_ms; /* 0 = it does not say */
    struct qr_told requests, tokens;
    char location[256]; /* of a redirection */
    /* as they come in */
    int64_t remaining[2], reset_ms[2];
    bool has_remaining[2], has_reset[2];
};

/* One line of the header, with or without its line end. A status line begins a new answer: what came before is forgotten
 * (100 Continue, a proxy's). Dates are compared with `wall_ms`. */
void qr_remote_headers_add(struct qr_remote_headers *headers, qr_str line, int64_t wall_ms);

/* "1m30s", "6ms", "1.5", "20": as durations are written there; a number alone is of seconds. False = none of these. */
bool qr_remote_duration_ms(qr_str text, int64_t *ret_ms);
