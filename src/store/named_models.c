/* Owns the rows of named models. */
#include "store/named_models.h"

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for a model");
}

static qr_rc read_row(const struct qr_rows *rows, struct qr_arena *arena, struct qr_named_model *ret_model, qr_err *err)
{
    *ret_model = (struct qr_named_model){.name = qr_arena_copy(arena, qr_rows_str(rows, 0)),
                                         .embedding = qr_arena_copy(arena, qr_rows_str(rows, 1)),
                                         .created_ms = qr_rows_i64(rows, 2)};
    return ret_model->name && ret_model->embedding ? QR_OK : out_of_memory(err);
}

static qr_rc look(struct qr_tx *tx, qr_str name, struct qr_arena *arena, bool *ret_found,
                  struct qr_named_model *ret_model, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows, "SELECT name, embedding, created_at FROM named_model WHERE name = ?1",
                       QR_VALS(qr_val_text(name)), err));
    *ret_found = qr_rows_next(&rows);
    if (*ret_found) {
        QR_TRY(read_row(&rows, arena, ret_model, err));
    }
    return qr_rows_end(&rows, err);
}

qr_rc qr_named_model_find(struct qr_tx *tx, qr_str name, struct qr_arena *arena, struct qr_named_model *ret_model,
                          qr_err *err)
{
    enum { SHOWN_BYTES_MAX = 200 };
    bool found;
    QR_TRY(look(tx, name, arena, &found, ret_model, err));
    return found ? QR_OK
                 : qr_fail(err, QR_CODE_NOT_FOUND, "there is no model %.*s",
                           QR_STR_ARG(qr_utf8_prefix(name, SHOWN_BYTES_MAX)));
}

qr_rc qr_named_models_list(struct qr_tx *tx, struct qr_arena *arena, struct qr_named_model **ret_models,
                           size_t *ret_count, qr_err *err)
{
    QR_ROWS(rows);
    struct qr_named_model *models = qr_arena_array(arena, QR_NAMED_MODELS_MAX, sizeof models[0]);
    if (!models) {
        return out_of_memory(err);
    }
    *ret_count = 0;
    QR_TRY(qr_tx_query(tx, &rows, "SELECT name, embedding, created_at FROM named_model ORDER BY name LIMIT ?1",
                       QR_VALS(qr_val_i64(QR_NAMED_MODELS_MAX)), err));
    while (qr_rows_next(&rows)) {
        QR_TRY(read_row(&rows, arena, &models[*ret_count], err));
        ++*ret_count;
    }
    *ret_models = models;
    return qr_rows_end(&rows, err);
}

qr_rc qr_named_model_add(struct qr_tx *tx, const char *name, const char *embedding, qr_err *err)
{
    int64_t now_ms, count = 0, changes = 0;
    QR_TRY(qr_tx_now_ms(tx, &now_ms, err));
    QR_TRY(qr_tx_get_i64(tx, "SELECT count(*) FROM named_model", QR_NO_VALS, NULL, &count, err));
    if (count >= QR_NAMED_MODELS_MAX) {
        return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "there are %d models already", (int)QR_NAMED_MODELS_MAX);
    }
    QR_TRY(qr_tx_exec(tx,
                      "INSERT INTO named_model (name, embedding, created_at) VALUES (?1, ?2, ?3) "
                      "ON CONFLICT (name) DO NOTHING",
                      QR_VALS(qr_val_text(qr_str_of(name)), qr_val_text(qr_str_of(embedding)), qr_val_i64(now_ms)),
                      &changes, err));
    return changes ? QR_OK : qr_fail(err, QR_CODE_ALREADY_EXISTS, "there is a model %s already", name);
}

qr_rc qr_named_model_remove(struct qr_tx *tx, const char *name, qr_err *err)
{
    return qr_tx_exec(tx, "DELETE FROM named_model WHERE name = ?1", QR_VALS(qr_val_text(qr_str_of(name))), NULL, err);
}
