/* The converter that is a docling-serve. Holds nothing but its settings: a ticket is the id of a task there. */
#include "base/mem.h"
#include "convert/docling_wire.h"
#include "convert/processor.h"
#include "remote/http.h"
#include "remote/service.h"

#include <stdio.h>

enum {
    PERMIT_MS_MAX = 2000, /* beyond it the job waits, not its thread */
    FIXED_PARTS = 4,
};

struct docling {
    struct qr_processor processor;
    struct qr_docling_options options;
    struct qr_endpoint *endpoint;
};

/* ---- requests ---- */

/* `rate_limited` and such, or an answer, which may be a refusal. */
static qr_rc send_request(const struct docling *docling, const char *method, const char *path,
                          const struct qr_remote_part *parts, size_t part_count, struct qr_remote_answer *answer,
                          qr_err *err)
{
    const struct qr_remote_request request = {.method = method,
                                              .path = path,
                                              .parts = parts,
                                              .part_count = part_count,
                                              .priority = QR_PRIORITY_DOCUMENT,
                                              .wait_ms_max = PERMIT_MS_MAX,
                                              .answer_bytes_max = 2 * (size_t)QR_PROCESSOR_OUTPUT_BYTES_MAX,
                                              .is_cancelled = docling->options.is_cancelled,
                                              .cancel_arg = docling->options.cancel_arg};
    return qr_remote_send(docling->endpoint, &request, answer, err);
}

/* What is wrong with the file, or with what was asked of it, is the file's failure. */
static bool is_about_file(const struct qr_remote_answer *answer)
{
    return answer->refusal == QR_REFUSAL_REQUEST || answer->refusal == QR_REFUSAL_TOO_LARGE;
}

static qr_rc fail_refused(const struct qr_remote_answer *answer, qr_err *err)
{
    return qr_fail(err, is_about_file(answer) ? QR_CODE_CONVERSION_FAILED : answer->reason.code, "%s",
                   answer->reason.msg);
}

static qr_rc get(const struct docling *docling, const char *what, const char *ticket, struct qr_remote_answer *answer,
                 qr_err *err)
{
    char path[64 + QR_DOCLING_TASK_SIZE];
    snprintf(path, sizeof path, "/v1/%s/%s", what, ticket);
    return send_request(docling, "GET", path, NULL, 0, answer, err);
}

/* ---- submit ---- */

static qr_rc submit(struct qr_processor *processor, const char *path, const char *name, struct qr_arena *arena,
                    const char **ret_ticket, qr_err *err)
{
    const struct docling *docling = processor->arg;
    const struct qr_docling_settings *settings = docling->options.settings;
    const qr_str pictures = docling->options.with_pictures ? QR_STR("embedded") : QR_STR("placeholder");
    struct qr_remote_part *parts = qr_arena_array(arena, settings->option_count + FIXED_PARTS, sizeof *parts);
    struct qr_docling_task task;
    size_t count = 0;
    QR_REMOTE_ANSWER(answer);
    if (!parts) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for docling-serve");
    }
    parts[count++] = (struct qr_remote_part){.name = "to_formats", .bytes = QR_STR("md")};
    parts[count++] = (struct qr_remote_part){.name = "image_export_mode", .bytes = pictures};
    parts[count++] = (struct qr_remote_part){.name = "target_type", .bytes = QR_STR("inbody")};
    for (size_t i = 0; i < settings->option_count; i++) {
        parts[count++] =
            (struct qr_remote_part){.name = settings->options[i].name, .bytes = qr_str_of(settings->options[i].value)};
    }
    parts[count++] =
        (struct qr_remote_part){.name = "files", .file_name = name, .path = path, .mime = "application/octet-stream"};
    QR_TRY(send_request(docling, "POST", "/v1/convert/file/async", parts, count, &answer, err));
    if (answer.refusal != QR_REFUSAL_NONE) {
        return fail_refused(&answer, err);
    }
    QR_TRY(qr_docling_read_task(qr_buf_str(&answer.body), &task, err));
    *ret_ticket = qr_arena_copy(arena, qr_str_of(task.id));
    return *ret_ticket ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a ticket");
}

/* ---- poll ---- */

enum { NOT_FOUND = 404 };

/* A failure that is the file's becomes the ticket's. */
static qr_rc end_failed(qr_rc rc, const qr_err *err, enum qr_ticket_state *ret_state)
{
    if (rc != QR_OK && err->code == QR_CODE_CONVERSION_FAILED) {
        *ret_state = QR_TICKET_FAILED;
        return QR_OK;
    }
    return rc;
}

