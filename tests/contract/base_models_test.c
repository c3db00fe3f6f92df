/* Another model for a base: built beside the one that search uses, then switched to (MODEL). */
#include "base/failpoint.h"
#include "handler/embedding.h"
#include "handler/estimate.h"
#include "support/workshop.h"

#define OF(model) "{\"embedding\":{\"provider\":\"hash\",\"model\":\"" model "\",\"dimensions\":16}}"

static const char one[] = OF("one"), two[] = OF("two"), three[] = OF("three"), none[] = "{}";

/* ---- providers of the test's own: each counts its calls ---- */

struct model {
    const char *name;
    char fingerprint[QR_FINGERPRINT_SIZE];
    struct qr_provider *provider;
    int64_t failures_left; /* so many calls fail */
    bool takes_nothing;
    int64_t during_call;                 /* in which this happens; 0 = in the first */
    void (*during)(struct model *model); /* once */
    struct models *of;
};

struct models {
    struct qr_shop shop;
    struct model all[3];
};

enum { DIMENSION = 16 };

static qr_rc embed(struct qr_provider *provider, const struct qr_embed_request *request,
                   struct qr_embed_answer *ret_answer, qr_err *err)
{
    struct model *model = provider->arg;
    const int64_t number = atomic_fetch_add(&provider->call_count, 1) + 1;
    void (*during)(struct model *) = number >= model->during_call ? model->during : NULL;
    if (during) {
        model->during = NULL;
        during(model);
    }
    if (model->failures_left > 0) {
        model->failures_left--;
        return qr_fail(err, QR_CODE_EMBEDDING_FAILED, "the provider is in trouble");
    }
    QR_TRY(qr_embed_answer_begin(ret_answer, request->count, DIMENSION, err));
    memset(ret_answer->vectors, 0, request->count * DIMENSION * sizeof(float));
    for (size_t i = 0; i < request->count; i++) {
        const qr_str text = request->texts[i];
        ret_answer->vectors[i * DIMENSION + (size_t)model->name[1] % DIMENSION] = 1;
        ret_answer->is_bad[i] = model->takes_nothing || memmem(text.ptr, text.len, "unspeakable", 11) != NULL;
    }
    return QR_OK;
}

static struct qr_provider *provider_of(const struct qr_embedding_settings *embedding, void *arg)
{
    struct models *models = arg;
    for (size_t i = 0; i < QR_COUNT(models->all); i++) {
        if (strcmp(embedding->model, models->all[i].name) == 0) {
            return models->all[i].provider;
        }
    }
    QR_FAIL("nobody knows the model %s", embedding->model);
}

static struct qr_provider providers[3];

static void models_open(struct models *models, struct qr_test *t, const char *settings)
{
    static const char *const names[] = {"one", "two", "three"};
    *models = (struct models){0};
    qr_shop_open(&models->shop, t, settings);
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        struct model *model = &models->all[i];
        *model = (struct model){.name = names[i], .provider = &providers[i], .of = models};
        qr_embedding_fingerprint(
            &(struct qr_embedding_settings){
                .provider = "hash", .model = names[i], .document_prefix = "", .dimensions = DIMENSION},
            model->fingerprint);
        providers[i] = (struct qr_provider){
            .fingerprint = model->fingerprint, .limits.inputs_max = 4, .embed = embed, .arg = model};
    }
    struct qr_providers **shared = &models->shop.context.providers;
    qr_err err;
    qr_providers_close(*shared);
    QR_CHECK_RC(QR_OK,
                qr_providers_open(shared,
                                  &(struct qr_providers_options){.clock = qr_clock_system(),
                                                                 .hooks = qr_embedding_hooks(models->shop.desk.db),
                                                                 .instead_of = provider_of,
                                                                 .instead_arg = models},
                                  &err));
}

static void models_close(struct models *models)
{
    qr_shop_close(&models->shop);
}

static int64_t calls(const struct models *models, int number)
{
    return models->all[number].provider->call_count;
}

