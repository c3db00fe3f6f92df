/* Writes requests and reads answers. */
#include "embed/openai_wire.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/mem.h"
#include "embed/json_scan.h"

#include <math.h>

enum { NO_INDEX = -1 };

/* ---- the request ---- */

static void add_texts(const struct qr_embed_request *request, qr_str prefix, struct qr_buf *out)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf with_prefix = {0};
    for (size_t i = 0; i < request->count; i++) {
        qr_buf_add_text(out, i ? "," : "");
        if (prefix.len == 0) {
            qr_json_add_string(out, request->texts[i]);
            continue;
        }
        qr_buf_clear(&with_prefix);
        qr_buf_add(&with_prefix, prefix);
        qr_buf_add(&with_prefix, request->texts[i]);
        qr_json_add_string(out, qr_buf_str(&with_prefix));
        out->failed = with_prefix.failed != QR_CODE_NONE ? with_prefix.failed : out->failed;
    }
}

void qr_openai_write_request(const struct qr_embedding_settings *settings, const struct qr_embed_request *request,
                             struct qr_buf *out)
{
    qr_buf_add_text(out, "{\"model\":");
    qr_json_add_string(out, qr_str_of(settings->model));
    qr_buf_add_text(out, ",\"input\":[");
    add_texts(request, qr_str_of(request->is_query ? settings->query_prefix : settings->document_prefix), out);
    qr_buf_add_char(out, ']');
    if (settings->dimensions > 0) {
        qr_buf_printf(out, ",\"dimensions\":%d", settings->dimensions);
    }
    if (settings->encoding[0]) {
        qr_buf_add_text(out, ",\"encoding_format\":");
        qr_json_add_string(out, qr_str_of(settings->encoding));
    }
    qr_buf_add_char(out, '}');
}

/* ---- vectors ---- */

struct answer {
    struct qr_scan scan;
    struct qr_embed_answer *out;
    size_t count, read_count; /* that there must be, and that were read */
    int *indexes;             /* of each that was read */
    float *first;             /* the first vector, before the dimension is known */
    const char *wrong;        /* what is wrong with it; NULL = it is no JSON that we understand */
    bool is_out_of_memory;
};

static bool fail(struct answer *answer, const char *wrong)
{
    answer->wrong = answer->wrong ? answer->wrong : wrong;
    return false;
}

/* Room for the next vector; the first one may be of any dimension. */
static float *vector_begin(struct answer *answer, int *ret_dimension_max)
{
    *ret_dimension_max = answer->read_count > 0 ? answer->out->dimension : QR_DIMENSIONS_MAX;
    return answer->read_count > 0 ? answer->out->vectors + answer->read_count * (size_t)answer->out->dimension
                                  : answer->first;
}

static bool vector_end(struct answer *answer, int dimension)
{
    if (dimension == 0) {
        return fail(answer, "an embedding is empty");
    }
    if (answer->read_count > 0) {
        return dimension == answer->out->dimension || fail(answer, "its embeddings are not of one dimension");
    }
    if (qr_embed_answer_begin(answer->out, answer->count, dimension, NULL) != QR_OK) {
        answer->is_out_of_memory = true;
        return false;
    }
    memcpy(answer->out->vectors, answer->first, (size_t)dimension * sizeof(float));
    return true;
}

static bool fail_long(struct answer *answer)
{
    return fail(answer, answer->read_count > 0 ? "its embeddings are not of one dimension"
                                               : "an embedding has more dimensions than are supported");
}

static bool read_numbers(struct answer *answer)
{
    struct qr_scan *scan = &answer->scan;
    int max, dimension = 0;
    float *vector = vector_begin(answer, &max);
    if (!qr_scan_take(scan, '[')) {
        return false;
    }
    for (bool is_over = qr_scan_take(scan, ']'); !is_over;) {
        if (dimension == max) {
            return fail_long(answer);
        }
        if (!qr_scan_float(scan, &vector[dimension++])) {
            return false;
        }
        if (scan->end - scan->at > 1 && scan->at[0] == ',' && scan->at[1] > ' ' && scan->at[1] != ']') {
            scan->at++; /* nearly always */
        } else if (!qr_scan_next(scan, ']', &is_over)) {
            return false;
        }
    }
    return vector_end(answer, dimension);
}

