/* The configuration: its text form, its sources, its values. */
#include "base/config.h"
#include "base/fs.h"
#include "base/ini.h"
#include "base/log.h"
#include "support/fault.h"
#include "support/test.h"

/* ---- INI text ---- */

struct seen {
    size_t count;
    char text[8][256]; /* "line section.key=value" */
};

static qr_rc remember(void *arg, const struct qr_ini_entry *entry, qr_err *err QR_UNUSED)
{
    struct seen *seen = arg;
    QR_CHECK(seen->count < QR_COUNT(seen->text));
    snprintf(seen->text[seen->count++], sizeof seen->text[0], "%d %.*s.%.*s=%.*s", entry->line,
             QR_STR_ARG(entry->section), QR_STR_ARG(entry->key), QR_STR_ARG(entry->value));
    return QR_OK;
}

static struct seen parse(qr_str text)
{
    struct seen seen = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_ini_parse(text, "x.ini", remember, &seen, &err));
    return seen;
}

QR_TEST(ini_value_reaches_to_the_end_of_its_line)
{
    const struct seen seen = parse(QR_STR("; first\n\n[log]\n level\t=  a = b # c ; d \"e\"  \n[ data ]\nx=\nlast=1"));
    QR_CHECK_INT(3, seen.count);
    QR_CHECK_TEXT("4 log.level=a = b # c ; d \"e\"", seen.text[0]);
    QR_CHECK_TEXT("6 data.x=", seen.text[1]);
    QR_CHECK_TEXT("7 data.last=1", seen.text[2]);
}

QR_TEST(ini_accepts_a_byte_order_mark_and_cr_lf)
{
    const struct seen seen = parse(QR_STR("\xEF\xBB\xBF[log]\r\nlevel = info\r\n"));
    QR_CHECK_INT(1, seen.count);
    QR_CHECK_TEXT("2 log.level=info", seen.text[0]);
    QR_CHECK_INT(0, parse(QR_STR("")).count);
}

QR_TEST(ini_names_file_and_line_of_what_is_malformed)
{
    static const struct {
        qr_str text;
        const char *says;
    } cases[] = {
        {QR_STR("[log]\nlevel"), "x.ini:2: neither a [section] nor a key = value"},
        {QR_STR("level = info"), "x.ini:1: a key before the first [section]"},
        {QR_STR("[log\nlevel=info"), "x.ini:1: a section is written [name]"},
        {QR_STR("[log] # x"), "x.ini:1: a section is written [name]"},
        {QR_STR("["), "x.ini:1: a section"},
        {QR_STR("\n[ ]"), "x.ini:2: the section has no name"},
        {QR_STR("[log]\n= info"), "x.ini:2: there is no key"},
        {QR_STR("[log]\n# \xFF"), "x.ini:2: the line is not UTF-8 text"},
        {QR_STR("[log]\na=\0b"), "x.ini:2: the line is not UTF-8 text"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        struct seen seen = {0};
        qr_err err;
        QR_CHECK_CODE(QR_CODE_BAD_REQUEST, qr_ini_parse(cases[i].text, "x.ini", remember, &seen, &err));
        QR_CHECK_HAS(cases[i].says, err.msg);
    }
}

QR_TEST(ini_refuses_what_is_too_long_instead_of_cutting_it)
{
    static char text[QR_INI_FILE_BYTES_MAX + 1];
    struct seen seen = {0};
    qr_err err;
    memset(text, '#', sizeof text);
    static const char beginning[] = "[log]\nlevel=";
    memcpy(text, beginning, sizeof beginning - 1);
    const qr_str fits = {text, 6 + QR_INI_LINE_BYTES_MAX}, long_line = {text, fits.len + 1};
    QR_CHECK_RC(QR_OK, qr_ini_parse(fits, "x.ini", remember, &seen, &err));
    QR_CHECK_CODE(QR_CODE_BAD_REQUEST, qr_ini_parse(long_line, "x.ini", remember, &seen, &err));
    QR_CHECK_HAS("x.ini:2: the line is longer than 8192 bytes", err.msg);
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE, qr_ini_parse((qr_str){text, sizeof text}, "x.ini", remember, &seen, &err));
}

/* ---- loading ---- */

