/* quire base create|ls|show|set|rm|restore. */
#include "cli/assign.h"
#include "cli/items.h"
#include "cli/paint.h"

enum { SWITCH_YES = QR_BIT(0), SWITCH_DRY_RUN = QR_BIT(1) }; /* the order of the command's options */

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
        printf(" (%s), since %s; ", cli_text(circuit, "code"), cli_short_time(circuit, "since").text);
        printf("tried again at %s", cli_short_time(circuit, "next_try_at").text);
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
        printf(" (%s)", cli_text(error, "code"));
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
        printf(" (%s); `quire base restore` makes it work again", cli_text(error, "code"));
    }
    print_models(base);
    print_circuits(base);
    if (qr_json_write(json_object_get(base, "settings"), &settings, NULL) == QR_OK) {
        printf("\nsettings  %s, version %lld", settings.data, cli_number(base, "version"));
    }
    printf("\nmade      %s\n", cli_short_time(base, "created_at").text);
}

/* "412 of 9,300 chunks, 190 k tokens" */
static void print_preview(const json_t *answer)
{
    const json_t *estimate = json_object_get(answer, "estimate");
    const long long tokens = cli_number(estimate, "tokens"), to_embed = cli_number(estimate, "to_embed");
    printf("would embed %s%lld of %lld chunks", json_is_true(json_object_get(estimate, "is_sampled")) ? "about " : "",
           to_embed, cli_number(estimate, "chunks"));
    printf(tokens >= 10000 ? ", %lld k tokens" : ", %lld tokens", tokens >= 10000 ? (tokens + 500) / 1000 : tokens);
    if (cli_number(estimate, "cached")) {
        printf("; %lld more are known already", cli_number(estimate, "cached"));
    }
    fputc('\n', stdout);
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

static qr_rc check_words(const struct cli *cli, const struct action *action, qr_err *err)
{
    const size_t words_min = 1 + (action->takes_name ? 1 : 0);
    if (cli->arg_count < words_min || (action->takes_name && !cli->args[1][0])) {
        return qr_fail(err, QR_CODE_USAGE, "say which one: quire base %s NAME", action->name);
    }
    if (!action->takes_settings && cli->arg_count > words_min) {
        return qr_fail(err, QR_CODE_USAGE, "%s is one argument too many: quire base %s", cli->args[words_min],
                       action->name);
    }
    if ((cli->switches & SWITCH_YES) && strcmp(action->name, "rm") != 0) {
        return qr_fail(err, QR_CODE_USAGE, "--yes is for quire base rm");
    }
    if ((cli->switches & SWITCH_DRY_RUN) && strcmp(action->name, "set") != 0) {
        return qr_fail(err, QR_CODE_USAGE, "--dry-run is for quire base set");
    }
    return QR_OK;
}

/* KEY=VALUE… are settings; of `set`, name=NEW is the name. */
static qr_rc make_body(const struct cli *cli, const struct action *action, struct qr_buf *body, qr_err *err)
{
    QR_JSON *settings = NULL;
    QR_JSON *request = json_object();
    const bool creates = action->path_end == NULL;
    QR_TRY(cli_read_assignments(cli->args + 2, cli->arg_count - 2, &settings, err));
    json_t *name = json_object_get(settings, "name");
    if (creates) {
        json_object_set_new(request, "name", json_string(cli->args[1]));
    } else if (name) {
        json_object_set(request, "name", name);
        json_object_del(settings, "name");
    }
    if (cli->switches & SWITCH_DRY_RUN) {
        json_object_set_new(request, "dry_run", json_true());
    }
    return json_object_set(request, "settings", settings) == 0
               ? qr_json_write(request, body, err)
               : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the request");
}

static qr_rc prepare(struct cli *cli, const struct action *action, struct qr_buf *path, struct qr_buf *body,
                     qr_err *err)
{
    QR_TRY(check_words(cli, action, err));
    qr_buf_add_text(path, "/api/v1/bases");
    if (action->takes_name && action->path_end) {
        qr_buf_add_char(path, '/');
        cli_add_encoded(path, cli->args[1]);
    }
    qr_buf_add_text(path, action->path_end ? action->path_end : "");
    qr_buf_add_text(path, cli->switches & SWITCH_YES ? "?confirm=true" : "");
    QR_TRY(qr_buf_check(path, err));
    if (action->takes_settings) {
        QR_TRY(make_body(cli, action, body, err));
    }
    return cli_load_config(cli, err);
}

int cmd_base(struct cli *cli)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_JSON *answer = NULL;
    qr_err err = {0};
    const struct action *action = find_action(cli, &err);
    if (!action || prepare(cli, action, &path, &body, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    int exit_code = cli_open(cli);
    if (exit_code) {
        return exit_code;
    }
    exit_code = cli_call(cli, action->method, path.data, body.data, &answer);
    if (exit_code == 0 && cli->json) {
        exit_code = cli_print_json(cli, json_incref(answer));
    } else if (exit_code == 0) {
        (cli->switches & SWITCH_DRY_RUN ? print_preview : action->print)(answer);
        cli_print_pending(cli);
    }
    cli_close(cli);
    return exit_code;
}
