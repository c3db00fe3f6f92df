/* The services: an embedding provider that is slow, fails and counts; a converter whose results come at any time, and that
 * forgets tickets; an analyser. What they keep is outside of every process. */
#include "sim/workflow_sim.h"

#include "base/mem.h"
#include "store/vectors.h"

#include <string.h>

enum { TICKETS_MAX = 400 };

static struct ticket {
    char text[3000];
    int64_t ready_ms;
    bool is_forgotten, fails, tells_time;
} tickets[TICKETS_MAX];
static int ticket_count;

/* The embedding server: outside of every process. */
static struct {
    int64_t limited_until_ms, refused_until_ms;
} endpoint;

/* Until when the others turn everybody away, and why. */
static struct door {
    int64_t closed_until_ms;
    qr_code code;
} converter_door, analyser_door;

void services_begin(void)
{
    ticket_count = 0;
    memset(&endpoint, 0, sizeof endpoint);
    converter_door = analyser_door = (struct door){0};
}

/* How long an answer takes: at once, a while, or longer than any time limit. */
static void take_time(void)
{
    if (!world.faults) {
        sim_yield();
    } else if (sim_chance(20)) {
        sim_sleep(sim_between(5 * 60000, 90 * 60000));
    } else {
        sim_sleep(sim_chance(300) ? sim_between(0, 20000) : 0);
    }
}

/* ---- embedding ---- */

static struct qr_provider *inner_of(const struct qr_provider *provider)
{
    return provider->arg;
}

static void check_call(const struct qr_provider *provider, const struct qr_embed_request *request)
{
    int64_t since_ms;
    parts_check_callers(&since_ms);
    for (size_t i = 0; i < request->count; i++) {
        unsigned char key[QR_VECTOR_KEY_BYTES];
        qr_vector_key(provider->fingerprint, request->texts[i], key);
        flow_oracle_check_not_cached(key, sizeof key, since_ms);
    }
}

/* All the ways in which a server does not do what it was asked for. */
static qr_rc refuse(const struct qr_embed_request *request, qr_err *err)
{
    if (sim_now_ms() < endpoint.refused_until_ms || sim_chance(5)) {
        endpoint.refused_until_ms = QR_MAX(endpoint.refused_until_ms, sim_now_ms() + sim_between(1000, 30 * 60000));
        return qr_fail(err, QR_CODE_ENDPOINT_REFUSED, "the key is wrong");
    }
    if (sim_now_ms() < endpoint.limited_until_ms || sim_chance(60)) {
        endpoint.limited_until_ms = sim_now_ms() + (sim_chance(500) ? 0 : sim_between(0, 60000));
        return qr_fail(err, QR_CODE_RATE_LIMITED, "slower");
    }
    if (sim_chance(request->count > 1 ? 60 : 10)) {
        return qr_fail(err, QR_CODE_PAYLOAD_TOO_LARGE, "less at once");
    }
    if (sim_chance(10)) {
        return qr_fail(err, QR_CODE_BAD_REQUEST, "not this");
    }
    if (sim_chance(100)) {
        return qr_fail(err, sim_chance(900) ? QR_CODE_UNAVAILABLE : QR_CODE_EMBEDDING_FAILED, "the provider is down");
    }
    return QR_OK;
}

static qr_rc embed(struct qr_provider *provider, const struct qr_embed_request *request,
                   struct qr_embed_answer *ret_answer, qr_err *err)
{
    flow_totals.provider_calls++;
    check_call(provider, request);
    take_time();
    if (world.faults) {
        const qr_rc rc = refuse(request, err);
        flow_totals.provider_failures += rc != QR_OK;
        QR_TRY(rc);
    }
    QR_TRY(inner_of(provider)->embed(inner_of(provider), request, ret_answer, err));
    for (size_t i = 0; world.faults && i < request->count; i++) {
        ret_answer->is_bad[i] = ret_answer->is_bad[i] || sim_chance(10);
    }
    if (world.faults && world.owns_all &&
        sim_chance(2)) { /* after which the base is restored: as workflow_people.c has it */
        ret_answer->dimension--;
    }
    return QR_OK;
}

static int64_t wait_ms(struct qr_provider *provider QR_UNUSED, const struct qr_embed_next *next QR_UNUSED)
{
    const int64_t until_ms = QR_MAX(endpoint.limited_until_ms, endpoint.refused_until_ms);
    return world.faults ? QR_MAX(until_ms - sim_now_ms(), (int64_t)0) : 0;
}

static void free_provider(struct qr_provider *provider)
{
    qr_provider_free(inner_of(provider));
    qr_free(provider);
}

struct qr_provider *services_provider(const struct qr_embedding_settings *embedding)
{
    qr_err err = {0};
    struct qr_provider *provider = qr_alloc_zero(sizeof *provider), *inner;
    QR_CHECK_RC(QR_OK, qr_provider_create(&inner, embedding, NULL, &err));
    QR_CHECK(provider);
    provider->fingerprint = inner->fingerprint;
    provider->dimensions = inner->dimensions;
    provider->limits.inputs_max = 4;
    provider->linger_ms = sim_between(0, 20);
    provider->call_threads = (int)sim_between(0, 2);
    provider->arg = inner;
    provider->embed = embed;
    provider->wait_ms = wait_ms;
    provider->free = free_provider;
    return provider;
}

/* ---- doors ---- */

