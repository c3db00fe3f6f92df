/* Adding a folder again, or refreshing it: what has not changed costs nothing, and every kind of change below is found
 * (handler/same_folder.h). */
#include "support/workshop.h"

#include <stdio.h>

/* A folder "root" with 1.txt and deep/deeper/{2,3}.txt and beside/4.txt. */
static qr_uuid add_root(struct qr_shop *shop)
{
    qr_shop_make_folder(shop, "root/deep/deeper");
    qr_shop_make_folder(shop, "root/beside");
    qr_shop_write(shop, "root/1.txt", "apples");
    qr_shop_write(shop, "root/deep/deeper/2.txt", "bananas");
    qr_shop_write(shop, "root/deep/deeper/3.txt", "cherries");
    qr_shop_write(shop, "root/beside/4.txt", "dates");
    const qr_uuid root = qr_shop_add_folder(shop, "root", "");
    qr_shop_work(shop);
    QR_CHECK_INT(8, qr_shop_completed(shop));
    return root;
}

static struct qr_item child(struct qr_shop *shop, qr_uuid root, const char *name, const char *below)
{
    const struct qr_item item = qr_desk_child(&shop->desk, root, name);
    return below ? qr_desk_child(&shop->desk, item.id, below) : item;
}

static void refresh(struct qr_shop *shop, qr_uuid root)
{
    qr_shop_refresh(shop, root);
    qr_shop_work(shop);
}

QR_DB_TEST(a_folder_that_has_not_changed_gets_no_job_and_no_write_below_it) /* REFR-4 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid root = add_root(&shop);
    const int64_t jobs = qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type <> 'purge'");
    const int64_t updated = qr_desk_i64(&shop.desk, "SELECT max(updated_at) FROM item WHERE depth > 0");
    qr_shop_work_after(&shop, 1000);
    refresh(&shop, root);
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, root).generation);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, root).status);
    QR_CHECK_INT(2 + jobs, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job WHERE type <> 'purge'"));
    QR_CHECK_INT(updated, qr_desk_i64(&shop.desk, "SELECT max(updated_at) FROM item WHERE depth > 0"));
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE depth > 0 AND generation > 1"));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_change_deep_below_is_found_and_its_neighbours_are_left) /* REFR-4 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid root = add_root(&shop);
    qr_shop_write(&shop, "root/deep/deeper/2.txt", "bananas and oranges");
    refresh(&shop, root);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "oranges"));
    const qr_uuid deeper = child(&shop, root, "deep", "deeper").id;
    QR_CHECK_INT(2, qr_desk_child(&shop.desk, deeper, "2.txt").generation);
    QR_CHECK_INT(1, qr_desk_child(&shop.desk, deeper, "3.txt").generation);
    QR_CHECK_INT(1, child(&shop, root, "beside", NULL).generation);
    qr_shop_close(&shop);
}

QR_DB_TEST(what_is_new_or_gone_or_of_another_type_deep_below_is_found) /* TYPE-1, TYPE-2 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid root = add_root(&shop);
    qr_shop_write(&shop, "root/deep/deeper/9.txt", "elderberries"); /* behind all others */
    refresh(&shop, root);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "elderberries"));
    qr_shop_remove(&shop, "root/deep/deeper/9.txt");
    refresh(&shop, root);
    QR_CHECK_INT(0, qr_shop_hits(&shop, "elderberries"));
    qr_shop_remove(&shop, "root/deep/deeper/2.txt");
    qr_shop_make_folder(&shop, "root/deep/deeper/2.txt");
    qr_shop_write(&shop, "root/deep/deeper/2.txt/x.txt", "figs");
    refresh(&shop, root);
    QR_CHECK_INT(0, qr_shop_hits(&shop, "bananas"));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "figs"));
    QR_CHECK_INT(1, child(&shop, root, "beside", NULL).generation);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_folder_that_is_empty_all_at_once_keeps_what_is_known_of_it)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid root = add_root(&shop);
    qr_shop_remove(&shop, "root/beside/4.txt");
    refresh(&shop, root);
    const struct qr_item beside = child(&shop, root, "beside", NULL);
    QR_CHECK_TEXT("source_missing", beside.error_code);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "dates"));
    qr_shop_close(&shop);
}

QR_DB_TEST(a_folder_with_something_failed_in_it_is_looked_at_by_its_own_job)
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{\"limits\":{\"file_bytes_max\":20}}");
    const qr_uuid root = add_root(&shop);
    qr_shop_write(&shop, "root/beside/5.txt", "much more than twenty bytes");
    refresh(&shop, root);
    QR_CHECK_INT(2, child(&shop, root, "beside", NULL).generation);
    QR_CHECK_INT(QR_ITEM_FAILED, child(&shop, root, "beside", NULL).status);
    refresh(&shop, root);
    QR_CHECK_INT(3, child(&shop, root, "beside", NULL).generation);
    QR_CHECK_INT(1, child(&shop, root, "deep", NULL).generation);
    qr_shop_close(&shop);
}

QR_DB_TEST(a_reindex_reaches_folders_that_have_not_changed) /* REIDX-4 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid root = add_root(&shop);
    qr_shop_reindex(&shop, root);
    qr_shop_work(&shop);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE generation < 2"));
    qr_shop_close(&shop);
}
