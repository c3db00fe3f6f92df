/* What jobs may ask for, what search may show, and the index stores: chunks of a live generation are all there, and do not
 * change (I3, I8). */
#include "sim/workflow_oracle.h"

#include "model/settings.h"
#include "store/vectors.h"

#include <string.h>
#include <unistd.h>

enum { LIVE_MAX = 4000 };

/* Chunks of live generations, as they were seen first. */
static struct live {
    qr_uuid id;
    int64_t generation, count;
    uint64_t hash;
} lives[LIVE_MAX];
static int live_count;

void stores_begin(void)
{
    live_count = 0;
}

/* ---- calls that are paid for ---- */

void flow_oracle_check_call(const struct qr_job *job, int64_t since_ms)
{
    QR_CHECK(job);
    sqlite3_stmt *stmt =
        ask_statement("SELECT count(*) FROM job JOIN base ON base.id = job.base_id WHERE job.id = ?1 AND "
                      "job.state = 4 AND job.fence = ?2 AND base.status <> 3");
    ask_bind_id(stmt, 1, &job->id);
    sqlite3_bind_int64(stmt, 2, job->fence);
    if (ask_number(stmt) == 0) {
        QR_FAIL("I8: a %s that is not this worker's any more, since %lld ms, asks for something", job->type,
                (long long)since_ms);
    }
    if (qr_uuid_is_zero(job->item_id)) {
        return;
    }
    stmt = ask_statement("SELECT count(*) FROM item WHERE id = ?1 AND generation = ?2 AND status IN (2, 3) "
                         "AND " ASK_NOT_GONE("above.status = 8"));
    ask_bind_id(stmt, 1, &job->item_id);
    sqlite3_bind_int64(stmt, 2, job->generation);
    if (ask_number(stmt) == 0) {
        QR_FAIL("I8: a %s of a generation that is not wanted asks for something", job->type);
    }
}

void flow_oracle_check_not_cached(const unsigned char *key, size_t key_bytes, int64_t since_ms)
{
    sqlite3_stmt *stmt = ask_statement("SELECT count(*) FROM vector_cache WHERE key = ?1 AND added_at < ?2");
    sqlite3_bind_blob(stmt, 1, key, (int)key_bytes, SQLITE_TRANSIENT);
    sqlite3_bind_int64(stmt, 2, since_ms);
    if (ask_number(stmt) > 0) {
        QR_FAIL("PAID-1: a text is paid for that is in the cache since before the attempt began");
    }
}

/* ---- searching ---- */

bool flow_oracle_is_visible(qr_uuid base_id, qr_uuid item_id, int64_t generation)
{
    sqlite3_stmt *stmt =
        ask_statement("SELECT count(*) FROM item JOIN base ON base.id = item.base_id WHERE item.id = ?1 AND "
                      "item.live_generation = ?2 AND item.base_id = ?3 AND base.status <> 3 "
                      "AND " ASK_NOT_GONE("above.status = 8 OR above.enabled = 0"));
    ask_bind_id(stmt, 1, &item_id);
    sqlite3_bind_int64(stmt, 2, generation);
    ask_bind_id(stmt, 3, &base_id);
    return ask_number(stmt) == 1;
}

int64_t flow_oracle_visible_chunks(qr_uuid base_id)
{
    sqlite3_stmt *stmt =
        ask_statement("SELECT coalesce(sum(chunk_count), 0) FROM item WHERE base_id = ?1 AND "
                      "live_generation > 0 AND " ASK_NOT_GONE("above.status = 8 OR above.enabled = 0"));
    ask_bind_id(stmt, 1, &base_id);
    return ask_number(stmt);
}

/* ---- the index stores ---- */

static bool is_ready(qr_uuid id)
{
    sqlite3_stmt *stmt =
        ask_statement("SELECT count(*) FROM base WHERE id = ?1 AND status = 1 AND NOT EXISTS (SELECT 1 "
                      "FROM job WHERE base_id = base.id AND type = 'restore-base' AND state IN "
                      "(1, 2, 3, 4))");
    ask_bind_id(stmt, 1, &id);
    return ask_number(stmt) == 1;
}

