/* Keys: who may ask over the network. A key has a name and one secret, of which only the hash is kept; for a while after a
 * rotation it has two. What it may do is in its admin flag and in store/members.h. */
#pragma once

#include "base/arena.h"
#include "base/secret.h"
#include "base/uuid.h"
#include "db/db.h"

enum {
    QR_KEYS_MAX = 10000,               /* that are in force: more than that is a loop of somebody's */
    QR_KEY_USED_STEP_MS = 3600 * 1000, /* how coarse the time of the last use is: it is written at most so often */
    QR_KEY_ENDED_KEPT_DAYS = 90,       /* so long the name of a key that was ended is known */
};

/* The channel that is notified when somebody may do more or less than before: a key, a secret, a role. */
#define QR_KEYS_CHANNEL "keys"

struct qr_key {
    qr_uuid id;
    const char *name;
    bool is_admin;
    const char *prefix; /* of its secret */
    int64_t created_ms;
    int64_t used_ms;    /* 0 = never; coarse */
    int64_t expires_ms; /* 0 = never */
};

struct qr_key_new {
    qr_uuid id;
    qr_str name;
    bool is_admin;
    int64_t lasts_ms; /* 0 = for ever */
    const struct qr_secret *secret;
};

/* `already_exists` where another key in force has the name, `limit_exceeded`. Keys that were ended long ago go. */
qr_rc qr_key_add(struct qr_tx *tx, const struct qr_key_new *key, qr_err *err);
/* Those in force, and those that have expired; not those that were ended. */
qr_rc qr_key_find(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found, struct qr_key *ret_key,
                  qr_err *err);
qr_rc qr_key_find_name(struct qr_tx *tx, qr_str name, struct qr_arena *arena, bool *ret_found, struct qr_key *ret_key,
                       qr_err *err);
/* By id, above `after`. */
qr_rc qr_keys_list(struct qr_tx *tx, qr_uuid after, int limit, struct qr_arena *arena, struct qr_key **ret_keys,
                   size_t *ret_count, qr_err *err);
/* Whether there is or was any: then the port asks for one, also after the last one was ended. */
qr_rc qr_keys_is_any(struct qr_tx *tx, bool *ret_is, qr_err *err);

/* Ends it, with its secrets and roles, at once and for good. */
qr_rc qr_key_end(struct qr_tx *tx, qr_uuid id, qr_err *err);
/* Another secret. The one before it ends after `grace_ms`, with 0 at once; one from before that ends now. */
qr_rc qr_key_rotate(struct qr_tx *tx, qr_uuid id, const struct qr_secret *secret, int64_t grace_ms, qr_err *err);

/* The key whose secret this is, unless it has expired. `is_use_new`: the last use should be written (qr_key_note_use). */
qr_rc qr_key_find_secret(struct qr_tx *tx, qr_str secret, struct qr_arena *arena, bool *ret_found,
                         struct qr_key *ret_key, bool *ret_is_use_new, qr_err *err);
qr_rc qr_key_note_use(struct qr_tx *tx, qr_uuid id, qr_err *err);
