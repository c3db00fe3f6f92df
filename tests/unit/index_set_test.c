/* The open stores, and what a damaged or foreign file is (X5). Files only: on PostgreSQL nothing is opened. */
#include "index/index.h"

#include "base/thread.h"
#include "db/sqlite.h"
#include "index/tokenizer.h"
#include "support/index_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BASE = 1 };

static void open_set(struct index_fixture *f, struct qr_test *t, int open_max)
{
    *f = (struct index_fixture){.options = {.open_max = open_max}};
    snprintf(f->dir, sizeof f->dir, "%s/a/index", t->dir);
    f->options.dir = f->dir;
    index_fixture_reopen(f);
}

/* The path of the base's file; static memory. */
static const char *file_of(struct index_fixture *f, qr_uuid base)
{
    static char path[256];
    char id[QR_UUID_TEXT_SIZE];
    qr_uuid_format(base, id);
    snprintf(path, sizeof path, "%s/%s.db", f->dir, id);
    return path;
}

static void write_file(const char *path, const char *content, size_t size_bytes, off_t at)
{
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    QR_CHECK(fd >= 0 && pwrite(fd, content, size_bytes, at) == (ssize_t)size_bytes);
    close(fd);
}

/* ---- which are open ---- */

QR_TEST(at_most_open_max_stores_are_open_and_the_oldest_is_closed) /* X5 */
{
    struct index_fixture f;
    open_set(&f, t, 3);
    for (unsigned base = 1; base <= 9; base++) {
        index_write(&f, test_id(base), test_id(10), 1, 0, "alpha");
        QR_CHECK_INT(QR_MIN(base, 3), qr_index_open_count(f.set));
    }
    for (unsigned base = 1; base <= 9; base++) {
        QR_CHECK_INT(1, index_hit_count(&f, test_id(base), "alpha"));
    }
    /* 7, 8 and 9 are open; using 7 makes 8 the oldest */
    QR_CHECK_INT(1, index_hit_count(&f, test_id(7), "alpha"));
    index_write(&f, test_id(10), test_id(10), 1, 0, "alpha");
    char log[300];
    snprintf(log, sizeof log, "%s-wal", file_of(&f, test_id(8)));
    QR_CHECK(access(log, F_OK) != 0);
    snprintf(log, sizeof log, "%s-wal", file_of(&f, test_id(7)));
    QR_CHECK(access(log, F_OK) == 0);
    index_fixture_close(&f);
}

QR_TEST_WITH_TIMEOUT(thousands_of_bases_work_under_a_limit_of_open_files, 900) /* X5 */
{
    enum { BASES = 5000, FILES = 1024 };
    const unsigned bases = getenv("QUIRE_TEST_LONG") ? BASES : BASES / 10;
    QR_CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES, FILES}) == 0);
    struct index_fixture f;
    open_set(&f, t, 0);
    for (unsigned base = 0; base < bases; base++) {
        index_write(&f, test_id(base), test_id(base), 1, 0, "alpha");
    }
    for (unsigned base = 0; base < bases; base += 7) {
        QR_CHECK_INT(1, index_chunk_count(&f, test_id(base), test_id(base), 1));
    }
    QR_CHECK(qr_index_open_count(f.set) <= 32);
    index_fixture_close(&f);
}

/* ---- many threads ---- */

enum { THREADS = 6, CONTENDED_BASES = 7, ROUNDS = 60 };

struct worker {
    struct index_fixture *f;
    unsigned number;
    bool drops;
    pthread_t thread;
};

