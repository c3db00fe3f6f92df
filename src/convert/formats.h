/* The registry of formats that are read as text: by name, then by content. Private to convert. */
#pragma once

#include "convert/convert.h"
#include "convert/encoding.h"

struct qr_format {
    const char *mime;                  /* of the canonical text */
    const char *source_mime;           /* of the source */
    const char *extensions;            /* between single spaces, small letters; "" = none */
    const char *names;                 /* whole file names in small letters, between single spaces */
    const char *interpreters;          /* of "#!" lines, between single spaces */
    qr_str (*find_title)(qr_str text); /* NULL = the file's name */
    /* From decoded to canonical text: fills text, title and lines of *ret. NULL = the text is canonical already. */
    qr_rc (*convert)(struct qr_decoded *decoded, struct qr_arena *arena, struct qr_converted *ret, qr_err *err);
};

/* By the file's name; NULL when it says nothing. */
const struct qr_format *qr_format_by_name(qr_str name);
/* By the beginning of canonical text; never NULL: Markdown or plain text in the end. */
const struct qr_format *qr_format_by_content(qr_str text);
/* "a PNG picture": what bytes are that begin as no text does; NULL when they may be text. */
const char *qr_format_binary(qr_str bytes);
/* The last part of a path. */
qr_str qr_file_name(qr_str path);
