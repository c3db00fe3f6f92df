/* quire eval SET [KEY=VALUE]…: how well search finds what a test set says it should, in a data folder of its own that is
 * thrown away. With --compare the same for a second set of settings, beside the first. */
#include "base/map.h"
#include "base/mem.h"
#include "cli/assign.h"
#include "cli/eval_score.h"
#include "cli/items.h"
#include "cli/paint.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { OPTION_COMPARE, OPTION_MODE, OPTION_QUERIES }; /* the order of the command's options */
enum { BATCH = 200, MODES_MAX = 3, VARIANTS_MAX = 2, WORDS_MAX = 32 };

struct variant {
    const char *name; /* "A", "B" */
    json_t *settings;
    char base_id[37];
    const char *modes[MODES_MAX];
    size_t mode_count;
    struct eval_scores scores[MODES_MAX];
    struct qr_map documents; /* item id → its document's place + 1 */
};

struct eval {
    struct cli *cli;
    struct eval_set set;
    char folder[PATH_MAX];
    struct variant variants[VARIANTS_MAX];
    size_t variant_count;
};

/* ---- progress ---- */

static void tell(const struct eval *eval, const char *what, size_t done, size_t total)
{
    if (cli_has_terminal(stderr) && !eval->cli->json) {
        fprintf(stderr, "\r\033[K%s %zu of %zu", what, done, total);
    }
}

static void tell_no_more(const struct eval *eval)
{
    if (cli_has_terminal(stderr) && !eval->cli->json) {
        fputs("\r\033[K", stderr);
    }
}

/* ---- the end by Ctrl-C: the folder must go ---- */

static void ending_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

/* 0, or the exit code after it was reported. */
static int check_not_ended(const struct eval *eval, long pause_ms)
{
    sigset_t set;
    ending_signals(&set);
    if (sigtimedwait(&set, NULL, &(struct timespec){0, pause_ms * 1000000L}) <= 0) {
        return 0;
    }
    qr_err err;
    tell_no_more(eval);
    qr_fail(&err, QR_CODE_CANCELLED, "the evaluation was ended");
    return cli_fail(eval->cli, &err);
}

/* ---- settings ---- */

static qr_rc choose_modes(struct variant *variant, const char *wanted, qr_err *err)
{
    const char *provider = cli_text(json_object_get(variant->settings, "embedding"), "provider");
    const bool has_vectors = provider[0] && strcmp(provider, "none") != 0;
    static const char *const names[] = {"text", "vector", "hybrid"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        if ((!wanted || strcmp(wanted, names[i]) == 0) && (i == 0 || has_vectors)) {
            variant->modes[variant->mode_count++] = names[i];
        }
    }
    return variant->mode_count ? QR_OK
                               : qr_fail(err, QR_CODE_USAGE,
                                         "--mode is text, vector or hybrid; the last two need embedding.provider=…");
}

/* "a=1 b=2" */
static qr_rc read_words(const char *text, struct qr_arena *arena, json_t **ret_object, qr_err *err)
{
    const char *words[WORDS_MAX];
    size_t count = 0;
    char *copy = qr_arena_copy(arena, qr_str_of(text)), *state = NULL;
    if (!copy) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    for (char *word = strtok_r(copy, " ", &state); word && count < WORDS_MAX; word = strtok_r(NULL, " ", &state)) {
        words[count++] = word;
    }
    return cli_read_assignments(words, count, ret_object, err);
}

static qr_rc read_variants(struct eval *eval, qr_err *err)
{
    const struct cli *cli = eval->cli;
    struct variant *first = &eval->variants[0], *second = &eval->variants[1];
    first->name = "A";
    eval->variant_count = 1;
    QR_TRY(cli_read_assignments(cli->args + 1, cli->arg_count - 1, &first->settings, err));
    QR_TRY(choose_modes(first, cli->values[OPTION_MODE], err));
    if (cli->values[OPTION_COMPARE]) {
        second->name = "B";
        eval->variant_count = 2;
        QR_TRY(read_words(cli->values[OPTION_COMPARE], &eval->set.arena, &second->settings, err));
        QR_TRY(choose_modes(second, cli->values[OPTION_MODE], err));
    }
    return QR_OK;
}

