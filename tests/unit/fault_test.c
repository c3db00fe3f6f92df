/* Every allocation and every I/O call of base/ fails once: what is left is the old state or the new one, nothing leaks,
 * and the error says what happened. */
#include "base/arena.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/proc.h"
#include "support/fault.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

enum {
    MEMORY = QR_BIT(QR_FAULT_MEMORY),
    FAILURES = QR_BIT(QR_FAULT_IO_EIO) | QR_BIT(QR_FAULT_IO_ENOSPC) | QR_BIT(QR_FAULT_IO_EINTR),
    SHORT = QR_BIT(QR_FAULT_IO_SHORT), /* for what reads or writes */
};

static enum qr_fault_kind kind; /* of the sweep under way */
static qr_err err;

static void sweep(unsigned kinds, void (*scenario)(void *arg), void *arg)
{
    qr_fault_memory_install();
    for (kind = QR_FAULT_MEMORY; kind <= QR_FAULT_IO_SHORT; kind++) {
        if (kinds & QR_BIT(kind)) {
            qr_fault_sweep(kind, scenario, arg);
        }
    }
}

/* The verdict belongs to the fault: without one all goes well, interruptions are not noticed, and an error has the code
 * of its cause. */
static void check_verdict(qr_rc rc)
{
    qr_fault_disarm();
    if (rc == QR_OK) {
        return;
    }
    if (!qr_fault_fired()) {
        QR_FAIL("fails without a fault: %s", err.msg);
    }
    switch (kind) {
    case QR_FAULT_MEMORY:
        QR_CHECK_INT(QR_NOMEM, rc);
        break;
    case QR_FAULT_IO_EIO:
        QR_CHECK_INT(QR_IO, rc);
        break;
    case QR_FAULT_IO_ENOSPC:
        QR_CHECK_INT(QR_FULL, rc);
        break;
    case QR_FAULT_IO_EINTR:
    case QR_FAULT_IO_SHORT:
        QR_FAIL("an interruption was noticed: %s", err.msg);
    }
    QR_CHECK_INT(rc, err.rc);
    QR_CHECK(err.msg[0]);
}

static size_t read_whole(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        return 0;
    }
    const size_t len = fread(bytes, 1, size, file);
    fclose(file);
    return len;
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    QR_CHECK(dir);
    int count = -2; /* . and .. */
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count;
}

/* ---- files ---- */

enum { CONTENT_BYTES = 50000 };
static char old_content[CONTENT_BYTES], new_content[CONTENT_BYTES];

static void replace_a_file(void *arg)
{
    struct qr_test *t = arg;
    const char *path = qr_test_path(t, "file");
    FILE *file = fopen(path, "w");
    QR_CHECK(file && fwrite(old_content, 1, CONTENT_BYTES, file) == CONTENT_BYTES && fclose(file) == 0);

    const qr_rc rc = qr_fs_replace(qr_fault_io(), path, (qr_str){new_content, CONTENT_BYTES}, 0644, &err);
    check_verdict(rc);
    static char found[CONTENT_BYTES + 1];
    QR_CHECK_INT(CONTENT_BYTES, read_whole(path, found, sizeof found));
    const bool is_new = memcmp(found, new_content, CONTENT_BYTES) == 0;
    QR_CHECK(is_new || memcmp(found, old_content, CONTENT_BYTES) == 0); /* F1 */
    QR_CHECK(is_new || rc != QR_OK);
    QR_CHECK_INT(1, count_entries(t->dir)); /* F3 */
}

QR_TEST(a_replaced_file_is_old_or_new_whole_and_alone)
{
    memset(old_content, 'o', CONTENT_BYTES);
    memset(new_content, 'n', CONTENT_BYTES);
    sweep(MEMORY | FAILURES | SHORT, replace_a_file, t);
}

static void make_folders(void *arg)
{
    struct qr_test *t = arg;
    const qr_rc rc = qr_fs_make_dirs(qr_fault_io(), qr_test_path(t, "a/b/c"), 0777, &err);
    check_verdict(rc);
    const bool complete = access(qr_test_path(t, "a/b/c"), F_OK) == 0;
    QR_CHECK(complete || rc != QR_OK);
    QR_CHECK(!complete || rc == QR_OK); /* F2: what shows after a failure is durable, so the last one does not */
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_fault_io(), qr_test_path(t, "a/b/c"), 0777, &err)); /* it can be done again */
    rmdir(qr_test_path(t, "a/b/c"));
    rmdir(qr_test_path(t, "a/b"));
    QR_CHECK_INT(0, rmdir(qr_test_path(t, "a")));
}

