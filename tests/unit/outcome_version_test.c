/* What is known by the bytes it was made of (REIDX-7) must come out the same as long as nobody says otherwise. */
#include "base/hash.h"
#include "chunk/split.h"
#include "convert/convert.h"
#include "handler/unchanged.h"
#include "support/test.h"

#include <stdio.h>

static const struct {
    const char *name, *bytes;
} sources[] = {
    {"a.md", "# One\n\nSome words. And some more of them, which go on.\n\n## Two\n\n- a list\n- of things\n\n| a | b "
             "|\n|---|---|\n| 1 | 2 |\n\n```c\nint x;\n```\n"},
    {"b.txt", "First paragraph\nof two lines.\n\nSecond paragraph. With two sentences.\r\n\xEF\xBB\xBF"},
    {"c.html", "<!doctype html><title>T</title><body><nav>menu</nav><main><h1>Head</h1><p>Text with <a href=x>a "
               "link</a>.</p><table><tr><th>k<th>v<tr><td>1<td>2</table><pre>code\n  more</pre></main>"},
    {"d.csv", "name,value\nalpha,1\nbeta,2\n"},
    {"e.json", "{\"list\": [{\"a\": 1}, {\"b\": [true, null]}], \"text\": \"words\"}\n"},
    {"f.c", "/* a comment */\nint one(void)\n{\n    return 1;\n}\n\nint two(void)\n{\n    return 2;\n}\n"},
    {"g.log", "2024-01-01 10:00:00 INFO begins\n2024-01-01 10:00:01 WARN goes on\n"},
    {"h.txt", "Gr\xFC\xDF"
              "e aus K\xF6ln, sch\xF6ne Stadt, viele Stra\xDF"
              "en und \xDC"
              "berraschungen.\n"},
};

static void add_outcome(struct qr_buf *out, const char *name, const char *bytes)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_converted converted;
    struct qr_piece *pieces;
    size_t count;
    qr_err err;
    qr_arena_init(&arena, 0);
    QR_CHECK_RC(QR_OK, qr_convert(qr_str_of(bytes), name, &arena, &converted, &err));
    const struct qr_split_options options = {.mime = qr_convert_structure(qr_str_of(name), converted.text),
                                             .size_tokens = 16};
    QR_CHECK_RC(QR_OK, qr_split(converted.text, &options, &arena, &pieces, &count, &err));
    qr_buf_add(out, converted.text);
    qr_buf_add(out, qr_convert_title(converted.text));
    for (size_t i = 0; i < converted.warning_count; i++) {
        qr_buf_add_text(out, converted.warnings[i].code);
    }
    for (size_t i = 0; i < count; i++) {
        const struct qr_piece *piece = &pieces[i];
        qr_buf_printf(out, "[%lld-%lld %lld-%lld %lld %.*s]", (long long)piece->start, (long long)piece->end,
                      (long long)piece->line_start, (long long)piece->line_end, (long long)piece->token_count,
                      (int)piece->heading.len, piece->heading.len ? piece->heading.ptr : "");
    }
}

/* Where this fails because converting or splitting was changed on purpose: raise QR_OUTCOME_VERSION, so that a reindex does
 * what is live again, and write the new number and hash here. */
QR_TEST(the_same_bytes_have_the_same_outcome_as_long_as_its_version_stands) /* REIDX-7 */
{
    static const struct {
        int version;
        const char *hash;
    } known = {1, "4287555129dd47b923beed7bf1b323a7"};
    QR_CLEANUP(qr_buf_done) struct qr_buf outcome = {0};
    unsigned char hash[QR_HASH_BYTES];
    char text[2 * QR_HASH_BYTES + 1];
    for (size_t i = 0; i < QR_COUNT(sources); i++) {
        add_outcome(&outcome, sources[i].name, sources[i].bytes);
    }
    qr_hash_128(qr_buf_str(&outcome), hash);
    for (size_t i = 0; i < sizeof hash; i++) {
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    }
    QR_CHECK_TEXT(known.hash, text);
    QR_CHECK_INT(known.version, QR_OUTCOME_VERSION);
}
