/* Opens index sets for tests, and the short forms of their calls. */
#include "support/index_fixture.h"

#include "store/schema.h"

enum { LIMIT = 1000 };

void index_fixture_open(struct index_fixture *fixture, struct qr_test *t)
{
    *fixture = (struct index_fixture){0};
    if (qr_test_on_postgres(t)) {
        fixture->main_db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count);
        fixture->options.main_db = fixture->main_db;
    } else {
        snprintf(fixture->dir, sizeof fixture->dir, "%s/index", t->dir);
        fixture->options.dir = fixture->dir;
    }
    index_fixture_reopen(fixture);
}

void index_fixture_reopen(struct index_fixture *fixture)
{
    qr_err err;
    qr_index_set_close(fixture->set);
    fixture->set = NULL;
    QR_CHECK_RC(QR_OK, qr_index_set_open(&fixture->set, &fixture->options, &err));
}

void index_fixture_close(struct index_fixture *fixture)
{
    qr_index_set_close(fixture->set);
    qr_db_close(fixture->main_db);
    fixture->set = NULL;
    fixture->main_db = NULL;
}

qr_uuid test_id(unsigned number)
{
    qr_uuid id = {{0x01}};
    for (int i = 0; i < 4; i++) {
        id.bytes[QR_UUID_BYTES - 1 - i] = (unsigned char)(number >> 8 * i);
    }
    return id;
}

void index_write(struct index_fixture *fixture, qr_uuid base, qr_uuid item, int64_t generation, int64_t ordinal,
                 const char *text)
{
    qr_err err;
    const struct qr_chunk chunk = {.ordinal = ordinal, .text = qr_str_of(text), .end = (int64_t)strlen(text)};
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(fixture->set, base, item, generation, &chunk, 1, NULL, &err));
}

void index_sync(struct index_fixture *fixture, qr_uuid base)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_sync(fixture->set, base, &err));
}

size_t index_chunk_count(struct index_fixture *fixture, qr_uuid base, qr_uuid item, int64_t generation)
{
    qr_err err;
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_chunk_row *rows;
    size_t count;
    QR_CHECK_RC(QR_OK, qr_index_chunks(fixture->set, base, item, generation, 0, 0, LIMIT, &arena, &rows, &count, &err));
    qr_arena_done(&arena);
    return count;
}

size_t index_hit_count(struct index_fixture *fixture, qr_uuid base, const char *query)
{
    qr_err err;
    struct qr_index_hit hits[LIMIT];
    size_t count;
    QR_CHECK_RC(QR_OK,
                qr_index_search_text(fixture->set, base, qr_str_of(query), LIMIT, NULL, NULL, hits, &count, &err));
    return count;
}