/* ---- the base ---- */

static int64_t key_of(const char *settings)
{
    struct qr_settings parsed;
    struct qr_arena arena;
    qr_err err;
    qr_arena_init(&arena, 0);
    QR_CHECK_RC(QR_OK, qr_settings_parse_text(settings, &arena, &parsed, &err));
    const int64_t key = qr_model_key(&parsed.embedding);
    qr_arena_done(&arena);
    return key;
}

static void choose(struct models *models, const char *settings)
{
    qr_err err;
    QR_CHECK_RC(QR_OK,
                qr_workflow_set_settings(&models->shop.desk.workflow, models->shop.desk.base_id, settings, &err));
}

static bool is_live(struct models *models, const char *settings)
{
    return qr_shop_live_model(&models->shop) == key_of(settings);
}

static int64_t vectors(struct models *models, const char *settings)
{
    return qr_shop_vectors_of(&models->shop, key_of(settings));
}

static void add_notes(struct models *models, int from, int count)
{
    char name[32], text[64];
    for (int i = from; i < from + count; i++) {
        snprintf(name, sizeof name, "note %d", i);
        snprintf(text, sizeof text, "the content of note %d", i);
        qr_desk_add_note(&models->shop.desk, name, text);
    }
}

/* ---- building ---- */

QR_DB_TEST(a_new_model_is_built_beside_the_old_one_and_then_becomes_the_live_one) /* MODEL-1, MODEL-3, MODEL-5 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 5);
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, one) && vectors(&models, one) == 5);
    const int64_t before = calls(&models, 0);
    choose(&models, two);
    QR_CHECK(is_live(&models, one));
    QR_CHECK_INT(1, qr_desk_open_jobs(&models.shop.desk, QR_JOB_BUILD_VECTORS));
    QR_CHECK_INT(0, vectors(&models, two));
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, two));
    QR_CHECK_INT(5, vectors(&models, two));
    QR_CHECK_INT(5, vectors(&models, one)); /* kept, to go back to */
    QR_CHECK_INT(2, calls(&models, 1));
    QR_CHECK_INT(before, calls(&models, 0));
    models_close(&models);
}

/* MODEL-4: what was added since is embedded, and nothing else. */
QR_DB_TEST(going_back_to_the_previous_model_embeds_only_what_was_added_since)
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 5);
    qr_shop_work(&models.shop);
    choose(&models, two);
    qr_shop_work(&models.shop);
    add_notes(&models, 5, 2);
    qr_shop_work(&models.shop);
    QR_CHECK_INT(5, vectors(&models, one));
    const int64_t before = calls(&models, 0);
    choose(&models, one);
    QR_CHECK(is_live(&models, two));
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, one));
    QR_CHECK_INT(7, vectors(&models, one));
    QR_CHECK_INT(7, vectors(&models, two));
    QR_CHECK_INT(before + 1, calls(&models, 0));
    models_close(&models);
}

