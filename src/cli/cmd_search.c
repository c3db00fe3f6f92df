/* quire search QUERY: the passages that fit best, with where they are. */
#include "cli/items.h"
#include "cli/paint.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* the order of the command's options */
enum { OPTION_BASE, OPTION_TOP, OPTION_MODE, OPTION_UNDER, OPTION_CONTEXT, OPTION_OPEN, OPTION_RERANK, OPTION_EXPLAIN };

/* ---- passages ---- */

/* Where the passage is shown from: a little before the first highlight, so that it is seen. */
static size_t shown_from(qr_str text, const json_t *highlights, size_t shown_max)
{
    enum { BEFORE = 60 };
    const size_t first = (size_t)json_integer_value(json_array_get(json_array_get(highlights, 0), 0));
    if (json_array_size(highlights) == 0 || text.len <= shown_max || first <= shown_max / 2) {
        return 0;
    }
    const size_t from = QR_MIN(first - QR_MIN(first, (size_t)BEFORE), text.len - shown_max);
    const size_t whole = qr_utf8_prefix(text, from).len;
    const char *space = memchr(text.ptr + whole, ' ', QR_MIN(text.len - whole, (size_t)BEFORE));
    return space ? (size_t)(space - text.ptr) + 1 : whole;
}

static qr_str slice(qr_str text, size_t from, size_t to)
{
    return (qr_str){text.ptr + QR_MIN(from, text.len), QR_MIN(to, text.len) - QR_MIN(from, QR_MIN(to, text.len))};
}

/* A passage as it is printed: white space of any kind is one space, or on a terminal the end of a line. */
struct flow {
    int columns; /* 0 = all on one line */
    int column;
    bool has_gap; /* between what was printed and what comes */
};

enum { INDENT = 3 };

