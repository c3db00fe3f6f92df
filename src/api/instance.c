/* Opens and closes a data folder. Order on the way in: settings, folder, lock, database, identity; on the way out the
 * reverse. The database is not touched before the lock is held. */
#include "api/instance.h"

#include "api/backup.h"
#include "api/circuits.h"
#include "api/event_hub.h"
#include "api/wire.h"
#include "artifact/artifact_writer.h"
#include "base/mem.h"
#include "handler/embedding.h"
#include "store/meta.h"
#include "store/schema.h"

/* base/ must not know db/, so the defaults stand in both; here is where they meet */
enum {
#define QR_KEY(id, name, type, text, number, ...) DEFAULT_##id = (number),
#include "base/config_keys.h"
#undef QR_KEY
};
_Static_assert(DEFAULT_DATABASE_CONNECTIONS == (int)QR_DB_READERS, "database.connections");
_Static_assert(DEFAULT_DATABASE_READ_DEADLINE_MS == (int)QR_DB_READ_DEADLINE_MS, "database.read_deadline_ms");
_Static_assert(DEFAULT_DATABASE_WRITE_DEADLINE_MS == (int)QR_DB_WRITE_DEADLINE_MS, "database.write_deadline_ms");
_Static_assert(DEFAULT_DATABASE_WAL_SOFT_LIMIT == (int)QR_DB_WAL_SOFT_BYTES, "database.wal_soft_limit");
_Static_assert(DEFAULT_DATABASE_WAL_HARD_LIMIT == (int)QR_DB_WAL_HARD_BYTES, "database.wal_hard_limit");

static bool uses_sqlite(const struct quire *quire)
{
    return strcmp(qr_config_text(qr_instance_config(quire), QR_CONFIG_DATABASE_URL), "sqlite") == 0;
}

/* ---- settings ---- */

/* NULL = out of memory. */
static struct qr_instance_settings *create_settings(struct qr_instance_settings *before)
{
    struct qr_instance_settings *settings = qr_alloc_zero(sizeof *settings);
    if (settings) {
        qr_config_init(&settings->config);
        settings->before = before;
    }
    return settings;
}

/* Returns the one before it. */
static struct qr_instance_settings *free_newest(struct qr_instance_settings *settings)
{
    struct qr_instance_settings *before = settings->before;
    qr_config_done(&settings->config);
    qr_free(settings);
    return before;
}

static void free_settings(struct quire *quire)
{
    for (struct qr_instance_settings *settings = quire->settings; settings;) {
        settings = free_newest(settings);
    }
}

qr_rc qr_instance_reload(struct quire *quire, const struct qr_config_flag *settings, size_t count, qr_err *err)
{
    const struct qr_config_inputs inputs = {.io = quire->io, .flags = settings, .flag_count = count};
    struct qr_instance_settings *next = create_settings(quire->settings);
    if (!next) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the settings");
    }
    qr_rc rc = qr_config_load(&next->config, &inputs, err);
    if (rc == QR_OK) {
        rc = qr_config_keep_fixed(&next->config, &next->before->config, err);
    }
    if (rc != QR_OK || qr_config_equal(&next->config, &next->before->config)) {
        (void)free_newest(next);
        return rc;
    }
    quire->settings = next;
    return QR_OK;
}

/* ---- folder and lock ---- */

static qr_rc make_folder(const struct quire *quire, qr_err *err)
{
    enum { PATH_BYTES_MAX = 480 }; /* SQLite's paths end at 512, the names of its files included */
    const char *path = qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR);
    if (strlen(path) > PATH_BYTES_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the path of the data folder has %zu bytes; at most %d are allowed",
                       strlen(path), (int)PATH_BYTES_MAX);
    }
    const qr_rc rc = qr_fs_make_dirs(quire->io, path, 0700, err);
    if ((rc == QR_DENIED || rc == QR_NOT_FOUND || rc == QR_CONFLICT) && err) {
        return qr_fail(err, QR_CODE_DATA_READONLY, "%s", err->msg); /* has its own remedy, so its own code */
    }
    return rc;
}

static qr_rc take_lock(struct quire *quire, const char *program, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    qr_buf_printf(&path, "%s/quire.lock", qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR));
    QR_TRY(qr_buf_check(&path, err));
    return qr_file_lock_take(&quire->lock, quire->io, quire->clock, path.data, program, err);
}

/* ---- database ---- */

