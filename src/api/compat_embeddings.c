/* POST /v1/embeddings in the shape of OpenAI: the vectors that a base's model makes. `model` names a base, or the model of one. */
#include "api/compat.h"

#include "api/base_models.h"
#include "api/lookup.h"
#include "api/places.h"
#include "base/base64.h"
#include "chunk/split.h"

#include <endian.h>
#include <stdio.h>

enum {
    INPUTS_MAX = 2048,
    TOKENS_MAX = 300000,
    DIMENSIONS_MAX = 4096,
    WAIT_MS = 60000,
};

struct embedding {
    const struct qr_request *request;
    struct qr_arena *arena;
    const json_t *texts; /* a list */
    bool is_base64;
    json_int_t dimensions; /* 0 = the model's own */
    char base_id[QR_UUID_TEXT_SIZE];
    struct qr_base_models models;
    int64_t token_count;
};

/* ---- the request ---- */

static qr_rc check_inputs(struct embedding *embedding, qr_err *err)
{
    const json_t *text;
    size_t i;
    if (json_array_size(embedding->texts) == 0 || json_array_size(embedding->texts) > INPUTS_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "input is a text, or a list of 1 to %d texts", (int)INPUTS_MAX);
    }
    json_array_foreach(embedding->texts, i, text)
    {
        if (json_is_integer(text) || json_is_array(text)) {
            return qr_fail(err, QR_CODE_INVALID_VALUE,
                           "input has token ids, which are of another model's tokenizer: send the text itself");
        }
        if (!json_is_string(text) || json_string_length(text) == 0) {
            return qr_fail(err, QR_CODE_INVALID_VALUE, "input[%zu] is not a text with something in it", i);
        }
        embedding->token_count += qr_token_count((qr_str){json_string_value(text), json_string_length(text)});
    }
    return embedding->token_count <= TOKENS_MAX
               ? QR_OK
               : qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "input has more than %d tokens", (int)TOKENS_MAX);
}

static qr_rc read_options(struct embedding *embedding, qr_err *err)
{
    const json_t *body = embedding->request->body, *dimensions = json_object_get(body, "dimensions");
    const char *format;
    QR_TRY(qr_field_text(body, "", "encoding_format", &format, err));
    if (format && strcmp(format, "float") != 0 && strcmp(format, "base64") != 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "encoding_format is float or base64");
    }
    embedding->is_base64 = format && strcmp(format, "base64") == 0;
    embedding->dimensions = json_integer_value(dimensions);
    if (dimensions && !json_is_null(dimensions) &&
        (!json_is_integer(dimensions) || embedding->dimensions < 1 || embedding->dimensions > DIMENSIONS_MAX)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "dimensions is a whole number from 1 to %d", (int)DIMENSIONS_MAX);
    }
    return QR_OK;
}

/* ---- the model ---- */