QR_DB_TEST(a_third_model_takes_the_place_of_the_first) /* MODEL-5 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 3);
    qr_shop_work(&models.shop);
    choose(&models, two);
    qr_shop_work(&models.shop);
    choose(&models, three);
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, three));
    QR_CHECK_INT(3, vectors(&models, three));
    QR_CHECK_INT(3, vectors(&models, two));
    QR_CHECK_INT(0, vectors(&models, one));
    models_close(&models);
}

QR_DB_TEST(setting_it_back_to_the_live_model_calls_the_build_off) /* MODEL-4 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 3);
    qr_shop_work(&models.shop);
    qr_shop_set_paused(&models.shop, QR_QUEUE_EMBED, true);
    choose(&models, two);
    choose(&models, one);
    qr_shop_set_paused(&models.shop, QR_QUEUE_EMBED, false);
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, one));
    QR_CHECK_INT(0, calls(&models, 1));
    QR_CHECK_INT(0, qr_desk_i64(&models.shop.desk, "SELECT count(*) FROM base WHERE live_embedding <> ''"));
    models_close(&models);
}

QR_DB_TEST(a_base_without_a_model_gets_one_in_place_and_loses_it_at_once) /* MODEL-6 */
{
    struct models models;
    models_open(&models, t, none);
    add_notes(&models, 0, 3);
    qr_shop_work(&models.shop);
    QR_CHECK_INT(3, qr_shop_hits(&models.shop, "content"));
    choose(&models, one);
    QR_CHECK(is_live(&models, none));
    add_notes(&models, 3, 1); /* goes live without waiting for the switch */
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, one));
    QR_CHECK_INT(4, vectors(&models, one));
    QR_CHECK_INT(4, qr_shop_completed(&models.shop));
    choose(&models, none);
    QR_CHECK(is_live(&models, none));
    add_notes(&models, 4, 1);
    qr_shop_work(&models.shop);
    QR_CHECK_INT(5, qr_shop_completed(&models.shop));
    QR_CHECK_INT(4, vectors(&models, one));
    models_close(&models);
}

QR_DB_TEST(a_base_without_items_has_nothing_to_build) /* MODEL-6 */
{
    struct models models;
    models_open(&models, t, one);
    choose(&models, two);
    QR_CHECK(is_live(&models, two));
    qr_shop_work(&models.shop);
    QR_CHECK_INT(0, calls(&models, 1));
    models_close(&models);
}

/* ---- what happens meanwhile ---- */

QR_DB_TEST(what_is_added_during_a_build_is_embedded_for_both_models) /* MODEL-2 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 2);
    qr_shop_work(&models.shop);
    models.all[1].failures_left = 1; /* the build waits */
    choose(&models, two);
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, one));
    add_notes(&models, 2, 2);
    qr_shop_work(&models.shop);
    QR_CHECK_INT(4, qr_shop_completed(&models.shop));
    QR_CHECK_INT(4, vectors(&models, one));
    QR_CHECK_INT(2, vectors(&models, two));
    QR_CHECK_INT(0, qr_desk_i64(&models.shop.desk, "SELECT build_missed FROM base"));
    qr_shop_work_after(&models.shop, 30000);
    QR_CHECK(is_live(&models, two));
    QR_CHECK_INT(4, vectors(&models, two));
    models_close(&models);
}

/* MODEL-2: the trouble of a model that is not live yet is nobody's but the build's. */
QR_DB_TEST(an_item_is_completed_though_the_new_model_is_in_trouble_and_the_build_takes_it_up)
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 2);
    qr_shop_work(&models.shop);
    models.all[1].failures_left = 2; /* the build, then the note */
    choose(&models, two);
    qr_shop_work(&models.shop);
    add_notes(&models, 2, 1);
    qr_shop_work(&models.shop);
    QR_CHECK_INT(3, qr_shop_completed(&models.shop));
    QR_CHECK_INT(1, qr_desk_i64(&models.shop.desk, "SELECT build_missed FROM base"));
    QR_CHECK(is_live(&models, one));
    qr_shop_work_after(&models.shop, 30000);
    QR_CHECK(is_live(&models, two));
    QR_CHECK_INT(3, vectors(&models, two));
    models_close(&models);
}

/* As if they had gone live just now, while the model was in trouble. */
static void miss_those_before(struct model *model)
{
    struct qr_shop *shop = &model->of->shop;
    const int64_t kept = key_of(one);
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_index_keep_models(shop->context.index, shop->desk.base_id, &kept, 1, NULL, &err));
    qr_desk_exec(&shop->desk, "UPDATE base SET build_missed = build_missed + 1");
}

QR_DB_TEST(a_pass_that_missed_something_is_made_once_more) /* MODEL-3 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 40); /* 32 at a time, in calls of 4 */
    qr_shop_work(&models.shop);
    models.all[1].during = miss_those_before;
    models.all[1].during_call = 9;
    choose(&models, two);
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, two));
    QR_CHECK_INT(10, calls(&models, 1));
    QR_CHECK_INT(40, vectors(&models, two));
    models_close(&models);
}

