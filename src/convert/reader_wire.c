/* The form of an answer: a head with all lengths, page marks, line marks, the lengths of the warnings' texts, then every text
 * with a NUL behind it, the document's last. Parsing trusts nothing: each length is taken from what is left, and all of it
 * must be used up. Pure. */
#include "convert/reader_wire.h"

enum {
    WORD_BYTES_MAX = 100, /* of types and encodings */
    TITLE_BYTES_MAX = 4096,
    WARNINGS_MAX = 16,
    MARK_BYTES = 2 * sizeof(uint64_t),
    EXTRA_BYTES_MAX = 1 << 20, /* all but the text and the marks */
};

static const uint32_t NO_TEXT = UINT32_MAX; /* the length of a text that is NULL */

struct head {
    uint32_t code; /* qr_code; unless it is 0, the text is the message and all else is 0 */
    uint32_t warning_count;
    uint32_t mime_len, source_mime_len, charset_len, title_len;
    uint64_t page_count, line_count, text_len;
};

struct warning_lens {
    uint32_t code_len, message_len;
};

/* What a conversion may warn of. */
static const char *const known_warnings[] = {"empty", "no_text", "charset_guessed", "charset_mixed"};

/* What a conversion may fail with. */
static bool is_known_failure(uint32_t code)
{
    switch (code) {
    case QR_CODE_UNSUPPORTED_TYPE:
    case QR_CODE_LIMIT_EXCEEDED:
    case QR_CODE_TOO_LARGE:
    case QR_CODE_CORRUPT:
    case QR_CODE_CONVERSION_FAILED:
    case QR_CODE_OUT_OF_MEMORY:
        return true;
    default:
        return false;
    }
}

/* As much for the marks as for the text. */
size_t qr_answer_bytes_max(size_t text_bytes_max)
{
    size_t all;
    return QR_MUL_OVERFLOWS(text_bytes_max, (size_t)2, &all) || QR_ADD_OVERFLOWS(all, (size_t)EXTRA_BYTES_MAX, &all)
               ? SIZE_MAX
               : all;
}

/* ---- encoding ---- */

static uint32_t len_of(const char *text)
{
    return text ? (uint32_t)strlen(text) : NO_TEXT;
}

static void add_raw(struct qr_buf *out, const void *bytes, size_t len)
{
    qr_buf_add(out, (qr_str){bytes, len});
}

static void add_text(struct qr_buf *out, const char *text)
{
    if (text) {
        add_raw(out, text, strlen(text) + 1);
    }
}

static void add_mark(struct qr_buf *out, size_t offset, int64_t number)
{
    const uint64_t mark[] = {offset, (uint64_t)number};
    add_raw(out, mark, sizeof mark);
}

void qr_answer_encode(const struct qr_converted *converted, struct qr_buf *out)
{
    const struct head head = {.warning_count = (uint32_t)converted->warning_count,
                              .mime_len = len_of(converted->mime),
                              .source_mime_len = len_of(converted->source_mime),
                              .charset_len = len_of(converted->charset),
                              .title_len = len_of(converted->title),
                              .page_count = converted->page_count,
                              .line_count = converted->line_count,
                              .text_len = converted->text.len};
    add_raw(out, &head, sizeof head);
    for (size_t i = 0; i < converted->page_count; i++) {
        add_mark(out, converted->pages[i].offset, converted->pages[i].page);
    }
    for (size_t i = 0; i < converted->line_count; i++) {
        add_mark(out, converted->lines[i].offset, converted->lines[i].line);
    }
    for (size_t i = 0; i < converted->warning_count; i++) {
        const struct warning_lens lens = {len_of(converted->warnings[i].code), len_of(converted->warnings[i].message)};
        add_raw(out, &lens, sizeof lens);
    }
    add_text(out, converted->mime);
    add_text(out, converted->source_mime);
    add_text(out, converted->charset);
    add_text(out, converted->title);
    for (size_t i = 0; i < converted->warning_count; i++) {
        add_text(out, converted->warnings[i].code);
        add_text(out, converted->warnings[i].message);
    }
}

void qr_answer_encode_error(const qr_err *error, struct qr_buf *out)
{
    const struct head head = {.code = error->code, .text_len = strlen(error->msg)};
    add_raw(out, &head, sizeof head);
    add_text(out, error->msg);
}

/* ---- parsing ---- */

struct parser {
    qr_str left;
    struct head head;
    struct qr_arena *arena;
    qr_err *err;
};

static qr_rc refuse(const struct parser *parser, const char *why)
{
    return qr_fail(parser->err, QR_CODE_CRASHED_WORKER, "the answer of the reader makes no sense: %s", why);
}

