/* Vision on the wire. */
#include "base/json.h"
#include "convert/vision_wire.h"
#include "support/test.h"

static struct qr_arena arena; /* of the test */
static qr_err err;

QR_TEST(a_picture_is_known_by_its_first_bytes)
{
    static const struct {
        qr_str bytes;
        const char *mime;
    } cases[] = {{{"\x89PNG\r\n\x1a\n…", 11}, "image/png"},
                 {{"\xff\xd8\xff\xe0", 4}, "image/jpeg"},
                 {{"GIF89a…", 9}, "image/gif"},
                 {{"GIF87a", 6}, "image/gif"},
                 {{"RIFF\0\0\0\0WEBPVP8", 15}, "image/webp"},
                 {{"RIFF\0\0\0\0WAVE", 12}, NULL},
                 {{"RIFF\0\0\0\0WEB", 11}, NULL},
                 {{"<svg/>", 6}, NULL},
                 {{"BM", 2}, NULL},
                 {{"", 0}, NULL}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        const char *mime = qr_picture_mime(cases[i].bytes);
        qr_test_set_context("%zu", i);
        QR_CHECK_TEXT(cases[i].mime ? cases[i].mime : "none", mime ? mime : "none");
    }
}

static json_t *written(const struct qr_vision_settings *settings)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    json_t *json;
    qr_vision_write(settings, "image/png", QR_STR("foob"), &out);
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_buf_str(&out), &QR_JSON_REQUEST_LIMITS, &json, &err));
    return json;
}

static const char *text_at(const json_t *json, size_t part, const char *name)
{
    const json_t *message = json_array_get(json_object_get(json, "messages"), 0);
    const json_t *value = json_object_get(json_array_get(json_object_get(message, "content"), part), name);
    return json_string_value(json_is_object(value) ? json_object_get(value, "url") : value);
}

QR_TEST(a_picture_is_sent_as_a_data_url)
{
    struct qr_vision_settings settings = {.service = {.model = "m \"1\""}, .prompt = "Read:\n", .max_tokens = 7};
    QR_JSON *json = written(&settings);
    QR_CHECK_TEXT("m \"1\"", json_string_value(json_object_get(json, "model")));
    QR_CHECK_INT(7, json_integer_value(json_object_get(json, "max_tokens")));
    QR_CHECK_TEXT("Read:\n", text_at(json, 0, "text"));
    QR_CHECK_TEXT("data:image/png;base64,Zm9vYg==", text_at(json, 1, "image_url"));
    settings = (struct qr_vision_settings){.service = {.model = "m"}, .prompt = ""};
    QR_JSON *plain = written(&settings);
    QR_CHECK(!json_object_get(plain, "max_tokens"));
    QR_CHECK(strlen(text_at(plain, 0, "text")) > 20);
}

QR_TEST(what_a_model_says_is_taken_whatever_shape_it_has)
{
    static const struct {
        const char *answer, *text;
    } cases[] = {
        {"{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\" A cat.\\n\"}}]}", "A cat."},
        {"{\"choices\":[{\"message\":{\"content\":\"one\"}},{\"message\":{\"content\":\"two\"}}]}", "one"},
        {"{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"A\"},{\"type\":\"image\"},"
         "{\"type\":\"text\",\"text\":\"cat\"}]}}]}",
         "A\ncat"},
        {"{\"choices\":[{\"message\":{\"content\":\"a\\tb\\u0001\\u001b[31m\\u007fc\\r\\nd\"}}]}", "a\tb[31mc\nd"},
        /* nothing to say */
        {"{\"choices\":[{\"message\":{\"content\":\"\"}}]}", ""},
        {"{\"choices\":[{\"message\":{\"content\":null}}]}", ""},
        {"{\"choices\":[{\"message\":{\"role\":\"assistant\"}}]}", ""},
        {"{\"choices\":[{\"message\":{\"content\":[]}}]}", ""},
        /* refusals */
        {"{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"I cannot help with that.\"}}]}", ""},
        {"{\"choices\":[{\"message\":{\"content\":\"Sorry\",\"refusal\":\"no\"}}]}", ""},
        {"{\"choices\":[{\"finish_reason\":\"content_filter\",\"message\":{\"content\":\"half of a sen\"}}]}", ""},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_str text;
        qr_test_set_context("%s", cases[i].answer);
        QR_CHECK_RC(QR_OK, qr_vision_read(qr_str_of(cases[i].answer), &arena, &text, &err));
        QR_CHECK_STR(cases[i].text, text);
    }
    qr_arena_done(&arena);
}

QR_TEST(what_a_model_says_is_cut_between_characters)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf answer = {0};
    qr_str text;
    qr_buf_add_text(&answer, "{\"choices\":[{\"message\":{\"content\":\"x");
    for (int i = 0; i < QR_VISION_TEXT_BYTES_MAX; i++) {
        qr_buf_add_text(&answer, "é");
    }
    qr_buf_add_text(&answer, "\"}}]}");
    QR_CHECK_RC(QR_OK, qr_vision_read(qr_buf_str(&answer), &arena, &text, &err));
    QR_CHECK_INT(QR_VISION_TEXT_BYTES_MAX - 1, text.len);
    QR_CHECK(qr_utf8_valid(text));
    qr_arena_done(&arena);
}

QR_TEST(an_answer_without_a_message_is_none)
{
    static const char *const answers[] = {"",
                                          "garbage",
                                          "{}",
                                          "[]",
                                          "{\"choices\":[]}",
                                          "{\"choices\":[{}]}",
                                          "{\"choices\":[{\"message\":\"text\"}]}",
                                          "{\"choices\":[{\"message\":{\"content\":5}}]}",
                                          "{\"choices\":[{\"message\":{\"content\":\"cut off"};
    for (size_t i = 0; i < QR_COUNT(answers); i++) {
        qr_str text;
        qr_test_set_context("%s", answers[i]);
        QR_CHECK_CODE(QR_CODE_UNAVAILABLE, qr_vision_read(qr_str_of(answers[i]), &arena, &text, &err));
    }
    qr_arena_done(&arena);
}