/* 32-bit floats, the lowest byte first, in base64 whose slashes may be escaped. */
static bool read_base64(struct answer *answer)
{
    qr_str text;
    int max, dimension = 0, bits = 0, byte_count = 0;
    uint32_t group = 0, word = 0;
    float *vector = vector_begin(answer, &max);
    if (!qr_scan_string(&answer->scan, &text)) {
        return false;
    }
    while (text.len > 0 && text.ptr[text.len - 1] == '=') {
        text.len--;
    }
    for (size_t i = 0; i < text.len; i++) {
        i += text.ptr[i] == '\\' && i + 1 < text.len && text.ptr[i + 1] == '/';
        const int digit = qr_base64_digit(text.ptr[i]);
        if (digit < 0) {
            return fail(answer, "an embedding is not base64");
        }
        group = group << 6 | (uint32_t)digit;
        bits += 6;
        if (bits < 8) {
            continue;
        }
        bits -= 8;
        word |= (group >> bits & 0xFFU) << (8 * byte_count++);
        if (byte_count == 4) {
            if (dimension == max) {
                return fail_long(answer);
            }
            memcpy(&vector[dimension++], &word, sizeof word);
            word = 0;
            byte_count = 0;
        }
    }
    return byte_count == 0 ? vector_end(answer, dimension) : fail(answer, "an embedding is not of whole floats");
}

/* ---- the answer ---- */

static bool read_index(struct answer *answer, int *ret_index)
{
    double index;
    qr_scan_space(&answer->scan);
    if (!qr_scan_number(&answer->scan, &index) || !(index >= 0 && index < (double)answer->count) ||
        index != floor(index)) {
        return fail(answer, "the index of an embedding is none of ours");
    }
    *ret_index = (int)index;
    return true;
}

/* {"embedding": …, "index": …}, in any order, perhaps with more. */
static bool read_item(struct answer *answer)
{
    struct qr_scan *scan = &answer->scan;
    bool has_vector = false;
    int index = NO_INDEX;
    if (!qr_scan_take(scan, '{')) {
        return false;
    }
    if (answer->read_count == answer->count) {
        return fail(answer, "it has more embeddings than were asked for");
    }
    for (bool is_over = qr_scan_take(scan, '}'); !is_over;) {
        qr_str key;
        bool ok = qr_scan_key(scan, &key);
        if (ok && qr_str_equal(key, QR_STR("embedding")) && !has_vector) {
            ok = qr_scan_is_next(scan, '"') ? read_base64(answer) : read_numbers(answer);
            has_vector = true;
        } else if (ok && qr_str_equal(key, QR_STR("index"))) {
            ok = read_index(answer, &index);
        } else {
            ok = ok && qr_scan_pass(scan);
        }
        if (!ok || !qr_scan_next(scan, '}', &is_over)) {
            return false;
        }
    }
    if (!has_vector) {
        return fail(answer, "one of its data has no embedding");
    }
    answer->indexes[answer->read_count++] = index;
    return true;
}

static bool read_data(struct answer *answer)
{
    struct qr_scan *scan = &answer->scan;
    if (!qr_scan_take(scan, '[')) {
        return false;
    }
    for (bool is_over = qr_scan_take(scan, ']'); !is_over;) {
        if (!read_item(answer) || !qr_scan_next(scan, ']', &is_over)) {
            return false;
        }
    }
    return true;
}

static bool read_usage(struct answer *answer)
{
    struct qr_scan *scan = &answer->scan;
    if (!qr_scan_is_next(scan, '{')) {
        return qr_scan_pass(scan);
    }
    scan->at++;
    for (bool is_over = qr_scan_take(scan, '}'); !is_over;) {
        qr_str key;
        double count;
        const struct qr_scan value = *scan;
        if (!qr_scan_key(scan, &key)) {
            return false;
        }
        if (qr_str_equal(key, QR_STR("total_tokens")) && (qr_scan_space(scan), qr_scan_number(scan, &count))) {
            answer->out->token_count = count >= 0 && count < 1e12 ? (int64_t)count : 0;
        } else {
            *scan = value;
            if (!qr_scan_key(scan, &key) || !qr_scan_pass(scan)) {
                return false;
            }
        }
        if (!qr_scan_next(scan, '}', &is_over)) {
            return false;
        }
    }
    return true;
}

