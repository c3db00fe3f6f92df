/* Owns the way of a circuit from the process that sees it to whoever looks at a base (AGAIN-2). */
#include "api/circuits.h"

#include "api/jobs.h"
#include "api/lookup.h"
#include "api/refused.h"
#include "model/settings.h"
#include "store/circuits.h"

/* ---- noting ---- */

static qr_rc find_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct qr_circuit_row *row = arg;
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_circuit_row found_row;
    bool found;
    qr_arena_init(&arena, 0);
    QR_TRY(qr_circuit_find(tx, row->id, &arena, &found, &found_row, err));
    row->since_ms = found ? found_row.since_ms : 0;
    return QR_OK;
}

static qr_rc save_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_circuit_save(tx, arg, err);
}

static qr_rc remove_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct qr_circuit_row *row = arg;
    return qr_circuit_remove(tx, row->id, err);
}

void qr_circuits_note(void *arg, const struct qr_endpoint_state *state)
{
    struct quire *quire = arg;
    struct qr_circuit_row row = {.url = state->url,
                                 .code = qr_code_info(state->refusal.code)->name,
                                 .message = state->refusal.msg,
                                 .since_ms = state->since_ms,
                                 .next_try_ms = state->next_try_ms};
    memcpy(row.id, state->id, sizeof row.id);
    if (state->is_open) {
        (void)qr_db_write(quire->db, QR_RELAXED, save_in_tx, &row, NULL);
        return;
    }
    /* nearly always there is none, and a read costs no commit */
    if (qr_db_read(quire->db, find_in_tx, &row, NULL) != QR_OK || row.since_ms) {
        (void)qr_db_write(quire->db, QR_RELAXED, remove_in_tx, &row, NULL);
        qr_refused_bring_forward(quire);
    }
}

/* ---- showing ---- */

/* What the settings of a base name: "" = nothing. */
struct named {
    const char *name, *url, *api_key_env, *api_key_file;
};

static struct named service(const char *name, bool is_used, const struct qr_service_settings *settings)
{
    return (struct named){name, is_used ? settings->url : "", settings->api_key_env, settings->api_key_file};
}

static struct qr_endpoint_options options_of(const struct named *named)
{
    return (struct qr_endpoint_options){
        .url = named->url, .api_key_env = named->api_key_env, .api_key_file = named->api_key_file};
}

static qr_rc add_circuit(struct qr_tx *tx, const struct named *named, struct qr_arena *arena, json_t *list, qr_err *err)
{
    const struct qr_endpoint_options options = options_of(named);
    unsigned char id[QR_HASH_BYTES];
    struct qr_circuit_row row;
    bool found;
    qr_endpoint_id(&options, id);
    QR_TRY(qr_circuit_find(tx, id, arena, &found, &row, err));
    if (!found) {
        return QR_OK;
    }
    json_t *circuit =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "url", row.url, "for", named->name, "code", row.code, "message",
                  row.message, "since", qr_json_time(row.since_ms), "next_try_at", qr_json_time(row.next_try_ms));
    return json_array_append_new(list, circuit) == 0 ? QR_OK : qr_answer_out_of_memory(err);
}

enum { NAMED_MAX = 5 };

/* Of the model that is wanted, and of the one that is still live. */
static struct named embedding_of(const struct qr_embedding_settings *embedding)
{
    const bool embeds = strcmp(embedding->provider, "openai") == 0;
    return (struct named){"embedding", embeds ? embedding->url : "", embedding->api_key_env, embedding->api_key_file};
}

static bool is_same(const struct named *a, const struct named *b)
{
    return strcmp(a->url, b->url) == 0 && strcmp(a->api_key_env, b->api_key_env) == 0 &&
           strcmp(a->api_key_file, b->api_key_file) == 0;
}

/* Settings that cannot be read name nobody: a base shows them as they are. */
static size_t find_named(const struct qr_base *base, struct qr_arena *arena, struct named ret_named[static NAMED_MAX])
{
    struct qr_settings settings;
    struct qr_base_models models;
    if (qr_settings_parse_text(base->settings, arena, &settings, NULL) != QR_OK ||
        qr_base_models(base, arena, &models, NULL) != QR_OK) {
        return 0;
    }
    const struct named all[NAMED_MAX] = {
        embedding_of(&models.wanted),
        embedding_of(&models.live),
        service("rerank", strcmp(settings.retrieval.rerank.provider, "none") != 0, &settings.retrieval.rerank.service),
        service("vision", strcmp(settings.assets.analysis, "vision") == 0, &settings.assets.vision.service),
        service("file_processor", strcmp(settings.file_processor.kind, "docling") == 0,
                &settings.file_processor.docling.service),
    };
    size_t count = 0;
    for (size_t i = 0; i < NAMED_MAX; i++) {
        const bool is_again = i == 1 && is_same(&all[0], &all[1]);
        if (all[i].url && all[i].url[0] && !is_again) {
            ret_named[count++] = all[i];
        }
    }
    return count;
}

qr_rc qr_circuits_of_base(struct qr_tx *tx, const struct qr_base *base, struct qr_arena *arena, json_t **ret_list,
                          qr_err *err)
{
    struct named named[NAMED_MAX];
    QR_JSON *list = json_array();
    const size_t count = find_named(base, arena, named);
    if (!list) {
        return qr_answer_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        QR_TRY(add_circuit(tx, &named[i], arena, list, err));
    }
    *ret_list = json_incref(list);
    return QR_OK;
}

/* ---- what is waited for ---- */

qr_rc qr_awaited_of_base(struct quire *quire, const struct qr_base *base, struct qr_arena *arena, json_t **ret_list,
                         qr_err *err)
{
    enum { SHOWN_AFTER_MS = 3000 }; /* before, it is nothing to tell */
    struct named named[NAMED_MAX];
    QR_JSON *list = json_array();
    const size_t count = find_named(base, arena, named);
    if (!list) {
        return qr_answer_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        const struct qr_endpoint_options options = options_of(&named[i]);
        const int64_t since_ms = qr_endpoint_awaited_since(quire->endpoints, &options);
        if (since_ms == 0 || qr_clock_wall_ms(quire->clock) - since_ms < SHOWN_AFTER_MS) {
            continue;
        }
        json_t *awaited =
            json_pack("{s:s, s:s, s:o}", "url", named[i].url, "for", named[i].name, "since", qr_json_time(since_ms));
        if (json_array_append_new(list, awaited) != 0) {
            return qr_answer_out_of_memory(err);
        }
    }
    *ret_list = json_incref(list);
    return QR_OK;
}
