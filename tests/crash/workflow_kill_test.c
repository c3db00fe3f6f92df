/* The process that does all of the work dies at every failpoint, on both databases. It adds notes, a file and a folder, updates,
 * disables, deletes, retries, refreshes, reindexes, restores, cancels and runs; an oracle in the parent keeps what was
 * acknowledged. The next process drains what it finds, and then: every acknowledged request has had its effect (I5), every
 * item is at rest or gone, `check` finds nothing, the index holds exactly what is shown (I3, I7), and no more texts were
 * embedded twice than were under way at the crash (I8). */
#include "api/wire.h"
#include "base/failpoint.h"
#include "base/hash.h"
#include "base/proc.h"
#include "embed/provider.h"
#include "support/db_fixture.h"
#include "support/workflow_ledger.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    EXIT_CRASHED = 99, /* of a failpoint's `crash` */
    FAILPOINTS_MAX = 512,
    CHUNKS = 2,
    BIG_CHUNKS = 320,         /* a file of its own */
    BIG_CHUNKS_POSTGRES = 90, /* which it has none of; but chunks in a job of their own */
    AGAIN = 3,                /* each so many rounds the next process dies too */
    RECOVERY_WRITES_MAX = 15,
};

#define SETTINGS "{\"embedding\":{\"provider\":\"hash\"},\"chunking\":{\"size_tokens\":2000}}"

/* ---- what was paid for, counted in memory that outlives the process ---- */

enum { TEXTS_MAX = 1 << 16 };
struct shared {
    atomic_uint_least64_t texts[TEXTS_MAX]; /* hashes; a set */
    atomic_int calls, repeated_calls;       /* repeated: with a text that was in a call before */
    uint64_t hits[FAILPOINTS_MAX];          /* of a life that nothing ended */
};
static struct shared *shared;

static qr_rc (*real_embed)(struct qr_provider *provider, const struct qr_embed_request *request,
                           struct qr_embed_answer *ret_answer, qr_err *err);

/* False when it is in the set already. */
static bool put_text(qr_str text)
{
    unsigned char hash[QR_HASH_BYTES];
    uint_least64_t value;
    qr_hash_128(text, hash);
    memcpy(&value, hash, sizeof value);
    value |= 1;
    for (size_t i = 0; i < TEXTS_MAX; i++) {
        uint_least64_t old = 0;
        if (atomic_compare_exchange_strong(&shared->texts[(value + i) % TEXTS_MAX], &old, value)) {
            return true;
        }
        if (old == value) {
            return false;
        }
    }
    workflow_child_fail("more texts than the test has room for");
}

static qr_rc counting_embed(struct qr_provider *provider, const struct qr_embed_request *request,
                            struct qr_embed_answer *ret_answer, qr_err *err)
{
    bool is_repeated = false;
    for (size_t i = 0; i < request->count; i++) {
        is_repeated = !put_text(request->texts[i]) || is_repeated;
    }
    atomic_fetch_add(&shared->calls, 1);
    atomic_fetch_add(&shared->repeated_calls, is_repeated);
    return real_embed(provider, request, ret_answer, err);
}

qr_rc __real_qr_provider_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                                struct qr_endpoints *endpoints, qr_err *err);
qr_rc __wrap_qr_provider_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                                struct qr_endpoints *endpoints, qr_err *err);
qr_rc __wrap_qr_provider_create(struct qr_provider **ret_provider, const struct qr_embedding_settings *settings,
                                struct qr_endpoints *endpoints, qr_err *err)
{
    QR_TRY(__real_qr_provider_create(ret_provider, settings, endpoints, err));
    if (*ret_provider) {
        real_embed = (*ret_provider)->embed; /* the same function each time */
        (*ret_provider)->embed = counting_embed;
    }
    return QR_OK;
}

/* Calls that may be under way when the process dies: as many as work at a time, as api/wire.c has it. */
static int calls_at_a_time(void)
{
    return 8;
}

/* ---- one life ---- */

struct life {
    char folder[200], sources[200];
    const char *url;       /* NULL = SQLite */
    const char *failpoint; /* NULL = none */
    struct workflow_ledger ledger;
};

static void start_work(struct quire *quire)
{
    qr_err err = {0};
    workflow_child_require(qr_instance_start_work(quire, &err), &err);
}

