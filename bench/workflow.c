/* bench/run workflow: what the knowledge workflow costs. A folder of small text files from nothing to all completed, against a
 * bare loop that inserts them into FTS5; the same again when nothing has changed; deleting it while another one is indexed.
 * With --large also a million items, a million open jobs after kill -9, and 5,000 bases. */
#include "support/fault_vfs.h"
#include "workflow/folder.h"
#include "workflow/large.h"
#include "workflow/removal.h"

#include <sqlite3.h>
#include <string.h>

enum {
    FILES_DEFAULT = 20000,
    FILES_MIN = 1000,
    MANY_ITEMS = 1000000,
    MANY_BASES = 5000,
};

/* A data folder with nothing to do. */
static void settle(const char *url)
{
    static struct place place;
    place_open(&place, url + strlen("sqlite:"), true);
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct bench_report to;
    const struct bench_idle idle = bench_begin(&options, &to, "workflow", settle, argc, argv);
    sqlite3_vfs_register(sqlite3_vfs_find("fault"), 1); /* every database from here on is on a disk as slow as ours */
    const int files = options.files == 0 ? FILES_DEFAULT : QR_MAX(options.files, FILES_MIN);
    bench_folder(&to, &options, files);
    bench_removal(&to, &options, files);
    if (options.large) {
        bench_many_items(&to, &options, MANY_ITEMS);
        bench_many_jobs(&to, &options, MANY_ITEMS);
        bench_many_bases(&to, &options, MANY_BASES);
    }
    bench_report_heading(&to, "At rest");
    bench_report_goal(&to, "idle_cpu_percent", idle.cpu_percent, false, 0.1, "CPU of an idle instance over 5 s, %");
    bench_report_number(&to, "idle_resident_mb", idle.resident_mb, "MB", "resident memory of an idle instance");
    bench_end(&options, &to);
    return 0;
}
