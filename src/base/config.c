/* Gathers the configuration from its sources. Every value, wherever it comes from, passes through set_value: so each is
 * checked, and each error says where to correct it. */
#include "base/config.h"

#include "base/fs.h"
#include "base/ini.h"

enum { ARENA_BYTES_MAX = 1 << 20 }; /* far more than every value at its longest */

void qr_config_init(struct qr_config *config)
{
    *config = (struct qr_config){0};
    qr_arena_init(&config->arena, ARENA_BYTES_MAX);
}

void qr_config_done(struct qr_config *config)
{
    qr_arena_done(&config->arena);
    *config = (struct qr_config){0};
}

const char *qr_config_source_name(enum qr_config_source source)
{
    static const char *const names[] = {"default", "file", "environment", "flag"};
    return names[source];
}

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while reading the configuration");
}

/* The value of a variable; NULL when it is empty or not set. */
static const char *env_value(const char *const *env, const char *name)
{
    const size_t len = strlen(name);
    for (; env && *env; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') {
            return (*env)[len + 1] ? *env + len + 1 : NULL;
        }
    }
    return NULL;
}

/* ---- one value ---- */

struct place {
    enum qr_config_source source;
    const char *origin; /* lives in the arena, or for ever */
};

/* "~/x" below the home folder; other paths as they are. */
static qr_rc expand_path(struct qr_config *config, const struct qr_config_inputs *inputs, const char **path,
                         qr_err *err)
{
    if (strncmp(*path, "~/", 2) != 0) {
        return QR_OK;
    }
    const char *home = env_value(inputs->env, "HOME");
    if (!home) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s: HOME is not set, so ~/ means nothing", *path);
    }
    *path = qr_arena_printf(&config->arena, "%s/%s", home, *path + 2);
    return *path ? QR_OK : out_of_memory(err);
}

static qr_rc check_value(struct qr_config *config, const struct qr_config_inputs *inputs,
                         const struct qr_config_key *key, struct qr_config_value *value, qr_err *err)
{
    QR_TRY(qr_config_parse_value(key, qr_str_of(value->text), &value->number, err));
    if (key->type != QR_TYPE_PATH) {
        return QR_OK;
    }
    QR_TRY(expand_path(config, inputs, &value->text, err));
    if (value->source == QR_SOURCE_FILE && value->text[0] != '/' && strcmp(value->text, key->text) != 0) {
        /* a file has no current folder: the value would mean another place with every call. The default is no place:
         * "none" */
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s = \"%s\" is not allowed; in a file a path begins with / or ~/",
                       key->name, value->text);
    }
    return QR_OK;
}

static qr_rc set_value(struct qr_config *config, const struct qr_config_inputs *inputs, enum qr_config_id id,
                       qr_str text, struct place place, qr_err *err)
{
    struct qr_config_value value = {.source = place.source, .origin = place.origin};
    value.text = qr_arena_copy(&config->arena, text);
    if (!value.text || !value.origin) {
        return out_of_memory(err);
    }
    const qr_rc rc = check_value(config, inputs, qr_config_key(id), &value, err);
    if (rc != QR_OK) {
        qr_err_prefix(err, "%s", place.source == QR_SOURCE_DEFAULT ? "default" : place.origin);
        return rc;
    }
    config->values[id] = value;
    return QR_OK;
}

static qr_rc find_key(qr_str name, const char *origin, enum qr_config_id *ret_id, qr_err *err)
{
    const qr_rc rc = qr_config_require(name, ret_id, err);
    if (rc != QR_OK) {
        qr_err_prefix(err, "%s", origin);
    }
    return rc;
}

/* ---- the sources ---- */