enum thing {
    DELETED_NOTE,
    UPDATED_NOTE,
    DISABLED_NOTE,
    BIG_NOTE,
    ADDED_NOTES,
    CHANGED_FILE = ADDED_NOTES,
    REMOVED_FILE,
    DEEP_FILE,
    NEW_FILE,
    LATE_FILE, /* not in the folder; not there when it is added */
    CANCELLED_NOTE,
    RUN_NOTE,
};

struct writer {
    struct quire *quire;
    struct workflow_ledger *ledger;
    const struct life *life;
    char folder_id[QR_UUID_TEXT_SIZE];
};

static json_t *post(struct writer *writer, int status, const char *path, json_t *body)
{
    return workflow_call(writer->quire, status, "POST", workflow_path(writer->ledger, "%s", path), body);
}

static void tell(struct writer *writer, enum thing thing, enum workflow_event_kind kind, int version, const char *id)
{
    workflow_tell(writer->ledger, (int)thing, kind, version, id);
}

static const char *id_of(const struct writer *writer, enum thing thing)
{
    return writer->ledger->things[thing].id;
}

/* The id of the first item of an answer; in `id`. */
static const char *added_id(const json_t *answer, size_t index, char id[static QR_UUID_TEXT_SIZE])
{
    const json_t *item = json_array_get(json_object_get(answer, "items"), index);
    snprintf(id, QR_UUID_TEXT_SIZE, "%s", json_string_value(json_object_get(item, "id")));
    return id;
}

static const char *file_path(const struct writer *writer, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s%s", writer->life->sources, writer->ledger->base, name);
    return path;
}

static void write_file(struct writer *writer, const char *name, enum thing thing, int version)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_err err = {0};
    workflow_text(writer->ledger, (int)thing, version, CHUNKS, &text);
    tell(writer, thing, WORKFLOW_BEGUN, version, NULL);
    workflow_child_require(qr_fs_replace(qr_io_system(), file_path(writer, name), qr_buf_str(&text), 0644, &err), &err);
}

/* ---- what it asks for, in this order ---- */

static void add_notes(struct writer *writer)
{
    const int big = writer->life->url ? BIG_CHUNKS_POSTGRES : BIG_CHUNKS;
    char id[QR_UUID_TEXT_SIZE];
    json_t *items = json_array();
    for (int i = 0; i < ADDED_NOTES; i++) {
        tell(writer, (enum thing)i, WORKFLOW_BEGUN, 1, NULL);
        json_array_append_new(items, workflow_note(writer->ledger, i, "note", 1, i == BIG_NOTE ? big : CHUNKS));
    }
    QR_JSON *answer = post(writer, 202, "/items", json_pack("{s:o}", "items", items));
    for (int i = 0; i < ADDED_NOTES; i++) {
        tell(writer, (enum thing)i, WORKFLOW_DONE, 1, added_id(answer, (size_t)i, id));
    }
}

static void add_folder(struct writer *writer)
{
    mkdir(file_path(writer, ""), 0755);
    mkdir(file_path(writer, "/deep"), 0755);
    write_file(writer, "/changed.md", CHANGED_FILE, 1);
    write_file(writer, "/removed.md", REMOVED_FILE, 1);
    write_file(writer, "/deep/deep.md", DEEP_FILE, 1);
    QR_JSON *answer = post(writer, 202, "/items",
                           json_pack("{s:[{s:s, s:s}]}", "items", "type", "directory", "path", file_path(writer, "")));
    added_id(answer, 0, writer->folder_id);
    tell(writer, CHANGED_FILE, WORKFLOW_DONE, 1, NULL);
    tell(writer, REMOVED_FILE, WORKFLOW_DONE, 1, NULL);
    tell(writer, DEEP_FILE, WORKFLOW_DONE, 1, NULL);
}

static void add_file_that_comes_late(struct writer *writer)
{
    char id[QR_UUID_TEXT_SIZE];
    QR_JSON *answer =
        post(writer, 202, "/items",
             json_pack("{s:[{s:s, s:s}]}", "items", "type", "file", "path", file_path(writer, "-late.md")));
    workflow_drain(writer->quire);
    write_file(writer, "-late.md", LATE_FILE, 1);
    json_decref(post(writer, 202, "/items/retry", json_pack("{s:[s]}", "ids", added_id(answer, 0, id))));
    tell(writer, LATE_FILE, WORKFLOW_DONE, 1, NULL);
}

