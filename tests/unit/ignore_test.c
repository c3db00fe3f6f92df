/* Ignore rules: what gitignore(5) says, and that git itself agrees. */
#include "base/buf.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/rand.h"
#include "source/ignore.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static qr_err err;

/* A path that ends with '/' is a folder. */
static bool is_ignored(const char *rules, const char *path)
{
    struct qr_arena arena;
    struct qr_ignore ignore;
    qr_arena_init(&arena, 0);
    qr_ignore_init(&ignore, &arena);
    QR_CHECK_RC(QR_OK, qr_ignore_add_file(&ignore, qr_str_of(rules), (qr_str){0}, QR_IGNORE_GIT, &err));
    qr_str text = qr_str_of(path);
    const bool is_folder = qr_str_ends_with(text, QR_STR("/"));
    text.len -= is_folder;
    /* as a walk does: whatever is in an ignored folder is ignored */
    bool result = false;
    for (size_t len = 1; len <= text.len && !result; len++) {
        if (len == text.len || text.ptr[len] == '/') {
            const struct qr_ignore_rule *rule =
                qr_ignore_find(&ignore, (qr_str){text.ptr, len}, len < text.len || is_folder);
            result = rule && !rule->is_negated;
        }
    }
    qr_arena_done(&arena);
    return result;
}

static const struct {
    const char *rules, *path;
    bool is_ignored;
} cases[] = {
    /* names, at any depth */
    {"foo", "foo", true},
    {"foo", "a/b/foo", true},
    {"foo", "foo/x", true},
    {"foo", "food", false},
    {"foo", "Foo", false},
    /* only folders */
    {"foo/", "foo", false},
    {"foo/", "foo/", true},
    {"foo/", "a/foo/x", true},
    {"a/foo/", "a/foo", false},
    {"a/foo/", "a/foo/", true},
    /* anchored */
    {"/foo", "foo", true},
    {"/foo", "a/foo", false},
    {"a/b", "a/b", true},
    {"a/b", "x/a/b", false},
    {"/a/b/", "a/b/c", true},
    /* comments, white space, escapes */
    {"# foo\n#bar", "#bar", false},
    {"\\#bar", "#bar", true},
    {"\\!bar", "!bar", true},
    {"foo   ", "foo", true},
    {"foo\\ ", "foo ", true},
    {"foo\\ ", "foo", false},
    {"foo\\  ", "foo ", true},
    {" foo", "foo", false},
    {" foo", " foo", true},
    {"foo\r\nbar\r\n", "bar", true},
    {"\xEF\xBB\xBF"
     "foo",
     "foo", true},
    {"\n\n   \n", "x", false},
    {"/", "x", false},
    {"!", "!", false},
    {"a\\*b", "a*b", true},
    {"a\\*b", "axb", false},
    {"foo\\", "foo", false},
    /* negation: the last one wins */
    {"*.log\n!keep.log", "keep.log", false},
    {"*.log\n!keep.log", "other.log", true},
    {"!keep.log\n*.log", "keep.log", true},
    {"foo/\n!foo/bar", "foo/bar", true},
    {"foo/*\n!foo/bar", "foo/bar", false},
    {"foo/*\n!foo/bar", "foo/baz", true},
    {"*\n!*/\n!*.md", "a/b/c.md", false},
    {"*\n!*/\n!*.md", "a/b/c.txt", true},
    /* stars */
    {"*.txt", "a/b.txt", true},
    {"*.txt", ".txt", true},
    {"*", "x", true},
    {"a*c", "abbbc", true},
    {"a*c", "ab/c", false},
    {"a/*", "a/b", true},
    {"a/*/c", "a/b/c", true},
    {"a/*/c", "a/c", false},
    {"a/*/c", "a/b/b/c", false},
    {"*a*b*c*", "xxaxxbxxcxx", true},
    {"*a*b*c*", "xxaxxcxxbxx", false},
    /* two stars */
    {"**/foo", "foo", true},
    {"**/foo", "a/b/foo", true},
    {"**/foo/bar", "x/foo/bar", true},
    {"a/**", "a/b/c", true},
    {"a/**", "a", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a/**/b", "a/x/y/c", false},
    {"a/**/b/**/c", "a/b/b/x/c", true},
    {"a**b", "axxb", true},
    {"x/a**b", "x/a/b", false},
    {"**", "a", true},
    {"/**", "a", true},
    {"**/", "a", false},
    {"**/", "a/", true},
    {"a/***/b", "a/x/y/b", true},
    /* one character */
    {"?", "a", true},
    {"?", "ab", false},
    {"a?c", "a/c", false},
    {"[abc]x", "bx", true},
    {"[abc]x", "dx", false},
    {"[a-c]x", "bx", true},
    {"[!a-c]x", "dx", true},
    {"[^a-c]x", "bx", false},
    {"[]x]", "]", true},
    {"[a\\]b]", "]", true},
    {"[a-]", "-", true},
    {"[[:digit:]]", "7", true},
    {"[[:digit:]]", "x", false},
    {"[[:alpha:]_]*", "_a", true},
    {"[abc", "[abc", false},
    {"a[b/c]d", "abd", true},
    {"x/[!a]", "x/b", true},
    {"*.[oa]", "lib.a", true},
    {"\xff*", "\xff\xfe", true},
    {"a\nb", "b", true},
};

QR_TEST(rules_say_what_gitignore_says)
{
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("rules \"%s\", path \"%s\"", cases[i].rules, cases[i].path);
        QR_CHECK_INT(cases[i].is_ignored, is_ignored(cases[i].rules, cases[i].path));
    }
}

