/* Ignore rules. Lines are read and patterns matched as git does (gitignore(5)): bytes, not characters.
 *
 * Patterns come from folders that anybody may have written: matching takes no more than pattern × path steps for the
 * names and the same again for "**", since only the last star of each kind is ever gone back to. That is enough: what an
 * earlier star could still take, the later one can take as well. */
#include "source/ignore.h"

#include <ctype.h>

enum { RULES_MIN = 16 };

void qr_ignore_init(struct qr_ignore *ignore, struct qr_arena *arena)
{
    *ignore = (struct qr_ignore){.arena = arena};
}

/* ---- one character ---- */

static bool in_class(qr_str name, unsigned char c)
{
    static const struct {
        const char *name;
        int (*holds)(int c);
    } classes[] = {
        {"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
        {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
        {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
    };
    for (size_t i = 0; i < QR_COUNT(classes); i++) {
        if (qr_str_equal(name, qr_str_of(classes[i].name))) {
            return c < 0x80 && classes[i].holds(c);
        }
    }
    return false;
}

/* "[:name:]" at the front: its length, 0 when it is something else. */
static size_t class_len(qr_str set)
{
    if (!qr_str_starts_with(set, QR_STR("[:"))) {
        return 0;
    }
    const char *end = memchr(set.ptr + 2, ']', set.len - 2);
    const size_t len = end ? (size_t)(end - set.ptr) + 1 : 0;
    return len >= 4 && set.ptr[len - 2] == ':' ? len : 0;
}

/* The character at *at, an escaped one without its backslash; moves behind it. */
static unsigned char take_member(qr_str set, size_t *at)
{
    if (set.ptr[*at] == '\\' && *at + 1 < set.len) {
        (*at)++;
    }
    return (unsigned char)set.ptr[(*at)++];
}

/* "[…]" at the front of the pattern: its length, 0 when it is not closed. Whether c is in it: *ret_has. */
static size_t match_set(qr_str pattern, unsigned char c, bool *ret_has)
{
    size_t at = 1;
    const bool is_negated = at < pattern.len && (pattern.ptr[at] == '!' || pattern.ptr[at] == '^');
    at += is_negated;
    bool has = false;
    for (const size_t first = at; at < pattern.len && (pattern.ptr[at] != ']' || at == first);) {
        const qr_str rest = {pattern.ptr + at, pattern.len - at};
        const size_t class = class_len(rest);
        if (class) {
            has |= in_class((qr_str){rest.ptr + 2, class - 4}, c);
            at += class;
            continue;
        }
        const unsigned char low = take_member(pattern, &at);
        unsigned char high = low;
        if (at + 1 < pattern.len && pattern.ptr[at] == '-' && pattern.ptr[at + 1] != ']') {
            at++;
            high = take_member(pattern, &at);
        }
        has |= low <= c && c <= high;
    }
    *ret_has = has != is_negated;
    return at < pattern.len ? at + 1 : 0;
}

/* How many bytes of the pattern's front stand for the character c; 0 = they do not. */
static size_t match_one(qr_str pattern, unsigned char c)
{
    bool has;
    switch (pattern.ptr[0]) {
    case '?':
        return 1;
    case '[': {
        const size_t len = match_set(pattern, c, &has);
        return has ? len : 0;
    }
    case '\\':
        return pattern.len > 1 && (unsigned char)pattern.ptr[1] == c ? 2 : 0;
    default:
        return (unsigned char)pattern.ptr[0] == c;
    }
}

/* ---- names and paths ---- */

static bool match_name(qr_str pattern, qr_str name)
{
    size_t p = 0, n = 0, star_p = SIZE_MAX, star_n = 0;
    while (n < name.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star_p = ++p;
            star_n = n;
            continue;
        }
        const size_t len =
            p < pattern.len ? match_one((qr_str){pattern.ptr + p, pattern.len - p}, (unsigned char)name.ptr[n]) : 0;
        if (len) {
            p += len;
            n++;
        } else if (star_p != SIZE_MAX) {
            p = star_p;
            n = ++star_n;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*') {
        p++;
    }
    return p == pattern.len;
}

/* The end of the pattern's part that begins at `at`: the next '/' that is not in a set, or the backslash before it. */
static size_t part_end(qr_str pattern, size_t at)
{
    while (at < pattern.len && pattern.ptr[at] != '/') {
        bool has;
        size_t len = 1;
        if (pattern.ptr[at] == '\\' && at + 1 < pattern.len) {
            if (pattern.ptr[at + 1] == '/') {
                break;
            }
            len = 2;
        } else if (pattern.ptr[at] == '[') {
            len = match_set((qr_str){pattern.ptr + at, pattern.len - at}, 0, &has);
            len = len ? len : 1;
        }
        at += len;
    }
    return at;
}

static size_t next_part(qr_str pattern, size_t end)
{
    return end + 1 + (end < pattern.len && pattern.ptr[end] == '\\');
}

static bool is_any_folders(qr_str part)
{
    size_t stars = 0;
    while (stars < part.len && part.ptr[stars] == '*') {
        stars++;
    }
    return stars >= 2 && stars == part.len;
}

/* Part by part. Both positions are at the beginning of a part, and one behind the end when all are matched. */
static bool match_path(qr_str pattern, qr_str path)
{
    size_t p = 0, n = 0, star_p = SIZE_MAX, star_n = 0;
    while (n < path.len) {
        const size_t p_end = p < pattern.len ? part_end(pattern, p) : p;
        const qr_str part = {pattern.ptr + p, p_end - p};
        const char *slash = memchr(path.ptr + n, '/', path.len - n);
        const size_t n_end = slash ? (size_t)(slash - path.ptr) : path.len;
        if (p < pattern.len && is_any_folders(part)) {
            if (p_end == pattern.len) {
                return true;
            }
            star_p = p = next_part(pattern, p_end);
            star_n = n;
        } else if (p < pattern.len && match_name(part, (qr_str){path.ptr + n, n_end - n}) &&
                   (p_end == pattern.len) <= (n_end == path.len)) {
            p = next_part(pattern, p_end);
            n = n_end + 1;
        } else if (star_p != SIZE_MAX) {
            const char *next = memchr(path.ptr + star_n, '/', path.len - star_n);
            if (!next) {
                return false;
            }
            p = star_p;
            n = star_n = (size_t)(next - path.ptr) + 1;
        } else {
            return false;
        }
    }
    return p > pattern.len; /* the pattern's last part has matched the path's last name */
}

static qr_str last_name(qr_str path)
{
    const char *slash = memrchr(path.ptr, '/', path.len);
    const size_t before = slash ? (size_t)(slash - path.ptr) + 1 : 0;
    return (qr_str){path.ptr + before, path.len - before};
}

static bool matches(const struct qr_ignore_rule *rule, qr_str path, qr_str name, bool is_folder)
{
    if (rule->folders_only && !is_folder) {
        return false;
    }
    if (rule->is_name) {
        return rule->is_literal ? qr_str_equal(rule->pattern, name) : match_name(rule->pattern, name);
    }
    const qr_str below = {path.ptr + rule->base_bytes, path.len - rule->base_bytes};
    return rule->is_literal ? qr_str_equal(rule->pattern, below) : match_path(rule->pattern, below);
}

const struct qr_ignore_rule *qr_ignore_find(const struct qr_ignore *ignore, qr_str path, bool is_folder)
{
    const qr_str name = last_name(path);
    for (size_t i = ignore->count; i-- > 0;) {
        if (ignore->rules[i].base_bytes < path.len && matches(&ignore->rules[i], path, name, is_folder)) {
            return &ignore->rules[i];
        }
    }
    return NULL;
}

/* ---- reading ---- */

static qr_rc add_rule(struct qr_ignore *ignore, const struct qr_ignore_rule *rule, qr_err *err)
{
    if (ignore->count == QR_IGNORE_RULES_MAX) {
        return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "the ignore files have more than %d rules", QR_IGNORE_RULES_MAX);
    }
    if (ignore->count == ignore->capacity) {
        const size_t capacity = QR_MAX(ignore->capacity * 2, (size_t)RULES_MIN);
        struct qr_ignore_rule *rules = qr_arena_array(ignore->arena, capacity, sizeof *rules);
        if (!rules) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
        }
        if (ignore->count) {
            memcpy(rules, ignore->rules, ignore->count * sizeof *rules);
        }
        ignore->rules = rules;
        ignore->capacity = capacity;
    }
    ignore->rules[ignore->count++] = *rule;
    return QR_OK;
}

static bool is_literal(qr_str pattern)
{
    for (size_t i = 0; i < pattern.len; i++) {
        if (strchr("*?[\\", pattern.ptr[i])) { /* finds NUL too, which no name has */
            return false;
        }
    }
    return true;
}

static qr_rc add_line(struct qr_ignore *ignore, qr_str line, struct qr_ignore_rule rule, qr_err *err)
{
    if (line.len && line.ptr[0] == '!') {
        rule.is_negated = true;
        line = (qr_str){line.ptr + 1, line.len - 1};
    }
    if (line.len && line.ptr[line.len - 1] == '/') {
        rule.folders_only = true;
        line.len--;
    }
    rule.is_name = line.len == 0 || !memchr(line.ptr, '/', line.len);
    if (line.len && line.ptr[0] == '/') {
        line = (qr_str){line.ptr + 1, line.len - 1};
    }
    if (line.len == 0) {
        return QR_OK;
    }
    rule.is_literal = is_literal(line);
    rule.pattern = line;
    return add_rule(ignore, &rule, err);
}

/* Spaces at the end do not count, unless a backslash stands before them. */
static qr_str without_trailing_spaces(qr_str line)
{
    size_t end = 0;
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\\' && i + 1 < line.len) {
            i++;
            end = i + 1;
        } else if (line.ptr[i] != ' ') {
            end = i + 1;
        }
    }
    return (qr_str){line.ptr, end};
}

