/* Following events, over every database: what is told to whom, from where on, and until when. */
#include "api/event_text.h"
#include "api/router.h"
#include "base/thread.h"
#include "store/change.h"
#include "store/ids.h"
#include "support/db_fixture.h"

enum { HEADER_SIZE = 64 };

static struct quire *open_with(struct qr_test *t, const char *folder, const char *heartbeat_ms)
{
    const struct qr_config_flag settings[] = {
        {"test", QR_STR("data.dir"), qr_str_of(qr_test_path(t, folder))},
        {"test", QR_STR("server.heartbeat_ms"), qr_str_of(heartbeat_ms)},
        {"test", QR_STR("database.url"),
         qr_str_of(qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : "sqlite")},
    };
    const struct qr_instance_options options = {
        .settings = settings, .setting_count = QR_COUNT(settings), .program = "the test"};
    struct quire *quire;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_instance_open(&quire, &options, &err));
    return quire;
}

static void call(struct quire *quire, const char *method, const char *target, const char *body, int status)
{
    struct quire_response response;
    quire_call(quire, method, target, body, &response);
    if (response.status != status) {
        QR_FAIL("%s %s answers %d: %s", method, target, response.status, response.body);
    }
    quire_response_done(&response);
}

static void add_note(struct quire *quire, const char *base, const char *name)
{
    char target[100], body[200];
    snprintf(target, sizeof target, "/api/v1/bases/%s/items", base);
    snprintf(body, sizeof body, "{\"items\":[{\"type\":\"note\",\"name\":\"%s\",\"content\":\"words\"}]}", name);
    call(quire, "POST", target, body, 202);
}

static struct quire *open_two_bases(struct qr_test *t)
{
    struct quire *quire = open_with(t, "data", "600000");
    call(quire, "POST", "/api/v1/bases", "{\"name\":\"a\"}", 201);
    call(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201);
    return quire;
}

/* ---- one who follows ---- */

struct ear {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_woken;
    struct quire_pieces *pieces;
    struct qr_buf heard;
    long end; /* QUIRE_PIECES_…; 0 = it goes on */
};

static void wake(void *arg)
{
    struct ear *ear = arg;
    QR_LOCKED(&ear->lock);
    ear->is_woken = true;
    pthread_cond_signal(&ear->changed);
}

