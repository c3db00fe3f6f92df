/* What a person sees on a terminal: progress that is drawn over, colours, and lines that fit. */
#include "base/fs.h"
#include "base/json.h"
#include "support/program.h"

enum { WIDE = 400 }; /* paths of the test's folder are long */

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

static void check_lacks(const char *part, const char *text)
{
    if (strstr(text, part)) {
        QR_FAIL("\"%s\" is in \"%s\"", part, text);
    }
}

#define SLOW     "QUIRE_FAILPOINTS=index.write.before_commit=sleep(1500)@1"
#define TERMINAL "TERM=xterm", "LC_ALL=C.UTF-8"

/* ---- progress ---- */

QR_TEST(a_bar_a_stage_is_drawn_and_erased_at_the_end)
{
    make_docs(t);
    const struct program add = {.args = {"add", "docs"}, .env = {TERMINAL, SLOW}, .columns = WIDE};
    const struct program_end end = program_run_on_terminal(t, &add);
    QR_CHECK_INT(0, end.exit_code);
    QR_CHECK_HAS("reading      \033[32m", end.out);
    QR_CHECK_HAS("░", end.out);
    QR_CHECK_HAS(" of 2", end.out);
    QR_CHECK_HAS("\r\033[K", end.out);
    const char *screen = program_screen(end.out, WIDE);
    QR_CHECK_HAS("/docs  2 files, 2 chunks in ", screen);
    QR_CHECK_HAS("try: quire search 'what you look for'\n", screen);
    QR_CHECK(strncmp(screen, "completed  /", strlen("completed  /")) == 0);
    check_lacks("reading", screen);
}

QR_TEST(a_file_is_told_in_one_line)
{
    write_file(t, "note.md", "Quinces are sour.\n");
    const struct program add = {.args = {"add", "note.md"}, .env = {TERMINAL}, .columns = WIDE};
    const char *printed = program_run_on_terminal(t, &add).out;
    QR_CHECK_HAS("/note.md  1 chunk\r\n", printed);
    QR_CHECK(strncmp(program_screen(printed, WIDE), "completed  /", 12) == 0);
}

QR_TEST(ctrl_c_leaves_a_clean_line_that_says_what_continues_the_work)
{
    make_docs(t);
    const struct program add = {.args = {"add", "docs"},
                                .env = {TERMINAL, "QUIRE_FAILPOINTS=index.write.before_commit=sleep(2500)@1"},
                                .columns = WIDE,
                                .ctrl_c_upon = "reading"};
    const struct program_end end = program_run_on_terminal(t, &add);
    QR_CHECK_INT(0, end.exit_code);
    const char *screen = program_screen(end.out, WIDE);
    QR_CHECK(strncmp(screen, "quire: stopped waiting; nothing is lost\n", 40) == 0);
    QR_CHECK_HAS("pending: `quire wait` runs ", screen);
    check_lacks("reading", screen);
    check_lacks("^C", screen);
    program_check(t, PROGRAM("wait", "docs"), 0, "completed  /");
}

QR_TEST(bars_are_plain_where_the_locale_is_and_fit_where_it_is_narrow)
{
    make_docs(t);
    const struct program plain = {
        .args = {"add", "docs"}, .env = {"TERM=xterm", "LC_ALL=C", "NO_COLOR=1", SLOW}, .columns = WIDE};
    const char *printed = program_run_on_terminal(t, &plain).out;
    QR_CHECK_HAS("reading      ..............................  0 of 2", printed);
    check_lacks("░", printed);
    check_lacks("\033[3", printed);
    write_file(t, "docs/pears.md", "# Pears\n\nPears are brown.\n"); /* else a reindex has nothing to write */
    const struct program narrow = {
        .args = {"reindex", "docs", "--json"}, .env = {TERMINAL, "COLUMNS=30", SLOW}, .columns = WIDE};
    check_lacks("\033", program_run_on_terminal(t, &narrow).out); /* nothing with --json */
    write_file(t, "docs/pears.md", "# Pears\n\nPears are yellow.\n");
    const struct program shown = {
        .args = {"reindex", "docs/pears.md"}, .env = {TERMINAL, "COLUMNS=30", SLOW}, .columns = WIDE};
    printed = program_run_on_terminal(t, &shown).out;
    QR_CHECK_HAS("reading      0 of 1", printed);
    check_lacks("░", printed);
}

