/* What the files of the oracle share: how it asks, on connections of its own and without the product's code, and the items
 * as it saw them last and the time before. */
#pragma once

#include "sim/workflow_sim.h"

#include <sqlite3.h>

enum { ORACLE_BASES_MAX = 64 };

/* ---- workflow_ask.c ---- */

void ask_begin(void);
void ask_end(void);
sqlite3 *ask_open(const char *path);
/* Of the main database. `sql` is a constant: its address names the statement. */
sqlite3_stmt *ask_statement(const char *sql);
bool ask_next(sqlite3_stmt *stmt);
void ask_bind_id(sqlite3_stmt *stmt, int place, const qr_uuid *id);
qr_uuid ask_id_at(sqlite3_stmt *stmt, int column);
int64_t ask_number(sqlite3_stmt *stmt);
/* Several looks are of one moment. */
void ask_begin_moment(void);
void ask_end_moment(void);
/* Static memory, valid for the next 3 calls. */
const char *ask_text_of(qr_uuid id);

/* For a query about item: neither it nor what it is in has `columns` (of `above`). */
#define ASK_NOT_GONE(columns)                                                                                          \
    "NOT EXISTS (SELECT 1 FROM item AS above WHERE (" columns ") AND above.base_id = item.base_id AND "                \
    "substr(item.path, 1, length(above.path)) = above.path)"

/* ---- workflow_rows.c ---- */

enum { ROW_PATH_BYTES_MAX = 160 };

struct row {
    qr_uuid id, base_id, parent_id;
    unsigned char path[ROW_PATH_BYTES_MAX];
    int path_len;
    bool is_container, expansion_failed, is_gone; /* is_gone: it, an ancestor or its base is deleting */
    int type, status;
    int64_t generation, live_generation, kept_generation, expanded_generation;
    int64_t counts[4]; /* completed, failed, active, idle */
    int64_t open_stages, stage_generation;
};

struct rows {
    const struct row *rows; /* in the order of bases and paths */
    int count;
};

void rows_begin(void);
void rows_look(void);
struct rows rows_now(void);
struct rows rows_before(void);
const struct row *rows_find(struct rows rows, qr_uuid id);

/* ---- workflow_promises.c ---- */

void promises_begin(void);
void promises_check(void);

/* ---- workflow_stores.c ---- */

void stores_begin(void);
/* The version of the document in the first chunk of what search shows; 0 = none. */
int stores_shown_version(qr_uuid base_id, qr_uuid item_id, int64_t generation, int number);
