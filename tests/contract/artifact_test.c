/* Artifacts, over every database: making, reading, removing. A1–A3 are those of artifact/artifact.h. */
#include "support/artifact_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const qr_uuid OTHER_ITEM = {.bytes = {2}};

static void check_unreadable(struct qr_shelf *shelf, const struct qr_artifact *artifact, qr_code code)
{
    qr_err err;
    struct qr_buf out;
    qr_buf_init(&out, 0);
    qr_buf_add_text(&out, "before");
    QR_CHECK_CODE(code, qr_artifact_read(&shelf->artifacts, shelf->db, artifact, &out, &err));
    QR_CHECK_STR("before", qr_buf_str(&out));
    qr_buf_done(&out);
}

static qr_rc find_id(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_shelf_call *call = arg;
    return qr_artifact_find_id(tx, call->made.id, &call->shelf->arena, &call->found, &call->artifact, err);
}

static qr_rc purge(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_shelf_call *call = arg;
    return qr_artifacts_purge(tx, call->item_id, call->live_generation, call->generation, &call->shelf->arena,
                              &call->files, &call->file_count, err);
}

/* ---- making and reading ---- */

QR_DB_TEST(a_part_is_what_the_whole_has_there)
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    static const size_t sizes[] = {10, QR_ARTIFACT_ROW_BYTES_MAX, QR_SHELF_LARGE_BYTES, 0};
    for (size_t i = 0; i < QR_COUNT(sizes); i++) {
        const qr_str whole = qr_shelf_bytes((char)('a' + i), sizes[i]);
        qr_shelf_add(&shelf, QR_SHELF_ITEM, (int64_t)i + 1, QR_ARTIFACT_SOURCE, whole);
        const struct qr_artifact artifact = qr_shelf_find_newest(&shelf, QR_ARTIFACT_SOURCE);
        const size_t offsets[] = {0, 3, whole.len / 2, whole.len - (whole.len > 0), whole.len, whole.len + 5};
        for (size_t k = 0; k < QR_COUNT(offsets); k++) {
            QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
            const size_t from = QR_MIN(offsets[k], whole.len), len = QR_MIN(whole.len - from, (size_t)100);
            qr_err err;
            QR_CHECK_RC(QR_OK, qr_artifact_read_part(&shelf.artifacts, shelf.db, &artifact, (int64_t)offsets[k], 100,
                                                     &out, &err));
            QR_CHECK_INT(len, out.len);
            QR_CHECK(len == 0 || memcmp(out.data, whole.ptr + from, len) == 0);
        }
    }
    qr_shelf_close(&shelf);
}

QR_DB_TEST(small_bytes_are_a_row_and_large_ones_a_file_named_by_the_id_alone) /* A1 */
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    const qr_str small = qr_shelf_bytes('a', QR_ARTIFACT_ROW_BYTES_MAX),
                 large = qr_shelf_bytes('b', QR_SHELF_LARGE_BYTES);
    QR_CHECK(qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_SOURCE, small).file == NULL);
    QR_CHECK_INT(0, qr_shelf_file_count(&shelf));
    const struct qr_new_artifact made = qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, large);
    char id[QR_UUID_TEXT_SIZE], expected[60];
    qr_uuid_format(made.id, id);
    snprintf(expected, sizeof expected, "%02x/%s", made.id.bytes[15], id);
    QR_CHECK_TEXT(expected, made.file);
    QR_CHECK_INT(1, qr_shelf_file_count(&shelf));

    struct qr_artifact artifact = qr_shelf_find_newest(&shelf, QR_ARTIFACT_SOURCE);
    QR_CHECK_TEXT("", artifact.file);
    QR_CHECK(qr_artifact_is_there(&shelf.artifacts, &artifact));
    qr_shelf_check_bytes(&shelf, &artifact, small);
    artifact = qr_shelf_find_newest(&shelf, QR_ARTIFACT_TEXT);
    QR_CHECK_TEXT(made.file, artifact.file);
    QR_CHECK(qr_uuid_equal(made.id, artifact.id) && qr_uuid_equal(QR_SHELF_ITEM, artifact.item_id));
    QR_CHECK(artifact.generation == 1 && artifact.kind == QR_ARTIFACT_TEXT &&
             artifact.size_bytes == QR_SHELF_LARGE_BYTES);
    QR_CHECK(qr_artifact_is_there(&shelf.artifacts, &artifact));
    qr_shelf_check_bytes(&shelf, &artifact, large);
    qr_shelf_close(&shelf);
}