/* Too many requests for a moment, or a key that is wrong for a long time: nothing is wrong with what was brought. */
static qr_rc knock(struct door *door, qr_err *err)
{
    if (!world.faults) {
        return QR_OK;
    }
    if (sim_now_ms() >= door->closed_until_ms && sim_chance(60)) {
        door->code = sim_chance(800) ? QR_CODE_RATE_LIMITED : QR_CODE_ENDPOINT_REFUSED;
        door->closed_until_ms =
            sim_now_ms() + (door->code == QR_CODE_RATE_LIMITED ? sim_between(0, 60000) : sim_between(1000, 30 * 60000));
    }
    return sim_now_ms() < door->closed_until_ms ? qr_fail(err, door->code, "not now") : QR_OK;
}

static int64_t door_wait_ms(const struct door *door)
{
    return world.faults ? QR_MAX(door->closed_until_ms - sim_now_ms(), (int64_t)0) : 0;
}

/* ---- converting ---- */

static qr_rc submit(struct qr_processor *processor QR_UNUSED, const char *path, const char *name QR_UNUSED,
                    struct qr_arena *arena, const char **ret_ticket, qr_err *err)
{
    int64_t since_ms;
    const struct qr_job *job = parts_current_job(&since_ms);
    flow_oracle_check_call(job, since_ms);
    QR_TRY(knock(&converter_door, err));
    FILE *file = fopen(path, "rb");
    if (!file || ticket_count == TICKETS_MAX) {
        if (file) {
            fclose(file);
        }
        return qr_fail(err, QR_CODE_CONVERSION_FAILED, "the converter cannot read the file");
    }
    struct ticket *ticket = &tickets[ticket_count];
    const size_t len = fread(ticket->text, 1, sizeof ticket->text - 1, file);
    fclose(file);
    ticket->text[len] = '\0';
    ticket->is_forgotten = false;
    ticket->fails = world.faults && sim_chance(50);
    ticket->tells_time = sim_chance(500);
    ticket->ready_ms = sim_now_ms() + (world.faults ? sim_between(0, 20 * 60000) : 2000);
    *ret_ticket = qr_arena_printf(arena, "ticket-%d", ticket_count++);
    take_time();
    return *ret_ticket ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a ticket");
}

static qr_rc poll(struct qr_processor *processor QR_UNUSED, const char *text, enum qr_ticket_state *ret_state,
                  int64_t *ret_running_ms, struct qr_buf *out, qr_err *err)
{
    struct ticket *ticket = &tickets[atoi(text + strlen("ticket-"))];
    take_time();
    if (world.faults && sim_chance(50)) {
        return qr_fail(err, QR_CODE_UNAVAILABLE, "the converter is down");
    }
    QR_TRY(knock(&converter_door, err));
    ticket->is_forgotten = ticket->is_forgotten || (world.faults && sim_chance(20));
    *ret_running_ms = ticket->tells_time ? 0 : -1;
    if (ticket->is_forgotten) {
        *ret_state = QR_TICKET_UNKNOWN;
    } else if (world.faults && sim_now_ms() < ticket->ready_ms) {
        *ret_state = QR_TICKET_RUNNING;
    } else if (ticket->fails) {
        *ret_state = QR_TICKET_FAILED;
        qr_fail(err, QR_CODE_CONVERSION_FAILED, "as the simulation wants it");
    } else {
        *ret_state = QR_TICKET_DONE;
        qr_buf_add_text(out, ticket->text);
    }
    return QR_OK;
}

static void cancel(struct qr_processor *processor QR_UNUSED, const char *text)
{
    tickets[atoi(text + strlen("ticket-"))].is_forgotten = true;
}

static int64_t converter_wait_ms(struct qr_processor *processor QR_UNUSED)
{
    return door_wait_ms(&converter_door);
}

static void free_processor(struct qr_processor *processor)
{
    qr_free(processor);
}

struct qr_processor *services_processor(void)
{
    struct qr_processor *processor = qr_alloc_zero(sizeof *processor);
    QR_CHECK(processor);
    *processor = (struct qr_processor){.name = "simulated",
                                       .submit = submit,
                                       .poll = poll,
                                       .cancel = cancel,
                                       .wait_ms = converter_wait_ms,
                                       .free = free_processor};
    return processor;
}

/* ---- analysing ---- */

static qr_rc analyse(struct qr_analyser *analyser QR_UNUSED, qr_str bytes, const char *mime QR_UNUSED,
                     struct qr_arena *arena, qr_str *ret_text, qr_err *err)
{
    take_time();
    if (world.faults && sim_chance(150)) {
        return qr_fail(err, sim_chance(500) ? QR_CODE_UNAVAILABLE : QR_CODE_CORRUPT, "the analyser is down");
    }
    QR_TRY(knock(&analyser_door, err));
    const char *text = qr_arena_printf(arena, "common picture of %.*s", QR_STR_ARG(bytes));
    *ret_text = qr_str_of(text ? text : "");
    return QR_OK;
}

static int64_t analyser_wait_ms(struct qr_analyser *analyser QR_UNUSED)
{
    return door_wait_ms(&analyser_door);
}

static void free_analyser(struct qr_analyser *analyser)
{
    qr_free(analyser);
}

struct qr_analyser *services_analyser(void)
{
    struct qr_analyser *analyser = qr_alloc_zero(sizeof *analyser);
    QR_CHECK(analyser);
    *analyser = (struct qr_analyser){
        .name = "simulated", .analyse = analyse, .wait_ms = analyser_wait_ms, .free = free_analyser};
    return analyser;
}
