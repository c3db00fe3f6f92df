/* Texts by paragraphs with the headings of their kind: plain text (numbered, underlined), reStructuredText, Org, AsciiDoc,
 * TeX. Literal text is one unit. */
#include "chunk/structure.h"

enum { TITLE_COLUMNS_MAX = 80 };

static void init(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max)
{
    (void)text, (void)mime, (void)quarters_max;
    *state = (union qr_structure_state){0};
}

static qr_str skip(qr_str text, size_t len)
{
    return (qr_str){text.ptr + len, text.len - len};
}

static size_t run_of(qr_str text, char c)
{
    size_t len = 0;
    while (len < text.len && text.ptr[len] == c) {
        len++;
    }
    return len;
}

/* Paragraphs and lists, which all of them have. */
static struct qr_line_is paragraph(union qr_structure_state *state, const struct qr_line *line)
{
    const qr_str inner = qr_line_inner(line->text);
    const size_t indent = qr_line_indent(line->text);
    struct qr_line_is is = {.is_prose = true};
    if (qr_line_is_item(inner)) {
        state->markup.in_list = true;
        is.before = qr_at_unit((int)QR_MIN(indent / 2, (size_t)16));
        return is;
    }
    state->markup.in_list = state->markup.in_list && (indent >= 2 || !line->after_blank);
    if (line->after_blank) {
        is.before = state->markup.in_list ? qr_at_unit((int)QR_MIN(indent / 2, (size_t)16) + 1) : QR_AT_BLOCK;
    }
    return is;
}

static struct qr_line_is heading(union qr_structure_state *state, int level, qr_str title)
{
    state->markup.in_list = false;
    state->markup.is_set = false;
    return (struct qr_line_is){.level = QR_MAX(QR_MIN(level, QR_HEADING_LEVELS), 1), .title = qr_str_trim(title)};
}

/* ---- literal text ---- */

static struct qr_line_is begin_literal(union qr_structure_state *state, qr_str language, const char *until)
{
    state->markup.in_literal = true;
    state->markup.language = language;
    memcpy(state->markup.until, until, QR_MIN(strlen(until), sizeof state->markup.until - 1) + 1);
    return (struct qr_line_is){.before = QR_AT_BLOCK};
}

static struct qr_line_is in_literal(union qr_structure_state *state)
{
    struct qr_line_is is = {0};
    if (state->markup.language.len && !state->markup.is_set) {
        is.sets_context = state->markup.is_set = true;
        is.context = state->markup.language;
    }
    return is;
}

/* What comes behind literal text is a block, and no longer in its language. */
static struct qr_line_is behind_literal(union qr_structure_state *state, struct qr_line_is is)
{
    if (is.level == 0 && !is.is_mark) {
        is.sets_context = state->markup.is_set;
        is.before = QR_MAX(is.before, QR_AT_BLOCK);
    }
    state->markup.is_set = false;
    return is;
}

/* ---- headings drawn with lines ---- */

static bool is_title(qr_str line)
{
    const qr_str inner = qr_str_trim(line);
    return inner.len > 0 && inner.len <= QR_TITLE_BYTES_MAX && qr_line_underline(inner) == '\0' &&
           !qr_line_is_item(inner);
}

static int level_of_mark(char mark)
{
    return mark == '=' || mark == '#' || mark == '*' ? 1 : mark == '-' ? 2 : 3;
}

/* Whether the line is a title with a line below it, that is at most a little shorter. */
static char underline_of(const struct qr_line *line)
{
    const qr_str below = qr_line_after(line);
    if (line->is_cut || !is_title(line->text) || below.len + 2 < qr_str_trim(line->text).len) {
        return '\0';
    }
    return qr_line_underline(below);
}

/* ---- plain text ---- */

/* "2.3 Methods", "4. Results" between empty lines: the number of parts, 0 when it is not. */
static int number_level(const struct qr_line *line)
{
    const qr_str text = line->text;
    int level = 0;
    size_t at = 0;
    while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') {
        const size_t digits = at;
        while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') {
            at++;
        }
        if (at - digits > 3) {
            return 0;
        }
        level++;
        at += at < text.len && text.ptr[at] == '.';
    }
    const bool is_alone = (line->after_blank || line->is_first) && qr_is_blank(qr_line_after(line));
    if (level == 0 || !is_alone || at >= text.len || text.ptr[at] != ' ' || text.len > TITLE_COLUMNS_MAX) {
        return 0;
    }
    const qr_str title = qr_str_trim(skip(text, at));
    const bool is_sentence = title.len == 0 || strchr(".,;:!?", title.ptr[title.len - 1]);
    const bool begins_large = title.len && !(title.ptr[0] >= 'a' && title.ptr[0] <= 'z');
    return begins_large && !is_sentence ? level : 0;
}

