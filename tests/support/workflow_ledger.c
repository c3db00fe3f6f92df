/* Owns the requests, the ledger and the comparison. */
#include "support/workflow_ledger.h"

#include "api/router.h"
#include "base/thread.h"
#include "store/jobs.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_FAILED = 1, DRAIN_S_MAX = 30, EXTENTS_MAX = 200, CHUNKS_LOOKED_AT = 10000 };

/* ---- the ledger ---- */

static void take_note(struct workflow_ledger *ledger, const struct workflow_event *event)
{
    struct workflow_thing *thing = &ledger->things[event->thing];
    ledger->count = QR_MAX(ledger->count, event->thing + 1);
    if (event->id[0]) {
        memcpy(thing->id, event->id, sizeof thing->id);
    }
    switch (event->kind) {
    case WORKFLOW_BEGUN:
        thing->begun = event->version;
        break;
    case WORKFLOW_DONE:
        thing->acknowledged = event->version;
        break;
    case WORKFLOW_DELETING:
        thing->is_deleted = thing->hiding_begun = true;
        break;
    case WORKFLOW_HIDING:
        thing->hiding_begun = true;
        break;
    case WORKFLOW_HIDDEN:
        thing->is_hidden = true;
        break;
    }
}

void workflow_tell(struct workflow_ledger *ledger, int thing, enum workflow_event_kind kind, int version,
                   const char *id)
{
    struct workflow_event event = {.thing = thing, .version = version, .kind = kind};
    snprintf(event.id, sizeof event.id, "%s", id ? id : "");
    take_note(ledger, &event);
    child_ack(&event, sizeof event);
}

bool workflow_listen(struct child *child, struct workflow_ledger *ledger)
{
    struct workflow_event event;
    if (!child_next_ack(child, &event, sizeof event)) {
        return false;
    }
    take_note(ledger, &event);
    return true;
}

/* ---- requests ---- */

void workflow_child_fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    _exit(CHILD_FAILED);
}

void workflow_child_require(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        workflow_child_fail("%s: %s", qr_code_info(err->code)->name, err->msg);
    }
}

json_t *workflow_call(struct quire *quire, int status, const char *method, const char *path, json_t *body)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct qr_reply reply;
    qr_err err = {0};
    if (body) {
        workflow_child_require(qr_json_write(body, &text, &err), &err);
    }
    json_decref(body);
    const struct quire_request request = {
        .method = method, .target = path, .body = qr_buf_str(&text).ptr, .body_size = text.len, .is_local_owner = 1};
    qr_router_call(quire, &request, &reply);
    if (reply.status != status && (status || reply.status >= 500)) {
        char *answer = json_dumps(reply.body, 0);
        workflow_child_fail("%s %s: %d, not %d: %s", method, path, reply.status, status, answer);
    }
    return reply.body;
}

const char *workflow_path(const struct workflow_ledger *ledger, const char *fmt, ...)
{
    static char path[512];
    const int begun = snprintf(path, sizeof path, "/api/v1/bases/%s", ledger->base);
    va_list args;
    va_start(args, fmt);
    vsnprintf(path + begun, sizeof path - (size_t)begun, fmt, args);
    va_end(args);
    return path;
}

struct sql_call {
    const char *sql;
    int64_t number;
};

static qr_rc get_number(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct sql_call *call = arg;
    return qr_tx_get_i64(tx, call->sql, QR_NO_VALS, NULL, &call->number, err);
}

int64_t workflow_number(struct quire *quire, const char *sql)
{
    struct sql_call call = {.sql = sql};
    qr_err err = {0};
    workflow_child_require(qr_db_read(quire->db, get_number, &call, &err), &err);
    return call.number;
}

static qr_rc run_sql(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct sql_call *call = arg;
    return qr_tx_exec(tx, call->sql, QR_NO_VALS, NULL, err);
}

void workflow_exec(struct quire *quire, const char *sql)
{
    struct sql_call call = {.sql = sql};
    qr_err err = {0};
    workflow_child_require(qr_db_write(quire->db, QR_RELAXED, run_sql, &call, &err), &err);
}