QR_TEST(folders_are_made_or_can_be_made_again)
{
    sweep(MEMORY | FAILURES, make_folders, t);
}

static void find_folders(void *arg)
{
    struct qr_test *t = arg;
    check_verdict(qr_fs_make_dirs(qr_fault_io(), t->dir, 0777, &err));
}

QR_TEST(existing_folders_are_found_or_the_failure_is_told)
{
    sweep(MEMORY | FAILURES, find_folders, t);
}

static void remove_a_file(void *arg)
{
    struct qr_test *t = arg;
    const char *path = qr_test_path(t, "file");
    close(open(path, O_WRONLY | O_CREAT, 0644));
    const qr_rc rc = qr_fs_remove(qr_fault_io(), path, &err);
    check_verdict(rc);
    QR_CHECK(rc != QR_OK || access(path, F_OK) != 0);
    QR_CHECK_RC(QR_OK, qr_fs_remove(qr_fault_io(), path, &err));
}

QR_TEST(a_file_is_removed_or_the_failure_is_told)
{
    sweep(MEMORY | FAILURES, remove_a_file, t);
}

static void read_a_file(void *arg)
{
    struct qr_buf out;
    qr_buf_init(&out, 0);
    const qr_rc rc = qr_fs_read(qr_fault_io(), arg, CONTENT_BYTES, &out, &err);
    check_verdict(rc);
    QR_CHECK(rc != QR_OK || qr_str_equal((qr_str){new_content, CONTENT_BYTES}, qr_buf_str(&out)));
    qr_buf_done(&out);
}

QR_TEST(a_file_is_read_whole_or_the_failure_is_told)
{
    char path[256];
    snprintf(path, sizeof path, "%s", qr_test_path(t, "file"));
    memset(new_content, 'n', CONTENT_BYTES);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, (qr_str){new_content, CONTENT_BYTES}, 0644, &err));
    sweep(MEMORY | FAILURES | SHORT, read_a_file, path);
}

static void take_a_lock(void *arg)
{
    struct qr_test *t = arg;
    const char *path = qr_test_path(t, "quire.lock");
    struct qr_file_lock lock, second;
    const qr_rc rc = qr_file_lock_take(&lock, qr_fault_io(), qr_clock_system(), path, "quire serve", &err);
    QR_CHECK_INT(rc == QR_OK, lock.fd >= 0);
    if (rc == QR_OK) {
        const bool fired_before = qr_fault_fired();
        const qr_rc second_rc = qr_file_lock_take(&second, qr_fault_io(), qr_clock_system(), path, "quire ls", &err);
        QR_CHECK(second_rc != QR_OK);
        QR_CHECK(err.code == QR_CODE_DATA_LOCKED || (qr_fault_fired() && !fired_before));
    }
    qr_file_lock_release(&lock);
    if (rc != QR_OK) {
        check_verdict(rc);
    }
    qr_fault_disarm();
    QR_CHECK_RC(QR_OK, qr_file_lock_take(&second, qr_io_system(), qr_clock_system(), path, "quire ls", &err));
    qr_file_lock_release(&second);
}

QR_TEST(a_lock_is_held_or_free_and_never_held_twice)
{
    sweep(FAILURES | SHORT, take_a_lock, t); /* it allocates nothing */
}

/* ---- JSON ---- */

static const char json_text[] =
    "{\"a long key that does not fit a small buffer\": [1, 2.5, true, null, \"a string that is long enough to make its "
    "buffer grow more than once, and then a little more \\u00e4\\n\"], \"b\": {\"c\": {\"d\": [[[\"deep\"]]]}}, "
    "\"many\": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20], \"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,"
    "\"7\":7,\"8\":8,\"9\":9}";

static void parse_json(void *arg)
{
    const json_t *expected = arg;
    json_t *value = NULL;
    const qr_rc rc = qr_json_parse(qr_str_of(json_text), &QR_JSON_REQUEST_LIMITS, &value, &err);
    check_verdict(rc);
    QR_CHECK_INT(rc == QR_OK, value != NULL);
    QR_CHECK(!value || json_equal(value, expected)); /* jansson alone would now and then give a wrong string */
    json_decref(value);
}

QR_TEST(json_is_parsed_rightly_or_out_of_memory)
{
    qr_fault_memory_install();
    json_t *expected = NULL;
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_str_of(json_text), &QR_JSON_REQUEST_LIMITS, &expected, &err));
    sweep(MEMORY, parse_json, expected);
    json_decref(expected);
}

