/* When a run is over: nothing is at work, nothing is left that nobody owns (I7), and what is shown is what there is. */
#include "sim/workflow_oracle.h"

#include <dirent.h>
#include <string.h>

const char *flow_oracle_unrest(void)
{
    static const struct {
        const char *what, *sql;
    } unrest[] = {
        {"a job is open", "SELECT count(*) FROM job WHERE state IN (1, 2, 3, 4)"},
        {"an item is active", "SELECT count(*) FROM item WHERE status IN (2, 3)"},
        {"an item is deleting", "SELECT count(*) FROM item WHERE status = 8"},
        {"a base is deleting", "SELECT count(*) FROM base WHERE status = 3"},
    };
    for (size_t i = 0; i < QR_COUNT(unrest); i++) {
        if (flow_oracle_i64(unrest[i].sql)) {
            return unrest[i].what;
        }
    }
    return NULL;
}

/* The query counts; a second column may name one. */
static void check_nothing(const char *what, const char *sql)
{
    sqlite3_stmt *stmt = ask_statement(sql);
    if (ask_next(stmt) && sqlite3_column_int64(stmt, 0)) {
        const char *name = sqlite3_column_count(stmt) > 1 ? (const char *)sqlite3_column_text(stmt, 1) : "";
        QR_FAIL("I7: %s: %lld %s", what, (long long)sqlite3_column_int64(stmt, 0), name);
    }
    sqlite3_reset(stmt);
}

/* Rows of the main database without an owner. */
static void check_rows(void)
{
    check_nothing("artifacts without an item",
                  "SELECT count(*) FROM artifact WHERE item_id NOT IN (SELECT id FROM item)");
    check_nothing(
        "artifacts of generations neither live nor wanted",
        "SELECT count(*), max(substr(hex(item.id), 5, 12) || ' kind ' || kind || ' generation ' || "
        "artifact.generation) FROM artifact JOIN item ON item.id = artifact.item_id WHERE artifact.generation NOT "
        "IN (item.generation, item.live_generation) AND NOT (kind = 1 AND artifact.generation = (SELECT "
        "max(other.generation) FROM artifact AS other WHERE other.item_id = item.id AND other.kind = 1))");
    check_nothing("assets without an item", "SELECT count(*) FROM asset WHERE item_id NOT IN (SELECT id FROM item)");
    check_nothing("assets without their bytes",
                  "SELECT count(*) FROM asset WHERE artifact_id NOT IN (SELECT id FROM artifact)");
    check_nothing("items without a base", "SELECT count(*) FROM item WHERE base_id NOT IN (SELECT id FROM base)");
    check_nothing("children without a parent",
                  "SELECT count(*) FROM item WHERE depth > 0 AND parent_id NOT IN (SELECT id FROM item)");
    check_nothing("histories without an item",
                  "SELECT count(*) FROM item_generation WHERE item_id NOT IN (SELECT id FROM item)");
    check_nothing("events without a base", "SELECT count(*) FROM event WHERE base_id NOT IN (SELECT id FROM base)");
    check_nothing("runs without a base", "SELECT count(*) FROM run WHERE base_id NOT IN (SELECT id FROM base)");
    check_nothing("runs that have not ended", "SELECT count(*) FROM run WHERE status = 1");
    check_nothing("completed items without their text",
                  "SELECT count(*) FROM item WHERE is_container = 0 AND status = 6 AND NOT EXISTS (SELECT 1 FROM "
                  "artifact WHERE item_id = item.id AND kind = 2 AND artifact.generation = item.live_generation)");
    check_nothing("completed items that are neither live nor were kept",
                  "SELECT count(*) FROM item WHERE is_container = 0 AND status = 6 AND generation NOT IN "
                  "(live_generation, kept_generation)");
}

/* Index rows and stores without an owner. */
static void check_store_owned(qr_uuid base_id, sqlite3 *store)
{
    sqlite3_stmt *stmt, *owner;
    QR_CHECK_INT(SQLITE_OK,
                 sqlite3_prepare_v2(store, "SELECT DISTINCT item_id, generation FROM chunk_row", -1, &stmt, NULL));
    while (ask_next(stmt)) {
        const qr_uuid id = ask_id_at(stmt, 0);
        owner = ask_statement("SELECT count(*) FROM item WHERE id = ?1 AND base_id = ?2 AND (?3 = live_generation OR "
                              "(?3 = generation AND kept_generation < generation))");
        ask_bind_id(owner, 1, &id);
        ask_bind_id(owner, 2, &base_id);
        sqlite3_bind_int64(owner, 3, sqlite3_column_int64(stmt, 1));
        if (ask_number(owner) == 0) {
            QR_FAIL("I7: chunks of generation %lld of item %s are in the index, and nobody owns them",
                    (long long)sqlite3_column_int64(stmt, 1), ask_text_of(id));
        }
    }
    sqlite3_finalize(stmt);
}

