/* What is asked, kept and learned about a model while it embeds (handler/embedding.h): whether a call is still wanted, the vectors that
 * were paid for, its dimension and its pace, and how long its work is put off. */
#include "base/failpoint.h"
#include "handler/embedding.h"
#include "store/models.h"
#include "store/vectors.h"

/* ---- the hooks of batchers ---- */

struct asking {
    struct qr_embed_asked *asked;
    size_t count;
};

static qr_rc look_at_owners(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct asking *asking = arg;
    for (size_t i = 0; i < asking->count; i++) {
        struct qr_embed_asked *asked = &asking->asked[i];
        QR_TRY(qr_attempt_check_in(tx, asked->arg, &asked->is_wanted, &asked->why, err));
    }
    return QR_OK;
}

static qr_rc look(void *arg, struct qr_embed_asked *asked, size_t count, qr_err *err)
{
    return qr_db_read(arg, look_at_owners, &(struct asking){asked, count}, err);
}

struct keeping {
    const char *fingerprint;
    int dimension;
    const struct qr_embed_paid *paid;
    size_t count;
};

static qr_rc write_paid(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct keeping *keeping = arg;
    bool has_shortened = false;
    for (size_t i = 0; i < keeping->count; i++) {
        const struct qr_embed_paid *paid = &keeping->paid[i];
        const bool is_shortened = paid->kept_bytes < paid->text.len;
        unsigned char key[QR_VECTOR_KEY_BYTES];
        qr_vector_key(keeping->fingerprint, paid->text, key);
        QR_TRY(qr_vector_add(tx, key, paid->vector, keeping->dimension, is_shortened ? (int64_t)paid->kept_bytes : 0,
                             err));
        has_shortened = has_shortened || is_shortened;
    }
    QR_TRY(qr_model_note(tx, keeping->fingerprint, keeping->dimension, has_shortened, err));
    QR_FAILPOINT("embed.batch.before_commit", err);
    return QR_OK;
}

qr_rc qr_embedding_keep(void *db, const char *fingerprint, int dimension, const struct qr_embed_paid *paid,
                        size_t count, qr_err *err)
{
    struct keeping keeping = {fingerprint, dimension, paid, count};
    QR_TRY(qr_db_write(db, QR_DURABLE, write_paid, &keeping, err));
    QR_FAILPOINT("embed.batch.stored", err);
    return QR_OK;
}

struct learning {
    const char *fingerprint;
    int dimension;
};

static qr_rc read_dimension(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct learning *learning = arg;
    return qr_model_dimension(tx, learning->fingerprint, &learning->dimension, err);
}

static qr_rc known_dimension(void *arg, const char *fingerprint, int *ret_dimension, qr_err *err)
{
    struct learning learning = {.fingerprint = fingerprint};
    QR_TRY(qr_db_read(arg, read_dimension, &learning, err));
    *ret_dimension = learning.dimension;
    return QR_OK;
}

struct pace_call {
    const char *fingerprint;
    int64_t texts_a_minute;
};

static qr_rc write_pace(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct pace_call *call = arg;
    return qr_model_set_pace(tx, call->fingerprint, call->texts_a_minute, err);
}

/* For estimates: nothing depends on it. */
static void note_pace(void *arg, const char *fingerprint, int64_t texts_a_minute)
{
    (void)qr_db_write(arg, QR_RELAXED, write_pace, &(struct pace_call){fingerprint, texts_a_minute}, NULL);
}

struct qr_batcher_hooks qr_embedding_hooks(struct qr_db *db)
{
    return (struct qr_batcher_hooks){look, qr_embedding_keep, known_dimension, db, note_pace};
}

/* ---- its trouble ---- */

void qr_embedding_put_off(struct qr_batcher *batcher, struct qr_outcome *outcome)
{
    const bool waits = qr_code_info(outcome->error.code)->policy == QR_POLICY_WAIT;
    if (batcher && outcome->kind == QR_OUTCOME_SNOOZED && waits) {
        outcome->delay_ms = QR_MAX(outcome->delay_ms, qr_batcher_wait_ms(batcher));
    }
}

static qr_rc set_dimension(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct learning *learning = arg;
    return qr_model_set_dimension(tx, learning->fingerprint, learning->dimension, err);
}

qr_rc qr_embedding_learn_dimension(struct qr_attempt *attempt, qr_err *err)
{
    struct qr_batcher *batcher;
    int known, found;
    QR_TRY(qr_attempt_batcher(attempt, &batcher, err));
    if (!batcher) {
        return QR_OK;
    }
    QR_TRY(qr_batcher_dimension(batcher, &known, err));
    QR_TRY(qr_batcher_probe(batcher, attempt, &found, err));
    if (found == known) {
        return QR_OK;
    }
    struct learning learning = {.fingerprint = qr_batcher_provider(batcher)->fingerprint, .dimension = found};
    QR_TRY(qr_job_write(attempt->run, QR_DURABLE, set_dimension, &learning, err));
    qr_batcher_forget_dimension(batcher);
    return QR_OK;
}