static struct qr_line_is plain_line(union qr_structure_state *state, const struct qr_line *line)
{
    if (state->markup.expects_marks) {
        state->markup.expects_marks = 0;
        return (struct qr_line_is){.is_mark = true};
    }
    const char mark = line->after_blank || line->is_first ? underline_of(line) : '\0';
    if (mark) {
        state->markup.expects_marks = 1;
        return heading(state, level_of_mark(mark), line->text);
    }
    const int level = number_level(line);
    return level ? heading(state, level, line->text) : paragraph(state, line);
}

const struct qr_structure qr_structure_plain = {.mime = "text/plain", .init = init, .line = plain_line};

/* ---- reStructuredText ---- */

/* Each way to draw a heading is a level, in the order in which they come. */
static int rst_level(union qr_structure_state *state, char mark, char over)
{
    for (int i = 0; i < state->markup.mark_count; i++) {
        if (state->markup.marks[i][0] == mark && state->markup.marks[i][1] == over) {
            return i + 1;
        }
    }
    if (state->markup.mark_count == QR_RST_MARKS) {
        return QR_RST_MARKS;
    }
    state->markup.marks[state->markup.mark_count][0] = mark;
    state->markup.marks[state->markup.mark_count][1] = over;
    return ++state->markup.mark_count;
}

/* A line above the title too: the title, or nothing. */
static qr_str title_below(const struct qr_line *line)
{
    const char over = qr_line_underline(line->text);
    const qr_str title = qr_line_after(line);
    if (!over || !is_title(title)) {
        return (qr_str){0};
    }
    const size_t from = line->text.len + 1 + title.len + 1;
    qr_str below = {line->rest.ptr + QR_MIN(from, line->rest.len), line->rest.len - QR_MIN(from, line->rest.len)};
    below.len = QR_MIN(below.len, (size_t)QR_LINE_BYTES_MAX);
    return qr_line_underline(qr_str_split(&below, '\n')) == over ? title : (qr_str){0};
}

static bool opens_indented(qr_str inner)
{
    return qr_str_ends_with(inner, QR_STR("::")) ||
           (qr_str_starts_with(inner, QR_STR(".. ")) && memmem(inner.ptr, inner.len, "::", 2));
}

static qr_str rst_language(qr_str inner)
{
    qr_str rest = inner;
    if (!qr_str_starts_with(inner, QR_STR(".. code")) && !qr_str_starts_with(inner, QR_STR(".. sourcecode"))) {
        return (qr_str){0};
    }
    const char *colons = memmem(rest.ptr, rest.len, "::", 2);
    return colons ? qr_str_trim(skip(rest, (size_t)(colons - rest.ptr) + 2)) : (qr_str){0};
}

static struct qr_line_is rst_line(union qr_structure_state *state, const struct qr_line *line)
{
    const qr_str inner = qr_line_inner(line->text);
    const bool was_literal = state->markup.in_literal;
    if (state->markup.expects_marks) {
        state->markup.expects_marks--;
        return (struct qr_line_is){.is_mark = true};
    }
    if (was_literal && qr_line_indent(line->text) > 0) {
        return in_literal(state);
    }
    state->markup.in_literal = false;
    struct qr_line_is is;
    const qr_str title = title_below(line);
    const char mark = underline_of(line);
    if (title.len) {
        const char over = qr_line_underline(line->text);
        state->markup.expects_marks = 2;
        is = heading(state, rst_level(state, over, over), title);
    } else if (mark && (line->after_blank || line->is_first || was_literal)) {
        state->markup.expects_marks = 1;
        is = heading(state, rst_level(state, mark, '\0'), inner);
    } else {
        is = paragraph(state, line);
        if (opens_indented(inner)) {
            state->markup.in_literal = true;
            state->markup.language = rst_language(inner);
        }
    }
    return was_literal ? behind_literal(state, is) : is;
}

const struct qr_structure qr_structure_rst = {.mime = "text/x-rst", .init = init, .line = rst_line};

/* ---- Org ---- */

static bool starts_with_word(qr_str text, const char *lower)
{
    const size_t len = strlen(lower);
    for (size_t i = 0; i < len; i++) {
        const char c = i < text.len ? text.ptr[i] : '\0';
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != lower[i]) {
            return false;
        }
    }
    return true;
}

