/* Artifacts, over every database. A1–A3 are those of artifact/artifact.h. */
#include "artifact/artifact.h"

#include "store/schema.h"
#include "support/child.h"
#include "support/db_fixture.h"
#include "support/disk.h"
#include "support/fault.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGE_BYTES = QR_ARTIFACT_ROW_BYTES_MAX + 1, HOUR_MS = 60 * 60 * 1000 };

static const qr_uuid BASE = {.bytes = {9}};
static const qr_uuid ITEM = {.bytes = {1}};
static const qr_uuid OTHER_ITEM = {.bytes = {2}};

struct world {
    struct qr_db *db;
    struct qr_arena arena;
    struct qr_uuid_gen ids;
    struct qr_artifacts artifacts;
    char dir[200];
};

static void open_world(struct world *world, struct qr_test *t)
{
    qr_err err;
    struct qr_db_options options = qr_test_db_options(t, qr_schema_migrations, qr_schema_migration_count);
    options.single_thread = true; /* the fault sweep opens it a thousand times */
    *world = (struct world){0};
    QR_CHECK_RC(QR_OK, qr_db_open(&world->db, &options, &err));
    snprintf(world->dir, sizeof world->dir, "%s", qr_test_path(t, "artifacts"));
    world->artifacts.dir = world->dir;
    qr_arena_init(&world->arena, 0);
    qr_uuid_gen_init(&world->ids, qr_clock_system(), qr_rand_system());
}

static void close_world(struct world *world)
{
    qr_db_close(world->db);
    qr_arena_done(&world->arena);
    qr_uuid_gen_done(&world->ids);
}

/* Bytes that tell their seed. */
static qr_str bytes_of(char seed, size_t len)
{
    static char bytes[4][LARGE_BYTES + 16];
    static unsigned next;
    char *to = bytes[next++ % QR_COUNT(bytes)];
    QR_CHECK(len <= sizeof bytes[0]);
    for (size_t i = 0; i < len; i++) {
        to[i] = (char)(seed + (char)(i % 101));
    }
    return (qr_str){to, len};
}

/* One call in a transaction of its own. */
struct call {
    struct world *world;
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

static qr_rc adopt(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_artifact_adopt(tx, BASE, call->item_id, call->generation, &call->made, err);
}

static qr_rc find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_artifact_find(tx, call->item_id, call->kind, call->generation, &call->world->arena, &call->found,
                            &call->artifact, err);
}

static qr_rc find_id(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_artifact_find_id(tx, call->made.id, &call->world->arena, &call->found, &call->artifact, err);
}

static qr_rc remove_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_artifacts_remove(tx, call->ids, call->count, &call->world->arena, &call->files, &call->file_count, err);
}

static qr_rc purge(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_artifacts_purge(tx, call->item_id, call->live_generation, call->generation, &call->world->arena,
                              &call->files, &call->file_count, err);
}

static qr_rc count_rows(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_tx_get_i64(tx, "SELECT count(*) FROM artifact", QR_NO_VALS, NULL, &call->number, err);
}

static int64_t row_count(struct world *world)
{
    qr_err err;
    struct call call = {.world = world};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, count_rows, &call, &err));
    return call.number;
}

static struct qr_new_artifact prepare(struct world *world, qr_uuid id, enum qr_artifact_kind kind, qr_str bytes)
{
    qr_err err;
    struct qr_new_artifact made;
    QR_CHECK_RC(QR_OK, qr_artifact_prepare(&world->artifacts, id, kind, bytes, &world->arena, &made, &err));
    return made;
}

static struct qr_new_artifact add(struct world *world, qr_uuid item_id, int64_t generation, enum qr_artifact_kind kind,
                                  qr_str bytes)
{
    qr_err err;
    struct call call = {.world = world, .item_id = item_id, .generation = generation};
    call.made = prepare(world, qr_uuid_next(&world->ids), kind, bytes);
    QR_CHECK_RC(QR_OK, qr_db_write(world->db, QR_DURABLE, adopt, &call, &err));
    return call.made;
}

static bool find_at(struct world *world, enum qr_artifact_kind kind, int64_t generation_max, struct qr_artifact *ret)
{
    qr_err err;
    struct call call = {.world = world, .item_id = ITEM, .kind = kind, .generation = generation_max};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, find, &call, &err));
    *ret = call.artifact;
    return call.found;
}

