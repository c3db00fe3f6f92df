/* Who asks for things: everything that the workflow's entry points offer, in any order, for things that may be gone; and one
 * who searches. Remembers what was promised about the contents of notes. */
#include "sim/workflow_sim.h"

#include "base/json.h"
#include "base/mem.h"
#include "handler/prune_vectors.h"
#include "index/set.h"
#include "search/search.h"
#include "workflow/process.h"

#include <string.h>

enum { NOTES_MAX = 300, ITEMS_ENOUGH = 110, BASES_ENOUGH = 3, REST_MS_MAX = 4 * 3600 * 1000 };

static struct note {
    struct promised_note promised;
    qr_uuid base_id;
    int busy_with; /* the incarnation in which somebody updates it */
} notes[NOTES_MAX];
static int note_count, base_count, documents;
static bool has_finished;

void people_begin(void)
{
    note_count = base_count = documents = 0;
    has_finished = false;
}

bool people_have_finished(void)
{
    return has_finished;
}

bool people_note(int index, struct promised_note *ret_note)
{
    if (index < note_count) {
        *ret_note = notes[index].promised;
    }
    return index < note_count;
}

static void count_answer(qr_rc rc)
{
    flow_totals.requests++;
    flow_totals.refused += rc != QR_OK;
}

static bool pick_base(qr_uuid *ret_id)
{
    return flow_oracle_pick_id("SELECT id FROM base WHERE status <> 3", ret_id);
}

/* ---- bases ---- */

static void add_base(struct process *process)
{
    static const char *const settings[] = {
        "{\"embedding\":{\"provider\":\"hash\",\"dimensions\":8},\"chunking\":{\"size_tokens\":32,\"overlap_tokens\":0}"
        ","
        "\"assets\":{\"analysis\":\"test\"},"
        "\"file_processor\":{\"kind\":\"command\",\"argv\":[\"cat\"],\"extensions\":[\"pdf\"]}}",
        "{\"chunking\":{\"size_tokens\":64,\"overlap_tokens\":0},\"recovery\":\"abandon\"}",
    };
    char name[32];
    qr_uuid id;
    if (flow_oracle_i64("SELECT count(*) FROM base WHERE status <> 3") >= BASES_ENOUGH || base_count >= 24) {
        return;
    }
    snprintf(name, sizeof name, "base %d", ++base_count);
    count_answer(qr_workflow_add_base(parts_workflow(process), qr_str_of(name), qr_str_of(settings[sim_chance(250)]),
                                      &id, NULL));
}

static void delete_base(struct process *process)
{
    qr_uuid id, job_id;
    const bool has_run = sim_chance(500) && flow_oracle_pick_id("SELECT base_id FROM run WHERE status = 1", &id);
    if (has_run || pick_base(&id)) {
        flow_oracle_base_may_go(id);
        count_answer(qr_workflow_delete_base(parts_workflow(process), id, sim_chance(900), &job_id, NULL));
    }
}

static void fail_base(struct process *process)
{
    qr_uuid id;
    if (world.owns_all && pick_base(&id)) { /* a store that is made anew is another file: only its owner sees that */
        count_answer(qr_workflow_fail_base(parts_workflow(process), id,
                                           sim_chance(500) ? "data_corrupt" : "dimension_mismatch",
                                           "as the simulation wants it", NULL));
    }
}

static void restore_base(struct process *process)
{
    qr_uuid id, job_id;
    if (flow_oracle_pick_id("SELECT id FROM base WHERE status = 2", &id)) {
        count_answer(qr_workflow_restore_base(parts_workflow(process), id, &job_id, NULL));
    }
}

/* ---- models ---- */

struct base_look {
    qr_uuid id;
    struct qr_arena *arena;
    bool found;
    struct qr_base base;
};

static qr_rc look_at_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct base_look *look = arg;
    return qr_base_find(tx, look->id, look->arena, &look->found, &look->base, err);
}