qr_rc qr_ignore_add_file(struct qr_ignore *ignore, qr_str text, qr_str folder, enum qr_ignore_origin origin,
                         qr_err *err)
{
    const char *copy = qr_arena_copy(ignore->arena, text);
    if (!copy) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    const struct qr_ignore_rule rule = {.origin = origin, .base_bytes = folder.len ? folder.len + 1 : 0};
    qr_str rest = {copy, text.len};
    if (qr_str_starts_with(rest, QR_STR("\xEF\xBB\xBF"))) {
        rest = (qr_str){rest.ptr + 3, rest.len - 3};
    }
    while (rest.len) {
        qr_str line = qr_str_split(&rest, '\n');
        if (line.len && line.ptr[line.len - 1] == '\r') {
            line.len--;
        }
        if (line.len == 0 || line.ptr[0] == '#') {
            continue;
        }
        QR_TRY(add_line(ignore, without_trailing_spaces(line), rule, err));
    }
    return QR_OK;
}

qr_rc qr_ignore_add_pattern(struct qr_ignore *ignore, qr_str pattern, qr_err *err)
{
    const char *copy = qr_arena_copy(ignore->arena, pattern);
    if (!copy) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    return add_line(ignore, (qr_str){copy, pattern.len}, (struct qr_ignore_rule){.origin = QR_IGNORE_LIST}, err);
}