/* ---- the folder ---- */

static qr_rc open_folder(struct eval *eval, qr_err *err)
{
    const char *parent = getenv("TMPDIR");
    struct quire_error error;
    snprintf(eval->folder, sizeof eval->folder, "%s/quire-eval-XXXXXX", parent && parent[0] ? parent : "/tmp");
    if (!mkdtemp(eval->folder)) {
        eval->folder[0] = '\0';
        return qr_fail_errno(err, errno, "cannot make a folder for the evaluation");
    }
    const struct quire_options options = {.data_dir = eval->folder, .program = "quire eval"};
    if (quire_open(&options, &eval->cli->quire, &error) != 0 || quire_start_work(eval->cli->quire, &error) != 0) {
        const qr_code code = qr_code_find(error.code);
        return qr_fail(err, code == QR_CODE_COUNT ? QR_CODE_INTERNAL : code, "%s", error.message);
    }
    return QR_OK;
}

static int remove_entry(const char *path, const struct stat *status QR_UNUSED, int type QR_UNUSED,
                        struct FTW *ftw QR_UNUSED)
{
    return remove(path);
}

static void close_folder(struct eval *eval)
{
    cli_close(eval->cli);
    if (eval->folder[0]) {
        nftw(eval->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
}

/* ---- documents ---- */

static json_t *note_json(const struct eval_document *document)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf content = {0};
    if (document->title.len) {
        qr_buf_printf(&content, "# %.*s\n\n", QR_STR_ARG(document->title));
    }
    qr_buf_add(&content, document->text);
    const qr_str name = document->title.len ? qr_utf8_prefix(document->title, 200) : QR_STR("note");
    const qr_str text = qr_buf_str(&content);
    return content.failed == QR_CODE_NONE ? json_pack("{s:s, s:s%, s:s%}", "type", "note", "name", name.ptr, name.len,
                                                      "content", text.ptr, text.len)
                                          : NULL;
}

static int send_batch(struct eval *eval, struct variant *variant, json_t *items, size_t from)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *request = json_pack("{s:O}", "items", items), *answer = NULL;
    char path[96];
    const json_t *item;
    size_t i;
    qr_err err = {0};
    if (!request || qr_json_write(request, &body, &err) != QR_OK) {
        return cli_fail(eval->cli, &err);
    }
    snprintf(path, sizeof path, "/api/v1/bases/%s/items", variant->base_id);
    const int exit_code = cli_call(eval->cli, "POST", path, body.data, &answer);
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        if (!qr_map_put(&variant->documents, qr_str_of(cli_text(item, "id")), (void *)(from + i + 1))) {
            qr_fail(&err, QR_CODE_OUT_OF_MEMORY, "out of memory for the test set");
            return cli_fail(eval->cli, &err);
        }
    }
    return exit_code;
}

static int add_documents(struct eval *eval, struct variant *variant)
{
    const struct eval_set *set = &eval->set;
    int exit_code = 0;
    for (size_t from = 0; exit_code == 0 && from < set->document_count; from += BATCH) {
        QR_JSON *items = json_array();
        for (size_t i = from; i < QR_MIN(from + BATCH, set->document_count); i++) {
            json_array_append_new(items, note_json(&set->documents[i]));
        }
        exit_code = send_batch(eval, variant, items, from);
        exit_code = exit_code ? exit_code : check_not_ended(eval, 0);
        tell(eval, "adding", from, set->document_count);
    }
    return exit_code;
}

/* Polls: jobs run in this very process. */
static int wait_until_done(struct eval *eval)
{
    struct cli_progress progress = {0};
    for (tell_no_more(eval);;) {
        QR_JSON *answer = NULL;
        const json_t *queue;
        size_t i;
        long long left = 0;
        int exit_code = cli_call(eval->cli, "GET", "/api/v1/queues", NULL, &answer);
        json_array_foreach(json_object_get(answer, "data"), i, queue)
        {
            const struct cli_todo todo = cli_todo_of(queue);
            left += todo.now + todo.later;
        }
        if (exit_code == 0 && left && !eval->cli->json) {
            cli_see_queues(&progress, json_object_get(answer, "data"), qr_clock_mono_ms(qr_clock_system()));
            cli_progress_tell(&progress, qr_clock_mono_ms(qr_clock_system()));
        }
        exit_code = exit_code || left == 0 ? exit_code : check_not_ended(eval, 50);
        if (exit_code || left == 0) {
            cli_progress_erase(&progress);
            return exit_code;
        }
    }
}

