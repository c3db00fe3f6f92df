/* Declarations of functions, classes and the like, a way to write them a function: by a keyword, by an arrow, by brackets, by
 * CREATE, by a key. A wrong guess costs a heading, no text. */
#include "chunk/code_symbol.h"

enum { NAME_BYTES_MAX = 100 };

static const struct {
    const char *names;
    unsigned family;
} languages[] = {
    {" c h ", QR_LANG_C},
    {" cpp c++ cc cxx hpp hxx objc java csharp cs dart d ", QR_LANG_C | QR_LANG_CLASSES},
    {" javascript js jsx mjs typescript ts tsx vue svelte ", QR_LANG_SCRIPT | QR_LANG_CLASSES},
    {" python py ", QR_LANG_PYTHON | QR_LANG_CLASSES | QR_LANG_HASHES},
    {" go golang rust rs swift kotlin kt scala groovy zig ", QR_LANG_KEYWORD | QR_LANG_CLASSES},
    {" php ruby rb perl pl elixir ex julia jl r nim crystal tcl ", QR_LANG_KEYWORD | QR_LANG_CLASSES | QR_LANG_HASHES},
    {" lua haskell hs ", QR_LANG_KEYWORD | QR_LANG_DASHES},
    {" sh bash zsh shell fish make makefile dockerfile powershell ps1 ",
     QR_LANG_SHELL | QR_LANG_KEYWORD | QR_LANG_HASHES},
    {" sql plsql pgsql ", QR_LANG_SQL | QR_LANG_DASHES},
    {" yaml yml ", QR_LANG_KEYS | QR_LANG_HASHES},
    {" toml ini cfg conf properties ", QR_LANG_GROUPS | QR_LANG_HASHES},
};

static qr_str skip(qr_str text, size_t len)
{
    return (qr_str){text.ptr + len, text.len - len};
}

bool qr_code_is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c < 0;
}

/* A word between spaces in a list that begins and ends with one. */
bool qr_code_is_word_of(qr_str word, const char *list)
{
    enum { WORD_BYTES_MAX = 20 };
    char wanted[WORD_BYTES_MAX + 3];
    if (word.len == 0 || word.len > WORD_BYTES_MAX || memchr(word.ptr, ' ', word.len)) {
        return false;
    }
    wanted[0] = wanted[word.len + 1] = ' ';
    memcpy(wanted + 1, word.ptr, word.len);
    wanted[word.len + 2] = '\0';
    return strstr(list, wanted) != NULL;
}

qr_str qr_code_name_at(qr_str text)
{
    size_t len = 0;
    while (len < text.len && len < NAME_BYTES_MAX && qr_code_is_name_char(text.ptr[len])) {
        len++;
    }
    return qr_utf8_prefix(text, len);
}

static qr_str next_word(qr_str *rest)
{
    *rest = qr_str_trim(*rest);
    const qr_str word = qr_code_name_at(*rest);
    *rest = skip(*rest, word.len);
    return word;
}

unsigned qr_language_family(const char *mime)
{
    const char *named = mime ? strstr(mime, "language=") : NULL;
    const qr_str language = qr_str_of(named ? named + strlen("language=") : "");
    unsigned family = 0;
    for (size_t i = 0; i < QR_COUNT(languages); i++) {
        if (qr_code_is_word_of(language, languages[i].names)) {
            family = languages[i].family;
        }
    }
    return family;
}

/* ---- what a line declares ---- */

/* Without what may stand before a declaration: public, static, async, pub(crate) … */
static qr_str skip_modifiers(qr_str inner)
{
    static const char modifiers[] =
        " public private protected internal static inline extern constexpr virtual async export default abstract final "
        "override pub unsafe synchronized native readonly partial sealed open suspend typedef local declare data case ";
    for (;;) {
        const qr_str word = qr_code_name_at(inner);
        if (!qr_code_is_word_of(word, modifiers) || word.len == inner.len) {
            return inner;
        }
        inner = skip(inner, word.len);
        if (inner.ptr[0] == '(') { /* pub(crate) */
            const char *close = memchr(inner.ptr, ')', inner.len);
            inner = skip(inner, close ? (size_t)(close - inner.ptr) + 1 : inner.len);
        }
        inner = qr_str_trim(inner);
    }
}

