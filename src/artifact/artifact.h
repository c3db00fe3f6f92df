/* Bytes that Quire owns: sources, canonical texts, assets. Small ones are rows, larger ones files.
 *
 * A1  An artifact belongs to (item, generation, kind) and has an id of its own: never a user's name, never shared.
 * A2  A file is written and synced under the name of its id before the row that adopts it commits; a file without a row is
 *     left from a crash or a lost fence, and is swept (FENCE-5: the id is made anew by each attempt).
 * A3  A row is removed before its file: a crash between the two leaves a file for the sweep, never a row without bytes. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/uuid.h"
#include "db/db.h"
#include "model/stage_result.h"

#include <stdatomic.h>

enum qr_artifact_kind { QR_ARTIFACT_SOURCE = 1, QR_ARTIFACT_TEXT = 2, QR_ARTIFACT_ASSET = 3 };

enum { QR_ARTIFACT_ROW_BYTES_MAX = 256 << 10 };

struct qr_artifacts {
    const char *dir;        /* NULL = all of them are rows (PostgreSQL) */
    const struct qr_io *io; /* NULL = the system's */
    /* A4  While it is not 0 no file is removed: a backup that took a snapshot of the rows still has to copy what they name. A file goes
     *     after its row (A3), so whoever removes one and saw 0 had committed that before the snapshot. The sweep comes later. */
    _Atomic int keepers;
};

/* Makes bytes ready to be adopted: small ones stay where they are (borrowed), larger ones are written to a durable file. */
qr_rc qr_artifact_prepare(const struct qr_artifacts *artifacts, qr_uuid new_id, enum qr_artifact_kind kind,
                          qr_str bytes, struct qr_arena *arena, struct qr_new_artifact *ret_artifact, qr_err *err);
/* Of a prepared one that was not adopted. */
void qr_artifact_discard(const struct qr_artifacts *artifacts, const struct qr_new_artifact *artifact);

/* Inside the transaction that makes it the item's; replaces another of the same (item, generation, kind) unless it is an
 * asset. The file of a replaced one is left to the sweep. */
qr_rc qr_artifact_adopt(struct qr_tx *tx, qr_uuid base_id, qr_uuid item_id, int64_t generation,
                        const struct qr_new_artifact *artifact, qr_err *err);

struct qr_artifact {
    qr_uuid id, item_id;
    int64_t generation;
    enum qr_artifact_kind kind;
    int64_t size_bytes;
    unsigned char hash[16];
    const char *file; /* "" = a row */
};
/* The newest of the kind, of at most this generation (0 = any). */
qr_rc qr_artifact_find(struct qr_tx *tx, qr_uuid item_id, enum qr_artifact_kind kind, int64_t generation_max,
                       struct qr_arena *arena, bool *ret_found, struct qr_artifact *ret_artifact, qr_err *err);
/* The one with this id. */
qr_rc qr_artifact_find_id(struct qr_tx *tx, qr_uuid id, struct qr_arena *arena, bool *ret_found,
                          struct qr_artifact *ret_artifact, qr_err *err);
/* Appends its bytes. Not inside a transaction; `not_found` when it was removed meanwhile. */
qr_rc qr_artifact_read(const struct qr_artifacts *artifacts, struct qr_db *db, const struct qr_artifact *artifact,
                       struct qr_buf *out, qr_err *err);

/* At most `len_max` of its bytes from `offset` on, fewer only at the end; as they are, since what was stored is known only of
 * the whole. */
qr_rc qr_artifact_read_part(const struct qr_artifacts *artifacts, struct qr_db *db, const struct qr_artifact *artifact,
                            int64_t offset, size_t len_max, struct qr_buf *out, qr_err *err);

/* Removes the rows of the items, or of one item's generations other than these two (0 = none; kind SOURCE of the newest
 * generation always stays); their files are named for the removal after the commit. */
qr_rc qr_artifacts_remove(struct qr_tx *tx, const qr_uuid *item_ids, size_t count, struct qr_arena *arena,
                          const char ***ret_files, size_t *ret_file_count, qr_err *err);
qr_rc qr_artifacts_purge(struct qr_tx *tx, qr_uuid item_id, int64_t live_generation, int64_t wanted_generation,
                         struct qr_arena *arena, const char ***ret_files, size_t *ret_file_count, qr_err *err);
void qr_artifacts_unlink(const struct qr_artifacts *artifacts, const char *const *files, size_t count);

/* Removes files no row knows and that are older than an hour, at most `limit` looked at from *cursor on; *cursor is moved,
 * and at the end set back to 0. A file's age is that of its id, so `now_ms` must be of the clock that makes the ids. What
 * changes meanwhile may be missed until the next time round. */
qr_rc qr_artifacts_sweep(const struct qr_artifacts *artifacts, struct qr_db *db, int64_t now_ms, uint32_t *cursor,
                         int limit, int64_t *ret_removed, qr_err *err);
/* The names of files, in their order, behind `after` ("" = from the first on); fewer than the limit at the end. */
qr_rc qr_artifacts_list_files(struct qr_tx *tx, const char *after, int limit, struct qr_arena *arena,
                              const char ***ret_files, size_t *ret_count, qr_err *err);
/* For check: whether the file of the artifact is there with its size. */
bool qr_artifact_is_there(const struct qr_artifacts *artifacts, const struct qr_artifact *artifact);