/* Everything a load is made of; the environment has HOME = the test's folder. */
struct sources {
    const char *file_text; /* put into a file that is named by --config */
    const char *env[8];
    struct qr_config_flag flags[4];
};

static qr_rc load(struct qr_test *t, struct qr_config *config, const struct sources *sources, qr_err *err)
{
    static char home[256];
    const char *env[10] = {home};
    snprintf(home, sizeof home, "HOME=%s", t->dir);
    size_t env_count = 1, flag_count = 0;
    while (sources->env[env_count - 1]) {
        env[env_count] = sources->env[env_count - 1];
        env_count++;
    }
    while (sources->flags[flag_count].flag) {
        flag_count++;
    }
    const char *file = NULL;
    if (sources->file_text) {
        file = qr_test_path(t, "q.ini");
        QR_TRY(qr_fs_replace(qr_io_system(), file, qr_str_of(sources->file_text), 0600, err));
    }
    const struct qr_config_inputs inputs = {
        .io = qr_io_system(), .file = file, .env = env, .flags = sources->flags, .flag_count = flag_count};
    qr_config_init(config);
    return qr_config_load(config, &inputs, err);
}

#define LOAD(config, ...)                                                                                              \
    QR_CLEANUP(qr_config_done) struct qr_config config = {0};                                                          \
    QR_CHECK_RC(QR_OK, load(t, &config, &(struct sources){__VA_ARGS__}, &err))

/* The load must fail with this code; the message must hold these texts. */
static void refuse(struct qr_test *t, const struct sources *sources, qr_code code, const char *const *says)
{
    QR_CLEANUP(qr_config_done) struct qr_config config = {0};
    qr_err err;
    QR_CHECK_CODE(code, load(t, &config, sources, &err));
    for (; *says; says++) {
        QR_CHECK_HAS(*says, err.msg);
    }
}
#define SAYS(...) ((const char *const[]){__VA_ARGS__, NULL})

QR_TEST(flag_beats_environment_beats_file_beats_default) /* CFG-1 */
{
    qr_err err;
    LOAD(config, .file_text = "[database]\nconnections=2\nread_deadline_ms=200\nwrite_deadline_ms=2000\n",
         .env = {"QUIRE_DATABASE_READ_DEADLINE_MS=300", "QUIRE_DATABASE_WRITE_DEADLINE_MS=3000", "QUIRE_LOG_LEVEL="},
         .flags = {{"--set", QR_STR("database.write_deadline_ms"), QR_STR("4000")},
                   {"--set", QR_STR("database.write_deadline_ms"), QR_STR("5000")}});
    static const struct {
        enum qr_config_id id;
        int64_t number;
        enum qr_config_source source;
        const char *origin;
    } expected[] = {
        {QR_CONFIG_DATABASE_WAL_SOFT_LIMIT, 8 << 20, QR_SOURCE_DEFAULT, ""},
        {QR_CONFIG_DATABASE_CONNECTIONS, 2, QR_SOURCE_FILE, "/q.ini:2"},
        {QR_CONFIG_DATABASE_READ_DEADLINE_MS, 300, QR_SOURCE_ENVIRONMENT, "QUIRE_DATABASE_READ_DEADLINE_MS"},
        {QR_CONFIG_DATABASE_WRITE_DEADLINE_MS, 5000, QR_SOURCE_FLAG, "--set"},
        {QR_CONFIG_LOG_LEVEL, QR_LOG_INFO, QR_SOURCE_DEFAULT, ""}, /* an empty variable is not set */
    };
    for (size_t i = 0; i < QR_COUNT(expected); i++) {
        const struct qr_config_value *value = &config.values[expected[i].id];
        QR_CHECK_INT(expected[i].number, value->number);
        QR_CHECK_INT(expected[i].source, value->source);
        QR_CHECK_HAS(expected[i].origin, value->origin);
    }
    QR_CHECK_TEXT("5000", qr_config_text(&config, QR_CONFIG_DATABASE_WRITE_DEADLINE_MS));
    QR_CHECK_HAS("/q.ini", config.file);
}

