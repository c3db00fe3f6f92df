/* The description of the API itself: complete, without repetitions, and for people too. tests/contract/openapi_test.c compares it
 * with the answers. */
#include "api/openapi.h"
#include "support/fault.h"
#include "support/test.h"

static bool codes_exist(const char *codes)
{
    qr_str rest = qr_str_of(codes);
    while (rest.len) {
        char name[64];
        const qr_str part = qr_str_split(&rest, ' ');
        snprintf(name, sizeof name, "%.*s", QR_STR_ARG(part));
        if (qr_code_find(name) == QR_CODE_COUNT) {
            return false;
        }
    }
    return true;
}

/* The fields that the router lets through are those of the schema. */
static void check_fields(const json_t *openapi, const struct qr_route *route, const struct qr_operation *operation)
{
    const json_t *schemas = json_object_get(json_object_get(openapi, "components"), "schemas");
    const json_t *schema = json_object_get(schemas, operation->body);
    const json_t *properties = json_object_get(schema, "properties");
    qr_str rest = qr_str_of(route->fields);
    size_t count = 0;
    while (rest.len) {
        char name[64];
        const qr_str part = qr_str_split(&rest, ' ');
        snprintf(name, sizeof name, "%.*s", QR_STR_ARG(part));
        if (!json_object_get(properties, name)) {
            QR_FAIL("the schema of the body lacks %s", name);
        }
        count++;
    }
    QR_CHECK_INT(count, json_object_size(properties));
    QR_CHECK(json_is_false(json_object_get(schema, "additionalProperties")));
}

QR_TEST(every_route_has_said_what_it_takes_and_gives) /* SPEC-1 */
{
    QR_JSON *openapi = qr_openapi_json();
    QR_JSON *ids = json_object();
    QR_CHECK(openapi != NULL);
    for (size_t i = 0; i < qr_route_count; i++) {
        const struct qr_route *route = &qr_routes[i];
        const struct qr_operation *operation = qr_operation_find(route);
        qr_test_set_context("%s %s", route->method, route->pattern);
        QR_CHECK(operation && operation->answers[0]);
        QR_CHECK(json_object_set_new(ids, operation->id, json_true()) == 0);
        QR_CHECK(codes_exist(operation->codes));
        QR_CHECK_INT(route->fields[0] != '\0', operation->body != NULL);
        if (operation->body && strcmp(route->fields, "*") != 0) {
            check_fields(openapi, route, operation);
        }
        for (qr_str rest = qr_str_of(route->query); rest.len;) {
            QR_CHECK(qr_query_parameter(route, qr_str_split(&rest, ' ')) != NULL);
        }
        for (const char *at = strchr(route->pattern, '{'); at; at = strchr(at + 1, '{')) {
            QR_CHECK(qr_path_parameter(route, (qr_str){at + 1, strcspn(at + 1, "}")}) != NULL);
        }
    }
    QR_CHECK_INT(qr_route_count, json_object_size(ids)); /* no two have one name */
}

QR_TEST(nothing_is_said_twice)
{
    QR_JSON *names = json_object();
    for (size_t i = 0; i < qr_schema_count; i++) {
        json_object_set_new(names, qr_schemas[i].name, json_true());
    }
    QR_CHECK_INT(qr_schema_count, json_object_size(names));
    QR_CHECK_INT(qr_route_count, qr_operation_count);
}

QR_TEST(a_key_against_repetition_is_offered_where_it_counts) /* HTTP-5 */
{
    for (size_t i = 0; i < qr_route_count; i++) {
        size_t count;
        const struct qr_parameter *headers = qr_header_parameters(&qr_routes[i], &count);
        const bool is_offered = count == 1 && strcmp(headers->name, "Idempotency-Key") == 0;
        const bool has_secret = qr_routes[i].fn == qr_route_keys_add || qr_routes[i].fn == qr_route_keys_rotate;
        qr_test_set_context("%s %s", qr_routes[i].method, qr_routes[i].pattern);
        QR_CHECK_INT(strcmp(qr_routes[i].method, "POST") == 0 && !has_secret, is_offered);
    }
}

/* Each $ref of the text names a schema, and each schema is named. */
QR_TEST(every_schema_is_there_and_used)
{
    static const char prefix[] = "\"#/components/schemas/";
    QR_JSON *openapi = qr_openapi_json();
    const json_t *schemas = json_object_get(json_object_get(openapi, "components"), "schemas");
    QR_JSON *used = json_object();
    char *text = json_dumps(openapi, JSON_COMPACT);
    const char *name;
    json_t *schema;
    for (const char *at = strstr(text, prefix); at; at = strstr(at + 1, prefix)) {
        char ref[64];
        snprintf(ref, sizeof ref, "%.*s", (int)strcspn(at + strlen(prefix), "\""), at + strlen(prefix));
        if (!json_object_get(schemas, ref)) {
            QR_FAIL("there is no schema %s", ref);
        }
        json_object_set_new(used, ref, json_true());
    }
    json_object_foreach((json_t *)schemas, name, schema)
    {
        if (!json_object_get(used, name)) {
            QR_FAIL("nothing uses the schema %s", name);
        }
    }
    free(text);
}

QR_TEST(the_page_names_every_route_and_needs_nothing_from_elsewhere)
{
    QR_JSON *openapi = qr_openapi_json();
    QR_CLEANUP(qr_buf_done) struct qr_buf page = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_openapi_page(openapi, &page, &err));
    for (size_t i = 0; i < qr_route_count; i++) {
        char shown[256];
        snprintf(shown, sizeof shown, "<b>%s</b> <code>%s</code>", qr_routes[i].method, qr_routes[i].pattern);
        QR_CHECK_HAS(shown, page.data);
    }
    QR_CHECK_HAS("prefers-color-scheme:dark", page.data);
    QR_CHECK(!strstr(page.data, "<script") && !strstr(page.data, "http://") && !strstr(page.data, "https://"));
}

/* There is the whole, or nothing and nothing is leaked. */
QR_TEST_WITH_TIMEOUT(the_description_survives_failures_of_memory, 300)
{
    qr_fault_memory_install();
    qr_err err;
    uint64_t n = 1;
    bool fired;
    do {
        qr_test_set_context("failing allocation no. %llu", (unsigned long long)n);
        const int64_t blocks = qr_fault_blocks();
        qr_fault_arm(QR_FAULT_MEMORY, n);
        QR_JSON *openapi = qr_openapi_json();
        struct qr_buf page = {0};
        const qr_rc rc = openapi ? qr_openapi_page(openapi, &page, &err) : QR_NOMEM;
        fired = qr_fault_fired();
        qr_fault_disarm();
        QR_CHECK_INT(fired, rc == QR_NOMEM);
        qr_buf_done(&page);
        json_decref(openapi);
        openapi = NULL;
        QR_CHECK_INT(blocks, qr_fault_blocks());
        n += 1 + n / 20; /* not each of ten thousands, but many in every part */
    } while (fired);
}
