/* Finds the main content of a page. Pure.
 *
 * Each element gets a place with how much text is in it and how much of that is links. Text in paragraphs and the like
 * scores for all elements around it, a little less with every step up: the best one is the innermost that still has
 * nearly all of the text. What a page itself marks as main comes first. Navigation is dropped by its tag, role or name,
 * and where it is called nothing, by being made of links. A page that would lose most of its text keeps everything. */
#include "convert/html_tree.h"

#include "base/mem.h"

#include <strings.h>

enum {
    TEXT_BYTES_SCORED = 25,      /* less is a caption or a button */
    MAIN_PERCENT_EXPLICIT = 25,  /* of the page's text, for what is marked as main */
    MAIN_PERCENT_FOUND = 60,     /* for what is only found to be */
    SUSPECT_PERCENT_MAX = 33,    /* what is called "sidebar" but has more than that is not one */
    LINKS_PERCENT = 80,          /* of its text: a list of links */
    LINKY_PERCENT = 40,          /* the same, for what is called a header */
    LINK_LISTS_PERCENT_MAX = 30, /* of the page: beyond, the lists are what it is for */
    LINKS_MIN = 4,
    LINK_BYTES_MAX = 40, /* on average; longer ones are titles of something */
    KEPT_PERCENT_MIN = 10,
};

enum { DROP = 1, NAVIGATION = 2, SCORED = 4, CONTAINER = 8, BLOCKS = 16, LIST = 32 };

static const uint8_t rules[GUMBO_TAG_LAST + 1] = {
    [GUMBO_TAG_HEAD] = DROP,
    [GUMBO_TAG_SCRIPT] = DROP,
    [GUMBO_TAG_STYLE] = DROP,
    [GUMBO_TAG_NOSCRIPT] = DROP,
    [GUMBO_TAG_TEMPLATE] = DROP,
    [GUMBO_TAG_SVG] = DROP,
    [GUMBO_TAG_IFRAME] = DROP,
    [GUMBO_TAG_OBJECT] = DROP,
    [GUMBO_TAG_EMBED] = DROP,
    [GUMBO_TAG_VIDEO] = DROP,
    [GUMBO_TAG_AUDIO] = DROP,
    [GUMBO_TAG_CANVAS] = DROP,
    [GUMBO_TAG_MAP] = DROP,
    [GUMBO_TAG_BUTTON] = DROP,
    [GUMBO_TAG_SELECT] = DROP,
    [GUMBO_TAG_DATALIST] = DROP,
    [GUMBO_TAG_TEXTAREA] = DROP,
    [GUMBO_TAG_INPUT] = DROP,
    [GUMBO_TAG_PROGRESS] = DROP,
    [GUMBO_TAG_METER] = DROP,
    [GUMBO_TAG_TITLE] = DROP,
    [GUMBO_TAG_APPLET] = DROP,
    [GUMBO_TAG_NOEMBED] = DROP,
    [GUMBO_TAG_RP] = DROP,
    [GUMBO_TAG_NAV] = NAVIGATION,
    [GUMBO_TAG_FOOTER] = NAVIGATION,
    [GUMBO_TAG_ASIDE] = NAVIGATION,
    [GUMBO_TAG_MENU] = NAVIGATION,
    [GUMBO_TAG_P] = SCORED,
    [GUMBO_TAG_PRE] = SCORED | BLOCKS,
    [GUMBO_TAG_LI] = SCORED,
    [GUMBO_TAG_DD] = SCORED,
    [GUMBO_TAG_TD] = SCORED | CONTAINER | LIST,
    [GUMBO_TAG_BLOCKQUOTE] = SCORED | BLOCKS,
    [GUMBO_TAG_DIV] = CONTAINER | LIST,
    [GUMBO_TAG_SECTION] = CONTAINER | LIST,
    [GUMBO_TAG_ARTICLE] = CONTAINER,
    [GUMBO_TAG_MAIN] = CONTAINER,
    [GUMBO_TAG_BODY] = CONTAINER,
    [GUMBO_TAG_CENTER] = LIST,
    [GUMBO_TAG_UL] = BLOCKS | LIST,
    [GUMBO_TAG_OL] = BLOCKS | LIST,
    [GUMBO_TAG_DL] = BLOCKS,
    [GUMBO_TAG_TABLE] = BLOCKS | LIST,
    [GUMBO_TAG_HR] = BLOCKS,
    [GUMBO_TAG_H1] = BLOCKS,
    [GUMBO_TAG_H2] = BLOCKS,
    [GUMBO_TAG_H3] = BLOCKS,
    [GUMBO_TAG_H4] = BLOCKS,
    [GUMBO_TAG_H5] = BLOCKS,
    [GUMBO_TAG_H6] = BLOCKS,
};

