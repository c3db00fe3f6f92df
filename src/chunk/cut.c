/* The end of one piece. One pass from the piece's start over at most its size; whatever place is chosen, the pass after it
 * begins there, so the whole text is read a few times at most.
 *
 * A place is between two characters, before a visible one; white space before it belongs to no piece. Among the places in
 * the last third of the size the strongest is taken, and of those that are equally strong the one whose following bytes
 * have the smallest hash: that depends on the text around it alone, so that after an edit the cuts soon fall where they
 * fell before, and the pieces behind it stay the same. */
#include "chunk/cut.h"

#include "chunk/unicode.h"

enum {
    TINY_PART = 8,   /* a section below 1/8 of the size takes the next one in, if that is not a higher one */
    JOINED_MAX = 32, /* marks on one character; more is no writing, and may be cut */
    HASHED_BYTES = 16,
};

/* By strength. */
enum strength { NONE, CHARACTER, WORD, LINE, SENTENCE, ITEM, BLOCK, SECTION };

struct place {
    size_t end, next;
    enum strength strength;
    bool in_window, is_too_late;
    uint64_t hash;
};

struct pass {
    const struct qr_cut_from *from;
    size_t at;
    int64_t quarters; /* of what is visible in [start, visible_end) */
    size_t visible_end;
    size_t line_begin;   /* of the line that `at` is in, SIZE_MAX while that began before the start */
    size_t line_done;    /* the one whose beginning was looked at */
    int newlines;        /* in the white space before `at` */
    struct qr_char last; /* the last visible character */
    int joined_count, regional_count;
    bool last_ends_sentence, after_fence;
    struct qr_md_fence fence;
    bool in_heading, has_body;
    int level;
    struct place best;
};

/* ---- what there is at a place ---- */

static qr_str rest_of(const struct pass *pass, size_t at)
{
    return (qr_str){pass->from->text.ptr + at, pass->from->text.len - at};
}

static qr_str line_at(const struct pass *pass, size_t at)
{
    qr_str line = rest_of(pass, at);
    line.len = QR_MIN(line.len, (size_t)QR_MD_LINE_BYTES_MAX);
    return qr_str_split(&line, '\n');
}

static int64_t cost_of(const struct qr_char *c)
{
    return c->is_wide ? QR_QUARTERS_PER_TOKEN : (int64_t)c->len;
}

static uint64_t hash_of(qr_str text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < text.len && i < HASHED_BYTES; i++) {
        hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(0x100000001B3);
    }
    return hash ^ hash >> 29;
}

/* "- ", "12. " and the like. */
static bool begins_item(qr_str line)
{
    size_t len = 0;
    while (len < line.len && len < 9 && line.ptr[len] >= '0' && line.ptr[len] <= '9') {
        len++;
    }
    const bool is_bullet = len == 0 && line.len && strchr("-*+", line.ptr[0]);
    const bool is_number = len > 0 && len < line.len && (line.ptr[len] == '.' || line.ptr[len] == ')');
    return (is_bullet || is_number) && len + 1 < line.len && line.ptr[len + 1] == ' ';
}

static enum strength strength_in_gap(const struct pass *pass)
{
    if (pass->newlines > 1 || pass->after_fence) {
        return BLOCK;
    }
    if (pass->newlines == 1 && begins_item(rest_of(pass, pass->at))) {
        return ITEM;
    }
    if (pass->last_ends_sentence) {
        return SENTENCE;
    }
    return pass->newlines ? LINE : WORD;
}

/* Between two visible characters that touch. */
static enum strength strength_in_word(const struct pass *pass, const struct qr_char *c)
{
    const bool is_joined =
        c->is_joined || pass->last.code == 0x200D || (qr_char_is_regional(c->code) && pass->regional_count % 2 == 1);
    if (is_joined && pass->joined_count < JOINED_MAX) {
        return NONE;
    }
    if (!pass->last.is_wide && !c->is_wide) {
        return CHARACTER;
    }
    if (qr_char_closes(c->code) || qr_char_ends_sentence(c->code)) {
        return CHARACTER;
    }
    return pass->last_ends_sentence ? SENTENCE : WORD;
}

static enum strength strength_here(const struct pass *pass, const struct qr_char *c)
{
    if (pass->visible_end == pass->from->start) {
        return NONE; /* nothing before it */
    }
    return pass->at == pass->visible_end ? strength_in_word(pass, c) : strength_in_gap(pass);
}

/* ---- choosing ---- */

static bool is_too_long(const struct pass *pass)
{
    return pass->quarters > pass->from->quarters_max;
}

static bool is_better(const struct place *place, const struct place *best)
{
    if (best->strength == NONE) {
        return true;
    }
    if (best->strength == SECTION && place->strength != SECTION) {
        return false;
    }
    if (place->in_window != best->in_window) {
        return place->in_window;
    }
    if (place->strength != best->strength) {
        return place->strength > best->strength;
    }
    return !place->in_window || place->hash < best->hash;
}

