/* The rows of bases, over every database. */
#include "store/bases.h"

#include "store/schema.h"
#include "support/db_fixture.h"

struct world {
    struct qr_db *db;
    struct qr_arena arena;
};

static struct world open_world(struct qr_test *t)
{
    struct world world = {.db = qr_test_db_open(t, qr_schema_migrations, qr_schema_migration_count)};
    qr_arena_init(&world.arena, 0);
    return world;
}

static void close_world(struct world *world)
{
    qr_db_close(world->db);
    qr_arena_done(&world->arena);
}

static qr_uuid id_of(unsigned char number)
{
    return (qr_uuid){.bytes = {[0] = 1, [15] = number}};
}

/* One call of the store in a transaction of its own. */
struct call {
    struct world *world;
    qr_uuid id;
    qr_str name, settings;
    int64_t version;
    enum qr_base_status status;
    const char *stamp;
    int limit;
    bool with_deleting, found;
    struct qr_base base, *bases;
    size_t count;
};

static qr_rc add(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_base_add(tx, call->id, call->name, call->settings, err);
}

static qr_rc find(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_base_find(tx, call->id, &call->world->arena, &call->found, &call->base, err);
}

static qr_rc find_name(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_base_find_name(tx, call->name, &call->world->arena, &call->found, &call->base, err);
}

static qr_rc list(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_bases_list(tx, call->id, call->limit, call->with_deleting, &call->world->arena, &call->bases,
                         &call->count, err);
}

static qr_rc set(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_base_set(tx, call->id, call->version, call->name, call->settings, err);
}

static qr_rc set_status(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    const bool has_failed = call->status == QR_BASE_FAILED;
    return qr_base_set_status(tx, call->id, call->status, has_failed ? "dimension_mismatch" : "",
                              has_failed ? "the model has another dimension" : "", err);
}

static qr_rc set_stamp(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_base_set_stamp(tx, call->id, call->stamp, err);
}

static qr_rc remove_base(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    return qr_base_remove(tx, call->id, err);
}

static qr_rc has_items(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return qr_base_has_items(tx, call->id, &call->found, err);
}

static qr_rc add_item(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct call *call = arg;
    const struct qr_val id = qr_val_blob(call->id.bytes, QR_UUID_BYTES);
    return qr_tx_exec(tx,
                      "INSERT INTO item (id, base_id, parent_id, depth, path, type, is_container, name, key, source, "
                      "size_bytes, mtime_ns, status, generation, seen_generation, wanted, created_at, updated_at) "
                      "VALUES (?1, ?1, ?1, 0, ?1, 3, 0, 'note', ?1, ?1, 0, 0, 1, 1, 1, 15, 0, 0)",
                      &id, 1, NULL, err);
}

static qr_rc write_call(struct call *call, qr_tx_fn *fn, qr_err *err)
{
    return qr_db_write(call->world->db, QR_DURABLE, fn, call, err);
}

static void add_base(struct world *world, unsigned char number, const char *name)
{
    qr_err err;
    struct call call = {.world = world, .id = id_of(number), .name = qr_str_of(name), .settings = QR_STR("{}")};
    QR_CHECK_RC(QR_OK, write_call(&call, add, &err));
}

static void set_status_of(struct world *world, unsigned char number, enum qr_base_status status)
{
    qr_err err;
    struct call call = {.world = world, .id = id_of(number), .status = status};
    QR_CHECK_RC(QR_OK, write_call(&call, set_status, &err));
}

static struct qr_base base_of(struct world *world, unsigned char number)
{
    qr_err err;
    struct call call = {.world = world, .id = id_of(number)};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, find, &call, &err));
    QR_CHECK(call.found);
    return call.base;
}

static bool name_is_found(struct world *world, const char *name, qr_uuid *ret_id)
{
    qr_err err;
    struct call call = {.world = world, .name = qr_str_of(name)};
    QR_CHECK_RC(QR_OK, qr_db_read(world->db, find_name, &call, &err));
    *ret_id = call.base.id;
    return call.found;
}