static void change_notes(struct writer *writer)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    workflow_text(writer->ledger, UPDATED_NOTE, 2, CHUNKS + 1, &text);
    tell(writer, UPDATED_NOTE, WORKFLOW_BEGUN, 2, NULL);
    json_decref(workflow_call(writer->quire, 202, "PUT",
                              workflow_path(writer->ledger, "/items/%s/content", id_of(writer, UPDATED_NOTE)),
                              json_pack("{s:s}", "content", text.data)));
    tell(writer, UPDATED_NOTE, WORKFLOW_DONE, 2, NULL);
    tell(writer, DISABLED_NOTE, WORKFLOW_HIDING, 0, NULL);
    json_decref(workflow_call(writer->quire, 200, "PATCH",
                              workflow_path(writer->ledger, "/items/%s", id_of(writer, DISABLED_NOTE)),
                              json_pack("{s:b}", "enabled", 0)));
    tell(writer, DISABLED_NOTE, WORKFLOW_HIDDEN, 0, NULL);
}

static void delete_notes(struct writer *writer)
{
    tell(writer, DELETED_NOTE, WORKFLOW_DELETING, 0, NULL);
    tell(writer, BIG_NOTE, WORKFLOW_DELETING, 0, NULL);
    json_decref(post(writer, 202, "/items/delete",
                     json_pack("{s:[s, s]}", "ids", id_of(writer, DELETED_NOTE), id_of(writer, BIG_NOTE))));
    tell(writer, DELETED_NOTE, WORKFLOW_HIDDEN, 0, NULL);
    tell(writer, BIG_NOTE, WORKFLOW_HIDDEN, 0, NULL);
}

static void refresh_folder(struct writer *writer)
{
    tell(writer, REMOVED_FILE, WORKFLOW_HIDING, 0, NULL);
    unlink(file_path(writer, "/removed.md"));
    write_file(writer, "/changed.md", CHANGED_FILE, 2);
    write_file(writer, "/new.md", NEW_FILE, 1);
    json_decref(post(writer, 202, "/items/refresh", json_pack("{s:[s]}", "ids", writer->folder_id)));
    tell(writer, REMOVED_FILE, WORKFLOW_HIDDEN, 0, NULL);
    tell(writer, CHANGED_FILE, WORKFLOW_DONE, 2, NULL);
    tell(writer, NEW_FILE, WORKFLOW_DONE, 1, NULL);
}

static void reindex(struct writer *writer)
{
    json_decref(post(writer, 202, "/items/reindex",
                     json_pack("{s:[s, s]}", "ids", writer->folder_id, id_of(writer, UPDATED_NOTE))));
}

static qr_uuid base_id(struct writer *writer)
{
    qr_uuid id = {0};
    QR_JSON *base = workflow_call(writer->quire, 200, "GET", workflow_path(writer->ledger, "%s", ""), NULL);
    qr_uuid_parse(qr_str_of(json_string_value(json_object_get(base, "id"))), &id);
    return id;
}

/* Its index is gone, and it says so. */
static void restore_base(struct writer *writer)
{
    const qr_uuid id = base_id(writer);
    qr_err err = {0};
    workflow_child_require(
        qr_workflow_fail_base(&writer->quire->workflow, id, "data_corrupt", "the test says so", &err), &err);
    workflow_child_require(qr_index_drop(writer->quire->index, id, &err), &err);
    json_decref(post(writer, 202, "/restore", NULL));
}

/* While nobody works, so that there is something to cancel. */
static void cancel_job(struct writer *writer)
{
    char id[QR_UUID_TEXT_SIZE], path[100];
    QR_JSON *answer =
        post(writer, 202, "/items",
             json_pack("{s:[o]}", "items", workflow_note(writer->ledger, CANCELLED_NOTE, "cancelled", 1, CHUNKS)));
    tell(writer, CANCELLED_NOTE, WORKFLOW_BEGUN, 1, added_id(answer, 0, id));
    snprintf(path, sizeof path, "/api/v1/jobs?item=%s", id);
    QR_JSON *jobs = workflow_call(writer->quire, 200, "GET", path, NULL);
    const char *job_id = NULL;
    json_unpack(jobs, "{s:[{s:s}]}", "data", "id", &job_id);
    snprintf(path, sizeof path, "/api/v1/jobs/%s/cancel", job_id);
    tell(writer, CANCELLED_NOTE, WORKFLOW_HIDING, 0, NULL);
    json_decref(workflow_call(writer->quire, 200, "POST", path, NULL));
    tell(writer, CANCELLED_NOTE, WORKFLOW_HIDDEN, 0, NULL);
}

