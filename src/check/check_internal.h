/* Private to src/check/. */
#pragma once

#include "check/check.h"
#include "store/bases.h"
#include "store/check.h"

enum { QR_CHECK_PAGE_MAX = 1000 };

struct qr_checker {
    const struct qr_check_options *options;
    struct qr_check_result *result;
    int page;              /* rows of one */
    struct qr_arena arena; /* of the page; reset for each */
};

/* A finding without ids. */
struct qr_check_finding qr_finding(const char *invariant, const char *code, const char *fmt, ...) QR_PRINTF(3, 4);
/* Counts it, and passes it on while there is room. */
qr_rc qr_checker_report(struct qr_checker *checker, const struct qr_check_finding *finding, qr_err *err);

/* The tree of a base (I1, I3, I4, I6, I10). *ret_live is how many items must have rows in the index. */
qr_rc qr_check_tree(struct qr_checker *checker, qr_uuid base_id, int64_t *ret_live, qr_err *err);
/* The index of a base (I3, I7). */
qr_rc qr_check_index(struct qr_checker *checker, const struct qr_base *base, int64_t live, qr_err *err);
/* Jobs and runs of all bases (I1, I5, I6, I9, I10). */
qr_rc qr_check_all_jobs(struct qr_checker *checker, qr_err *err);
/* Artifacts, their files, and assets (I7). */
qr_rc qr_check_belongings(struct qr_checker *checker, qr_err *err);
