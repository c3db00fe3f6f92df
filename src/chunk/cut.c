/* A walk over the text by what people see as characters. It reads no further than a piece is large.
 *
 * Marks and joiners without end are no writing: behind QR_GRAPHEME_BYTES_MAX of them the text may be cut anywhere between two
 * characters, so that no piece is much too large. */
#include "chunk/cut.h"

#include "chunk/cost.h"
#include "chunk/outline.h"
#include "text/unicode.h"

struct walk {
    qr_str text;
    size_t at, start;
    bool is_prose;
    int64_t quarters; /* of what is visible in [start, visible_end) */
    int64_t line, visible_line;
    size_t visible_end, line_begin, sentence_from;
    int newlines; /* in the white space before `at` */
    struct qr_rune last;
    bool has_ended, has_ended_wide;
};

static qr_str rest_at(const struct walk *walk, size_t at)
{
    return (qr_str){walk->text.ptr + at, walk->text.len - at};
}

static struct walk walk_from(const struct qr_cut_from *from, size_t start, size_t end)
{
    return (struct walk){
        .text = {from->text.ptr, end},
        .at = start,
        .start = start,
        .visible_end = start,
        .line_begin = start,
        .sentence_from = start,
        .is_prose = from->start.is_prose,
        .line = from->start.next_line,
        .visible_line = from->start.next_line,
    };
}

static size_t grapheme_len(const struct walk *walk)
{
    const qr_str rest = rest_at(walk, walk->at);
    if ((unsigned char)rest.ptr[0] < 0x80 && (rest.len < 2 || (unsigned char)rest.ptr[1] < 0x80)) {
        return 1; /* \r\n is white space, and passed before */
    }
    return qr_grapheme_len(qr_utf8_prefix(rest, QR_GRAPHEME_BYTES_MAX));
}

/* ---- what there is before the visible character at `at` ---- */

static enum qr_strength strength_in_gap(struct walk *walk)
{
    if (walk->newlines > 1) {
        return QR_AT_BLOCK;
    }
    const bool is_end =
        walk->has_ended && (walk->last.code != '.' ||
                            qr_point_ends_sentence(walk->text, walk->sentence_from, walk->visible_end, walk->at));
    if (walk->newlines && (!is_end || !walk->is_prose)) {
        return walk->is_prose ? QR_AT_LINE : QR_AT_UNIT;
    }
    return is_end ? QR_AT_SENTENCE : QR_AT_WORD;
}

/* Between two characters that touch. */
static enum qr_strength strength_in_word(const struct walk *walk, const struct qr_rune *rune)
{
    const bool is_cjk = walk->last.class == QR_RUNE_CJK || rune->class == QR_RUNE_CJK;
    if (qr_rune_closes(rune->code) || qr_rune_ends_sentence(rune->code) || rune->code == 0x3001 ||
        rune->code == 0xFF0C) {
        return QR_AT_CHARACTER;
    }
    if (walk->has_ended_wide) {
        return QR_AT_SENTENCE;
    }
    return is_cjk ? QR_AT_WORD : QR_AT_CHARACTER;
}

static bool is_ascii(char c)
{
    return (unsigned char)c < 0x80;
}

/* A visible ASCII character that touches another one, most of most texts. */
static bool is_plain(const struct walk *walk)
{
    const char *c = walk->text.ptr + walk->at;
    return walk->at == walk->visible_end && walk->at > walk->start && walk->at + 1 < walk->text.len && c[0] > ' ' &&
           is_ascii(c[1]) && is_ascii(c[-1]) && !walk->has_ended_wide;
}

/* To the next visible character; false at the end of the text. */
static bool skip_space(struct walk *walk)
{
    while (walk->at < walk->text.len) {
        const size_t space = qr_space_len(rest_at(walk, walk->at));
        if (space == 0) {
            return true;
        }
        walk->at += space;
        if (walk->text.ptr[walk->at - 1] == '\n') {
            walk->newlines++;
            walk->line++;
            walk->line_begin = walk->at;
        }
    }
    return false;
}

static void take_grapheme(struct walk *walk, struct qr_rune rune)
{
    if (is_plain(walk)) { /* the same, but quickly */
        const char c = (char)rune.code;
        const bool closes = c == '"' || c == '\'' || c == ')' || c == ']' || c == '}';
        walk->has_ended = c == '.' || c == '!' || c == '?' || (walk->has_ended && closes);
        walk->last = rune;
        walk->quarters++;
        walk->visible_end = ++walk->at;
        return;
    }
    const bool touches = walk->at == walk->visible_end;
    const bool belongs = qr_rune_closes(rune.code);
    const size_t end = walk->at + grapheme_len(walk);
    walk->quarters += !touches && walk->visible_end > walk->start;
    walk->sentence_from = walk->newlines ? walk->line_begin : walk->sentence_from;
    walk->has_ended_wide = qr_rune_ends_wide_sentence(rune.code) || (touches && walk->has_ended_wide && belongs);
    walk->has_ended = qr_rune_ends_sentence(rune.code) || (touches && walk->has_ended && belongs);
    walk->last = rune;
    for (; walk->at < end; walk->at += rune.len) {
        rune = qr_rune_at(rest_at(walk, walk->at));
        walk->quarters += qr_rune_quarters(rune.code, rune.len);
    }
    walk->visible_end = walk->at;
    walk->visible_line = walk->line;
    walk->newlines = 0;
}

