/* Jobs, each with the item and the worker that it names, and running runs. A page and what it names are of one snapshot, so
 * nothing has to be looked at again. */
#include "check/check_item.h"

#include "model/job_type.h"

struct job_page {
    struct qr_checker *checker;
    qr_uuid after;
    struct qr_check_job *jobs;
    bool *is_nobodys; /* of each: its item or its base is deleting (K2) */
    size_t count;
};

static bool is_open_stage(const struct qr_check_job *job)
{
    const enum qr_job_type type = qr_job_type_find(qr_str_of(job->type));
    return job->state >= QR_JOB_BLOCKED && job->state <= QR_JOB_RUNNING && type && qr_job_type_info(type)->is_stage;
}

static bool item_waits_for(const struct qr_check_job *job)
{
    return job->has_item && job->item_generation == job->generation &&
           qr_item_is_at_work(job->item_is_container, (enum qr_item_status)job->item_status);
}

static qr_rc ask_whether_nobodys(struct job_page *page, struct qr_tx *tx, size_t i, qr_err *err)
{
    const struct qr_check_job *job = &page->jobs[i];
    struct qr_base base;
    bool found;
    QR_TRY(qr_base_find(tx, job->base_id, &page->checker->arena, &found, &base, err));
    page->is_nobodys[i] = found && base.status == QR_BASE_DELETING;
    return page->is_nobodys[i] ? QR_OK : qr_item_path_is_deleting(tx, job->item_path, &page->is_nobodys[i], err);
}

static qr_rc read_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct job_page *page = arg;
    struct qr_arena *arena = &page->checker->arena;
    qr_arena_reset(arena);
    QR_TRY(qr_check_jobs(tx, page->after, page->checker->page, arena, &page->jobs, &page->count, err));
    page->is_nobodys = qr_arena_array(arena, QR_CHECK_PAGE_MAX, sizeof page->is_nobodys[0]);
    if (!page->is_nobodys) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a check");
    }
    for (size_t i = 0; i < page->count; i++) {
        if (is_open_stage(&page->jobs[i]) && !item_waits_for(&page->jobs[i])) {
            QR_TRY(ask_whether_nobodys(page, tx, i, err));
        }
    }
    return QR_OK;
}

/* ---- judging ---- */

static qr_rc report(struct qr_checker *checker, const struct qr_check_job *job, struct qr_check_finding finding,
                    qr_err *err)
{
    finding.base_id = job->base_id;
    finding.item_id = job->item_id;
    finding.job_id = job->id;
    return qr_checker_report(checker, &finding, err);
}

static qr_rc judge_stage(struct qr_checker *checker, const struct qr_check_job *job, qr_err *err)
{
    if (!job->has_item) {
        return report(checker, job, qr_finding("I1", "job_without_item", "the item of this %s is gone", job->type),
                      err);
    }
    if (job->item_generation != job->generation) {
        return report(checker, job,
                      qr_finding("I1", "job_outdated", "this %s is of generation %lld, but its item wants %lld",
                                 job->type, (long long)job->generation, (long long)job->item_generation),
                      err);
    }
    return report(checker, job,
                  qr_finding("I1", "job_unwanted", "this %s is open, but its item waits for nothing", job->type), err);
}

static qr_rc judge_row(struct qr_checker *checker, const struct qr_check_job *job, qr_err *err)
{
    const bool is_open = job->state >= QR_JOB_BLOCKED && job->state <= QR_JOB_RUNNING;
    if (job->state < QR_JOB_BLOCKED || job->state > QR_JOB_CANCELLED) {
        QR_TRY(report(checker, job,
                      qr_finding("I5", "job_state_unknown", "state %lld is none there is", (long long)job->state),
                      err));
    }
    if (is_open && (!qr_queue_is_known((enum qr_queue)job->queue) || !qr_job_type_find(qr_str_of(job->type)))) {
        QR_TRY(report(checker, job,
                      qr_finding("I5", "job_type_unknown",
                                 "no worker will do it: its type or queue is "
                                 "none there is: cancel it"),
                      err));
    }
    if (job->is_abandoned) {
        QR_TRY(report(checker, job,
                      qr_finding("I5", "job_abandoned", "it is blocked, but no job of its key goes before it"), err));
    }
    if (job->state == QR_JOB_RUNNING && !job->has_worker) {
        QR_TRY(report(checker, job, qr_finding("I9", "worker_missing", "it runs, but its worker is gone"), err));
    }
    if (job->state == QR_JOB_FAILED && !qr_check_code_is_known(job->code)) {
        QR_TRY(report(checker, job, qr_finding("I10", "error_code_unknown", "the code of its error is none there is"),
                      err));
    }
    if (!qr_utf8_valid(job->message)) {
        QR_TRY(report(checker, job, qr_finding("I10", "text_invalid", "the message of its error is no text"), err));
    }
    return QR_OK;
}

static qr_rc judge(struct job_page *page, size_t i, qr_err *err)
{
    const struct qr_check_job *job = &page->jobs[i];
    QR_TRY(judge_row(page->checker, job, err));
    const bool is_wrong = is_open_stage(job) && !item_waits_for(job) && !page->is_nobodys[i];
    return is_wrong ? judge_stage(page->checker, job, err) : QR_OK;
}

static qr_rc check_jobs(struct qr_checker *checker, qr_err *err)
{
    struct job_page page = {.checker = checker};
    do {
        QR_TRY(qr_db_read(checker->options->db, read_page, &page, err));
        for (size_t i = 0; i < page.count; i++) {
            QR_TRY(judge(&page, i, err));
        }
        checker->result->jobs += (int64_t)page.count;
        page.after = page.count ? page.jobs[page.count - 1].id : page.after;
    } while (page.count == (size_t)checker->page);
    return QR_OK;
}

/* ---- runs ---- */

struct run_look {
    qr_uuid after;
    bool found;
    struct qr_check_run run;
};

static qr_rc read_run(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct run_look *look = arg;
    return qr_check_next_run(tx, look->after, &look->found, &look->run, err);
}

static qr_rc check_runs(struct qr_checker *checker, qr_err *err)
{
    struct run_look look = {0};
    for (;;) {
        QR_TRY(qr_db_read(checker->options->db, read_run, &look, err));
        if (!look.found) {
            return QR_OK;
        }
        look.after = look.run.id;
        if (look.run.is_settled && look.run.active != look.run.counted) {
            char id[QR_UUID_TEXT_SIZE];
            qr_uuid_format(look.run.id, id);
            struct qr_check_finding finding =
                qr_finding("I6", "run_wrong", "the run %s counts %lld items at work, but there are %lld", id,
                           (long long)look.run.active, (long long)look.run.counted);
            finding.base_id = look.run.base_id;
            QR_TRY(qr_checker_report(checker, &finding, err));
        }
    }
}

qr_rc qr_check_all_jobs(struct qr_checker *checker, qr_err *err)
{
    QR_TRY(check_jobs(checker, err));
    return check_runs(checker, err);
}
