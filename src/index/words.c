/* Writes the tokens of a typed query down in the language of a database. */
#include "index/words.h"

#include "index/tokenizer.h"

_Static_assert(QR_WORDS_OTHER_FORM == INDEX_OTHER_WORD, "both write the forms of a word in the same way");

/* A token and its other forms, "run|running", is a group. */
struct groups {
    struct qr_buf text; /* one behind the other */
    size_t ends[QR_WORDS_MAX];
    size_t count;
    bool is_phrase;
    bool leaves_out; /* the forms that come next */
    bool is_full;    /* there would have been more */
    size_t count_max;
};

static qr_str group_at(const struct groups *groups, size_t i)
{
    const size_t start = i ? groups->ends[i - 1] : 0;
    return (qr_str){qr_buf_str(&groups->text).ptr + start, groups->ends[i] - start};
}

/* Any order: once is enough. */
static void drop_repeated(struct groups *groups)
{
    for (size_t i = 0; !groups->is_phrase && i + 1 < groups->count; i++) {
        if (qr_str_equal(group_at(groups, i), group_at(groups, groups->count - 1))) {
            groups->count--;
            groups->text.len = groups->count ? groups->ends[groups->count - 1] : 0;
            return;
        }
    }
}

static qr_rc collect(void *arg, const struct qr_token *token, qr_err *err)
{
    struct groups *groups = arg;
    if (token->kind == QR_TOKEN_FORM) {
        if (groups->leaves_out) {
            return QR_OK;
        }
        qr_buf_add_char(&groups->text, INDEX_OTHER_WORD);
    } else {
        drop_repeated(groups);
        groups->leaves_out = token->kind == QR_TOKEN_WHOLE && groups->is_phrase;
        if (groups->leaves_out) {
            return QR_OK;
        }
        groups->is_full = groups->count == groups->count_max;
        if (groups->is_full) {
            return QR_CANCELLED; /* no error: enough */
        }
        groups->count++;
    }
    qr_buf_add(&groups->text, token->text);
    groups->ends[groups->count - 1] = groups->text.len;
    return qr_buf_check(&groups->text, err);
}

/* ---- the dialects ---- */

/* What begins with one or two letters would be a large part of all words. */
static bool is_prefix(const struct qr_words_options *options, qr_str group)
{
    enum { PREFIX_LETTERS_MIN = 3 };
    size_t letters = 0;
    for (size_t i = 0; i < group.len && group.ptr[i] != INDEX_OTHER_WORD; i++) {
        letters += ((unsigned char)group.ptr[i] & 0xc0) != 0x80;
    }
    return options->is_prefix && letters >= PREFIX_LETTERS_MIN;
}

static void add_for_fts5(struct qr_buf *out, const struct groups *groups, const struct qr_words_options *options)
{
    for (size_t i = 0; i < groups->count; i++) {
        const bool is_inside = groups->is_phrase && i > 0;
        qr_buf_add_text(out, is_inside ? " " : i > 0 ? " OR \"" : "\"");
        qr_buf_add(out, group_at(groups, i));
        qr_buf_add_text(out, groups->is_phrase && i + 1 < groups->count ? ""
                             : is_prefix(options, group_at(groups, i))  ? "\" *"
                                                                        : "\"");
    }
}

void qr_words_lexeme(struct qr_buf *out, qr_str token)
{
    qr_buf_add_char(out, '\'');
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] == '\'' || token.ptr[i] == '\\') {
            qr_buf_add_char(out, token.ptr[i]);
        }
        qr_buf_add_char(out, token.ptr[i]);
    }
    qr_buf_add_char(out, '\'');
}

static void add_group_for_tsquery(struct qr_buf *out, qr_str group, const struct qr_words_options *options)
{
    const bool with_star = is_prefix(options, group);
    qr_buf_add_char(out, '(');
    for (bool is_first = true; group.len; is_first = false) {
        qr_buf_add_text(out, is_first ? "" : " | ");
        qr_words_lexeme(out, qr_str_split(&group, INDEX_OTHER_WORD));
        qr_buf_add_text(out, with_star || options->weight ? ":" : "");
        qr_buf_add_text(out, with_star ? "*" : "");
        qr_buf_add(out, (qr_str){&options->weight, options->weight != 0});
    }
    qr_buf_add_char(out, ')');
}

static void add_for_tsquery(struct qr_buf *out, const struct groups *groups, const struct qr_words_options *options)
{
    for (size_t i = 0; i < groups->count; i++) {
        qr_buf_add_text(out, i == 0 ? "" : groups->is_phrase ? " <-> " : " | ");
        add_group_for_tsquery(out, group_at(groups, i), options);
    }
}

void qr_words_write(struct qr_buf *out, qr_str word, enum qr_words_dialect dialect)
{
    if (dialect == QR_WORDS_FTS5) {
        qr_buf_add_char(out, '"');
        qr_buf_add(out, word);
        qr_buf_add_char(out, '"');
    } else {
        add_group_for_tsquery(out, word, &(struct qr_words_options){.dialect = dialect});
    }
}

