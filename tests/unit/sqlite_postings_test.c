/* Where the phrases of a full-text query occur (qr_tx_postings). */
#include "db/db.h"

#include "index/tokenizer.h"
#include "support/test.h"

#include <stdio.h>

enum { ROWS = 1500, DEADLINE_MS = 100 };

static const struct qr_migration MIGRATIONS[] = {
    {"words", "CREATE VIRTUAL TABLE f USING fts5(title, text, tokenize='quire')"},
};

struct posted {
    int phrase;
    int64_t row_id;
    double frequency;
};

struct asking {
    const char *match;
    const double *weights;
    size_t weight_count;
    struct posted posted[ROWS];
    size_t count, count_max; /* behind these there is no memory */
    bool takes_long;
};

static bool take(void *arg, int phrase, int64_t row_id, double frequency)
{
    struct asking *asking = arg;
    if (asking->takes_long) {
        qr_test_clock_advance(DEADLINE_MS + 1);
    }
    if (asking->count == asking->count_max) {
        return false;
    }
    asking->posted[asking->count++] = (struct posted){phrase, row_id, frequency};
    return true;
}

static qr_rc ask(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct asking *asking = arg;
    const struct qr_postings postings = {
        .weights = asking->weights, .weight_count = asking->weight_count, .fn = take, .arg = asking};
    asking->count = 0;
    return qr_tx_postings(tx, "SELECT postings(f) FROM f WHERE f MATCH ?1 LIMIT 1",
                          QR_VALS(qr_val_text(qr_str_of(asking->match))), &postings, err);
}

static qr_rc ask_without_function(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    int64_t value;
    return qr_tx_get_i64(tx, "SELECT postings(f) FROM f WHERE f MATCH 'alpha'", QR_NO_VALS, NULL, &value, err);
}

static qr_rc fill(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(
        qr_tx_script(tx,
                     "INSERT INTO f (rowid, title, text) VALUES (2, 'beta', 'alpha beta alpha'), (3, 'alpha', 'none'), "
                     "(9, 'gamma', 'beta')",
                     err));
    for (int64_t i = 0; i < ROWS; i++) {
        QR_TRY(qr_tx_exec(tx, "INSERT INTO f (rowid, title, text) VALUES (?1, '', 'delta')",
                          QR_VALS(qr_val_i64(100 + i)), NULL, err));
    }
    return QR_OK;
}

static struct qr_db *open_db(struct qr_test *t)
{
    static char url[300];
    qr_err err;
    struct qr_db *db;
    snprintf(url, sizeof url, "sqlite:%s/words.db", t->dir);
    const struct qr_db_options options = {.url = url,
                                          .migrations = MIGRATIONS,
                                          .migration_count = QR_COUNT(MIGRATIONS),
                                          .read_deadline_ms = DEADLINE_MS,
                                          .clock = qr_test_clock(0),
                                          .tokenizer = &qr_index_tokenizer};
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_RELAXED, fill, NULL, &err));
    return db;
}

QR_TEST(rows_come_phrase_by_phrase_with_the_weights_of_their_columns)
{
    static const double weights[] = {4};
    static const struct posted expected[] = {{0, 2, 2}, {0, 3, 4}, {2, 2, 5}, {2, 9, 1}};
    static struct asking asking = {
        .match = "\"alpha\" OR \"nowhere\" OR \"beta\"", .weights = weights, .weight_count = 1};
    struct qr_db *db = open_db(t);
    qr_err err;
    asking.count_max = ROWS;
    QR_CHECK_RC(QR_OK, qr_db_read(db, ask, &asking, &err));
    QR_CHECK_INT(QR_COUNT(expected), asking.count);
    for (size_t i = 0; i < QR_COUNT(expected); i++) {
        QR_CHECK(asking.posted[i].phrase == expected[i].phrase && asking.posted[i].row_id == expected[i].row_id &&
                 asking.posted[i].frequency == expected[i].frequency);
    }
    asking.match = "\"nowhere\"";
    QR_CHECK_RC(QR_OK, qr_db_read(db, ask, &asking, &err));
    QR_CHECK_INT(0, asking.count);
    qr_db_close(db);
}

QR_TEST(postings_end_at_the_deadline_and_where_there_is_no_memory) /* DB-6 */
{
    static struct asking asking = {.match = "\"delta\"", .count_max = ROWS};
    struct qr_db *db = open_db(t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(db, ask, &asking, &err));
    QR_CHECK_INT(ROWS, asking.count);
    asking.count_max = 1;
    QR_CHECK_CODE(QR_CODE_OUT_OF_MEMORY, qr_db_read(db, ask, &asking, &err));
    asking = (struct asking){.match = "\"delta\"", .count_max = ROWS, .takes_long = true};
    QR_CHECK_CODE(QR_CODE_TIMEOUT, qr_db_read(db, ask, &asking, &err));
    QR_CHECK(asking.count < ROWS);
    qr_db_close(db);
}

QR_TEST(the_function_alone_is_refused)
{
    struct qr_db *db = open_db(t);
    qr_err err;
    QR_CHECK(qr_db_read(db, ask_without_function, NULL, &err) != QR_OK);
    qr_db_close(db);
}
