/* Artifacts, their files, and assets: nothing without an owner, no row without its file (I7). Rows of an item go in the
 * transaction that removes it, so a row without an item is damage. */
#include "check/check_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { FOLDERS = 256, AGE_MS_MIN = 60 * 60 * 1000 };

struct row_page {
    int limit;
    struct qr_arena *arena;
    bool of_assets;
    qr_uuid after;
    int64_t after_generation;
    struct qr_check_belongings found;
};

static qr_rc read_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct row_page *page = arg;
    qr_arena_reset(page->arena);
    if (page->of_assets) {
        return qr_check_assets(tx, page->after, page->after_generation, page->limit, page->arena, &page->found, err);
    }
    return qr_check_artifacts(tx, page->after, page->limit, page->arena, &page->found, err);
}

static qr_rc report(struct qr_checker *checker, const struct qr_check_belonging *row, struct qr_check_finding finding,
                    qr_err *err)
{
    finding.base_id = row->base_id;
    finding.item_id = row->item_id;
    return qr_checker_report(checker, &finding, err);
}

/* ---- rows without an item ---- */

struct removal {
    const struct qr_check_belonging *row;
    bool of_assets, is_removed;
};

static qr_rc remove_row(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct removal *removal = arg;
    if (removal->of_assets) {
        return qr_check_remove_asset(tx, removal->row->id, removal->row->generation, &removal->is_removed, err);
    }
    return qr_check_remove_artifact(tx, removal->row->id, &removal->is_removed, err);
}

static qr_rc report_orphan(struct qr_checker *checker, const struct qr_check_belonging *row, bool of_assets,
                           qr_err *err)
{
    struct qr_check_finding finding =
        of_assets ? qr_finding("I7", "asset_orphan", "an asset belongs to an item that is gone")
                  : qr_finding("I7", "artifact_orphan", "an artifact of %lld bytes belongs to an item that is gone",
                               (long long)row->size_bytes);
    struct removal removal = {.row = row, .of_assets = of_assets};
    if (checker->options->repair) {
        QR_TRY(qr_db_write(checker->options->db, QR_DURABLE, remove_row, &removal, err));
        finding.is_repaired = true;
    }
    if (removal.is_removed && row->file[0] && checker->options->artifacts) {
        qr_artifacts_unlink(checker->options->artifacts, &row->file, 1);
    }
    return report(checker, row, finding, err);
}

/* ---- rows without a file ---- */

struct artifact_look {
    struct qr_arena arena;
    qr_uuid id;
    bool found;
    struct qr_artifact artifact;
};

static qr_rc find_artifact(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct artifact_look *look = arg;
    qr_arena_reset(&look->arena);
    return qr_artifact_find_id(tx, look->id, &look->arena, &look->found, &look->artifact, err);
}

/* A row goes before its file: one that is still there after the file was missed has lost it. */
static qr_rc check_file(struct qr_checker *checker, const struct qr_check_belonging *row, qr_err *err)
{
    const struct qr_artifact named = {.file = row->file, .size_bytes = row->size_bytes};
    if (!checker->options->artifacts || qr_artifact_is_there(checker->options->artifacts, &named)) {
        return QR_OK;
    }
    struct artifact_look look = {.id = row->id};
    qr_arena_init(&look.arena, 0);
    const qr_rc rc = qr_db_read(checker->options->db, find_artifact, &look, err);
    qr_arena_done(&look.arena);
    QR_TRY(rc);
    return look.found ? report(checker, row,
                               qr_finding("I7", "file_missing", "the file %s is gone or has another size: reindex it",
                                          row->file),
                               err)
                      : QR_OK;
}