/* The answer's id; in `id`. */
static const char *process(struct writer *writer, char id[static QR_UUID_TEXT_SIZE])
{
    char path[100];
    snprintf(path, sizeof path, "/api/v1/knowledge-spaces/%s/process", writer->ledger->base);
    QR_JSON *run = workflow_call(writer->quire, 202, "POST", path,
                                 json_pack("{s:b, s:b, s:b}", "process_new_documents", 1, "chunk_processed_documents",
                                           1, "index_new_chunks", 1));
    snprintf(id, QR_UUID_TEXT_SIZE, "%s", json_string_value(json_object_get(run, "id")));
    return id;
}

/* Cancelled while nobody works; the next one is let run. */
static void run_twice(struct writer *writer)
{
    char id[QR_UUID_TEXT_SIZE], path[100];
    tell(writer, RUN_NOTE, WORKFLOW_BEGUN, 1, NULL);
    json_decref(post(writer, 202, "/items",
                     json_pack("{s:[o], s:s}", "items", workflow_note(writer->ledger, RUN_NOTE, "run", 1, CHUNKS),
                               "process", "manual")));
    snprintf(path, sizeof path, "/api/v1/runs/%s/cancel", process(writer, id));
    json_decref(workflow_call(writer->quire, 200, "POST", path, NULL));
    process(writer, id);
    tell(writer, RUN_NOTE, WORKFLOW_DONE, 1, NULL);
}

static void make_base(struct quire *quire, const char *name)
{
    json_decref(workflow_call(quire, 201, "POST", "/api/v1/bases",
                              json_pack("{s:s, s:o}", "name", name, "settings", json_loads(SETTINGS, 0, NULL))));
}

static void make_and_delete_base(struct writer *writer)
{
    struct workflow_ledger other = {0};
    snprintf(other.base, sizeof other.base, "x%.*s", 40, writer->ledger->base);
    make_base(writer->quire, other.base);
    json_decref(workflow_call(writer->quire, 202, "POST", workflow_path(&other, "/items"),
                              json_pack("{s:[o]}", "items", workflow_note(&other, 0, "note", 1, CHUNKS))));
    workflow_drain(writer->quire);
    json_decref(workflow_call(writer->quire, 202, "DELETE", workflow_path(&other, "?confirm=true"), NULL));
}

/* PAID-2: what is reindexed afterwards is not paid for again. */
static void prune_vectors(struct writer *writer)
{
    json_decref(workflow_call(writer->quire, 200, "POST", "/api/v1/cache/prune", json_pack("{s:i}", "to_bytes", 0)));
}

static void do_everything(struct writer *writer)
{
    make_base(writer->quire, writer->ledger->base);
    add_notes(writer);
    add_folder(writer);
    add_file_that_comes_late(writer);
    change_notes(writer);
    workflow_drain(writer->quire);
    refresh_folder(writer);
    workflow_drain(writer->quire);
    prune_vectors(writer);
    reindex(writer);
    workflow_drain(writer->quire);
    delete_notes(writer);
    workflow_drain(writer->quire);
    qr_instance_stop_work(writer->quire, 5000);
    restore_base(writer);
    start_work(writer->quire);
    workflow_drain(writer->quire);
    qr_instance_stop_work(writer->quire, 5000);
    cancel_job(writer);
    run_twice(writer);
    start_work(writer->quire);
    make_and_delete_base(writer);
    workflow_drain(writer->quire);
}

static void note_hits(void)
{
    const char *name;
    for (size_t i = 0; (name = qr_failpoint_name(i)) && i < FAILPOINTS_MAX; i++) {
        shared->hits[i] = qr_failpoint_hits(name);
    }
}

static void live(void *arg)
{
    struct life *life = arg;
    qr_err err = {0};
    struct writer writer = {.quire = workflow_open(life->folder, life->url), .ledger = &life->ledger, .life = life};
    workflow_child_require(qr_failpoints_set(life->failpoint, &err), &err);
    start_work(writer.quire);
    do_everything(&writer);
    note_hits();
    qr_instance_close(writer.quire);
}

/* ---- the next one ---- */