/* ---- what an element says about itself ---- */

static bool starts_with(const char *text, const char *word, size_t len)
{
    return strncasecmp(text, word, len) == 0;
}

static bool ends_word(char c)
{
    return c == '\0' || c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* Whether one of the classes or roles of an attribute is one of the names. By their first letter, for speed: a list for
 * each, between single spaces; a name with a * before it may also be a part of a longer word. */
static bool is_called(const char *value, const char *const names[26])
{
    for (const char *at = value; *at; at++) {
        const char *list = is_letter(*at) ? names[(*at | 0x20) - 'a'] : NULL;
        qr_str rest = qr_str_of(list);
        while (rest.len) {
            qr_str name = qr_str_split(&rest, ' ');
            const bool is_part = name.ptr[0] == '*';
            name = is_part ? (qr_str){name.ptr + 1, name.len - 1} : name;
            if (starts_with(at, name.ptr, name.len) &&
                (is_part || (ends_word(at[name.len]) && (at == value || ends_word(at[-1]))))) {
                return true;
            }
        }
    }
    return false;
}

static const char *const navigation_names[26] = {
    ['a' - 'a'] = "advert ads ad",
    ['b' - 'a'] = "*breadcrumb banner",
    ['c' - 'a'] = "*cookie *consent",
    ['f' - 'a'] = "footer",
    ['g' - 'a'] = "*gdpr gutter",
    ['l' - 'a'] = "linenos lineno line-numbers",
    ['m' - 'a'] = "menu masthead mw-editsection mw-jump-link",
    ['n' - 'a'] = "nav nav-panel *navbar *navigation *navheader *navfooter *newsletter noprint",
    ['p' - 'a'] = "*pagination page-footer",
    ['r' - 'a'] = "related",
    ['s' - 'a'] = "*sidebar sidenav site-footer *skip-link *share-buttons *social-links",
    ['t' - 'a'] = "topnav topbar toolbar toc toctree",
};

static const char *const navigation_roles[26] = {
    ['a' - 'a'] = "alertdialog", ['b' - 'a'] = "banner",       ['c' - 'a'] = "contentinfo complementary",
    ['d' - 'a'] = "dialog",      ['m' - 'a'] = "menu menubar", ['n' - 'a'] = "navigation",
    ['s' - 'a'] = "search",      ['t' - 'a'] = "toolbar",
};

/* Only when they are made of links. */
static const char *const linky_names[26] = {['h' - 'a'] = "header head", ['n' - 'a'] = "node", ['t' - 'a'] = "top"};

static bool is_hidden(const GumboElement *element)
{
    const char *style = qr_html_attribute(element, "style");
    return gumbo_get_attribute(&element->attributes, "hidden") ||
           strcasecmp(qr_html_attribute(element, "aria-hidden"), "true") == 0 ||
           (style[0] && (strcasestr(style, "display:none") || strcasestr(style, "display: none") ||
                         strcasestr(style, "visibility:hidden") || strcasestr(style, "visibility: hidden")));
}

/* QR_HTML_DROPPED for sure, QR_HTML_SUSPECT by its name, QR_HTML_EXPLICIT for the main content. */
static uint8_t look_at(const GumboElement *element)
{
    const uint8_t rule = rules[element->tag];
    if (rule & DROP || element->tag_namespace == GUMBO_NAMESPACE_SVG) {
        return QR_HTML_DROPPED;
    }
    if (element->tag == GUMBO_TAG_BODY || element->tag == GUMBO_TAG_HTML) {
        return 0;
    }
    const bool is_main = element->tag == GUMBO_TAG_MAIN;
    if (element->attributes.length == 0) {
        return is_main ? QR_HTML_EXPLICIT : rule & NAVIGATION ? QR_HTML_SUSPECT | QR_HTML_DROPPED : 0;
    }
    const char *role = qr_html_attribute(element, "role");
    if (is_hidden(element)) {
        return QR_HTML_DROPPED;
    }
    if (rule & NAVIGATION || is_called(role, navigation_roles)) {
        return QR_HTML_SUSPECT | QR_HTML_DROPPED;
    }
    if (is_main || strcasecmp(role, "main") == 0) {
        return QR_HTML_EXPLICIT;
    }
    const char *class = qr_html_attribute(element, "class"), *id = qr_html_attribute(element, "id");
    if (is_called(class, navigation_names) || is_called(id, navigation_names)) {
        return QR_HTML_SUSPECT;
    }
    return is_called(class, linky_names) || is_called(id, linky_names) ? QR_HTML_LINKY : 0;
}

/* ---- measuring ---- */

struct measure {
    struct qr_html_page *page;
    size_t capacity;
    struct qr_html_stack stack;
    unsigned link_depth;
    size_t explicit_count, explicit_at, best_at, h1_count;
    const GumboNode *explicit_node, *best_node, *body;
    size_t body_at, navigation_text;
    float best_score;
};

static bool add_place(struct measure *at)
{
    struct qr_html_page *page = at->page;
    if (page->count == at->capacity) {
        const size_t capacity = at->capacity ? at->capacity * 2 : 256;
        struct qr_html_place *places = qr_resize(page->places, capacity * sizeof *places);
        if (!places) {
            return false;
        }
        page->places = places;
        at->capacity = capacity;
    }
    page->places[page->count++] = (struct qr_html_place){.size = 1};
    return true;
}

static uint32_t text_bytes(const char *text)
{
    uint32_t count = 0;
    bool was_space = true;
    for (; *text; text++) {
        const bool is_space = *text == ' ' || (*text >= '\t' && *text <= '\r');
        count += !(is_space && was_space);
        was_space = is_space;
    }
    return count;
}

static void note_element(struct measure *at, const GumboNode *node, size_t place_at, struct qr_html_place *place)
{
    const GumboTag tag = node->v.element.tag;
    if (tag == GUMBO_TAG_BODY && !at->body) {
        at->body = node;
        at->body_at = place_at;
    }
    if (place->flags & QR_HTML_EXPLICIT) {
        at->explicit_count++;
        at->explicit_node = node;
        at->explicit_at = place_at;
    }
    if (tag == GUMBO_TAG_H1) {
        at->h1_count++;
        at->page->heading = node;
        at->page->heading_at = place_at;
        place->flags |= QR_HTML_HAS_H1;
    }
    if (tag == GUMBO_TAG_MAIN || tag == GUMBO_TAG_ARTICLE || place->flags & QR_HTML_EXPLICIT) {
        place->flags |= QR_HTML_INSIDE;
    }
    if (tag == GUMBO_TAG_HEADER && !(place->flags & QR_HTML_INSIDE)) {
        place->flags |= QR_HTML_SUSPECT; /* of the site, not of an article */
    }
    place->flags |= rules[tag] & LIST ? QR_HTML_LIST : 0;
}

static void take_text(struct measure *at, const GumboNode *node)
{
    const uint32_t count = text_bytes(node->v.text.text);
    struct qr_html_place *place = &at->page->places[at->stack.frames[at->stack.depth - 1].at];
    place->text += count;
    place->links += at->link_depth ? count : 0;
}

static bool enter(struct measure *at, const GumboNode *node)
{
    if (node->type == GUMBO_NODE_TEXT || node->type == GUMBO_NODE_CDATA) {
        take_text(at, node);
    }
    if (node->type != GUMBO_NODE_ELEMENT) {
        return true;
    }
    if (!add_place(at)) {
        return false;
    }
    const size_t place_at = at->page->count - 1;
    struct qr_html_place *place = &at->page->places[place_at];
    place->flags = look_at(&node->v.element);
    if (node->v.element.tag == GUMBO_TAG_HEAD && node->v.element.tag_namespace == GUMBO_NAMESPACE_HTML) {
        for (unsigned i = 0; i < node->v.element.children.length && !at->page->title; i++) {
            const GumboNode *child = node->v.element.children.data[i];
            const bool is_title = child->type == GUMBO_NODE_ELEMENT && child->v.element.tag == GUMBO_TAG_TITLE;
            at->page->title = is_title ? child : NULL;
        }
    }
    if (place->flags == QR_HTML_DROPPED) {
        if (at->stack.depth) {
            at->page->places[at->stack.frames[at->stack.depth - 1].at].size++;
        }
        return true;
    }
    if (at->stack.depth) {
        const struct qr_html_place *above = &at->page->places[at->stack.frames[at->stack.depth - 1].at];
        place->flags |= above->flags & QR_HTML_INSIDE;
    }
    note_element(at, node, place_at, place);
    at->link_depth += node->v.element.tag == GUMBO_TAG_A;
    return qr_html_push(&at->stack, node, place_at) != NULL;
}

static void score(struct measure *at, const struct qr_html_frame *frame, struct qr_html_place *place)
{
    const GumboTag tag = frame->node->v.element.tag;
    const float not_links = 1.0f - (float)place->links / (float)(place->text + 1);
    const float worth = place->score * not_links * (tag == GUMBO_TAG_ARTICLE || tag == GUMBO_TAG_MAIN ? 1.5f : 1.0f);
    const bool is_out = place->flags & (QR_HTML_DROPPED | QR_HTML_SUSPECT);
    if (rules[tag] & CONTAINER && !is_out && worth > at->best_score * 1.02f) {
        at->best_score = worth;
        at->best_node = frame->node;
        at->best_at = frame->at;
    }
    if (rules[tag] & SCORED && place->text > TEXT_BYTES_SCORED) {
        place->score += 1.0f + (float)place->text / 100.0f * not_links;
    }
}

static void leave(struct measure *at)
{
    const struct qr_html_frame *frame = &at->stack.frames[--at->stack.depth];
    const GumboTag tag = frame->node->v.element.tag;
    struct qr_html_place *place = &at->page->places[frame->at];
    at->link_depth -= tag == GUMBO_TAG_A;
    place->link_count += tag == GUMBO_TAG_A;
    score(at, frame, place);
    if (at->stack.depth == 0) {
        return;
    }
    struct qr_html_place *above = &at->page->places[at->stack.frames[at->stack.depth - 1].at];
    const GumboTag tag_above = at->stack.frames[at->stack.depth - 1].node->v.element.tag;
    above->size += place->size;
    above->flags |= place->flags & (QR_HTML_HAS_BLOCKS | QR_HTML_HAS_H1);
    above->flags |= rules[tag] & BLOCKS ? QR_HTML_HAS_BLOCKS : 0;
    if (tag == GUMBO_TAG_TD || tag == GUMBO_TAG_TH) {
        above->cells++;
    } else if (tag_above != GUMBO_TAG_TR && tag != GUMBO_TAG_TABLE) {
        above->cells = QR_MAX(above->cells, place->cells);
    }
    at->navigation_text += place->flags & QR_HTML_DROPPED ? place->text : 0;
    if (!(place->flags & QR_HTML_DROPPED)) {
        above->text += place->text;
        above->links += place->links;
        above->link_count += place->link_count;
        above->score += place->flags & QR_HTML_SUSPECT ? 0 : place->score * 0.98f;
    }
}

static bool walk(struct measure *at, const GumboNode *root)
{
    if (!enter(at, root)) {
        return false;
    }
    while (at->stack.depth) {
        struct qr_html_frame *frame = &at->stack.frames[at->stack.depth - 1];
        const GumboVector *children = &frame->node->v.element.children;
        if (frame->next == children->length) {
            leave(at);
        } else if (!enter(at, children->data[frame->next++])) {
            return false;
        }
    }
    return true;
}

/* ---- deciding ---- */

static bool is_at_least(size_t part, size_t whole, unsigned percent)
{
    return part * 100 >= whole * percent;
}

static void choose_main(struct measure *at)
{
    struct qr_html_page *page = at->page;
    const size_t total = page->places[at->body_at].text;
    page->main = at->body;
    page->main_at = at->body_at;
    if (at->explicit_count == 1 && is_at_least(page->places[at->explicit_at].text, total, MAIN_PERCENT_EXPLICIT)) {
        page->main = at->explicit_node;
        page->main_at = at->explicit_at;
    } else if (at->best_node && is_at_least(page->places[at->best_at].text, total, MAIN_PERCENT_FOUND)) {
        page->main = at->best_node;
        page->main_at = at->best_at;
    }
    /* the only h1, if it is not inside anyway, and is shown at all */
    const size_t end = page->main_at + page->places[page->main_at].size;
    const bool is_inside = page->heading_at >= page->main_at && page->heading_at < end;
    if (at->h1_count != 1 || is_inside || page->places[page->main_at].flags & QR_HTML_HAS_H1) {
        page->heading = NULL;
    }
}

/* Lets everything through again that was only taken for navigation. */
static void keep_all(struct qr_html_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        struct qr_html_place *place = &page->places[i];
        place->flags &= (uint8_t) ~(place->flags & QR_HTML_SUSPECT ? QR_HTML_SUSPECT | QR_HTML_DROPPED : 0);
    }
}

