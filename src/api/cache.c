/* /api/v1/cache: how much the vector cache holds, and pruning it by request. */
#include "api/jobs.h"
#include "api/lookup.h"
#include "base/mem.h"
#include "handler/prune_vectors.h"

struct cache_view {
    struct qr_vector_totals totals;
    struct qr_vector_count count;
    struct qr_vector_round round;
};

static qr_rc load_view(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct cache_view *view = arg;
    QR_TRY(qr_vector_totals(tx, &view->totals, err));
    QR_TRY(qr_vector_count_load(tx, &view->count, err));
    return qr_round_load(tx, &view->round, err);
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *pruning_json(const struct qr_vector_round *round)
{
    return round->phase == QR_ROUND_NONE
               ? json_null()
               : json_pack("{s:s, s:I, s:o}", "phase", round->phase == QR_ROUND_MARKS ? "marking" : "evicting",
                           "to_bytes", (json_int_t)round->to_bytes, "began_at", qr_json_time(round->began_ms));
}

static json_t *last_json(const struct qr_vector_round *round)
{
    return round->ended_ms == 0
               ? json_null()
               : json_pack("{s:o, s:I, s:I, s:I, s:o}", "ended_at", qr_json_time(round->ended_ms), "to_bytes",
                           (json_int_t)round->to_bytes, "entries", (json_int_t)round->freed_count, "bytes",
                           (json_int_t)round->freed_bytes, "put_off", text_or_null(round->put_off));
}

static qr_rc load_cache_json(struct quire *quire, json_t **ret_json, qr_err *err)
{
    struct cache_view view;
    QR_TRY(qr_db_read(quire->db, load_view, &view, err));
    const int64_t hits = view.count.hits + atomic_load(&quire->counts.hits);
    const int64_t misses = view.count.misses + atomic_load(&quire->counts.misses);
    *ret_json = json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "entries", (json_int_t)view.totals.count, "bytes",
                          (json_int_t)view.totals.size_bytes, "limit_bytes",
                          (json_int_t)qr_config_number(qr_instance_config(quire), QR_CONFIG_CACHE_VECTOR_LIMIT), "hits",
                          (json_int_t)hits, "misses", (json_int_t)misses, "pruning", pruning_json(&view.round),
                          "last_prune", last_json(&view.round));
    return *ret_json ? QR_OK : qr_answer_out_of_memory(err);
}

qr_rc qr_route_cache_show(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    json_t *cache;
    QR_TRY(load_cache_json(request->quire, &cache, err));
    return qr_reply_with(reply, 200, cache, err);
}

/* The limit of the configuration unless the request names a size. */
static qr_rc read_size(const struct qr_request *request, int64_t *ret_bytes, qr_err *err)
{
    const json_t *to_bytes = json_object_get(request->body, "to_bytes");
    *ret_bytes = qr_config_number(qr_instance_config(request->quire), QR_CONFIG_CACHE_VECTOR_LIMIT);
    if (!to_bytes) {
        return QR_OK;
    }
    *ret_bytes = json_integer_value(to_bytes);
    return json_is_integer(to_bytes) && *ret_bytes >= 0
               ? QR_OK
               : qr_fail(err, QR_CODE_INVALID_VALUE, "to_bytes must be a number that is not negative");
}

qr_rc qr_route_cache_prune(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct quire *quire = request->quire;
    struct qr_vector_round round;
    int64_t to_bytes;
    json_t *cache;
    QR_TRY(read_size(request, &to_bytes, err));
    QR_CLEANUP(qr_free_ptr) struct qr_pruning *pruning = qr_alloc_zero(sizeof *pruning);
    if (!pruning) {
        return qr_answer_out_of_memory(err);
    }
    qr_pruning_init(pruning, quire->db, quire->index,
                    qr_config_number(qr_instance_config(quire), QR_CONFIG_CACHE_VECTOR_LIMIT));
    QR_TRY(qr_prune(pruning, to_bytes, &round, err));
    QR_TRY(load_cache_json(quire, &cache, err));
    return qr_reply_with(reply, 200,
                         json_pack("{s:I, s:I, s:I, s:o, s:o}", "to_bytes", (json_int_t)to_bytes, "entries",
                                   (json_int_t)round.freed_count, "bytes", (json_int_t)round.freed_bytes, "put_off",
                                   text_or_null(round.put_off), "cache", cache),
                         err);
}
