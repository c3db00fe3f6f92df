/* INI text, as in the configuration file:
 *
 *     # a comment, also with ';'
 *     [section]
 *     key = value
 *
 * A value reaches to the end of its line, without the white space around it: there are neither quotes nor comments
 * behind a value, so that a path, a URL or a password is written as it is. A byte order mark and CR LF are accepted.
 *
 * Not libinih: it cuts longer lines off without a word, and a database URL with a cut-off password or host is worse
 * than an error. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum {
    QR_INI_FILE_BYTES_MAX = 1 << 20, /* read whole into memory; a real file has a few hundred bytes */
    QR_INI_LINE_BYTES_MAX = 8192,    /* longer than any path (4096) or URL; more is a wrong file */
};

struct qr_ini_entry {
    qr_str section, key, value; /* of the parsed text */
    int line;
};

typedef qr_rc qr_ini_fn(void *arg, const struct qr_ini_entry *entry, qr_err *err);

/* Calls fn for each entry in order; its error ends it. `bad_request` naming file and line for anything that is not of
 * the form above, NUL or invalid UTF-8 included. */
qr_rc qr_ini_parse(qr_str text, const char *file, qr_ini_fn *fn, void *arg, qr_err *err);
