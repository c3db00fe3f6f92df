/* A large cleanup beside other work: nobody waits for it, so it lets the others go first. */
#include "handler/cleanup.h"
#include "support/workshop.h"

#include <stdio.h>

enum { REST_MS_MAX = 10000 };

/* A folder with one file more than a window of the cleanup has; it is not read. */
static qr_uuid add_large_folder(struct qr_shop *shop)
{
    qr_shop_make_folder(shop, "large");
    for (int i = 0; i <= QR_CLEANUP_WINDOW; i++) {
        char name[32];
        snprintf(name, sizeof name, "large/%04d.bin", i);
        qr_shop_write(shop, name, ""); /* of a type that is not read: failed at once, without a job */
    }
    const qr_uuid folder = qr_shop_add_folder(shop, "large", "");
    qr_shop_work(shop);
    QR_CHECK_INT(QR_CLEANUP_WINDOW + 2, qr_desk_i64(&shop->desk, "SELECT count(*) FROM item"));
    return folder;
}

QR_DB_TEST(a_large_cleanup_rests_while_others_wait_and_then_goes_on)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = add_large_folder(&shop);
    qr_shop_set_paused(&shop, QR_QUEUE_CONVERT, true);
    qr_desk_add_note(&shop.desk, "waits", "for its turn");
    qr_shop_delete(&shop, folder);
    qr_shop_work_deletes(&shop);
    QR_CHECK_INT(3, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type = 'delete-subtree' AND state = 2"));
    qr_shop_set_paused(&shop, QR_QUEUE_CONVERT, false);
    qr_shop_work_after(&shop, REST_MS_MAX);
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(1, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE status = 6"));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_large_cleanup_does_not_rest_when_nobody_waits)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = add_large_folder(&shop);
    qr_shop_delete(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job_attempt"));
    qr_shop_close(&shop);
}
