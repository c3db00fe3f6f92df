/* Owns the allocation hooks. */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const struct qr_mem_hooks libc_hooks = {malloc, realloc, free};
static const struct qr_mem_hooks *hooks = &libc_hooks;

void qr_mem_set_hooks(const struct qr_mem_hooks *new_hooks)
{
    hooks = new_hooks ? new_hooks : &libc_hooks;
}

void *qr_alloc(size_t size_bytes)
{
    return hooks->alloc(size_bytes ? size_bytes : 1);
}

void *qr_alloc_zero(size_t size_bytes)
{
    void *block = qr_alloc(size_bytes);
    if (block) {
        memset(block, 0, size_bytes);
    }
    return block;
}

void *qr_alloc_array(size_t count, size_t size_bytes)
{
    size_t total_bytes;
    if (QR_MUL_OVERFLOWS(count, size_bytes, &total_bytes)) {
        return NULL;
    }
    return qr_alloc_zero(total_bytes);
}

void *qr_resize(void *old, size_t size_bytes)
{
    return hooks->resize(old, size_bytes ? size_bytes : 1);
}

void qr_free(void *block)
{
    if (block) {
        hooks->release(block);
    }
}

char *qr_copy_string(const char *text)
{
    const size_t size_bytes = strlen(text) + 1;
    char *copy = qr_alloc(size_bytes);
    if (copy) {
        memcpy(copy, text, size_bytes);
    }
    return copy;
}
