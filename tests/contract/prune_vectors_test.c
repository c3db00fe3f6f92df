/* Pruning the vector cache, with everything that uses it, over every database. */
#include "handler/prune_vectors.h"

#include "base/failpoint.h"
#include "base/sync.h"
#include "handler/vector_look.h"
#include "job/beat.h"
#include "support/workshop.h"

enum { UNUSED = 10, HOUR_MS = 3600000, DIMENSION_MAX = 512 };

struct cache {
    struct qr_shop shop;
    struct qr_pruning pruning;
    struct qr_batcher *batcher;
    const char *fingerprint; /* of the base's model */
    int dimension;
};

#define SMALL_CHUNKS                                                                                                   \
    "{\"embedding\":{\"provider\":\"hash\"},\"chunking\":{\"strategy\":\"separator\",\"separator\":\"---\","           \
    "\"size_tokens\":16}}"

static void cache_open(struct cache *cache, struct qr_test *t)
{
    qr_err err;
    *cache = (struct cache){0};
    qr_shop_open(&cache->shop, t, SMALL_CHUNKS);
    qr_pruning_init(&cache->pruning, cache->shop.desk.db, cache->shop.context.index, 0);
    cache->batcher = qr_shop_batcher(&cache->shop, SMALL_CHUNKS);
    cache->fingerprint = qr_batcher_provider(cache->batcher)->fingerprint;
    qr_desk_add_note(&cache->shop.desk, "first", "a note that is there from the beginning");
    qr_shop_work(&cache->shop);
    QR_CHECK_RC(QR_OK, qr_batcher_dimension(cache->batcher, &cache->dimension, &err));
    QR_CHECK(cache->dimension > 0 && cache->dimension <= DIMENSION_MAX);
}

static int64_t calls_of(struct cache *cache)
{
    return qr_batcher_provider(cache->batcher)->call_count;
}

static int64_t number(struct cache *cache, const char *sql)
{
    return qr_desk_i64(&cache->shop.desk, sql);
}

/* Both rows of each entry are there or none is. */
static int64_t entries(struct cache *cache)
{
    QR_CHECK_INT(0, number(cache, "SELECT count(*) FROM vector_use WHERE key NOT IN (SELECT key FROM vector_cache)"));
    QR_CHECK_INT(0, number(cache, "SELECT count(*) FROM vector_cache WHERE key NOT IN (SELECT key FROM vector_use)"));
    return number(cache, "SELECT count(*) FROM vector_cache");
}

/* ---- entries of texts that no chunk has ---- */

struct entry_call {
    struct cache *cache;
    const char *fingerprint, *text;
    float vector[DIMENSION_MAX];
    struct qr_vector_found found;
};

static qr_rc add_entry(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct entry_call *call = arg;
    unsigned char key[QR_VECTOR_KEY_BYTES];
    qr_vector_key(call->fingerprint, qr_str_of(call->text), key);
    return qr_vector_add(tx, key, call->vector, call->cache->dimension, 0, err);
}

static qr_rc find_entry(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct entry_call *call = arg;
    unsigned char key[QR_VECTOR_KEY_BYTES];
    qr_vector_key(call->fingerprint, qr_str_of(call->text), key);
    return qr_vector_use(tx, key, call->cache->dimension, call->vector, &call->found, err);
}

static void add_of(struct cache *cache, const char *fingerprint, const char *text)
{
    struct entry_call call = {.cache = cache, .fingerprint = fingerprint, .text = text, .vector = {1}};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(cache->shop.desk.db, QR_DURABLE, add_entry, &call, &err));
}

static bool has_of(struct cache *cache, const char *fingerprint, const char *text)
{
    struct entry_call call = {.cache = cache, .fingerprint = fingerprint, .text = text};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_read(cache->shop.desk.db, find_entry, &call, &err));
    return call.found.is_found;
}

static void add(struct cache *cache, const char *text)
{
    add_of(cache, cache->fingerprint, text);
}

static bool has(struct cache *cache, const char *text)
{
    return has_of(cache, cache->fingerprint, text);
}

/* "unused 0" is the oldest; a second lies between two. */
static const char *unused_text(int i)
{
    static char text[32];
    snprintf(text, sizeof text, "unused %d", i);
    return text;
}

static void add_unused(struct cache *cache)
{
    for (int i = 0; i < UNUSED; i++) {
        qr_test_clock_advance(1000);
        add(cache, unused_text(i));
    }
}

