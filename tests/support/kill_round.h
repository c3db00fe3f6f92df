/* One round of: a process writes under load and kills itself with SIGKILL in the middle; the database is opened again;
 * what was acknowledged is compared with what is there. */
#pragma once

#include "support/ledger.h"

struct kill_plan {
    const char *url;
    enum qr_db_level level;
    int producers;
    size_t payload_bytes_max;
    int64_t after_acks; /* the kill comes after so many acknowledged writes; 0 = not by number */
    int64_t after_ms;   /* … or after this long; 0 = not by time */
    void (*progress)(void *arg, int64_t acknowledged); /* after each acknowledgement; may be NULL */
    void *progress_arg;
};

/* Kept by the parent over all rounds: what each producer was told. */
struct kill_history {
    int64_t acknowledged[LEDGER_PRODUCERS_MAX];
};

struct kill_result {
    int64_t acknowledged; /* in this round */
    int64_t written_us;   /* from the start of the process to its end */
    int64_t opened_us;    /* how long opening what it left took */
    int64_t found, lost;  /* of all rounds */
};

/* An error means that the comparison could not be made or found damage; loss is told by the result. */
qr_rc kill_round(const struct kill_plan *plan, struct kill_history *history, struct kill_result *ret_result,
                 qr_err *err);
