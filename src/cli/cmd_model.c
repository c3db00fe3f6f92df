/* quire model add|ls|use|rm: embedding settings with a name. */
#include "cli/items.h"

enum { OPTION_BASE, OPTION_URL, OPTION_MODEL, OPTION_DIMENSIONS, OPTION_KEY_ENV, OPTION_DRY_RUN, OPTION_NO_WAIT };

static bool has_switch(const struct cli *cli, int option)
{
    return (cli->switches & QR_BIT(option)) != 0;
}

/* ---- what is printed ---- */

static void print_users(const json_t *model)
{
    const json_t *name;
    size_t i;
    json_array_foreach(json_object_get(model, "used_by"), i, name)
    {
        fputs(i ? ", " : "; used by ", stdout);
        cli_print_safe(json_string_value(name));
    }
}

/* "small      openai nomic-embed-text, 256 dimensions, at http://localhost:11434/v1; used by docs" */
static void print_model(const json_t *model)
{
    const json_t *embedding = json_object_get(model, "embedding");
    const char *of_server = cli_text(embedding, "model");
    cli_print_safe(cli_text(model, "name"));
    printf("  %s", cli_text(embedding, "provider"));
    if (of_server[0]) {
        fputc(' ', stdout);
        cli_print_safe(of_server);
    }
    if (json_object_get(embedding, "dimensions")) {
        printf(", %lld dimensions", cli_number(embedding, "dimensions"));
    }
    if (cli_text(embedding, "url")[0]) {
        fputs(", at ", stdout);
        cli_print_safe(cli_text(embedding, "url"));
    }
    if (cli_text(embedding, "api_key_env")[0]) {
        printf(", key in $%s", cli_text(embedding, "api_key_env"));
    }
    print_users(model);
    fputc('\n', stdout);
}

static void print_list(const json_t *answer)
{
    const json_t *model;
    size_t i;
    json_array_foreach(json_object_get(answer, "data"), i, model)
    {
        print_model(model);
    }
    if (i == 0) {
        puts("no models; `quire model add NAME --url URL --model MODEL` names one");
    }
    if (cli_text(answer, "next_cursor")[0]) {
        puts("there are more");
    }
}

static void print_removed(const json_t *answer)
{
    fputs("removed ", stdout);
    cli_print_safe(cli_text(answer, "name"));
    fputc('\n', stdout);
}

/* ---- add ---- */

static qr_rc read_dimensions(const char *text, json_t *embedding, qr_err *err)
{
    int64_t dimensions;
    if (!qr_str_to_i64(qr_str_of(text), &dimensions)) {
        return qr_fail(err, QR_CODE_USAGE, "--dimensions %s is no number", text);
    }
    json_object_set_new(embedding, "dimensions", json_integer((json_int_t)dimensions));
    return QR_OK;
}

static qr_rc write_body(const struct cli *cli, struct qr_buf *body, qr_err *err)
{
    static const struct {
        int option;
        const char *name;
    } texts[] = {{OPTION_URL, "url"}, {OPTION_MODEL, "model"}, {OPTION_KEY_ENV, "api_key_env"}};
    QR_JSON *embedding = json_pack("{s:s}", "provider", "openai");
    if (!cli->values[OPTION_MODEL]) {
        return qr_fail(err, QR_CODE_USAGE, "say what the server calls it: quire model add %s --model MODEL",
                       cli->args[1]);
    }
    for (size_t i = 0; i < QR_COUNT(texts); i++) {
        const char *value = cli->values[texts[i].option];
        if (value && json_object_set_new(embedding, texts[i].name, json_string(value)) != 0) {
            return qr_fail(err, QR_CODE_USAGE, "the %s is not UTF-8", texts[i].name);
        }
    }
    if (cli->values[OPTION_DIMENSIONS]) {
        QR_TRY(read_dimensions(cli->values[OPTION_DIMENSIONS], embedding, err));
    }
    QR_JSON *request = json_pack("{s:s, s:O}", "name", cli->args[1], "embedding", embedding);
    return request ? qr_json_write(request, body, err) : qr_fail(err, QR_CODE_USAGE, "the name is not UTF-8");
}

/* ---- what can be done ---- */

static const struct action {
    const char *name;
    const char *method; /* NULL: `use` */
    bool takes_name, is_in_path;
    uint32_t options; /* that are for it */
    void (*print)(const json_t *answer);
} actions[] = {
    {"add", "POST", true, false,
     QR_BIT(OPTION_URL) | QR_BIT(OPTION_MODEL) | QR_BIT(OPTION_DIMENSIONS) | QR_BIT(OPTION_KEY_ENV), print_model},
    {"ls", "GET", false, false, 0, print_list},
    {"use", NULL, true, false, QR_BIT(OPTION_BASE) | QR_BIT(OPTION_DRY_RUN) | QR_BIT(OPTION_NO_WAIT), NULL},
    {"rm", "DELETE", true, true, 0, print_removed},
};

static qr_rc check_words(const struct cli *cli, const struct action *action, qr_err *err)
{
    if (action->takes_name != (cli->arg_count == 2)) {
        return action->takes_name ? qr_fail(err, QR_CODE_USAGE, "say which one: quire model %s NAME", action->name)
                                  : qr_fail(err, QR_CODE_USAGE, "quire model %s takes no name", action->name);
    }
    for (size_t i = 0; cli->command->options[i].name; i++) {
        const bool is_given = cli->values[i] || (cli->switches & QR_BIT(i));
        if (is_given && !(action->options & QR_BIT(i))) {
            return qr_fail(err, QR_CODE_USAGE, "%s is not for quire model %s", cli->command->options[i].name,
                           action->name);
        }
    }
    return QR_OK;
}

static const struct action *find_action(const struct cli *cli, qr_err *err)
{
    const char *word = cli->arg_count ? cli->args[0] : "";
    for (size_t i = 0; i < QR_COUNT(actions); i++) {
        if (strcmp(actions[i].name, word) == 0) {
            return check_words(cli, &actions[i], err) == QR_OK ? &actions[i] : NULL;
        }
    }
    if (word[0]) {
        qr_fail(err, QR_CODE_USAGE, "quire model has no %s: add, ls, use or rm", word);
    } else {
        qr_fail(err, QR_CODE_USAGE, "say what to do: quire model add, ls, use or rm");
    }
    return NULL;
}

/* ---- the command ---- */

static int ask(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    const struct action *action = find_action(cli, &err);
    const bool adds = action && strcmp(action->name, "add") == 0;
    const bool lists = action && action->print == print_list;
    qr_buf_printf(&path, "/api/v1/models%s", lists ? "?limit=200" : "");
    if (action && action->is_in_path) {
        qr_buf_add_char(&path, '/');
        qr_url_add_encoded(&path, cli->args[1]);
    }
    if (!action || qr_buf_check(&path, &err) != QR_OK || (adds && write_body(cli, &body, &err) != QR_OK)) {
        return cli_fail(cli, &err);
    }
    const int exit_code = cli_call(cli, action->method, path.data, body.len ? body.data : NULL, &answer);
    if (exit_code || cli->json) {
        return exit_code ? exit_code : cli_print_json(cli, json_incref(answer));
    }
    action->print(answer);
    return 0;
}

int cmd_model(struct cli *cli)
{
    qr_err err = {0};
    const struct action *action = find_action(cli, &err);
    if (!action) {
        return cli_fail(cli, &err);
    }
    return action->method
               ? cli_with_data(cli, ask)
               : cli_use_model(cli, cli->args[1], has_switch(cli, OPTION_DRY_RUN), !has_switch(cli, OPTION_NO_WAIT));
}
