/* What text costs: an estimate of tokens. Pure. */
#pragma once

#include "base/str.h"

/* Costs are in quarters of a token, so that they add up without rounding. */
enum { QR_QUARTERS_PER_TOKEN = 4 };

/* Of a visible character: a byte is a quarter, a character of Chinese, Japanese or Korean a whole token. */
int64_t qr_rune_quarters(uint32_t code, size_t len);

/* White space is one quarter however long, and none at the ends. */
int64_t qr_quarters(qr_str text);
