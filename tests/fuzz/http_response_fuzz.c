/* Whatever bytes come for an answer: how they are cut into pieces makes no difference, and limits hold. */
#include "http/response.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

enum { BODY_BYTES_MAX = 4096 };

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static qr_rc read_in_pieces(struct qr_http_response *response, qr_str text, size_t step, qr_err *err)
{
    qr_http_response_init(response, BODY_BYTES_MAX);
    while (text.len) {
        const size_t len = QR_MIN(step, text.len);
        QR_TRY(qr_http_response_add(response, (qr_str){text.ptr, len}, err));
        text = (qr_str){text.ptr + len, text.len - len};
    }
    return qr_http_response_end(response, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    const qr_str text = {(const char *)bytes, size_bytes};
    struct qr_http_response whole, pieces;
    qr_err err = {0}, other_err = {0};
    const qr_rc rc = read_in_pieces(&whole, text, size_bytes ? size_bytes : 1, &err);
    const size_t step = size_bytes ? 1 + bytes[size_bytes - 1] % 7 : 1;
    require(read_in_pieces(&pieces, text, step, &other_err) == rc);
    if (rc == QR_OK) {
        require(whole.status >= 200 && whole.status <= 599 && whole.status == pieces.status);
        require(whole.body.len <= BODY_BYTES_MAX);
        require(qr_str_equal(qr_buf_str(&whole.body), qr_buf_str(&pieces.body)));
    } else {
        require(err.code == QR_CODE_UNAVAILABLE || err.code == QR_CODE_PAYLOAD_TOO_LARGE);
    }
    qr_http_response_done(&whole);
    qr_http_response_done(&pieces);
    return 0;
}
