/* quire cat ITEM: its original bytes, a part at a time; or the text that was made of them. */
#include "cli/items.h"
#include "cli/paint.h"

#include <errno.h>

enum { OPTION_BASE, OPTION_TEXT }; /* the order of the command's options */

enum { PART_BYTES = 1 << 20 };

/* What a terminal would obey instead of showing it. */
static bool has_controls(qr_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        const unsigned char c = (unsigned char)bytes.ptr[i];
        if ((c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f') || c == 0x7f) {
            return true;
        }
    }
    return false;
}

static int write_bytes(const struct cli *cli, qr_str bytes)
{
    qr_err err;
    if (cli_has_terminal(stdout) && has_controls(bytes)) {
        qr_fail(&err, QR_CODE_USAGE, "it is not plain text: send it to a file or a program, as in quire cat %s > FILE",
                cli->args[0]);
        return cli_fail(cli, &err);
    }
    errno = 0;
    if (fwrite(bytes.ptr, 1, bytes.len, stdout) != bytes.len || fflush(stdout) != 0) {
        qr_fail_errno(&err, errno, "cannot write to standard output");
        return cli_fail(cli, &err);
    }
    return 0;
}

static int print_part(struct cli *cli, const json_t *item, long long offset, size_t *ret_len)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
    qr_err err = {0};
    int status = 0;
    cli_add_base_path(cli, &path, "/items/");
    qr_buf_printf(&path, "%s/raw?offset=%lld&limit=%d", cli_text(item, "id"), offset, (int)PART_BYTES);
    if (qr_buf_check(&path, &err) != QR_OK || cli_ask_bytes(cli, path.data, &status, &bytes, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    if (status >= 400) {
        QR_JSON *answer = NULL;
        (void)!qr_json_parse(qr_buf_str(&bytes), &QR_JSON_REQUEST_LIMITS, &answer, NULL);
        return cli_report(cli, answer);
    }
    *ret_len = bytes.len;
    return write_bytes(cli, qr_buf_str(&bytes));
}

static int print_raw(struct cli *cli, const json_t *item)
{
    size_t len = PART_BYTES;
    int exit_code = 0;
    for (long long offset = 0; exit_code == 0 && len == PART_BYTES; offset += (long long)len) {
        exit_code = print_part(cli, item, offset, &len);
    }
    return exit_code;
}

static int print_text(struct cli *cli, const json_t *item)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL;
    cli_add_base_path(cli, &path, "/items/");
    qr_buf_printf(&path, "%s/content", cli_text(item, "id"));
    const int exit_code = cli_call(cli, "GET", qr_buf_str(&path).ptr, NULL, &answer);
    if (exit_code || cli->json) {
        return exit_code ? exit_code : cli_print_json(cli, json_incref(answer));
    }
    const json_t *text = json_object_get(answer, "text");
    return write_bytes(cli, (qr_str){json_string_value(text), json_string_length(text)});
}

static int cat(struct cli *cli)
{
    QR_JSON *item = NULL;
    const int exit_code = cli_find_item(cli, cli->args[0], &item);
    if (exit_code) {
        return exit_code;
    }
    return cli->switches & QR_BIT(OPTION_TEXT) ? print_text(cli, item) : print_raw(cli, item);
}

int cmd_cat(struct cli *cli)
{
    const bool is_text = cli->switches & QR_BIT(OPTION_TEXT);
    qr_err err = {0};
    if (cli->arg_count == 0) {
        qr_fail(&err, QR_CODE_USAGE, "say which item: quire cat ITEM");
        return cli_fail(cli, &err);
    }
    if (cli->json && !is_text) {
        qr_fail(&err, QR_CODE_USAGE, "original bytes are no JSON: leave --json away, or take --text");
        return cli_fail(cli, &err);
    }
    return cli_with_data(cli, cat);
}