/* Two workers share stores on a server, where one without rows is nothing. Here it is a file, which a worker that was frozen
 * while the other one deleted the base makes anew; only its own process would know better. */
static void check_stores(void)
{
    DIR *dir = opendir(sim_path("index"));
    struct dirent *entry;
    QR_CHECK(dir);
    while ((entry = readdir(dir))) {
        qr_uuid base_id;
        const size_t len = strlen(entry->d_name);
        if (len < 3 || strcmp(entry->d_name + len - 3, ".db") != 0) {
            continue;
        }
        QR_CHECK(qr_uuid_parse((qr_str){entry->d_name, len - 3}, &base_id));
        sqlite3_stmt *stmt = ask_statement("SELECT count(*) FROM base WHERE id = ?1");
        ask_bind_id(stmt, 1, &base_id);
        if (ask_number(stmt) == 0 && world.owns_all) {
            QR_FAIL("I7: the index store %s is of no base", entry->d_name);
        }
        char name[80];
        snprintf(name, sizeof name, "index/%s", entry->d_name);
        sqlite3 *store = ask_open(sim_path(name));
        check_store_owned(base_id, store);
        sqlite3_close(store);
    }
    closedir(dir);
}

/* Files: each is an artifact's, each artifact has its file. What converters left goes by its age. */
static int count_files(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int count = 0;
    QR_CHECK(dir);
    while ((entry = readdir(dir))) {
        char below[400];
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR) {
            count += count_files(below);
            continue;
        }
        count++;
        sqlite3_stmt *stmt = ask_statement("SELECT count(*) FROM artifact WHERE file LIKE '%' || ?1");
        sqlite3_bind_text(stmt, 1, entry->d_name, -1, SQLITE_TRANSIENT);
        if (ask_number(stmt) == 0) {
            QR_FAIL("I7: the file %s is nobody's", below);
        }
        sqlite3_reset(stmt);
    }
    closedir(dir);
    return count;
}

static void check_files(void)
{
    QR_CHECK_INT(flow_oracle_i64("SELECT count(*) FROM artifact WHERE file <> ''"), count_files(sim_path("artifacts")));
}

/* ---- what the documents say ---- */

static void check_notes(void)
{
    struct promised_note note;
    for (int i = 0; people_note(i, &note); i++) {
        const struct row *row = rows_find(rows_now(), note.id);
        if (!row || row->status != QR_ITEM_COMPLETED) {
            continue;
        }
        const int version = stores_shown_version(row->base_id, row->id, row->live_generation, note.number);
        if (version < note.version_acknowledged || version > note.version_tried) {
            QR_FAIL("I5: note %d shows version %d; %d was acknowledged, %d tried", note.number, version,
                    note.version_acknowledged, note.version_tried);
        }
    }
}

/* After a last look at the folders, what is indexed is what is there. */
static void check_tree(void)
{
    const char *path;
    int number, version;
    for (int i = 0; tree_file(i, &path, &number, &version); i++) {
        sqlite3_stmt *stmt = ask_statement(
            "SELECT id, base_id, live_generation FROM item WHERE source = CAST(?1 AS BLOB) AND status = 6 AND depth > "
            "0");
        if (!path) {
            continue;
        }
        sqlite3_bind_text(stmt, 1, path, -1, SQLITE_TRANSIENT);
        while (ask_next(stmt)) {
            const int shown =
                stores_shown_version(ask_id_at(stmt, 1), ask_id_at(stmt, 0), sqlite3_column_int64(stmt, 2), number);
            if (shown != version) {
                QR_FAIL("%s (document %d, item %s) shows version %d, not %d", path, number,
                        ask_text_of(ask_id_at(stmt, 0)), shown, version);
            }
        }
    }
}

void flow_oracle_check_drained(void)
{
    flow_oracle_check();
    const char *unrest = flow_oracle_unrest();
    if (unrest) {
        QR_FAIL("I5: after the drain %s", unrest);
    }
    check_rows();
    check_stores();
    flow_oracle_check_index(true);
    flow_oracle_check_models();
    check_files();
    check_notes();
    check_tree();
}
