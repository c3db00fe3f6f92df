/* Owns the answers that are kept (api/memo.h): one for each place of a table, the last one of those that belong there. */
#include "api/memo.h"

#include "api/access.h"
#include "base/hash.h"
#include "base/mem.h"

#include <string.h>

struct qr_memo_answer {
    uint64_t version;
    bool is_at_socket; /* of who was answered */
    const char *content_type;
    size_t target_size, body_size; /* the target with its NUL; behind it the body */
    char bytes[];
};

void qr_memo_init(struct qr_memo *memo)
{
    *memo = (struct qr_memo){0};
    qr_mutex_init(&memo->lock);
}

static size_t size_of(const struct qr_memo_answer *answer)
{
    return sizeof *answer + answer->target_size + answer->body_size;
}

static void drop(struct qr_memo *memo, size_t place)
{
    if (memo->answers[place]) {
        memo->bytes -= size_of(memo->answers[place]);
        qr_free(memo->answers[place]);
        memo->answers[place] = NULL;
    }
}

static void drop_all(struct qr_memo *memo)
{
    for (size_t i = 0; i < QR_MEMO_ANSWERS_MAX; i++) {
        drop(memo, i);
    }
}

void qr_memo_done(struct qr_memo *memo)
{
    drop_all(memo);
    qr_mutex_done(&memo->lock);
}

/* Whether nothing but the target, the database and who asks makes the answer, and the database stands still. */
static bool is_for(const struct quire_request *request, uint64_t version)
{
    return version != 0 && version % 2 == 0 && strcmp(request->method, "GET") == 0 && request->body_size == 0 &&
           !request->if_none_match && !request->range &&
           (request->is_local_owner || qr_access_is_loopback(request->remote_address));
}

static size_t place_of(qr_str target)
{
    unsigned char hash[QR_HASH_BYTES];
    qr_hash_128(target, hash);
    return hash[0] % QR_MEMO_ANSWERS_MAX;
}

/* M1, M2 */
static bool fits(const struct qr_memo_answer *answer, const struct quire_request *request, qr_str target,
                 uint64_t version)
{
    return answer && answer->version == version && answer->is_at_socket == (request->is_local_owner != 0) &&
           answer->target_size == target.len + 1 && memcmp(answer->bytes, target.ptr, target.len) == 0;
}

bool qr_memo_find(struct qr_memo *memo, const struct quire_request *request, uint64_t version,
                  struct quire_response *ret_response)
{
    if (!is_for(request, version)) {
        return false;
    }
    const qr_str target = qr_str_of(request->target);
    const size_t place = place_of(target);
    QR_HOLD(&memo->lock);
    const struct qr_memo_answer *answer = memo->answers[place];
    if (!fits(answer, request, target, version)) {
        return false;
    }
    char *body = qr_alloc(answer->body_size + 1);
    if (!body) {
        return false;
    }
    memcpy(body, answer->bytes + answer->target_size, answer->body_size);
    body[answer->body_size] = '\0';
    *ret_response = (struct quire_response){
        .status = 200, .body = body, .body_size = answer->body_size, .content_type = answer->content_type};
    return true;
}

void qr_memo_keep(struct qr_memo *memo, const struct quire_request *request, uint64_t version,
                  const struct quire_response *response)
{
    const qr_str target = qr_str_of(request->target);
    const size_t place = place_of(target);
    if (!is_for(request, version) || response->header_count || response->pieces ||
        response->body_size + target.len > QR_MEMO_ANSWER_BYTES_MAX) {
        return;
    }
    struct qr_memo_answer *answer = qr_alloc(sizeof *answer + target.len + 1 + response->body_size);
    if (!answer) {
        return;
    }
    *answer = (struct qr_memo_answer){.version = version,
                                      .is_at_socket = request->is_local_owner != 0,
                                      .content_type = response->content_type,
                                      .target_size = target.len + 1,
                                      .body_size = response->body_size};
    memcpy(answer->bytes, request->target, answer->target_size);
    memcpy(answer->bytes + answer->target_size, response->body, response->body_size);
    QR_HOLD(&memo->lock);
    drop(memo, place);
    if (memo->bytes + size_of(answer) > QR_MEMO_BYTES_MAX) {
        drop_all(memo); /* most are of an older version */
    }
    memo->answers[place] = answer;
    memo->bytes += size_of(answer);
}
