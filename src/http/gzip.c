/* gzip by zlib. */
#include "http/gzip.h"

#define ZLIB_CONST
#include <zlib.h>

/* "gzip", "gzip;q=0.5", not "gzip;q=0". */
static bool takes_gzip(qr_str choice)
{
    const qr_str name = qr_str_trim(qr_str_split(&choice, ';'));
    if (!qr_str_equal_any_case(name, QR_STR("gzip")) && !qr_str_equal(name, QR_STR("*"))) {
        return false;
    }
    choice = qr_str_trim(choice);
    if (!qr_str_starts_with(choice, QR_STR("q="))) {
        return true;
    }
    for (size_t i = 2; i < choice.len; i++) {
        if (choice.ptr[i] >= '1' && choice.ptr[i] <= '9') {
            return true;
        }
    }
    return false;
}

bool qr_gzip_is_accepted(const char *accept_encoding)
{
    qr_str rest = qr_str_of(accept_encoding);
    while (rest.len) {
        if (takes_gzip(qr_str_trim(qr_str_split(&rest, ',')))) {
            return true;
        }
    }
    return false;
}

bool qr_gzip_compress(qr_str bytes, struct qr_buf *out)
{
    enum { WINDOW_BITS = 15, GZIP_FORMAT = 16, MEMORY_LEVEL = 8, LEVEL = 4 };
    z_stream stream = {0};
    if (bytes.len > UINT32_MAX / 2 ||
        deflateInit2(&stream, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP_FORMAT, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    char *room = qr_buf_reserve(out, bytes.len); /* what needs more is no gain */
    stream.next_in = (const Bytef *)bytes.ptr;
    stream.avail_in = (uInt)bytes.len;
    stream.next_out = (Bytef *)room;
    stream.avail_out = (uInt)bytes.len;
    const bool ok = room && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    if (ok) {
        qr_buf_grown(out, stream.total_out);
    }
    deflateEnd(&stream);
    return ok;
}