static struct qr_artifact find_newest(struct world *world, enum qr_artifact_kind kind)
{
    struct qr_artifact artifact;
    QR_CHECK(find_at(world, kind, 0, &artifact));
    return artifact;
}

static void check_bytes(struct world *world, const struct qr_artifact *artifact, qr_str expected)
{
    qr_err err;
    struct qr_buf out;
    qr_buf_init(&out, 0);
    qr_buf_add_text(&out, "before");
    QR_CHECK_RC(QR_OK, qr_artifact_read(&world->artifacts, world->db, artifact, &out, &err));
    QR_CHECK_INT(expected.len + 6, out.len);
    QR_CHECK(memcmp(out.data, "before", 6) == 0 && memcmp(out.data + 6, expected.ptr, expected.len) == 0);
    qr_buf_done(&out);
}

static void check_unreadable(struct world *world, const struct qr_artifact *artifact, qr_code code)
{
    qr_err err;
    struct qr_buf out;
    qr_buf_init(&out, 0);
    qr_buf_add_text(&out, "before");
    QR_CHECK_CODE(code, qr_artifact_read(&world->artifacts, world->db, artifact, &out, &err));
    QR_CHECK_STR("before", qr_buf_str(&out));
    qr_buf_done(&out);
}

static const char *path_of(const struct world *world, const char *file)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", world->dir, file);
    return path;
}

static bool has_file(const struct world *world, const char *file)
{
    return access(path_of(world, file), F_OK) == 0;
}

/* All files below the artifact folder. */
static int file_count(const struct world *world)
{
    int count = 0;
    for (int i = 0; i < 256; i++) {
        char name[3];
        snprintf(name, sizeof name, "%02x", (unsigned)i);
        DIR *dir = opendir(path_of(world, name));
        for (struct dirent *entry; dir && (entry = readdir(dir));) {
            count += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
        }
        if (dir) {
            closedir(dir);
        }
    }
    return count;
}

static void write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    QR_CHECK(file && fputs(text, file) >= 0);
    fclose(file);
}

/* ---- making and reading ---- */

QR_DB_TEST(small_bytes_are_a_row_and_large_ones_a_file_named_by_the_id_alone) /* A1 */
{
    struct world world;
    open_world(&world, t);
    const qr_str small = bytes_of('a', QR_ARTIFACT_ROW_BYTES_MAX), large = bytes_of('b', LARGE_BYTES);
    QR_CHECK(add(&world, ITEM, 1, QR_ARTIFACT_SOURCE, small).file == NULL);
    QR_CHECK_INT(0, file_count(&world));
    const struct qr_new_artifact made = add(&world, ITEM, 1, QR_ARTIFACT_TEXT, large);
    char id[QR_UUID_TEXT_SIZE], expected[60];
    qr_uuid_format(made.id, id);
    snprintf(expected, sizeof expected, "%02x/%s", made.id.bytes[15], id);
    QR_CHECK_TEXT(expected, made.file);
    QR_CHECK_INT(1, file_count(&world));

    struct qr_artifact artifact = find_newest(&world, QR_ARTIFACT_SOURCE);
    QR_CHECK_TEXT("", artifact.file);
    QR_CHECK(qr_artifact_is_there(&world.artifacts, &artifact));
    check_bytes(&world, &artifact, small);
    artifact = find_newest(&world, QR_ARTIFACT_TEXT);
    QR_CHECK_TEXT(made.file, artifact.file);
    QR_CHECK(qr_uuid_equal(made.id, artifact.id) && qr_uuid_equal(ITEM, artifact.item_id));
    QR_CHECK(artifact.generation == 1 && artifact.kind == QR_ARTIFACT_TEXT && artifact.size_bytes == LARGE_BYTES);
    QR_CHECK(qr_artifact_is_there(&world.artifacts, &artifact));
    check_bytes(&world, &artifact, large);
    close_world(&world);
}

QR_DB_TEST(without_a_folder_everything_is_a_row)
{
    struct world world;
    open_world(&world, t);
    world.artifacts.dir = NULL;
    const qr_str large = bytes_of('b', LARGE_BYTES);
    QR_CHECK(add(&world, ITEM, 1, QR_ARTIFACT_TEXT, large).file == NULL);
    const struct qr_artifact artifact = find_newest(&world, QR_ARTIFACT_TEXT);
    check_bytes(&world, &artifact, large);
    uint32_t cursor = 7;
    int64_t removed = 1;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_artifacts_sweep(&world.artifacts, world.db, 0, &cursor, 10, &removed, &err));
    QR_CHECK(cursor == 0 && removed == 0);
    close_world(&world);
}