QR_DB_TEST(without_a_folder_everything_is_a_row)
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    shelf.artifacts.dir = NULL;
    const qr_str large = qr_shelf_bytes('b', QR_SHELF_LARGE_BYTES);
    QR_CHECK(qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, large).file == NULL);
    const struct qr_artifact artifact = qr_shelf_find_newest(&shelf, QR_ARTIFACT_TEXT);
    qr_shelf_check_bytes(&shelf, &artifact, large);
    uint32_t cursor = 7;
    int64_t removed = 1;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_artifacts_sweep(&shelf.artifacts, shelf.db, 0, &cursor, 10, &removed, &err));
    QR_CHECK(cursor == 0 && removed == 0);
    qr_shelf_close(&shelf);
}

QR_DB_TEST(nothing_at_all_is_an_artifact_too) /* EMPTY-1 */
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, (qr_str){NULL, 0});
    const struct qr_artifact artifact = qr_shelf_find_newest(&shelf, QR_ARTIFACT_TEXT);
    QR_CHECK_INT(0, artifact.size_bytes);
    qr_shelf_check_bytes(&shelf, &artifact, QR_STR(""));
    qr_shelf_close(&shelf);
}

QR_DB_TEST(the_newest_up_to_a_generation_is_found)
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    struct qr_artifact artifact;
    QR_CHECK(!qr_shelf_find_at(&shelf, QR_ARTIFACT_TEXT, 0, &artifact));
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, QR_STR("one"));
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 3, QR_ARTIFACT_TEXT, QR_STR("three"));
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 4, QR_ARTIFACT_SOURCE, QR_STR("of another kind"));
    qr_shelf_add(&shelf, OTHER_ITEM, 4, QR_ARTIFACT_TEXT, QR_STR("of another item"));
    QR_CHECK(qr_shelf_find_at(&shelf, QR_ARTIFACT_TEXT, 0, &artifact) && artifact.generation == 3);
    qr_shelf_check_bytes(&shelf, &artifact, QR_STR("three"));
    QR_CHECK(qr_shelf_find_at(&shelf, QR_ARTIFACT_TEXT, 2, &artifact) && artifact.generation == 1);
    qr_shelf_check_bytes(&shelf, &artifact, QR_STR("one"));
    QR_CHECK(!qr_shelf_find_at(&shelf, QR_ARTIFACT_ASSET, 9, &artifact));
    qr_shelf_close(&shelf);
}

QR_DB_TEST(an_artifact_is_found_by_its_id)
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    qr_err err;
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 2, QR_ARTIFACT_ASSET, QR_STR("picture"));
    struct qr_shelf_call call = {.shelf = &shelf,
                                 .made = qr_shelf_add(&shelf, QR_SHELF_ITEM, 2, QR_ARTIFACT_ASSET, QR_STR("table"))};
    QR_CHECK_RC(QR_OK, qr_db_read(shelf.db, find_id, &call, &err));
    QR_CHECK(call.found && qr_uuid_equal(QR_SHELF_ITEM, call.artifact.item_id));
    QR_CHECK(call.artifact.generation == 2 && call.artifact.kind == QR_ARTIFACT_ASSET);
    qr_shelf_check_bytes(&shelf, &call.artifact, QR_STR("table"));
    call.made.id = qr_uuid_next(&shelf.ids);
    QR_CHECK_RC(QR_OK, qr_db_read(shelf.db, find_id, &call, &err));
    QR_CHECK(!call.found);
    qr_shelf_close(&shelf);
}

