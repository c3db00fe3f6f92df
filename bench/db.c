/* bench/run db: what the database layer costs. Durable writes by 1, 8 and 64 callers against one write a transaction,
 * reads while writing against reads alone, the log's size over time, and what an idle process takes. */
#include "db/db.h"
#include "support.h"
#include "support/postgres.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { READ_ROWS = 100000, PRODUCERS_MAX = 64, SAMPLES_MAX = 4096 };

static const struct qr_migration MIGRATIONS[] = {
    {"entry", "CREATE TABLE entry (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;"
              "CREATE TABLE fixed (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT"},
};
static const char PAYLOAD[] =
    "a row of the size that a job or an item has: some ids, a state, a few numbers, a short text";

static struct qr_db *open_db(const char *url, const char *vfs, int connections)
{
    const struct qr_db_options options = {.url = url,
                                          .migrations = MIGRATIONS,
                                          .migration_count = QR_COUNT(MIGRATIONS),
                                          .vfs = vfs,
                                          .readers_max = connections};
    struct qr_db *db;
    qr_err err;
    bench_must(qr_db_open(&db, &options, &err), &err);
    return db;
}

/* ---- writes ---- */

static atomic_llong next_id;

static qr_rc insert_entry(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_exec(tx, "INSERT INTO entry (id, name) VALUES (?1, ?2)",
                      QR_VALS(qr_val_i64(*(int64_t *)arg), qr_val_text(qr_str_of(PAYLOAD))), NULL, err);
}

struct producer {
    struct qr_db *db;
    int64_t until_us;
    struct bench_times times;
    pthread_t thread;
};

static void *produce(void *arg)
{
    struct producer *producer = arg;
    qr_err err;
    for (int64_t now_us = bench_now_us(); now_us < producer->until_us;) {
        int64_t id = atomic_fetch_add(&next_id, 1);
        bench_must(qr_db_write(producer->db, QR_DURABLE, insert_entry, &id, &err), &err);
        const int64_t after_us = bench_now_us();
        bench_times_add(&producer->times, after_us - now_us);
        now_us = after_us;
    }
    return NULL;
}

static void start_producers(struct producer *producers, int count, struct qr_db *db, double seconds)
{
    const int64_t until_us = bench_now_us() + (int64_t)(seconds * 1e6);
    for (int i = 0; i < count; i++) {
        producers[i] = (struct producer){.db = db, .until_us = until_us};
        pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
    }
}

static void join_producers(struct producer *producers, int count, struct bench_times *all)
{
    for (int i = 0; i < count; i++) {
        pthread_join(producers[i].thread, NULL);
        bench_times_join(all, &producers[i].times);
        bench_times_free(&producers[i].times);
    }
}

/* Acknowledged durable writes a second. */
static double measure_writes(struct bench_report *report, const char *driver, struct qr_db *db, int count,
                             double seconds)
{
    static struct producer producers[PRODUCERS_MAX];
    struct bench_times times = {0};
    struct qr_db_stats before, after;
    qr_db_stats(db, &before);
    const int64_t began_us = bench_now_us();
    start_producers(producers, count, db, seconds);
    join_producers(producers, count, &times);
    const double rate = (double)times.count / ((double)(bench_now_us() - began_us) / 1e6);
    qr_db_stats(db, &after);
    char key[64], label[96];
    snprintf(key, sizeof key, "%s_writes_per_s_%d", driver, count);
    snprintf(label, sizeof label, "%d producer%s: acknowledged durable writes", count, count == 1 ? "" : "s");
    bench_report_number(report, key, rate, "/s", label);
    snprintf(key, sizeof key, "%s_write_p50_ms_%d", driver, count);
    bench_report_number(report, key, bench_times_quantile(&times, 0.5) / 1e3, "ms", "    p50");
    snprintf(key, sizeof key, "%s_write_p99_ms_%d", driver, count);
    bench_report_number(report, key, bench_times_quantile(&times, 0.99) / 1e3, "ms", "    p99");
    snprintf(key, sizeof key, "%s_writes_per_commit_%d", driver, count);
    bench_report_number(report, key, (double)times.count / (double)(after.commits - before.commits), "",
                        "    writes a commit");
    bench_times_free(&times);
    return rate;
}

/* ---- baselines: the database itself, one write a transaction ---- */

static void run_sql(sqlite3 *handle, const char *sql)
{
    if (sqlite3_exec(handle, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "bench: %s: %s\n", sql, sqlite3_errmsg(handle));
        exit(1);
    }
}

