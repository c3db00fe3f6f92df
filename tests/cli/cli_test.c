/* The real program, as a user runs it: what it prints, how it ends, and what it leaves alone. */
#include "base/failpoint.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "store/schema.h"
#include "support/child.h"
#include "support/postgres.h"
#include "support/test.h"

#include <quire/quire.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGS_MAX = 16, ENV_MAX = 8 };

static const char *program = QUIRE_BINARY_DIR "/quire";

struct run {
    const char *args[ARGS_MAX];
    const char *env[ENV_MAX]; /* besides HOME, which is the test's folder */
};

struct outcome {
    int exit_code;
    char out[32768], err[8192];
};

static void keep(const struct qr_buf *from, char *ret_text, size_t size)
{
    QR_CHECK(from->len < size);
    memcpy(ret_text, qr_buf_str(from).ptr, from->len);
    ret_text[from->len] = '\0';
}

/* Static memory, valid for the next 7 calls. */
static const struct outcome *start(struct qr_test *t, const struct run *run, bool json)
{
    static struct outcome outcomes[8];
    static unsigned next;
    struct outcome *outcome = &outcomes[next++ % QR_COUNT(outcomes)];
    const char *argv[ARGS_MAX + 3] = {program}, *env[ENV_MAX + 3];
    char home[256];
    size_t argc = 1, env_count = 0;
    if (json) {
        argv[argc++] = "--json";
    }
    snprintf(home, sizeof home, "HOME=%s", t->dir);
    env[env_count++] = home;
    env[env_count++] = "PATH=/usr/local/bin:/usr/bin:/bin";
    for (size_t i = 0; i < ARGS_MAX && run->args[i]; i++) {
        argv[argc++] = run->args[i];
    }
    for (size_t i = 0; i < ENV_MAX && run->env[i]; i++) {
        env[env_count++] = run->env[i];
    }
    argv[argc] = env[env_count] = NULL;

    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf errors = {0};
    const struct qr_proc_options options = {
        .argv = argv, .env = env, .dir = t->dir, .output_bytes_max = sizeof outcome->out - 1, .timeout_ms = 30000};
    struct qr_proc_result result;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out, &errors, &result, &err));
    keep(&out, outcome->out, sizeof outcome->out);
    keep(&errors, outcome->err, sizeof outcome->err);
    outcome->exit_code = result.exit_code;
    return outcome;
}
#define RUN(...) (&(struct run){{__VA_ARGS__}})

static const struct outcome *start_ok(struct qr_test *t, const struct run *run)
{
    const struct outcome *outcome = start(t, run, false);
    if (outcome->exit_code != 0) {
        QR_FAIL("exit code %d: %s%s", outcome->exit_code, outcome->out, outcome->err);
    }
    return outcome;
}

/* What every error promises: the code's exit code, message and advice on standard error; with --json the error object
 * and nothing else. */
static void check_error(struct qr_test *t, const struct run *run, qr_code code, const char *says)
{
    const struct qr_code_info *info = qr_code_info(code);
    char tail[512];
    if (code == QR_CODE_USAGE) { /* which names the command */
        snprintf(tail, sizeof tail, "`. (%s)\n", info->name);
    } else {
        snprintf(tail, sizeof tail, "\n  %s (%s)\n", info->advice, info->name);
    }

    const struct outcome *json = start(t, run, true);
    QR_JSON *answer = NULL;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_str_of(json->out), &QR_JSON_REQUEST_LIMITS, &answer, &err));
    const json_t *error = json_object_get(answer, "error");
    QR_CHECK_TEXT(info->name, json_string_value(json_object_get(error, "code")));
    const char *message = json_string_value(json_object_get(error, "message"));
    QR_CHECK_HAS(says, message ? message : "");
    QR_CHECK_TEXT("", json->err);
    QR_CHECK_INT(info->exit_code, json->exit_code);

    const struct outcome text = *start(t, run, false);
    QR_CHECK_TEXT("", text.out);
    QR_CHECK_HAS("quire: ", text.err);
    QR_CHECK_HAS(says, text.err);
    QR_CHECK(qr_str_ends_with(qr_str_of(text.err), qr_str_of(tail)));
    QR_CHECK_INT(info->exit_code, text.exit_code);
}

