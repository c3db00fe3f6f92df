/* Any valid text of any format, split with the sizes that its first bytes name: the promises of chunk/split.c that can be
 * told from outside. */
#include "chunk/split.h"
#include "model/markdown.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const mimes[] = {
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
    "text/x-code;language=typescript",
    "text/x-code;language=python",
    "text/x-code;language=rust",
    "text/x-code;language=ruby",
    "text/x-code;language=sh",
    "text/x-code;language=sql",
    "text/x-code;language=yaml",
    "text/x-code;language=toml",
    "text/x-code;language=none",
};

/* One character with its marks may be larger than the size, with white space before it that costs nothing. */
enum { MARKS_BYTES = 1 << 10, WORK_PER_BYTE = 64 };

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static qr_str slice(qr_str text, int64_t start, int64_t end)
{
    require(start >= 0 && start <= end && end <= (int64_t)text.len);
    return (qr_str){text.ptr + start, (size_t)(end - start)};
}

static void check(qr_str text, const struct qr_split_options *options, const struct qr_piece *pieces, size_t count)
{
    int64_t covered = 0, line = 1;
    for (size_t i = 0; i < count; i++) {
        const struct qr_piece *piece = &pieces[i];
        const qr_str part = slice(text, piece->start, piece->end);
        require(!qr_is_blank(part) && qr_utf8_valid(part) && qr_utf8_valid(piece->heading));
        require(piece->end > covered && (options->overlap_tokens > 0 || piece->start >= covered));
        require(piece->start <= covered || qr_is_blank(slice(text, covered, piece->start)));
        require(piece->token_count == qr_token_count(part));
        require(piece->line_start <= piece->line_end && piece->line_end >= line);
        require(piece->token_count <= QR_MAX(options->size_tokens, 1) || options->size_tokens == 0 ||
                part.len <= MARKS_BYTES);
        covered = piece->end;
        line = piece->line_end;
    }
    require(qr_is_blank(slice(text, covered, (int64_t)text.len)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) {
        return 0;
    }
    uint64_t work = 0;
    qr_str text = {(const char *)data + 4, size - 4};
    struct qr_split_options options = {
        .mime = mimes[data[3] % QR_COUNT(mimes)], .size_tokens = data[0], .overlap_tokens = data[1], .work = &work};
    if (data[2] % 4 == 0 && text.len > 2) { /* what it begins with is the separator */
        options.separator = qr_utf8_prefix(text, 1 + data[2] / 4 % 8);
    }
    if (!qr_utf8_valid(text) || !qr_utf8_valid(options.separator)) {
        return 0;
    }
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_piece *pieces;
    size_t count;
    qr_err err = {0};
    require(qr_split(text, &options, &arena, &pieces, &count, &err) == QR_OK);
    check(text, &options, pieces, count);
    require(work <= WORK_PER_BYTE * (text.len + 1));
    qr_arena_done(&arena);
    return 0;
}
