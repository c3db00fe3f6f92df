/* HTML becomes Markdown: tests/data/html/NAME.html gives NAME.md, to the byte. */
#include "convert/convert.h"
#include "support/test.h"

#include <dirent.h>

static qr_err err;
static struct qr_arena arena;

static void read_file(const char *path, struct qr_buf *out)
{
    FILE *file = fopen(path, "rb");
    char part[4096];
    size_t len;
    QR_CHECK(file);
    while ((len = fread(part, 1, sizeof part, file))) {
        qr_buf_add(out, (qr_str){part, len});
    }
    fclose(file);
}

static struct qr_converted convert(qr_str bytes)
{
    struct qr_converted converted;
    QR_CHECK_RC(QR_OK, qr_convert(bytes, "a.html", &arena, &converted, &err));
    return converted;
}

QR_TEST(pages_become_their_main_content_in_markdown)
{
    static const char folder[] = QUIRE_SOURCE_DIR "/tests/data/html";
    DIR *dir = opendir(folder);
    int count = 0;
    QR_CHECK(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[512];
        const size_t len = strlen(entry->d_name);
        if (!qr_str_ends_with(qr_str_of(entry->d_name), QR_STR(".html"))) {
            continue;
        }
        qr_test_set_context("%s", entry->d_name);
        QR_CLEANUP(qr_buf_done) struct qr_buf html = {0}, markdown = {0};
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_file(path, &html);
        snprintf(path, sizeof path, "%s/%.*s.md", folder, (int)(len - strlen(".html")), entry->d_name);
        read_file(path, &markdown);
        QR_CHECK_STR(markdown.data, convert(qr_buf_str(&html)).text);
        count++;
    }
    closedir(dir);
    qr_arena_done(&arena);
    QR_CHECK(count >= 3);
}

QR_TEST(elements_are_written_as_markdown)
{
    static const struct {
        const char *html, *markdown;
    } cases[] = {
        {"", ""},
        {"<p> </p><div></div>", ""},
        {"text", "text\n"},
        {"<p>a</p><p>b</p>", "a\n\nb\n"},
        {"a<br>b<br><br>c", "a\nb\nc\n"},
        {"<p>un<b>believ</b>able <i> spaces </i> x", "unbelievable spaces x\n"},
        {"<h3> A <small>b</small> </h3>c", "### A b\n\nc\n"},
        {"<h1></h1><h2><br></h2>x", "x\n"},
        {"<ul><li></li><li>a</li></ul>", "- a\n"},
        {"<ul><li><ul><li>a</ul></ul>", "- - a\n"},
        {"<ol><li>a<li>b</ol>", "1. a\n2. b\n"},
        {"<ul><li>a<p>b</p></ul>c", "- a\n\n  b\n\nc\n"},
        {"<blockquote>a<ul><li>b</ul></blockquote>c", "> a\n> - b\n\nc\n"},
        {"x<blockquote>a</blockquote>", "x\n\n> a\n"},
        {"<pre>\n  a\n\n  b\n</pre>", "```\n  a\n\n  b\n```\n"},
        {"<pre>a ``` b</pre>", "````\na ``` b\n````\n"},
        {"<div class='highlight-c'><div><pre>x</pre></div></div>", "```c\nx\n```\n"},
        {"<ul><li>a<pre>b\nc</pre></ul>", "- a\n\n  ```\n  b\n  c\n  ```\n"},
        {"<pre>  </pre>x", "x\n"},
        {"<p># x<p>``` y<p>a # b", "\\# x\n\n\\``` y\n\na # b\n"},
        {"<a href='http://x'>a link</a>", "a link\n"},
        {"<img src=x alt='a picture'><img src=y>", "a picture\n"},
        {"<table><tr><th>a<th>b<tr><td>1|2<td><p>3</p><p>4</p></table>", "| a | b |\n| --- | --- |\n| 1\\|2 | 3 4 |\n"},
        {"<table><tr><td>a<td><ul><li>b</ul></table>", "a\n\n- b\n"},
        {"<table><tr><td>only</td></tr></table>", "only\n"},
        {"<table role=presentation><tr><td>a<td>b</table>", "a\nb\n"},
        {"<table><tr><td>a<td><tr><td><td>b</table>", "| a | |\n| --- | --- |\n| | b |\n"},
        {"<dl><dt>a<dd>b<dd>c</dl>", "a\n: b\n: c\n"},
        {"<pre>a<ul><li>b<li>c</ul><table><tr><td>d<td>e</table></pre>", "```\na\nb\nc\nd\ne\n```\n"},
        {"<h1>a<table><tr><td>b<td>c</table></h1>", "# a b c\n"},
        {"soft\u00ADhyphen", "softhyphen\n"},
        {"&lt;b&gt; &auml; &#x6F22; &nosuch; &#0;", "<b> ä 漢 &nosuch; \uFFFD\n"},
        {"a<script>b</script><style>c</style><template>d</template><svg><text>e</text></svg><noscript>f</noscript>g",
         "ag\n"},
        {"<textarea>x</textarea><select><option>y</select><button>z</button>w", "w\n"},
        {"<math><mi>x</mi><mo>=</mo><mn>1</mn></math>", "x=1\n"},
        {"<b>unclosed <p>text<table>stray<tr><td>x</table>", NULL},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("%s", cases[i].html);
        const qr_str text = convert(qr_str_of(cases[i].html)).text;
        if (cases[i].markdown) {
            QR_CHECK_STR(cases[i].markdown, text);
        }
    }
    qr_arena_done(&arena);
}

