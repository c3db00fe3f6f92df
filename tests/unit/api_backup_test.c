/* Backups of a folder in use: each is opened elsewhere, is whole, and finds what it holds. */
#include "api/instance.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "support/api_fixture.h"
#include "support/child.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* Larger than what is kept in a row: it becomes a file. */
enum { LARGE_BYTES = 300 << 10 };

static const char *body_for(const char *path)
{
    static char body[4096];
    snprintf(body, sizeof body, "{\"path\":\"%s\"}", path);
    return body;
}

static json_t *back_up(struct quire *quire, const char *path)
{
    return api_call(quire, "POST", "/api/v1/backup", body_for(path), 201);
}

static struct quire *open_at(const char *path)
{
    const struct quire_options options = {.data_dir = path, .program = "the test"};
    struct quire_error error;
    struct quire *quire;
    if (quire_open(&options, &quire, &error) != 0) {
        QR_FAIL("%s (%s)", error.message, error.code);
    }
    return quire;
}

static void add_large_note(struct quire *quire, const char *name, char ret_id[static API_ID_SIZE])
{
    char *content = qr_alloc(LARGE_BYTES + 1);
    for (size_t i = 0; i < LARGE_BYTES; i++) {
        content[i] = i % 60 == 59 ? '.' : i % 6 == 5 ? ' ' : (char)('a' + i / 6 % 26);
    }
    memcpy(content, "medlar ", 7);
    content[LARGE_BYTES] = '\0';
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    qr_buf_printf(&body, "{\"items\":[{\"type\":\"note\",\"name\":\"%s\",\"content\":\"%s\"}]}", name, content);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_buf_check(&body, &err));
    QR_JSON *answer = api_call(quire, "POST", API_ITEMS, body.data, 202);
    api_keep_id(json_array_get(json_object_get(answer, "items"), 0), ret_id);
    qr_free(content);
}

static size_t count_files(const char *path, const char *suffix)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const size_t len = strlen(entry->d_name), suffix_len = strlen(suffix);
        count += len >= suffix_len && strcmp(entry->d_name + len - suffix_len, suffix) == 0;
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* ---- what is in it ---- */

QR_TEST(a_backup_is_whole_and_finds_what_it_holds) /* BACKUP-1 */
{
    struct quire *quire = api_open_base(t);
    const char *target = qr_test_path(t, "copy");
    char small[API_ID_SIZE], large[API_ID_SIZE];
    api_add_note(quire, "a", "quince", small);
    add_large_note(quire, "b", large);
    api_start_work(quire);
    json_decref(api_wait_for(quire, small, "completed"));
    json_decref(api_wait_for(quire, large, "completed"));
    QR_JSON *answer = back_up(quire, target);
    QR_CHECK_INT(1, api_number(answer, "index_stores"));
    QR_CHECK(api_number(answer, "artifacts") >= 1);
    QR_CHECK_INT(0, api_number(answer, "artifacts_missing"));
    QR_CHECK_INT(0, api_number(answer, "index_stores_left_out"));
    quire_close(quire);
    QR_CHECK_INT(1, count_files(target, ".db"));
    QR_CHECK_INT(0, count_files(target, "-wal"));
    QR_CHECK_INT(0, count_files(target, ".copy"));
    struct quire *copy = open_at(target);
    api_check(copy, "POST", "/api/v1/check", NULL, 200, "\"ok\":true");
    QR_CHECK_INT(1, api_search(copy, "quince"));
    QR_CHECK_INT(1, api_search(copy, "medlar"));
    json_decref(api_call(copy, "GET", api_item_path(large, "/content"), NULL, 200));
    quire_close(copy);
}

struct adder {
    struct quire *quire;
    _Atomic int added;
    _Atomic bool is_over;
};

static void *add_until_over(void *arg)
{
    struct adder *adder = arg;
    for (int i = 0; !atomic_load(&adder->is_over); i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"items\":[{\"type\":\"note\",\"name\":\"n%d\",\"content\":\"quince number %d of many\"}]}", i, i);
        json_decref(api_call(adder->quire, "POST", API_ITEMS, body, 202));
        atomic_store(&adder->added, i + 1);
    }
    return NULL;
}

static size_t count_jobs(struct quire *quire, const char *state)
{
    char path[60];
    snprintf(path, sizeof path, "/api/v1/jobs?limit=1&state=%s", state);
    QR_JSON *jobs = api_call(quire, "GET", path, NULL, 200);
    return json_array_size(json_object_get(jobs, "data"));
}

/* Nothing that is open in it is lost: it goes on where it is opened. */
static void check_copy(const char *target, int added_before)
{
    struct quire *copy = open_at(target);
    api_check(copy, "POST", "/api/v1/check", NULL, 200, "\"ok\":true");
    api_start_work(copy);
    while (count_jobs(copy, "queued") + count_jobs(copy, "running") > 0) {
        sched_yield();
    }
    char path[100];
    snprintf(path, sizeof path, API_ITEMS "?q=n%d&limit=1", added_before - 1);
    QR_JSON *last = api_call(copy, "GET", path, NULL, 200);
    QR_CHECK_INT(1, json_array_size(json_object_get(last, "data"))); /* answered before the backup began */
    QR_CHECK(api_search(copy, "quince") > 0);
    quire_stop_work(copy, 5000);
    api_check(copy, "POST", "/api/v1/check", NULL, 200, "\"ok\":true");
    quire_close(copy);
}

