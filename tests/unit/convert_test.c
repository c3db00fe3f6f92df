#include "base/rand.h"
#include "convert/analyser.h"
#include "convert/convert.h"
#include "model/markdown.h"
#include "support/fault.h"
#include "support/test.h"

static qr_err err;
static struct qr_arena arena;

struct converted {
    qr_str text;
    const char *mime, *title;
    struct qr_warning *warnings;
    size_t warning_count;
};

static qr_rc convert(qr_str bytes, struct converted *ret)
{
    return qr_convert_text(bytes, &arena, &ret->text, &ret->mime, &ret->title, &ret->warnings, &ret->warning_count,
                           &err);
}

#define CHECK_TEXT(expected, bytes)                                                                                    \
    do {                                                                                                               \
        struct converted converted_;                                                                                   \
        QR_CHECK_RC(QR_OK, convert(QR_STR(bytes), &converted_));                                                       \
        QR_CHECK_STR(expected, converted_.text);                                                                       \
        qr_arena_done(&arena);                                                                                         \
    } while (0)

#define CHECK_BINARY(bytes)                                                                                            \
    do {                                                                                                               \
        struct converted converted_;                                                                                   \
        QR_CHECK_CODE(QR_CODE_UNSUPPORTED_TYPE, convert(QR_STR(bytes), &converted_));                                  \
        qr_arena_done(&arena);                                                                                         \
    } while (0)

QR_TEST(line_ends_become_newlines)
{
    CHECK_TEXT("a\nb\nc\n\nd\n", "a\r\nb\rc\r\r\nd\r");
    CHECK_TEXT("\n", "\r\n");
    CHECK_TEXT("no end", "no end");
}

QR_TEST(a_byte_order_mark_is_dropped)
{
    CHECK_TEXT("text", "\xEF\xBB\xBFtext");
    CHECK_TEXT("text", "\xEF\xBB\xBF\xEF\xBB\xBFtext");
    CHECK_TEXT("a\uFEFFb", "a\uFEFFb");
}

QR_TEST(utf16_with_a_mark_becomes_utf8)
{
    CHECK_TEXT("hé\n\u20ac\U0001F600", "\xFF\xFEh\0\xE9\0\r\0\n\0\xAC\x20\x3D\xD8\x00\xDE");
    CHECK_TEXT("hé\n\u20ac\U0001F600", "\xFE\xFF\0h\0\xE9\0\r\x20\xAC\xD8\x3D\xDE\x00");
    CHECK_TEXT("", "\xFF\xFE");
    CHECK_BINARY("\xFF\xFEh");                /* half a character */
    CHECK_BINARY("\xFF\xFE\x3D\xD8h\0");      /* half a pair */
    CHECK_BINARY("\xFF\xFE\x00\xDE\x3D\xD8"); /* a pair the wrong way round */
    CHECK_TEXT("h", "\xFF\xFE\0\0h\0\0\0");   /* UTF-32 */
}

QR_TEST(windows_1252_is_recognised_in_mostly_ascii_text)
{
    CHECK_TEXT("Der Bär kostet 5 € – “gut”", "Der B\xE4r kostet 5 \x80 \x96 \x93gut\x94");
    CHECK_BINARY("mostly ASCII with \x81");
    CHECK_TEXT("テストの文章です。",
               "\x83\x65\x83\x58\x83\x67\x82\xCC\x95\xB6\x8F\xCD\x82\xC5\x82\xB7\x81\x42"); /* Shift JIS */
}

QR_TEST(binary_content_is_refused)
{
    CHECK_BINARY("with a \0 in it");
    CHECK_BINARY("\x7F"
                 "ELF\x02\x01\x01\0\0\0");
    CHECK_BINARY("\x01\x02\x03\x04\x05\x06 little text \x07\x08\x0E\x0F\x10\x11\x12");
    CHECK_TEXT("a form feed \f and an escape \x1B[1m are fine", "a form feed \f and an escape \x1B[1m are fine");
}