QR_TEST(wrong_value_is_refused_with_place_key_value_and_what_is_allowed) /* CFG-2 */
{
    const struct sources in_file = {.file_text = "[log]\nformat = text\nlevel = loud"};
    refuse(t, &in_file, QR_CODE_INVALID_VALUE,
           SAYS("/q.ini:3: ", "log.level = \"loud\"", "debug, info, warn or error"));
    const struct sources in_env = {.env = {"QUIRE_DATABASE_CONNECTIONS=65"}};
    refuse(t, &in_env, QR_CODE_INVALID_VALUE,
           SAYS("QUIRE_DATABASE_CONNECTIONS: database.connections = \"65\"", "1 to 64"));
    const struct sources in_flag = {.flags = {{"--set", QR_STR("database.wal_soft_limit"), QR_STR("1TB")}}};
    refuse(t, &in_flag, QR_CODE_INVALID_VALUE, SAYS("--set: database.wal_soft_limit = \"1TB\"", "1MB to 1GB"));
    /* also where something stronger would override it */
    const struct sources overridden = {.file_text = "[log]\nlevel = loud", .env = {"QUIRE_LOG_LEVEL=info"}};
    refuse(t, &overridden, QR_CODE_INVALID_VALUE, SAYS("/q.ini:2: "));
    const struct sources empty = {.file_text = "[log]\nlevel ="};
    refuse(t, &empty, QR_CODE_INVALID_VALUE, SAYS("/q.ini:2: log.level = \"\""));
}

QR_TEST(unknown_key_is_refused_with_the_nearest_one) /* CFG-2 */
{
    const struct sources in_file = {.file_text = "[log]\nlevl = info"};
    refuse(t, &in_file, QR_CODE_UNKNOWN_FIELD, SAYS("/q.ini:2: ", "\"log.levl\"", "did you mean log.level?"));
    const struct sources in_flag = {.flags = {{"--set", QR_STR("Data.dir"), QR_STR("/x")}}};
    refuse(t, &in_flag, QR_CODE_UNKNOWN_FIELD, SAYS("--set: ", "did you mean data.dir?"));
    const struct sources far_away = {.flags = {{"--set", QR_STR("colour"), QR_STR("blue")}}};
    refuse(t, &far_away, QR_CODE_UNKNOWN_FIELD, SAYS("\"colour\"", "`quire help config`"));
}

QR_TEST(key_twice_in_the_file_is_refused)
{
    const struct sources twice = {.file_text = "[log]\nlevel=info\n[data]\ndir=/x\n[log]\nlevel=warn"};
    refuse(t, &twice, QR_CODE_BAD_REQUEST, SAYS("/q.ini:6: log.level is set a second time", "/q.ini:2"));
}

QR_TEST(hard_limit_of_the_log_is_at_least_twice_the_soft_one)
{
    qr_err err;
    LOAD(config, .file_text = "[database]\nwal_soft_limit = 4MB\nwal_hard_limit = 8 mb\n");
    QR_CHECK_INT(8 << 20, qr_config_number(&config, QR_CONFIG_DATABASE_WAL_HARD_LIMIT));
    const struct sources close = {.env = {"QUIRE_DATABASE_WAL_SOFT_LIMIT=33MB"}};
    refuse(t, &close, QR_CODE_INVALID_VALUE,
           SAYS("database.wal_hard_limit = 64MB (default)", "wal_soft_limit = 33MB (QUIRE_DATABASE_WAL_SOFT_LIMIT)"));
}

/* ---- files and folders ---- */

static qr_rc load_env_only(struct qr_config *config, const char *const *env, qr_err *err)
{
    const struct qr_config_inputs inputs = {.io = qr_io_system(), .env = env};
    qr_config_init(config);
    return qr_config_load(config, &inputs, err);
}

static void check_data_dir(const char *expected, const char *const *env)
{
    QR_CLEANUP(qr_config_done) struct qr_config config;
    qr_err err;
    QR_CHECK_RC(QR_OK, load_env_only(&config, env, &err));
    QR_CHECK_TEXT(expected, qr_config_text(&config, QR_CONFIG_DATA_DIR));
}
#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

