/* The dialects of the model server. */
#include "support/model_answers.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSION_DEFAULT = 64, INPUTS_MAX = 4096, TOKEN_BYTES = 4 };

/* ---- vectors ---- */

static uint64_t mix(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001B3);
}

static void add_word(uint64_t hash, int dimension, float *vector)
{
    for (int i = 0; i < 4; i++) { /* several places, so that few words have the same */
        hash ^= hash >> 29;
        hash *= UINT64_C(0xBF58476D1CE4E5B9);
        vector[hash % (uint64_t)dimension] += (hash >> 60) & 1 ? 1.0F : -1.0F;
    }
}

void qr_model_vector(qr_str text, int dimension, float *ret_vector)
{
    const uint64_t begin = UINT64_C(0xCBF29CE484222325);
    uint64_t hash = begin;
    double sum = 0;
    memset(ret_vector, 0, (size_t)dimension * sizeof *ret_vector);
    for (size_t i = 0; i <= text.len; i++) {
        const unsigned char c = i < text.len ? (unsigned char)text.ptr[i] : ' ';
        if (c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')) {
            hash = mix(hash, c);
        } else if (c >= 'A' && c <= 'Z') {
            hash = mix(hash, (unsigned char)(c + 32));
        } else if (hash != begin) {
            add_word(hash, dimension, ret_vector);
            hash = begin;
        }
    }
    for (int i = 0; i < dimension; i++) {
        sum += (double)ret_vector[i] * (double)ret_vector[i];
    }
    if (sum == 0) {
        ret_vector[0] = 1;
        sum = 1;
    }
    for (int i = 0; i < dimension; i++) {
        ret_vector[i] = (float)((double)ret_vector[i] / sqrt(sum));
    }
}

/* ---- refusals ---- */

static void say(struct qr_model_answer *answer, int status, const char *body)
{
    answer->status = status;
    qr_buf_clear(&answer->body);
    qr_buf_add_text(&answer->body, body);
}

static void refuse_too_large(const struct qr_model_options *options, bool is_count, struct qr_model_answer *answer)
{
    static const struct {
        int status;
        const char *body;
    } words[][2] = {
        [QR_DIALECT_OPENAI] = {{400,
                                "{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens, however "
                                "you requested 9000 tokens. Please reduce your prompt.\",\"type\":"
                                "\"invalid_request_error\",\"param\":null,\"code\":null}}"},
                               {400,
                                "{\"error\":{\"message\":\"Invalid 'input': array too long. Expected an array with "
                                "maximum length 2048.\",\"type\":\"invalid_request_error\",\"param\":\"input\","
                                "\"code\":\"array_above_max_length\"}}"}},
        [QR_DIALECT_OLLAMA] = {{400, "{\"error\":\"the input length exceeds the context length\"}"},
                               {500,
                                "{\"error\":\"input is too large to process. increase the physical batch size\"}"}},
        [QR_DIALECT_LLAMACPP] = {{500,
                                  "{\"error\":{\"code\":500,\"message\":\"input (900 tokens) is too large to process. "
                                  "increase the physical batch size (current batch size: 512)\",\"type\":"
                                  "\"server_error\"}}"},
                                 {500,
                                  "{\"error\":{\"code\":500,\"message\":\"input is too large to process\",\"type\":"
                                  "\"server_error\"}}"}},
        [QR_DIALECT_TEI] = {{413,
                             "{\"error\":\"Input validation error: `inputs` must have less than 512 tokens. Given: "
                             "900\",\"error_type\":\"Validation\"}"},
                            {422, "{\"error\":\"batch size 64 > maximum allowed batch size 32\",\"error_type\":"
                                  "\"Validation\"}"}},
        [QR_DIALECT_VLLM] = {{400,
                              "{\"object\":\"error\",\"message\":\"This model's maximum context length is 512 tokens. "
                              "However, you requested 900 tokens in the input for embedding generation. Please "
                              "reduce the length of the input.\",\"type\":\"BadRequestError\",\"param\":null,"
                              "\"code\":400}"},
                             {413, "Request Entity Too Large"}},
    };
    say(answer, words[options->dialect][is_count].status, words[options->dialect][is_count].body);
}

