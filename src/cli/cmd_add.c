/* quire add PATH|URL|-…: makes the payloads, adds them, and waits until they are done. */
#include "base/fs.h"
#include "cli/items.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPTION_BASE, OPTION_NAME, OPTION_MANUAL, OPTION_NO_WAIT }; /* the order of the command's options */
enum { NOTE_BYTES_MAX = 48 << 20 };                               /* fits a request however it is escaped … mostly */

static bool has_switch(const struct cli *cli, int option)
{
    return (cli->switches & QR_BIT(option)) != 0;
}

/* ---- payloads ---- */

static qr_rc read_standard_input(struct qr_buf *text, qr_err *err)
{
    for (;;) {
        enum { PIECE = 64 << 10 };
        char *room = qr_buf_reserve(text, PIECE);
        const ssize_t got = room ? TEMP_FAILURE_RETRY(read(STDIN_FILENO, room, PIECE)) : 0;
        if (got < 0) {
            return qr_fail_errno(err, errno, "cannot read standard input");
        }
        if (!room || got == 0) {
            return qr_buf_check(text, err);
        }
        qr_buf_grown(text, (size_t)got);
    }
}

static qr_rc make_note(const struct cli *cli, json_t **ret_payload, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text;
    qr_buf_init(&text, NOTE_BYTES_MAX);
    QR_TRY(read_standard_input(&text, err));
    const qr_str content = qr_buf_str(&text);
    if (!qr_utf8_valid(content) || memchr(content.ptr, '\0', content.len)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "standard input is not text in UTF-8; add files by their path");
    }
    const char *name = cli->values[OPTION_NAME] ? cli->values[OPTION_NAME] : "standard input";
    *ret_payload = json_pack("{s:s, s:s, s:s%}", "type", "note", "name", name, "content", content.ptr, content.len);
    return *ret_payload ? QR_OK : qr_fail(err, QR_CODE_INVALID_VALUE, "--name is not UTF-8");
}

/* A link to a file stands for the file: what is read never follows links, so that nothing is read by one in a folder. */
static qr_rc find_file(const char *word, struct qr_buf *path, qr_err *err)
{
    struct stat status;
    if (lstat(word, &status) != 0 || !S_ISLNK(status.st_mode)) {
        return cli_absolute_path(word, path, err);
    }
    char target[PATH_MAX];
    if (!realpath(word, target)) {
        return qr_fail_errno(err, errno, "cannot follow %s", word);
    }
    qr_buf_add_text(path, target);
    return qr_buf_check(path, err);
}

/* A path that is not there is more likely mistyped than meant. */
static qr_rc make_path(const char *word, json_t **ret_payload, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    struct stat status;
    if (stat(word, &status) != 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? qr_fail(err, QR_CODE_NOT_FOUND, "there is no file or folder %s", word)
                   : qr_fail_errno(err, errno, "cannot look at %s", word);
    }
    if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s is neither a file nor a folder", word);
    }
    QR_TRY(S_ISDIR(status.st_mode) ? cli_absolute_path(word, &path, err) : find_file(word, &path, err));
    *ret_payload = json_pack("{s:s, s:s}", "type", S_ISDIR(status.st_mode) ? "directory" : "file", "path", path.data);
    return *ret_payload ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
}

static qr_rc make_payload(const struct cli *cli, const char *word, json_t **ret_payload, qr_err *err)
{
    if (strcmp(word, "-") == 0) {
        return make_note(cli, ret_payload, err);
    }
    if (strncmp(word, "http://", 7) == 0 || strncmp(word, "https://", 8) == 0) {
        *ret_payload = json_pack("{s:s, s:s}", "type", "url", "url", word);
        return *ret_payload ? QR_OK : qr_fail(err, QR_CODE_INVALID_VALUE, "%s is not UTF-8", word);
    }
    return make_path(word, ret_payload, err);
}

static qr_rc make_body(const struct cli *cli, struct qr_buf *body, qr_err *err)
{
    QR_JSON *items = json_array();
    if (cli->arg_count == 0) {
        return qr_fail(err, QR_CODE_USAGE, "say what to add: quire add %s", cli->command->args);
    }
    for (size_t i = 0; i < cli->arg_count; i++) {
        json_t *payload = NULL;
        QR_TRY(make_payload(cli, cli->args[i], &payload, err));
        if (json_array_append_new(items, payload) != 0) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
        }
    }
    /* what is there already is looked at again */
    QR_JSON *request = json_pack("{s:O, s:s, s:s}", "items", items, "process",
                                 has_switch(cli, OPTION_MANUAL) ? "manual" : "auto", "on_conflict", "update");
    return qr_json_write(request, body, err);
}

/* ---- the command ---- */

static void print_added(const json_t *items)
{
    const json_t *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        printf("%-10s %s  ", cli_text(item, "result"), cli_text(item, "id"));
        cli_print_safe(cli_text(item, "source")[0] ? cli_text(item, "source") : cli_text(item, "name"));
        fputc('\n', stdout);
    }
}

static int finish(struct cli *cli, json_t *answer)
{
    json_t *items = json_object_get(answer, "items");
    if (!has_switch(cli, OPTION_NO_WAIT) && !has_switch(cli, OPTION_MANUAL)) {
        return cli_wait_and_tell(cli, items, "", NULL);
    }
    if (cli->json) {
        return cli_print_json(cli, json_incref(answer));
    }
    print_added(items);
    cli_print_pending(cli);
    return 0;
}

int cmd_add(struct cli *cli)
{
    qr_err err = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    cli_add_base_path(cli, &path, "/items");
    if (qr_buf_check(&path, &err) != QR_OK || make_body(cli, &body, &err) != QR_OK ||
        cli_load_config(cli, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    int exit_code = cli_open(cli);
    if (exit_code) {
        return exit_code;
    }
    exit_code = cli_make_default_base(cli);
    exit_code = exit_code ? exit_code : cli_call(cli, "POST", path.data, body.data, &answer);
    exit_code = exit_code ? exit_code : finish(cli, answer);
    cli_close(cli);
    return exit_code;
}
