/* quire key create|ls|rm|rotate. A secret is printed by what made it and never read: on a command line others could see it. */
#include "cli/items.h"

enum { OPTION_ROLE, OPTION_ADMIN, OPTION_DAYS, OPTION_GRACE }; /* the order of the command's options */

/* ---- what is printed ---- */

static void print_roles(const json_t *key)
{
    const char *base, *comma = "";
    json_t *role;
    if (json_is_true(json_object_get(key, "admin"))) {
        fputs("admin", stdout);
        return;
    }
    json_object_foreach(json_object_get(key, "roles"), base, role)
    {
        printf("%s%s=%s", comma, base, json_string_value(role));
        comma = " ";
    }
    fputs(comma[0] ? "" : "no roles", stdout);
}

static void print_list(const json_t *answer)
{
    const json_t *key;
    size_t i;
    json_array_foreach(json_object_get(answer, "data"), i, key)
    {
        if (i == 0) {
            printf("%-36s  %-12s  %-19s  %-19s  NAME, ROLES\n", "KEY", "SECRET", "LAST USED", "EXPIRES");
        }
        printf("%-36s  %s…  %-19s  %-19s  ", cli_text(key, "id"), cli_text(key, "prefix"),
               cli_short_time(key, "last_used_at").text, cli_short_time(key, "expires_at").text);
        cli_print_safe(cli_text(key, "name"));
        fputs(", ", stdout);
        print_roles(key);
        fputc('\n', stdout);
    }
    if (i == 0) {
        puts("no keys: only this machine is listened to, and needs none");
    }
    if (cli_text(answer, "next_cursor")[0]) {
        puts("there are more");
    }
}

/* The secret alone on its line on standard output, so that a script can take it. */
static void print_secret(const json_t *key)
{
    fflush(stdout);
    fprintf(stderr, "key %s; its secret is not shown again:\n", cli_text(key, "id"));
    puts(cli_text(key, "secret"));
}

static void print_ended(const json_t *key)
{
    printf("ended %s\n", cli_text(key, "id"));
}

/* ---- what is sent ---- */

/* A number of the option's unit, as seconds; 0 where it was not given. */
static qr_rc read_seconds(const struct cli *cli, int option, int64_t unit_s, json_int_t *ret_seconds, qr_err *err)
{
    int64_t number = 0;
    if (cli->values[option] && (!qr_str_to_i64(qr_str_of(cli->values[option]), &number) || number < 0 ||
                                QR_MUL_OVERFLOWS(number, unit_s, &number))) {
        return qr_fail(err, QR_CODE_USAGE, "%s takes a number", cli->command->options[option].name);
    }
    *ret_seconds = (json_int_t)number;
    return QR_OK;
}

/* BASE=ROLE; a base's name may hold a '=', a role does not. */
static qr_rc add_roles(const struct cli *cli, json_t *roles, qr_err *err)
{
    for (size_t i = 0; i < cli->repeated_count; i++) {
        const char *given = cli->repeated[i], *sign = strrchr(given, '=');
        if (!sign || sign == given || !sign[1]) {
            return qr_fail(err, QR_CODE_USAGE, "--role takes BASE=ROLE, as in notes=viewer");
        }
        char base[256];
        const size_t len = (size_t)(sign - given);
        if (len >= sizeof base) {
            return qr_fail(err, QR_CODE_USAGE, "--role: no base has so long a name");
        }
        memcpy(base, given, len);
        base[len] = '\0';
        if (json_object_set_new(roles, base, json_string(sign + 1)) != 0) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
        }
    }
    return QR_OK;
}

static qr_rc make_new_key(const struct cli *cli, struct qr_buf *body, qr_err *err)
{
    enum { DAY_S = 86400 };
    QR_JSON *roles = json_object();
    json_int_t lasts_s = 0;
    QR_TRY(read_seconds(cli, OPTION_DAYS, DAY_S, &lasts_s, err));
    QR_TRY(add_roles(cli, roles, err));
    QR_JSON *request = json_pack("{s:s, s:b, s:O}", "name", cli->args[1], "admin",
                                 (cli->switches & QR_BIT(OPTION_ADMIN)) != 0, "roles", roles);
    if (!request) {
        return qr_fail(err, QR_CODE_USAGE, "the name is not UTF-8");
    }
    if (cli->values[OPTION_DAYS] && json_object_set_new(request, "expires_in_s", json_integer(lasts_s)) != 0) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
    }
    return qr_json_write(request, body, err);
}