/* One that was never written to has none yet. */
static bool has_own_store(qr_uuid id)
{
    char name[64];
    sqlite3 *store;
    sqlite3_stmt *stmt = ask_statement("SELECT index_stamp FROM base WHERE id = ?1"), *stamp;
    ask_bind_id(stmt, 1, &id);
    QR_CHECK(ask_next(stmt));
    char known[QR_INDEX_STAMP_SIZE];
    snprintf(known, sizeof known, "%s", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_reset(stmt);
    snprintf(name, sizeof name, "index/%s.db", ask_text_of(id));
    if (!known[0] || access(sim_path(name), F_OK) != 0) {
        return !known[0];
    }
    store = ask_open(sim_path(name));
    bool is_own = false;
    if (sqlite3_prepare_v2(store, "SELECT stamp FROM store", -1, &stamp, NULL) == SQLITE_OK) {
        is_own = ask_next(stamp) && strcmp((const char *)sqlite3_column_text(stamp, 0), known) == 0;
        sqlite3_finalize(stamp);
    }
    sqlite3_close(store);
    return is_own;
}

bool flow_oracle_is_settled(qr_uuid base_id)
{
    return is_ready(base_id) && has_own_store(base_id);
}

static void check_live(qr_uuid id, int64_t generation, int64_t count, uint64_t hash)
{
    for (int i = 0; i < live_count; i++) {
        if (qr_uuid_equal(lives[i].id, id) && lives[i].generation == generation) {
            if (lives[i].count != count || lives[i].hash != hash) {
                QR_FAIL("I3: generation %lld of item %s changed while it was live", (long long)generation,
                        ask_text_of(id));
            }
            return;
        }
    }
    QR_CHECK(live_count < LIVE_MAX);
    lives[live_count++] = (struct live){id, generation, count, hash};
}

static struct qr_base_models models_of(qr_uuid base_id)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena; /* only the keys are used */
    struct qr_base_models models;
    qr_err err = {0};
    qr_arena_init(&arena, 0);
    sqlite3_stmt *stmt = ask_statement("SELECT settings, live_embedding, previous_embedding FROM base WHERE id = ?1");
    ask_bind_id(stmt, 1, &base_id);
    QR_CHECK(ask_next(stmt));
    const struct qr_base base = {.settings = (const char *)sqlite3_column_text(stmt, 0),
                                 .live_embedding = (const char *)sqlite3_column_text(stmt, 1),
                                 .previous_embedding = (const char *)sqlite3_column_text(stmt, 2)};
    QR_CHECK_RC(QR_OK, qr_base_models(&base, &arena, &models, &err));
    sqlite3_reset(stmt);
    return models;
}

static void check_chunks_of(sqlite3 *store, qr_uuid id, int64_t generation, int64_t chunk_count, int64_t live_model)
{
    sqlite3_stmt *stmt;
    QR_CHECK_INT(SQLITE_OK,
                 sqlite3_prepare_v2(store,
                                    "SELECT text, EXISTS (SELECT 1 FROM vector_model m JOIN chunk_vector v ON v.id = "
                                    "(m.slot << 48) + chunk_row.id WHERE m.model = ?3) FROM chunk_row WHERE item_id = "
                                    "?1 AND generation = ?2 ORDER BY ordinal",
                                    -1, &stmt, NULL));
    ask_bind_id(stmt, 1, &id);
    sqlite3_bind_int64(stmt, 2, generation);
    sqlite3_bind_int64(stmt, 3, live_model);
    int64_t count = 0;
    uint64_t hash = 14695981039346656037ULL;
    while (ask_next(stmt)) {
        for (const unsigned char *at = sqlite3_column_text(stmt, 0); *at; at++) {
            hash = (hash ^ *at) * 1099511628211ULL;
        }
        if (live_model && !sqlite3_column_int(stmt, 1)) {
            QR_FAIL("I11: chunk %lld of the live generation %lld of item %s has no vector of the live model",
                    (long long)count, (long long)generation, ask_text_of(id));
        }
        count++;
    }
    sqlite3_finalize(stmt);
    if (count != chunk_count) {
        QR_FAIL("I3: item %s has %lld chunks of its live generation %lld in the index, not %lld", ask_text_of(id),
                (long long)count, (long long)generation, (long long)chunk_count);
    }
    check_live(id, generation, count, hash);
}

/* The fingerprint of the base's live model; "" = none. */
static void live_fingerprint(qr_uuid base_id, char ret_fingerprint[static QR_FINGERPRINT_SIZE])
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_settings settings;
    qr_err err = {0};
    qr_arena_init(&arena, 0);
    sqlite3_stmt *stmt =
        ask_statement("SELECT CASE WHEN live_embedding <> '' THEN live_embedding ELSE settings END FROM "
                      "base WHERE id = ?1");
    ask_bind_id(stmt, 1, &base_id);
    QR_CHECK(ask_next(stmt));
    QR_CHECK_RC(QR_OK, qr_settings_parse_text((const char *)sqlite3_column_text(stmt, 0), &arena, &settings, &err));
    qr_embedding_fingerprint(&settings.embedding, ret_fingerprint);
    sqlite3_reset(stmt);
}

/* PAID-2: what it has of the live model could be had again for nothing. */
static void check_cached(sqlite3 *store, qr_uuid id, int64_t generation, int64_t live_model, const char *fingerprint)
{
    sqlite3_stmt *stmt;
    QR_CHECK_INT(SQLITE_OK,
                 sqlite3_prepare_v2(store,
                                    "SELECT r.text FROM chunk_row r JOIN vector_model m ON m.model = ?3 JOIN "
                                    "chunk_vector v ON v.id = (m.slot << 48) + r.id AND v.dimension > 0 WHERE "
                                    "r.item_id = ?1 AND r.generation = ?2",
                                    -1, &stmt, NULL));
    ask_bind_id(stmt, 1, &id);
    sqlite3_bind_int64(stmt, 2, generation);
    sqlite3_bind_int64(stmt, 3, live_model);
    while (ask_next(stmt)) {
        unsigned char key[QR_VECTOR_KEY_BYTES];
        qr_vector_key(fingerprint, qr_str_of((const char *)sqlite3_column_text(stmt, 0)), key);
        sqlite3_stmt *cached =
            ask_statement("SELECT count(*) FROM vector_cache JOIN vector_use USING (key) WHERE key = ?1");
        sqlite3_bind_blob(cached, 1, key, sizeof key, SQLITE_TRANSIENT);
        if (ask_number(cached) == 0) {
            QR_FAIL("PAID-2: a vector that the live generation %lld of item %s uses is not in the cache",
                    (long long)generation, ask_text_of(id));
        }
    }
    sqlite3_finalize(stmt);
}