static void repeat_key(const struct qr_model_request *request, struct qr_model_answer *answer)
{
    const char *at = memmem(request->head.ptr, request->head.len, "Bearer ", 7);
    const size_t len = at ? strcspn(at + 7, "\r\n") : 0;
    answer->status = 401;
    qr_buf_printf(&answer->body,
                  "{\"error\":{\"message\":\"Incorrect API key provided: %.*s. You can find your API key at your "
                  "account.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"invalid_api_key\"}}",
                  (int)len, at ? at + 7 : "");
}

bool qr_model_refuse(enum qr_model_fault fault, int64_t number, const struct qr_model_request *request,
                     struct qr_model_answer *answer)
{
    static const char limited[] = "{\"error\":{\"message\":\"Rate limit reached for requests\",\"type\":\"requests\","
                                  "\"param\":null,\"code\":\"rate_limit_exceeded\"}}";
    static const struct {
        enum qr_model_fault fault;
        int status;
        const char *body;
    } plain[] = {
        {QR_FAULT_429, 429, limited},
        {QR_FAULT_429_RETRY_AFTER, 429, limited},
        {QR_FAULT_429_HEADERS, 429, limited},
        {QR_FAULT_QUOTA, 429,
         "{\"error\":{\"message\":\"You exceeded your current quota, please check your plan and billing details.\","
         "\"type\":\"insufficient_quota\",\"param\":null,\"code\":\"insufficient_quota\"}}"},
        {QR_FAULT_403, 403, "{\"detail\":\"Not authorised for this model\"}"},
        {QR_FAULT_404, 404, "{\"error\":\"model \\\"nothing\\\" not found, try pulling it first\"}"},
        {QR_FAULT_400, 400, "{\"message\":\"invalid request: this is not how it is asked for\"}"},
        {QR_FAULT_500, 500, "{\"error\":\"something broke\"}"},
        {QR_FAULT_500_TOO_LARGE, 500,
         "{\"error\":{\"code\":500,\"message\":\"input is too large to process. increase the physical batch size\","
         "\"type\":\"server_error\"}}"},
        {QR_FAULT_413, 413, "<html><head><title>413 Request Entity Too Large</title></head></html>"},
        {QR_FAULT_422, 422,
         "{\"detail\":[{\"loc\":[\"body\",\"input\"],\"msg\":\"field required\",\"type\":\"missing\"}]}"},
        {QR_FAULT_502_HTML, 502, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body></html>"},
        {QR_FAULT_503_LOADING, 503,
         "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}"},
        {QR_FAULT_503_RETRY_AFTER, 503, "upstream is away"},
        {QR_FAULT_BAD_JSON, 200, "{\"data\": [{\"embedding\": [0.1, "},
        {QR_FAULT_REDIRECT, 307, ""},
    };
    if (fault == QR_FAULT_401) {
        repeat_key(request, answer);
        return true;
    }
    for (size_t i = 0; i < QR_COUNT(plain); i++) {
        if (plain[i].fault == fault) {
            say(answer, plain[i].status, plain[i].body);
            if (fault == QR_FAULT_429_RETRY_AFTER || fault == QR_FAULT_503_RETRY_AFTER) {
                qr_buf_printf(&answer->headers, "Retry-After: %lld\r\n", (long long)number);
            } else if (fault == QR_FAULT_429_HEADERS) {
                qr_buf_printf(&answer->headers,
                              "x-ratelimit-limit-requests: 100\r\nx-ratelimit-remaining-requests: 0\r\n"
                              "x-ratelimit-reset-requests: %lldms\r\n",
                              (long long)number);
            } else if (fault == QR_FAULT_REDIRECT) {
                qr_buf_add_text(&answer->headers, "Location: http://elsewhere.invalid/v1/embeddings\r\n");
            }
            return true;
        }
    }
    return false;
}

/* ---- OpenAI: embeddings ---- */

static void add_base64(struct qr_buf *out, const unsigned char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        const unsigned value = (unsigned)bytes[i] << 16 | (i + 1 < len ? (unsigned)bytes[i + 1] << 8 : 0) |
                               (i + 2 < len ? bytes[i + 2] : 0);
        const char group[] = {digits[value >> 18], digits[value >> 12 & 63],
                              (char)(i + 1 < len ? digits[value >> 6 & 63] : '='),
                              (char)(i + 2 < len ? digits[value & 63] : '=')};
        qr_buf_add(out, (qr_str){group, sizeof group});
    }
}

