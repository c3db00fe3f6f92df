/* The key of an endpoint: read when it is needed, forgotten at once (N5). */
#pragma once

#include "base/buf.h"

struct qr_key {
    struct qr_buf text; /* empty = the endpoint has none */
    uint64_t mark;      /* of this text, to tell it from another; says nothing about it */
};
#define QR_KEY_TEXT(name) QR_CLEANUP(qr_key_done) struct qr_key name = {0}
void qr_key_done(struct qr_key *key);

/* From the variable where that is set, else from the file. `endpoint_refused` names what is missing. */
qr_rc qr_key_load(struct qr_key *key, const char *env, const char *file, qr_err *err);
/* Takes the key, and what begins like it, out of a text that somebody else wrote. */
void qr_key_scrub(const struct qr_key *key, char *text);
