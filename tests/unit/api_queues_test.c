/* /api/v1/queues: how much ended there since this process began to run jobs, and what keeps them from ending. */
#include "base/failpoint.h"
#include "support/api_fixture.h"

static long long ended_of(struct quire *quire, const char *name)
{
    QR_JSON *answer = api_call(quire, "GET", "/api/v1/queues", NULL, 200);
    const json_t *queue;
    size_t i;
    json_array_foreach(json_object_get(answer, "data"), i, queue)
    {
        if (strcmp(api_text(queue, "name"), name) == 0) {
            QR_CHECK(json_is_integer(json_object_get(queue, "ended")));
            return api_number(queue, "ended");
        }
    }
    QR_FAIL("there is no queue %s", name);
}

QR_TEST(queues_count_the_jobs_that_ended_in_this_process)
{
    struct quire *quire = api_open_base(t);
    char first[API_ID_SIZE], second[API_ID_SIZE];
    api_add_note(quire, "a", "quince", first);
    api_add_note(quire, "b", "pear", second);
    QR_CHECK_INT(0, ended_of(quire, "convert"));
    api_start_work(quire);
    json_decref(api_wait_for(quire, first, "completed"));
    json_decref(api_wait_for(quire, second, "completed"));
    while (ended_of(quire, "convert") < 2) { /* counted after its commit */
    }
    QR_CHECK_INT(0, ended_of(quire, "assets"));
    api_check(quire, "POST", "/api/v1/queues/convert/pause", NULL, 200, "\"ended\":2");
    quire_stop_work(quire, 1000);
    QR_CHECK_INT(0, ended_of(quire, "convert"));
    quire_close(quire);
}

#ifdef QUIRE_FAILPOINTS
static bool has_trouble(struct quire *quire, const char *code)
{
    QR_JSON *answer = api_call(quire, "GET", "/api/v1/queues", NULL, 200);
    const json_t *trouble = json_object_get(answer, "trouble");
    QR_CHECK(trouble != NULL);
    return code ? strcmp(api_text(trouble, "code"), code) == 0 : json_is_null(trouble);
}

static bool is_any_running(struct quire *quire)
{
    QR_JSON *answer = api_call(quire, "GET", "/api/v1/jobs?state=running", NULL, 200);
    return json_array_size(json_object_get(answer, "data")) > 0;
}

QR_TEST(queues_say_why_jobs_cannot_be_recorded)
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE];
    qr_err err;
    api_add_note(quire, "a", "quince", id);
    QR_CHECK(has_trouble(quire, NULL));
    QR_CHECK_RC(QR_OK, qr_failpoints_set("index.write.before_commit=sleep(2000)", &err));
    api_start_work(quire);
    while (!is_any_running(quire)) {
    }
    QR_CHECK_RC(QR_OK, qr_failpoints_set("db.write.before_commit=error", &err)); /* what runs cannot end */
    while (!has_trouble(quire, "unavailable")) {
    }
    QR_CHECK_RC(QR_OK, qr_failpoints_set(NULL, &err));
    while (!has_trouble(quire, NULL)) {
    }
    json_decref(api_wait_for(quire, id, "completed"));
    quire_close(quire);
}
#endif
