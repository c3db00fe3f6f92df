/* The manual page, docs/man/quire.1, printed from the tables. */
#include "cli/cli.h"

/* Text as roff takes it: a hyphen that can be copied, no accidental request at the beginning of a line. */
static void print_text(const char *text)
{
    if (text[0] == '.' || text[0] == '\'') {
        fputs("\\&", stdout);
    }
    for (; *text; text++) {
        if (*text == '-') {
            fputs("\\-", stdout);
        } else if (*text == '\\') {
            fputs("\\e", stdout);
        } else {
            fputc(*text, stdout);
        }
    }
}

/* A paragraph with a bold name, its argument in italics. */
static void print_entry(const char *name, const char *arg, const char *doc)
{
    fputs(".TP\n\\fB", stdout);
    print_text(name);
    fputs("\\fR", stdout);
    if (arg && arg[0]) {
        fputs(" \\fI", stdout);
        print_text(arg);
        fputs("\\fR", stdout);
    }
    fputc('\n', stdout);
    print_text(doc);
    fputc('\n', stdout);
}

static void print_options(const struct cli_option *options)
{
    for (; options->name; options++) {
        print_entry(options->name, options->arg, options->doc);
    }
}

static void print_commands(void)
{
    puts(".SH COMMANDS");
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        print_entry(command->name, command->args, command->doc);
        if (command->details[0]) {
            print_text(command->details);
            fputc('\n', stdout);
        }
        if (command->options[0].name) {
            puts(".RS");
            print_options(command->options);
            puts(".RE");
        }
    }
}

static void print_settings(void)
{
    puts(".SH SETTINGS\n"
         "In the file as \\fIkey\\fR = \\fIvalue\\fR under [\\fIsection\\fR], in the environment as the variable, as a "
         "flag "
         "with \\fB\\-\\-set\\fR.\n"
         "The flag is stronger than the environment, that than the file, that than the default.");
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        const struct qr_config_key *key = qr_config_key(id);
        QR_CLEANUP(qr_buf_done) struct qr_buf facts = {0};
        char env_name[QR_CONFIG_ENV_SIZE];
        qr_config_env_name(key, env_name);
        qr_buf_printf(&facts, "%s Variable %s. Default ", key->doc, env_name);
        qr_config_add_default(&facts, key);
        qr_buf_add_text(&facts, "; allowed: ");
        qr_config_add_allowed(&facts, key);
        qr_buf_add_char(&facts, '.');
        if (facts.failed == QR_CODE_NONE) {
            print_entry(key->name, NULL, facts.data);
        }
    }
}

void cli_print_man_page(void)
{
    puts(".\\\" Printed by `quire help --man`.\n"
         ".TH QUIRE 1 \"\" Quire \"User Commands\"\n"
         ".SH NAME");
    printf("quire \\- %s\n", cli_summary);
    puts(".SH SYNOPSIS\n"
         "\\fBquire\\fR [\\fIOPTION\\fR]... \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...");
    print_commands();
    puts(".SH OPTIONS");
    print_options(cli_options);
    print_settings();
    puts(".SH EXIT STATUS");
    for (size_t i = 0; i < cli_exit_code_count; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", cli_exit_codes[i].code);
        print_entry(code, NULL, cli_exit_codes[i].meaning);
    }
    puts(".SH FILES");
    print_entry("$XDG_CONFIG_HOME/quire/quire.ini", NULL, "The configuration, unless another file is named.");
    print_entry("$XDG_DATA_HOME/quire/", NULL, "The data folder, unless another is named; one process owns it.");
}
