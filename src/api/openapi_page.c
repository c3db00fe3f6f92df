/* GET /docs: the description of the API for people. One page of HTML that asks nothing of anybody: no script, no font, no
 * picture. Everything in it is of our own tables; it is escaped all the same. */
#include "api/openapi.h"

#include <ctype.h>

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Quire API</title>\n<style>\n"
    ":root{color-scheme:light "
    "dark;--text:#1c1e21;--soft:#5c6470;--back:#fff;--box:#f5f6f8;--line:#dfe3e8;--mark:#0b5cad}\n"
    "@media(prefers-color-scheme:dark){:root{--text:#e6e8eb;--soft:#9aa3ae;--back:#15181c;--box:#1e2227;--line:#31373f;"
    "--mark:#6cb2ff}}\n"
    "body{margin:0 auto;max-width:60rem;padding:1rem 1.25rem 4rem;background:var(--back);color:var(--text);"
    "font:16px/1.5 system-ui,sans-serif}\n"
    "h1{margin-bottom:0}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}a{color:var(--mark)}\n"
    "code{font:.9em ui-monospace,monospace;overflow-wrap:anywhere}.soft{color:var(--soft)}\n"
    "details{background:var(--box);border:1px solid var(--line);border-radius:.4rem;margin:.5rem 0;padding:.4rem "
    ".8rem}\n"
    "summary{cursor:pointer}summary b{display:inline-block;min-width:4.2rem;color:var(--mark)}\n"
    "h3{font-size:.95rem;margin:.8rem 0 .2rem}h4{margin:1.4rem 0 .2rem}nav a{margin-right:.8rem}\n"
    "table{border-collapse:collapse;width:100%}td{border-top:1px solid var(--line);padding:.2rem .6rem .2rem 0;"
    "vertical-align:top}\n</style></head><body>\n";

