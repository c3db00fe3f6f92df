/* Text to pieces: takes the places that outline.c finds and chooses among them where each piece ends.
 *
 * S1  Pieces without their overlap follow one another; between them is nothing but white space.
 * S2  No piece begins or ends inside a character, or inside what people see as one.
 * S3  A piece has at most size_tokens, unless a single character with its marks has more.
 * S4  Time is linear in the text, and memory but for the pieces depends on the size alone.
 * S5  A unit (fenced code, a table, a function, a row, an entry, a sentence) that fits into a piece is not cut.
 * S6  After a small edit few pieces are new.
 *
 * For S6 a piece does not end where it is full but at the strongest place between a third and all of its size, and among
 * those that are equally strong at the one whose following text has the smallest hash. That place is likely to be chosen
 * whatever the piece's beginning is, so that soon behind an edit the cuts fall where they fell before. */
#include "chunk/split.h"

#include "base/mem.h"
#include "chunk/cost.h"
#include "chunk/cut.h"
#include "chunk/outline.h"

enum {
    SIZE_TOKENS_MAX = 100000,
    LEAST_PART = 4, /* a piece has at least 1/4 of the size where the text allows it */
    TINY_PART = 8,  /* below 1/8 it is joined with what follows or goes before */
    PIECES_MIN = 16,
};

static const qr_str path_separator = QR_STR(" > ");

struct splitter {
    struct qr_outline outline;
    struct qr_arena *arena;
    int64_t size_quarters, tiny_quarters, overlap_quarters;
    struct qr_place at; /* where the next piece begins */
    size_t overlap_at;  /* ≤ at.next: what the next piece repeats */
    int64_t repeated;   /* what that costs, with the white space behind it */
    qr_str titles[QR_CONTEXT_LEVEL];
    qr_str heading; /* the titles as one text */
    bool heading_is_built;
    struct qr_piece *pieces;
    size_t count, capacity;
    int64_t last_quarters; /* of the last piece with its overlap */
    int last_level;
};

/* ---- headings ---- */

static void take_heading(struct splitter *splitter, const struct qr_heading *heading)
{
    for (int level = heading->level; level <= QR_CONTEXT_LEVEL; level++) {
        splitter->titles[level - 1] = (qr_str){0}; /* cppcheck-suppress negativeIndex ; levels begin at 1 */
    }
    splitter->titles[heading->level - 1] = heading->title;
    splitter->heading_is_built = false;
}

/* "A > B", once for all pieces under it. */
static qr_rc build_heading(struct splitter *splitter, qr_err *err)
{
    if (splitter->heading_is_built) {
        return QR_OK;
    }
    size_t size = 1, len = 0;
    for (int i = 0; i < QR_CONTEXT_LEVEL; i++) {
        size += splitter->titles[i].len + path_separator.len;
    }
    char *path = qr_arena_alloc(splitter->arena, size);
    if (!path) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    for (int i = 0; i < QR_CONTEXT_LEVEL; i++) {
        const qr_str title = splitter->titles[i];
        if (title.len == 0) {
            continue;
        }
        if (len) {
            memcpy(path + len, path_separator.ptr, path_separator.len);
            len += path_separator.len;
        }
        memcpy(path + len, title.ptr, title.len);
        len += title.len;
    }
    splitter->heading = (qr_str){path, len};
    splitter->heading_is_built = true;
    return QR_OK;
}

static const struct qr_heading *next_heading(const struct splitter *splitter)
{
    const struct qr_outline *outline = &splitter->outline;
    return outline->heading_count ? &outline->headings[outline->first_heading] : NULL;
}

static void pass_heading(struct splitter *splitter)
{
    take_heading(splitter, next_heading(splitter));
    splitter->outline.first_heading++;
    splitter->outline.heading_count--;
}

/* The heading of the piece that begins at `at`: the one above its first text that is not itself a heading. */
static qr_rc find_heading(struct splitter *splitter, qr_str *ret_heading, qr_err *err)
{
    const struct qr_heading *next;
    while ((next = next_heading(splitter)) && next->at <= splitter->at.visible) {
        pass_heading(splitter);
    }
    while ((next = next_heading(splitter)) && !next->follows_body) {
        pass_heading(splitter);
    }
    QR_TRY(build_heading(splitter, err));
    *ret_heading = splitter->heading;
    return QR_OK;
}

/* ---- where a piece ends ---- */

static const struct qr_place *place_at(const struct splitter *splitter, size_t i)
{
    return i < splitter->outline.place_count ? &splitter->outline.places[splitter->outline.first_place + i] : NULL;
}

