/* Text to pieces: cuts one piece after the other, each as cut.c finds it, and keeps what they share: the headings above,
 * open fenced code, line numbers.
 *
 * S1  Pieces without their overlap follow one another; between them is nothing but white space.
 * S2  No piece begins or ends inside a character, or between a character and its combining marks.
 * S3  A piece has at most size_tokens, unless a single character with its marks has more.
 * S4  Time and memory are linear in the text. */
#include "chunk/split.h"

#include "base/mem.h"
#include "chunk/cut.h"

enum {
    SIZE_TOKENS = 400,
    SIZE_TOKENS_MAX = 1000000,
    LEVELS = 6,
    TITLE_BYTES_MAX = 200,
    PIECES_MIN = 16,
};

static const qr_str path_separator = QR_STR(" > ");

struct splitter {
    qr_str text;
    struct qr_arena *arena;
    int64_t size_quarters, overlap_quarters;
    qr_str separator;
    /* at `at`, where the next piece begins */
    size_t at;
    int64_t line;
    struct qr_md_fence fence;
    qr_str titles[LEVELS]; /* of the headings above; ptr NULL = none at this level */
    int level;             /* of the nearest, 0 = none */
    size_t overlap_at;     /* ≤ at: what the next piece repeats */
    qr_str heading;        /* the titles as one text */
    bool heading_is_built;
    struct qr_piece *pieces;
    size_t count, capacity;
};

int64_t qr_token_count(qr_str text)
{
    return (qr_quarters(text) + QR_QUARTERS_PER_TOKEN - 1) / QR_QUARTERS_PER_TOKEN;
}

/* ---- headings ---- */

static void take_heading(struct splitter *splitter, const struct qr_md_line *line)
{
    for (int level = line->level; level <= LEVELS; level++) {
        splitter->titles[level - 1] = (qr_str){0};
    }
    splitter->titles[line->level - 1] = qr_utf8_prefix(line->title, TITLE_BYTES_MAX);
    splitter->level = line->level;
    splitter->heading_is_built = false;
}