/* Goes to the next visible character and says what place there is before it; false at the end. */
static bool walk_on(struct walk *walk, struct qr_rune *ret_rune, enum qr_strength *ret_strength)
{
    if (is_plain(walk)) {
        *ret_rune = (struct qr_rune){.code = (unsigned char)walk->text.ptr[walk->at], .len = 1};
        *ret_strength = QR_AT_CHARACTER;
        return true;
    }
    if (!skip_space(walk)) {
        return false;
    }
    *ret_rune = qr_rune_at(rest_at(walk, walk->at));
    if (walk->visible_end == walk->start) {
        *ret_strength = QR_NO_PLACE;
    } else {
        *ret_strength = walk->at > walk->visible_end ? strength_in_gap(walk) : strength_in_word(walk, ret_rune);
    }
    return true;
}

/* Where what follows begins: a line with its indentation, a mark with the space that it is on. */
static size_t next_of(const struct walk *walk)
{
    if (walk->newlines) {
        return walk->line_begin;
    }
    size_t at = walk->at;
    if (at > walk->visible_end && !qr_breaks_before(walk->text, at)) {
        do {
            at--;
        } while (((unsigned char)walk->text.ptr[at] & 0xC0) == 0x80);
    }
    return at;
}

/* ---- choosing ---- */

struct choice {
    struct qr_place place;
    bool in_window;
    uint64_t hash;
};

static void offer(struct choice *best, const struct qr_cut_from *from, const struct walk *walk,
                  enum qr_strength strength)
{
    const bool in_window = walk->quarters >= from->quarters_min;
    if (best->place.strength &&
        (in_window < best->in_window || (in_window == best->in_window && strength < best->place.strength))) {
        return;
    }
    const size_t next = next_of(walk);
    const uint64_t hash = qr_place_hash(from->text, next, strength);
    if (best->in_window && in_window && strength == best->place.strength && hash > best->hash) {
        return;
    }
    const int64_t base = from->start.next_quarters + walk->quarters;
    *best = (struct choice){
        .place = {.end = walk->visible_end,
                  .next = next,
                  .visible = walk->at,
                  .end_quarters = base,
                  .next_quarters = base + (walk->at > walk->visible_end),
                  .end_line = walk->visible_line,
                  .next_line = walk->line,
                  .strength = strength,
                  .level = from->start.level,
                  .is_prose = from->start.is_prose},
        .in_window = in_window,
        .hash = hash,
    };
}

static void count_work(const struct qr_cut_from *from, const struct walk *walk)
{
    if (from->work) {
        *from->work += walk->at - walk->start;
    }
}

struct qr_place qr_cut_find(const struct qr_cut_from *from)
{
    struct walk walk = walk_from(from, from->start.next, from->text.len);
    struct choice best = {0};
    struct qr_rune rune;
    enum qr_strength strength;
    while (walk_on(&walk, &rune, &strength)) {
        if (walk.quarters > from->quarters_max && best.place.strength) {
            break;
        }
        if (strength && !(best.in_window && strength < best.place.strength)) {
            offer(&best, from, &walk, strength);
        }
        take_grapheme(&walk, rune);
    }
    count_work(from, &walk);
    if (!best.place.strength) { /* one character, however large, and no more */
        walk.at = walk.text.len;
        offer(&best, from, &walk, QR_AT_CHARACTER);
    }
    return best.place;
}

size_t qr_cut_overlap(const struct qr_cut_from *from, size_t end, int64_t *ret_quarters)
{
    const size_t near = (size_t)from->quarters_max * 4; /* more is white space */
    size_t start = from->start.next;
    if (end - start > near) {
        start = end - near;
        while (start < end && ((unsigned char)from->text.ptr[start] & 0xC0) == 0x80) {
            start++;
        }
    }
    const int64_t total = qr_quarters((qr_str){from->text.ptr + start, end - start});
    struct walk walk = walk_from(from, start, end);
    struct qr_rune rune;
    enum qr_strength strength;
    size_t word = end;
    int64_t word_quarters = 0;
    while (walk_on(&walk, &rune, &strength)) {
        const bool has_gap = walk.at > walk.visible_end;
        const int64_t left = total - walk.quarters - has_gap;
        if (left <= from->quarters_max && strength >= QR_AT_LINE) {
            word = next_of(&walk);
            word_quarters = left;
            break;
        }
        if (left <= from->quarters_max && strength == QR_AT_WORD && word == end) {
            word = next_of(&walk);
            word_quarters = left;
        }
        take_grapheme(&walk, rune);
    }
    count_work(from, &walk);
    *ret_quarters = word_quarters;
    return word;
}