/* As whoever embeds something looks for it. */
static bool use(struct cache *cache, const char *text)
{
    float vector[DIMENSION_MAX];
    struct qr_vector_look look = {.text = qr_str_of(text), .vector = vector};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_vectors_look(cache->shop.desk.db, cache->fingerprint, cache->dimension, &look, 1, &err));
    return look.found.is_found;
}

/* ---- rounds ---- */

static struct qr_vector_round prune(struct cache *cache, int64_t to_bytes)
{
    struct qr_vector_round round = {0};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_prune(&cache->pruning, to_bytes, &round, &err));
    return round;
}

struct step {
    struct qr_pruning *pruning;
    bool more;
};

static qr_rc write_step(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct step *step = arg;
    step->more = false;
    return qr_prune_task(step->pruning).fn(tx, step->pruning, &step->more, err);
}

static void look(struct qr_pruning *pruning)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_prune_task(pruning).look(pruning, &err));
}

static bool act(struct qr_pruning *pruning)
{
    struct step step = {pruning, false};
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(pruning->db, QR_RELAXED, write_step, &step, &err));
    return step.more;
}

static void finish(struct cache *cache)
{
    do {
        look(&cache->pruning);
    } while (act(&cache->pruning));
}

/* Until all that is in use is marked, and nothing is evicted yet. */
static void mark(struct cache *cache)
{
    while (number(cache, "SELECT phase FROM vector_round") != QR_ROUND_EVICTS) {
        look(&cache->pruning);
        QR_CHECK(act(&cache->pruning));
    }
}

/* So many chunks, each with words of its own. */
static qr_uuid add_large_note(struct cache *cache, const char *word, int chunks)
{
    struct qr_buf text = {0};
    for (int i = 0; i < chunks; i++) {
        qr_buf_printf(&text, "%s%s part number %d, which is long enough to stand on its own here", i ? " --- " : "",
                      word, i);
    }
    const qr_uuid id = qr_desk_add_note(&cache->shop.desk, word, qr_buf_str(&text).ptr);
    qr_buf_done(&text);
    qr_shop_work(&cache->shop);
    return id;
}

static void reindex_without_calls(struct cache *cache, qr_uuid id)
{
    const int64_t calls = calls_of(cache);
    qr_shop_reindex(&cache->shop, id);
    qr_shop_work(&cache->shop);
    QR_CHECK_INT(calls, calls_of(cache));
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_desk_item(&cache->shop.desk, id).status);
}

/* ---- what stays and what goes ---- */

QR_DB_TEST_WITH_TIMEOUT(what_bases_use_stays_whatever_the_limit, 120) /* PAID-2 */
{
    enum { LARGE = QR_PRUNE_KEYS_MAX + 7 };
    struct cache cache;
    cache_open(&cache, t);
    const qr_uuid tree = qr_shop_add_tree(&cache.shop);
    const qr_uuid large = add_large_note(&cache, "large", LARGE); /* more than a step */
    const qr_uuid small = add_large_note(&cache, "small", 3);
    const int64_t used = entries(&cache);
    QR_CHECK(used > LARGE);
    add_unused(&cache);
    const struct qr_vector_round round = prune(&cache, 0);
    QR_CHECK_TEXT("", round.put_off);
    QR_CHECK_INT(UNUSED, round.freed_count);
    QR_CHECK_INT(used, entries(&cache));
    reindex_without_calls(&cache, tree);
    reindex_without_calls(&cache, large);
    reindex_without_calls(&cache, small);
    qr_shop_close(&cache.shop);
}

QR_DB_TEST(what_is_not_used_any_more_goes) /* PAID-2 */
{
    struct cache cache;
    qr_err err;
    bool changed;
    cache_open(&cache, t);
    const qr_uuid id = qr_desk_add_note(&cache.shop.desk, "note", "the old words of the note");
    qr_shop_work(&cache.shop);
    QR_CHECK_RC(QR_OK, qr_workflow_update(&cache.shop.desk.workflow, cache.shop.desk.base_id, id,
                                          QR_STR("the new words of it"), &changed, &err));
    qr_shop_work(&cache.shop);
    qr_shop_work_after(&cache.shop, QR_SHOP_PURGE_AFTER_MS);
    QR_CHECK_INT(3, entries(&cache));
    prune(&cache, 0);
    QR_CHECK_INT(2, entries(&cache));
    QR_CHECK(!has(&cache, "the old words of the note") && has(&cache, "the new words of it"));
    qr_shop_delete(&cache.shop, id);
    qr_shop_work(&cache.shop);
    prune(&cache, 0);
    QR_CHECK_INT(1, entries(&cache));
    qr_shop_close(&cache.shop);
}