/* ---- files ---- */

static void put_file(const char *path, const char *text)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, qr_str_of(text), 0644, &err));
}

/* FNV-1a over the content: the file is untouched when it stays the same. */
static uint64_t file_hash(const char *path)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf content = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), path, 64 << 20, &content, &err));
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < content.len; i++) {
        hash = (hash ^ (unsigned char)content.data[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

static const char *db_path(const char *dir)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/quire.db", dir);
    return path;
}

/* ---- help and version ---- */

static void check_printed_as(struct qr_test *t, const struct run *run, const char *doc)
{
    char path[512];
    QR_CLEANUP(qr_buf_done) struct qr_buf content = {0};
    qr_err err;
    snprintf(path, sizeof path, QUIRE_SOURCE_DIR "/docs/%s", doc);
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), path, 1 << 20, &content, &err));
    if (strcmp(content.data, start_ok(t, run)->out) != 0) {
        QR_FAIL("docs/%s is not what `quire help` prints: print it anew", doc);
    }
}

QR_TEST(documents_are_what_help_prints)
{
    check_printed_as(t, RUN("help", "errors"), "ERRORS.md");
    check_printed_as(t, RUN("help", "config"), "CONFIG.md");
    check_printed_as(t, RUN("help", "--man"), "man/quire.1");
}

QR_TEST(help_explains_every_command_it_lists)
{
    static const char *const commands[] = {"check", "config", "help", "jobs", "version"};
    const struct outcome overview = *start_ok(t, RUN("help"));
    char expected[64];
    for (size_t i = 0; i < QR_COUNT(commands); i++) {
        snprintf(expected, sizeof expected, "\n  %s ", commands[i]);
        QR_CHECK_HAS(expected, overview.out);
        snprintf(expected, sizeof expected, "usage: quire [OPTION]… %s", commands[i]);
        QR_CHECK_HAS(expected, start_ok(t, RUN(commands[i], "--help"))->out);
    }
    QR_CHECK_HAS("usage: quire [OPTION]… check", start_ok(t, RUN("help", "check"))->out);
    QR_CHECK_HAS("\n  check ", start_ok(t, RUN("--help"))->out);
    check_error(t, RUN("help", "nothing"), QR_CODE_USAGE, "there is no help on nothing");
    QR_CHECK_INT(2, start(t, RUN("help"), true)->exit_code); /* never text where JSON was asked for */
}

QR_TEST(version_is_printed)
{
    QR_CHECK_TEXT("quire " QUIRE_VERSION "\n", start_ok(t, RUN("version"))->out);
    QR_CHECK_TEXT("quire " QUIRE_VERSION "\n", start_ok(t, RUN("--version"))->out);
}

QR_TEST(version_as_json_says_what_protects_the_reader) /* ISOL-5 */
{
    const struct outcome outcome = *start_ok(t, RUN("version", "--json"));
    QR_CHECK_HAS("{\"version\":\"" QUIRE_VERSION "\",\"reader\":{\"program\":\"", outcome.out);
    QR_CHECK_HAS("/quire-reader\",\"protections\":{\"landlock\":", outcome.out);
    QR_CHECK_HAS("\"limits\":true", outcome.out);
    const struct outcome missing = *start_ok(t, RUN("--set", "reader.program=/nowhere", "version", "--json"));
    QR_CHECK_HAS("\"reader\":{\"error\":\"there is no program /nowhere", missing.out);
}

/* ---- the command line ---- */

