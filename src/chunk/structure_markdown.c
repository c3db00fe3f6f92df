/* Markdown: headings, both kinds; code, fenced and indented; tables; lists; quotes; front matter; paragraphs. A table that
 * fits into a piece is one block, a larger one is rows under its header. */
#include "chunk/cost.h"
#include "chunk/structure.h"

enum { FRONT_LINES_MAX = 200 };

static void init(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max)
{
    (void)text, (void)mime;
    *state = (union qr_structure_state){.markdown = {.quarters_max = quarters_max}};
}

static bool is_front_end(qr_str line)
{
    const qr_str inner = qr_str_trim(line);
    return qr_str_equal(inner, QR_STR("---")) || qr_str_equal(inner, QR_STR("..."));
}

/* A rule at the beginning of the text, and another one soon. */
static bool opens_front(const struct qr_line *line)
{
    if (!line->is_first || !qr_str_equal(qr_str_trim(line->text), QR_STR("---"))) {
        return false;
    }
    qr_str rest = line->rest;
    qr_line_take(&rest);
    for (int i = 0; i < FRONT_LINES_MAX && rest.len; i++) {
        const qr_str next = qr_line_take(&rest);
        if (is_front_end(next)) {
            return true;
        }
        if (qr_is_blank(next) || next.len == QR_LINE_BYTES_MAX) {
            return false;
        }
    }
    return false;
}

/* Three or more of - * _ with spaces between them. */
static bool is_rule(qr_str inner)
{
    size_t count = 0;
    if (inner.len == 0 || !memchr("-*_", inner.ptr[0], 3)) {
        return false;
    }
    for (size_t i = 0; i < inner.len; i++) {
        if (inner.ptr[i] != inner.ptr[0] && inner.ptr[i] != ' ') {
            return false;
        }
        count += inner.ptr[i] == inner.ptr[0];
    }
    return count >= 3;
}

/* "|---|:--:|" */
static bool is_table_rule(qr_str inner)
{
    bool has_pipe = false, has_dash = false;
    for (size_t i = 0; i < inner.len; i++) {
        if (!memchr("|-: \t", inner.ptr[i], 5)) {
            return false;
        }
        has_pipe |= inner.ptr[i] == '|';
        has_dash |= inner.ptr[i] == '-';
    }
    return has_pipe && has_dash;
}

static bool is_row(qr_str line)
{
    return memchr(line.ptr, '|', line.len) != NULL;
}

static bool table_fits(const union qr_structure_state *state, const struct qr_line *line)
{
    int64_t quarters = 0;
    qr_str rest = line->rest;
    while (rest.len) {
        const char *begin = rest.ptr;
        if (!is_row(qr_line_take(&rest))) {
            break;
        }
        quarters +=
            qr_quarters((qr_str){begin, QR_MIN((size_t)(rest.ptr - begin), (size_t)state->markdown.quarters_max)}) + 1;
        if (quarters > state->markdown.quarters_max) {
            return false;
        }
    }
    return true;
}

/* Without the pipes around it. */
static qr_str header_of(qr_str inner)
{
    if (inner.len && inner.ptr[0] == '|') {
        inner = (qr_str){inner.ptr + 1, inner.len - 1};
    }
    if (inner.len && inner.ptr[inner.len - 1] == '|') {
        inner.len--;
    }
    return qr_str_trim(inner);
}

/* "=" or "-" below a line that is a paragraph of its own. */
static int setext_level(const struct qr_line *line, qr_str inner)
{
    const char mark = qr_line_underline(qr_line_after(line));
    if ((mark != '=' && mark != '-') || line->is_cut || qr_line_indent(line->text) > 3 || is_rule(inner) ||
        qr_line_is_item(inner) || inner.ptr[0] == '>' || is_row(inner)) {
        return 0;
    }
    return mark == '=' ? 1 : 2;
}

static qr_str first_word(qr_str text)
{
    qr_str rest = qr_str_trim(text);
    return qr_str_split(&rest, ' ');
}

static void set_context(union qr_structure_state *state, struct qr_line_is *is, qr_str context)
{
    if (context.len || state->markdown.is_set) {
        is->sets_context = true;
        is->context = context;
        state->markdown.is_set = context.len > 0;
    }
}

static struct qr_line_is in_fence(union qr_structure_state *state, const struct qr_line *line)
{
    struct qr_line_is is = {0};
    if (!state->markdown.is_set) {
        set_context(state, &is, state->markdown.language);
    }
    if (state->markdown.in_front) {
        state->markdown.in_front = !is_front_end(line->text);
        state->markdown.after_block = !state->markdown.in_front;
        return is;
    }
    qr_md_take_line(&state->markdown.fence, line->text);
    state->markdown.after_block = state->markdown.fence.len == 0;
    return is;
}

