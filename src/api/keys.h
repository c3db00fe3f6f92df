/* What the routes of keys and of members share. */
#pragma once

#include "api/lookup.h"
#include "api/router.h"

/* The role that a text of the body names; `invalid_value` names the field. */
qr_rc qr_json_role(const json_t *value, const char *field, enum qr_role *ret_role, qr_err *err);
