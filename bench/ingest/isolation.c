#include "ingest/isolation.h"

#include "convert/reader.h"
#include "ingest/folder.h"
#include "workflow/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 1000, ROUNDS = 5, INGEST_ROUNDS = 3, PATH_SIZE = 600, FILE_SIZE_MAX = 4096 };

struct small_file {
    char path[PATH_SIZE];
    char bytes[FILE_SIZE_MAX];
    size_t len;
};

/* The names are those that files_make gives. */
static struct small_file *load_files(const char *dir)
{
    struct small_file *files = calloc(FILES, sizeof files[0]);
    for (int i = 0; files && i < FILES; i++) {
        snprintf(files[i].path, sizeof files[i].path, "%s/part-%05d/text-%07d.txt", dir, i / 100, i);
        FILE *file = fopen(files[i].path, "re");
        if (!file) {
            perror(files[i].path);
            exit(1);
        }
        files[i].len = fread(files[i].bytes, 1, sizeof files[i].bytes, file);
        fclose(file);
    }
    return files;
}

static double convert_all(struct qr_reader *reader, const struct small_file *files)
{
    const struct qr_reader_limits limits = {0};
    struct qr_arena arena;
    struct qr_converted converted;
    qr_err err;
    qr_arena_init(&arena, 0);
    const int64_t began_us = bench_now_us();
    for (int i = 0; i < FILES; i++) {
        qr_arena_reset(&arena);
        bench_must(qr_reader_convert(reader, (qr_str){files[i].bytes, files[i].len}, files[i].path, &limits, &arena,
                                     &converted, &err),
                   &err);
    }
    const double took_s = (double)(bench_now_us() - began_us) / 1e6;
    qr_arena_done(&arena);
    return took_s;
}

/* A new reader each time: the start of its helper is a part of what it costs. */
static double convert_isolated(const struct small_file *files, struct qr_reader_stats *ret_stats)
{
    const struct qr_reader_options options = {.program = QR_READER_PROGRAM, .count_max = 1};
    struct qr_reader *reader;
    qr_err err;
    const int64_t began_us = bench_now_us();
    bench_must(qr_reader_open(&reader, &options, &err), &err);
    convert_all(reader, files);
    const double took_s = (double)(bench_now_us() - began_us) / 1e6;
    qr_reader_stats(reader, ret_stats);
    qr_reader_close(reader);
    return took_s;
}

static void describe(const struct qr_reader_stats *stats, char ret_text[static 100])
{
    snprintf(ret_text, 100, "%s%s%s", stats->protections & QR_PROTECTION_LANDLOCK ? "landlock " : "",
             stats->protections & QR_PROTECTION_SECCOMP ? "seccomp " : "",
             stats->protections & QR_PROTECTION_LIMITS ? "limits" : "");
}

void bench_isolation(struct bench_report *to, const struct bench_options *options)
{
    char dir[512], protections[100];
    double isolated_s[ROUNDS], direct_s[ROUNDS];
    struct qr_reader_stats stats;
    snprintf(dir, sizeof dir, "%s/small", options->dir);
    files_make(dir, FILES, 6);
    const struct folder_figures whole = folder_measure(options, dir, INGEST_ROUNDS);
    struct small_file *files = load_files(dir);
    for (int i = 0; i < ROUNDS; i++) {
        direct_s[i] = convert_all(qr_reader_direct(), files);
        isolated_s[i] = convert_isolated(files, &stats);
    }
    free(files);
    const double isolated = bench_median(isolated_s, ROUNDS), direct = bench_median(direct_s, ROUNDS);
    bench_report_heading(to, "Reading in isolation");
    bench_report_number(to, "isolation_files", FILES, "", "small files");
    describe(&stats, protections);
    bench_report_text(to, "isolation_protections", protections[0] ? protections : "none", "    held by");
    bench_report_number(to, "isolation_direct_us", direct / FILES * 1e6, "us", "one of them read in this process");
    bench_report_number(to, "isolation_us", isolated / FILES * 1e6, "us", "    in a helper, its start included");
    bench_report_number(to, "isolation_ingest_us", whole.whole_s / FILES * 1e6, "us",
                        "    from nothing until it is found");
    bench_report_goal(to, "isolation_percent", (isolated - direct) / whole.whole_s * 100, false, 10,
                      "isolation as a part of that, %");
}
