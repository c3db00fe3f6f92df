/* For the tests of the splitter: splits, shows and holds against its promises. */
#pragma once

#include "base/buf.h"
#include "base/rand.h"
#include "chunk/split.h"
#include "support/test.h"

struct split {
    struct qr_arena arena;
    qr_str text;
    struct qr_split_options options;
    struct qr_piece *pieces;
    size_t count;
};

struct split split_with(qr_str text, const struct qr_split_options *options);
void split_done(struct split *split);
#define SPLIT QR_CLEANUP(split_done) struct split

qr_str piece_text(const struct split *split, size_t i);

/* S1–S3, lines and counts. */
void check_promises(const struct split *split);

/* The pieces of one version that are not, as they are, in the other. */
size_t pieces_not_in(const struct split *split, const struct split *other);

/* "{heading}\ntext\n---\n" each. */
void check_split(const char *mime, int64_t size_tokens, const char *text, const char *expected);

/* All that are known. */
extern const char *const split_mimes[];
extern const size_t split_mime_count;
/* Bits of all formats and scripts, in any order. */
void add_random_bits(struct qr_buf *text, struct qr_rand *rand, size_t count);
