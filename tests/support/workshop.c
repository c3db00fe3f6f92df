#include "support/workshop.h"

#include "base/fs.h"
#include "handler/embedding.h"
#include "support/jobs_fixture.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static void must(qr_rc rc, const qr_err *err)
{
    if (rc != QR_OK) {
        QR_FAIL("%s (%s)", err->msg, qr_code_info(err->code)->name);
    }
}

/* ---- opening ---- */

void qr_shop_open(struct qr_shop *shop, struct qr_test *t, const char *settings)
{
    *shop = (struct qr_shop){0};
    struct qr_desk *desk = &shop->desk;
    qr_err err;
    qr_desk_open(desk, t, settings);
    snprintf(shop->index_dir, sizeof shop->index_dir, "%s/index", t->dir);
    snprintf(shop->work_dir, sizeof shop->work_dir, "%s/work", t->dir);
    if (qr_test_on_postgres(t)) {
        shop->index_options.main_db = desk->db;
    } else {
        shop->index_options.dir = shop->index_dir;
    }
    shop->context = (struct qr_handler_context){.db = desk->db,
                                                .ids = &desk->ids,
                                                .artifacts = &desk->artifacts,
                                                .reader = qr_reader_direct(),
                                                .work_dir = shop->work_dir};
    must(qr_index_set_open(&shop->context.index, &shop->index_options, &err), &err);
    qr_shop_make_folder(shop, "");
    qr_shop_use_provider(shop, NULL);
}

void qr_shop_use_provider(struct qr_shop *shop, struct qr_provider *provider)
{
    qr_err err;
    qr_providers_close(shop->context.providers);
    must(qr_providers_open(&shop->context.providers,
                           &(struct qr_providers_options){.clock = qr_clock_system(),
                                                          .endpoints = shop->context.endpoints,
                                                          .hooks = qr_embedding_hooks(shop->desk.db),
                                                          .instead = provider},
                           &err),
         &err);
}

void qr_shop_set_settings(struct qr_shop *shop, const char *settings)
{
    qr_err err;
    must(qr_workflow_set_settings(&shop->desk.workflow, shop->desk.base_id, settings, &err), &err);
}

struct qr_batcher *qr_shop_batcher(struct qr_shop *shop, const char *settings)
{
    struct qr_settings parsed;
    struct qr_batcher *batcher;
    qr_err err;
    must(qr_settings_parse_text(settings, &shop->desk.arena, &parsed, &err), &err);
    must(qr_providers_get(shop->context.providers, &parsed.embedding, &batcher, &err), &err);
    qr_providers_put(shop->context.providers, batcher); /* which keeps it */
    return batcher;
}

void qr_shop_close(struct qr_shop *shop)
{
    qr_providers_close(shop->context.providers);
    qr_index_set_close(shop->context.index);
    qr_desk_close(&shop->desk);
}

/* ---- working ---- */

static qr_rc sync_index(const struct qr_ended *ended, size_t count, void *arg, qr_err *err)
{
    struct qr_shop *shop = QR_CONTAINER_OF((struct qr_workflow *)arg, struct qr_shop, desk.workflow);
    void (*before_record)(struct qr_shop *) = shop->before_record;
    shop->before_record = NULL;
    if (before_record) {
        before_record(shop);
    }
    for (size_t i = 0; i < count; i++) {
        if (qr_uuid_equal(ended[i].job->base_id, shop->desk.base_id) &&
            strcmp(ended[i].job->type, "delete-base") != 0) {
            return qr_index_sync(shop->context.index, shop->desk.base_id, err);
        }
    }
    return QR_OK;
}

static void work(struct qr_shop *shop, const char *queues)
{
    struct qr_desk *desk = &shop->desk;
    struct qr_runner *runner;
    qr_err err;
    struct qr_runner_options options = {
        .db = desk->db,
        .ids = &desk->ids,
        .clock = desk->ids.clock,
        .rand = qr_rand_system(),
        .handlers = shop->handlers,
        .handler_count = qr_handlers(&shop->context, shop->handlers),
        .plan = qr_workflow_plan(&desk->workflow),
        .slots = {[QR_QUEUE_EXPAND] = 2,
                  [QR_QUEUE_CONVERT] = 2,
                  [QR_QUEUE_EMBED] = 1,
                  [QR_QUEUE_ASSETS] = 1,
                  [QR_QUEUE_DELETE] = 1},
        .name = "shop",
        .owns_all = true,
        .stuck_max = 8,
    };
    options.plan.before = sync_index;
    must(qr_runner_start(&runner, &options, &err), &err);
    char due[160];
    snprintf(due, sizeof due,
             "SELECT count(*) FROM job WHERE (state IN (1, 3, 4) OR (state = 2 AND run_at <= %lld)) AND queue IN %s",
             (long long)qr_clock_wall_ms(desk->ids.clock), queues);
    while (qr_desk_i64(desk, due) > 0) {
        qr_world_pause_briefly();
    }
    QR_CHECK(qr_runner_stop(runner, 60000));
    qr_desk_check(desk);
}

void qr_shop_work(struct qr_shop *shop)
{
    work(shop, "(1, 2, 3, 4, 5)");
}

