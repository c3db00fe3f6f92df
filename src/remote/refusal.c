/* Reads refusals. Every server has its own shape: {"error": {"message", "type", "code"}}, {"error": "…"}, {"message"},
 * {"detail": "…" or a list}, {"errors": […]}, text, a page of some proxy. So the words are looked for wherever they may be,
 * and what they mean is decided by the status and by phrases that the servers are known for. */
#include "remote/refusal.h"

#include "base/buf.h"
#include "base/json.h"

#include <stdio.h>

enum {
    BODY_BYTES_MAX = 65536, /* of a refusal; more is no message */
    DEPTH_MAX = 6,
    LIST_MAX = 3, /* entries of a list that are shown */
};

static const struct qr_json_limits body_limits = {
    .size_bytes_max = BODY_BYTES_MAX, .depth_max = 32, .values_max = 4096};

/* ---- the words ---- */

static void add_words(struct qr_buf *words, const char *separator, const char *text)
{
    if (text && *text) {
        qr_buf_add_text(words, words->len ? separator : "");
        qr_buf_add_text(words, text);
    }
}

/* {"loc": ["body", "input"], "msg": "…"}: where it is goes before what it is. */
static void add_place(const json_t *value, struct qr_buf *words)
{
    const json_t *part;
    size_t i;
    const size_t before = words->len;
    json_array_foreach(json_object_get(value, "loc"), i, part)
    {
        if (i < LIST_MAX && json_is_string(part)) {
            add_words(words, words->len > before ? "." : "; ", json_string_value(part));
        }
    }
    if (words->len > before) {
        qr_buf_add_text(words, ": ");
    }
}

/* Appends what a value says; false where it says nothing. */
static bool collect(const json_t *value, int depth, struct qr_buf *words)
{
    static const char *const keys[] = {"error",         "errors",      "message", "detail", "msg",
                                       "error_message", "description", "title",   "reason", "error_description"};
    const size_t before = words->len;
    if (depth > DEPTH_MAX) {
        return false;
    }
    if (json_is_string(value)) {
        add_words(words, "; ", json_string_value(value));
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < QR_MIN(json_array_size(value), (size_t)LIST_MAX); i++) {
            collect(json_array_get(value, i), depth + 1, words);
        }
    } else if (json_is_object(value) && json_is_array(json_object_get(value, "loc"))) {
        add_place(value, words);
        qr_buf_add_text(words, json_is_string(json_object_get(value, "msg"))
                                   ? json_string_value(json_object_get(value, "msg"))
                                   : "");
    } else if (json_is_object(value)) {
        for (size_t i = 0; words->len == before && i < QR_COUNT(keys); i++) {
            collect(json_object_get(value, keys[i]), depth + 1, words);
        }
    }
    return words->len > before;
}

/* Stable words beside the message, by which some servers are told apart: not shown. */
static void collect_codes(const json_t *value, int depth, struct qr_buf *codes)
{
    static const char *const keys[] = {"code", "type", "status", "error_type", "reason"};
    const json_t *entry = json_is_array(value) ? json_array_get(value, 0) : value;
    if (!json_is_object(entry) || depth > DEPTH_MAX) {
        return;
    }
    for (size_t i = 0; i < QR_COUNT(keys); i++) {
        add_words(codes, " ", json_string_value(json_object_get(entry, keys[i])));
    }
    collect_codes(json_object_get(entry, "error"), depth + 1, codes);
    collect_codes(json_object_get(entry, "details"), depth + 1, codes);
}

/* A page: its title, else its text without the tags. */
static void collect_page(qr_str body, struct qr_buf *words)
{
    const char *title = memmem(body.ptr, body.len, "<title>", 7);
    if (title) {
        const size_t rest = body.len - (size_t)(title + 7 - body.ptr);
        const char *end = memmem(title + 7, rest, "<", 1);
        qr_buf_add(words, (qr_str){title + 7, end ? (size_t)(end - title - 7) : rest});
        return;
    }
    bool in_tag = false;
    for (size_t i = 0; i < body.len; i++) {
        const bool ends = body.ptr[i] == '>';
        in_tag = body.ptr[i] == '<' || (in_tag && !ends);
        if (!in_tag) {
            qr_buf_add_char(words, ends ? ' ' : body.ptr[i]);
        }
    }
}