#define LONG_TEXT                                                                                                      \
    "<p>A paragraph that is long enough to be the content of a page, with commas, words, and an end. It goes on, as "  \
    "such texts do, for a second and a third line, until nobody can take it for a menu.</p>"

QR_TEST(navigation_is_dropped)
{
    static const char *const navigation[] = {
        "<nav>DROP</nav>",
        "<footer>DROP</footer>",
        "<aside>DROP</aside>",
        "<div role=navigation>DROP</div>",
        "<div class='site sidebar-left'>DROP</div>",
        "<div id=cookie-consent>DROP</div>",
        "<ul class=breadcrumbs><li>DROP</ul>",
        "<div aria-hidden=true>DROP</div>",
        "<header>DROP</header>",
        "<ul><li><a href=1>DROP</a><li><a href=2>two</a><li><a href=3>three</a><li><a href=4>four</a></ul>",
        "<table><tr><td class=linenos>DROP</td><td>x</td></tr></table>",
    };
    for (size_t i = 0; i < QR_COUNT(navigation); i++) {
        char page[2048];
        qr_test_set_context("%s", navigation[i]);
        for (int is_behind = 0; is_behind < 2; is_behind++) {
            snprintf(page, sizeof page, "<body>%s<div><h1>KEEP</h1>%s%s</div>%s</body>", is_behind ? "" : navigation[i],
                     LONG_TEXT, LONG_TEXT, is_behind ? navigation[i] : "");
            const struct qr_converted converted = convert(qr_str_of(page));
            QR_CHECK_HAS("# KEEP", converted.text.ptr);
            QR_CHECK_HAS("third line", converted.text.ptr);
            QR_CHECK(!strstr(converted.text.ptr, "DROP"));
        }
    }
    qr_arena_done(&arena);
}

QR_TEST(content_is_kept_where_it_only_looks_like_navigation)
{
    static const char *const pages[] = {
        "<nav><h1>KEEP</h1><p>KEEP: a page that is nothing but one nav.</p></nav>",
        "<div class=sidebar><h1>KEEP</h1>" LONG_TEXT LONG_TEXT "</div>",
        "<header><h1>KEEP</h1></header><main>" LONG_TEXT "</main>",
        "<article>" LONG_TEXT "</article><article><p>KEEP: the second of two articles, which is as long as the first "
        "one, and as important. It has more than one sentence, too, and then some.</p></article>",
        "<h1>KEEP</h1><div class=content>" LONG_TEXT LONG_TEXT "</div>",
        "<ul><li><a href=1>KEEP</a><li><a href=2>two</a><li><a href=3>three</a><li><a href=4>four</a></ul>",
        "<div><div>" LONG_TEXT "</div><div>" LONG_TEXT "</div><div><p>KEEP</p>" LONG_TEXT "</div></div>",
    };
    for (size_t i = 0; i < QR_COUNT(pages); i++) {
        qr_test_set_context("page %zu", i);
        QR_CHECK_HAS("KEEP", convert(qr_str_of(pages[i])).text.ptr);
    }
    qr_arena_done(&arena);
}