QR_DB_TEST(nothing_at_all_is_an_artifact_too) /* EMPTY-1 */
{
    struct world world;
    open_world(&world, t);
    add(&world, ITEM, 1, QR_ARTIFACT_TEXT, (qr_str){NULL, 0});
    const struct qr_artifact artifact = find_newest(&world, QR_ARTIFACT_TEXT);
    QR_CHECK_INT(0, artifact.size_bytes);
    check_bytes(&world, &artifact, QR_STR(""));
    close_world(&world);
}

QR_DB_TEST(the_newest_up_to_a_generation_is_found)
{
    struct world world;
    open_world(&world, t);
    struct qr_artifact artifact;
    QR_CHECK(!find_at(&world, QR_ARTIFACT_TEXT, 0, &artifact));
    add(&world, ITEM, 1, QR_ARTIFACT_TEXT, QR_STR("one"));
    add(&world, ITEM, 3, QR_ARTIFACT_TEXT, QR_STR("three"));
    add(&world, ITEM, 4, QR_ARTIFACT_SOURCE, QR_STR("of another kind"));
    add(&world, OTHER_ITEM, 4, QR_ARTIFACT_TEXT, QR_STR("of another item"));
    QR_CHECK(find_at(&world, QR_ARTIFACT_TEXT, 0, &artifact) && artifact.generation == 3);
    check_bytes(&world, &artifact, QR_STR("three"));
    QR_CHECK(find_at(&world, QR_ARTIFACT_TEXT, 2, &artifact) && artifact.generation == 1);
    check_bytes(&world, &artifact, QR_STR("one"));
    QR_CHECK(!find_at(&world, QR_ARTIFACT_ASSET, 9, &artifact));
    close_world(&world);
}

QR_DB_TEST(an_artifact_is_found_by_its_id)
{
    struct world world;
    open_world(&world, t);
    qr_err err;
    add(&world, ITEM, 2, QR_ARTIFACT_ASSET, QR_STR("picture"));
    struct call call = {.world = &world, .made = add(&world, ITEM, 2, QR_ARTIFACT_ASSET, QR_STR("table"))};
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, find_id, &call, &err));
    QR_CHECK(call.found && qr_uuid_equal(ITEM, call.artifact.item_id));
    QR_CHECK(call.artifact.generation == 2 && call.artifact.kind == QR_ARTIFACT_ASSET);
    check_bytes(&world, &call.artifact, QR_STR("table"));
    call.made.id = qr_uuid_next(&world.ids);
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, find_id, &call, &err));
    QR_CHECK(!call.found);
    close_world(&world);
}

QR_DB_TEST(a_second_attempt_replaces_the_first_but_assets_are_many) /* A1 */
{
    struct world world;
    open_world(&world, t);
    const struct qr_new_artifact first = add(&world, ITEM, 1, QR_ARTIFACT_TEXT, bytes_of('a', LARGE_BYTES));
    add(&world, ITEM, 1, QR_ARTIFACT_TEXT, QR_STR("again"));
    QR_CHECK_INT(1, row_count(&world));
    const struct qr_artifact artifact = find_newest(&world, QR_ARTIFACT_TEXT);
    check_bytes(&world, &artifact, QR_STR("again"));
    QR_CHECK(has_file(&world, first.file)); /* for the sweep: the transaction may yet fail */
    add(&world, ITEM, 1, QR_ARTIFACT_ASSET, QR_STR("picture"));
    add(&world, ITEM, 1, QR_ARTIFACT_ASSET, QR_STR("table"));
    QR_CHECK_INT(3, row_count(&world));
    close_world(&world);
}

QR_DB_TEST(what_is_discarded_leaves_nothing) /* A2 */
{
    struct world world;
    open_world(&world, t);
    struct qr_new_artifact made =
        prepare(&world, qr_uuid_next(&world.ids), QR_ARTIFACT_TEXT, bytes_of('a', LARGE_BYTES));
    QR_CHECK_INT(1, file_count(&world));
    qr_artifact_discard(&world.artifacts, &made);
    QR_CHECK_INT(0, file_count(&world));
    qr_artifact_discard(&world.artifacts, &made); /* again: no harm */
    made = prepare(&world, qr_uuid_next(&world.ids), QR_ARTIFACT_TEXT, QR_STR("small"));
    qr_artifact_discard(&world.artifacts, &made);
    QR_CHECK_INT(0, row_count(&world));
    close_world(&world);
}