static void switch_to_none(struct model *model)
{
    choose(model->of, none);
}

static void switch_to_two(struct model *model)
{
    choose(model->of, two);
}

QR_DB_TEST(a_stage_that_meets_another_model_begins_again) /* MODEL-2 */
{
    struct models models;
    models_open(&models, t, one);
    models.all[0].during = switch_to_none;
    add_notes(&models, 0, 1);
    qr_shop_work(&models.shop);
    QR_CHECK_INT(1, qr_shop_completed(&models.shop));
    QR_CHECK_INT(1, calls(&models, 0));
    QR_CHECK_INT(0, vectors(&models, one)); /* nobody writes for a model that was given up */
    models_close(&models);
}

QR_DB_TEST(a_stage_that_embedded_for_a_model_that_is_not_live_any_more_is_run_again) /* MODEL-2 */
{
    struct qr_desk desk;
    qr_err err;
    qr_desk_open(&desk, t, one);
    const qr_uuid note = qr_desk_add_note(&desk, "note", "words");
    struct qr_stage_result result = {.reached = QR_REACHED_INDEX, .chunk_count = 1};
    const struct qr_job job = qr_desk_claim(&desk, note, QR_JOB_PROCESS_DOCUMENT);
    QR_CHECK_RC(QR_OK, qr_workflow_set_settings(&desk.workflow, desk.base_id, none, &err));
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &job, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_INT(0, qr_desk_item(&desk, note).live_generation);
    const struct qr_job again = qr_desk_claim(&desk, note, QR_JOB_CHUNK_DOCUMENT);
    result.vector_epoch = qr_desk_i64(&desk, "SELECT vector_epoch FROM base");
    QR_CHECK_RC(QR_OK, qr_desk_end(&desk, &again, QR_JOB_COMPLETED, QR_CODE_NONE, &result, &err));
    QR_CHECK_INT(1, qr_desk_item(&desk, note).live_generation);
    qr_desk_close(&desk);
}

QR_DB_TEST(another_wish_ends_a_build_before_its_next_call) /* MODEL-1, I8 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 4);
    qr_shop_work(&models.shop);
    models.all[2].during = switch_to_two;
    choose(&models, three);
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, two));
    QR_CHECK_INT(1, calls(&models, 2));
    QR_CHECK_INT(4, vectors(&models, two));
    QR_CHECK_INT(0, vectors(&models, three));
    models_close(&models);
}

/* ---- trouble ---- */

QR_DB_TEST(a_build_waits_for_its_provider_however_long_it_takes) /* MODEL-7 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 3);
    qr_shop_work(&models.shop);
    models.all[1].failures_left = 40; /* far more than a job has attempts */
    choose(&models, two);
    for (int i = 0; i <= 40; i++) {
        qr_shop_work_after(&models.shop, 30000);
    }
    QR_CHECK(is_live(&models, two));
    QR_CHECK_INT(41, calls(&models, 1));
    models_close(&models);
}

QR_DB_TEST(chunks_that_the_new_model_cannot_embed_are_counted_and_do_not_stop_the_switch) /* MODEL-7 */
{
    struct models models;
    models_open(&models, t, none);
    add_notes(&models, 0, 2);
    qr_desk_add_note(&models.shop.desk, "bad", "something unspeakable");
    qr_shop_work(&models.shop);
    choose(&models, one);
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, one));
    QR_CHECK_INT(2, vectors(&models, one));
    QR_CHECK_INT(1, qr_desk_i64(&models.shop.desk, "SELECT build_failed FROM base"));
    QR_CHECK_INT(3, qr_shop_completed(&models.shop));
    models_close(&models);
}

