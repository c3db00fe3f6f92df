/* What a new user meets: completion at the tab key, help, suggestions, opening what was found. */
#include "base/fs.h"
#include "base/proc.h"
#include "support/program.h"

#include <sys/stat.h>
#include <unistd.h>

static void write_file(struct qr_test *t, const char *name, const char *content)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, name), qr_str_of(content), 0600, &err));
}

static void make_docs(struct qr_test *t)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "docs/sub"), 0700, &err));
    write_file(t, "docs/pears.md", "# Pears\n\nPears are green.\n");
    write_file(t, "docs/sub/apples.md", "# Apples\n\nApples are red.\n");
}

/* The commands that `quire help` lists, one after the other; `at` is where it goes on. */
static bool next_command(const char **at, char ret_name[static 32])
{
    const char *line = strstr(*at, "\n  ");
    while (line && !(line[3] >= 'a' && line[3] <= 'z')) {
        line = strstr(line + 1, "\n  ");
    }
    if (!line) {
        return false;
    }
    snprintf(ret_name, 32, "%.*s", (int)strcspn(line + 3, " \n"), line + 3);
    *at = line + 3;
    return true;
}

/* ---- completion ---- */

/* What bash offers behind these words; the last one is being typed. */
static void check_bash_offers(struct qr_test *t, const char *words, const char *offered)
{
    char script[1024];
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf errors = {0};
    struct qr_proc_result result;
    qr_err err;
    snprintf(script, sizeof script,
             "compopt() { :; }; . ./completion; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _quire; echo "
             "\"${COMPREPLY[*]}\"",
             words);
    const struct qr_proc_options options = {.argv = (const char *const[]){"/bin/bash", "-c", script, NULL},
                                            .env = (const char *const[]){"PATH=/usr/bin:/bin", NULL},
                                            .dir = t->dir,
                                            .output_bytes_max = 8192,
                                            .timeout_ms = 20000};
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out, &errors, &result, &err));
    QR_CHECK_TEXT("", qr_buf_str(&errors).ptr);
    QR_CHECK_TEXT(offered, qr_buf_str(&out).ptr);
}

QR_TEST(bash_completes_commands_options_choices_and_files)
{
    make_docs(t);
    write_file(t, "completion", program_check(t, PROGRAM("completion", "bash"), 0, "complete -F _quire quire\n"));
    check_bash_offers(t, "quire se", "search serve set\n");
    check_bash_offers(t, "quire search --ex", "--explain\n");
    check_bash_offers(t, "quire --data x ls --st", "--status\n");
    check_bash_offers(t, "quire ls --da", "--data\n");
    check_bash_offers(t, "quire completion z", "zsh\n");
    check_bash_offers(t, "quire base re", "restore\n");
    check_bash_offers(t, "quire process ch", "chunk\n");
    check_bash_offers(t, "quire help sea", "search\n");
    check_bash_offers(t, "quire add do", "docs\n");
    check_bash_offers(t, "quire search --mode h", "hybrid\n");
    check_bash_offers(t, "quire ls --status com", "completed\n");
    check_bash_offers(t, "quire --data do", "docs\n");
    check_bash_offers(t, "quire search --under do", "docs\n");
    check_bash_offers(t, "quire search --top \"\"", "\n");
}

QR_TEST(every_shell_knows_every_command_and_option)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    static char scripts[QR_COUNT(shells)][32768], overview[8192];
    for (size_t i = 0; i < QR_COUNT(shells); i++) {
        snprintf(scripts[i], sizeof scripts[i], "%s", program_check(t, PROGRAM("completion", shells[i]), 0, "quire"));
    }
    snprintf(overview, sizeof overview, "%s", program_check(t, PROGRAM("help"), 0, "usage: "));
    const char *at = overview;
    char name[32];
    size_t commands = 0;
    while (next_command(&at, name)) {
        const char *help = program_check(t, PROGRAM(name, "--help"), 0, "usage: quire");
        commands++;
        for (size_t i = 0; i < QR_COUNT(shells); i++) {
            QR_CHECK_HAS(name, scripts[i]);
            for (const char *option = strstr(help, "\n  -"); option; option = strstr(option + 1, "\n  -")) {
                char word[32];
                const char *begin = option + 3 + (i == 2 ? strspn(option + 3, "-") : 0); /* fish: without them */
                snprintf(word, sizeof word, "%.*s", (int)strcspn(begin, " \n"), begin);
                QR_CHECK_HAS(word, scripts[i]);
            }
        }
    }
    QR_CHECK(commands >= 19);
    program_check(t, PROGRAM("completion", "csh"), 2, "name a shell");
    program_check(t, PROGRAM("completion"), 2, "name a shell");
}