QR_DB_TEST(those_used_longest_ago_go_first_until_the_limit_is_kept) /* PAID-2 */
{
    struct cache cache;
    cache_open(&cache, t);
    add_unused(&cache);
    qr_test_clock_advance(2 * HOUR_MS);
    QR_CHECK(use(&cache, unused_text(0))); /* which was the oldest */
    const int64_t all = number(&cache, "SELECT CAST(sum(size_bytes) AS BIGINT) FROM vector_use");
    const int64_t one = all / entries(&cache);
    const struct qr_vector_round round = prune(&cache, 4 * one + one / 2);
    QR_CHECK_INT(7, round.freed_count);
    QR_CHECK_INT(7 * one, round.freed_bytes);
    QR_CHECK_INT(4, entries(&cache)); /* and the one in use */
    QR_CHECK(has(&cache, unused_text(0)) && has(&cache, unused_text(9)) && has(&cache, unused_text(8)));
    QR_CHECK_INT(0, prune(&cache, 4 * one).freed_count); /* it fits */
    QR_CHECK_INT(1, number(&cache, "SELECT number FROM vector_round"));
    qr_shop_close(&cache.shop);
}

QR_DB_TEST(a_use_is_written_down_once_an_hour)
{
    struct cache cache;
    cache_open(&cache, t);
    add(&cache, "text");
    const int64_t added = number(&cache, "SELECT max(used_at) FROM vector_use");
    qr_test_clock_advance(HOUR_MS - 1);
    QR_CHECK(use(&cache, "text"));
    QR_CHECK_INT(added, number(&cache, "SELECT max(used_at) FROM vector_use"));
    qr_test_clock_advance(1);
    QR_CHECK(use(&cache, "text"));
    QR_CHECK_INT(added + HOUR_MS, number(&cache, "SELECT max(used_at) FROM vector_use"));
    QR_CHECK(!use(&cache, "another text"));
    qr_shop_close(&cache.shop);
}

/* V1: a base that changes its model uses the vectors of both, and may go back. */
struct models_call {
    qr_uuid base_id;
    const char *live, *previous;
};

static qr_rc set_models(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct models_call *call = arg;
    return qr_base_set_models(tx, call->base_id, call->live, call->previous, err);
}

QR_DB_TEST(vectors_of_the_live_and_of_the_previous_model_stay) /* PAID-2 */
{
    static const char *const settings[] = {"{\"embedding\":{\"provider\":\"hash\",\"model\":\"live\"}}",
                                           "{\"embedding\":{\"provider\":\"hash\",\"model\":\"previous\"}}",
                                           "{\"embedding\":{\"provider\":\"hash\",\"model\":\"forgotten\"}}"};
    char fingerprints[3][QR_FINGERPRINT_SIZE];
    struct cache cache;
    qr_err err;
    cache_open(&cache, t);
    for (size_t i = 0; i < QR_COUNT(settings); i++) {
        struct qr_settings parsed;
        QR_CHECK_RC(QR_OK, qr_settings_parse_text(settings[i], &cache.shop.desk.arena, &parsed, &err));
        qr_embedding_fingerprint(&parsed.embedding, fingerprints[i]);
        add_of(&cache, fingerprints[i], "a note that is there from the beginning");
    }
    struct models_call call = {cache.shop.desk.base_id, settings[0], settings[1]};
    QR_CHECK_RC(QR_OK, qr_db_write(cache.shop.desk.db, QR_DURABLE, set_models, &call, &err));
    QR_CHECK_TEXT("", prune(&cache, 0).put_off);
    QR_CHECK(has_of(&cache, fingerprints[0], "a note that is there from the beginning"));
    QR_CHECK(has_of(&cache, fingerprints[1], "a note that is there from the beginning"));
    QR_CHECK(has(&cache, "a note that is there from the beginning"));
    QR_CHECK_INT(3, entries(&cache));
    qr_shop_close(&cache.shop);
}

/* ---- what happens while a round is under way ---- */

QR_DB_TEST(what_begins_to_be_used_behind_the_marking_stays) /* PAID-2, V1 */
{
    struct cache cache;
    cache_open(&cache, t);
    add_unused(&cache);
    add(&cache, "words of a note to come");
    mark(&cache);
    QR_CHECK(use(&cache, unused_text(3)));
    add(&cache, "paid for now");
    const int64_t calls = calls_of(&cache);
    const qr_uuid id = qr_desk_add_note(&cache.shop.desk, "later", "words of a note to come");
    qr_shop_work(&cache.shop);
    QR_CHECK_INT(calls, calls_of(&cache));
    finish(&cache);
    QR_CHECK(has(&cache, unused_text(3)) && has(&cache, "paid for now") && has(&cache, "words of a note to come"));
    QR_CHECK_INT(1 + 3, entries(&cache));
    reindex_without_calls(&cache, id);
    qr_shop_close(&cache.shop);
}

