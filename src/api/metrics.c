/* GET /metrics: numbers for monitoring, in the text format of Prometheus. How many there are does not depend on what is stored:
 * no base, item or key is a label. What is read of the database is a few counts that end at COUNT_MAX, the sizes of files are
 * looked at once a minute, and what was written is told again for a second: whoever scrapes often disturbs nobody.
 *
 * Counters are of this process, but for those of the vector cache, which are the folder's. */
#include "api/router.h"
#include "api/wire.h"
#include "base/thread.h"
#include "job/runner.h"
#include "store/jobs.h"
#include "store/jobs_find.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COUNT_MAX = 10000,
    TEXT_FRESH_US = 1000000,
    FILES_FRESH_US = 60000000,
    FILES_MAX = 100000, /* of one folder that are looked at */
};

/* ---- the form ---- */

/* One metric, before its samples. */
static void head(struct qr_buf *out, const char *name, const char *type, const char *help)
{
    qr_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* One with a single sample. */
static void add_one(struct qr_buf *out, const char *name, const char *type, const char *help, double value)
{
    head(out, name, type, help);
    qr_buf_printf(out, "%s %.17g\n", name, value);
}

/* ---- jobs ---- */

static const enum qr_job_state open_states[] = {QR_JOB_BLOCKED, QR_JOB_SCHEDULED, QR_JOB_QUEUED, QR_JOB_RUNNING};

struct stored {
    struct {
        int64_t counts[QR_COUNT(open_states)];
        int64_t queued_ms, running_ms; /* since when the oldest waits or runs; 0 = none */
        int64_t paused_ms;
    } queues[QR_QUEUE_END];
    struct qr_item_counts items;
    int items_a_look;
    struct qr_rest_counts counting, counted; /* from where it was, and with what was counted now */
    struct qr_vector_count cache;
    int64_t now_ms;
};

static qr_rc load_queue(struct qr_tx *tx, enum qr_queue queue, struct stored *stored, qr_err *err)
{
    for (size_t i = 0; i < QR_COUNT(open_states); i++) {
        QR_TRY(qr_jobs_count(tx, queue, open_states[i], COUNT_MAX, &stored->queues[queue].counts[i], err));
    }
    QR_TRY(
        qr_jobs_oldest(tx, queue, COUNT_MAX, &stored->queues[queue].queued_ms, &stored->queues[queue].running_ms, err));
    return qr_queue_paused_since(tx, queue, &stored->queues[queue].paused_ms, err);
}

static qr_rc load_stored(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct stored *stored = arg;
    QR_TRY(qr_tx_now_ms(tx, &stored->now_ms, err));
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        QR_TRY(load_queue(tx, queue, stored, err));
    }
    QR_TRY(qr_items_count(tx, COUNT_MAX, &stored->items, err));
    stored->counted = stored->counting;
    QR_TRY(qr_items_count_rest(tx, stored->items_a_look, &stored->counted, err));
    return qr_vector_count_load(tx, &stored->cache, err);
}

static double age_s(const struct stored *stored, int64_t since_ms)
{
    return since_ms > 0 && stored->now_ms > since_ms ? (double)(stored->now_ms - since_ms) / 1e3 : 0;
}

static void add_queues(struct qr_buf *out, const struct stored *stored)
{
    head(out, "quire_queue_jobs", "gauge", "Open jobs by queue and state; counting ends at 10000.");
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        for (size_t i = 0; i < QR_COUNT(open_states); i++) {
            qr_buf_printf(out, "quire_queue_jobs{queue=\"%s\",state=\"%s\"} %lld\n", qr_queue_name(queue),
                          qr_job_state_name(open_states[i]), (long long)stored->queues[queue].counts[i]);
        }
    }
    head(out, "quire_queue_oldest_seconds", "gauge",
         "How long the oldest job of a queue waits or runs, of the first 10000.");
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        qr_buf_printf(out, "quire_queue_oldest_seconds{queue=\"%s\",state=\"queued\"} %.17g\n", qr_queue_name(queue),
                      age_s(stored, stored->queues[queue].queued_ms));
        qr_buf_printf(out, "quire_queue_oldest_seconds{queue=\"%s\",state=\"running\"} %.17g\n", qr_queue_name(queue),
                      age_s(stored, stored->queues[queue].running_ms));
    }
    head(out, "quire_queue_paused", "gauge", "1 where a queue is paused.");
    for (enum qr_queue queue = 1; queue < QR_QUEUE_END; queue++) {
        qr_buf_printf(out, "quire_queue_paused{queue=\"%s\"} %d\n", qr_queue_name(queue),
                      stored->queues[queue].paused_ms > 0);
    }
}