QR_TEST(json_strings_of_every_length_are_parsed_rightly_or_out_of_memory)
{
    qr_fault_memory_install();
    kind = QR_FAULT_MEMORY;
    for (int len = 0; len <= 70; len++) { /* jansson's buffer grows at 16, 32 and 64 bytes: at each byte in turn */
        char text[200] = "[\"";
        for (int i = 0; i < len; i++) {
            strcat(text, i % 5 == 3 ? "\\n" : "a");
        }
        strcat(text, "\"]");
        for (uint64_t n = 1;; n++) {
            json_t *value = NULL;
            qr_test_set_context("%d characters, allocation no. %llu", len, (unsigned long long)n);
            const int64_t blocks = qr_fault_blocks();
            qr_fault_arm(QR_FAULT_MEMORY, n);
            check_verdict(qr_json_parse(qr_str_of(text), &QR_JSON_REQUEST_LIMITS, &value, &err));
            QR_CHECK(qr_fault_fired() == !value);
            json_decref(value);
            QR_CHECK(blocks == qr_fault_blocks() || len == 0); /* the first time jansson keeps a little */
            if (!qr_fault_fired()) {
                break;
            }
        }
    }
}

static void refuse_json(void *arg QR_UNUSED)
{
    json_t *value = NULL;
    err = (qr_err){0};
    const qr_rc rc =
        qr_json_parse(QR_STR("{\"a\": [\"b\", {\"c\": 1, \"c\": 2}]}"), &QR_JSON_REQUEST_LIMITS, &value, &err);
    qr_fault_disarm();
    QR_CHECK(!value);
    QR_CHECK_INT(qr_fault_fired() ? QR_NOMEM : QR_INVALID, rc);
}

QR_TEST(json_that_is_refused_leaves_nothing_behind)
{
    sweep(MEMORY, refuse_json, NULL);
}

static void write_json(void *arg)
{
    struct qr_buf out;
    qr_buf_init(&out, 0);
    const qr_rc rc = qr_json_write(arg, &out, &err);
    check_verdict(rc);
    if (rc == QR_OK) {
        QR_JSON *again = NULL;
        QR_CHECK_RC(QR_OK, qr_json_parse(qr_buf_str(&out), &QR_JSON_REQUEST_LIMITS, &again, &err));
        QR_CHECK(json_equal(again, arg));
    }
    qr_buf_done(&out);
}

QR_TEST(json_is_written_whole_or_out_of_memory)
{
    qr_fault_memory_install();
    json_t *value = NULL;
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_str_of(json_text), &QR_JSON_REQUEST_LIMITS, &value, &err));
    sweep(MEMORY, write_json, value);
    json_decref(value);
}

static void make_error_json(void *arg QR_UNUSED)
{
    qr_err error;
    qr_fail(&error, QR_CODE_DISK_FULL, "full \xFF");
    json_t *value = qr_json_error(&error, json_pack("{s:s}", "path", "quire.db"));
    qr_fault_disarm();
    QR_CHECK(value || qr_fault_fired());
    QR_CHECK(!value || json_is_string(json_object_get(json_object_get(value, "error"), "message")));
    json_decref(value);
}

QR_TEST(an_error_as_json_is_whole_or_nothing)
{
    sweep(MEMORY, make_error_json, NULL);
}

/* ---- memory ---- */

static void fill_a_buffer(void *arg QR_UNUSED)
{
    struct qr_buf buf;
    qr_buf_init(&buf, 0);
    for (int i = 0; i < 500; i++) {
        qr_buf_printf(&buf, "%d,", i);
        qr_json_add_string(&buf, QR_STR("a\nb\xFF"));
    }
    check_verdict(qr_buf_check(&buf, &err));
    char *content = qr_buf_take(&buf, NULL);
    QR_CHECK(content || qr_fault_fired());
    qr_free(content);
    qr_buf_done(&buf);
}

QR_TEST(a_buffer_is_whole_or_out_of_memory)
{
    sweep(MEMORY, fill_a_buffer, NULL);
}

static void fill_a_map(void *arg)
{
    struct qr_map map;
    qr_map_init(&map, 3);
    int count = 0;
    for (int i = 0; i < 100; i++) {
        count += qr_map_put(&map, (qr_str){(const char *)&i, sizeof i}, arg);
    }
    qr_fault_disarm();
    QR_CHECK_INT(count, map.count);
    QR_CHECK_INT(qr_fault_fired() ? 99 : 100, count);
    for (int i = 0; i < 100; i += 2) {
        qr_map_take(&map, (qr_str){(const char *)&i, sizeof i});
    }
    qr_map_done(&map);
}

QR_TEST(a_map_has_all_entries_but_the_one_that_failed)
{
    sweep(MEMORY, fill_a_map, t);
}

