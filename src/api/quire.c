/* The public C interface: turns its plain types into those of the inside and back. */
#include <quire/quire.h>

#include "api/router.h"
#include "api/upload.h"
#include "api/wire.h"
#include "base/mem.h"

#include <strings.h>

/* An answer that needs no memory. */
static const char json_content_type[] = "application/json";
static const char no_memory_body[] = "{\"error\":{\"code\":\"out_of_memory\",\"message\":\"out of memory\"}}";

_Static_assert(sizeof((struct quire_error *)NULL)->message == QR_ERR_MSG_SIZE, "a message fits the public error");

const char *quire_version(void)
{
    return QUIRE_VERSION;
}

static void tell_error(const qr_err *err, struct quire_error *ret_error)
{
    const struct qr_code_info *info = qr_code_info(err->code);
    *ret_error = (struct quire_error){.status = info->http_status, .code = info->name, .advice = info->advice};
    memcpy(ret_error->message, err->msg, sizeof err->msg);
}

/* The settings as the inside takes them, the data folder last; NULL = out of memory. */
static struct qr_config_flag *flags_of(const char *data_dir, const struct quire_setting *settings, size_t count)
{
    struct qr_config_flag *flags = qr_alloc_array(count + 1, sizeof *flags);
    for (size_t i = 0; flags && i < count; i++) {
        flags[i] = (struct qr_config_flag){"setting", qr_str_of(settings[i].key), qr_str_of(settings[i].value)};
    }
    if (flags) {
        flags[count] = (struct qr_config_flag){"data_dir", QR_STR("data.dir"), qr_str_of(data_dir)};
    }
    return flags;
}

static qr_rc open_with(const struct quire_options *options, struct quire **ret_quire, qr_err *err)
{
    if (!options->data_dir) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "data_dir is required: the folder that holds the data");
    }
    const size_t count = options->setting_count;
    QR_CLEANUP(qr_free_ptr)
    struct qr_config_flag *flags = flags_of(options->data_dir, options->settings, count);
    if (!flags) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while opening the data folder");
    }
    const struct qr_instance_options instance_options = {
        .settings = flags, .setting_count = count + 1, .program = options->program ? options->program : "quire"};
    return qr_instance_open(ret_quire, &instance_options, err);
}

int quire_open(const struct quire_options *options, struct quire **ret_quire, struct quire_error *error)
{
    qr_err err = {0};
    if (open_with(options, ret_quire, &err) == QR_OK) {
        return 0;
    }
    if (error) {
        tell_error(&err, error);
    }
    return qr_code_info(err.code)->http_status;
}

void quire_close(struct quire *quire)
{
    qr_instance_close(quire);
}

static qr_rc reload_with(struct quire *quire, const struct quire_setting *settings, size_t count, qr_err *err)
{
    QR_CLEANUP(qr_free_ptr)
    struct qr_config_flag *flags =
        flags_of(qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR), settings, count);
    return flags ? qr_instance_reload(quire, flags, count + 1, err)
                 : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the settings");
}

int quire_reload(struct quire *quire, const struct quire_setting *settings, size_t count, struct quire_error *error)
{
    qr_err err = {0};
    if (reload_with(quire, settings, count, &err) == QR_OK) {
        return 0;
    }
    if (error) {
        tell_error(&err, error);
    }
    return qr_code_info(err.code)->http_status;
}

int quire_start_work(struct quire *quire, struct quire_error *error)
{
    qr_err err = {0};
    if (qr_instance_start_work(quire, &err) == QR_OK) {
        return 0;
    }
    if (error) {
        tell_error(&err, error);
    }
    return qr_code_info(err.code)->http_status;
}

void quire_stop_work(struct quire *quire, int grace_ms)
{
    (void)qr_instance_stop_work(quire, grace_ms);
}

/* ---- requests ---- */

static const char *find_header(const struct quire_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(headers[i].name, name) == 0) {
            return headers[i].value;
        }
    }
    return NULL;
}

const char *quire_request_header(const struct quire_request *request, const char *name)
{
    return find_header(request->headers, request->header_count, name);
}

const char *quire_response_header(const struct quire_response *response, const char *name)
{
    return find_header(response->headers, response->header_count, name);
}

/* One block: the headers, and behind them their values. False = out of memory. */
static bool copy_headers(const struct qr_reply *reply, struct quire_response *response)
{
    if (reply->header_count == 0) {
        return true;
    }
    struct quire_header *headers =
        qr_alloc_array(reply->header_count, sizeof *headers + sizeof reply->headers[0].value);
    if (!headers) {
        return false;
    }
    char *values = (char *)(headers + reply->header_count);
    for (size_t i = 0; i < reply->header_count; i++) {
        memcpy(values, reply->headers[i].value, sizeof reply->headers[i].value);
        headers[i] = (struct quire_header){reply->headers[i].name, values};
        values += sizeof reply->headers[i].value;
    }
    response->headers = headers;
    response->header_count = reply->header_count;
    return true;
}