QR_TEST(the_first_heading_is_the_title)
{
    static const struct {
        const char *text, *title;
    } cases[] = {
        {"# Title\n", "Title"},
        {"some text\n\n  ## A  title ##  \n# Other", "A  title"},
        {"#no\n####### seven\n#\n### Yes", "Yes"},
        {"```\n# code\n```\n# Real", "Real"},
        {"~~~~\n# code\n~~~\n# code\n~~~~~\n# Real", "Real"},
        {"```\n# code, and never closed", NULL},
        {"    # indented code", NULL},
        {"#!/bin/sh\n# a comment", NULL},
        {"no heading", NULL},
        {"# C#", "C#"},
        {"", NULL},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("text \"%s\"", cases[i].text);
        struct converted converted;
        QR_CHECK_RC(QR_OK, convert(qr_str_of(cases[i].text), &converted));
        QR_CHECK_TEXT(cases[i].title ? cases[i].title : "(none)", converted.title ? converted.title : "(none)");
        QR_CHECK_TEXT(cases[i].title ? "text/markdown" : "text/plain", converted.mime);
    }
    qr_arena_done(&arena);
}

QR_TEST(white_space_alone_is_empty) /* EMPTY-1 */
{
    struct converted converted;
    static const char *const blank[] = {"", " \r\n\t\n", "\u00a0\u3000", "\xEF\xBB\xBF"};
    for (size_t i = 0; i < QR_COUNT(blank); i++) {
        QR_CHECK_RC(QR_OK, convert(qr_str_of(blank[i]), &converted));
        QR_CHECK_INT(1, converted.warning_count);
        QR_CHECK_TEXT("empty", converted.warnings[0].code);
    }
    QR_CHECK_RC(QR_OK, convert(QR_STR(" x "), &converted));
    QR_CHECK_INT(0, converted.warning_count);
    qr_arena_done(&arena);
}

/* Any bytes: a refusal, or canonical text that a second conversion leaves as it is. */
QR_TEST(what_comes_out_is_canonical)
{
    static const char *const parts[] = {"text ", "\r\n", "\r", "\n",    "\xEF\xBB\xBF", "\xFF\xFE",
                                        "\xE4",  "ä",    "漢", "# h\n", "\f",           "\x80"};
    int accepted = 0;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        qr_test_set_context("seed %llu", (unsigned long long)seed);
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
        for (uint64_t n = qr_rand_below(&rand.rand, 30); n; n--) {
            qr_buf_add_text(&bytes, parts[qr_rand_below(&rand.rand, QR_COUNT(parts))]);
        }
        struct converted first, second;
        if (convert(qr_buf_str(&bytes), &first) == QR_OK) {
            accepted++;
            QR_CHECK(qr_utf8_valid(first.text) && !memchr(first.text.ptr, '\r', first.text.len));
            QR_CHECK(!memchr(first.text.ptr, '\0', first.text.len));
            QR_CHECK_RC(QR_OK, convert(first.text, &second));
            QR_CHECK(qr_str_equal(first.text, second.text));
        }
        qr_arena_reset(&arena);
    }
    qr_arena_done(&arena);
    QR_CHECK(accepted > 500);
}

QR_TEST(the_test_analyser_reads_what_follows_the_word)
{
    struct qr_analyser *analyser;
    qr_str text;
    QR_CHECK_RC(QR_OK, qr_analyser_test(&analyser, &err));
    QR_CHECK_RC(QR_OK,
                analyser->analyse(analyser, QR_STR("\x89PNG\0 TEXT: a sign \n"), "image/png", &arena, &text, &err));
    QR_CHECK_STR("a sign", text);
    QR_CHECK_RC(QR_OK, analyser->analyse(analyser, QR_STR("nothing"), "image/png", &arena, &text, &err));
    QR_CHECK_STR("", text);
    QR_CHECK_CODE(QR_CODE_CORRUPT, analyser->analyse(analyser, QR_STR("TEXT:\xFF"), "image/png", &arena, &text, &err));
    qr_analyser_free(analyser);
    qr_analyser_free(NULL);
    qr_arena_done(&arena);
}

static void convert_scenario(void *arg)
{
    (void)arg;
    static const char *const texts[] = {"# T\r\n", " ", "B\xE4r"};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        struct converted converted;
        const qr_rc rc = convert(qr_str_of(texts[i]), &converted);
        QR_CHECK(rc == QR_OK || rc == QR_NOMEM);
    }
    qr_fault_disarm();
    qr_arena_done(&arena);
}

QR_TEST(running_out_of_memory_is_an_error)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, convert_scenario, NULL);
}