struct quire *workflow_open(const char *folder, const char *url)
{
    const struct qr_config_flag flags[] = {{"data_dir", QR_STR("data.dir"), qr_str_of(folder)},
                                           {"setting", QR_STR("database.url"), qr_str_of(url)}};
    const struct qr_instance_options options = {.settings = flags, .setting_count = url ? 2 : 1, .program = "test"};
    struct quire *quire;
    qr_err err = {0};
    workflow_child_require(qr_instance_open(&quire, &options, &err), &err);
    workflow_exec(quire, "UPDATE worker SET lease_until = 0");
    workflow_exec(quire, "DELETE FROM beat_slot");
    return quire;
}

static qr_rc print_open(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(
        tx, &rows, "SELECT type, state, attempts, crashes, suspect, fence, code FROM job WHERE state IN (1, 2, 3, 4)",
        QR_NO_VALS, err));
    while (qr_rows_next(&rows)) {
        const qr_str type = qr_rows_str(&rows, 0), code = qr_rows_str(&rows, 6);
        fprintf(stderr, "open: %.*s, state %lld, attempts %lld, crashes %lld, suspect %lld, fence %lld %.*s\n",
                QR_STR_ARG(type), (long long)qr_rows_i64(&rows, 1), (long long)qr_rows_i64(&rows, 2),
                (long long)qr_rows_i64(&rows, 3), (long long)qr_rows_i64(&rows, 4), (long long)qr_rows_i64(&rows, 5),
                QR_STR_ARG(code));
    }
    return qr_rows_end(&rows, err);
}

/* As if the time had come for what is put off: purges, tries after a failure. */
static qr_rc bring_forward(struct qr_tx *tx, void *arg QR_UNUSED, qr_err *err)
{
    QR_TRY(qr_tx_exec(tx, "UPDATE job SET run_at = 1 WHERE state = 2", QR_NO_VALS, NULL, err));
    return qr_tx_notify(tx, QR_JOBS_CHANNEL, err);
}

void workflow_drain(struct quire *quire)
{
    /* the open ones, and those of them that only wait for their time a million each */
    static const char count_open[] = "SELECT coalesce(sum(CASE WHEN state = 2 THEN 1000000 ELSE 1 END), 0) FROM job "
                                     "WHERE state IN (1, 2, 3, 4)";
    enum { WAITING = 1000000, LOOK_NS = 5000000 };
    const int64_t begun_us = qr_thread_mono_us();
    int64_t open;
    qr_err err = {0};
    while ((open = workflow_number(quire, count_open)) > 0) {
        if (open % WAITING == 0) {
            workflow_child_require(qr_db_write(quire->db, QR_RELAXED, bring_forward, NULL, &err), &err);
        }
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
        if (qr_thread_mono_us() - begun_us > (int64_t)DRAIN_S_MAX * 1000000) {
            workflow_child_require(qr_db_read(quire->db, print_open, NULL, &err), &err);
            workflow_child_fail("jobs are still open after %d s", (int)DRAIN_S_MAX);
        }
    }
}

/* ---- texts ---- */

/* Always as many, and only consonants: no word is made of parts, begins another one or has an ending to be taken away. */
static char *add_letters(char *to, unsigned number)
{
    for (int i = 0; i < 4; i++, number /= 16) {
        *to++ = "bcdfghjklmnpqrtv"[number % 16];
    }
    return to;
}

void workflow_word(const struct workflow_ledger *ledger, int thing, int version,
                   char word[static WORKFLOW_LEDGER_WORD_SIZE])
{
    unsigned base = 0;
    for (const char *c = ledger->base; *c; c++) {
        base = base * 31 + (unsigned char)*c;
    }
    char *end = add_letters(word, base);
    end = add_letters(end, (unsigned)thing);
    end = add_letters(end, (unsigned)version);
    *end = '\0';
}

