/* The schema of the main database. */
#pragma once

#include "db/db.h"

extern const struct qr_migration qr_schema_migrations[];
extern const size_t qr_schema_migration_count;