/* ---- words ---- */

/* Adds the groups of the text to those there are. */
static qr_rc add_groups(struct groups *groups, qr_str typed, const struct qr_words_options *options, qr_err *err)
{
    const qr_rc rc =
        qr_tokenize(options->tokenizer, typed, QR_TOKENS_OF_QUERY, options->languages, collect, groups, err);
    if (rc != QR_OK && !groups->is_full) {
        return rc;
    }
    drop_repeated(groups);
    return QR_OK;
}

static void write_groups(struct qr_buf *out, const struct groups *groups, const struct qr_words_options *options)
{
    if (options->dialect == QR_WORDS_FTS5) {
        add_for_fts5(out, groups, options);
    } else {
        add_for_tsquery(out, groups, options);
    }
}

/* *left: so many words may be written, and are then left. */
static qr_rc write_words(struct qr_buf *out, qr_str typed, bool is_phrase, const struct qr_words_options *options,
                         size_t *left, qr_err *err)
{
    struct groups groups = {.is_phrase = is_phrase, .count_max = *left};
    const qr_rc rc = add_groups(&groups, typed, options, err);
    if (rc == QR_OK) {
        write_groups(out, &groups, options);
    }
    *left -= groups.count;
    qr_buf_done(&groups.text);
    return rc == QR_OK ? qr_buf_check(out, err) : rc;
}

qr_rc qr_words_any(struct qr_buf *out, qr_str typed, const struct qr_words_options *options, qr_err *err)
{
    size_t left = QR_WORDS_MAX;
    return write_words(out, typed, false, options, &left, err);
}

qr_rc qr_words_phrase(struct qr_buf *out, qr_str typed, const struct qr_words_options *options, qr_err *err)
{
    size_t left = QR_WORDS_MAX;
    return write_words(out, typed, true, options, &left, err);
}

/* ---- queries ---- */

static const struct signs {
    const char *both, *either, *without;
} signs[] = {
    [QR_WORDS_FTS5] = {" AND ", " OR ", " NOT "},
    [QR_WORDS_TSQUERY] = {" & ", " | ", " & !"},
};

/* The parts of a query: what must occur and what must not are expressions in parentheses, joined by their sign. */
struct parts {
    struct qr_buf required, excluded, one;
    struct groups optional;
    size_t left;  /* words that may still be written */
    bool was_cut; /* there were more */
};

static void parts_done(struct parts *parts)
{
    qr_buf_done(&parts->required);
    qr_buf_done(&parts->optional.text);
    qr_buf_done(&parts->excluded);
    qr_buf_done(&parts->one);
}

static bool is_optional(const struct qr_text_query *query, const struct qr_clause *clause)
{
    return !clause->is_excluded && (query->is_relaxed || !qr_clause_is_required(clause));
}

/* In which column the words must stand, in the words of the database. */
static void name_column(struct qr_buf *out, enum qr_query_field field, struct qr_words_options *options)
{
    if (options->dialect == QR_WORDS_TSQUERY) {
        options->weight = field == QR_FIELD_TITLE ? 'A' : field == QR_FIELD_HEADING ? 'B' : 0;
    } else if (field != QR_FIELD_ANY) {
        qr_buf_add_text(out, field == QR_FIELD_TITLE ? "title : (" : "heading : (");
    }
}

/* Of one that must occur, or must not. */
static qr_rc add_clause(struct parts *parts, const struct qr_clause *clause, const struct qr_words_options *options,
                        qr_err *err)
{
    const struct signs *sign = &signs[options->dialect];
    struct qr_words_options own = *options;
    struct qr_buf *part = clause->is_excluded ? &parts->excluded : &parts->required;
    qr_buf_clear(&parts->one);
    name_column(&parts->one, clause->field, &own);
    const size_t before = parts->one.len;
    parts->was_cut = parts->was_cut || parts->left == 0;
    QR_TRY(write_words(&parts->one, clause->text, clause->is_phrase, &own, &parts->left, err));
    if (parts->one.len == before) {
        return QR_OK; /* no word in it */
    }
    qr_buf_add_text(&parts->one, before ? ")" : "");
    qr_buf_printf(part, "%s(%s)",
                  part->len == 0        ? ""
                  : clause->is_excluded ? sign->either
                                        : sign->both,
                  parts->one.data);
    return qr_buf_check(part, err);
}

/* What must occur and what must not comes first: a long query loses words that may occur, and nothing else. */
static qr_rc read_parts(struct parts *parts, const struct qr_text_query *query, const struct qr_words_options *options,
                        qr_err *err)
{
    for (size_t i = 0; i < query->count; i++) {
        const struct qr_clause *clause = &query->clauses[i];
        if (!qr_clause_is_about_item(clause) && !is_optional(query, clause)) {
            QR_TRY(add_clause(parts, clause, options, err));
        }
    }
    parts->optional.count_max = parts->left;
    for (size_t i = 0; i < query->count && !parts->optional.is_full; i++) {
        const struct qr_clause *clause = &query->clauses[i];
        if (!qr_clause_is_about_item(clause) && is_optional(query, clause)) {
            QR_TRY(add_groups(&parts->optional, clause->text, options, err));
        }
    }
    parts->was_cut = parts->was_cut || parts->optional.is_full;
    return QR_OK;
}

