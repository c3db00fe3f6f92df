/* quire backup: copies the data folder, in use or not, by /api/v1/backup. That answers when it is done, so a thread waits for it, and
 * how far it is shows in the folder that grows. */
#include "base/mem.h"
#include "base/thread.h"
#include "cli/items.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_MS = 200,         /* at the copy */
    LOOKS_PAUSE = 10,      /* times as long as a look takes: many files are not to be counted all the time */
    FOLDERS_DEPTH_MAX = 4, /* artifacts/ab/FILE; it is our own */
};

/* Another process may do it, which is somewhere else. */
static char *absolute(const char *path)
{
    char here[4096];
    struct qr_buf out = {0};
    if (path[0] == '/') {
        qr_buf_add_text(&out, path);
    } else if (getcwd(here, sizeof here)) {
        qr_buf_printf(&out, "%s/%s", here, path);
    }
    while (out.len > 1 && out.data[out.len - 1] == '/') {
        out.data[--out.len] = '\0';
    }
    return qr_buf_take(&out, NULL);
}

static void print_answer(const json_t *answer)
{
    const long long left_out = cli_number(answer, "index_stores_left_out"),
                    missing = cli_number(answer, "artifacts_missing");
    fputs("backup   ", stdout);
    cli_print_safe(cli_text(answer, "path"));
    printf("\nsize     %s bytes\n", cli_grouped(cli_number(answer, "bytes")).text);
    printf("took     %lld ms; changes waited %lld ms\n", cli_number(answer, "took_ms"), cli_number(answer, "held_ms"));
    if (left_out) {
        printf("%lld index stores are damaged and left out: they are built again when the backup is opened\n",
               left_out);
    }
    if (missing) {
        printf("%lld files are missing in the data folder: `quire check` names them\n", missing);
    }
}

static qr_rc write_body(const char *dir, struct qr_buf *body, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *path = absolute(dir);
    QR_JSON *request = path ? json_pack("{s:s}", "path", path) : NULL;
    return request ? qr_json_write(request, body, err)
                   : qr_fail(err, QR_CODE_INVALID_VALUE, "the folder's name must be UTF-8, and not too long");
}

/* ---- how far it is ---- */

/* Of the files below a folder. One that is not there, or goes meanwhile, has none. Takes the descriptor. */
static int64_t bytes_below(int fd, int depth)
{
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    int64_t bytes = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat facts;
        if (entry->d_name[0] == '.' || fstatat(fd, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISREG(facts.st_mode)) {
            bytes += facts.st_size;
        } else if (S_ISDIR(facts.st_mode) && depth < FOLDERS_DEPTH_MAX) {
            bytes += bytes_below(openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), depth + 1);
        }
    }
    if (dir) {
        closedir(dir);
    } else if (fd >= 0) {
        close(fd);
    }
    return bytes;
}

static int64_t bytes_of_folder(const char *path)
{
    return bytes_below(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
}

/* What a backup has of a data folder. */
static int64_t bytes_to_copy(const char *data_dir)
{
    static const char *const folders[] = {"index", "artifacts"};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    struct stat facts;
    qr_buf_printf(&path, "%s/quire.db", data_dir);
    int64_t bytes = path.failed == QR_CODE_NONE && stat(path.data, &facts) == 0 ? facts.st_size : 0;
    for (size_t i = 0; i < QR_COUNT(folders); i++) {
        qr_buf_clear(&path);
        qr_buf_printf(&path, "%s/%s", data_dir, folders[i]);
        bytes += path.failed == QR_CODE_NONE ? bytes_of_folder(path.data) : 0;
    }
    return bytes;
}

/* ---- the request ---- */

struct copying {
    struct cli *cli;
    const char *body;
    char *partial;       /* where the copy grows */
    int64_t total_bytes; /* when it began */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_over;
    qr_rc rc; /* of asking */
    qr_err err;
    int status;
    json_t *answer;
};

static void *ask(void *arg)
{
    struct copying *copying = arg;
    copying->rc = cli_ask(copying->cli, "POST", "/api/v1/backup", copying->body, &copying->status, &copying->answer,
                          &copying->err);
    QR_LOCKED(&copying->lock);
    copying->is_over = true;
    pthread_cond_signal(&copying->changed);
    return NULL;
}

/* False when it is over. */
static bool pause_for(struct copying *copying, int64_t ms)
{
    const int64_t until_us = qr_thread_mono_us() + ms * 1000;
    QR_LOCKED(&copying->lock);
    while (!copying->is_over && qr_cond_wait_until_us(&copying->changed, &copying->lock, until_us)) {
    }
    return !copying->is_over;
}

static void watch(struct copying *copying)
{
    struct cli_progress progress = {0};
    int64_t pause_ms = LOOK_MS;
    while (pause_for(copying, pause_ms)) {
        const int64_t began_ms = qr_clock_mono_ms(qr_clock_system());
        const int64_t done_bytes = bytes_of_folder(copying->partial);
        const int64_t now_ms = qr_clock_mono_ms(qr_clock_system());
        cli_progress_see_copy(&progress, QR_MIN(done_bytes, copying->total_bytes), copying->total_bytes, now_ms);
        cli_progress_tell(&progress, now_ms);
        pause_ms = QR_MAX((int64_t)LOOK_MS, (now_ms - began_ms) * LOOKS_PAUSE);
    }
    cli_progress_erase(&progress);
}

/* A server elsewhere has the folder; and who reads JSON is not to be told anything else. */
static bool can_watch(const struct cli *cli)
{
    return !cli->json && (cli->quire || cli->remote.data_dir);
}

static qr_rc copy(struct copying *copying, const char *dir, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr) char *path = absolute(dir);
    struct qr_buf partial = {0};
    pthread_t thread;
    qr_buf_printf(&partial, "%s.partial", path ? path : "");
    copying->partial = qr_buf_take(&partial, NULL);
    if (!copying->partial || !can_watch(copying->cli)) {
        (void)ask(copying);
        return QR_OK;
    }
    copying->total_bytes = bytes_to_copy(qr_config_text(&copying->cli->config, QR_CONFIG_DATA_DIR));
    QR_TRY(qr_thread_start(&thread, "quire-copying", ask, copying, err));
    watch(copying);
    pthread_join(thread, NULL);
    return QR_OK;
}

/* Returns the exit code. */
static int finish(struct copying *copying, qr_rc rc, const qr_err *err)
{
    struct cli *cli = copying->cli;
    if (rc != QR_OK || copying->rc != QR_OK) {
        return cli_fail(cli, rc != QR_OK ? err : &copying->err);
    }
    if (copying->status >= 400) {
        return cli_report(cli, copying->answer);
    }
    if (cli->json) {
        return cli_print_json(cli, json_incref(copying->answer));
    }
    print_answer(copying->answer);
    return 0;
}

static int backup(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    struct copying copying = {.cli = cli};
    qr_err err = {0};
    if (write_body(cli->args[0], &body, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    copying.body = body.data;
    pthread_mutex_init(&copying.lock, NULL);
    qr_cond_init(&copying.changed);
    const qr_rc rc = copy(&copying, cli->args[0], &err);
    const int exit_code = finish(&copying, rc, &err);
    json_decref(copying.answer);
    qr_free(copying.partial);
    pthread_cond_destroy(&copying.changed);
    pthread_mutex_destroy(&copying.lock);
    return exit_code;
}

int cmd_backup(struct cli *cli)
{
    if (cli->arg_count == 0) {
        qr_err err;
        qr_fail(&err, QR_CODE_USAGE, "say where to: quire backup DIR");
        return cli_fail(cli, &err);
    }
    return cli_with_data(cli, backup);
}
