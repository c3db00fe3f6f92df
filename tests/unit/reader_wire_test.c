#include "base/mem.h"
#include "convert/reader_wire.h"
#include "support/test.h"

enum { TEXT_MAX = 1000 };

static qr_err err;

static struct qr_page_mark pages[] = {{0, 1}, {4, 2}, {4, 2}, {9, 7}};
static struct qr_line_mark lines[] = {{0, 1}, {3, 1}, {10, 12}};
static struct qr_warning warnings[] = {{"charset_guessed", "it may be windows-1251"}, {"empty", ""}};

static struct qr_converted sample(void)
{
    return (struct qr_converted){.text = QR_STR("0123456789"),
                                 .mime = "text/markdown",
                                 .source_mime = "text/html",
                                 .title = "A title",
                                 .charset = "windows-1251",
                                 .pages = pages,
                                 .page_count = QR_COUNT(pages),
                                 .lines = lines,
                                 .line_count = QR_COUNT(lines),
                                 .warnings = warnings,
                                 .warning_count = QR_COUNT(warnings)};
}

static void encode(const struct qr_converted *converted, struct qr_buf *out)
{
    qr_buf_clear(out);
    qr_answer_encode(converted, out);
    qr_buf_add(out, converted->text);
    qr_buf_add_char(out, '\0');
    QR_CHECK_RC(QR_OK, qr_buf_check(out, &err));
}

static struct qr_arena arena;

static qr_rc parse(const struct qr_buf *answer, struct qr_converted *ret)
{
    *ret = (struct qr_converted){0};
    return qr_answer_parse(qr_buf_str(answer), TEXT_MAX, &arena, ret, &err);
}

static void check_refused(const struct qr_converted *converted, const char *why)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf answer = {0};
    struct qr_converted back;
    encode(converted, &answer);
    QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, parse(&answer, &back));
    QR_CHECK_HAS(why, err.msg);
    qr_arena_done(&arena);
}

QR_TEST(everything_comes_back_as_it_was)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf answer = {0};
    const struct qr_converted there = sample();
    struct qr_converted back;
    encode(&there, &answer);
    QR_CHECK_RC(QR_OK, parse(&answer, &back));
    QR_CHECK_STR("0123456789", back.text);
    QR_CHECK_INT('\0', back.text.ptr[back.text.len]);
    QR_CHECK_TEXT("text/markdown", back.mime);
    QR_CHECK_TEXT("text/html", back.source_mime);
    QR_CHECK_TEXT("A title", back.title);
    QR_CHECK_TEXT("windows-1251", back.charset);
    QR_CHECK_INT(QR_COUNT(pages), back.page_count);
    QR_CHECK(memcmp(pages, back.pages, sizeof pages) == 0);
    QR_CHECK_INT(QR_COUNT(lines), back.line_count);
    QR_CHECK(memcmp(lines, back.lines, sizeof lines) == 0);
    QR_CHECK_INT(QR_COUNT(warnings), back.warning_count);
    QR_CHECK_TEXT("charset_guessed", back.warnings[0].code);
    QR_CHECK_TEXT("it may be windows-1251", back.warnings[0].message);
    QR_CHECK_TEXT("", back.warnings[1].message);
    qr_arena_done(&arena);
}

QR_TEST(a_document_may_have_nothing_but_its_type)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf answer = {0};
    const struct qr_converted there = {
        .text = QR_STR(""), .mime = "text/plain", .source_mime = "text/plain", .charset = "utf-8"};
    struct qr_converted back;
    encode(&there, &answer);
    QR_CHECK_RC(QR_OK, parse(&answer, &back));
    QR_CHECK_INT(0, back.text.len);
    QR_CHECK(!back.title && !back.pages && !back.lines && !back.warnings);
}

QR_TEST(an_answer_cut_anywhere_or_too_long_is_refused) /* ISOL-4 */
{
    QR_CLEANUP(qr_buf_done) struct qr_buf answer = {0};
    const struct qr_converted there = sample();
    struct qr_converted back;
    encode(&there, &answer);
    for (size_t len = 0; len < answer.len; len++) {
        char *cut = qr_alloc(len); /* of its own, so that reading past it is noticed */
        QR_CHECK(cut);
        memcpy(cut, answer.data, len);
        QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, qr_answer_parse((qr_str){cut, len}, TEXT_MAX, &arena, &back, &err));
        qr_free(cut);
    }
    qr_buf_add_char(&answer, '\0');
    QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, parse(&answer, &back));
    qr_arena_done(&arena);
}