QR_TEST_WITH_TIMEOUT(backups_beside_work_are_as_a_crash_would_have_left_it, 300) /* BACKUP-1, BACKUP-2 */
{
    enum { BACKUPS = 3 };
    struct quire *quire = api_open_base(t);
    struct adder adder = {.quire = quire};
    pthread_t thread;
    int added[BACKUPS];
    api_start_work(quire);
    QR_CHECK(pthread_create(&thread, NULL, add_until_over, &adder) == 0);
    for (int i = 0; i < BACKUPS; i++) {
        char name[20];
        while (atomic_load(&adder.added) < 30 * (i + 1)) {
            sched_yield();
        }
        added[i] = atomic_load(&adder.added);
        snprintf(name, sizeof name, "copy%d", i);
        json_decref(back_up(quire, qr_test_path(t, name)));
    }
    atomic_store(&adder.is_over, true);
    pthread_join(thread, NULL);
    quire_close(quire);
    for (int i = 0; i < BACKUPS; i++) {
        char name[20];
        snprintf(name, sizeof name, "copy%d", i);
        check_copy(qr_test_path(t, name), added[i]);
    }
}

#ifdef QUIRE_FAILPOINTS
/* ---- what changes meanwhile ---- */

struct asked {
    struct quire *quire;
    const char *target;
};

static void *back_up_beside(void *arg)
{
    const struct asked *asked = arg;
    json_decref(back_up(asked->quire, asked->target));
    return NULL;
}

static size_t count_artifacts(struct quire *quire)
{
    size_t count = 0;
    for (unsigned folder = 0; folder < 256; folder++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%02x", quire->artifact_dir, folder);
        const size_t entries = count_files(path, "");
        count += entries > 2 ? entries - 2 : 0; /* "." and ".." */
    }
    return count;
}

/* The database is copied, its artifacts are not, and the item goes. */
QR_TEST_WITH_TIMEOUT(what_is_deleted_during_a_backup_is_in_it, 120) /* BACKUP-2, A4 */
{
    struct quire *quire = api_open_base(t);
    struct asked asked = {quire, qr_test_path(t, "copy")};
    char id[API_ID_SIZE], body[100];
    pthread_t thread;
    qr_err err;
    add_large_note(quire, "b", id);
    api_start_work(quire);
    json_decref(api_wait_for(quire, id, "completed"));
    QR_CHECK(count_artifacts(quire) > 0);
    QR_CHECK_RC(QR_OK, qr_failpoints_set("backup.database_copied=sleep(3000)", &err));
    QR_CHECK(pthread_create(&thread, NULL, back_up_beside, &asked) == 0);
    while (qr_failpoint_hits("backup.database_copied") == 0) {
        sched_yield();
    }
    snprintf(body, sizeof body, "{\"ids\":[\"%s\"]}", id);
    api_check(quire, "POST", API_ITEMS "/delete", body, 202, "");
    for (int status = 0; status != 404;) {
        struct quire_response response;
        quire_call(quire, "GET", api_item_path(id, ""), NULL, &response);
        status = response.status;
        quire_response_done(&response);
    }
    pthread_join(thread, NULL);
    QR_CHECK_RC(QR_OK, qr_failpoints_set(NULL, &err));
    quire_close(quire);
    struct quire *copy = open_at(asked.target);
    api_check(copy, "POST", "/api/v1/check", NULL, 200, "\"ok\":true");
    QR_CHECK_INT(1, api_search(copy, "medlar"));
    json_decref(api_call(copy, "GET", api_item_path(id, "/content"), NULL, 200));
    quire_close(copy);
}

/* Whether the item was there before the moment of the copy (B2). */
static bool add_after_the_stores(struct qr_test *t, struct quire *quire, int sleep_ms, const char *name)
{
    char plan[60], database[60], id[API_ID_SIZE];
    struct asked asked = {quire, qr_test_path(t, name)};
    pthread_t thread;
    qr_err err;
    snprintf(plan, sizeof plan, "backup.stores_copied=sleep(%d)", sleep_ms);
    snprintf(database, sizeof database, "%s.partial/quire.db.copy", name);
    QR_CHECK_RC(QR_OK, qr_failpoints_set(plan, &err));
    QR_CHECK(pthread_create(&thread, NULL, back_up_beside, &asked) == 0);
    while (qr_failpoint_hits("backup.stores_copied") == 0) {
        sched_yield();
    }
    api_add_note(quire, name, "damson", id);
    json_decref(api_wait_for(quire, id, "completed"));
    const bool is_before = access(qr_test_path(t, database), F_OK) != 0 && access(asked.target, F_OK) != 0;
    pthread_join(thread, NULL);
    QR_CHECK_RC(QR_OK, qr_failpoints_set(NULL, &err));
    return is_before;
}

