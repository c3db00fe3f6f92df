/* Finds the parts of words. A run is letters and digits with nothing between them; it parts where case or digits change
 * (getHTTPResponse2: get HTTP Response 2). Runs are joined by a sign
 * between them that people and programs use to make one name of several words. */
#include "text/compound.h"

enum {
    RUN_PARTS_MAX = 8,         /* names have fewer; base64 has more */
    RUN_DIGIT_CHANGES_MAX = 3, /* hexadecimal has more */
};

static qr_str rest_from(qr_str text, size_t from)
{
    return from < text.len ? (qr_str){text.ptr + from, text.len - from} : (qr_str){"", 0};
}

static struct qr_rune rune_at(qr_str text, size_t at)
{
    return qr_rune_at(rest_from(text, at));
}

static bool is_word(enum qr_rune_class class)
{
    return class >= QR_RUNE_LOWER && class <= QR_RUNE_DIGIT;
}

static bool is_joined(enum qr_rune_class class)
{
    return class == QR_RUNE_MARK || class == QR_RUNE_IGNORED;
}

/* ---- one run ---- */

struct run {
    size_t cuts[RUN_PARTS_MAX]; /* where further parts begin */
    size_t cut_count, digit_changes;
    size_t end;
    bool is_ascii, has_digit;
    bool is_plural; /* RNAs, URLs: the s is no part of it */
};

static void cut(struct run *run, size_t at)
{
    if (run->cut_count < RUN_PARTS_MAX) {
        run->cuts[run->cut_count] = at;
    }
    run->cut_count++;
}

static struct run read_run(qr_str text, size_t at)
{
    struct run run = {.is_ascii = true};
    enum qr_rune_class before_last = QR_RUNE_OTHER, last = QR_RUNE_OTHER;
    size_t last_start = at;
    for (struct qr_rune rune; (rune = rune_at(text, at)).len; at += rune.len) {
        run.is_ascii = run.is_ascii && rune.code < 0x80;
        if (is_joined(rune.class)) {
            continue;
        }
        if (!is_word(rune.class)) {
            break;
        }
        const bool is_digit = rune.class == QR_RUNE_DIGIT;
        run.has_digit = run.has_digit || is_digit;
        if (last != QR_RUNE_OTHER && is_digit != (last == QR_RUNE_DIGIT)) {
            run.digit_changes++;
            cut(&run, at);
        } else if (last == QR_RUNE_LOWER && rune.class == QR_RUNE_UPPER) {
            cut(&run, at);
        } else if (before_last == QR_RUNE_UPPER && last == QR_RUNE_UPPER && rune.class == QR_RUNE_LOWER) {
            run.is_plural = rune.code == 's' && !is_word(rune_at(text, at + 1).class);
            if (!run.is_plural) {
                cut(&run, last_start);
            }
        }
        before_last = last;
        last = rune.class;
        last_start = at;
    }
    run.end = at;
    if (run.cut_count >= RUN_PARTS_MAX || run.digit_changes > RUN_DIGIT_CHANGES_MAX) {
        run.cut_count = 0;
    }
    return run;
}

/* ---- joined runs ---- */

/* The sign at `at` that makes one of the runs around it. */
struct sign {
    size_t len;  /* 0 = none */
    char joiner; /* what it is in the whole; '\0' = nothing */
};

static bool is_letter_at(qr_str text, size_t at)
{
    const enum qr_rune_class class = rune_at(text, at).class;
    return is_word(class) && class != QR_RUNE_DIGIT;
}

static size_t apostrophe_len(qr_str text)
{
    return qr_str_starts_with(text, QR_STR("'")) ? 1 : qr_str_starts_with(text, QR_STR("’")) ? 3 : 0;
}

static size_t hyphen_len(qr_str text)
{
    return text.len && text.ptr[0] == '-'                                                        ? 1
           : qr_str_starts_with(text, QR_STR("‐")) || qr_str_starts_with(text, QR_STR("\u2011")) ? 3
                                                                                                 : 0;
}

static size_t count_underscores(qr_str text)
{
    size_t count = 0;
    while (count < text.len && text.ptr[count] == '_') {
        count++;
    }
    return count;
}

static struct sign sign_at(qr_str text, size_t at, bool is_behind_digit)
{
    const qr_str rest = rest_from(text, at);
    if (rest.len < 2) {
        return (struct sign){0};
    }
    const char c = rest.ptr[0];
    size_t len = 0;
    if (c == '.' || c == '&' || c == '@' || ((c == ',' || c == ':' || c == '/') && is_behind_digit)) {
        len = 1;
    } else if (c == '_') {
        len = count_underscores(rest);
    } else if (c == '-' || c == '\xE2') {
        len = hyphen_len(rest);
    }
    if (len == 0) {
        len = apostrophe_len(rest);
        return len && !is_behind_digit && is_letter_at(text, at + len) ? (struct sign){len, '\0'} : (struct sign){0};
    }
    const enum qr_rune_class next = rune_at(text, at + len).class;
    const bool is_between_digits = is_behind_digit && next == QR_RUNE_DIGIT;
    if (!is_word(next) || ((c == ',' || c == ':' || c == '/') && !is_between_digits)) {
        return (struct sign){0};
    }
    const bool stays = c == '@' || (is_between_digits && c != ',');
    return (struct sign){len, stays ? (c == '\xE2' ? '-' : c) : '\0'};
}

