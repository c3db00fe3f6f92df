/* /healthz, /readyz and /metrics over every database. */
#include "api/router.h"
#include "api/wire.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "support/db_fixture.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- a data folder ---- */

static struct quire *open_quire(struct qr_test *t)
{
    const struct qr_config_flag settings[] = {
        {"test", QR_STR("data.dir"), qr_str_of(qr_test_path(t, "data"))},
        {"test", QR_STR("database.url"),
         qr_str_of(qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : "sqlite")},
    };
    const struct qr_instance_options options = {
        .settings = settings, .setting_count = QR_COUNT(settings), .program = "the test"};
    struct quire *quire;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_instance_open(&quire, &options, &err));
    return quire;
}

static struct quire_response ask(struct quire *quire, const char *method, const char *target, const char *body,
                                 bool is_local)
{
    const struct quire_request request = {.method = method,
                                          .target = target,
                                          .body = body,
                                          .body_size = body ? strlen(body) : 0,
                                          .is_local_owner = is_local,
                                          .remote_address = is_local ? NULL : "192.0.2.7",
                                          .request_id = "request-1"};
    struct quire_response response;
    quire_request_call(quire, &request, &response);
    return response;
}

static void check(struct quire *quire, const char *method, const char *target, const char *body, int status,
                  const char *has)
{
    struct quire_response response = ask(quire, method, target, body, true);
    QR_CHECK_INT(status, response.status);
    QR_CHECK_HAS(has, response.body);
    quire_response_done(&response);
}

/* Told again for a second: the test makes it old. */
static char *metrics_of(struct quire *quire)
{
    quire->meter.text_us = INT64_MIN / 2;
    struct quire_response response = ask(quire, "GET", "/metrics", NULL, true);
    QR_CHECK_INT(200, response.status);
    QR_CHECK_HAS("text/plain; version=0.0.4", response.content_type);
    char *text = qr_copy_string(response.body);
    quire_response_done(&response);
    return text;
}

/* The value of a sample, by its name and labels; there must be one. */
static double value_of(const char *text, const char *sample)
{
    const size_t len = strlen(sample);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, sample, len) == 0 && line[len] == ' ') {
            return strtod(line + len + 1, NULL);
        }
    }
    QR_FAIL("there is no sample %s in\n%s", sample, text);
}

static double metric(struct quire *quire, const char *sample)
{
    char *text = metrics_of(quire);
    const double value = value_of(text, sample);
    qr_free(text);
    return value;
}

/* ---- the form ---- */

static size_t name_len(const char *text)
{
    size_t len = 0;
    while (isalpha((unsigned char)text[len]) || text[len] == '_' || (len && isdigit((unsigned char)text[len]))) {
        len++;
    }
    return len;
}

/* Behind the labels: {name="value",…} without quotes or backslashes in values, which ours never have. */
static const char *skip_labels(const char *at)
{
    if (*at != '{') {
        return at;
    }
    do {
        at++;
        const size_t len = name_len(at);
        QR_CHECK(len > 0);
        at += len;
        QR_CHECK(at[0] == '=' && at[1] == '"');
        at = strpbrk(at + 2, "\"\\\n");
        QR_CHECK(at && *at == '"');
        at++;
    } while (*at == ',');
    QR_CHECK(*at == '}');
    return at + 1;
}

static void check_sample(const char *line, const char *metric_name)
{
    const size_t len = strlen(metric_name);
    QR_CHECK(strncmp(line, metric_name, len) == 0); /* samples of a metric stand together, below its head */
    const char *rest = line + len;
    static const char *const suffixes[] = {"_bucket", "_sum", "_count"};
    for (size_t i = 0; i < QR_COUNT(suffixes); i++) {
        rest += strncmp(rest, suffixes[i], strlen(suffixes[i])) == 0 ? strlen(suffixes[i]) : 0;
    }
    rest = skip_labels(rest);
    char *end;
    QR_CHECK(*rest == ' ');
    strtod(rest + 1, &end);
    QR_CHECK(end > rest + 1 && *end == '\0');
}

