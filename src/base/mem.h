/* Memory: every allocation of Quire goes through here, so that a test can make each one fail in turn.
 * Running out is an error code, never an abort. */
#pragma once

#include "base/compiler.h"

/* Where allocations come from. Set once, before any thread starts, and only by fault-injecting tests; like the hooks of
 * SQLite and jansson it is process-wide because memory is. */
struct qr_mem_hooks {
    void *(*alloc)(size_t size_bytes);
    void *(*resize)(void *old, size_t size_bytes);
    void (*release)(void *block);
};
void qr_mem_set_hooks(const struct qr_mem_hooks *hooks);

/* NULL when out of memory. A size of 0 gives a block of 1 byte, so NULL always means failure. */
void *qr_alloc(size_t size_bytes) QR_MUST_USE;
void *qr_alloc_zero(size_t size_bytes) QR_MUST_USE;
/* count × size_bytes, zeroed; NULL also when the product overflows. */
void *qr_alloc_array(size_t count, size_t size_bytes) QR_MUST_USE;
void *qr_resize(void *old, size_t size_bytes) QR_MUST_USE;
void qr_free(void *block);

/* A copy with a NUL behind it. */
char *qr_copy_string(const char *text) QR_MUST_USE;

/* QR_CLEANUP(qr_free_ptr) char *text = …; */
static inline void qr_free_ptr(void *pointer_to_pointer)
{
    qr_free(*(void **)pointer_to_pointer);
}
