/* What routes share: finding what the path names, the parameters of lists, and checks of a body's fields. */
#pragma once

#include "api/router.h"
#include "base/arena.h"
#include "store/bases.h"
#include "store/items.h"

/* The base of the path's first {…}: an id, or a name. `not_found` also for one that is deleting. */
qr_rc qr_request_base(struct qr_tx *tx, const struct qr_request *request, struct qr_arena *arena,
                      struct qr_base *ret_base, qr_err *err);
/* The base of that id, or of that name. */
qr_rc qr_find_base(struct qr_tx *tx, qr_str name, struct qr_arena *arena, struct qr_base *ret_base, qr_err *err);
/* `not_found`: one that does not exist, or none of the caller's, which must look alike (KEY-4). */
qr_rc qr_base_unknown(qr_str name, qr_err *err);
/* The same in a read of its own, for the id alone. */
qr_rc qr_request_base_id(const struct qr_request *request, qr_uuid *ret_id, qr_err *err);
/* The item of the path's second {…}: an id, or a beginning of it that no other item of the base has. `not_found` also for one
 * that is deleting, itself or by what it is in. */
qr_rc qr_request_item(struct qr_tx *tx, const struct qr_request *request, const struct qr_base *base,
                      struct qr_arena *arena, struct qr_item *ret_item, qr_err *err);
/* Both in a read of its own, for the ids alone. */
qr_rc qr_request_item_id(const struct qr_request *request, qr_uuid *ret_base_id, qr_uuid *ret_item_id, qr_err *err);

/* ---- lists ---- */

/* `limit`: 1 to 200, 50 by default. */
qr_rc qr_request_limit(const struct qr_request *request, int *ret_limit, qr_err *err);
/* `cursor`: the bytes that qr_json_cursor wrote; empty when it was not given. */
qr_rc qr_request_cursor(const struct qr_request *request, struct qr_arena *arena, qr_str *ret_bytes, qr_err *err);
/* null for no bytes. */
json_t *qr_json_cursor(qr_str bytes);
/* The same of lists in the order of ids, whose cursor is the last one shown: all zero when it was not given. */
qr_rc qr_request_cursor_id(const struct qr_request *request, qr_uuid *ret_id, qr_err *err);
qr_rc qr_cursor_unknown(qr_err *err);

/* ---- fields of the body ---- */

/* A text; NULL when it is absent. `where` is put in front of the name in messages: "items[2].". */
qr_rc qr_field_text(const json_t *object, const char *where, const char *name, const char **ret_text, qr_err *err);
/* A truth value; stays as it is when it is absent. */
qr_rc qr_field_bool(const json_t *object, const char *where, const char *name, bool *ret_value, qr_err *err);
/* An object as JSON text in the arena; NULL when it is absent. */
qr_rc qr_field_object(const json_t *object, const char *where, const char *name, struct qr_arena *arena,
                      const char **ret_text, qr_err *err);

/* Of a base or a model: names stand in paths and on terminals. */
qr_rc qr_check_name(const char *name, qr_err *err);

qr_rc qr_answer_out_of_memory(qr_err *err);