static qr_rc set_defaults(struct qr_config *config, const struct qr_config_inputs *inputs, qr_err *err)
{
    const struct place place = {QR_SOURCE_DEFAULT, ""};
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    const char *data_home = env_value(inputs->env, "XDG_DATA_HOME");
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        qr_buf_clear(&text);
        if (id == QR_CONFIG_DATA_DIR && data_home && data_home[0] == '/') { /* the XDG rules: a relative one is void */
            qr_buf_printf(&text, "%s/quire", data_home);
        } else if (id == QR_CONFIG_DATA_DIR && !env_value(inputs->env, "HOME")) {
            continue; /* no default: require_data_dir */
        } else {
            qr_config_add_default(&text, qr_config_key(id));
        }
        QR_TRY(qr_buf_check(&text, err));
        QR_TRY(set_value(config, inputs, id, qr_buf_str(&text), place, err));
    }
    return QR_OK;
}

struct file_reading {
    struct qr_config *config;
    const struct qr_config_inputs *inputs;
};

static qr_rc take_file_entry(void *arg, const struct qr_ini_entry *entry, qr_err *err)
{
    const struct file_reading *reading = arg;
    struct qr_config *config = reading->config;
    const char *name = qr_arena_printf(&config->arena, "%.*s.%.*s", QR_STR_ARG(entry->section), QR_STR_ARG(entry->key));
    const char *origin = qr_arena_printf(&config->arena, "%s:%d", config->file, entry->line);
    if (!name || !origin) {
        return out_of_memory(err);
    }
    enum qr_config_id id;
    QR_TRY(find_key(qr_str_of(name), origin, &id, err));
    if (config->values[id].source == QR_SOURCE_FILE) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "%s: %s is set a second time; the first is %s", origin, name,
                       config->values[id].origin);
    }
    return set_value(config, reading->inputs, id, entry->value, (struct place){QR_SOURCE_FILE, origin}, err);
}

/* Which file to read: *ret_path NULL = none; a named one must exist. */
static qr_rc choose_file(struct qr_config *config, const struct qr_config_inputs *inputs, const char **ret_path,
                         bool *ret_named, qr_err *err)
{
    const char *named = inputs->file ? inputs->file : env_value(inputs->env, "QUIRE_CONFIG");
    const char *config_home = env_value(inputs->env, "XDG_CONFIG_HOME");
    const char *home = env_value(inputs->env, "HOME");
    *ret_named = named != NULL;
    if (named) {
        *ret_path = qr_arena_copy(&config->arena, qr_str_of(named));
    } else if (config_home && config_home[0] == '/') {
        *ret_path = qr_arena_printf(&config->arena, "%s/quire/quire.ini", config_home);
    } else if (home) {
        *ret_path = qr_arena_printf(&config->arena, "%s/.config/quire/quire.ini", home);
    } else {
        *ret_path = NULL;
        return QR_OK;
    }
    if (*ret_path && !qr_config_is_plain(qr_str_of(*ret_path))) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the path of the configuration file is empty, too long or not text");
    }
    return *ret_path ? QR_OK : out_of_memory(err);
}

static qr_rc load_file(struct qr_config *config, const struct qr_config_inputs *inputs, qr_err *err)
{
    const char *path;
    bool named;
    QR_TRY(choose_file(config, inputs, &path, &named, err));
    if (!path) {
        return QR_OK;
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    const qr_rc rc = qr_fs_read(inputs->io, path, QR_INI_FILE_BYTES_MAX, &text, err);
    if (rc == QR_NOT_FOUND && !named) {
        return QR_OK;
    }
    if (rc != QR_OK) {
        qr_err_prefix(err, "configuration file");
        return rc;
    }
    config->file = path;
    struct file_reading reading = {config, inputs};
    return qr_ini_parse(qr_buf_str(&text), path, take_file_entry, &reading, err);
}

/* The key that a variable sets, or QR_CONFIG_COUNT. */
static enum qr_config_id key_of_variable(qr_str name)
{
    if (qr_str_equal(name, QR_STR("QUIRE_DATA"))) {
        return QR_CONFIG_DATA_DIR;
    }
    enum qr_config_id id = 0;
    for (; id < QR_CONFIG_COUNT; id++) {
        char env_name[QR_CONFIG_ENV_SIZE];
        qr_config_env_name(qr_config_key(id), env_name);
        if (qr_str_equal(name, qr_str_of(env_name))) {
            break;
        }
    }
    return id;
}

/* A name that no shell could set is nobody's typing mistake. */
static bool is_variable_name(const char *name)
{
    return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static qr_rc take_variable(struct qr_config *config, const struct qr_config_inputs *inputs, qr_str name, qr_str value,
                           qr_err *err)
{
    const char *origin = qr_arena_copy(&config->arena, name);
    if (!origin) {
        return out_of_memory(err);
    }
    const enum qr_config_id id = key_of_variable(name);
    if (id == QR_CONFIG_COUNT) {
        const bool ours = strcmp(origin, "QUIRE_CONFIG") == 0 || strcmp(origin, "QUIRE_FAILPOINTS") == 0 ||
                          strcmp(origin, "QUIRE_KEY") == 0 || strcmp(origin, "QUIRE_SERVER") == 0 ||
                          strcmp(origin, "QUIRE_READER_FAILPOINTS") == 0;
        if (!ours && is_variable_name(origin) && config->stray_count < QR_CONFIG_STRAYS_MAX) {
            config->strays[config->stray_count++] = origin;
        }
        return QR_OK;
    }
    if (config->values[id].source == QR_SOURCE_ENVIRONMENT) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s and %s are both set; keep one", config->values[id].origin,
                       origin);
    }
    return set_value(config, inputs, id, value, (struct place){QR_SOURCE_ENVIRONMENT, origin}, err);
}

