#include "support/artifact_fixture.h"

#include "store/schema.h"

#include <dirent.h>
#include <unistd.h>

void qr_shelf_open(struct qr_shelf *shelf, struct qr_test *t)
{
    qr_err err;
    struct qr_db_options options = qr_test_db_options(t, qr_schema_migrations, qr_schema_migration_count);
    options.single_thread = true; /* the fault sweep opens it a thousand times */
    *shelf = (struct qr_shelf){0};
    QR_CHECK_RC(QR_OK, qr_db_open(&shelf->db, &options, &err));
    snprintf(shelf->dir, sizeof shelf->dir, "%s", qr_test_path(t, "artifacts"));
    shelf->artifacts.dir = shelf->dir;
    qr_arena_init(&shelf->arena, 0);
    qr_uuid_gen_init(&shelf->ids, qr_clock_system(), qr_rand_system());
}

void qr_shelf_close(struct qr_shelf *shelf)
{
    qr_db_close(shelf->db);
    qr_arena_done(&shelf->arena);
    qr_uuid_gen_done(&shelf->ids);
}

qr_str qr_shelf_bytes(char seed, size_t len)
{
    static char bytes[4][QR_SHELF_LARGE_BYTES + 16];
    static unsigned next;
    char *to = bytes[next++ % QR_COUNT(bytes)];
    QR_CHECK(len <= sizeof bytes[0]);
    for (size_t i = 0; i < len; i++) {
        to[i] = (char)(seed + (char)(i % 101));
    }
    return (qr_str){to, len};
}

qr_rc qr_shelf_adopt(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_shelf_call *call = arg;
    return qr_artifact_adopt(tx, QR_SHELF_BASE, call->item_id, call->generation, &call->made, err);
}

qr_rc qr_shelf_find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_shelf_call *call = arg;
    return qr_artifact_find(tx, call->item_id, call->kind, call->generation, &call->shelf->arena, &call->found,
                            &call->artifact, err);
}

qr_rc qr_shelf_remove(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_shelf_call *call = arg;
    return qr_artifacts_remove(tx, call->ids, call->count, &call->shelf->arena, &call->files, &call->file_count, err);
}

static qr_rc count_rows(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_shelf_call *call = arg;
    return qr_tx_get_i64(tx, "SELECT count(*) FROM artifact", QR_NO_VALS, NULL, &call->number, err);
}

int64_t qr_shelf_row_count(struct qr_shelf *shelf)
{
    qr_err err;
    struct qr_shelf_call call = {.shelf = shelf};
    QR_CHECK_RC(QR_OK, qr_db_read(shelf->db, count_rows, &call, &err));
    return call.number;
}

struct qr_new_artifact qr_shelf_prepare(struct qr_shelf *shelf, qr_uuid id, enum qr_artifact_kind kind, qr_str bytes)
{
    qr_err err;
    struct qr_new_artifact made;
    QR_CHECK_RC(QR_OK, qr_artifact_prepare(&shelf->artifacts, id, kind, bytes, &shelf->arena, &made, &err));
    return made;
}

struct qr_new_artifact qr_shelf_add(struct qr_shelf *shelf, qr_uuid item_id, int64_t generation,
                                    enum qr_artifact_kind kind, qr_str bytes)
{
    qr_err err;
    struct qr_shelf_call call = {.shelf = shelf, .item_id = item_id, .generation = generation};
    call.made = qr_shelf_prepare(shelf, qr_uuid_next(&shelf->ids), kind, bytes);
    QR_CHECK_RC(QR_OK, qr_db_write(shelf->db, QR_DURABLE, qr_shelf_adopt, &call, &err));
    return call.made;
}

bool qr_shelf_find_at(struct qr_shelf *shelf, enum qr_artifact_kind kind, int64_t generation_max,
                      struct qr_artifact *ret)
{
    qr_err err;
    struct qr_shelf_call call = {.shelf = shelf, .item_id = QR_SHELF_ITEM, .kind = kind, .generation = generation_max};
    QR_CHECK_RC(QR_OK, qr_db_read(shelf->db, qr_shelf_find, &call, &err));
    *ret = call.artifact;
    return call.found;
}

struct qr_artifact qr_shelf_find_newest(struct qr_shelf *shelf, enum qr_artifact_kind kind)
{
    struct qr_artifact artifact;
    QR_CHECK(qr_shelf_find_at(shelf, kind, 0, &artifact));
    return artifact;
}

void qr_shelf_check_bytes(struct qr_shelf *shelf, const struct qr_artifact *artifact, qr_str expected)
{
    qr_err err;
    struct qr_buf out;
    qr_buf_init(&out, 0);
    qr_buf_add_text(&out, "before");
    QR_CHECK_RC(QR_OK, qr_artifact_read(&shelf->artifacts, shelf->db, artifact, &out, &err));
    QR_CHECK_INT(expected.len + 6, out.len);
    QR_CHECK(memcmp(out.data, "before", 6) == 0 && memcmp(out.data + 6, expected.ptr, expected.len) == 0);
    qr_buf_done(&out);
}

const char *qr_shelf_path(const struct qr_shelf *shelf, const char *file)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", shelf->dir, file);
    return path;
}

bool qr_shelf_has_file(const struct qr_shelf *shelf, const char *file)
{
    return access(qr_shelf_path(shelf, file), F_OK) == 0;
}

int qr_shelf_file_count(const struct qr_shelf *shelf)
{
    int count = 0;
    for (int i = 0; i < 256; i++) {
        char name[3];
        snprintf(name, sizeof name, "%02x", (unsigned)i);
        DIR *dir = opendir(qr_shelf_path(shelf, name));
        for (struct dirent *entry; dir && (entry = readdir(dir));) {
            count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
        }
        if (dir) {
            closedir(dir);
        }
    }
    return count;
}

void qr_shelf_write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    QR_CHECK(file && fputs(text, file) >= 0);
    fclose(file);
}
