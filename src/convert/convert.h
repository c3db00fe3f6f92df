/* From the bytes of a source to canonical text. First form: text as it is. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "model/stage_result.h"

/* Which way a source takes (JOB-2); the table is model/source_plan.h. */

/* Canonical text of a plain text or Markdown: valid UTF-8 without NUL and BOM, line ends as \n, in the arena. The bytes may
 * be UTF-8, UTF-16 with a byte order mark, or Windows-1252 that is mostly ASCII; anything else is binary content:
 * `unsupported_type`. *ret_title: the first Markdown heading, NULL when there is none. Warnings (`empty`) go to
 * *ret_warnings. */
qr_rc qr_convert_text(qr_str bytes, struct qr_arena *arena, qr_str *ret_text, const char **ret_mime,
                      const char **ret_title, struct qr_warning **ret_warnings, size_t *ret_warning_count, qr_err *err);
/* The first heading of canonical text that says something, cut to a reasonable length; empty when there is none. */
qr_str qr_convert_title(qr_str text);