static bool is_space(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

static size_t word_len(qr_str text)
{
    size_t len = 0;
    while (len < text.len && !is_space(text.ptr[len])) {
        len++;
    }
    return len;
}

/* About: characters of East Asia are twice as wide. */
static int width_of(qr_str word)
{
    int width = 0;
    for (size_t i = 0; i < word.len; i++) {
        const unsigned char c = (unsigned char)word.ptr[i];
        width += (c & 0xc0) == 0x80 ? 0 : c >= 0xe3 && c <= 0xed ? 2 : 1;
    }
    return width;
}

/* What stands before the next word. */
static void print_gap(struct flow *flow, qr_str next)
{
    while (next.len && is_space(next.ptr[0])) {
        flow->has_gap = true;
        next = slice(next, 1, next.len);
    }
    if (next.len == 0 || !flow->has_gap) {
        return;
    }
    const int width = width_of((qr_str){next.ptr, word_len(next)});
    if (flow->columns && flow->column + 1 + width > flow->columns && flow->column > INDENT) {
        printf("\n%*s", INDENT, "");
        flow->column = INDENT;
    } else if (flow->column > INDENT) {
        fputc(' ', stdout);
        flow->column++;
    }
    flow->has_gap = false;
}

static void print_part(struct flow *flow, qr_str part)
{
    while (part.len) {
        print_gap(flow, part);
        while (part.len && is_space(part.ptr[0])) {
            part = slice(part, 1, part.len);
        }
        QR_CLEANUP(qr_buf_done) struct qr_buf word = {0};
        qr_buf_add(&word, (qr_str){part.ptr, word_len(part)});
        cli_print_safe(qr_buf_str(&word).ptr);
        flow->column += width_of(qr_buf_str(&word));
        part = slice(part, word.len, part.len);
    }
}

/* The end of the last whole word, unless that is far away. */
static size_t shown_to(qr_str text, size_t to)
{
    enum { BACK_MAX = 40 };
    for (size_t back = 0; to < text.len && back < QR_MIN(to, (size_t)BACK_MAX); back++) {
        if (is_space(text.ptr[to - back])) {
            return to - back;
        }
    }
    return to;
}

static void print_passage(const struct cli *cli, const json_t *hit)
{
    enum { SHOWN_BYTES_MAX = 320 };
    const qr_str text = qr_str_of(cli_text(hit, "text"));
    const json_t *highlights = json_object_get(hit, "highlights"), *range;
    size_t at = shown_from(text, highlights, SHOWN_BYTES_MAX), i;
    const size_t end = shown_to(text, at + qr_utf8_prefix(slice(text, at, text.len), SHOWN_BYTES_MAX).len);
    struct flow flow = {.columns = cli_has_terminal(stdout) ? cli_columns(stdout) : 0, .column = INDENT};
    printf("%*s", INDENT, "");
    print_part(&flow, at ? QR_STR("… ") : QR_STR(""));
    json_array_foreach(highlights, i, range)
    {
        const size_t from = (size_t)json_integer_value(json_array_get(range, 0));
        const size_t to = (size_t)json_integer_value(json_array_get(range, 1));
        if (from < at || to > end) {
            continue;
        }
        print_part(&flow, slice(text, at, from));
        print_gap(&flow, slice(text, from, to));
        cli_paint(cli, CLI_STRONG);
        print_part(&flow, slice(text, from, to));
        cli_paint(cli, CLI_PLAIN);
        at = to;
    }
    print_part(&flow, slice(text, at, end));
    print_part(&flow, end < text.len ? QR_STR(" …") : QR_STR(""));
    fputc('\n', stdout);
}

/* ---- explanations ---- */

static void print_leg(const json_t *leg, const char *name)
{
    if (cli_number(leg, "rank")) {
        printf("  %s: rank %lld, score %.4g, adds %.4g", name, cli_number(leg, "rank"),
               json_number_value(json_object_get(leg, "score")), json_number_value(json_object_get(leg, "adds")));
    }
}

static void print_explanation(const struct cli *cli, const json_t *hit)
{
    const json_t *explain = json_object_get(hit, "explain");
    if (explain) {
        cli_paint(cli, CLI_FAINT);
        printf("   score %.4g (%s)", json_number_value(json_object_get(hit, "score")), cli_text(hit, "score_kind"));
        print_leg(json_object_get(explain, "text"), "text");
        print_leg(json_object_get(explain, "vector"), "vector");
        if (json_object_get(explain, "fused")) {
            printf("  before reranking: rank %lld, score %.4g", cli_number(json_object_get(explain, "fused"), "rank"),
                   json_number_value(json_object_get(json_object_get(explain, "fused"), "score")));
        }
        cli_paint(cli, CLI_PLAIN);
        fputc('\n', stdout);
    }
}

static void print_words(const struct cli *cli, const json_t *answer)
{
    const json_t *words = json_object_get(json_object_get(answer, "explain"), "tokens"), *word;
    size_t i;
    if (words) {
        cli_paint(cli, CLI_FAINT);
        fputs("searched for:", stdout);
        json_array_foreach(words, i, word)
        {
            fputc(' ', stdout);
            cli_print_safe(json_string_value(word));
        }
        printf("  (%s)", cli_text(answer, "mode"));
        cli_paint(cli, CLI_PLAIN);
        fputc('\n', stdout);
    }
}

/* ---- the answer ---- */

/* "  in BASE", of several. */
static void print_base(const struct cli *cli, const json_t *hit, const json_t *bases)
{
    const json_t *base;
    size_t i;
    json_array_foreach(bases, i, base)
    {
        if (cli_is(base, "id", cli_text(hit, "base_id"))) {
            cli_paint(cli, CLI_FAINT);
            fputs("  in ", stdout);
            cli_print_safe(cli_text(base, "name"));
            cli_paint(cli, CLI_PLAIN);
        }
    }
}

static void print_hit(const struct cli *cli, const json_t *hit, const json_t *bases)
{
    const char *heading = cli_text(hit, "heading"), *uri = cli_text(hit, "uri");
    printf("%lld. ", cli_number(hit, "rank"));
    cli_paint(cli, CLI_STRONG);
    cli_print_safe(cli_text(hit, "name"));
    cli_paint(cli, CLI_PLAIN);
    if (heading[0]) {
        fputs("  ", stdout);
        cli_print_safe(heading);
    }
    print_base(cli, hit, bases);
    fputs("\n   ", stdout);
    cli_paint(cli, CLI_PLACE);
    cli_print_safe(uri[0] ? uri : cli_text(hit, "item_id"));
    cli_paint(cli, CLI_PLAIN);
    fputc('\n', stdout);
    print_explanation(cli, hit);
    print_passage(cli, hit);
}

/* Why that may be, and what to try. */
static void print_nothing(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *items = NULL;
    int status = 0;
    puts("nothing was found");
    cli_add_base_path(cli, &path, "/items?parent=root&limit=1");
    if (path.failed != QR_CODE_NONE || cli_ask(cli, "GET", path.data, NULL, &status, &items, NULL) != QR_OK) {
        return;
    }
    if (cli->repeated_count <= 1 && json_array_size(json_object_get(items, "data")) == 0 &&
        cli_text(items, "next_cursor")[0] == '\0') {
        printf("  the base %s is empty: `quire add FOLDER` fills it\n", cli_base(cli));
    } else if (cli->values[OPTION_UNDER]) {
        puts("  try it without --under, or with fewer or other words");
    } else {
        puts("  try fewer or other words; `quire ls` lists what is there, --explain says what was searched for");
    }
}

static int print_hits(struct cli *cli, const json_t *answer)
{
    const json_t *hits = json_object_get(answer, "hits"), *hit, *missing;
    QR_JSON *bases = NULL;
    size_t i;
    int status = 0;
    if (cli->repeated_count > 1) { /* without the names it is an answer too */
        (void)cli_ask(cli, "GET", "/api/v1/bases?limit=200", NULL, &status, &bases, NULL);
    }
    print_words(cli, answer);
    json_array_foreach(hits, i, hit)
    {
        fputs(i && cli_has_terminal(stdout) ? "\n" : "", stdout);
        print_hit(cli, hit, json_object_get(bases, "data"));
    }
    if (i == 0) {
        print_nothing(cli);
    }
    if (json_is_true(json_object_get(answer, "relaxed"))) {
        puts("(nothing fits all of it: these fit a part)");
    }
    json_array_foreach(json_object_get(answer, "degraded"), i, missing)
    {
        fputs(i ? ", " : "(not all of the search could be done: ", stdout);
        cli_print_safe(json_string_value(missing));
    }
    fputs(i ? ")\n" : "", stdout);
    cli_print_pending(cli);
    return 0;
}

/* ---- opening ---- */

/* As a shell runs `EDITOR +12 FILE`, or `BROWSER URI`: it may have arguments, and quotes. A Ctrl-C meanwhile is the program's.
 * `second` may be NULL. Returns what waitpid says, or -1. */
static int run_program(const char *program, const char *first, const char *second)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf script = {0};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    posix_spawnattr_t attributes;
    sigset_t interrupts;
    pid_t pid;
    int status = -1;
    qr_buf_printf(&script, "%s \"$@\"", program);
    if (script.failed != QR_CODE_NONE || posix_spawnattr_init(&attributes) != 0) {
        return -1;
    }
    char *const argv[] = {(char[]){"sh"},
                          (char[]){"-c"},
                          script.data,
                          (char[]){"sh"},
                          (char *)(uintptr_t)first,
                          (char *)(uintptr_t)second,
                          NULL};
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    posix_spawnattr_setsigdefault(&attributes, &interrupts);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    sigaction(SIGINT, &ignore, &before);
    if (posix_spawn(&pid, "/bin/sh", NULL, &attributes, argv, environ) == 0) {
        (void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
    }
    sigaction(SIGINT, &before, NULL);
    posix_spawnattr_destroy(&attributes);
    return status;
}

/* `kind` is "editor" or "browser", `variable` where it comes from. */
static int open_with(const struct cli *cli, const char *kind, const char *variable, const char *program,
                     const char *first, const char *second)
{
    enum { NOT_TO_BE_RUN = 126, NOT_THERE = 127 }; /* of a shell */
    const int status = run_program(program, first, second);
    const bool has_ended = status >= 0 && WIFEXITED(status);
    qr_err err;
    if (has_ended && WEXITSTATUS(status) == 0) {
        return 0;
    }
    if (status < 0 || (has_ended && WEXITSTATUS(status) >= NOT_TO_BE_RUN && WEXITSTATUS(status) <= NOT_THERE)) {
        qr_fail(&err, QR_CODE_USAGE, "the %s cannot be run: %s (of %s)", kind, program, variable);
    } else if (has_ended) {
        qr_fail(&err, QR_CODE_USAGE, "the %s %s ended with %d", kind, program, WEXITSTATUS(status));
    } else {
        qr_fail(&err, QR_CODE_USAGE, "the %s %s was ended by a signal: %s", kind, program,
                sigdescr_np(WTERMSIG(status)));
    }
    return cli_fail(cli, &err);
}

/* A page in the browser at its words, anything else in the editor at its line; else by what the desktop has for it. */
static int open_hit(struct cli *cli, const json_t *hit)
{
    const char *editor = getenv("VISUAL") ? getenv("VISUAL") : getenv("EDITOR");
    const char *uri = cli_text(hit, "uri"), *source = cli_text(hit, "source"), *browser = getenv("BROWSER");
    const bool is_page = source[0] != '/' || strstr(uri, ":~:text=");
    char line[32];
    qr_err err;
    if (!uri[0]) {
        qr_fail(&err, QR_CODE_USAGE, "this hit is a note: `quire show %s` shows it", cli_text(hit, "item_id"));
        return cli_fail(cli, &err);
    }
    snprintf(line, sizeof line, "+%lld", QR_MAX(cli_number(hit, "line_start"), 1LL));
    fflush(stdout);
    cli_close(cli);
    if (is_page && browser && browser[0]) {
        return open_with(cli, "browser", "BROWSER", browser, uri, NULL);
    }
    if (editor && editor[0] && !is_page) {
        return open_with(cli, "editor", "VISUAL or EDITOR", editor, line, source);
    }
    execlp("xdg-open", "xdg-open", uri, (char *)NULL);
    qr_fail(&err, QR_CODE_UNAVAILABLE,
            is_page ? "no program to open %s: set BROWSER to one" : "no program to open %s: set EDITOR to one", uri);
    return cli_fail(cli, &err);
}

static int finish(struct cli *cli, const json_t *answer)
{
    int64_t number = 0;
    qr_err err;
    if (cli->json || !cli->values[OPTION_OPEN]) {
        return cli->json ? cli_print_json(cli, json_deep_copy(answer)) : print_hits(cli, answer);
    }
    const json_t *hits = json_object_get(answer, "hits");
    const size_t count = json_array_size(hits);
    (void)qr_str_to_i64(qr_str_of(cli->values[OPTION_OPEN]), &number);
    if ((size_t)number > count) {
        qr_fail(&err, QR_CODE_NOT_FOUND, "there is no hit %lld: %zu %s found", (long long)number, count,
                count == 1 ? "was" : "were");
        return cli_fail(cli, &err);
    }
    return open_hit(cli, json_array_get(hits, (size_t)number - 1));
}

/* ---- the request ---- */

static qr_rc add_number(const struct cli *cli, json_t *request, int option, const char *name, int min, int max,
                        qr_err *err)
{
    int64_t number;
    if (!cli->values[option]) {
        return QR_OK;
    }
    if (!qr_str_to_i64(qr_str_of(cli->values[option]), &number) || number < min || number > max) {
        return qr_fail(err, QR_CODE_USAGE, "%s takes a whole number from %d to %d", cli->command->options[option].name,
                       min, max);
    }
    json_object_set_new(request, name, json_integer((json_int_t)number));
    return QR_OK;
}

/* One base stands in the path. */
static qr_rc add_bases(const struct cli *cli, json_t *request, qr_err *err)
{
    json_t *names = cli->repeated_count > 1 ? json_array() : NULL;
    for (size_t i = 0; names && i < cli->repeated_count; i++) {
        if (json_array_append_new(names, json_string(cli->repeated[i])) != 0) {
            json_decref(names);
            return qr_fail(err, QR_CODE_INVALID_VALUE, "the name of a base is not UTF-8");
        }
    }
    if (names) {
        json_object_set_new(request, "base_ids", names);
    }
    return QR_OK;
}

static qr_rc make_body(const struct cli *cli, const json_t *under, struct qr_buf *body, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf query = {0};
    for (size_t i = 0; i < cli->arg_count; i++) {
        qr_buf_printf(&query, "%s%s", i ? " " : "", cli->args[i]);
    }
    QR_TRY(qr_buf_check(&query, err));
    if (query.len == 0) {
        return qr_fail(err, QR_CODE_USAGE, "say what to search for: quire search QUERY");
    }
    QR_JSON *request = json_pack("{s:s}", "query", query.data);
    if (!request) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the query is not UTF-8");
    }
    QR_TRY(add_number(cli, request, OPTION_TOP, "top_k", 1, 100, err));
    QR_TRY(add_number(cli, request, OPTION_CONTEXT, "context", 0, 10, err));
    if (cli->values[OPTION_MODE]) {
        json_object_set_new(request, "mode", json_string(cli->values[OPTION_MODE]));
    }
    if (cli->switches & QR_BIT(OPTION_RERANK)) {
        json_object_set_new(request, "rerank", json_true());
    }
    if (cli->switches & QR_BIT(OPTION_EXPLAIN)) {
        json_object_set_new(request, "explain", json_true());
    }
    if (under) {
        json_object_set_new(request, "filter", json_pack("{s:s}", "under", cli_text(under, "id")));
    }
    QR_TRY(add_bases(cli, request, err));
    return qr_json_write(request, body, err);
}