/* Of the local owner, or with a key, or (address, but no key) of whoever comes by the port. */
static int follow(struct quire *quire, struct ear *ear, const char *target, const char *key, const char *address,
                  const char *last_id)
{
    const struct quire_header header = {"last-event-id", last_id};
    const struct quire_request request = {.method = "GET",
                                          .target = target,
                                          .is_local_owner = !address,
                                          .authorization = key,
                                          .remote_address = address,
                                          .headers = &header,
                                          .header_count = last_id ? 1 : 0,
                                          .takes_pieces = 1};
    struct quire_response response;
    const int status = quire_request_call(quire, &request, &response);
    *ear = (struct ear){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    ear->pieces = response.pieces;
    response.pieces = NULL;
    quire_response_done(&response);
    if (ear->pieces) {
        QR_CHECK_INT(-1, quire_pieces_size(ear->pieces));
        quire_pieces_on_wake(ear->pieces, wake, ear);
    }
    return status;
}

static void wait_until_woken(struct ear *ear)
{
    QR_LOCKED(&ear->lock);
    while (!ear->is_woken) {
        pthread_cond_wait(&ear->changed, &ear->lock);
    }
    ear->is_woken = false;
}

/* Until the text was heard, or the end has come. */
static void hear_until(struct ear *ear, const char *text)
{
    static char bytes[64 << 10];
    while (ear->end == 0 && !(text && strstr(qr_buf_str(&ear->heard).ptr, text))) {
        const long got = quire_pieces_read(ear->pieces, bytes, sizeof bytes);
        if (got > 0) {
            qr_buf_add(&ear->heard, (qr_str){bytes, (size_t)got});
        } else if (got < 0) {
            ear->end = got;
        } else {
            wait_until_woken(ear);
        }
    }
    if (text && !strstr(qr_buf_str(&ear->heard).ptr, text)) {
        QR_FAIL("it ended without %s: %s", text, qr_buf_str(&ear->heard).ptr);
    }
}

static void close_ear(struct ear *ear)
{
    quire_pieces_free(ear->pieces);
    qr_buf_done(&ear->heard);
}

/* How many lines begin so. Not by strstr, which under the sanitizer looks at all that follows each time. */
static int count(const struct ear *ear, const char *text)
{
    qr_str rest = qr_buf_str(&ear->heard);
    int found = 0;
    while (rest.len) {
        found += qr_str_starts_with(qr_str_split(&rest, '\n'), qr_str_of(text));
    }
    return found;
}

/* What is told at once, of the local owner; the caller's. */
static struct qr_buf tell(struct quire *quire, const char *target, const char *last_id)
{
    const struct quire_header header = {"Last-Event-ID", last_id};
    const struct quire_request request = {
        .method = "GET", .target = target, .is_local_owner = 1, .headers = &header, .header_count = last_id ? 1 : 0};
    struct quire_response response;
    struct qr_buf text = {0};
    QR_CHECK_INT(200, quire_request_call(quire, &request, &response));
    QR_CHECK_TEXT("text/event-stream", response.content_type);
    QR_CHECK(!response.pieces);
    qr_buf_add(&text, (qr_str){response.body, response.body_size});
    quire_response_done(&response);
    return text;
}

/* ---- from where on ---- */

static int collect_ids(const char *text, char ids[][40], int max)
{
    int found = 0;
    for (const char *at = strstr(text, "id: "); at && found < max; at = strstr(at + 1, "\nid: ")) {
        at += *at == '\n';
        snprintf(ids[found++], 40, "%.*s", (int)strcspn(at + 4, "\n"), at + 4);
    }
    return found;
}

QR_DB_TEST(events_go_on_behind_every_one_without_a_gap_or_a_repetition) /* EVENT-3 */
{
    enum { EVENTS = 6 };
    static const char *const note_names[] = {"n1", "n2", "n3", "n4", "n5", "n6"};
    struct quire *quire = open_two_bases(t);
    char ids[EVENTS + 1][40], rest[EVENTS + 1][40];
    for (int i = 0; i < EVENTS; i++) {
        add_note(quire, i % 2 ? "b" : "a", note_names[i]);
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf all = tell(quire, "/api/v1/events", "0-0");
    QR_CHECK_INT(EVENTS + 1, collect_ids(all.data, ids, EVENTS + 1)); /* its own place comes first */
    QR_CHECK_TEXT("0-0", ids[0]);
    for (int from = 1; from <= EVENTS; from++) {
        struct qr_buf text = tell(quire, "/api/v1/events", ids[from]);
        struct ear ear;
        QR_CHECK_INT(EVENTS + 1 - from, collect_ids(text.data, rest, EVENTS + 1));
        QR_CHECK_INT(200, follow(quire, &ear, "/api/v1/events", NULL, NULL, ids[from]));
        hear_until(&ear, ids[EVENTS]);
        QR_CHECK(from == EVENTS || strcmp(ear.heard.data, text.data) == 0);
        for (int i = 0; i <= EVENTS - from; i++) {
            QR_CHECK_TEXT(ids[from + i], rest[i]);
        }
        close_ear(&ear);
        qr_buf_done(&text);
    }
    qr_instance_close(quire);
}

QR_DB_TEST(follower_without_a_place_begins_now_and_hears_what_happens) /* EVENT-3 */
{
    struct quire *quire = open_two_bases(t);
    struct ear all, one;
    add_note(quire, "a", "before");
    QR_CHECK_INT(200, follow(quire, &all, "/api/v1/events", NULL, NULL, NULL));
    QR_CHECK_INT(200, follow(quire, &one, "/api/v1/events?base=b", NULL, NULL, ""));
    hear_until(&all, "\n\n");
    add_note(quire, "a", "n");
    hear_until(&all, "id: 2-");
    add_note(quire, "b", "n");
    hear_until(&all, "id: 3-");
    hear_until(&one, "id: 3-");
    QR_CHECK_INT(2, count(&all, "event: added"));
    QR_CHECK_INT(1, count(&one, "event: added"));
    call(quire, "DELETE", "/api/v1/bases/b?confirm=true", NULL, 202);
    hear_until(&one, NULL); /* nothing of it follows */
    QR_CHECK_INT(QUIRE_PIECES_END, one.end);
    QR_CHECK_INT(1, count(&one, "event: deleted"));
    close_ear(&one);
    QR_CHECK_INT(404, follow(quire, &one, "/api/v1/events?base=b", NULL, NULL, NULL));
    close_ear(&all);
    qr_instance_close(quire);
}

QR_DB_TEST(place_that_is_not_kept_is_a_reset) /* EVENT-2 */
{
    static const char *const wrong[] = {"2-0", "99999-0", "1-7", "one", "1", "-1-0", "1-", "1-x"};
    struct quire *quire = open_two_bases(t);
    struct ear ear;
    add_note(quire, "a", "n");
    for (size_t i = 0; i < QR_COUNT(wrong); i++) {
        struct qr_buf text = tell(quire, "/api/v1/events", wrong[i]);
        QR_CHECK_HAS("retry: 2000\n\nid: 1-", text.data);
        QR_CHECK_HAS("\nevent: reset\ndata: {\"kind\":\"reset\"}\n\n", text.data);
        qr_buf_done(&text);
    }
    QR_CHECK_INT(200, follow(quire, &ear, "/api/v1/events", NULL, NULL, "7-0"));
    hear_until(&ear, "event: reset\n");
    add_note(quire, "a", "m"); /* and it goes on from there */
    hear_until(&ear, "id: 2-");
    QR_CHECK_INT(1, count(&ear, "event: added"));
    close_ear(&ear);
    qr_instance_close(quire);
}

/* ---- many ---- */

enum { MANY = 5000 }; /* more than the ring holds */

static qr_rc write_many(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    static const qr_uuid base_id = {{7}};
    int64_t id;
    QR_TRY(qr_events_take_ids(tx, MANY, &id, err));
    for (int i = 0; i < MANY; i++) {
        QR_TRY(qr_tx_exec(tx,
                          "INSERT INTO event (base_id, seq, at, item_id, kind, generation, status, code, id) "
                          "VALUES (?1, ?2, 1, NULL, 7, 0, 0, '', ?3)",
                          QR_VALS(qr_val_uuid(&base_id), qr_val_i64(i), qr_val_i64(id + i)), NULL, err));
    }
    return qr_tx_notify(tx, QR_EVENTS_CHANNEL, err);
}

QR_DB_TEST(who_is_far_behind_misses_nothing) /* EVENT-3 */
{
    struct quire *quire = open_two_bases(t);
    struct ear early, late, other;
    char ids[10][40];
    qr_err err;
    QR_CHECK_INT(200, follow(quire, &early, "/api/v1/events", NULL, NULL, NULL));
    QR_CHECK_INT(200, follow(quire, &other, "/api/v1/events?base=b", NULL, NULL, NULL));
    hear_until(&early, "\n\n");
    QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_RELAXED, write_many, NULL, &err));
    QR_CHECK_INT(200, follow(quire, &late, "/api/v1/events", NULL, NULL, "0-0"));
    hear_until(&early, "id: 5000-");
    hear_until(&late, "id: 5000-");
    QR_CHECK_INT(MANY, count(&early, "event: base"));
    QR_CHECK_INT(MANY, count(&late, "event: base"));
    QR_CHECK_INT(10, collect_ids(late.heard.data, ids, 10));
    QR_CHECK_TEXT("9-1", ids[9]);
    add_note(quire, "b", "n"); /* who may not see, or does not want, the others passes them */
    hear_until(&other, "id: 5001-");
    QR_CHECK_INT(0, count(&other, "event: base"));
    close_ear(&early);
    close_ear(&late);
    close_ear(&other);
    qr_instance_close(quire);
}