static double sqlite_baseline(const char *path, const char *vfs, double seconds)
{
    sqlite3 *handle;
    if (sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs) != SQLITE_OK) {
        exit(1);
    }
    run_sql(handle, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                    "CREATE TABLE entry (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT");
    sqlite3_stmt *insert;
    if (sqlite3_prepare_v2(handle, "INSERT INTO entry (name) VALUES (?1)", -1, &insert, NULL) != SQLITE_OK) {
        exit(1);
    }
    const int64_t began_us = bench_now_us();
    int64_t count = 0;
    while (bench_now_us() - began_us < (int64_t)(seconds * 1e6)) {
        sqlite3_bind_text(insert, 1, PAYLOAD, -1, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE) {
            exit(1);
        }
        sqlite3_reset(insert);
        count++;
    }
    const double rate = (double)count / ((double)(bench_now_us() - began_us) / 1e6);
    sqlite3_finalize(insert);
    sqlite3_close(handle);
    return rate;
}

static double postgres_baseline(const char *url, double seconds)
{
    PGconn *connection = PQconnectdb(url);
    PQclear(PQexec(connection, "CREATE TABLE baseline (id BIGSERIAL PRIMARY KEY, name TEXT NOT NULL)"));
    PQclear(PQprepare(connection, "insert", "INSERT INTO baseline (name) VALUES ($1)", 1, NULL));
    const char *values[] = {PAYLOAD};
    const int64_t began_us = bench_now_us();
    int64_t count = 0;
    while (bench_now_us() - began_us < (int64_t)(seconds * 1e6)) {
        PGresult *result = PQexecPrepared(connection, "insert", 1, values, NULL, NULL, 0);
        if (PQresultStatus(result) != PGRES_COMMAND_OK) {
            fprintf(stderr, "bench: %s\n", PQerrorMessage(connection));
            exit(1);
        }
        PQclear(result);
        count++;
    }
    PQfinish(connection);
    return (double)count / ((double)(bench_now_us() - began_us) / 1e6);
}

/* ---- reads ---- */

static qr_rc fill_fixed(struct qr_tx *tx, void *arg, qr_err *err)
{
    int64_t *from = arg;
    for (int64_t id = *from; id < *from + 500; id++) {
        QR_TRY(qr_tx_exec(tx, "INSERT INTO fixed (id, name) VALUES (?1, ?2)",
                          QR_VALS(qr_val_i64(id), qr_val_text(qr_str_of(PAYLOAD))), NULL, err));
    }
    return QR_OK;
}

static void fill(struct qr_db *db)
{
    qr_err err;
    for (int64_t from = 0; from < READ_ROWS; from += 500) {
        bench_must(qr_db_write(db, QR_RELAXED, fill_fixed, &from, &err), &err);
    }
}

static qr_rc read_one(struct qr_tx *tx, void *arg, qr_err *err)
{
    int64_t length;
    return qr_tx_get_i64(tx, "SELECT length(name) FROM fixed WHERE id = ?1", QR_VALS(qr_val_i64(*(int64_t *)arg)), NULL,
                         &length, err);
}

/* Reads at an even pace, as requests come, not as fast as possible: the question is how long one takes. */
static void read_for(struct qr_db *db, double seconds, struct bench_times *times)
{
    enum { PACE_US = 500 };
    qr_err err;
    uint64_t random = 88172645463325252ULL;
    const int64_t until_us = bench_now_us() + (int64_t)(seconds * 1e6);
    for (int64_t now_us = bench_now_us(); now_us < until_us; now_us = bench_now_us()) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        int64_t id = (int64_t)(random % READ_ROWS);
        bench_must(qr_db_read(db, read_one, &id, &err), &err);
        bench_times_add(times, bench_now_us() - now_us);
        nanosleep(&(struct timespec){0, PACE_US * 1000}, NULL);
    }
}

/* ---- the log ---- */

struct log_sampler {
    char path[640];
    atomic_bool stop;
    double mb[SAMPLES_MAX];
    size_t count;
};

