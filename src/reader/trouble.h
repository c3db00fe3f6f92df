/* For tests: files at which the reader misbehaves. Only in builds with failpoints, and only where the environment variable
 * QUIRE_READER_FAILPOINTS arms one: "reader.crash=error;reader.loop=error". Then a file in which the name of an armed
 * failpoint occurs makes the reader do it: `reader.crash`, `reader.loop`, `reader.hang`, `reader.memory` (fails as our
 * code does), `reader.starve` (crashes when there is no more memory), `reader.flood` (answers without end), `reader.lie`
 * (answers nonsense), `reader.chat` (goes on talking after its answer), `reader.probe` (tries what it has no right to;
 * the text is what came of it). */
#pragma once

#include "convert/convert.h"

#ifdef QUIRE_FAILPOINTS
qr_rc reader_trouble_load(qr_err *err);
/* True when the file was answered: *ret is the answer, or *err. */
bool reader_trouble_take(qr_str bytes, struct qr_arena *arena, struct qr_converted *ret, qr_rc *ret_rc, qr_err *err);
/* True when it goes on talking after its answer. */
bool reader_trouble_is_talk(qr_str bytes);
void reader_trouble_talk(void);
#else
static inline qr_rc reader_trouble_load(qr_err *err QR_UNUSED)
{
    return QR_OK;
}
static inline bool reader_trouble_take(qr_str bytes QR_UNUSED, struct qr_arena *arena QR_UNUSED,
                                       struct qr_converted *ret QR_UNUSED, qr_rc *ret_rc QR_UNUSED,
                                       qr_err *err QR_UNUSED)
{
    return false;
}
static inline bool reader_trouble_is_talk(qr_str bytes QR_UNUSED)
{
    return false;
}
static inline void reader_trouble_talk(void)
{
}
#endif
