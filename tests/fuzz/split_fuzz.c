/* Any valid text, split with the sizes that its first bytes name: verbatim slices, nothing but white space between them. */
#include "chunk/split.h"
#include "model/markdown.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
        covered = piece->end;
        line = piece->line_end;
    }
    require(qr_is_blank(slice(text, covered, (int64_t)text.len)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) {
        return 0;
    }
    qr_str text = {(const char *)data + 3, size - 3};
    struct qr_split_options options = {.size_tokens = data[0], .overlap_tokens = data[1]};
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
    qr_arena_done(&arena);
    return 0;
}
