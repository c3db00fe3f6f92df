/* Owns the endpoints of a process: one for each address and key. They are kept when nobody uses them, because what is known
 * of their limits and circuits holds for whoever comes next; beyond ENDPOINTS_KEPT the one that was used longest ago goes. */
#include "remote/endpoint_internal.h"

#include "base/mem.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>

enum {
    URL_BYTES_MAX = 2000,
    ENDPOINTS_KEPT = 64,
    TIMEOUT_MS_DEFAULT = 120000,
    MINUTE_MS = 60000,
    PROMISED_MS_MAX = 600000, /* so far ahead a time is told: by then things will have changed */
};

/* ---- addresses ---- */

static qr_rc check_parts(CURLU *parts, const char *url, qr_err *err)
{
    char *scheme = NULL, *user = NULL, *fragment = NULL, *host = NULL;
    const CURLUcode failed = curl_url_set(parts, CURLUPART_URL, url, 0);
    qr_rc rc = QR_OK;
    if (failed || curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) || curl_url_get(parts, CURLUPART_HOST, &host, 0)) {
        rc = qr_fail(err, QR_CODE_INVALID_VALUE, "the url is none: %s",
                     failed ? curl_url_strerror(failed) : "it needs http:// or https:// and a host");
    } else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) {
        rc = qr_fail(err, QR_CODE_INVALID_VALUE, "the url is of http or https, not of %s", scheme);
    } else if (curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK ||
               curl_url_get(parts, CURLUPART_PASSWORD, &user, 0) == CURLUE_OK) {
        rc = qr_fail(err, QR_CODE_INVALID_VALUE,
                     "the url has no user and password in it: give the key by api_key_env or api_key_file");
    } else if (curl_url_get(parts, CURLUPART_FRAGMENT, &fragment, 0) == CURLUE_OK) {
        rc = qr_fail(err, QR_CODE_INVALID_VALUE, "the url has no # part");
    }
    curl_free(scheme);
    curl_free(user);
    curl_free(fragment);
    curl_free(host);
    return rc;
}

qr_rc qr_endpoint_check_url(const char *url, qr_err *err)
{
    if (!url || !url[0] || strlen(url) > URL_BYTES_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the url has 1 to %d bytes", (int)URL_BYTES_MAX);
    }
    for (const char *at = url; *at; at++) {
        if (*at <= ' ' || *at > '~') {
            return qr_fail(err, QR_CODE_INVALID_VALUE,
                           "the url has spaces, control or other characters that no url has");
        }
    }
    CURLU *parts = curl_url();
    if (!parts) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a url");
    }
    const qr_rc rc = check_parts(parts, url, err);
    curl_url_cleanup(parts);
    return rc;
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

