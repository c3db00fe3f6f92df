/* The pass. It goes through the text once, by lines for most structures, and by slices of a line where that is long, so that
 * it never gets far ahead of what was asked for. A structure says what a line is; here that becomes places with what the text
 * costs up to them, and sentences are found in lines that have them.
 *
 * A place is made when the visible character behind it is reached: only then is the white space before it known. */
#include "chunk/outline.h"

#include "base/mem.h"
#include "chunk/cost.h"
#include "text/unicode.h"

enum {
    SLICE_BYTES = 4096,
    QUEUE_MIN = 64,
    POINT_BYTES = 16, /* what is looked at before a point: the longest abbreviation and more */
};

void qr_outline_init(struct qr_outline *outline, qr_str text, const char *mime, qr_str separator, int64_t quarters_max)
{
    *outline = (struct qr_outline){
        .text = text,
        .separator = separator,
        .structure = qr_structure_find(mime),
        .line = 1,
        .visible_line = 1,
        .border_at = separator.len ? 0 : SIZE_MAX,
    };
    if (outline->structure->init) {
        outline->structure->init(&outline->state, text, mime, quarters_max);
    }
}

void qr_outline_done(struct qr_outline *outline)
{
    qr_free(outline->places);
    qr_free(outline->headings);
}

/* ---- the queues ---- */

/* Room for one more behind the last; what was taken before the first is given up. */
static void *room_for_one(struct qr_outline *outline, void *entries, size_t *first, const size_t *count,
                          size_t *capacity, size_t size)
{
    if (*first + *count < *capacity) {
        return entries;
    }
    if (*first > *count) {
        memmove(entries, (char *)entries + *first * size, *count * size);
        *first = 0;
        return entries;
    }
    const size_t wanted = QR_MAX(*capacity * 2, (size_t)QUEUE_MIN);
    void *larger = qr_resize(entries, wanted * size);
    if (!larger) {
        outline->is_out_of_memory = true;
        return entries;
    }
    *capacity = wanted;
    return larger;
}

static void add_place(struct qr_outline *outline, const struct qr_place *place)
{
    outline->places = room_for_one(outline, outline->places, &outline->first_place, &outline->place_count,
                                   &outline->place_capacity, sizeof *outline->places);
    if (!outline->is_out_of_memory) {
        outline->places[outline->first_place + outline->place_count++] = *place;
    }
}

void qr_outline_add_heading(struct qr_outline *outline, size_t at, int level, qr_str title, bool follows_body)
{
    outline->headings = room_for_one(outline, outline->headings, &outline->first_heading, &outline->heading_count,
                                     &outline->heading_capacity, sizeof *outline->headings);
    if (!outline->is_out_of_memory) {
        outline->headings[outline->first_heading + outline->heading_count++] =
            (struct qr_heading){at, level, qr_utf8_prefix(title, QR_TITLE_BYTES_MAX), follows_body};
    }
}

void qr_outline_add_header(struct qr_outline *outline, qr_str row, char delimiter)
{
    size_t len = 0;
    bool in_quotes = false;
    for (size_t i = 0; i < row.len && len + 4 < sizeof outline->header; i++) {
        const char c = row.ptr[i];
        if (c == '"') {
            in_quotes = !in_quotes;
        } else if (c == delimiter && !in_quotes) {
            memcpy(outline->header + len, " | ", 3);
            len += 3;
        } else if (c == ' ' || c == '\t' || c == '\r') { /* none at the ends, one between words */
            if (len && outline->header[len - 1] != ' ') {
                outline->header[len++] = ' ';
            }
        } else {
            outline->header[len++] = c;
        }
    }
    const qr_str title = qr_str_trim(qr_utf8_prefix((qr_str){outline->header, len}, QR_TITLE_BYTES_MAX));
    qr_outline_add_heading(outline, 0, 1, title, true);
}

/* ---- sentences ---- */

static qr_str rest_at(const struct qr_outline *outline, size_t at)
{
    return (qr_str){outline->text.ptr + at, outline->text.len - at};
}

