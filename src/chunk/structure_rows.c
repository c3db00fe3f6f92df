/* Rows and entries: comma- and tab-separated values, whose rows may go over several lines, and logs, whose entries may. */
#include "chunk/outline.h"

enum {
    QUOTED_BYTES_MAX = 64 << 10, /* a quote that is not closed by then was none */
    STAMP_BYTES = 24,
};

/* ---- tables ---- */

static bool is_number(qr_str field)
{
    const qr_str inner = qr_str_trim(field);
    size_t digits = 0;
    for (size_t i = 0; i < inner.len; i++) {
        if (!memchr("0123456789.,+-eE%/: ", inner.ptr[i], 20)) {
            return false;
        }
        digits += inner.ptr[i] >= '0' && inner.ptr[i] <= '9';
    }
    return digits > 0;
}

static size_t count_of(qr_str text, char c)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] == c;
    }
    return count;
}

static qr_str first_line(qr_str text)
{
    while (text.len && (text.ptr[0] == '\n' || text.ptr[0] == ' ')) {
        text = (qr_str){text.ptr + 1, text.len - 1};
    }
    text = qr_utf8_prefix(text, QR_LINE_BYTES_MAX);
    return qr_str_split(&text, '\n');
}

/* The names of columns are no numbers, and there are at least two of them. */
static bool is_header(qr_str line, char delimiter)
{
    if (!memchr(line.ptr, delimiter, line.len)) {
        return false;
    }
    while (line.len) {
        if (is_number(qr_str_split(&line, delimiter))) {
            return false;
        }
    }
    return true;
}

static void init_table(union qr_structure_state *state, qr_str text, char delimiter)
{
    const qr_str header = first_line(text);
    *state = (union qr_structure_state){
        .table = {.delimiter = delimiter, .at_field = true, .has_header = is_header(header, delimiter)}};
}

static void init_csv(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max)
{
    (void)mime, (void)quarters_max;
    const qr_str header = first_line(text);
    const bool is_semicolon = count_of(header, ';') > count_of(header, ',');
    init_table(state, text, is_semicolon ? ';' : ',');
}

static void init_tsv(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max)
{
    (void)mime, (void)quarters_max;
    init_table(state, text, '\t');
}

static void take_byte(union qr_structure_state *state, char c)
{
    if (state->table.in_quotes) {
        state->table.in_quotes = c != '"' && ++state->table.quoted_bytes < QUOTED_BYTES_MAX;
        return; /* "" inside quotes closes and opens them again */
    }
    if (c == '"' && (state->table.at_field || state->table.quoted_bytes)) {
        state->table.in_quotes = true;
        state->table.quoted_bytes++;
    } else {
        state->table.quoted_bytes = 0;
    }
    state->table.at_field = c == state->table.delimiter || c == '\n';
}

static size_t advance_table(union qr_structure_state *state, struct qr_outline *outline, size_t at, size_t to,
                            enum qr_strength *ret_strength)
{
    if (at == 0 && state->table.has_header) {
        qr_outline_add_header(outline, first_line(outline->text), state->table.delimiter);
    }
    for (; at < to; at++) {
        const char c = outline->text.ptr[at];
        const bool is_end = c == '\n' && !state->table.in_quotes;
        take_byte(state, c);
        if (!is_end) {
            state->table.has_row |= c > ' ' || c < 0;
            continue;
        }
        const bool is_row = state->table.has_row && !state->table.has_header; /* the header stays with the first row */
        state->table.has_header = state->table.has_header && !state->table.has_row;
        state->table.has_row = false;
        if (is_row) {
            *ret_strength = QR_AT_UNIT;
            return at + 1;
        }
    }
    return to;
}

const struct qr_structure qr_structure_csv = {.mime = "text/csv", .init = init_csv, .advance = advance_table};
const struct qr_structure qr_structure_tsv = {
    .mime = "text/tab-separated-values", .init = init_tsv, .advance = advance_table};

/* ---- logs ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A date, a time or a level at the beginning: "2024-05-01 …", "[12:00:01] …", "May  1 …", "<34>…", "ERROR …". */
static bool has_stamp(qr_str line)
{
    static const char *const words[] = {"Jan", "Feb",   "Mar",  "Apr",  "May",   "Jun",   "Jul",   "Aug",   "Sep",
                                        "Oct", "Nov",   "Dec",  "Mon",  "Tue",   "Wed",   "Thu",   "Fri",   "Sat",
                                        "Sun", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "FATAL", "NOTICE"};
    while (line.len && strchr("[<({\"", line.ptr[0]) && line.ptr[0]) {
        line = (qr_str){line.ptr + 1, line.len - 1};
    }
    for (size_t i = 0; i < QR_COUNT(words); i++) {
        if (qr_str_starts_with(line, qr_str_of(words[i]))) {
            return true;
        }
    }
    if (line.len == 0 || !is_digit(line.ptr[0])) {
        return false;
    }
    line.len = QR_MIN(line.len, (size_t)STAMP_BYTES);
    return memchr(line.ptr, ':', line.len) || memchr(line.ptr, '-', line.len) || memchr(line.ptr, '.', line.len) ||
           memchr(line.ptr, '/', line.len) || memchr(line.ptr, '>', line.len);
}

static bool goes_on(qr_str line)
{
    static const qr_str words[] = {QR_STR("Caused by"), QR_STR("Traceback"), QR_STR("at "),
                                   QR_STR("..."),       QR_STR("}"),         QR_STR(")")};
    for (size_t i = 0; i < QR_COUNT(words); i++) {
        if (qr_str_starts_with(line, words[i])) {
            return true;
        }
    }
    return line.ptr[0] == ' ' || line.ptr[0] == '\t';
}

static void init_log(union qr_structure_state *state, qr_str text, const char *mime, int64_t quarters_max)
{
    (void)text, (void)mime, (void)quarters_max;
    *state = (union qr_structure_state){0};
}

/* Where entries have stamps, what has none belongs to the entry before it. */
static struct qr_line_is log_line(union qr_structure_state *state, const struct qr_line *line)
{
    const bool is_stamped = has_stamp(line->text);
    if (!state->log.is_known) {
        state->log.is_known = true;
        state->log.has_stamps = is_stamped;
    }
    const bool begins = state->log.has_stamps ? is_stamped : !goes_on(line->text);
    return (struct qr_line_is){.before = begins ? QR_AT_UNIT : QR_NO_PLACE};
}

const struct qr_structure qr_structure_log = {.mime = "text/x-log", .init = init_log, .line = log_line};
