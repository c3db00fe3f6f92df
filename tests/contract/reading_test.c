/* What the reader's failures mean for items: with the real quire-reader, over every database. */
#include "convert/reader.h"
#include "support/workshop.h"

enum { A_WHILE_MS = 60000 };

static struct qr_reader *open_reader(struct qr_shop *shop, struct qr_test *t, int64_t timeout_ms)
{
    struct qr_reader *reader;
    qr_err err;
    setenv("QUIRE_READER_FAILPOINTS", "reader.crash=error;reader.loop=error", 1);
    qr_shop_open(shop, t, "{}");
    QR_CHECK_RC(QR_OK, qr_reader_open(&reader,
                                      &(struct qr_reader_options){.program = QUIRE_BINARY_DIR "/" QR_READER_PROGRAM,
                                                                  .count_max = 2,
                                                                  .timeout_ms = timeout_ms},
                                      &err));
    shop->context.reader = reader;
    return reader;
}

static int64_t attempts_of(struct qr_shop *shop)
{
    return qr_desk_i64(&shop->desk, "SELECT max(attempts) FROM job");
}

/* A folder with one bad file in it, worked on until nothing is left to try. */
static void check_costs_itself(struct qr_shop *shop, const char *content)
{
    qr_shop_make_folder(shop, "mixed");
    qr_shop_write(shop, "mixed/before.txt", "first words");
    qr_shop_write(shop, "mixed/middle.txt", content);
    qr_shop_write(shop, "mixed/zebra.txt", "last words");
    const qr_uuid folder = qr_shop_add_folder(shop, "mixed", "");
    qr_shop_work(shop);
    QR_CHECK_INT(2, qr_shop_hits(shop, "words"));
    QR_CHECK(qr_item_status_is_active(qr_desk_child(&shop->desk, folder, "middle.txt").status));
    QR_CHECK_INT(1, attempts_of(shop));
    qr_shop_work_after(shop, A_WHILE_MS);
    QR_CHECK(qr_item_status_is_active(qr_desk_child(&shop->desk, folder, "middle.txt").status));
    qr_shop_work_after(shop, A_WHILE_MS);
    const struct qr_item bad = qr_desk_child(&shop->desk, folder, "middle.txt");
    QR_CHECK_INT(QR_ITEM_FAILED, bad.status);
    QR_CHECK_TEXT("crashed_worker", bad.error_code);
    QR_CHECK_INT(0, qr_desk_i64(&shop->desk, "SELECT count(*) FROM job WHERE state < 5"));
    QR_CHECK_INT(2, qr_shop_hits(shop, "words"));
}

QR_DB_TEST(a_file_that_crashes_the_reader_fails_after_three_tries_and_the_rest_goes_on) /* ISOL-2, AGAIN-3 */
{
    struct qr_shop shop;
    struct qr_reader_stats stats;
    struct qr_reader *reader = open_reader(&shop, t, 0);
    check_costs_itself(&shop, "reader.crash");
    qr_reader_stats(reader, &stats);
    QR_CHECK_INT(3, stats.faults);
    qr_reader_close(reader);
    qr_shop_close(&shop);
}

/* Of files that are read together. */
QR_DB_TEST(bad_files_among_many_are_the_only_ones_that_are_tried_again) /* ISOL-2 */
{
    enum { FILES = 60, FIRST_BAD = 11, SECOND_BAD = 42 };
    struct qr_shop shop;
    char name[64];
    struct qr_reader *reader = open_reader(&shop, t, 0);
    qr_shop_make_folder(&shop, "many");
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many/%02d.txt", i);
        qr_shop_write(&shop, name, i == FIRST_BAD || i == SECOND_BAD ? "reader.crash" : "good words");
    }
    qr_shop_add_folder(&shop, "many", "");
    qr_shop_work(&shop);
    QR_CHECK_INT(2, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE attempts > 0"));
    qr_shop_work_after(&shop, A_WHILE_MS);
    qr_shop_work_after(&shop, A_WHILE_MS);
    QR_CHECK_INT(2, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE error_code = 'crashed_worker'"));
    QR_CHECK_INT(FILES - 2, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE type = 2 AND status = 6"));
    struct qr_reader_stats stats;
    qr_reader_stats(reader, &stats);
    QR_CHECK_INT(6, stats.faults);
    qr_reader_close(reader);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_file_that_the_reader_never_finishes_fails_after_three_tries) /* ISOL-2, ISOL-3 */
{
    struct qr_shop shop;
    struct qr_reader *reader = open_reader(&shop, t, 500);
    check_costs_itself(&shop, "reader.loop");
    qr_reader_close(reader);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_file_that_crashed_the_reader_once_is_read_at_the_next_try) /* ISOL-2 */
{
    struct qr_shop shop;
    struct qr_reader *reader = open_reader(&shop, t, 0);
    qr_shop_write(&shop, "a.txt", "reader.crash");
    const qr_uuid file = qr_shop_add_file(&shop, "a.txt", "");
    qr_shop_work(&shop);
    QR_CHECK(qr_item_status_is_active(qr_desk_item(&shop.desk, file).status));
    qr_shop_write(&shop, "a.txt", "fine words now");
    qr_shop_work_after(&shop, A_WHILE_MS);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, file).status);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "fine"));
    qr_reader_close(reader);
    qr_shop_close(&shop);
}

QR_DB_TEST(what_is_not_text_fails_at_once_and_keeps_the_reader) /* ISOL-2 */
{
    struct qr_shop shop;
    struct qr_reader_stats stats;
    struct qr_reader *reader = open_reader(&shop, t, 0);
    qr_shop_write(&shop, "a.txt", "\x01\x02\x03\x04\x05\x06\x07\x01\x02\x03\x04\x05\x06\x07\xff\xfe\xfd");
    const qr_uuid file = qr_shop_add_file(&shop, "a.txt", "");
    qr_shop_work(&shop);
    QR_CHECK_TEXT("unsupported_type", qr_desk_item(&shop.desk, file).error_code);
    qr_reader_stats(reader, &stats);
    QR_CHECK_INT(0, stats.faults);
    QR_CHECK_INT(1, stats.started);
    qr_reader_close(reader);
    qr_shop_close(&shop);
}