/* Runs a program that the test may do without; its lines. */
static const char *run_shell(struct qr_test *t, const char *shell, const char *const *argv)
{
    static char printed[8192];
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf errors = {0};
    struct qr_proc_result result;
    qr_err err;
    char home[300], path[64];
    snprintf(path, sizeof path, "/usr/bin/%s", shell);
    if (access(path, X_OK) != 0) {
        qr_test_skip("%s is not installed", shell);
    }
    snprintf(home, sizeof home, "HOME=%s", t->dir);
    const struct qr_proc_options options = {
        .argv = argv,
        .env = (const char *const[]){"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TERM=dumb", home, NULL},
        .dir = t->dir,
        .output_bytes_max = sizeof printed,
        .timeout_ms = 50000};
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out, &errors, &result, &err));
    if (result.exit_code != 0) {
        QR_FAIL("%s ended with %d: %s", shell, result.exit_code, qr_buf_str(&errors).ptr);
    }
    snprintf(printed, sizeof printed, "%s", qr_buf_str(&out).ptr);
    return printed;
}

QR_TEST(zsh_completes_commands_options_choices_and_files)
{
    /* a shell on a terminal of its own, in which ^X prints the line that the tab key has made */
    static const char ask[] = "zmodload zsh/zpty || exit 3\n"
                              "zpty z 'zsh -f -i'\n"
                              "zpty -w z 'PROMPT=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; "
                              "show() { print -r -- \"<$BUFFER>\"; BUFFER= }; zle -N show; bindkey \"^X\" show; "
                              "bindkey \"^I\" complete-word; print re\"\"ady'\n"
                              "zpty -r z line '*ready*'\n"
                              "for words in \"$@\"; do\n"
                              "    zpty -wn z \"$words\"$'\\t\\x18'\n"
                              "    zpty -r z line '*<quire*>*'\n"
                              "    line=${line##*<}\n"
                              "    print -r -- \"${line%>*}\"\n"
                              "done\n"
                              "zpty -d z\n";
    make_docs(t);
    write_file(t, "_quire", program_check(t, PROGRAM("completion", "zsh"), 0, "#compdef quire\n"));
    write_file(t, "ask", ask);
    const char *const argv[] = {"zsh",
                                "-f",
                                "ask",
                                "quire sea",
                                "quire search --ex",
                                "quire --data x ls --sta",
                                "quire --dat",
                                "quire completion z",
                                "quire base re",
                                "quire help sea",
                                "quire add do",
                                "quire search --mode hy",
                                "quire ls --sort -si",
                                NULL};
    QR_CHECK_TEXT("quire search \nquire search --explain \nquire --data x ls --status \nquire --data \n"
                  "quire completion zsh \nquire base restore \nquire help search \nquire add docs/\n"
                  "quire search --mode hybrid \nquire ls --sort -size \n",
                  run_shell(t, "zsh", argv));
}

/* The first word of each line that is offered. */
static void check_fish_offers(struct qr_test *t, const char *words, const char *offered)
{
    char script[512], found[512] = "";
    snprintf(script, sizeof script, "source completion; complete -C '%s'", words);
    const char *line = run_shell(t, "fish", (const char *const[]){"fish", "--no-config", "-c", script, NULL});
    for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        snprintf(found + strlen(found), sizeof found - strlen(found), "%.*s\n", (int)strcspn(line, "\t\n"), line);
    }
    QR_CHECK_TEXT(offered, found);
}

QR_TEST(fish_completes_commands_options_choices_and_files)
{
    make_docs(t);
    write_file(t, "completion", program_check(t, PROGRAM("completion", "fish"), 0, "complete -c quire"));
    check_fish_offers(t, "quire se", "search\nserve\nset\n");
    check_fish_offers(t, "quire search --expl", "--explain\n");
    check_fish_offers(t, "quire --data x ls --sta", "--status\n");
    check_fish_offers(t, "quire completion z", "zsh\n");
    check_fish_offers(t, "quire base re", "restore\n");
    check_fish_offers(t, "quire help sea", "search\n");
    check_fish_offers(t, "quire add do", "docs/\n");
    check_fish_offers(t, "quire search --mode hy", "hybrid\n");
}

/* ---- help ---- */

