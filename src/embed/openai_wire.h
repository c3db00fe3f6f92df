/* The bytes of the OpenAI embeddings operation, both ways. Private to src/embed/ and its tests. */
#pragma once

#include "embed/provider.h"

#include "base/buf.h"

/* {"model", "input": […], "dimensions"?, "encoding_format"?}, each text behind the prefix. */
void qr_openai_write_request(const struct qr_embedding_settings *settings, const struct qr_embed_request *request,
                             struct qr_buf *out);

/* The answer to a request of `count` texts. Its vectors, as numbers or base64, come in the order of their `index`, are all of
 * one dimension of at most QR_DIMENSIONS_MAX, and get the length 1; one that cannot (not finite, all zero) is bad.
 * `embedding_failed` says what is wrong with anything else; it quotes nothing of it. */
qr_rc qr_openai_read_answer(qr_str body, size_t count, struct qr_embed_answer *ret_answer, qr_err *err);