static void work_once(struct worker *worker, struct qr_rand *chance)
{
    struct qr_index_set *set = worker->f->set;
    const qr_uuid base = test_id((unsigned)qr_rand_below(chance, CONTENDED_BASES));
    const qr_uuid item = test_id(100 + worker->number);
    const struct qr_chunk chunk = {.text = QR_STR("alpha")};
    struct qr_index_hit hit;
    size_t count;
    qr_err err;
    switch (qr_rand_below(chance, 6)) {
    case 0:
        QR_CHECK_RC(QR_OK, qr_index_search_text(set, base, QR_STR("alpha"), 1, NULL, NULL, &hit, &count, &err));
        break;
    case 1:
        QR_CHECK_RC(QR_OK, qr_index_sync(set, base, &err));
        break;
    case 2:
        QR_CHECK_RC(QR_OK, qr_index_delete_items(set, base, &item, 1, &err));
        break;
    case 3:
        QR_CHECK_RC(QR_OK, worker->drops ? qr_index_drop(set, base, &err) : QR_OK);
        break;
    default:
        QR_CHECK_RC(QR_OK, qr_index_write_chunks(set, base, item, 1, &chunk, 1, NULL, &err));
        QR_CHECK(worker->drops || index_chunk_count(worker->f, base, item, 1) == 1);
    }
    QR_CHECK(qr_index_open_count(set) <= 2 + THREADS); /* a store that is dropped holds a place for a moment */
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, worker->number);
    for (int round = 0; round < ROUNDS; round++) {
        work_once(worker, &chance.rand);
    }
    return NULL;
}

static void run_workers(struct qr_test *t, bool drops)
{
    struct index_fixture f;
    open_set(&f, t, 2); /* fewer than threads: they wait for each other */
    struct worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = &f, .number = i, .drops = drops};
        QR_CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    index_fixture_close(&f);
}

QR_TEST_WITH_TIMEOUT(many_threads_share_few_open_stores, 300) /* X5 */
{
    run_workers(t, false);
}

QR_TEST_WITH_TIMEOUT(a_store_may_be_dropped_while_others_use_it, 300)
{
    run_workers(t, true);
}

/* A guard that waits while the store is in use. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool guard_runs, may_end;
    struct qr_index_set *set;
};

static qr_rc wait_in_guard(void *arg, qr_err *err QR_UNUSED)
{
    struct meeting *meeting = arg;
    QR_LOCKED(&meeting->lock);
    meeting->guard_runs = true;
    pthread_cond_broadcast(&meeting->changed);
    while (!meeting->may_end) {
        pthread_cond_wait(&meeting->changed, &meeting->lock);
    }
    return QR_OK;
}

static void *write_slowly(void *arg)
{
    struct meeting *meeting = arg;
    const struct qr_chunk chunk = {.text = QR_STR("alpha")};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_write_chunks(meeting->set, test_id(BASE), test_id(10), 1, &chunk, 1,
                                             &(struct qr_index_guard){wait_in_guard, meeting}, &err));
    return NULL;
}

/* Returns when the writer is in its guard. */
static pthread_t begin_slow_write(struct meeting *meeting, struct qr_index_set *set)
{
    pthread_t slow;
    *meeting = (struct meeting){.set = set};
    pthread_mutex_init(&meeting->lock, NULL);
    pthread_cond_init(&meeting->changed, NULL);
    QR_CHECK(pthread_create(&slow, NULL, write_slowly, meeting) == 0);
    QR_LOCKED(&meeting->lock);
    while (!meeting->guard_runs) {
        pthread_cond_wait(&meeting->changed, &meeting->lock);
    }
    return slow;
}

static void end_slow_write(struct meeting *meeting, pthread_t slow)
{
    {
        QR_LOCKED(&meeting->lock);
        meeting->may_end = true;
        pthread_cond_broadcast(&meeting->changed);
    }
    pthread_join(slow, NULL);
}

QR_TEST(a_store_in_use_is_not_closed_and_does_not_stop_the_others) /* X5 */
{
    struct index_fixture f;
    struct meeting meeting;
    open_set(&f, t, 2);
    const pthread_t slow = begin_slow_write(&meeting, f.set);
    for (unsigned base = 2; base < 8; base++) {
        index_write(&f, test_id(base), test_id(10), 1, 0, "beta");
    }
    QR_CHECK_INT(0, index_chunk_count(&f, test_id(BASE), test_id(10), 1));
    end_slow_write(&meeting, slow);
    QR_CHECK_INT(1, index_chunk_count(&f, test_id(BASE), test_id(10), 1));
    index_fixture_close(&f);
}