QR_TEST(a_dumb_terminal_gets_no_sequences)
{
    make_docs(t);
    const struct program add = {.args = {"add", "docs"}, .env = {"TERM=dumb", SLOW}, .columns = WIDE};
    const char *printed = program_run_on_terminal(t, &add).out;
    check_lacks("\033", printed);
    QR_CHECK_HAS("completed  /", printed);
}

QR_TEST(a_pipe_gets_a_plain_line_every_few_seconds)
{
    make_docs(t);
    const struct program add = {.args = {"add", "docs"},
                                .env = {TERMINAL, "QUIRE_FAILPOINTS=index.write.before_commit=sleep(5600)@1"}};
    const struct program_end end = program_run(t, &add);
    QR_CHECK_INT(0, end.exit_code);
    QR_CHECK_HAS("reading 0 of 2 files\n", end.errors);
    QR_CHECK(strncmp(end.out, "completed  /", 12) == 0);
}

QR_TEST(a_backup_is_told_how_far_it_is)
{
    make_docs(t);
    program_check(t, PROGRAM("add", "docs"), 0, "completed  /");
    const struct program backup = {.args = {"backup", "copy"},
                                   .env = {TERMINAL, "QUIRE_FAILPOINTS=backup.stores_copied=sleep(1500)@1"},
                                   .columns = WIDE};
    const struct program_end end = program_run_on_terminal(t, &backup);
    QR_CHECK_INT(0, end.exit_code);
    QR_CHECK_HAS("copying      \033[32m", end.out);
    QR_CHECK_HAS(" KB", end.out);
    const char *screen = program_screen(end.out, WIDE);
    check_lacks("copying", screen);
    QR_CHECK_HAS("changes waited", screen);
}

QR_TEST(a_pipe_is_told_once_why_nothing_ends)
{
    write_file(t, "note.md", "Quinces are sour.\n");
    const struct program add = {
        .args = {"add", "note.md"},
        .env = {TERMINAL, "QUIRE_FAILPOINTS=index.write.before_commit=error@1;index.write.before_commit=error@2;"
                          "index.write.before_commit=error@3"}};
    const struct program_end end = program_run(t, &add);
    QR_CHECK_INT(0, end.exit_code);
    static const char why[] =
        "waiting: failpoint index.write.before_commit (unavailable). It is tried again by itself.\n";
    QR_CHECK_HAS(why, end.errors);
    check_lacks(why, strstr(end.errors, why) + 1);
    QR_CHECK_HAS("completed", end.out);
}

QR_TEST(a_delete_that_is_put_off_is_told_why_and_waited_for)
{
    make_docs(t);
    program_check(t, PROGRAM("add", "docs"), 0, "completed");
    program_check(t, PROGRAM("rm", "docs"), 0, "");
    const struct program held = {.args = {"wait"},
                                 .env = {TERMINAL, "QUIRE_FAILPOINTS=delete.rows.before_commit=error"},
                                 .columns = WIDE,
                                 .ctrl_c_upon = "waiting: failpoint delete.rows.before_commit (unavailable)"};
    const struct program_end end = program_run_on_terminal(t, &held);
    QR_CHECK_INT(0, end.exit_code);
    QR_CHECK_HAS("quire: stopped waiting", end.out);
    program_check(t, PROGRAM("wait"), 0, "nothing is pending");
    const char *jobs = program_check(t, PROGRAM("jobs", "ls", "--type", "delete-subtree"), 0, "completed");
    check_lacks("scheduled", jobs);
}

/* ---- colours ---- */

QR_TEST(search_shows_what_was_found_and_where_in_colours)
{
    make_docs(t);
    program_check(t, PROGRAM("add", "docs"), 0, "completed");
    const struct program search = {.args = {"search", "green"}, .env = {TERMINAL}, .columns = WIDE};
    const char *printed = program_run_on_terminal(t, &search).out;
    QR_CHECK_HAS("1. \033[1mpears.md\033[0m", printed);
    QR_CHECK_HAS("\033[36mfile:///", printed);
    QR_CHECK_HAS("Pears are \033[1mgreen\033[0m.", printed);
    const struct program without = {.args = {"search", "green"}, .env = {TERMINAL, "NO_COLOR=1"}, .columns = WIDE};
    printed = program_run_on_terminal(t, &without).out;
    check_lacks("\033", printed);
    QR_CHECK_HAS("Pears are green.", printed);
}