/* Of the piece if it ends there, without its overlap. */
static int64_t cost_to(const struct splitter *splitter, const struct qr_place *place)
{
    return place->end_quarters - splitter->at.next_quarters;
}

/* The end of the text as a place; only when it was read to there. */
static struct qr_place text_end(const struct splitter *splitter)
{
    const struct qr_outline *outline = &splitter->outline;
    return (struct qr_place){
        .end = outline->visible_end,
        .next = outline->text.len,
        .end_quarters = outline->quarters,
        .next_quarters = outline->quarters,
        .end_line = outline->visible_line,
        .next_line = outline->line,
        .strength = QR_AT_BORDER,
    };
}

/* A tiny section takes the next one in, if that is not a higher one. */
static bool ends_here(const struct splitter *splitter, const struct qr_place *place)
{
    if (place->strength < QR_AT_SECTION) {
        return false;
    }
    const int level = splitter->at.level;
    return place->strength == QR_AT_BORDER || cost_to(splitter, place) >= splitter->tiny_quarters ||
           (level && place->level < level);
}

/* The first place, not much beyond `most`, at which the piece must end. */
static bool find_end(const struct splitter *splitter, int64_t most, struct qr_place *ret_end)
{
    const struct qr_place *place;
    for (size_t i = 0; (place = place_at(splitter, i)); i++) {
        if (cost_to(splitter, place) > most) {
            return false;
        }
        if (ends_here(splitter, place)) {
            *ret_end = *place;
            return true;
        }
    }
    const struct qr_place end = text_end(splitter);
    *ret_end = end;
    return qr_outline_is_done(&splitter->outline) && cost_to(splitter, &end) <= most;
}

/* The best place between `least` and `most`; of those that are equal the one with the smallest hash. */
static const struct qr_place *best_between(const struct splitter *splitter, int64_t least, int64_t most)
{
    const struct qr_place *best = NULL, *place;
    uint64_t best_hash = 0;
    bool is_hashed = false;
    for (size_t i = 0; (place = place_at(splitter, i)) && cost_to(splitter, place) <= most; i++) {
        if (cost_to(splitter, place) < least || (best && place->strength < best->strength)) {
            continue;
        }
        if (!best || place->strength > best->strength) {
            best = place;
            is_hashed = false;
            continue;
        }
        best_hash = is_hashed ? best_hash : qr_place_hash(splitter->outline.text, best->next, best->strength);
        is_hashed = true;
        const uint64_t hash = qr_place_hash(splitter->outline.text, place->next, place->strength);
        if (hash <= best_hash) {
            best = place;
            best_hash = hash;
        }
    }
    return best;
}

/* S5: when the best place is inside a unit that begins earlier and would fit into a piece of its own, the place where
 * that begins, else NULL. */
static const struct qr_place *unit_before(const struct splitter *splitter, const struct qr_place *best, int64_t least)
{
    const enum qr_strength inside = best ? best->strength : QR_NO_PLACE;
    if (inside && (inside < QR_AT_UNIT_DEEPEST || inside > QR_AT_UNIT)) {
        return NULL; /* paragraphs may be cut at sentences */
    }
    const struct qr_place *begin = NULL, *place;
    size_t i = 0;
    for (; (place = place_at(splitter, i)) && cost_to(splitter, place) < least; i++) {
        begin = place->strength > inside ? place : begin;
    }
    if (!begin) {
        return NULL;
    }
    while ((place = place_at(splitter, i)) && place->strength <= inside) {
        i++;
    }
    if (!place && !qr_outline_is_done(&splitter->outline)) {
        return NULL; /* it was read far enough to know: too large */
    }
    const struct qr_place end = place ? *place : text_end(splitter);
    return end.end_quarters - begin->next_quarters <= splitter->size_quarters ? begin : NULL;
}

static struct qr_place cut_inside(const struct splitter *splitter, int64_t least, int64_t most)
{
    struct qr_cut_from from = {
        .text = splitter->outline.text,
        .start = splitter->at,
        .quarters_min = least,
        .quarters_max = most,
        .work = splitter->outline.work,
    };
    struct qr_place last = text_end(splitter); /* no piece goes over a border */
    const struct qr_place *place;
    for (size_t i = 0; (place = place_at(splitter, i)); i++) {
        if (cost_to(splitter, place) < least) {
            from.start.is_prose = place->is_prose;
        } else if (place->strength == QR_AT_BORDER) {
            from.text.len = place->end;
            last = *place;
            break;
        }
    }
    const struct qr_place cut = qr_cut_find(&from);
    return cut.end >= last.end && (place || qr_outline_is_done(&splitter->outline)) ? last : cut;
}

