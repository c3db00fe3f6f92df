/* bench/run search: how long a search takes, end to end, in a base of 10,000 generated chunks: with nothing else to do, while
 * another folder is indexed, and with vectors. --files is the size of the base in files, of ten chunks each. */
#include "ingest/corpus.h"
#include "search/beside.h"
#include "support/fault_vfs.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNKS_DEFAULT = 10000,
    WARM_QUERIES = 50,
    QUERIES_MIN = 500,
};

/* A data folder with nothing to do. */
static void settle(const char *url)
{
    static struct place place;
    place_open(&place, url + strlen("sqlite:"), true);
}

/* ---- bases ---- */

static void add_base(struct place *place, const char *name, const char *provider)
{
    json_t *body = json_pack("{s:s, s:{s:{s:s}}}", "name", name, "settings", "embedding", "provider", provider);
    json_t *base = place_call(place, "POST", "/bases", body);
    snprintf(place->base, sizeof place->base, "%s", json_string_value(json_object_get(base, "id")));
    json_decref(base);
}

/* Gives the files a second. */
static double fill_base(struct place *place, const char *name, const char *provider, const char *folder, int files)
{
    char id[PLACE_ID_SIZE];
    add_base(place, name, provider);
    const int64_t began_us = bench_now_us();
    place_add_folder(place, folder, false, id);
    place_wait(place, id);
    const double took_s = (double)(bench_now_us() - began_us) / 1e6;
    fprintf(stderr, "bench: base %s: %d files in %.1f s\n", name, files, took_s);
    return files / took_s;
}

/* ---- idle ---- */

static void run_queries(struct place *place, const char *mode, double seconds, struct query_times *times)
{
    struct query_source source = {.state = 7};
    struct query_times warm = {0};
    for (int i = 0; i < WARM_QUERIES; i++) {
        query_run(place, mode, &source, &warm);
    }
    query_times_free(&warm);
    const int64_t end_us = bench_now_us() + (int64_t)(seconds * 1e6);
    while (bench_now_us() < end_us || times->all.count < QUERIES_MIN) {
        query_run(place, mode, &source, times);
    }
}

static void report_idle(struct bench_report *to, struct query_times *times, int files)
{
    double by_words_ms[QUERY_WORDS_MAX];
    for (size_t i = 0; i < QUERY_WORDS_MAX; i++) {
        by_words_ms[i] = bench_times_quantile(&times->by_words[i], 0.5) / 1e3;
    }
    bench_report_heading(to, "Search by words, nothing else to do");
    bench_report_number(to, "files", files, "", "files of ten chunks in the base");
    bench_report_number(to, "queries", (double)times->all.count, "", "queries of one to six words");
    bench_report_number(to, "queries_empty", (double)times->empty, "", "    that found nothing");
    bench_report_goal(to, "p50_ms", bench_times_quantile(&times->all, 0.5) / 1e3, false, 5, "end to end, p50, ms");
    bench_report_number(to, "p50_cpu_ms", bench_times_quantile(&times->cpu, 0.5) / 1e3, "ms", "    CPU, p50");
    bench_report_number(to, "p90_ms", bench_times_quantile(&times->all, 0.9) / 1e3, "ms", "    p90");
    bench_report_number(to, "p99_ms", bench_times_quantile(&times->all, 0.99) / 1e3, "ms", "    p99");
    bench_report_series(to, "p50_by_words_ms", by_words_ms, QUERY_WORDS_MAX, "ms", "    p50 by the number of words");
}

/* ---- beside indexing ---- */

static void bench_beside(struct bench_report *to, const struct bench_options *options, struct place *place,
                         double files_per_s)
{
    char folder[512];
    struct place other = *place;
    struct query_source source = {.state = 77};
    snprintf(folder, sizeof folder, "%s/other", options->dir);
    corpus_make(folder, beside_files(files_per_s, options->seconds), 2);
    place_add_base(&other, "other");
    struct beside beside = {.place = place,
                            .other = other.base,
                            .folder = folder,
                            .seconds = options->seconds,
                            .search = beside_search,
                            .arg = &source};
    const struct beside_figures there = beside_measure(&beside);
    beside_report(to, &there, "beside_other", "The same while another base is filled");
    beside.other = place->base;
    const struct beside_figures here = beside_measure(&beside);
    beside_report(to, &here, "beside_same", "The same while a folder is added to the base itself");
}

/* ---- with vectors ---- */

static void bench_hybrid(struct bench_report *to, const struct bench_options *options, struct place *place,
                         const char *folder, int files)
{
    struct query_times times = {0};
    bench_report_heading(to, "Words and vectors (provider hash)");
    fill_base(place, "hybrid", "hash", folder, files);
    if (!query_has_mode(place, "hybrid")) {
        bench_report_text(to, "hybrid_skipped", "the mode hybrid is refused", "skipped");
        return;
    }
    run_queries(place, "hybrid", options->seconds, &times);
    bench_report_number(to, "hybrid_p50_ms", bench_times_quantile(&times.all, 0.5) / 1e3, "ms", "end to end, p50");
    bench_report_number(to, "hybrid_p50_cpu_ms", bench_times_quantile(&times.cpu, 0.5) / 1e3, "ms", "    CPU, p50");
    bench_report_number(to, "hybrid_p99_ms", bench_times_quantile(&times.all, 0.99) / 1e3, "ms", "    p99");
    query_times_free(&times);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct bench_report to;
    struct place place;
    struct query_times times = {0};
    char data_dir[512], folder[512];
    bench_begin(&options, &to, "search", settle, argc, argv);
    sqlite3_vfs_register(sqlite3_vfs_find("fault"), 1); /* every database from here on is on a disk as slow as ours */
    const int files = options.files ? options.files : CHUNKS_DEFAULT / CORPUS_CHUNKS_A_FILE;
    snprintf(folder, sizeof folder, "%s/corpus", options.dir);
    corpus_make(folder, files, 1);
    snprintf(data_dir, sizeof data_dir, "%s/search-data", options.dir);
    place_open(&place, data_dir, true);
    const double files_per_s = fill_base(&place, "words", "none", folder, files);
    run_queries(&place, "text", options.seconds, &times);
    report_idle(&to, &times, files);
    query_times_free(&times);
    bench_beside(&to, &options, &place, files_per_s);
    bench_hybrid(&to, &options, &place, folder, files);
    place_close(&place);
    bench_end(&options, &to);
    return 0;
}