/* Lets nobody else run: what a library has allocated is not freed with a process that is killed. */
static void replace_embedding(const char *before, const char *embedding, struct qr_buf *out)
{
    QR_JSON *settings = NULL;
    qr_err err = {0};
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_str_of(before), &QR_JSON_REQUEST_LIMITS, &settings, &err));
    if (embedding) {
        json_object_set_new(settings, "embedding", json_loads(embedding, 0, NULL));
    }
    QR_CHECK_RC(QR_OK, qr_json_write(settings, out, &err));
}

/* The base's settings with another model; NULL = with the same. */
static void set_embedding(struct process *process, qr_uuid base_id, const char *embedding)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_arena_init(&arena, 0);
    struct base_look look = {.id = base_id, .arena = &arena};
    if (qr_db_read(process->db, look_at_base, &look, NULL) != QR_OK || !look.found) {
        return;
    }
    replace_embedding(look.base.settings, embedding, &text);
    count_answer(qr_workflow_set_settings(parts_workflow(process), base_id, text.data, NULL));
    flow_totals.model_changes++;
}

static void choose_model(struct process *process)
{
    static const char *const embeddings[] = {"{\"provider\":\"none\"}", "{\"provider\":\"hash\",\"dimensions\":8}",
                                             "{\"provider\":\"hash\",\"model\":\"b\",\"dimensions\":8}",
                                             "{\"provider\":\"hash\",\"model\":\"c\",\"dimensions\":16}"};
    qr_uuid id;
    if (pick_base(&id)) {
        set_embedding(process, id, embeddings[sim_between(sim_chance(200) ? 0 : 1, 3)]);
    }
}

/* What failed or was cancelled is asked for once more. */
static void build_all(struct process *process)
{
    qr_uuid id;
    for (int i = 0; i < 4 * BASES_ENOUGH; i++) {
        if (flow_oracle_pick_id("SELECT base.id FROM base JOIN job ON job.id = base.build_job_id WHERE base.status = 1 "
                                "AND job.state IN (6, 7, 8)",
                                &id)) {
            set_embedding(process, id, NULL);
        }
    }
}

/* ---- adding ---- */

static size_t pick_size(void)
{
    return sim_chance(15)   ? (size_t)sim_between(66000, 70000) /* a job of its own for the chunks */
           : sim_chance(5)  ? 270000                            /* a file */
           : sim_chance(40) ? 0
                            : (size_t)sim_between(50, 2500);
}

static void write_note(struct qr_buf *out, int number, int version)
{
    tree_add_text(out, number, version, pick_size());
    if (sim_chance(150)) {
        qr_buf_printf(out, "\n\n![asset](data:QUIRE-TEST,%s%d)\n", sim_chance(500) ? "picture " : "other ", number);
    }
    if (sim_chance(30)) {
        qr_buf_add_text(out, "\n\n" QR_HASH_UNEMBEDDABLE "\n");
    }
}

static void add_note(struct process *process)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    qr_arena_init(&arena, 0);
    const int number = ++documents;
    struct qr_added *added;
    struct qr_add add = {.count = 1, .is_manual = sim_chance(150)};
    if (note_count == NOTES_MAX || flow_oracle_item_count() > ITEMS_ENOUGH || !pick_base(&add.base_id)) {
        return;
    }
    write_note(&text, number, 1);
    const struct qr_add_item item = {.type = QR_ITEM_NOTE, .name = QR_STR("note"), .content = qr_buf_str(&text)};
    add.items = &item;
    const qr_rc rc = qr_workflow_add(parts_workflow(process), &add, &arena, &added, NULL);
    count_answer(rc);
    if (rc == QR_OK) {
        flow_oracle_expect(added[0].id);
        notes[note_count++] = (struct note){.promised = {added[0].id, number, 1, 1}, .base_id = add.base_id};
    }
}

