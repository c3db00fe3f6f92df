/* The way back of qr_json_error. */
#include "base/json_error.h"

qr_rc qr_json_read_error(const json_t *answer, qr_err *err)
{
    const json_t *error = json_object_get(answer, "error");
    const char *name = json_string_value(json_object_get(error, "code"));
    const char *message = json_string_value(json_object_get(error, "message"));
    const qr_code code = name ? qr_code_find(name) : QR_CODE_COUNT;
    return qr_fail(err, code == QR_CODE_COUNT || code == QR_CODE_NONE ? QR_CODE_INTERNAL : code, "%s",
                   message ? message : "the request was refused without a reason");
}