static qr_rc make_rotation(const struct cli *cli, struct qr_buf *body, qr_err *err)
{
    json_int_t grace_s = 0;
    QR_TRY(read_seconds(cli, OPTION_GRACE, 1, &grace_s, err));
    QR_JSON *request = json_pack("{s:I}", "grace_s", grace_s);
    return request ? qr_json_write(request, body, err)
                   : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
}

/* ---- what can be done ---- */

static const struct action {
    const char *name;
    const char *method;
    const char *path_end; /* behind the key; NULL = the path names none */
    bool takes_name;
    uint32_t options;
    qr_rc (*make_body)(const struct cli *cli, struct qr_buf *body, qr_err *err); /* NULL = none is sent */
    void (*print)(const json_t *answer);
} actions[] = {
    {"create", "POST", NULL, true, QR_BIT(OPTION_ROLE) | QR_BIT(OPTION_ADMIN) | QR_BIT(OPTION_DAYS), make_new_key,
     print_secret},
    {"ls", "GET", NULL, false, 0, NULL, print_list},
    {"rm", "DELETE", "", true, 0, NULL, print_ended},
    {"rotate", "POST", "/rotate", true, QR_BIT(OPTION_GRACE), make_rotation, print_secret},
};

static qr_rc find_action(const struct cli *cli, const struct action **ret_action, qr_err *err)
{
    const char *word = cli->arg_count ? cli->args[0] : "";
    for (size_t i = 0; i < QR_COUNT(actions); i++) {
        if (strcmp(actions[i].name, word) == 0) {
            *ret_action = &actions[i];
            return QR_OK;
        }
    }
    return qr_fail(err, QR_CODE_USAGE, "say what to do: quire key create, ls, rm or rotate");
}

static qr_rc check_words(const struct cli *cli, const struct action *action, qr_err *err)
{
    if (action->takes_name && (cli->arg_count < 2 || !cli->args[1][0])) {
        return qr_fail(err, QR_CODE_USAGE, "say which one: quire key %s NAME", action->name);
    }
    if (!action->takes_name && cli->arg_count > 1) {
        return qr_fail(err, QR_CODE_USAGE, "%s is one argument too many: quire key %s", cli->args[1], action->name);
    }
    for (int option = OPTION_ROLE; option <= OPTION_GRACE; option++) {
        const bool is_given = cli->values[option] || (cli->switches & QR_BIT(option));
        if (is_given && !(action->options & QR_BIT(option))) {
            return qr_fail(err, QR_CODE_USAGE, "%s is not for quire key %s", cli->command->options[option].name,
                           action->name);
        }
    }
    return QR_OK;
}

/* ---- the request ---- */

static int ask(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0}, body = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    const struct action *action = NULL;
    if (find_action(cli, &action, &err) != QR_OK ||
        (action->make_body && action->make_body(cli, &body, &err) != QR_OK)) {
        return cli_fail(cli, &err);
    }
    qr_buf_add_text(&path, "/api/v1/keys");
    if (action->path_end) {
        qr_buf_add_char(&path, '/');
        qr_url_add_encoded(&path, cli->args[1]);
        qr_buf_add_text(&path, action->path_end);
    } else if (!action->takes_name) {
        qr_buf_add_text(&path, "?limit=200");
    }
    if (qr_buf_check(&path, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    const int exit_code = cli_call(cli, action->method, path.data, body.len ? body.data : NULL, &answer);
    if (exit_code) {
        return exit_code;
    }
    if (cli->json) {
        return cli_print_json(cli, json_incref(answer));
    }
    action->print(answer);
    return 0;
}

int cmd_key(struct cli *cli)
{
    qr_err err = {0};
    const struct action *action = NULL;
    if (find_action(cli, &action, &err) != QR_OK || check_words(cli, action, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    return cli_with_data(cli, ask);
}
