/* The GNU extensions the project relies on, each behind one name, so that a port has one file to read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs fn(&variable) when the variable leaves its scope. */
#define QR_CLEANUP(fn) __attribute__((cleanup(fn)))

#define QR_PRINTF(fmt_index, args_index) __attribute__((format(printf, fmt_index, args_index)))
#define QR_MUST_USE                      __attribute__((warn_unused_result))
#define QR_UNUSED                        __attribute__((unused))
#define QR_NORETURN                      __attribute__((noreturn))

/* Checked arithmetic: true when the mathematical result does not fit. */
#define QR_ADD_OVERFLOWS(a, b, ret) __builtin_add_overflow((a), (b), (ret))
#define QR_MUL_OVERFLOWS(a, b, ret) __builtin_mul_overflow((a), (b), (ret))

#define QR_COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define QR_MIN(a, b)     ((a) < (b) ? (a) : (b))
#define QR_MAX(a, b)     ((a) > (b) ? (a) : (b))
#define QR_BIT(n)        (UINT32_C(1) << (n))
#define QR_CONCAT_(a, b) a##b
#define QR_CONCAT(a, b)  QR_CONCAT_(a, b)
#define QR_STRINGIFY_(x) #x
#define QR_STRINGIFY(x)  QR_STRINGIFY_(x)

/* The struct of which `pointer` is the field `member`. */
#define QR_CONTAINER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Passes an error on to the caller. The expression is evaluated once. */
#define QR_TRY(expression)                                                                                             \
    do {                                                                                                               \
        const qr_rc qr_try_rc_ = (expression);                                                                         \
        if (qr_try_rc_ != QR_OK) {                                                                                     \
            return qr_try_rc_;                                                                                         \
        }                                                                                                              \
    } while (0)
