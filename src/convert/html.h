/* HTML to Markdown. Private to convert. */
#pragma once

#include "convert/formats.h"

/* The main content as Markdown: headings, paragraphs, lists, tables, code; without navigation. Takes the decoded text as
 * its working memory. `limit_exceeded` for what is too large or needs too much memory. */
qr_rc qr_convert_html(struct qr_decoded *decoded, struct qr_arena *arena, struct qr_converted *ret, qr_err *err);