static qr_rc open_database(struct quire *quire, const struct qr_instance_options *options, qr_err *err)
{
    const struct qr_config *config = qr_instance_config(quire);
    QR_CLEANUP(qr_buf_done) struct qr_buf url = {0};
    if (uses_sqlite(quire)) {
        qr_buf_printf(&url, "sqlite:%s/quire.db", qr_config_text(config, QR_CONFIG_DATA_DIR));
    } else {
        qr_buf_add_text(&url, qr_config_text(config, QR_CONFIG_DATABASE_URL));
    }
    QR_TRY(qr_buf_check(&url, err));
    const struct qr_db_options db_options = {
        .url = url.data,
        .migrations = qr_schema_migrations,
        .migration_count = qr_schema_migration_count,
        .io = options->io,
        .clock = options->clock,
        .rand = options->rand,
        .readers_max = (int)qr_config_number(config, QR_CONFIG_DATABASE_CONNECTIONS),
        .read_deadline_ms = qr_config_number(config, QR_CONFIG_DATABASE_READ_DEADLINE_MS),
        .write_deadline_ms = qr_config_number(config, QR_CONFIG_DATABASE_WRITE_DEADLINE_MS),
        .wal_soft_bytes = qr_config_number(config, QR_CONFIG_DATABASE_WAL_SOFT_LIMIT),
        .wal_hard_bytes = qr_config_number(config, QR_CONFIG_DATABASE_WAL_HARD_LIMIT),
    };
    const qr_rc rc = qr_db_open(&quire->db, &db_options, err);
    if (rc != QR_OK && uses_sqlite(quire)) {
        qr_err_prefix(err, "the database in %s", qr_config_text(config, QR_CONFIG_DATA_DIR));
    }
    return rc;
}

/* ---- identity ---- */

static qr_rc add_identity(struct qr_tx *tx, void *arg, qr_err *err)
{
    const char *new_id = arg;
    int64_t now_ms;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    char now[QR_TIME_TEXT_SIZE];
    qr_time_format(now_ms, now);
    QR_TRY(qr_meta_add(tx, "instance_id", new_id, err));
    return qr_meta_add(tx, "created_at", now, err);
}

static qr_rc read_fact(struct qr_tx *tx, const char *key, char *ret_value, size_t value_size, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf value = {0};
    bool found;
    QR_TRY(qr_meta_find(tx, key, &found, &value, err));
    if (value.len >= value_size) {
        return qr_fail(err, QR_CODE_DATA_CORRUPT, "%s in the database has %zu bytes, which it never has", key,
                       value.len);
    }
    memcpy(ret_value, found ? value.data : "", value.len + 1);
    return QR_OK;
}

/* Leaves the fields empty in a database that has no identity yet. */
static qr_rc read_identity(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct quire *quire = arg;
    QR_TRY(read_fact(tx, "instance_id", quire->id, sizeof quire->id, err));
    return read_fact(tx, "created_at", quire->created_at, sizeof quire->created_at, err);
}

static qr_rc load_identity(struct quire *quire, qr_err *err)
{
    QR_TRY(qr_db_read(quire->db, read_identity, quire, err));
    if (quire->id[0]) {
        return QR_OK;
    }
    char new_id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(qr_uuid_next(&quire->ids), new_id);
    QR_TRY(qr_db_write(quire->db, QR_DURABLE, add_identity, new_id, err));
    return qr_db_read(quire->db, read_identity, quire, err); /* another process may have been first */
}

/* ---- what is beside the database ---- */

static qr_rc folder_below(const struct quire *quire, const char *name, char **ret_path, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    qr_buf_printf(&path, "%s/%s", qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR), name);
    QR_TRY(qr_buf_check(&path, err));
    QR_TRY(qr_fs_make_dirs(quire->io, path.data, 0700, err));
    *ret_path = qr_buf_take(&path, NULL);
    return QR_OK;
}

