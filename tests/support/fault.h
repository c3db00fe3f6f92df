/* Fault injection: the n-th allocation, or the n-th call of the I/O table, fails once.
 *
 *     static void scenario(void *arg) { … do it; qr_fault_disarm(); … look at what is left … }
 *     QR_TEST(replacing_a_file_survives_every_failure) {
 *         qr_fault_memory_install();
 *         qr_fault_sweep(QR_FAULT_MEMORY, scenario, NULL);
 *         qr_fault_sweep(QR_FAULT_IO_EIO, scenario, NULL);
 *     }
 *
 * Counters are of the process and atomic: a scenario may use threads. */
#pragma once

#include "base/io.h"

enum qr_fault_kind {
    QR_FAULT_MEMORY,    /* the allocation gives NULL */
    QR_FAULT_IO_EIO,    /* the call fails; a failing close has closed all the same, as on Linux */
    QR_FAULT_IO_ENOSPC, /* the same; a failing write has written half */
    QR_FAULT_IO_EINTR,  /* the same; must never be noticed */
    QR_FAULT_IO_SHORT,  /* a read or write moves half of the bytes; must never be noticed */
};

/* Puts counting allocators under base/mem, SQLite (whose lookaside is switched off) and jansson. First thing in a test:
 * before SQLite or jansson is used and before a thread starts. */
void qr_fault_memory_install(void);

/* The system's I/O, counted. */
const struct qr_io *qr_fault_io(void);

/* Arms: from now on the n-th of its kind fails, once; 0 = none does. Counts and qr_fault_fired begin anew. */
void qr_fault_arm(enum qr_fault_kind kind, uint64_t n);
/* No failure any more; qr_fault_fired keeps its answer. A scenario calls it before it looks at what is left. */
void qr_fault_disarm(void);
bool qr_fault_fired(void);
/* How many calls that could have failed this way there were since arming. */
uint64_t qr_fault_calls(void);

/* Blocks allocated and not released, and files opened through qr_fault_io and not closed, at this moment. */
int64_t qr_fault_blocks(void);
int64_t qr_fault_files(void);

/* Runs the scenario first without a fault, then failing the first, the second, … until a run in which the fault did not
 * fire. After each run there must be as many blocks and open files as before. Prints and returns how many points were
 * hit, which must be at least one. A failed check inside the scenario says at which. */
uint64_t qr_fault_sweep(enum qr_fault_kind kind, void (*scenario)(void *arg), void *arg);
/* Every seventh in an ordinary run, all in a long one: for scenarios in which most of them are behind one door. */
uint64_t qr_fault_sweep_sparsely(enum qr_fault_kind kind, void (*scenario)(void *arg), void *arg);
