/* A line is chosen, then what the page itself has of it (no list marker, one cell of a table), then a few of its words. */
#include "api/text_fragment.h"

enum {
    WORDS_BEFORE = 3, /* the highlight */
    WORDS_MAX = 8,    /* enough to be nowhere else in the page */
    BYTES_MAX = 160,  /* before coding */
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- the line ---- */

struct span {
    size_t start, end;
};

static qr_str at(qr_str text, struct span span)
{
    return (qr_str){text.ptr + span.start, span.end - span.start};
}

static void trim(qr_str text, struct span *span)
{
    while (span->start < span->end && is_space(text.ptr[span->start])) {
        span->start++;
    }
    while (span->end > span->start && is_space(text.ptr[span->end - 1])) {
        span->end--;
    }
}

/* "## ", "- ", "12. ", ": ", "> ", and the "\" before what only looks like one of them. */
static size_t marker_len(qr_str line)
{
    size_t len = 0;
    while (len < line.len && line.ptr[len] == '#') {
        len++;
    }
    if (len == 0 && line.len && strchr("->:", line.ptr[0])) {
        len = 1;
    } else if (len == 0 && line.len > 1 && line.ptr[0] == '\\' && strchr("#`~", line.ptr[1])) {
        return 1;
    }
    size_t digits = 0;
    while (digits < line.len && line.ptr[digits] >= '0' && line.ptr[digits] <= '9') {
        digits++;
    }
    if (digits && digits < line.len && line.ptr[digits] == '.') {
        len = digits + 1;
    }
    return len && len < line.len && line.ptr[len] == ' ' ? len : 0;
}

static bool is_fence(qr_str line)
{
    return qr_str_starts_with(line, QR_STR("```"));
}

/* What of a line stands in the page; empty where nothing does. */
static struct span shown_part(qr_str text, struct span line)
{
    trim(text, &line);
    for (size_t len; (len = marker_len(at(text, line)));) {
        line.start += len;
        trim(text, &line);
    }
    if (is_fence(at(text, line)) || qr_str_starts_with(at(text, line), QR_STR("| ---"))) {
        line.end = line.start;
    }
    return line;
}

static size_t count_inside(const struct qr_range *ranges, size_t count, struct span span, size_t *ret_first)
{
    size_t inside = 0;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].start >= span.start && ranges[i].end <= span.end) {
            *ret_first = inside++ ? *ret_first : i;
        }
    }
    return inside;
}

/* The line with the most highlights, else the first that has words; *ret_from is where it is looked at. */
static struct span choose_line(qr_str text, const struct qr_range *ranges, size_t count, size_t *ret_from)
{
    struct span best = {0, 0};
    size_t best_count = 0;
    for (size_t start = 0; start < text.len;) {
        const char *end = memchr(text.ptr + start, '\n', text.len - start);
        const size_t line_end = end ? (size_t)(end - text.ptr) : text.len;
        const struct span line = shown_part(text, (struct span){start, line_end});
        size_t first = 0;
        const size_t inside = count_inside(ranges, count, line, &first);
        if (line.start < line.end && (best.start == best.end || inside > best_count)) {
            best = line;
            best_count = inside;
            *ret_from = inside ? (size_t)ranges[first].start : line.start;
        }
        start = line_end + 1;
    }
    return best;
}

/* The cell of a table's row in which `from` is. */
static struct span cell_around(qr_str text, struct span row, size_t from)
{
    if (text.ptr[row.start] != '|') {
        return row;
    }
    struct span cell = row;
    for (size_t i = row.start; i < row.end; i++) {
        const bool is_edge = text.ptr[i] == '|' && (i == row.start || text.ptr[i - 1] != '\\');
        if (is_edge && i < QR_MAX(from, row.start + 1)) {
            cell.start = i + 1;
        } else if (is_edge) {
            cell.end = i;
            break;
        }
    }
    trim(text, &cell);
    return cell;
}

/* ---- its words ---- */

/* Where a word may begin or end: at white space, or behind a mark of languages that write without it. */
static bool is_edge(qr_str text, struct span span, size_t i)
{
    static const char *const marks[] = {"。", "、", "，", "！", "？", "；", "：", "」"};
    if (i <= span.start || i >= span.end || is_space(text.ptr[i]) || is_space(text.ptr[i - 1])) {
        return true;
    }
    for (size_t k = 0; k < QR_COUNT(marks); k++) {
        if (i >= span.start + 3 && memcmp(text.ptr + i - 3, marks[k], 3) == 0) {
            return true;
        }
    }
    return false;
}

static size_t word_start(qr_str text, struct span span, size_t i)
{
    while (i > span.start && !is_edge(text, span, i)) {
        i--;
    }
    return i;
}

static size_t word_end(qr_str text, struct span span, size_t i)
{
    do {
        i++;
    } while (i < span.end && !is_edge(text, span, i));
    return QR_MIN(i, span.end);
}

static struct span choose_words(qr_str text, struct span block, size_t from)
{
    struct span words = {QR_MAX(from, block.start), QR_MAX(from, block.start)};
    words.start = word_start(text, block, words.start);
    for (size_t i = 0; i < WORDS_BEFORE && words.start > block.start; i++) {
        size_t before = words.start;
        while (before > block.start && is_space(text.ptr[before - 1])) {
            before--;
        }
        before = word_start(text, block, before - (before > block.start));
        words.start = from - before <= BYTES_MAX / 2 ? before : words.start;
    }
    words.end = words.start;
    for (size_t i = 0; i < WORDS_MAX && words.end < block.end; i++) {
        size_t next = words.end;
        while (next < block.end && is_space(text.ptr[next])) {
            next++;
        }
        next = word_end(text, block, next);
        if (words.end > words.start && next - words.start > BYTES_MAX) {
            break;
        }
        words.end = next;
    }
    trim(text, &words);
    return words;
}

/* "-", "," and "&" mean something in there. White space of any length is one space to a browser. */
static void add_coded(qr_str words, struct qr_buf *out)
{
    for (size_t i = 0; i < words.len; i++) {
        const unsigned char c = (unsigned char)words.ptr[i];
        const bool is_plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("._~!*'()", c));
        if (is_space((char)c)) {
            qr_buf_add_text(out, i && is_space(words.ptr[i - 1]) ? "" : "%20");
        } else if (c == '\\' && i + 1 < words.len && words.ptr[i + 1] == '|') {
            continue; /* in a cell */
        } else if (is_plain) {
            qr_buf_add_char(out, (char)c);
        } else {
            qr_buf_printf(out, "%%%02X", c);
        }
    }
}

void qr_text_fragment_write(qr_str text, const struct qr_range *highlights, size_t highlight_count, struct qr_buf *out)
{
    size_t from = 0;
    const struct span line = choose_line(text, highlights, highlight_count, &from);
    if (line.start == line.end) {
        return;
    }
    const struct span block = cell_around(text, line, from);
    const struct span words = choose_words(text, block, QR_MIN(QR_MAX(from, block.start), block.end));
    const qr_str chosen = at(text, words);
    add_coded(chosen.len > (size_t)BYTES_MAX * 2 ? qr_utf8_prefix(chosen, BYTES_MAX) : chosen, out);
}
