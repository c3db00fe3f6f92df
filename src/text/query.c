/* From left to right, one clause at a time; nothing is looked at twice but the search for a closing quote. */
#include "text/query.h"

#include "text/unicode.h"

enum { QUOTE_KINDS = 6 };

struct reader {
    qr_str rest;
    bool has_no_close[QUOTE_KINDS]; /* in the rest: it is not looked for again and again */
};

static void skip(struct reader *reader, size_t len)
{
    reader->rest = (qr_str){reader->rest.ptr + len, reader->rest.len - len};
}

static void skip_spaces(struct reader *reader)
{
    for (;;) {
        const struct qr_rune rune = qr_rune_at(reader->rest);
        if (rune.len == 0 || rune.class != QR_RUNE_SPACE) {
            return;
        }
        skip(reader, rune.len);
    }
}

/* ---- quotes ---- */

static const struct quotes {
    qr_str open, close;
} quotes[QUOTE_KINDS] = {
    {QR_STR("\""), QR_STR("\"")}, {QR_STR("“"), QR_STR("”")},   {QR_STR("„"), QR_STR("“")},
    {QR_STR("«"), QR_STR("»")},   {QR_STR("「"), QR_STR("」")}, {QR_STR("『"), QR_STR("』")},
};

/* The text between the quotes that the rest begins with; it is taken with them. Empty: there are none. */
static qr_str take_quoted(struct reader *reader)
{
    for (size_t i = 0; i < QUOTE_KINDS; i++) {
        const qr_str open = quotes[i].open, close = quotes[i].close;
        if (!qr_str_starts_with(reader->rest, open) || reader->has_no_close[i]) {
            continue;
        }
        const char *end = memmem(reader->rest.ptr + open.len, reader->rest.len - open.len, close.ptr, close.len);
        if (end) {
            const qr_str text = {reader->rest.ptr + open.len, (size_t)(end - reader->rest.ptr) - open.len};
            skip(reader, open.len + text.len + close.len);
            return text;
        }
        reader->has_no_close[i] = true;
    }
    return (qr_str){0};
}

static bool begins_with_quote(qr_str text)
{
    for (size_t i = 0; i < QUOTE_KINDS; i++) {
        if (qr_str_starts_with(text, quotes[i].open)) {
            return true;
        }
    }
    return false;
}

/* ---- words and fields ---- */

static qr_str take_word(struct reader *reader)
{
    qr_str word = {reader->rest.ptr, 0};
    for (;;) {
        const struct qr_rune rune = qr_rune_at(reader->rest);
        if (rune.len == 0 || rune.class == QR_RUNE_SPACE) {
            return word;
        }
        word.len += rune.len;
        skip(reader, rune.len);
    }
}

/* title: and the like, when something follows it. */
static enum qr_query_field take_field(struct reader *reader)
{
    static const struct {
        qr_str name;
        enum qr_query_field field;
    } fields[] = {
        {QR_STR("title:"), QR_FIELD_TITLE},
        {QR_STR("heading:"), QR_FIELD_HEADING},
        {QR_STR("path:"), QR_FIELD_PATH},
        {QR_STR("type:"), QR_FIELD_TYPE},
    };
    for (size_t i = 0; i < QR_COUNT(fields); i++) {
        const qr_str name = fields[i].name;
        const qr_str behind = {reader->rest.ptr + name.len, reader->rest.len - QR_MIN(name.len, reader->rest.len)};
        if (qr_str_starts_with(reader->rest, name) && behind.len && qr_rune_at(behind).class != QR_RUNE_SPACE) {
            skip(reader, name.len);
            return fields[i].field;
        }
    }
    return QR_FIELD_ANY;
}

static bool take_minus(struct reader *reader)
{
    if (!qr_str_starts_with(reader->rest, QR_STR("-")) || reader->rest.len == 1) {
        return false;
    }
    const qr_str behind = {reader->rest.ptr + 1, reader->rest.len - 1};
    const enum qr_rune_class class = qr_rune_at(behind).class;
    if (class == QR_RUNE_SPACE || (class == QR_RUNE_OTHER && !begins_with_quote(behind))) {
        return false; /* a dash, --flag, -> */
    }
    skip(reader, 1);
    return true;
}

/* False: there is no more. */
static bool take_clause(struct reader *reader, struct qr_clause *ret_clause)
{
    skip_spaces(reader);
    if (reader->rest.len == 0) {
        return false;
    }
    *ret_clause = (struct qr_clause){.is_excluded = take_minus(reader)};
    ret_clause->field = take_field(reader);
    const size_t before = reader->rest.len;
    ret_clause->text = begins_with_quote(reader->rest) ? take_quoted(reader) : (qr_str){0};
    ret_clause->is_phrase = reader->rest.len < before;
    if (!ret_clause->is_phrase) {
        ret_clause->text = take_word(reader);
    }
    return true;
}

qr_rc qr_query_parse(qr_str typed, struct qr_arena *arena, struct qr_query *ret_query, qr_err *err)
{
    struct reader reader = {.rest = typed};
    struct qr_clause clause;
    *ret_query = (struct qr_query){.clauses = qr_arena_array(arena, QR_QUERY_CLAUSES_MAX, sizeof clause)};
    if (!ret_query->clauses) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a query");
    }
    while (take_clause(&reader, &clause)) {
        if (clause.text.len == 0) {
            continue; /* "" */
        }
        if (ret_query->count == QR_QUERY_CLAUSES_MAX) {
            ret_query->was_cut = true;
            return QR_OK;
        }
        ret_query->clauses[ret_query->count++] = clause;
    }
    return QR_OK;
}
