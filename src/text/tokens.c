/* Goes through a text from left to right and gives its tokens. Memory does not grow with the text.
 *
 * T1  Tokens start in order, on boundaries of characters and inside the text; none is longer than QR_TOKEN_BYTES_MAX or
 *     empty.
 * T2  What a word becomes depends on the word alone, never on what stands around it: so the query for a word, or for a piece
 *     of text without spaces, finds it. */
#include "text/tokens.h"

#include "base/hash.h"
#include "base/mem.h"
#include "text/compound.h"
#include "text/fold.h"
#include "text/stem.h"

#include <stdio.h>

enum {
    FORMS_MAX = 2 * QR_LANGUAGE_COUNT,
    UNIT_BYTES_MAX = 64,  /* of a character with its marks */
    WORD_BYTES_MAX = 192, /* what is longer is no word: it is known by its beginning and a hash */
    LONG_BEGINNING_BYTES = QR_TOKEN_BYTES_MAX - 2 * QR_HASH_BYTES - 1,
    CJK_UNITS = 2,      /* of a gram */
    UNSPACED_UNITS = 3, /* a character says less there */
    UNITS_MAX = 3,
};

struct qr_tokenizer {
    struct stems stems;
};

/* One call of qr_tokenize. */
struct scan {
    struct qr_tokenizer *tokenizer;
    qr_str text;
    bool is_query;
    bool has_place;                       /* a token of the current word was given: others can be at its place */
    qr_languages by_script[SCRIPT_COUNT]; /* whose stemmers words go through */
    qr_token_fn *fn;
    void *arg;
    qr_err *err;
    struct {
        size_t start, named, end;
        bool is_due; /* its first word comes next */
    } url;           /* the last one */
};

/* A piece of the text that becomes one token, in one or more forms. */
struct piece {
    qr_str source; /* mostly the text from start to end */
    size_t start, end;
    bool is_ascii;
    bool is_word; /* letters only: has stems */
    enum qr_token_kind kind;
};

static qr_str slice(qr_str text, size_t start, size_t end)
{
    return (qr_str){text.ptr + start, end - start};
}

static qr_rc give(struct scan *scan, const struct piece *piece, qr_str text, enum qr_token_kind kind)
{
    const struct qr_token token = {
        .text = text,
        .start = piece->start,
        .end = piece->end,
        .kind = scan->has_place ? kind : QR_TOKEN_NEW,
    };
    scan->has_place = true;
    return scan->fn(scan->arg, &token, scan->err);
}

/* ---- folding ---- */

/* Compatible forms may bring in signs: ⑴ is "(1)". What may be in a token stays, in lower case. */
static size_t clean(char *text, size_t len)
{
    size_t out = 0;
    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        const bool is_upper = c >= 'A' && c <= 'Z';
        if ((unsigned char)c >= 0x80 || is_upper || (c >= 'a' && c <= 'z') || (c >= '+' && c <= ':' && c != ',') ||
            c == '@' || c == '#') {
            text[out++] = is_upper ? (char)(c | 0x20) : c;
        }
    }
    return out;
}

/* What stands for a text that is too long for a token: `beginning`, cut, and a hash of all of it. */
static size_t shorten(qr_str beginning, qr_str all, char *out)
{
    unsigned char hash[QR_HASH_BYTES];
    qr_hash_128(all, hash);
    size_t len = qr_utf8_prefix(beginning, LONG_BEGINNING_BYTES).len;
    memmove(out, beginning.ptr, len);
    out[len++] = '~';
    for (size_t i = 0; i < QR_HASH_BYTES; i++) {
        len += (size_t)sprintf(out + len, "%02x", hash[i]);
    }
    return len;
}

static size_t fold(qr_str source, bool is_ascii, char out[static FOLDED_BYTES_MAX])
{
    const qr_str head = qr_utf8_prefix(source, WORD_BYTES_MAX);
    size_t len = 0;
    if (is_ascii) {
        for (; len < head.len; len++) {
            out[len] = (char)(head.ptr[len] >= 'A' && head.ptr[len] <= 'Z' ? head.ptr[len] | 0x20 : head.ptr[len]);
        }
    } else {
        len = clean(out, qr_fold_word(head, out, FOLDED_BYTES_MAX));
    }
    if (head.len < source.len) {
        return shorten((qr_str){out, len}, source, out);
    }
    return len > QR_TOKEN_BYTES_MAX ? shorten((qr_str){out, len}, (qr_str){out, len}, out) : len;
}

/* ---- forms of a word ---- */

