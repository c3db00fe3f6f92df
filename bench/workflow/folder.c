#include "workflow/folder.h"

#include "workflow/bare.h"
#include "workflow/files.h"

#include <stdio.h>

enum { ROUNDS = 3, PART = 10 }; /* a tenth */

struct round {
    double bare_s, whole_s, part_s, again_s;
    double bare_cpu_s, whole_cpu_s;
    struct place_writes writes;
};

static double seconds_since(int64_t began_us)
{
    return (double)(bench_now_us() - began_us) / 1e6;
}

/* From a data folder that is not there to the last file of `folder`, and then the same once more. */
static double index_folder(const char *folder, const char *dir, double *ret_again_s, struct place_writes *ret_writes)
{
    struct place place;
    char id[PLACE_ID_SIZE];
    int64_t began_us = bench_now_us();
    place_open(&place, dir, true);
    place_add_base(&place, "bench");
    place_add_folder(&place, folder, false, id);
    place_wait(&place, id);
    const double took_s = seconds_since(began_us);
    if (ret_again_s) {
        began_us = bench_now_us();
        place_add_folder(&place, folder, true, id);
        place_wait_refreshed(&place, id);
        *ret_again_s = seconds_since(began_us);
        *ret_writes = place_writes(&place);
    }
    place_close(&place);
    return took_s;
}

static struct round run_round(const struct bench_options *options, int number)
{
    struct round round;
    char whole[512], part[512], path[512];
    int count;
    snprintf(whole, sizeof whole, "%s/whole", options->dir);
    snprintf(part, sizeof part, "%s/part", options->dir);
    snprintf(path, sizeof path, "%s/bare-%d.db", options->dir, number);
    double cpu_s = bench_cpu_seconds();
    round.bare_s = (double)bare_index(whole, path, &count) / 1e6;
    round.bare_cpu_s = bench_cpu_seconds() - cpu_s;
    snprintf(path, sizeof path, "%s/part-data-%d", options->dir, number);
    round.part_s = index_folder(part, path, NULL, NULL);
    snprintf(path, sizeof path, "%s/whole-data-%d", options->dir, number);
    cpu_s = bench_cpu_seconds();
    round.whole_s = index_folder(whole, path, &round.again_s, &round.writes);
    round.whole_cpu_s = bench_cpu_seconds() - cpu_s;
    fprintf(
        stderr,
        "bench: round %d: bare %.2f s (CPU %.2f), whole %.2f s (CPU %.2f; %llu and %llu transactions), a tenth %.2f s, "
        "again %.3f s\n",
        number + 1, round.bare_s, round.bare_cpu_s, round.whole_s, round.whole_cpu_s,
        (unsigned long long)round.writes.main_count, (unsigned long long)round.writes.index_count, round.part_s,
        round.again_s);
    return round;
}

/* The middle one of the rounds. */
static double middle(const struct round *rounds, double (*figure)(const struct round *round))
{
    double a = figure(&rounds[0]), b = figure(&rounds[1]), c = figure(&rounds[2]);
    return QR_MAX(QR_MIN(a, b), QR_MIN(QR_MAX(a, b), c));
}

static double whole_s(const struct round *round)
{
    return round->whole_s;
}

static double bare_s(const struct round *round)
{
    return round->bare_s;
}

static double again_s(const struct round *round)
{
    return round->again_s;
}

static double against_bare(const struct round *round)
{
    return round->bare_s / round->whole_s;
}

static double against_part(const struct round *round)
{
    return round->whole_s / round->part_s;
}

static double against_again(const struct round *round)
{
    return round->whole_s / round->again_s;
}

void bench_folder(struct bench_report *to, const struct bench_options *options, int count)
{
    char dir[512];
    struct round rounds[ROUNDS];
    double main_ms = 0, index_ms = 0;
    snprintf(dir, sizeof dir, "%s/whole", options->dir);
    const size_t bytes = files_make(dir, count, 1);
    snprintf(dir, sizeof dir, "%s/part", options->dir);
    files_make(dir, count / PART, 2);
    for (int i = 0; i < ROUNDS; i++) {
        rounds[i] = run_round(options, i);
        main_ms = QR_MAX(main_ms, rounds[i].writes.main_longest_ms);
        index_ms = QR_MAX(index_ms, rounds[i].writes.index_longest_ms);
    }
    bench_report_heading(to, "A folder of small text files, embedding none");
    bench_report_number(to, "files", count, "", "files");
    bench_report_number(to, "file_mb", (double)bytes / (1 << 20), "MB", "    all together");
    bench_report_number(to, "bare_files_per_s", count / middle(rounds, bare_s), "files/s",
                        "a bare loop that inserts them into FTS5");
    bench_report_number(to, "files_per_s", count / middle(rounds, whole_s), "files/s",
                        "from nothing until all are completed");
    bench_report_goal(to, "against_bare", middle(rounds, against_bare), true, 0.5, "against the bare loop");
    bench_report_goal(to, "ten_times", middle(rounds, against_part), false, 12,
                      "ten times as many take as many times as long");
    bench_report_number(to, "again_ms", middle(rounds, again_s) * 1e3, "ms", "adding it again, unchanged");
    bench_report_goal(to, "again_faster", middle(rounds, against_again), true, 50, "    times faster");
    bench_report_goal(to, "longest_main_ms", main_ms, false, 50, "the longest transaction of the main database, ms");
    bench_report_goal(to, "longest_index_ms", index_ms, false, 50, "    of an index store");
}
