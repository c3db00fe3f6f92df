/* Artifacts in a test: a database, a folder, and every call of artifact/artifact.h in a transaction of its own. */
#pragma once

#include "artifact/artifact.h"
#include "support/db_fixture.h"

enum { QR_SHELF_LARGE_BYTES = QR_ARTIFACT_ROW_BYTES_MAX + 1 }; /* too many for a row */

static const qr_uuid QR_SHELF_BASE = {.bytes = {9}};
static const qr_uuid QR_SHELF_ITEM = {.bytes = {1}};

struct qr_shelf {
    struct qr_db *db;
    struct qr_arena arena;
    struct qr_uuid_gen ids;
    struct qr_artifacts artifacts;
    char dir[200];
};

/* One call in a transaction of its own. */
struct qr_shelf_call {
    struct qr_shelf *shelf;
    qr_uuid item_id;
    int64_t generation, live_generation;
    enum qr_artifact_kind kind;
    struct qr_new_artifact made;
    const qr_uuid *ids;
    size_t count;
    bool found;
    struct qr_artifact artifact;
    const char **files;
    size_t file_count;
    int64_t number;
};
qr_tx_fn qr_shelf_adopt, qr_shelf_find, qr_shelf_remove;

void qr_shelf_open(struct qr_shelf *shelf, struct qr_test *t);
void qr_shelf_close(struct qr_shelf *shelf);
/* Bytes that tell their seed. */
qr_str qr_shelf_bytes(char seed, size_t len);
/* Rows of artifacts. */
int64_t qr_shelf_row_count(struct qr_shelf *shelf);
struct qr_new_artifact qr_shelf_prepare(struct qr_shelf *shelf, qr_uuid id, enum qr_artifact_kind kind, qr_str bytes);
struct qr_new_artifact qr_shelf_add(struct qr_shelf *shelf, qr_uuid item_id, int64_t generation,
                                    enum qr_artifact_kind kind, qr_str bytes);
/* Of QR_SHELF_ITEM: the newest up to the generation, 0 = of all. */
bool qr_shelf_find_at(struct qr_shelf *shelf, enum qr_artifact_kind kind, int64_t generation_max,
                      struct qr_artifact *ret);
struct qr_artifact qr_shelf_find_newest(struct qr_shelf *shelf, enum qr_artifact_kind kind);
/* What is read is added to what is there. */
void qr_shelf_check_bytes(struct qr_shelf *shelf, const struct qr_artifact *artifact, qr_str expected);
/* Of a file in the folder; static memory. */
const char *qr_shelf_path(const struct qr_shelf *shelf, const char *file);
bool qr_shelf_has_file(const struct qr_shelf *shelf, const char *file);
/* All files below the artifact folder. */
int qr_shelf_file_count(const struct qr_shelf *shelf);
void qr_shelf_write_to(const char *path, const char *text);
