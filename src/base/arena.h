/* An arena: memory for one job or one request, released all at once. */
#pragma once

#include "base/compiler.h"
#include "base/str.h"

struct qr_arena_block;

struct qr_arena {
    struct qr_arena_block *newest;
    size_t total_bytes; /* reserved from the system so far */
    size_t limit_bytes; /* allocations that would pass it fail; 0 = no limit */
};

void qr_arena_init(struct qr_arena *arena, size_t limit_bytes);
void qr_arena_done(struct qr_arena *arena);

/* Forgets everything allocated, keeps one block for the next use. */
void qr_arena_reset(struct qr_arena *arena);

/* Aligned for any type, zeroed; NULL when out of memory or over the limit. */
void *qr_arena_alloc(struct qr_arena *arena, size_t size_bytes) QR_MUST_USE;
void *qr_arena_array(struct qr_arena *arena, size_t count, size_t size_bytes) QR_MUST_USE;

/* A copy with a NUL behind it. */
char *qr_arena_copy(struct qr_arena *arena, qr_str text) QR_MUST_USE;
char *qr_arena_printf(struct qr_arena *arena, const char *fmt, ...) QR_PRINTF(2, 3) QR_MUST_USE;
/* A copy for people, whatever the bytes are: valid UTF-8 without NUL, with a question mark for each byte that was not. */
char *qr_arena_copy_utf8(struct qr_arena *arena, qr_str bytes) QR_MUST_USE;
