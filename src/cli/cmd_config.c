/* quire config [KEY] [--failpoints]: what is in force, and where it came from. Does not open the data folder. */
#include "base/failpoint.h"
#include "cli/cli.h"

#include <stdio.h>

enum { SWITCH_FAILPOINTS = QR_BIT(0) }; /* the order of the command's options */

/* ---- failpoints ---- */

static int print_failpoints_json(struct cli *cli)
{
    json_t *names = json_array();
    const char *name;
    for (size_t i = 0; names && (name = qr_failpoint_name(i)); i++) {
        if (json_array_append_new(names, json_string(name)) != 0) {
            json_decref(names);
            names = NULL;
        }
    }
    return cli_print_json(cli, json_pack("{s:b, s:o}", "built_in", qr_failpoints_built_in(), "failpoints", names));
}

static int print_failpoints(struct cli *cli)
{
    if (!qr_failpoints_built_in()) {
        fputs("quire: this build has no failpoints; `make build-failpoints` makes one that has\n", stderr);
    }
    if (cli->json) {
        return print_failpoints_json(cli);
    }
    const char *name;
    for (size_t i = 0; (name = qr_failpoint_name(i)); i++) {
        puts(name);
    }
    return 0;
}

/* ---- settings ---- */

/* Every value as it may be shown, made once because the table needs their widths first. */
struct shown {
    struct qr_buf texts[QR_CONFIG_COUNT];
};

static void shown_done(struct shown *shown)
{
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        qr_buf_done(&shown->texts[id]);
    }
}

static qr_rc show_values(const struct qr_config *config, struct shown *shown, qr_err *err)
{
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        qr_config_add_shown(&shown->texts[id], qr_config_key(id), qr_str_of(qr_config_text(config, id)));
        QR_TRY(qr_buf_check(&shown->texts[id], err));
    }
    return QR_OK;
}

static void print_table(const struct qr_config *config, const struct shown *shown)
{
    int key_width = 3, value_width = 5; /* of the head line */
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        key_width = QR_MAX(key_width, (int)strlen(qr_config_key(id)->name));
        value_width = QR_MAX(value_width, (int)shown->texts[id].len);
    }
    printf("%-*s  %-*s  SOURCE\n", key_width, "KEY", value_width, "VALUE");
    for (enum qr_config_id id = 0; id < QR_CONFIG_COUNT; id++) {
        const struct qr_config_value *value = &config->values[id];
        printf("%-*s  %-*s  %s%s%s\n", key_width, qr_config_key(id)->name, value_width, shown->texts[id].data,
               qr_config_source_name(value->source), value->origin[0] ? " " : "", value->origin);
    }
}

static json_t *setting_json(const struct qr_config *config, const struct shown *shown, enum qr_config_id id)
{
    const struct qr_config_value *value = &config->values[id];
    return json_pack("{s:s, s:s, s:s, s:s}", "key", qr_config_key(id)->name, "value", shown->texts[id].data, "source",
                     qr_config_source_name(value->source), "origin", value->origin);
}

/* ---- variables that set nothing ---- */

static void warn_of_strays(const struct qr_config *config)
{
    for (size_t i = 0; i < config->stray_count; i++) {
        char nearest[QR_CONFIG_ENV_SIZE];
        const bool found = qr_config_nearest_env(config->strays[i], nearest);
        fprintf(stderr, "quire: warning: the variable %s sets nothing%s%s%s\n", config->strays[i],
                found ? "; did you mean " : "", found ? nearest : "", found ? "?" : "");
    }
}

static json_t *strays_json(const struct qr_config *config)
{
    json_t *strays = json_array();
    for (size_t i = 0; strays && i < config->stray_count; i++) {
        char nearest[QR_CONFIG_ENV_SIZE];
        const bool found = qr_config_nearest_env(config->strays[i], nearest);
        json_t *stray = json_pack("{s:s, s:s?}", "name", config->strays[i], "nearest", found ? nearest : NULL);
        if (json_array_append_new(strays, stray) != 0) {
            json_decref(strays);
            strays = NULL;
        }
    }
    return strays;
}

static int print_all_json(struct cli *cli, const struct shown *shown)
{
    json_t *settings = json_array();
    for (enum qr_config_id id = 0; settings && id < QR_CONFIG_COUNT; id++) {
        if (json_array_append_new(settings, setting_json(&cli->config, shown, id)) != 0) {
            json_decref(settings);
            settings = NULL;
        }
    }
    return cli_print_json(cli, json_pack("{s:s?, s:o, s:o}", "file", cli->config.file, "settings", settings,
                                         "unknown_variables", strays_json(&cli->config)));
}

/* ---- the command ---- */

static int print_one(struct cli *cli, const struct shown *shown)
{
    enum qr_config_id id;
    qr_err err = {0};
    if (qr_config_require(qr_str_of(cli->args[0]), &id, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    if (cli->json) {
        return cli_print_json(cli, setting_json(&cli->config, shown, id));
    }
    puts(shown->texts[id].data);
    return 0;
}

int cmd_config(struct cli *cli)
{
    qr_err err = {0};
    QR_CLEANUP(shown_done) struct shown shown = {0};
    if (cli->switches & SWITCH_FAILPOINTS) {
        return print_failpoints(cli);
    }
    if (cli_load_config(cli, &err) != QR_OK || show_values(&cli->config, &shown, &err) != QR_OK) {
        return cli_fail(cli, &err);
    }
    if (cli->arg_count) {
        return print_one(cli, &shown);
    }
    if (cli->json) {
        return print_all_json(cli, &shown);
    }
    print_table(&cli->config, &shown);
    warn_of_strays(&cli->config);
    return 0;
}