static void drop_suspects(struct qr_html_page *page)
{
    const size_t total = page->places[page->main_at].text;
    for (size_t i = 0; i < page->count; i++) {
        struct qr_html_place *place = &page->places[i];
        const bool is_small = !is_at_least(place->text, total, SUSPECT_PERCENT_MAX);
        const bool has_heading = place->flags & QR_HTML_HAS_H1;
        if (place->flags & QR_HTML_SUSPECT && i != page->main_at && !has_heading &&
            (is_small || is_at_least(place->links, place->text, LINKS_PERCENT))) {
            place->flags |= QR_HTML_DROPPED;
        }
        if (place->flags & QR_HTML_LINKY && is_small && !has_heading &&
            is_at_least(place->links, place->text, LINKY_PERCENT)) {
            place->flags |= QR_HTML_DROPPED;
        }
    }
}

static bool is_link_list(const struct qr_html_place *place)
{
    return place->flags & QR_HTML_LIST && place->link_count >= LINKS_MIN &&
           is_at_least(place->links, place->text, LINKS_PERCENT) &&
           place->links <= (size_t)place->link_count * LINK_BYTES_MAX;
}

/* The outermost lists of links in the main content; dropped when they are not what the page is for. */
static void drop_link_lists(struct qr_html_page *page)
{
    const size_t end = page->main_at + page->places[page->main_at].size;
    size_t text = 0;
    for (int round = 0; round < 2; round++) {
        for (size_t i = page->main_at + 1; i < end; i++) {
            struct qr_html_place *place = &page->places[i];
            if (!(place->flags & QR_HTML_DROPPED) && !is_link_list(place)) {
                continue;
            }
            if (round == 0) {
                text += place->flags & QR_HTML_DROPPED ? 0 : place->text;
            } else {
                place->flags |= QR_HTML_DROPPED;
            }
            i += place->size - 1;
        }
        if (is_at_least(text, page->places[page->main_at].text, LINK_LISTS_PERCENT_MAX)) {
            return;
        }
    }
}

qr_rc qr_html_measure(const GumboNode *root, struct qr_html_page *ret, qr_err *err)
{
    *ret = (struct qr_html_page){0};
    struct measure at = {.page = ret};
    const bool is_done = walk(&at, root);
    qr_html_stack_done(&at.stack);
    if (!is_done) {
        qr_html_page_done(ret);
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an HTML page");
    }
    if (!at.body) {
        return QR_OK;
    }
    choose_main(&at);
    const size_t kept = ret->places[ret->main_at].text;
    if (!is_at_least(kept, kept + at.navigation_text, KEPT_PERCENT_MIN)) {
        keep_all(ret);
        ret->main = at.body;
        ret->main_at = at.body_at;
        ret->heading = NULL;
    } else {
        drop_suspects(ret);
        if (ret->main != at.explicit_node) {
            drop_link_lists(ret);
        }
    }
    return QR_OK;
}

void qr_html_page_done(struct qr_html_page *page)
{
    qr_free(page->places);
    *page = (struct qr_html_page){0};
}
