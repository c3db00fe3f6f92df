/* Encodings: each is recognised, and what is not text is refused. */
#include "base/buf.h"
#include "convert/convert.h"
#include "support/test.h"

#include <iconv.h>

static qr_err err;
static struct qr_arena arena;

/* Our own texts, long enough for statistics. */
static const char RUSSIAN[] =
    "Библиотека хранит документы и отвечает на вопросы.\nКаждый ответ указывает место в исходном "
    "тексте: страницу, строку и заголовок.\nЕсли файл изменился, его читают снова.\n";
static const char JAPANESE[] =
    "この図書館は文書を保存し、質問に答えます。\nすべての答えには、元の文章の場所が示されています。\n"
    "ファイルが変わると、もう一度読み込まれます。カタカナとひらがなの両方があります。\n";
static const char CHINESE[] = "这个图书馆保存文件并回答问题。\n每个答案都指出原文的位置：页码、行号和标题。\n"
                              "如果文件改变了，就会重新读取。我们的程序在笔记本电脑上运行。\n";
static const char TAIWANESE[] = "這個圖書館保存文件並回答問題。\n每個答案都指出原文的位置：頁碼、行號和標題。\n"
                                "如果檔案改變了，就會重新讀取。我們的程式在筆記型電腦上執行。\n";
static const char KOREAN[] = "이 도서관은 문서를 보관하고 질문에 답합니다.\n모든 답은 원문의 위치를 알려 줍니다.\n"
                             "파일이 바뀌면 다시 읽습니다. 우리 프로그램은 노트북에서 실행됩니다.\n";
static const char POLISH[] =
    "Biblioteka przechowuje dokumenty i odpowiada na pytania. Każda odpowiedź wskazuje miejsce w "
    "tekście źródłowym: stronę, wiersz i nagłówek. Jeśli plik się zmienił, zostanie odczytany "
    "ponownie. Zażółć gęślą jaźń, żeby sprawdzić wszystkie ogonki.\n";
static const char FRENCH[] =
    "La bibliothèque garde les documents et répond aux questions. Chaque réponse indique l'endroit "
    "dans le texte : la page, la ligne et le titre. Un cœur à 20 € où l'été s'achève déjà, "
    "là-bas, chez l'évêque. Le maître a reçu la leçon.\n";
static const char GERMAN[] =
    "Die Bücherei bewahrt Dokumente auf und beantwortet Fragen. Jede Antwort führt zur Stelle im "
    "Text: Seite, Zeile und Überschrift. Wird die Datei geändert, so liest sie sie „noch "
    "einmal“ – für 5 €, größtenteils.\n";
static const char GREEK[] = "Η βιβλιοθήκη φυλάσσει έγγραφα και απαντά σε ερωτήσεις.\nΚάθε απάντηση δείχνει τη θέση στο "
                            "αρχικό κείμενο: σελίδα, γραμμή και τίτλο.\n";
static const char HEBREW[] =
    "הספרייה שומרת מסמכים ועונה על שאלות.\nכל תשובה מציינת את המקום בטקסט המקורי: עמוד, שורה וכותרת.\n";
static const char THAI[] = "ห้องสมุดเก็บเอกสารและตอบคำถาม\nทุกคำตอบบอกตำแหน่งในข้อความต้นฉบับ\n";