/* A section a chunk. */
void workflow_text(const struct workflow_ledger *ledger, int thing, int version, int chunk_count, struct qr_buf *out)
{
    enum { SENTENCES = 12 };
    char word[WORKFLOW_LEDGER_WORD_SIZE];
    workflow_word(ledger, thing, version, word);
    for (int chunk = 0; chunk < chunk_count; chunk++) {
        qr_buf_printf(out, "%s## Part %d\n\n", chunk ? "\n\n" : "", chunk);
        for (int i = 0; i < SENTENCES; i++) {
            qr_buf_printf(out, "Sentence %d of part %d tells of %s once more, and of the weather. ", i, chunk, word);
        }
    }
}

json_t *workflow_note(const struct workflow_ledger *ledger, int thing, const char *name, int version, int chunk_count)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    workflow_text(ledger, thing, version, chunk_count, &text);
    return json_pack("{s:s, s:s, s:s}", "type", "note", "name", name, "content", text.data);
}

/* ---- comparing ---- */

static bool finds(struct quire *quire, const struct workflow_ledger *ledger, int thing, int version)
{
    char word[WORKFLOW_LEDGER_WORD_SIZE];
    workflow_word(ledger, thing, version, word);
    QR_JSON *answer = workflow_call(quire, 200, "POST", workflow_path(ledger, "/search"),
                                    json_pack("{s:s, s:s}", "query", word, "mode", "text"));
    return json_array_size(json_object_get(answer, "hits")) > 0;
}

static bool is_there(struct quire *quire, const struct workflow_ledger *ledger, const struct workflow_thing *thing)
{
    QR_JSON *answer = workflow_call(quire, 0, "GET", workflow_path(ledger, "/items/%s", thing->id), NULL);
    return json_object_get(answer, "id") != NULL;
}

/* What is wrong with it; NULL = nothing. */
static const char *judge(struct quire *quire, const struct workflow_ledger *ledger, int index)
{
    const struct workflow_thing *thing = &ledger->things[index];
    int found = 0, found_count = 0;
    for (int version = 1; version <= thing->begun; version++) {
        if (finds(quire, ledger, index, version)) {
            found = version;
            found_count++;
        }
    }
    if (found_count > 1) {
        return "two versions are found";
    }
    if (thing->is_hidden) {
        return found ? "it is found though it was hidden"
               : thing->is_deleted && thing->id[0] && is_there(quire, ledger, thing) ? "it is there though deleted"
                                                                                     : NULL;
    }
    if (found == 0 && (thing->hiding_begun || thing->acknowledged == 0)) {
        return NULL;
    }
    return found < thing->acknowledged ? found ? "an old version is found" : "it is not found" : NULL;
}

int workflow_compare(struct quire *quire, const struct workflow_ledger *ledger)
{
    int wrong = 0;
    for (int i = 0; i < ledger->count; i++) {
        const struct workflow_thing *thing = &ledger->things[i];
        const char *fault = judge(quire, ledger, i);
        if (fault) {
            fprintf(stderr, "%s: thing %d (%s): %s; version %d acknowledged, %d begun\n", ledger->base, i, thing->id,
                    fault, thing->acknowledged, thing->begun);
            wrong++;
        }
    }
    return wrong;
}

int workflow_findings(struct quire *quire)
{
    QR_JSON *answer = workflow_call(quire, 200, "POST", "/api/v1/check", NULL);
    const json_t *findings = json_object_get(answer, "findings");
    if (json_array_size(findings) > 0 || !json_is_true(json_object_get(answer, "ok"))) {
        char *text = json_dumps(answer, 0);
        fprintf(stderr, "check: %s\n", text);
        free(text);
        return (int)QR_MAX(json_array_size(findings), (size_t)1);
    }
    return 0;
}

/* ---- both stores ---- */

struct shown {
    qr_uuid base_id, item_id;
    int64_t live_generation, chunk_count, status;
};

struct looking {
    struct shown *shown;
    size_t count, capacity;
};