static void add_path(struct process *process, bool is_folder)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    char path[300];
    struct qr_added *added;
    struct qr_add add = {.count = 1,
                         .is_manual = sim_chance(250),
                         .on_conflict = (enum qr_on_conflict)sim_between(QR_CONFLICT_CREATE, QR_CONFLICT_UPDATE)};
    if (flow_oracle_item_count() > ITEMS_ENOUGH || !pick_base(&add.base_id)) {
        return;
    }
    snprintf(path, sizeof path, "%s%s", tree_root((int)sim_between(0, TREE_ROOTS - 1)),
             is_folder         ? ""
             : sim_chance(500) ? "/a.md"
                               : "/d.pdf");
    const struct qr_add_item item = {.type = is_folder ? QR_ITEM_DIRECTORY : QR_ITEM_FILE,
                                     .source = qr_str_of(path),
                                     .options = sim_chance(200) ? QR_STR("{\"copy\":true}") : (qr_str){0}};
    add.items = &item;
    const qr_rc rc = qr_workflow_add(parts_workflow(process), &add, &arena, &added, NULL);
    count_answer(rc);
    if (rc == QR_OK) {
        flow_oracle_expect(added[0].id);
    }
}

/* ---- what is there ---- */

struct picked {
    struct seen_item items[3];
    qr_uuid ids[3];
    struct qr_selection selection;
};

static bool pick_some(struct picked *picked, int most)
{
    *picked = (struct picked){0};
    const int64_t wanted = sim_between(1, most);
    for (int64_t i = 0; i < wanted; i++) {
        struct seen_item *item = &picked->items[picked->selection.count];
        if (flow_oracle_pick_item(item) &&
            (i == 0 || qr_uuid_equal(item->base_id, picked->selection.base_id) || sim_chance(50))) {
            picked->selection.base_id = i == 0 ? item->base_id : picked->selection.base_id;
            picked->ids[picked->selection.count++] = item->id;
        }
    }
    picked->selection.ids = picked->ids;
    return picked->selection.count > 0;
}

static void delete_items(struct process *process)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct picked picked;
    struct qr_selection_answer answer;
    if (!pick_some(&picked, 3)) {
        return;
    }
    for (size_t i = 0; i < picked.selection.count; i++) {
        flow_oracle_may_go(picked.ids[i]);
    }
    const qr_rc rc = qr_workflow_delete(parts_workflow(process), &picked.selection, &arena, &answer, NULL);
    count_answer(rc);
    for (size_t i = 0; rc == QR_OK && i < answer.accepted_count; i++) {
        flow_oracle_must_go(answer.accepted[i]);
    }
}

static void ask_about_some(struct process *process, int64_t what)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    const struct qr_workflow *workflow = parts_workflow(process);
    struct picked picked;
    struct qr_selection_answer answer;
    struct qr_status_counts counts;
    struct qr_reindex_estimate estimate;
    if (!pick_some(&picked, 3)) {
        return;
    }
    const struct qr_selection *selection = &picked.selection;
    count_answer(
        what == 0 ? qr_workflow_reindex(workflow, selection, sim_chance(100), &arena, &answer, &counts, &estimate, NULL)
        : what == 1 ? qr_workflow_refresh(workflow, selection, &arena, &answer, NULL)
                    : qr_workflow_retry(workflow, selection, &arena, &answer, NULL));
}

/* The n-th of what is completed, most of which has not changed (REIDX-7). False when there are not so many. */
static bool reindex_completed(struct process *process, int n)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct seen_item item;
    struct qr_selection_answer answer;
    struct qr_status_counts counts;
    struct qr_reindex_estimate estimate;
    if (!flow_oracle_nth_item(n, QR_ITEM_COMPLETED, false, &item)) {
        return false;
    }
    const struct qr_selection selection = {item.base_id, &item.id, 1};
    count_answer(
        qr_workflow_reindex(parts_workflow(process), &selection, false, &arena, &answer, &counts, &estimate, NULL));
    return true;
}

