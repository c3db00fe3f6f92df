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
};

const size_t qr_schema_migration_count = QR_COUNT(qr_schema_migrations);
