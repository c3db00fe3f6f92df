/* The splitter's promises (S1–S6 of chunk/split.c) over texts of every format made from seeds. */
#include "base/mem.h"
#include "model/markdown.h"
#include "support/fault.h"
#include "support/split_fixture.h"

static qr_err err;

QR_TEST_WITH_TIMEOUT(pieces_are_verbatim_and_lose_only_white_space, 300) /* S1, S2, S3 */
{
    const uint64_t rounds = getenv("QUIRE_TEST_LONG") ? 26000 : 1300;
    static const char *const separators[] = {"", "", "", "", "", "\n\n", "。", "word", "\n", "e"};
    for (uint64_t seed = 0; seed < rounds; seed++) {
        const char *mime = split_mimes[seed % split_mime_count];
        qr_test_set_context("seed %llu, %s", (unsigned long long)seed, mime);
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        add_random_bits(&text, &rand.rand, qr_rand_below(&rand.rand, 150));
        const int64_t size = 1 + (int64_t)qr_rand_below(&rand.rand, seed % 2 ? 20 : 200);
        const struct qr_split_options options = {
            .mime = mime,
            .size_tokens = size,
            .overlap_tokens = qr_rand_below(&rand.rand, 3) ? 0 : (int64_t)qr_rand_below(&rand.rand, (uint64_t)size + 2),
            .separator = qr_str_of(separators[qr_rand_below(&rand.rand, QR_COUNT(separators))]),
        };
        SPLIT split = split_with(qr_buf_str(&text), &options);
        check_promises(&split);
    }
}

QR_TEST(the_same_text_is_always_split_the_same_way)
{
    for (uint64_t seed = 0; seed < 2 * split_mime_count; seed++) {
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        add_random_bits(&text, &rand.rand, 300);
        const struct qr_split_options options = {.mime = split_mimes[seed % split_mime_count], .size_tokens = 30};
        SPLIT first = split_with(qr_buf_str(&text), &options), second = split_with(qr_buf_str(&text), &options);
        QR_CHECK_INT(first.count, second.count);
        for (size_t i = 0; i < first.count; i++) {
            QR_CHECK_INT(first.pieces[i].start, second.pieces[i].start);
            QR_CHECK(qr_str_equal(first.pieces[i].heading, second.pieces[i].heading));
        }
    }
}

/* ---- S5: units that fit are not cut ---- */

static void add_words(struct qr_buf *text, struct qr_rand *rand, uint64_t most)
{
    for (uint64_t n = 1 + qr_rand_below(rand, most); n; n--) {
        qr_buf_printf(text, "w%llu%s", (unsigned long long)qr_rand_below(rand, 5000), n > 1 ? " " : "");
    }
}

typedef void add_unit_fn(struct qr_buf *text, struct qr_rand *rand, int n);

static void add_csv_row(struct qr_buf *text, struct qr_rand *rand, int n)
{
    if (n == 0) {
        qr_buf_add_text(text, "name,note,city\n");
    }
    qr_buf_printf(text, "%d,\"", n);
    add_words(text, rand, 20);
    qr_buf_add_text(text, "\n, \"\"quoted\"\" \n\n");
    add_words(text, rand, 20);
    qr_buf_add_text(text, "\",Rome\n");
}

static void add_tsv_row(struct qr_buf *text, struct qr_rand *rand, int n)
{
    qr_buf_printf(text, "%d\t", n);
    add_words(text, rand, 40);
    qr_buf_add_text(text, "\tx. Y z\n");
}

static void add_entry(struct qr_buf *text, struct qr_rand *rand, int n)
{
    qr_buf_printf(text, "2024-05-01 12:%02d:%02d ", n / 60 % 60, n % 60);
    add_words(text, rand, 20);
    for (uint64_t lines = qr_rand_below(rand, 4); lines; lines--) {
        qr_buf_add_text(text, lines % 2 ? "\n\tat " : "\nCaused by. It. ");
        add_words(text, rand, 6);
    }
    qr_buf_add_text(text, "\n");
}

static void add_record(struct qr_buf *text, struct qr_rand *rand, int n)
{
    qr_buf_printf(text, "{\"id\": %d, \"tags\": [1, 2, {\"a\": \"b\"}], \"text\": \"", n);
    add_words(text, rand, 40);
    qr_buf_add_text(text, "\"}\n");
}