static void collect_text(qr_str body, struct qr_buf *words)
{
    body = qr_str_trim(body);
    if (body.len > 0 && body.ptr[0] == '<') {
        collect_page(body, words);
    } else {
        qr_buf_add(words, body); /* broken JSON too: it still says something to a person */
    }
}

/* One line: white space is one space, what is no character or not to be shown is left out. */
static void clean(qr_str text, char ret_words[static QR_REFUSAL_WORDS_SIZE])
{
    size_t len = 0;
    while (text.len > 0) {
        const size_t char_len = qr_utf8_char_len(text);
        const unsigned char first = (unsigned char)text.ptr[0];
        const bool is_space = first == ' ' || (first >= '\t' && first <= '\r');
        const bool is_control =
            first < ' ' || first == 0x7F || (char_len == 2 && first == 0xC2 && (unsigned char)text.ptr[1] < 0xA0);
        if (is_space && len > 0 && ret_words[len - 1] != ' ' && len < QR_REFUSAL_WORDS_SIZE - 1) {
            ret_words[len++] = ' ';
        } else if (!is_space && !is_control && char_len > 0) {
            if (len + char_len > QR_REFUSAL_WORDS_SIZE - 1) {
                break;
            }
            memcpy(ret_words + len, text.ptr, char_len);
            len += char_len;
        }
        const size_t used = QR_MAX(char_len, (size_t)1);
        text = (qr_str){text.ptr + used, text.len - used};
    }
    len -= len > 0 && ret_words[len - 1] == ' ';
    ret_words[len] = '\0';
}

/* ---- what they mean ---- */

/* All words of one entry must be there, in any order. */
struct phrase {
    const char *first, *second;
};

static bool says(const char *text, const struct phrase *phrases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(text, phrases[i].first) && (!phrases[i].second || strstr(text, phrases[i].second))) {
            return true;
        }
    }
    return false;
}

static bool says_too_large(const char *text)
{
    static const struct phrase phrases[] = {
        {"maximum context length", NULL},          /* OpenAI, vLLM */
        {"context_length_exceeded", NULL},         /* OpenAI */
        {"too large to process", NULL},            /* llama.cpp */
        {"exceed", "batch size"},                  /* llama.cpp */
        {"exceed", "context"},                     /* Ollama, llama.cpp */
        {"larger than the context", NULL},         /* LM Studio */
        {"exceed", "token"},                       /* hosted ones */
        {"must have less than", "token"},          /* TEI */
        {"maximum allowed batch size", NULL},      /* TEI */
        {"batch size", "> maximum"},               /* TEI */
        {"max allowed tokens", NULL},              /* Voyage */
        {"number of texts must be at most", NULL}, /* Cohere */
        {"too many tokens", NULL},
        {"too many inputs", NULL},
        {"max_tokens_per_request", NULL}, /* OpenAI */
        {"array too long", NULL},
        {"string too long", NULL},
        {"input is too long", NULL},
        {"input too long", NULL},
        {"too_long", "input"}, /* pydantic: list too long */
        {"at most", "items"},
        {"list should have at most", NULL},
        {"reduce", "length"},
        {"payload too large", NULL},
        {"entity too large", NULL},
        {"content too large", NULL},
        {"request too large", NULL}, /* OpenAI: one request of more tokens than a minute has */
    };
    return says(text, phrases, QR_COUNT(phrases));
}

static bool says_no_money(const char *text)
{
    static const struct phrase phrases[] = {
        {"insufficient_quota", NULL},  {"exceeded your current quota", NULL}, {"billing_hard_limit", NULL},
        {"billing_not_active", NULL},  {"insufficient balance", NULL},        {"insufficient_balance", NULL},
        {"insufficient credit", NULL}, {"credit balance", "too low"},         {"out of credits", NULL},
        {"payment required", NULL},    {"insufficient funds", NULL},          {"account_deactivated", NULL},
    };
    return says(text, phrases, QR_COUNT(phrases));
}

