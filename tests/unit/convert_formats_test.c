/* The registry: which format a source is, and its title. */
#include "base/rand.h"
#include "convert/convert.h"
#include "support/fault.h"
#include "support/test.h"

static qr_err err;
static struct qr_arena arena;

QR_TEST(the_name_says_the_format_before_the_content)
{
    static const struct {
        const char *name, *text, *mime, *source_mime;
    } cases[] = {
        {"a/b/Notes.MD", "x", "text/markdown", "text/markdown"},
        {"a.rst", "x", "text/x-rst", "text/x-rst"},
        {"a.org", "x", "text/org", "text/org"},
        {"a.csv", "a,b", "text/csv", "text/csv"},
        {"a.tsv", "a\tb", "text/tab-separated-values", "text/tab-separated-values"},
        {"a.json", "{}", "application/json", "application/json"},
        {"a.jsonl", "{}\n{}", "application/jsonl", "application/jsonl"},
        {"a.log", "# no heading", "text/x-log", "text/x-log"},
        {"a.c", "# define X", "text/x-code;language=c", "text/x-c"},
        {"a.py", "# comment", "text/x-code;language=python", "text/x-python"},
        {"dir.d/Makefile", "all:", "text/x-code;language=make", "text/x-makefile"},
        {"Dockerfile", "# x", "text/x-code;language=dockerfile", "text/x-dockerfile"},
        {"CMakeLists.txt", "# x", "text/x-code;language=cmake", "text/x-cmake"},
        {".bashrc", "# x", "text/x-code;language=sh", "text/x-shellscript"},
        {"a.html", "<p>x", "text/markdown", "text/html"},
        {"a.txt", "plain", "text/plain", "text/plain"},
        {"a.txt", "# Heading\n", "text/markdown", "text/markdown"},
        {"LICENSE", "words", "text/plain", "text/plain"},
        {NULL, "words", "text/plain", "text/plain"},
        {"", "words", "text/plain", "text/plain"},
        {"tool", "#!/usr/bin/env -S python3.11 -u\nx = 1\n", "text/x-code;language=python", "text/x-python"},
        {"tool", "#!/bin/bash\n# x\n", "text/x-code;language=sh", "text/x-shellscript"},
        {"tool", "#!/opt/unknown\n# x\n", "text/plain", "text/plain"},
        {"page", " \n<!DOCTYPE HTML>\n<p>x", "text/markdown", "text/html"},
        {"page", "<?xml version='1.0'?>\n<html xmlns='x'><body><p>y</p></body></html>", "text/markdown", "text/html"},
        {"feed", "<?xml version='1.0'?>\n<rss/>", "text/x-code;language=xml", "application/xml"},
        {"data", "{\"a\": 1}", "application/json", "application/json"},
        {"data", "{\"a\": 1}\n{\"a\": 2}\n", "application/jsonl", "application/jsonl"},
        {"data", "[ {\"a\": 1} ]", "application/json", "application/json"},
        {"letter", "[a list] of words", "text/plain", "text/plain"},
        {"letter", "{curly} words", "text/plain", "text/plain"},
        {"x.unknown", "# Title\n", "text/markdown", "text/markdown"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("%s: %s", cases[i].name, cases[i].text);
        struct qr_converted converted;
        QR_CHECK_RC(QR_OK, qr_convert(qr_str_of(cases[i].text), cases[i].name, &arena, &converted, &err));
        QR_CHECK_TEXT(cases[i].mime, converted.mime);
        QR_CHECK_TEXT(cases[i].source_mime, converted.source_mime);
        if (strcmp(cases[i].source_mime, "text/html") != 0) {
            QR_CHECK_STR(cases[i].text, converted.text); /* the source itself */
            QR_CHECK_INT(0, converted.line_count);
        }
    }
    qr_arena_done(&arena);
}

QR_TEST(titles_are_what_a_text_calls_itself)
{
    static const struct {
        const char *name, *text, *title;
    } cases[] = {
        {"a.md", "# A title #\ntext", "A title"},
        {"a.md", "A title\n=======\n\n# Other", "A title"},
        {"a.md", "---\ntitle: \"The front\"\ndate: x\n---\n# Other", "The front"},
        {"a.md", "+++\ntitle = 'The front'\n+++\n# Other", "The front"},
        {"a.md", "---\ntitle: never closed\n# Other", "Other"},
        {"a.md", "---\nsubtitle: no\n---\n# Other", "Other"},
        {"a.md", "no title", NULL},
        {"a.txt", "A first line\n\nand text", "A first line"},
        {"a.txt", "\n\n  A first line\n------------\n", "A first line"},
        {"a.txt", "Prose that goes on\nin the next line.", NULL},
        {"a.txt", "12345\n\ntext", NULL},
        {"a.rst", "=====\nTitle\n=====\n\ntext", "Title"},
        {"a.rst", ".. comment\n\nTitle\n-----\n", "Title"},
        {"a.rst", "text\n", NULL},
        {"a.org", "#+TITLE: The org\n* Other", "The org"},
        {"a.org", "text\n* Heading\n", "Heading"},
        {"a.adoc", "= The doc\n\n== Other", "The doc"},
        {"a.tex", "\\documentclass{x}\n\\title{The paper}\n", "The paper"},
        {"a.json", "{\"x\": {\"title\": \"no\"}, \"name\": \"n\", \"title\": \"A \\u00e4 \\\"b\\\"\"}", "A ä \"b\""},
        {"a.json", "{\"name\": \"n\"}", "n"},
        {"a.json", "{\"title\": 5}", NULL},
        {"a.json", "[{\"title\": \"no\"}]", NULL},
        {"a.json", "{\"title\": \"broken \\x\"}", NULL},
        {"a.json", "{\"title\": \"open", NULL},
        {"src/a.c", "# define X", "a.c"},
        {"data/a.csv", "a,b", "a.csv"},
        {"a.log", "x", "a.log"},
        {"a.html", "<title> The \n page </title><h1>Other</h1>", "The page"},
        {"a.html", "<h1>The <i>heading</i></h1>", "The heading"},
        {"a.html", "<p>text", NULL},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("%s: %s", cases[i].name, cases[i].text);
        struct qr_converted converted;
        QR_CHECK_RC(QR_OK, qr_convert(qr_str_of(cases[i].text), cases[i].name, &arena, &converted, &err));
        QR_CHECK_TEXT(cases[i].title ? cases[i].title : "(none)", converted.title ? converted.title : "(none)");
    }
    qr_arena_done(&arena);
}

QR_TEST(a_title_is_cut_between_characters_and_is_one_line)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct qr_converted converted;
    qr_buf_add_text(&text, "# a\t");
    for (int i = 0; i < 200; i++) {
        qr_buf_add_text(&text, "漢");
    }
    QR_CHECK_RC(QR_OK, qr_convert(qr_buf_str(&text), "a.md", &arena, &converted, &err));
    QR_CHECK(strlen(converted.title) <= 200 && strlen(converted.title) > 190 && !strchr(converted.title, '\t'));
    QR_CHECK(qr_utf8_valid(qr_str_of(converted.title)));
    qr_arena_done(&arena);
}

