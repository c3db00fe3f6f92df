/* Reads the command line by the tables of commands.c. Options may stand before and after the command; `--` ends them.
 */
#include "base/mem.h"
#include "cli/cli.h"

struct parser {
    struct cli *cli;
    char **argv;
    int argc;
    int at;
};

/* ---- what there is ---- */

static const struct cli_option *find_option(const struct cli_option *options, qr_str name)
{
    for (; options->name; options++) {
        if (qr_str_equal(qr_str_of(options->name), name)) {
            return options;
        }
    }
    return NULL;
}

static qr_rc unknown_option(const struct cli *cli, qr_str name, qr_err *err)
{
    struct qr_nearest nearest = qr_nearest_to(name);
    for (const struct cli_option *option = cli_options; option->name; option++) {
        qr_nearest_offer(&nearest, qr_str_of(option->name));
    }
    for (const struct cli_option *option = cli->command ? cli->command->options : NULL; option && option->name;
         option++) {
        qr_nearest_offer(&nearest, qr_str_of(option->name));
    }
    if (nearest.name.ptr) {
        return qr_fail(err, QR_CODE_USAGE, "no option is called %.*s; did you mean %s?", QR_STR_ARG(name),
                       nearest.name.ptr);
    }
    if (cli->command && cli->command->args_max) {
        return qr_fail(err, QR_CODE_USAGE,
                       "no option is called %.*s; if it is none, write -- before it: quire %s -- %.*s",
                       QR_STR_ARG(name), cli->command->name, QR_STR_ARG(name));
    }
    return qr_fail(err, QR_CODE_USAGE, "no option is called %.*s", QR_STR_ARG(name));
}

static qr_rc unknown_command(const char *name, qr_err *err)
{
    struct qr_nearest nearest = qr_nearest_to(qr_str_of(name));
    for (size_t i = 0; i < cli_command_count; i++) {
        qr_nearest_offer(&nearest, qr_str_of(cli_commands[i].name));
    }
    if (nearest.name.ptr) {
        return qr_fail(err, QR_CODE_USAGE, "no command is called %s; did you mean %s?", name, nearest.name.ptr);
    }
    return qr_fail(err, QR_CODE_USAGE, "no command is called %s; `quire help` lists them", name);
}

/* ---- options ---- */

/* A password that was typed is seen by everybody who lists processes, and stands in what a crash leaves: from here on it is ours
 * alone. `value` is of argv, which may be written to. */
static qr_rc take_secret(struct cli *cli, qr_str *value, qr_err *err)
{
    char **secret = &cli->secrets[cli->secret_count];
    *secret = qr_alloc(value->len + 1);
    if (!*secret) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    cli->secret_count++;
    memcpy(*secret, value->ptr, value->len + 1);
    memset((char *)value->ptr, '*', value->len);
    value->ptr = *secret;
    return QR_OK;
}

static qr_rc add_setting(struct cli *cli, const char *assignment, qr_err *err)
{
    qr_str value = qr_str_of(assignment);
    if (!strchr(assignment, '=')) {
        return qr_fail(err, QR_CODE_USAGE, "--set takes KEY=VALUE, as in --set log.level=debug");
    }
    const qr_str key = qr_str_split(&value, '=');
    enum qr_config_id id;
    if (qr_config_require(key, &id, NULL) == QR_OK && qr_config_key(id)->secret) {
        QR_TRY(take_secret(cli, &value, err));
    }
    cli->flags[cli->flag_count++] = (struct qr_config_flag){"--set", key, value};
    return QR_OK;
}

static qr_rc take_common_option(struct cli *cli, const struct cli_option *option, const char *value, qr_err *err)
{
    if (strcmp(option->name, "--data") == 0) {
        cli->flags[cli->flag_count++] = (struct qr_config_flag){"--data", QR_STR("data.dir"), qr_str_of(value)};
    } else if (strcmp(option->name, "--config") == 0) {
        cli->file = value;
    } else if (strcmp(option->name, "--server") == 0) {
        cli->server = value;
    } else if (strcmp(option->name, "--key-file") == 0) {
        cli->key_file = value;
    } else if (strcmp(option->name, "--set") == 0) {
        return add_setting(cli, value, err);
    } else if (strcmp(option->name, "--help") == 0) {
        cli->help = true;
    } /* --json was seen by find_json */
    return QR_OK;
}