static void add_floats(struct qr_buf *out, const float *vector, int dimension, bool has_nan)
{
    qr_buf_add_char(out, '[');
    for (int i = 0; i < dimension; i++) {
        char number[32];
        const int len = snprintf(number, sizeof number, "%s%.7g", i ? "," : "", (double)vector[i]);
        qr_buf_add(out, (qr_str){number, (size_t)len});
    }
    qr_buf_add_text(out, has_nan ? ",NaN]" : "]");
}

struct embedding_call {
    const struct qr_model_request *request;
    const json_t *inputs; /* NULL = the one text */
    qr_str text;
    size_t count;
    int dimension;
    bool is_base64, shuffles;
};

static qr_str input_of(const struct embedding_call *call, size_t i)
{
    if (!call->inputs) {
        return call->text;
    }
    const json_t *input = json_array_get(call->inputs, i);
    return (qr_str){json_string_value(input), json_string_length(input)};
}

static void add_embedding(const struct embedding_call *call, size_t input, bool is_last, struct qr_buf *out)
{
    const enum qr_model_fault fault = call->request->fault;
    float *vector = qr_alloc_array((size_t)call->dimension, sizeof *vector);
    int dimension = call->dimension - (fault == QR_FAULT_WRONG_DIMENSION && is_last);
    qr_model_vector(input_of(call, input), call->dimension, vector);
    for (int i = 0; i < dimension; i++) {
        vector[i] *= fault == QR_FAULT_UNNORMALISED ? 7.0F : fault == QR_FAULT_ZERO && input == 0 ? 0.0F : 1.0F;
    }
    if (fault == QR_FAULT_NAN) {
        vector[0] = call->is_base64 ? NAN : vector[0];
        dimension -= !call->is_base64; /* the word itself takes a place */
    }
    qr_buf_printf(out, "{\"object\":\"embedding\",\"index\":%zu,\"embedding\":",
                  fault == QR_FAULT_SAME_INDEX ? (size_t)0 : input);
    if (call->is_base64) {
        qr_buf_add_char(out, '"');
        add_base64(out, (const unsigned char *)vector, (size_t)dimension * sizeof *vector);
        qr_buf_add_char(out, '"');
    } else {
        add_floats(out, vector, dimension, fault == QR_FAULT_NAN);
    }
    qr_buf_add_char(out, '}');
    qr_free(vector);
}

static void write_embeddings(const struct embedding_call *call, struct qr_model_answer *answer)
{
    const size_t count = call->count - (call->request->fault == QR_FAULT_WRONG_COUNT && call->count > 0);
    qr_buf_add_text(&answer->body, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < count; i++) {
        qr_buf_add_text(&answer->body, i ? "," : "");
        /* from the middle to the end, then from the beginning: no order that anybody could mistake for the right one */
        add_embedding(call, call->shuffles ? (i + count / 2) % count : i, i + 1 == count, &answer->body);
    }
    qr_buf_printf(&answer->body, "],\"model\":\"test-model\",\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}",
                  (long long)answer->tokens, (long long)answer->tokens);
    answer->status = 200;
}