static void forget_overlap(struct splitter *splitter)
{
    splitter->overlap_at = splitter->at.next;
    splitter->repeated = 0;
}

/* Forgets what is behind: of the piece before, or inside a character that was larger than what had been read. */
static void pass_places(struct splitter *splitter)
{
    struct qr_outline *outline = &splitter->outline;
    while (outline->place_count && outline->places[outline->first_place].next <= splitter->at.next) {
        const struct qr_place *place = &outline->places[outline->first_place];
        if (place->next == splitter->at.next && place->strength > splitter->at.strength) {
            splitter->at.strength = place->strength;
            splitter->at.level = place->level;
        }
        outline->first_place++;
        outline->place_count--;
    }
}

/* A text that begins with headings begins under the highest of them. */
static void find_first_level(struct splitter *splitter)
{
    const struct qr_outline *outline = &splitter->outline;
    for (size_t i = 0; i < outline->heading_count; i++) {
        const struct qr_heading *heading = &outline->headings[outline->first_heading + i];
        if (heading->at > splitter->at.visible && heading->follows_body) {
            return;
        }
        const int level = splitter->at.level;
        splitter->at.level = level ? QR_MIN(level, heading->level) : heading->level;
    }
}

static qr_rc find_cut(struct splitter *splitter, struct qr_place *ret_place, qr_err *err)
{
    const int64_t size = splitter->size_quarters, tiny = splitter->tiny_quarters;
    QR_TRY(qr_outline_until(&splitter->outline, splitter->at.next_quarters + 2 * size + tiny, err));
    pass_places(splitter);
    if (splitter->at.next_quarters == 0) {
        find_first_level(splitter);
    }
    for (;;) {
        const int64_t room = size - splitter->repeated;
        const bool has_end = find_end(splitter, room + tiny, ret_place);
        if (has_end && cost_to(splitter, ret_place) <= room) {
            return QR_OK;
        }
        const int64_t least = room / LEAST_PART;
        const int64_t most = has_end ? QR_MIN(room, cost_to(splitter, ret_place) - tiny) : room; /* no tiny rest */
        const struct qr_place *best = best_between(splitter, least, most);
        const struct qr_place *unit = unit_before(splitter, best, least);
        if (unit || best) {
            *ret_place = unit ? *unit : *best;
            return QR_OK;
        }
        if (!splitter->repeated) {
            *ret_place = cut_inside(splitter, least, most);
            return QR_OK;
        }
        forget_overlap(splitter); /* what must stay together needs the room */
    }
}

/* ---- pieces ---- */

static qr_str slice(const struct splitter *splitter, size_t start, size_t end)
{
    return (qr_str){splitter->outline.text.ptr + start, end - start};
}

static int64_t count_newlines(qr_str text)
{
    int64_t count = 0;
    const char *end = text.ptr + text.len;
    for (const char *at = text.ptr; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++) {
        count++;
    }
    return count;
}

static int64_t tokens_of(int64_t quarters)
{
    return (quarters + QR_QUARTERS_PER_TOKEN - 1) / QR_QUARTERS_PER_TOKEN;
}

static qr_rc add_piece(struct splitter *splitter, const struct qr_piece *piece, qr_err *err)
{
    if (splitter->count == splitter->capacity) {
        const size_t capacity = QR_MAX(splitter->capacity * 2, (size_t)PIECES_MIN);
        struct qr_piece *pieces = qr_resize(splitter->pieces, capacity * sizeof *pieces);
        if (!pieces) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
        }
        splitter->pieces = pieces;
        splitter->capacity = capacity;
    }
    splitter->pieces[splitter->count++] = *piece;
    return QR_OK;
}

/* A tiny piece that could take nothing in goes to the one before it, where that has room; a section only to
 * one that is not under a lower heading, or under none. */
static bool join_to_last(struct splitter *splitter, const struct qr_place *end)
{
    const int64_t quarters = splitter->last_quarters + 1 + cost_to(splitter, end);
    if (splitter->count == 0 || splitter->at.strength == QR_AT_BORDER ||
        cost_to(splitter, end) >= splitter->tiny_quarters || quarters > splitter->size_quarters ||
        (splitter->at.strength == QR_AT_SECTION &&
         (!splitter->last_level || splitter->at.level < splitter->last_level))) {
        return false;
    }
    struct qr_piece *last = &splitter->pieces[splitter->count - 1];
    splitter->last_quarters += splitter->at.next_quarters - splitter->at.end_quarters + cost_to(splitter, end);
    last->end = (int64_t)end->end;
    last->line_end = end->end_line;
    last->token_count = tokens_of(splitter->last_quarters);
    return true;
}