static void offer(struct pass *pass, enum strength strength)
{
    if (pass->best.in_window && strength < pass->best.strength) {
        return; /* the usual case, before the hash is made */
    }
    struct place place = {
        .is_too_late = is_too_long(pass),
        .end = pass->visible_end,
        .next = pass->newlines ? pass->line_begin : pass->at,
        .strength = strength,
        .in_window = pass->quarters * 3 >= pass->from->quarters_max * 2,
    };
    if (place.in_window) {
        place.hash = hash_of(rest_of(pass, pass->at));
    }
    if (is_better(&place, &pass->best)) {
        pass->best = place;
    }
}

static struct qr_cut cut_at(const struct place *place)
{
    return (struct qr_cut){place->end, place->next, place->strength == SECTION, place->is_too_late};
}

/* ---- lines ---- */

/* The end of the code that this line opens, before the newline of its last line, and what it costs; false as soon as that
 * is too much. */
static bool code_fits(const struct pass *pass, struct qr_md_fence fence, size_t *ret_end, int64_t *ret_quarters)
{
    const qr_str text = pass->from->text;
    int64_t quarters = 0;
    bool in_space = false;
    size_t at = pass->at;
    while (at < text.len && (text.ptr[at] != '\n' || fence.len)) {
        const struct qr_char c = qr_char_at(rest_of(pass, at));
        quarters += c.is_space ? 0 : cost_of(&c) + in_space;
        in_space = c.is_space;
        at += c.len;
        if (quarters > pass->from->code_quarters_max) {
            return false;
        }
        if (c.code == '\n') {
            qr_md_take_line(&fence, line_at(pass, at));
        }
    }
    *ret_end = at;
    *ret_quarters = quarters;
    return true;
}

static size_t visible_end_before(const struct pass *pass, size_t end)
{
    const char *text = pass->from->text.ptr;
    while (end > pass->at && (text[end - 1] == ' ' || text[end - 1] == '\t' || text[end - 1] == '\n')) {
        end--;
    }
    return end;
}

static bool is_tiny(const struct pass *pass)
{
    return pass->quarters < pass->from->quarters_max / TINY_PART;
}

/* True when the piece ends before this heading. */
static bool take_heading(struct pass *pass, int level)
{
    const bool is_first = pass->visible_end == pass->from->start;
    const bool is_below = pass->level == 0 || level >= pass->level;
    if (!is_first && pass->has_body) {
        offer(pass, SECTION);
        if (!is_tiny(pass) || !is_below) {
            return true;
        }
    }
    pass->level = is_first ? level : QR_MIN(pass->level, level);
    pass->in_heading = true;
    return false;
}

/* ---- the pass ---- */

static void take_space(struct pass *pass, const struct qr_char *c)
{
    pass->at += c->len;
    if (c->code == '\n') {
        pass->newlines++;
        pass->line_begin = pass->at;
        pass->in_heading = false;
    }
}

static void move_to(struct pass *pass, size_t end, int64_t quarters)
{
    const bool has_gap = pass->at > pass->visible_end && pass->visible_end > pass->from->start;
    pass->quarters += quarters + has_gap;
    pass->at = pass->visible_end = end;
    pass->newlines = 0;
}