static struct qr_line_is in_table(union qr_structure_state *state)
{
    struct qr_line_is is = {.before = state->markdown.table_is_cut ? QR_AT_UNIT : QR_NO_PLACE};
    if (state->markdown.table_is_cut && !state->markdown.is_set) {
        is.before = QR_NO_PLACE; /* the rule below the header */
        set_context(state, &is, state->markdown.table_header);
    }
    return is;
}

static bool begins_table(union qr_structure_state *state, const struct qr_line *line, qr_str inner)
{
    if (!is_row(line->text) || !is_table_rule(qr_line_after(line))) {
        return false;
    }
    state->markdown.in_table = true;
    state->markdown.table_is_cut = !table_fits(state, line);
    state->markdown.table_header = header_of(inner);
    return true;
}

/* Lists, quotes, indented code and paragraphs. */
static struct qr_line_is text_line(union qr_structure_state *state, const struct qr_line *line, qr_str inner,
                                   bool after_block)
{
    const size_t indent = qr_line_indent(line->text);
    struct qr_line_is is = {.is_prose = true};
    if (qr_line_is_item(inner)) {
        state->markdown.in_list = true;
        state->markdown.in_code = false;
        is.before = after_block && !line->after_blank ? QR_AT_BLOCK : qr_at_unit((int)QR_MIN(indent / 2, (size_t)16));
        return is;
    }
    const bool in_item = state->markdown.in_list && (indent >= 2 || !line->after_blank);
    if (!in_item && indent >= 4 && (line->after_blank || state->markdown.in_code)) {
        is.before = state->markdown.in_code ? QR_NO_PLACE : QR_AT_BLOCK;
        is.is_prose = false;
        state->markdown.in_code = true;
        return is;
    }
    const bool was_code = state->markdown.in_code;
    state->markdown.in_code = false;
    state->markdown.in_list = in_item;
    if (line->after_blank || after_block || was_code) {
        is.before = in_item ? qr_at_unit((int)QR_MIN(indent / 2, (size_t)16) + 1) : QR_AT_BLOCK;
    } else if (inner.ptr[0] == '>' && qr_is_blank((qr_str){inner.ptr + 1, inner.len - 1})) {
        state->markdown.after_block = true;
    }
    return is;
}

static struct qr_line_is take_line(union qr_structure_state *state, const struct qr_line *line)
{
    if (state->markdown.fence.len || state->markdown.in_front) {
        return in_fence(state, line);
    }
    const qr_str inner = qr_line_inner(line->text);
    if (state->markdown.in_table && !line->after_blank && is_row(line->text)) {
        return in_table(state);
    }
    const bool after_block = state->markdown.after_block || state->markdown.in_table;
    state->markdown.after_block = state->markdown.in_table = false;
    struct qr_line_is is = {.before = QR_AT_BLOCK};
    const struct qr_md_line md = qr_md_take_line(&state->markdown.fence, line->text);
    if (md.kind == QR_MD_HEADING) {
        is = (struct qr_line_is){.level = md.level, .title = md.title};
    } else if (md.kind == QR_MD_FENCE) {
        const struct qr_md_fence fence = state->markdown.fence;
        size_t marks = 0;
        while (marks < inner.len && inner.ptr[marks] == fence.mark) {
            marks++;
        }
        state->markdown.language = first_word((qr_str){inner.ptr + marks, inner.len - marks});
    } else if (opens_front(line)) {
        state->markdown.in_front = true;
        state->markdown.language = (qr_str){0};
    } else if (state->markdown.expects_mark) {
        state->markdown.expects_mark = false;
        state->markdown.after_block = true;
        return (struct qr_line_is){.is_mark = true};
    } else if ((line->after_blank || line->is_first || after_block) && setext_level(line, inner)) {
        is = (struct qr_line_is){.level = setext_level(line, inner), .title = inner};
        state->markdown.expects_mark = true;
    } else if (begins_table(state, line, inner)) {
        is.is_prose = false;
    } else if (is_rule(inner)) {
        is.before = QR_AT_RULE;
        state->markdown.after_block = true;
    } else {
        is = text_line(state, line, inner, after_block);
    }
    if (is.level) {
        state->markdown.in_list = state->markdown.in_code = state->markdown.is_set = false;
        state->markdown.after_block = !state->markdown.expects_mark;
    } else {
        set_context(state, &is, (qr_str){0});
    }
    return is;
}

const struct qr_structure qr_structure_markdown = {.mime = "text/markdown", .init = init, .line = take_line};