/* The value behind '=' or in the next argument; "" for a switch. */
static qr_rc option_value(struct parser *parser, const struct cli_option *option, const char **ret_value, qr_err *err)
{
    const char *equals = strchr(parser->argv[parser->at], '=');
    *ret_value = "";
    if (!option->arg) {
        return equals ? qr_fail(err, QR_CODE_USAGE, "%s takes no value", option->name) : QR_OK;
    }
    if (equals) {
        *ret_value = equals + 1;
    } else if (parser->at + 1 < parser->argc) {
        *ret_value = parser->argv[++parser->at];
    } else {
        return qr_fail(err, QR_CODE_USAGE, "%s takes a value: %s %s", option->name, option->name, option->arg);
    }
    return QR_OK;
}

static qr_rc take_own_option(struct cli *cli, const struct cli_option *option, const char *value, qr_err *err)
{
    const char **first = &cli->values[option - cli->command->options];
    if (option->may_repeat) {
        cli->repeated[cli->repeated_count++] = value;
    } else if (option->arg && *first) {
        return qr_fail(err, QR_CODE_USAGE, "%s is given twice: %s and %s", option->name, *first, value);
    }
    cli->switches |= QR_BIT(option - cli->command->options);
    *first = *first ? *first : value;
    return QR_OK;
}

static qr_rc take_option(struct parser *parser, qr_err *err)
{
    struct cli *cli = parser->cli;
    qr_str rest = qr_str_of(parser->argv[parser->at]);
    qr_str name = qr_str_split(&rest, '=');
    if (qr_str_equal(name, QR_STR("-h"))) {
        name = QR_STR("--help");
    }
    const char *value;
    const struct cli_option *option = find_option(cli_options, name);
    if (option) {
        QR_TRY(option_value(parser, option, &value, err));
        return take_common_option(cli, option, value, err);
    }
    option = cli->command ? find_option(cli->command->options, name) : NULL;
    if (!option) {
        return unknown_option(cli, name, err);
    }
    QR_TRY(option_value(parser, option, &value, err));
    return take_own_option(cli, option, value, err);
}

/* ---- the line ---- */

static qr_rc take_word(struct cli *cli, const char *word, qr_err *err)
{
    if (!cli->command) {
        cli->command = cli_find_command(word);
        return cli->command ? QR_OK : unknown_command(word, err);
    }
    if (cli->arg_count == cli->command->args_max) {
        return qr_fail(err, QR_CODE_USAGE, "%s is one argument too many: quire %s %s", word, cli->command->name,
                       cli->command->args);
    }
    cli->args[cli->arg_count++] = word;
    return QR_OK;
}

/* Looked for first, so that also an error in the line itself is printed as was asked for. */
static bool find_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            return true;
        }
    }
    return false;
}

qr_rc cli_parse(struct cli *cli, int argc, char **argv, qr_err *err)
{
    struct parser parser = {cli, argv, argc, 1};
    cli->json = find_json(argc, argv);
    cli->flags = qr_alloc_array((size_t)argc + 1, sizeof *cli->flags);
    cli->args = qr_alloc_array((size_t)argc + 1, sizeof *cli->args);
    cli->repeated = qr_alloc_array((size_t)argc + 1, sizeof *cli->repeated);
    cli->secrets = qr_alloc_array((size_t)argc + 1, sizeof *cli->secrets);
    if (!cli->flags || !cli->args || !cli->repeated || !cli->secrets) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    bool options_ended = false;
    for (; parser.at < argc; parser.at++) {
        const char *arg = argv[parser.at];
        if (!options_ended && strcmp(arg, "--") == 0) {
            options_ended = true;
        } else if (!options_ended && !cli->command && strcmp(arg, "--version") == 0) {
            cli->command = cli_find_command("version");
        } else if (!options_ended && arg[0] == '-' && arg[1]) {
            QR_TRY(take_option(&parser, err));
        } else {
            QR_TRY(take_word(cli, arg, err));
        }
    }
    return QR_OK;
}

void cli_done(struct cli *cli)
{
    qr_free(cli->flags);
    qr_free(cli->args);
    qr_free(cli->repeated);
    for (size_t i = 0; i < cli->secret_count; i++) {
        explicit_bzero(cli->secrets[i], strlen(cli->secrets[i]));
        qr_free(cli->secrets[i]);
    }
    qr_free(cli->secrets);
    qr_config_done(&cli->config);
}
