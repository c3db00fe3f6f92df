/* Every round is a process of its own, for its memory. What is left in the data folder says what came out: it is read from
 * the databases, past the interface, when they are closed. */
#include "ingest/folder.h"

#include "ingest/bare.h"
#include "ingest/memory.h"
#include "workflow/place.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 5, FILE_TYPE = 2, COMPLETED = 6, FAILED = 7 };

struct round_request {
    const char *folder, *data_dir, *bare_path;
};

/* ---- what came out ---- */

static sqlite3_stmt *first_row(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        fprintf(stderr, "bench: %s: %s\n", sql, sqlite3_errmsg(db));
        exit(1);
    }
    return stmt;
}

static void count_files(sqlite3 *db, struct folder_figures *figures)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT count(*), sum(status = %d), sum(size_bytes * (status = %d)) FROM item WHERE type = %d", FAILED,
             COMPLETED, FILE_TYPE);
    sqlite3_stmt *stmt = first_row(db, sql);
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        figures->files = sqlite3_column_int64(stmt, 0);
        figures->files_failed = sqlite3_column_int64(stmt, 1);
        figures->bytes = sqlite3_column_double(stmt, 2);
    }
    sqlite3_finalize(stmt);
}

static void count_failures(sqlite3 *db, struct folder_figures *figures)
{
    char sql[256];
    size_t len = 0;
    snprintf(sql, sizeof sql,
             "SELECT error_code, count(*) FROM item WHERE type = %d AND status = %d GROUP BY 1 ORDER BY 2 DESC",
             FILE_TYPE, FAILED);
    sqlite3_stmt *stmt = first_row(db, sql);
    figures->failures[0] = '\0';
    while (sqlite3_step(stmt) == SQLITE_ROW && len < sizeof figures->failures) {
        len += (size_t)snprintf(figures->failures + len, sizeof figures->failures - len, "%s%s %d", len ? ", " : "",
                                (const char *)sqlite3_column_text(stmt, 0), sqlite3_column_int(stmt, 1));
    }
    sqlite3_finalize(stmt);
}

static void look_into(const char *data_dir, struct folder_figures *figures)
{
    char path[600];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/quire.db", data_dir);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        fprintf(stderr, "bench: %s: %s\n", path, sqlite3_errmsg(db));
        exit(1);
    }
    count_files(db, figures);
    count_failures(db, figures);
    sqlite3_close(db);
}

/* ---- a round ---- */

/* The first search finds everything: until then some of it may wait to be indexed. */
static void search_once(struct place *place)
{
    json_decref(place_call_base(place, "POST", "/search", json_pack("{s:s}", "query", "first files")));
}

static void run_round(const void *arg, void *ret)
{
    const struct round_request *request = arg;
    struct folder_figures *figures = ret;
    struct place place;
    struct memory_watch watch;
    char id[PLACE_ID_SIZE], index[700];
    memory_watch_begin(&watch);
    const double cpu_s = bench_cpu_seconds();
    const int64_t began_us = bench_now_us();
    place_open(&place, request->data_dir, true);
    place_add_base(&place, "bench");
    place_add_folder(&place, request->folder, false, id);
    place_wait_over(&place, id);
    search_once(&place);
    figures->whole_s = (double)(bench_now_us() - began_us) / 1e6;
    figures->whole_cpu_s = bench_cpu_seconds() - cpu_s;
    const struct place_writes writes = place_writes(&place);
    figures->longest_main_ms = writes.main_longest_ms;
    figures->longest_index_ms = writes.index_longest_ms;
    place_close(&place);
    figures->helper_cpu_s = bench_children_cpu_seconds();
    figures->peak_mb = QR_MAX(memory_watch_end(&watch), bench_peak_mb());
    figures->helper_peak_mb = bench_children_peak_mb();
    look_into(request->data_dir, figures);
    snprintf(index, sizeof index, "%s/index/%s.db", request->data_dir, place.base);
    figures->bare_s = bare_insert(index, request->bare_path, &figures->chunks);
}