static void check_store(qr_uuid base_id)
{
    char name[64];
    snprintf(name, sizeof name, "index/%s.db", ask_text_of(base_id));
    sqlite3_stmt *stmt = ask_statement("SELECT id, live_generation, chunk_count FROM item WHERE base_id = ?1 AND "
                                       "live_generation > 0 AND " ASK_NOT_GONE("above.status = 8"));
    sqlite3 *store = NULL;
    const int64_t live_model = models_of(base_id).live_key;
    char fingerprint[QR_FINGERPRINT_SIZE];
    live_fingerprint(base_id, fingerprint);
    ask_bind_id(stmt, 1, &base_id);
    while (ask_next(stmt)) {
        store = store ? store : ask_open(sim_path(name));
        check_chunks_of(store, ask_id_at(stmt, 0), sqlite3_column_int64(stmt, 1), sqlite3_column_int64(stmt, 2),
                        live_model);
        check_cached(store, ask_id_at(stmt, 0), sqlite3_column_int64(stmt, 1), live_model, fingerprint);
    }
    sqlite3_close(store);
}

static int list_bases(qr_uuid *ret_ids)
{
    int count = 0;
    sqlite3_stmt *stmt = ask_statement("SELECT id FROM base");
    while (ask_next(stmt)) {
        QR_CHECK(count < ORACLE_BASES_MAX);
        ret_ids[count++] = ask_id_at(stmt, 0);
    }
    return count;
}

void flow_oracle_check_index(bool must_be_own)
{
    qr_uuid ids[ORACLE_BASES_MAX];
    const int count = list_bases(ids);
    for (int i = 0; i < count; i++) {
        if (flow_oracle_is_settled(ids[i])) {
            check_store(ids[i]);
        } else if (must_be_own) {
            QR_FAIL("RECOV-4: base %s has an index that is not its own", ask_text_of(ids[i]));
        }
    }
}

static void check_models_of(qr_uuid base_id)
{
    char name[64];
    const struct qr_base_models models = models_of(base_id);
    sqlite3_stmt *stmt =
        ask_statement("SELECT count(*) FROM base WHERE id = ?1 AND live_embedding <> '' AND NOT EXISTS "
                      "(SELECT 1 FROM job WHERE job.id = base.build_job_id AND code = "
                      "'chunks_failed')");
    ask_bind_id(stmt, 1, &base_id);
    if (ask_number(stmt)) {
        QR_FAIL("MODEL-8: the build of base %s has not come to its end", ask_text_of(base_id));
    }
    snprintf(name, sizeof name, "index/%s.db", ask_text_of(base_id));
    if (access(sim_path(name), F_OK) != 0) {
        return;
    }
    sqlite3 *store = ask_open(sim_path(name));
    QR_CHECK_INT(SQLITE_OK, sqlite3_prepare_v2(store, "SELECT model FROM vector_model", -1, &stmt, NULL));
    while (ask_next(stmt)) {
        const int64_t key = sqlite3_column_int64(stmt, 0);
        if (key != models.live_key && key != models.wanted_key && key != models.previous_key) {
            QR_FAIL("I7: there are vectors of a model that base %s does not know", ask_text_of(base_id));
        }
    }
    sqlite3_finalize(stmt);
    sqlite3_close(store);
}

void flow_oracle_check_models(void)
{
    qr_uuid ids[ORACLE_BASES_MAX];
    const int count = list_bases(ids);
    for (int i = 0; i < count; i++) {
        check_models_of(ids[i]);
    }
}

int stores_shown_version(qr_uuid base_id, qr_uuid item_id, int64_t generation, int number)
{
    char name[64], head[64];
    int version = 0;
    snprintf(name, sizeof name, "index/%s.db", ask_text_of(base_id));
    sqlite3 *store = ask_open(sim_path(name));
    sqlite3_stmt *stmt;
    QR_CHECK_INT(SQLITE_OK, sqlite3_prepare_v2(store,
                                               "SELECT text FROM chunk_row WHERE item_id = ?1 AND generation = ?2 "
                                               "AND ordinal = 0",
                                               -1, &stmt, NULL));
    ask_bind_id(stmt, 1, &item_id);
    sqlite3_bind_int64(stmt, 2, generation);
    if (ask_next(stmt)) {
        snprintf(head, sizeof head, "document %d version ", number);
        const char *at = strstr((const char *)sqlite3_column_text(stmt, 0), head);
        version = at ? atoi(at + strlen(head)) : -1;
    }
    sqlite3_finalize(stmt);
    sqlite3_close(store);
    return version;
}
