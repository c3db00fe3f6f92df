/* Errors of the API, back in the form of the table. */
#pragma once

#include "base/json.h"

/* The failure that an answer {"error": {"code", "message"}} names; `internal` where it names none that there is. */
qr_rc qr_json_read_error(const json_t *answer, qr_err *err);
