/* Who asks, and whether they may: the one place where that is decided (KEY-3, KEY-4, KEY-5). A route says in its row of the
 * router's table what it needs; the router asks here before it calls the handler, so no handler decides for itself. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/uuid.h"
#include "model/role.h"

struct qr_tx;
struct qr_arena;
struct qr_add_item;
struct qr_request;
struct quire;
struct quire_request;
struct qr_route;

/* One scale: whoever has a right has those before it too. */
enum qr_right {
    QR_RIGHT_UNSAID = 0, /* a row that nobody has decided about: refused to all */
    QR_RIGHT_OPEN,       /* anybody at all */
    QR_RIGHT_KEY,        /* any valid key; a handler that lists asks qr_caller_is_member of what it shows */
    QR_RIGHT_VIEWER,     /* a role in the base that the request is about, or in each of them */
    QR_RIGHT_EDITOR,
    QR_RIGHT_OWNER,
    QR_RIGHT_ADMIN, /* a key that may do everything in all bases */
    QR_RIGHT_LOCAL, /* the local owner, who may name files and programs of this machine */
};

struct qr_right_info {
    const char *name;  /* the word that people know */
    const char *needs; /* what whoever lacks it is told: "this needs …" */
};
const struct qr_right_info *qr_right_info(enum qr_right right);

enum { QR_KEY_NAME_BYTES_MAX = 200 }; /* as of bases: qr_check_name */

struct qr_caller {
    enum qr_right right; /* OPEN, KEY, ADMIN or LOCAL: what holds in every base */
    qr_uuid key_id;      /* all zero = no key */
    char key_name[QR_KEY_NAME_BYTES_MAX + 1];
};

/* Whether only bases are to be seen in which the caller's key has a role. */
static inline bool qr_caller_is_member(const struct qr_caller *caller)
{
    return caller->right < QR_RIGHT_ADMIN;
}

/* Finds out who asks, and whether they may, as far as the path tells; fills the caller, and puts the base's id in place of
 * its name, so that the handler works on the very base that was decided about. `unauthorized` without a valid key,
 * `forbidden` where the role is too low, `not_found` where there is none: the same as of a base that does not exist. */
qr_rc qr_access_enter(struct qr_request *request, const struct qr_route *route, qr_err *err);
/* Whether nothing but what is open to all is for whoever asks. */
bool qr_access_is_stranger(struct quire *quire, const struct quire_request *from);
/* The rest, once the body is read: whether they may in each base that it names in `base_ids`, which then holds ids. */
qr_rc qr_access_check_named(const struct qr_request *request, const struct qr_route *route, json_t *body, qr_err *err);

/* Who asks, by no more than what came with it: right OPEN = nobody that is known. For answers that go on for long. */
qr_rc qr_access_who(struct qr_tx *tx, const struct quire_request *from, struct qr_caller *ret_caller,
                    bool *ret_is_use_new, qr_err *err);
/* The base of that id or name that the caller may at least read; else `not_found`, as one that does not exist. */
qr_rc qr_access_find_base(struct qr_tx *tx, const struct qr_request *request, qr_str name, qr_uuid *ret_id,
                          qr_err *err);

/* What the key may do in a base. */
qr_rc qr_caller_right(struct qr_tx *tx, const struct qr_caller *caller, qr_uuid base_id, enum qr_right *ret_right,
                      qr_err *err);

/* Whether the other end of a connection, NULL = there is none, is on this machine. */
bool qr_access_is_loopback(const char *address);

/* ---- what is this machine's; access_machine.c ---- */

/* Whether the caller may add what is at the item's absolute path: the local owner may, others below the folders of
 * server.import_roots, links followed. Else `forbidden`, whether it is there or not. What others add is where the links led
 * now, and stays there whatever becomes of them. */
qr_rc qr_access_check_path(const struct qr_request *request, struct qr_arena *arena, struct qr_add_item *item,
                           qr_err *err);
/* Whether the caller may change the settings of a base from `old` (NULL = it is new) to `new`: programs and files of this machine
 * are for the local owner to name, its variables for an admin. Else `forbidden`. */
qr_rc qr_access_check_settings(const struct qr_request *request, const json_t *old, const json_t *new_settings,
                               qr_err *err);