QR_DB_TEST(sign_of_life_says_how_far_it_has_come) /* EVENT-3 */
{
    struct quire *quire = open_with(t, "data", "100");
    struct ear ear;
    call(quire, "POST", "/api/v1/bases", "{\"name\":\"a\"}", 201);
    call(quire, "POST", "/api/v1/bases", "{\"name\":\"b\"}", 201);
    QR_CHECK_INT(200, follow(quire, &ear, "/api/v1/events?base=b", NULL, NULL, NULL));
    hear_until(&ear, "\n:\nid: 0-0\n\n");
    add_note(quire, "a", "n"); /* not what it follows */
    hear_until(&ear, "\n:\nid: 1-");
    QR_CHECK_INT(0, count(&ear, "event:"));
    close_ear(&ear);
    qr_instance_close(quire);
}

/* On PostgreSQL many hosts work on the same bases. */
QR_DB_TEST(events_of_other_processes_are_heard) /* EVENT-3 */
{
    struct quire *quire = open_two_bases(t);
    struct quire *other = qr_test_on_postgres(t) ? open_with(t, "other", "600000") : quire;
    struct ear ear;
    QR_CHECK_INT(200, follow(quire, &ear, "/api/v1/events", NULL, NULL, NULL));
    hear_until(&ear, "\n\n");
    add_note(other, "a", "n");
    hear_until(&ear, "event: added\n");
    close_ear(&ear);
    if (other != quire) {
        qr_instance_close(other);
    }
    qr_instance_close(quire);
}