QR_TEST(data_folder_is_found_in_the_documented_order)
{
    check_data_dir("/h/.local/share/quire", ENV("HOME=/h"));
    check_data_dir("/x/quire", ENV("HOME=/h", "XDG_DATA_HOME=/x"));
    check_data_dir("/h/.local/share/quire", ENV("HOME=/h", "XDG_DATA_HOME=relative"));
    check_data_dir("/d", ENV("HOME=/h", "XDG_DATA_HOME=/x", "QUIRE_DATA=/d"));
    check_data_dir("d", ENV("HOME=/h", "QUIRE_DATA_DIR=d"));
    check_data_dir("/h/mine", ENV("HOME=/h", "QUIRE_DATA=~/mine"));
    check_data_dir("/d", ENV("QUIRE_DATA=/d"));

    qr_err err;
    LOAD(config, .file_text = "[data]\ndir = /f", .env = {"QUIRE_DATA=/d"},
         .flags = {{"--data", QR_STR("data.dir"), QR_STR("g")}});
    QR_CHECK_TEXT("g", qr_config_text(&config, QR_CONFIG_DATA_DIR));
    QR_CHECK_TEXT("--data", config.values[QR_CONFIG_DATA_DIR].origin);
}

QR_TEST(data_folder_that_nobody_named_is_an_error_without_a_home)
{
    QR_CLEANUP(qr_config_done) struct qr_config config;
    qr_err err;
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, load_env_only(&config, ENV("PATH=/bin", "HOME="), &err));
    QR_CHECK_HAS("--data", err.msg);
}

QR_TEST(data_folder_named_by_two_variables_is_an_error)
{
    QR_CLEANUP(qr_config_done) struct qr_config config;
    qr_err err;
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, load_env_only(&config, ENV("QUIRE_DATA=/a", "QUIRE_DATA_DIR=/b"), &err));
    QR_CHECK_HAS("QUIRE_DATA and QUIRE_DATA_DIR are both set", err.msg);
}

QR_TEST(path_in_a_file_is_absolute_or_below_home)
{
    qr_err err;
    LOAD(config, .file_text = "[data]\ndir = ~/my data");
    char expected[256];
    snprintf(expected, sizeof expected, "%s/my data", t->dir);
    QR_CHECK_TEXT(expected, qr_config_text(&config, QR_CONFIG_DATA_DIR));
    const struct sources relative = {.file_text = "[data]\ndir = data"};
    refuse(t, &relative, QR_CODE_INVALID_VALUE, SAYS("/q.ini:2: data.dir = \"data\"", "begins with / or ~/"));
}

QR_TEST(named_file_must_exist_and_the_users_own_need_not)
{
    char named[256], home[256];
    snprintf(named, sizeof named, "QUIRE_CONFIG=%s/none.ini", t->dir);
    snprintf(home, sizeof home, "HOME=%s", t->dir);
    qr_err err;
    struct qr_config config;
    QR_CHECK_RC(QR_OK, load_env_only(&config, ENV(home), &err));
    QR_CHECK(!config.file);
    qr_config_done(&config);
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, load_env_only(&config, ENV(home, named), &err));
    QR_CHECK_HAS("/none.ini", err.msg);
    qr_config_done(&config);
}

static void put_file(struct qr_test *t, const char *folder, const char *text)
{
    char path[256];
    qr_err err;
    snprintf(path, sizeof path, "%s/%s", t->dir, folder);
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), path, 0700, &err));
    snprintf(path, sizeof path, "%s/%s/quire.ini", t->dir, folder);
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, qr_str_of(text), 0600, &err));
}

QR_TEST(users_own_file_is_found_in_the_documented_order)
{
    char home[256], config_home[256];
    snprintf(home, sizeof home, "HOME=%s", t->dir);
    snprintf(config_home, sizeof config_home, "XDG_CONFIG_HOME=%s/etc", t->dir);
    put_file(t, ".config/quire", "[log]\nlevel=warn");
    put_file(t, "etc/quire", "[log]\nlevel=error");
    qr_err err;
    struct qr_config config;
    QR_CHECK_RC(QR_OK, load_env_only(&config, ENV(home), &err));
    QR_CHECK_TEXT(qr_test_path(t, ".config/quire/quire.ini"), config.file);
    QR_CHECK_INT(QR_LOG_WARN, qr_config_number(&config, QR_CONFIG_LOG_LEVEL));
    qr_config_done(&config);
    QR_CHECK_RC(QR_OK, load_env_only(&config, ENV(home, config_home), &err));
    QR_CHECK_TEXT(qr_test_path(t, "etc/quire/quire.ini"), config.file);
    QR_CHECK_INT(QR_LOG_ERROR, qr_config_number(&config, QR_CONFIG_LOG_LEVEL));
    qr_config_done(&config);
}

