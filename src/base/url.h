/* Text in addresses. */
#pragma once

#include "base/buf.h"

/* Appends the text so that it can stand as one part of a path, or as a value behind a '?': what is neither a letter, a digit nor
 * one of -_.~ as %41. */
void qr_url_add_encoded(struct qr_buf *out, const char *text);
