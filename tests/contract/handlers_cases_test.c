/* Findings of the review that need handlers. */
#include "base/fs.h"
#include "support/workshop.h"
#include "workflow/process.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* UPD-1, UPD-3, REIDX-5: bytes that Quire owns since the update */
QR_DB_TEST(a_reindex_after_an_update_keeps_the_updated_content)
{
    struct qr_shop shop;
    bool changed;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    qr_shop_write(&shop, "a.txt", "walrus\n");
    const qr_uuid id = qr_shop_add_file(&shop, "a.txt", "");
    qr_shop_work(&shop);
    QR_CHECK_RC(QR_OK,
                qr_workflow_update(&shop.desk.workflow, shop.desk.base_id, id, QR_STR("penguin\n"), &changed, &err));
    qr_shop_work(&shop);
    qr_shop_work_after(&shop, 60000); /* the purge */
    QR_CHECK_INT(1, qr_shop_hits(&shop, "penguin"));
    QR_CHECK_INT(0, qr_shop_hits(&shop, "walrus"));
    qr_shop_reindex(&shop, id);
    qr_shop_work(&shop);
    qr_shop_work_after(&shop, 60000);
    QR_CHECK_INT(0, qr_shop_hits(&shop, "walrus"));
    QR_CHECK_INT(1, qr_shop_hits(&shop, "penguin"));
    qr_shop_remove(&shop, "a.txt"); /* nobody looks there any more */
    qr_shop_reindex(&shop, id);
    qr_shop_work(&shop);
    qr_shop_work_after(&shop, 60000);
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&shop.desk, id).status);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "penguin"));
    qr_shop_close(&shop);
}

/* UPD-3: the folder is where it is changed */
QR_DB_TEST(an_update_of_what_comes_from_a_folder_is_refused_and_changes_nothing)
{
    struct qr_shop shop;
    bool changed;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    const qr_uuid folder = qr_shop_add_tree(&shop);
    const qr_uuid sub = qr_desk_child(&shop.desk, folder, "sub").id;
    const qr_uuid in_it[] = {qr_desk_child(&shop.desk, folder, "a.md").id, qr_desk_child(&shop.desk, sub, "c.md").id,
                             folder, sub};
    const int64_t jobs = qr_desk_i64(&shop.desk, "SELECT count(*) FROM job");
    for (size_t i = 0; i < QR_COUNT(in_it); i++) {
        QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_workflow_update(&shop.desk.workflow, shop.desk.base_id, in_it[i],
                                                                QR_STR("penguin\n"), &changed, &err));
        QR_CHECK_INT(422, qr_code_info(err.code)->http_status);
        QR_CHECK_HAS(i < 2 ? "comes from the folder: change it there" : "has no content of its own", err.msg);
        QR_CHECK_INT(1, qr_desk_item(&shop.desk, in_it[i]).generation);
    }
    QR_CHECK_INT(jobs, qr_desk_i64(&shop.desk, "SELECT count(*) FROM job"));
    qr_shop_work(&shop);
    QR_CHECK_INT(0, qr_shop_hits(&shop, "penguin"));
    qr_shop_write(&shop, "tree/a.md", "penguin, and more of it\n"); /* there it works */
    qr_shop_refresh(&shop, folder);
    qr_shop_work(&shop);
    QR_CHECK_INT(1, qr_shop_hits(&shop, "penguin"));
    QR_CHECK_INT(2, qr_desk_item(&shop.desk, in_it[0]).generation);
    qr_shop_close(&shop);
}

/* I5: end to end, with the real cleanup */
QR_DB_TEST(a_run_ends_when_its_folder_is_deleted)
{
    struct qr_shop shop;
    struct qr_run run;
    qr_err err;
    qr_shop_open(&shop, t, "{}");
    qr_shop_make_folder(&shop, "d");
    qr_shop_write(&shop, "d/a.txt", "walrus\n");
    const struct qr_add_item item = {.type = QR_ITEM_DIRECTORY, .source = qr_str_of(qr_shop_path(&shop, "d"))};
    const struct qr_add add = {.base_id = shop.desk.base_id, .items = &item, .count = 1, .is_manual = true};
    struct qr_added *added;
    QR_CHECK_RC(QR_OK, qr_workflow_add(&shop.desk.workflow, &add, &shop.desk.arena, &added, &err));
    const struct qr_process process = {shop.desk.base_id, QR_WANT_ALL, false};
    QR_CHECK_RC(QR_OK, qr_workflow_process(&shop.desk.workflow, &process, &run, &err));
    qr_desk_expand(&shop.desk, added[0].id, (const char *const[]){"a.txt"}, 1);
    qr_shop_delete(&shop, added[0].id);
    qr_shop_work(&shop);
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item"));
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM run WHERE status = 1"));
    qr_shop_close(&shop);
}

/* The folder "out" in place of the folder "in", which is kept as "kept". */
static void put_link_in_place(struct qr_shop *shop)
{
    char in[PATH_MAX], out[PATH_MAX];
    snprintf(in, sizeof in, "%s", qr_shop_path(shop, "in"));
    snprintf(out, sizeof out, "%s", qr_shop_path(shop, "out"));
    QR_CHECK_INT(0, rename(in, qr_shop_path(shop, "kept")));
    QR_CHECK_INT(0, symlink(out, in));
}

