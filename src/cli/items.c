/* Names of bases and items, and the requests made of them. */
#include "cli/items.h"

#include <stdlib.h>
#include <unistd.h>

static const char default_base[] = "default";

long long cli_number(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

bool cli_is(const json_t *object, const char *name, const char *text)
{
    return strcmp(cli_text(object, name), text) == 0;
}

/* ---- the base ---- */

const char *cli_base(const struct cli *cli)
{
    return cli->values[0] ? cli->values[0] : default_base;
}

void cli_add_base_path(const struct cli *cli, struct qr_buf *path, const char *rest)
{
    qr_buf_add_text(path, "/api/v1/bases/");
    qr_url_add_encoded(path, cli_base(cli));
    qr_buf_add_text(path, rest);
}

int cli_make_default_base(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *found = NULL;
    QR_JSON *made = NULL;
    int status = 0;
    qr_err err = {0};
    cli_add_base_path(cli, &path, "");
    if (qr_buf_check(&path, &err) != QR_OK || cli_ask(cli, "GET", path.data, NULL, &status, &found, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    if (status != 404 || strcmp(cli_base(cli), default_base) != 0) {
        return status >= 400 ? cli_report(cli, found) : 0;
    }
    if (cli_ask(cli, "POST", "/api/v1/bases", "{\"name\":\"default\"}", &status, &made, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    return status >= 400 && status != 409 /* another was faster */ ? cli_report(cli, made) : 0;
}

/* ---- paths ---- */

qr_rc cli_absolute_path(const char *path, struct qr_buf *out, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf whole = {0};
    if (path[0] != '/') {
        char *here = getcwd(NULL, 0);
        qr_buf_printf(&whole, "%s/", here ? here : "");
        free(here);
    }
    qr_buf_add_text(&whole, path);
    QR_TRY(qr_buf_check(&whole, err));
    const size_t begin = out->len;
    for (qr_str rest = qr_buf_str(&whole); rest.len;) {
        const qr_str part = qr_str_split(&rest, '/');
        if (qr_str_equal(part, QR_STR(".."))) {
            while (out->len > begin && out->data[--out->len] != '/') {
            }
        } else if (part.len && !qr_str_equal(part, QR_STR("."))) {
            qr_buf_add_char(out, '/');
            qr_buf_add(out, part);
        }
    }
    if (out->len == begin) {
        qr_buf_add_char(out, '/');
    }
    QR_TRY(qr_buf_check(out, err));
    out->data[out->len] = '\0';
    return qr_utf8_valid(qr_buf_str(out)) ? QR_OK
                                          : qr_fail(err, QR_CODE_INVALID_VALUE, "the path %s is not UTF-8", path);
}

/* ---- items ---- */

/* An id, or a beginning of one that is long enough not to be a file's name by chance. */
static bool looks_like_id(const char *word)
{
    enum { CHARACTERS_MIN = 8 };
    return strlen(word) >= CHARACTERS_MIN && strspn(word, "0123456789abcdefABCDEF-") == strlen(word);
}

/* *ret_item stays NULL when there is none. */
static int find_by_id(struct cli *cli, const char *word, json_t **ret_item)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    int status = 0;
    qr_err err = {0};
    cli_add_base_path(cli, &path, "/items/");
    qr_url_add_encoded(&path, word);
    if (qr_buf_check(&path, &err) != QR_OK || cli_ask(cli, "GET", path.data, NULL, &status, &answer, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    if (status >= 400 && status != 404) {
        return cli_report(cli, answer);
    }
    *ret_item = status == 404 ? NULL : json_incref(answer);
    return 0;
}

static int find_by_source(struct cli *cli, const char *word, json_t **ret_item)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf source = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    const qr_rc rc = strstr(word, "://") ? (qr_buf_add_text(&source, word), qr_buf_check(&source, &err))
                                         : cli_absolute_path(word, &source, &err);
    cli_add_base_path(cli, &path, "/items?source=");
    qr_url_add_encoded(&path, qr_buf_str(&source).ptr);
    if (rc != QR_OK || qr_buf_check(&path, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    const int exit_code = cli_call(cli, "GET", path.data, NULL, &answer);
    *ret_item = exit_code ? NULL : json_incref(json_array_get(json_object_get(answer, "data"), 0));
    return exit_code;
}

int cli_find_item(struct cli *cli, const char *word, json_t **ret_item)
{
    *ret_item = NULL;
    int exit_code = looks_like_id(word) ? find_by_id(cli, word, ret_item) : 0;
    if (exit_code == 0 && !*ret_item) {
        exit_code = find_by_source(cli, word, ret_item);
    }
    if (exit_code || *ret_item) {
        return exit_code;
    }
    qr_err err;
    qr_fail(&err, QR_CODE_NOT_FOUND, "there is no item %s in the base %s; `quire ls --all` lists them", word,
            cli_base(cli));
    return cli_fail(cli, &err);
}

/* {"ids":[…] of the command's arguments; the caller closes the object. */
static int add_selection(struct cli *cli, struct qr_buf *ret_body)
{
    qr_err err = {0};
    if (cli->arg_count == 0) {
        qr_fail(&err, QR_CODE_USAGE, "say which items: quire %s %s", cli->command->name, cli->command->args);
        return cli_fail(cli, &err);
    }
    qr_buf_add_text(ret_body, "{\"ids\":[");
    for (size_t i = 0; i < cli->arg_count; i++) {
        QR_JSON *item = NULL;
        const int exit_code = cli_find_item(cli, cli->args[i], &item);
        if (exit_code) {
            return exit_code;
        }
        qr_buf_printf(ret_body, "%s\"%s\"", i ? "," : "", cli_text(item, "id"));
    }
    qr_buf_add_text(ret_body, "]");
    return qr_buf_check(ret_body, &err) == QR_OK ? 0 : cli_fail(cli, &err);
}

int cli_post_selection(struct cli *cli, const char *action, const char *more, json_t **ret_answer)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    qr_err err = {0};
    int exit_code = add_selection(cli, &body);
    qr_buf_printf(&body, "%s}", more);
    cli_add_base_path(cli, &path, action);
    if (exit_code == 0 && (qr_buf_check(&body, &err) != QR_OK || qr_buf_check(&path, &err) != QR_OK)) {
        exit_code = cli_fail(cli, &err);
    }
    return exit_code ? exit_code : cli_call(cli, "POST", path.data, body.data, ret_answer);
}

/* ---- the frame of a command ---- */

int cli_with_data(struct cli *cli, int (*fn)(struct cli *cli))
{
    qr_err err = {0};
    if (cli_load_config(cli, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    int exit_code = cli_open(cli);
    if (exit_code == 0) {
        exit_code = fn(cli);
        cli_close(cli);
    }
    return exit_code;
}
