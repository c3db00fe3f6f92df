/* quire_read: the canonical text of an item, or a part of it by bytes, lines, page or heading. The text is fetched in parts, and
 * no more of it is kept than can be shown. */
#include "mcp/call.h"

#include <strings.h>

enum { PART_BYTES = 256 << 10, CHUNKS_A_PAGE = 200 };

struct reading {
    const struct mcp_call *call;
    json_t *item; /* of the API */
    /* what is asked for: bytes, or if line_start > 0 lines, both from..to, `end` behind the last */
    int64_t start, end;
    int64_t line_start, line_end;
    /* what was found */
    struct qr_buf text;
    int64_t at;        /* the first byte of it */
    int64_t at_line;   /* and its line */
    int64_t wanted_to; /* so far it would go if there were room */
    int64_t size_bytes, generation;
    size_t room_bytes;
};

/* ---- parts of the text ---- */

static qr_rc fetch_part(const struct reading *reading, int64_t offset, json_t **ret_part, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    mcp_add_path(reading->call, &target, "/content");
    qr_buf_printf(&target, "?offset=%lld&limit=%d", (long long)offset, (int)PART_BYTES);
    return mcp_ask(reading->call, "GET", &target, NULL, ret_part, err);
}

/* ---- a section by its heading ---- */

struct heading_search {
    const char *wanted;
    bool is_in_fence; /* of code, in which a # is no heading */
    int level;        /* of the heading that was found; 0 = none yet */
    int64_t start, end;
};

/* 1 to 6 of a line that is a heading in Markdown, which the text of pages and documents is; 0 of any other. */
static int heading_level(qr_str line)
{
    size_t level = 0;
    while (level < line.len && line.ptr[level] == '#') {
        level++;
    }
    return level >= 1 && level <= 6 && level < line.len && line.ptr[level] == ' ' ? (int)level : 0;
}

static bool has_words(qr_str line, const char *wanted)
{
    char copy[512];
    const qr_str kept = qr_utf8_prefix(line, sizeof copy - 1);
    memcpy(copy, kept.ptr, kept.len);
    copy[kept.len] = '\0';
    return strcasestr(copy, wanted);
}

/* The section goes on to the next heading that is no deeper. True: it is over. */
static bool look_at_line(struct heading_search *search, qr_str line, int64_t at)
{
    search->is_in_fence ^= qr_str_starts_with(line, QR_STR("```")) || qr_str_starts_with(line, QR_STR("~~~"));
    const int level = search->is_in_fence ? 0 : heading_level(line);
    if (level == 0) {
        return false;
    }
    if (search->level && level <= search->level) {
        search->end = at;
        return true;
    }
    if (!search->level && has_words(line, search->wanted)) {
        search->level = level;
        search->start = at;
    }
    return false;
}

/* All whole lines of a part, the last of the text without its end too. How many bytes that were; *is_over where no more are
 * needed. */
static size_t look_at_lines(struct heading_search *search, qr_str part, int64_t at, bool is_last, bool *is_over)
{
    size_t seen = 0;
    while (seen < part.len && !*is_over) {
        const char *line_end = memchr(part.ptr + seen, '\n', part.len - seen);
        const size_t len = line_end ? (size_t)(line_end - part.ptr) + 1 - seen : part.len - seen;
        if (!line_end && !is_last && seen > 0) {
            break; /* the rest of it is in the next part, which begins with it */
        }
        *is_over = look_at_line(search, (qr_str){part.ptr + seen, len}, at + (int64_t)seen);
        seen += len;
    }
    return seen;
}

static qr_rc find_heading(struct reading *reading, bool *ret_found, qr_err *err)
{
    struct heading_search search = {.wanted = mcp_text(reading->call->args, "heading"), .end = INT64_MAX};
    int64_t offset = 0, size = 0;
    bool is_over = false;
    do {
        QR_JSON *part = NULL;
        QR_TRY(fetch_part(reading, offset, &part, err));
        const json_t *text = json_object_get(part, "text");
        const qr_str bytes = {json_string_value(text), json_string_length(text)};
        size = mcp_number(part, "size_bytes", 0);
        const size_t seen = look_at_lines(&search, bytes, offset, offset + (int64_t)bytes.len >= size, &is_over);
        is_over = is_over || seen == 0;
        offset += (int64_t)seen;
    } while (!is_over && offset < size);
    *ret_found = search.level > 0;
    if (*ret_found) {
        reading->start = search.start;
        reading->end = search.end;
    }
    return QR_OK;
}

