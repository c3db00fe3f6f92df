/* Whatever qr_json_parse accepts is written as JSON that means the same; whatever it refuses has a proper error; and
 * any bytes can be made a JSON string. */
#include "base/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Writes and reads again; the second text must be the first. */
static void check_round_trip(const json_t *value)
{
    struct qr_buf first, second;
    qr_buf_init(&first, 0);
    qr_buf_init(&second, 0);
    qr_err err;
    require(qr_json_write(value, &first, &err) == QR_OK);
    json_t *again = NULL;
    /* writing may lengthen the text (1e5 becomes 100000.0), but never the nesting */
    const struct qr_json_limits limits = {.size_bytes_max = SIZE_MAX, .depth_max = QR_JSON_REQUEST_LIMITS.depth_max};
    require(qr_json_parse(qr_buf_str(&first), &limits, &again, &err) == QR_OK);
    require(json_equal(value, again));
    require(qr_json_write(again, &second, &err) == QR_OK);
    require(qr_str_equal(qr_buf_str(&first), qr_buf_str(&second)));
    json_decref(again);
    qr_buf_done(&first);
    qr_buf_done(&second);
}

static void check_error(const qr_err *err)
{
    require(err->code == QR_CODE_BAD_REQUEST || err->code == QR_CODE_PAYLOAD_TOO_LARGE);
    json_t *value = qr_json_error(err, NULL);
    require(value != NULL);
    check_round_trip(value);
    json_decref(value);
}

static void check_string(qr_str text)
{
    struct qr_buf out;
    qr_buf_init(&out, 0);
    qr_json_add_string(&out, text);
    json_t *value = json_loadb(out.data, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    require(json_is_string(value));
    const qr_str back = {json_string_value(value), json_string_length(value)};
    require(!qr_utf8_valid(text) || qr_str_equal(text, back));
    json_decref(value);
    qr_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    const qr_str text = {(const char *)bytes, size_bytes};
    json_t *value = NULL;
    qr_err err = {0};
    if (qr_json_parse(text, &QR_JSON_REQUEST_LIMITS, &value, &err) == QR_OK) {
        check_round_trip(value);
        json_decref(value);
    } else {
        check_error(&err);
    }
    check_string(text);
    return 0;
}