static void reindex_one(struct process *process)
{
    int n = (int)sim_between(0, 20);
    while (!reindex_completed(process, n) && n > 0) {
        n /= 2;
    }
}

static void patch(struct process *process)
{
    struct picked picked;
    const bool enabled = sim_chance(500);
    if (pick_some(&picked, 1)) {
        count_answer(qr_workflow_patch(parts_workflow(process), picked.selection.base_id, picked.ids[0],
                                       &(struct qr_item_patch){.enabled = &enabled}, NULL));
    }
}

static void update(struct process *process)
{
    struct note *note = note_count ? &notes[sim_between(0, note_count - 1)] : NULL;
    if (!note || note->busy_with == process->incarnation) {
        return;
    }
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    bool changed;
    const int version = ++note->promised.version_tried;
    note->busy_with = process->incarnation;
    write_note(&text, note->promised.number, version);
    const qr_rc rc = qr_workflow_update(parts_workflow(process), note->base_id, note->promised.id, qr_buf_str(&text),
                                        &changed, NULL);
    count_answer(rc);
    if (rc == QR_OK) {
        note->promised.version_acknowledged = version;
    }
    note->busy_with = 0;
}

/* ---- runs and jobs ---- */

static void process_base(struct process *process)
{
    struct qr_run run;
    struct qr_process call = {.wanted = sim_chance(500) ? QR_WANT_ALL : sim_between(1, QR_WANT_ALL),
                              .gate_is_manual = sim_chance(500)};
    if (pick_base(&call.base_id)) {
        count_answer(qr_workflow_process(parts_workflow(process), &call, &run, NULL));
    }
}

static void cancel_run(struct process *process)
{
    qr_uuid id;
    struct qr_run run;
    if (flow_oracle_pick_id("SELECT id FROM run ORDER BY status, id DESC LIMIT 6", &id)) {
        count_answer(qr_workflow_cancel_run(parts_workflow(process), id, &run, NULL));
    }
}

static void cancel_job(struct process *process)
{
    qr_uuid id;
    enum qr_job_state state;
    if (flow_oracle_pick_id("SELECT id FROM job WHERE state IN (1, 2, 3, 4)", &id)) {
        count_answer(qr_workflow_cancel_job(parts_workflow(process), id, &state, NULL));
    }
}

static void retry_job(struct process *process)
{
    qr_uuid id, new_id;
    bool existed;
    if (flow_oracle_pick_id("SELECT id FROM job WHERE state IN (6, 8) ORDER BY id DESC LIMIT 20", &id)) {
        count_answer(qr_workflow_retry_job(parts_workflow(process), id, &new_id, &existed, NULL));
    }
}

struct pausing {
    enum qr_queue queue;
    bool paused;
};

/* A queue that is not paused is not resumed: that would wake the runner, who must not need it. */
static qr_rc set_paused(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct pausing *pausing = arg;
    int64_t since_ms;
    QR_TRY(qr_queue_paused_since(tx, pausing->queue, &since_ms, err));
    return pausing->paused || since_ms > 0 ? qr_queue_set_paused(tx, pausing->queue, pausing->paused, err) : QR_OK;
}

static void pause_queue(struct process *process)
{
    struct pausing pausing = {(enum qr_queue)sim_between(QR_QUEUE_EXPAND, QR_QUEUE_DELETE), sim_chance(350)};
    count_answer(qr_db_write(process->db, QR_DURABLE, set_paused, &pausing, NULL));
}

static void resume_all(struct process *process)
{
    for (enum qr_queue queue = QR_QUEUE_EXPAND; queue < QR_QUEUE_END; queue++) {
        qr_err err = {0};
        QR_CHECK_RC(QR_OK, qr_db_write(process->db, QR_DURABLE, set_paused, &(struct pausing){queue, false}, &err));
    }
}

/* ---- searching ---- */