static int count_restless(struct quire *quire)
{
    static const struct {
        const char *what, *sql;
    } rules[] = {
        {"items at work without a job", "SELECT count(*) FROM item WHERE status NOT IN (1, 6, 7)"},
        {"items at rest before their time", "SELECT count(*) FROM item WHERE status = 1 AND name <> 'run'"},
        {"items that failed", "SELECT count(*) FROM item WHERE status = 7 AND error_code NOT IN ('cancelled', "
                              "'source_missing')"},
        {"bases that are not ready", "SELECT count(*) FROM base WHERE status <> 1"},
        {"jobs that failed", "SELECT count(*) FROM job WHERE state = 6 AND code <> 'source_missing'"},
    };
    int wrong = 0;
    for (size_t i = 0; i < QR_COUNT(rules); i++) {
        const int64_t count = workflow_number(quire, rules[i].sql);
        if (count) {
            fprintf(stderr, "%lld %s\n", (long long)count, rules[i].what);
            wrong++;
        }
    }
    return wrong;
}

/* Died between the failure that the test made and the request to restore it. */
static void restore_where_needed(struct quire *quire, const struct workflow_ledger *ledger)
{
    QR_JSON *base = workflow_call(quire, 0, "GET", workflow_path(ledger, "%s", ""), NULL);
    const char *status = json_string_value(json_object_get(base, "status"));
    if (status && strcmp(status, "failed") == 0) {
        json_decref(workflow_call(quire, 202, "POST", workflow_path(ledger, "/restore"), NULL));
    }
    if (!status) { /* it died before the base was acknowledged: nothing else was asked for */
        make_base(quire, ledger->base);
    }
}

static void drain(void *arg)
{
    struct life *life = arg;
    struct quire *quire = workflow_open(life->folder, life->url);
    qr_err err = {0};
    workflow_child_require(qr_failpoints_set(life->failpoint, &err), &err);
    start_work(quire);
    restore_where_needed(quire, &life->ledger);
    workflow_drain(quire);
    workflow_child_require(qr_failpoints_set(NULL, &err), &err);
    const int wrong = workflow_compare(quire, &life->ledger) + count_restless(quire) +
                      workflow_index_faults(quire, true) + workflow_findings(quire);
    if (wrong == 0) { /* for the next round */
        json_decref(workflow_call(quire, 202, "DELETE", workflow_path(&life->ledger, "?confirm=true"), NULL));
        workflow_drain(quire);
        workflow_exec(quire, "DELETE FROM job");
    }
    qr_instance_close(quire);
    _exit(wrong != 0);
}

/* ---- the rounds ---- */

struct test_folder {
    struct qr_test *t;
    const char *url;
    int rounds, crashes;
    struct qr_rand_seeded chance;
};

/* Drains, perhaps in two processes, of which the first dies early. How many died. */
static int drain_after_crash(struct test_folder *folder, struct life *life)
{
    char failpoint[64] = "";
    struct child child;
    if (life->failpoint && qr_rand_below(&folder->chance.rand, AGAIN) == 0) {
        snprintf(failpoint, sizeof failpoint, "db.write.after_commit=crash@%d",
                 1 + (int)qr_rand_below(&folder->chance.rand, RECOVERY_WRITES_MAX));
    }
    life->failpoint = failpoint;
    child_start(&child, drain, life);
    const int end = child_wait(&child);
    if (end == EXIT_CRASHED && failpoint[0]) {
        life->failpoint = NULL;
        child_start(&child, drain, life);
        QR_CHECK_INT(0, child_wait(&child));
        return 1;
    }
    QR_CHECK_INT(0, end);
    return 0;
}

/* False when the failpoint was not hit so often. */
static bool round_with(struct test_folder *folder, const char *failpoint)
{
    static struct life life;
    struct child child;
    memset(&life, 0, sizeof life);
    life.url = folder->url;
    life.failpoint = failpoint;
    snprintf(life.folder, sizeof life.folder, "%s", qr_test_path(folder->t, "data"));
    snprintf(life.sources, sizeof life.sources, "%s", qr_test_path(folder->t, "sources"));
    snprintf(life.ledger.base, sizeof life.ledger.base, "r%d", folder->rounds++);
    mkdir(life.sources, 0755);
    const int repeated_before = atomic_load(&shared->repeated_calls);
    child_start(&child, live, &life);
    while (workflow_listen(&child, &life.ledger)) {
    }
    const int end = child_wait(&child);
    if (end != 0) {
        QR_CHECK_INT(EXIT_CRASHED, end);
    }
    const int crashes = (end != 0) + drain_after_crash(folder, &life);
    const int repeated = atomic_load(&shared->repeated_calls) - repeated_before;
    folder->crashes += crashes;
    QR_CHECK(repeated <= crashes * calls_at_a_time()); /* I8 */
    return end != 0;
}

