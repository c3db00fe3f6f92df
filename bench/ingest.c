/* bench/run ingest: from files to what can be found. A real folder (--source, by default /usr/share/doc) and a generated one,
 * against a bare insert of the same chunks into FTS5; HTML against pandoc; what isolation costs. --files is the size of the
 * generated folder; --large makes it 200,000 chunks and takes more HTML. */
#include "ingest/corpus.h"
#include "ingest/folder.h"
#include "ingest/html.h"
#include "ingest/isolation.h"
#include "support/fault_vfs.h"
#include "workflow/place.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNKS_DEFAULT = 20000,
    CHUNKS_LARGE = 200000,
    ROUNDS = 3,
};
#define FOLDER_DEFAULT "/usr/share/doc"

/* A data folder with nothing to do. */
static void settle(const char *url)
{
    static struct place place;
    place_open(&place, url + strlen("sqlite:"), true);
}

static void bench_real(struct bench_report *to, const struct bench_options *options)
{
    char heading[400];
    const char *folder = options->source ? options->source : FOLDER_DEFAULT;
    const struct folder_figures figures = folder_measure(options, folder, ROUNDS);
    snprintf(heading, sizeof heading, "%s, embedding none", folder);
    folder_report(to, &figures, "real", heading);
}

static void bench_generated(struct bench_report *to, const struct bench_options *options)
{
    char dir[512];
    const int count = options->files   ? options->files
                      : options->large ? CHUNKS_LARGE / CORPUS_CHUNKS_A_FILE
                                       : CHUNKS_DEFAULT / CORPUS_CHUNKS_A_FILE;
    snprintf(dir, sizeof dir, "%s/corpus", options->dir);
    corpus_make(dir, count, 1);
    const struct folder_figures figures = folder_measure(options, dir, options->large ? 1 : ROUNDS);
    folder_report(to, &figures, "generated", "Generated documents, embedding none");
    bench_remove(dir);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct bench_report to;
    bench_begin(&options, &to, "ingest", settle, argc, argv);
    sqlite3_vfs_register(sqlite3_vfs_find("fault"), 1); /* every database from here on is on a disk as slow as ours */
    bench_real(&to, &options);
    bench_generated(&to, &options);
    bench_isolation(&to, &options);
    bench_html(&to, &options);
    bench_end(&options, &to);
    return 0;
}
