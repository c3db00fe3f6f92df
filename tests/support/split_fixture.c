/* The promises of chunk/split.c, checked slowly and plainly. */
#include "support/split_fixture.h"

#include "base/mem.h"
#include "chunk/cut.h"
#include "model/markdown.h"
#include "text/unicode.h"

static qr_err err;

struct split split_with(qr_str text, const struct qr_split_options *options)
{
    struct split split = {.text = text, .options = *options};
    qr_arena_init(&split.arena, 0);
    QR_CHECK_RC(QR_OK, qr_split(text, options, &split.arena, &split.pieces, &split.count, &err));
    return split;
}

void split_done(struct split *split)
{
    qr_arena_done(&split->arena);
}

static qr_str slice(qr_str text, int64_t start, int64_t end)
{
    QR_CHECK(start >= 0 && start <= end && end <= (int64_t)text.len);
    return (qr_str){text.ptr + start, (size_t)(end - start)};
}

qr_str piece_text(const struct split *split, size_t i)
{
    return slice(split->text, split->pieces[i].start, split->pieces[i].end);
}

/* ---- promises ---- */

/* Where the text may be cut: between what people see as characters, and anywhere in one that is too long to be one. */
static bool *find_borders(qr_str text)
{
    bool *borders = qr_alloc_array(text.len + 1, sizeof *borders);
    QR_CHECK(borders);
    for (size_t at = 0; at < text.len;) {
        borders[at] = true;
        const size_t len = qr_grapheme_len((qr_str){text.ptr + at, text.len - at});
        for (size_t i = 0; len > QR_GRAPHEME_BYTES_MAX && i < len; i++) {
            borders[at + i] = ((unsigned char)text.ptr[at + i] & 0xC0) != 0x80;
        }
        at += len;
    }
    borders[text.len] = true;
    return borders;
}

static bool is_one_grapheme(qr_str text)
{
    for (size_t len; (len = qr_space_len(text));) {
        text = (qr_str){text.ptr + len, text.len - len};
    }
    return qr_grapheme_len(text) == text.len;
}

static void check_piece_promises(const struct split *split, size_t i, int64_t covered, const bool *borders)
{
    const struct qr_piece *piece = &split->pieces[i];
    const struct qr_split_options *options = &split->options;
    const int64_t size_tokens = options->size_tokens ? options->size_tokens : QR_SPLIT_SIZE_TOKENS;
    const qr_str text = piece_text(split, i);
    QR_CHECK(piece->end > covered && (options->overlap_tokens || piece->start >= covered));
    if (piece->start > covered) { /* S1 */
        QR_CHECK(qr_is_blank(slice(split->text, covered, piece->start)));
    }
    QR_CHECK(qr_utf8_valid(text) && !qr_is_blank(text) && qr_utf8_valid(piece->heading));
    if (options->separator.len == 0) { /* S2 */
        QR_CHECK(borders[piece->start] && borders[piece->end]);
    }
    QR_CHECK_INT(qr_token_count(text), piece->token_count);
    if (piece->token_count > size_tokens && !is_one_grapheme(text)) { /* S3 */
        QR_FAIL("%lld tokens, not %lld: %.*s", (long long)piece->token_count, (long long)size_tokens, QR_STR_ARG(text));
    }
    if (piece->start < covered) {
        const qr_str repeated = slice(split->text, piece->start, covered);
        QR_CHECK(qr_token_count(repeated) <= options->overlap_tokens);
    }
}

static int64_t newlines_in(qr_str text)
{
    int64_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] == '\n';
    }
    return count;
}

void check_promises(const struct split *split)
{
    QR_CLEANUP(qr_free_ptr) bool *borders = find_borders(split->text);
    int64_t covered = 0, line = 1;
    for (size_t i = 0; i < split->count; i++) {
        const struct qr_piece *piece = &split->pieces[i];
        check_piece_promises(split, i, covered, borders);
        line += newlines_in(slice(split->text, covered, piece->end));
        QR_CHECK_INT(line, piece->line_end);
        QR_CHECK_INT(line - newlines_in(piece_text(split, i)), piece->line_start);
        covered = piece->end;
    }
    QR_CHECK(qr_is_blank(slice(split->text, covered, (int64_t)split->text.len)));
}

/* ---- comparing ---- */

static int compare_texts(const void *a, const void *b)
{
    return qr_str_compare(*(const qr_str *)a, *(const qr_str *)b);
}

size_t pieces_not_in(const struct split *split, const struct split *other)
{
    QR_CLEANUP(qr_free_ptr) qr_str *texts = qr_alloc_array(other->count, sizeof *texts);
    QR_CHECK(texts);
    for (size_t i = 0; i < other->count; i++) {
        texts[i] = piece_text(other, i);
    }
    if (other->count) {
        qsort(texts, other->count, sizeof *texts, compare_texts);
    }
    size_t missing = 0;
    for (size_t i = 0; i < split->count; i++) {
        const qr_str text = piece_text(split, i);
        missing += other->count == 0 || !bsearch(&text, texts, other->count, sizeof *texts, compare_texts);
    }
    return missing;
}

