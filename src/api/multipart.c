/* The reader of multipart/form-data (api/multipart.h). What comes is put behind what is held, and as much as can be told
 * apart is taken from its front: while a part's bytes come, all but as many as could begin a delimiter. */
#include "api/multipart.h"

static qr_rc fail_form(qr_err *err, const char *what)
{
    return qr_fail(err, QR_CODE_BAD_REQUEST, "the multipart body is malformed: %s", what);
}

/* ---- parameters of a header: `form-data; name="a"; filename="b \"c\""` ---- */

static bool is_boundary_char(char c)
{
    return c &&
           (strchr("'()+_,-./:=?", c) || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
}

/* What stands in quotes at the beginning of *rest, without its escapes; false when it does not end. */
static bool take_quoted(qr_str *rest, struct qr_buf *out)
{
    size_t i = 1;
    for (; i < rest->len && rest->ptr[i] != '"'; i++) {
        const bool is_escape = rest->ptr[i] == '\\' && i + 1 < rest->len && strchr("\"\\", rest->ptr[i + 1]);
        i += is_escape ? 1 : 0;
        qr_buf_add_char(out, rest->ptr[i]);
    }
    if (i >= rest->len) {
        return false;
    }
    *rest = (qr_str){rest->ptr + i + 1, rest->len - i - 1};
    return true;
}

/* What stands before the next ';', which *rest begins with then. */
static qr_str take_plain(qr_str *rest)
{
    qr_str behind = *rest;
    const qr_str value = qr_str_split(&behind, ';');
    *rest = (qr_str){rest->ptr + value.len, rest->len - value.len};
    return qr_str_trim(value);
}

/* The next parameter behind a ';'; its value is in `value`. False at the end, and when it is malformed: *ret_bad. */
static bool next_parameter(qr_str *rest, qr_str *ret_name, struct qr_buf *value, bool *ret_bad)
{
    *rest = qr_str_trim(*rest);
    qr_buf_clear(value);
    if (rest->len == 0) {
        return false;
    }
    *ret_bad = rest->ptr[0] != ';';
    qr_str tail = qr_str_trim((qr_str){rest->ptr + 1, rest->len - 1});
    const size_t whole_len = tail.len;
    *ret_name = qr_str_trim(qr_str_split(&tail, '='));
    *ret_bad = *ret_bad || ret_name->len == 0 || ret_name->len == whole_len;
    if (*ret_bad) {
        return false;
    }
    if (tail.len && tail.ptr[0] == '"') {
        *ret_bad = !take_quoted(&tail, value);
    } else {
        qr_buf_add(value, take_plain(&tail));
    }
    *rest = tail;
    return !*ret_bad;
}

/* ---- the type of the whole ---- */

static qr_rc read_boundary(const char *content_type, struct qr_buf *delimiter, qr_err *err)
{
    static const qr_str before = QR_STR("\r\n--");
    QR_CLEANUP(qr_buf_done) struct qr_buf value = {0};
    qr_str rest = qr_str_of(content_type), name;
    bool is_bad = false;
    if (!qr_str_equal_any_case(take_plain(&rest), QR_STR("multipart/form-data"))) {
        return qr_fail(err, QR_CODE_UNSUPPORTED_MEDIA_TYPE, "files are uploaded as multipart/form-data");
    }
    qr_buf_add(delimiter, before);
    while (next_parameter(&rest, &name, &value, &is_bad)) {
        QR_TRY(qr_buf_check(&value, err));
        if (qr_str_equal_any_case(name, QR_STR("boundary")) && delimiter->len == before.len) {
            qr_buf_add(delimiter, qr_buf_str(&value));
        }
    }
    QR_TRY(qr_buf_check(delimiter, err));
    QR_TRY(qr_buf_check(&value, err));
    const size_t boundary_len = delimiter->len - before.len;
    bool is_good = !is_bad && boundary_len > 0 && boundary_len <= QR_MULTIPART_BOUNDARY_BYTES_MAX;
    for (size_t i = before.len; i < delimiter->len; i++) {
        is_good = is_good && is_boundary_char(delimiter->data[i]);
    }
    return is_good ? QR_OK
                   : qr_fail(err, QR_CODE_UNSUPPORTED_MEDIA_TYPE, "the Content-Type has no boundary that can be used");
}

qr_rc qr_multipart_init(struct qr_multipart *multipart, const char *content_type, const struct qr_multipart_sink *sink,
                        void *arg, qr_err *err)
{
    *multipart = (struct qr_multipart){.sink = sink, .arg = arg};
    qr_rc rc = read_boundary(content_type, &multipart->delimiter, err);
    qr_buf_add_text(&multipart->held, "\r\n"); /* the first delimiter begins with the body's own beginning */
    if (rc == QR_OK) {
        rc = qr_buf_check(&multipart->held, err);
    }
    if (rc != QR_OK) {
        qr_multipart_done(multipart);
    }
    return rc;
}

void qr_multipart_done(struct qr_multipart *multipart)
{
    qr_buf_done(&multipart->delimiter);
    qr_buf_done(&multipart->held);
}

/* ---- the headers of a part ---- */

static qr_rc read_disposition(qr_str value, struct qr_buf *filename, bool *ret_is_file, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf parameter = {0};
    qr_str key;
    bool is_bad = false;
    if (!qr_str_equal_any_case(take_plain(&value), QR_STR("form-data"))) {
        return fail_form(err, "a part is not form-data");
    }
    while (next_parameter(&value, &key, &parameter, &is_bad)) {
        QR_TRY(qr_buf_check(&parameter, err));
        if (qr_str_equal_any_case(key, QR_STR("filename"))) {
            qr_buf_clear(filename);
            qr_buf_add(filename, qr_buf_str(&parameter));
            *ret_is_file = true;
        }
    }
    QR_TRY(qr_buf_check(&parameter, err));
    QR_TRY(qr_buf_check(filename, err));
    return is_bad ? fail_form(err, "the Content-Disposition of a part cannot be read") : QR_OK;
}

static qr_rc begin_part(struct qr_multipart *multipart, qr_str head, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf filename = {0};
    bool is_file = false, has_disposition = false;
    while (head.len) {
        qr_str value = qr_str_split(&head, '\n');
        const qr_str key = qr_str_trim(qr_str_split(&value, ':'));
        if (qr_str_equal_any_case(key, QR_STR("Content-Disposition"))) {
            if (has_disposition) {
                return fail_form(err, "a part has two Content-Dispositions");
            }
            has_disposition = true;
            QR_TRY(read_disposition(qr_str_trim(value), &filename, &is_file, err));
        } else if (qr_str_equal_any_case(key, QR_STR("Content-Transfer-Encoding"))) {
            return fail_form(err, "a part is encoded once more");
        }
    }
    if (!has_disposition) {
        return fail_form(err, "a part has no Content-Disposition");
    }
    return multipart->sink->begin(multipart->arg, is_file ? qr_buf_str(&filename) : (qr_str){0}, err);
}

/* ---- one step each; *ret_moved false: more is needed ---- */

static void drop(struct qr_multipart *multipart, size_t len)
{
    struct qr_buf *held = &multipart->held;
    memmove(held->data, held->data + len, held->len - len);
    held->len -= len;
    held->data[held->len] = '\0';
}

/* A delimiter stands at the front: behind it comes a part or the end. */
static qr_rc pass_delimiter(struct qr_multipart *multipart, bool *ret_moved, qr_err *err)
{
    const qr_str held = qr_buf_str(&multipart->held), delimiter = qr_buf_str(&multipart->delimiter);
    const size_t compared = QR_MIN(held.len, delimiter.len);
    *ret_moved = false;
    if (memcmp(held.ptr, delimiter.ptr, compared) != 0) {
        return fail_form(err, "it does not begin with its boundary");
    }
    if (held.len < delimiter.len + 2) {
        return QR_OK;
    }
    const char *behind = held.ptr + delimiter.len;
    if (memcmp(behind, "--", 2) == 0) {
        multipart->state = QR_MULTIPART_END;
        qr_buf_clear(&multipart->held);
        return QR_OK;
    }
    if (memcmp(behind, "\r\n", 2) != 0) {
        return fail_form(err, "a line goes on behind its boundary");
    }
    drop(multipart, delimiter.len); /* the line's end stays: a part without headers ends with it at once */
    multipart->state = QR_MULTIPART_HEAD;
    *ret_moved = true;
    return QR_OK;
}

static qr_rc pass_head(struct qr_multipart *multipart, bool *ret_moved, qr_err *err)
{
    const qr_str held = qr_buf_str(&multipart->held);
    const char *end = memmem(held.ptr, held.len, "\r\n\r\n", 4);
    const size_t len = end ? (size_t)(end - held.ptr) : held.len;
    *ret_moved = end != NULL;
    if (len > QR_MULTIPART_HEAD_BYTES_MAX) {
        return fail_form(err, "the headers of a part are too long");
    }
    if (!end) {
        return QR_OK;
    }
    QR_TRY(begin_part(multipart, qr_str_trim((qr_str){held.ptr, len}), err));
    drop(multipart, len + 4);
    multipart->state = QR_MULTIPART_BODY;
    return QR_OK;
}

static qr_rc pass_body(struct qr_multipart *multipart, bool *ret_moved, qr_err *err)
{
    const qr_str held = qr_buf_str(&multipart->held), delimiter = qr_buf_str(&multipart->delimiter);
    const char *end = memmem(held.ptr, held.len, delimiter.ptr, delimiter.len);
    const size_t len = end ? (size_t)(end - held.ptr) : held.len - QR_MIN(held.len, delimiter.len - 1);
    *ret_moved = end != NULL;
    if (len) {
        QR_TRY(multipart->sink->bytes(multipart->arg, (qr_str){held.ptr, len}, err));
        drop(multipart, len);
    }
    if (end) {
        QR_TRY(multipart->sink->end(multipart->arg, err));
        multipart->state = QR_MULTIPART_DELIMITER;
    }
    return QR_OK;
}

qr_rc qr_multipart_add(struct qr_multipart *multipart, qr_str bytes, qr_err *err)
{
    bool moved = multipart->state != QR_MULTIPART_END; /* what stands behind the end means nothing */
    if (moved) {
        qr_buf_add(&multipart->held, bytes);
        QR_TRY(qr_buf_check(&multipart->held, err));
    }
    while (moved) {
        switch (multipart->state) {
        case QR_MULTIPART_DELIMITER:
            QR_TRY(pass_delimiter(multipart, &moved, err));
            break;
        case QR_MULTIPART_HEAD:
            QR_TRY(pass_head(multipart, &moved, err));
            break;
        case QR_MULTIPART_BODY:
            QR_TRY(pass_body(multipart, &moved, err));
            break;
        case QR_MULTIPART_END:
            moved = false;
            break;
        }
    }
    return QR_OK;
}

qr_rc qr_multipart_finish(const struct qr_multipart *multipart, qr_err *err)
{
    return multipart->state == QR_MULTIPART_END ? QR_OK : fail_form(err, "it ends too early");
}