/* ---- for whom ---- */

static void make_key(struct quire *quire, const char *body, char header[static HEADER_SIZE],
                     char id[static QR_UUID_TEXT_SIZE])
{
    struct quire_response response;
    QR_JSON *key = NULL;
    qr_err err;
    QR_CHECK_INT(201, quire_call(quire, "POST", "/api/v1/keys", body, &response));
    QR_CHECK_RC(QR_OK, qr_json_parse((qr_str){response.body, response.body_size}, &QR_JSON_REQUEST_LIMITS, &key, &err));
    snprintf(header, HEADER_SIZE, "Bearer %s", json_string_value(json_object_get(key, "secret")));
    snprintf(id, QR_UUID_TEXT_SIZE, "%s", json_string_value(json_object_get(key, "id")));
    quire_response_done(&response);
}

QR_DB_TEST(key_hears_of_its_own_bases_and_as_long_as_it_may) /* EVENT-4 */
{
    struct quire *quire = open_two_bases(t);
    char header[HEADER_SIZE], id[QR_UUID_TEXT_SIZE], target[100];
    struct ear open, all, one;
    QR_CHECK_INT(200, follow(quire, &open, "/api/v1/events", NULL, "127.0.0.1", NULL));
    hear_until(&open, "\n\n");
    make_key(quire, "{\"name\":\"k\",\"roles\":{\"b\":\"viewer\"}}", header, id);
    hear_until(&open, NULL); /* from the first key on nobody is known without one */
    QR_CHECK_INT(QUIRE_PIECES_END, open.end);
    QR_CHECK_INT(401, follow(quire, &all, "/api/v1/events", NULL, "127.0.0.1", NULL));
    QR_CHECK_INT(404, follow(quire, &all, "/api/v1/events?base=a", header, "192.0.2.7", NULL));
    QR_CHECK_INT(200, follow(quire, &all, "/api/v1/events", header, "192.0.2.7", NULL));
    QR_CHECK_INT(200, follow(quire, &one, "/api/v1/events?base=b", header, "192.0.2.7", NULL));
    add_note(quire, "a", "n");
    add_note(quire, "b", "n");
    hear_until(&all, "id: 2-");
    hear_until(&one, "id: 2-");
    QR_CHECK_INT(1, count(&all, "event: added"));
    snprintf(target, sizeof target, "/api/v1/bases/b/members/%s", id);
    call(quire, "DELETE", target, NULL, 200);
    hear_until(&one, NULL); /* its base is not the key's any more */
    QR_CHECK_INT(QUIRE_PIECES_END, one.end);
    add_note(quire, "b", "m");
    snprintf(target, sizeof target, "/api/v1/keys/%s", id);
    call(quire, "DELETE", target, NULL, 200);
    hear_until(&all, NULL);
    QR_CHECK_INT(QUIRE_PIECES_END, all.end);
    QR_CHECK_INT(1, count(&all, "event: added"));
    close_ear(&open);
    close_ear(&all);
    close_ear(&one);
    qr_instance_close(quire);
}