QR_DB_TEST(bytes_that_are_not_those_stored_are_an_error) /* A3 */
{
    struct world world;
    open_world(&world, t);
    const struct qr_new_artifact made = add(&world, ITEM, 1, QR_ARTIFACT_TEXT, bytes_of('a', LARGE_BYTES));
    const struct qr_artifact artifact = find_newest(&world, QR_ARTIFACT_TEXT);
    const int fd = open(path_of(&world, made.file), O_WRONLY | O_CLOEXEC);
    QR_CHECK(fd >= 0 && pwrite(fd, "!", 1, 1000) == 1 && close(fd) == 0);
    QR_CHECK(qr_artifact_is_there(&world.artifacts, &artifact)); /* by its size */
    check_unreadable(&world, &artifact, QR_CODE_DATA_CORRUPT);
    write_to(path_of(&world, made.file), "cut");
    QR_CHECK(!qr_artifact_is_there(&world.artifacts, &artifact));
    check_unreadable(&world, &artifact, QR_CODE_DATA_CORRUPT);
    QR_CHECK_INT(0, unlink(path_of(&world, made.file)));
    QR_CHECK(!qr_artifact_is_there(&world.artifacts, &artifact));
    check_unreadable(&world, &artifact, QR_CODE_DATA_CORRUPT); /* its row says that it should be there */
    close_world(&world);
}

/* ---- removing ---- */

QR_DB_TEST(what_is_removed_names_its_files_and_is_not_found) /* A3 */
{
    struct world world;
    open_world(&world, t);
    qr_err err;
    add(&world, ITEM, 1, QR_ARTIFACT_SOURCE, QR_STR("small"));
    add(&world, ITEM, 1, QR_ARTIFACT_TEXT, bytes_of('a', LARGE_BYTES));
    for (int i = 0; i < 20; i++) {
        add(&world, OTHER_ITEM, 1, QR_ARTIFACT_ASSET, bytes_of('b', LARGE_BYTES));
    }
    const struct qr_artifact row = find_newest(&world, QR_ARTIFACT_SOURCE);
    const struct qr_artifact file = find_newest(&world, QR_ARTIFACT_TEXT);
    const qr_uuid ids[] = {ITEM, {.bytes = {7}}, OTHER_ITEM};
    struct call call = {.world = &world, .ids = ids, .count = QR_COUNT(ids)};
    QR_CHECK_RC(QR_OK, qr_db_write(world.db, QR_DURABLE, remove_items, &call, &err));
    QR_CHECK_INT(0, row_count(&world));
    QR_CHECK_INT(21, call.file_count);
    QR_CHECK_INT(21, file_count(&world));
    check_unreadable(&world, &row, QR_CODE_NOT_FOUND);
    qr_artifacts_unlink(&world.artifacts, call.files, call.file_count);
    QR_CHECK_INT(0, file_count(&world));
    check_unreadable(&world, &file, QR_CODE_NOT_FOUND);
    qr_artifacts_unlink(&world.artifacts, call.files, call.file_count); /* each step is repeatable */
    QR_CHECK_RC(QR_OK, qr_db_write(world.db, QR_DURABLE, remove_items, &call, &err));
    QR_CHECK_INT(0, call.file_count);
    close_world(&world);
}

