/* Titles: what a text calls itself, by its format. Empty when it does not. Pure; private to convert. */
#pragma once

#include "base/str.h"

enum { QR_TITLE_BYTES_MAX = 200 };

qr_str qr_title_markdown(qr_str text); /* front matter, else the first heading */
qr_str qr_title_plain(qr_str text);    /* the same, else a first line that stands alone */
qr_str qr_title_rst(qr_str text);
qr_str qr_title_org(qr_str text);
qr_str qr_title_asciidoc(qr_str text);
qr_str qr_title_tex(qr_str text);
qr_str qr_title_json(qr_str text); /* "title" or "name" of the outermost object; with its escapes */
