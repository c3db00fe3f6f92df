/* The migrations of the main database, in the SQL of db/sql.h. A step that was released never changes again: a change
 * is a new step at the end. */
#include "store/schema.h"

const struct qr_migration qr_schema_migrations[] = {
    {
        .name = "meta",
        /* facts about this instance; store/meta.h */
        .sql = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;",
    },
};

const size_t qr_schema_migration_count = QR_COUNT(qr_schema_migrations);