QR_TEST_WITH_TIMEOUT(what_went_live_after_its_store_was_copied_is_in_the_backup, 300) /* BACKUP-1 */
{
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE], name[20];
    api_add_note(quire, "a", "quince", id);
    api_start_work(quire);
    json_decref(api_wait_for(quire, id, "completed"));
    int round = 0;
    do { /* on a slow machine the item is late; then once more, with more time */
        round++;
        snprintf(name, sizeof name, "copy%d", round);
    } while (!add_after_the_stores(t, quire, 500 << round, name));
    quire_close(quire);
    struct quire *copy = open_at(qr_test_path(t, name));
    api_check(copy, "POST", "/api/v1/check", NULL, 200, "\"ok\":true");
    QR_CHECK_INT(round, api_search(copy, "damson"));
    quire_close(copy);
}

/* ---- one that does not end ---- */

struct doomed {
    struct qr_test *t;
    const char *plan;
};

static void back_up_and_die(void *arg)
{
    const struct doomed *doomed = arg;
    qr_err err;
    struct quire *quire = api_open(doomed->t);
    QR_CHECK_RC(QR_OK, qr_failpoints_set(doomed->plan, &err));
    json_decref(back_up(quire, qr_test_path(doomed->t, "copy")));
}

QR_TEST(a_backup_that_was_killed_has_not_the_name_of_one) /* BACKUP-3 */
{
    static const char *const plans[] = {"backup.stores_copied=crash", "backup.database_copied=crash",
                                        "backup.artifacts_copied=crash", "backup.before_name=crash"};
    struct quire *quire = api_open_base(t);
    char id[API_ID_SIZE];
    add_large_note(quire, "b", id);
    quire_close(quire);
    for (size_t i = 0; i < QR_COUNT(plans); i++) {
        struct child child;
        char removal[4200];
        child_start(&child, back_up_and_die, &(struct doomed){t, plans[i]});
        QR_CHECK(child_wait(&child) != 0);
        QR_CHECK(access(qr_test_path(t, "copy"), F_OK) != 0);
        QR_CHECK(access(qr_test_path(t, "copy.partial"), F_OK) == 0);
        quire = api_open(t);
        api_check(quire, "POST", "/api/v1/backup", body_for(qr_test_path(t, "copy")), 409, "copy.partial");
        api_check(quire, "POST", "/api/v1/check", NULL, 200, "\"ok\":true");
        quire_close(quire);
        snprintf(removal, sizeof removal, "rm -r '%s'", qr_test_path(t, "copy.partial"));
        QR_CHECK_INT(0, system(removal));
    }
}

QR_TEST(a_backup_that_failed_leaves_nothing) /* BACKUP-3 */
{
    struct quire *quire = api_open_base(t);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_failpoints_set("backup.before_name=error", &err));
    api_check(quire, "POST", "/api/v1/backup", body_for(qr_test_path(t, "copy")), 503, "error");
    QR_CHECK_RC(QR_OK, qr_failpoints_set(NULL, &err));
    QR_CHECK(access(qr_test_path(t, "copy"), F_OK) != 0);
    QR_CHECK(access(qr_test_path(t, "copy.partial"), F_OK) != 0);
    json_decref(back_up(quire, qr_test_path(t, "copy")));
    quire_close(quire);
}
#endif

/* ---- where ---- */

QR_TEST(a_backup_replaces_nothing)
{
    struct quire *quire = api_open_base(t);
    const char *target = qr_test_path(t, "copy");
    json_decref(back_up(quire, target));
    api_check(quire, "POST", "/api/v1/backup", body_for(target), 409, "already_exists");
    api_check(quire, "POST", "/api/v1/backup", "{\"path\":\"relative\"}", 422, "absolute");
    api_check(quire, "POST", "/api/v1/backup", body_for(qr_test_path(t, "other/")), 422, "absolute");
    api_check(quire, "POST", "/api/v1/backup", NULL, 201, "/data/backups/"); /* by its time */
    quire_close(quire);
}

QR_TEST(a_backup_is_not_made_among_what_it_copies) /* BACKUP-3 */
{
    struct quire *quire = api_open_base(t);
    char long_name[NAME_MAX + 2];
    static const char *const inside[] = {"data/x",         "data/index/x",      "data/artifacts/zz",
                                         "data/no/such/x", "data/backups/no/x", "link/x"};
    QR_CHECK_INT(0, symlink(qr_test_path(t, "data/index"), qr_test_path(t, "link")));
    for (size_t i = 0; i < QR_COUNT(inside); i++) {
        api_check(quire, "POST", "/api/v1/backup", body_for(qr_test_path(t, inside[i])), 422, "in the data folder");
        QR_CHECK(access(qr_test_path(t, inside[i]), F_OK) != 0);
    }
    json_decref(back_up(quire, qr_test_path(t, "data-copy"))); /* beside it */
    api_check(quire, "POST", "/api/v1/backup", NULL, 201, "/data/backups/");
    json_decref(back_up(quire, qr_test_path(t, "data/backups/mine")));
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    api_check(quire, "POST", "/api/v1/backup", body_for(qr_test_path(t, long_name)), 422, "too long");
    quire_close(quire);
}