/* Inside a look at the main database nobody may be waited for: so only where the store is open and stays so. Two workers share
 * stores on a server, whose text search knows what anybody wrote; a file's own process keeps that in mind, so it is told. */
static bool can_search_at_once(const struct qr_index_set *set, qr_uuid base_id)
{
    struct index_store *store = qr_map_find(&set->stores, (qr_str){(const char *)base_id.bytes, QR_UUID_BYTES});
    const bool is_open = store && store->state == STORE_OPEN && !store->is_leaving;
    if (is_open && !world.owns_all) {
        store->writes++;
    }
    return is_open;
}

static void check_hits(const struct qr_search *search, const struct qr_search_hit *hits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!flow_oracle_is_visible(search->base_id, hits[i].row.item_id, hits[i].row.generation)) {
            QR_FAIL("I3, I4: search shows generation %lld of an item that it may not show",
                    (long long)hits[i].row.generation);
        }
    }
    const int64_t there = flow_oracle_visible_chunks(search->base_id);
    if ((int64_t)count != QR_MIN(there, (int64_t)search->top_k)) {
        QR_FAIL("I3: search shows %zu chunks, and there are %lld", count, (long long)there);
    }
}

static void search(struct process *process)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct qr_search search = {.db = process->db,
                               .index = parts_index(process),
                               .memory = parts_visible(process),
                               .query = QR_STR("common"),
                               .keeps_chunks = true,
                               .top_k = (int)sim_between(1, sim_between(1, QR_SEARCH_TOP_K_MAX))};
    struct qr_search_answer answer;
    qr_err err = {0};
    if (!pick_base(&search.base_id) || !flow_oracle_is_settled(search.base_id) ||
        !can_search_at_once(search.index, search.base_id)) {
        return;
    }
    sim_hold();
    QR_CHECK_RC(QR_OK, qr_search_run(&search, &arena, &answer, &err));
    check_hits(&search, answer.hits, answer.count);
    sim_release();
    flow_totals.searches++;
}

/* PAID-2: at any time. */
static void prune_vectors(struct process *process)
{
    QR_CLEANUP(qr_free_ptr) struct qr_pruning *pruning = qr_alloc_zero(sizeof *pruning);
    struct qr_vector_round round;
    qr_err err = {0};
    QR_CHECK(pruning);
    qr_pruning_init(pruning, process->db, parts_index(process), 0);
    count_answer(qr_prune(pruning, sim_between(0, 5000), &round, &err));
}

/* ---- all of it ---- */

static void do_something(struct process *process)
{
    static const struct {
        int weight;
        void (*fn)(struct process *process);
    } deeds[] = {{18, add_note},     {10, delete_items}, {10, update},   {4, patch},       {8, process_base},
                 {3, cancel_run},    {5, cancel_job},    {3, retry_job}, {4, add_base},    {3, delete_base},
                 {1, fail_base},     {4, restore_base},  {10, search},   {8, pause_queue}, {6, choose_model},
                 {5, prune_vectors}, {14, reindex_one}};
    int64_t at = sim_between(0, 154);
    for (size_t i = 0; i < QR_COUNT(deeds); i++) {
        if (at < deeds[i].weight) {
            deeds[i].fn(process);
            return;
        }
        at -= deeds[i].weight;
    }
    if (at < 10) {
        add_path(process, at < 7);
    } else {
        ask_about_some(process, sim_between(0, 2));
    }
}

/* ---- the end ---- */

static void wait_for_rest(void)
{
    const int64_t until_ms = sim_now_ms() + REST_MS_MAX;
    const char *unrest;
    while ((unrest = flow_oracle_unrest())) {
        if (sim_now_ms() > until_ms) {
            QR_FAIL("I5: %lld minutes after the last fault %s", (long long)REST_MS_MAX / 60000, unrest);
        }
        sim_sleep(5000);
    }
}