QR_DB_TEST(a_purge_keeps_what_is_live_or_wanted_and_the_newest_source) /* TYPE-8, RECOV-5 */
{
    struct world world;
    open_world(&world, t);
    qr_err err;
    struct qr_artifact artifact;
    for (int64_t generation = 1; generation <= 5; generation++) {
        add(&world, ITEM, generation, QR_ARTIFACT_TEXT, QR_STR("text"));
        add(&world, ITEM, generation, QR_ARTIFACT_ASSET, bytes_of('a', LARGE_BYTES));
    }
    add(&world, ITEM, 1, QR_ARTIFACT_SOURCE, QR_STR("first"));
    add(&world, ITEM, 2, QR_ARTIFACT_SOURCE, QR_STR("second"));
    add(&world, OTHER_ITEM, 1, QR_ARTIFACT_SOURCE, QR_STR("other"));
    struct call call = {.world = &world, .item_id = ITEM, .live_generation = 3, .generation = 5};
    QR_CHECK_RC(QR_OK, qr_db_write(world.db, QR_DURABLE, purge, &call, &err));
    QR_CHECK_INT(3, call.file_count);
    QR_CHECK_INT(2 * 2 + 2, row_count(&world));
    QR_CHECK(find_at(&world, QR_ARTIFACT_TEXT, 4, &artifact) && artifact.generation == 3);
    QR_CHECK(!find_at(&world, QR_ARTIFACT_TEXT, 2, &artifact));
    QR_CHECK(find_at(&world, QR_ARTIFACT_SOURCE, 0, &artifact) && artifact.generation == 2);
    QR_CHECK(!find_at(&world, QR_ARTIFACT_SOURCE, 1, &artifact));
    call.live_generation = 0; /* nothing is live: the wanted one stays alone */
    QR_CHECK_RC(QR_OK, qr_db_write(world.db, QR_DURABLE, purge, &call, &err));
    QR_CHECK_INT(1, call.file_count);
    QR_CHECK_INT(2 + 2, row_count(&world));
    close_world(&world);
}

/* ---- the sweep ---- */

static qr_uuid old_id(const struct world *world QR_UNUSED, int number)
{
    const qr_uuid id = {.bytes = {[6] = 0x70,
                                  [8] = 0x80,
                                  [13] = (unsigned char)(number >> 8),
                                  [14] = (unsigned char)number,
                                  [15] = (unsigned char)(number % 3)}};
    return id; /* of the year 1970 */
}

static int64_t sweep_all(struct world *world, int64_t now_ms, int limit, int *ret_rounds)
{
    qr_err err;
    uint32_t cursor = 0;
    int64_t total = 0;
    *ret_rounds = 0;
    do {
        int64_t removed;
        QR_CHECK_RC(QR_OK, qr_artifacts_sweep(&world->artifacts, world->db, now_ms, &cursor, limit, &removed, &err));
        QR_CHECK(removed <= limit);
        total += removed;
        QR_CHECK(++*ret_rounds < 1000);
    } while (cursor != 0);
    return total;
}

QR_DB_TEST(files_that_no_row_knows_are_swept_once_they_are_an_hour_old) /* A2, RECOV-5 */
{
    struct world world;
    open_world(&world, t);
    int rounds;
    QR_CHECK_INT(0, sweep_all(&world, HOUR_MS, 10, &rounds)); /* there is no folder yet */
    const struct qr_new_artifact known = add(&world, ITEM, 1, QR_ARTIFACT_TEXT, bytes_of('a', LARGE_BYTES));
    const struct qr_new_artifact unknown =
        prepare(&world, qr_uuid_next(&world.ids), QR_ARTIFACT_TEXT, bytes_of('b', LARGE_BYTES));
    const int64_t made_ms = qr_uuid_time_ms(unknown.id);
    QR_CHECK_INT(0, sweep_all(&world, made_ms + HOUR_MS, 10, &rounds)); /* it may be about to be adopted */
    QR_CHECK(has_file(&world, unknown.file));
    QR_CHECK_INT(1, rounds);
    QR_CHECK_INT(1, sweep_all(&world, made_ms + HOUR_MS + 1, 10, &rounds));
    QR_CHECK(!has_file(&world, unknown.file));
    QR_CHECK(has_file(&world, known.file));
    const struct qr_artifact artifact = find_newest(&world, QR_ARTIFACT_TEXT);
    check_bytes(&world, &artifact, bytes_of('a', LARGE_BYTES));
    close_world(&world);
}

QR_DB_TEST(a_sweep_goes_on_where_the_one_before_ended) /* RECOV-5 */
{
    enum { FILES = 90, ADOPTED = 30 };
    struct world world;
    open_world(&world, t);
    qr_err err;
    const qr_str large = bytes_of('a', LARGE_BYTES);
    for (int i = 0; i < FILES; i++) {
        struct call call = {.world = &world, .item_id = ITEM, .generation = 1};
        call.made = prepare(&world, old_id(&world, i), QR_ARTIFACT_ASSET, large);
        if (i < ADOPTED) {
            QR_CHECK_RC(QR_OK, qr_db_write(world.db, QR_RELAXED, adopt, &call, &err));
        }
    }
    for (int limit = 7; limit > 0; limit -= 6) {
        int rounds;
        const int64_t removed = sweep_all(&world, 2 * HOUR_MS, limit, &rounds);
        QR_CHECK_INT(limit == 7 ? FILES - ADOPTED : 0, removed);
        QR_CHECK_INT(ADOPTED, file_count(&world));
        QR_CHECK(rounds >= ADOPTED / limit);
    }
    close_world(&world);
}

