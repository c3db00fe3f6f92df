/* quire base create|ls|show|set|rm|restore. */
#include "cli/assign.h"
#include "cli/items.h"
#include "cli/paint.h"

enum { OPTION_BASE, OPTION_YES, OPTION_DRY_RUN, OPTION_NO_WAIT }; /* the order of the command's options */

static bool has_switch(const struct cli *cli, int option)
{
    return (cli->switches & QR_BIT(option)) != 0;
}

/* ---- what is printed ---- */

static void print_list(const json_t *answer)
{
    const json_t *base;
    size_t i;
    json_array_foreach(json_object_get(answer, "data"), i, base)
    {
        if (i == 0) {
            printf("%-36s  %-8s  NAME\n", "BASE", "STATUS");
        }
        printf("%-36s  ", cli_text(base, "id"));
        cli_print_status(cli_text(base, "status"), 8);
        fputs("  ", stdout);
        cli_print_safe(cli_text(base, "name"));
        fputc('\n', stdout);
    }
    if (i == 0) {
        puts("no bases");
    }
    if (cli_text(answer, "next_cursor")[0]) {
        puts("there are more");
    }
}

/* Servers that refuse to be asked: work waits for them. */
static void print_circuits(const json_t *base)
{
    const json_t *circuit;
    size_t i;
    json_array_foreach(json_object_get(base, "circuits"), i, circuit)
    {
        printf("\nwaits     for %s: ", cli_text(circuit, "for"));
        cli_print_safe(cli_text(circuit, "message"));
        cli_print_code(cli_text(circuit, "code"));
        printf(", since %s; ", cli_short_time(circuit, "since").text);
        printf("tried again at %s", cli_short_time(circuit, "next_try_at").text);
    }
}

/* Servers that were asked and have not answered. */
static void print_awaited(const json_t *base)
{
    const json_t *awaited;
    size_t i;
    json_array_foreach(json_object_get(base, "awaited"), i, awaited)
    {
        fputs("\nwaits     for an answer of ", stdout);
        cli_print_safe(cli_text(awaited, "url"));
        printf(" (%s) since %s", cli_text(awaited, "for"), cli_short_time(awaited, "since").text);
    }
}

static void print_model(const char *title, const json_t *embedding)
{
    const char *model = cli_text(embedding, "model");
    printf("\n%-10s%s", title, cli_text(embedding, "provider"));
    if (model[0]) {
        fputc(' ', stdout);
        cli_print_safe(model);
    }
    if (json_object_get(embedding, "dimensions")) {
        printf(", %lld dimensions", cli_number(embedding, "dimensions"));
    }
}

/* The model that search uses; and while another one is built, how far that is. */
static void print_models(const json_t *base)
{
    const json_t *models = json_object_get(base, "models"), *build = json_object_get(base, "model_build");
    const json_t *previous = json_object_get(models, "previous"), *error = json_object_get(build, "error");
    print_model("model", json_object_get(models, "live"));
    if (cli_number(models, "failed_chunks")) {
        printf("; %lld chunks could not be embedded", cli_number(models, "failed_chunks"));
    }
    if (json_is_object(previous)) {
        print_model("before", previous);
    }
    if (json_is_object(build)) {
        print_model("building", json_object_get(build, "to"));
        printf(": %s, %lld of %lld chunks", cli_text(build, "status"), cli_number(build, "done"),
               cli_number(build, "total"));
    }
    if (json_is_object(error)) {
        fputs("; ", stdout);
        cli_print_safe(cli_text(error, "message"));
        cli_print_code(cli_text(error, "code"));
    }
}

static void print_base(const json_t *base)
{
    const json_t *error = json_object_get(base, "error");
    QR_CLEANUP(qr_buf_done) struct qr_buf settings = {0};
    printf("base      %s\nname      ", cli_text(base, "id"));
    cli_print_safe(cli_text(base, "name"));
    fputs("\nstatus    ", stdout);
    cli_print_status(cli_text(base, "status"), 0);
    if (json_is_object(error)) {
        fputs(": ", stdout);
        cli_print_safe(cli_text(error, "message"));
        cli_print_code(cli_text(error, "code"));
        fputs("; `quire base restore` makes it work again", stdout);
    }
    print_models(base);
    print_circuits(base);
    print_awaited(base);
    if (qr_json_write(json_object_get(base, "settings"), &settings, NULL) == QR_OK) {
        printf("\nsettings  %s, version %lld", settings.data, cli_number(base, "version"));
    }
    printf("\nmade      %s\n", cli_short_time(base, "created_at").text);
}

static void print_preview(const json_t *answer)
{
    fputs("would embed ", stdout);
    cli_print_cost(json_object_get(answer, "estimate"));
}