static qr_rc take_piece(struct splitter *splitter, const struct qr_place *end, qr_err *err)
{
    if (join_to_last(splitter, end)) {
        return QR_OK;
    }
    const size_t start = splitter->overlap_at;
    const int64_t quarters = splitter->repeated + cost_to(splitter, end);
    struct qr_piece piece = {
        .start = (int64_t)start,
        .end = (int64_t)end->end,
        .line_start = splitter->at.next_line - count_newlines(slice(splitter, start, splitter->at.next)),
        .line_end = end->end_line,
        .token_count = tokens_of(quarters),
    };
    QR_TRY(find_heading(splitter, &piece.heading, err));
    splitter->last_quarters = quarters;
    splitter->last_level = splitter->at.level;
    return add_piece(splitter, &piece, err);
}

/* What the piece behind `end` repeats of the one before it; nothing across sections. */
static void find_overlap(struct splitter *splitter, const struct qr_place *end)
{
    const struct qr_place begin = splitter->at;
    splitter->at = *end;
    forget_overlap(splitter);
    if (splitter->overlap_quarters == 0 || end->strength >= QR_AT_SECTION) {
        return;
    }
    const struct qr_cut_from from = {
        .text = splitter->outline.text,
        .start = begin,
        .quarters_max = splitter->overlap_quarters,
        .work = splitter->outline.work,
    };
    int64_t quarters;
    const size_t at = qr_cut_overlap(&from, end->end, &quarters);
    if (at < end->end) {
        splitter->overlap_at = at;
        splitter->repeated = quarters + (end->next_quarters - end->end_quarters);
    }
}

/* The beginning as a place: the first line that is not blank, with its indentation. */
static void begin(struct splitter *splitter)
{
    const qr_str text = splitter->outline.text;
    size_t at = 0, line_begin = 0, len;
    int64_t line = 1;
    while (at < text.len && (len = qr_space_len((qr_str){text.ptr + at, text.len - at}))) {
        at += len;
        if (text.ptr[at - 1] == '\n') {
            line++;
            line_begin = at;
        }
    }
    splitter->at = (struct qr_place){.next = at == text.len ? at : line_begin,
                                     .visible = at,
                                     .next_line = line,
                                     .strength = QR_AT_BORDER,
                                     .is_prose = true};
    forget_overlap(splitter);
}

static void splitter_done(struct splitter *splitter)
{
    qr_outline_done(&splitter->outline);
    qr_free(splitter->pieces);
}

static int64_t within(int64_t value, int64_t most)
{
    return QR_MAX(QR_MIN(value, most), (int64_t)0);
}

static void splitter_init(struct splitter *splitter, qr_str text, const struct qr_split_options *options,
                          struct qr_arena *arena)
{
    const int64_t wanted = options->size_tokens > 0 ? options->size_tokens : QR_SPLIT_SIZE_TOKENS;
    const int64_t size_tokens = within(wanted, SIZE_TOKENS_MAX);
    *splitter = (struct splitter){
        .arena = arena,
        .size_quarters = size_tokens * QR_QUARTERS_PER_TOKEN,
        .overlap_quarters = within(options->overlap_tokens, size_tokens / 2) * QR_QUARTERS_PER_TOKEN,
        .heading = QR_STR(""),
        .heading_is_built = true,
    };
    qr_outline_init(&splitter->outline, text, options->mime, options->separator, splitter->size_quarters);
    const int tiny_part = splitter->outline.structure->tiny_part;
    splitter->tiny_quarters = splitter->size_quarters / (tiny_part ? tiny_part : TINY_PART);
    splitter->outline.work = options->work;
    begin(splitter);
}

qr_rc qr_split(qr_str text, const struct qr_split_options *options, struct qr_arena *arena,
               struct qr_piece **ret_pieces, size_t *ret_count, qr_err *err)
{
    QR_CLEANUP(splitter_done) struct splitter splitter;
    splitter_init(&splitter, text, options, arena);
    while (splitter.at.next < text.len) {
        struct qr_place end;
        QR_TRY(find_cut(&splitter, &end, err));
        QR_TRY(take_piece(&splitter, &end, err));
        find_overlap(&splitter, &end);
    }
    struct qr_piece *pieces = qr_arena_array(arena, splitter.count, sizeof *pieces);
    if (!pieces) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    if (splitter.count) {
        memcpy(pieces, splitter.pieces, splitter.count * sizeof *pieces);
    }
    *ret_pieces = pieces;
    *ret_count = splitter.count;
    return QR_OK;
}