QR_DB_TEST(a_sweep_removes_half_written_files_and_leaves_strangers_alone)
{
    struct world world;
    open_world(&world, t);
    int rounds;
    qr_artifact_discard(&world.artifacts, &(struct qr_new_artifact){.file = "00/none"});
    QR_CHECK(mkdir(world.dir, 0700) == 0 && mkdir(path_of(&world, "00"), 0700) == 0);
    write_to(path_of(&world, "00/.quire-tmp-0123456789abcdef"), "half");
    write_to(path_of(&world, "00/README"), "a stranger's");
    write_to(path_of(&world, "00/00000000-0000-7000-8000-000000000001"), "in the wrong folder");
    QR_CHECK_INT(0, mkdir(path_of(&world, "00/folder"), 0700));
    const int64_t now_ms = qr_clock_wall_ms(qr_clock_system());
    QR_CHECK_INT(0, sweep_all(&world, now_ms, 10, &rounds)); /* it may be in the making */
    QR_CHECK_INT(1, sweep_all(&world, now_ms + 2 * HOUR_MS, 10, &rounds));
    QR_CHECK(!has_file(&world, "00/.quire-tmp-0123456789abcdef"));
    QR_CHECK_INT(3, file_count(&world));
    close_world(&world);
}

/* ---- when something fails ---- */

static enum qr_fault_kind kind; /* of the sweep under way */

static void check_verdict(qr_rc rc, const qr_err *err)
{
    static const qr_rc expected[] = {
        [QR_FAULT_MEMORY] = QR_NOMEM, [QR_FAULT_IO_EIO] = QR_IO, [QR_FAULT_IO_ENOSPC] = QR_FULL};
    if (rc == QR_OK) {
        return;
    }
    QR_CHECK(qr_fault_fired());
    QR_CHECK(kind <= QR_FAULT_IO_ENOSPC); /* an interruption is never noticed */
    QR_CHECK_INT(expected[kind], rc);
    QR_CHECK_INT(rc, err->rc);
}

/* Adopts, finds, reads and removes what was prepared; the first failure ends it. */
static qr_rc live_and_die(struct call *call, qr_str bytes, struct qr_buf *out, qr_err *err)
{
    struct world *world = call->world;
    QR_TRY(qr_db_write(world->db, QR_RELAXED, adopt, call, err));
    QR_TRY(qr_db_read(world->db, find, call, err));
    QR_CHECK(call->found);
    const qr_rc rc = qr_artifact_read(&world->artifacts, world->db, &call->artifact, out, err);
    QR_CHECK(rc == QR_OK ? qr_str_equal(bytes, qr_buf_str(out)) : out->len == 0);
    QR_TRY(rc);
    QR_TRY(qr_db_write(world->db, QR_RELAXED, remove_items, call, err));
    qr_artifacts_unlink(&world->artifacts, call->files, call->file_count);
    return QR_OK;
}

/* One life with the n-th call failing. What failed can be done again, and in the end nothing is left. */
static void live_with_fault(struct world *world, uint64_t n)
{
    qr_err err = {0};
    const qr_str bytes = bytes_of('a', LARGE_BYTES);
    struct call call = {
        .world = world, .item_id = ITEM, .generation = 1, .kind = QR_ARTIFACT_TEXT, .ids = &ITEM, .count = 1};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    qr_fault_arm(kind, n);
    qr_rc rc = qr_artifact_prepare(&world->artifacts, qr_uuid_next(&world->ids), QR_ARTIFACT_TEXT, bytes, &world->arena,
                                   &call.made, &err);
    const bool was_prepared = rc == QR_OK;
    rc = was_prepared ? live_and_die(&call, bytes, &out, &err) : rc;
    qr_fault_disarm();
    check_verdict(rc, &err);
    if (was_prepared) {
        QR_CHECK_RC(QR_OK, qr_db_write(world->db, QR_RELAXED, remove_items, &call, &err));
        qr_artifact_discard(&world->artifacts, &call.made);
    }
    QR_CHECK_INT(0, row_count(world));
    QR_CHECK_INT(0, file_count(world));
}

