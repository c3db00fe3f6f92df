/* The order of a check: base by base its tree and its index, then jobs, then what belongs to items. */
#include "check/check_internal.h"

#include <stdarg.h>
#include <stdio.h>

struct qr_check_finding qr_finding(const char *invariant, const char *code, const char *fmt, ...)
{
    struct qr_check_finding finding = {.invariant = invariant, .code = code};
    va_list args;
    va_start(args, fmt);
    vsnprintf(finding.message, sizeof finding.message, fmt, args);
    va_end(args);
    return finding;
}

qr_rc qr_checker_report(struct qr_checker *checker, const struct qr_check_finding *finding, qr_err *err)
{
    checker->result->findings++;
    checker->result->repaired += finding->is_repaired;
    if (checker->result->findings > checker->options->findings_max) {
        return QR_OK;
    }
    return checker->options->found(checker->options->arg, finding, err);
}

/* ---- bases ---- */

struct base_page {
    int limit;
    qr_uuid after;
    struct qr_arena *arena;
    struct qr_base *bases;
    size_t count;
};

static qr_rc read_bases(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_page *page = arg;
    qr_arena_reset(page->arena);
    return qr_bases_list(tx, page->after, page->limit, false, page->arena, &page->bases, &page->count, err);
}

static qr_rc check_base(struct qr_checker *checker, const struct qr_base *base, qr_err *err)
{
    int64_t live;
    checker->result->bases++;
    QR_TRY(qr_check_tree(checker, base->id, &live, err));
    return checker->options->index ? qr_check_index(checker, base, live, err) : QR_OK;
}

static qr_rc check_bases(struct qr_checker *checker, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct base_page page = {.limit = checker->page, .arena = &arena};
    do {
        QR_TRY(qr_db_read(checker->options->db, read_bases, &page, err));
        for (size_t i = 0; i < page.count; i++) {
            QR_TRY(check_base(checker, &page.bases[i], err));
        }
        page.after = page.count ? page.bases[page.count - 1].id : page.after;
    } while (page.count == (size_t)checker->page);
    return QR_OK;
}

/* ---- items of bases that are not there ---- */

struct named_base {
    qr_uuid after, id;
    struct qr_arena *arena;
    bool found, is_there;
};

static qr_rc read_named_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct named_base *named = arg;
    struct qr_base base;
    qr_arena_reset(named->arena);
    QR_TRY(qr_check_next_named_base(tx, named->after, &named->found, &named->id, err));
    return named->found ? qr_base_find(tx, named->id, named->arena, &named->is_there, &base, err) : QR_OK;
}

static qr_rc check_named_bases(struct qr_checker *checker, qr_err *err)
{
    struct named_base named = {.arena = &checker->arena};
    for (;;) {
        QR_TRY(qr_db_read(checker->options->db, read_named_base, &named, err));
        if (!named.found) {
            return QR_OK;
        }
        named.after = named.id;
        if (!named.is_there) {
            struct qr_check_finding finding =
                qr_finding("I4", "base_missing", "there are items of a base that is gone");
            finding.base_id = named.id;
            QR_TRY(qr_checker_report(checker, &finding, err));
        }
    }
}

static qr_rc check_all(struct qr_checker *checker, qr_err *err)
{
    QR_TRY(check_bases(checker, err));
    QR_TRY(check_named_bases(checker, err));
    QR_TRY(qr_check_all_jobs(checker, err));
    return qr_check_belongings(checker, err);
}

qr_rc qr_check(const struct qr_check_options *options, struct qr_check_result *ret_result, qr_err *err)
{
    *ret_result = (struct qr_check_result){0};
    struct qr_checker checker = {.options = options, .result = ret_result};
    checker.page = options->page_max ? QR_MIN(options->page_max, (int)QR_CHECK_PAGE_MAX) : QR_CHECK_PAGE_MAX;
    qr_arena_init(&checker.arena, 0);
    const qr_rc rc = check_all(&checker, err);
    qr_arena_done(&checker.arena);
    return rc;
}
