/* Answers that are given again as long as nothing was written (api/memo.h, M1–M3). */
#include "api/instance.h"
#include "support/api_fixture.h"

#include <string.h>

static struct quire_request request_for(const char *target)
{
    return (struct quire_request){.method = "GET", .target = target, .remote_address = "127.0.0.1"};
}

static void check_answer(struct quire *quire, const struct quire_request *request, int status, const char *has)
{
    struct quire_response response;
    QR_CHECK_INT(status, quire_request_call(quire, request, &response));
    QR_CHECK(strstr(response.body, has));
    quire_response_done(&response);
}

static bool is_at_hand(struct quire *quire, const struct quire_request *request)
{
    struct quire_response response;
    const int status = quire_request_recall(quire, request, &response);
    if (status) {
        QR_CHECK_INT(200, status);
        quire_response_done(&response);
    }
    return status != 0;
}

/* A data folder with a note in it, and the request for it. */
static struct quire *open_with_note(struct qr_test *t, char ret_id[static API_ID_SIZE], char ret_path[static 128])
{
    struct quire *quire = api_open_base(t);
    api_add_note(quire, "first", "Some words.", ret_id);
    snprintf(ret_path, 128, "%s", api_item_path(ret_id, ""));
    return quire;
}

QR_TEST(the_same_answer_is_given_again) /* M1 */
{
    char id[API_ID_SIZE], path[128];
    struct quire *quire = open_with_note(t, id, path);
    const struct quire_request request = request_for(path);
    struct quire_response first, again;
    QR_CHECK(!is_at_hand(quire, &request));
    QR_CHECK_INT(200, quire_request_call(quire, &request, &first));
    QR_CHECK_INT(200, quire_request_recall(quire, &request, &again));
    QR_CHECK(strcmp(first.body, again.body) == 0);
    QR_CHECK_INT(first.body_size, again.body_size);
    QR_CHECK(strcmp(first.content_type, again.content_type) == 0);
    quire_response_done(&first);
    quire_response_done(&again);
    quire_close(quire);
}

QR_TEST(what_was_written_is_in_the_next_answer) /* M1 */
{
    char id[API_ID_SIZE], path[128];
    struct quire *quire = open_with_note(t, id, path);
    const struct quire_request item = request_for(path), list = request_for(API_ITEMS);
    check_answer(quire, &item, 200, "\"name\":\"first\"");
    check_answer(quire, &list, 200, "\"name\":\"first\"");
    QR_CHECK(is_at_hand(quire, &item) && is_at_hand(quire, &list));
    api_check(quire, "PATCH", path, "{\"name\":\"second\"}", 200, "second");
    QR_CHECK(!is_at_hand(quire, &item) && !is_at_hand(quire, &list));
    check_answer(quire, &item, 200, "\"name\":\"second\"");
    check_answer(quire, &list, 200, "\"name\":\"second\"");
    quire_close(quire);
}

QR_TEST(an_answer_for_one_is_not_given_to_another) /* M2 */
{
    char id[API_ID_SIZE], path[128];
    struct quire *quire = open_with_note(t, id, path);
    const struct quire_request request = request_for(path);
    struct quire_request other = request;
    check_answer(quire, &request, 200, "first");
    QR_CHECK(is_at_hand(quire, &request));
    other.remote_address = "192.0.2.7";
    QR_CHECK(!is_at_hand(quire, &other));
    check_answer(quire, &other, 401, "unauthorized");
    other = request;
    other.method = "DELETE";
    QR_CHECK(!is_at_hand(quire, &other));
    other = request;
    other.if_none_match = "*";
    QR_CHECK(!is_at_hand(quire, &other));
    other = request;
    other.body = "{}";
    other.body_size = 2;
    QR_CHECK(!is_at_hand(quire, &other));
    other = request;
    other.is_local_owner = 1; /* which is decided in another way, so it is not taken for the same */
    QR_CHECK(!is_at_hand(quire, &other));
    quire_close(quire);
}

QR_TEST(the_first_key_ends_what_was_answered_without_one) /* M2, KEY-3 */
{
    char id[API_ID_SIZE], path[128];
    struct quire *quire = open_with_note(t, id, path);
    const struct quire_request request = request_for(path);
    check_answer(quire, &request, 200, "first");
    QR_CHECK(is_at_hand(quire, &request));
    QR_JSON *key = api_call(quire, "POST", "/api/v1/keys", "{\"name\":\"k\",\"admin\":true}", 201);
    QR_CHECK(!is_at_hand(quire, &request));
    check_answer(quire, &request, 401, "unauthorized");
    char authorization[128];
    snprintf(authorization, sizeof authorization, "Bearer %s", api_text(key, "secret"));
    struct quire_request with_key = request;
    with_key.authorization = authorization;
    for (int i = 0; i < 2; i++) { /* the first use is written down */
        check_answer(quire, &with_key, 200, "first");
        check_answer(quire, &request, 401, "unauthorized");
    }
    quire_close(quire);
}

QR_TEST(what_is_kept_is_bounded) /* M3 */
{
    char id[API_ID_SIZE], path[128];
    struct quire *quire = open_with_note(t, id, path);
    char *large = malloc(QR_MEMO_ANSWER_BYTES_MAX + 1);
    memset(large, 'x', QR_MEMO_ANSWER_BYTES_MAX + 1);
    for (int i = 0; i < 4 * QR_MEMO_ANSWERS_MAX; i++) {
        char target[64];
        snprintf(target, sizeof target, "/%d", i);
        const struct quire_request request = request_for(target);
        const struct quire_response response = {
            .status = 200, .body = large, .body_size = QR_MEMO_ANSWER_BYTES_MAX / 2, .content_type = "text/plain"};
        qr_memo_keep(&quire->memo, &request, 2, &response);
        QR_CHECK(quire->memo.bytes <= QR_MEMO_BYTES_MAX);
    }
    const struct quire_request request = request_for("/large");
    struct quire_response response = {.status = 200, .body = large, .body_size = QR_MEMO_ANSWER_BYTES_MAX + 1};
    qr_memo_keep(&quire->memo, &request, 2, &response);
    QR_CHECK(!qr_memo_find(&quire->memo, &request, 2, &response));
    free(large);
    quire_close(quire);
}

QR_TEST(nothing_is_kept_of_a_database_that_is_being_written_to) /* M1 */
{
    char id[API_ID_SIZE], path[128];
    struct quire *quire = open_with_note(t, id, path);
    const struct quire_request request = request_for("/a");
    const struct quire_response response = {.status = 200, .body = "b", .body_size = 1, .content_type = "text/plain"};
    struct quire_response found;
    qr_memo_keep(&quire->memo, &request, 3, &response);
    QR_CHECK(!qr_memo_find(&quire->memo, &request, 3, &found));
    qr_memo_keep(&quire->memo, &request, 0, &response); /* it is not known whether it is */
    QR_CHECK(!qr_memo_find(&quire->memo, &request, 0, &found));
    quire_close(quire);
}