static bool read_body(struct answer *answer)
{
    struct qr_scan *scan = &answer->scan;
    bool has_data = false;
    if (!qr_scan_take(scan, '{')) {
        return false;
    }
    for (bool is_over = qr_scan_take(scan, '}'); !is_over;) {
        qr_str key;
        bool ok = qr_scan_key(scan, &key);
        if (ok && qr_str_equal(key, QR_STR("data")) && !has_data) {
            ok = read_data(answer);
            has_data = true;
        } else if (ok && qr_str_equal(key, QR_STR("usage"))) {
            ok = read_usage(answer);
        } else {
            ok = ok && qr_scan_pass(scan);
        }
        if (!ok || !qr_scan_next(scan, '}', &is_over)) {
            return false;
        }
    }
    if (!has_data) {
        return fail(answer, "it has no data");
    }
    if (answer->read_count != answer->count) {
        return fail(answer, "it has fewer embeddings than were asked for");
    }
    return scan->at == scan->end;
}

/* ---- the order ---- */

/* Some servers give no index at all: then it is the order of the request. */
static bool check_indexes(struct answer *answer, bool *ret_is_sorted)
{
    QR_CLEANUP(qr_free_ptr) bool *is_taken = qr_alloc_zero(answer->count * sizeof(bool));
    size_t without = 0;
    *ret_is_sorted = true;
    if (!is_taken) {
        answer->is_out_of_memory = true;
        return false;
    }
    for (size_t i = 0; i < answer->count; i++) {
        const int index = answer->indexes[i];
        if (index == NO_INDEX) {
            without++;
        } else if (is_taken[index]) {
            return fail(answer, "two of its embeddings have the same index");
        } else {
            is_taken[index] = true;
            *ret_is_sorted = *ret_is_sorted && (size_t)index == i;
        }
    }
    return without == 0 || without == answer->count || fail(answer, "only some of its embeddings have an index");
}

static bool order_by_index(struct answer *answer)
{
    const size_t size = (size_t)answer->out->dimension * sizeof(float);
    bool is_sorted;
    if (!check_indexes(answer, &is_sorted)) {
        return false;
    }
    if (is_sorted) {
        return true;
    }
    float *sorted = qr_alloc(answer->count * size);
    if (!sorted) {
        answer->is_out_of_memory = true;
        return false;
    }
    for (size_t i = 0; i < answer->count; i++) {
        memcpy(sorted + (size_t)answer->indexes[i] * (size_t)answer->out->dimension,
               answer->out->vectors + i * (size_t)answer->out->dimension, size);
    }
    qr_free(answer->out->vectors);
    answer->out->vectors = sorted;
    return true;
}

static qr_rc read_all(struct answer *answer, qr_err *err)
{
    answer->indexes = qr_alloc(answer->count * sizeof answer->indexes[0]);
    answer->first = qr_alloc(QR_DIMENSIONS_MAX * sizeof answer->first[0]);
    const bool ok = answer->indexes && answer->first && read_body(answer) && order_by_index(answer);
    const bool no_memory = !answer->indexes || !answer->first || answer->is_out_of_memory;
    qr_free(answer->indexes);
    qr_free(answer->first);
    if (no_memory) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an answer with embeddings");
    }
    return ok ? QR_OK
              : qr_fail(err, QR_CODE_EMBEDDING_FAILED, "the embedding server's answer cannot be used: %s",
                        answer->wrong ? answer->wrong : "it is not the JSON of embeddings, or was cut off");
}

qr_rc qr_openai_read_answer(qr_str body, size_t count, struct qr_embed_answer *ret_answer, qr_err *err)
{
    struct qr_embed_answer out = {.is_bad = ret_answer->is_bad};
    struct answer answer = {.scan = {body.ptr, body.ptr + body.len}, .out = &out, .count = count};
    const qr_rc rc = read_all(&answer, err);
    if (rc != QR_OK) {
        qr_free(out.vectors);
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        out.is_bad[i] = !qr_vector_normalise(out.vectors + i * (size_t)out.dimension, out.dimension);
    }
    *ret_answer = out;
    return QR_OK;
}