struct forms {
    char texts[FORMS_MAX][QR_TOKEN_BYTES_MAX];
    size_t lens[FORMS_MAX];
    size_t count;
};

static void add_form(struct forms *forms, qr_str stem, enum qr_language language)
{
    const char mark = qr_stem_mark(language);
    char *out = forms->texts[forms->count];
    size_t len = qr_utf8_prefix(stem, QR_TOKEN_BYTES_MAX - 1).len;
    memcpy(out, stem.ptr, len);
    if (mark) {
        out[len++] = mark;
    }
    for (size_t i = 0; i < forms->count; i++) {
        if (forms->lens[i] == len && memcmp(forms->texts[i], out, len) == 0) {
            return;
        }
    }
    if (len > 0) {
        forms->lens[forms->count++] = len;
    }
}

/* In lower case with its accents, which stemmers go by; Turkish has its own lower case of I. 0 = as folded. */
static size_t accented(const struct piece *piece, enum qr_language language, qr_str folded, char *out)
{
    char turkish[2 * WORD_BYTES_MAX];
    qr_str source = piece->source;
    if (language == QR_LANGUAGE_TURKISH) {
        size_t len = 0;
        for (size_t i = 0; i < source.len; i++) {
            if (source.ptr[i] == 'I') {
                memcpy(turkish + len, "ı", 2);
                len += 2;
            } else {
                turkish[len++] = source.ptr[i];
            }
        }
        source = (qr_str){turkish, qr_utf8_prefix((qr_str){turkish, len}, FOLD_SOURCE_BYTES_MAX).len};
    } else if (piece->is_ascii) {
        return 0;
    }
    const size_t len = qr_fold_case(source, out, FOLDED_BYTES_MAX);
    return qr_str_equal((qr_str){out, len}, folded) ? 0 : len;
}

/* With accents and without: who types them finds who did not, and the other way round. */
static qr_rc add_stems(struct scan *scan, const struct piece *piece, qr_str folded, enum qr_language language,
                       struct forms *forms)
{
    char text[FOLDED_BYTES_MAX];
    qr_str stem;
    const size_t len = accented(piece, language, folded, text);
    if (len > 0) {
        QR_TRY(qr_stem(&scan->tokenizer->stems, language, (qr_str){text, len}, &stem, scan->err));
        stem = qr_utf8_prefix(stem, WORD_BYTES_MAX);
        add_form(forms, (qr_str){text, clean(text, qr_fold_word(stem, text, sizeof text))}, language);
    }
    QR_TRY(qr_stem(&scan->tokenizer->stems, language, folded, &stem, scan->err));
    add_form(forms, stem, language);
    return QR_OK;
}

static qr_rc give_forms(struct scan *scan, const struct piece *piece, qr_str folded, qr_languages languages)
{
    struct forms forms;
    forms.count = 0;
    for (; languages; languages &= languages - 1) {
        QR_TRY(add_stems(scan, piece, folded, (enum qr_language)__builtin_ctz(languages), &forms));
    }
    for (size_t i = 0; i < forms.count; i++) {
        QR_TRY(give(scan, piece, (qr_str){forms.texts[i], forms.lens[i]}, i == 0 ? piece->kind : QR_TOKEN_FORM));
    }
    return QR_OK;
}

static qr_rc give_piece(struct scan *scan, const struct piece *piece)
{
    char folded[FOLDED_BYTES_MAX];
    const size_t len = fold(piece->source, piece->is_ascii, folded);
    if (len == 0) {
        return QR_OK;
    }
    const enum script script = piece->is_ascii ? SCRIPT_LATIN : qr_script_of(qr_rune_at(piece->source).code);
    if (!piece->is_word || script == SCRIPT_NONE || piece->source.len > WORD_BYTES_MAX || len >= QR_TOKEN_BYTES_MAX) {
        return give(scan, piece, (qr_str){folded, len}, piece->kind);
    }
    return give_forms(scan, piece, (qr_str){folded, len}, scan->by_script[script]);
}

/* ---- words ---- */

/* All parts with what stays between them, as one. */
static qr_rc give_whole(struct scan *scan, const struct compound *compound)
{
    char joined[WORD_BYTES_MAX];
    size_t len = 0;
    const size_t start = compound->parts[0].start, end = compound->end;
    struct piece piece = {
        .source = slice(scan->text, start, end),
        .start = start,
        .end = end,
        .is_ascii = compound->is_ascii,
        .is_word = !compound->has_digit && !*compound->suffix,
        .kind = QR_TOKEN_WHOLE,
    };
    if (piece.source.len <= WORD_BYTES_MAX) {
        for (size_t i = 0; i < compound->count; i++) {
            const struct compound_part *part = &compound->parts[i];
            if (part->joiner) {
                joined[len++] = part->joiner;
                piece.is_word = false;
            }
            memcpy(joined + len, scan->text.ptr + part->start, part->end - part->start);
            len += part->end - part->start;
        }
        memcpy(joined + len, compound->suffix, strlen(compound->suffix));
        piece.source = (qr_str){joined, len + strlen(compound->suffix)};
    }
    return give_piece(scan, &piece);
}

