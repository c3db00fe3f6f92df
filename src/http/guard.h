/* What a request must look like before anybody works on it: its target and its headers. libmicrohttpd takes more than it
 * should, and two programs that read one message differently (a proxy and we) are how requests are smuggled. Pure.
 *
 * G1  One meaning: at most one Content-Length or Transfer-Encoding, never both; exactly one Host in HTTP/1.1.
 * G2  A path is text: no NUL or control character, coded or not, no overlong form, no part "." or "..".
 * G3  A browser acts for a page only where the page is ours: see qr_guard_site. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <quire/quire.h>

enum { QR_GUARD_TARGET_BYTES_MAX = 16 << 10 };

/* The path and what stands behind the '?', as sent. `bad_request`. */
qr_rc qr_guard_target(qr_str target, qr_err *err);

/* G1. The values hold no NUL: whoever reads them has looked. `is_http_1_1` = the version that asks for a Host. */
qr_rc qr_guard_headers(const struct quire_header *headers, size_t count, bool is_http_1_1, qr_err *err);

/* Which names this server goes by. */
struct qr_guard_hosts {
    const char *names; /* separated by spaces or commas; "" = none beyond those below */
    /* It listens where only this machine comes: then localhost, 127.x.x.x and [::1] are its names, and no other. Elsewhere
     * any name is taken unless some are listed: a key is asked for anyway. */
    bool is_loopback;
};

/* G3. `foreign_host` for a Host that is none of ours: a page whose name was made to lead here. `cross_site` for what a
 * browser sends on behalf of another site (Origin, Sec-Fetch-Site), unless it brings a key, which no browser adds by
 * itself. */
qr_rc qr_guard_site(const struct quire_header *headers, size_t count, const struct qr_guard_hosts *hosts, qr_err *err);

/* The value of the first header of this name, or NULL. */
const char *qr_guard_find(const struct quire_header *headers, size_t count, const char *name);