/* "func (r *T) Name(", "impl<T> Name for", "def self.name": what is before the name is passed. */
static qr_str declared_name(qr_str rest, qr_str keyword)
{
    rest = qr_str_trim(rest);
    const char open = rest.len ? rest.ptr[0] : '\0';
    if (open == '(' || open == '<') {
        const char *close = memchr(rest.ptr, open == '(' ? ')' : '>', rest.len);
        rest = close ? qr_str_trim(skip(rest, (size_t)(close - rest.ptr) + 1)) : rest;
    }
    if (rest.len && (rest.ptr[0] == '*' || rest.ptr[0] == '&')) {
        rest = skip(rest, 1);
    }
    if (qr_str_starts_with(rest, QR_STR("self."))) {
        rest = skip(rest, strlen("self."));
    }
    if (qr_str_equal(keyword, QR_STR("enum")) && qr_str_starts_with(rest, QR_STR("class "))) {
        rest = skip(rest, strlen("class "));
    }
    return qr_code_name_at(rest);
}

static bool by_keyword(unsigned family, qr_str inner, struct qr_code_found *ret)
{
    static const char functions[] = " func fn function fun def defp sub proc macro ";
    static const char containers[] =
        " class interface namespace trait impl mod module defmodule record object protocol "
        "extension ";
    static const char types[] = " struct union enum type ";
    qr_str rest = skip_modifiers(inner);
    const qr_str keyword = next_word(&rest);
    const bool is_type = qr_code_is_word_of(keyword, types), is_container = qr_code_is_word_of(keyword, containers);
    if (!is_type && !is_container && !qr_code_is_word_of(keyword, functions)) {
        return false;
    }
    const char last = inner.ptr[inner.len - 1];
    const char *brace = memchr(inner.ptr, '{', inner.len), *equals = memchr(inner.ptr, '=', inner.len);
    const bool is_value = is_type && equals && (!brace || equals < brace);
    if ((last == ';' && !brace) || is_value || (is_type && family == QR_LANG_C && memchr(inner.ptr, '(', inner.len))) {
        return false; /* declared only, or a variable or a function of that type */
    }
    *ret = (struct qr_code_found){declared_name(rest, keyword),
                                  is_container || (is_type && (family & QR_LANG_C) && (family & QR_LANG_CLASSES))};
    return ret->name.len > 0;
}

/* "const name = (a) => {", "exports.name = function (" */
static bool by_arrow(qr_str inner, struct qr_code_found *ret)
{
    const char *equals = memmem(inner.ptr, inner.len, " = ", 3);
    if (!equals || (!memmem(inner.ptr, inner.len, "=>", 2) && !memmem(inner.ptr, inner.len, "function", 8))) {
        return false;
    }
    qr_str left = qr_str_trim((qr_str){inner.ptr, (size_t)(equals - inner.ptr)});
    size_t start = left.len;
    while (start && qr_code_is_name_char(left.ptr[start - 1])) {
        start--;
    }
    *ret = (struct qr_code_found){.name = qr_code_name_at(skip(left, start))};
    return ret->name.len > 0;
}

/* TEST(name) declares what its arguments say. */
static bool is_macro(qr_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] >= 'a' && name.ptr[i] <= 'z') {
            return false;
        }
    }
    return name.len > 1;
}

static qr_str with_arguments(qr_str inner, qr_str name)
{
    const qr_str rest = {name.ptr, inner.len - (size_t)(name.ptr - inner.ptr)};
    const char *close = memchr(rest.ptr, ')', rest.len);
    return close ? (qr_str){rest.ptr, (size_t)(close - rest.ptr) + 1} : name;
}

/* "static int name(struct x *x," and not a call, a condition or a declaration. */
static bool by_bracket(unsigned family, bool is_inside, qr_str inner, qr_str below, struct qr_code_found *ret)
{
    static const char control[] = " if for while switch return else do sizeof catch case throw new delete using assert "
                                  "import await typeof foreach lock goto ";
    const char *open = memchr(inner.ptr, '(', inner.len), *equals = memchr(inner.ptr, '=', inner.len);
    const char last = inner.ptr[inner.len - 1];
    if (!open || (equals && equals < open) || last == ';' || inner.ptr[0] == '#') {
        return false;
    }
    const qr_str before = qr_str_trim((qr_str){inner.ptr, (size_t)(open - inner.ptr)});
    size_t start = before.len;
    while (start && (qr_code_is_name_char(before.ptr[start - 1]) || before.ptr[start - 1] == ':' ||
                     before.ptr[start - 1] == '~')) {
        start--;
    }
    const qr_str name = qr_utf8_prefix(skip(before, start), NAME_BYTES_MAX);
    const bool has_type = start > 0, has_body = last == '{' || (below.len && below.ptr[0] == '{');
    if (name.len == 0 || (name.ptr[0] >= '0' && name.ptr[0] <= '9') || qr_code_is_word_of(name, control) ||
        qr_code_is_word_of(qr_code_name_at(inner), control) || name.ptr[name.len - 1] == ':') {
        return false;
    }
    *ret = (struct qr_code_found){.name = is_macro(name) ? with_arguments(inner, name) : name};
    if (family & QR_LANG_SCRIPT) {
        return is_inside && last == '{';
    }
    return has_body || (has_type && (last == ')' || last == ',' || last == '}' || last == '('));
}

