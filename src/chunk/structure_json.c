/* JSON, a value or one a line: members and elements are units, an enclosing one the stronger; the keys of the objects and
 * arrays that enclose a piece are its heading. Elements are not numbered there: that would change with every edit before
 * them. What is not JSON does no harm: a line end closes a string, a bracket without its partner is passed over. */
#include "chunk/outline.h"

static void init(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max)
{
    (void)text, (void)mime, (void)quarters_max;
    *state = (union qr_structure_state){.json = {.levels[0] = 1}};
}

static void init_lines(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max)
{
    init(state, text, mime, quarters_max);
    state->json.is_lines = true;
}

static int level_here(const union qr_structure_state *state)
{
    return state->json.levels[QR_MIN(state->json.depth, QR_JSON_DEEP - 1)];
}

/* A member or an element begins: what was said about the one before it no longer holds. */
static void begin_member(union qr_structure_state *state, struct qr_outline *outline, size_t at)
{
    const int level = level_here(state);
    state->json.expects_member = state->json.has_key = false;
    if (state->json.level_set >= level) {
        qr_outline_add_heading(outline, at, level, (qr_str){0}, true);
        state->json.level_set = level - 1;
    }
}

static void open_container(union qr_structure_state *state, struct qr_outline *outline)
{
    int level = level_here(state);
    if (state->json.has_key && level <= QR_HEADING_LEVELS) {
        const size_t begin = QR_MIN(state->json.string_at + 1, state->json.string_end);
        const qr_str key = {outline->text.ptr + begin, state->json.string_end - begin};
        qr_outline_add_heading(outline, state->json.string_at, level, key, true);
        state->json.level_set = level;
        level++;
    }
    if (++state->json.depth < QR_JSON_DEEP) {
        state->json.levels[state->json.depth] = (uint8_t)level;
    }
    state->json.expects_member = true;
    state->json.has_key = false;
}

static void take_string_byte(union qr_structure_state *state, size_t at, char c)
{
    if (state->json.is_escaped) {
        state->json.is_escaped = false;
    } else if (c == '\\') {
        state->json.is_escaped = true;
    } else if (c == '"' || c == '\n') {
        state->json.in_string = false;
        state->json.string_end = at;
    }
}

static void begin_record(union qr_structure_state *state)
{
    state->json.depth = 0;
    state->json.in_string = state->json.is_escaped = false;
    state->json.expects_member = true;
}

/* True when what follows the character is a unit. */
static bool take_sign(union qr_structure_state *state, struct qr_outline *outline, size_t at, char c)
{
    switch (c) {
    case '"':
        state->json.in_string = true;
        state->json.string_at = at;
        return false;
    case ':':
        state->json.has_key = true;
        return false;
    case '{':
    case '[':
        open_container(state, outline);
        return false;
    case '}':
    case ']':
        state->json.depth -= state->json.depth > 0;
        return false;
    case ',':
        state->json.expects_member = true;
        return true;
    default:
        return false;
    }
}

static size_t advance(union qr_structure_state *state, struct qr_outline *outline, size_t at, size_t to,
                      enum qr_strength *ret_strength)
{
    for (; at < to; at++) {
        const char c = outline->text.ptr[at];
        if (c == '\n' && state->json.is_lines) {
            begin_record(state);
            *ret_strength = QR_AT_UNIT;
            return at + 1;
        }
        if (state->json.in_string) {
            take_string_byte(state, at, c);
            continue;
        }
        if (state->json.expects_member && (c > ' ' || c < 0) && c != '}' && c != ']') {
            begin_member(state, outline, at);
        }
        if (take_sign(state, outline, at, c)) {
            *ret_strength = qr_at_unit(state->json.depth);
            return at + 1;
        }
    }
    return to;
}

const struct qr_structure qr_structure_json = {.mime = "application/json", .init = init, .advance = advance};
const struct qr_structure qr_structure_jsonl = {.mime = "application/jsonl", .init = init_lines, .advance = advance};
