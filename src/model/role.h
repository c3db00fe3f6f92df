/* Roles of a key in a base. Pure. */
#pragma once

#include "base/str.h"

/* Each may do what those before it may. Stored as these numbers: never renumber. */
enum qr_role { QR_ROLE_NONE = 0, QR_ROLE_VIEWER = 1, QR_ROLE_EDITOR = 2, QR_ROLE_OWNER = 3 };

/* "viewer"; "" of none. */
const char *qr_role_name(enum qr_role role);
/* QR_ROLE_NONE when there is no such role. */
enum qr_role qr_role_find(qr_str name);
