/* The test analyser. Stateless. */
#include "convert/analyser.h"

#include "base/mem.h"

static qr_rc test_analyse(struct qr_analyser *analyser QR_UNUSED, qr_str bytes, const char *mime QR_UNUSED,
                          struct qr_arena *arena, qr_str *ret_text, qr_err *err)
{
    const qr_str word = QR_STR("TEXT:");
    const char *found = bytes.len ? memmem(bytes.ptr, bytes.len, word.ptr, word.len) : NULL;
    if (!found) {
        *ret_text = QR_STR("");
        return QR_OK;
    }
    const char *begin = found + word.len;
    const qr_str text = qr_str_trim((qr_str){begin, (size_t)(bytes.ptr + bytes.len - begin)});
    if (!qr_utf8_valid(text) || memchr(text.ptr, '\0', text.len)) {
        return qr_fail(err, QR_CODE_CORRUPT, "what follows TEXT: is not text");
    }
    const char *copy = qr_arena_copy(arena, text);
    if (!copy) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    *ret_text = (qr_str){copy, text.len};
    return QR_OK;
}

static void test_free(struct qr_analyser *analyser)
{
    qr_free(analyser);
}

qr_rc qr_analyser_test(struct qr_analyser **ret_analyser, qr_err *err)
{
    struct qr_analyser *analyser = qr_alloc_zero(sizeof *analyser);
    if (!analyser) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    *analyser = (struct qr_analyser){.name = "test", .analyse = test_analyse, .free = test_free};
    *ret_analyser = analyser;
    return QR_OK;
}

void qr_analyser_free(struct qr_analyser *analyser)
{
    if (analyser) {
        analyser->free(analyser);
    }
}