static qr_rc check_open(const struct cli *cli, qr_err *err)
{
    int64_t number;
    if (!cli->values[OPTION_OPEN]) {
        return QR_OK;
    }
    if (cli->json) {
        return qr_fail(err, QR_CODE_USAGE,
                       "--open and --json do not go together: the one opens a hit, the other prints all");
    }
    return qr_str_to_i64(qr_str_of(cli->values[OPTION_OPEN]), &number) && number >= 1
               ? QR_OK
               : qr_fail(err, QR_CODE_USAGE, "--open takes the number of a hit, 1 or more, as in --open 1");
}

static int search(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_JSON *answer = NULL, *under = NULL;
    qr_err err = {0};
    if (check_open(cli, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    int exit_code = cli->values[OPTION_UNDER] ? cli_find_item(cli, cli->values[OPTION_UNDER], &under) : 0;
    if (exit_code) {
        return exit_code;
    }
    if (cli->repeated_count > 1) {
        qr_buf_add_text(&path, "/api/v1/search");
    } else {
        cli_add_base_path(cli, &path, "/search");
    }
    if (make_body(cli, under, &body, &err) != QR_OK || qr_buf_check(&path, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    exit_code = cli_call(cli, "POST", path.data, body.data, &answer);
    return exit_code ? exit_code : finish(cli, answer);
}

int cmd_search(struct cli *cli)
{
    return cli_with_data(cli, search);
}