QR_DB_TEST(a_second_attempt_replaces_the_first_but_assets_are_many) /* A1 */
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    const struct qr_new_artifact first =
        qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES));
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, QR_STR("again"));
    QR_CHECK_INT(1, qr_shelf_row_count(&shelf));
    const struct qr_artifact artifact = qr_shelf_find_newest(&shelf, QR_ARTIFACT_TEXT);
    qr_shelf_check_bytes(&shelf, &artifact, QR_STR("again"));
    QR_CHECK(qr_shelf_has_file(&shelf, first.file)); /* for the sweep: the transaction may yet fail */
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_ASSET, QR_STR("picture"));
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_ASSET, QR_STR("table"));
    QR_CHECK_INT(3, qr_shelf_row_count(&shelf));
    qr_shelf_close(&shelf);
}

QR_DB_TEST(what_is_discarded_leaves_nothing) /* A2 */
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    struct qr_new_artifact made =
        qr_shelf_prepare(&shelf, qr_uuid_next(&shelf.ids), QR_ARTIFACT_TEXT, qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES));
    QR_CHECK_INT(1, qr_shelf_file_count(&shelf));
    qr_artifact_discard(&shelf.artifacts, &made);
    QR_CHECK_INT(0, qr_shelf_file_count(&shelf));
    qr_artifact_discard(&shelf.artifacts, &made); /* again: no harm */
    made = qr_shelf_prepare(&shelf, qr_uuid_next(&shelf.ids), QR_ARTIFACT_TEXT, QR_STR("small"));
    qr_artifact_discard(&shelf.artifacts, &made);
    QR_CHECK_INT(0, qr_shelf_row_count(&shelf));
    qr_shelf_close(&shelf);
}

QR_DB_TEST(bytes_that_are_not_those_stored_are_an_error) /* A3 */
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    const struct qr_new_artifact made =
        qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES));
    const struct qr_artifact artifact = qr_shelf_find_newest(&shelf, QR_ARTIFACT_TEXT);
    const int fd = open(qr_shelf_path(&shelf, made.file), O_WRONLY | O_CLOEXEC);
    QR_CHECK(fd >= 0 && pwrite(fd, "!", 1, 1000) == 1 && close(fd) == 0);
    QR_CHECK(qr_artifact_is_there(&shelf.artifacts, &artifact)); /* by its size */
    check_unreadable(&shelf, &artifact, QR_CODE_DATA_CORRUPT);
    qr_shelf_write_to(qr_shelf_path(&shelf, made.file), "cut");
    QR_CHECK(!qr_artifact_is_there(&shelf.artifacts, &artifact));
    check_unreadable(&shelf, &artifact, QR_CODE_DATA_CORRUPT);
    QR_CHECK_INT(0, unlink(qr_shelf_path(&shelf, made.file)));
    QR_CHECK(!qr_artifact_is_there(&shelf.artifacts, &artifact));
    check_unreadable(&shelf, &artifact, QR_CODE_DATA_CORRUPT); /* its row says that it should be there */
    qr_shelf_close(&shelf);
}

/* ---- removing ---- */