/* Takes the reply. */
static struct quire_response response_of(struct qr_reply *reply)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct quire_response response = {.status = reply->status,
                                      .content_type = reply->content_type ? reply->content_type : json_content_type};
    if (reply->content_type) {
        response.body = qr_buf_take(&reply->bytes, &response.body_size);
        response.pieces = reply->pieces;
    } else if (reply->body && qr_json_write(reply->body, &text, NULL) == QR_OK) {
        response.body = qr_buf_take(&text, &response.body_size);
    }
    json_decref(reply->body);
    if (!response.body || !copy_headers(reply, &response)) {
        qr_free((char *)response.body);
        quire_pieces_free(response.pieces);
        response = (struct quire_response){.status = qr_code_info(QR_CODE_OUT_OF_MEMORY)->http_status,
                                           .body = no_memory_body,
                                           .body_size = sizeof no_memory_body - 1,
                                           .content_type = json_content_type};
    }
    return response;
}

/* ---- bodies in pieces ---- */

struct quire_stream {
    struct quire *quire;
    struct quire_request request;
    struct qr_upload upload;
    qr_err failure; /* code NONE = none */
};

int quire_stream_is_for(const struct quire_request *request)
{
    return qr_router_takes_files(request);
}

static struct qr_reply reply_of(const qr_err *err)
{
    return (struct qr_reply){.status = qr_code_info(err->code)->http_status, .body = qr_json_error(err, NULL)};
}

/* Whether the body is one of several files, or just a file. */
static qr_rc open_upload(struct quire_stream *stream, qr_err *err)
{
    const char *type = stream->request.content_type;
    const bool is_file = strcmp(stream->request.method, "PUT") == 0;
    return qr_upload_init(&stream->upload, stream->quire, is_file ? NULL : type ? type : "", err);
}

int quire_stream_open(struct quire *quire, const struct quire_request *request, struct quire_stream **ret_stream,
                      struct quire_response *ret_response)
{
    struct qr_reply reply;
    if (!qr_router_admits(quire, request, &reply)) {
        *ret_response = response_of(&reply);
        return ret_response->status;
    }
    qr_err err;
    qr_rc rc = QR_OK;
    struct quire_stream *stream = qr_alloc_zero(sizeof *stream);
    if (stream) {
        stream->quire = quire;
        stream->request = *request;
        rc = open_upload(stream, &err);
    } else {
        rc = qr_fail(&err, QR_CODE_OUT_OF_MEMORY, "out of memory for an upload");
    }
    if (rc != QR_OK) {
        qr_free(stream);
        reply = reply_of(&err);
        *ret_response = response_of(&reply);
        return ret_response->status;
    }
    *ret_stream = stream;
    return 0;
}

int quire_stream_write(struct quire_stream *stream, const char *bytes, size_t size)
{
    if (stream->failure.code == QR_CODE_NONE) {
        (void)qr_upload_add(&stream->upload, (qr_str){bytes, size}, &stream->failure);
    }
    return stream->failure.code == QR_CODE_NONE ? 0 : qr_code_info(stream->failure.code)->http_status;
}

int quire_stream_end(struct quire_stream *stream, struct quire_response *ret_response)
{
    struct qr_reply reply;
    if (stream->failure.code == QR_CODE_NONE) {
        (void)qr_upload_finish(&stream->upload, &stream->failure);
    }
    qr_router_call_upload(stream->quire, &stream->request, &stream->upload, &stream->failure, &reply);
    *ret_response = response_of(&reply);
    quire_stream_cancel(stream); /* what items have taken is theirs */
    return ret_response->status;
}

void quire_stream_cancel(struct quire_stream *stream)
{
    if (stream) {
        qr_upload_done(&stream->upload);
        qr_free(stream);
    }
}

static int call_whole(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response)
{
    struct quire_stream *stream;
    const int status = quire_stream_open(quire, request, &stream, ret_response);
    if (status) {
        return status;
    }
    (void)quire_stream_write(stream, request->body ? request->body : "", request->body ? request->body_size : 0);
    return quire_stream_end(stream, ret_response);
}

int quire_request_recall(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response)
{
    if (!qr_memo_find(&quire->memo, request, qr_db_version(quire->db), ret_response)) {
        return 0;
    }
    qr_meter_request(&quire->meter, ret_response->status);
    return ret_response->status;
}

int quire_request_call(struct quire *quire, const struct quire_request *request, struct quire_response *ret_response)
{
    struct qr_reply reply;
    if (qr_router_takes_files(request)) {
        return call_whole(quire, request, ret_response);
    }
    if (quire_request_recall(quire, request, ret_response)) {
        return ret_response->status;
    }
    const uint64_t version = qr_db_version(quire->db); /* before anything is read (M1) */
    qr_router_call(quire, request, &reply);
    const bool is_kept = reply.is_kept;
    *ret_response = response_of(&reply);
    if (is_kept && ret_response->status == 200) { /* else there was no memory for it */
        qr_memo_keep(&quire->memo, request, version, ret_response);
    }
    return ret_response->status;
}

int quire_request_is_strange(struct quire *quire, const struct quire_request *request)
{
    return qr_access_is_stranger(quire, request);
}

int quire_call(struct quire *quire, const char *method, const char *path, const char *body,
               struct quire_response *ret_response)
{
    const struct quire_request request = {
        .method = method, .target = path, .body = body, .body_size = body ? strlen(body) : 0, .is_local_owner = 1};
    return quire_request_call(quire, &request, ret_response);
}

void quire_response_done(struct quire_response *response)
{
    if (response->body != no_memory_body) {
        qr_free((char *)response->body);
    }
    qr_free((struct quire_header *)response->headers);
    quire_pieces_free(response->pieces);
    *response = (struct quire_response){0};
}