QR_DB_TEST(a_model_that_takes_nothing_at_all_does_not_become_live_and_can_be_tried_again) /* MODEL-7 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 2);
    qr_shop_work(&models.shop);
    models.all[1].takes_nothing = true;
    choose(&models, two);
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, one));
    QR_CHECK_INT(1, qr_desk_i64(&models.shop.desk, "SELECT count(*) FROM job WHERE type = 'build-vectors' AND state = "
                                                   "6 AND code = 'chunks_failed'"));
    models.all[1].takes_nothing = false;
    choose(&models, two); /* the same once more */
    qr_shop_work(&models.shop);
    QR_CHECK(is_live(&models, two));
    QR_CHECK_INT(2, vectors(&models, two));
    models_close(&models);
}

/* RECOV-4: the live model's vectors come from the cache, and the build goes on with the other's. */
QR_DB_TEST(an_index_that_is_lost_during_a_build_is_made_anew_for_both_models)
{
    struct models models;
    qr_uuid job_id;
    qr_err err;
    models_open(&models, t, one);
    add_notes(&models, 0, 3);
    qr_shop_work(&models.shop);
    models.all[1].failures_left = 1;
    choose(&models, two);
    qr_shop_work(&models.shop);
    const struct qr_workflow *workflow = &models.shop.desk.workflow;
    QR_CHECK_RC(QR_OK, qr_workflow_fail_base(workflow, models.shop.desk.base_id, "data_corrupt", "by test", &err));
    QR_CHECK_RC(QR_OK, qr_index_drop(models.shop.context.index, models.shop.desk.base_id, &err));
    QR_CHECK_RC(QR_OK, qr_workflow_restore_base(workflow, models.shop.desk.base_id, &job_id, &err));
    qr_shop_work(&models.shop);
    QR_CHECK_INT(3, vectors(&models, one));
    QR_CHECK_INT(3, calls(&models, 0));
    qr_shop_work_after(&models.shop, 61000);
    QR_CHECK(is_live(&models, two));
    QR_CHECK_INT(3, vectors(&models, two));
    models_close(&models);
}

/* B3 of handler/build_vectors.c: a power loss must not find a live model without its vectors. */
QR_DB_TEST(a_model_does_not_become_live_before_its_vectors_are_durable) /* MODEL-3 */
{
    struct models models;
    qr_err err;
    if (!qr_failpoints_built_in()) {
        qr_test_skip("failpoints are not built in");
    }
    models_open(&models, t, none);
    add_notes(&models, 0, 3);
    qr_shop_work(&models.shop);
    choose(&models, one);
    QR_CHECK_RC(QR_OK, qr_failpoints_set("index.sync.before=error", &err));
    qr_shop_work(&models.shop);
    QR_CHECK_INT(3, vectors(&models, one));
    QR_CHECK(is_live(&models, none));
    QR_CHECK_RC(QR_OK, qr_failpoints_set(NULL, &err));
    qr_shop_work_after(&models.shop, 61000);
    QR_CHECK(is_live(&models, one));
    models_close(&models);
}

/* ---- what it would cost ---- */

static struct qr_estimate estimate(struct models *models, const char *settings)
{
    struct qr_settings parsed;
    struct qr_estimate estimated;
    struct qr_shop *shop = &models->shop;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_settings_parse_text(settings, &shop->desk.arena, &parsed, &err));
    QR_CHECK_RC(QR_OK, qr_estimate_model(shop->desk.db, shop->context.index, shop->desk.base_id, &parsed.embedding,
                                         &estimated, &err));
    return estimated;
}