static void fill_an_arena(void *arg QR_UNUSED)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    bool complete = true;
    for (int i = 0; i < 300; i++) {
        complete = qr_arena_alloc(&arena, 100) && qr_arena_printf(&arena, "%d", i) && complete;
    }
    qr_fault_disarm();
    QR_CHECK(complete != qr_fault_fired());
    qr_arena_reset(&arena);
    qr_arena_done(&arena);
}

QR_TEST(an_arena_gives_memory_or_null)
{
    sweep(MEMORY, fill_an_arena, NULL);
}

static void write_a_log_line(void *arg)
{
    qr_log((const struct qr_log *)arg, QR_LOG_INFO, "event", qr_field_text("text", "a \n b"), qr_field_f64("f", 1.5));
}

QR_TEST(a_log_line_is_dropped_when_there_is_no_memory)
{
    struct qr_log log = {open("/dev/null", O_WRONLY | O_CLOEXEC), QR_LOG_INFO, QR_LOG_JSON, qr_clock_system()};
    sweep(MEMORY, write_a_log_line, &log);
}

/* ---- processes ---- */

static void run_a_program(void *arg QR_UNUSED)
{
    struct qr_buf out, errors;
    qr_buf_init(&out, 0);
    qr_buf_init(&errors, 0);
    struct qr_proc_result result;
    const struct qr_proc_options options = {.argv = (const char *const[]){"sh", "-c", "cat; cat /dev/null >&2", NULL},
                                            .input = {new_content, CONTENT_BYTES},
                                            .output_bytes_max = CONTENT_BYTES};
    const qr_rc rc = qr_proc_run(&options, &out, &errors, &result, &err);
    check_verdict(rc);
    QR_CHECK(rc != QR_OK || (result.exit_code == 0 && out.len == CONTENT_BYTES));
    qr_buf_done(&out);
    qr_buf_done(&errors);
}

QR_TEST(a_program_runs_to_its_end_or_out_of_memory)
{
    sweep(MEMORY, run_a_program, NULL);
}

/* ---- the harness itself ---- */

static void use_sqlite(void *arg QR_UNUSED)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open(":memory:", &db);
    if (rc == SQLITE_OK) {
        rc = sqlite3_exec(db, "CREATE TABLE a (b TEXT); INSERT INTO a VALUES ('c'); SELECT * FROM a", NULL, NULL, NULL);
    }
    QR_CHECK(rc == SQLITE_OK || (rc == SQLITE_NOMEM && qr_fault_fired()));
    sqlite3_close(db);
}

QR_TEST(allocations_of_sqlite_fail_too)
{
    qr_fault_memory_install();
    QR_CHECK(qr_fault_sweep(QR_FAULT_MEMORY, use_sqlite, NULL) > 50);
}

QR_TEST(the_nth_fails_once_and_only_of_its_kind)
{
    qr_fault_memory_install();
    const int64_t blocks = qr_fault_blocks();
    qr_fault_arm(QR_FAULT_MEMORY, 2);
    void *first = qr_alloc(1), *second = qr_alloc(1), *third = qr_alloc(1);
    QR_CHECK(first && !second && third && qr_fault_fired());
    QR_CHECK_INT(3, qr_fault_calls());
    QR_CHECK_INT(blocks + 2, qr_fault_blocks());
    qr_free(first);
    qr_free(third);
    QR_CHECK_INT(blocks, qr_fault_blocks());

    const struct qr_io *io = qr_fault_io();
    qr_fault_arm(QR_FAULT_IO_ENOSPC, 1);
    QR_CHECK_INT(-1, io->mkdir(io, qr_test_path(t, "x"), 0777));
    QR_CHECK_INT(ENOSPC, errno);
    QR_CHECK_INT(0, io->mkdir(io, qr_test_path(t, "x"), 0777));
    void *block = qr_alloc(1);
    QR_CHECK(block);
    qr_free(block);
}

static void leak_when_it_fails(void *arg)
{
    void **leaked = arg;
    void *first = qr_alloc(1), *second = qr_alloc(1);
    if (second) {
        qr_free(first);
    } else {
        *leaked = first;
    }
    qr_free(second);
}

QR_TEST(the_sweep_counts_what_a_failure_leaks)
{
    qr_fault_memory_install();
    void *leaked = NULL;
    const int64_t blocks = qr_fault_blocks();
    qr_fault_arm(QR_FAULT_MEMORY, 2);
    leak_when_it_fails(&leaked);
    QR_CHECK_INT(blocks + 1, qr_fault_blocks()); /* which is where it would fail the test */
    qr_free(leaked);
}