/* Whether it is too much; says so. */
static bool is_too_large(const struct qr_model_options *options, const struct embedding_call *call,
                         struct qr_model_answer *answer)
{
    if (options->inputs_max && call->count > (size_t)options->inputs_max) {
        refuse_too_large(options, true, answer);
        return true;
    }
    for (size_t i = 0; i < call->count; i++) {
        const int64_t tokens = ((int64_t)input_of(call, i).len + TOKEN_BYTES - 1) / TOKEN_BYTES;
        answer->tokens += tokens;
        if ((options->input_tokens_max && tokens > options->input_tokens_max) ||
            (options->request_tokens_max && answer->tokens > options->request_tokens_max)) {
            refuse_too_large(options, false, answer);
            return true;
        }
    }
    return false;
}

static void answer_embeddings(const struct qr_model_options *options, const struct qr_model_request *request,
                              const json_t *body, struct qr_model_answer *answer)
{
    const json_t *input = json_object_get(body, "input");
    const char *encoding = json_string_value(json_object_get(body, "encoding_format"));
    const int asked = (int)json_integer_value(json_object_get(body, "dimensions"));
    const struct embedding_call call = {
        .request = request,
        .inputs = json_is_array(input) ? input : NULL,
        .text = {json_string_value(input), json_string_length(input)},
        .count = json_is_array(input) ? json_array_size(input) : 1,
        .dimension = asked > 0            ? asked
                     : options->dimension ? options->dimension
                                          : DIMENSION_DEFAULT,
        .is_base64 = encoding && strcmp(encoding, "base64") == 0,
        .shuffles = options->shuffles,
    };
    for (size_t i = 0; i < call.count; i++) {
        if (call.count > INPUTS_MAX || !input_of(&call, i).ptr || input_of(&call, i).len == 0) {
            say(answer, 400, "{\"error\":{\"message\":\"'$.input' is invalid\",\"type\":\"invalid_request_error\"}}");
            return;
        }
    }
    if (is_too_large(options, &call, answer)) {
        return;
    }
    answer->inputs = (int64_t)call.count;
    write_embeddings(&call, answer);
}

/* ---- rerank ---- */

struct scored {
    size_t index;
    double score;
};

static int by_score(const void *a, const void *b)
{
    const struct scored *one = a, *two = b;
    return one->score < two->score   ? 1
           : one->score > two->score ? -1
                                     : (one->index > two->index) - (one->index < two->index);
}

static qr_str document_text(const json_t *document)
{
    const json_t *text = json_is_object(document) ? json_object_get(document, "text") : document;
    return (qr_str){json_string_value(text) ? json_string_value(text) : "", json_string_length(text)};
}

static void answer_rerank(const struct qr_model_request *request, const json_t *body, struct qr_model_answer *answer)
{
    const json_t *texts = json_object_get(body, "texts");
    const bool is_tei = json_is_array(texts);
    const json_t *documents = is_tei ? texts : json_object_get(body, "documents");
    const json_t *query = json_object_get(body, "query"), *top_n = json_object_get(body, "top_n");
    const size_t count = json_array_size(documents);
    float asked[DIMENSION_DEFAULT], vector[DIMENSION_DEFAULT];
    if (!json_is_string(query) || count == 0 || count > INPUTS_MAX) {
        say(answer, 422,
            "{\"detail\":[{\"loc\":[\"body\",\"query\"],\"msg\":\"Field required\",\"type\":\"missing\"}]}");
        return;
    }
    struct scored *scored = qr_alloc_array(count, sizeof *scored);
    qr_model_vector((qr_str){json_string_value(query), json_string_length(query)}, DIMENSION_DEFAULT, asked);
    for (size_t i = 0; i < count; i++) {
        qr_model_vector(document_text(json_array_get(documents, i)), DIMENSION_DEFAULT, vector);
        scored[i].index = i;
        for (int d = 0; d < DIMENSION_DEFAULT; d++) {
            scored[i].score += (double)asked[d] * (double)vector[d];
        }
    }
    qsort(scored, count, sizeof *scored, by_score);
    const size_t wanted = json_is_integer(top_n) ? (size_t)json_integer_value(top_n) : count;
    const size_t shown = QR_MIN(count, wanted) - (request->fault == QR_FAULT_WRONG_COUNT && count > 0);
    qr_buf_add_text(&answer->body, is_tei ? "[" : "{\"id\":\"rerank-1\",\"results\":[");
    for (size_t i = 0; i < shown; i++) {
        qr_buf_printf(&answer->body, "%s{\"index\":%zu,\"%s\":", i ? "," : "",
                      request->fault == QR_FAULT_SAME_INDEX ? (size_t)0 : scored[i].index,
                      is_tei ? "score" : "relevance_score");
        if (request->fault == QR_FAULT_NAN) {
            qr_buf_add_text(&answer->body, "null}");
        } else {
            qr_buf_printf(&answer->body, "%.6f}", scored[i].score);
        }
    }
    qr_buf_add_text(&answer->body, is_tei ? "]" : "],\"meta\":{\"api_version\":{\"version\":\"2\"}}}");
    qr_free(scored);
    answer->status = 200;
    answer->inputs = (int64_t)count;
}