/* ---- a section by the pieces that the item was split into, which know pages, and what text without headings is about ---- */

static bool is_in_heading(const char *heading, const char *wanted)
{
    return heading && wanted && strcasestr(heading, wanted);
}

/* The bytes of the chunks that fit: from the first of them to the last one that follows without a gap. */
static void take_chunks(struct reading *reading, const json_t *chunks, bool *is_over)
{
    const char *heading = mcp_text(reading->call->args, "heading");
    const json_int_t page = mcp_number(reading->call->args, "page", 0);
    const json_t *chunk;
    size_t i;
    json_array_foreach(chunks, i, chunk)
    {
        const bool fits =
            heading ? is_in_heading(mcp_text(chunk, "heading"), heading) : mcp_number(chunk, "page", 0) == page;
        if (fits && reading->end == 0) {
            reading->start = mcp_number(chunk, "start", 0);
        }
        if (fits) {
            reading->end = QR_MAX(reading->end, (int64_t)mcp_number(chunk, "end", 0));
        }
        *is_over = *is_over || (!fits && reading->end > 0);
        if (*is_over) {
            return;
        }
    }
}

static qr_rc find_in_chunks(struct reading *reading, qr_err *err)
{
    QR_JSON *cursor = NULL;
    bool is_over = false;
    reading->end = 0;
    do {
        QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
        QR_JSON *answer = NULL;
        mcp_add_path(reading->call, &target, "/chunks");
        qr_buf_printf(&target, "?limit=%d", (int)CHUNKS_A_PAGE);
        if (cursor) {
            qr_buf_add_text(&target, "&cursor=");
            qr_url_add_encoded(&target, json_string_value(cursor));
        }
        QR_TRY(mcp_ask(reading->call, "GET", &target, NULL, &answer, err));
        take_chunks(reading, json_object_get(answer, "data"), &is_over);
        json_decref(cursor);
        cursor = json_incref(json_object_get(answer, "next_cursor"));
    } while (json_is_string(cursor) && !is_over);
    return reading->end > 0 ? QR_OK
                            : qr_fail(err, QR_CODE_NOT_FOUND,
                                      "%s has no such %s: quire_read without it shows the text from the beginning",
                                      mcp_text(reading->item, "name"),
                                      mcp_text(reading->call->args, "heading") ? "heading" : "page");
}

/* ---- what is asked for ---- */

static qr_rc find_section(struct reading *reading, qr_err *err)
{
    bool found = false;
    if (mcp_text(reading->call->args, "heading")) {
        QR_TRY(find_heading(reading, &found, err));
    }
    return found ? QR_OK : find_in_chunks(reading, err);
}

static qr_rc find_range(struct reading *reading, qr_err *err)
{
    const json_t *args = reading->call->args;
    const bool by_lines = json_object_get(args, "line_start") || json_object_get(args, "line_end");
    const bool by_bytes = json_object_get(args, "offset") || json_object_get(args, "length");
    const bool by_section = json_object_get(args, "page") || json_object_get(args, "heading");
    const bool by_both = json_object_get(args, "page") && json_object_get(args, "heading");
    if (by_lines + by_bytes + by_section > 1 || by_both) {
        return qr_fail(err, QR_CODE_INVALID_VALUE,
                       "say which part in one way: offset and length, or line_start and line_end, or page, or heading");
    }
    reading->start = mcp_number(args, "offset", 0);
    reading->end = json_object_get(args, "length") ? reading->start + mcp_number(args, "length", 0) : INT64_MAX;
    reading->line_start = by_lines ? mcp_number(args, "line_start", 1) : 0;
    reading->line_end = by_lines ? mcp_number(args, "line_end", INT64_MAX) : 0;
    if (by_lines && reading->line_end < reading->line_start) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "line_end is before line_start");
    }
    return by_section ? find_section(reading, err) : QR_OK;
}

/* ---- the text ---- */

/* The same place, or the next in front of which no character is cut. */
static int64_t next_character(qr_str line, int64_t at)
{
    while (at < (int64_t)line.len && (line.ptr[at] & 0xC0) == 0x80) {
        at++;
    }
    return at;
}