bool qr_point_ends_sentence(qr_str text, size_t from, size_t end, size_t next)
{
    size_t at = end > from + POINT_BYTES ? end - POINT_BYTES : from;
    while (at < end && ((unsigned char)text.ptr[at] & 0xC0) == 0x80) {
        at++;
    }
    const size_t to = QR_MIN(next + qr_rune_at((qr_str){text.ptr + next, text.len - next}).len, text.len);
    while (at < next) {
        at += qr_sentence_len((qr_str){text.ptr + at, to - at});
    }
    return at == next;
}

static bool closes(char c)
{
    return c == '"' || c == '\'' || c == ')' || c == ']' || c == '}';
}

/* The visible ASCII in [begin, end): whether it ends as sentences do; `before` is what was true before it. */
static bool ends_as_sentence(const char *text, size_t begin, size_t end, bool before)
{
    size_t at = end;
    while (at > begin && (closes(text[at - 1]) || text[at - 1] == '*' || text[at - 1] == '_')) {
        at--;
    }
    return at == begin ? before : text[at - 1] == '.' || text[at - 1] == '!' || text[at - 1] == '?';
}

/* Where the point is that ended it, if it was one. */
static bool is_sentence_end(const struct qr_outline *outline)
{
    size_t at = outline->visible_end;
    while (at > outline->sentence_from && (closes(outline->text.ptr[at - 1]) || outline->text.ptr[at - 1] == '*' ||
                                           outline->text.ptr[at - 1] == '_')) {
        at--;
    }
    if (at == outline->sentence_from || outline->text.ptr[at - 1] != '.') {
        return true;
    }
    return qr_point_ends_sentence(outline->text, outline->sentence_from, at, outline->at);
}

/* ---- places ---- */

bool qr_breaks_before(qr_str text, size_t at)
{
    if (at == 0 || at >= text.len || (unsigned char)text.ptr[at] < 0x80) {
        return true;
    }
    size_t before = at - 1;
    while (before && ((unsigned char)text.ptr[before] & 0xC0) == 0x80) {
        before--;
    }
    const size_t len = qr_rune_at((qr_str){text.ptr + at, text.len - at}).len;
    return qr_grapheme_len((qr_str){text.ptr + before, at - before + len}) == at - before;
}

/* The place before the visible character at `at`. */
static void make_place(struct qr_outline *outline, enum qr_strength strength)
{
    const bool has_gap = outline->at > outline->visible_end;
    add_place(outline, &(struct qr_place){
                           .end = outline->visible_end,
                           .next = outline->has_newline ? outline->line_begin : outline->at,
                           .visible = outline->at,
                           .end_quarters = outline->quarters,
                           .next_quarters = outline->quarters + has_gap,
                           .end_line = outline->visible_line,
                           .next_line = outline->line,
                           .strength = strength,
                           .level = outline->level,
                           .is_prose = outline->is_prose,
                       });
    outline->sentence_from = outline->at;
}

/* Before the visible character at `at` after white space, or where a structure or a border wants a place. */
static void reach_visible(struct qr_outline *outline, bool is_unspaced)
{
    enum qr_strength strength = outline->pending;
    const bool has_gap = outline->at > outline->visible_end;
    outline->pending = QR_NO_PLACE;
    if (strength < QR_AT_SENTENCE && outline->is_prose && has_gap) {
        const bool is_end = (outline->has_ended && is_sentence_end(outline)) || (outline->is_unspaced && is_unspaced);
        strength = is_end ? QR_AT_SENTENCE : strength;
    }
    if (strength && outline->visible_end &&
        (outline->has_newline || strength == QR_AT_BORDER || qr_breaks_before(outline->text, outline->at))) {
        make_place(outline, strength);
    }
    outline->quarters += has_gap && outline->visible_end > 0;
    outline->has_newline = false;
}

static bool ends_nothing(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ',';
}

/* The end of the words from `at` on, as long as there is one space between them and nothing that could end a sentence: a
 * space costs what a byte does, and there is no place in them. */