QR_TEST(wrong_command_line_is_a_usage_error_with_the_nearest_word)
{
    check_error(t, RUN(NULL), QR_CODE_USAGE, "there is no command");
    check_error(t, RUN("chekc"), QR_CODE_USAGE, "no command is called chekc; did you mean check?");
    check_error(t, RUN("frobnicate"), QR_CODE_USAGE, "`quire help` lists them");
    check_error(t, RUN("check", "--dta", "x"), QR_CODE_USAGE, "no option is called --dta; did you mean --data?");
    check_error(t, RUN("config", "--failpoint"), QR_CODE_USAGE, "did you mean --failpoints?");
    check_error(t, RUN("check", "--failpoints"), QR_CODE_USAGE, "no option is called --failpoints");
    check_error(t, RUN("check", "extra"), QR_CODE_USAGE, "extra is one argument too many");
    check_error(t, RUN("config", "--set", "log.level"), QR_CODE_USAGE, "--set takes KEY=VALUE");
    check_error(t, RUN("config", "--help=yes"), QR_CODE_USAGE, "--help takes no value");
    check_error(t, RUN("config", "--", "--json"), QR_CODE_UNKNOWN_FIELD, "no setting is called \"--json\"");
    check_error(t, RUN("check", "--data"), QR_CODE_USAGE, "--data takes a value: --data DIR");
}

QR_TEST(control_characters_never_reach_the_terminal)
{
    const struct outcome *outcome = start(t, RUN("che\033[2J\nck"), false);
    QR_CHECK_INT(2, outcome->exit_code);
    QR_CHECK_HAS("no command is called che?[2J ck", outcome->err);
}

/* ---- settings ---- */

/* Something from every source, and two variables that set nothing. */
static const struct run config_run = {
    .args = {"--config", "my.ini", "--set", "log.format=json", "--data=here", "config"},
    .env = {"QUIRE_DATABASE_CONNECTIONS=5", "QUIRE_LOG_LEVLE=info", "QUIRE_OPENAI_API_KEY=SECRET"},
};

QR_TEST(config_prints_what_is_in_force_and_where_it_came_from) /* CFG-1 */
{
    put_file(qr_test_path(t, "my.ini"), "[log]\nlevel = warn\n[database]\nconnections = 3\n");
    const struct outcome *text = start_ok(t, &config_run);
    QR_CHECK_HAS("KEY ", text->out);
    QR_CHECK_HAS("\nlog.level                   warn            file my.ini:2\n", text->out);
    QR_CHECK_HAS("\ndatabase.connections        5               environment QUIRE_DATABASE_CONNECTIONS\n", text->out);
    QR_CHECK_HAS("\nlog.format                  json            flag --set\n", text->out);
    QR_CHECK_HAS("\ndata.dir                    here            flag --data\n", text->out);
    QR_CHECK_HAS("\ndatabase.wal_hard_limit     64MB            default\n", text->out);
}

QR_TEST(config_warns_of_variables_that_set_nothing_by_name_only) /* I10 */
{
    put_file(qr_test_path(t, "my.ini"), "");
    const struct outcome *text = start_ok(t, &config_run);
    QR_CHECK_HAS("the variable QUIRE_LOG_LEVLE sets nothing; did you mean QUIRE_LOG_LEVEL?\n", text->err);
    QR_CHECK_HAS("the variable QUIRE_OPENAI_API_KEY sets nothing\n", text->err);
    QR_CHECK(!strstr(text->err, "SECRET") && !strstr(text->out, "SECRET"));
    const struct outcome *json = start(t, &config_run, true);
    QR_CHECK_HAS("{\"name\":\"QUIRE_LOG_LEVLE\",\"nearest\":\"QUIRE_LOG_LEVEL\"}", json->out);
    QR_CHECK_HAS("{\"name\":\"QUIRE_OPENAI_API_KEY\",\"nearest\":null}", json->out);
    QR_CHECK(!strstr(json->err, "SECRET") && !strstr(json->out, "SECRET"));
}

