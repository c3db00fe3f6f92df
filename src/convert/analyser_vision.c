/* The analyser that is a model elsewhere: one request a picture. Shared by nobody: it belongs to one attempt. */
#include "base/mem.h"
#include "convert/analyser.h"
#include "convert/vision_wire.h"
#include "remote/http.h"
#include "remote/service.h"

enum {
    PERMIT_MS_MAX = 2000,  /* beyond it the job waits, not its thread */
    PICTURE_TOKENS = 1500, /* about what one counts for; the answer's come to it */
    ANSWER_BYTES_MAX = 4 << 20,
};

struct vision {
    struct qr_analyser analyser;
    const struct qr_vision_settings *settings;
    struct qr_endpoint *endpoint;
    bool (*is_cancelled)(void *arg);
    void *cancel_arg;
};

static int64_t tokens_of(const struct vision *vision)
{
    return PICTURE_TOKENS + vision->settings->max_tokens;
}

static qr_rc check_picture(const struct vision *vision, qr_str bytes, const char **ret_mime, qr_err *err)
{
    if ((int64_t)bytes.len > vision->settings->picture_bytes) {
        return qr_fail(err, QR_CODE_TOO_LARGE, "the picture has more than %lld bytes (assets.vision.limits)",
                       (long long)vision->settings->picture_bytes);
    }
    *ret_mime = qr_picture_mime(bytes);
    return *ret_mime ? QR_OK
                     : qr_fail(err, QR_CODE_UNSUPPORTED_TYPE,
                               "the picture is no PNG, JPEG, GIF or WebP: vision models take no other");
}

static qr_rc analyse(struct qr_analyser *analyser, qr_str bytes, const char *mime QR_UNUSED, struct qr_arena *arena,
                     qr_str *ret_text, qr_err *err)
{
    const struct vision *vision = analyser->arg;
    const char *found_mime;
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_REMOTE_ANSWER(answer);
    QR_TRY(check_picture(vision, bytes, &found_mime, err));
    qr_vision_write(vision->settings, found_mime, bytes, &body);
    QR_TRY(qr_buf_check(&body, err));
    const struct qr_remote_request request = {.method = "POST",
                                              .path = "/chat/completions",
                                              .json = qr_buf_str(&body),
                                              .tokens = tokens_of(vision),
                                              .priority = QR_PRIORITY_DOCUMENT,
                                              .wait_ms_max = PERMIT_MS_MAX,
                                              .answer_bytes_max = ANSWER_BYTES_MAX,
                                              .is_cancelled = vision->is_cancelled,
                                              .cancel_arg = vision->cancel_arg};
    QR_TRY(qr_remote_send(vision->endpoint, &request, &answer, err));
    return answer.refusal == QR_REFUSAL_NONE ? qr_vision_read(qr_buf_str(&answer.body), arena, ret_text, err)
                                             : qr_fail(err, answer.reason.code, "%s", answer.reason.msg);
}

static int64_t wait_ms(struct qr_analyser *analyser)
{
    const struct vision *vision = analyser->arg;
    return qr_endpoint_wait_ms(vision->endpoint, tokens_of(vision));
}

static void free_vision(struct qr_analyser *analyser)
{
    struct vision *vision = analyser->arg;
    qr_endpoint_put(vision->endpoint);
    qr_free(vision);
}

qr_rc qr_analyser_vision(struct qr_analyser **ret_analyser, const struct qr_vision_settings *settings,
                         struct qr_endpoints *endpoints, bool (*is_cancelled)(void *arg), void *arg, qr_err *err)
{
    struct vision *vision = qr_alloc_zero(sizeof *vision);
    if (!vision) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the vision model");
    }
    *vision = (struct vision){.settings = settings, .is_cancelled = is_cancelled, .cancel_arg = arg};
    vision->analyser = (struct qr_analyser){
        .name = "vision", .arg = vision, .analyse = analyse, .wait_ms = wait_ms, .free = free_vision};
    const qr_rc rc = qr_service_open(endpoints, &settings->service, NULL, &vision->endpoint, err);
    if (rc != QR_OK) {
        qr_free(vision);
        return rc;
    }
    *ret_analyser = &vision->analyser;
    return QR_OK;
}