QR_TEST(variable_that_sets_nothing_is_remembered_by_name_only) /* I10 */
{
    qr_err err;
    LOAD(config, .env = {"QUIRE_LOG_LEVLE=debug", "QUIRE_OPENAI_API_KEY=sk-secret",
                         "QUIRE_CONFIG=", "QUIRE_FAILPOINTS=x", "QUIRE_A\033[2J=1"});
    QR_CHECK_INT(2, config.stray_count);
    QR_CHECK_TEXT("QUIRE_LOG_LEVLE", config.strays[0]);
    QR_CHECK_TEXT("QUIRE_OPENAI_API_KEY", config.strays[1]);
    char nearest[QR_CONFIG_ENV_SIZE];
    QR_CHECK(qr_config_nearest_env(config.strays[0], nearest));
    QR_CHECK_TEXT("QUIRE_LOG_LEVEL", nearest);
    QR_CHECK(!qr_config_nearest_env(config.strays[1], nearest));
}

/* ---- values ---- */

static bool accepts(const struct qr_config_key *key, const char *text, int64_t *ret_number)
{
    qr_err err;
    return qr_config_parse_value(key, qr_str_of(text), ret_number, &err) == QR_OK;
}

QR_TEST(values_of_each_type)
{
    const struct qr_config_key integer = {.name = "a.b", .type = QR_TYPE_INTEGER, .min = -5, .max = 50, .unit = "ms"};
    const struct qr_config_key size = {.name = "a.b", .type = QR_TYPE_SIZE, .min = 1, .max = INT64_MAX};
    const struct qr_config_key boolean = {.name = "a.b", .type = QR_TYPE_BOOL};
    const struct qr_config_key choice = {.name = "a.b", .type = QR_TYPE_ENUM, .choices = "red green"};
    const struct qr_config_key path = {.name = "a.b", .type = QR_TYPE_PATH};
    static const int64_t refused = INT64_MIN;
    const struct {
        const struct qr_config_key *key;
        const char *text;
        int64_t number;
    } cases[] = {
        {&integer, "-5", -5},
        {&integer, "50", 50},
        {&integer, "51", refused},
        {&integer, "5ms", refused},
        {&integer, "", refused},
        {&integer, "0x10", refused},
        {&size, "1", 1},
        {&size, "12B", 12},
        {&size, "3KB", 3072},
        {&size, "64 mb", 64 << 20},
        {&size, "0", refused},
        {&size, "MB", refused},
        {&size, "1.5MB", refused},
        {&size, "-1MB", refused},
        {&size, "9223372036854775807GB", refused},
        {&size, "1MiB", refused},
        {&boolean, "true", 1},
        {&boolean, "false", 0},
        {&boolean, "yes", refused},
        {&choice, "green", 1},
        {&choice, "red", 0},
        {&choice, "Red", refused},
        {&choice, "re", refused},
        {&choice, "red green", refused},
        {&path, "/a b", 0},
        {&path, "/a\nb", refused},
        {&path, "/\x1b[2J", refused},
        {&path, "/\xff", refused},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        int64_t number = refused;
        const bool accepted = accepts(cases[i].key, cases[i].text, &number);
        if (accepted != (cases[i].number != refused) || number != cases[i].number) {
            QR_FAIL("\"%s\" gives %s, %lld", cases[i].text, accepted ? "a value" : "an error", (long long)number);
        }
    }
    char too_long[QR_CONFIG_VALUE_BYTES_MAX + 2];
    memset(too_long, '/', sizeof too_long);
    too_long[sizeof too_long - 1] = '\0';
    int64_t number;
    QR_CHECK(!accepts(&path, too_long, &number));
    QR_CHECK(accepts(&path, too_long + 1, &number));
}

