/* The words that are made before a write, and are kept until FTS5 takes them. */
#include "index/made_words.h"
#include "support/test.h"
#include "text/tokens.h"

struct kept {
    struct made_words words;
    struct made_rows rows;
};

/* The words of two chunks. */
static void begin(struct kept *kept)
{
    const struct qr_chunk chunks[] = {
        {.text = QR_STR("Well-known houses"), .title = QR_STR("A title")},
        {.text = QR_STR("gamma"), .heading = QR_STR("delta")},
    };
    qr_err err;
    QR_CLEANUP(qr_tokenizer_free_ptr) struct qr_tokenizer *tokenizer = NULL;
    *kept = (struct kept){0};
    QR_CHECK_RC(QR_OK, qr_tokenizer_create(&tokenizer, &err));
    QR_CHECK_RC(QR_OK, qr_made_words_init(&kept->words, QR_COUNT(chunks), &err));
    QR_CHECK_RC(QR_OK, qr_made_words_add(&kept->words, tokenizer, chunks, QR_COUNT(chunks), &err));
}

static void end(struct kept *kept)
{
    qr_made_words_done(&kept->words);
    qr_made_rows_done(&kept->rows);
}

/* All columns of the row; empty where nothing is kept. */
static qr_str words_of(const struct kept *kept, int64_t id)
{
    const struct made_chunk *row = qr_made_rows_find(&kept->rows, id);
    return row ? (qr_str){kept->rows.text.data + row->offset, row->lens[0] + row->lens[1] + row->lens[2]} : QR_STR("");
}

QR_TEST(words_of_a_row_are_kept_column_by_column_until_they_are_forgotten)
{
    struct kept kept;
    begin(&kept);
    for (int64_t id = 1; id <= 4; id++) {
        qr_made_rows_put(&kept.rows, id, &kept.words, (size_t)id % 2);
    }
    QR_CHECK_STR("\3\3 delta\3 gamma", words_of(&kept, 1));
    QR_CHECK_STR("\3 a titl\3\3 well|wellknown known hous", words_of(&kept, 2));
    qr_made_rows_forget(&kept.rows, 2);
    QR_CHECK_INT(0, (int64_t)words_of(&kept, 2).len);
    QR_CHECK_STR("\3\3 delta\3 gamma", words_of(&kept, 3));
    QR_CHECK_STR("\3 a titl\3\3 well|wellknown known hous", words_of(&kept, 4));
    qr_made_rows_forget(&kept.rows, 100);
    QR_CHECK_INT(0, (int64_t)(kept.rows.count + kept.rows.text.len));
    end(&kept);
}

QR_TEST(an_id_that_is_given_again_has_the_words_of_its_last_row) /* M1 */
{
    struct kept kept;
    begin(&kept);
    for (int64_t id = 1; id <= 3; id++) {
        qr_made_rows_put(&kept.rows, id, &kept.words, 0);
    }
    qr_made_rows_put(&kept.rows, 2, &kept.words, 1); /* the transaction that gave 2 and 3 was rolled back */
    QR_CHECK_STR("\3\3 delta\3 gamma", words_of(&kept, 2));
    QR_CHECK_INT(0, (int64_t)words_of(&kept, 3).len);
    QR_CHECK(words_of(&kept, 1).len > 0);
    end(&kept);
}

QR_TEST(no_more_is_kept_than_the_limit_and_what_is_beyond_takes_older_words_of_its_id_away)
{
    enum { ROWS = 5000 };
    struct kept kept;
    begin(&kept);
    for (int64_t id = 1; id <= ROWS; id++) {
        qr_made_rows_put(&kept.rows, id, &kept.words, 0);
    }
    QR_CHECK(kept.rows.count < ROWS && kept.rows.text.len <= 1 << 20);
    QR_CHECK(words_of(&kept, 1).len > 0);
    QR_CHECK_INT(0, (int64_t)words_of(&kept, ROWS).len);
    end(&kept);
}
