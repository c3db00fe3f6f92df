/* Translates the project's SQL for PostgreSQL, in one pass over the text; db/sql.h says what into what. Pure. */
#include "db/sql.h"

struct translation {
    struct qr_buf *out;
    qr_str rest;
    qr_str last_word;
    bool in_statement;  /* its first word was seen */
    bool in_definition; /* it began with CREATE or ALTER: type words are translated */
    bool in_live_comment;
};

static const struct {
    const char *ours, *postgres;
} TYPE_WORDS[] = {
    {"INTEGER", "BIGINT"}, {"REAL", "DOUBLE PRECISION"}, {"BLOB", "BYTEA"}, {"TEXT", "TEXT COLLATE \"C\""},
    {"STRICT", ""},
};

static bool is_word(qr_str text, const char *word)
{
    return qr_str_equal_any_case(text, qr_str_of(word));
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static qr_str take(struct translation *t, size_t len)
{
    const qr_str taken = {t->rest.ptr, QR_MIN(len, t->rest.len)};
    t->rest = (qr_str){t->rest.ptr + taken.len, t->rest.len - taken.len};
    return taken;
}

static void copy(struct translation *t, size_t len)
{
    qr_buf_add(t->out, take(t, len));
}

/* Up to and with `end`, or to the end of the text. A quote that is written twice ends one string and begins another:
 * the same for a copy. */
static void copy_through(struct translation *t, size_t start_len, qr_str end)
{
    const char *found =
        t->rest.len > start_len ? memmem(t->rest.ptr + start_len, t->rest.len - start_len, end.ptr, end.len) : NULL;
    copy(t, found ? (size_t)(found - t->rest.ptr) + end.len : t->rest.len);
}

static void translate_word(struct translation *t)
{
    size_t len = 0;
    while (len < t->rest.len && is_word_char(t->rest.ptr[len])) {
        len++;
    }
    const qr_str word = take(t, len);
    const qr_str before = t->last_word;
    t->last_word = word;
    if (!t->in_statement) {
        t->in_statement = true;
        t->in_definition = is_word(word, "CREATE") || is_word(word, "ALTER");
    }
    for (size_t i = 0; t->in_definition && i < QR_COUNT(TYPE_WORDS); i++) {
        /* in capitals only: `text TEXT` is a column called text; and CAST(x AS TEXT) takes no collation */
        if (qr_str_equal(word, qr_str_of(TYPE_WORDS[i].ours)) && !(is_word(word, "TEXT") && is_word(before, "AS"))) {
            qr_buf_add_text(t->out, TYPE_WORDS[i].postgres);
            return;
        }
    }
    qr_buf_add(t->out, word);
}

static void translate_next(struct translation *t)
{
    const char c = t->rest.ptr[0];
    const qr_str live_comment = QR_STR("/*pg ");
    if (c == '\'') {
        copy_through(t, 1, QR_STR("'"));
    } else if (c == '"') {
        copy_through(t, 1, QR_STR("\""));
    } else if (qr_str_starts_with(t->rest, QR_STR("--"))) {
        copy_through(t, 2, QR_STR("\n"));
    } else if (qr_str_starts_with(t->rest, live_comment)) {
        t->in_live_comment = true;
        take(t, live_comment.len);
    } else if (t->in_live_comment && qr_str_starts_with(t->rest, QR_STR("*/"))) {
        t->in_live_comment = false;
        take(t, 2);
    } else if (qr_str_starts_with(t->rest, QR_STR("/*"))) {
        copy_through(t, 2, QR_STR("*/"));
    } else if (c == '?' && t->rest.len > 1 && is_digit(t->rest.ptr[1])) {
        take(t, 1);
        qr_buf_add_char(t->out, '$');
    } else if (is_word_char(c)) {
        translate_word(t);
    } else {
        if (c == ';') {
            t->in_statement = t->in_definition = false;
        }
        copy(t, 1);
    }
}

void qr_sql_for_postgres(struct qr_buf *out, const char *sql)
{
    struct translation t = {.out = out, .rest = qr_str_of(sql)};
    while (t.rest.len) {
        translate_next(&t);
    }
}
