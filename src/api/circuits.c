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

static qr_rc add_circuit(struct qr_tx *tx, const struct named *named, struct qr_arena *arena, json_t *list, qr_err *err)
{
    const struct qr_endpoint_options options = {
        .url = named->url, .api_key_env = named->api_key_env, .api_key_file = named->api_key_file};
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

static qr_rc add_circuits(struct qr_tx *tx, const struct qr_settings *settings, struct qr_arena *arena, json_t *list,
                          qr_err *err)
{
    const struct qr_embedding_settings *embedding = &settings->embedding;
    const bool embeds = strcmp(embedding->provider, "openai") == 0;
    const struct named all[] = {
        {"embedding", embeds ? embedding->url : "", embedding->api_key_env, embedding->api_key_file},
        service("rerank", strcmp(settings->retrieval.rerank.provider, "none") != 0,
                &settings->retrieval.rerank.service),
        service("vision", strcmp(settings->assets.analysis, "vision") == 0, &settings->assets.vision.service),
        service("file_processor", strcmp(settings->file_processor.kind, "docling") == 0,
                &settings->file_processor.docling.service),
    };
    for (size_t i = 0; i < QR_COUNT(all); i++) {
        if (all[i].url && all[i].url[0]) {
            QR_TRY(add_circuit(tx, &all[i], arena, list, err));
        }
    }
    return QR_OK;
}

qr_rc qr_circuits_of_base(struct qr_tx *tx, const struct qr_base *base, struct qr_arena *arena, json_t **ret_list,
                          qr_err *err)
{
    struct qr_settings settings;
    json_t *list = json_array();
    qr_rc rc = list ? QR_OK : qr_answer_out_of_memory(err);
    /* settings that cannot be read name nobody: a base shows them as they are */
    if (rc == QR_OK && qr_settings_parse_text(base->settings, arena, &settings, NULL) == QR_OK) {
        rc = add_circuits(tx, &settings, arena, list, err);
    }
    if (rc != QR_OK) {
        json_decref(list);
        return rc;
    }
    *ret_list = list;
    return QR_OK;
}
