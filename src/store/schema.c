/* The migrations of the main database, in the SQL of db/sql.h. A step that was released never changes again: a change
 * is a new step at the end. */
#include "store/schema.h"

const struct qr_migration qr_schema_migrations[] = {
    {
        .name = "meta",
        /* facts about this instance; store/meta.h */
        .sql = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;",
    },
    {
        .name = "jobs",
        /* store/jobs.h. States are numbers of model/job.h. Each partial index holds just the rows that one repeated
         * question is about, so that its cost does not grow with the others. */
        .sql = "CREATE TABLE worker (id BLOB PRIMARY KEY, name TEXT NOT NULL, started_at INTEGER NOT NULL, "
               "lease_until INTEGER NOT NULL, dead INTEGER NOT NULL) STRICT;"
               "CREATE TABLE queue_pause (queue INTEGER PRIMARY KEY, since INTEGER NOT NULL) STRICT;"
               "CREATE TABLE job (id BLOB PRIMARY KEY, queue INTEGER NOT NULL, type TEXT NOT NULL, "
               "base_id BLOB NOT NULL, item_id BLOB, generation INTEGER NOT NULL, state INTEGER NOT NULL, "
               "priority INTEGER NOT NULL, run_at INTEGER NOT NULL, idempotency_key BLOB, serial_key BLOB, "
               "args TEXT NOT NULL, fence INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, "
               "crashes INTEGER NOT NULL DEFAULT 0, suspect INTEGER NOT NULL DEFAULT 0, "
               "time_limit INTEGER NOT NULL, worker_id BLOB, "
               "progress_done INTEGER NOT NULL DEFAULT 0, progress_total INTEGER NOT NULL DEFAULT 0, "
               "progress_at INTEGER NOT NULL DEFAULT 0, "
               "code TEXT NOT NULL DEFAULT '', message TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL, "
               "claimed_at INTEGER NOT NULL DEFAULT 0, finished_at INTEGER NOT NULL DEFAULT 0) STRICT;"
               "CREATE INDEX job_ready ON job (queue, suspect, base_id, priority, run_at, id) WHERE state = 3;"
               "CREATE INDEX job_due ON job (run_at) WHERE state = 2;"
               "CREATE INDEX job_running ON job (worker_id) WHERE state = 4;"
               "CREATE INDEX job_failed ON job (id) WHERE state = 6;"
               "CREATE INDEX job_listed ON job (queue, state, id) WHERE state = 1 OR state = 2 OR state = 6;"
               "CREATE INDEX job_finished ON job (finished_at) WHERE finished_at > 0;"
               "CREATE INDEX job_item ON job (item_id) WHERE item_id IS NOT NULL;"
               "CREATE UNIQUE INDEX job_idempotency ON job (idempotency_key) "
               "WHERE idempotency_key IS NOT NULL AND state IN (1, 2, 3, 4);"
               "CREATE UNIQUE INDEX job_serial_active ON job (serial_key) "
               "WHERE serial_key IS NOT NULL AND state IN (2, 3, 4);"
               "CREATE INDEX job_serial_blocked ON job (serial_key, priority, id) WHERE state = 1;"
               "CREATE TABLE job_attempt (job_id BLOB NOT NULL REFERENCES job (id) ON DELETE CASCADE, "
               "fence INTEGER NOT NULL, worker_id BLOB, claimed_at INTEGER NOT NULL, ended_at INTEGER NOT NULL, "
               "outcome TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, PRIMARY KEY (job_id, fence)) STRICT;"
               "CREATE TABLE beat_slot (name TEXT NOT NULL, slot INTEGER NOT NULL, PRIMARY KEY (name, slot)) STRICT;",
    },
    {
        .name = "knowledge",
        /* store/{bases,items,change,events,runs,vectors}.h, artifact/artifact.h. A root's parent_id is its base, so that
         * one index orders the children of everything. */
        .sql = "CREATE TABLE base (id BLOB PRIMARY KEY, name TEXT NOT NULL, status INTEGER NOT NULL, "
               "error_code TEXT NOT NULL DEFAULT '', error_message TEXT NOT NULL DEFAULT '', settings TEXT NOT NULL, "
               "version INTEGER NOT NULL, vis_seq INTEGER NOT NULL DEFAULT 0, event_seq INTEGER NOT NULL DEFAULT 0, "
               "index_stamp TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL) STRICT;"
               "CREATE UNIQUE INDEX base_name ON base (name) WHERE status <> 3;"
               "CREATE TABLE item (id BLOB PRIMARY KEY, base_id BLOB NOT NULL, parent_id BLOB NOT NULL, "
               "depth INTEGER NOT NULL, path BLOB NOT NULL, type INTEGER NOT NULL, is_container INTEGER NOT NULL, "
               "name TEXT NOT NULL, key BLOB NOT NULL, source BLOB NOT NULL, source_hash BLOB, "
               "mime TEXT NOT NULL DEFAULT '', size_bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, "
               "content_hash BLOB, status INTEGER NOT NULL, generation INTEGER NOT NULL, "
               "live_generation INTEGER NOT NULL DEFAULT 0, text_generation INTEGER NOT NULL DEFAULT 0, "
               "chunk_generation INTEGER NOT NULL DEFAULT 0, expanded_generation INTEGER NOT NULL DEFAULT 0, "
               "force_generation INTEGER NOT NULL DEFAULT 0, seen_generation INTEGER NOT NULL, "
               "n_completed INTEGER NOT NULL DEFAULT 0, n_failed INTEGER NOT NULL DEFAULT 0, "
               "n_active INTEGER NOT NULL DEFAULT 0, n_idle INTEGER NOT NULL DEFAULT 0, "
               "expand_code TEXT NOT NULL DEFAULT '', error_stage TEXT NOT NULL DEFAULT '', "
               "error_code TEXT NOT NULL DEFAULT '', error_message TEXT NOT NULL DEFAULT '', "
               "error_generation INTEGER NOT NULL DEFAULT 0, error_at INTEGER NOT NULL DEFAULT 0, "
               "warnings TEXT NOT NULL DEFAULT '', enabled INTEGER NOT NULL DEFAULT 1, "
               "attributes TEXT NOT NULL DEFAULT '', options TEXT NOT NULL DEFAULT '', "
               "chunk_count INTEGER NOT NULL DEFAULT 0, token_count INTEGER NOT NULL DEFAULT 0, "
               "wanted INTEGER NOT NULL, run_id BLOB, ticket TEXT NOT NULL DEFAULT '', "
               "ticket_at INTEGER NOT NULL DEFAULT 0, cleanup_job_id BLOB, needs INTEGER NOT NULL DEFAULT 1, "
               "created_at INTEGER "
               "NOT NULL, updated_at INTEGER NOT NULL, "
               "indexed_at INTEGER NOT NULL DEFAULT 0) STRICT;"
               "CREATE UNIQUE INDEX item_tree ON item (base_id, path);"
               "CREATE UNIQUE INDEX item_child ON item (parent_id, key) WHERE status <> 8;"
               "CREATE INDEX item_root ON item (base_id, source_hash) WHERE source_hash IS NOT NULL;"
               "CREATE INDEX item_active ON item (base_id, path) WHERE status IN (2, 3);"
               "CREATE INDEX item_idle ON item (base_id, path) WHERE status = 1;"
               "CREATE INDEX item_waiting ON item (base_id, needs, depth, id) WHERE status = 1;"
               "CREATE INDEX item_deleting ON item (id) WHERE status = 8;"
               "CREATE INDEX item_run ON item (run_id, id) WHERE run_id IS NOT NULL;"
               "CREATE TABLE item_generation (item_id BLOB NOT NULL, generation INTEGER NOT NULL, "
               "at INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (item_id, generation)) STRICT;"
               "CREATE TABLE event (base_id BLOB NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, "
               "item_id BLOB, kind INTEGER NOT NULL, generation INTEGER NOT NULL, status INTEGER NOT NULL, "
               "code TEXT NOT NULL, PRIMARY KEY (base_id, seq)) STRICT;"
               "CREATE TABLE artifact (id BLOB PRIMARY KEY, base_id BLOB NOT NULL, item_id BLOB NOT NULL, "
               "generation INTEGER NOT NULL, kind INTEGER NOT NULL, size_bytes INTEGER NOT NULL, hash BLOB NOT NULL, "
               "file TEXT NOT NULL, bytes BLOB) STRICT;"
               "CREATE INDEX artifact_item ON artifact (item_id, kind, generation);"
               "CREATE INDEX artifact_file ON artifact (file) WHERE file <> '';"
               "CREATE TABLE asset (id BLOB NOT NULL, base_id BLOB NOT NULL, item_id BLOB NOT NULL, "
               "generation INTEGER NOT NULL, kind TEXT NOT NULL, mime TEXT NOT NULL, place TEXT NOT NULL, "
               "artifact_id BLOB NOT NULL, analysis_status INTEGER NOT NULL, text TEXT NOT NULL, code TEXT NOT NULL, "
               "message TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, "
               "analysed_generation INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (id, generation)) STRICT;"
               "CREATE INDEX asset_item ON asset (item_id, generation);"
               "CREATE INDEX asset_pending ON asset (base_id, id) WHERE analysis_status = 1;"
               "CREATE TABLE run (id BLOB PRIMARY KEY, base_id BLOB NOT NULL, stages INTEGER NOT NULL, "
               "status INTEGER NOT NULL, level INTEGER NOT NULL, level_gate INTEGER NOT NULL, "
               "active INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, "
               "finished_at INTEGER NOT NULL DEFAULT 0) STRICT;"
               "CREATE INDEX run_base ON run (base_id, id);"
               "CREATE INDEX run_open ON run (base_id, id) WHERE status = 1;"
               "CREATE TABLE run_stage (run_id BLOB NOT NULL, stage INTEGER NOT NULL, total INTEGER NOT NULL, "
               "done INTEGER NOT NULL, failed INTEGER NOT NULL, PRIMARY KEY (run_id, stage)) STRICT;"
               "CREATE TABLE vector_cache (key BLOB PRIMARY KEY, dimension INTEGER NOT NULL, vector BLOB NOT NULL, "
               "added_at INTEGER NOT NULL) STRICT;",
    },
    {
        .name = "index_rows",
        /* index/rows_postgres.c; on SQLite the index of a base is a file of its own */
        .sql = "/*pg CREATE TABLE index_store (base_id BLOB PRIMARY KEY, stamp TEXT NOT NULL, syncs INTEGER NOT NULL);"
               "CREATE TABLE index_chunk (base_id BLOB NOT NULL, item_id BLOB NOT NULL, generation INTEGER NOT NULL, "
               "ordinal INTEGER NOT NULL, byte_start INTEGER NOT NULL, byte_end INTEGER NOT NULL, "
               "line_start INTEGER NOT NULL, line_end INTEGER NOT NULL, page INTEGER NOT NULL, "
               "token_count INTEGER NOT NULL, title TEXT NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL, "
               "words tsvector NOT NULL GENERATED ALWAYS AS (setweight(to_tsvector('simple', title), 'A') || "
               "setweight(to_tsvector('simple', heading), 'B') || to_tsvector('simple', text)) STORED, "
               "PRIMARY KEY (base_id, item_id, generation, ordinal));"
               "CREATE INDEX index_chunk_words ON index_chunk USING gin (words);"
               "CREATE TABLE index_vector (base_id BLOB NOT NULL, item_id BLOB NOT NULL, generation INTEGER NOT NULL, "
               "ordinal INTEGER NOT NULL, dimension INTEGER NOT NULL, vector BLOB NOT NULL, "
               "PRIMARY KEY (base_id, item_id, generation, ordinal), "
               "FOREIGN KEY (base_id, item_id, generation, ordinal) REFERENCES index_chunk ON DELETE CASCADE); */",
    },
    {
        .name = "index_words",
        /* words come from our own tokenizer; those of rows from before are made by the rebuild that its version asks for */
        .sql = "/*pg ALTER TABLE index_store ADD COLUMN languages INTEGER NOT NULL DEFAULT 0;"
               "ALTER TABLE index_store ADD COLUMN tokenizer INTEGER NOT NULL DEFAULT 0;"
               "ALTER TABLE index_chunk DROP COLUMN words;"
               "ALTER TABLE index_chunk ADD COLUMN words tsvector NOT NULL DEFAULT '';"
               "CREATE INDEX index_chunk_words ON index_chunk USING gin (words); */",
    },
    {
        .name = "item_orders",
        /* store/items_sort.c: a page of a list costs what it shows, in any order; and what folders say of their files can be
         * summed up without the files */
        .sql = "CREATE INDEX item_by_age ON item (base_id, id);"
               "CREATE INDEX item_by_name ON item (base_id, name, id);"
               "CREATE INDEX item_by_update ON item (base_id, updated_at, id);"
               "CREATE INDEX item_by_size ON item (base_id, size_bytes, id);"
               "CREATE INDEX item_container ON item (base_id, path) WHERE is_container = 1;",
    },
    {
        .name = "circuits",
        /* store/circuits.h */
        .sql =
            "CREATE TABLE circuit (id BLOB PRIMARY KEY, url TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, "
            "since INTEGER NOT NULL, next_try INTEGER NOT NULL) STRICT;",
    },
    {
        .name = "embedding_models",
        /* store/models.h; and of a vector how much of its text it is of, 0 = all */
        .sql = "CREATE TABLE embedding_model (fingerprint TEXT PRIMARY KEY, dimension INTEGER NOT NULL, "
               "has_shortened INTEGER NOT NULL, added_at INTEGER NOT NULL) STRICT;"
               "ALTER TABLE vector_cache ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0;",
    },
    {
        .name = "vector_use",
        /* store/vectors.h, store/vector_rounds.h. Apart from the vectors, which would be written again with every change. */
        .sql = "CREATE TABLE vector_use (key BLOB PRIMARY KEY, used_at INTEGER NOT NULL, size_bytes INTEGER NOT NULL, "
               "round INTEGER NOT NULL) STRICT;"
               "INSERT INTO vector_use (key, used_at, size_bytes, round) "
               "SELECT key, added_at, 4 * dimension + 128, 0 FROM vector_cache;"
               "CREATE INDEX vector_use_age ON vector_use (used_at, key);"
               "CREATE TABLE vector_round (id INTEGER PRIMARY KEY, number INTEGER NOT NULL DEFAULT 0, "
               "phase INTEGER NOT NULL DEFAULT 0, to_bytes INTEGER NOT NULL DEFAULT 0, "
               "looked_at INTEGER NOT NULL DEFAULT 0, base_id BLOB, item_id BLOB, "
               "generation INTEGER NOT NULL DEFAULT 0, ordinal INTEGER NOT NULL DEFAULT 0, "
               "used_at INTEGER NOT NULL DEFAULT 0, key BLOB, excess_bytes INTEGER NOT NULL DEFAULT 0, "
               "freed_count INTEGER NOT NULL DEFAULT 0, freed_bytes INTEGER NOT NULL DEFAULT 0, "
               "began_at INTEGER NOT NULL DEFAULT 0, ended_at INTEGER NOT NULL DEFAULT 0, "
               "put_off TEXT NOT NULL DEFAULT '') STRICT;"
               "INSERT INTO vector_round (id) VALUES (1);",
    },
    {
        .name = "base_models",
        /* store/bases.h; of the vectors that PostgreSQL has from before nobody knows the model: the rebuild that the
         * tokenizer's version asks for takes them from the cache */
        .sql = "ALTER TABLE base ADD COLUMN live_embedding TEXT NOT NULL DEFAULT '';"
               "ALTER TABLE base ADD COLUMN previous_embedding TEXT NOT NULL DEFAULT '';"
               "ALTER TABLE base ADD COLUMN vector_epoch INTEGER NOT NULL DEFAULT 0;"
               "ALTER TABLE base ADD COLUMN build_missed INTEGER NOT NULL DEFAULT 0;"
               "ALTER TABLE base ADD COLUMN build_failed INTEGER NOT NULL DEFAULT 0;"
               "ALTER TABLE base ADD COLUMN build_job_id BLOB;"
               "/*pg DELETE FROM index_vector;"
               "ALTER TABLE index_vector ADD COLUMN model INTEGER NOT NULL;"
               "ALTER TABLE index_vector DROP CONSTRAINT index_vector_pkey;"
               "ALTER TABLE index_vector ADD PRIMARY KEY (base_id, model, item_id, generation, ordinal);"
               "CREATE INDEX index_vector_chunk ON index_vector (base_id, item_id, generation, ordinal);"
               "UPDATE index_store SET tokenizer = 0; */",
    },
    {
        .name = "model_paces",
        /* store/models.h */
        .sql = "ALTER TABLE embedding_model ADD COLUMN texts_a_minute INTEGER NOT NULL DEFAULT 0;",
    },
    {
        .name = "keys",
        /* store/keys.h, store/members.h. Of a secret only its hash. A key that was ended stays for a while, so that its name in
         * the audit log means something. */
        .sql = "CREATE TABLE api_key (id BLOB PRIMARY KEY, name TEXT NOT NULL, is_admin INTEGER NOT NULL, "
               "created_at INTEGER NOT NULL, used_at INTEGER NOT NULL DEFAULT 0, "
               "expires_at INTEGER NOT NULL DEFAULT 0, revoked_at INTEGER NOT NULL DEFAULT 0) STRICT;"
               "CREATE UNIQUE INDEX api_key_name ON api_key (name) WHERE revoked_at = 0;"
               "CREATE TABLE key_secret (hash BLOB PRIMARY KEY, prefix TEXT NOT NULL, "
               "key_id BLOB NOT NULL REFERENCES api_key (id) ON DELETE CASCADE, "
               "ends_at INTEGER NOT NULL DEFAULT 0) STRICT;"
               "CREATE INDEX key_secret_prefix ON key_secret (prefix);"
               "CREATE INDEX key_secret_key ON key_secret (key_id);"
               "CREATE TABLE member (base_id BLOB NOT NULL REFERENCES base (id) ON DELETE CASCADE, "
               "key_id BLOB NOT NULL REFERENCES api_key (id) ON DELETE CASCADE, role INTEGER NOT NULL, "
               "added_at INTEGER NOT NULL, PRIMARY KEY (base_id, key_id)) STRICT;"
               "CREATE INDEX member_key ON member (key_id, base_id);",
    },
    {
        .name = "vector_counts",
        /* store/vectors.h; apart from the row of pruning, which is locked before vectors are */
        .sql = "CREATE TABLE vector_count (id INTEGER PRIMARY KEY, hits INTEGER NOT NULL, misses INTEGER NOT NULL) "
               "STRICT;"
               "INSERT INTO vector_count (id, hits, misses) VALUES (1, 0, 0);",
    },
    {
        .name = "named_models",
        /* store/named_models.h */
        .sql = "CREATE TABLE named_model (name TEXT PRIMARY KEY, embedding TEXT NOT NULL, "
               "created_at INTEGER NOT NULL) STRICT;",
    },
    {
        .name = "idempotency",
        /* store/idempotency.h; keys and requests as hashes, status 0 = under way */
        .sql = "CREATE TABLE idempotency (key BLOB PRIMARY KEY, request BLOB NOT NULL, status INTEGER NOT NULL, "
               "body TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;"
               "CREATE INDEX idempotency_age ON idempotency (created_at);",
    },
    {
        .name = "event_sequence",
        /* store/events.h; events from before have no place in it, and nobody has heard of them */
        .sql =
            "CREATE TABLE event_clock (id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, pruned_id INTEGER NOT NULL) "
            "STRICT;"
            "INSERT INTO event_clock (id, last_id, pruned_id) VALUES (1, 0, 0);"
            "ALTER TABLE event ADD COLUMN id INTEGER NOT NULL DEFAULT 0;"
            "CREATE UNIQUE INDEX event_order ON event (id) WHERE id > 0;",
    },
    {
        .name = "kept_generations",
        /* store/items.h */
        .sql = "ALTER TABLE item ADD COLUMN kept_generation INTEGER NOT NULL DEFAULT 0;"
               "ALTER TABLE item ADD COLUMN made_of BLOB;",
    },
    {
        .name = "sources_of_keys",
        /* store/items.h; of items from before nobody knows who added them */
        .sql = "ALTER TABLE item ADD COLUMN no_links INTEGER NOT NULL DEFAULT 0;",
    },
};

const size_t qr_schema_migration_count = QR_COUNT(qr_schema_migrations);
