/* Vision on the wire. */
#include "convert/vision_wire.h"

#include "base/base64.h"
#include "base/json.h"

enum { PARTS_MAX = 100 };

static const struct qr_json_limits answer_limits = {.size_bytes_max = 4 << 20, .depth_max = 32, .values_max = 100000};

static const char default_prompt[] =
    "Write down all text in this picture, word for word, in reading order; tables as Markdown. Then say in one or two "
    "sentences what else it shows. Answer with nothing but that.";

const char *qr_picture_mime(qr_str bytes)
{
    static const struct {
        qr_str begin;
        const char *mime;
    } kinds[] = {{{"\x89PNG\r\n\x1a\n", 8}, "image/png"},
                 {{"\xff\xd8\xff", 3}, "image/jpeg"},
                 {{"GIF87a", 6}, "image/gif"},
                 {{"GIF89a", 6}, "image/gif"}};
    for (size_t i = 0; i < QR_COUNT(kinds); i++) {
        if (qr_str_starts_with(bytes, kinds[i].begin)) {
            return kinds[i].mime;
        }
    }
    const bool is_webp = bytes.len >= 12 && memcmp(bytes.ptr, "RIFF", 4) == 0 && memcmp(bytes.ptr + 8, "WEBP", 4) == 0;
    return is_webp ? "image/webp" : NULL;
}

void qr_vision_write(const struct qr_vision_settings *settings, const char *mime, qr_str picture, struct qr_buf *out)
{
    qr_buf_add_text(out, "{\"model\":");
    qr_json_add_string(out, qr_str_of(settings->service.model));
    if (settings->max_tokens) {
        qr_buf_printf(out, ",\"max_tokens\":%lld", (long long)settings->max_tokens);
    }
    qr_buf_add_text(out, ",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":");
    qr_json_add_string(out, qr_str_of(settings->prompt[0] ? settings->prompt : default_prompt));
    qr_buf_printf(out, "},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:%s;base64,", mime);
    qr_base64_add(out, picture);
    qr_buf_add_text(out, "\"}}]}]}");
}

/* ---- the answer ---- */

/* Line ends and tabs stay; other controls, which nobody can read, do not. */
static void add_clean(struct qr_buf *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        const unsigned char byte = (unsigned char)*c;
        if ((byte >= ' ' && byte != 0x7F) || byte == '\n' || byte == '\t') {
            qr_buf_add_char(out, *c);
        }
    }
}

/* A string, or parts of which those of text have one. False: neither. */
static bool add_content(const json_t *content, struct qr_buf *out)
{
    const json_t *part;
    size_t i;
    if (json_is_string(content)) {
        add_clean(out, json_string_value(content));
        return true;
    }
    json_array_foreach(content, i, part)
    {
        const char *text = i < PARTS_MAX ? json_string_value(json_object_get(part, "text")) : NULL;
        if (text) {
            qr_buf_add_text(out, out->len ? "\n" : "");
            add_clean(out, text);
        }
    }
    return json_is_array(content) || !content || json_is_null(content);
}

static bool is_refused(const json_t *choice, const json_t *message)
{
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    return json_is_string(json_object_get(message, "refusal")) || (reason && strcmp(reason, "content_filter") == 0);
}

qr_rc qr_vision_read(qr_str answer, struct qr_arena *arena, qr_str *ret_text, qr_err *err)
{
    QR_JSON *json = NULL;
    QR_CLEANUP(qr_buf_done) struct qr_buf said = {0};
    qr_err ignored = {0};
    const bool is_json = qr_json_parse(answer, &answer_limits, &json, &ignored) == QR_OK;
    const json_t *choice = json_array_get(json_object_get(json, "choices"), 0);
    const json_t *message = json_object_get(choice, "message");
    if (!is_json || !json_is_object(message) || !add_content(json_object_get(message, "content"), &said)) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "the answer of the vision model is none: it has no message");
    }
    QR_TRY(qr_buf_check(&said, err));
    const qr_str whole = is_refused(choice, message) ? QR_STR("") : qr_str_trim(qr_buf_str(&said));
    const qr_str text = qr_str_trim(qr_utf8_prefix(whole, QR_VISION_TEXT_BYTES_MAX));
    const char *copy = qr_arena_copy(arena, text);
    if (!copy) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for what a picture shows");
    }
    *ret_text = (qr_str){copy, text.len};
    return QR_OK;
}
