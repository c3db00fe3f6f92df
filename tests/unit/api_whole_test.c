/* All of the API at once: on PostgreSQL, and while memory fails. */
#include "support/api_fixture.h"
#include "support/fault.h"
#include "support/postgres.h"

#include <pthread.h>

/* ---- PostgreSQL ---- */

enum { SEARCHERS = 6 };

static void *search_often(void *arg)
{
    for (int i = 0; i < 20; i++) {
        QR_CHECK_INT(1, api_search(arg, "quince"));
    }
    return NULL;
}

/* DB-15; and more searches at once than there are connections. */
QR_TEST(items_are_worked_on_and_found_on_postgresql_too)
{
    if (!qr_pg_installed()) {
        qr_test_skip("PostgreSQL is not installed");
    }
    struct qr_pg pg = {0};
    qr_pg_start(&pg, t->dir);
    const struct quire_setting settings[] = {{"database.url", qr_pg_url(&pg, "quire")}, {"database.connections", "4"}};
    const struct quire_options options = {
        .data_dir = qr_test_path(t, "data"), .settings = settings, .setting_count = 2};
    struct quire_error error = {0};
    struct quire *quire = NULL;
    if (quire_open(&options, &quire, &error) != 0) {
        QR_FAIL("%s (%s)", error.message, error.code);
    }
    char id[API_ID_SIZE];
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201, "\"status\":\"ready\"");
    api_add_note(quire, "n", "# Sour\\n\\nquince", id);
    api_start_work(quire);
    json_decref(api_wait_for(quire, id, "completed"));
    api_check(quire, "GET", api_item_path(id, "/chunks"), NULL, 200, "\"heading\":\"Sour\"");
    api_check(quire, "GET", api_item_path(id, "/content"), NULL, 200, "quince");
    api_check(quire, "GET", API_ITEMS "?parent=root&status=completed", NULL, 200, id);
    pthread_t threads[SEARCHERS];
    for (size_t i = 0; i < SEARCHERS; i++) {
        QR_CHECK(pthread_create(&threads[i], NULL, search_often, quire) == 0);
    }
    for (size_t i = 0; i < SEARCHERS; i++) {
        QR_CHECK(pthread_join(threads[i], NULL) == 0);
    }
    quire_close(quire);
    qr_pg_remove(&pg);
}

/* ---- failures ---- */

static void call_under_faults(struct quire *quire, const char *method, const char *path, const char *body)
{
    struct quire_response response;
    const int status = quire_call(quire, method, path, body, &response);
    if (status >= 500 && !(status == 503 && qr_fault_fired())) {
        QR_FAIL("%s %s answers %d: %s", method, path, status, response.body);
    }
    quire_response_done(&response);
}

struct faulty {
    struct quire *quire;
    char id[API_ID_SIZE];
};

/* Whatever fails, the answer says so, and nothing is leaked or half done. */
static void use_everything(void *arg)
{
    const struct faulty *faulty = arg;
    struct quire *quire = faulty->quire;
    char body[128];
    call_under_faults(quire, "PATCH", API_BASE, "{\"settings\":{\"chunking\":{\"size_tokens\":300}}}");
    call_under_faults(quire, "GET", "/api/v1/bases", NULL);
    call_under_faults(quire, "GET", API_ITEMS "?parent=root&limit=1", NULL);
    static const char *const rests[] = {"", "/content", "/chunks", "/assets", "/events"};
    for (size_t i = 0; i < QR_COUNT(rests); i++) {
        call_under_faults(quire, "GET", api_item_path(faulty->id, rests[i]), NULL);
    }
    call_under_faults(quire, "PATCH", api_item_path(faulty->id, ""), "{\"attributes\":{\"a\":1}}");
    call_under_faults(quire, "POST", API_BASE "/search", "{\"query\":\"quince\"}");
    snprintf(body, sizeof body, "{\"ids\":[\"%s\"],\"dry_run\":true}", faulty->id);
    call_under_faults(quire, "POST", API_ITEMS "/reindex", body);
    snprintf(body, sizeof body, "{\"ids\":[\"%s\"]}", faulty->id);
    call_under_faults(quire, "POST", API_ITEMS "/retry", body);
    call_under_faults(quire, "POST", API_ITEMS,
                      "{\"items\":[{\"type\":\"file\",\"path\":\"/a.md\"}],\"on_conflict\":\"skip\"}");
    qr_fault_disarm();
    api_check(quire, "GET", api_item_path(faulty->id, ""), NULL, 200, "\"status\":\"completed\"");
}

QR_TEST_WITH_TIMEOUT(requests_survive_every_failure_of_memory, 300)
{
    qr_fault_memory_install();
    struct faulty faulty = {.quire = api_open_base(t)};
    api_add_note(faulty.quire, "n", "quince", faulty.id);
    api_start_work(faulty.quire);
    json_decref(api_wait_for(faulty.quire, faulty.id, "completed"));
    quire_stop_work(faulty.quire, 10000);
    api_check(faulty.quire, "POST", API_ITEMS, "{\"items\":[{\"type\":\"file\",\"path\":\"/a.md\"}]}", 202, "a.md");
    /* caches of the database grow meanwhile, so what is leaked is left to the leak checker */
    uint64_t n = 1;
    do {
        qr_test_set_context("failing allocation no. %llu", (unsigned long long)n);
        qr_fault_arm(QR_FAULT_MEMORY, n);
        use_everything(&faulty);
        n += 1 + n / 150; /* not each of many thousands, but many in every call */
    } while (qr_fault_fired());
    qr_test_set_context("%s", "");
    quire_close(faulty.quire);
}
