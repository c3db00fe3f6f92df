/* The public interface, the router behind it, and the opening of a data folder. */
#include "api/router.h"
#include "base/proc.h"
#include "support/fault.h"
#include "support/test.h"

#include <errno.h>
#include <quire/quire.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the public header ---- */

static const char include[] = "-I" QUIRE_SOURCE_DIR "/include";

static void check_compiles(const char *const *compiler)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf errors = {0};
    struct qr_proc_result result;
    qr_err err;
    const struct qr_proc_options options = {
        .argv = compiler,
        .input = QR_STR("#include <quire/quire.h>\nint main(void) { struct quire_options options = {0}; "
                        "return quire_open(&options, NULL, NULL); }\n"),
        .timeout_ms = 30000,
    };
    const qr_rc rc = qr_proc_run(&options, NULL, &errors, &result, &err);
    if (rc == QR_NOT_FOUND) {
        qr_test_skip("%s is not installed", compiler[0]);
    }
    QR_CHECK_INT(QR_OK, rc);
    if (result.exit_code != 0) {
        QR_FAIL("%s says %s", compiler[0], errors.data);
    }
}

QR_TEST(public_header_is_clean_c99)
{
    check_compiles((const char *const[]){"gcc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror",
                                         "-Wno-missing-field-initializers", include, "-fsyntax-only", "-xc", "-",
                                         NULL});
}

QR_TEST(public_header_is_clean_cpp)
{
    check_compiles((const char *const[]){"g++", "-std=c++11", "-pedantic-errors", "-Wall", "-Wextra", "-Werror",
                                         "-Wno-missing-field-initializers", include, "-fsyntax-only", "-xc++", "-",
                                         NULL});
}

/* ---- routes ---- */

QR_TEST(route_pattern_matches_part_by_part)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } cases[] = {
        {"/api/v1/check", "/api/v1/check", true},
        {"/api/v1/check", "/api/v1/check/", false},
        {"/api/v1/check", "/api/v1/checks", false},
        {"/api/v1/check", "/api/v1", false},
        {"/api/v1/check", "/api/v1/check/more", false},
        {"/api/v1/check", "api/v1/check", false},
        {"/api/v1/check", "", false},
        {"/bases/{b}/items/{i}", "/bases/one/items/two", true},
        {"/bases/{b}/items/{i}", "/bases//items/two", false},
        {"/bases/{b}/items/{i}", "/bases/one/items/", false},
        {"/bases/{b}", "/bases/a/b", false},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_str params[QR_ROUTE_PARAMS_MAX];
        if (qr_route_matches(cases[i].pattern, qr_str_of(cases[i].path), params) != cases[i].matches) {
            QR_FAIL("%s %s %s", cases[i].pattern, cases[i].matches ? "does not match" : "matches", cases[i].path);
        }
    }
    qr_str params[QR_ROUTE_PARAMS_MAX];
    QR_CHECK(qr_route_matches("/bases/{b}/items/{i}", QR_STR("/bases/one/items/two"), params));
    QR_CHECK_STR("one", params[0]);
    QR_CHECK_STR("two", params[1]);
}

/* ---- calls ---- */

static struct quire *open_data(const char *dir)
{
    const struct quire_options options = {.data_dir = dir, .program = "the test"};
    struct quire_error error;
    struct quire *quire;
    if (quire_open(&options, &quire, &error) != 0) {
        QR_FAIL("%s (%s)", error.message, error.code);
    }
    return quire;
}

static void check_call(struct quire *quire, const char *method, const char *path, const char *body, int status,
                       const char *has)
{
    struct quire_response response;
    QR_CHECK_INT(status, quire_call(quire, method, path, body, &response));
    QR_CHECK_INT(status, response.status);
    QR_CHECK_INT(strlen(response.body), response.body_size);
    QR_CHECK_HAS(has, response.body);
    quire_response_done(&response);
}

