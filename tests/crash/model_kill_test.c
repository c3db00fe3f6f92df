/* A process that builds another model for a base dies at every step of the build and of the switch. The next one ends what it
 * finds: the wanted model is live, every chunk has its vector, `check` finds nothing, and the server, which outlives them all,
 * was paid for at most one batch twice for each crash (MODEL-3, MODEL-8, PAID-1). */
#include "api/wire.h"
#include "base/failpoint.h"
#include "base/json.h"
#include "support/child.h"
#include "support/db_fixture.h"
#include "support/model_apart.h"
#include "support/workflow_ledger.h"

#include <stdlib.h>
#include <unistd.h>

enum { EXIT_CRASHED = 99, NOTES = 24, INPUTS = 8 };

struct life {
    char folder[200];
    const char *url;       /* NULL = SQLite */
    const char *failpoint; /* NULL = none */
    const char *server, *model;
    bool is_first, asks; /* for the model; else it only ends what it finds */
};

static json_t *settings_of(const struct life *life)
{
    return json_pack("{s:{s:s, s:s, s:s, s:{s:i, s:i}}}", "embedding", "provider", "openai", "model", life->model,
                     "url", life->server, "limits", "inputs", (int)INPUTS, "in_flight", 1);
}

static void add_notes(struct quire *quire, const struct life *life)
{
    json_t *items = json_array();
    json_decref(workflow_call(quire, 201, "POST", "/api/v1/bases",
                              json_pack("{s:s, s:o}", "name", "base", "settings", settings_of(life))));
    for (int i = 0; i < NOTES; i++) {
        char text[80];
        snprintf(text, sizeof text, "note %d is about subject number %d", i, i * 7);
        json_array_append_new(items, json_pack("{s:s, s:s, s:s}", "type", "note", "name", "n", "content", text));
    }
    json_decref(workflow_call(quire, 202, "POST", "/api/v1/bases/base/items", json_pack("{s:o}", "items", items)));
}

/* Of the live model, which must be the wanted one. */
static int64_t count_vectors(struct quire *quire, const struct life *life)
{
    int64_t vectors = 0, models[4];
    struct qr_index_extent extents[NOTES + 1];
    size_t count, model_count;
    qr_uuid id = {0};
    qr_err err = {0};
    QR_JSON *base = workflow_call(quire, 200, "GET", "/api/v1/bases/base", NULL);
    const json_t *live = json_object_get(json_object_get(base, "models"), "live");
    const char *model = json_string_value(json_object_get(live, "model"));
    if (!json_is_null(json_object_get(base, "model_build")) || !model || strcmp(model, life->model) != 0) {
        workflow_child_fail("the model %s is not live", life->model);
    }
    qr_uuid_parse(qr_str_of(json_string_value(json_object_get(base, "id"))), &id);
    workflow_child_require(qr_index_models(quire->index, id, 4, models, &model_count, &err), &err);
    for (size_t m = 0; m < model_count; m++) {
        workflow_child_require(
            qr_index_extents(quire->index, id, models[m], (qr_uuid){0}, 0, NOTES + 1, extents, &count, &err), &err);
        for (size_t i = 0; i < count; i++) {
            vectors += extents[i].vector_count;
        }
    }
    return vectors / (int64_t)(model_count ? model_count : 1); /* each of the models has all */
}

static void live(void *arg)
{
    const struct life *life = arg;
    struct quire *quire = workflow_open(life->folder, life->url);
    workflow_exec(quire, "UPDATE job SET crashes = 0, suspect = 0"); /* we die oftener than a job may */
    qr_err err = {0};
    if (life->is_first) {
        add_notes(quire, life);
    }
    workflow_child_require(qr_failpoints_set(life->failpoint, &err), &err);
    if (life->asks) {
        json_decref(workflow_call(quire, 200, "PATCH", "/api/v1/bases/base",
                                  json_pack("{s:o}", "settings", settings_of(life))));
    }
    workflow_child_require(qr_instance_start_work(quire, &err), &err);
    workflow_drain(quire);
    workflow_child_require(qr_failpoints_set(NULL, &err), &err);
    const bool is_whole = count_vectors(quire, life) == NOTES;
    QR_JSON *checked = workflow_call(quire, 200, "POST", "/api/v1/check", json_object());
    const bool is_right = json_is_true(json_object_get(checked, "ok"));
    qr_instance_close(quire);
    _exit(is_whole && is_right ? 0 : 1);
}

static int live_once(struct life *life)
{
    struct child child;
    child_start(&child, live, life);
    return child_wait(&child);
}

/* MODEL-3, MODEL-8, I8, I11 */
QR_DB_TEST_WITH_TIMEOUT(a_build_that_is_killed_at_any_step_is_ended_by_the_next_process, 600)
{
    static const char *const failpoints[] = {"base.set.before_commit=crash@1",    "build.others.gone=crash@1",
                                             "embed.batch.stored=crash@1",        "build.item.done=crash@2",
                                             "build.pass.synced=crash@1",         "model.switch.before_commit=crash@1",
                                             "model.switch.after_commit=crash@1", "build.others.gone=crash@2",
                                             "index.write.after_commit=crash@3",  "jobs.complete.before_commit=crash@1",
                                             "model.choose.before_commit=crash@1"};
    if (!qr_failpoints_built_in()) {
        QR_FAIL("%s", "this needs a build with failpoints");
    }
    setenv("no_proxy", "127.0.0.1", 1);
    struct qr_model_apart server;
    qr_model_apart_start(&server);
    struct life life = {.url = qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : NULL,
                        .server = server.url,
                        .model = "m",
                        .is_first = true};
    snprintf(life.folder, sizeof life.folder, "%s", qr_test_path(t, "data"));
    QR_CHECK_INT(0, live_once(&life));
    life.is_first = false;
    int crashes = 0;
    for (size_t i = 0; i < QR_COUNT(failpoints); i++) {
        qr_test_set_context("%s", failpoints[i]);
        life.model = i % 2 ? "m" : "n";
        life.failpoint = failpoints[i];
        life.asks = true;
        const int end = live_once(&life);
        QR_CHECK(end == 0 || end == EXIT_CRASHED);
        crashes += end == EXIT_CRASHED;
        life.failpoint = NULL;
        /* the first and the last crash are before anything was acknowledged */
        life.asks = i == 0 || i == QR_COUNT(failpoints) - 1;
        QR_CHECK_INT(0, live_once(&life));
    }
    struct qr_model_stats stats;
    qr_model_apart_stats(&server, &stats);
    QR_CHECK(crashes >= 6);
    QR_CHECK(stats.inputs >= 2 * NOTES && stats.inputs <= 2 * NOTES + crashes * INPUTS);
    printf("%d crashes, %lld texts paid for instead of %d\n", crashes, (long long)stats.inputs, 2 * (int)NOTES);
    qr_model_apart_stop(&server);
}
