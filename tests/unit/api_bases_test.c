/* Bases through quire_call. */
#include "support/api_fixture.h"

QR_TEST(a_base_is_found_by_its_id_and_by_its_name) /* THING-1 */
{
    struct quire *quire = api_open(t);
    QR_JSON *made = api_call(quire, "POST", "/api/v1/bases", "{\"name\":\"my notes\"}", 201);
    char path[128];
    snprintf(path, sizeof path, "/api/v1/bases/%s", api_text(made, "id"));
    api_check(quire, "GET", path, NULL, 200,
              "\"name\":\"my notes\",\"status\":\"ready\",\"error\":null,\"settings\":{}");
    api_check(quire, "GET", "/api/v1/bases/my%20notes", NULL, 200, api_text(made, "id"));
    api_check(quire, "GET", "/api/v1/bases/my", NULL, 404, "there is no base my");
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"my notes\"}", 409, "\"already_exists\"");
    api_check(quire, "GET", "/api/v1/bases", NULL, 200, "\"next_cursor\":null");
    quire_close(quire);
}

QR_TEST(a_base_with_a_bad_name_or_bad_settings_is_not_made)
{
    struct quire *quire = api_open(t);
    static const char *const bodies[] = {"{}",
                                         "{\"name\":\"\"}",
                                         "{\"name\":3}",
                                         "{\"name\":\"a/b\"}",
                                         "{\"name\":\"a\\nb\"}",
                                         "{\"name\":\"01a1e0df-174f-7000-8a52-d0d839cb8816\"}",
                                         "{\"name\":\"a\",\"settings\":[]}",
                                         "{\"name\":\"a\",\"settings\":{\"chunking\":{\"size_tokens\":-1}}}"};
    for (size_t i = 0; i < QR_COUNT(bodies); i++) {
        api_check(quire, "POST", "/api/v1/bases", bodies[i], 422, "\"invalid_value\"");
    }
    api_check(quire, "POST", "/api/v1/bases", "{\"name\":\"a\",\"settings\":{\"chunkin\":{}}}", 400, "did you mean");
    api_check(quire, "GET", "/api/v1/bases", NULL, 200, "{\"data\":[],");
    quire_close(quire);
}

QR_TEST(settings_are_merged_under_the_version_that_was_read)
{
    struct quire *quire = api_open_base(t);
    api_check(quire, "PATCH", API_BASE, "{\"settings\":{\"chunking\":{\"size_tokens\":300}}}", 200, "\"version\":2");
    api_check(quire, "PATCH", API_BASE, "{\"settings\":{\"chunking\":{\"overlap_tokens\":10}}}", 200,
              "\"settings\":{\"chunking\":{\"size_tokens\":300,\"overlap_tokens\":10}},\"version\":3");
    api_check(quire, "PATCH", API_BASE, "{\"settings\":{\"chunking\":null},\"version\":3}", 200, "\"settings\":{}");
    api_check(quire, "PATCH", API_BASE, "{\"name\":\"c\",\"version\":3}", 409, "\"version_conflict\"");
    api_check(quire, "PATCH", API_BASE, "{\"settings\":{\"chunking\":{\"size_tokens\":\"x\"}}}", 422, "size_tokens");
    api_check(quire, "PATCH", API_BASE, "{\"name\":\"c\"}", 200, "\"name\":\"c\"");
    api_check(quire, "GET", API_BASE, NULL, 404, "\"not_found\"");
    quire_close(quire);
}

QR_TEST(a_base_that_is_not_empty_is_deleted_only_when_confirmed) /* API_BASE-1 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE];
    api_add_note(quire, "n", "text", id);
    api_check(quire, "DELETE", API_BASE, NULL, 409, "\"not_empty\"");
    api_check(quire, "DELETE", API_BASE "?confirm=maybe", NULL, 422, "confirm");
    api_check(quire, "DELETE", API_BASE "?confirm=true", NULL, 202, "\"job_id\":\"");
    api_check(quire, "GET", API_BASE, NULL, 404, "\"not_found\"");
    api_check(quire, "GET", API_ITEMS, NULL, 404, "\"not_found\"");
    api_check(quire, "POST", API_BASE "/search", "{\"query\":\"text\"}", 404, "\"not_found\"");
    api_check(quire, "POST", API_BASE "/restore", NULL, 404, "\"not_found\""); /* REQ-5 */
    quire_close(quire);
}

QR_TEST(only_a_failed_base_is_restored) /* API_BASE-2 */
{
    struct quire *quire = api_open_base(t);
    api_check(quire, "POST", API_BASE "/restore", NULL, 409, "\"not_failed\"");
    quire_close(quire);
}

QR_TEST(a_base_shows_its_models_and_what_another_one_would_cost) /* MODEL-1, MODEL-4 */
{
    struct quire *quire = api_open_base(t);
    static const char hash[] = "{\"settings\":{\"embedding\":{\"provider\":\"hash\",\"model\":\"m\"}}}";
    api_check(quire, "GET", API_BASE, NULL, 200,
              "\"models\":{\"live\":{\"provider\":\"none\"},\"wanted\":{\"provider\":\"none\"},\"previous\":null,"
              "\"failed_chunks\":0},\"model_build\":null");
    json_decref(api_call(quire, "POST", API_BASE "/items",
                         "{\"items\":[{\"type\":\"note\",\"name\":\"n\",\"content\":\"words\"}]}", 202));
    api_check(quire, "PATCH", API_BASE, hash, 200,
              "\"model_build\":{\"status\":\"queued\",\"done\":0,\"total\":0,\"from\":{\"provider\":\"none\"},\"to\":{"
              "\"provider\":\"hash\",\"model\":\"m\"},\"error\":null}");
    api_check(quire, "GET", "/api/v1/bases", NULL, 200, "\"status\":\"queued\"");
    api_check(quire, "PATCH", API_BASE, "{\"settings\":{\"embedding\":null}}", 200, "\"model_build\":null");
    api_check(quire, "PATCH", API_BASE, "{\"dry_run\":true,\"settings\":{\"embedding\":{\"provider\":\"hash\"}}}", 200,
              "{\"dry_run\":true,\"estimate\":{\"chunks\":0,\"to_embed\":0,\"cached\":0,\"tokens\":0,\"is_sampled\":"
              "false,\"seconds\":0}}");
    api_check(quire, "GET", API_BASE, NULL, 200, "\"settings\":{}"); /* it changes nothing */
    quire_close(quire);
}
