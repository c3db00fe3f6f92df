/* Endpoints that refuse to be asked: noted when it happens, shown with the bases that name them. */
#pragma once

#include "api/instance.h"
#include "base/json.h"
#include "store/bases.h"

/* A qr_circuit_fn; `arg` is the instance. What cannot be written is not shown, and the work does not suffer from it. When a
 * circuit closes the jobs that were put off for it are brought forward. */
void qr_circuits_note(void *arg, const struct qr_endpoint_state *state);

/* [{"url", "for", "since"}] of the endpoints that the base's settings name and that have not answered a request of this process
 * for some seconds. */
qr_rc qr_awaited_of_base(struct quire *quire, const struct qr_base *base, struct qr_arena *arena, json_t **ret_list,
                         qr_err *err);
/* [{"url", "for", "code", "message", "since", "next_try_at"}] of the endpoints that the base's settings name. */
qr_rc qr_circuits_of_base(struct qr_tx *tx, const struct qr_base *base, struct qr_arena *arena, json_t **ret_list,
                          qr_err *err);
