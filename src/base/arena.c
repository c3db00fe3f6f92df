/* Blocks chained newest first; an allocation comes from the newest block or from a new one. */
#include "base/arena.h"

#include "base/mem.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES_MIN = 4096, BLOCK_BYTES_MAX = 256 * 1024 };

struct qr_arena_block {
    struct qr_arena_block *older;
    size_t used_bytes, size_bytes;
    alignas(max_align_t) unsigned char data[];
};

void qr_arena_init(struct qr_arena *arena, size_t limit_bytes)
{
    *arena = (struct qr_arena){.limit_bytes = limit_bytes};
}

static void free_blocks(struct qr_arena_block *block)
{
    while (block) {
        struct qr_arena_block *older = block->older;
        qr_free(block);
        block = older;
    }
}

void qr_arena_done(struct qr_arena *arena)
{
    free_blocks(arena->newest);
    arena->newest = NULL;
    arena->total_bytes = 0;
}

void qr_arena_reset(struct qr_arena *arena)
{
    struct qr_arena_block *kept = arena->newest;
    if (!kept) {
        return;
    }
    free_blocks(kept->older);
    kept->older = NULL;
    kept->used_bytes = 0;
    arena->total_bytes = kept->size_bytes;
}

static struct qr_arena_block *add_block(struct qr_arena *arena, size_t need_bytes)
{
    /* each block as large as all before it together: few system calls for large arenas, little waste for small ones */
    size_t size_bytes = QR_MIN(QR_MAX(arena->total_bytes, (size_t)BLOCK_BYTES_MIN), (size_t)BLOCK_BYTES_MAX);
    if (arena->limit_bytes) {
        size_bytes = QR_MIN(size_bytes, arena->limit_bytes - QR_MIN(arena->total_bytes, arena->limit_bytes));
    }
    size_bytes = QR_MAX(size_bytes, need_bytes);
    size_t total_bytes, block_bytes;
    if (QR_ADD_OVERFLOWS(arena->total_bytes, size_bytes, &total_bytes) ||
        QR_ADD_OVERFLOWS(size_bytes, sizeof(struct qr_arena_block), &block_bytes) ||
        (arena->limit_bytes && total_bytes > arena->limit_bytes)) {
        return NULL;
    }
    struct qr_arena_block *block = qr_alloc(block_bytes);
    if (!block) {
        return NULL;
    }
    block->older = arena->newest;
    block->used_bytes = 0;
    block->size_bytes = size_bytes;
    arena->newest = block;
    arena->total_bytes = total_bytes;
    return block;
}

void *qr_arena_alloc(struct qr_arena *arena, size_t size_bytes)
{
    size_t need_bytes;
    if (QR_ADD_OVERFLOWS(size_bytes, alignof(max_align_t) - 1, &need_bytes)) {
        return NULL;
    }
    need_bytes &= ~(alignof(max_align_t) - 1);
    struct qr_arena_block *block = arena->newest;
    if (!block || block->size_bytes - block->used_bytes < need_bytes) {
        block = add_block(arena, need_bytes);
        if (!block) {
            return NULL;
        }
    }
    void *memory = block->data + block->used_bytes;
    block->used_bytes += need_bytes;
    memset(memory, 0, size_bytes);
    return memory;
}

void *qr_arena_array(struct qr_arena *arena, size_t count, size_t size_bytes)
{
    size_t total_bytes;
    if (QR_MUL_OVERFLOWS(count, size_bytes, &total_bytes)) {
        return NULL;
    }
    return qr_arena_alloc(arena, total_bytes);
}

char *qr_arena_copy(struct qr_arena *arena, qr_str text)
{
    size_t size_bytes;
    if (QR_ADD_OVERFLOWS(text.len, 1, &size_bytes)) {
        return NULL;
    }
    char *copy = qr_arena_alloc(arena, size_bytes);
    if (copy && text.len) {
        memcpy(copy, text.ptr, text.len);
    }
    return copy;
}

char *qr_arena_printf(struct qr_arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = len < 0 ? NULL : qr_arena_alloc(arena, (size_t)len + 1);
    if (text) {
        vsnprintf(text, (size_t)len + 1, fmt, again);
    }
    va_end(again);
    return text;
}

char *qr_arena_copy_utf8(struct qr_arena *arena, qr_str bytes)
{
    char *text = qr_arena_copy(arena, bytes);
    for (size_t i = 0; text && i < bytes.len;) {
        const size_t len = qr_utf8_char_len((qr_str){bytes.ptr + i, bytes.len - i});
        if (len == 0 || text[i] == '\0') {
            text[i] = '?';
        }
        i += len ? len : 1;
    }
    return text;
}