void check_split(const char *mime, int64_t size_tokens, const char *text, const char *expected)
{
    SPLIT split = split_with(qr_str_of(text), &(struct qr_split_options){.mime = mime, .size_tokens = size_tokens});
    check_promises(&split);
    QR_CLEANUP(qr_buf_done) struct qr_buf shown = {0};
    for (size_t i = 0; i < split.count; i++) {
        qr_buf_printf(&shown, "{%.*s}\n%.*s\n---\n", QR_STR_ARG(split.pieces[i].heading),
                      QR_STR_ARG(piece_text(&split, i)));
    }
    QR_CHECK_RC(QR_OK, qr_buf_check(&shown, &err));
    QR_CHECK_STR(expected, qr_buf_str(&shown));
}

/* ---- random texts ---- */

const char *const split_mimes[] = {
    "text/markdown",
    "text/plain",
    "text/x-rst",
    "text/org",
    "text/asciidoc",
    "text/x-tex",
    "text/csv",
    "text/tab-separated-values",
    "application/json",
    "application/jsonl",
    "text/x-log",
    "text/x-code;language=c",
    "text/x-code;language=cpp",
    "text/x-code;language=java",
    "text/x-code;language=javascript",
    "text/x-code;language=python",
    "text/x-code;language=go",
    "text/x-code;language=rust",
    "text/x-code;language=ruby",
    "text/x-code;language=php",
    "text/x-code;language=sh",
    "text/x-code;language=sql",
    "text/x-code;language=yaml",
    "text/x-code;language=toml",
    "text/x-code;language=nothing-we-know",
    "application/x-unknown",
};
const size_t split_mime_count = QR_COUNT(split_mimes);

static const char *const bits[] = {
    /* text of all kinds */
    "word ",
    "a ",
    "sentence. ",
    "Is it? ",
    "Mr. Smith ",
    "e.g. this ",
    "\n",
    "\n\n",
    "\n\n\n",
    " ",
    "\t",
    "    ",
    "x",
    "漢字かな",
    "。",
    "、",
    "한국어 ",
    "「引用。」",
    "！",
    "中文句子。",
    "हिन्दी वाक्य। ",
    "ไทยคำ ",
    "ภาษา",
    "مرحبا بالعالم؟ ",
    "שלום. ",
    "e\u0301",
    "🇩🇪",
    "🇩",
    "👩‍👩‍👧",
    "👍🏽",
    "🏽",
    "\u0301",
    "\u200d",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\u2028",
    "\u200c",
    "\ufe0f",
    "\u0e31",
    "\u0e33",
    "verylongwordwithoutanyspaceinit0123456789abcdefghijklmnopqrstuvwxyz",
    "\r\n",
    "\x7f",
    "\x01",
    /* headings, code, tables, lists */
    "# One\n",
    "\n## Two words ##\n",
    "###### deep\n",
    "#no\n",
    "Title\n=====\n",
    "Other\n-----\n",
    "=====\nOver\n=====\n",
    "```\n",
    "```c\nint x;\n```\n",
    "~~~~\n",
    "- item\n",
    "  - inner\n",
    "12. item\n",
    "    indented\n",
    "> quote\n",
    ">\n",
    "| a | b |\n",
    "|---|---|\n",
    "| 1 | 2 |\n",
    "---\n",
    "***\n",
    "* Org\n",
    "** Org two\n",
    "#+BEGIN_SRC c\n",
    "#+END_SRC\n",
    ".. code-block:: c\n\n",
    "Then::\n\n",
    "\n1. Introduction\n\n",
    "\n2.1 Methods\n\n",
    "== Section\n",
    "----\n",
    "\\section{Results}\n",
    "\\begin{x}\n",
    /* rows, entries, members */
    "a,b,c\n",
    "1,\"x\ny\",3\n",
    "\"",
    "\"\"",
    "1\t2\t3\n",
    "2024-05-01 12:00:00 started\n",
    "  at com.x\n",
    "ERROR failed\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"key\": ",
    "\"value\"",
    "{\"a\": {\"b\": [1, 2, {\"c\": \"d\"}]}}\n",
    "\\",
    "\\\"",
    "null",
    /* code */
    "int f(void)\n{\n",
    "static int g(int a,\n             int b);\n",
    "    return 1;\n",
    "}\n",
    "}\n\n",
    "/* comment\n",
    " * more */\n",
    "// line\n",
    "# hash\n",
    "class A {\n",
    "class B:\n",
    "    def m(self):\n",
    "def f():\n",
    "        pass\n",
    "end\n",
    "function f() {\n",
    "const f = () => {\n",
    "func (r *T) N() {\n",
    "pub fn n() {\n",
    "CREATE TABLE t (\n",
    ");\n",
    "key:\n",
    "[group]\n",
    "@decorator\n",
    "#[attr]\n",
    "struct s {\n",
    "int x[] = {\n",
    "name() {\n",
    "template <class T>\n",
    "public:\n",
    "#define X\n",
    "((((",
    "))))",
};

void add_random_bits(struct qr_buf *text, struct qr_rand *rand, size_t count)
{
    enum { KINDS = 24 };
    const char *chosen[KINDS]; /* few kinds in a text, so that they meet often */
    for (size_t i = 0; i < KINDS; i++) {
        chosen[i] = bits[qr_rand_below(rand, QR_COUNT(bits))];
    }
    const size_t kinds = 2 + qr_rand_below(rand, KINDS - 2);
    for (size_t i = 0; i < count; i++) {
        const char *bit = chosen[qr_rand_below(rand, kinds)];
        for (uint64_t n = qr_rand_below(rand, 10) == 0 ? qr_rand_below(rand, 40) : 1; n; n--) {
            qr_buf_add_text(text, bit);
        }
    }
    QR_CHECK_RC(QR_OK, qr_buf_check(text, &err));
}