QR_TEST(each_word_knows_its_line_in_the_source)
{
    const struct qr_converted converted =
        convert(QR_STR("<title>x</title>\n<h1>one</h1>\n\n<p>two\nthree <b>four</b>\n\n"
                       "five</p><pre>\nsix\nseven\n</pre>\n<ul>\n<li>eight\n</ul>"));
    static const struct {
        const char *word;
        int64_t line;
    } cases[] = {{"one", 2},  {"two", 4}, {"three", 5}, {"four", 5},
                 {"five", 7}, {"six", 8}, {"seven", 9}, {"eight", 12}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("%s", cases[i].word);
        const size_t offset = (size_t)(strstr(converted.text.ptr, cases[i].word) - converted.text.ptr);
        QR_CHECK_INT(cases[i].line, qr_line_mark_find(converted.lines, converted.line_count, offset));
    }
    qr_arena_done(&arena);
}

/* Each would take gumbo, or a walk that recurses, minutes or the stack. */
QR_TEST(pages_nested_beyond_sense_keep_their_text)
{
    static const struct {
        const char *unit;
        int count;
        const char *end;
        bool is_lost; /* the text is in what is not shown */
    } cases[] = {
        {"<div>", 100000, "TEXT", false},
        {"<ul><li>", 100000, "TEXT", false},
        {"<table><tr><td>", 100000, "TEXT", false},
        {"<blockquote>", 100000, "TEXT", false},
        {"<span>", 100000, "TEXT", false},
        {"<x-y/>", 100000, "TEXT", false},
        {"<p><b><i>", 100000, "TEXT", false},
        {"<svg><g>", 100000, "TEXT", true},
        {"<a href=x>", 100000, "TEXT", false},
        {"<pre><pre>", 50000, "TEXT", false},
        {"<h1><h2>", 50000, "TEXT", false},
        {"<dl><dt><dd>", 50000, "TEXT", false},
        {"<b a=1><table><td></b></table>", 20000, "TEXT", false},
        {"<div><font></div> ", 50000, "<frameset>", true},
        {"<!-- ", 100000, "TEXT", true},
        {"<a href=\"", 100000, "TEXT", true},
        {"</p>", 100000, "TEXT", false},
        {"<", 100000, " TEXT", false},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("%s", cases[i].unit);
        QR_CLEANUP(qr_buf_done) struct qr_buf page = {0};
        for (int k = 0; k < cases[i].count; k++) {
            qr_buf_add_text(&page, cases[i].unit);
        }
        qr_buf_add_text(&page, cases[i].end);
        const qr_str text = convert(qr_buf_str(&page)).text;
        QR_CHECK(cases[i].is_lost || strstr(text.ptr, "TEXT"));
        qr_arena_done(&arena);
    }
}

QR_TEST(a_tag_of_a_hundred_thousand_attributes_is_passed_over)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf page = {0};
    qr_buf_add_text(&page, "<p ");
    for (int i = 0; i < 100000; i++) {
        qr_buf_printf(&page, "a%d=1 ", i);
    }
    qr_buf_add_text(&page, ">text");
    QR_CHECK_STR("text\n", convert(qr_buf_str(&page)).text);
    qr_arena_done(&arena);
}

QR_TEST(a_page_that_is_too_large_is_refused)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf page = {0};
    struct qr_converted converted;
    const size_t size_bytes = (size_t)65 << 20;
    char *room = qr_buf_reserve(&page, size_bytes);
    QR_CHECK(room);
    memset(room, 'x', size_bytes);
    qr_buf_grown(&page, size_bytes);
    QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED, qr_convert(qr_buf_str(&page), "a.html", &arena, &converted, &err));
    qr_arena_done(&arena);
}