/* ---- OpenAI: chat with pictures ---- */

/* The first picture's bytes in base64; len 0 = there is none. */
static qr_str find_picture(const json_t *body)
{
    const json_t *message, *part;
    size_t i, k;
    json_array_foreach(json_object_get(body, "messages"), i, message)
    {
        json_array_foreach(json_object_get(message, "content"), k, part)
        {
            const json_t *url = json_object_get(json_object_get(part, "image_url"), "url");
            const char *comma = json_is_string(url) ? strchr(json_string_value(url), ',') : NULL;
            if (comma) {
                return qr_str_of(comma + 1);
            }
        }
    }
    return (qr_str){"", 0};
}

static void answer_chat(const json_t *body, struct qr_model_answer *answer)
{
    const qr_str picture = find_picture(body);
    if (picture.len == 0) {
        say(answer, 400, "{\"error\":{\"message\":\"there is no picture\",\"type\":\"invalid_request_error\"}}");
        return;
    }
    qr_buf_printf(
        &answer->body,
        "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"model\":\"test-model\",\"choices\":[{\"index\":0,"
        "\"message\":{\"role\":\"assistant\",\"content\":\"A picture of about %zu bytes, with a harbour in it.\"},"
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":12,"
        "\"total_tokens\":%zu}}",
        picture.len / 4 * 3, picture.len / 64, picture.len / 64 + 12);
    answer->status = 200;
    answer->inputs = 1;
}

/* ---- docling-serve ---- */

/* The content of the first part that is a file. */
static bool find_file(const struct qr_model_request *request, struct qr_model_task *task)
{
    const char *name = memmem(request->body.ptr, request->body.len, "filename=\"", 10);
    if (!name) {
        return false;
    }
    const char *end = request->body.ptr + request->body.len;
    const char *name_end = memchr(name + 10, '"', (size_t)(end - name - 10));
    const char *begin = memmem(name, (size_t)(end - name), "\r\n\r\n", 4);
    const char *stop = begin ? memmem(begin, (size_t)(end - begin), "\r\n--", 4) : NULL;
    if (!name_end || !stop) {
        return false;
    }
    snprintf(task->name, sizeof task->name, "%.*s", (int)(name_end - name - 10), name + 10);
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_buf_printf(&text, "# %s\n\n", task->name);
    qr_buf_add(&text, (qr_str){begin + 4, (size_t)(stop - begin - 4)});
    task->text = qr_buf_take(&text, NULL);
    return task->text != NULL;
}

static void describe_task(int number, const char *status, struct qr_model_answer *answer)
{
    qr_buf_clear(&answer->body);
    qr_buf_printf(&answer->body,
                  "{\"task_id\":\"task-%d\",\"task_type\":\"convert\",\"task_status\":\"%s\",\"task_position\":%s,"
                  "\"task_meta\":null}",
                  number, status, strcmp(status, "pending") == 0 ? "1" : "null");
    answer->status = 200;
}