static const struct {
    const char *written_in, *text, *charset;
} encoded[] = {
    {"UTF-8", RUSSIAN, "utf-8"},
    {"UTF-8", JAPANESE, "utf-8"},
    {"UTF-16LE", GERMAN, "utf-16le"},
    {"UTF-16BE", GERMAN, "utf-16be"},
    {"UTF-16LE", RUSSIAN, "utf-16le"},
    {"UTF-16BE", CHINESE, "utf-16be"},
    {"UTF-16LE", JAPANESE, "utf-16le"},
    {"UTF-32LE", FRENCH, "utf-32le"},
    {"UTF-32BE", KOREAN, "utf-32be"},
    {"WINDOWS-1251", RUSSIAN, "windows-1251"},
    {"KOI8-R", RUSSIAN, "koi8-r"},
    {"CP932", JAPANESE, "cp932"},
    {"EUC-JP", JAPANESE, "euc-jp"},
    {"ISO-2022-JP", JAPANESE, "iso-2022-jp"},
    {"GB18030", CHINESE, "gb18030"},
    {"BIG5", TAIWANESE, "big5-hkscs"},
    {"EUC-KR", KOREAN, "uhc"},
    {"ISO-8859-2", POLISH, "iso-8859-2"},
    {"ISO-8859-15", FRENCH, "iso-8859-15"},
    {"WINDOWS-1252", GERMAN, "windows-1252"},
    {"WINDOWS-1253", GREEK, NULL},
    {"WINDOWS-1255", HEBREW, NULL},
    {"CP874", THAI, "cp874"},
};

static void write_in(const char *charset, const char *text, struct qr_buf *out)
{
    iconv_t with = iconv_open(charset, "UTF-8");
    QR_CHECK(with != (iconv_t)-1);
    char *from = (char *)(uintptr_t)text;
    size_t left = strlen(text), room = left * 4 + 16;
    const size_t size_bytes = room;
    char *to = qr_buf_reserve(out, room);
    QR_CHECK(to && iconv(with, &from, &left, &to, &room) != (size_t)-1);
    qr_buf_grown(out, size_bytes - room);
    iconv_close(with);
}

static bool warns(const struct qr_converted *converted, const char *code)
{
    for (size_t i = 0; i < converted->warning_count; i++) {
        if (strcmp(converted->warnings[i].code, code) == 0) {
            return true;
        }
    }
    return false;
}

QR_TEST(each_encoding_is_recognised_and_becomes_utf8)
{
    for (size_t i = 0; i < QR_COUNT(encoded); i++) {
        qr_test_set_context("%s, %.20s", encoded[i].written_in, encoded[i].text);
        QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
        struct qr_converted converted;
        write_in(encoded[i].written_in, encoded[i].text, &bytes);
        QR_CHECK_RC(QR_OK, qr_convert(qr_buf_str(&bytes), "a.txt", &arena, &converted, &err));
        QR_CHECK_STR(encoded[i].text, converted.text);
        if (encoded[i].charset) {
            QR_CHECK_TEXT(encoded[i].charset, converted.charset);
        }
        const bool is_certain =
            strcmp(converted.charset, "utf-8") == 0 || strcmp(converted.charset, "iso-2022-jp") == 0;
        QR_CHECK_INT(!is_certain, warns(&converted, "charset_guessed"));
        qr_arena_reset(&arena);
    }
    qr_arena_done(&arena);
}