QR_TEST(every_command_has_a_help_that_says_what_it_does)
{
    static char overview[8192];
    snprintf(overview, sizeof overview, "%s", program_check(t, PROGRAM("help"), 0, "usage: "));
    const char *at = overview;
    char name[32], usage[64];
    while (next_command(&at, name)) {
        snprintf(usage, sizeof usage, "usage: quire [OPTION]… %s", name);
        const char *help = program_check(t, PROGRAM(name, "--help"), 0, usage); /* `help config` is about settings */
        QR_CHECK(strchr(help, '.') != NULL);                                    /* at least a sentence */
    }
}

/* ---- search ---- */

QR_TEST(search_that_finds_nothing_says_what_to_try)
{
    make_docs(t);
    program_check(t, PROGRAM("search", "x"), 4, "There are none yet: `quire add FOLDER` makes the base default.");
    program_check(t, PROGRAM("base", "create", "fruit"), 0, "fruit");
    program_check(t, PROGRAM("search", "-b", "fruit", "x"), 0, "the base fruit is empty: `quire add");
    program_check(t, PROGRAM("add", "-b", "fruit", "docs"), 0, "completed");
    program_check(t, PROGRAM("search", "-b", "fruit", "zebras"), 0, "try fewer or other words");
    program_check(t, PROGRAM("search", "-b", "fruit", "--under", "docs/sub", "pears"), 0, "without --under");
    program_check(t, PROGRAM("search", "-b", "friut", "pears"), 4, "Did you mean fruit?");
    program_check(t, PROGRAM("search", "-b", "meadow", "pears"), 4, "  There are: fruit (not_found)\n");
    program_check(t, PROGRAM("add", "-b", "friut", "docs"), 4, "Did you mean fruit?");
    program_check(t, PROGRAM("base", "rm", "fruit"), 3, "With --yes it is deleted with everything in it.");
    program_check(t, PROGRAM("search", "-b", "fruit", "--top", "0", "x"), 2,
                  "--top takes a whole number from 1 to 100");
    program_check(t, PROGRAM("search"), 2, "See `quire help search`. (usage)");
}

QR_TEST(search_looks_in_several_bases_at_once)
{
    make_docs(t);
    program_check(t, PROGRAM("base", "create", "a"), 0, "a");
    program_check(t, PROGRAM("base", "create", "b"), 0, "b");
    program_check(t, PROGRAM("add", "-b", "a", "docs/pears.md"), 0, "completed");
    program_check(t, PROGRAM("add", "-b", "b", "docs/sub"), 0, "completed");
    const char *printed =
        program_check(t, PROGRAM("search", "-b", "a", "-b", "b", "pears", "apples"), 0, "pears.md  Pears  in a\n");
    QR_CHECK_HAS("apples.md  Apples  in b\n", printed);
    program_check(t, PROGRAM("search", "-b", "a", "-b", "c", "pears"), 4, "there is no base c");
    program_check(t, PROGRAM("ls", "-b", "a", "-b", "b"), 2, "-b is given twice: a and b");
}

QR_TEST(search_explains_its_order)
{
    make_docs(t);
    program_check(t, PROGRAM("add", "docs"), 0, "completed");
    const char *printed = program_check(t, PROGRAM("search", "--explain", "pears"), 0, "searched for: ");
    QR_CHECK_HAS("(text)\n1. pears.md", printed);
    QR_CHECK_HAS("text: rank 1, score ", printed);
}

QR_TEST(what_was_found_is_opened_in_the_editor_at_its_line)
{
    make_docs(t);
    write_file(t, "editor", "#!/bin/sh\necho \"$@\" > opened\n");
    QR_CHECK(chmod(qr_test_path(t, "editor"), 0700) == 0);
    char editor[256];
    snprintf(editor, sizeof editor, "EDITOR=%s", qr_test_path(t, "editor"));
    program_check(t, PROGRAM("add", "docs"), 0, "completed");
    const struct program open = {.args = {"search", "--open", "1", "green"}, .env = {editor}};
    program_check(t, &open, 0, "");
    QR_CLEANUP(qr_buf_done) struct qr_buf opened = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), qr_test_path(t, "opened"), 1000, &opened, &err));
    QR_CHECK(strncmp(opened.data, "+", 1) == 0);
    QR_CHECK_HAS("/docs/pears.md\n", opened.data);
    const struct program too_far = {.args = {"search", "--open", "9", "green"}, .env = {editor}};
    program_check(t, &too_far, 4, "there is no hit 9: 1 was found");
    const struct program no_number = {.args = {"search", "--open", "x", "green"}, .env = {editor}};
    program_check(t, &no_number, 2, "--open takes the number of a hit");
    const struct program zero = {.args = {"search", "--open", "0", "green"}, .env = {editor}};
    program_check(t, &zero, 2, "--open takes the number of a hit, 1 or more");
    const struct program as_json = {.args = {"search", "--open", "1", "--json", "green"}, .env = {editor}};
    const struct program_end refused = program_run(t, &as_json);
    QR_CHECK_INT(2, refused.exit_code);
    QR_CHECK_HAS("--open and --json do not go together", refused.out);
}

