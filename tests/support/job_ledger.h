/* Jobs whose effect is one row, and a process that adds and runs them until it ends or is killed. What it acknowledged is
 * kept by the parent, so that nothing can be lost or done twice unnoticed: every job must have exactly one effect. */
#pragma once

#include "base/uuid.h"
#include "db/db.h"
#include "support/child.h"

enum { JOB_LEDGER_JOBS_MAX = 100000 };

struct job_ledger_plan {
    const char *url;
    int64_t job_count;     /* that there are to be in all, with those of earlier processes */
    int64_t handler_us;    /* how long a handler takes; 0 = no time */
    int slots;             /* handlers at a time */
    const char *failpoint; /* "name=crash@n" for this process; NULL = none */
    const char *name;      /* of the worker */
    bool has_others;       /* other processes may be alive: only leases that have run out are broken, when it starts */
    const struct qr_clock *clock; /* NULL = the system's */
    enum qr_db_level level;       /* of the record that a job has ended */
    int64_t beat_ms;              /* periodic work that often, beside the jobs; 0 = none */
};

/* What a process says while it lives. */
struct job_ledger_state {
    int64_t added; /* jobs there are */
    int64_t done;  /* effects there are */
    int64_t running;
};

/* What was acknowledged, in the memory of the parent. */
struct job_ledger {
    qr_uuid ids[JOB_LEDGER_JOBS_MAX];
    size_t count;
};

/* Starts a process that follows the plan: it adds what is missing, runs until every job has ended, and exits with 0. */
void job_ledger_start(struct child *child, struct job_ledger_plan *plan);
/* Takes note of what it says next; false when it is gone. */
bool job_ledger_listen(struct child *child, struct job_ledger *ledger, struct job_ledger_state *ret_state);

struct job_ledger_verdict {
    int64_t jobs, completed; /* there are */
    int64_t lost;            /* acknowledged and not there, or there and without effect */
    int64_t twice;           /* with more than one effect */
    int64_t slots;           /* of periodic work there are */
    int64_t slots_wrong;     /* whose work is not there, or there twice; and work without its slot */
    int64_t interrupted;     /* attempts that a kill cut short */
};
/* Compares after the last process has ended. */
qr_rc job_ledger_judge(const char *url, const struct job_ledger *ledger, struct job_ledger_verdict *ret_verdict,
                       qr_err *err);