static void add_c_function(struct qr_buf *text, struct qr_rand *rand, int n)
{
    qr_buf_printf(text, "/* Says. What: */\nstatic int f%d(int a,\n              int b)\n{\n", n);
    for (uint64_t lines = 1 + qr_rand_below(rand, 6); lines; lines--) {
        qr_buf_add_text(text, lines % 3 ? "    x = " : "\n    if (x) {\n    }\nout:\n#if 0\n    y = ");
        add_words(text, rand, 4);
        qr_buf_add_text(text, ";\n");
    }
    qr_buf_add_text(text, "}\n\n");
}

static void add_python_function(struct qr_buf *text, struct qr_rand *rand, int n)
{
    qr_buf_printf(text, "@decorator\ndef f%d(a,\n       b):\n", n);
    for (uint64_t lines = 1 + qr_rand_below(rand, 6); lines; lines--) {
        qr_buf_add_text(text, lines % 3 ? "    x = " : "\n    def inner():\n        y = ");
        add_words(text, rand, 4);
        qr_buf_add_text(text, "\n");
    }
    qr_buf_add_text(text, "\n\n");
}

static void add_fence(struct qr_buf *text, struct qr_rand *rand, int n)
{
    (void)n;
    qr_buf_add_text(text, n % 2 ? "```sh\n" : "| a | b |\n|---|---|\n");
    for (uint64_t lines = 1 + qr_rand_below(rand, 6); lines; lines--) {
        qr_buf_add_text(text, n % 2 ? (lines % 3 ? "\n# x. " : "x. Y ") : "| x. Y | ");
        add_words(text, rand, 6);
        qr_buf_add_text(text, n % 2 ? "\n" : " |\n");
    }
    qr_buf_add_text(text, n % 2 ? "```\n\n" : "\n");
}

static void add_sentence(struct qr_buf *text, struct qr_rand *rand, int n)
{
    qr_buf_add_text(text, "Sentence ");
    add_words(text, rand, 30);
    qr_buf_add_text(text, n % 7 ? ", says Mr. X of no. 5 e.g. here. " : "\nand so on! ");
}

static void check_units(const char *mime, add_unit_fn *add_unit, int64_t size_tokens)
{
    enum { UNITS = 300, SEEDS = 8 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        qr_test_set_context("%s, seed %llu", mime, (unsigned long long)seed);
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        int64_t begins[UNITS];
        for (int n = 0; n < UNITS; n++) {
            const size_t before = text.len;
            begins[n] = (int64_t)before;
            add_unit(&text, &rand.rand, n);
            const qr_str unit = {text.data + before, text.len - before};
            QR_CHECK(qr_token_count(unit) <= size_tokens);
        }
        const struct qr_split_options options = {.mime = mime, .size_tokens = size_tokens};
        SPLIT split = split_with(qr_buf_str(&text), &options);
        check_promises(&split);
        QR_CHECK(split.count > 10);
        for (size_t i = 0; i < split.count; i++) {
            bool is_begin = false;
            for (int n = 0; n < UNITS; n++) {
                is_begin |= begins[n] == split.pieces[i].start;
            }
            if (!is_begin) {
                QR_FAIL("cut inside: %.*s", QR_STR_ARG(piece_text(&split, i)));
            }
        }
    }
}

QR_TEST(units_that_fit_are_never_cut) /* S5 */
{
    for (int64_t size = 90; size <= 400; size += 155) {
        check_units("text/csv", add_csv_row, size);
        check_units("text/tab-separated-values", add_tsv_row, size);
        check_units("text/x-log", add_entry, size);
        check_units("application/jsonl", add_record, size);
        check_units("text/x-code;language=c", add_c_function, size);
        check_units("text/x-code;language=python", add_python_function, size);
        check_units("text/markdown", add_fence, size);
        check_units("text/markdown", add_sentence, size);
        check_units("text/plain", add_sentence, size);
    }
}

