/* An artifact whose bytes come in pieces, and may be more than memory holds.
 *
 * W1  What was not finished leaves nothing: the file has a temporary name in the data folder, which is removed when the
 *     writer is, and by whoever opens the folder next should this process be killed.
 * W2  What was finished and not adopted leaves nothing either: from before the file has its name until it is settled a mark with
 *     its id stands in the data folder. Whoever opens the folder next removes the files of marks that have no row. (After a power
 *     loss the mark may be missing: then the sweep comes to the file.) */
#pragma once

#include "artifact/artifact.h"
#include "base/hash.h"

struct qr_artifact_writer {
    const struct qr_artifacts *artifacts;
    qr_uuid id;
    enum qr_artifact_kind kind;
    size_t row_bytes_max; /* so much is kept in memory; more goes to a file, where there can be one */
    struct qr_buf small;
    struct qr_hash_stream *hash;
    int64_t size_bytes;
    int64_t begun_bytes; /* of the file, that the disk was told to begin with */
    char *temp;          /* the file's name while it is written; NULL = none */
    int fd;
};

/* `row_bytes_max` at most QR_ARTIFACT_ROW_BYTES_MAX. On failure there is nothing to release. */
qr_rc qr_artifact_writer_init(struct qr_artifact_writer *writer, const struct qr_artifacts *artifacts, qr_uuid new_id,
                              enum qr_artifact_kind kind, size_t row_bytes_max, qr_err *err);
void qr_artifact_writer_done(struct qr_artifact_writer *writer);
qr_rc qr_artifact_writer_add(struct qr_artifact_writer *writer, qr_str bytes, qr_err *err);
/* Makes it ready to be adopted, as qr_artifact_prepare does. Bytes of a small one are copied to the arena. */
qr_rc qr_artifact_writer_finish(struct qr_artifact_writer *writer, struct qr_arena *arena,
                                struct qr_new_artifact *ret_artifact, qr_err *err);

/* Of what was finished, once it is adopted or discarded: takes its mark away (W2). */
void qr_artifact_settle(const struct qr_artifacts *artifacts, const struct qr_new_artifact *artifact);
/* The same where it is not known whether it was adopted: a file without a row is removed. */
void qr_artifact_settle_by_row(const struct qr_artifacts *artifacts, struct qr_db *db,
                               const struct qr_new_artifact *artifact);
/* What a process that was killed has left marked; called by the one that opens the folder, before anything is written. */
qr_rc qr_artifacts_settle_left(const struct qr_artifacts *artifacts, struct qr_db *db, qr_err *err);
