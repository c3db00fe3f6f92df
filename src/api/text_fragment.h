/* Where in a web page a passage stands, as browsers understand it: "#:~:text=…" makes one scroll to these words and mark
 * them. A page has no lines that a reader would know, and few headings have an anchor; its words are always there. */
#pragma once

#include "base/buf.h"
#include "search/highlight.h"

/* Appends the words around the highlight that says most, coded, for what stands behind "text="; nothing where the passage has
 * no word. `text` is Markdown as convert writes it of HTML: words of one line are words of one block of the page, which a
 * browser asks for. Pure. */
void qr_text_fragment_write(qr_str text, const struct qr_range *highlights, size_t highlight_count, struct qr_buf *out);
