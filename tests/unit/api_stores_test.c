/* Index stores that are not their base's own are found by the beat, though nobody asks the base for anything (RECOV-4). */
#include "api/stores.h"

#include "base/fs.h"
#include "support/api_fixture.h"

#include <sched.h>

/* ---- one look ---- */

struct stepping {
    struct qr_beat_task task;
    bool more;
};

static qr_rc write_down(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct stepping *stepping = arg;
    stepping->more = false;
    return stepping->task.fn(tx, stepping->task.arg, &stepping->more, err);
}

/* Everything, step by step; returns how many steps. */
static int look_at_all(struct quire *quire)
{
    struct qr_store_look look = {.quire = quire};
    struct stepping stepping = {.task = qr_store_look_task(&look)};
    int steps = 0;
    qr_err err;
    do {
        QR_CHECK_RC(QR_OK, stepping.task.look(stepping.task.arg, &err));
        QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_RELAXED, write_down, &stepping, &err));
        steps++;
    } while (stepping.more);
    return steps;
}

static size_t restores(struct quire *quire)
{
    QR_JSON *jobs = api_call(quire, "GET", "/api/v1/jobs?type=restore-base&limit=200", NULL, 200);
    return json_array_size(json_object_get(jobs, "data"));
}

static qr_rc exec(struct qr_tx *tx, void *arg, qr_err *err)
{
    return qr_tx_exec(tx, arg, QR_NO_VALS, NULL, err);
}

static void change(struct quire *quire, const char *sql)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_DURABLE, exec, (void *)sql, &err));
}

/* RECOV-4 */
QR_TEST(a_store_that_is_another_ones_is_found_in_bounded_steps_and_asked_for_once)
{
    struct quire *quire = api_open(t);
    char body[64];
    for (int i = 0; i < QR_STORES_A_STEP + 4; i++) {
        snprintf(body, sizeof body, "{\"name\":\"base %d\"}", i);
        json_decref(api_call(quire, "POST", "/api/v1/bases", body, 201));
    }
    QR_CHECK_INT(2, look_at_all(quire));
    QR_CHECK_INT(0, restores(quire)); /* none was made yet */
    change(quire, "UPDATE base SET index_stamp = 'lost' WHERE name IN ('base 0', 'base 17', 'base 18')");
    change(quire, "UPDATE base SET status = 2 WHERE name = 'base 18'");
    QR_CHECK_INT(2, look_at_all(quire));
    QR_CHECK_INT(2, restores(quire)); /* what has failed is restored when somebody says so */
    look_at_all(quire);
    QR_CHECK_INT(2, restores(quire));
    quire_close(quire);
}

QR_TEST(a_stamp_that_changed_after_the_look_is_no_loss)
{
    struct quire *quire = api_open_base(t);
    struct qr_store_look look = {.quire = quire};
    struct stepping stepping = {.task = qr_store_look_task(&look)};
    qr_err err;
    change(quire, "UPDATE base SET index_stamp = 'before'");
    QR_CHECK_RC(QR_OK, stepping.task.look(stepping.task.arg, &err));
    QR_CHECK_INT(1, look.lost_count);
    change(quire, "UPDATE base SET index_stamp = 'after'");
    QR_CHECK_RC(QR_OK, qr_db_write(quire->db, QR_RELAXED, write_down, &stepping, &err));
    QR_CHECK_INT(0, restores(quire));
    quire_close(quire);
}

/* ---- the whole ---- */

/* RECOV-4: nobody adds anything to the base, nobody asks it */
QR_TEST(a_lost_index_file_is_made_again_after_a_start)
{
    struct quire *quire = api_open_base(t);
    char note[API_ID_SIZE], base[API_ID_SIZE], path[128];
    api_add_note(quire, "pets", "a hedgehog", note);
    QR_JSON *shown = api_call(quire, "GET", API_BASE, NULL, 200);
    api_keep_id(shown, base);
    api_start_work(quire);
    json_decref(api_wait_for(quire, note, "completed"));
    QR_CHECK_INT(1, api_search(quire, "hedgehog"));
    quire_close(quire);
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < QR_COUNT(suffixes); i++) {
        qr_err err;
        snprintf(path, sizeof path, "data/index/%s.db%s", base, suffixes[i]);
        QR_CHECK_RC(QR_OK, qr_fs_remove(qr_io_system(), qr_test_path(t, path), &err));
    }
    quire = api_open(t);
    QR_CHECK_INT(0, api_search(quire, "hedgehog"));
    api_start_work(quire);
    while (api_search(quire, "hedgehog") != 1) {
        sched_yield();
    }
    quire_close(quire);
}