QR_TEST(a_passage_is_broken_between_words_to_fit_the_terminal)
{
    write_file(
        t, "long.md",
        "Quinces grow on small trees in gardens, and they are\n\thard and sour until they are cooked with sugar for "
        "an hour. 木瓜は硬くて酸っぱい果物です。 Then they are red.\n");
    program_check(t, PROGRAM("add", "long.md"), 0, "completed");
    const struct program search = {.args = {"search", "sugar"}, .env = {TERMINAL, "COLUMNS=40"}, .columns = WIDE};
    const char *screen = program_screen(program_run_on_terminal(t, &search).out, WIDE);
    QR_CHECK_HAS("\n   Quinces grow on small trees in\n   gardens, and they are hard and sour\n", screen);
    QR_CHECK_HAS("\n   until they are cooked with sugar for\n   an hour.", screen);
    program_check(t, PROGRAM("search", "sugar"), 0, "   Quinces grow on small trees in gardens, and they are hard and");
}

QR_TEST(colours_on_a_pipe_are_for_those_who_force_them)
{
    make_docs(t);
    program_check(t, PROGRAM("add", "docs"), 0, "completed");
    check_lacks("\033", program_check(t, PROGRAM("ls", "docs"), 0, "completed"));
    const struct program forced = {.args = {"ls", "docs"}, .env = {"CLICOLOR_FORCE=1"}};
    program_check(t, &forced, 0, "\033[32mcompleted\033[0m");
    const struct program both = {.args = {"ls", "docs"}, .env = {"CLICOLOR_FORCE=1", "NO_COLOR=1"}};
    check_lacks("\033", program_check(t, &both, 0, "completed"));
    const struct program json = {.args = {"ls", "docs", "--json"}, .env = {"CLICOLOR_FORCE=1"}};
    check_lacks("\033", program_check(t, &json, 0, "completed"));
    static const char *const commands[][3] = {{"show", "docs"}, {"jobs", "ls"}, {"check"}, {"base", "ls"}};
    for (size_t i = 0; i < QR_COUNT(commands); i++) {
        const struct program painted = {.args = {commands[i][0], commands[i][1]}, .env = {"CLICOLOR_FORCE=1"}};
        program_check(t, &painted, 0, "\033[32m");
    }
}

QR_TEST(errors_are_red_on_a_terminal)
{
    const struct program wrong = {.args = {"serach"}, .env = {TERMINAL}};
    const struct program_end end = program_run_on_terminal(t, &wrong);
    QR_CHECK_INT(2, end.exit_code);
    QR_CHECK_HAS("\033[31mquire:\033[0m no command is called serach; did you mean search?", end.out);
}

/* ---- the tree ---- */

QR_TEST(a_tree_has_branches_on_a_terminal_and_indents_elsewhere)
{
    make_docs(t);
    write_file(t, "docs/zebras.md", "Zebras are striped.\n");
    program_check(t, PROGRAM("add", "docs"), 0, "completed");
    const struct program tree = {.args = {"ls", "--all"}, .env = {TERMINAL}, .columns = WIDE};
    const char *screen = program_screen(program_run_on_terminal(t, &tree).out, WIDE);
    QR_CHECK_HAS("  ├ pears.md  1 chunk\n", screen);
    QR_CHECK_HAS("  ├ sub/  1 of 1\n", screen);
    QR_CHECK_HAS("  │ └ apples.md  1 chunk\n", screen);
    QR_CHECK_HAS("  └ zebras.md  1 chunk\n", screen);
    program_check(t, PROGRAM("ls", "--all"), 0, "      apples.md  1 chunk\n");
    const struct program ascii = {.args = {"ls", "--all"}, .env = {"TERM=xterm", "LC_ALL=C"}, .columns = WIDE};
    check_lacks("├", program_run_on_terminal(t, &ascii).out);
}