QR_TEST(the_states_of_a_base_have_the_names_of_the_page) /* THING-1 */
{
    QR_CHECK_TEXT("ready", qr_base_status_name(QR_BASE_READY));
    QR_CHECK_TEXT("failed", qr_base_status_name(QR_BASE_FAILED));
    QR_CHECK_TEXT("deleting", qr_base_status_name(QR_BASE_DELETING));
}

QR_DB_TEST(a_new_base_is_ready_and_holds_what_was_given) /* THING-1 */
{
    struct world world = open_world(t);
    qr_err err;
    struct call call = {.world = &world,
                        .id = id_of(1),
                        .name = QR_STR("Büro \"A\""),
                        .settings = QR_STR("{\"chunking\":{\"size_tokens\":300}}")};
    QR_CHECK_RC(QR_OK, write_call(&call, add, &err));
    const struct qr_base base = base_of(&world, 1);
    QR_CHECK(qr_uuid_equal(id_of(1), base.id));
    QR_CHECK_TEXT("Büro \"A\"", base.name);
    QR_CHECK_TEXT("{\"chunking\":{\"size_tokens\":300}}", base.settings);
    QR_CHECK_INT(QR_BASE_READY, base.status);
    QR_CHECK_TEXT("", base.error_code);
    QR_CHECK_TEXT("", base.error_message);
    QR_CHECK_TEXT("", base.index_stamp);
    QR_CHECK(base.version == 1 && base.vis_seq == 0 && base.event_seq == 0);
    QR_CHECK(base.created_ms > 0 && base.updated_ms == base.created_ms);
    close_world(&world);
}

QR_DB_TEST(a_name_is_taken_until_its_base_is_deleting) /* BASE-1 */
{
    struct world world = open_world(t);
    qr_err err;
    qr_uuid id;
    add_base(&world, 1, "docs");
    struct call second = {.world = &world, .id = id_of(2), .name = QR_STR("docs"), .settings = QR_STR("{}")};
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, write_call(&second, add, &err));
    QR_CHECK_HAS("\"docs\"", err.msg);
    set_status_of(&world, 1, QR_BASE_FAILED); /* still there */
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, write_call(&second, add, &err));
    QR_CHECK(name_is_found(&world, "docs", &id) && qr_uuid_equal(id_of(1), id));
    set_status_of(&world, 1, QR_BASE_DELETING);
    QR_CHECK(!name_is_found(&world, "docs", &id));
    QR_CHECK_RC(QR_OK, write_call(&second, add, &err));
    QR_CHECK(name_is_found(&world, "docs", &id) && qr_uuid_equal(id_of(2), id));
    QR_CHECK(!name_is_found(&world, "Docs", &id));
    close_world(&world);
}

QR_DB_TEST(an_unknown_base_is_not_found)
{
    struct world world = open_world(t);
    qr_err err;
    struct call call = {.world = &world, .id = id_of(1), .found = true};
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, find, &call, &err));
    QR_CHECK(!call.found);
    call.settings = call.name = QR_STR("x");
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, write_call(&call, set, &err));
    QR_CHECK_RC(QR_OK, write_call(&call, remove_base, &err));
    close_world(&world);
}

QR_DB_TEST(bases_are_listed_in_pages_by_their_ids)
{
    struct world world = open_world(t);
    qr_err err;
    for (unsigned char i = 1; i <= 5; i++) {
        const char name[] = {(char)('f' - i), '\0'};
        add_base(&world, i, name);
    }
    set_status_of(&world, 2, QR_BASE_DELETING);
    struct call call = {.world = &world, .limit = 2};
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, list, &call, &err));
    QR_CHECK_INT(2, call.count);
    QR_CHECK(qr_uuid_equal(id_of(1), call.bases[0].id) && qr_uuid_equal(id_of(3), call.bases[1].id));
    QR_CHECK_TEXT("e", call.bases[0].name);
    call.id = id_of(3);
    call.limit = 10;
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, list, &call, &err));
    QR_CHECK_INT(2, call.count);
    QR_CHECK(qr_uuid_equal(id_of(4), call.bases[0].id) && qr_uuid_equal(id_of(5), call.bases[1].id));
    call.id = id_of(0);
    call.with_deleting = true;
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, list, &call, &err));
    QR_CHECK_INT(5, call.count);
    close_world(&world);
}