QR_TEST(config_as_json_says_the_same)
{
    put_file(qr_test_path(t, "my.ini"), "[log]\nlevel = warn\n");
    const struct outcome *json = start(t, &config_run, true);
    QR_CHECK_INT(0, json->exit_code);
    QR_CHECK_HAS("{\"file\":\"my.ini\",\"settings\":[{\"key\":\"data.dir\",\"value\":\"here\",\"source\":\"flag\"",
                 json->out);
    QR_CHECK_HAS("{\"key\":\"log.level\",\"value\":\"warn\",\"source\":\"file\",\"origin\":\"my.ini:2\"}", json->out);
    QR_CHECK_TEXT("", json->err);
}

QR_TEST(config_prints_one_value)
{
    QR_CHECK_TEXT("info\n", start_ok(t, RUN("config", "log.level"))->out);
    QR_CHECK_HAS("{\"key\":\"log.level\",\"value\":\"info\"", start_ok(t, RUN("config", "log.level", "--json"))->out);
    check_error(t, RUN("config", "log.levl"), QR_CODE_UNKNOWN_FIELD, "did you mean log.level?");
}

QR_TEST(config_never_prints_a_password) /* I10 */
{
    const struct run run = {.args = {"config"}, .env = {"QUIRE_DATABASE_URL=postgresql://me:SECRET@host/db"}};
    const struct outcome *outcome = start_ok(t, &run);
    QR_CHECK_HAS("postgresql://me:***@host/db", outcome->out);
    QR_CHECK(!strstr(outcome->out, "SECRET"));
    outcome = start(t, &run, true);
    QR_CHECK_HAS("postgresql://me:***@host/db", outcome->out);
    QR_CHECK(!strstr(outcome->out, "SECRET"));
}

QR_TEST(wrong_setting_is_refused_before_anything_is_touched) /* CFG-2 */
{
    put_file(qr_test_path(t, "bad.ini"), "[log]\nlevel = loud\n");
    put_file(qr_test_path(t, "key.ini"), "\n[log]\nlevl = info\n");
    const char *dir = qr_test_path(t, "data");
    check_error(t, RUN("--data", dir, "--config", "bad.ini", "check"), QR_CODE_INVALID_VALUE,
                "bad.ini:2: log.level = \"loud\" is not allowed; allowed: debug, info, warn or error");
    check_error(t, RUN("--data", dir, "--config", "key.ini", "check"), QR_CODE_UNKNOWN_FIELD,
                "key.ini:3: no setting is called \"log.levl\"; did you mean log.level?");
    check_error(t, RUN("--data", dir, "--set", "database.connections=0", "check"), QR_CODE_INVALID_VALUE,
                "--set: database.connections = \"0\" is not allowed; allowed: 1 to 64");
    check_error(t, RUN("--data", dir, "--config", "none.ini", "check"), QR_CODE_NOT_FOUND, "none.ini");
    QR_CHECK(access(dir, F_OK) != 0);
}

QR_TEST(failpoints_are_listed_one_a_line)
{
    const struct outcome *outcome = start_ok(t, RUN("config", "--failpoints"));
    if (!qr_failpoints_built_in()) {
        QR_CHECK_TEXT("", outcome->out);
        QR_CHECK_HAS("this build has no failpoints", outcome->err);
        return;
    }
    QR_CHECK_TEXT("", outcome->err);
    QR_CHECK_INT(strlen(outcome->out), strspn(outcome->out, "abcdefghijklmnopqrstuvwxyz0123456789_.\n"));
    QR_CHECK_HAS("\"built_in\":true", start_ok(t, RUN("config", "--failpoints", "--json"))->out);
}

/* ---- the data folder ---- */

/* A good data folder, made by the program itself. */
static const char *make_data(struct qr_test *t)
{
    const char *dir = qr_test_path(t, "data");
    start_ok(t, RUN("--data", dir, "check"));
    return dir;
}