static qr_rc load_env(struct qr_config *config, const struct qr_config_inputs *inputs, qr_err *err)
{
    for (const char *const *at = inputs->env; at && *at; at++) {
        qr_str value = qr_str_of(*at);
        const qr_str name = qr_str_split(&value, '=');
        if (value.len && qr_str_starts_with(name, QR_STR("QUIRE_"))) {
            QR_TRY(take_variable(config, inputs, name, value, err));
        }
    }
    return QR_OK;
}

static qr_rc load_flags(struct qr_config *config, const struct qr_config_inputs *inputs, qr_err *err)
{
    for (size_t i = 0; i < inputs->flag_count; i++) {
        const struct qr_config_flag *flag = &inputs->flags[i];
        const char *origin = qr_arena_copy(&config->arena, qr_str_of(flag->flag));
        enum qr_config_id id;
        QR_TRY(find_key(flag->key, flag->flag, &id, err));
        QR_TRY(set_value(config, inputs, id, flag->value, (struct place){QR_SOURCE_FLAG, origin}, err));
    }
    return QR_OK;
}

/* ---- rules over several values ---- */

static qr_rc require_data_dir(const struct qr_config *config, qr_err *err)
{
    if (!config->values[QR_CONFIG_DATA_DIR].text) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "neither HOME nor XDG_DATA_HOME is set: name the data folder with --data or QUIRE_DATA");
    }
    return QR_OK;
}

static qr_rc check_database_url(const struct qr_config *config, qr_err *err)
{
    const struct qr_config_value *url = &config->values[QR_CONFIG_DATABASE_URL];
    const qr_str text = qr_str_of(url->text);
    if (qr_str_equal(text, QR_STR("sqlite")) || qr_str_starts_with(text, QR_STR("postgresql://")) ||
        qr_str_starts_with(text, QR_STR("postgres://"))) {
        return QR_OK;
    }
    return qr_fail(err, QR_CODE_INVALID_VALUE, "%s: the value of database.url (not shown) is not allowed; allowed: %s",
                   url->origin, qr_config_key(QR_CONFIG_DATABASE_URL)->choices);
}

static const char *origin_or_default(const struct qr_config_value *value)
{
    return value->source == QR_SOURCE_DEFAULT ? "default" : value->origin;
}

/* Twice: the log may grow by a whole batch between the background's start and the writer's stop. */
static qr_rc check_wal_limits(const struct qr_config *config, qr_err *err)
{
    const struct qr_config_value *soft = &config->values[QR_CONFIG_DATABASE_WAL_SOFT_LIMIT];
    const struct qr_config_value *hard = &config->values[QR_CONFIG_DATABASE_WAL_HARD_LIMIT];
    if (hard->number / 2 >= soft->number) {
        return QR_OK;
    }
    return qr_fail(err, QR_CODE_INVALID_VALUE,
                   "database.wal_hard_limit = %s (%s) must be at least twice database.wal_soft_limit = %s (%s)",
                   hard->text, origin_or_default(hard), soft->text, origin_or_default(soft));
}

