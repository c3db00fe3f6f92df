/* /api/v1/queues: how much ended there since this process began to run jobs. */
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