QR_TEST(check_says_what_it_looked_at)
{
    const char *dir = qr_test_path(t, "data");
    const struct outcome *outcome = start_ok(t, RUN("--data", dir, "check"));
    QR_CHECK_HAS(dir, outcome->out);
    QR_CHECK_HAS("sqlite, schema version ", outcome->out);
    QR_CHECK_HAS("\nno damage found\n", outcome->out);
    QR_CHECK_TEXT("", outcome->err);
    QR_CHECK_HAS("{\"ok\":true,\"database\":{\"driver\":\"sqlite\",\"schema_version\":",
                 start_ok(t, RUN("--data", dir, "check", "--json"))->out);
}

QR_TEST(log_settings_are_in_force)
{
    const struct outcome *outcome = start_ok(t, RUN("--data", "data", "--set", "log.level=debug", "check"));
    QR_CHECK_HAS("level=debug", outcome->err);
    QR_CHECK_HAS("data_opened", outcome->err);
    outcome = start_ok(t, RUN("--data=data", "--set=log.level=debug", "--set", "log.format=json", "check"));
    QR_CHECK_HAS("\"event\":\"data_opened\"", outcome->err);
}

QR_TEST(locked_folder_is_refused_with_the_owners_pid) /* DB-13 */
{
    const char *dir = qr_test_path(t, "data");
    const struct quire_options options = {.data_dir = dir, .program = "the test"};
    struct quire *quire;
    QR_CHECK_INT(0, quire_open(&options, &quire, NULL));
    const uint64_t hash = file_hash(db_path(dir));
    char owner[64];
    snprintf(owner, sizeof owner, "in use by process %ld (the test", (long)getpid());
    check_error(t, RUN("--data", dir, "check"), QR_CODE_DATA_LOCKED, owner);
    QR_CHECK(file_hash(db_path(dir)) == hash);
    quire_close(quire);
    start_ok(t, RUN("--data", dir, "check"));
}

static void hold_folder(void *arg)
{
    const struct quire_options options = {.data_dir = arg};
    struct quire *quire;
    const int status = quire_open(&options, &quire, NULL);
    child_ack(&status, sizeof status);
    for (;;) {
        pause();
    }
}

QR_TEST(folder_of_a_killed_owner_is_free_again) /* DB-13 */
{
    char dir[256];
    snprintf(dir, sizeof dir, "%s/data", t->dir);
    struct child child;
    int status = -1;
    child_start(&child, hold_folder, dir);
    QR_CHECK(child_next_ack(&child, &status, sizeof status));
    QR_CHECK_INT(0, status);
    check_error(t, RUN("--data", dir, "check"), QR_CODE_DATA_LOCKED, "in use by process");
    kill(child.pid, SIGKILL);
    child_wait(&child);
    start_ok(t, RUN("--data", dir, "check"));
}

/* The folders above the program need not be open to everybody: the test runs a copy of it. */
static void use_copy_of_program(struct qr_test *t)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf content = {0};
    qr_err err;
    static char copy[256];
    snprintf(copy, sizeof copy, "%s/quire", t->dir);
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), program, SIZE_MAX, &content, &err));
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), copy, qr_buf_str(&content), 0755, &err));
    QR_CHECK(chmod(copy, 0755) == 0);
    program = copy;
}

QR_TEST(readonly_folder_is_refused_and_left_as_it_is)
{
    use_copy_of_program(t);
    qr_test_become_unprivileged();
    const char *dir = make_data(t);
    const uint64_t hash = file_hash(db_path(dir));

    QR_CHECK(chmod(db_path(dir), 0444) == 0);
    check_error(t, RUN("--data", dir, "check"), QR_CODE_DATA_READONLY, "quire.db");
    QR_CHECK(chmod(qr_test_path(t, "data/quire.lock"), 0444) == 0 && chmod(dir, 0555) == 0);
    check_error(t, RUN("--data", dir, "check"), QR_CODE_DATA_READONLY, dir);
    char below[256];
    snprintf(below, sizeof below, "%s/sub", dir);
    check_error(t, RUN("--data", below, "check"), QR_CODE_DATA_READONLY, below);

    QR_CHECK(file_hash(db_path(dir)) == hash);
    QR_CHECK(chmod(dir, 0755) == 0 && chmod(db_path(dir), 0644) == 0);
    QR_CHECK(chmod(qr_test_path(t, "data/quire.lock"), 0644) == 0);
    start_ok(t, RUN("--data", dir, "check"));
}