static bool is_none(const struct qr_config *config, enum qr_config_id id)
{
    return strcmp(qr_config_text(config, id), "none") == 0;
}

static qr_rc check_tls(const struct qr_config *config, qr_err *err)
{
    const bool has_certificate = !is_none(config, QR_CONFIG_SERVER_TLS_CERTIFICATE);
    if (has_certificate == !is_none(config, QR_CONFIG_SERVER_TLS_KEY)) {
        return QR_OK;
    }
    const enum qr_config_id given = has_certificate ? QR_CONFIG_SERVER_TLS_CERTIFICATE : QR_CONFIG_SERVER_TLS_KEY;
    const enum qr_config_id missing = has_certificate ? QR_CONFIG_SERVER_TLS_KEY : QR_CONFIG_SERVER_TLS_CERTIFICATE;
    return qr_fail(err, QR_CODE_INVALID_VALUE, "%s: %s is set and %s is not; HTTPS needs both",
                   config->values[given].origin, qr_config_key(given)->name, qr_config_key(missing)->name);
}

qr_rc qr_config_load(struct qr_config *config, const struct qr_config_inputs *inputs, qr_err *err)
{
    QR_TRY(set_defaults(config, inputs, err));
    QR_TRY(load_file(config, inputs, err));
    QR_TRY(load_env(config, inputs, err));
    QR_TRY(load_flags(config, inputs, err));
    QR_TRY(require_data_dir(config, err));
    QR_TRY(check_database_url(config, err));
    QR_TRY(check_wal_limits(config, err));
    return check_tls(config, err);
}

bool qr_config_nearest_env(const char *name, char ret_name[static QR_CONFIG_ENV_SIZE])
{
    char env_names[QR_CONFIG_COUNT][QR_CONFIG_ENV_SIZE];
    struct qr_nearest nearest = qr_nearest_to(qr_str_of(name));
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        qr_config_env_name(qr_config_key(id), env_names[id]);
        qr_nearest_offer(&nearest, qr_str_of(env_names[id]));
    }
    if (!nearest.name.ptr) {
        return false;
    }
    memcpy(ret_name, nearest.name.ptr, nearest.name.len + 1);
    return true;
}

/* ---- another configuration for a program that runs ---- */

bool qr_config_same(const struct qr_config *a, const struct qr_config *b, enum qr_config_id id)
{
    return strcmp(qr_config_text(a, id), qr_config_text(b, id)) == 0;
}

bool qr_config_equal(const struct qr_config *a, const struct qr_config *b)
{
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        if (!qr_config_same(a, b, id)) {
            return false;
        }
    }
    return true;
}

/* A server that speaks HTTPS takes another certificate, but does not begin or end to speak it. */
static bool switches_tls(const struct qr_config *next, const struct qr_config *now, enum qr_config_id id)
{
    return (id == QR_CONFIG_SERVER_TLS_CERTIFICATE || id == QR_CONFIG_SERVER_TLS_KEY) &&
           is_none(next, id) != is_none(now, id);
}

bool qr_config_needs_start(const struct qr_config *next, const struct qr_config *now, enum qr_config_id id)
{
    return !qr_config_same(next, now, id) &&
           (qr_config_key(id)->when == QR_CONFIG_AT_START || switches_tls(next, now, id));
}

qr_rc qr_config_keep_fixed(struct qr_config *next, const struct qr_config *now, qr_err *err)
{
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        if (!qr_config_needs_start(next, now, id)) {
            continue;
        }
        struct qr_config_value value = now->values[id];
        value.text = qr_arena_copy(&next->arena, qr_str_of(value.text));
        value.origin = qr_arena_copy(&next->arena, qr_str_of(value.origin));
        if (!value.text || !value.origin) {
            return out_of_memory(err);
        }
        next->values[id] = value;
    }
    return QR_OK;
}