/* A HELP, then its TYPE, then samples of that name; no metric and no sample twice. */
static void check_form(char *text)
{
    char seen[128][64], name[64] = "";
    size_t seen_count = 0, sample_count = 0;
    QR_CHECK(text[0] && text[strlen(text) - 1] == '\n');
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            QR_CHECK(sscanf(line + 7, "%63s", name) == 1 && name_len(name) == strlen(name));
            for (size_t i = 0; i < seen_count; i++) {
                QR_CHECK(strcmp(seen[i], name) != 0);
            }
            QR_CHECK(seen_count < QR_COUNT(seen));
            strcpy(seen[seen_count++], name);
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            char typed[64], type[16];
            QR_CHECK(sscanf(line + 7, "%63s %15s", typed, type) == 2);
            QR_CHECK_STR(name, qr_str_of(typed));
            QR_CHECK_HAS(type, "counter gauge histogram summary");
        } else {
            check_sample(line, name);
            sample_count++;
        }
    }
    QR_CHECK(seen_count > 20 && sample_count < 300); /* whatever is stored */
}

QR_DB_TEST(metrics_have_the_form_of_prometheus) /* OPS-2 */
{
    struct quire *quire = open_quire(t);
    check(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201, "\"b\"");
    char *text = metrics_of(quire);
    check_form(text);
    qr_free(text);
    qr_instance_close(quire);
}

QR_DB_TEST(metrics_are_for_those_with_an_admin_key)
{
    struct quire *quire = open_quire(t);
    check(quire, "POST", "/api/v1/keys", "{\"name\":\"k\",\"admin\":true}", 201, "qk_");
    struct quire_response response = ask(quire, "GET", "/metrics", NULL, false);
    QR_CHECK_INT(401, response.status);
    quire_response_done(&response);
    qr_instance_close(quire);
}

/* ---- that they move ---- */

static void wait_until_found(struct quire *quire)
{
    bool is_found = false;
    while (!is_found) { /* the test's own time limit ends it */
        struct quire_response response =
            ask(quire, "POST", "/api/v1/bases/b/search", "{\"query\":\"quince\",\"mode\":\"text\"}", true);
        is_found = response.status == 200 && strstr(response.body, "\"score\"");
        quire_response_done(&response);
    }
}

static qr_rc complete_some(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    return qr_tx_exec(tx, "UPDATE item SET status = 6 WHERE name LIKE '%c'", QR_NO_VALS, NULL, err);
}

QR_DB_TEST(items_at_rest_are_counted_a_part_at_a_time) /* OPS-2 */
{
    enum { ITEMS = 7, A_LOOK = 3 };
    struct quire *quire = open_quire(t);
    qr_err err;
    check(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201, "\"b\"");
    for (int i = 0; i < ITEMS; i++) { /* nothing reads them yet: they fail at once */
        char body[128];
        snprintf(body, sizeof body, "{\"items\":[{\"type\":\"url\",\"url\":\"http://example.org/%d%c\"}]}", i,
                 i % 2 ? 'c' : 'f');
        check(quire, "POST", "/api/v1/bases/b/items", body, 202, "failed");
    }
    QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_RELAXED, complete_some, NULL, &err));
    quire->meter.items_a_look = A_LOOK;
    for (int looks = 0; looks < ITEMS / A_LOOK; looks++) {
        char *text = metrics_of(quire);
        QR_CHECK(!strstr(text, "quire_items{status=\"failed\"}")); /* not all of them yet */
        qr_free(text);
    }
    QR_CHECK_INT(4, (int)metric(quire, "quire_items{status=\"failed\"}"));
    quire->meter.items_a_look = ITEMS; /* that there are no more is seen the next time */
    QR_CHECK_INT(3, (int)metric(quire, "quire_items{status=\"completed\"}"));
    QR_CHECK(metric(quire, "quire_items_counted_seconds") >= 0);
    QR_CHECK_INT(3, (int)metric(quire, "quire_items{status=\"completed\"}"));
    qr_instance_close(quire);
}

