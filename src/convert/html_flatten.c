/* Takes the depth out of HTML before it is parsed: gumbo looks along all open elements at each tag, so a hundred
 * thousand of them, one inside the other, would take minutes. Tags beyond a depth that no page needs become spaces; text
 * and lines stay where they are. Pure.
 *
 * It follows the tags as a parser would, roughly: elements whose end tag may be missing are not counted, and elements of
 * letters (b, font …) apart from the others, since a parser opens them again behind the end of what they are in. */
#include "convert/html_tree.h"

#include <strings.h>

enum {
    DEPTH_MAX = 256,
    LETTERS_DEPTH_MAX = 32,
    NAME_BYTES_MAX = 32,
    PARTS_MAX = 1000, /* gumbo compares each attribute with all before it */
};

enum kind { COUNTED, UNCOUNTED, LETTERS, RAW };

static const uint8_t kinds[GUMBO_TAG_LAST + 1] = {
    /* empty elements, and those that end where the next one begins */
    [GUMBO_TAG_HTML] = UNCOUNTED,
    [GUMBO_TAG_HEAD] = UNCOUNTED,
    [GUMBO_TAG_BODY] = UNCOUNTED,
    [GUMBO_TAG_BASE] = UNCOUNTED,
    [GUMBO_TAG_LINK] = UNCOUNTED,
    [GUMBO_TAG_META] = UNCOUNTED,
    [GUMBO_TAG_P] = UNCOUNTED,
    [GUMBO_TAG_HR] = UNCOUNTED,
    [GUMBO_TAG_LI] = UNCOUNTED,
    [GUMBO_TAG_DT] = UNCOUNTED,
    [GUMBO_TAG_DD] = UNCOUNTED,
    [GUMBO_TAG_BR] = UNCOUNTED,
    [GUMBO_TAG_WBR] = UNCOUNTED,
    [GUMBO_TAG_IMG] = UNCOUNTED,
    [GUMBO_TAG_IMAGE] = UNCOUNTED,
    [GUMBO_TAG_EMBED] = UNCOUNTED,
    [GUMBO_TAG_PARAM] = UNCOUNTED,
    [GUMBO_TAG_SOURCE] = UNCOUNTED,
    [GUMBO_TAG_TRACK] = UNCOUNTED,
    [GUMBO_TAG_AREA] = UNCOUNTED,
    [GUMBO_TAG_COL] = UNCOUNTED,
    [GUMBO_TAG_INPUT] = UNCOUNTED,
    [GUMBO_TAG_KEYGEN] = UNCOUNTED,
    [GUMBO_TAG_FRAME] = UNCOUNTED,
    [GUMBO_TAG_TR] = UNCOUNTED,
    [GUMBO_TAG_TD] = UNCOUNTED,
    [GUMBO_TAG_TH] = UNCOUNTED,
    [GUMBO_TAG_TBODY] = UNCOUNTED,
    [GUMBO_TAG_THEAD] = UNCOUNTED,
    [GUMBO_TAG_TFOOT] = UNCOUNTED,
    [GUMBO_TAG_OPTION] = UNCOUNTED,
    [GUMBO_TAG_COLGROUP] = UNCOUNTED,
    [GUMBO_TAG_BASEFONT] = UNCOUNTED,
    [GUMBO_TAG_BGSOUND] = UNCOUNTED,
    [GUMBO_TAG_SPACER] = UNCOUNTED,

    [GUMBO_TAG_A] = LETTERS,
    [GUMBO_TAG_B] = LETTERS,
    [GUMBO_TAG_BIG] = LETTERS,
    [GUMBO_TAG_CODE] = LETTERS,
    [GUMBO_TAG_EM] = LETTERS,
    [GUMBO_TAG_FONT] = LETTERS,
    [GUMBO_TAG_I] = LETTERS,
    [GUMBO_TAG_NOBR] = LETTERS,
    [GUMBO_TAG_S] = LETTERS,
    [GUMBO_TAG_SMALL] = LETTERS,
    [GUMBO_TAG_STRIKE] = LETTERS,
    [GUMBO_TAG_STRONG] = LETTERS,
    [GUMBO_TAG_TT] = LETTERS,
    [GUMBO_TAG_U] = LETTERS,

    /* no tags inside but their own end */
    [GUMBO_TAG_SCRIPT] = RAW,
    [GUMBO_TAG_STYLE] = RAW,
    [GUMBO_TAG_TITLE] = RAW,
    [GUMBO_TAG_TEXTAREA] = RAW,
    [GUMBO_TAG_XMP] = RAW,
    [GUMBO_TAG_IFRAME] = RAW,
    [GUMBO_TAG_NOEMBED] = RAW,
    [GUMBO_TAG_NOFRAMES] = RAW,
};

struct tag {
    size_t start, end; /* from < to behind > */
    size_t parts;      /* of it, its attributes among them */
    qr_str name;
    GumboTag id;
    bool is_end, is_closed; /* </x>, <x/> */
};