static void begin_task(const struct qr_model_options *options, struct qr_model_tasks *tasks,
                       const struct qr_model_request *request, struct qr_model_answer *answer)
{
    QR_HOLD(&tasks->lock);
    struct qr_model_task *task = &tasks->all[tasks->count];
    if (tasks->count == QR_MODEL_TASKS_MAX || !find_file(request, task)) {
        say(answer, 422,
            "{\"detail\":[{\"loc\":[\"body\",\"files\"],\"msg\":\"Field required\",\"type\":\"missing\"}]}");
        return;
    }
    task->polls_left = options->task_polls;
    task->has_failed = request->fault == QR_FAULT_TASK_FAILED;
    task->is_lost = request->fault == QR_FAULT_TASK_LOST;
    describe_task(tasks->count++, "pending", answer);
    answer->inputs = 1;
}

static void poll_task(struct qr_model_tasks *tasks, int number, struct qr_model_answer *answer)
{
    QR_HOLD(&tasks->lock);
    struct qr_model_task *task = number >= 0 && number < tasks->count ? &tasks->all[number] : NULL;
    if (!task || task->is_lost) {
        say(answer, 404, "{\"detail\":\"Task not found.\"}");
        return;
    }
    const bool is_ready = task->polls_left == 0;
    task->polls_left -= !is_ready;
    describe_task(number, !is_ready ? "started" : task->has_failed ? "failure" : "success", answer);
}

static void show_result(struct qr_model_tasks *tasks, int number, struct qr_model_answer *answer)
{
    QR_HOLD(&tasks->lock);
    const struct qr_model_task *task = number >= 0 && number < tasks->count ? &tasks->all[number] : NULL;
    if (!task || task->is_lost || task->polls_left > 0) {
        say(answer, 404, "{\"detail\":\"Task result not found. Please wait for a completion status.\"}");
        return;
    }
    qr_buf_add_text(&answer->body, "{\"document\":{\"filename\":");
    qr_json_add_string(&answer->body, qr_str_of(task->name));
    qr_buf_add_text(&answer->body, ",\"md_content\":");
    if (task->has_failed) {
        qr_buf_add_text(&answer->body, "null");
    } else {
        qr_json_add_string(&answer->body, qr_str_of(task->text));
    }
    qr_buf_printf(&answer->body,
                  ",\"json_content\":null,\"html_content\":null,\"text_content\":null,\"doctags_content\":null},"
                  "\"status\":\"%s\",\"errors\":[%s],\"processing_time\":0.5,\"timings\":{}}",
                  task->has_failed ? "failure" : "success",
                  task->has_failed
                      ? "{\"component_type\":\"document_backend\",\"module_name\":\"pdf\",\"error_message\":"
                        "\"the document is damaged\"}"
                      : "");
    answer->status = 200;
}

/* ---- the table ---- */

static int task_number(const char *path)
{
    const char *at = strstr(path, "/task-");
    return at ? atoi(at + 6) : -1;
}

static bool ends_with(const char *path, const char *end)
{
    return qr_str_ends_with(qr_str_of(path), qr_str_of(end));
}

void qr_model_answer(const struct qr_model_options *options, struct qr_model_tasks *tasks,
                     const struct qr_model_request *request, struct qr_model_answer *answer)
{
    const char *path = request->path;
    QR_JSON *body = NULL;
    if (strcmp(request->method, "POST") == 0 && ends_with(path, "/convert/file/async")) {
        begin_task(options, tasks, request, answer);
        return;
    }
    if (strstr(path, "/status/poll/")) {
        poll_task(tasks, task_number(path), answer);
        return;
    }
    if (strstr(path, "/result/")) {
        show_result(tasks, task_number(path), answer);
        return;
    }
    if (qr_json_parse(request->body, &QR_JSON_REQUEST_LIMITS, &body, NULL) != QR_OK) {
        say(answer, strcmp(request->method, "POST") == 0 ? 400 : 404, "{\"detail\":\"Not Found\"}");
    } else if (ends_with(path, "/embeddings")) {
        answer_embeddings(options, request, body, answer);
    } else if (ends_with(path, "/rerank")) {
        answer_rerank(request, body, answer);
    } else if (ends_with(path, "/chat/completions")) {
        answer_chat(body, answer);
    } else {
        say(answer, 404, "404 page not found");
    }
}
