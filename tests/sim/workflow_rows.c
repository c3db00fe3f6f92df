/* Owns the items as the oracle saw them: now, and at the look before. */
#include "sim/workflow_oracle.h"

#include <string.h>

enum { ITEMS_MAX = 600 };

static struct row rows[2][ITEMS_MAX];
static int row_counts[2], now;

void rows_begin(void)
{
    row_counts[0] = row_counts[1] = 0;
}

struct rows rows_now(void)
{
    return (struct rows){rows[now], row_counts[now]};
}

struct rows rows_before(void)
{
    return (struct rows){rows[!now], row_counts[!now]};
}

#define STAGES "('prepare-root', 'process-document', 'check-file-processing', 'chunk-document', 'index-chunks')"
#define ITEMS                                                                                                          \
    "SELECT id, base_id, parent_id, path, is_container, type, status, generation, live_generation, "                   \
    "expanded_generation, n_completed, n_failed, n_active, n_idle, expand_code <> '', (SELECT count(*) FROM job "      \
    "WHERE item_id = item.id AND state IN (1, 2, 3, 4) AND type IN " STAGES "), coalesce((SELECT max(generation) "     \
    "FROM job WHERE item_id = item.id AND state IN (1, 2, 3, 4) AND type IN " STAGES "), 0), (SELECT status FROM "     \
    "base WHERE base.id = item.base_id), kept_generation FROM item ORDER BY base_id, path"

const struct row *rows_find(struct rows among, qr_uuid id)
{
    for (int i = 0; i < among.count; i++) {
        if (qr_uuid_equal(among.rows[i].id, id)) {
            return &among.rows[i];
        }
    }
    return NULL;
}

static void read_row(sqlite3_stmt *stmt, struct row *row)
{
    *row = (struct row){.id = ask_id_at(stmt, 0), .base_id = ask_id_at(stmt, 1), .parent_id = ask_id_at(stmt, 2)};
    row->path_len = sqlite3_column_bytes(stmt, 3);
    QR_CHECK(row->path_len <= ROW_PATH_BYTES_MAX);
    memcpy(row->path, sqlite3_column_blob(stmt, 3), (size_t)row->path_len);
    row->is_container = sqlite3_column_int(stmt, 4) != 0;
    row->type = sqlite3_column_int(stmt, 5);
    row->status = sqlite3_column_int(stmt, 6);
    row->generation = sqlite3_column_int64(stmt, 7);
    row->live_generation = sqlite3_column_int64(stmt, 8);
    row->expanded_generation = sqlite3_column_int64(stmt, 9);
    for (int i = 0; i < 4; i++) {
        row->counts[i] = sqlite3_column_int64(stmt, 10 + i);
    }
    row->expansion_failed = sqlite3_column_int(stmt, 14) != 0;
    row->open_stages = sqlite3_column_int64(stmt, 15);
    row->stage_generation = sqlite3_column_int64(stmt, 16);
    row->kept_generation = sqlite3_column_int64(stmt, 18);
    row->is_gone = row->status == QR_ITEM_DELETING || sqlite3_column_int(stmt, 17) == QR_BASE_DELETING;
}

void rows_look(void)
{
    now = !now;
    row_counts[now] = 0;
    sqlite3_stmt *stmt = ask_statement(ITEMS);
    while (ask_next(stmt)) {
        QR_CHECK(row_counts[now] < ITEMS_MAX);
        struct row *row = &rows[now][row_counts[now]];
        read_row(stmt, row);
        const struct row *parent = rows_find(rows_now(), row->parent_id); /* before it, in the order of paths */
        row->is_gone = row->is_gone || (parent && parent->is_gone);
        row_counts[now]++;
    }
}

/* ---- for people ---- */

static void show(const struct row *row, struct seen_item *ret_item)
{
    *ret_item = (struct seen_item){row->id,   row->base_id, row->is_container, row->path_len == QR_UUID_BYTES,
                                   row->type, row->status};
}

bool flow_oracle_pick_item(struct seen_item *ret_item)
{
    const int count = row_counts[now];
    const int start = count ? (int)sim_between(0, count - 1) : 0;
    for (int i = 0; i < count; i++) {
        const struct row *row = &rows[now][(start + i) % count];
        if (!row->is_gone) {
            show(row, ret_item);
            return true;
        }
    }
    return false;
}

bool flow_oracle_nth_item(int n, int status, bool only_folders, struct seen_item *ret_item)
{
    for (int i = 0; i < row_counts[now]; i++) {
        const struct row *row = &rows[now][i];
        const bool fits = !row->is_gone && (!status || row->status == status) &&
                          (!only_folders || (row->is_container && row->path_len == QR_UUID_BYTES));
        if (fits && n-- == 0) {
            show(row, ret_item);
            return true;
        }
    }
    return false;
}

int flow_oracle_item_count(void)
{
    return row_counts[now];
}