/* "A > B", once for all pieces under it. */
static qr_rc build_heading(struct splitter *splitter, qr_err *err)
{
    if (splitter->heading_is_built) {
        return QR_OK;
    }
    size_t size = 1, len = 0;
    for (int i = 0; i < LEVELS; i++) {
        size += splitter->titles[i].len + path_separator.len;
    }
    char *path = qr_arena_alloc(splitter->arena, size);
    if (!path) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    for (int i = 0; i < LEVELS; i++) {
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

/* The line at a place, as far as it matters what kind of line it is; also beyond the piece's end. */
static qr_str line_at(const struct splitter *splitter, size_t at)
{
    qr_str line = {splitter->text.ptr + at, QR_MIN(splitter->text.len - at, (size_t)QR_MD_LINE_BYTES_MAX)};
    return qr_str_split(&line, '\n');
}

/* Goes through the lines of a piece: keeps headings and fences up to date. The piece's heading is the one above its first
 * line that is not itself a heading. */
static qr_rc read_lines(struct splitter *splitter, size_t end, qr_str *ret_heading, qr_err *err)
{
    bool has_body = false;
    for (size_t at = splitter->at; at < end;) {
        const char *newline = memchr(splitter->text.ptr + at, '\n', end - at);
        const size_t line_end = newline ? (size_t)(newline - splitter->text.ptr) : end;
        struct qr_md_line line = {QR_MD_TEXT};
        if (at == 0 || splitter->text.ptr[at - 1] == '\n') { /* the first may be the rest of a line */
            line = qr_md_take_line(&splitter->fence, line_at(splitter, at));
        }
        if (line.kind == QR_MD_HEADING) {
            take_heading(splitter, &line);
        } else if (!has_body && !qr_is_blank((qr_str){splitter->text.ptr + at, line_end - at})) {
            has_body = true;
            QR_TRY(build_heading(splitter, err));
            *ret_heading = splitter->heading;
        }
        at = line_end + 1;
    }
    if (!has_body) {
        QR_TRY(build_heading(splitter, err));
        *ret_heading = splitter->heading;
    }
    return QR_OK;
}

/* ---- pieces ---- */

static int64_t count_newlines(qr_str text)
{
    int64_t count = 0;
    const char *end = text.ptr + text.len;
    for (const char *at = text.ptr; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++) {
        count++;
    }
    return count;
}

static qr_str slice(const struct splitter *splitter, size_t start, size_t end)
{
    return (qr_str){splitter->text.ptr + start, end - start};
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

static qr_rc take_piece(struct splitter *splitter, const struct qr_cut *cut, qr_err *err)
{
    const size_t start = splitter->overlap_at;
    struct qr_piece piece = {
        .start = (int64_t)start,
        .end = (int64_t)cut->end,
        .line_start = splitter->line - count_newlines(slice(splitter, start, splitter->at)),
        .line_end = splitter->line + count_newlines(slice(splitter, splitter->at, cut->end)),
        .token_count = qr_token_count(slice(splitter, start, cut->end)),
    };
    QR_TRY(read_lines(splitter, cut->end, &piece.heading, err));
    QR_TRY(add_piece(splitter, &piece, err));
    splitter->line = piece.line_end + count_newlines(slice(splitter, cut->end, cut->next));
    return QR_OK;
}

static struct qr_cut find_cut(struct splitter *splitter, struct qr_cut_from *from)
{
    const int64_t repeated = qr_quarters(slice(splitter, splitter->overlap_at, splitter->at));
    from->quarters_max = splitter->size_quarters - (repeated ? repeated + 1 : 0);
    struct qr_cut cut = qr_cut_find(from);
    if (cut.is_too_long && repeated) { /* what must stay together needs the room */
        splitter->overlap_at = splitter->at;
        from->quarters_max = splitter->size_quarters;
        cut = qr_cut_find(from);
    }
    return cut;
}

/* Where white space before the next piece ends; an indented line keeps its indentation. */
static size_t skip_blank(const struct splitter *splitter, size_t at, size_t end)
{
    size_t begin = at, len;
    while (at < end && (len = qr_space_len(slice(splitter, at, end)))) {
        at += len;
        begin = splitter->text.ptr[at - 1] == '\n' ? at : begin;
    }
    return at == end ? end : begin;
}

static void move_to(struct splitter *splitter, size_t at)
{
    splitter->line += count_newlines(slice(splitter, splitter->at, at));
    splitter->at = splitter->overlap_at = at;
}

/* The pieces of one part of the text, which none of them leaves. */
static qr_rc split_part(struct splitter *splitter, size_t end, qr_err *err)
{
    move_to(splitter, skip_blank(splitter, splitter->at, end));
    while (splitter->at < end) {
        struct qr_cut_from from = {
            .text = {splitter->text.ptr, end},
            .start = splitter->at,
            .code_quarters_max = splitter->size_quarters,
            .fence = splitter->fence,
            .level = splitter->level,
        };
        const struct qr_cut cut = find_cut(splitter, &from);
        QR_TRY(take_piece(splitter, &cut, err));
        splitter->at = splitter->overlap_at = cut.next;
        if (!cut.is_section && splitter->overlap_quarters) {
            splitter->overlap_at = qr_cut_overlap(&from, cut.end, splitter->overlap_quarters);
            splitter->overlap_at = splitter->overlap_at == cut.end ? cut.next : splitter->overlap_at;
        }
    }
    return QR_OK;
}

/* The end of the part that begins at `at`: behind the next separator, which stays with what it ends. */
static size_t part_end(const struct splitter *splitter)
{
    const qr_str rest = slice(splitter, splitter->at, splitter->text.len);
    const qr_str separator = splitter->separator;
    const char *found = separator.len ? memmem(rest.ptr, rest.len, separator.ptr, separator.len) : NULL;
    return found ? (size_t)(found - splitter->text.ptr) + separator.len : splitter->text.len;
}

static void splitter_done(struct splitter *splitter)
{
    qr_free(splitter->pieces);
}

static int64_t within(int64_t value, int64_t most)
{
    return QR_MAX(QR_MIN(value, most), (int64_t)0);
}

qr_rc qr_split(qr_str text, const struct qr_split_options *options, struct qr_arena *arena,
               struct qr_piece **ret_pieces, size_t *ret_count, qr_err *err)
{
    const int64_t size_tokens = within(options->size_tokens > 0 ? options->size_tokens : SIZE_TOKENS, SIZE_TOKENS_MAX);
    QR_CLEANUP(splitter_done)
    struct splitter splitter = {
        .text = text,
        .arena = arena,
        .size_quarters = size_tokens * QR_QUARTERS_PER_TOKEN,
        .overlap_quarters = within(options->overlap_tokens, size_tokens / 2) * QR_QUARTERS_PER_TOKEN,
        .separator = options->separator,
        .line = 1,
        .heading = QR_STR(""),
        .heading_is_built = true,
    };
    while (splitter.at < text.len) {
        QR_TRY(split_part(&splitter, part_end(&splitter), err));
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
