#include "support/test.h"

#include <errno.h>

QR_TEST(every_code_has_a_class_a_status_an_exit_code_and_advice)
{
    for (qr_code code = QR_CODE_NONE + 1; code < QR_CODE_COUNT; code++) {
        const struct qr_code_info *info = qr_code_info(code);
        QR_CHECK(info->name && info->name[0]);
        QR_CHECK(info->rc != QR_OK);
        QR_CHECK(info->http_status >= 400 && info->http_status < 600);
        QR_CHECK(info->exit_code >= 1 && info->exit_code <= 5);
        QR_CHECK(info->advice && info->advice[0]);
    }
    QR_CHECK_INT(QR_OK, qr_code_info(QR_CODE_NONE)->rc);
}

QR_TEST(a_code_is_found_by_its_name_and_no_name_stands_twice)
{
    for (qr_code code = 0; code < QR_CODE_COUNT; code++) {
        QR_CHECK_INT(code, qr_code_find(qr_code_info(code)->name));
    }
    QR_CHECK_INT(QR_CODE_COUNT, qr_code_find("no_such_code"));
}

QR_TEST(a_failure_carries_class_code_and_message)
{
    qr_err err;
    QR_CHECK_INT(QR_NOT_FOUND, qr_fail(&err, QR_CODE_NOT_FOUND, "no base %s", "papers"));
    QR_CHECK_INT(QR_NOT_FOUND, err.rc);
    QR_CHECK_INT(QR_CODE_NOT_FOUND, err.code);
    QR_CHECK_TEXT("no base papers", err.msg);
}

QR_TEST(the_error_may_be_left_out)
{
    QR_CHECK_INT(QR_FULL, qr_fail(NULL, QR_CODE_DISK_FULL, "full"));
    QR_CHECK_INT(QR_IO, qr_fail_errno(NULL, EIO, "read"));
    qr_err_prefix(NULL, "here");
}

QR_TEST(a_long_message_is_cut_and_ends)
{
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    qr_err err;
    qr_fail(&err, QR_CODE_INTERNAL, "%s", text);
    QR_CHECK_INT(QR_ERR_MSG_SIZE - 1, strlen(err.msg));
    qr_err_prefix(&err, "%s", text);
    QR_CHECK_INT(QR_ERR_MSG_SIZE - 1, strlen(err.msg));
    qr_fail_errno(&err, EIO, "%s", text);
    QR_CHECK_INT(QR_ERR_MSG_SIZE - 1, strlen(err.msg));
}

QR_TEST(a_message_is_text_whatever_it_quotes) /* I10 */
{
    qr_err err;
    qr_fail(&err, QR_CODE_IO_ERROR, "%s",
            "caf\xe9, \xc3\xa9, \xed\xa0\x80, \xf0\x9f\x98\x80 \x1b[2J\x7f\xc2\x9b one\ntwo\t.");
    QR_CHECK_TEXT("caf?, \xc3\xa9, ???, \xf0\x9f\x98\x80 ?[2J?? one two .", err.msg);
    qr_err_prefix(&err, "%s", "\xff\n");
    QR_CHECK_TEXT("? : caf?", qr_str_starts_with(qr_str_of(err.msg), QR_STR("? : caf?")) ? "? : caf?" : err.msg);
    qr_fail_errno(&err, EIO, "%s", "\xff");
    QR_CHECK(err.msg[0] == '?' && qr_utf8_valid(qr_str_of(err.msg)));
}

QR_TEST(a_message_may_quote_the_one_before)
{
    qr_err err;
    qr_fail(&err, QR_CODE_IO_ERROR, "inner");
    qr_fail(&err, QR_CODE_UNAVAILABLE, "outer (%s)", err.msg);
    QR_CHECK_TEXT("outer (inner)", err.msg);
    qr_err_prefix(&err, "again %s", err.msg);
    QR_CHECK_TEXT("again outer (inner): outer (inner)", err.msg);
}

QR_TEST(a_prefix_adds_context_and_keeps_the_code)
{
    qr_err err;
    qr_fail(&err, QR_CODE_DATA_CORRUPT, "page 7");
    qr_err_prefix(&err, "opening %s", "quire.db");
    QR_CHECK_TEXT("opening quire.db: page 7", err.msg);
    QR_CHECK_INT(QR_CODE_DATA_CORRUPT, err.code);
}

QR_TEST(an_errno_becomes_the_code_that_says_what_to_do)
{
    static const struct {
        int errnum;
        qr_code code;
    } cases[] = {
        {ENOSPC, QR_CODE_DISK_FULL},       {EDQUOT, QR_CODE_DISK_FULL},      {ENOMEM, QR_CODE_OUT_OF_MEMORY},
        {ENOENT, QR_CODE_NOT_FOUND},       {ENOTDIR, QR_CODE_NOT_FOUND},     {EACCES, QR_CODE_FORBIDDEN},
        {EPERM, QR_CODE_FORBIDDEN},        {EROFS, QR_CODE_DATA_READONLY},   {EEXIST, QR_CODE_ALREADY_EXISTS},
        {EISDIR, QR_CODE_INVALID_VALUE},   {ENOEXEC, QR_CODE_INVALID_VALUE}, {E2BIG, QR_CODE_PAYLOAD_TOO_LARGE},
        {ETIMEDOUT, QR_CODE_TIMEOUT},      {EMFILE, QR_CODE_UNAVAILABLE},    {EIO, QR_CODE_IO_ERROR},
        {EFBIG, QR_CODE_PAYLOAD_TOO_LARGE}};
    qr_err err;
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_fail_errno(&err, cases[i].errnum, "open %s", "x");
        QR_CHECK_INT(cases[i].code, err.code);
        QR_CHECK_INT(qr_code_info(cases[i].code)->rc, err.rc);
        QR_CHECK_HAS("open x: ", err.msg);
        QR_CHECK_HAS(strerror(cases[i].errnum), err.msg);
    }
}