struct late {
    struct entry_call call;
    unsigned char key[QR_VECTOR_KEY_BYTES];
};

static qr_rc find_late(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct late *late = arg;
    return qr_vector_use(tx, late->key, late->call.cache->dimension, late->call.vector, &late->call.found, err);
}

static qr_rc touch_late(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct late *late = arg;
    return qr_vector_touch(tx, late->key, late->call.vector, late->call.cache->dimension, late->call.found.kept_bytes,
                           err);
}

QR_DB_TEST(what_is_evicted_between_being_found_and_touched_is_put_back) /* PAID-2, V1 */
{
    struct cache cache;
    qr_err err;
    cache_open(&cache, t);
    add(&cache, "text");
    mark(&cache);
    struct late late = {.call = {.cache = &cache}};
    qr_vector_key(cache.fingerprint, QR_STR("text"), late.key);
    QR_CHECK_RC(QR_OK, qr_db_read(cache.shop.desk.db, find_late, &late, &err));
    QR_CHECK(late.call.found.is_found && late.call.found.is_to_be_touched && late.call.found.is_in_round);
    finish(&cache);
    QR_CHECK(!has(&cache, "text"));
    QR_CHECK_RC(QR_OK, qr_db_write(cache.shop.desk.db, QR_DURABLE, touch_late, &late, &err));
    QR_CHECK(has(&cache, "text"));
    QR_CHECK_INT(2, entries(&cache));
    qr_shop_close(&cache.shop);
}

QR_DB_TEST_WITH_TIMEOUT(a_round_that_a_crash_broke_off_goes_on, 120) /* PAID-2 */
{
    if (!qr_failpoints_built_in()) {
        return;
    }
    struct cache cache;
    cache_open(&cache, t);
    const qr_uuid large = add_large_note(&cache, "large", QR_PRUNE_KEYS_MAX + 20);
    const int64_t used = entries(&cache);
    add_unused(&cache);
    bool is_over = false;
    for (int at = 1; !is_over; at++) { /* each step fails once, and a new process goes on */
        struct qr_vector_round round;
        qr_err err;
        QR_CHECK_RC(QR_OK, qr_failpoints_set("vectors.round.before_commit=error@2", &err));
        qr_pruning_init(&cache.pruning, cache.shop.desk.db, cache.shop.context.index, 0);
        is_over = qr_prune(&cache.pruning, 0, &round, &err) == QR_OK;
        QR_CHECK_RC(QR_OK, qr_failpoints_set("", &err));
        QR_CHECK(at < 50);
        QR_CHECK(entries(&cache) >= used);
    }
    QR_CHECK_INT(1, number(&cache, "SELECT number FROM vector_round"));
    prune(&cache, 0);
    QR_CHECK_INT(used, entries(&cache));
    reindex_without_calls(&cache, large);
    qr_shop_close(&cache.shop);
}

QR_DB_TEST(two_who_step_in_turn_do_one_round) /* PAID-2 */
{
    struct cache cache;
    cache_open(&cache, t);
    const qr_uuid tree = qr_shop_add_tree(&cache.shop);
    add_unused(&cache);
    struct qr_pruning other;
    qr_pruning_init(&other, cache.shop.desk.db, cache.shop.context.index, 0);
    bool more = true, other_more = true;
    for (int i = 0; more || other_more; i++) { /* both have seen the same when one of them is first */
        look(&cache.pruning);
        look(&other);
        more = act(i % 2 ? &other : &cache.pruning);
        other_more = act(i % 2 ? &cache.pruning : &other);
        QR_CHECK(i < 100);
    }
    QR_CHECK_INT(1, number(&cache, "SELECT number FROM vector_round"));
    QR_CHECK_INT(UNUSED, number(&cache, "SELECT freed_count FROM vector_round"));
    QR_CHECK_INT(4, entries(&cache));
    reindex_without_calls(&cache, tree);
    qr_shop_close(&cache.shop);
}

static void prune_beside(void *arg)
{
    struct cache *cache = arg;
    struct qr_vector_round round;
    struct qr_pruning other;
    qr_err err;
    qr_pruning_init(&other, cache->shop.desk.db, cache->shop.context.index, 0);
    QR_CHECK_RC(QR_OK, qr_prune(&other, 0, &round, &err));
}