static void print_deleted(const json_t *answer)
{
    printf("deleted %s\n", cli_text(answer, "id"));
}

static void print_restored(const json_t *answer)
{
    printf("restoring %s\n", cli_text(answer, "id"));
}

/* ---- what can be done ---- */

static const struct action {
    const char *name;
    const char *method;
    const char *path_end;
    bool takes_name, takes_settings;
    void (*print)(const json_t *answer);
} actions[] = {
    {"create", "POST", NULL, true, true, print_base}, {"ls", "GET", "?limit=200", false, false, print_list},
    {"show", "GET", "", true, false, print_base},     {"set", "PATCH", "", true, true, print_base},
    {"rm", "DELETE", "", true, false, print_deleted}, {"restore", "POST", "/restore", true, false, print_restored},
};

static const struct action *find_action(const struct cli *cli, qr_err *err)
{
    struct qr_nearest nearest = qr_nearest_to(qr_str_of(cli->arg_count ? cli->args[0] : ""));
    for (size_t i = 0; cli->arg_count && i < QR_COUNT(actions); i++) {
        if (strcmp(cli->args[0], actions[i].name) == 0) {
            return &actions[i];
        }
        qr_nearest_offer(&nearest, qr_str_of(actions[i].name));
    }
    if (cli->arg_count && nearest.name.ptr) {
        qr_fail(err, QR_CODE_USAGE, "quire base has no %s; did you mean %s?", cli->args[0], nearest.name.ptr);
    } else {
        qr_fail(err, QR_CODE_USAGE, "say what to do: quire base create, ls, show, set, rm or restore");
    }
    return NULL;
}

/* The base that is named, behind the action or by -b; NULL = none. */
static const char *base_name(const struct cli *cli)
{
    const char *behind = cli->arg_count > 1 ? cli->args[1] : NULL;
    return cli->values[OPTION_BASE] ? cli->values[OPTION_BASE] : behind;
}

/* How many words there are before the settings. */
static size_t words_before(const struct cli *cli, const struct action *action)
{
    return action->takes_name && !cli->values[OPTION_BASE] ? 2 : 1;
}

static qr_rc check_switches(const struct cli *cli, const struct action *action, qr_err *err)
{
    static const struct {
        int option;
        const char *name, *action;
    } only[] = {
        {OPTION_YES, "--yes", "rm"}, {OPTION_DRY_RUN, "--dry-run", "set"}, {OPTION_NO_WAIT, "--no-wait", "set"}};
    for (size_t i = 0; i < QR_COUNT(only); i++) {
        if (has_switch(cli, only[i].option) && strcmp(action->name, only[i].action) != 0) {
            return qr_fail(err, QR_CODE_USAGE, "%s is for quire base %s", only[i].name, only[i].action);
        }
    }
    return QR_OK;
}

static qr_rc check_words(const struct cli *cli, const struct action *action, qr_err *err)
{
    const size_t words = words_before(cli, action);
    if (action->takes_name && (!base_name(cli) || !base_name(cli)[0])) {
        return qr_fail(err, QR_CODE_USAGE, "say which one: quire base %s NAME", action->name);
    }
    if (!action->takes_name && cli->values[OPTION_BASE]) {
        return qr_fail(err, QR_CODE_USAGE, "-b is not for quire base %s", action->name);
    }
    if (!action->takes_settings && cli->arg_count > words) {
        return qr_fail(err, QR_CODE_USAGE, "%s is one argument too many: quire base %s", cli->args[words],
                       action->name);
    }
    return check_switches(cli, action, err);
}

struct call {
    struct qr_buf path, body;
    json_t *request; /* what the body says */
    bool sets_model, is_dry_run, waits;
    void (*print)(const json_t *answer);
};

static void call_done(struct call *call)
{
    qr_buf_done(&call->path);
    qr_buf_done(&call->body);
    json_decref(call->request);
}

/* KEY=VALUE… are settings; of `set`, name=NEW is the name. */
static qr_rc make_body(const struct cli *cli, const struct action *action, struct call *call, qr_err *err)
{
    QR_JSON *settings = NULL;
    const size_t words = words_before(cli, action);
    const bool creates = action->path_end == NULL;
    call->request = json_object();
    QR_TRY(cli_read_assignments(cli->args + words, cli->arg_count - words, &settings, err));
    json_t *name = json_object_get(settings, "name");
    if (creates) {
        json_object_set_new(call->request, "name", json_string(base_name(cli)));
    } else if (name) {
        json_object_set(call->request, "name", name);
        json_object_del(settings, "name");
    }
    if (has_switch(cli, OPTION_DRY_RUN)) {
        json_object_set_new(call->request, "dry_run", json_true());
    }
    call->sets_model = !creates && json_object_get(settings, "embedding");
    return json_object_set(call->request, "settings", settings) == 0
               ? qr_json_write(call->request, &call->body, err)
               : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
}

