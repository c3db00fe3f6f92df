/* The one SQL dialect of the project, and its translation for PostgreSQL. SQLite runs it as it is written.
 *
 * How it is written, and what happens to it on PostgreSQL:
 *   ?1 ?2 …            → $1 $2 …      always numbered
 *   slash-star pg … star-slash → …    a comment on SQLite, live on PostgreSQL: FOR UPDATE, SKIP LOCKED
 *   in CREATE and ALTER statements:
 *     INTEGER → BIGINT, REAL → DOUBLE PRECISION, BLOB → BYTEA, TEXT → TEXT COLLATE "C", STRICT → nothing
 *     (in capitals; a name is written small: `text TEXT` is a column called text)
 *
 * What the two do differently, and what we do about it:
 *   order of text      bytes, by COLLATE "C" on every column
 *   NULL in ORDER BY   write NULLS FIRST or NULLS LAST wherever a column may be NULL
 *   LIKE               tells cases apart on both (a pragma on SQLite)
 *   "word"             is a name, never a string (a switch on SQLite)
 *   booleans           integers 0 and 1; write `x <> 0`, not `x`
 *   sum() of integers  is a numeric on PostgreSQL: CAST(sum(x) AS BIGINT)
 *   NUL in text        refused on both; not valid UTF-8: refused on both
 *   index rows         end at 2.7 KB on PostgreSQL: long keys are stored as hashes
 *   ids made by the database   none: ids are UUIDs, sequences are counters under a row lock */
#pragma once

#include "base/buf.h"

/* Appends the PostgreSQL text. Strings, quoted names and comments are left alone. */
void qr_sql_for_postgres(struct qr_buf *out, const char *sql);