static size_t words_end(const char *text, size_t at, size_t to)
{
    for (;;) {
        while (at < to && text[at] > ' ') {
            at++;
        }
        if (at + 1 >= to || text[at] != ' ' || text[at + 1] <= ' ' || !ends_nothing(text[at - 1])) {
            return at;
        }
        at += 2;
    }
}

static void take_ascii(struct qr_outline *outline, size_t to)
{
    const char *text = outline->text.ptr;
    if (outline->has_ended_wide && outline->at == outline->visible_end && outline->is_prose) {
        if (closes(text[outline->at])) { /* stays with the sentence before it */
            to = outline->at + 1;
        } else {
            make_place(outline, QR_AT_SENTENCE);
        }
    }
    const size_t at = words_end(text, outline->at + 1, to);
    const bool stays = outline->has_ended_wide && closes(text[outline->at]) && at == outline->at + 1;
    outline->has_ended =
        ends_as_sentence(text, outline->at, at, outline->has_ended && outline->at == outline->visible_end);
    outline->has_ended_wide = stays;
    outline->is_unspaced = false;
    outline->quarters += (int64_t)(at - outline->at);
    outline->at = outline->visible_end = at;
}

static void take_rune(struct qr_outline *outline, const struct qr_rune *rune)
{
    const bool touches = outline->at == outline->visible_end;
    const bool is_joined = rune->class == QR_RUNE_MARK || rune->class == QR_RUNE_IGNORED;
    const bool is_sign = rune->class == QR_RUNE_OTHER; /* most are not, and need not be looked up */
    const bool ends = is_sign && qr_rune_ends_sentence(rune->code);
    const bool belongs = ends || (is_sign && qr_rune_closes(rune->code));
    if (touches && outline->has_ended_wide && !belongs && outline->is_prose &&
        qr_breaks_before(outline->text, outline->at)) {
        make_place(outline, QR_AT_SENTENCE);
    }
    outline->has_ended_wide =
        (ends && qr_rune_ends_wide_sentence(rune->code)) || (touches && outline->has_ended_wide && belongs);
    outline->has_ended = ends || (touches && outline->has_ended && (belongs || is_joined));
    outline->is_unspaced = rune->class == QR_RUNE_UNSPACED;
    outline->quarters += qr_rune_quarters(rune->code, rune->len);
    outline->at += rune->len;
    outline->visible_end = outline->at;
}

static void take_newline(struct qr_outline *outline)
{
    outline->at++;
    outline->line++;
    outline->line_begin = outline->at;
    outline->has_newline = true;
}

/* Reads visible text and white space to `to`. */
static void run(struct qr_outline *outline, size_t to)
{
    const char *text = outline->text.ptr;
    while (outline->at < to) {
        const unsigned char c = (unsigned char)text[outline->at];
        if (c == '\n') {
            take_newline(outline);
            continue;
        }
        const size_t space =
            c < 0x80 ? c == ' ' || (c >= '\t' && c <= '\r') : qr_space_len(rest_at(outline, outline->at));
        if (space) {
            outline->at += space;
            continue;
        }
        const struct qr_rune rune = c >= 0x80 ? qr_rune_at(rest_at(outline, outline->at)) : (struct qr_rune){0};
        if (outline->at > outline->visible_end || outline->pending) {
            reach_visible(outline, rune.class == QR_RUNE_UNSPACED);
        }
        if (c < 0x80) {
            take_ascii(outline, to);
        } else {
            take_rune(outline, &rune);
        }
        outline->visible_line = outline->line;
    }
}

/* ---- lines ---- */

static void begin_heading(struct qr_outline *outline, const struct qr_line_is *is)
{
    const bool follows_body = outline->has_body || outline->visible_end == 0;
    qr_outline_add_heading(outline, outline->at, is->level, is->title, follows_body);
    if (follows_body) {
        outline->pending = QR_MAX(outline->pending, QR_AT_SECTION);
        outline->level = is->level;
    } else {
        outline->level = QR_MIN(outline->level, is->level); /* a run of headings is one section */
        if (outline->place_count) {
            struct qr_place *last = &outline->places[outline->first_place + outline->place_count - 1];
            last->level = last->strength == QR_AT_SECTION ? outline->level : last->level;
        }
    }
    outline->has_body = is->is_also_body;
}

