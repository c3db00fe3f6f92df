/* All places of the phrase that the text may be at are bits of a number, which moves on with each place of the text. */
#include "search/highlight_phrases.h"

/* ---- the phrases of a query ---- */

struct reading {
    struct qr_arena *arena;
    struct qr_phrase phrase;
    qr_str text; /* of the clause */
    qr_languages languages;
    bool has_small; /* words */
};

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while searching");
}

static qr_rc add_word(void *arg, const struct qr_token *token, qr_err *err)
{
    struct reading *reading = arg;
    struct qr_phrase *phrase = &reading->phrase;
    const qr_str word = {reading->text.ptr + token->start, token->end - token->start};
    phrase->place_count += !qr_token_is_same_place(token);
    if (token->kind == QR_TOKEN_WHOLE || phrase->place_count > PHRASE_PLACES_MAX) {
        return QR_OK;
    }
    if (phrase->count == phrase->capacity) {
        const size_t capacity = phrase->capacity ? phrase->capacity * 2 : 32;
        struct phrase_word *grown = qr_arena_array(reading->arena, capacity, sizeof *grown);
        if (!grown) {
            return out_of_memory(err);
        }
        if (phrase->count) {
            memcpy(grown, phrase->words, phrase->count * sizeof *grown);
        }
        phrase->words = grown;
        phrase->capacity = capacity;
    }
    const qr_str kept = {qr_arena_copy(reading->arena, token->text), token->text.len};
    phrase->words[phrase->count++] = (struct phrase_word){kept, phrase->place_count - 1};
    reading->has_small = reading->has_small || qr_language_is_small_word(word, reading->languages);
    return kept.ptr ? QR_OK : out_of_memory(err);
}

qr_rc qr_phrases_read(struct qr_tokenizer *tokenizer, const struct qr_query *query, qr_languages languages,
                      struct qr_arena *arena, struct qr_phrase *ret_phrases, size_t *ret_count, qr_err *err)
{
    *ret_count = 0;
    for (size_t i = 0; i < query->count && *ret_count < PHRASES_MAX; i++) {
        const struct qr_clause *clause = &query->clauses[i];
        struct reading reading = {.arena = arena, .text = clause->text, .languages = languages};
        if (!clause->is_phrase || clause->is_excluded || qr_clause_is_about_item(clause)) {
            continue;
        }
        QR_TRY(qr_tokenize(tokenizer, clause->text, QR_TOKENS_OF_QUERY, languages, add_word, &reading, err));
        if (reading.has_small && reading.phrase.place_count <= PHRASE_PLACES_MAX) {
            ret_phrases[(*ret_count)++] = reading.phrase;
        }
    }
    return QR_OK;
}

/* ---- where they stand ---- */

static void mark_last(struct phrase_marking *marking, size_t places)
{
    for (size_t i = marking->place_count - places; i < marking->place_count; i++) {
        if (marking->count < QR_HIGHLIGHTS_MAX) {
            marking->ranges[marking->count++] = marking->recent[i % PHRASE_PLACES_MAX];
        }
    }
}

/* All tokens of the last place are known. */
static void end_place(struct phrase_marking *marking)
{
    for (size_t i = 0; i < marking->phrase_count; i++) {
        const size_t length = marking->phrases[i].place_count;
        marking->reached[i] = (marking->reached[i] << 1 | 1) & marking->fitting[i];
        if (marking->reached[i] >> (length - 1) & 1) {
            mark_last(marking, length);
        }
        marking->fitting[i] = 0;
    }
}

void qr_phrases_take_token(struct phrase_marking *marking, const struct qr_token *token)
{
    if (!qr_token_is_same_place(token)) {
        end_place(marking);
        marking->recent[marking->place_count++ % PHRASE_PLACES_MAX] = (struct qr_range){token->start, token->end};
    }
    for (size_t i = 0; i < marking->phrase_count; i++) {
        const struct qr_phrase *phrase = &marking->phrases[i];
        for (size_t word = 0; word < phrase->count; word++) {
            const bool fits = qr_str_equal(phrase->words[word].text, token->text);
            marking->fitting[i] |= (uint64_t)fits << phrase->words[word].place;
        }
    }
}

void qr_phrases_end(struct phrase_marking *marking)
{
    end_place(marking);
}
