/* The sweep. Everything here can be broken off and begun again. */
#include "handler/sweep.h"

#include "store/cleanup.h"
#include "store/events.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_A_STEP = 1000, EVENTS_A_STEP = 500, BASES_A_STEP = 100 };
static const int64_t KEEP_EVENTS_MS = INT64_C(7) * 86400000, KEEP_WORK_MS = INT64_C(2) * 86400000;

/* ---- files of artifacts ---- */

static qr_rc sweep_artifacts(struct qr_job_run *run, qr_err *err)
{
    const struct qr_handler_context *context = run->arg;
    uint32_t cursor = 0;
    do {
        int64_t removed;
        if (qr_job_is_cancelled(run)) {
            return qr_fail(err, QR_CODE_CANCELLED, "the sweep was told to end");
        }
        QR_TRY(qr_artifacts_sweep(context->artifacts, run->db, qr_clock_wall_ms(run->clock), &cursor, FILES_A_STEP,
                                  &removed, err));
    } while (cursor != 0);
    return QR_OK;
}

/* ---- copies for converters; a conversion ends within a day ---- */

static void sweep_work(const char *dir, int64_t now_ms)
{
    DIR *folder = opendir(dir);
    if (!folder) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        struct stat facts;
        if (fstatat(dirfd(folder), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(facts.st_mode) &&
            now_ms - (int64_t)facts.st_mtim.tv_sec * 1000 > KEEP_WORK_MS) {
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    closedir(folder);
}

/* ---- events ---- */

struct events {
    qr_uuid base_id, after;
    struct qr_arena *arena;
    struct qr_base *bases;
    size_t base_count;
    int64_t count;
};

static qr_rc list_bases(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct events *events = arg;
    return qr_bases_list(tx, events->after, BASES_A_STEP, false, events->arena, &events->bases, &events->base_count,
                         err);
}

static qr_rc prune(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct events *events = arg;
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    return qr_events_prune(tx, events->base_id, now_ms - KEEP_EVENTS_MS, EVENTS_A_STEP, &events->count, err);
}

static qr_rc prune_events(struct qr_job_run *run, qr_err *err)
{
    struct events events = {.arena = run->arena};
    do {
        QR_TRY(qr_db_read(run->db, list_bases, &events, err));
        for (size_t i = 0; i < events.base_count; i++) {
            events.base_id = events.bases[i].id;
            do {
                QR_TRY(qr_db_write(run->db, QR_RELAXED, prune, &events, err));
            } while (events.count > 0 && !qr_job_is_cancelled(run));
        }
        events.after = events.base_count ? events.bases[events.base_count - 1].id : (qr_uuid){0};
    } while (events.base_count == BASES_A_STEP && !qr_job_is_cancelled(run));
    return QR_OK;
}

/* ---- all of it ---- */

void qr_sweep(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    const struct qr_handler_context *context = run->arg;
    qr_rc rc = sweep_artifacts(run, &ret_outcome->error);
    rc = rc == QR_OK ? prune_events(run, &ret_outcome->error) : rc;
    if (rc == QR_OK && context->work_dir) {
        sweep_work(context->work_dir, qr_clock_wall_ms(run->clock));
    }
    ret_outcome->kind = rc == QR_OK ? QR_OUTCOME_COMPLETED : QR_OUTCOME_FAILED;
    ret_outcome->level = QR_RELAXED;
}