/* "name() {" */
static bool by_parentheses(qr_str inner, struct qr_code_found *ret)
{
    const qr_str name = qr_code_name_at(inner);
    *ret = (struct qr_code_found){.name = name};
    return name.len && qr_str_starts_with(skip(inner, name.len), QR_STR("()"));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_sql_word(qr_str word, const char *list)
{
    char lowered[20];
    if (word.len >= sizeof lowered) {
        return false;
    }
    for (size_t i = 0; i < word.len; i++) {
        lowered[i] = lower(word.ptr[i]);
    }
    return qr_code_is_word_of((qr_str){lowered, word.len}, list);
}

/* "CREATE OR REPLACE FUNCTION IF NOT EXISTS name" */
static bool by_create(qr_str inner, struct qr_code_found *ret)
{
    enum { WORDS_MAX = 8 };
    static const char between[] =
        " or replace temp temporary unique materialized virtual unlogged global local external "
        "table view function procedure trigger index type schema database sequence extension "
        "domain role user policy if not exists concurrently alter ";
    qr_str rest = inner;
    if (!is_sql_word(next_word(&rest), " create alter ")) {
        return false;
    }
    qr_str word = {0};
    for (int i = 0; i < WORDS_MAX; i++) {
        rest = qr_str_trim(rest);
        while (rest.len && strchr("\"`[", rest.ptr[0]) && rest.ptr[0]) {
            rest = skip(rest, 1);
        }
        word = next_word(&rest);
        if (!is_sql_word(word, between)) {
            break;
        }
    }
    while (word.len && rest.len && rest.ptr[0] == '.') { /* schema.name */
        word.len = (size_t)(rest.ptr - word.ptr) + 1;
        rest = skip(rest, 1);
        word.len += next_word(&rest).len;
    }
    *ret = (struct qr_code_found){.name = word};
    return word.len > 0 && !is_sql_word(word, between);
}

/* "name:" or "[name]" at the margin. */
static bool by_key(unsigned family, qr_str inner, struct qr_code_found *ret)
{
    if (family & QR_LANG_KEYS) {
        const char *colon = memchr(inner.ptr, ':', inner.len);
        *ret = (struct qr_code_found){.name = {inner.ptr, colon ? (size_t)(colon - inner.ptr) : 0}};
        return ret->name.len && qr_code_name_at(inner).len && (colon + 1 == inner.ptr + inner.len || colon[1] == ' ');
    }
    const char *close = memchr(inner.ptr, ']', inner.len);
    if (inner.ptr[0] != '[' || !close) {
        return false;
    }
    const qr_str name = {inner.ptr + 1, (size_t)(close - inner.ptr) - 1};
    *ret = (struct qr_code_found){.name = name.len && name.ptr[0] == '[' ? skip(name, 1) : name};
    return ret->name.len > 0;
}

/* "static const int name[] = {", "const name = {": a value over several lines. */
qr_str qr_code_value_name(qr_str inner)
{
    const char *equals = memchr(inner.ptr, '=', inner.len);
    qr_str left = {inner.ptr, equals ? (size_t)(equals - inner.ptr) : 0};
    left = qr_str_trim(left);
    while (left.len && left.ptr[left.len - 1] == ']') {
        const char *open = memrchr(left.ptr, '[', left.len);
        left = qr_str_trim((qr_str){left.ptr, open ? (size_t)(open - left.ptr) : 0});
    }
    size_t start = left.len;
    while (start && qr_code_is_name_char(left.ptr[start - 1])) {
        start--;
    }
    return qr_code_name_at(skip(left, start));
}

bool qr_code_find_symbol(unsigned family, bool is_inside, qr_str inner, qr_str below, struct qr_code_found *ret)
{
    if (family & (QR_LANG_KEYS | QR_LANG_GROUPS)) {
        return !is_inside && by_key(family, inner, ret);
    }
    if (family & QR_LANG_SQL) {
        return by_create(inner, ret);
    }
    if (family == 0) {
        return false;
    }
    return by_keyword(family, inner, ret) || ((family & QR_LANG_SCRIPT) && by_arrow(inner, ret)) ||
           ((family & (QR_LANG_C | QR_LANG_SCRIPT)) && by_bracket(family, is_inside, inner, below, ret)) ||
           ((family & QR_LANG_SHELL) && by_parentheses(inner, ret));
}
