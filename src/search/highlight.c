/* By the tokens: the passage is tokenized as it was for the index, so what made it a hit is what is marked. */
#include "search/highlight.h"

#include "search/highlight_phrases.h"

#include <stdlib.h>

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
}

/* ---- what is looked for ---- */

struct gathering {
    struct qr_arena *arena;
    struct qr_wanted *wanted;
    qr_str text; /* of the clause */
    qr_languages languages;
    bool skips_small; /* words */
};

static qr_rc gather(void *arg, const struct qr_token *token, qr_err *err)
{
    struct gathering *gathering = arg;
    struct qr_wanted *wanted = gathering->wanted;
    const qr_str word = {gathering->text.ptr + token->start, token->end - token->start};
    if (gathering->skips_small && qr_language_is_small_word(word, gathering->languages)) {
        return QR_OK;
    }
    if (wanted->count == wanted->capacity) {
        const size_t capacity = wanted->capacity ? wanted->capacity * 2 : 64;
        qr_str *grown = qr_arena_array(gathering->arena, capacity, sizeof *grown);
        if (!grown) {
            return out_of_memory(err);
        }
        if (wanted->count) {
            memcpy(grown, wanted->tokens, wanted->count * sizeof *grown);
        }
        wanted->tokens = grown;
        wanted->capacity = capacity;
    }
    const qr_str kept = {qr_arena_copy(gathering->arena, token->text), token->text.len};
    wanted->tokens[wanted->count] = kept;
    wanted->count += kept.ptr != NULL;
    return kept.ptr ? QR_OK : out_of_memory(err);
}

static int compare(const void *a, const void *b)
{
    return qr_str_compare(*(const qr_str *)a, *(const qr_str *)b);
}

static void sort_and_make_unique(struct qr_wanted *wanted)
{
    size_t unique = 0;
    if (wanted->count) {
        qsort(wanted->tokens, wanted->count, sizeof wanted->tokens[0], compare);
    }
    for (size_t i = 0; i < wanted->count; i++) {
        if (i == 0 || !qr_str_equal(wanted->tokens[i], wanted->tokens[unique - 1])) {
            wanted->tokens[unique++] = wanted->tokens[i];
        }
    }
    wanted->count = unique;
}

static qr_rc gather_query(struct qr_tokenizer *tokenizer, const struct qr_query *query, bool skips_small,
                          qr_languages languages, struct qr_arena *arena, struct qr_wanted *wanted, qr_err *err)
{
    *wanted = (struct qr_wanted){0};
    struct gathering gathering = {arena, wanted, .languages = languages, .skips_small = skips_small};
    for (size_t i = 0; i < query->count; i++) {
        const struct qr_clause *clause = &query->clauses[i];
        gathering.text = clause->text;
        if (!clause->is_excluded && !qr_clause_is_about_item(clause)) {
            QR_TRY(qr_tokenize(tokenizer, clause->text, QR_TOKENS_OF_QUERY, languages, gather, &gathering, err));
        }
    }
    sort_and_make_unique(wanted);
    return QR_OK;
}

qr_rc qr_wanted_read(struct qr_tokenizer *tokenizer, const struct qr_query *query, qr_languages languages,
                     struct qr_arena *arena, struct qr_wanted *ret_wanted, qr_err *err)
{
    struct qr_wanted marks;
    QR_TRY(gather_query(tokenizer, query, false, languages, arena, ret_wanted, err));
    QR_TRY(gather_query(tokenizer, query, true, languages, arena, &marks, err));
    const struct qr_wanted *marked = marks.count ? &marks : ret_wanted;
    ret_wanted->marks = marked->tokens;
    ret_wanted->mark_count = marked->count;
    ret_wanted->phrases = qr_arena_array(arena, PHRASES_MAX, sizeof *ret_wanted->phrases);
    if (!ret_wanted->phrases) {
        return out_of_memory(err);
    }
    return qr_phrases_read(tokenizer, query, languages, arena, ret_wanted->phrases, &ret_wanted->phrase_count, err);
}

/* ---- where it stands ---- */

struct marking {
    const struct qr_wanted *wanted;
    struct qr_range ranges[QR_HIGHLIGHTS_MAX];
    size_t count;
    struct phrase_marking phrases;
};

/* What touches the range before is one with it: the characters of a word of two pairs overlap. */
static void add_range(struct qr_range *ranges, size_t *count, const struct qr_range *range)
{
    struct qr_range *last = *count ? &ranges[*count - 1] : NULL;
    if (last && range->start <= last->end) {
        last->start = QR_MIN(last->start, range->start);
        last->end = QR_MAX(last->end, range->end);
    } else if (*count < QR_HIGHLIGHTS_MAX) {
        ranges[(*count)++] = *range;
    }
}

static qr_rc mark(void *arg, const struct qr_token *token, qr_err *err QR_UNUSED)
{
    struct marking *marking = arg;
    if (marking->phrases.phrase_count) {
        qr_phrases_take_token(&marking->phrases, token);
    }
    if (bsearch(&token->text, marking->wanted->marks, marking->wanted->mark_count, sizeof token->text, compare)) {
        add_range(marking->ranges, &marking->count, &(struct qr_range){token->start, token->end});
    }
    return QR_OK;
}

static int compare_ranges(const void *a_ptr, const void *b_ptr)
{
    const struct qr_range *a = a_ptr, *b = b_ptr;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Both in the order of the text; `ret_ranges` has room for all. */
static size_t join(const struct marking *marking, struct qr_range *ret_ranges)
{
    const size_t all = marking->count + marking->phrases.count;
    size_t count = 0;
    memcpy(ret_ranges, marking->ranges, marking->count * sizeof *ret_ranges);
    memcpy(ret_ranges + marking->count, marking->phrases.ranges, marking->phrases.count * sizeof *ret_ranges);
    if (marking->phrases.count == 0) {
        return all;
    }
    qsort(ret_ranges, all, sizeof *ret_ranges, compare_ranges);
    for (size_t i = 0; i < all; i++) {
        const struct qr_range range = ret_ranges[i]; /* what is written stands before what is read */
        add_range(ret_ranges, &count, &range);
    }
    return count;
}

qr_rc qr_highlight(struct qr_tokenizer *tokenizer, qr_str text, const struct qr_wanted *wanted, struct qr_arena *arena,
                   struct qr_range **ret_ranges, size_t *ret_count, qr_err *err)
{
    struct marking marking = {.wanted = wanted,
                              .phrases = {.phrases = wanted->phrases, .phrase_count = wanted->phrase_count}};
    if (wanted->mark_count) {
        const qr_languages language = QR_BIT(qr_language_detect(text));
        QR_TRY(qr_tokenize(tokenizer, text, QR_TOKENS_OF_DOCUMENT, language, mark, &marking, err));
        qr_phrases_end(&marking.phrases);
    }
    *ret_ranges = qr_arena_array(arena, marking.count + marking.phrases.count + 1, sizeof **ret_ranges);
    if (!*ret_ranges) {
        return out_of_memory(err);
    }
    *ret_count = join(&marking, *ret_ranges);
    return QR_OK;
}