QR_TEST(table_of_settings_is_in_order)
{
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        const struct qr_config_key *key = qr_config_key(id);
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        int64_t number;
        qr_err err;
        QR_CHECK_INT(1, strchr(key->name, '.') && strchr(key->name, '.') == strrchr(key->name, '.'));
        QR_CHECK_INT(strlen(key->name), strspn(key->name, "abcdefghijklmnopqrstuvwxyz_."));
        QR_CHECK(key->doc[0] && key->doc[strlen(key->doc) - 1] == '.');
        QR_CHECK(!strchr(key->doc, '|')); /* would end a cell of docs/CONFIG.md */
        qr_config_add_default(&text, key);
        QR_CHECK_RC(QR_OK, qr_config_parse_value(key, qr_buf_str(&text), &number, &err));
        QR_CHECK(number == key->number || key->type == QR_TYPE_ENUM);
    }
    const char *levels = qr_config_key(QR_CONFIG_LOG_LEVEL)->choices;
    QR_CHECK_TEXT("debug info warn error", levels); /* the order of enum qr_log_level */
    QR_CHECK_INT(3, QR_LOG_ERROR);
    QR_CHECK_TEXT("text json", qr_config_key(QR_CONFIG_LOG_FORMAT)->choices);
    QR_CHECK_INT(1, QR_LOG_JSON);
}

/* ---- another configuration for a program that runs ---- */

QR_TEST(running_program_keeps_what_takes_a_restart) /* HTTP-11 */
{
    qr_err err;
    LOAD(now, .file_text = "[server]\nthreads=4\nhosts=a\n[log]\nlevel=warn");
    LOAD(next, .file_text = "[server]\nthreads=8\nhosts=b\n[log]\nlevel=warn");
    QR_CHECK(qr_config_needs_start(&next, &now, QR_CONFIG_SERVER_THREADS));
    QR_CHECK(!qr_config_needs_start(&next, &now, QR_CONFIG_SERVER_HOSTS));
    QR_CHECK(!qr_config_needs_start(&next, &now, QR_CONFIG_SERVER_LISTEN)); /* the same */
    QR_CHECK(!qr_config_equal(&next, &now));
    QR_CHECK_RC(QR_OK, qr_config_keep_fixed(&next, &now, &err));
    QR_CHECK_INT(4, qr_config_number(&next, QR_CONFIG_SERVER_THREADS));
    QR_CHECK_TEXT("b", qr_config_text(&next, QR_CONFIG_SERVER_HOSTS));
    QR_CHECK(qr_config_same(&next, &now, QR_CONFIG_SERVER_THREADS) &&
             !qr_config_same(&next, &now, QR_CONFIG_SERVER_HOSTS));
    QR_CHECK(qr_config_text(&next, QR_CONFIG_SERVER_THREADS) != qr_config_text(&now, QR_CONFIG_SERVER_THREADS));
}

QR_TEST(https_needs_both_files_and_is_not_switched_by_a_reload) /* HTTP-11 */
{
    static const char plain[] = "[server]\ntls_certificate=none\ntls_key=none"; /* as the default, also in a file */
    static const char first[] = "[server]\ntls_certificate=/a.pem\ntls_key=/a.key";
    static const char second[] = "[server]\ntls_certificate=/b.pem\ntls_key=/a.key";
    qr_err err;
    LOAD(without, .file_text = plain);
    LOAD(with, .file_text = first);
    LOAD(other, .file_text = second);
    QR_CHECK(qr_config_needs_start(&with, &without, QR_CONFIG_SERVER_TLS_CERTIFICATE));
    QR_CHECK(qr_config_needs_start(&without, &with, QR_CONFIG_SERVER_TLS_KEY));
    QR_CHECK(!qr_config_needs_start(&other, &with, QR_CONFIG_SERVER_TLS_CERTIFICATE));
    refuse(t, &(struct sources){.file_text = "[server]\ntls_key=/a.key"}, QR_CODE_INVALID_VALUE,
           SAYS("server.tls_certificate is not"));
    refuse(t, &(struct sources){.file_text = "[server]\ntls_certificate=/a.pem"}, QR_CODE_INVALID_VALUE,
           SAYS("server.tls_key is not"));
    refuse(t, &(struct sources){.file_text = "[server]\ntls_key=a.key"}, QR_CODE_INVALID_VALUE, SAYS("begins with /"));
}

/* ---- secrets ---- */

