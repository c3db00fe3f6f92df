/* quire ls [ITEM]: the items of a base, one level or all. */
#include "base/mem.h"
#include "cli/items.h"
#include "cli/paint.h"

enum { OPTION_BASE, OPTION_ALL, OPTION_STATUS, OPTION_TYPE, OPTION_SORT }; /* the order of the command's options */

static bool is_container(const json_t *item)
{
    return json_is_object(json_object_get(item, "counts"));
}

/* ---- requests ---- */

static void add_filter(const struct cli *cli, struct qr_buf *path, const json_t *parent)
{
    cli_add_base_path(cli, path, "/items?limit=200");
    if (!(cli->switches & QR_BIT(OPTION_ALL))) {
        qr_buf_printf(path, "&parent=%s", parent ? cli_text(parent, "id") : "root");
    }
    if (cli->values[OPTION_STATUS]) {
        qr_buf_add_text(path, "&status=");
        qr_url_add_encoded(path, cli->values[OPTION_STATUS]);
    }
    if (cli->values[OPTION_TYPE]) {
        qr_buf_add_text(path, "&type=");
        qr_url_add_encoded(path, cli->values[OPTION_TYPE]);
    }
    if (cli->values[OPTION_SORT]) {
        qr_buf_add_text(path, "&sort=");
        qr_url_add_encoded(path, cli->values[OPTION_SORT]);
    }
}

/* All pages. Memory is what limits it: a million lines are nobody's wish, but they are what was asked for. */
static int load(struct cli *cli, const json_t *parent, json_t *ret_items)
{
    char cursor[4096] = "";
    do {
        QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
        QR_JSON *answer = NULL;
        qr_err err = {0};
        add_filter(cli, &path, parent);
        qr_buf_printf(&path, "%s%s", cursor[0] ? "&cursor=" : "", cursor);
        if (qr_buf_check(&path, &err) != QR_OK) {
            return cli_fail(cli, &err);
        }
        const int exit_code = cli_call(cli, "GET", path.data, NULL, &answer);
        if (exit_code) {
            return exit_code;
        }
        json_array_extend(ret_items, json_object_get(answer, "data"));
        snprintf(cursor, sizeof cursor, "%s", cli_text(answer, "next_cursor"));
    } while (cursor[0]);
    return 0;
}

/* ---- lines ---- */

static void print_item(const struct cli *cli, const json_t *item, const char *branch)
{
    const json_t *counts = json_object_get(item, "counts"), *error = json_object_get(item, "error");
    printf("%s  ", cli_text(item, "id"));
    cli_print_status(cli_text(item, "status"), 10);
    printf("  %s", branch);
    cli_print_safe(cli_text(item, "name"));
    if (is_container(item)) {
        printf("/  %lld of %lld", cli_number(counts, "completed"), cli_number(counts, "total"));
        if (cli_number(counts, "failed")) {
            printf(", %lld failed", cli_number(counts, "failed"));
        }
    } else if (cli_number(item, "live_generation")) {
        const long long chunks = cli_number(item, "chunk_count");
        printf("  %lld chunk%s", chunks, chunks == 1 ? "" : "s");
    }
    if (!json_is_true(json_object_get(item, "enabled"))) {
        fputs("  hidden", stdout);
    }
    if (json_is_object(error)) {
        cli_paint(cli, CLI_BAD);
        fputs("  ", stdout);
        cli_print_safe(cli_text(error, "code"));
        cli_paint(cli, CLI_PLAIN);
    }
    fputc('\n', stdout);
}

/* ---- the tree ---- */

enum { DEPTH_MAX = 64 };

/* What stands before the names of the tree's lines: whether more follows at a depth decides. */
struct branches {
    bool *is_last; /* of each item: no sibling follows it */
    bool goes_on[DEPTH_MAX];
    bool is_drawn; /* with lines; else only indented */
};

static int depth_of(const json_t *item)
{
    return (int)QR_MIN(cli_number(item, "depth"), (long long)DEPTH_MAX - 1);
}

/* From the last to the first: an item is the last of its folder when nothing of its depth came since its folder's end. */
static bool find_last_ones(struct branches *branches, const json_t *items)
{
    bool was_seen[DEPTH_MAX] = {false};
    branches->is_last = qr_alloc_array(json_array_size(items) + 1, sizeof branches->is_last[0]);
    for (size_t i = json_array_size(items); branches->is_last && i-- > 0;) {
        const int depth = depth_of(json_array_get(items, i));
        branches->is_last[i] = !was_seen[depth];
        was_seen[depth] = true;
        for (int below = depth + 1; below < DEPTH_MAX; below++) {
            was_seen[below] = false;
        }
    }
    return branches->is_last != NULL;
}

static void write_branch(struct branches *branches, size_t i, int depth, struct qr_buf *out)
{
    qr_buf_clear(out);
    for (int above = 1; above < depth; above++) {
        qr_buf_add_text(out, branches->is_drawn && branches->goes_on[above] ? "│ " : "  ");
    }
    if (depth) {
        qr_buf_add_text(out, !branches->is_drawn ? "  " : branches->is_last[i] ? "└ " : "├ ");
    }
    branches->goes_on[depth] = !branches->is_last[i];
}

static int print_tree(struct cli *cli, const json_t *items)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf branch = {0};
    struct branches branches = {.is_drawn = cli_has_terminal(stdout) && cli_has_unicode()};
    qr_err err;
    if (!find_last_ones(&branches, items)) {
        qr_fail(&err, QR_CODE_OUT_OF_MEMORY, "out of memory for the list");
        return cli_fail(cli, &err);
    }
    const json_t *item;
    size_t i;
    json_array_foreach(items, i, item)
    {
        write_branch(&branches, i, depth_of(item), &branch);
        print_item(cli, item, qr_buf_str(&branch).ptr);
    }
    qr_free(branches.is_last);
    return 0;
}

static int print_items(struct cli *cli, json_t *items)
{
    const json_t *item;
    size_t i;
    int exit_code = 0;
    if (cli->json) {
        return cli_print_json(cli, json_pack("{s:O, s:n}", "data", items, "next_cursor"));
    }
    if (json_array_size(items) == 0) {
        puts("no items");
    } else {
        printf("%-36s  %-10s  NAME\n", "ITEM", "STATUS");
    }
    if ((cli->switches & QR_BIT(OPTION_ALL)) && !cli->values[OPTION_SORT]) { /* in another order it is no tree */
        exit_code = print_tree(cli, items);
    } else {
        json_array_foreach(items, i, item)
        {
            print_item(cli, item, "");
        }
    }
    cli_print_pending(cli);
    return exit_code;
}

static int list(struct cli *cli)
{
    QR_JSON *items = json_array();
    QR_JSON *parent = NULL;
    int exit_code = cli->arg_count ? cli_find_item(cli, cli->args[0], &parent) : 0;
    if (exit_code == 0 && parent && !is_container(parent)) {
        json_array_append(items, parent);
    } else if (exit_code == 0) {
        exit_code = load(cli, parent, items);
    }
    return exit_code ? exit_code : print_items(cli, items);
}

int cmd_ls(struct cli *cli)
{
    qr_err err;
    if (cli->arg_count && (cli->switches & QR_BIT(OPTION_ALL))) {
        qr_fail(&err, QR_CODE_USAGE, "--all lists the whole base: leave %s away", cli->args[0]);
        return cli_fail(cli, &err);
    }
    return cli_with_data(cli, list);
}