QR_TEST(a_byte_order_mark_is_believed)
{
    static const struct {
        qr_str bytes;
        const char *text, *charset;
    } cases[] = {
        {QR_STR("\xEF\xBB\xBF\xC3\xA9"), "é", "utf-8"},
        {QR_STR("\xFF\xFEh\0\xE9\0\r\0\n\0\x3D\xD8\x00\xDE"), "hé\n\U0001F600", "utf-16le"},
        {QR_STR("\xFE\xFF\0h\0\xE9\0\r\0\n\xD8\x3D\xDE\x00"), "hé\n\U0001F600", "utf-16be"},
        {QR_STR("\xFF\xFE\0\0h\0\0\0\x00\xF6\x01\0"), "h\U0001F600", "utf-32le"},
        {QR_STR("\0\0\xFE\xFF\0\0\0h\0\x01\xF6\x00"), "h\U0001F600", "utf-32be"},
        {QR_STR("\xFF\xFE"), "", "utf-16le"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct qr_converted converted;
        QR_CHECK_RC(QR_OK, qr_convert(cases[i].bytes, NULL, &arena, &converted, &err));
        QR_CHECK_STR(cases[i].text, converted.text);
        QR_CHECK_TEXT(cases[i].charset, converted.charset);
        QR_CHECK(!warns(&converted, "charset_guessed"));
    }
    qr_arena_done(&arena);
}

QR_TEST(a_declared_encoding_is_believed_where_it_fits)
{
    static const struct {
        qr_str bytes;
        const char *name, *part, *charset;
    } cases[] = {
        {QR_STR("<!DOCTYPE html><meta charset=windows-1251><p>\xEF\xF0\xE8\xE2\xE5\xF2"), "a.html", "привет",
         "windows-1251"},
        {QR_STR("<html><meta http-equiv=Content-Type content='text/html; charset=KOI8-R'><p>\xD0\xD2\xC9\xD7\xC5\xD4"),
         "a.htm", "привет", "koi8-r"},
        {QR_STR("<?xml version='1.0' encoding='iso-8859-2'?>\n<a>\xB1</a>"), "a.xml", "ą", "iso-8859-2"},
        {QR_STR("# -*- coding: koi8-r -*-\nx = '\xC1'\n"), "a.py", "а", "koi8-r"},
        {QR_STR("<meta charset=latin1><p>schön"), "a.html", "schön", "utf-8"}, /* what is UTF-8 is UTF-8 */
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("case %zu", i);
        struct qr_converted converted;
        QR_CHECK_RC(QR_OK, qr_convert(cases[i].bytes, cases[i].name, &arena, &converted, &err));
        QR_CHECK_HAS(cases[i].part, converted.text.ptr);
        QR_CHECK_TEXT(cases[i].charset, converted.charset);
        QR_CHECK(!warns(&converted, "charset_guessed"));
    }
    qr_arena_done(&arena);
}

QR_TEST(lines_in_another_encoding_are_mended_in_a_utf8_file)
{
    struct qr_converted converted;
    const qr_str bytes = QR_STR("schöne Zeile\nzweite Zeile: \xE4\xF6\xFC \x80\n漢字\nplain\n");
    QR_CHECK_RC(QR_OK, qr_convert(bytes, "a.txt", &arena, &converted, &err));
    QR_CHECK_STR("schöne Zeile\nzweite Zeile: äöü €\n漢字\nplain\n", converted.text);
    QR_CHECK(warns(&converted, "charset_mixed"));
    /* a text that was cut inside a character */
    QR_CHECK_RC(QR_OK, qr_convert(QR_STR("漢字\n漢字\n漢字\n漢\xE5\xAD"), "a.txt", &arena, &converted, &err));
    QR_CHECK(warns(&converted, "charset_mixed") && qr_str_starts_with(converted.text, QR_STR("漢字\n漢字\n漢字\n漢")));
    qr_arena_done(&arena);
}

QR_TEST(what_is_broken_in_utf16_and_utf32_is_replaced)
{
    static const struct {
        qr_str bytes;
        const char *text, *charset;
    } cases[] = {
        {QR_STR("\xFF\xFEh\0i\0\n\0\n"), "hi\n\uFFFD", "utf-16le"},
        {QR_STR("\xFE\xFF\0h\0i\0\n\0"), "hi\n\uFFFD", "utf-16be"},
        {QR_STR("\xFF\xFEh\0\x3D\xD8i\0!\0"), "h\uFFFDi!", "utf-16le"}, /* the first half alone */
        {QR_STR("\xFF\xFEh\0\x00\xDEi\0!\0"), "h\uFFFDi!", "utf-16le"}, /* the second */
        {QR_STR("\xFF\xFEh\0i\0!\0\x3D\xD8"), "hi!\uFFFD", "utf-16le"}, /* at the end */
        {QR_STR("\xFF\xFEh\0i\0!\0\x3D\xD8\x3D\xD8\x00\xDE"), "hi!\uFFFD\U0001F600", "utf-16le"},
        {QR_STR("\xFF\xFE\0\0h\0\0\0i\0\0\0!\0\0"), "hi\uFFFD", "utf-32le"},
        {QR_STR("\0\0\xFE\xFF\0\0\0h\0\0\xD8\x3D\0\0\0i"), "h\uFFFDi", "utf-32be"},
        {QR_STR("f\0i\0f\0t\0e\0e\0n\0 \0l\0e\0t\0t\0e\0r\0s\0\n\0\n"), "fifteen letters\n\uFFFD", "utf-16le"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("case %zu", i);
        struct qr_converted converted;
        QR_CHECK_RC(QR_OK, qr_convert(cases[i].bytes, "a.txt", &arena, &converted, &err));
        QR_CHECK_STR(cases[i].text, converted.text);
        QR_CHECK_TEXT(cases[i].charset, converted.charset);
        QR_CHECK(warns(&converted, "charset_mixed"));
    }
    qr_arena_done(&arena);
}

QR_TEST(binary_content_is_refused_whatever_its_name)
{
    static const qr_str binaries[] = {
        QR_STR("\x7F"
               "ELF\x02\x01\x01\0\0\0"),
        QR_STR("\x89PNG\r\n\x1A\n\0\0\0\rIHDR"),
        QR_STR("PK\x03\x04\x14\0\0\0"),
        QR_STR("\x1F\x8B\x08\0\0\0\0\0"),
        QR_STR("%PDF-1.7\n%\xE2\xE3\xCF\xD3\n"),
        QR_STR("\xFF\xD8\xFF\xE0\0\x10JFIF"),
        QR_STR("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\0\0"),
        QR_STR("{\\rtf1\\ansi text}"),
        QR_STR("SQLite format 3\0\x10\0"),
        QR_STR("text with a \0 in it, and so on"),
        QR_STR("\x01\x02\x03\x04\x05\x06 little text \x07\x08\x0E\x0F\x10\x11\x12"),
        QR_STR("\xFF\xFEh"),                                                        /* UTF-16 with half a character */
        QR_STR("\xFF\xFE\x3D\xD8h\0"),                                              /* half a pair */
        QR_STR("\0\0\xFE\xFF\0\x7F\0\0"),                                           /* no character */
        QR_STR("\x8F\x90\x9D\x81\xFE\xFF\x80\x9F\xC1\xF5\x8D\x81\x90\x9D\xFE\x81"), /* noise */
    };
    static const char *const names[] = {"a.txt", "a.md", "a.c", "a.json", "a.html", "a.csv", NULL};
    for (size_t i = 0; i < QR_COUNT(binaries); i++) {
        for (size_t k = 0; k < QR_COUNT(names); k++) {
            qr_test_set_context("binary %zu as %s", i, names[k] ? names[k] : "(no name)");
            struct qr_converted converted;
            QR_CHECK_CODE(QR_CODE_UNSUPPORTED_TYPE, qr_convert(binaries[i], names[k], &arena, &converted, &err));
        }
    }
    qr_arena_done(&arena);
}

QR_TEST(words_that_look_like_marks_are_text)
{
    static const char *const texts[] = {"RIFF is a format", "GIF is another", "OggS begins a page",
                                        "PK is short",      "ID3 tags",       "wOFF we go"};
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        struct qr_converted converted;
        QR_CHECK_RC(QR_OK, qr_convert(qr_str_of(texts[i]), "a.txt", &arena, &converted, &err));
        QR_CHECK_STR(texts[i], converted.text);
    }
    qr_arena_done(&arena);
}

/* 32 MB of one line and of ten million lines take about the same, in every encoding: nothing is looked at twice. */
static void check_large(const char *unit, size_t count)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
    struct qr_converted converted;
    for (size_t i = 0; i < count; i++) {
        qr_buf_add_text(&bytes, unit);
    }
    QR_CHECK_RC(QR_OK, qr_convert(qr_buf_str(&bytes), "a.txt", &arena, &converted, &err));
    QR_CHECK(converted.text.len >= bytes.len / 2);
    qr_arena_done(&arena);
}

QR_TEST(a_long_line_and_many_lines_are_read_in_linear_time)
{
    check_large("some words ", 3000000);
    check_large("x\n", 10000000);
    check_large("x\r\n", 4000000);
    check_large("sch\xF6n \xFC"
                "ber",
                2000000);
    check_large("sch\xF6n\n", 2000000);
}