QR_DB_TEST(what_a_model_would_embed_is_said_before) /* MODEL-4, PAID-1 */
{
    struct models models;
    models_open(&models, t, one);
    add_notes(&models, 0, 5);
    qr_shop_work(&models.shop);
    struct qr_estimate cost = estimate(&models, two);
    QR_CHECK(cost.chunks == 5 && cost.to_embed == 5 && cost.cached == 0 && cost.tokens > 0 && !cost.is_sampled);
    choose(&models, two);
    qr_shop_work(&models.shop);
    cost = estimate(&models, one); /* kept */
    QR_CHECK(cost.chunks == 5 && cost.to_embed == 0 && cost.cached == 0 && cost.tokens == 0);
    choose(&models, three);
    qr_shop_work(&models.shop);
    cost = estimate(&models, one); /* taken away, but paid for */
    QR_CHECK(cost.chunks == 5 && cost.to_embed == 0 && cost.cached == 5 && cost.tokens == 0);
    cost = estimate(&models, none);
    QR_CHECK(cost.chunks == 5 && cost.to_embed == 0);
    models_close(&models);
}

static struct qr_estimate estimate_items(struct models *models, const char *settings, const qr_uuid *ids, size_t count)
{
    struct qr_settings parsed;
    struct qr_estimate estimated;
    struct qr_shop *shop = &models->shop;
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_settings_parse_text(settings, &shop->desk.arena, &parsed, &err));
    QR_CHECK_RC(QR_OK, qr_estimate_items(shop->desk.db, shop->context.index, shop->desk.base_id, ids, count,
                                         &parsed.embedding, &estimated, &err));
    return estimated;
}

QR_DB_TEST(what_making_items_anew_would_embed_is_said_before) /* PAID-1 */
{
    struct models models;
    models_open(&models, t, one);
    const qr_uuid tree = qr_shop_add_tree(&models.shop);
    add_notes(&models, 0, 5);
    qr_shop_work(&models.shop);
    struct qr_estimate cost = estimate_items(&models, one, &tree, 1);
    QR_CHECK(cost.chunks == 3 && cost.to_embed == 0 && cost.cached == 3 && cost.tokens == 0); /* paid for */
    cost = estimate_items(&models, two, &tree, 1);
    QR_CHECK(cost.chunks == 3 && cost.to_embed == 3 && cost.cached == 0 && cost.tokens > 0 && !cost.is_sampled);
    cost = estimate_items(&models, none, &tree, 1);
    QR_CHECK(cost.chunks == 3 && cost.to_embed == 0 && cost.cached == 0);
    const qr_uuid gone = {.bytes = {1}};
    cost = estimate_items(&models, two, &gone, 1);
    QR_CHECK(cost.chunks == 0 && cost.to_embed == 0);
    models_close(&models);
}

/* MODEL-3, MODEL-8: each step may be the last of its process. */
QR_DB_TEST(a_build_that_fails_at_any_step_goes_on_and_pays_for_nothing_twice)
{
    static const char *const points[] = {
        "build.others.gone",         "build.item.done",    "build.pass.synced",         "model.switch.before_commit",
        "model.switch.after_commit", "embed.batch.stored", "index.write.before_commit", "index.write.after_commit"};
    struct models models;
    qr_err err;
    if (!qr_failpoints_built_in()) {
        qr_test_skip("failpoints are not built in");
    }
    models_open(&models, t, none);
    add_notes(&models, 0, 3);
    qr_shop_work(&models.shop);
    for (size_t i = 0; i < QR_COUNT(points); i++) {
        char plan[96];
        qr_test_set_context("%s", points[i]);
        snprintf(plan, sizeof plan, "%s=error@1", points[i]);
        QR_CHECK_RC(QR_OK, qr_failpoints_set(plan, &err));
        choose(&models, i % 2 ? one : two);
        qr_shop_work(&models.shop);
        QR_CHECK_RC(QR_OK, qr_failpoints_set(NULL, &err));
        for (int n = 0; n < 3; n++) {
            qr_shop_work_after(&models.shop, 61000);
        }
        QR_CHECK(is_live(&models, i % 2 ? one : two));
        QR_CHECK_INT(3, vectors(&models, i % 2 ? one : two));
    }
    QR_CHECK(calls(&models, 0) <= 3 + 1 && calls(&models, 1) <= 3 + 1);
    models_close(&models);
}