static qr_str word_after(qr_str text, size_t len)
{
    qr_str rest = qr_str_trim(skip(text, QR_MIN(len, text.len)));
    return qr_str_split(&rest, ' ');
}

static struct qr_line_is org_line(union qr_structure_state *state, const struct qr_line *line)
{
    static const char begin_source[] = "#+begin_src";
    const qr_str inner = qr_line_inner(line->text);
    const size_t stars = run_of(line->text, '*');
    if (stars && stars < line->text.len && line->text.ptr[stars] == ' ') {
        state->markup.in_literal = false; /* also where it was never closed: a star begins a heading everywhere */
        return heading(state, (int)QR_MIN(stars, (size_t)QR_HEADING_LEVELS), skip(line->text, stars));
    }
    if (state->markup.in_literal) {
        state->markup.in_literal = !starts_with_word(inner, "#+end_");
        state->markup.after_literal = !state->markup.in_literal;
        return in_literal(state);
    }
    const bool was_literal = state->markup.after_literal;
    state->markup.after_literal = false;
    struct qr_line_is is = paragraph(state, line);
    if (starts_with_word(inner, "#+begin_")) {
        const bool is_source = starts_with_word(inner, begin_source);
        is = begin_literal(state, is_source ? word_after(inner, sizeof begin_source - 1) : (qr_str){0}, "");
    } else if (inner.ptr[0] == '|') {
        is.is_prose = false;
        is.before = line->after_blank ? QR_AT_BLOCK : QR_AT_UNIT;
    }
    return was_literal ? behind_literal(state, is) : is;
}

const struct qr_structure qr_structure_org = {.mime = "text/org", .init = init, .line = org_line};

/* ---- AsciiDoc ---- */

static struct qr_line_is asciidoc_line(union qr_structure_state *state, const struct qr_line *line)
{
    const qr_str inner = qr_line_inner(line->text);
    const bool is_fence = qr_str_starts_with(inner, QR_STR("----")) || qr_str_starts_with(inner, QR_STR("....")) ||
                          qr_str_starts_with(inner, QR_STR("|==="));
    if (state->markup.in_literal) {
        const bool ends = is_fence && strncmp(state->markup.until, inner.ptr, 4) == 0;
        state->markup.in_literal = !ends;
        state->markup.after_literal = ends;
        return in_literal(state);
    }
    const bool was_literal = state->markup.after_literal;
    state->markup.after_literal = false;
    const size_t marks = run_of(line->text, '=');
    struct qr_line_is is;
    if (marks && marks < line->text.len && line->text.ptr[marks] == ' ') {
        is = heading(state, (int)QR_MIN(marks, (size_t)QR_HEADING_LEVELS), skip(line->text, marks));
    } else if (is_fence) {
        char until[5] = {0};
        memcpy(until, inner.ptr, 4);
        is = begin_literal(state, (qr_str){0}, until);
    } else {
        is = paragraph(state, line);
    }
    return was_literal ? behind_literal(state, is) : is;
}

const struct qr_structure qr_structure_asciidoc = {.mime = "text/asciidoc", .init = init, .line = asciidoc_line};

/* ---- TeX ---- */

static struct qr_line_is tex_line(union qr_structure_state *state, const struct qr_line *line)
{
    static const struct {
        qr_str command;
        int level;
    } commands[] = {{QR_STR("\\part"), 1},        {QR_STR("\\chapter"), 1},       {QR_STR("\\section"), 2},
                    {QR_STR("\\subsection"), 3},  {QR_STR("\\subsubsection"), 4}, {QR_STR("\\paragraph"), 5},
                    {QR_STR("\\subparagraph"), 6}};
    const qr_str inner = qr_line_inner(line->text);
    for (size_t i = 0; i < QR_COUNT(commands); i++) {
        if (!qr_str_starts_with(inner, commands[i].command)) {
            continue;
        }
        qr_str title = skip(inner, commands[i].command.len);
        title = title.len && title.ptr[0] == '*' ? skip(title, 1) : title;
        if (title.len && title.ptr[0] == '{') {
            title = skip(title, 1);
            return heading(state, commands[i].level, qr_str_split(&title, '}'));
        }
    }
    struct qr_line_is is = paragraph(state, line);
    if (qr_str_starts_with(inner, QR_STR("\\begin{")) || qr_str_starts_with(inner, QR_STR("\\item"))) {
        is.before = QR_MAX(is.before, QR_AT_UNIT);
    }
    return is;
}

const struct qr_structure qr_structure_tex = {.mime = "text/x-tex", .init = init, .line = tex_line};