QR_DB_TEST(counters_follow_what_happens)
{
    struct quire *quire = open_quire(t);
    check(quire, "POST", "/api/v1/bases", "{\"name\":\"b\",\"settings\":{\"embedding\":{\"provider\":\"hash\"}}}", 201,
          "\"b\"");
    check(quire, "POST", "/api/v1/bases/b/items",
          "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"a quince is a fruit\"}]}", 202, "\"id\"");
    QR_CHECK_INT(1, (int)metric(quire, "quire_queue_jobs{queue=\"convert\",state=\"queued\"}") +
                        (int)metric(quire, "quire_queue_jobs{queue=\"expand\",state=\"queued\"}"));
    QR_CHECK_INT(1, (int)metric(quire, "quire_items{status=\"active\"}"));
    QR_CHECK_INT(0, (int)metric(quire, "quire_working"));
    const double good = metric(quire, "quire_requests_total{class=\"2xx\"}");
    const double bad = metric(quire, "quire_requests_total{class=\"4xx\"}");
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_instance_start_work(quire, &err));
    wait_until_found(quire);
    check(quire, "GET", "/api/v1/nothing", NULL, 404, "not_found");
    QR_CHECK_INT(1, (int)metric(quire, "quire_working"));
    while (metric(quire, "quire_jobs_total{type=\"process-document\",outcome=\"completed\"}") < 1) {
    }
    QR_CHECK_INT(1, (int)metric(quire, "quire_job_duration_seconds_count{type=\"process-document\"}"));
    QR_CHECK(metric(quire, "quire_search_duration_seconds_count") >= 1);
    QR_CHECK(metric(quire, "quire_search_duration_seconds_bucket{le=\"+Inf\"}") ==
             metric(quire, "quire_search_duration_seconds_count"));
    while (metric(quire, "quire_embedding_calls_total") < 1 || metric(quire, "quire_vector_cache_misses_total") < 1) {
    }
    QR_CHECK(metric(quire, "quire_embedding_texts_total") >= 1);
    QR_CHECK(metric(quire, "quire_requests_total{class=\"2xx\"}") > good);
    QR_CHECK(metric(quire, "quire_requests_total{class=\"4xx\"}") == bad + 1);
    if (!qr_test_on_postgres(t)) {
        quire->meter.files_us = 0;
        QR_CHECK(metric(quire, "quire_index_bytes") > 0);
        QR_CHECK_INT(1, (int)metric(quire, "quire_index_files"));
    }
    qr_instance_close(quire);
}

QR_DB_TEST(what_was_written_is_told_again_for_a_moment) /* OPS-2 */
{
    struct quire *quire = open_quire(t);
    char *first = metrics_of(quire);
    quire->meter.text_us = INT64_MAX / 2; /* this moment never ends */
    check(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201, "\"b\"");
    struct quire_response again = ask(quire, "GET", "/metrics", NULL, true);
    QR_CHECK_STR(first, qr_str_of(again.body));
    quire_response_done(&again);
    qr_free(first);
    qr_instance_close(quire);
}

/* ---- health ---- */

/* What was found counts for a second: the test makes it old. */
static void check_ready(struct quire *quire, int status, const char *has)
{
    quire->health.has_looked = false;
    struct quire_response response = ask(quire, "GET", "/readyz", NULL, false);
    QR_CHECK_INT(status, response.status);
    QR_CHECK_HAS(has, response.body);
    quire_response_done(&response);
}

QR_DB_TEST(an_instance_that_runs_no_jobs_is_healthy_and_not_ready) /* OPS-1 */
{
    struct quire *quire = open_quire(t);
    check(quire, "POST", "/api/v1/keys", "{\"name\":\"k\",\"admin\":true}", 201, "qk_");
    struct quire_response response = ask(quire, "GET", "/healthz", NULL, false); /* anybody may ask */
    QR_CHECK_INT(200, response.status);
    quire_response_done(&response);
    check_ready(quire, 503, "\"reasons\":[{\"part\":\"work\",\"code\":\"unavailable\"}]");
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_instance_start_work(quire, &err));
    check_ready(quire, 200, "\"reasons\":[]");
    qr_instance_close(quire);
}

#ifdef QUIRE_FAILPOINTS
QR_DB_TEST(an_instance_that_cannot_write_is_not_ready) /* OPS-1 */
{
    struct quire *quire = open_quire(t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("db.write.before_commit=error", &err));
    check_ready(quire, 503, "\"part\":\"database\"");
    QR_CHECK_RC(QR_OK, qr_failpoints_set(NULL, &err));
    check_ready(quire, 503, "\"reasons\":[{\"part\":\"work\"");
    qr_instance_close(quire);
}
#endif

QR_DB_TEST(who_asks_while_somebody_looks_is_told_what_was_found_before) /* OPS-1 */
{
    struct quire *quire = open_quire(t);
    quire->health.is_looking = true;
    struct quire_response response = ask(quire, "GET", "/readyz", NULL, false);
    QR_CHECK_INT(503, response.status); /* nothing was found yet */
    quire_response_done(&response);
    quire->health.has_looked = true; /* all well */
    response = ask(quire, "GET", "/readyz", NULL, false);
    QR_CHECK_INT(200, response.status);
    quire_response_done(&response);
    qr_instance_close(quire);
}