static void die_at(struct test_folder *folder, const char *name, uint64_t hit)
{
    char failpoint[128];
    snprintf(failpoint, sizeof failpoint, "%s=crash@%llu", name, (unsigned long long)hit);
    qr_test_set_context("%s, round %d", failpoint, folder->rounds);
    if (!round_with(folder, failpoint)) { /* fewer hits than in the life before: threads take turns as they like */
        snprintf(failpoint, sizeof failpoint, "%s=crash@1", name);
        qr_test_set_context("%s, round %d", failpoint, folder->rounds);
        QR_CHECK(round_with(folder, failpoint));
    }
}

/* In a long run at every power of two, else at one hit that chance picks. */
static void die_at_each(struct test_folder *folder, const char *name, uint64_t hit_count)
{
    if (!getenv("QUIRE_TEST_LONG")) {
        die_at(folder, name, 1 + qr_rand_below(&folder->chance.rand, hit_count));
        return;
    }
    for (uint64_t hit = 1; hit <= hit_count; hit *= 2) {
        die_at(folder, name, hit);
    }
}

/* Another model: crash_model_kill_test dies there. A backup: unit_api_backup_test. A request that only writes a
 * row, one with a key of its own, a job that is tried again: the tests of the server. */
static bool dies_elsewhere(qr_str name)
{
    static const char *const beginnings[] = {"model.", "build.",     "base.set.", "backup.",
                                             "once.",  "job.retry.", "request."};
    for (size_t i = 0; i < QR_COUNT(beginnings); i++) {
        if (qr_str_starts_with(name, qr_str_of(beginnings[i]))) {
            return true;
        }
    }
    return false;
}

/* PostgreSQL holds all bytes in its tables. */
static bool is_out_of_reach(struct qr_test *t, const char *name)
{
    return dies_elsewhere(qr_str_of(name)) ||
           (qr_test_on_postgres(t) && qr_str_starts_with(qr_str_of(name), QR_STR("artifact.")));
}

QR_DB_TEST_WITH_TIMEOUT(acknowledged_requests_survive_a_crash_at_every_failpoint, 1800) /* I1, I3, I5, I7, I8 */
{
    static uint64_t hits[FAILPOINTS_MAX];
    struct test_folder folder = {.t = t, .url = qr_test_on_postgres(t) ? qr_test_db_options(t, NULL, 0).url : NULL};
    const char *name;
    QR_CHECK(qr_failpoints_built_in());
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    QR_CHECK(shared != MAP_FAILED);
    qr_rand_seeded_init(&folder.chance, getenv("QUIRE_TEST_SEED") ? strtoull(getenv("QUIRE_TEST_SEED"), NULL, 10) : 1);
    QR_CHECK(!round_with(&folder, NULL));
    memcpy(hits, shared->hits, sizeof hits);
    for (size_t i = 0; (name = qr_failpoint_name(i)); i++) {
        if (is_out_of_reach(t, name)) {
            continue;
        }
        if (hits[i] == 0) {
            QR_FAIL("%s was never hit", name);
        }
        die_at_each(&folder, name, hits[i]);
    }
    qr_test_set_context("%s", "");
    printf("%d crashes, %d embedding calls, %d of them repeated\n", folder.crashes, atomic_load(&shared->calls),
           atomic_load(&shared->repeated_calls));
    munmap(shared, sizeof *shared);
}

QR_TEST(every_failpoint_that_the_program_lists_is_known_here)
{
    const char *const argv[] = {QUIRE_BINARY_DIR "/quire", "config", "--failpoints", NULL};
    const struct qr_proc_options options = {.argv = argv, .output_bytes_max = 65536, .timeout_ms = 30000};
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_proc_result result;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_proc_run(&options, &out, NULL, &result, &err));
    QR_CHECK_INT(0, result.exit_code);
    for (qr_str lines = qr_buf_str(&out); lines.len;) {
        const qr_str line = qr_str_split(&lines, '\n');
        bool is_known = false;
        const char *name;
        for (size_t i = 0; (name = qr_failpoint_name(i)); i++) {
            is_known = is_known || qr_str_equal(qr_str_of(name), line);
        }
        if (!is_known) {
            QR_FAIL("%.*s is not linked into this test", QR_STR_ARG(line));
        }
    }
}