/* Words that say nothing, where others do. */
static bool is_left_out(const struct parts *parts, size_t i, const struct qr_words_options *options)
{
    return options->leaves_out && options->leaves_out(options->arg, group_at(&parts->optional, i));
}

static qr_rc leave_out(struct parts *parts, const struct qr_words_options *options, bool *ret_left_out, qr_err *err)
{
    struct groups kept = {.count_max = QR_WORDS_MAX};
    for (size_t i = 0; i < parts->optional.count; i++) {
        if (!is_left_out(parts, i, options)) {
            qr_buf_add(&kept.text, group_at(&parts->optional, i));
            kept.ends[kept.count++] = kept.text.len;
        }
    }
    const qr_rc rc = qr_buf_check(&kept.text, err);
    *ret_left_out = kept.count < parts->optional.count && (kept.count > 0 || parts->required.len > 0);
    if (*ret_left_out && rc == QR_OK) {
        const struct qr_buf all = parts->optional.text;
        parts->optional = kept;
        kept.text = all;
    }
    qr_buf_done(&kept.text);
    return rc;
}

/* What may occur need not: (must) AND ((must) OR may). */
static qr_rc join_parts(struct qr_buf *out, const struct parts *parts, const struct qr_words_options *options,
                        qr_err *err)
{
    const struct signs *sign = &signs[options->dialect];
    struct qr_words_options own = *options;
    const bool has_excluded = parts->excluded.len > 0, has_both = parts->required.len && parts->optional.count;
    if (parts->required.len == 0 && parts->optional.count == 0) {
        return QR_OK;
    }
    own.weight = 0;
    qr_buf_add_text(out, has_excluded ? "(" : "");
    qr_buf_add(out, qr_buf_str(&parts->required));
    if (has_both) {
        qr_buf_printf(out, "%s((%s)%s", sign->both, parts->required.data, sign->either);
    }
    write_groups(out, &parts->optional, &own);
    qr_buf_add_text(out, has_both ? ")" : "");
    if (has_excluded) {
        qr_buf_printf(out, ")%s(%s)", sign->without, parts->excluded.data);
    }
    return qr_buf_check(out, err);
}

qr_rc qr_words_query(struct qr_buf *out, struct qr_text_query *query, const struct qr_words_options *options,
                     qr_err *err)
{
    QR_CLEANUP(parts_done) struct parts parts = {.left = QR_WORDS_MAX};
    struct qr_words_options own = *options;
    own.is_prefix = query->is_relaxed;
    QR_TRY(read_parts(&parts, query, options, err));
    if (options->leaves_out) {
        QR_TRY(leave_out(&parts, options, &query->left_out, err));
    }
    query->was_cut = parts.was_cut;
    return join_parts(out, &parts, &own, err);
}

qr_rc qr_words_conditions(struct qr_buf *out_required, struct qr_buf *out_excluded, const struct qr_text_query *query,
                          const struct qr_words_options *options, qr_err *err)
{
    QR_CLEANUP(parts_done) struct parts parts = {.left = QR_WORDS_MAX};
    QR_TRY(read_parts(&parts, query, options, err));
    qr_buf_add(out_required, qr_buf_str(&parts.required));
    qr_buf_add(out_excluded, qr_buf_str(&parts.excluded));
    QR_TRY(qr_buf_check(out_required, err));
    return qr_buf_check(out_excluded, err);
}

qr_rc qr_words_list(struct qr_text_query *query, const struct qr_words_options *options, struct qr_arena *arena,
                    qr_str ret_words[static QR_WORDS_MAX], size_t *ret_count, qr_err *err)
{
    QR_CLEANUP(parts_done) struct parts parts = {.left = 0};
    struct groups *groups = &parts.optional;
    groups->count_max = QR_WORDS_MAX;
    for (size_t i = 0; i < query->count && !groups->is_full; i++) {
        const struct qr_clause *clause = &query->clauses[i];
        if (!qr_clause_is_about_item(clause) && !clause->is_excluded) {
            QR_TRY(add_groups(groups, clause->text, options, err));
        }
    }
    const char *text = qr_arena_copy(arena, qr_buf_str(&groups->text));
    if (!text) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a query");
    }
    for (size_t i = 0; i < groups->count; i++) {
        const size_t start = i ? groups->ends[i - 1] : 0;
        ret_words[i] = (qr_str){text + start, groups->ends[i] - start};
    }
    *ret_count = groups->count;
    query->was_cut = groups->is_full;
    return QR_OK;
}

bool qr_words_are_alternatives(const struct qr_text_query *query)
{
    for (size_t i = 0; i < query->count; i++) {
        const struct qr_clause *clause = &query->clauses[i];
        if (!qr_clause_is_about_item(clause) && !is_optional(query, clause)) {
            return false;
        }
    }
    return !query->is_relaxed; /* then beginnings of words fit, too */
}