QR_TEST(password_is_never_shown) /* I10 */
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"sqlite", "sqlite"},
        {"postgresql:///db", "postgresql:///db"},
        {"postgresql://me@host:5432/db?sslmode=require", "postgresql://me@host:5432/db?***"},
        {"postgresql://me:SECRET@host:5432/db", "postgresql://me:***@host:5432/db"},
        {"postgresql://me@host/db", "postgresql://me@host/db"},
        {"postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"},
        {"postgresql://me:SEC@RET:SECRET/@host/db", "postgresql://***"},
        {"postgresql://:SECRET@host", "postgresql://:***@host"},
        {"postgresql://me:SECRET", "postgresql://***"},
        {"postgresql://h/db?password=SECRET&application_name=q", "postgresql://h/db?***"},
        {"postgresql://h/db?password=SEC@RET", "postgresql://***"},
        {"postgresql://h/db?PASSWORD=SECRET", "postgresql://h/db?***"},
        {"postgresql://h/db?%70assword=SECRET", "postgresql://h/db?***"},
        {"postgresql://h/db?scram_client_key=SECRET", "postgresql://h/db?***"},
        {"postgresql://h/db#password=SECRET", "postgresql://h/db?***"},
        {"postgresql://h/db;password=SECRET", "postgresql://h/db?***"},
        {"me:SECRET@host", "me:***@host"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf shown = {0};
        qr_config_add_shown(&shown, qr_config_key(QR_CONFIG_DATABASE_URL), qr_str_of(cases[i].url));
        QR_CHECK_TEXT(cases[i].shown, shown.data);
    }
}

QR_TEST(refused_database_url_is_not_repeated_in_the_error) /* I10 */
{
    static const char *const urls[] = {"QUIRE_DATABASE_URL=mysql://me:SECRET@host/db",
                                       "QUIRE_DATABASE_URL=host=x password=SECRET",
                                       "QUIRE_DATABASE_URL=postgresql://me:SECRET\x01@host/db"};
    for (size_t i = 0; i < QR_COUNT(urls); i++) {
        QR_CLEANUP(qr_config_done) struct qr_config config;
        qr_err err;
        QR_CHECK_CODE(QR_CODE_INVALID_VALUE, load_env_only(&config, ENV("HOME=/h", urls[i]), &err));
        QR_CHECK_HAS("QUIRE_DATABASE_URL: the value of database.url (not shown)", err.msg);
        QR_CHECK_HAS("begins with postgresql://", err.msg);
        QR_CHECK(!strstr(err.msg, "SECRET"));
    }
}

/* ---- failures ---- */

static void load_under_faults(void *arg)
{
    struct qr_test *t = arg;
    const char *const env[] = {"HOME=/h", "QUIRE_LOG_FORMAT=json", "QUIRE_STRAY=1", NULL};
    const struct qr_config_flag flag = {"--set", QR_STR("database.connections"), QR_STR("9")};
    const struct qr_config_inputs inputs = {
        .io = qr_fault_io(), .file = qr_test_path(t, "q.ini"), .env = env, .flags = &flag, .flag_count = 1};
    struct qr_config config;
    qr_err err = {0};
    qr_config_init(&config);
    const qr_rc rc = qr_config_load(&config, &inputs, &err);
    const bool fired = qr_fault_fired();
    qr_fault_disarm();
    if (rc == QR_OK) {
        QR_CHECK_INT(QR_LOG_WARN, qr_config_number(&config, QR_CONFIG_LOG_LEVEL));
        QR_CHECK_INT(9, qr_config_number(&config, QR_CONFIG_DATABASE_CONNECTIONS));
    } else {
        QR_CHECK(fired);
        QR_CHECK(err.code == QR_CODE_OUT_OF_MEMORY || err.code == QR_CODE_IO_ERROR);
    }
    qr_config_done(&config);
}

QR_TEST(loading_survives_every_failure_of_memory_and_disk)
{
    qr_fault_memory_install();
    qr_err err;
    QR_CHECK_RC(QR_OK,
                qr_fs_replace(qr_io_system(), qr_test_path(t, "q.ini"), QR_STR("[log]\nlevel=warn\n"), 0600, &err));
    qr_fault_sweep(QR_FAULT_MEMORY, load_under_faults, t);
    qr_fault_sweep(QR_FAULT_IO_EIO, load_under_faults, t);
    qr_fault_sweep(QR_FAULT_IO_SHORT, load_under_faults, t);
    qr_fault_sweep(QR_FAULT_IO_EINTR, load_under_faults, t);
}