static qr_rc prepare(struct cli *cli, const struct action *action, struct call *call, qr_err *err)
{
    struct qr_buf *path = &call->path;
    QR_TRY(check_words(cli, action, err));
    qr_buf_add_text(path, "/api/v1/bases");
    if (action->takes_name && action->path_end) {
        qr_buf_add_char(path, '/');
        qr_url_add_encoded(path, base_name(cli));
    }
    qr_buf_add_text(path, action->path_end ? action->path_end : "");
    qr_buf_add_text(path, has_switch(cli, OPTION_YES) ? "?confirm=true" : "");
    QR_TRY(qr_buf_check(path, err));
    if (action->takes_settings) {
        QR_TRY(make_body(cli, action, call, err));
    }
    return cli_load_config(cli, err);
}

/* ---- another model ---- */

/* What it costs, before it begins: nobody is asked, since Ctrl-C and the old settings call it off. An older owner of the folder, or
 * an index that cannot be read now, say nothing: the change itself tells what is wrong. */
static void tell_cost(struct cli *cli, struct call *call)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *answer = NULL;
    int status = 0;
    QR_JSON *request = json_copy(call->request);
    if (json_object_set_new(request, "dry_run", json_true()) != 0 || qr_json_write(request, &body, NULL) != QR_OK ||
        cli_ask(cli, "PATCH", call->path.data, body.data, &status, &answer, NULL) != QR_OK || status != 200) {
        return;
    }
    const json_t *estimate = json_object_get(answer, "estimate");
    if (cli_number(estimate, "to_embed") || cli_number(estimate, "cached")) {
        fputs("embedding ", stdout);
        cli_print_cost(estimate);
        fflush(stdout);
    }
}

static int wait_for_model(struct cli *cli, json_t **base)
{
    struct cli_work work;
    QR_JSON *built = NULL;
    int exit_code = cli_start_work(&work, cli);
    enum cli_wait end = CLI_WAIT_FAILED;
    if (exit_code == 0) {
        end = cli_wait_for_build(&work, cli_text(*base, "id"), &built, &exit_code);
    }
    cli_stop_work(&work);
    if (end == CLI_WAIT_DONE) {
        json_decref(*base);
        *base = json_incref(built);
    }
    return exit_code;
}

/* ---- the command ---- */

static int finish(struct cli *cli, const struct call *call, json_t **answer)
{
    if (cli->json) {
        return cli_print_json(cli, json_incref(*answer));
    }
    if (call->is_dry_run) {
        print_preview(*answer);
        return 0;
    }
    const bool is_building = json_is_object(json_object_get(*answer, "model_build"));
    if (call->sets_model && is_building && call->waits) {
        const int exit_code = wait_for_model(cli, answer);
        if (exit_code) {
            return exit_code;
        }
    }
    call->print(*answer);
    cli_print_pending(cli);
    return 0;
}

static int send_call(struct cli *cli, const char *method, struct call *call)
{
    QR_JSON *answer = NULL;
    int exit_code = cli_open(cli);
    if (exit_code) {
        return exit_code;
    }
    if (call->sets_model && !cli->json && !call->is_dry_run) {
        tell_cost(cli, call);
    }
    exit_code = cli_call(cli, method, call->path.data, call->body.data, &answer);
    exit_code = exit_code ? exit_code : finish(cli, call, &answer);
    cli_close(cli);
    return exit_code;
}

int cmd_base(struct cli *cli)
{
    QR_CLEANUP(call_done) struct call call = {0};
    qr_err err = {0};
    const struct action *action = find_action(cli, &err);
    if (!action || prepare(cli, action, &call, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    call.print = action->print;
    call.is_dry_run = has_switch(cli, OPTION_DRY_RUN);
    call.waits = !has_switch(cli, OPTION_NO_WAIT);
    return send_call(cli, action->method, &call);
}

int cli_use_model(struct cli *cli, const char *model, bool is_dry_run, bool waits)
{
    QR_CLEANUP(call_done)
    struct call call = {.sets_model = true, .is_dry_run = is_dry_run, .waits = waits, .print = print_base};
    qr_err err = {0};
    cli_add_base_path(cli, &call.path, "");
    call.request = json_pack("{s:s, s:b}", "model", model, "dry_run", (int)is_dry_run);
    if (!call.request) {
        qr_fail(&err, QR_CODE_USAGE, "the name of the model is not UTF-8");
    }
    if (!call.request || qr_buf_check(&call.path, &err) != QR_OK ||
        qr_json_write(call.request, &call.body, &err) != QR_OK || cli_load_config(cli, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    return send_call(cli, "PATCH", &call);
}