static bool is_named(const json_t *base, const char *name)
{
    const json_t *live = json_object_get(json_object_get(base, "models"), "live");
    const char *names[] = {json_string_value(json_object_get(base, "id")),
                           json_string_value(json_object_get(base, "name")),
                           json_string_value(json_object_get(live, "model"))};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        if (names[i] && strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Among the bases that the caller may see. */
static qr_rc find_base(struct embedding *embedding, const char *name, qr_err *err)
{
    QR_JSON *cursor = NULL;
    do {
        QR_CLEANUP(qr_buf_done) struct qr_buf target = {0};
        QR_JSON *answer = NULL;
        const json_t *base;
        size_t i;
        qr_buf_printf(&target, "/api/v1/bases?limit=200%s%s", cursor ? "&cursor=" : "",
                      cursor ? json_string_value(cursor) : "");
        QR_TRY(qr_buf_check(&target, err));
        QR_TRY(qr_compat_ask(embedding->request, "GET", target.data, NULL, &answer, err));
        json_array_foreach(json_object_get(answer, "data"), i, base)
        {
            if (is_named(base, name)) {
                snprintf(embedding->base_id, sizeof embedding->base_id, "%s",
                         json_string_value(json_object_get(base, "id")));
                return QR_OK;
            }
        }
        json_decref(cursor);
        cursor = json_incref(json_object_get(answer, "next_cursor"));
    } while (json_is_string(cursor));
    return qr_fail(err, QR_CODE_NOT_FOUND, "there is no base and no model of a base with the name that model has");
}

static qr_rc load_models(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct embedding *embedding = arg;
    struct qr_base base;
    qr_arena_reset(embedding->arena);
    QR_TRY(qr_find_base(tx, qr_str_of(embedding->base_id), embedding->arena, &base, err));
    return qr_base_models(&base, embedding->arena, &embedding->models, err);
}

/* ---- the vectors ---- */

static json_t *vector_json(const float *vector, int dimension, bool is_base64)
{
    if (!is_base64) {
        QR_JSON *list = json_array();
        for (int i = 0; i < dimension; i++) {
            if (json_array_append_new(list, json_real((double)vector[i])) != 0) {
                return NULL;
            }
        }
        return json_incref(list);
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0}, text = {0};
    for (int i = 0; i < dimension; i++) {
        uint32_t bits;
        memcpy(&bits, &vector[i], sizeof bits);
        bits = htole32(bits);
        qr_buf_add(&bytes, (qr_str){(const char *)&bits, sizeof bits});
    }
    qr_base64_add(&text, qr_buf_str(&bytes));
    return bytes.failed == QR_CODE_NONE && text.failed == QR_CODE_NONE ? json_string(qr_buf_str(&text).ptr) : NULL;
}

static qr_rc answer(const struct embedding *embedding, const struct qr_embed_work *work, struct qr_reply *reply,
                    qr_err *err)
{
    QR_JSON *data = json_array();
    if (embedding->dimensions && embedding->dimensions != work->dimension) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "this model makes vectors of %d dimensions, and no others",
                       work->dimension);
    }
    for (size_t i = 0; i < work->count; i++) {
        if (work->inputs[i].state != QR_INPUT_DONE) {
            return qr_fail(err, QR_CODE_EMBEDDING_FAILED, "the model makes no vector of input[%zu]", i);
        }
        json_t *entry = json_pack("{s:s, s:I, s:o}", "object", "embedding", "index", (json_int_t)i, "embedding",
                                  vector_json(work->inputs[i].vector, work->dimension, embedding->is_base64));
        if (json_array_append_new(data, entry) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    const json_int_t tokens = (json_int_t)embedding->token_count;
    return qr_reply_with(reply, 200,
                         json_pack("{s:s, s:O, s:O, s:{s:I, s:I}}", "object", "list", "data", data, "model",
                                   json_object_get(embedding->request->body, "model"), "usage", "prompt_tokens", tokens,
                                   "total_tokens", tokens),
                         err);
}

static qr_rc take_place(struct quire *quire, qr_err *err)
{
    return qr_place_take(quire) ? QR_OK
                                : qr_fail(err, QR_CODE_UNAVAILABLE,
                                          "%d requests wait for models already, which is the most", qr_places(quire));
}

/* As queries are: before all documents that wait, and for as long as a client does. */
static qr_rc embed(struct embedding *embedding, struct qr_reply *reply, qr_err *err)
{
    struct quire *quire = embedding->request->quire;
    const size_t count = json_array_size(embedding->texts);
    struct qr_embed_input *inputs = qr_arena_array(embedding->arena, count, sizeof *inputs);
    struct qr_batcher *batcher = NULL;
    if (!inputs) {
        return qr_answer_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_array_get(embedding->texts, i);
        inputs[i] = (struct qr_embed_input){.text = {json_string_value(text), json_string_length(text)}};
    }
    QR_TRY(qr_providers_get(quire->providers, &embedding->models.live, &batcher, err));
    if (!batcher) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "this base has no embedding model: it is searched by words");
    }
    struct qr_embed_work work = {.inputs = inputs,
                                 .count = count,
                                 .is_query = true,
                                 .deadline_mono_ms = qr_clock_mono_ms(quire->clock) + WAIT_MS,
                                 .is_cancelled = qr_waiting_is_over,
                                 .cancel_arg = quire};
    qr_embed_begin(batcher, &work);
    qr_rc rc = qr_embed_wait(&work, err);
    rc = rc == QR_OK ? answer(embedding, &work, reply, err) : rc;
    qr_embed_end(&work);
    qr_providers_put(quire->providers, batcher);
    return rc == QR_CANCELLED ? qr_fail(err, QR_CODE_SHUTTING_DOWN, "the server stops, and waits for no model") : rc;
}

qr_rc qr_route_embeddings(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    const char *model;
    qr_arena_init(&arena, 0);
    json_t *input = json_object_get(request->body, "input");
    QR_JSON *texts = json_is_string(input) ? json_pack("[O]", input) : json_incref(input);
    struct embedding embedding = {.request = request, .arena = &arena, .texts = texts};
    QR_TRY(qr_field_text(request->body, "", "model", &model, err));
    if (!model || !model[0]) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "model is missing: the name of a base, or of the model of one");
    }
    QR_TRY(check_inputs(&embedding, err));
    QR_TRY(read_options(&embedding, err));
    QR_TRY(find_base(&embedding, model, err));
    QR_TRY(qr_db_read(request->quire->db, load_models, &embedding, err));
    QR_TRY(take_place(request->quire, err));
    const qr_rc rc = embed(&embedding, reply, err);
    qr_place_leave(request->quire);
    return rc;
}
