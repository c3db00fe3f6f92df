/* A process that embeds by a server dies around every batch. The next one ends what it finds: every chunk has its vector, and the
 * server, which outlives them all, was paid for at most one batch twice for each call that was under way (PAID-1, I8). */
#include "api/wire.h"
#include "base/failpoint.h"
#include "base/json.h"
#include "support/child.h"
#include "support/db_fixture.h"
#include "support/model_apart.h"
#include "support/workflow_ledger.h"

#include <stdlib.h>
#include <unistd.h>

enum { EXIT_CRASHED = 99, NOTES = 60, INPUTS = 8 };

struct life {
    char folder[200];
    const char *url;       /* NULL = SQLite */
    const char *failpoint; /* NULL = none */
    char settings[400];
    bool is_first;
};

/* Two bases with the same notes: the second pays for nothing. */
static void add_everything(struct quire *quire, const struct life *life)
{
    for (int base = 0; base < 2; base++) {
        char name[16], path[64];
        snprintf(name, sizeof name, "base%d", base);
        snprintf(path, sizeof path, "/api/v1/bases/%s/items", name);
        json_decref(
            workflow_call(quire, 201, "POST", "/api/v1/bases",
                          json_pack("{s:s, s:o}", "name", name, "settings", json_loads(life->settings, 0, NULL))));
        json_t *items = json_array();
        for (int i = 0; i < NOTES; i++) {
            char text[80];
            snprintf(text, sizeof text, "note %d is about subject number %d", i, i * 7);
            json_array_append_new(items, json_pack("{s:s, s:s, s:s}", "type", "note", "name", "n", "content", text));
        }
        json_decref(workflow_call(quire, 202, "POST", path, json_pack("{s:o}", "items", items)));
    }
}

static int64_t count_vectors(struct quire *quire)
{
    int64_t vectors = 0;
    for (int base = 0; base < 2; base++) {
        char path[64];
        qr_uuid id = {0};
        snprintf(path, sizeof path, "/api/v1/bases/base%d", base);
        QR_JSON *answer = workflow_call(quire, 200, "GET", path, NULL);
        qr_uuid_parse(qr_str_of(json_string_value(json_object_get(answer, "id"))), &id);
        struct qr_index_extent extents[NOTES + 1];
        size_t count;
        qr_err err = {0};
        int64_t model = 0;
        workflow_child_require(qr_index_models(quire->index, id, 1, &model, &count, &err), &err);
        workflow_child_require(
            qr_index_extents(quire->index, id, model, (qr_uuid){0}, 0, NOTES + 1, extents, &count, &err), &err);
        for (size_t i = 0; i < count; i++) {
            vectors += extents[i].vector_count;
        }
    }
    return vectors;
}

static void live(void *arg)
{
    struct life *life = arg;
    struct quire *quire = workflow_open(life->folder, life->url);
    workflow_exec(quire, "UPDATE job SET crashes = 0, suspect = 0"); /* we die oftener than a job may */
    qr_err err = {0};
    if (life->is_first) {
        add_everything(quire, life);
    }
    workflow_child_require(qr_failpoints_set(life->failpoint, &err), &err);
    workflow_child_require(qr_instance_start_work(quire, &err), &err);
    workflow_drain(quire);
    workflow_child_require(qr_failpoints_set(NULL, &err), &err);
    const bool is_whole = count_vectors(quire) == 2 * NOTES;
    qr_instance_close(quire);
    _exit(is_whole ? 0 : 1);
}

static int live_once(struct life *life)
{
    struct child child;
    child_start(&child, live, life);
    return child_wait(&child);
}

/* I8, PAID-1, EMB-1 */
QR_DB_TEST_WITH_TIMEOUT(every_chunk_gets_its_vector_and_a_crash_costs_one_batch_at_most, 600)
{
    static const char *const failpoints[] = {
        "embed.batch.answered=crash@1", "embed.batch.answered=crash@4",      "embed.batch.before_commit=crash@3",
        "embed.batch.stored=crash@2",   "embed.batch.before_commit=crash@1",
    };
    if (!qr_failpoints_built_in()) {
        QR_FAIL("%s", "this needs a build with failpoints");
    }
    setenv("no_proxy", "127.0.0.1", 1);
    struct qr_model_apart server;
    qr_model_apart_start(&server);
    struct life life = {.url = qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : NULL, .is_first = true};
    snprintf(life.folder, sizeof life.folder, "%s", qr_test_path(t, "data"));
    snprintf(life.settings, sizeof life.settings,
             "{\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"%s\",\"limits\":{\"inputs\":%d,"
             "\"in_flight\":1}}}",
             server.url, (int)INPUTS);
    int crashes = 0;
    for (size_t i = 0; i < QR_COUNT(failpoints); i++) {
        life.failpoint = failpoints[i];
        const int end = live_once(&life);
        QR_CHECK(end == 0 || end == EXIT_CRASHED);
        crashes += end == EXIT_CRASHED;
        life.is_first = false;
    }
    life.failpoint = NULL;
    QR_CHECK_INT(0, live_once(&life));
    struct qr_model_stats stats;
    qr_model_apart_stats(&server, &stats);
    QR_CHECK(crashes >= 3);
    QR_CHECK(stats.inputs >= NOTES && stats.inputs <= NOTES + crashes * INPUTS);
    printf("%d crashes, %lld texts paid for instead of %d\n", crashes, (long long)stats.inputs, (int)NOTES);
    qr_model_apart_stop(&server);
}