QR_TEST(marks_find_the_line_of_an_offset)
{
    static const struct qr_line_mark lines[] = {{0, 3}, {10, 4}, {12, 9}};
    static const struct {
        size_t offset;
        int64_t line;
    } cases[] = {{0, 3}, {9, 3}, {10, 4}, {11, 4}, {12, 9}, {100, 9}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        QR_CHECK_INT(cases[i].line, qr_line_mark_find(lines, QR_COUNT(lines), cases[i].offset));
    }
    QR_CHECK_INT(0, qr_line_mark_find(lines, 0, 5));
    QR_CHECK_INT(0, qr_line_mark_find(lines + 1, 2, 5));
}

/* Any bytes under any name: a refusal, or canonical text with marks in order. */
QR_TEST(what_comes_out_is_canonical)
{
    static const char *const parts[] = {"text ",
                                        "\r\n",
                                        "\r",
                                        "\n",
                                        "\xEF\xBB\xBF",
                                        "\xFF\xFE",
                                        "\xE4",
                                        "ä",
                                        "漢",
                                        "# h\n",
                                        "\f",
                                        "\x80",
                                        "<p>",
                                        "<b>",
                                        "<table><tr><td>",
                                        "</table>",
                                        "<ul><li>",
                                        "</ul>",
                                        "<pre>",
                                        "</pre>",
                                        "&#13;",
                                        "&#0;",
                                        "<h2>",
                                        "</h2>",
                                        "<br>",
                                        "|",
                                        "<!--",
                                        "-->",
                                        "<nav>",
                                        "</nav>",
                                        "<script>",
                                        "</script>",
                                        "{\"title\":\"",
                                        "\"}",
                                        "<blockquote>",
                                        "```",
                                        "---\n",
                                        "title: x\n",
                                        "<a href=x>",
                                        "</a>",
                                        "<svg>",
                                        "<dl><dt>",
                                        "<dd>",
                                        "\\",
                                        "<title>",
                                        "\xC2\xAD"};
    static const char *const names[] = {"a.txt", "a.html", "a.json", "a.md", "a.rst", "a.c", NULL};
    int accepted = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        qr_test_set_context("seed %llu", (unsigned long long)seed);
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
        for (uint64_t n = qr_rand_below(&rand.rand, 30); n; n--) {
            qr_buf_add_text(&bytes, parts[qr_rand_below(&rand.rand, QR_COUNT(parts))]);
        }
        const char *name = names[qr_rand_below(&rand.rand, QR_COUNT(names))];
        struct qr_converted converted;
        if (qr_convert(qr_buf_str(&bytes), name, &arena, &converted, &err) == QR_OK) {
            const qr_str text = converted.text;
            accepted++;
            QR_CHECK(qr_utf8_valid(text) && !memchr(text.ptr, '\r', text.len) && !memchr(text.ptr, '\0', text.len));
            QR_CHECK(!qr_str_starts_with(text, QR_STR("\xEF\xBB\xBF")));
            QR_CHECK(!converted.title || (converted.title[0] && qr_utf8_valid(qr_str_of(converted.title))));
            for (size_t i = 0; i < converted.line_count; i++) {
                const struct qr_line_mark *mark = &converted.lines[i];
                QR_CHECK(mark->offset < text.len && mark->line >= 1);
                QR_CHECK(i == 0 || (mark[0].offset > mark[-1].offset && mark[0].line > mark[-1].line));
            }
        }
        qr_arena_reset(&arena);
    }
    qr_arena_done(&arena);
    QR_CHECK(accepted > 5000);
}

static void convert_scenario(void *arg)
{
    (void)arg;
    static const struct {
        const char *name;
        qr_str bytes;
    } sources[] = {
        {"a.txt", QR_STR("B\xE4r und \xD6l\n")},
        {"a.txt", QR_STR("\xEF\xF0\xE8\xE2\xE5\xF2, \xEC\xE8\xF0. \xEF\xF0\xE8\xE2\xE5\xF2\n")},
        {"a.txt", QR_STR("schön\nsch\xF6n\n")},
        {"a.txt", QR_STR("h\0e\0l\0l\0o\0 \0")},
        {"a.json", QR_STR("{\"title\": \"x\"}")},
        {"a.c", QR_STR("int x;\r\n")},
        {"a.html", QR_STR("<title>t</title><h1>h</h1><ul><li>a<li>b</ul><table><tr><th>x<th>y<tr><td>1<td>2</table>"
                          "<pre><code class=language-c>int x;</code></pre><blockquote>q</blockquote>")},
    };
    for (size_t i = 0; i < QR_COUNT(sources); i++) {
        struct qr_converted converted;
        const qr_rc rc = qr_convert(sources[i].bytes, sources[i].name, &arena, &converted, &err);
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
