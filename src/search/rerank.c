/* The reranker that is a server: one request, within a time that a person waits. */
#include "search/rerank.h"

#include "base/mem.h"
#include "remote/http.h"
#include "remote/service.h"
#include "search/rerank_wire.h"

enum {
    PERMIT_MS_MAX = 500,
    BYTES_A_TOKEN = 4, /* about: for the limit of tokens a minute */
    ANSWER_BYTES_MAX = 16 << 20,
};

struct server {
    struct qr_reranker reranker;
    struct qr_endpoint *endpoint;
    const struct qr_clock *clock;
    bool is_tei;
    char *model;
};

struct deadline {
    const struct server *server;
    int64_t at_ms;
};

static bool is_past(void *arg)
{
    const struct deadline *deadline = arg;
    const struct qr_reranker *reranker = &deadline->server->reranker;
    return qr_clock_mono_ms(deadline->server->clock) >= deadline->at_ms ||
           (reranker->is_cancelled && reranker->is_cancelled(reranker->cancel_arg));
}

static qr_rc send_request(const struct server *server, const struct qr_buf *body, struct qr_remote_answer *answer,
                          qr_err *err)
{
    const int64_t wait_ms = server->reranker.wait_ms ? server->reranker.wait_ms : QR_RERANK_MS_MAX;
    struct deadline deadline = {server, qr_clock_mono_ms(server->clock) + wait_ms};
    const struct qr_remote_request request = {.method = "POST",
                                              .path = "/rerank",
                                              .json = qr_buf_str(body),
                                              .tokens = (int64_t)(body->len / BYTES_A_TOKEN),
                                              .priority = QR_PRIORITY_QUERY,
                                              .wait_ms_max = QR_MIN(wait_ms, (int64_t)PERMIT_MS_MAX),
                                              .answer_bytes_max = ANSWER_BYTES_MAX,
                                              .is_cancelled = is_past,
                                              .cancel_arg = &deadline};
    const qr_rc rc = qr_remote_send(server->endpoint, &request, answer, err);
    if (rc == QR_CANCELLED) {
        return qr_fail(err, QR_CODE_TIMEOUT, "the reranker did not answer within %g s", (double)wait_ms / 1000);
    }
    return rc;
}

static qr_rc score(struct qr_reranker *reranker, qr_str query, const qr_str *documents, size_t count,
                   double *ret_scores, qr_err *err)
{
    const struct server *server = reranker->arg;
    const struct qr_rerank_request request = {
        .is_tei = server->is_tei, .model = server->model, .query = query, .documents = documents, .count = count};
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    QR_REMOTE_ANSWER(answer);
    qr_rerank_write(&request, &body);
    QR_TRY(qr_buf_check(&body, err));
    QR_TRY(send_request(server, &body, &answer, err));
    return answer.refusal == QR_REFUSAL_NONE ? qr_rerank_read(qr_buf_str(&answer.body), count, ret_scores, err)
                                             : qr_fail(err, answer.reason.code, "%s", answer.reason.msg);
}

static void free_server(struct qr_reranker *reranker)
{
    struct server *server = reranker->arg;
    qr_endpoint_put(server->endpoint);
    qr_free(server->model);
    qr_free(server);
}

qr_rc qr_reranker_create(struct qr_reranker **ret_reranker, const struct qr_rerank_settings *settings,
                         struct qr_endpoints *endpoints, const struct qr_clock *clock, qr_err *err)
{
    *ret_reranker = NULL;
    if (strcmp(settings->provider, "none") == 0) {
        return QR_OK;
    }
    struct server *server = qr_alloc_zero(sizeof *server);
    if (!server) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the reranker");
    }
    server->clock = clock;
    server->model = qr_copy_string(settings->service.model);
    server->is_tei = strcmp(settings->provider, "tei") == 0;
    server->reranker = (struct qr_reranker){.document_bytes = settings->document_bytes,
                                            .request_bytes = settings->request_bytes,
                                            .arg = server,
                                            .score = score,
                                            .free = free_server};
    const qr_rc rc = server->model ? qr_service_open(endpoints, &settings->service, NULL, &server->endpoint, err)
                                   : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the reranker");
    if (rc != QR_OK) {
        free_server(&server->reranker);
        return rc;
    }
    *ret_reranker = &server->reranker;
    return QR_OK;
}

void qr_reranker_free(struct qr_reranker *reranker)
{
    if (reranker) {
        reranker->free(reranker);
    }
}