void qr_shop_work_but_deletes(struct qr_shop *shop)
{
    work(shop, "(1, 2, 3, 4)");
}

void qr_shop_work_deletes(struct qr_shop *shop)
{
    work(shop, "(5)");
}

void qr_shop_work_after(struct qr_shop *shop, int64_t ms)
{
    qr_test_clock_advance(ms);
    qr_shop_work(shop);
}

struct pause {
    enum qr_queue queue;
    bool paused;
};

static qr_rc set_paused(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct pause *pause = arg;
    return qr_queue_set_paused(tx, pause->queue, pause->paused, err);
}

void qr_shop_set_paused(struct qr_shop *shop, enum qr_queue queue, bool paused)
{
    struct pause pause = {queue, paused};
    qr_err err;
    must(qr_db_write(shop->desk.db, QR_RELAXED, set_paused, &pause, &err), &err);
}

/* ---- sources ---- */

const char *qr_shop_path(struct qr_shop *shop, const char *name)
{
    char below[128];
    snprintf(below, sizeof below, "src%s%s", *name ? "/" : "", name);
    return qr_test_path(shop->desk.t, below);
}

void qr_shop_write(struct qr_shop *shop, const char *name, const char *content)
{
    qr_err err;
    must(qr_fs_replace(qr_io_system(), qr_shop_path(shop, name), qr_str_of(content), 0644, &err), &err);
}

void qr_shop_make_folder(struct qr_shop *shop, const char *name)
{
    qr_err err;
    must(qr_fs_make_dirs(qr_io_system(), qr_shop_path(shop, name), 0755, &err), &err);
}

void qr_shop_remove(struct qr_shop *shop, const char *name)
{
    QR_CHECK_INT(0, remove(qr_shop_path(shop, name)));
}

static qr_uuid add_item(struct qr_shop *shop, const struct qr_add_item *item)
{
    const struct qr_add request = {.base_id = shop->desk.base_id, .items = item, .count = 1};
    struct qr_added *added;
    qr_err err;
    must(qr_workflow_add(&shop->desk.workflow, &request, &shop->desk.arena, &added, &err), &err);
    return added[0].id;
}

static qr_uuid add(struct qr_shop *shop, enum qr_item_type type, const char *name, const char *options)
{
    return add_item(shop, &(struct qr_add_item){.type = type,
                                                .source = qr_str_of(qr_shop_path(shop, name)),
                                                .options = qr_str_of(options)});
}

qr_uuid qr_shop_add_bound(struct qr_shop *shop, enum qr_item_type type, const char *name)
{
    char path[PATH_MAX];
    QR_CHECK(realpath(qr_shop_path(shop, name), path));
    return add_item(shop, &(struct qr_add_item){.type = type, .source = qr_str_of(path), .no_links = true});
}

qr_uuid qr_shop_add_file(struct qr_shop *shop, const char *name, const char *options)
{
    return add(shop, QR_ITEM_FILE, name, options);
}

qr_uuid qr_shop_add_folder(struct qr_shop *shop, const char *name, const char *options)
{
    return add(shop, QR_ITEM_DIRECTORY, name, options);
}

qr_uuid qr_shop_add_tree(struct qr_shop *shop)
{
    qr_shop_make_folder(shop, "tree/sub");
    qr_shop_write(shop, "tree/a.md", "# Apples\n\nThey are red.\n");
    qr_shop_write(shop, "tree/b.txt", "bananas are yellow\n");
    qr_shop_write(shop, "tree/sub/c.md", "# Cherries\n\nThey are small.\n");
    const qr_uuid folder = qr_shop_add_folder(shop, "tree", "");
    qr_shop_work(shop);
    return folder;
}

/* ---- requests ---- */

typedef qr_rc entry_fn(const struct qr_workflow *workflow, const struct qr_selection *selection, struct qr_arena *arena,
                       struct qr_selection_answer *ret_answer, qr_err *err);

static void request(struct qr_shop *shop, entry_fn *entry, qr_uuid id)
{
    const struct qr_selection selection = {shop->desk.base_id, &id, 1};
    struct qr_selection_answer answer;
    qr_err err;
    must(entry(&shop->desk.workflow, &selection, &shop->desk.arena, &answer, &err), &err);
}

static qr_rc reindex(const struct qr_workflow *workflow, const struct qr_selection *selection, struct qr_arena *arena,
                     struct qr_selection_answer *ret_answer, qr_err *err)
{
    struct qr_status_counts counts;
    struct qr_reindex_estimate estimate;
    return qr_workflow_reindex(workflow, selection, false, arena, ret_answer, &counts, &estimate, err);
}

void qr_shop_refresh(struct qr_shop *shop, qr_uuid id)
{
    request(shop, qr_workflow_refresh, id);
}

void qr_shop_reindex(struct qr_shop *shop, qr_uuid id)
{
    request(shop, reindex, id);
}

void qr_shop_retry(struct qr_shop *shop, qr_uuid id)
{
    request(shop, qr_workflow_retry, id);
}

void qr_shop_delete(struct qr_shop *shop, qr_uuid id)
{
    request(shop, qr_workflow_delete, id);
}