QR_TEST(call_answers_or_says_what_is_wrong_with_it)
{
    struct quire *quire = open_data(qr_test_path(t, "data"));
    const char *path = "/api/v1/check";
    check_call(quire, "POST", path, NULL, 200, "{\"ok\":true,\"database\":{\"driver\":\"sqlite\",\"schema_version\":");
    check_call(quire, "POST", path, " {} ", 200, "\"findings\":[]}");
    check_call(quire, "POST", "/api/v1/chek", NULL, 404, "{\"error\":{\"code\":\"not_found\",\"message\":");
    check_call(quire, "GET", path, NULL, 405, "/api/v1/check takes POST");
    check_call(quire, "POST", path, "{\"mend\":true}", 400, "{\"error\":{\"code\":\"unknown_field\"");
    check_call(quire, "POST", path, "{\"repair\":true,\"limit\":1}", 200, "\"found\":0,\"repaired\":0,");
    check_call(quire, "POST", path, "{\"repair\":1}", 422, "{\"error\":{\"code\":\"invalid_value\"");
    check_call(quire, "POST", path, "{\"limit\":0}", 422, "limit must be a number from 1 to 1000");
    check_call(quire, "POST", path, "{\"limit\":\"many\"}", 422, "limit must be a number from 1 to 1000");
    check_call(quire, "POST", path, "[]", 400, "the body must be a JSON object");
    check_call(quire, "POST", path, "{", 400, "{\"error\":{\"code\":\"bad_request\"");
    check_call(quire, "POST", "/api/v1/check?deep=1", NULL, 400, "{\"error\":{\"code\":\"unknown_field\"");
    check_call(quire, "POST", "/\xff", NULL, 400, "{\"error\":{\"code\":\"bad_request\"");
    quire_close(quire);
}

QR_TEST(parameters_behind_the_question_mark_are_read_strictly)
{
    struct quire *quire = open_data(qr_test_path(t, "data"));
    check_call(quire, "GET", "/api/v1/jobs", NULL, 200, "{\"data\":[],\"next_cursor\":null}");
    check_call(quire, "GET", "/api/v1/jobs?", NULL, 200, "{\"data\":[],\"next_cursor\":null}");
    check_call(quire, "GET", "/api/v1/jobs?limit=1&st%61te=fail%65d", NULL, 200, "{\"data\":[]");
    check_call(quire, "GET", "/api/v1/jobs?type=%3D%26", NULL, 200, "{\"data\":[]");
    check_call(quire, "GET", "/api/v1/jobs?stat=failed", NULL, 400, "did you mean \\\"state\\\"?");
    check_call(quire, "GET", "/api/v1/jobs?state=broken", NULL, 422, "{\"error\":{\"code\":\"invalid_value\"");
    check_call(quire, "GET", "/api/v1/jobs?limit=1&limit=2", NULL, 400, "is given twice");
    static const char *const not_text[] = {"%4", "%", "%g0", "%00", "%ff"};
    for (size_t i = 0; i < QR_COUNT(not_text); i++) {
        char path[64];
        snprintf(path, sizeof path, "/api/v1/jobs?type=%s", not_text[i]);
        check_call(quire, "GET", path, NULL, 400, "{\"error\":{\"code\":\"bad_request\"");
    }
    quire_close(quire);
}

/* ---- opening ---- */

static void check_refused(const struct quire_options *options, const char *code, const char *has)
{
    struct quire *quire = NULL;
    struct quire_error error;
    const int status = quire_open(options, &quire, &error);
    QR_CHECK_TEXT(code, status ? error.code : "ok");
    QR_CHECK_INT(status, error.status);
    QR_CHECK_HAS(has, error.message);
    QR_CHECK(error.advice[0]);
    QR_CHECK(!quire);
    QR_CHECK_INT(status, quire_open(options, &quire, NULL));
}

QR_TEST(reload_takes_what_can_change_or_nothing) /* HTTP-11 */
{
    const struct quire_setting next[] = {{"server.import_roots", "/srv"}, {"database.connections", "9"}};
    const struct quire_setting wrong[] = {{"server.import_roots", "/other"}, {"log.level", "loud"}};
    struct quire *quire = open_data(t->dir);
    struct quire_error error;
    const struct qr_config *before = qr_instance_config(quire);
    QR_CHECK_INT(0, quire_reload(quire, NULL, 0, &error));
    QR_CHECK(before == qr_instance_config(quire)); /* nothing is new, nothing is kept */
    QR_CHECK_INT(0, quire_reload(quire, next, QR_COUNT(next), &error));
    QR_CHECK_TEXT("/srv", qr_config_text(qr_instance_config(quire), QR_CONFIG_SERVER_IMPORT_ROOTS));
    QR_CHECK_INT(4, qr_config_number(qr_instance_config(quire), QR_CONFIG_DATABASE_CONNECTIONS));
    QR_CHECK_TEXT(t->dir, qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR));
    QR_CHECK_TEXT("none", qr_config_text(before, QR_CONFIG_SERVER_IMPORT_ROOTS)); /* who looks at it may go on */
    QR_CHECK_INT(422, quire_reload(quire, wrong, QR_COUNT(wrong), &error));
    QR_CHECK_TEXT("invalid_value", error.code);
    QR_CHECK_TEXT("/srv", qr_config_text(qr_instance_config(quire), QR_CONFIG_SERVER_IMPORT_ROOTS));
    QR_CHECK_INT(0, quire_reload(quire, NULL, 0, NULL)); /* what is left out is the default again */
    QR_CHECK_TEXT("none", qr_config_text(qr_instance_config(quire), QR_CONFIG_SERVER_IMPORT_ROOTS));
    quire_close(quire);
}