/* Takes one line, or what of it is in this part; `at` is its first byte. False: what was asked for is over. */
static bool take_line(struct reading *reading, qr_str line, int64_t at, int64_t number)
{
    const bool by_lines = reading->line_start > 0;
    const int64_t size = (int64_t)line.len;
    const bool is_wanted = !by_lines || (number >= reading->line_start && number <= reading->line_end);
    const int64_t from = by_lines ? 0 : next_character(line, QR_MAX(reading->start - at, (int64_t)0));
    const int64_t end = by_lines ? size : next_character(line, QR_MIN(size, reading->end - at));
    if (is_wanted && from < end) {
        if (reading->at_line == 0) {
            reading->at = at + from;
            reading->at_line = number;
        }
        reading->wanted_to = at + end;
        qr_buf_add(&reading->text, (qr_str){line.ptr + from, (size_t)(end - from)});
    }
    return by_lines ? number <= reading->line_end : at + size < reading->end;
}

/* False: no more is needed, or fits; one line more than there is room for tells that it is cut. */
static bool take_part(struct reading *reading, qr_str part, int64_t at, int64_t *number)
{
    while (part.len) {
        const char *line_end = memchr(part.ptr, '\n', part.len);
        const size_t len = line_end ? (size_t)(line_end - part.ptr) + 1 : part.len;
        if (!take_line(reading, (qr_str){part.ptr, len}, at, *number) || reading->text.len > reading->room_bytes) {
            return false;
        }
        *number += line_end != NULL;
        at += (int64_t)len;
        part = (qr_str){part.ptr + len, part.len - len};
    }
    return true;
}

static qr_rc read_text(struct reading *reading, qr_err *err)
{
    int64_t offset = 0, number = 1;
    bool goes_on = true;
    do {
        QR_JSON *part = NULL;
        QR_TRY(fetch_part(reading, offset, &part, err));
        const json_t *text = json_object_get(part, "text");
        const qr_str bytes = {json_string_value(text), json_string_length(text)};
        const int64_t generation = mcp_number(part, "generation", 0);
        if (offset > 0 && generation != reading->generation) {
            return qr_fail(err, QR_CODE_UNAVAILABLE, "the item was changed while it was being read");
        }
        reading->generation = generation;
        reading->size_bytes = mcp_number(part, "size_bytes", 0);
        goes_on = bytes.len > 0 && take_part(reading, bytes, offset, &number);
        offset += (int64_t)bytes.len;
    } while (goes_on && offset < reading->size_bytes);
    return qr_buf_check(&reading->text, err);
}

/* ---- the answer ---- */

static int64_t count_lines(qr_str text)
{
    int64_t count = 0;
    for (const char *at = text.ptr; text.len && (at = memchr(at, '\n', text.len - (size_t)(at - text.ptr))); at++) {
        count++;
    }
    return count;
}

/* At most `len_max` bytes: whole lines, unless the first one is longer. */
static qr_str cut(qr_str text, size_t len_max)
{
    const qr_str prefix = qr_utf8_prefix(text, len_max);
    const char *line_end = prefix.len < text.len ? memrchr(prefix.ptr, '\n', prefix.len) : NULL;
    return line_end ? (qr_str){prefix.ptr, (size_t)(line_end - prefix.ptr) + 1} : prefix;
}

static json_t *render(void *arg, size_t count)
{
    const struct reading *reading = arg;
    const qr_str text = cut(qr_buf_str(&reading->text), count);
    const int64_t end = reading->at + (int64_t)text.len;
    const bool is_cut = end < reading->wanted_to;
    const bool ends_line = text.len && text.ptr[text.len - 1] == '\n';
    const int64_t line_start = QR_MAX(reading->at_line, (int64_t)1); /* of an empty text too */
    const int64_t line_end = line_start + count_lines(text) - ends_line;
    return json_pack("{s:O, s:O, s:O, s:O, s:s%, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:s?}", "base_id",
                     mcp_get(reading->item, "base_id"), "item_id", mcp_get(reading->item, "id"), "name",
                     mcp_get(reading->item, "name"), "source", mcp_get(reading->item, "source"), "text", text.ptr,
                     text.len, "start", (json_int_t)reading->at, "end", (json_int_t)end, "line_start",
                     (json_int_t)line_start, "line_end", (json_int_t)line_end, "size_bytes",
                     (json_int_t)reading->size_bytes, "generation", (json_int_t)reading->generation, "next_offset",
                     is_cut && text.len ? json_integer((json_int_t)end) : json_null(), "note",
                     is_cut ? "This is not all: call again with offset = next_offset, or with more max_tokens." : NULL);
}