static qr_rc out_of_memory(const struct parser *parser)
{
    return qr_fail(parser->err, QR_CODE_OUT_OF_MEMORY, "out of memory for a text that was read");
}

static qr_rc too_short(const struct parser *parser)
{
    return refuse(parser, "it is too short");
}

/* NULL when there is less. */
static const char *take(struct parser *parser, size_t len)
{
    const char *bytes = parser->left.ptr;
    if (len > parser->left.len) {
        return NULL;
    }
    parser->left = (qr_str){bytes + len, parser->left.len - len};
    return bytes;
}

/* `ret_text` stays as it is where the length says that there is none. */
static qr_rc take_text(struct parser *parser, uint64_t len, size_t len_max, const char **ret_text)
{
    if (len == NO_TEXT) {
        return QR_OK;
    }
    if (len > len_max) {
        return refuse(parser, "a text is too long");
    }
    const char *text = take(parser, (size_t)len + 1);
    if (!text) {
        return too_short(parser);
    }
    if (memchr(text, '\0', (size_t)len + 1) != text + len) {
        return refuse(parser, "a text does not end where it should");
    }
    if (!qr_utf8_valid((qr_str){text, (size_t)len})) {
        return refuse(parser, "a text is not UTF-8");
    }
    *ret_text = text;
    return QR_OK;
}

/* Printable ASCII, not empty: it goes into headers and log lines. */
static qr_rc take_word(struct parser *parser, uint32_t len, const char **ret_word)
{
    const char *word = "";
    QR_TRY(take_text(parser, len, WORD_BYTES_MAX, &word));
    if (word[0] == '\0') {
        return refuse(parser, "a word is missing");
    }
    for (const char *c = word; *c; c++) {
        if (*c <= ' ' || *c > '~') {
            return refuse(parser, "a word has other characters");
        }
    }
    *ret_word = word;
    return QR_OK;
}

struct mark {
    uint64_t offset;
    int64_t number;
};

/* Offsets and numbers never fall, and stay inside. */
static qr_rc take_mark(struct parser *parser, struct mark *mark)
{
    const struct mark before = *mark;
    const char *bytes = take(parser, MARK_BYTES);
    if (!bytes) {
        return too_short(parser);
    }
    memcpy(mark, bytes, MARK_BYTES);
    if (mark->offset < before.offset || mark->offset > parser->head.text_len || mark->number < before.number ||
        mark->number < 1) {
        return refuse(parser, "a mark is out of order");
    }
    return QR_OK;
}

/* Before anything is allocated for them: there must be as many bytes. */
static qr_rc check_count(const struct parser *parser, uint64_t count, size_t size_each)
{
    return count <= parser->left.len / size_each ? QR_OK : too_short(parser);
}

static qr_rc take_pages(struct parser *parser, struct qr_converted *converted)
{
    struct mark mark = {0};
    converted->page_count = (size_t)parser->head.page_count;
    QR_TRY(check_count(parser, parser->head.page_count, MARK_BYTES));
    if (converted->page_count == 0) {
        return QR_OK;
    }
    converted->pages = qr_arena_array(parser->arena, converted->page_count, sizeof converted->pages[0]);
    if (!converted->pages) {
        return out_of_memory(parser);
    }
    for (size_t i = 0; i < converted->page_count; i++) {
        QR_TRY(take_mark(parser, &mark));
        converted->pages[i] = (struct qr_page_mark){(size_t)mark.offset, mark.number};
    }
    return QR_OK;
}

static qr_rc take_lines(struct parser *parser, struct qr_converted *converted)
{
    struct mark mark = {0};
    converted->line_count = (size_t)parser->head.line_count;
    QR_TRY(check_count(parser, parser->head.line_count, MARK_BYTES));
    if (converted->line_count == 0) {
        return QR_OK;
    }
    converted->lines = qr_arena_array(parser->arena, converted->line_count, sizeof converted->lines[0]);
    if (!converted->lines) {
        return out_of_memory(parser);
    }
    for (size_t i = 0; i < converted->line_count; i++) {
        QR_TRY(take_mark(parser, &mark));
        converted->lines[i] = (struct qr_line_mark){(size_t)mark.offset, mark.number};
    }
    return QR_OK;
}

/* The code is one of ours, not the reader's copy of it. */
static qr_rc take_warning(struct parser *parser, struct warning_lens lens, struct qr_warning *warning)
{
    const char *code = "";
    warning->message = "";
    QR_TRY(take_text(parser, lens.code_len, WORD_BYTES_MAX, &code));
    QR_TRY(take_text(parser, lens.message_len, QR_ERR_MSG_SIZE - 1, &warning->message));
    for (size_t i = 0; i < QR_COUNT(known_warnings); i++) {
        if (strcmp(known_warnings[i], code) == 0) {
            warning->code = known_warnings[i];
            return QR_OK;
        }
    }
    return refuse(parser, "a warning is unknown");
}