static void restore_all(struct process *process)
{
    qr_uuid id, job_id;
    qr_err err = {0};
    while (flow_oracle_pick_id("SELECT id FROM base WHERE status = 2 AND NOT EXISTS (SELECT 1 FROM job WHERE base_id = "
                               "base.id AND type = 'restore-base' AND state IN (1, 2, 3, 4))",
                               &id)) {
        QR_CHECK_RC(QR_OK, qr_workflow_restore_base(parts_workflow(process), id, &job_id, &err));
    }
}

/* Whoever writes to an index that was lost sees to it that it is rebuilt (RECOV-4): so a note for each base. */
static void touch_all(struct process *process)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    for (int i = 0; i < 4 * BASES_ENOUGH; i++) {
        const struct qr_add_item item = {.type = QR_ITEM_NOTE, .name = QR_STR("note"), .content = QR_STR("common end")};
        struct qr_add add = {.items = &item, .count = 1};
        struct qr_added *added;
        qr_err err = {0};
        if (flow_oracle_pick_id("SELECT id FROM base WHERE status = 1 AND NOT EXISTS (SELECT 1 FROM item WHERE "
                                "base_id = base.id AND size_bytes = 10)",
                                &add.base_id)) {
            QR_CHECK_RC(QR_OK, qr_workflow_add(parts_workflow(process), &add, &arena, &added, &err));
        }
    }
}

static void look_again(struct process *process, int status, bool only_folders, bool retries)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    struct seen_item items[200];
    int count = 0;
    while (count < (int)QR_COUNT(items) && flow_oracle_nth_item(count, status, only_folders, &items[count])) {
        count++;
    }
    for (int i = 0; i < count; i++) {
        const struct qr_selection selection = {items[i].base_id, &items[i].id, 1};
        struct qr_selection_answer answer;
        qr_err err = {0};
        QR_CHECK_RC(QR_OK, retries ? qr_workflow_retry(parts_workflow(process), &selection, &arena, &answer, &err)
                                   : qr_workflow_refresh(parts_workflow(process), &selection, &arena, &answer, &err));
    }
}

/* Once to know what it is made of, as the base's models and index are now, and once to find it unchanged. */
static void reindex_all(struct process *process)
{
    for (int times = 0; times < 2; times++) {
        for (int n = 0; reindex_completed(process, n); n++) {
        }
        wait_for_rest();
    }
}

/* As later as it takes for what crashes left to be old enough. */
static void sweep(struct process *process)
{
    const int64_t later_ms = qr_clock_wall_ms(sim_clock()) + 2 * 3600 * 1000;
    uint32_t cursor = 0;
    int64_t removed;
    qr_err err = {0};
    do {
        QR_CHECK_RC(QR_OK,
                    qr_artifacts_sweep(parts_artifacts(process), process->db, later_ms, &cursor, 1000, &removed, &err));
    } while (cursor);
}

void people_finish(void *arg)
{
    struct process *process = arg;
    tree_settle();
    while (!process->runner) {
        sim_sleep(100);
    }
    sim_sleep(1000);
    resume_all(process);
    restore_all(process);
    wait_for_rest();
    touch_all(process);
    wait_for_rest();
    restore_all(process);
    wait_for_rest();
    look_again(process, 0, true, false);
    wait_for_rest();
    look_again(process, QR_ITEM_FAILED, false, true);
    wait_for_rest();
    build_all(process);
    wait_for_rest();
    reindex_all(process);
    sweep(process);
    wait_for_rest();
    search(process);
    has_finished = true;
}

void people(void *arg)
{
    struct process *process = arg;
    while (world.faults && !process->is_ending) {
        const int64_t pace = sim_between(0, 999);
        sim_sleep(pace < 850 ? sim_between(0, 400) : pace < 990 ? sim_between(0, 40000) : sim_between(0, 15 * 60000));
        if (world.faults && !process->is_ending) {
            do_something(process);
        }
    }
}