static qr_rc fetch_result(const struct docling *docling, const char *ticket, enum qr_ticket_state *ret_state,
                          struct qr_buf *out, qr_err *err)
{
    QR_REMOTE_ANSWER(answer);
    QR_TRY(get(docling, "result", ticket, &answer, err));
    if (answer.status == NOT_FOUND) {
        *ret_state = QR_TICKET_UNKNOWN;
        return QR_OK;
    }
    *ret_state = QR_TICKET_DONE;
    return answer.refusal == QR_REFUSAL_NONE ? qr_docling_read_result(qr_buf_str(&answer.body), out, err)
                                             : fail_refused(&answer, err);
}

static qr_rc look_at_task(const struct docling *docling, const char *ticket, const struct qr_docling_task *task,
                          enum qr_ticket_state *ret_state, struct qr_buf *out, qr_err *err)
{
    switch (task->state) {
    case QR_DOCLING_WAITS:
        *ret_state = QR_TICKET_WAITING;
        return QR_OK;
    case QR_DOCLING_RUNS:
        *ret_state = QR_TICKET_RUNNING;
        return QR_OK;
    case QR_DOCLING_FAILED:
        return qr_fail(err, QR_CODE_CONVERSION_FAILED, "docling could not convert it%s%s", task->reason[0] ? ": " : "",
                       task->reason);
    case QR_DOCLING_ENDED:
        break;
    }
    return fetch_result(docling, ticket, ret_state, out, err);
}

static qr_rc ask(const struct docling *docling, const char *ticket, enum qr_ticket_state *ret_state, struct qr_buf *out,
                 qr_err *err)
{
    struct qr_docling_task task;
    QR_REMOTE_ANSWER(answer);
    QR_TRY(get(docling, "status/poll", ticket, &answer, err));
    if (answer.status == NOT_FOUND) {
        *ret_state = QR_TICKET_UNKNOWN;
        return QR_OK;
    }
    if (answer.refusal != QR_REFUSAL_NONE) {
        return fail_refused(&answer, err);
    }
    QR_TRY(qr_docling_read_task(qr_buf_str(&answer.body), &task, err));
    if (strcmp(task.id, ticket) != 0) { /* what is said of another task says nothing of this one */
        return qr_fail(err, QR_CODE_UNAVAILABLE, "docling-serve answers for another task than it was asked for");
    }
    return look_at_task(docling, ticket, &task, ret_state, out, err);
}

static qr_rc poll(struct qr_processor *processor, const char *ticket, enum qr_ticket_state *ret_state,
                  int64_t *ret_running_ms, struct qr_buf *out, qr_err *err)
{
    qr_err local = {0};
    *ret_running_ms = -1;
    if (!qr_docling_is_task_id(ticket)) { /* of another kind of converter, that the base had before */
        *ret_state = QR_TICKET_UNKNOWN;
        return QR_OK;
    }
    const qr_rc rc = end_failed(ask(processor->arg, ticket, ret_state, out, &local), &local, ret_state);
    if (local.code != QR_CODE_NONE && err) {
        *err = local;
    }
    return rc;
}

/* ---- the rest ---- */

static void cancel(struct qr_processor *processor QR_UNUSED, const char *ticket QR_UNUSED)
{
    /* there is no way to: it runs to its end there, and is forgotten by the server in its own time */
}

static int64_t wait_ms(struct qr_processor *processor)
{
    const struct docling *docling = processor->arg;
    return qr_endpoint_wait_ms(docling->endpoint, 0);
}

static void free_docling(struct qr_processor *processor)
{
    struct docling *docling = processor->arg;
    qr_endpoint_put(docling->endpoint);
    qr_free(docling);
}

qr_rc qr_processor_docling(struct qr_processor **ret_processor, const struct qr_docling_options *options, qr_err *err)
{
    struct docling *docling = qr_alloc_zero(sizeof *docling);
    if (!docling) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for docling-serve");
    }
    docling->options = *options;
    docling->processor = (struct qr_processor){.name = "docling",
                                               .arg = docling,
                                               .submit = submit,
                                               .poll = poll,
                                               .cancel = cancel,
                                               .wait_ms = wait_ms,
                                               .free = free_docling};
    const qr_rc rc =
        qr_service_open(options->endpoints, &options->settings->service, "X-Api-Key", &docling->endpoint, err);
    if (rc != QR_OK) {
        qr_free(docling);
        return rc;
    }
    *ret_processor = &docling->processor;
    return QR_OK;
}
