/* Models with a name, through quire_call. */
#include "support/api_fixture.h"

#define MODELS "/api/v1/models"
#define SMALL  "{\"name\":\"small\",\"embedding\":{\"provider\":\"hash\",\"model\":\"s\",\"dimensions\":16}}"

QR_TEST(a_model_has_a_name_and_is_given_to_a_base_whole)
{
    struct quire *quire = api_open_base(t);
    api_check(quire, "GET", MODELS, NULL, 200, "{\"data\":[],\"next_cursor\":null}");
    api_check(quire, "POST", MODELS, SMALL, 201, "\"used_by\":[]");
    api_check(quire, "POST", MODELS, SMALL, 409, "\"already_exists\"");
    api_check(quire, "PATCH", API_BASE,
              "{\"settings\":{\"embedding\":{\"provider\":\"hash\",\"document_prefix\":\"passage: \"}}}", 200,
              "passage");
    api_check(quire, "PATCH", API_BASE, "{\"model\":\"small\",\"dry_run\":true}", 200, "\"estimate\":{");
    api_check(quire, "GET", API_BASE, NULL, 200, "passage"); /* nothing was changed */
    api_check(quire, "PATCH", API_BASE, "{\"model\":\"small\"}", 200,
              "\"settings\":{\"embedding\":{\"provider\":\"hash\",\"model\":\"s\",\"dimensions\":16}}");
    api_check(quire, "GET", MODELS, NULL, 200, "\"used_by\":[\"b\"]");
    quire_close(quire);
}

QR_TEST(a_model_is_not_forgotten_while_a_base_uses_it)
{
    struct quire *quire = api_open_base(t);
    json_decref(api_call(quire, "POST", MODELS, SMALL, 201));
    json_decref(api_call(quire, "PATCH", API_BASE, "{\"model\":\"small\"}", 200));
    api_check(quire, "DELETE", MODELS "/small", NULL, 409, "the base b uses the model small");
    api_check(quire, "DELETE", MODELS "/small", NULL, 409, "\"in_use\"");
    /* with other limits it is the same model; with another length of vectors it is not */
    json_decref(api_call(quire, "PATCH", API_BASE, "{\"settings\":{\"embedding\":{\"limits\":{\"inputs\":7}}}}", 200));
    api_check(quire, "DELETE", MODELS "/small", NULL, 409, "\"in_use\"");
    json_decref(api_call(quire, "PATCH", API_BASE, "{\"settings\":{\"embedding\":{\"dimensions\":32}}}", 200));
    api_check(quire, "DELETE", MODELS "/small", NULL, 200, "{\"name\":\"small\"}");
    api_check(quire, "DELETE", MODELS "/small", NULL, 404, "\"not_found\"");
    quire_close(quire);
}

QR_TEST(what_is_no_model_is_refused_by_the_field)
{
    struct quire *quire = api_open_base(t);
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"{}", "name is missing"},
        {"{\"name\":\"a\"}", "embedding is missing"},
        {"{\"name\":\"a/b\",\"embedding\":{\"provider\":\"hash\"}}", "no slash"},
        {"{\"name\":\"a\",\"embedding\":{}}", "embedding.provider must be given"},
        {"{\"name\":\"a\",\"embedding\":{\"provider\":\"openai\"}}", "embedding.model must be given"},
        {"{\"name\":\"a\",\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"url\":\"http://h:99999\"}}",
         "embedding.url must be"},
        {"{\"name\":\"a\",\"embedding\":{\"provider\":\"openai\",\"model\":\"m\",\"api_key_env\":\"sk-123\"}}",
         "embedding.api_key_env must be the name"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        api_check(quire, "POST", MODELS, cases[i].body, 422, cases[i].says);
    }
    api_check(quire, "POST", MODELS, "{\"name\":\"a\",\"embedding\":{\"key\":1}}", 400, "\"unknown_field\"");
    api_check(quire, "PATCH", API_BASE, "{\"model\":\"none of that name\"}", 404, "there is no model");
    quire_close(quire);
}