QR_TEST(file_in_place_of_the_folder_is_refused)
{
    const char *path = qr_test_path(t, "file");
    put_file(path, "mine");
    const uint64_t hash = file_hash(path);
    check_error(t, RUN("--data", path, "check"), QR_CODE_DATA_READONLY, "is not a folder");
    QR_CHECK(file_hash(path) == hash);
}

/* ---- damaged and foreign databases ---- */

/* Writes garbage over a part of the database. */
static void damage(const char *dir, long offset, size_t size_bytes)
{
    FILE *file = fopen(db_path(dir), "r+");
    QR_CHECK(file && fseek(file, offset, SEEK_SET) == 0);
    for (size_t i = 0; i < size_bytes; i++) {
        fputc((int)(i * 7 + 13) & 0xff, file);
    }
    QR_CHECK(fclose(file) == 0);
}

static void check_damage_refused(struct qr_test *t, const char *dir)
{
    const uint64_t hash = file_hash(db_path(dir));
    check_error(t, RUN("--data", dir, "check"), QR_CODE_DATA_CORRUPT, dir);
    QR_CHECK(file_hash(db_path(dir)) == hash);
}

QR_TEST(database_with_a_damaged_beginning_is_refused_and_left_as_it_is) /* DB-11 */
{
    const char *dir = make_data(t);
    damage(dir, 0, 100);
    check_damage_refused(t, dir);
}

QR_TEST(database_that_was_cut_off_is_refused_and_left_as_it_is) /* DB-11 */
{
    const char *dir = make_data(t);
    struct stat st;
    QR_CHECK(stat(db_path(dir), &st) == 0 && truncate(db_path(dir), st.st_size - 6000) == 0);
    check_damage_refused(t, dir);
}

