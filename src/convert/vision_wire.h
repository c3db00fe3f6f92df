/* What is sent to a model that looks at pictures, and what it answers: the chat of OpenAI, as most servers speak it. Pure. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "model/settings.h"

enum { QR_VISION_TEXT_BYTES_MAX = 64 << 10 }; /* of what it says about a picture */

/* What the bytes begin like: image/png, image/jpeg, image/gif, image/webp; NULL = nothing that such models take. */
const char *qr_picture_mime(qr_str bytes);

void qr_vision_write(const struct qr_vision_settings *settings, const char *mime, qr_str picture, struct qr_buf *out);
/* What it says, in the arena, without control characters; empty where it says nothing or refuses to look at it.
 * `unavailable`: it is no such answer. */
qr_rc qr_vision_read(qr_str answer, struct qr_arena *arena, qr_str *ret_text, qr_err *err);