QR_TEST(a_heading_is_never_alone_when_text_follows_it)
{
    enum { SECTIONS = 200, SIZE = 100 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        for (int i = 0; i < SECTIONS; i++) {
            const uint64_t level = 1 + qr_rand_below(&rand.rand, 4);
            qr_buf_printf(&text, "%.*s Heading %d\n\n", (int)level, "######", i);
            for (uint64_t n = qr_rand_below(&rand.rand, 4); n; n--) {
                qr_buf_add_text(&text, "Text ");
                add_words(&text, &rand.rand, 30);
                qr_buf_add_text(&text, ".\n\n");
            }
        }
        qr_buf_add_text(&text, "The end.");
        SPLIT split = split_with(qr_buf_str(&text), &(struct qr_split_options){.size_tokens = SIZE});
        check_promises(&split);
        for (size_t i = 0; i < split.count; i++) {
            const qr_str piece = piece_text(&split, i);
            QR_CHECK(memmem(piece.ptr, piece.len, "Text", 4) || memmem(piece.ptr, piece.len, "The end.", 8));
        }
    }
}

/* ---- S6: small edits ---- */

static void add_paragraph(struct qr_buf *text, struct qr_rand *rand, int n)
{
    if (n % 10 == 0) {
        qr_buf_printf(text, "## Section %d\n\n", n);
    }
    for (uint64_t sentences = 1 + qr_rand_below(rand, 5); sentences; sentences--) {
        qr_buf_add_text(text, "The ");
        add_words(text, rand, 18);
        qr_buf_add_text(text, sentences > 1 ? ". " : ".\n\n");
    }
}

static void add_member(struct qr_buf *text, struct qr_rand *rand, int n)
{
    qr_buf_printf(text, "%s{\n  \"id\": %llu,\n  \"name\": {\"first\": \"", n ? "  },\n" : "[\n",
                  (unsigned long long)qr_rand_below(rand, 100000));
    add_words(text, rand, 12);
    qr_buf_add_text(text, "\"}\n");
}

static void add_han(struct qr_buf *text, struct qr_rand *rand, int n)
{
    for (uint64_t i = 5 + qr_rand_below(rand, 30); i; i--) {
        const unsigned code = 0x4E00 + (unsigned)qr_rand_below(rand, 2000);
        const char c[4] = {(char)(0xE0 | code >> 12), (char)(0x80 | (code >> 6 & 0x3F)), (char)(0x80 | (code & 0x3F)),
                           0};
        qr_buf_add_text(text, c);
    }
    qr_buf_add_text(text, n % 9 ? "。" : "。\n\n");
}

/* One change of a word, a few words or a paragraph at a place between two words. */
static void edit(struct qr_buf *out, qr_str text, struct qr_rand *rand)
{
    size_t at = qr_rand_below(rand, text.len);
    while (at && text.ptr[at - 1] != ' ' && text.ptr[at - 1] != '\n') {
        at--;
    }
    size_t end = at;
    const uint64_t kind = qr_rand_below(rand, 4);
    for (uint64_t words = kind == 0 ? 0 : kind == 3 ? 40 : 1; words && end < text.len; words--) {
        const char *space = memchr(text.ptr + end, ' ', text.len - end);
        end = space ? (size_t)(space - text.ptr) + 1 : text.len;
    }
    qr_buf_add(out, (qr_str){text.ptr, at});
    if (kind < 2) {
        add_words(out, rand, kind ? 1 : 30);
        qr_buf_add_text(out, " ");
    }
    qr_buf_add(out, (qr_str){text.ptr + end, text.len - end});
}

static void check_edits(const char *mime, add_unit_fn *add_unit, size_t most)
{
    enum { PIECES = 60, SIZE = 100 };
    const uint64_t seeds = getenv("QUIRE_TEST_LONG") ? 300 : 40;
    size_t worst = 0, all = 0;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        qr_test_set_context("%s, seed %llu", mime, (unsigned long long)seed);
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0}, edited = {0};
        for (int n = 0; text.len < PIECES * SIZE * 3; n++) {
            add_unit(&text, &rand.rand, n);
        }
        edit(&edited, qr_buf_str(&text), &rand.rand);
        const struct qr_split_options options = {.mime = mime, .size_tokens = SIZE};
        SPLIT before = split_with(qr_buf_str(&text), &options), after = split_with(qr_buf_str(&edited), &options);
        const size_t changed = pieces_not_in(&after, &before);
        QR_CHECK(before.count > PIECES / 2);
        if (changed > most) {
            QR_FAIL("%zu of %zu pieces are new", changed, after.count);
        }
        worst = QR_MAX(worst, changed);
        all += changed;
    }
    printf("%s: %.2f new pieces an edit, %zu at most\n", mime, (double)all / (double)seeds, worst);
}

