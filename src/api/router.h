/* Requests to routes. A route group is one file of src/api/ with its handlers; router.c has the one table of them. */
#pragma once

#include "api/access.h"
#include "api/instance.h"
#include "base/json.h"

#include <quire/quire.h>

enum { QR_ROUTE_PARAMS_MAX = 4, QR_REPLY_HEADERS_MAX = 6, QR_REPLY_HEADER_SIZE = 160 };

struct qr_request {
    struct quire *quire;
    const struct quire_request *from;   /* as it came: who asks, conditions, other headers; never NULL */
    struct qr_caller caller;            /* who asks, once api/access.h has found out */
    char base_id[QR_UUID_TEXT_SIZE];    /* what params[0] names then, where it is a base and was decided about */
    qr_str params[QR_ROUTE_PARAMS_MAX]; /* what stands at the {…} of the pattern, in order */
    const json_t *query;                /* the parameters behind the '?', as strings; only those that the route knows */
    const json_t *body;                 /* an object, empty when there was none; only fields that the route knows */
    struct qr_upload *upload;           /* instead of a body: files, whole and durable; NULL = none */
};

struct qr_reply {
    int status;
    json_t *body;        /* taken from the handler */
    json_t *details;     /* of an error, taken from a handler that fails; NULL = none */
    struct qr_buf bytes; /* instead of a body, where content_type is set; taken from the handler */
    const char *content_type;
    struct quire_pieces *pieces; /* instead of bytes, for a caller that takes them; taken from the handler */
    struct qr_reply_header {
        const char *name;
        char value[QR_REPLY_HEADER_SIZE];
    } headers[QR_REPLY_HEADERS_MAX]; /* of an error too; qr_reply_header adds one */
    size_t header_count;
    bool is_kept; /* what any local owner would be told as well, as long as nothing is written (api/memo.h, M2) */
};

/* Fills the reply on QR_OK; an error becomes its status and its JSON. */
typedef qr_rc qr_route_fn(const struct qr_request *request, struct qr_reply *reply, qr_err *err);

/* What a route takes as its body. */
enum qr_body {
    QR_BODY_JSON,
    QR_BODY_FILES,        /* multipart/form-data, as request->upload */
    QR_BODY_JSON_OR_FILE, /* a file of any other type, as request->upload */
};

/* An error in a shape that is not ours; NULL when out of memory. */
typedef json_t *qr_error_fn(const struct qr_request *request, const qr_err *err);

struct qr_route {
    const char *method;
    const char *pattern; /* "/api/v1/bases/{b}": a {…} stands for one part between slashes */
    qr_route_fn *fn;
    const char *query;  /* parameters that it takes behind a '?', separated by spaces */
    const char *fields; /* that the body may have, separated by spaces; "*" = any: the shape is not ours */
    const char *doc;
    enum qr_right needs; /* of whoever asks, in the base that the request is about; api/access.h */
    enum qr_body takes;
    qr_error_fn *error; /* the shape of its errors; NULL = as everywhere */
    bool is_kept;       /* its answer depends on nothing but the main database and the target (api/memo.h, M1) */
};

/* All there is; router.c. */
extern const struct qr_route qr_routes[];
extern const size_t qr_route_count;

/* Answers a request; the reply's body or bytes are the caller's. No body where there are no bytes: there was no memory even
 * for the error. */
void qr_router_call(struct quire *quire, const struct quire_request *request, struct qr_reply *ret_reply);

/* The same with files that have come, or with what went wrong while they came (code NONE = nothing). */
void qr_router_call_upload(struct quire *quire, const struct quire_request *request, struct qr_upload *upload,
                           const qr_err *failure, struct qr_reply *ret_reply);
/* Whether the body is to be taken as files, by the route and the Content-Type. */
bool qr_router_takes_files(const struct quire_request *request);
/* Before files are taken: who asks, whether they may, and whether the path leads somewhere. On failure the reply says so. */
bool qr_router_admits(struct quire *quire, const struct quire_request *request, struct qr_reply *ret_reply);

/* Whether the path fits the pattern; fills the params. */
bool qr_route_matches(const char *pattern, qr_str path, qr_str ret_params[static QR_ROUTE_PARAMS_MAX]);

/* The value of a parameter behind the '?', NULL when it was not given. */
const char *qr_request_query(const struct qr_request *request, const char *name);

/* Appends the text with its %41 read as A; `bad_request` unless the outcome is text. */
qr_rc qr_url_decode(struct qr_buf *out, qr_str text, qr_err *err);

/* Says something beside the body, as in qr_reply_header(reply, "ETag", "\"%d\"", 3). The name is borrowed for ever; a value
 * that is too long is a defect. */
void qr_reply_header(struct qr_reply *reply, const char *name, const char *format, ...) QR_PRINTF(3, 4);

/* Makes the reply; `body` is taken, NULL is out of memory. */
qr_rc qr_reply_with(struct qr_reply *reply, int status, json_t *body, qr_err *err);

/* ---- the route groups ---- */

qr_route_fn qr_route_healthz, qr_route_readyz, qr_route_metrics, qr_route_backup;
qr_route_fn qr_route_check;
qr_route_fn qr_route_cache_show, qr_route_cache_prune;
qr_route_fn qr_route_models_list, qr_route_models_add, qr_route_models_delete;
qr_route_fn qr_route_jobs_list, qr_route_jobs_show, qr_route_jobs_cancel, qr_route_jobs_retry;
qr_route_fn qr_route_queues_list, qr_route_queues_pause, qr_route_queues_resume;
qr_route_fn qr_route_bases_list, qr_route_bases_add, qr_route_bases_show, qr_route_bases_set, qr_route_bases_delete,
    qr_route_bases_restore;
qr_route_fn qr_route_uploads;
qr_route_fn qr_route_items_list, qr_route_items_add, qr_route_items_show, qr_route_items_set;
qr_route_fn qr_route_content_show, qr_route_content_set, qr_route_raw, qr_route_totals, qr_route_chunks,
    qr_route_assets, qr_route_item_events;
qr_route_fn qr_route_items_delete, qr_route_items_reindex, qr_route_items_retry, qr_route_items_refresh;
qr_route_fn qr_route_base_search, qr_route_search;
qr_route_fn qr_route_keys_list, qr_route_keys_add, qr_route_keys_delete, qr_route_keys_rotate;
qr_route_fn qr_route_members_list, qr_route_members_show, qr_route_members_set, qr_route_members_delete;
qr_route_fn qr_route_process, qr_route_run_show, qr_route_run_cancel, qr_route_runs_list;
qr_route_fn qr_route_events;
qr_route_fn qr_route_openapi, qr_route_docs;
qr_route_fn qr_route_dify_retrieval, qr_route_vector_store_search, qr_route_embeddings;
qr_error_fn qr_dify_error, qr_openai_error;
