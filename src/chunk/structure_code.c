/* Source code: functions and classes as headings, by what their first line looks like and by indentation. No parser: what is
 * not recognised is blocks between empty lines.
 *
 * A symbol goes from the comments, decorators and attributes above it to the line that closes it: a bracket or `end` that is
 * indented no further than its first line, or else the next line that is not. What is inside a function is not looked at. */
#include "chunk/code_symbol.h"
#include "chunk/structure.h"

enum { LEAD_LINES_MAX = 200 };

static void init(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max)
{
    (void)text, (void)quarters_max;
    *state = (union qr_structure_state){.code = {.family = qr_language_family(mime)}};
}

/* ---- what is above a symbol ---- */

static bool is_comment(unsigned family, qr_str inner)
{
    return qr_str_starts_with(inner, QR_STR("//")) || qr_str_starts_with(inner, QR_STR("/*")) ||
           ((family & QR_LANG_HASHES) && inner.ptr[0] == '#') ||
           ((family & QR_LANG_DASHES) && qr_str_starts_with(inner, QR_STR("--")));
}

/* Comments, decorators, attributes, templates; the type of a function on a line of its own. */
static bool is_lead(unsigned family, qr_str inner)
{
    if (is_comment(family, inner) || (inner.ptr[0] == '@' && !(family & (QR_LANG_SQL | QR_LANG_SHELL))) ||
        qr_str_starts_with(inner, QR_STR("#[")) || qr_str_starts_with(inner, QR_STR("template")) ||
        ((family & QR_LANG_C) && inner.ptr[0] == '[')) {
        return true;
    }
    if (!(family & QR_LANG_C)) {
        return false;
    }
    for (size_t i = 0; i < inner.len; i++) {
        if (!qr_code_is_name_char(inner.ptr[i]) && inner.ptr[i] != ' ' && inner.ptr[i] != '*') {
            return false;
        }
    }
    return true;
}

static bool opens_comment(qr_str inner)
{
    return qr_str_starts_with(inner, QR_STR("/*")) && !memmem(inner.ptr, inner.len, "*/", 2);
}

/* The symbol that the lines above it belong to: it follows them without an empty line. */
static bool symbol_below(const union qr_structure_state *state, const struct qr_line *line, struct qr_code_found *ret)
{
    bool in_comment = false;
    qr_str rest = line->rest;
    for (int i = 0; i < LEAD_LINES_MAX && rest.len; i++) {
        const qr_str text = qr_line_take(&rest), inner = qr_line_inner(text);
        if (inner.len == 0 || text.len == QR_LINE_BYTES_MAX) {
            return false;
        }
        if (in_comment) {
            in_comment = !memmem(inner.ptr, inner.len, "*/", 2);
            continue;
        }
        in_comment = opens_comment(inner);
        if (is_lead(state->code.family, inner)) {
            continue;
        }
        qr_str after = rest;
        const qr_str below = after.len ? qr_line_inner(qr_line_take(&after)) : (qr_str){0};
        return qr_line_indent(text) == qr_line_indent(line->text) &&
               qr_code_find_symbol(state->code.family, state->code.depth > 0, inner, below, ret);
    }
    return false;
}

/* ---- lines ---- */

static bool is_end(qr_str inner)
{
    return inner.ptr[0] == '}' || inner.ptr[0] == ')' || inner.ptr[0] == ']' ||
           qr_code_is_word_of(qr_code_name_at(inner), " end fi done esac ");
}

static size_t count_of(qr_str text, char c)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] == c;
    }
    return count;
}

/* Whether nothing of it is on other lines. */
static bool is_complete(unsigned family, qr_str inner)
{
    const size_t braces = count_of(inner, '{');
    if (family & QR_LANG_SQL) {
        return inner.ptr[inner.len - 1] == ';';
    }
    return !(family & QR_LANG_PYTHON) && braces && braces == count_of(inner, '}');
}

/* Whether the line belongs to the innermost symbol; closes that where it ends. */
static bool is_inside(union qr_structure_state *state, qr_str inner, size_t indent)
{
    struct qr_code_symbol *top = &state->code.symbols[state->code.depth - 1];
    const unsigned family = state->code.family;
    const char last = inner.ptr[inner.len - 1];
    const bool was_open = top->is_open;
    top->is_open = was_open || memchr(inner.ptr, '{', inner.len) || !(family & QR_LANG_C);
    if (indent > top->indent) {
        if (!top->is_open && last == ';') {
            state->code.depth--; /* it was declared only */
            return true;
        }
        return !top->is_container;
    }
    if (family & QR_LANG_SQL) {
        state->code.depth -= last == ';';
        return true;
    }
    if (is_end(inner)) {
        const bool opens_again = last == '{' || last == ':' || last == '(' || (inner.ptr[0] == ')' && last != ';');
        state->code.depth -= !opens_again;
        state->code.after_end = !opens_again;
        return true;
    }
    const bool goes_on = inner.ptr[0] == '{' || (!was_open && !top->is_container && (family & QR_LANG_C)) ||
                         ((family & QR_LANG_C) && (inner.ptr[0] == '#' || last == ':'));
    state->code.depth -= !goes_on;
    if (!was_open && goes_on && last == ';') {
        state->code.depth--;
    }
    return goes_on;
}

