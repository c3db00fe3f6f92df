/* pandoc is measured twice: a process for each file, as a tool that calls it does, and one for many files at a time, so that
 * its start does not count. Files that one of the two does not take do not count for the other either. */
#include "ingest/html.h"

#include "convert/convert.h"

#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FILES_MAX = 5000,
    BYTES_MAX = 4 << 20,
    BYTES_MAX_LARGE = 30 << 20,
    BATCH_BYTES_MAX = 2 << 20, /* for one pandoc: it takes a hundred times that in memory */
    BATCH_FILES_MAX = 200,
    OUR_ROUNDS = 3,
};
#define HTML_FOLDER "/usr/share"

struct html_file {
    char *path;
    size_t size;
    double our_s;
    bool is_taken; /* by both so far */
};

/* nftw has no argument of its own. */
static struct {
    struct html_file files[FILES_MAX];
    size_t count;
} found;

/* ---- the files ---- */

static int take_file(const char *path, const struct stat *st, int type, struct FTW *ftw QR_UNUSED)
{
    const char *dot = strrchr(path, '.');
    if (type != FTW_F || !dot || (strcasecmp(dot, ".html") != 0 && strcasecmp(dot, ".htm") != 0) || st->st_size == 0 ||
        found.count == FILES_MAX) {
        return 0;
    }
    found.files[found.count++] = (struct html_file){.path = strdup(path), .size = (size_t)st->st_size};
    return 0;
}

static int compare_paths(const void *a, const void *b)
{
    const struct html_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

/* The same ones every time, from all over. */
static void shuffle(void)
{
    uint64_t state = 1;
    qsort(found.files, found.count, sizeof found.files[0], compare_paths);
    for (size_t i = found.count; i > 1; i--) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const size_t other = (size_t)(state >> 33) % i;
        const struct html_file swapped = found.files[i - 1];
        found.files[i - 1] = found.files[other];
        found.files[other] = swapped;
    }
}

static void find_files(size_t bytes_max)
{
    size_t kept = 0, bytes = 0;
    nftw(HTML_FOLDER, take_file, 16, FTW_PHYS);
    shuffle();
    for (size_t i = 0; i < found.count; i++) {
        if (bytes + found.files[i].size <= bytes_max) {
            bytes += found.files[i].size;
            found.files[kept++] = found.files[i];
        } else {
            free(found.files[i].path);
        }
    }
    found.count = kept;
}

/* ---- we ---- */

static bool read_whole(const struct html_file *file, char *ret_bytes)
{
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    const ssize_t len = fd >= 0 ? read(fd, ret_bytes, file->size) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return len == (ssize_t)file->size;
}

static bool convert_file(const struct html_file *file, struct qr_arena *arena)
{
    struct qr_converted converted;
    qr_err err;
    qr_arena_reset(arena);
    char *bytes = qr_arena_alloc(arena, file->size);
    return bytes && read_whole(file, bytes) &&
           qr_convert((qr_str){bytes, file->size}, file->path, arena, &converted, &err) == QR_OK;
}

/* The middle one of several: a single small file is over too soon. */
static void convert_all(void)
{
    struct qr_arena arena;
    qr_arena_init(&arena, 0);
    for (size_t i = 0; i < found.count; i++) {
        struct html_file *file = &found.files[i];
        double took_s[OUR_ROUNDS];
        file->is_taken = true;
        for (int round = 0; round < OUR_ROUNDS; round++) {
            const int64_t began_us = bench_now_us();
            file->is_taken = convert_file(file, &arena) && file->is_taken;
            took_s[round] = (double)(bench_now_us() - began_us) / 1e6;
        }
        file->our_s = bench_median(took_s, OUR_ROUNDS);
    }
    qr_arena_done(&arena);
}

/* ---- pandoc ---- */

/* Whether it took them. `args` has room for the program and its options before the `count` paths, and a NULL behind. */
static bool run_pandoc(const char **args)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int error = posix_spawnp(&child, args[0], &actions, NULL, (char *const *)args, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool has_pandoc(void)
{
    return run_pandoc((const char *[]){"pandoc", "--version", NULL});
}

struct html_sums {
    size_t files, bytes;
    double our_s, pandoc_s;
};

/* Takes files from `first` on for one pandoc; gives the number of the first that is left. */
static size_t run_batch(size_t first, size_t files_max, struct html_sums *sums)
{
    const char *args[BATCH_FILES_MAX + 6] = {"pandoc", "-f", "html", "-t", "markdown"};
    size_t next = first, count = 0, bytes = 0;
    double our_s = 0;
    for (; next < found.count && count < files_max; next++) {
        const struct html_file *file = &found.files[next];
        if (!file->is_taken) {
            continue;
        }
        if (count > 0 && bytes + file->size > BATCH_BYTES_MAX) {
            break;
        }
        args[5 + count++] = file->path;
        bytes += file->size;
        our_s += file->our_s;
    }
    const int64_t began_us = bench_now_us();
    const bool is_taken = count > 0 && run_pandoc(args);
    if (count == 1) {
        found.files[next - 1].is_taken = is_taken;
    }
    if (is_taken) {
        sums->files += count;
        sums->bytes += bytes;
        sums->our_s += our_s;
        sums->pandoc_s += (double)(bench_now_us() - began_us) / 1e6;
    }
    return next;
}

static struct html_sums run_batches(size_t files_a_batch)
{
    struct html_sums sums = {0};
    for (size_t next = 0; next < found.count;) {
        next = run_batch(next, files_a_batch, &sums);
    }
    return sums;
}

/* ---- the report ---- */

static void report_sums(struct bench_report *to, const struct html_sums *sums, size_t found_count)
{
    bench_report_number(to, "html_files", (double)sums->files, "", "files that both take");
    bench_report_number(to, "html_left_out", (double)(found_count - sums->files), "",
                        "    left out: one of them failed");
    bench_report_number(to, "html_mb", (double)sums->bytes / (1 << 20), "MB", "    all together");
    bench_report_number(to, "html_mb_per_s", (double)sums->bytes / (1 << 20) / sums->our_s, "MB/s",
                        "here, in one thread");
    bench_report_number(to, "html_pandoc_mb_per_s", (double)sums->bytes / (1 << 20) / sums->pandoc_s, "MB/s",
                        "pandoc, a process for each file");
    bench_report_goal(to, "html_against_pandoc", sums->pandoc_s / sums->our_s, true, 20, "    so many times faster");
}

void bench_html(struct bench_report *to, const struct bench_options *options)
{
    bench_report_heading(to, "HTML to Markdown, files of " HTML_FOLDER);
    if (!has_pandoc()) {
        bench_report_text(to, "html_skipped", "pandoc is not installed (Debian package pandoc)", "skipped");
        return;
    }
    find_files(options->large ? BYTES_MAX_LARGE : BYTES_MAX);
    fprintf(stderr, "bench: %zu HTML files, here and by pandoc\n", found.count);
    convert_all();
    const struct html_sums single = run_batches(1);
    if (single.files == 0) {
        bench_report_text(to, "html_skipped", "there is no HTML file that both take", "skipped");
        return;
    }
    report_sums(to, &single, found.count);
    const struct html_sums many = run_batches(BATCH_FILES_MAX);
    if (many.files > 0) {
        bench_report_number(to, "html_pandoc_many_mb_per_s", (double)many.bytes / (1 << 20) / many.pandoc_s, "MB/s",
                            "pandoc, one process for up to 2 MB of files");
        bench_report_goal(to, "html_against_pandoc_many", many.pandoc_s / many.our_s, true, 20,
                          "    so many times faster");
    }
}