static void make_in_and_out(struct qr_shop *shop, const char *in_file, const char *out_file)
{
    qr_shop_make_folder(shop, "in");
    qr_shop_make_folder(shop, "out");
    qr_shop_write(shop, in_file, "walrus\n");
    qr_shop_write(shop, out_file, "secret squid\n");
}

QR_DB_TEST(no_job_follows_a_link_in_a_path_that_a_key_added) /* KEY-7 */
{
    struct qr_shop shop;
    qr_shop_open(&shop, t, "{}");
    make_in_and_out(&shop, "in/a.txt", "out/a.txt");
    qr_shop_write(&shop, "out/b.txt", "secret squid\n");
    const qr_uuid file = qr_shop_add_bound(&shop, QR_ITEM_FILE, "in/a.txt");
    const qr_uuid folder = qr_shop_add_bound(&shop, QR_ITEM_DIRECTORY, "in");
    qr_shop_work(&shop);
    const qr_uuid child = qr_desk_child(&shop.desk, folder, "a.txt").id;
    QR_CHECK_INT(2, qr_shop_hits(&shop, "walrus"));
    put_link_in_place(&shop);
    const qr_uuid all[] = {file, child, folder};
    for (size_t i = 0; i < QR_COUNT(all); i++) {
        qr_shop_refresh(&shop, all[i]);
        qr_shop_work(&shop);
        qr_shop_reindex(&shop, all[i]);
        qr_shop_work(&shop);
    }
    QR_CHECK_INT(0, qr_shop_hits(&shop, "squid"));
    QR_CHECK_INT(0, qr_desk_i64(&shop.desk, "SELECT count(*) FROM item WHERE name = 'b.txt'"));
    qr_shop_close(&shop);
}

struct fake {
    struct qr_processor processor;
    int cancelled;
    char given[64]; /* what was in the file that was submitted last */
};

static qr_rc submit(struct qr_processor *processor, const char *path, const char *name QR_UNUSED,
                    struct qr_arena *arena QR_UNUSED, const char **ret_ticket, qr_err *err)
{
    struct fake *fake = QR_CONTAINER_OF(processor, struct fake, processor);
    QR_CLEANUP(qr_buf_done) struct qr_buf bytes = {0};
    QR_TRY(qr_fs_read(qr_io_system(), path, sizeof fake->given - 1, &bytes, err));
    snprintf(fake->given, sizeof fake->given, "%s", bytes.data);
    *ret_ticket = "T";
    return QR_OK;
}

static qr_rc poll_it(struct qr_processor *processor QR_UNUSED, const char *ticket QR_UNUSED,
                     enum qr_ticket_state *ret_state, int64_t *ret_running_ms, struct qr_buf *out QR_UNUSED,
                     qr_err *err QR_UNUSED)
{
    *ret_state = QR_TICKET_RUNNING;
    *ret_running_ms = 1;
    return QR_OK;
}

static void cancel_it(struct qr_processor *processor, const char *ticket)
{
    struct fake *fake = QR_CONTAINER_OF(processor, struct fake, processor);
    fake->cancelled += strcmp(ticket, "T") == 0;
}

/* DEL-5: remote conversions are cancelled, best effort */
QR_DB_TEST(the_conversion_of_a_deleted_file_is_cancelled)
{
    struct qr_shop shop;
    struct fake fake = {{.submit = submit, .poll = poll_it, .cancel = cancel_it}};
    qr_shop_open(&shop, t, "{\"file_processor\":{\"kind\":\"command\",\"argv\":[\"x\"],\"extensions\":[\"doc\"]}}");
    shop.context.processor = &fake.processor;
    qr_shop_write(&shop, "a.doc", "walrus\n");
    const qr_uuid id = qr_shop_add_file(&shop, "a.doc", "");
    qr_shop_work(&shop);
    QR_CHECK_TEXT("T", qr_desk_item(&shop.desk, id).ticket);
    qr_shop_delete(&shop, id);
    qr_shop_work(&shop);
    QR_CHECK(!qr_desk_has_item(&shop.desk, id));
    QR_CHECK_INT(1, fake.cancelled);
    qr_shop_close(&shop);
}

/* A converter opens the path that it is given: of what a key added that is a copy. */
QR_DB_TEST(a_converter_is_given_no_path_whose_links_must_not_be_followed) /* KEY-7 */
{
    struct qr_shop shop;
    struct fake fake = {{.submit = submit, .poll = poll_it, .cancel = cancel_it}};
    qr_shop_open(&shop, t, "{\"file_processor\":{\"kind\":\"command\",\"argv\":[\"x\"],\"extensions\":[\"doc\"]}}");
    shop.context.processor = &fake.processor;
    make_in_and_out(&shop, "in/a.doc", "out/a.doc");
    (void)qr_shop_add_bound(&shop, QR_ITEM_FILE, "in/a.doc");
    qr_shop_work(&shop);
    QR_CHECK_TEXT("walrus\n", fake.given);
    const qr_uuid late = qr_shop_add_bound(&shop, QR_ITEM_FILE, "in/a.doc");
    put_link_in_place(&shop);
    fake.given[0] = '\0';
    qr_shop_work(&shop);
    QR_CHECK_TEXT("", fake.given);
    QR_CHECK_TEXT("source_missing", qr_desk_item(&shop.desk, late).error_code);
    qr_shop_close(&shop);
}