static int build(struct eval *eval, struct variant *variant)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *request = json_pack("{s:s, s:O}", "name", variant->name, "settings", variant->settings), *base = NULL;
    qr_err err = {0};
    if (!request || qr_json_write(request, &body, &err) != QR_OK) {
        return cli_fail(eval->cli, &err);
    }
    int exit_code = cli_call(eval->cli, "POST", "/api/v1/bases", body.data, &base);
    snprintf(variant->base_id, sizeof variant->base_id, "%s", cli_text(base, "id"));
    exit_code = exit_code ? exit_code : add_documents(eval, variant);
    return exit_code ? exit_code : wait_until_done(eval);
}

/* ---- queries ---- */

static size_t read_ranking(const struct variant *variant, const json_t *answer, size_t ranking[static EVAL_DEPTH])
{
    const json_t *hit;
    size_t i, count = 0;
    json_array_foreach(json_object_get(answer, "hits"), i, hit)
    {
        const size_t document = (size_t)qr_map_find(&variant->documents, qr_str_of(cli_text(hit, "item_id")));
        bool is_known = document == 0 || count == EVAL_DEPTH;
        for (size_t j = 0; j < count && !is_known; j++) {
            is_known = ranking[j] == document - 1;
        }
        if (!is_known) {
            ranking[count++] = document - 1;
        }
    }
    return count;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int ask(struct eval *eval, struct variant *variant, size_t mode, const struct eval_query *query)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *answer = NULL;
    QR_JSON *request =
        json_pack("{s:s, s:s, s:i}", "query", query->text, "mode", variant->modes[mode], "top_k", EVAL_DEPTH);
    size_t ranking[EVAL_DEPTH];
    char path[96];
    qr_err err = {0};
    if (!request || qr_json_write(request, &body, &err) != QR_OK) {
        return cli_fail(eval->cli, &err);
    }
    snprintf(path, sizeof path, "/api/v1/bases/%s/search", variant->base_id);
    const double began_ms = now_ms();
    const int exit_code = cli_call(eval->cli, "POST", path, body.data, &answer);
    if (exit_code == 0) {
        variant->scores[mode].took_ms += now_ms() - began_ms;
        eval_add(&variant->scores[mode], query, ranking, read_ranking(variant, answer, ranking));
    }
    return exit_code;
}

static int ask_all(struct eval *eval, struct variant *variant)
{
    int exit_code = 0;
    for (size_t mode = 0; exit_code == 0 && mode < variant->mode_count; mode++) {
        for (size_t i = 0; exit_code == 0 && i < eval->set.query_count; i++) {
            exit_code = ask(eval, variant, mode, &eval->set.queries[i]);
            if (i % 50 == 0 && exit_code == 0) {
                tell(eval, variant->modes[mode], i, eval->set.query_count);
                exit_code = check_not_ended(eval, 0);
            }
        }
        eval_mean(&variant->scores[mode]);
    }
    return exit_code;
}

/* ---- the answer ---- */

static json_t *scores_json(const char *mode, const struct eval_scores *scores)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "mode", mode, "ndcg_10", scores->ndcg_10, "recall_10",
                     scores->recall_10, "recall_100", scores->recall_100, "mrr", scores->mrr, "zero_hit_rate",
                     scores->zero_hits, "mean_ms", scores->took_ms, "queries", (json_int_t)scores->query_count);
}