static qr_rc take_warning_lens(struct parser *parser, struct warning_lens lens[static WARNINGS_MAX])
{
    const size_t size_bytes = parser->head.warning_count * sizeof lens[0];
    if (parser->head.warning_count > WARNINGS_MAX) {
        return refuse(parser, "there are too many warnings");
    }
    const char *bytes = take(parser, size_bytes);
    if (!bytes) {
        return too_short(parser);
    }
    memcpy(lens, bytes, size_bytes);
    return QR_OK;
}

static qr_rc take_warnings(struct parser *parser, const struct warning_lens *lens, struct qr_converted *converted)
{
    converted->warning_count = parser->head.warning_count;
    if (converted->warning_count == 0) {
        return QR_OK;
    }
    converted->warnings = qr_arena_array(parser->arena, converted->warning_count, sizeof converted->warnings[0]);
    if (!converted->warnings) {
        return out_of_memory(parser);
    }
    for (size_t i = 0; i < converted->warning_count; i++) {
        QR_TRY(take_warning(parser, lens[i], &converted->warnings[i]));
    }
    return QR_OK;
}

static qr_rc take_document(struct parser *parser, size_t text_bytes_max, struct qr_converted *converted)
{
    const struct head *head = &parser->head;
    converted->text.len = (size_t)head->text_len;
    if (head->text_len > text_bytes_max) {
        return refuse(parser, "the text is too long");
    }
    converted->text.ptr = take(parser, converted->text.len + 1);
    if (!converted->text.ptr) {
        return too_short(parser);
    }
    if (memchr(converted->text.ptr, '\0', converted->text.len + 1) != converted->text.ptr + converted->text.len) {
        return refuse(parser, "the text does not end where it should");
    }
    if (!qr_utf8_valid(converted->text) || memchr(converted->text.ptr, '\r', converted->text.len)) {
        return refuse(parser, "the text is not canonical");
    }
    return parser->left.len ? refuse(parser, "it is too long") : QR_OK;
}

static qr_rc take_converted(struct parser *parser, size_t text_bytes_max, struct qr_converted *converted)
{
    const struct head *head = &parser->head;
    struct warning_lens lens[WARNINGS_MAX] = {0};
    QR_TRY(take_pages(parser, converted));
    QR_TRY(take_lines(parser, converted));
    QR_TRY(take_warning_lens(parser, lens));
    QR_TRY(take_word(parser, head->mime_len, &converted->mime));
    QR_TRY(take_word(parser, head->source_mime_len, &converted->source_mime));
    QR_TRY(take_word(parser, head->charset_len, &converted->charset));
    QR_TRY(take_text(parser, head->title_len, TITLE_BYTES_MAX, &converted->title));
    QR_TRY(take_warnings(parser, lens, converted));
    return take_document(parser, text_bytes_max, converted);
}

/* The reader's own words, in which whoever took it over may say anything: control characters could fool a terminal. */
static qr_rc take_failure(struct parser *parser)
{
    const struct head *head = &parser->head;
    const char *message = "";
    if (!is_known_failure(head->code)) {
        return refuse(parser, "its error is unknown");
    }
    QR_TRY(take_text(parser, head->text_len, QR_ERR_MSG_SIZE - 1, &message));
    for (const char *c = message; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == '\x7f') {
            return refuse(parser, "its message has control characters");
        }
    }
    if (parser->left.len) {
        return refuse(parser, "it is too long");
    }
    if (head->code == QR_CODE_OUT_OF_MEMORY) {
        return qr_fail(parser->err, QR_CODE_LIMIT_EXCEEDED, "reading it takes more memory than a file may have");
    }
    return qr_fail(parser->err, (qr_code)head->code, "%s", message);
}

qr_rc qr_answer_parse(qr_str answer, size_t text_bytes_max, struct qr_arena *arena, struct qr_converted *ret,
                      qr_err *err)
{
    struct parser parser = {.left = answer, .arena = arena, .err = err};
    struct qr_converted converted = {0};
    const char *bytes = take(&parser, sizeof parser.head);
    if (!bytes) {
        return too_short(&parser);
    }
    memcpy(&parser.head, bytes, sizeof parser.head);
    if (parser.head.code != QR_CODE_NONE) {
        return take_failure(&parser);
    }
    QR_TRY(take_converted(&parser, text_bytes_max, &converted));
    *ret = converted;
    return QR_OK;
}
