/* KEY=VALUE… of a command line as a JSON object. */
#pragma once

#include "base/json.h"

/* "chunking.size_tokens=300" → {"chunking": {"size_tokens": 300}} */
qr_rc cli_read_assignments(const char *const *words, size_t count, json_t **ret_object, qr_err *err);