static void add_outcome(struct qr_buf *out, enum qr_job_type type, const char *outcome, uint64_t count)
{
    qr_buf_printf(out, "quire_jobs_total{type=\"%s\",outcome=\"%s\"} %llu\n", qr_job_type_info(type)->name, outcome,
                  (unsigned long long)count);
}

static void add_types(struct qr_buf *out, const struct qr_runner_stats *stats)
{
    head(out, "quire_jobs_total", "counter", "Attempts that ended, by type of job and by what became of them.");
    for (enum qr_job_type type = 1; type < QR_JOB_TYPE_END; type++) {
        add_outcome(out, type, "completed", stats->types[type].completed);
        add_outcome(out, type, "failed", stats->types[type].failed);
        add_outcome(out, type, "skipped", stats->types[type].skipped);
        add_outcome(out, type, "retried", stats->types[type].retried);
        add_outcome(out, type, "snoozed", stats->types[type].snoozed);
    }
    head(out, "quire_job_duration_seconds", "summary",
         "Time of attempts, from their beginning until they are recorded.");
    for (enum qr_job_type type = 1; type < QR_JOB_TYPE_END; type++) {
        const char *name = qr_job_type_info(type)->name;
        qr_buf_printf(out, "quire_job_duration_seconds_sum{type=\"%s\"} %.17g\n", name,
                      (double)stats->types[type].duration_ms / 1e3);
        qr_buf_printf(out, "quire_job_duration_seconds_count{type=\"%s\"} %llu\n", name,
                      (unsigned long long)stats->types[type].timed);
    }
}

static void add_work(struct qr_buf *out, struct quire *quire)
{
    struct qr_runner_stats stats;
    qr_instance_job_stats(quire, &stats);
    add_one(out, "quire_working", "gauge", "1 where this process runs jobs.", qr_instance_is_working(quire));
    add_one(out, "quire_work_in_trouble", "gauge", "1 while jobs can neither begin nor end.",
            stats.trouble.code != QR_CODE_NONE);
    add_types(out, &stats);
    add_one(out, "quire_jobs_claimed_total", "counter", "Jobs that were taken up.", (double)stats.claimed);
    add_one(out, "quire_jobs_rescued_total", "counter", "Jobs of dead workers that were put back in line.",
            (double)stats.rescued);
    add_one(out, "quire_fences_lost_total", "counter", "Outcomes thrown away because the job was somebody else's.",
            (double)stats.lost);
    add_one(out, "quire_leases_lost_total", "counter", "Times that this worker's lease ended.",
            (double)stats.leases_lost);
    add_one(out, "quire_handlers_stuck_total", "counter", "Handlers that did not return.", (double)stats.stuck);
}

/* What is at rest may be all there is, so it is counted in parts (OPS-2). */
static void go_on_counting(struct qr_meter *meter, const struct stored *stored)
{
    meter->counting = stored->counted;
    if (qr_uuid_is_zero(stored->counted.after)) {
        meter->counted = stored->counted;
        meter->counted_us = qr_thread_mono_us();
        meter->counting = (struct qr_rest_counts){0};
    }
}

static void add_items(struct qr_buf *out, const struct qr_item_counts *items, const struct qr_meter *meter)
{
    head(out, "quire_items", "gauge",
         "Items by status. Of those that are not at rest at most 10000 are counted; those that are, 10000 with each "
         "look "
         "until it has been all of them.");
    if (meter->counted_us) {
        qr_buf_printf(out, "quire_items{status=\"completed\"} %lld\n", (long long)meter->counted.completed);
        qr_buf_printf(out, "quire_items{status=\"failed\"} %lld\n", (long long)meter->counted.failed);
    }
    qr_buf_printf(out, "quire_items{status=\"idle\"} %lld\n", (long long)items->idle);
    qr_buf_printf(out, "quire_items{status=\"active\"} %lld\n", (long long)items->active);
    qr_buf_printf(out, "quire_items{status=\"deleting\"} %lld\n", (long long)items->deleting);
    if (meter->counted_us) {
        add_one(out, "quire_items_counted_seconds", "gauge", "How long ago all items at rest had been counted.",
                (double)(qr_thread_mono_us() - meter->counted_us) / 1e6);
    }
}

