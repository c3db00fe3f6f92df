/* Pictures that stand in Markdown themselves: ![…](data:image/png;base64,…). Pure. */
#pragma once

#include "base/str.h"

struct qr_embedded_picture {
    size_t start, end; /* of the data: URL in the text */
    size_t line;       /* from 1 */
    qr_str base64;
};

struct qr_pictures {
    qr_str text;
    size_t at, line_at, line; /* how far it was read */
};

/* The next one; false: there is none. */
bool qr_pictures_next(struct qr_pictures *pictures, struct qr_embedded_picture *ret_picture);
