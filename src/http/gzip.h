/* Answers that are sent smaller. */
#pragma once

#include "base/buf.h"

/* Whether an Accept-Encoding takes gzip; NULL does not. */
bool qr_gzip_is_accepted(const char *accept_encoding);
/* False where it is no gain, or memory is short; then `out` is to be thrown away. */
bool qr_gzip_compress(qr_str bytes, struct qr_buf *out);