static void add_escaped(struct qr_buf *out, const char *text)
{
    for (; text && *text; text++) {
        switch (*text) {
        case '<':
            qr_buf_add_text(out, "&lt;");
            break;
        case '>':
            qr_buf_add_text(out, "&gt;");
            break;
        case '&':
            qr_buf_add_text(out, "&amp;");
            break;
        case '"':
            qr_buf_add_text(out, "&quot;");
            break;
        default:
            qr_buf_add_char(out, *text);
        }
    }
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* ---- types ---- */

static void add_type(struct qr_buf *out, const json_t *schema);

static void add_choices(struct qr_buf *out, const json_t *choices)
{
    const json_t *choice;
    size_t i;
    json_array_foreach(choices, i, choice)
    {
        qr_buf_add_text(out, i ? " or " : "");
        add_type(out, choice);
    }
}

static void add_words(struct qr_buf *out, const json_t *words)
{
    const json_t *word;
    size_t i;
    json_array_foreach(words, i, word)
    {
        qr_buf_add_text(out, i ? " or " : "");
        if (json_is_null(word)) {
            qr_buf_add_text(out, "null");
        } else {
            qr_buf_add_text(out, "<code>&quot;");
            add_escaped(out, json_string_value(word));
            qr_buf_add_text(out, "&quot;</code>");
        }
    }
}

static void add_bounds(struct qr_buf *out, const json_t *schema)
{
    static const struct {
        const char *min, *max, *unit;
    } kinds[] = {
        {"minimum", "maximum", ""}, {"minLength", "maxLength", " characters"}, {"minItems", "maxItems", " entries"}};
    for (size_t i = 0; i < QR_COUNT(kinds); i++) {
        const json_t *min = json_object_get(schema, kinds[i].min), *max = json_object_get(schema, kinds[i].max);
        if (min) {
            qr_buf_printf(out, ", from %lld", (long long)json_integer_value(min));
        }
        if (max) {
            qr_buf_printf(out, "%s to %lld", min ? "" : ", up", (long long)json_integer_value(max));
        }
        qr_buf_add_text(out, min || max ? kinds[i].unit : "");
    }
}

/* One type, or several of which one is null. */
static void add_plain(struct qr_buf *out, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *items = json_object_get(schema, "items");
    const json_t *values = json_object_get(schema, "additionalProperties");
    const char *name = json_string_value(json_is_array(type) ? json_array_get(type, 0) : type);
    const char *format = text_of(schema, "format");
    if (items) {
        qr_buf_add_text(out, "list of ");
        add_type(out, items);
    } else if (json_is_object(values)) {
        qr_buf_add_text(out, "object of ");
        add_type(out, values);
    } else {
        add_escaped(out, format[0] ? format : name ? name : "anything");
    }
    add_bounds(out, schema);
    qr_buf_add_text(out, json_is_array(type) ? " or null" : "");
}

static void add_type(struct qr_buf *out, const json_t *schema)
{
    const char *ref = strrchr(text_of(schema, "$ref"), '/');
    if (ref) {
        qr_buf_printf(out, "<a href=\"#%s\">%s</a>", ref + 1, ref + 1);
    } else if (json_object_get(schema, "anyOf")) {
        add_choices(out, json_object_get(schema, "anyOf"));
    } else if (json_object_get(schema, "enum")) {
        add_words(out, json_object_get(schema, "enum"));
    } else {
        add_plain(out, schema);
    }
}

/* ---- operations ---- */

static void add_row(struct qr_buf *out, const char *name, const char *note, const json_t *schema, const char *doc)
{
    qr_buf_add_text(out, "<tr><td><code>");
    add_escaped(out, name);
    qr_buf_printf(out, "</code> <span class=\"soft\">%s</span><td>", note);
    add_type(out, schema);
    qr_buf_add_text(out, "<td>");
    add_escaped(out, doc);
    qr_buf_add_text(out, "\n");
}

static void add_parameters(struct qr_buf *out, const json_t *operation)
{
    const json_t *list = json_object_get(operation, "parameters"), *parameter;
    size_t i;
    if (json_array_size(list) == 0) {
        return;
    }
    qr_buf_add_text(out, "<h3>Parameters</h3><table>\n");
    json_array_foreach(list, i, parameter)
    {
        add_row(out, text_of(parameter, "name"), text_of(parameter, "in"), json_object_get(parameter, "schema"),
                text_of(parameter, "description"));
    }
    qr_buf_add_text(out, "</table>\n");
}

static void add_content(struct qr_buf *out, const json_t *content)
{
    const char *media_type;
    json_t *media;
    size_t count = 0;
    json_object_foreach((json_t *)content, media_type, media)
    {
        const json_t *schema = json_object_get(media, "schema");
        qr_buf_add_text(out, count++ ? ", or " : "");
        if (strcmp(media_type, "application/json") == 0) {
            add_type(out, schema);
        } else {
            qr_buf_add_text(out, "<code>");
            add_escaped(out, media_type);
            qr_buf_add_text(out, "</code>");
        }
    }
}

static void add_response(struct qr_buf *out, const char *status, const json_t *response)
{
    const json_t *codes = json_object_get(response, "x-quire-codes"), *code;
    size_t i;
    qr_buf_printf(out, "<tr><td><code>%s</code><td>", status);
    add_content(out, json_object_get(response, "content"));
    qr_buf_add_text(out, "<td>");
    json_array_foreach(codes, i, code)
    {
        qr_buf_printf(out, "%s<code>%s</code>", i ? ", " : "", json_string_value(code));
    }
    qr_buf_add_text(out, "\n");
}

static void add_operation(struct qr_buf *out, const char *path, const char *method, const json_t *operation)
{
    const char *status;
    json_t *response;
    qr_buf_printf(out, "<details id=\"%s\"><summary><b>", text_of(operation, "operationId"));
    for (; *method; method++) {
        qr_buf_add_char(out, (char)toupper((unsigned char)*method));
    }
    qr_buf_add_text(out, "</b> <code>");
    add_escaped(out, path);
    qr_buf_add_text(out, "</code> <span class=\"soft\">");
    add_escaped(out, text_of(operation, "summary"));
    qr_buf_add_text(out, "</span></summary>\n<p>");
    add_escaped(out, text_of(operation, "description"));
    qr_buf_add_text(out, "\n");
    add_parameters(out, operation);
    if (json_object_get(operation, "requestBody")) {
        qr_buf_add_text(out, "<h3>Body</h3><p>");
        add_content(out, json_object_get(json_object_get(operation, "requestBody"), "content"));
        qr_buf_add_text(out, "\n");
    }
    qr_buf_add_text(out, "<h3>Answers</h3><table>\n");
    json_object_foreach(json_object_get(operation, "responses"), status, response)
    {
        add_response(out, status, response);
    }
    qr_buf_add_text(out, "</table></details>\n");
}

static void add_tag(struct qr_buf *out, const json_t *paths, const char *tag)
{
    const char *path, *method;
    json_t *methods, *operation;
    qr_buf_printf(out, "<h2 id=\"tag-%s\">%s</h2>\n", tag, tag);
    json_object_foreach((json_t *)paths, path, methods)
    {
        json_object_foreach(methods, method, operation)
        {
            if (strcmp(json_string_value(json_array_get(json_object_get(operation, "tags"), 0)), tag) == 0) {
                add_operation(out, path, method, operation);
            }
        }
    }
}

/* ---- schemas ---- */

static bool is_in(const json_t *list, const char *name)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        if (strcmp(json_string_value(entry), name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_schema(struct qr_buf *out, const char *name, const json_t *schema)
{
    const char *field;
    json_t *type;
    qr_buf_printf(out, "<h4 id=\"%s\">%s</h4>\n<p>", name, name);
    add_escaped(out, text_of(schema, "description"));
    qr_buf_add_text(out, "\n");
    if (!json_object_get(schema, "properties")) {
        qr_buf_add_text(out, "<p>");
        add_type(out, schema);
        qr_buf_add_text(out, "\n");
        return;
    }
    qr_buf_add_text(out, "<table>\n");
    json_object_foreach(json_object_get(schema, "properties"), field, type)
    {
        add_row(out, field, is_in(json_object_get(schema, "required"), field) ? "" : "optional", type, "");
    }
    qr_buf_add_text(out, "</table>\n");
}

/* ---- the whole ---- */

qr_rc qr_openapi_page(const json_t *openapi, struct qr_buf *out, qr_err *err)
{
    static const char *const tags[] = {"Bases", "Items", "Search", "Runs",   "Events",
                                       "Jobs",  "Keys",  "Models", "Server", "Compatible"};
    const json_t *info = json_object_get(openapi, "info");
    const char *name;
    json_t *schema;
    qr_buf_add_text(out, head);
    qr_buf_printf(out,
                  "<h1>%s API</h1>\n<p class=\"soft\">Version %s · <a href=\"/openapi.json\">openapi.json</a>\n<p>",
                  text_of(info, "title"), text_of(info, "version"));
    add_escaped(out, text_of(info, "description"));
    qr_buf_add_text(out, "\n<nav>");
    for (size_t i = 0; i < QR_COUNT(tags); i++) {
        qr_buf_printf(out, "<a href=\"#tag-%s\">%s</a>", tags[i], tags[i]);
    }
    qr_buf_add_text(out, "<a href=\"#schemas\">Schemas</a></nav>\n");
    for (size_t i = 0; i < QR_COUNT(tags); i++) {
        add_tag(out, json_object_get(openapi, "paths"), tags[i]);
    }
    qr_buf_add_text(out, "<h2 id=\"schemas\">Schemas</h2>\n");
    json_object_foreach(json_object_get(json_object_get(openapi, "components"), "schemas"), name, schema)
    {
        add_schema(out, name, schema);
    }
    qr_buf_add_text(out, "</body></html>\n");
    return qr_buf_check(out, err);
}