static void fail_each_in_turn(struct qr_test *t)
{
    enum { POINTS_MAX = 20000 };
    for (uint64_t n = 1; n < POINTS_MAX; n++) {
        const int64_t blocks = qr_fault_blocks(), files = qr_fault_files();
        struct world world;
        qr_test_set_context("kind %d, no. %llu", (int)kind, (unsigned long long)n);
        open_world(&world, t); /* anew each time: a database keeps what it has prepared */
        world.artifacts.io = qr_fault_io();
        live_with_fault(&world, n);
        close_world(&world);
        QR_CHECK_INT(blocks, qr_fault_blocks());
        QR_CHECK_INT(files, qr_fault_files());
        if (!qr_fault_fired()) {
            printf("     failed %llu of kind %d in turn\n", (unsigned long long)n - 1, (int)kind);
            QR_CHECK(n > 5);
            return;
        }
    }
    QR_FAIL("it never ends");
}

QR_TEST_WITH_TIMEOUT(every_failure_leaves_an_artifact_whole_or_nothing, 300) /* A2, A3 */
{
    qr_fault_memory_install();
    struct world world;
    open_world(&world, t); /* what is made only once is there from now on */
    close_world(&world);
    for (kind = QR_FAULT_MEMORY; kind <= QR_FAULT_IO_SHORT; kind++) {
        fail_each_in_turn(t);
    }
}

/* ---- power loss ---- */

struct life {
    char folder[200];
    struct disk_options disk;
};

struct ack {
    char file[60];
};

/* Makes artifacts until the power goes; each that is acknowledged could be adopted. */
static void live(void *arg)
{
    const struct life *life = arg;
    static struct disk_io disk_io;
    struct qr_arena arena;
    struct qr_uuid_gen ids;
    qr_err err = {0};
    disk_io_init(&disk_io, disk_create(&life->disk));
    qr_arena_init(&arena, 0);
    qr_uuid_gen_init(&ids, qr_clock_system(), qr_rand_system());
    const struct qr_artifacts artifacts = {life->folder, &disk_io.io};
    for (;;) {
        struct qr_new_artifact made;
        if (qr_artifact_prepare(&artifacts, qr_uuid_next(&ids), QR_ARTIFACT_TEXT, bytes_of('p', LARGE_BYTES), &arena,
                                &made, &err) != QR_OK) {
            _exit(1);
        }
        struct ack ack = {0};
        snprintf(ack.file, sizeof ack.file, "%s", made.file);
        child_ack(&ack, sizeof ack);
    }
}

QR_TEST_WITH_TIMEOUT(a_file_that_could_be_adopted_is_whole_after_power_loss, 120) /* A2, I5 */
{
    enum { LOSSES = 40, ACKS_MAX = 64 };
    struct world world = {0};
    int64_t kept = 0;
    for (int i = 0; i < LOSSES; i++) {
        struct life life = {.disk = {.seed = (uint64_t)i + 1, .crash_at = 1 + (uint64_t)i * 2}};
        char name[20];
        snprintf(name, sizeof name, "life-%d", i);
        snprintf(life.folder, sizeof life.folder, "%s", qr_test_path(t, name));
        snprintf(world.dir, sizeof world.dir, "%s", life.folder);
        struct child child;
        struct ack acks[ACKS_MAX];
        int count = 0;
        child_start(&child, live, &life);
        while (count < ACKS_MAX && child_next_ack(&child, &acks[count], sizeof acks[0])) {
            count++;
        }
        QR_CHECK_INT(DISK_POWER_LOST, child_wait(&child));
        const qr_str expected = bytes_of('p', LARGE_BYTES);
        for (int k = 0; k < count; k++) {
            static char bytes[LARGE_BYTES + 1];
            FILE *file = fopen(path_of(&world, acks[k].file), "r");
            QR_CHECK(file);
            QR_CHECK_INT(LARGE_BYTES, fread(bytes, 1, sizeof bytes, file));
            fclose(file);
            QR_CHECK(memcmp(bytes, expected.ptr, LARGE_BYTES) == 0);
        }
        kept += count;
    }
    QR_CHECK(kept > 0);
}