/* What the line at `at` is; its end is not looked for beyond what a structure sees. */
static void begin_line(struct qr_outline *outline)
{
    struct qr_line line = {.rest = rest_at(outline, outline->at)};
    qr_str seen = {line.rest.ptr, QR_MIN(line.rest.len, (size_t)QR_LINE_BYTES_MAX)};
    line.text = qr_str_split(&seen, '\n');
    if (line.text.len == QR_LINE_BYTES_MAX) {
        line.text = qr_utf8_prefix(line.text, QR_LINE_BYTES_MAX - 1);
        line.is_cut = true;
    }
    outline->sentence_from = outline->at;
    if (qr_is_blank(line.text)) {
        outline->after_blank = true;
        return;
    }
    line.after_blank = outline->after_blank;
    line.is_first = !outline->has_line;
    const struct qr_line_is is = outline->structure->line(&outline->state, &line);
    outline->has_line = true;
    outline->after_blank = false;
    outline->is_prose = is.is_prose;
    if (is.clears_level) {
        qr_outline_add_heading(outline, outline->at, is.clears_level, (qr_str){0}, true);
    }
    if (is.sets_context) {
        qr_outline_add_heading(outline, outline->at, QR_CONTEXT_LEVEL, is.context, true);
    }
    if (is.level) {
        begin_heading(outline, &is);
    } else if (!is.is_mark) {
        const bool under_heading = !outline->has_body && outline->level > 0;
        outline->pending = QR_MAX(outline->pending, under_heading ? QR_NO_PLACE : is.before);
        outline->has_body = true;
    }
}

/* To the end of the line or of what is read at once. */
static size_t slice_end(const struct qr_outline *outline, bool by_line)
{
    const size_t most = QR_MIN(outline->text.len, outline->at + SLICE_BYTES);
    const char *newline = by_line ? memchr(outline->text.ptr + outline->at, '\n', most - outline->at) : NULL;
    size_t end = newline ? (size_t)(newline - outline->text.ptr) + 1 : most;
    while (end < outline->text.len && end > outline->at + 4 && ((unsigned char)outline->text.ptr[end] & 0xC0) == 0x80) {
        end--;
    }
    return end;
}

/* The end of the next separator; what it ends is complete when `at` is there. */
static void find_border(struct qr_outline *outline)
{
    const qr_str rest = rest_at(outline, outline->at);
    const char *found = memmem(rest.ptr, rest.len, outline->separator.ptr, outline->separator.len);
    outline->border_at = found ? (size_t)(found - outline->text.ptr) + outline->separator.len : SIZE_MAX;
}

static void step(struct qr_outline *outline)
{
    if (outline->at >= outline->border_at) {
        outline->pending = outline->at ? QR_AT_BORDER : QR_NO_PLACE;
        find_border(outline);
    }
    const size_t from = outline->at;
    enum qr_strength strength = QR_NO_PLACE;
    const bool by_line = outline->structure->line != NULL;
    if (by_line && (from == 0 || outline->text.ptr[from - 1] == '\n')) {
        begin_line(outline);
    }
    size_t to = QR_MIN(slice_end(outline, by_line), outline->border_at);
    if (!by_line) {
        to = outline->structure->advance(&outline->state, outline, from, to, &strength);
    }
    run(outline, to);
    outline->pending = QR_MAX(outline->pending, strength);
    if (outline->work) {
        *outline->work += outline->at - from;
    }
}

qr_rc qr_outline_until(struct qr_outline *outline, int64_t quarters, qr_err *err)
{
    while (outline->at < outline->text.len && outline->quarters <= quarters && !outline->is_out_of_memory) {
        step(outline);
    }
    return outline->is_out_of_memory ? qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory") : QR_OK;
}