QR_TEST(a_search_finds_what_was_synced_and_waits_for_no_writer) /* X6 */
{
    struct index_fixture f;
    struct meeting meeting;
    open_set(&f, t, 2);
    index_write(&f, test_id(BASE), test_id(11), 1, 0, "alpha");
    index_sync(&f, test_id(BASE));
    index_write(&f, test_id(BASE), test_id(12), 1, 0, "beta"); /* that nobody may show yet */
    const pthread_t slow = begin_slow_write(&meeting, f.set);
    QR_CHECK_INT(1, index_hit_count(&f, test_id(BASE), "alpha"));
    end_slow_write(&meeting, slow);
    index_sync(&f, test_id(BASE));
    QR_CHECK_INT(2, index_hit_count(&f, test_id(BASE), "alpha"));
    QR_CHECK_INT(1, index_hit_count(&f, test_id(BASE), "beta"));
    index_fixture_close(&f);
}

/* ---- damage ---- */

static void check_rebuilt(struct index_fixture *f, qr_code expected)
{
    qr_err err;
    char stamp[QR_INDEX_STAMP_SIZE];
    const struct qr_chunk chunk = {.text = QR_STR("alpha")};
    QR_CHECK_CODE(expected, qr_index_stamp(f->set, test_id(BASE), stamp, &err));
    QR_CHECK_CODE(expected, qr_index_write_chunks(f->set, test_id(BASE), test_id(10), 1, &chunk, 1, NULL, &err));
    QR_CHECK_INT(0, qr_index_open_count(f->set));
    QR_CHECK_RC(QR_OK, qr_index_drop(f->set, test_id(BASE), &err));
    QR_CHECK_RC(QR_OK, qr_index_stamp(f->set, test_id(BASE), stamp, &err));
    QR_CHECK_TEXT("", stamp);
}

QR_TEST(a_file_that_is_no_database_is_corrupt_until_it_is_dropped)
{
    struct index_fixture f;
    open_set(&f, t, 2);
    write_file(file_of(&f, test_id(BASE)), "no database", 11, 0);
    check_rebuilt(&f, QR_CODE_DATA_CORRUPT);
    index_fixture_close(&f);
}