struct flattener {
    char *text;
    size_t len;
    GumboTag open[DEPTH_MAX];
    size_t depth, beyond;   /* elements that were blanked out and are still open */
    size_t foreign, tables; /* of the open ones: svg and math, inside of which <x/> is empty; tables */
    struct {
        GumboTag id;
        size_t tables; /* an end tag in a table's cell does not reach beyond it */
    } letters[LETTERS_DEPTH_MAX];
    size_t letters_depth;
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Behind the > that ends a tag; quotes hide one. *ret_parts: at least as many as it has attributes. */
static size_t tag_end(const struct flattener *at, size_t i, size_t *ret_parts)
{
    char quote = '\0', before = '\0';
    *ret_parts = 0;
    for (; i < at->len; i++) {
        const char c = at->text[i];
        if (quote) {
            quote = c == quote ? '\0' : quote;
        } else if (c == '>') {
            return i + 1;
        } else if ((c == '"' || c == '\'') && before == '=') {
            quote = c;
        } else if (strchr(" \t\n\f/\"'", c)) {
            ++*ret_parts;
        }
        before = c == ' ' || c == '\n' || c == '\t' ? before : c;
    }
    return at->len;
}

/* Where the comment that begins there ends, or the declaration. */
static size_t comment_end(const struct flattener *at, size_t start)
{
    const bool is_comment = at->len - start >= 4 && memcmp(at->text + start, "<!--", 4) == 0;
    const char *end = is_comment ? memmem(at->text + start + 4, at->len - start - 4, "-->", 3)
                                 : memchr(at->text + start, '>', at->len - start);
    return end ? (size_t)(end - at->text) + 1 : at->len;
}

/* The next tag at or behind `start`. */
static bool find_tag(const struct flattener *at, size_t start, struct tag *ret)
{
    while (start < at->len) {
        const char *open = memchr(at->text + start, '<', at->len - start);
        if (!open) {
            return false;
        }
        start = (size_t)(open - at->text);
        const char next = at->len - start > 1 ? open[1] : '\0';
        if (next == '!' || next == '?') {
            start = comment_end(at, start);
            continue;
        }
        const size_t name = start + (next == '/' ? 2 : 1);
        size_t end = name;
        while (end < at->len && end - name < NAME_BYTES_MAX && !strchr(" \t\n\f/>", at->text[end])) {
            end++;
        }
        if (end == name || !is_letter(at->text[name])) {
            start++;
            continue;
        }
        ret->start = start;
        ret->name = (qr_str){at->text + name, end - name};
        ret->end = tag_end(at, end, &ret->parts);
        ret->id = gumbo_tagn_enum(ret->name.ptr, (unsigned)ret->name.len);
        ret->is_end = next == '/';
        ret->is_closed = ret->end - start > 2 && at->text[ret->end - 1] == '>' && at->text[ret->end - 2] == '/';
        return true;
    }
    return false;
}

static void blank_out(struct flattener *at, const struct tag *tag)
{
    for (size_t i = tag->start; i < tag->end; i++) {
        at->text[i] = at->text[i] == '\n' ? '\n' : ' ';
    }
}

static void take_letters(struct flattener *at, const struct tag *tag)
{
    while (at->letters_depth && at->letters[at->letters_depth - 1].tables > at->tables) {
        at->letters_depth--; /* the end of a cell ends them */
    }
    size_t i = at->letters_depth;
    while (i && !(at->letters[i - 1].id == tag->id && at->letters[i - 1].tables == at->tables)) {
        i--;
    }
    if (tag->is_end) {
        if (i) {
            memmove(&at->letters[i - 1], &at->letters[i], (at->letters_depth - i) * sizeof at->letters[0]);
            at->letters_depth--;
        }
    } else if (i && (tag->id == GUMBO_TAG_A || tag->id == GUMBO_TAG_NOBR)) {
        return; /* it ends the one before */
    } else if (at->letters_depth == LETTERS_DEPTH_MAX) {
        blank_out(at, tag);
    } else {
        at->letters[at->letters_depth].id = tag->id;
        at->letters[at->letters_depth++].tables = at->tables;
    }
}

static bool is_foreign(GumboTag id)
{
    return id == GUMBO_TAG_SVG || id == GUMBO_TAG_MATH;
}

static void take_end(struct flattener *at, const struct tag *tag)
{
    if (at->beyond) {
        at->beyond--;
        blank_out(at, tag);
        return;
    }
    for (size_t i = at->depth; i > 0; i--) {
        if (at->open[i - 1] == tag->id) {
            for (; at->depth >= i; at->depth--) {
                at->foreign -= is_foreign(at->open[at->depth - 1]);
                at->tables -= at->open[at->depth - 1] == GUMBO_TAG_TABLE;
            }
            return;
        }
    }
}

static void take_start(struct flattener *at, const struct tag *tag)
{
    if (at->foreign && tag->is_closed) {
        return;
    }
    if (at->depth == DEPTH_MAX) {
        at->beyond++;
        blank_out(at, tag);
        return;
    }
    at->open[at->depth++] = tag->id;
    at->foreign += is_foreign(tag->id);
    at->tables += tag->id == GUMBO_TAG_TABLE;
}

/* Where the end tag of a raw element begins. */
static size_t raw_end(const struct flattener *at, const struct tag *tag)
{
    for (size_t i = tag->end; i < at->len;) {
        const char *found = memmem(at->text + i, at->len - i, "</", 2);
        if (!found) {
            return at->len;
        }
        i = (size_t)(found - at->text);
        if (at->len - i >= tag->name.len + 2 && strncasecmp(found + 2, tag->name.ptr, tag->name.len) == 0) {
            return i;
        }
        i += 2;
    }
    return at->len;
}

void qr_html_flatten(char *text, size_t len)
{
    struct flattener at = {.text = text, .len = len};
    struct tag tag;
    for (size_t start = 0; find_tag(&at, start, &tag); start = tag.end) {
        if (tag.parts > PARTS_MAX) {
            blank_out(&at, &tag);
            continue;
        }
        switch ((enum kind)kinds[tag.id]) {
        case UNCOUNTED:
            break;
        case LETTERS:
            take_letters(&at, &tag);
            break;
        case RAW:
            tag.end = tag.is_end || at.foreign ? tag.end : raw_end(&at, &tag);
            break;
        case COUNTED:
            if (tag.is_end) {
                take_end(&at, &tag);
            } else {
                take_start(&at, &tag);
            }
            break;
        }
    }
}
