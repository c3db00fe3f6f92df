/* quire backup as a user runs it: a folder that can be opened, and what is refused. */
#include "base/fs.h"
#include "base/proc.h"
#include "support/test.h"

#include <unistd.h>

enum { ARGS_MAX = 6 };

/* From the test's own folder, so that names can be relative. */
static void check_run(struct qr_test *t, const char *data, const char *const *args, int exit_code, const char *out)
{
    const char *argv[ARGS_MAX + 4] = {QUIRE_BINARY_DIR "/quire", "--data", qr_test_path(t, data)};
    const char *env[] = {"HOME=/nonexistent", "PATH=/usr/bin:/bin", NULL};
    for (size_t i = 0; args[i]; i++) {
        QR_CHECK(i < ARGS_MAX);
        argv[i + 3] = args[i];
    }
    const struct qr_proc_options options = {.argv = argv, .env = env, .output_bytes_max = 1 << 20, .timeout_ms = 50000};
    struct qr_proc_result result;
    QR_CLEANUP(qr_buf_done) struct qr_buf printed = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf errors = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &printed, &errors, &result, &err));
    if (result.exit_code != exit_code) {
        QR_FAIL("%s ends with %d: %s%s", args[0], result.exit_code, qr_buf_str(&printed).ptr, qr_buf_str(&errors).ptr);
    }
    QR_CHECK_HAS(out, exit_code ? qr_buf_str(&errors).ptr : qr_buf_str(&printed).ptr);
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

QR_TEST(a_backup_is_a_data_folder) /* BACKUP-1 */
{
    qr_err err;
    QR_CHECK_RC(
        QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, "pear.txt"), QR_STR("a quince is no pear\n"), 0600, &err));
    QR_CHECK_INT(0, chdir(t->dir));
    check_run(t, "data", ARGS("add", qr_test_path(t, "pear.txt")), 0, "");
    check_run(t, "data", ARGS("backup", "copy/"), 0, "changes waited");
    check_run(t, "copy", ARGS("check"), 0, "no damage found");
    check_run(t, "copy", ARGS("search", "quince"), 0, "quince");
    check_run(t, "data", ARGS("--json", "backup", "second"), 0, "\"index_stores\"");
}

QR_TEST(a_backup_needs_a_new_folder) /* BACKUP-3 */
{
    QR_CHECK_INT(0, chdir(t->dir));
    check_run(t, "data", ARGS("backup"), 2, "quire backup DIR");
    check_run(t, "data", ARGS("backup", "copy"), 0, "backup");
    check_run(t, "data", ARGS("backup", "copy"), 3, "already_exists");
}