QR_DB_TEST(settings_change_only_over_the_version_that_was_read)
{
    struct world world = open_world(t);
    qr_err err;
    add_base(&world, 1, "docs");
    add_base(&world, 2, "other");
    struct call call = {
        .world = &world, .id = id_of(1), .version = 1, .name = QR_STR("papers"), .settings = QR_STR("{\"a\":1}")};
    QR_CHECK_RC(QR_OK, write_call(&call, set, &err));
    QR_CHECK_CODE(QR_CODE_VERSION_CONFLICT, write_call(&call, set, &err));
    QR_CHECK_HAS("version 2, not 1", err.msg);
    call.version = 0; /* whatever it is; its own name is not in its way */
    QR_CHECK_RC(QR_OK, write_call(&call, set, &err));
    call.name = QR_STR("other");
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, write_call(&call, set, &err));
    const struct qr_base base = base_of(&world, 1);
    QR_CHECK_TEXT("papers", base.name);
    QR_CHECK_TEXT("{\"a\":1}", base.settings);
    QR_CHECK_INT(3, base.version);
    close_world(&world);
}

QR_DB_TEST(a_failed_base_says_why_and_a_deleting_one_stays_so) /* THING-2, I4 */
{
    struct world world = open_world(t);
    add_base(&world, 1, "docs");
    set_status_of(&world, 1, QR_BASE_FAILED);
    QR_CHECK_TEXT("dimension_mismatch", base_of(&world, 1).error_code);
    QR_CHECK_TEXT("the model has another dimension", base_of(&world, 1).error_message);
    set_status_of(&world, 1, QR_BASE_READY);
    QR_CHECK_INT(QR_BASE_READY, base_of(&world, 1).status);
    QR_CHECK_TEXT("", base_of(&world, 1).error_code);
    set_status_of(&world, 1, QR_BASE_DELETING);
    set_status_of(&world, 1, QR_BASE_READY);
    set_status_of(&world, 1, QR_BASE_FAILED);
    QR_CHECK_INT(QR_BASE_DELETING, base_of(&world, 1).status);
    close_world(&world);
}

QR_DB_TEST(the_stamp_of_the_index_is_kept_and_the_row_is_removed)
{
    struct world world = open_world(t);
    qr_err err;
    add_base(&world, 1, "docs");
    struct call call = {.world = &world, .id = id_of(1), .stamp = "s-1"};
    QR_CHECK_RC(QR_OK, write_call(&call, set_stamp, &err));
    QR_CHECK_TEXT("s-1", base_of(&world, 1).index_stamp);
    QR_CHECK_INT(1, base_of(&world, 1).version); /* of name and settings only */
    QR_CHECK_RC(QR_OK, write_call(&call, remove_base, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, find, &call, &err));
    QR_CHECK(!call.found);
    close_world(&world);
}

QR_DB_TEST(a_base_knows_whether_it_has_items)
{
    struct world world = open_world(t);
    qr_err err;
    add_base(&world, 1, "docs");
    struct call call = {.world = &world, .id = id_of(1), .found = true};
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, has_items, &call, &err));
    QR_CHECK(!call.found);
    QR_CHECK_RC(QR_OK, write_call(&call, add_item, &err));
    QR_CHECK_RC(QR_OK, qr_db_read(world.db, has_items, &call, &err));
    QR_CHECK(call.found);
    close_world(&world);
}