/* Makes the database large enough that opening it does not read all of it. */
static void fill(const char *dir)
{
    sqlite3 *db;
    QR_CHECK(sqlite3_open(db_path(dir), &db) == SQLITE_OK);
    QR_CHECK(sqlite3_exec(db,
                          "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 100) "
                          "INSERT INTO meta SELECT 'k' || value, hex(randomblob(2000)) FROM n;"
                          "PRAGMA wal_checkpoint(TRUNCATE)",
                          NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

QR_TEST(check_finds_damage_deep_inside)
{
    const char *dir = make_data(t);
    fill(dir);
    start_ok(t, RUN("--data", dir, "check"));
    struct stat st;
    QR_CHECK(stat(db_path(dir), &st) == 0);
    damage(dir, st.st_size / 2 / 4096 * 4096, 4096);
    const uint64_t hash = file_hash(db_path(dir));

    const struct outcome *text = start(t, RUN("--data", dir, "check"), false);
    QR_CHECK_INT(5, text->exit_code);
    QR_CHECK_HAS("damage found", text->out);
    QR_CHECK_HAS("(data_corrupt)\n", text->err);
    const struct outcome *json = start(t, RUN("--data", dir, "check"), true);
    QR_CHECK_INT(5, json->exit_code);
    QR_CHECK_HAS("{\"ok\":false,", json->out);
    QR_CHECK_HAS("\"findings\":[{\"code\":\"data_corrupt\",\"message\":", json->out);
    QR_CHECK(file_hash(db_path(dir)) == hash);
}

QR_TEST(database_of_another_program_is_refused_and_left_as_it_is) /* DB-11 */
{
    const char *dir = qr_test_path(t, "data");
    sqlite3 *db;
    QR_CHECK(mkdir(dir, 0700) == 0);
    QR_CHECK(sqlite3_open(db_path(dir), &db) == SQLITE_OK);
    QR_CHECK(sqlite3_exec(db, "CREATE TABLE bookmarks (url TEXT)", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    const uint64_t hash = file_hash(db_path(dir));
    check_error(t, RUN("--data", dir, "check"), QR_CODE_DATA_FOREIGN, "quire.db");
    QR_CHECK(file_hash(db_path(dir)) == hash);
}

QR_TEST(newer_schema_is_refused_and_left_as_it_is) /* DB-11 */
{
    const char *dir = qr_test_path(t, "data");
    QR_CHECK(mkdir(dir, 0700) == 0);
    struct qr_migration newer[64];
    const size_t known = qr_schema_migration_count;
    QR_CHECK(known < QR_COUNT(newer));
    memcpy(newer, qr_schema_migrations, known * sizeof newer[0]);
    newer[known] = (struct qr_migration){"future", "CREATE TABLE future (x INTEGER) STRICT;"};
    char url[512];
    snprintf(url, sizeof url, "sqlite:%s", db_path(dir));
    const struct qr_db_options options = {.url = url, .migrations = newer, .migration_count = known + 1};
    struct qr_db *db;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    qr_db_close(db);
    const uint64_t hash = file_hash(db_path(dir));
    check_error(t, RUN("--data", dir, "check"), QR_CODE_SCHEMA_NEWER, "this program knows versions up to");
    QR_CHECK(file_hash(db_path(dir)) == hash);
}

QR_TEST(unreachable_postgresql_is_named_without_its_password) /* I10 */
{
    const struct run run = {.args = {"--data", "data", "--set", "database.read_deadline_ms=100", "check"},
                            .env = {"QUIRE_DATABASE_URL=postgresql://me:SECRET@127.0.0.1:1/db"}};
    check_error(t, &run, QR_CODE_UNAVAILABLE, "127.0.0.1");
    QR_CHECK(!strstr(start(t, &run, false)->err, "SECRET"));
    QR_CHECK(!strstr(start(t, &run, true)->out, "SECRET"));
}

QR_TEST(check_works_on_postgresql)
{
    struct qr_pg pg = {0};
    qr_pg_start(&pg, NULL);
    char url[512];
    snprintf(url, sizeof url, "QUIRE_DATABASE_URL=%s", qr_pg_url(&pg, "cli"));
    const struct run run = {.args = {"--data", "data", "check"}, .env = {url}};
    const struct outcome first = *start_ok(t, &run);
    QR_CHECK_HAS("postgresql, schema version ", first.out);
    QR_CHECK_TEXT(first.out, start_ok(t, &run)->out); /* the same instance */
    QR_CHECK(access(qr_test_path(t, "data/quire.db"), F_OK) != 0);
    qr_pg_remove(&pg);
}

/* ---- standard streams ---- */

static const struct outcome *start_in_shell(struct qr_test *t, const char *fmt)
{
    char line[512];
    snprintf(line, sizeof line, "exec '%s' %s", program, fmt);
    program = "/bin/sh";
    const struct outcome *outcome = start(t, RUN("-c", line), false);
    program = QUIRE_BINARY_DIR "/quire";
    return outcome;
}

QR_TEST(answer_that_cannot_be_written_is_an_error)
{
    const struct outcome *outcome = start_in_shell(t, "config > /dev/full");
    QR_CHECK_INT(5, outcome->exit_code);
    QR_CHECK_HAS("cannot write to standard output", outcome->err);
    QR_CHECK_HAS("(disk_full)", outcome->err);
}

QR_TEST(closed_standard_streams_do_no_harm)
{
    QR_CHECK_INT(0, start_in_shell(t, "--data data check <&- >&- 2>&-")->exit_code);
    QR_CHECK_INT(2, start_in_shell(t, "--data data chekc <&- >&- 2>&-")->exit_code);
    start_ok(t, RUN("--data", "data", "check"));
}
