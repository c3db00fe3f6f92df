/* Does what is stored keep the invariants of docs/SEMANTICS.md §5? Looks at a data folder while it is in use, in memory that
 * does not grow with it.
 *
 * K1  Everything is read in pages, each of one snapshot. What looks wrong across pages is looked at again in a snapshot of
 *     its own: what merely changed meanwhile is no finding.
 * K2  What is deleting, or below something that is, is nobody's any more, and not looked at.
 * K3  A repair brings back only what follows from the rest: counters, states of containers, what belongs to nobody. Lost work
 *     is recovery's: the finding says what to do. */
#pragma once

#include "artifact/artifact.h"
#include "base/clock.h"
#include "index/index.h"

struct qr_check_finding {
    const char *invariant;            /* "I6" */
    const char *code;                 /* a word: "counters_wrong"; docs/API.md lists them */
    qr_uuid base_id, item_id, job_id; /* all zero = none */
    char message[240];
    bool is_repaired;
};
typedef qr_rc qr_check_found_fn(void *arg, const struct qr_check_finding *finding, qr_err *err);

struct qr_check_options {
    struct qr_db *db;
    struct qr_index_set *index;           /* NULL = the index is not looked at */
    const struct qr_artifacts *artifacts; /* NULL = nor are files */
    struct qr_uuid_gen *ids;
    const struct qr_clock *clock; /* that made the ids: what is younger than an hour is left alone */
    bool repair;
    int page_max; /* rows of a page; 0 = 1000, which is also the most: for tests of what happens between pages */
    int64_t findings_max; /* that `found` is told; all are counted and repaired */
    qr_check_found_fn *found;
    void *arg;
};

struct qr_check_result {
    int64_t bases, items, jobs, chunks, artifacts; /* looked at */
    int64_t findings, repaired;
};

qr_rc qr_check(const struct qr_check_options *options, struct qr_check_result *ret_result, qr_err *err);