static void *sample_log(void *arg)
{
    struct log_sampler *sampler = arg;
    while (!atomic_load(&sampler->stop) && sampler->count < SAMPLES_MAX) {
        struct stat st;
        sampler->mb[sampler->count++] = stat(sampler->path, &st) == 0 ? (double)st.st_size / (1 << 20) : 0;
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
    return NULL;
}

/* ---- an idle process ---- */

static void settle(const char *url)
{
    struct qr_db *db = open_db(url, NULL, 0);
    int64_t id = -1;
    qr_err err;
    bench_must(qr_db_write(db, QR_DURABLE, insert_entry, &id, &err), &err);
    bench_must(qr_db_read(db, read_one, &id, &err), &err);
}

/* ---- the two databases ---- */

static void bench_sqlite(struct bench_report *report, const struct bench_options *options)
{
    char path[512], url[600];
    bench_report_heading(report, "SQLite, every write durable (synchronous=FULL)");
    snprintf(path, sizeof path, "%s/baseline.db", options->dir);
    const double baseline = sqlite_baseline(path, "fault", options->seconds);
    bench_report_number(report, "sqlite_baseline_writes_per_s", baseline, "/s", "bare SQLite, one write a transaction");

    snprintf(path, sizeof path, "%s/quire.db", options->dir);
    snprintf(url, sizeof url, "sqlite:%s", path);
    struct qr_db *db = open_db(url, "fault", 0);
    double rate = 0;
    static struct log_sampler sampler;
    snprintf(sampler.path, sizeof sampler.path, "%s-wal", path);
    pthread_t sampler_thread;
    pthread_create(&sampler_thread, NULL, sample_log, &sampler);
    for (int count = 1; count <= PRODUCERS_MAX; count *= 8) {
        rate = measure_writes(report, "sqlite", db, count, options->seconds);
    }
    bench_report_goal(report, "sqlite_64_producers_over_baseline", rate / baseline, true, 20,
                      "64 producers against the baseline");

    bench_report_heading(report, "SQLite, one reader by key among 100,000 rows");
    fill(db);
    struct bench_times idle = {0}, busy = {0}, ignored = {0};
    read_for(db, options->seconds, &idle);
    static struct producer producers[PRODUCERS_MAX];
    start_producers(producers, PRODUCERS_MAX, db, options->seconds);
    read_for(db, options->seconds * 0.95, &busy);
    join_producers(producers, PRODUCERS_MAX, &ignored);
    const double idle_p99 = bench_times_quantile(&idle, 0.99), busy_p99 = bench_times_quantile(&busy, 0.99);
    bench_report_number(report, "sqlite_read_p50_us_idle", bench_times_quantile(&idle, 0.5), "µs",
                        "read p50, nothing else");
    bench_report_number(report, "sqlite_read_p99_us_idle", idle_p99, "µs", "read p99, nothing else");
    bench_report_number(report, "sqlite_read_p50_us_writing", bench_times_quantile(&busy, 0.5), "µs",
                        "read p50 while 64 producers write");
    bench_report_number(report, "sqlite_read_p99_us_writing", busy_p99, "µs", "read p99 while 64 producers write");
    bench_report_goal(report, "sqlite_read_p99_ratio", busy_p99 / idle_p99, false, 3,
                      "reads' p99 while writing against idle");

    bench_report_heading(report, "SQLite, the process");
    atomic_store(&sampler.stop, true);
    pthread_join(sampler_thread, NULL);
    bench_report_series(report, "sqlite_wal_mb_over_time", sampler.mb, sampler.count, "MB",
                        "write-ahead log, file size every 50 ms");
    struct qr_db_stats stats;
    qr_db_stats(db, &stats);
    bench_report_goal(report, "sqlite_wal_max_mb", (double)stats.wal_bytes_max / (1 << 20), false,
                      (double)QR_DB_WAL_HARD_BYTES / (1 << 20), "write-ahead log at its largest, MB");
    bench_report_number(report, "sqlite_longest_transaction_ms", (double)stats.longest_write_us / 1e3, "ms",
                        "longest write transaction");
    bench_report_number(report, "resident_mb_after_load", bench_resident_mb(), "MB", "resident memory after the load");
    qr_db_close(db);
    bench_times_free(&idle);
    bench_times_free(&busy);
    bench_times_free(&ignored);
}

static void bench_postgres(struct bench_report *report, const struct bench_options *options)
{
    bench_report_heading(report, "PostgreSQL on a Unix socket, every write durable (fsync=on, synchronous_commit=on)");
    if (!qr_pg_installed()) {
        bench_report_text(report, "postgresql", "not installed", "PostgreSQL");
        return;
    }
    struct qr_pg pg = {.fsync = true};
    qr_pg_start(&pg, options->dir);
    const double baseline = postgres_baseline(qr_pg_url(&pg, "bench"), options->seconds);
    bench_report_number(report, "postgresql_baseline_writes_per_s", baseline, "/s",
                        "bare libpq, one connection, one write a transaction");
    struct qr_db *db = open_db(qr_pg_url(&pg, "bench"), NULL, 16);
    double rate = 0;
    for (int count = 1; count <= PRODUCERS_MAX; count *= 8) {
        rate = measure_writes(report, "postgresql", db, count, options->seconds);
    }
    bench_report_number(report, "postgresql_64_producers_over_baseline", rate / baseline, "×",
                        "64 producers on 16 connections against the baseline");
    qr_db_close(db);
    qr_pg_remove(&pg);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct bench_report report;
    const struct bench_idle idle = bench_begin(&options, &report, "db", settle, argc, argv);
    bench_sqlite(&report, &options);
    bench_report_goal(&report, "idle_resident_mb", idle.resident_mb, false, 15,
                      "resident memory of an idle process, MB");
    bench_report_goal(&report, "idle_cpu_percent", idle.cpu_percent, false, 0.1, "CPU of an idle process over 5 s, %");
    bench_postgres(&report, &options);
    bench_end(&options, &report);
    return 0;
}