/* ---- what is asked of others, and what others ask ---- */

static void add_embedding(struct qr_buf *out, struct quire *quire, const struct stored *stored)
{
    struct qr_embed_counts *counts = &quire->embed_counts;
    add_one(out, "quire_vector_cache_hits_total", "counter", "Vectors that were looked for and there.",
            (double)(stored->cache.hits + atomic_load(&quire->counts.hits)));
    add_one(out, "quire_vector_cache_misses_total", "counter", "Vectors that were looked for and not there.",
            (double)(stored->cache.misses + atomic_load(&quire->counts.misses)));
    add_one(out, "quire_embedding_calls_total", "counter", "Calls to embedding models.",
            (double)atomic_load(&counts->calls));
    add_one(out, "quire_embedding_failed_calls_total", "counter", "Calls to embedding models that failed.",
            (double)atomic_load(&counts->failed_calls));
    add_one(out, "quire_embedding_texts_total", "counter", "Texts that models answered for.",
            (double)atomic_load(&counts->texts));
    add_one(out, "quire_embedding_tokens_total", "counter", "Tokens, as the models that tell count them.",
            (double)atomic_load(&counts->tokens));
}

static void add_endpoints(struct qr_buf *out, struct quire *quire)
{
    struct qr_endpoints_totals totals;
    qr_endpoints_look(quire->endpoints, &totals);
    head(out, "quire_circuits", "gauge",
         "Servers elsewhere by the state of their circuit: nothing is sent to open ones.");
    qr_buf_printf(out, "quire_circuits{state=\"closed\"} %d\n", totals.known - totals.open);
    qr_buf_printf(out, "quire_circuits{state=\"open\"} %d\n", totals.open);
    add_one(out, "quire_endpoint_requests_total", "counter", "Requests to servers elsewhere that are known now.",
            (double)totals.request_count);
    head(out, "quire_endpoint_refusals_total", "counter", "Of those, refused for good or for now.");
    qr_buf_printf(out, "quire_endpoint_refusals_total{reason=\"refused\"} %llu\n",
                  (unsigned long long)totals.refused_count);
    qr_buf_printf(out, "quire_endpoint_refusals_total{reason=\"limited\"} %llu\n",
                  (unsigned long long)totals.limited_count);
}

static void add_requests(struct qr_buf *out, struct qr_meter *meter)
{
    head(out, "quire_requests_total", "counter", "Requests that were answered, by class of their status.");
    for (int class = 1; class < QR_METER_CLASSES; class ++) {
        qr_buf_printf(out, "quire_requests_total{class=\"%dxx\"} %llu\n", class,
                      (unsigned long long)atomic_load(&meter->requests[class]));
    }
    uint64_t count = 0;
    head(out, "quire_search_duration_seconds", "histogram", "Time of searches, from the request to its answer.");
    for (size_t i = 0; i < QR_METER_BUCKETS; i++) {
        count += atomic_load(&meter->searches[i]);
        qr_buf_printf(out, "quire_search_duration_seconds_bucket{le=\"%g\"} %llu\n",
                      (double)qr_meter_bounds_us[i] / 1e6, (unsigned long long)count);
    }
    count += atomic_load(&meter->searches[QR_METER_BUCKETS]);
    qr_buf_printf(out, "quire_search_duration_seconds_bucket{le=\"+Inf\"} %llu\n", (unsigned long long)count);
    qr_buf_printf(out, "quire_search_duration_seconds_sum %.17g\n", (double)atomic_load(&meter->search_us) / 1e6);
    qr_buf_printf(out, "quire_search_duration_seconds_count %llu\n", (unsigned long long)count);
}

/* ---- files, and the process ---- */

static void look_at_file(struct qr_meter *meter, int folder, const char *name)
{
    struct stat stat;
    if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(stat.st_mode)) {
        return;
    }
    if (qr_str_ends_with(qr_str_of(name), QR_STR("-wal"))) {
        meter->index_wal_bytes += stat.st_size;
    } else if (qr_str_ends_with(qr_str_of(name), QR_STR(".db"))) {
        meter->index_bytes += stat.st_size;
        meter->index_files++;
    }
}