static struct folder_figures run_round_apart(const struct bench_options *options, const char *folder)
{
    char data_dir[512], bare_path[512];
    struct folder_figures figures;
    snprintf(data_dir, sizeof data_dir, "%s/ingest-data", options->dir);
    snprintf(bare_path, sizeof bare_path, "%s/bare.db", options->dir);
    const struct round_request request = {folder, data_dir, bare_path};
    bench_apart(run_round, &request, &figures, sizeof figures);
    bench_remove(data_dir);
    bench_remove(bare_path);
    fprintf(stderr, "bench: %s: %lld files, %lld chunks: %.2f s (CPU %.2f), bare %.2f s, peak %.0f MB\n", folder,
            (long long)figures.files, (long long)figures.chunks, figures.whole_s, figures.whole_cpu_s, figures.bare_s,
            figures.peak_mb);
    return figures;
}

static int compare_ratios(const void *a, const void *b)
{
    const struct folder_figures *x = a, *y = b;
    const double left = x->bare_s / x->whole_s, right = y->bare_s / y->whole_s;
    return (left > right) - (left < right);
}

struct folder_figures folder_measure(const struct bench_options *options, const char *folder, int rounds)
{
    struct folder_figures figures[ROUNDS_MAX];
    double peak_mb = 0, helper_peak_mb = 0;
    rounds = QR_MIN(rounds, (int)ROUNDS_MAX);
    for (int i = 0; i < rounds; i++) {
        figures[i] = run_round_apart(options, folder);
        peak_mb = QR_MAX(peak_mb, figures[i].peak_mb);
        helper_peak_mb = QR_MAX(helper_peak_mb, figures[i].helper_peak_mb);
    }
    qsort(figures, (size_t)rounds, sizeof figures[0], compare_ratios);
    struct folder_figures middle = figures[rounds / 2];
    middle.peak_mb = peak_mb;
    middle.helper_peak_mb = helper_peak_mb;
    return middle;
}

/* ---- the report ---- */

static const char *keyed(char buffer[static 64], const char *key, const char *name)
{
    snprintf(buffer, 64, "%s_%s", key, name);
    return buffer;
}

void folder_report(struct bench_report *to, const struct folder_figures *figures, const char *key, const char *heading)
{
    char name[64];
    const double whole_s = figures->whole_s, mb = figures->bytes / (1 << 20), chunks = (double)figures->chunks;
    bench_report_heading(to, heading);
    bench_report_number(to, keyed(name, key, "files"), (double)figures->files, "", "files");
    bench_report_number(to, keyed(name, key, "mb"), mb, "MB", "    all together, without those that failed");
    bench_report_number(to, keyed(name, key, "failed"), (double)figures->files_failed, "", "    failed");
    bench_report_text(to, keyed(name, key, "failures"), figures->failures[0] ? figures->failures : "none",
                      "    with the codes");
    bench_report_number(to, keyed(name, key, "chunks"), chunks, "", "chunks");
    bench_report_number(to, keyed(name, key, "files_per_s"), (double)figures->files / whole_s, "files/s",
                        "from nothing until all is found");
    bench_report_number(to, keyed(name, key, "mb_per_s"), mb / whole_s, "MB/s", "    in bytes of the files");
    bench_report_number(to, keyed(name, key, "chunks_per_s"), chunks / whole_s, "chunks/s", "    in chunks");
    bench_report_number(to, keyed(name, key, "bare_chunks_per_s"), chunks / figures->bare_s, "chunks/s",
                        "a bare insert of the same chunks into FTS5");
    bench_report_goal(to, keyed(name, key, "against_bare"), figures->bare_s / whole_s, true, 0.5,
                      "against the bare insert");
    bench_report_number(to, keyed(name, key, "cpu"), figures->whole_cpu_s / whole_s, "cores",
                        "processors in use, without the helpers");
    bench_report_goal(to, keyed(name, key, "peak_mb"), figures->peak_mb, false, 200,
                      "the most memory it had, helpers included, MB");
    bench_report_number(to, keyed(name, key, "helper_peak_mb"), figures->helper_peak_mb, "MB",
                        "    the largest helper that reads files");
    bench_report_number(to, keyed(name, key, "longest_main_ms"), figures->longest_main_ms, "ms",
                        "the longest transaction of the main database");
    bench_report_number(to, keyed(name, key, "longest_index_ms"), figures->longest_index_ms, "ms",
                        "    of the index store");
}