static qr_rc give_url(struct scan *scan)
{
    const struct piece piece = {
        .source = slice(scan->text, scan->url.named, scan->url.end),
        .start = scan->url.start,
        .end = scan->url.end,
        .is_ascii = true,
        .kind = QR_TOKEN_WHOLE,
    };
    scan->url.is_due = false;
    return give_piece(scan, &piece);
}

static qr_rc give_compound(struct scan *scan, size_t at, size_t *ret_next)
{
    struct compound compound;
    qr_compound_read(scan->text, at, &compound);
    *ret_next = compound.next;
    scan->has_place = false;
    for (size_t i = 0; i < compound.count; i++) {
        const struct compound_part *part = &compound.parts[i];
        const struct piece piece = {
            .source = slice(scan->text, part->start, part->end),
            .start = part->start,
            .end = part->end,
            .is_ascii = compound.is_ascii,
            .is_word = !part->has_digit,
            .kind = QR_TOKEN_NEW,
        };
        QR_TRY(give_piece(scan, &piece));
        if (i == 0 && (compound.count > 1 || *compound.suffix)) {
            QR_TRY(give_whole(scan, &compound));
        }
        if (i == 0 && scan->url.is_due) {
            QR_TRY(give_url(scan));
        }
    }
    return QR_OK;
}

/* The end of a word of ASCII letters that stands alone, as most do; 0 = it must be looked at more closely. */
static size_t plain_word_end(qr_str text, size_t at)
{
    size_t end = at + 1;
    while (end < text.len && text.ptr[end] >= 'a' && text.ptr[end] <= 'z') {
        end++;
    }
    if (end == text.len) {
        return end;
    }
    const char c = text.ptr[end];
    if (c == ' ' || c == '\n' || c == ')' || c == ';') {
        return end;
    }
    const bool is_before_space = end + 1 == text.len || text.ptr[end + 1] == ' ' || text.ptr[end + 1] == '\n';
    return (c == '.' || c == ',' || c == ':') && is_before_space ? end : 0;
}

static qr_rc give_plain_word(struct scan *scan, size_t at, size_t end)
{
    const struct piece piece = {
        .source = slice(scan->text, at, end),
        .start = at,
        .end = end,
        .is_ascii = true,
        .is_word = true,
        .kind = QR_TOKEN_NEW,
    };
    scan->has_place = false;
    return give_piece(scan, &piece);
}

static qr_rc give_word(struct scan *scan, size_t at, size_t *ret_next)
{
    const size_t plain_end = (unsigned char)scan->text.ptr[at] >= 'A' && (unsigned char)scan->text.ptr[at] <= 'z'
                                 ? plain_word_end(scan->text, at)
                                 : 0;
    if (plain_end) {
        *ret_next = plain_end;
        return give_plain_word(scan, at, plain_end);
    }
    if (at >= scan->url.end) {
        const size_t end = qr_url_end(scan->text, at, &scan->url.named);
        scan->url.start = at;
        scan->url.end = QR_MAX(end, scan->url.end);
        scan->url.is_due = end > 0;
    }
    return give_compound(scan, at, ret_next);
}

/* .NET, which begins with its sign. */
static bool is_dot_net(qr_str text, size_t at)
{
    static const char NET[] = "net";
    for (size_t i = 0; i < 3; i++) {
        if (at + 1 + i >= text.len || (text.ptr[at + 1 + i] | 0x20) != NET[i]) {
            return false;
        }
    }
    const size_t end = at + 4;
    const enum qr_rune_class behind = qr_rune_at(slice(text, QR_MIN(end, text.len), text.len)).class;
    return text.ptr[at] == '.' && (behind < QR_RUNE_LOWER || behind > QR_RUNE_DIGIT);
}

static qr_rc give_dot_net(struct scan *scan, size_t at)
{
    QR_TRY(give_plain_word(scan, at + 1, at + 4));
    const struct piece whole = {.start = at + 1, .end = at + 4};
    return give(scan, &whole, QR_STR(".net"), QR_TOKEN_WHOLE);
}