QR_TEST(rules_of_a_folder_below_count_there_and_outrank_those_above)
{
    struct qr_arena arena;
    struct qr_ignore ignore;
    qr_arena_init(&arena, 0);
    qr_ignore_init(&ignore, &arena);
    QR_CHECK_RC(QR_OK, qr_ignore_add_file(&ignore, QR_STR("*.log\n/top"), QR_STR(""), QR_IGNORE_GIT, &err));
    QR_CHECK_RC(QR_OK, qr_ignore_add_file(&ignore, QR_STR("!*.log\n/x\ny/z"), QR_STR("a/b"), QR_IGNORE_QUIRE, &err));
    const struct qr_ignore_rule *rule = qr_ignore_find(&ignore, QR_STR("a/b/c.log"), false);
    QR_CHECK(rule && rule->is_negated && rule->origin == QR_IGNORE_QUIRE);
    QR_CHECK(qr_ignore_find(&ignore, QR_STR("a/b/x"), false));
    QR_CHECK(!qr_ignore_find(&ignore, QR_STR("a/b/c/x"), false));
    QR_CHECK(qr_ignore_find(&ignore, QR_STR("a/b/y/z"), false));
    QR_CHECK(!qr_ignore_find(&ignore, QR_STR("a/b/top"), false));
    qr_arena_done(&arena);
}

/* ---- git itself ---- */

static qr_rc run_git(const char *dir, const char *const *args, qr_str input, struct qr_buf *out,
                     struct qr_proc_result *ret_result)
{
    static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
                                      "XDG_CONFIG_HOME=/nonexistent", NULL};
    const struct qr_proc_options options = {
        .argv = args, .env = env, .dir = dir, .input = input, .output_bytes_max = 1 << 24, .timeout_ms = 30000};
    return qr_proc_run(&options, out, NULL, ret_result, &err);
}

static void make_repository(struct qr_test *t)
{
    struct qr_proc_result result;
    const qr_rc rc = run_git(t->dir, (const char *const[]){"git", "init", "-q", ".", NULL}, (qr_str){0}, NULL, &result);
    if (rc == QR_NOT_FOUND) {
        qr_test_skip("git is not installed");
    }
    QR_CHECK_INT(QR_OK, rc);
    QR_CHECK_INT(0, result.exit_code);
}

/* What git ignores of the NUL-separated paths, as it prints it: NUL-separated as well. */
static void ask_git(struct qr_test *t, const char *rules, qr_str paths, struct qr_buf *out)
{
    struct qr_proc_result result;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, ".gitignore"), qr_str_of(rules), 0644, &err));
    QR_CHECK_RC(QR_OK,
                run_git(t->dir, (const char *const[]){"git", "check-ignore", "-z", "--stdin", "--no-index", NULL},
                        paths, out, &result));
    QR_CHECK(result.exit_code == 0 || result.exit_code == 1);
}

QR_TEST(git_agrees_on_every_case)
{
    make_repository(t);
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("rules \"%s\", path \"%s\"", cases[i].rules, cases[i].path);
        QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
        ask_git(t, cases[i].rules, (qr_str){cases[i].path, strlen(cases[i].path) + 1}, &out);
        QR_CHECK_INT(cases[i].is_ignored, out.len > 0);
    }
}