static void look_at_files(struct quire *quire, struct qr_meter *meter)
{
    const int64_t now_us = qr_thread_mono_us();
    if (!quire->index_dir || (meter->files_us && now_us - meter->files_us < FILES_FRESH_US)) {
        return;
    }
    meter->files_us = now_us;
    meter->index_bytes = meter->index_wal_bytes = meter->index_files = 0;
    DIR *dir = opendir(quire->index_dir);
    const struct dirent *entry;
    for (int i = 0; dir && i < FILES_MAX && (entry = readdir(dir)); i++) {
        look_at_file(meter, dirfd(dir), entry->d_name);
    }
    if (dir) {
        closedir(dir);
    }
}

static void add_files(struct qr_buf *out, struct quire *quire, struct qr_meter *meter)
{
    struct qr_db_stats stats;
    qr_db_stats(quire->db, &stats);
    add_one(out, "quire_db_writes_total", "counter", "Changes that were written.", (double)stats.writes);
    add_one(out, "quire_db_commits_total", "counter", "Transactions that carried them.", (double)stats.commits);
    add_one(out, "quire_db_reopens_total", "counter", "Times that the database was opened or connected to anew.",
            (double)stats.reopens);
    add_one(out, "quire_db_read_timeouts_total", "counter", "Reads that passed their deadline.",
            (double)stats.read_timeouts);
    if (!quire->index_dir) {
        return; /* on PostgreSQL the server has its own numbers */
    }
    look_at_files(quire, meter);
    add_one(out, "quire_db_wal_bytes", "gauge", "Size of the main database's log.", (double)stats.wal_bytes);
    add_one(out, "quire_index_files", "gauge", "Index stores on the disk.", (double)meter->index_files);
    add_one(out, "quire_index_bytes", "gauge", "Size of all index stores; looked at once a minute.",
            (double)meter->index_bytes);
    add_one(out, "quire_index_wal_bytes", "gauge", "Size of their logs; looked at once a minute.",
            (double)meter->index_wal_bytes);
}

static int64_t resident_bytes(void)
{
    long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%lld %lld", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return resident * sysconf(_SC_PAGESIZE);
}

static int count_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && count < FILES_MAX && readdir(dir)) {
        count++;
    }
    if (dir) {
        closedir(dir);
    }
    return QR_MAX(count - 3, 0); /* "." and "..", and the look's own */
}

static void add_process(struct qr_buf *out, const struct quire *quire)
{
    head(out, "quire_info", "gauge", "Always 1; what runs.");
    qr_buf_printf(out, "quire_info{version=\"%s\",database=\"%s\"} 1\n", quire_version(), qr_db_driver_name(quire->db));
    add_one(out, "quire_uptime_seconds", "gauge", "Since the data folder was opened.",
            (double)(qr_thread_mono_us() - quire->meter.opened_us) / 1e6);
    add_one(out, "process_resident_memory_bytes", "gauge", "Memory in use, without the reader processes.",
            (double)resident_bytes());
    add_one(out, "process_open_fds", "gauge", "Open files and sockets.", count_fds());
    add_one(out, "quire_audit_lost_total", "counter", "Lines of the audit file that could not be written.",
            (double)atomic_load(&quire->audit_lost));
}

/* ---- the route ---- */

static qr_rc write_text(struct quire *quire, struct qr_meter *meter, qr_err *err)
{
    struct stored stored = {.items_a_look = meter->items_a_look, .counting = meter->counting};
    QR_TRY(qr_db_read(quire->db, load_stored, &stored, err));
    go_on_counting(meter, &stored);
    struct qr_buf *out = &meter->text;
    qr_buf_clear(out);
    add_process(out, quire);
    add_queues(out, &stored);
    add_work(out, quire);
    add_items(out, &stored.items, meter);
    add_embedding(out, quire, &stored);
    add_endpoints(out, quire);
    add_requests(out, meter);
    add_files(out, quire, meter);
    QR_TRY(qr_buf_check(out, err));
    meter->text_us = qr_thread_mono_us();
    return QR_OK;
}

qr_rc qr_route_metrics(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct qr_meter *meter = &request->quire->meter;
    QR_HOLD(&meter->lock);
    const bool is_fresh = meter->text.len && qr_thread_mono_us() - meter->text_us < TEXT_FRESH_US;
    const qr_rc rc = is_fresh ? QR_OK : write_text(request->quire, meter, err);
    if (rc != QR_OK) {
        qr_buf_clear(&meter->text);
        return rc;
    }
    qr_buf_add(&reply->bytes, qr_buf_str(&meter->text));
    QR_TRY(qr_buf_check(&reply->bytes, err));
    reply->status = 200;
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    return QR_OK;
}