QR_TEST_WITH_TIMEOUT(a_small_edit_changes_few_pieces, 300) /* S6 */
{
    check_edits("text/markdown", add_paragraph, 5);
    check_edits("text/plain", add_sentence, 5);
    check_edits("text/plain", add_han, 5);
    check_edits("text/csv", add_csv_row, 5);
    check_edits("text/tab-separated-values", add_tsv_row, 5);
    check_edits("text/x-log", add_entry, 5);
    check_edits("application/json", add_member, 5);
    check_edits("application/jsonl", add_record, 5);
    check_edits("text/x-code;language=c", add_c_function, 5);
    check_edits("text/x-code;language=python", add_python_function, 5);
}

/* ---- S4: hostile texts ---- */

static double work_for(const char *mime, const char *unit, size_t size_bytes, int64_t overlap_tokens)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    const size_t len = strlen(unit);
    char *room = qr_buf_reserve(&text, size_bytes + len);
    QR_CHECK(room);
    size_t filled = 0;
    for (; filled < size_bytes; filled += len) {
        memcpy(room + filled, unit, len);
    }
    qr_buf_grown(&text, filled);
    uint64_t work = 0;
    SPLIT split = split_with(qr_buf_str(&text),
                             &(struct qr_split_options){.mime = mime, .overlap_tokens = overlap_tokens, .work = &work});
    QR_CHECK(split.count < text.len / 50);
    return (double)work / (double)text.len;
}

/* Each byte is looked at a few times, whatever the text: the same for a small text and for a large one. */
QR_TEST_WITH_TIMEOUT(work_grows_with_the_text_and_no_faster, 300) /* S4 */
{
    static const char *const units[] = {
        "x",
        "word ",
        "\n",
        " ",
        "漢",
        "#\n",
        "# a\n",
        "# a\nb\n",
        "```\n",
        "```\nx\n```\n",
        "e\u0301\u0301",
        "`",
        "- a\n",
        "🇩🇪",
        "[",
        "{\"a\":",
        "\"",
        "a,b\n",
        "\"a\n",
        "/* \n",
        "// c\n",
        "\u200d👩",
        "...",
        ". ",
        "a. ",
        "ש",
        "ไทย ",
        "|\n",
        "|a|\n|-|\n",
        "class A {\n",
        "{\n",
        "  ",
        "\u0301",
        "---\n",
        "a:\n",
        "    - x\n",
        "=\n",
        "。",
        "int f(\n",
        "@a\n",
        "\\",
        "a\n===\n",
        "> > > ",
        "\t",
    };
    for (size_t i = 0; i < QR_COUNT(units) * split_mime_count; i++) {
        const char *mime = split_mimes[i % split_mime_count], *unit = units[i / split_mime_count];
        qr_test_set_context("%s of %zu", mime, i / split_mime_count);
        QR_CHECK(work_for(mime, unit, 1 << 14, i % 2 ? 50 : 0) <= 8);
    }
}

QR_TEST_WITH_TIMEOUT(a_line_of_64_mb_is_split_in_one_go, 300) /* S4 */
{
    QR_CHECK(work_for("text/markdown", "x", 64 << 20, 0) <= 8);
}

QR_TEST_WITH_TIMEOUT(a_million_headings_and_ten_million_lines_are_split, 300) /* S4 */
{
    QR_CHECK(work_for("text/markdown", "# Heading\n", 10 << 20, 0) <= 8);
    const size_t lines = getenv("QUIRE_TEST_LONG") ? 10000000 : 1000000;
    QR_CHECK(work_for("text/markdown", "- a\n", 4 * lines, 0) <= 8);
}

/* ---- memory ---- */

static void split_scenario(void *arg)
{
    (void)arg;
    static const char text[] = "# A\n\nSome text. More of it, and more. And more.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
    for (size_t i = 0; i < split_mime_count; i++) {
        struct qr_arena arena;
        qr_arena_init(&arena, 0);
        struct qr_piece *pieces;
        size_t count;
        const struct qr_split_options options = {.mime = split_mimes[i], .size_tokens = 3, .overlap_tokens = 1};
        const qr_rc rc = qr_split(qr_str_of(text), &options, &arena, &pieces, &count, &err);
        QR_CHECK(rc == QR_OK || rc == QR_NOMEM);
        qr_arena_done(&arena);
    }
    qr_fault_disarm();
}

QR_TEST(running_out_of_memory_is_an_error)
{
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, split_scenario, NULL);
}