static qr_rc load_shown(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct looking *looking = arg;
    looking->count = 0;
    QR_ROWS(rows);
    QR_TRY(qr_tx_query(tx, &rows,
                       "SELECT base_id, id, live_generation, chunk_count, status FROM item ORDER BY base_id, id",
                       QR_NO_VALS, err));
    while (qr_rows_next(&rows)) {
        if (looking->count == looking->capacity) {
            looking->capacity = looking->capacity ? 2 * looking->capacity : 256;
            looking->shown = realloc(looking->shown, looking->capacity * sizeof looking->shown[0]);
        }
        struct shown *shown = &looking->shown[looking->count++];
        memcpy(shown->base_id.bytes, qr_rows_str(&rows, 0).ptr, QR_UUID_BYTES);
        memcpy(shown->item_id.bytes, qr_rows_str(&rows, 1).ptr, QR_UUID_BYTES);
        shown->live_generation = qr_rows_i64(&rows, 2);
        shown->chunk_count = qr_rows_i64(&rows, 3);
        shown->status = qr_rows_i64(&rows, 4);
    }
    return qr_rows_end(&rows, err);
}

static int64_t count_chunks(struct quire *quire, const struct shown *shown)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_chunk_row *rows;
    size_t count;
    qr_err err = {0};
    qr_arena_init(&arena, 0);
    workflow_child_require(qr_index_chunks(quire->index, shown->base_id, shown->item_id, shown->live_generation, 0, 0,
                                           CHUNKS_LOOKED_AT, &arena, &rows, &count, &err),
                           &err);
    return (int64_t)count;
}

static bool is_owned(const struct looking *looking, qr_uuid base_id, const struct qr_index_extent *extent)
{
    for (size_t i = 0; i < looking->count; i++) {
        const struct shown *shown = &looking->shown[i];
        if (qr_uuid_equal(shown->item_id, extent->item_id)) {
            return qr_uuid_equal(shown->base_id, base_id) && shown->live_generation == extent->generation;
        }
    }
    return false;
}

static int count_orphans(struct quire *quire, const struct looking *looking, qr_uuid base_id)
{
    struct qr_index_extent extents[EXTENTS_MAX];
    struct qr_index_extent last = {0};
    size_t count;
    int orphans = 0;
    do {
        qr_err err = {0};
        workflow_child_require(qr_index_extents(quire->index, base_id, 0, last.item_id, last.generation, EXTENTS_MAX,
                                                extents, &count, &err),
                               &err);
        for (size_t i = 0; i < count; i++) {
            if (!is_owned(looking, base_id, &extents[i])) {
                char id[QR_UUID_TEXT_SIZE];
                qr_uuid_format(extents[i].item_id, id);
                fprintf(stderr, "index rows of %s, generation %lld, belong to nothing\n", id,
                        (long long)extents[i].generation);
                orphans++;
            }
            last = extents[i];
        }
    } while (count == EXTENTS_MAX);
    return orphans;
}

int workflow_index_faults(struct quire *quire, bool drained)
{
    enum { DELETING = 8 };
    struct looking looking = {0};
    qr_err err = {0};
    qr_uuid looked_at = {0};
    int faults = 0;
    workflow_child_require(qr_db_read(quire->db, load_shown, &looking, &err), &err);
    for (size_t i = 0; i < looking.count; i++) {
        const struct shown *shown = &looking.shown[i];
        if (drained && !qr_uuid_equal(shown->base_id, looked_at)) {
            looked_at = shown->base_id;
            faults += count_orphans(quire, &looking, looked_at);
        }
        if (shown->live_generation == 0 || shown->status == DELETING) {
            continue;
        }
        const int64_t count = count_chunks(quire, shown);
        if (count != shown->chunk_count) {
            char id[QR_UUID_TEXT_SIZE];
            qr_uuid_format(shown->item_id, id);
            fprintf(stderr, "%s shows generation %lld with %lld chunks, and %lld are there\n", id,
                    (long long)shown->live_generation, (long long)shown->chunk_count, (long long)count);
            faults++;
        }
    }
    free(looking.shown);
    return faults;
}