static void take_visible(struct pass *pass, const struct qr_char *c)
{
    const bool touches = pass->at == pass->visible_end;
    pass->joined_count = touches && (c->is_joined || pass->last.code == 0x200D) ? pass->joined_count + 1 : 0;
    if (pass->joined_count > JOINED_MAX) {
        pass->joined_count = 0;
    }
    pass->regional_count = qr_char_is_regional(c->code) ? (touches ? pass->regional_count : 0) + 1 : 0;
    pass->last_ends_sentence = qr_char_ends_sentence(c->code) || (pass->last_ends_sentence && qr_char_closes(c->code));
    pass->last = *c;
    pass->after_fence = false;
    pass->has_body |= !pass->in_heading;
    move_to(pass, pass->at + c->len, cost_of(c));
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The rest of an ASCII word, most of most texts: steps over places that could not win anyway, with the same result as one
 * character at a time. */
static void skip_word(struct pass *pass)
{
    const struct qr_cut_from *from = pass->from;
    if (pass->best.strength <= CHARACTER || pass->last.len != 1 || !is_letter((char)pass->last.code)) {
        return;
    }
    const int64_t window = (from->quarters_max * 2 + 2) / 3; /* the first cost that is in the window */
    const int64_t limit = pass->best.in_window ? from->quarters_max : QR_MIN(window, from->quarters_max);
    size_t at = pass->at;
    int64_t quarters = pass->quarters;
    while (at < from->text.len && quarters < limit && is_letter(from->text.ptr[at])) {
        at++;
        quarters++;
    }
    pass->at = pass->visible_end = at;
    pass->quarters = quarters;
}

/* Code that must stay whole is taken in one step. */
static bool take_code(struct pass *pass, struct qr_md_fence fence)
{
    size_t end;
    int64_t quarters;
    if (!code_fits(pass, fence, &end, &quarters)) {
        pass->fence = fence;
        return false;
    }
    move_to(pass, visible_end_before(pass, end), quarters);
    pass->at = end;
    pass->after_fence = pass->has_body = true;
    pass->last_ends_sentence = false;
    pass->last = (struct qr_char){.code = '`', .len = 1};
    return true;
}

enum event { AT_PLACE, AT_SECTION, BEHIND_CODE, AT_END };

/* At the first visible character of a line. */
static enum event begin_line(struct pass *pass)
{
    struct qr_md_fence fence = pass->fence;
    const bool was_open = fence.len > 0;
    const struct qr_md_line line = qr_md_take_line(&fence, line_at(pass, pass->line_begin));
    if (line.kind == QR_MD_HEADING) {
        return take_heading(pass, line.level) ? AT_SECTION : AT_PLACE;
    }
    if (line.kind == QR_MD_TEXT) {
        return AT_PLACE;
    }
    if (was_open) {
        pass->fence = fence;
        return AT_PLACE;
    }
    if (pass->visible_end > pass->from->start) {
        offer(pass, BLOCK);
    }
    return take_code(pass, fence) ? BEHIND_CODE : AT_PLACE;
}

static void pass_init(struct pass *pass, const struct qr_cut_from *from)
{
    const bool at_line_begin = from->start == 0 || from->text.ptr[from->start - 1] == '\n';
    *pass = (struct pass){
        .from = from,
        .at = from->start,
        .visible_end = from->start,
        .line_begin = at_line_begin ? from->start : SIZE_MAX,
        .line_done = SIZE_MAX,
        .fence = from->fence,
        .level = from->level,
    };
}

/* To the next visible character, or over code. */
static enum event advance(struct pass *pass, struct qr_char *ret_char)
{
    for (;;) {
        *ret_char = qr_char_at(rest_of(pass, pass->at));
        if (ret_char->len == 0) {
            return AT_END;
        }
        if (!ret_char->is_space) {
            break;
        }
        take_space(pass, ret_char);
    }
    if (pass->line_begin == SIZE_MAX || pass->line_begin == pass->line_done) {
        return AT_PLACE;
    }
    pass->line_done = pass->line_begin;
    return begin_line(pass);
}

struct qr_cut qr_cut_find(const struct qr_cut_from *from)
{
    struct pass pass;
    struct qr_char c;
    pass_init(&pass, from);
    for (;;) {
        const enum event event = advance(&pass, &c);
        if (event == AT_END) {
            return (struct qr_cut){pass.visible_end, from->text.len, .is_section = true,
                                   .is_too_long = is_too_long(&pass)};
        }
        if (event == AT_PLACE) {
            const enum strength strength = strength_here(&pass, &c);
            if (strength != NONE) {
                offer(&pass, strength);
            }
            take_visible(&pass, &c);
            skip_word(&pass);
        }
        if (event == AT_SECTION || (is_too_long(&pass) && pass.best.strength != NONE)) {
            return cut_at(&pass.best);
        }
    }
}

static int64_t cost_between(const struct qr_cut_from *from, size_t end)
{
    return qr_quarters((qr_str){from->text.ptr + from->start, end - from->start});
}

size_t qr_cut_overlap(const struct qr_cut_from *from, size_t end, int64_t quarters_max)
{
    struct qr_cut_from part = *from;
    part.text.len = end;
    const int64_t total = cost_between(from, end);
    struct pass pass;
    struct qr_char c;
    pass_init(&pass, &part);
    size_t word = end;
    for (;;) {
        const enum event event = advance(&pass, &c);
        if (event == AT_END) {
            return word;
        }
        if (event != AT_PLACE) {
            continue; /* a section is a place the next time */
        }
        const enum strength strength = strength_here(&pass, &c);
        const size_t next = pass.newlines ? pass.line_begin : pass.at;
        if (total - pass.quarters <= quarters_max && strength >= LINE) {
            return next;
        }
        if (total - pass.quarters <= quarters_max && strength == WORD && word == end) {
            word = next;
        }
        take_visible(&pass, &c);
    }
}

int64_t qr_quarters(qr_str text)
{
    int64_t quarters = 0;
    bool is_gap = false;
    for (size_t at = 0; at < text.len;) {
        if (!is_gap && is_letter(text.ptr[at])) { /* as qr_char_at would have it, but quickly */
            quarters++;
            at++;
            continue;
        }
        const struct qr_char c = qr_char_at((qr_str){text.ptr + at, text.len - at});
        if (!c.is_space) {
            quarters += cost_of(&c) + (is_gap && quarters > 0);
        }
        is_gap = c.is_space;
        at += c.len;
    }
    return quarters;
}