static void push(union qr_structure_state *state, size_t indent, bool is_container, bool is_open)
{
    if (state->code.depth < QR_SYMBOLS_DEEP) {
        state->code.symbols[state->code.depth++] = (struct qr_code_symbol){indent, is_container, is_open};
    }
}

static struct qr_line_is begin_symbol(union qr_structure_state *state, const struct qr_code_found *symbol, qr_str inner,
                                      size_t indent)
{
    struct qr_line_is is = {
        .level = state->code.depth + 1, .title = symbol->name, .is_also_body = !symbol->is_container};
    if (state->code.title_is_taken) {
        is = (struct qr_line_is){0};
    }
    state->code.title_is_taken = state->code.in_lead = false;
    if (state->code.family & (QR_LANG_KEYS | QR_LANG_GROUPS)) {
        return is;
    }
    if (is_complete(state->code.family, inner)) {
        state->code.after_end = true;
    } else {
        push(state, indent, symbol->is_container,
             memchr(inner.ptr, '{', inner.len) || !(state->code.family & QR_LANG_C));
    }
    return is;
}

/* Where a symbol may begin: at the margin, or in a class. */
static struct qr_line_is find_begin(union qr_structure_state *state, const struct qr_line *line, qr_str inner,
                                    size_t indent)
{
    const bool is_apart = line->after_blank || state->code.after_end;
    const bool may_begin = indent == 0 || state->code.depth > 0;
    const char last = inner.ptr[inner.len - 1];
    struct qr_line_is is = {.before = is_apart ? QR_AT_BLOCK : QR_NO_PLACE};
    struct qr_code_found symbol;
    state->code.after_end = false;
    state->code.in_lead = state->code.in_lead && !line->after_blank;
    state->code.title_is_taken = state->code.title_is_taken && !line->after_blank;
    if (!may_begin || line->is_cut) {
        return is;
    }
    if (is_lead(state->code.family, inner)) {
        state->code.in_comment = opens_comment(inner);
        const bool is_title = !state->code.in_lead && symbol_below(state, line, &symbol);
        state->code.in_lead = true;
        state->code.title_is_taken |= is_title;
        if (is_title) {
            is = (struct qr_line_is){
                .level = state->code.depth + 1, .title = symbol.name, .is_also_body = !symbol.is_container};
        }
        return is;
    }
    if (qr_code_find_symbol(state->code.family, state->code.depth > 0, inner, qr_str_trim(qr_line_after(line)),
                            &symbol)) {
        return begin_symbol(state, &symbol, inner, indent);
    }
    state->code.in_lead = state->code.title_is_taken = false;
    if (last == '{' || last == '(' || last == '[') { /* a table, a call over several lines */
        is = (struct qr_line_is){
            .level = state->code.depth + 1, .title = qr_code_value_name(inner), .is_also_body = true};
        push(state, indent, false, true);
    } else if (state->code.family & QR_LANG_SQL) {
        is.before = QR_MAX(is.before, indent == 0 ? QR_AT_UNIT : QR_NO_PLACE);
        if (last != ';' && !is_comment(state->code.family, inner)) {
            push(state, indent, false, true);
        }
    }
    return is;
}

/* Also: what is no symbol is not under the one before it. */
static struct qr_line_is outside_line(union qr_structure_state *state, const struct qr_line *line, qr_str inner,
                                      size_t indent)
{
    const int depth = state->code.depth;
    struct qr_line_is is = find_begin(state, line, inner, indent);
    if (is.level) {
        state->code.titled = is.level;
    } else if (state->code.titled > depth && !state->code.title_is_taken && state->code.depth == depth) {
        is.clears_level = depth + 1;
        state->code.titled = depth;
    }
    return is;
}

static struct qr_line_is take_line(union qr_structure_state *state, const struct qr_line *line)
{
    const qr_str inner = qr_line_inner(line->text);
    const size_t indent = qr_line_indent(line->text);
    if (inner.len == 0) { /* white space of another kind */
        return (struct qr_line_is){0};
    }
    if (state->code.in_comment) {
        state->code.in_comment = !memmem(inner.ptr, inner.len, "*/", 2);
        return (struct qr_line_is){0};
    }
    while (state->code.depth) {
        const int depth = state->code.depth;
        const bool is_container = state->code.symbols[depth - 1].is_container;
        if (is_inside(state, inner, indent)) {
            return (struct qr_line_is){0};
        }
        if (state->code.depth == depth && is_container) {
            break; /* in a class, where functions may begin */
        }
    }
    return outside_line(state, line, inner, indent);
}

const struct qr_structure qr_structure_code = {.mime = "text/x-code", .tiny_part = 4, .init = init, .line = take_line};
