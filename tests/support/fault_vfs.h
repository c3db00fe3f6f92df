/* A SQLite VFS whose calls fail on request: "fault", over the default one.
 *
 * One plan for the process, because SQLite knows VFSs by process-wide names. Safe from any thread. */
#pragma once

#include "base/compiler.h"

enum fault_kind {
    FAULT_READ,
    FAULT_WRITE,
    FAULT_SYNC,
    FAULT_TRUNCATE,
    FAULT_OPEN,
    FAULT_DELETE,
    FAULT_SHM_MAP,
    FAULT_SHM_LOCK,
    FAULT_KIND_COUNT,
    FAULT_ANY = FAULT_KIND_COUNT,
};

/* Which files' calls count. */
enum fault_file { FAULT_FILE_ANY, FAULT_FILE_DATABASE, FAULT_FILE_LOG };

struct fault_plan {
    enum fault_kind kind;
    enum fault_file file;
    uint64_t nth;   /* the call that fails, counted from 1 from now on; 0 = none */
    bool for_good;  /* and all after it, until the next plan */
    bool disk_full; /* the answer is SQLITE_FULL where a call can say so (write, truncate), else an I/O error */
};

/* Registers the VFS; more calls do nothing. */
void fault_vfs_register(void);

/* Replaces the plan and counts from 0 again. A failing write leaves half of its bytes behind, as a disk would. */
void fault_vfs_plan(const struct fault_plan *plan);
/* From now on nothing fails; the counts stay. */
void fault_vfs_heal(void);

/* Calls that matched the plan's kind and file, since it was set; those that failed. */
uint64_t fault_vfs_matched(void);
uint64_t fault_vfs_failed(void);

/* Calls of a kind since the start of the process, FAULT_ANY = of all. */
uint64_t fault_vfs_calls(enum fault_kind kind);
const char *fault_kind_name(enum fault_kind kind);

/* How syncs are done. Without real ones tests run at memory speed; a delay makes a fast disk slow for a benchmark. */
struct fault_sync {
    bool skip;        /* do not sync really */
    int64_t delay_us; /* each takes at least this much longer */
};
void fault_vfs_set_sync(struct fault_sync sync);