static qr_rc check_rows(struct qr_checker *checker, bool of_assets, qr_err *err)
{
    struct row_page page = {.limit = checker->page, .arena = &checker->arena, .of_assets = of_assets};
    do {
        QR_TRY(qr_db_read(checker->options->db, read_page, &page, err));
        for (size_t i = 0; i < page.found.count; i++) {
            const struct qr_check_belonging *row = &page.found.rows[i];
            QR_TRY(row->has_item ? check_file(checker, row, err) : report_orphan(checker, row, of_assets, err));
        }
        if (page.found.count) {
            page.after = page.found.rows[page.found.count - 1].id;
            page.after_generation = page.found.rows[page.found.count - 1].generation;
        }
        checker->result->artifacts += of_assets ? 0 : (int64_t)page.found.count;
    } while (page.found.count == (size_t)checker->page);
    return QR_OK;
}

/* ---- files without a row ---- */

/* Whether it is gone then. */
static bool remove_file(const struct qr_artifacts *artifacts, const char *file)
{
    const struct qr_io *io = artifacts->io ? artifacts->io : qr_io_system();
    struct qr_buf path;
    qr_artifacts_unlink(artifacts, &file, 1);
    qr_buf_init(&path, 0);
    qr_buf_printf(&path, "%s/%s", artifacts->dir, file);
    const int fd = path.failed == QR_CODE_NONE ? io->open(io, path.data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0) : -1;
    const bool is_gone = path.failed == QR_CODE_NONE && fd < 0 && errno == ENOENT;
    if (fd >= 0) {
        io->close(io, fd);
    }
    qr_buf_done(&path);
    return is_gone;
}

/* A file that was written and is about to be adopted is young; its age is that of its id. */
static qr_rc check_entry(struct qr_checker *checker, unsigned folder, const char *name, int64_t now_ms, qr_err *err)
{
    struct artifact_look look = {0};
    if (!qr_uuid_parse(qr_str_of(name), &look.id) || look.id.bytes[QR_UUID_BYTES - 1] != folder ||
        qr_uuid_time_ms(look.id) >= now_ms - AGE_MS_MIN) {
        return QR_OK;
    }
    qr_arena_init(&look.arena, 0);
    const qr_rc rc = qr_db_read(checker->options->db, find_artifact, &look, err);
    qr_arena_done(&look.arena);
    QR_TRY(rc);
    if (look.found) {
        return QR_OK;
    }
    char file[3 + QR_UUID_TEXT_SIZE];
    snprintf(file, sizeof file, "%02x/%.36s", folder, name);
    struct qr_check_finding finding = qr_finding("I7", "file_orphan", "the file %s belongs to nothing", file);
    if (checker->options->repair) {
        finding.is_repaired = remove_file(checker->options->artifacts, file);
    }
    return qr_checker_report(checker, &finding, err);
}

static qr_rc check_folder(struct qr_checker *checker, unsigned folder, int64_t now_ms, qr_err *err)
{
    struct qr_buf path;
    qr_buf_init(&path, 0);
    qr_buf_printf(&path, "%s/%02x", checker->options->artifacts->dir, folder);
    qr_rc rc = qr_buf_check(&path, err);
    DIR *dir = rc == QR_OK ? opendir(path.data) : NULL; /* most of them are not there yet */
    for (const struct dirent *entry; rc == QR_OK && dir && (entry = readdir(dir));) {
        rc = check_entry(checker, folder, entry->d_name, now_ms, err);
    }
    if (dir) {
        closedir(dir);
    }
    qr_buf_done(&path);
    return rc;
}

qr_rc qr_check_belongings(struct qr_checker *checker, qr_err *err)
{
    QR_TRY(check_rows(checker, false, err));
    QR_TRY(check_rows(checker, true, err));
    if (!checker->options->artifacts || !checker->options->artifacts->dir) {
        return QR_OK;
    }
    const int64_t now_ms = qr_clock_wall_ms(checker->options->clock);
    for (unsigned folder = 0; folder < FOLDERS; folder++) {
        QR_TRY(check_folder(checker, folder, now_ms, err));
    }
    return QR_OK;
}