static bool says_bad_key(const char *text)
{
    static const struct phrase phrases[] = {
        {"invalid_api_key", NULL},   {"api_key_invalid", NULL},   {"invalid api key", NULL},
        {"api key not valid", NULL}, {"incorrect api key", NULL}, {"invalid authentication", NULL},
    };
    return says(text, phrases, QR_COUNT(phrases));
}

static bool says_loading(const char *text)
{
    static const struct phrase phrases[] = {
        {"loading model", NULL}, {"model is loading", NULL}, {"currently loading", NULL}, {"overloaded", NULL}};
    return says(text, phrases, QR_COUNT(phrases));
}

/* `text` is in small letters. */
static enum qr_refusal judge(int status, const char *text)
{
    if (status == 401 || status == 402 || status == 403 || says_no_money(text)) {
        return QR_REFUSAL_ENDPOINT;
    }
    if (status == 413) {
        return QR_REFUSAL_TOO_LARGE;
    }
    if (status == 429) { /* "limit exceeded: tokens" is no size, unless it is this one request that has too many */
        return strstr(text, "request too large") ? QR_REFUSAL_TOO_LARGE : QR_REFUSAL_LIMITED;
    }
    if (status == 503 || status == 529) {
        return QR_REFUSAL_LIMITED;
    }
    if (status >= 400 && says_too_large(text)) {
        return QR_REFUSAL_TOO_LARGE;
    }
    if (status >= 500) {
        return says_loading(text) ? QR_REFUSAL_LIMITED : QR_REFUSAL_SERVER;
    }
    if (status == 400 && says_bad_key(text)) {
        return QR_REFUSAL_ENDPOINT; /* Google's way to say 401 */
    }
    return status == 408 || status == 425 ? QR_REFUSAL_SERVER : QR_REFUSAL_REQUEST;
}

/* ASCII is enough: the phrases are English. */
static void make_small(struct qr_buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        const char c = text->data[i];
        text->data[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c == '\0' ? ' ' : c);
    }
}

enum qr_refusal qr_refusal_read(int status, qr_str body, char ret_words[static QR_REFUSAL_WORDS_SIZE])
{
    QR_CLEANUP(qr_buf_done) struct qr_buf words = {0};
    QR_CLEANUP(qr_buf_done) struct qr_buf codes = {0};
    QR_JSON *value = NULL;
    ret_words[0] = '\0';
    if (status >= 200 && status < 300) {
        return QR_REFUSAL_NONE;
    }
    body.len = QR_MIN(body.len, (size_t)BODY_BYTES_MAX);
    const qr_rc rc = qr_json_parse(body, &body_limits, &value, NULL);
    if (rc == QR_OK) {
        collect_codes(value, 0, &codes);
        collect(value, 0, &words);
    }
    if (words.len == 0) {
        collect_text(body, &words);
    }
    clean(qr_buf_str(&words), ret_words);
    qr_buf_add_char(&words, ' ');
    qr_buf_add(&words, qr_buf_str(&codes));
    make_small(&words);
    if (rc == QR_NOMEM || words.failed != QR_CODE_NONE || codes.failed != QR_CODE_NONE) {
        const enum qr_refusal refusal = judge(status, "");
        return refusal == QR_REFUSAL_REQUEST ? QR_REFUSAL_SERVER : refusal; /* not read: it may have said anything */
    }
    return judge(status, words.data);
}

qr_code qr_refusal_code(enum qr_refusal refusal)
{
    static const qr_code codes[] = {
        [QR_REFUSAL_NONE] = QR_CODE_NONE,
        [QR_REFUSAL_TOO_LARGE] = QR_CODE_TOO_LARGE,
        [QR_REFUSAL_LIMITED] = QR_CODE_RATE_LIMITED,
        [QR_REFUSAL_ENDPOINT] = QR_CODE_ENDPOINT_REFUSED,
        [QR_REFUSAL_REQUEST] = QR_CODE_BAD_REQUEST,
        [QR_REFUSAL_SERVER] = QR_CODE_UNAVAILABLE,
    };
    return codes[refusal];
}