QR_TEST(open_refuses_wrong_options)
{
    const char *dir = qr_test_path(t, "data");
    const struct quire_setting unknown = {"log.levl", "info"}, wrong = {"log.level", "loud"};
    check_refused(&(struct quire_options){0}, "invalid_value", "data_dir");
    check_refused(&(struct quire_options){.data_dir = dir, .settings = &unknown, .setting_count = 1}, "unknown_field",
                  "log.level");
    check_refused(&(struct quire_options){.data_dir = dir, .settings = &wrong, .setting_count = 1}, "invalid_value",
                  "loud");
    QR_CHECK(access(dir, F_OK) != 0); /* nothing was made */
}

QR_TEST(data_folder_is_private_and_keeps_its_identity)
{
    const char *dir = qr_test_path(t, "new/data");
    struct quire *quire = open_data(dir);
    struct stat st;
    QR_CHECK(stat(dir, &st) == 0);
    QR_CHECK_INT(0700, st.st_mode & 07777);
    char id[QR_UUID_TEXT_SIZE], created_at[QR_TIME_TEXT_SIZE];
    qr_uuid uuid;
    memcpy(id, quire->id, sizeof id);
    memcpy(created_at, quire->created_at, sizeof created_at);
    QR_CHECK(qr_uuid_parse(qr_str_of(id), &uuid));
    QR_CHECK_HAS("Z", created_at);
    quire_close(quire);
    quire = open_data(dir);
    QR_CHECK_TEXT(id, quire->id);
    QR_CHECK_TEXT(created_at, quire->created_at);
    quire_close(quire);
}

QR_TEST(data_folder_has_one_owner_at_a_time) /* DB-13 */
{
    const struct quire_options options = {.data_dir = qr_test_path(t, "data")};
    struct quire *quire = open_data(options.data_dir);
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld (the test", (long)getpid());
    check_refused(&options, "data_locked", pid);
    quire_close(quire);
    quire_close(open_data(options.data_dir));
    quire_close(NULL);
}

static qr_rc read_for_ever(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t count;
    return qr_tx_get_i64(tx, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
                         QR_NO_VALS, NULL, &count, err);
}

static qr_rc write_400_kilobytes(struct qr_tx *tx, void *arg, qr_err *err)
{
    static char text[400 << 10];
    memset(text, 'x', sizeof text);
    return qr_tx_exec(tx, "INSERT INTO meta (key, value) VALUES (?1, ?2)",
                      QR_VALS(qr_val_text(qr_str_of(arg)), qr_val_text((qr_str){text, sizeof text})), NULL, err);
}

QR_TEST(settings_reach_the_database)
{
    const struct qr_config_flag flags[] = {{"x", QR_STR("data.dir"), qr_str_of(qr_test_path(t, "data"))},
                                           {"x", QR_STR("database.read_deadline_ms"), QR_STR("20")},
                                           {"x", QR_STR("database.wal_soft_limit"), QR_STR("1MB")},
                                           {"x", QR_STR("database.wal_hard_limit"), QR_STR("2MB")}};
    const struct qr_instance_options options = {.settings = flags, .setting_count = QR_COUNT(flags), .program = "x"};
    struct quire *quire;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_instance_open(&quire, &options, &err));
    const int64_t began_ms = qr_clock_mono_ms(qr_clock_system());
    QR_CHECK_RC(QR_TIMEOUT, qr_db_read(quire->db, read_for_ever, NULL, &err));
    QR_CHECK(qr_clock_mono_ms(qr_clock_system()) - began_ms < QR_DB_READ_DEADLINE_MS);
    for (char key[] = "a"; key[0] <= 'l'; key[0]++) {
        QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_DURABLE, write_400_kilobytes, key, &err));
    }
    struct qr_db_stats stats;
    qr_db_stats(quire->db, &stats);
    QR_CHECK(stats.wal_bytes_max > 0 && stats.wal_bytes_max <= 2 << 20);
    qr_instance_close(quire);
}

