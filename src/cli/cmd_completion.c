/* quire completion bash|zsh|fish: what the shell offers at the tab key, printed from the table of commands. */
#include "cli/cli.h"

/* The words a|b|c that an argument or an option may be, as they stand in the table; empty when it is free. */
static qr_str choices_of(const char *args)
{
    qr_str text = qr_str_of(args + (args[0] == '['));
    text.len = strcspn(text.ptr, " []");
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if (!(c == '|' || (c >= 'a' && c <= 'z'))) {
            return (qr_str){0};
        }
    }
    return memchr(text.ptr, '|', text.len) ? text : (qr_str){0};
}

static bool names_commands(const struct cli_command *command)
{
    return strstr(command->args, "COMMAND") != NULL;
}

static bool has_choices(const struct cli_command *command)
{
    return choices_of(command->args).len > 0 || names_commands(command);
}

static void print_choices(const struct cli_command *command)
{
    for (qr_str choices = choices_of(command->args); choices.len;) {
        const qr_str word = qr_str_split(&choices, '|');
        printf(" %.*s", QR_STR_ARG(word));
    }
    for (size_t i = 0; i < cli_command_count && names_commands(command); i++) {
        printf(" %s", cli_commands[i].name);
    }
    fputs(names_commands(command) ? " errors" : "", stdout);
}

static void print_options(const struct cli_option *options)
{
    for (; options->name; options++) {
        printf(" %s", options->name);
    }
}

static void print_names(void)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        printf("%s%s", i ? " " : "", cli_commands[i].name);
    }
}

/* Inside single quotes of a shell. */
static void print_quoted(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            fputc(*text, stdout);
        }
    }
}

/* ---- bash ---- */

/* What may stand behind an option: its words, a file, or nothing that is known. */
static void print_bash_values(const char *command, const struct cli_option *options)
{
    for (; options->name; options++) {
        const char *arg = options->arg ? options->arg : "";
        const bool is_path = strcmp(arg, "DIR") == 0 || strcmp(arg, "FILE") == 0 || strcmp(arg, "ITEM") == 0;
        if (options->arg) {
            printf("        %s' %s') COMPREPLY=($(compgen %s%s%s -- \"$word\")); return ;;\n", command, options->name,
                   is_path ? "-f" : "-W '",
                   is_path            ? ""
                   : options->choices ? options->choices
                                      : "",
                   is_path ? "" : "'");
        }
    }
}

static void print_bash(void)
{
    fputs("_quire()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} command= i\n"
          "    COMPREPLY=()\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in\n"
          "            --data|--config|--set) ((i++)) ;;\n"
          "            -*) ;;\n"
          "            *) command=${COMP_WORDS[i]}; break ;;\n"
          "        esac\n"
          "    done\n"
          "    local options='",
          stdout);
    print_options(cli_options);
    fputs("' words=\n    case $command in\n        '') words='", stdout);
    print_names();
    puts("' ;;");
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        printf("        %s) options+='", command->name);
        print_options(command->options);
        fputs("' words='", stdout);
        print_choices(command);
        puts("' ;;");
    }
    puts("    esac\n    case \"$command ${COMP_WORDS[COMP_CWORD - 1]}\" in");
    print_bash_values("*", cli_options);
    for (size_t i = 0; i < cli_command_count; i++) {
        print_bash_values(cli_commands[i].name, cli_commands[i].options);
    }
    puts("    esac\n"
         "    case $word in\n"
         "        -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "        *) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
         "    esac\n"
         "    if ((${#COMPREPLY[@]} == 0)); then\n"
         "        compopt -o filenames\n"
         "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "    fi\n"
         "}\n"
         "complete -F _quire quire");
}

/* ---- zsh ---- */

static void print_zsh_options(const struct cli_option *options)
{
    for (; options->name; options++) {
        printf(" '%s[", options->name);
        for (const char *c = options->doc; *c; c++) { /* brackets and colons are syntax there */
            fputs(*c == '\'' ? "'\\''" : *c == '[' || *c == ']' || *c == ':' ? " " : (const char[]){*c, '\0'}, stdout);
        }
        if (options->choices) {
            printf("]:value:(%s)'", options->choices);
        } else {
            printf("]%s'", options->arg ? ":value:_files" : "");
        }
    }
}

static void print_zsh(void)
{
    fputs("#compdef quire\n_quire()\n{\n    local -a commands\n    commands=(", stdout);
    for (size_t i = 0; i < cli_command_count; i++) {
        printf("\n        '%s:", cli_commands[i].name);
        print_quoted(cli_commands[i].doc);
        fputc('\'', stdout);
    }
    fputs("\n    )\n    local -a options\n    options=(", stdout);
    print_zsh_options(cli_options);
    puts(")\n    local state line context\n    typeset -A opt_args\n"
         "    _arguments -C $options '1: :->command' '*:: :->rest' && return\n"
         "    if [[ $state == command ]]; then\n        _describe command commands\n        return\n    fi\n"
         "    case ${words[1]} in"); /* from here on the words are those from the command on */
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        printf("        %s) _arguments $options", command->name);
        print_zsh_options(command->options);
        if (has_choices(command)) {
            fputs(" '1:what:(", stdout);
            print_choices(command);
            fputs(")'", stdout);
        }
        puts(" '*:argument:_files' ;;");
    }
    puts("    esac\n}\n_quire \"$@\"");
}

/* ---- fish ---- */

static void print_fish_text(const char *text)
{
    fputc('\'', stdout);
    for (; *text; text++) {
        fputs(*text == '\'' || *text == '\\' ? "\\" : "", stdout);
        fputc(*text, stdout);
    }
    puts("'");
}

static void print_fish_options(const char *command, const struct cli_option *options)
{
    for (; options->name; options++) {
        const bool is_long = options->name[1] == '-';
        printf("complete -c quire %s%s%s %s %s%s%s%s -d ", command ? "-n '__fish_seen_subcommand_from " : "",
               command ? command : "", command ? "'" : "", is_long ? "-l" : "-s", options->name + (is_long ? 2 : 1),
               options->choices ? " -xa '"
               : options->arg   ? " -r"
                                : "",
               options->choices ? options->choices : "", options->choices ? "'" : "");
        print_fish_text(options->doc);
    }
}

static void print_fish(void)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];
        printf("complete -c quire -n __fish_use_subcommand -f -a %s -d ", command->name);
        print_fish_text(command->doc);
        print_fish_options(command->name, command->options);
        if (has_choices(command)) {
            printf("complete -c quire -n '__fish_seen_subcommand_from %s' -f -a '", command->name);
            print_choices(command);
            puts("'");
        }
    }
    print_fish_options(NULL, cli_options);
}

int cmd_completion(struct cli *cli)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < QR_COUNT(shells) && cli->arg_count; i++) {
        if (strcmp(shells[i].shell, cli->args[0]) == 0 && !cli->json) {
            shells[i].print();
            return 0;
        }
    }
    qr_err err;
    qr_fail(&err, QR_CODE_USAGE, "name a shell, as in: quire completion bash > /etc/bash_completion.d/quire");
    return cli_fail(cli, &err);
}