QR_TEST(lengths_that_overflow_are_refused) /* ISOL-4 */
{
    QR_CLEANUP(qr_buf_done) struct qr_buf answer = {0};
    const struct qr_converted there = sample();
    struct qr_converted back;
    encode(&there, &answer);
    for (size_t at = sizeof(uint32_t); at + sizeof(uint64_t) <= 48; at += sizeof(uint32_t)) { /* the head */
        static const uint64_t odd[] = {UINT64_MAX, UINT64_MAX / 16, UINT64_C(1) << 60, INT64_MAX};
        for (size_t i = 0; i < QR_COUNT(odd); i++) {
            encode(&there, &answer);
            memcpy(answer.data + at, &odd[i], sizeof odd[i]);
            QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, parse(&answer, &back));
        }
    }
    qr_arena_done(&arena);
}

QR_TEST(what_is_not_canonical_text_is_refused) /* ISOL-4 */
{
    static const qr_str texts[] = {QR_STR("012345678\r"), QR_STR("01234567\xC3\x28"), QR_STR("0123\0 6789")};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        struct qr_converted converted = sample();
        converted.text = texts[i];
        check_refused(&converted, "text");
    }
}

QR_TEST(a_text_beyond_the_limit_is_refused) /* ISOL-3 */
{
    struct qr_converted converted = sample();
    char text[TEXT_MAX + 2];
    memset(text, 'a', sizeof text);
    converted.text = (qr_str){text, TEXT_MAX + 1};
    check_refused(&converted, "too long");
}

QR_TEST(marks_out_of_order_or_outside_are_refused) /* ISOL-4 */
{
    static struct qr_page_mark bad_pages[][2] = {
        {{4, 1}, {3, 2}}, {{0, 2}, {1, 1}}, {{0, 0}, {1, 1}}, {{0, 1}, {11, 2}}, {{0, -5}, {1, 1}}};
    for (size_t i = 0; i < QR_COUNT(bad_pages); i++) {
        struct qr_converted converted = sample();
        converted.pages = bad_pages[i];
        converted.page_count = 2;
        check_refused(&converted, "out of order");
    }
    static struct qr_line_mark bad_lines[][2] = {{{4, 1}, {3, 2}}, {{0, 2}, {1, 1}}, {{0, 1}, {SIZE_MAX, 2}}};
    for (size_t i = 0; i < QR_COUNT(bad_lines); i++) {
        struct qr_converted converted = sample();
        converted.lines = bad_lines[i];
        converted.line_count = 2;
        check_refused(&converted, "out of order");
    }
}

QR_TEST(unknown_warnings_and_odd_words_are_refused) /* ISOL-4 */
{
    struct qr_converted converted = sample();
    struct qr_warning unknown = {"rm", "-rf"};
    converted.warnings = &unknown;
    converted.warning_count = 1;
    check_refused(&converted, "warning is unknown");
    converted = sample();
    converted.mime = "";
    check_refused(&converted, "word is missing");
    converted.mime = NULL;
    check_refused(&converted, "word is missing");
    converted.mime = "text/plain\nX-Header: 1";
    check_refused(&converted, "word has other characters");
    converted = sample();
    converted.title = "\xFF";
    check_refused(&converted, "not UTF-8");
}

static qr_rc parse_error(qr_code code, const char *message)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf answer = {0};
    struct qr_converted back;
    qr_err error = {.code = code};
    snprintf(error.msg, sizeof error.msg, "%s", message);
    qr_answer_encode_error(&error, &answer);
    return parse(&answer, &back);
}

QR_TEST(a_failure_is_passed_on_if_a_conversion_can_have_it) /* ISOL-4 */
{
    QR_CHECK_CODE(QR_CODE_UNSUPPORTED_TYPE, parse_error(QR_CODE_UNSUPPORTED_TYPE, "it is not text"));
    QR_CHECK_TEXT("it is not text", err.msg);
    QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED, parse_error(QR_CODE_OUT_OF_MEMORY, "out of memory"));
    QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, parse_error(QR_CODE_LOST, "give it to another"));
    QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, parse_error(QR_CODE_COUNT, "what"));
    QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, parse_error(QR_CODE_CORRUPT, "\x1b[2J"));
    QR_CHECK_CODE(QR_CODE_CRASHED_WORKER, parse_error(QR_CODE_CORRUPT, "\xff\xff"));
}
