#include "ingest/isolation.h"

#include "convert/reader.h"
#include "ingest/folder.h"
#include "workflow/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 1000, TOGETHER = 32, ROUNDS = 5, INGEST_ROUNDS = 3, PATH_SIZE = 600, FILE_SIZE_MAX = 4096 };

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

struct cost {
    double wall_s, cpu_s; /* of the processor: with the helpers */
};

static struct cost cost_now(void)
{
    return (struct cost){(double)bench_now_us() / 1e6, bench_cpu_seconds() + bench_children_cpu_seconds()};
}

static struct cost cost_since(struct cost began)
{
    const struct cost now = cost_now();
    return (struct cost){now.wall_s - began.wall_s, now.cpu_s - began.cpu_s};
}

static void convert_together(struct qr_reader *reader, const struct small_file *files, size_t count,
                             struct qr_arena *arena)
{
    static struct qr_reader_file asked[TOGETHER];
    qr_arena_reset(arena);
    for (size_t i = 0; i < count; i++) {
        asked[i] =
            (struct qr_reader_file){.bytes = {files[i].bytes, files[i].len}, .name = files[i].path, .arena = arena};
    }
    qr_reader_convert_several(reader, asked, count);
    for (size_t i = 0; i < count; i++) {
        if (!asked[i].is_answered) {
            fprintf(stderr, "bench: %s: no answer\n", files[i].path);
            exit(1);
        }
        bench_must(asked[i].rc, &asked[i].err);
    }
}

/* As many together as when documents are processed. */
static void convert_all(struct qr_reader *reader, const struct small_file *files)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    for (size_t i = 0; i < FILES; i += TOGETHER) {
        convert_together(reader, files + i, QR_MIN((size_t)TOGETHER, FILES - i), &arena);
    }
    qr_arena_done(&arena);
}

static struct cost convert_directly(const struct small_file *files)
{
    const struct cost began = cost_now();
    convert_all(qr_reader_direct(), files);
    return cost_since(began);
}

/* A new reader each time: the start of its helper is a part of what it costs. */
static struct cost convert_isolated(const struct small_file *files, struct qr_reader_stats *ret_stats)
{
    const struct qr_reader_options options = {.program = QR_READER_PROGRAM, .count_max = 1};
    struct qr_reader *reader;
    qr_err err;
    const struct cost began = cost_now();
    bench_must(qr_reader_open(&reader, &options, &err), &err);
    convert_all(reader, files);
    const double wall_s = cost_since(began).wall_s;
    qr_reader_stats(reader, ret_stats);
    qr_reader_close(reader);
    return (struct cost){wall_s, cost_since(began).cpu_s};
}

static void describe(const struct qr_reader_stats *stats, char ret_text[static 100])
{
    snprintf(ret_text, 100, "%s%s%s", stats->protections & QR_PROTECTION_LANDLOCK ? "landlock " : "",
             stats->protections & QR_PROTECTION_SECCOMP ? "seccomp " : "",
             stats->protections & QR_PROTECTION_LIMITS ? "limits" : "");
}

static struct cost median_of(const struct cost *costs)
{
    double wall_s[ROUNDS], cpu_s[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        wall_s[i] = costs[i].wall_s;
        cpu_s[i] = costs[i].cpu_s;
    }
    return (struct cost){bench_median(wall_s, ROUNDS), bench_median(cpu_s, ROUNDS)};
}

static double each_us(double seconds)
{
    return seconds / FILES * 1e6;
}

void bench_isolation(struct bench_report *to, const struct bench_options *options)
{
    char dir[512], protections[100];
    struct cost isolated_each[ROUNDS], direct_each[ROUNDS];
    struct qr_reader_stats stats;
    snprintf(dir, sizeof dir, "%s/small", options->dir);
    files_make(dir, FILES, 6);
    const struct folder_figures whole = folder_measure(options, dir, INGEST_ROUNDS);
    struct small_file *files = load_files(dir);
    for (int i = 0; i < ROUNDS; i++) {
        direct_each[i] = convert_directly(files);
        isolated_each[i] = convert_isolated(files, &stats);
    }
    free(files);
    const struct cost isolated = median_of(isolated_each), direct = median_of(direct_each);
    const double whole_cpu_s = whole.whole_cpu_s + whole.helper_cpu_s;
    bench_report_heading(to, "Reading in isolation");
    bench_report_number(to, "isolation_files", FILES, "", "small files, up to 32 at a time");
    describe(&stats, protections);
    bench_report_text(to, "isolation_protections", protections[0] ? protections : "none", "    held by");
    bench_report_number(to, "isolation_direct_us", each_us(direct.wall_s), "us", "one of them read in this process");
    bench_report_number(to, "isolation_us", each_us(isolated.wall_s), "us", "    in a helper, its start included");
    bench_report_number(to, "isolation_ingest_us", each_us(whole.whole_s), "us", "    from nothing until it is found");
    bench_report_goal(to, "isolation_percent", (isolated.wall_s - direct.wall_s) / whole.whole_s * 100, false, 10,
                      "isolation as a part of that, %");
    bench_report_number(to, "isolation_direct_cpu_us", each_us(direct.cpu_s), "us", "by the processor: here");
    bench_report_number(to, "isolation_cpu_us", each_us(isolated.cpu_s), "us", "    in a helper");
    bench_report_number(to, "isolation_ingest_cpu_us", each_us(whole_cpu_s), "us",
                        "    from nothing until it is found");
    bench_report_number(to, "isolation_cpu_percent", (isolated.cpu_s - direct.cpu_s) / whole_cpu_s * 100, "%",
                        "isolation as a part of that");
}