static qr_rc open_stores(struct quire *quire, const struct qr_instance_options *options, qr_err *err)
{
    QR_TRY(folder_below(quire, "work", &quire->work_dir, err));
    if (uses_sqlite(quire)) {
        QR_TRY(folder_below(quire, "artifacts", &quire->artifact_dir, err));
        QR_TRY(folder_below(quire, "index", &quire->index_dir, err));
    }
    quire->artifacts = (struct qr_artifacts){.dir = quire->artifact_dir, .io = options->io};
    QR_TRY(qr_artifacts_settle_left(&quire->artifacts, quire->db, err));
    quire->workflow = (struct qr_workflow){.db = quire->db, .ids = &quire->ids, .artifacts = &quire->artifacts};
    const int64_t vector_memory = qr_config_number(qr_instance_config(quire), QR_CONFIG_SEARCH_VECTOR_MEMORY);
    const struct qr_index_options index_options = {.dir = quire->index_dir,
                                                   .main_db = quire->db,
                                                   .vector_bytes_max = vector_memory ? vector_memory : -1,
                                                   .io = options->io,
                                                   .clock = options->clock,
                                                   .rand = options->rand};
    QR_TRY(qr_visible_memory_create(&quire->visible, err));
    const int64_t beat_ms = qr_config_number(qr_instance_config(quire), QR_CONFIG_SERVER_HEARTBEAT_MS);
    QR_TRY(qr_event_hub_create(&quire->events, quire, beat_ms, err));
    QR_TRY(qr_endpoints_open(&quire->endpoints, quire->clock, options->rand ? options->rand : qr_rand_system(),
                             qr_circuits_note, quire, err));
    struct qr_batcher_hooks hooks = qr_embedding_hooks(quire->db);
    hooks.counts = &quire->embed_counts;
    QR_TRY(qr_providers_open(
        &quire->providers,
        &(struct qr_providers_options){.clock = quire->clock, .endpoints = quire->endpoints, .hooks = hooks}, err));
    return qr_index_set_open(&quire->index, &index_options, err);
}

/* ---- the handle ---- */

static qr_rc open_parts(struct quire *quire, const struct qr_instance_options *options, qr_err *err)
{
    const struct qr_config_inputs inputs = {
        .io = quire->io, .flags = options->settings, .flag_count = options->setting_count};
    QR_TRY(qr_config_load(&quire->settings->config, &inputs, err));
    QR_TRY(make_folder(quire, err));
    if (uses_sqlite(quire)) {
        QR_TRY(take_lock(quire, options->program, err));
        qr_fs_sweep(quire->io, qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR));
        qr_backup_sweep(qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR));
    }
    QR_TRY(open_database(quire, options, err));
    QR_TRY(load_identity(quire, err));
    return open_stores(quire, options, err);
}

qr_rc qr_instance_open(struct quire **ret_quire, const struct qr_instance_options *options, qr_err *err)
{
    struct quire *quire = qr_alloc_zero(sizeof *quire);
    struct qr_instance_settings *settings = create_settings(NULL);
    if (!quire || !settings) {
        qr_free(quire);
        qr_free(settings);
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while opening the data folder");
    }
    quire->settings = settings;
    quire->io = options->io ? options->io : qr_io_system();
    quire->clock = options->clock ? options->clock : qr_clock_system();
    quire->rand = options->rand ? options->rand : qr_rand_system();
    qr_uuid_gen_init(&quire->ids, quire->clock, quire->rand);
    qr_mutex_init(&quire->work_lock);
    qr_meter_init(&quire->meter);
    qr_memo_init(&quire->memo);
    qr_mutex_init(&quire->openapi_lock);
    qr_health_init(&quire->health);
    quire->lock.fd = -1;
    const qr_rc rc = open_parts(quire, options, err);
    if (rc != QR_OK) {
        qr_instance_close(quire);
        return rc;
    }
    *ret_quire = quire;
    return QR_OK;
}

void qr_instance_close(struct quire *quire)
{

    if (!quire) {
        return;
    }
    if (!qr_instance_stop_work(quire, 0)) {
        return; /* left as it is, for the thread that cannot be ended */
    }
    qr_event_hub_free(quire->events);
    qr_providers_close(quire->providers);
    qr_endpoints_close(quire->endpoints);
    qr_visible_memory_free(quire->visible);
    qr_index_set_close(quire->index);
    qr_db_close(quire->db);
    qr_free(quire->artifact_dir);
    qr_free(quire->index_dir);
    qr_free(quire->work_dir);
    qr_file_lock_release(&quire->lock);
    qr_uuid_gen_done(&quire->ids);
    qr_mutex_done(&quire->work_lock);
    qr_buf_done(&quire->openapi_json);
    qr_buf_done(&quire->openapi_page);
    qr_mutex_done(&quire->openapi_lock);
    qr_memo_done(&quire->memo);
    qr_meter_done(&quire->meter);
    qr_health_done(&quire->health);
    free_settings(quire);
    qr_free(quire);
}