/* What is added and used by others meanwhile, too. */
QR_DB_TEST_WITH_TIMEOUT(two_workers_prune_while_a_third_pays, 120) /* PAID-2 */
{
    enum { NOTES = 20 };
    struct cache cache;
    struct qr_thread threads[2];
    qr_uuid ids[NOTES];
    qr_err err;
    cache_open(&cache, t);
    const qr_uuid tree = qr_shop_add_tree(&cache.shop);
    add_unused(&cache);
    for (int i = 0; i < NOTES; i++) {
        char text[64];
        snprintf(text, sizeof text, "a note of number %d that comes meanwhile", i);
        if (i % 2) {
            add(&cache, text);
        }
        ids[i] = qr_desk_add_note(&cache.shop.desk, "note", text);
    }
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        QR_CHECK_RC(QR_OK, qr_thread_spawn(&threads[i], "prune", prune_beside, &cache, &err));
    }
    qr_shop_work(&cache.shop);
    for (size_t i = 0; i < QR_COUNT(threads); i++) {
        qr_thread_join(&threads[i]);
    }
    prune(&cache, 0);
    QR_CHECK_INT(1 + 3 + NOTES, entries(&cache));
    reindex_without_calls(&cache, tree);
    for (int i = 0; i < NOTES; i++) {
        reindex_without_calls(&cache, ids[i]);
    }
    qr_shop_close(&cache.shop);
}

/* ---- what puts a round off ---- */

QR_DB_TEST(a_base_whose_index_is_lost_finds_its_vectors_when_it_is_rebuilt) /* PAID-2, V3 */
{
    struct cache cache;
    qr_err err;
    qr_uuid job_id;
    cache_open(&cache, t);
    qr_shop_add_tree(&cache.shop);
    add_unused(&cache);
    const int64_t calls = calls_of(&cache);
    QR_CHECK_RC(QR_OK, qr_index_drop(cache.shop.context.index, cache.shop.desk.base_id, &err));
    QR_CHECK_HAS("its index is lost", prune(&cache, 0).put_off);
    QR_CHECK_INT(4 + UNUSED, entries(&cache));
    qr_desk_exec(&cache.shop.desk, "UPDATE base SET status = 2, error_code = 'index_lost'");
    QR_CHECK_RC(QR_OK, qr_workflow_restore_base(&cache.shop.desk.workflow, cache.shop.desk.base_id, &job_id, &err));
    qr_shop_work(&cache.shop);
    QR_CHECK_INT(4, qr_shop_vectors(&cache.shop));
    QR_CHECK_INT(calls, calls_of(&cache));
    QR_CHECK_TEXT("", prune(&cache, 0).put_off);
    QR_CHECK_INT(4, entries(&cache));
    qr_shop_close(&cache.shop);
}

QR_DB_TEST(an_item_whose_chunks_are_missing_finds_its_vectors_when_it_is_built_anew) /* PAID-2, V3 */
{
    struct cache cache;
    qr_err err;
    cache_open(&cache, t);
    const qr_uuid id = add_large_note(&cache, "note", 3);
    const int64_t used = entries(&cache);
    add_unused(&cache);
    QR_CHECK_RC(QR_OK, qr_index_delete_items(cache.shop.context.index, cache.shop.desk.base_id, &id, 1, &err));
    QR_CHECK_HAS("chunks are missing", prune(&cache, 0).put_off);
    QR_CHECK_INT(used + UNUSED, entries(&cache));
    reindex_without_calls(&cache, id);
    QR_CHECK_TEXT("", prune(&cache, 0).put_off);
    QR_CHECK_INT(used, entries(&cache));
    qr_shop_close(&cache.shop);
}

/* ---- the beat ---- */

QR_DB_TEST(it_is_looked_once_an_hour_whether_there_is_too_much) /* PAID-2 */
{
    struct cache cache;
    cache_open(&cache, t);
    add_unused(&cache);
    const int64_t all = number(&cache, "SELECT CAST(sum(size_bytes) AS BIGINT) FROM vector_use");
    cache.pruning.limit_bytes = all;
    finish(&cache);
    QR_CHECK_INT(0, number(&cache, "SELECT number FROM vector_round")); /* it fits */
    add(&cache, "one too many");
    finish(&cache);
    QR_CHECK_INT(0, number(&cache, "SELECT number FROM vector_round")); /* nobody looks yet */
    qr_test_clock_advance(HOUR_MS);
    finish(&cache);
    QR_CHECK_INT(1, number(&cache, "SELECT number FROM vector_round"));
    QR_CHECK_INT(1, number(&cache, "SELECT freed_count FROM vector_round"));
    QR_CHECK(!has(&cache, unused_text(0)) && has(&cache, "one too many"));
    qr_shop_close(&cache.shop);
}