/* Without the slashes at its end; the rest is the query. */
static qr_str path_part(const char *url)
{
    qr_str path = {url, strcspn(url, "?")};
    while (path.len > 0 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    return path;
}

void qr_endpoint_id(const struct qr_endpoint_options *options, unsigned char ret_id[static QR_HASH_BYTES])
{
    char text[URL_BYTES_MAX + 1024];
    const qr_str path = path_part(text_or_empty(options->url));
    const int len = snprintf(text, sizeof text, "%.*s%s\n%s\n%s", QR_STR_ARG(path), path.ptr + strcspn(path.ptr, "?"),
                             text_or_empty(options->api_key_env), text_or_empty(options->api_key_file));
    qr_hash_128((qr_str){text, QR_MIN((size_t)len, sizeof text - 1)}, ret_id);
}

/* ---- one ---- */

static void free_endpoint(struct qr_endpoint *endpoint)
{
    assert(endpoint->limits.in_flight == 0);
    qr_connections_free(endpoint->idle);
    qr_mutex_done(&endpoint->lock);
    qr_free(endpoint->url);
    qr_free(endpoint->query);
    qr_free(endpoint->key_env);
    qr_free(endpoint->key_file);
    qr_free(endpoint->key_header);
    qr_free(endpoint);
}

static struct qr_endpoint *create_endpoint(struct qr_endpoints *all, const struct qr_endpoint_options *options)
{
    struct qr_endpoint *endpoint = qr_alloc_zero(sizeof *endpoint);
    if (!endpoint) {
        return NULL;
    }
    qr_mutex_init(&endpoint->lock);
    endpoint->all = all;
    endpoint->url = qr_copy_string(options->url);
    endpoint->query = qr_copy_string(options->url + strcspn(options->url, "?"));
    endpoint->key_env = qr_copy_string(text_or_empty(options->api_key_env));
    endpoint->key_file = qr_copy_string(text_or_empty(options->api_key_file));
    endpoint->key_header = qr_copy_string(text_or_empty(options->api_key_header));
    if (!endpoint->url || !endpoint->query || !endpoint->key_env || !endpoint->key_file || !endpoint->key_header) {
        free_endpoint(endpoint);
        return NULL;
    }
    endpoint->url[path_part(endpoint->url).len] = '\0';
    return endpoint;
}

/* Where others hold it who know of a limit, one that does not know of any does not take it from them. */
static void set_options(struct qr_endpoint *endpoint, const struct qr_endpoint_options *options, bool is_held)
{
    QR_HOLD(&endpoint->lock);
    const struct qr_endpoint_limits *before = &endpoint->limits.set;
    struct qr_endpoint_limits limits = options->limits;
    if (is_held) {
        limits.requests_a_minute = limits.requests_a_minute ? limits.requests_a_minute : before->requests_a_minute;
        limits.tokens_a_minute = limits.tokens_a_minute ? limits.tokens_a_minute : before->tokens_a_minute;
        limits.in_flight_max = limits.in_flight_max ? limits.in_flight_max : before->in_flight_max;
    }
    endpoint->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS_DEFAULT;
    qr_limits_set(&endpoint->limits, &limits);
}

void qr_endpoint_look(struct qr_endpoint *endpoint, struct qr_endpoint_state *ret_state)
{
    const struct qr_clock *clock = endpoint->all->clock;
    QR_HOLD(&endpoint->lock);
    const struct qr_circuit *circuit = &endpoint->circuit;
    *ret_state = (struct qr_endpoint_state){
        .url = endpoint->url,
        .is_open = circuit->is_open,
        .refusal = circuit->refusal,
        .since_ms = circuit->since_wall_ms,
        .next_try_ms = qr_clock_wall_ms(clock) + circuit->next_try_ms - qr_clock_mono_ms(clock),
        .in_flight = endpoint->limits.in_flight,
        .in_flight_limit = endpoint->limits.in_flight_limit,
        .request_count = endpoint->limits.begun_count,
        .refused_count = endpoint->refused_count,
        .limited_count = endpoint->limited_count,
    };
    memcpy(ret_state->id, endpoint->id, sizeof ret_state->id);
}

void qr_endpoints_look(struct qr_endpoints *all, struct qr_endpoints_totals *ret_totals)
{
    struct qr_endpoints_totals totals = {0};
    size_t cursor = 0;
    qr_str key;
    void *value;
    QR_HOLD(&all->lock); /* so that none is forgotten meanwhile */
    while (qr_map_next(&all->by_id, &cursor, &key, &value)) {
        struct qr_endpoint_state state;
        qr_endpoint_look(value, &state);
        totals.known++;
        totals.open += state.is_open;
        totals.request_count += state.request_count;
        totals.refused_count += state.refused_count;
        totals.limited_count += state.limited_count;
    }
    *ret_totals = totals;
}

/* What a request of so many tokens takes of a minute. */
static int64_t share_ms(const struct qr_endpoint_limits *limits, int64_t tokens)
{
    const double requests = limits->requests_a_minute > 0 ? 1.0 / (double)limits->requests_a_minute : 0;
    const double of_tokens = limits->tokens_a_minute > 0 ? (double)tokens / (double)limits->tokens_a_minute : 0;
    return (int64_t)(QR_MIN(QR_MAX(requests, of_tokens), 1.0) * MINUTE_MS);
}

/* With the lock held. */
static int64_t wait_at(struct qr_endpoint *endpoint, enum qr_priority priority, int64_t tokens, int64_t now_ms)
{
    const char *why;
    const int64_t wait_ms = qr_limits_wait_ms(&endpoint->limits, priority, tokens, now_ms, &why);
    return endpoint->circuit.is_open ? QR_MAX(wait_ms, qr_circuit_wait_ms(&endpoint->circuit, now_ms)) : wait_ms;
}

int64_t qr_endpoint_look_ms(struct qr_endpoint *endpoint, enum qr_priority priority, int64_t tokens)
{
    QR_HOLD(&endpoint->lock);
    return wait_at(endpoint, priority, QR_MAX(tokens, (int64_t)0), qr_clock_mono_ms(endpoint->all->clock));
}

bool qr_endpoint_has_place(struct qr_endpoint *endpoint, int64_t ahead_ms)
{
    QR_HOLD(&endpoint->lock);
    const struct qr_limits *limits = &endpoint->limits;
    const int before = limits->in_flight + qr_permit_count_waiting(endpoint);
    const bool answers_soon = limits->answer_ms > 0 && limits->answer_ms <= ahead_ms;
    return before < (answers_soon ? 2 * limits->in_flight_limit : limits->in_flight_limit);
}

int64_t qr_endpoint_wait_ms(struct qr_endpoint *endpoint, int64_t tokens)
{
    tokens = QR_MAX(tokens, (int64_t)0);
    QR_HOLD(&endpoint->lock);
    const int64_t now_ms = qr_clock_mono_ms(endpoint->all->clock);
    const int64_t wait_ms = wait_at(endpoint, QR_PRIORITY_DOCUMENT, tokens, now_ms);
    if (endpoint->circuit.is_open || wait_ms == 0) {
        return wait_ms;
    }
    const int64_t next_ms = endpoint->promised_ms + share_ms(&endpoint->limits.set, tokens);
    endpoint->promised_ms =
        QR_MIN(QR_MAX(now_ms + wait_ms, next_ms), now_ms + QR_MAX(wait_ms, (int64_t)PROMISED_MS_MAX));
    return endpoint->promised_ms - now_ms;
}

/* ---- all ---- */

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

qr_rc qr_endpoints_open(struct qr_endpoints **ret_endpoints, const struct qr_clock *clock, struct qr_rand *rand,
                        qr_circuit_fn *on_circuit, void *arg, qr_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct qr_endpoints *all = qr_alloc_zero(sizeof *all);
    if (!all) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the endpoints");
    }
    pthread_once(&once, init_curl);
    *all = (struct qr_endpoints){.clock = clock, .rand = rand, .on_circuit = on_circuit, .arg = arg};
    qr_mutex_init(&all->lock);
    qr_map_init(&all->by_id, qr_rand_u64(rand));
    *ret_endpoints = all;
    return QR_OK;
}