/* ---- what comes between ---- */

static qr_rc embed_disturbed(struct qr_provider *provider, const struct qr_embed_request *request,
                             struct qr_embed_answer *ret_answer, qr_err *err)
{
    const struct qr_disturbed *disturbed = provider->arg;
    must(qr_embed_answer_begin(ret_answer, request->count, 4, err), err);
    for (size_t i = 0; i < request->count * 4; i++) {
        ret_answer->vectors[i] = 0.5F;
    }
    if (atomic_fetch_add(&provider->call_count, 1) == 0) {
        disturbed->disturb(disturbed);
    }
    return QR_OK;
}

void qr_disturbed_open(struct qr_disturbed *disturbed, struct qr_shop *shop, struct qr_test *t)
{
    qr_shop_open(shop, t,
                 "{\"embedding\":{\"provider\":\"hash\"},\"chunking\":{\"strategy\":\"separator\","
                 "\"separator\":\"---\",\"size_tokens\":16}}");
    disturbed->provider.fingerprint = "disturbed";
    disturbed->provider.limits.inputs_max = 1;
    disturbed->provider.embed = embed_disturbed;
    disturbed->provider.arg = disturbed;
    disturbed->shop = shop;
    qr_shop_use_provider(shop, &disturbed->provider);
    disturbed->item_id = qr_desk_add_note(&shop->desk, "note",
                                          "first of the old parts, long enough to stand on its own here --- "
                                          "second of the old parts, long enough to stand on its own here --- "
                                          "third of the old parts, long enough to stand on its own");
}

void qr_disturb_by_update(const struct qr_disturbed *disturbed)
{
    const struct qr_desk *desk = &disturbed->shop->desk;
    bool changed;
    qr_err err;
    must(qr_workflow_update(&desk->workflow, desk->base_id, disturbed->item_id, QR_STR("new words"), &changed, &err),
         &err);
}

/* ---- looking ---- */

int64_t qr_shop_completed(struct qr_shop *shop)
{
    return qr_desk_i64(&shop->desk, "SELECT count(*) FROM item WHERE status = 6");
}

int64_t qr_shop_generations(struct qr_shop *shop)
{
    return qr_desk_i64(&shop->desk, "SELECT CAST(sum(generation) AS BIGINT) FROM item WHERE is_container = 0");
}

enum { LOOKED_AT_MAX = 200 };

size_t qr_shop_chunks(struct qr_shop *shop, qr_uuid item_id, int64_t generation)
{
    struct qr_chunk_row *rows;
    size_t count;
    qr_err err;
    must(qr_index_chunks(shop->context.index, shop->desk.base_id, item_id, generation, 0, 0, 10000, &shop->desk.arena,
                         &rows, &count, &err),
         &err);
    return count;
}

size_t qr_shop_hits(struct qr_shop *shop, const char *query)
{
    struct qr_index_hit hits[LOOKED_AT_MAX];
    size_t count;
    qr_err err;
    must(qr_index_sync(shop->context.index, shop->desk.base_id, &err), &err);
    must(qr_index_search_text(shop->context.index, shop->desk.base_id, qr_str_of(query), LOOKED_AT_MAX, NULL, NULL,
                              hits, &count, &err),
         &err);
    return count;
}

struct models {
    struct qr_shop *shop;
    struct qr_arena arena;
    struct qr_base_models of;
};

static qr_rc read_models(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct models *models = arg;
    struct qr_base base;
    bool found;
    qr_arena_reset(&models->arena);
    QR_TRY(qr_base_find(tx, models->shop->desk.base_id, &models->arena, &found, &base, err));
    QR_CHECK(found);
    return qr_base_models(&base, &models->arena, &models->of, err);
}

int64_t qr_shop_live_model(struct qr_shop *shop)
{
    struct models models = {.shop = shop};
    qr_err err;
    qr_arena_init(&models.arena, 0); /* its own: also for those who count what is allocated */
    must(qr_db_read(shop->desk.db, read_models, &models, &err), &err);
    qr_arena_done(&models.arena);
    return models.of.live_key;
}

static size_t extents_of(struct qr_shop *shop, int64_t model, int64_t *ret_vectors)
{
    struct qr_index_extent extents[LOOKED_AT_MAX];
    size_t count;
    qr_err err;
    must(qr_index_extents(shop->context.index, shop->desk.base_id, model, (qr_uuid){0}, 0, LOOKED_AT_MAX, extents,
                          &count, &err),
         &err);
    *ret_vectors = 0;
    for (size_t i = 0; i < count; i++) {
        *ret_vectors += extents[i].vector_count;
    }
    return count;
}

size_t qr_shop_extents(struct qr_shop *shop)
{
    int64_t ignored;
    return extents_of(shop, 0, &ignored);
}

int64_t qr_shop_vectors(struct qr_shop *shop)
{
    return qr_shop_vectors_of(shop, qr_shop_live_model(shop));
}

int64_t qr_shop_vectors_of(struct qr_shop *shop, int64_t model)
{
    int64_t vectors;
    extents_of(shop, model, &vectors);
    return vectors;
}