QR_TEST(a_database_of_another_program_is_foreign_until_it_is_dropped)
{
    struct index_fixture f;
    open_set(&f, t, 2);
    sqlite3 *foreign;
    QR_CHECK(sqlite3_open(file_of(&f, test_id(BASE)), &foreign) == SQLITE_OK);
    QR_CHECK(sqlite3_exec(foreign, "CREATE TABLE t (x)", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(foreign);
    check_rebuilt(&f, QR_CODE_DATA_FOREIGN);
    index_fixture_close(&f);
}

QR_TEST(a_log_without_its_database_is_corrupt_until_it_is_dropped)
{
    struct index_fixture f;
    open_set(&f, t, 2);
    char log[300];
    snprintf(log, sizeof log, "%s-wal", file_of(&f, test_id(BASE)));
    write_file(log, "left behind", 11, 0);
    check_rebuilt(&f, QR_CODE_DATA_CORRUPT);
    index_fixture_close(&f);
}

QR_TEST(damage_inside_a_store_is_told_by_its_code)
{
    struct index_fixture f;
    open_set(&f, t, 2);
    qr_err err;
    for (unsigned item = 0; item < 300; item++) {
        index_write(&f, test_id(BASE), test_id(item), 1, 0, "alpha beta gamma delta epsilon zeta eta theta iota");
    }
    index_fixture_reopen(&f);
    char junk[4096];
    memset(junk, 0x5a, sizeof junk);
    for (off_t page = 2; page < 12; page++) {
        write_file(file_of(&f, test_id(BASE)), junk, sizeof junk, page * 4096);
    }
    struct qr_index_hit hits[10];
    size_t count;
    QR_CHECK_CODE(QR_CODE_DATA_CORRUPT,
                  qr_index_search_text(f.set, test_id(BASE), QR_STR("alpha"), 10, NULL, NULL, hits, &count, &err));
    QR_CHECK_RC(QR_OK, qr_index_drop(f.set, test_id(BASE), &err));
    QR_CHECK_INT(0, index_hit_count(&f, test_id(BASE), "alpha"));
    index_fixture_close(&f);
}

/* ---- the text index ---- */

static int64_t ask_file(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    QR_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    QR_CHECK(qr_sqlite_register_tokenizer(db, &qr_index_tokenizer) == SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        QR_FAIL("%s: %s", sql, sqlite3_errmsg(db));
    }
    const int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        QR_FAIL("%s: %s", sql, sqlite3_errmsg(db));
    }
    const int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

/* FTS5 is given words that were made before, and compares them with those of the text itself. */
QR_TEST(writing_deleting_and_purging_leave_the_text_index_equal_to_the_rows)
{
    static const char *const TEXTS[] = {
        "",
        "The well-known houses of the city were not the ones that they had seen in the year before.",
        "Die Straße und das Haus sind nicht so schön wie die der anderen, und das ist auch gut.",
        "C++ and .NET a|b x~y \2en\2 https://www.example.org/a/b?c=d me@example.org don't naïve Naïveté",
        "東京都の天気は晴れです。 พยากรณ์อากาศ Привет, мир",
    };
    struct index_fixture f;
    open_set(&f, t, 2);
    qr_err err;
    const qr_uuid base = test_id(BASE);
    struct qr_rand_seeded chance;
    qr_rand_seeded_init(&chance, 11);
    struct qr_rand *rand = &chance.rand;
    for (int step = 0; step < 1500; step++) {
        const qr_uuid item = test_id((unsigned)qr_rand_below(rand, 40));
        const int64_t generation = 1 + (int64_t)qr_rand_below(rand, 3);
        char text[200];
        snprintf(text, sizeof text, "7%02llu 7%02llu %s", (unsigned long long)qr_rand_below(rand, 50),
                 (unsigned long long)qr_rand_below(rand, 50), TEXTS[qr_rand_below(rand, QR_COUNT(TEXTS))]);
        switch (qr_rand_below(rand, 8)) {
        case 0:
            QR_CHECK_RC(QR_OK, qr_index_delete_items(f.set, base, (qr_uuid[]){item, test_id(7)}, 2, &err));
            break;
        case 1:
            QR_CHECK_RC(QR_OK, qr_index_purge_item(f.set, base, item, generation, 0, &err));
            break;
        case 2:
            index_sync(&f, base);
            break;
        default:
            index_write(&f, base, item, generation, (int64_t)qr_rand_below(rand, 4), text);
        }
    }
    index_sync(&f, base); /* X6 */
    index_sync(&f, base);
    const size_t found = index_hit_count(&f, base, "701");
    index_fixture_close(&f);
    const char *path = file_of(&f, base);
    ask_file(path, "INSERT INTO chunk_fts (chunk_fts, rank) VALUES ('integrity-check', 1)");
    QR_CHECK_INT((int64_t)found, ask_file(path, "SELECT count(*) FROM chunk_row WHERE text || ' ' LIKE '%701 %'"));
    QR_CHECK(found > 0);
    QR_CHECK_INT(ask_file(path, "SELECT count(*) FROM chunk_row"),
                 ask_file(path, "SELECT count(*) FROM chunk_fts_docsize"));
    /* and nothing is left of what is gone */
    index_fixture_reopen(&f);
    qr_uuid all[40];
    for (unsigned i = 0; i < 40; i++) {
        all[i] = test_id(i);
    }
    QR_CHECK_RC(QR_OK, qr_index_delete_items(f.set, base, all, 40, &err));
    index_fixture_close(&f);
    ask_file(path, "INSERT INTO chunk_fts (chunk_fts, rank) VALUES ('integrity-check', 1)");
    QR_CHECK_INT(0, ask_file(path, "SELECT count(*) FROM chunk_fts_docsize"));
}