void qr_endpoints_close(struct qr_endpoints *all)
{
    if (!all) {
        return;
    }
    size_t cursor = 0;
    qr_str id;
    void *endpoint;
    while (qr_map_next(&all->by_id, &cursor, &id, &endpoint)) {
        assert(((struct qr_endpoint *)endpoint)->ref_count == 0);
        free_endpoint(endpoint);
    }
    qr_map_done(&all->by_id);
    qr_mutex_done(&all->lock);
    qr_free(all);
}

static void forget_one(struct qr_endpoints *all)
{
    struct qr_endpoint *oldest = NULL;
    size_t cursor = 0;
    qr_str id;
    void *value;
    while (qr_map_next(&all->by_id, &cursor, &id, &value)) {
        struct qr_endpoint *endpoint = value;
        if (endpoint->ref_count == 0 && (!oldest || endpoint->used_ms < oldest->used_ms)) {
            oldest = endpoint;
        }
    }
    if (oldest) {
        qr_map_take(&all->by_id, (qr_str){(const char *)oldest->id, sizeof oldest->id});
        free_endpoint(oldest);
    }
}

/* With the lock held; NULL when out of memory. */
static struct qr_endpoint *find_or_create(struct qr_endpoints *all, const struct qr_endpoint_options *options)
{
    unsigned char id[QR_HASH_BYTES];
    qr_endpoint_id(options, id);
    const qr_str key = {(const char *)id, sizeof id};
    struct qr_endpoint *endpoint = qr_map_find(&all->by_id, key);
    if (endpoint) {
        return endpoint;
    }
    if (all->by_id.count >= ENDPOINTS_KEPT) {
        forget_one(all);
    }
    endpoint = create_endpoint(all, options);
    if (!endpoint) {
        return NULL;
    }
    memcpy(endpoint->id, id, sizeof id);
    if (!qr_map_put(&all->by_id, key, endpoint)) {
        free_endpoint(endpoint);
        return NULL;
    }
    return endpoint;
}

static int64_t oldest_unanswered(struct qr_endpoint *endpoint)
{
    int64_t since_ms = 0;
    QR_HOLD(&endpoint->lock);
    for (const struct qr_unanswered *one = endpoint->unanswered; one; one = one->next) {
        since_ms = since_ms == 0 || one->since_ms < since_ms ? one->since_ms : since_ms;
    }
    return since_ms;
}

int64_t qr_endpoint_awaited_since(struct qr_endpoints *all, const struct qr_endpoint_options *options)
{
    unsigned char id[QR_HASH_BYTES];
    qr_endpoint_id(options, id);
    QR_HOLD(&all->lock); /* so that it is not forgotten meanwhile */
    struct qr_endpoint *endpoint = qr_map_find(&all->by_id, (qr_str){(const char *)id, sizeof id});
    return endpoint ? oldest_unanswered(endpoint) : 0;
}

qr_rc qr_endpoint_get(struct qr_endpoints *all, const struct qr_endpoint_options *options,
                      struct qr_endpoint **ret_endpoint, qr_err *err)
{
    QR_TRY(qr_endpoint_check_url(options->url, err));
    QR_HOLD(&all->lock);
    struct qr_endpoint *endpoint = find_or_create(all, options);
    if (!endpoint) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for an endpoint");
    }
    set_options(endpoint, options, endpoint->ref_count > 0);
    endpoint->ref_count++;
    *ret_endpoint = endpoint;
    return QR_OK;
}

void qr_endpoint_put(struct qr_endpoint *endpoint)
{
    if (!endpoint) {
        return;
    }
    QR_HOLD(&endpoint->all->lock);
    assert(endpoint->ref_count > 0);
    endpoint->ref_count--;
    endpoint->used_ms = qr_clock_mono_ms(endpoint->all->clock);
}
