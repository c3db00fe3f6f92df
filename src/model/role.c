/* The one table of roles. */
#include "model/role.h"

#include <assert.h>

static const char *const names[] = {
    [QR_ROLE_NONE] = "", [QR_ROLE_VIEWER] = "viewer", [QR_ROLE_EDITOR] = "editor", [QR_ROLE_OWNER] = "owner"};

const char *qr_role_name(enum qr_role role)
{
    assert((size_t)role < QR_COUNT(names));
    return names[role];
}

enum qr_role qr_role_find(qr_str name)
{
    for (enum qr_role role = QR_ROLE_VIEWER; role <= QR_ROLE_OWNER; role++) {
        if (qr_str_equal(name, qr_str_of(names[role]))) {
            return role;
        }
    }
    return QR_ROLE_NONE;
}