QR_DB_TEST(what_is_removed_names_its_files_and_is_not_found) /* A3 */
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    qr_err err;
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_SOURCE, QR_STR("small"));
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_TEXT, qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES));
    for (int i = 0; i < 20; i++) {
        qr_shelf_add(&shelf, OTHER_ITEM, 1, QR_ARTIFACT_ASSET, qr_shelf_bytes('b', QR_SHELF_LARGE_BYTES));
    }
    const struct qr_artifact row = qr_shelf_find_newest(&shelf, QR_ARTIFACT_SOURCE);
    const struct qr_artifact file = qr_shelf_find_newest(&shelf, QR_ARTIFACT_TEXT);
    const qr_uuid ids[] = {QR_SHELF_ITEM, {.bytes = {7}}, OTHER_ITEM};
    struct qr_shelf_call call = {.shelf = &shelf, .ids = ids, .count = QR_COUNT(ids)};
    QR_CHECK_RC(QR_OK, qr_db_write(shelf.db, QR_DURABLE, qr_shelf_remove, &call, &err));
    QR_CHECK_INT(0, qr_shelf_row_count(&shelf));
    QR_CHECK_INT(21, call.file_count);
    QR_CHECK_INT(21, qr_shelf_file_count(&shelf));
    check_unreadable(&shelf, &row, QR_CODE_NOT_FOUND);
    qr_artifacts_unlink(&shelf.artifacts, call.files, call.file_count);
    QR_CHECK_INT(0, qr_shelf_file_count(&shelf));
    check_unreadable(&shelf, &file, QR_CODE_NOT_FOUND);
    qr_artifacts_unlink(&shelf.artifacts, call.files, call.file_count); /* each step is repeatable */
    QR_CHECK_RC(QR_OK, qr_db_write(shelf.db, QR_DURABLE, qr_shelf_remove, &call, &err));
    QR_CHECK_INT(0, call.file_count);
    qr_shelf_close(&shelf);
}

QR_DB_TEST(a_purge_keeps_what_is_live_or_wanted_and_the_newest_source) /* TYPE-8, RECOV-5 */
{
    struct qr_shelf shelf;
    qr_shelf_open(&shelf, t);
    qr_err err;
    struct qr_artifact artifact;
    for (int64_t generation = 1; generation <= 5; generation++) {
        qr_shelf_add(&shelf, QR_SHELF_ITEM, generation, QR_ARTIFACT_TEXT, QR_STR("text"));
        qr_shelf_add(&shelf, QR_SHELF_ITEM, generation, QR_ARTIFACT_ASSET, qr_shelf_bytes('a', QR_SHELF_LARGE_BYTES));
    }
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 1, QR_ARTIFACT_SOURCE, QR_STR("first"));
    qr_shelf_add(&shelf, QR_SHELF_ITEM, 2, QR_ARTIFACT_SOURCE, QR_STR("second"));
    qr_shelf_add(&shelf, OTHER_ITEM, 1, QR_ARTIFACT_SOURCE, QR_STR("other"));
    struct qr_shelf_call call = {.shelf = &shelf, .item_id = QR_SHELF_ITEM, .live_generation = 3, .generation = 5};
    QR_CHECK_RC(QR_OK, qr_db_write(shelf.db, QR_DURABLE, purge, &call, &err));
    QR_CHECK_INT(3, call.file_count);
    QR_CHECK_INT(2 * 2 + 2, qr_shelf_row_count(&shelf));
    QR_CHECK(qr_shelf_find_at(&shelf, QR_ARTIFACT_TEXT, 4, &artifact) && artifact.generation == 3);
    QR_CHECK(!qr_shelf_find_at(&shelf, QR_ARTIFACT_TEXT, 2, &artifact));
    QR_CHECK(qr_shelf_find_at(&shelf, QR_ARTIFACT_SOURCE, 0, &artifact) && artifact.generation == 2);
    QR_CHECK(!qr_shelf_find_at(&shelf, QR_ARTIFACT_SOURCE, 1, &artifact));
    call.live_generation = 0; /* nothing is live: the wanted one stays alone */
    QR_CHECK_RC(QR_OK, qr_db_write(shelf.db, QR_DURABLE, purge, &call, &err));
    QR_CHECK_INT(1, call.file_count);
    QR_CHECK_INT(2 + 2, qr_shelf_row_count(&shelf));
    qr_shelf_close(&shelf);
}
