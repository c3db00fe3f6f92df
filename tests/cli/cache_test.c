/* quire cache as a user runs it: what it prints, and how it ends. */
#include "base/fs.h"
#include "base/proc.h"
#include "support/test.h"

#include <limits.h>
#include <sys/stat.h>

enum { ARGS_MAX = 8 };

static void check_run(const char *data_dir, const char *const *args, int exit_code, const char *out, const char *errors)
{
    const char *argv[ARGS_MAX + 4] = {QUIRE_BINARY_DIR "/quire", "--data", data_dir};
    const char *env[] = {"HOME=/nonexistent", "PATH=/usr/bin:/bin", NULL};
    QR_CLEANUP(qr_buf_done) struct qr_buf printed = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf complained = {0};
    for (size_t i = 0; args[i]; i++) {
        QR_CHECK(i < ARGS_MAX);
        argv[i + 3] = args[i];
    }
    const struct qr_proc_options options = {.argv = argv, .env = env, .output_bytes_max = 1 << 20, .timeout_ms = 50000};
    struct qr_proc_result result;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &printed, &complained, &result, &err));
    if (result.exit_code != exit_code) {
        QR_FAIL("%s ends with %d: %s%s", args[0], result.exit_code, qr_buf_str(&printed).ptr,
                qr_buf_str(&complained).ptr);
    }
    QR_CHECK_HAS(out, qr_buf_str(&printed).ptr);
    QR_CHECK_HAS(errors, qr_buf_str(&complained).ptr);
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void write_file(struct qr_test *t, const char *name, const char *text)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, name), qr_str_of(text), 0600, &err));
}

/* A folder with two files, in a base that embeds. */
static const char *make_data(struct qr_test *t)
{
    const char *data = qr_test_path(t, "data"), *folder = qr_test_path(t, "src");
    QR_CHECK(mkdir(folder, 0700) == 0);
    write_file(t, "src/a.txt", "words about rivers");
    write_file(t, "src/b.txt", "words about trains");
    check_run(data, ARGS("base", "create", "default", "embedding.provider=hash"), 0, "default", "");
    check_run(data, ARGS("add", folder), 0, "", "");
    return data;
}

QR_TEST(the_cache_says_what_it_holds_and_gives_up_what_nobody_uses) /* PAID-2 */
{
    char data[PATH_MAX];
    snprintf(data, sizeof data, "%s", make_data(t)); /* a path lives for a few others */
    check_run(data, ARGS("cache", "stat"), 0, "vectors      2\nsize         ", "");
    check_run(data, ARGS("cache", "stat"), 0, "\nlimit        2.0 GB\n", "");
    check_run(data, ARGS("--set", "cache.vector_limit=1MB", "cache", "stat"), 0, "\nlimit        1.0 MB\n", "");
    check_run(data, ARGS("cache", "stat", "--json"), 0, "{\"entries\":2,\"bytes\":", "");
    check_run(data, ARGS("cache", "stat", "--json"), 0,
              "\"limit_bytes\":2147483648,\"hits\":0,\"misses\":2,\"pruning\":null,\"last_prune\":null}", "");
    write_file(t, "src/c.txt", "words about rivers");
    check_run(data, ARGS("add", qr_test_path(t, "src")), 0, "", "");
    check_run(data, ARGS("cache", "stat"), 0, "\nhits         1 of 3 chunks (33 %)\n", "");
    check_run(data, ARGS("cache", "prune"), 0, "0 vectors evicted, 0 bytes; left: 2, ", "");
    check_run(data, ARGS("cache", "prune", "--to", "0"), 0, ", all in use\n", "");
    write_file(t, "src/b.txt", "words about ships, which are longer");
    check_run(data, ARGS("add", qr_test_path(t, "src")), 0, "", "");
    check_run(data, ARGS("cache", "stat"), 0, "vectors      3\n", "");
    check_run(data, ARGS("rm", qr_test_path(t, "src")), 0, "", "");
    check_run(data, ARGS("wait"), 0, "", "");
    check_run(data, ARGS("cache", "prune", "--to", "1KB"), 0, " evicted, ", "");
    check_run(data, ARGS("cache", "prune", "--to", "0"), 0, "; left: 0, 0 bytes\n", "");
    check_run(data, ARGS("cache", "stat"), 0, "\nlast pruned  2", "");
}

QR_TEST(what_cannot_be_meant_is_refused)
{
    const char *data = qr_test_path(t, "data");
    check_run(data, ARGS("cache"), 2, "", "quire cache stat or prune");
    check_run(data, ARGS("cache", "empty"), 2, "", "quire cache has no empty");
    check_run(data, ARGS("cache", "stat", "--to", "1MB"), 2, "", "--to is for prune");
    check_run(data, ARGS("cache", "prune", "--to", "much"), 2, "", "--to");
}