static json_t *answer_json(const struct eval *eval)
{
    json_t *variants = json_array();
    for (size_t v = 0; v < eval->variant_count; v++) {
        const struct variant *variant = &eval->variants[v];
        json_t *modes = json_array();
        for (size_t m = 0; m < variant->mode_count; m++) {
            json_array_append_new(modes, scores_json(variant->modes[m], &variant->scores[m]));
        }
        json_array_append_new(variants, json_pack("{s:s, s:O, s:o}", "name", variant->name, "settings",
                                                  variant->settings, "modes", modes));
    }
    return json_pack("{s:I, s:I, s:o}", "documents", (json_int_t)eval->set.document_count, "queries",
                     (json_int_t)eval->set.query_count, "variants", variants);
}

/* "A  the defaults", "B  {"chunking":{"size_tokens":50}}" */
static void print_settings(const struct eval *eval)
{
    for (size_t v = 0; v < eval->variant_count && eval->variant_count > 1; v++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        const json_t *settings = eval->variants[v].settings;
        const bool is_known = json_object_size(settings) && qr_json_write(settings, &text, NULL) == QR_OK;
        printf("%s  %s\n", eval->variants[v].name, is_known ? text.data : "the defaults");
    }
}

static void print_table(const struct eval *eval)
{
    printf("%zu documents, %zu queries\n", eval->set.document_count, eval->set.query_count);
    print_settings(eval);
    fputc('\n', stdout);
    printf("   %-8s %8s %8s %8s %8s %9s %8s\n", "MODE", "nDCG@10", "R@10", "R@100", "MRR", "ZERO HITS", "MS");
    for (size_t v = 0; v < eval->variant_count; v++) {
        const struct variant *variant = &eval->variants[v];
        for (size_t m = 0; m < variant->mode_count; m++) {
            const struct eval_scores *scores = &variant->scores[m];
            printf("%-2s %-8s %8.4f %8.4f %8.4f %8.4f %8.2f%% %8.2f\n", eval->variant_count > 1 ? variant->name : "",
                   variant->modes[m], scores->ndcg_10, scores->recall_10, scores->recall_100, scores->mrr,
                   scores->zero_hits * 100, scores->took_ms);
        }
    }
}

/* ---- the command ---- */

static int run(struct eval *eval)
{
    qr_err err = {0};
    int64_t queries_max = 0;
    const char *queries = eval->cli->values[OPTION_QUERIES];
    if (queries && (!qr_str_to_i64(qr_str_of(queries), &queries_max) || queries_max < 1)) {
        qr_fail(&err, QR_CODE_USAGE, "--queries takes a number above 0");
        return cli_fail(eval->cli, &err);
    }
    if (eval_set_read(&eval->set, eval->cli->args[0], (size_t)queries_max, &err) != QR_OK ||
        read_variants(eval, &err) != QR_OK || open_folder(eval, &err) != QR_OK) {
        return cli_fail(eval->cli, &err);
    }
    int exit_code = 0;
    for (size_t i = 0; exit_code == 0 && i < eval->variant_count; i++) {
        exit_code = build(eval, &eval->variants[i]);
        exit_code = exit_code ? exit_code : ask_all(eval, &eval->variants[i]);
    }
    tell_no_more(eval);
    if (exit_code == 0 && eval->cli->json) {
        return cli_print_json(eval->cli, answer_json(eval));
    }
    if (exit_code == 0) {
        print_table(eval);
    }
    return exit_code;
}

int cmd_eval(struct cli *cli)
{
    qr_err err = {0};
    if (cli->arg_count == 0) {
        qr_fail(&err, QR_CODE_USAGE, "name a test set: quire eval FOLDER|FILE");
        return cli_fail(cli, &err);
    }
    if (cli_load_config(cli, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    struct eval eval = {.cli = cli};
    sigset_t set;
    ending_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before threads are started: they inherit it */
    for (size_t i = 0; i < VARIANTS_MAX; i++) {
        qr_map_init(&eval.variants[i].documents, 1);
    }
    const int exit_code = run(&eval);
    close_folder(&eval);
    for (size_t i = 0; i < VARIANTS_MAX; i++) {
        qr_map_done(&eval.variants[i].documents);
        json_decref(eval.variants[i].settings);
    }
    eval_set_done(&eval.set);
    return exit_code;
}