/* 's and nothing behind it: no part of the word. */
static bool is_possessive(qr_str text, size_t at)
{
    const size_t len = apostrophe_len(rest_from(text, at));
    const uint32_t code = rune_at(text, at + len).code;
    return len && (code == 's' || code == 'S') && !is_word(rune_at(text, at + len + 1).class);
}

/* False when there was no room for all of it. */
static bool add_run(struct compound *compound, qr_str text, size_t start, const struct run *run, char joiner)
{
    if (compound->count + run->cut_count + 1 > COMPOUND_PARTS_MAX) {
        return false;
    }
    for (size_t i = 0; i <= run->cut_count; i++) {
        const size_t from = i == 0 ? start : run->cuts[i - 1];
        compound->parts[compound->count++] = (struct compound_part){
            .start = from,
            .end = i < run->cut_count ? run->cuts[i] : run->end - run->is_plural,
            .joiner = i == 0 ? joiner : '\0',
            .has_digit = run->cut_count ? rune_at(text, from).class == QR_RUNE_DIGIT : run->has_digit,
        };
    }
    compound->end = run->end;
    compound->is_ascii = compound->is_ascii && run->is_ascii;
    compound->has_digit = compound->has_digit || run->has_digit;
    return true;
}

/* C++, g++, C#, F#. */
static const char *suffix_at(qr_str text, size_t at, bool is_single_letter)
{
    const qr_str rest = rest_from(text, at);
    const char *suffix = qr_str_starts_with(rest, QR_STR("++"))                      ? "++"
                         : is_single_letter && qr_str_starts_with(rest, QR_STR("#")) ? "#"
                                                                                     : "";
    const struct qr_rune behind = rune_at(text, at + strlen(suffix));
    return is_word(behind.class) || behind.code == '+' || behind.code == '#' ? "" : suffix;
}

void qr_compound_read(qr_str text, size_t at, struct compound *ret)
{
    ret->count = 0;
    ret->is_ascii = true;
    ret->has_digit = false;
    ret->suffix = "";
    struct sign sign = {0};
    size_t start = at;
    do {
        start = start + sign.len;
        const struct run run = read_run(text, start);
        if (!add_run(ret, text, start, &run, sign.joiner) || is_possessive(text, run.end)) {
            break;
        }
        start = run.end;
        sign = sign_at(text, start, rune_at(text, run.end - 1).class == QR_RUNE_DIGIT);
    } while (sign.len);
    ret->next = ret->end;
    if (is_possessive(text, ret->end)) {
        ret->next += apostrophe_len(rest_from(text, ret->end)) + 1;
    } else if (ret->count == 1 && ret->end < text.len && (text.ptr[ret->end] == '+' || text.ptr[ret->end] == '#')) {
        ret->suffix = suffix_at(text, ret->end, ret->end - at == 1);
        ret->next += strlen(ret->suffix);
        ret->end = ret->next;
    }
}

/* ---- URLs ---- */

static bool is_url_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~:/?#@!$&()*+,;=%[]", c));
}

static bool starts_with_www(qr_str text)
{
    return text.len >= 4 && (text.ptr[0] | 0x20) == 'w' && (text.ptr[1] | 0x20) == 'w' && (text.ptr[2] | 0x20) == 'w' &&
           text.ptr[3] == '.';
}

size_t qr_url_end(qr_str text, size_t at, size_t *ret_named)
{
    enum { SCHEME_BYTES_MAX = 12 };
    const qr_str rest = rest_from(text, at);
    size_t named = 0;
    while (named < QR_MIN(rest.len, SCHEME_BYTES_MAX) && rest.ptr[named] >= 'A' && rest.ptr[named] != '_') {
        named++;
    }
    named = qr_str_starts_with(rest_from(rest, named), QR_STR("://")) ? named + 3 : 0;
    if (starts_with_www(rest_from(rest, named))) {
        named += 4;
    }
    if (named == 0) {
        return 0;
    }
    size_t end = named;
    while (end < rest.len && is_url_char(rest.ptr[end])) {
        end++;
    }
    while (end > named &&
           strchr(".,;:!?)]*_/&", rest.ptr[end - 1])) { /* of the sentence around it, or without meaning */
        end--;
    }
    *ret_named = at + named;
    return end > named ? at + end : 0;
}
