/* An index set over the test's own database (QR_DB_TEST): files in its folder, or tables on the server. */
#pragma once

#include "index/index.h"
#include "support/db_fixture.h"

struct index_fixture {
    struct qr_index_options options; /* to open it again */
    struct qr_db *main_db;           /* NULL on SQLite */
    struct qr_index_set *set;
    char dir[160];
};

void index_fixture_open(struct index_fixture *fixture, struct qr_test *t);
/* Closes the set and opens it again, as another start of the program would. */
void index_fixture_reopen(struct index_fixture *fixture);
void index_fixture_close(struct index_fixture *fixture);

/* The id with this number in it: ids of growing numbers grow. */
qr_uuid test_id(unsigned number);

/* Writes one chunk; a failure ends the test. */
void index_write(struct index_fixture *fixture, qr_uuid base, qr_uuid item, int64_t generation, int64_t ordinal,
                 const char *text);
void index_sync(struct index_fixture *fixture, qr_uuid base);
/* How many chunks there are, and how many the text search finds. */
size_t index_chunk_count(struct index_fixture *fixture, qr_uuid base, qr_uuid item, int64_t generation);
size_t index_hit_count(struct index_fixture *fixture, qr_uuid base, const char *query);