QR_TEST(a_page_is_opened_in_the_browser_at_its_words)
{
    write_file(t, "page.html", "<html><body><h1>Fruit</h1><p>The quince is ripe.</p></body></html>");
    program_check(t, PROGRAM("add", "page.html"), 0, "completed");
    program_check(t, PROGRAM("search", "quince"), 0, "/page.html#:~:text=The%20quince%20is%20ripe.");
    const struct program open = {.args = {"search", "--open", "1", "quince"},
                                 .env = {"BROWSER=echo opened", "EDITOR=echo edited"}};
    program_check(t, &open, 0, "opened file:///");
    const struct program failing = {.args = {"search", "--open", "1", "quince"}, .env = {"BROWSER=false"}};
    program_check(t, &failing, 2, "the browser false ended with 1");
}

QR_TEST(an_editor_has_arguments_and_quotes_and_its_failure_is_told)
{
    make_docs(t);
    program_check(t, PROGRAM("add", "docs"), 0, "completed");
    const struct program quoted = {.args = {"search", "--open", "1", "green"}, .env = {"EDITOR=echo 'a  b' -n"}};
    program_check(t, &quoted, 0, "a  b -n +1 ");
    const struct program failing = {.args = {"search", "--open", "1", "green"}, .env = {"EDITOR=false"}};
    program_check(t, &failing, 2, "the editor false ended with 1");
    const struct program missing = {.args = {"search", "--open", "1", "green"}, .env = {"EDITOR=no-such-editor"}};
    program_check(t, &missing, 2, "the editor cannot be run: no-such-editor");
}

QR_TEST(a_query_that_begins_like_an_option_is_told_how_to_be_none)
{
    program_check(t, PROGRAM("search", "-alpha"), 2, "if it is none, write -- before it: quire search -- -alpha");
}

/* ---- add ---- */

QR_TEST(a_link_to_a_file_that_is_named_stands_for_the_file)
{
    make_docs(t);
    QR_CHECK(symlink("docs/pears.md", qr_test_path(t, "link.md")) == 0);
    program_check(t, PROGRAM("add", "link.md"), 0, "/docs/pears.md  1 chunk");
}

QR_TEST(adding_what_is_there_says_that_nothing_had_changed)
{
    make_docs(t);
    const char *printed = program_check(t, PROGRAM("add", "docs"), 0, "/docs  2 files, 2 chunks in ");
    QR_CHECK(strstr(printed, "nothing") == NULL);
    program_check(t, PROGRAM("add", "docs"), 0, "; nothing had changed\n");
    write_file(t, "docs/pears.md", "# Pears\n\nPears are yellow, or so they say.\n");
    printed = program_check(t, PROGRAM("add", "docs"), 0, "2 files, 2 chunks");
    QR_CHECK(strstr(printed, "nothing") == NULL);
}

QR_TEST(failures_are_counted_by_reason_and_the_first_are_shown)
{
    make_docs(t);
    char name[32];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "docs/film%02d.mp4", i);
        write_file(t, name, "no text");
    }
    write_file(t, "docs/blob.txt", "\001\002\003\377\376\001\002\003");
    const char *printed = program_check(t, PROGRAM("add", "docs"), 1, "failed     /"); /* as ls has it */
    QR_CHECK_HAS("  2 files, 2 chunks in ", printed);
    QR_CHECK_HAS("; 13 failed: ", printed);
    QR_CHECK_HAS("unsupported_type 13", printed);
    QR_CHECK_HAS("film01.mp4", printed);
    QR_CHECK(strstr(printed, "film02.mp4") == NULL);
    QR_CHECK_HAS("`quire ls --all --status failed` lists all that failed\n", printed);
    program_check(t, PROGRAM("ls"), 0, "docs/  2 of 15, 13 failed");
    printed = program_check(t, PROGRAM("add", "docs/pears.md", "docs/sub"), 0, "together   2 files, 2 chunks in ");
    QR_CHECK(strstr(printed, "try:") == NULL); /* for terminals */
}