static qr_rc show(struct reading *reading, json_t **ret_result, qr_err *err)
{
    QR_JSON *result = NULL;
    size_t count = 0;
    QR_TRY(mcp_fit(reading->call, render, reading, reading->text.len, &count, &result, err));
    const json_t *text = json_object_get(json_object_get(result, "structuredContent"), "text");
    if (!result || (json_string_length(text) == 0 && reading->text.len > 0)) {
        return mcp_no_room(reading->call, err);
    }
    *ret_result = json_incref(result);
    return QR_OK;
}

static qr_rc read_item(struct reading *reading, json_t **ret_result, qr_err *err)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
    mcp_add_path(reading->call, &target, "");
    QR_TRY(mcp_ask(reading->call, "GET", &target, NULL, &reading->item, err));
    QR_TRY(find_range(reading, err));
    QR_TRY(read_text(reading, err));
    if (reading->text.len == 0 && (reading->start > 0 || reading->line_start > 1)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "%s ends before that: it has %lld bytes",
                       mcp_text(reading->item, "name"), (long long)reading->size_bytes);
    }
    return show(reading, ret_result, err);
}

static qr_rc run(const struct mcp_call *call, json_t **ret_result, qr_err *err)
{
    enum { BYTES_PER_TOKEN = 4 };
    struct reading reading = {.call = call, .room_bytes = (size_t)call->max_tokens * BYTES_PER_TOKEN};
    const qr_rc rc = read_item(&reading, ret_result, err);
    json_decref(reading.item);
    qr_buf_done(&reading.text);
    return rc;
}

const struct mcp_tool mcp_tool_read = {
    .name = "quire_read",
    .title = "Read an item",
    .description = "Shows the text of an item: from the beginning, or a part by bytes (offset, length), lines "
                   "(line_start, line_end), page or heading. After quire_search, give base = base_id, item = item_id "
                   "and offset = start of a hit, a little less to see what comes before. What is longer than "
                   "max_tokens is cut at a line, and next_offset says where to go on.",
    .is_read_only = true,
    .is_idempotent = true,
    .input_schema = MCP_SCHEMA_BEGIN
    "\"base\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Name or id of the base.\"},"
    "\"item\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Id of the item.\"},"
    "\"offset\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000000000000,\"description\":\"The first byte.\"},"
    "\"length\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000000000000,\"description\":\"At most so many "
    "bytes.\"},"
    "\"line_start\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"The first line; they count from 1.\"},"
    "\"line_end\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"The last line.\"},"
    "\"page\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"Of a document that has pages.\"},"
    "\"heading\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The section below the first heading that has "
    "these words.\"}," MCP_MAX_TOKENS_SCHEMA "},\"required\":[\"base\",\"item\"],\"additionalProperties\":false}",
    .output_schema = MCP_SCHEMA_BEGIN
    "\"base_id\":{\"type\":\"string\"},\"item_id\":{\"type\":\"string\"},\"name\":{\"type\":\"string\"},"
    "\"source\":{\"type\":[\"string\",\"null\"]},\"text\":{\"type\":\"string\"},\"start\":{\"type\":\"integer\"},"
    "\"end\":{\"type\":\"integer\"},\"line_start\":{\"type\":\"integer\"},\"line_end\":{\"type\":\"integer\"},"
    "\"size_bytes\":{\"type\":\"integer\",\"description\":\"Of the whole text.\"},"
    "\"generation\":{\"type\":\"integer\"},\"next_offset\":{\"type\":[\"integer\",\"null\"]},"
    "\"note\":{\"type\":[\"string\",\"null\"]}},"
    "\"required\":[\"base_id\",\"item_id\",\"name\",\"text\",\"start\",\"end\",\"line_start\",\"line_end\","
    "\"size_bytes\",\"next_offset\",\"note\"]}",
    .fn = run,
};
