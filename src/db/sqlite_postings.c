/* FTS5's function `postings`: gives the rows of each phrase of a query to the function of qr_tx_postings, instead of scoring
 * row by row as bm25() does. Called for one row of the query, it goes through all of them. */
#include "db/sqlite.h"

struct receiver {
    struct sqlite_conn *conn;
    const struct qr_postings *postings;
    int phrase;
    unsigned count; /* so far, of all phrases */
};

static int take_row(const Fts5ExtensionApi *api, Fts5Context *row, void *arg)
{
    enum { ROWS_A_LOOK = 1024 }; /* at the clock: SQLite itself does not look while this runs */
    struct receiver *receiver = arg;
    const struct qr_postings *postings = receiver->postings;
    Fts5PhraseIter places;
    int column, place;
    double frequency = 0;
    if (receiver->count++ % ROWS_A_LOOK == 0 && qr_sqlite_conn_is_late(receiver->conn)) {
        return SQLITE_INTERRUPT;
    }
    int rc = api->xPhraseFirst(row, 0, &places, &column, &place);
    while (rc == SQLITE_OK && column >= 0) {
        frequency += (size_t)column < postings->weight_count ? postings->weights[column] : 1;
        api->xPhraseNext(row, &places, &column, &place);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    return postings->fn(postings->arg, receiver->phrase, api->xRowid(row), frequency) ? SQLITE_OK : SQLITE_NOMEM;
}

static void go_through(const Fts5ExtensionApi *api, Fts5Context *query, sqlite3_context *result,
                       int arg_count QR_UNUSED, sqlite3_value **args QR_UNUSED)
{
    struct sqlite_conn *conn = api->xUserData(query);
    struct receiver receiver = {.conn = conn, .postings = conn->postings};
    const int phrases = api->xPhraseCount(query);
    int rc = conn->postings ? SQLITE_OK : SQLITE_MISUSE;
    for (; receiver.phrase < phrases && rc == SQLITE_OK; receiver.phrase++) {
        rc = api->xQueryPhrase(query, receiver.phrase, &receiver, take_row);
    }
    if (rc == SQLITE_OK) {
        sqlite3_result_int(result, phrases);
    } else {
        sqlite3_result_error_code(result, rc);
    }
}

int qr_sqlite_register_postings(struct sqlite_conn *conn)
{
    fts5_api *api;
    const int rc = qr_sqlite_find_fts5(conn->handle, &api);
    return rc == SQLITE_OK ? api->xCreateFunction(api, "postings", conn, go_through, NULL) : rc;
}

qr_rc qr_sqlite_postings(struct qr_tx *tx, const char *sql, const struct qr_val *vals, size_t val_count,
                         const struct qr_postings *postings, qr_err *err)
{
    struct sqlite_conn *conn = QR_CONTAINER_OF(tx, struct sqlite_conn, tx);
    int64_t phrases = 0;
    conn->postings = postings;
    const qr_rc rc = qr_tx_get_i64(tx, sql, vals, val_count, NULL, &phrases, err);
    conn->postings = NULL;
    return rc;
}