static void add_random(struct qr_buf *text, struct qr_rand *rand, const char *const *parts, size_t count,
                       size_t len_max)
{
    for (uint64_t n = 1 + qr_rand_below(rand, len_max); n; n--) {
        qr_buf_add_text(text, parts[qr_rand_below(rand, count)]);
    }
}

/* "a**" followed by a slash: what git makes of it depends on where its memory lies. */
static bool git_is_undecided(const char *rules)
{
    for (const char *stars = rules; (stars = strstr(stars, "**")); stars++) {
        if (stars > rules && !strchr("/\n!*", stars[-1])) {
            return true;
        }
    }
    return false;
}

/* Of a path whose folder is ignored git says the same as the walk, which never comes there. */
static void compare_with_git(struct qr_test *t, struct qr_rand *rand)
{
    static const char *const of_rules[] = {"a",  "b",  "c",   "*",   "**",  "/",  "/",   "?",     "[ab]", "[!a]",
                                           "\n", "\n", "\n!", "**/", "/**", "\\", "\\*", "[a-b]", "a/b",  "*a*"};
    static const char *const of_paths[] = {"a", "b", "c", "a/", "b/", "aa/", "ab", "bc", "*"};
    enum { PATHS = 40 };
    QR_CLEANUP(qr_buf_done) struct qr_buf rules = {0}, paths = {0}, out = {0}, ours = {0};
    do {
        qr_buf_clear(&rules);
        add_random(&rules, rand, of_rules, QR_COUNT(of_rules), 12);
    } while (git_is_undecided(rules.data));
    for (int i = 0; i < PATHS; i++) {
        add_random(&paths, rand, of_paths, QR_COUNT(of_paths), 5);
        qr_buf_add_char(&paths, "abc"[qr_rand_below(rand, 3)]); /* what is not there is a file, to git too */
        qr_buf_add_char(&paths, '\0');
    }
    ask_git(t, rules.data, qr_buf_str(&paths), &out);
    for (const char *path = paths.data; path < paths.data + paths.len; path += strlen(path) + 1) {
        if (is_ignored(rules.data, path)) {
            qr_buf_add(&ours, (qr_str){path, strlen(path) + 1});
        }
    }
    qr_str git_rest = qr_buf_str(&out), our_rest = qr_buf_str(&ours);
    while (git_rest.len || our_rest.len) {
        const qr_str git = qr_str_split(&git_rest, '\0'), our = qr_str_split(&our_rest, '\0');
        if (!qr_str_equal(git, our)) {
            QR_FAIL("rules \"%s\": git ignores \"%.*s\", we \"%.*s\"", rules.data, QR_STR_ARG(git), QR_STR_ARG(our));
        }
    }
}

QR_TEST_WITH_TIMEOUT(git_agrees_on_random_rules, 120)
{
    make_repository(t);
    for (uint64_t seed = 0; seed < 300; seed++) {
        qr_test_set_context("seed %llu", (unsigned long long)seed);
        struct qr_rand_seeded rand;
        qr_rand_seeded_init(&rand, seed);
        compare_with_git(t, &rand.rand);
    }
}

/* ---- limits ---- */

QR_TEST(stars_do_not_multiply)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf rules = {0}, path = {0};
    for (int i = 0; i < 200; i++) {
        qr_buf_add_text(&rules, "**/*a*a*a*b/");
        qr_buf_add_text(&path, "aaaaaaaaaaaaaaa/");
    }
    qr_buf_add_text(&rules, "x");
    qr_buf_add_text(&path, "aaaaa");
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    QR_CHECK(!is_ignored(rules.data, path.data));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    QR_CHECK(end.tv_sec - begin.tv_sec < 5);
}

QR_TEST(too_many_rules_are_refused)
{
    struct qr_arena arena;
    struct qr_ignore ignore;
    qr_arena_init(&arena, 0);
    qr_ignore_init(&ignore, &arena);
    QR_CLEANUP(qr_buf_done) struct qr_buf rules = {0};
    for (int i = 0; i <= QR_IGNORE_RULES_MAX; i++) {
        qr_buf_add_text(&rules, "x\n");
    }
    QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED,
                  qr_ignore_add_file(&ignore, qr_buf_str(&rules), (qr_str){0}, QR_IGNORE_GIT, &err));
    qr_arena_done(&arena);
}