/* ---- text without spaces ---- */

/* The end of the unit that begins at `at`: a character with its marks; `at` itself when it is of another class. */
static size_t unit_end(qr_str text, size_t at, enum qr_rune_class class)
{
    const qr_str rest = qr_utf8_prefix(slice(text, at, text.len), UNIT_BYTES_MAX);
    struct qr_rune rune = qr_rune_at(rest);
    if (rune.class != class || rune.len == 0) {
        return at;
    }
    if (class == QR_RUNE_UNSPACED) {
        return at + qr_grapheme_len(rest);
    }
    size_t len = rune.len;
    while ((rune = qr_rune_at(slice(rest, len, rest.len))).class == QR_RUNE_MARK || rune.class == QR_RUNE_IGNORED) {
        len += rune.len;
    }
    return at + len;
}

static qr_rc give_gram(struct scan *scan, size_t start, size_t end, enum qr_token_kind kind)
{
    char folded[FOLDED_BYTES_MAX];
    const struct piece piece = {.start = start, .end = end};
    const size_t len = fold(slice(scan->text, start, end), false, folded);
    return len ? give(scan, &piece, (qr_str){folded, len}, kind) : QR_OK;
}

/* A window of `size` units goes over the text. A document has at each place what begins there, longest first. */
static qr_rc give_grams(struct scan *scan, size_t at, enum qr_rune_class class, size_t size, size_t *ret_next)
{
    size_t bounds[UNITS_MAX + 1] = {at};
    size_t count = 0;
    bool is_first = true;
    for (;;) {
        size_t end;
        while (count < size && (end = unit_end(scan->text, bounds[count], class)) > bounds[count]) {
            bounds[++count] = end;
        }
        if (count == 0 || (scan->is_query && count < size && !is_first)) {
            break;
        }
        scan->has_place = false;
        for (size_t units = count; units > 0 && !(scan->is_query && units < count); units--) {
            QR_TRY(give_gram(scan, bounds[0], bounds[units], units == count ? QR_TOKEN_NEW : QR_TOKEN_WHOLE));
        }
        is_first = false;
        memmove(bounds, bounds + 1, count * sizeof *bounds);
        count--;
    }
    *ret_next = bounds[count];
    return QR_OK;
}

/* ---- the text ---- */

static qr_rc scan_text(struct scan *scan)
{
    const qr_str text = scan->text;
    for (size_t at = 0; at < text.len;) {
        const struct qr_rune rune = qr_rune_at(slice(text, at, text.len));
        switch (rune.class) {
        case QR_RUNE_LOWER:
        case QR_RUNE_UPPER:
        case QR_RUNE_LETTER:
        case QR_RUNE_DIGIT:
            QR_TRY(give_word(scan, at, &at));
            break;
        case QR_RUNE_CJK:
            QR_TRY(give_grams(scan, at, rune.class, CJK_UNITS, &at));
            break;
        case QR_RUNE_UNSPACED:
            QR_TRY(give_grams(scan, at, rune.class, UNSPACED_UNITS, &at));
            break;
        default:
            if (rune.code == '.' && is_dot_net(text, at)) {
                QR_TRY(give_dot_net(scan, at));
                at += 4;
            } else {
                at += rune.len;
            }
        }
    }
    return QR_OK;
}

qr_rc qr_tokenizer_create(struct qr_tokenizer **ret_tokenizer, qr_err *err)
{
    struct qr_tokenizer *tokenizer = qr_alloc_zero(sizeof *tokenizer);
    if (!tokenizer) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a tokenizer");
    }
    *ret_tokenizer = tokenizer;
    return QR_OK;
}

void qr_tokenizer_free(struct qr_tokenizer *tokenizer)
{
    if (tokenizer) {
        qr_stems_done(&tokenizer->stems);
        qr_free(tokenizer);
    }
}

qr_rc qr_tokenize(struct qr_tokenizer *tokenizer, qr_str text, enum qr_token_use use, qr_languages languages,
                  qr_token_fn *fn, void *arg, qr_err *err)
{
    struct scan scan = {
        .tokenizer = tokenizer,
        .text = text,
        .is_query = use == QR_TOKENS_OF_QUERY,
        .fn = fn,
        .arg = arg,
        .err = err,
    };
    for (enum script script = SCRIPT_NONE + 1; script < SCRIPT_COUNT; script++) {
        scan.by_script[script] = qr_stem_languages(script, languages, scan.is_query);
    }
    tokenizer->stems.remembers = !scan.is_query;
    return scan_text(&scan);
}