QR_TEST(clock_and_randomness_are_handed_in)
{
    const struct qr_config_flag flag = {"x", QR_STR("data.dir"), qr_str_of(qr_test_path(t, "data"))};
    struct qr_rand_seeded rand;
    qr_rand_seeded_init(&rand, 7);
    const struct qr_instance_options options = {
        .settings = &flag, .setting_count = 1, .program = "x", .clock = qr_test_clock(86400000), .rand = &rand.rand};
    struct quire *quire;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_instance_open(&quire, &options, &err));
    QR_CHECK_TEXT("1970-01-02T00:00:00.000Z", quire->created_at);
    /* 86,400,000 ms in the first 48 bits */
    QR_CHECK(qr_str_starts_with(qr_str_of(quire->id), QR_STR("00000526-5c00-7")));
    qr_instance_close(quire);
}

/* ---- failures ---- */

enum { RUNS_A_LOOK = 10 };

static void remove_data(const char *dir)
{
    static const char *const names[] = {"quire.db",  "quire.db-wal", "quire.db-shm", "quire.lock",
                                        "audit.log", "index",        "artifacts",    "work"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        QR_CHECK(remove(path) == 0 || errno == ENOENT);
    }
    QR_CHECK(rmdir(dir) == 0 || errno == ENOENT);
}

/* Whatever failed, the next opening finds the folder whole. */
static void check_is_whole(const char *dir)
{
    struct quire *quire = open_data(dir);
    check_call(quire, "POST", "/api/v1/check", NULL, 200, "\"ok\":true");
    quire_close(quire);
}

/* Opens a data folder, making it when it is missing, and asks it something. */
static void call_under_faults(const char *dir)
{
    const struct qr_config_flag flag = {"x", QR_STR("data.dir"), qr_str_of(dir)};
    const struct qr_instance_options options = {
        .settings = &flag, .setting_count = 1, .program = "x", .io = qr_fault_io()};
    struct quire *quire;
    qr_err err = {0};
    const qr_rc rc = qr_instance_open(&quire, &options, &err);
    if (rc == QR_OK) {
        struct quire_response response;
        const int status = quire_call(quire, "POST", "/api/v1/check", "{}", &response);
        QR_CHECK(status == 200 || (status == 503 && qr_fault_fired()));
        QR_CHECK_HAS(status == 200 ? "\"ok\":true" : "{\"error\":{\"code\":\"", response.body);
        quire_response_done(&response);
        quire_close(quire);
    } else if (!qr_fault_fired() || (err.code != QR_CODE_OUT_OF_MEMORY && err.code != QR_CODE_IO_ERROR)) {
        QR_FAIL("%s (%s)", err.msg, qr_code_info(err.code)->name);
    }
    qr_fault_disarm();
}

static void make_and_call_under_faults(void *arg)
{
    remove_data(arg);
    call_under_faults(arg);
    check_is_whole(arg);
}

/* Always the same folder: damage stays, and is found by a later look too. */
static void open_and_call_under_faults(void *arg)
{
    static int runs;
    call_under_faults(arg);
    if (runs++ % RUNS_A_LOOK == 0) {
        check_is_whole(arg);
    }
}

QR_TEST_WITH_TIMEOUT(making_and_calling_survive_every_failure_of_memory_and_disk, 300)
{
    char dir[256];
    snprintf(dir, sizeof dir, "%s/data", t->dir);
    qr_fault_memory_install();
    qr_fault_sweep_sparsely(QR_FAULT_IO_EIO, make_and_call_under_faults, dir);
    /* the making of tables has a sweep of its own, over a smaller schema */
    qr_fault_sweep_sparsely(QR_FAULT_MEMORY, open_and_call_under_faults, dir);
    check_is_whole(dir);
}
