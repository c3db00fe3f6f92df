/* Runs through quire_call, and what an answer means. */
#include "support/api_fixture.h"

#include <sched.h>

static void add_note(struct quire *quire, const char *process)
{
    char body[200];
    json_decref(api_call(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201));
    snprintf(body, sizeof body,
             "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"a red fox\"}],\"process\":\"%s\"}", process);
    json_decref(api_call(quire, "POST", "/api/v1/bases/b/items", body, 202));
}

/* PROC-1 */
QR_TEST(a_run_must_be_told_what_to_do)
{
    struct quire *quire = api_open(t);
    add_note(quire, "manual");
    json_decref(api_call(quire, "POST", "/api/v1/knowledge-spaces/b/process", "{}", 422));
    json_decref(
        api_call(quire, "POST", "/api/v1/knowledge-spaces/b/process", "{\"process_new_documents\":false}", 422));
    json_decref(api_call(quire, "POST", "/api/v1/knowledge-spaces/b/process", "{\"process_new_documents\":1}", 422));
    json_decref(api_call(quire, "POST", "/api/v1/knowledge-spaces/b/process",
                         "{\"index_new_chunks\":true,\"level_gate\":\"x\"}", 422));
    json_decref(api_call(quire, "POST", "/api/v1/knowledge-spaces/b/process", "{\"index\":true}", 400));
    json_decref(api_call(quire, "POST", "/api/v1/knowledge-spaces/none/process", "{\"index_new_chunks\":true}", 404));
    quire_close(quire);
}

static void wait_until_ended(struct quire *quire, const char *run)
{
    char path[100];
    snprintf(path, sizeof path, "/api/v1/runs/%s", run);
    for (bool ended = false; !ended; sched_yield()) { /* the test's time limit ends it */
        QR_JSON *now = api_call(quire, "GET", path, NULL, 200);
        ended = strcmp(api_text(now, "status"), "running") != 0;
    }
}

/* THING-9, THING-6: a run takes a note to where search finds it, by its chunk */
QR_TEST(a_run_is_made_shown_listed_and_ends)
{
    struct quire *quire = api_open(t);
    struct quire_error error;
    add_note(quire, "manual");
    QR_JSON *run =
        api_call(quire, "POST", "/api/v1/knowledge-spaces/b/process",
                 "{\"process_new_documents\":true,\"chunk_processed_documents\":true,\"index_new_chunks\":true}", 202);
    QR_CHECK_TEXT("running", api_text(run, "status"));
    QR_CHECK_INT(0, quire_start_work(quire, &error));
    wait_until_ended(quire, api_text(run, "id"));
    QR_JSON *list = api_call(quire, "GET", "/api/v1/bases/b/runs", NULL, 200);
    QR_CHECK_INT(1, json_array_size(json_object_get(list, "data")));
    const json_t *ended = json_array_get(json_object_get(list, "data"), 0);
    QR_CHECK_TEXT("completed", api_text(ended, "status"));
    const json_t *stage = json_object_get(json_object_get(ended, "stages"), "process");
    QR_CHECK_INT(1, json_integer_value(json_object_get(stage, "done")));
    QR_JSON *found = api_call(quire, "POST", "/api/v1/bases/b/search", "{\"query\":\"fox\"}", 200);
    const json_t *hit = json_array_get(json_object_get(found, "hits"), 0);
    QR_CHECK_TEXT("a red fox", api_text(hit, "text"));
    QR_CHECK_HAS(":1:0", api_text(hit, "chunk_id"));
    char path[100];
    snprintf(path, sizeof path, "/api/v1/runs/%s/cancel", api_text(run, "id"));
    json_decref(api_call(quire, "POST", path, NULL, 409));
    quire_close(quire);
}

/* REQ-1, I5: what was answered is there after the process is gone, with its work */
QR_TEST(an_accepted_item_is_there_after_a_restart_with_its_job)
{
    struct quire *quire = api_open(t);
    add_note(quire, "auto");
    quire_close(quire);
    quire = api_open(t);
    QR_JSON *items = api_call(quire, "GET", "/api/v1/bases/b/items", NULL, 200);
    QR_CHECK_INT(1, json_array_size(json_object_get(items, "data")));
    QR_JSON *jobs = api_call(quire, "GET", "/api/v1/jobs?state=queued", NULL, 200);
    QR_CHECK_INT(1, json_array_size(json_object_get(jobs, "data")));
    quire_close(quire);
}

/* THING-3 */
QR_TEST(an_item_is_a_directory_a_file_a_note_or_a_url)
{
    struct quire *quire = api_open(t);
    json_decref(api_call(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201));
    QR_JSON *added = api_call(
        quire, "POST", "/api/v1/bases/b/items",
        "{\"items\":[{\"type\":\"directory\",\"path\":\"/none\"},{\"type\":\"file\",\"path\":\"/none/a.txt\"},"
        "{\"type\":\"note\",\"name\":\"n\",\"content\":\"x\"},{\"type\":\"url\",\"url\":\"https://example.org/\"}]}",
        202);
    static const char *const types[] = {"directory", "file", "note", "url"};
    for (size_t i = 0; i < QR_COUNT(types); i++) {
        const json_t *item = json_array_get(json_object_get(added, "items"), i);
        QR_CHECK_TEXT(types[i], api_text(item, "type"));
        QR_CHECK(json_is_object(json_object_get(item, "counts")) == (i == 0)); /* containers have counts, leaves none */
    }
    json_decref(api_call(quire, "POST", "/api/v1/bases/b/items", "{\"items\":[{\"type\":\"archive\"}]}", 422));
    quire_close(quire);
}
