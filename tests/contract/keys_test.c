/* Keys and members as rows, over every database. */
#include "store/keys.h"

#include "store/bases.h"
#include "store/members.h"
#include "store/schema.h"
#include "support/db_fixture.h"

enum { HOUR_MS = 3600 * 1000 };

/* Everything that a transaction of these tests needs or says. */
struct call {
    struct qr_key_new key;
    struct qr_secret secret;
    qr_uuid key_id, base_id;
    int64_t ms;
    enum qr_role role;
    const char *name;
    qr_rc (*fn)(struct qr_tx *tx, struct call *call, qr_err *err);
    /* the answer */
    bool found, is_use_new;
    struct qr_key row;
    size_t count;
    struct qr_arena arena;
};

static qr_rc run(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct call *call = arg;
    return call->fn(tx, call, err);
}

static struct qr_secret secret_of(uint64_t seed)
{
    struct qr_rand_seeded seeded;
    struct qr_secret secret;
    qr_rand_seeded_init(&seeded, seed);
    qr_secret_make(&seeded.rand, &secret);
    return secret;
}

static qr_uuid id_of(unsigned char last)
{
    return (qr_uuid){.bytes = {[0] = 1, [QR_UUID_BYTES - 1] = last}};
}

static struct qr_db *open_db(struct qr_test *t)
{
    struct qr_db_options options = qr_test_db_options(t, qr_schema_migrations, qr_schema_migration_count);
    struct qr_db *db;
    qr_err err;
    options.clock = qr_test_clock(INT64_C(1700000000000));
    QR_CHECK_RC(QR_OK, qr_db_open(&db, &options, &err));
    return db;
}

static void write_ok(struct qr_db *db, struct call *call)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_db_write(db, QR_DURABLE, run, call, &err));
}

/* ---- what is done ---- */

static qr_rc add_key(struct qr_tx *tx, struct call *call, qr_err *err)
{
    call->key.secret = &call->secret;
    return qr_key_add(tx, &call->key, err);
}

static qr_rc rotate(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_key_rotate(tx, call->key_id, &call->secret, call->ms, err);
}

static qr_rc end_key(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_key_end(tx, call->key_id, err);
}

static qr_rc find_secret(struct qr_tx *tx, struct call *call, qr_err *err)
{
    qr_arena_reset(&call->arena);
    return qr_key_find_secret(tx, qr_str_of(call->secret.text), &call->arena, &call->found, &call->row,
                              &call->is_use_new, err);
}

static qr_rc note_use(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_key_note_use(tx, call->key_id, err);
}

static qr_rc is_any(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_keys_is_any(tx, &call->found, err);
}

static qr_rc list_keys(struct qr_tx *tx, struct call *call, qr_err *err)
{
    struct qr_key *keys;
    qr_arena_reset(&call->arena);
    return qr_keys_list(tx, call->key_id, 10, &call->arena, &keys, &call->count, err);
}

static qr_rc add_base(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_base_add(tx, call->base_id, qr_str_of(call->name), QR_STR("{}"), err);
}

static qr_rc remove_base(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_base_remove(tx, call->base_id, err);
}

static qr_rc mark_base(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_base_set_status(tx, call->base_id, QR_BASE_DELETING, "", "", err);
}

static qr_rc set_member(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_member_set(tx, call->base_id, call->key_id, call->role, err);
}

static qr_rc remove_member(struct qr_tx *tx, struct call *call, qr_err *err)
{
    return qr_member_remove(tx, call->base_id, call->key_id, err);
}

static qr_rc find_role(struct qr_tx *tx, struct call *call, qr_err *err)
{
    qr_uuid by_name;
    enum qr_role role;
    QR_TRY(qr_member_role(tx, call->base_id, call->key_id, &call->role, err));
    QR_TRY(qr_member_find_base(tx, call->key_id, qr_str_of(call->name), &by_name, &role, err));
    QR_CHECK_INT(call->role, role); /* the two ways agree */
    QR_CHECK(role == QR_ROLE_NONE || qr_uuid_equal(by_name, call->base_id));
    return QR_OK;
}

static qr_rc count_members(struct qr_tx *tx, struct call *call, qr_err *err)
{
    struct qr_member *members;
    size_t of_key;
    qr_arena_reset(&call->arena);
    QR_TRY(qr_members_of_key(tx, call->key_id, (qr_uuid){0}, 10, &call->arena, &members, &of_key, err));
    QR_TRY(qr_members_of_base(tx, call->base_id, (qr_uuid){0}, 10, &call->arena, &members, &call->count, err));
    QR_CHECK_INT(call->count, of_key);
    return QR_OK;
}

static void do_it(struct qr_db *db, struct call *call, qr_rc (*fn)(struct qr_tx *tx, struct call *call, qr_err *err))
{
    call->fn = fn;
    write_ok(db, call);
}

static void check_secret(struct qr_db *db, uint64_t seed, bool is_good)
{
    struct call call = {.secret = secret_of(seed)};
    qr_arena_init(&call.arena, 0);
    do_it(db, &call, find_secret);
    QR_CHECK_INT(is_good, call.found);
    qr_arena_done(&call.arena);
}

static void make_key(struct qr_db *db, unsigned char id, const char *name, int64_t lasts_ms)
{
    struct call call = {.key = {.id = id_of(id), .name = qr_str_of(name), .lasts_ms = lasts_ms},
                        .secret = secret_of(id)};
    do_it(db, &call, add_key);
}

/* ---- keys ---- */

QR_DB_TEST(a_key_is_found_by_its_secret_and_by_no_other) /* KEY-1 */
{
    struct qr_db *db = open_db(t);
    struct call call = {.secret = secret_of(1)};
    qr_arena_init(&call.arena, 0);
    do_it(db, &call, is_any);
    QR_CHECK(!call.found);
    make_key(db, 1, "one", 0);
    make_key(db, 2, "two", 0);
    do_it(db, &call, is_any);
    QR_CHECK(call.found);
    do_it(db, &call, find_secret);
    QR_CHECK(call.found && qr_uuid_equal(call.row.id, id_of(1)) && !call.row.is_admin);
    QR_CHECK_TEXT("one", call.row.name);
    QR_CHECK_STR(call.row.prefix, qr_secret_prefix(qr_str_of(call.secret.text)));
    check_secret(db, 3, false);
    for (size_t i = 0; i < sizeof call.secret.text - 1; i++) { /* another anywhere, also behind what it is found by */
        call.secret = secret_of(1);
        call.secret.text[i] = call.secret.text[i] == 'A' ? 'B' : 'A';
        do_it(db, &call, find_secret);
        QR_CHECK(!call.found);
    }
    qr_arena_done(&call.arena);
    qr_db_close(db);
}

static qr_rc count_texts(struct qr_tx *tx, struct call *call, qr_err *err)
{
    int64_t count = 0;
    QR_TRY(qr_tx_get_i64(
        tx, "SELECT count(*) FROM key_secret WHERE prefix = ?1 OR hash = ?2",
        QR_VALS(qr_val_text(qr_str_of(call->secret.text)), qr_val_blob(call->secret.text, strlen(call->secret.text))),
        NULL, &count, err));
    call->count = (size_t)count;
    return QR_OK;
}

QR_DB_TEST(a_secret_is_not_stored) /* KEY-1 */
{
    struct qr_db *db = open_db(t);
    struct call call = {.secret = secret_of(1)};
    make_key(db, 1, "one", 0);
    do_it(db, &call, count_texts);
    QR_CHECK_INT(0, call.count);
    qr_db_close(db);
}

QR_DB_TEST(a_name_is_one_keys_until_that_one_is_ended)
{
    struct qr_db *db = open_db(t);
    struct call call = {.key = {.id = id_of(2), .name = QR_STR("one")}, .secret = secret_of(2), .fn = add_key};
    qr_err err;
    qr_arena_init(&call.arena, 0);
    make_key(db, 1, "one", 0);
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, qr_db_write(db, QR_DURABLE, run, &call, &err));
    struct call ending = {.key_id = id_of(1), .fn = end_key};
    write_ok(db, &ending);
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_db_write(db, QR_DURABLE, run, &ending, &err)); /* for good */
    do_it(db, &call, add_key);
    do_it(db, &call, list_keys);
    QR_CHECK_INT(1, call.count);
    qr_arena_done(&call.arena);
    qr_db_close(db);
}

QR_DB_TEST(a_rotated_secret_ends_at_once_or_after_its_grace) /* KEY-6 */
{
    struct qr_db *db = open_db(t);
    make_key(db, 1, "one", 0);
    struct call call = {.key_id = id_of(1), .secret = secret_of(10)};
    do_it(db, &call, rotate);
    check_secret(db, 1, false);
    check_secret(db, 10, true);
    call.secret = secret_of(11);
    call.ms = HOUR_MS;
    do_it(db, &call, rotate);
    check_secret(db, 11, true);
    qr_test_clock_advance(HOUR_MS - 1);
    check_secret(db, 10, true);
    qr_test_clock_advance(1);
    check_secret(db, 10, false);
    check_secret(db, 11, true);
    call.secret = secret_of(12);
    do_it(db, &call, rotate); /* 11 has its grace */
    call.secret = secret_of(13);
    do_it(db, &call, rotate); /* 12 has it now, and 11 none any more */
    check_secret(db, 11, false);
    check_secret(db, 12, true);
    check_secret(db, 13, true);
    call.secret = secret_of(14);
    call.ms = 0;
    do_it(db, &call, rotate); /* in an emergency everything ends */
    check_secret(db, 12, false);
    check_secret(db, 13, false);
    check_secret(db, 14, true);
    qr_db_close(db);
}

QR_DB_TEST(a_key_ends_by_itself_or_when_it_is_ended) /* KEY-6 */
{
    struct qr_db *db = open_db(t);
    make_key(db, 1, "one", HOUR_MS);
    make_key(db, 2, "two", 0);
    qr_test_clock_advance(HOUR_MS - 1);
    check_secret(db, 1, true);
    qr_test_clock_advance(1);
    check_secret(db, 1, false);
    check_secret(db, 2, true);
    struct call call = {.key_id = id_of(2)};
    do_it(db, &call, end_key);
    check_secret(db, 2, false);
    call.key_id = id_of(1);
    do_it(db, &call, end_key);
    do_it(db, &call, is_any);
    QR_CHECK(call.found); /* KEY-2: the port still asks for one */
    qr_test_clock_advance(INT64_C(24) * HOUR_MS * (QR_KEY_ENDED_KEPT_DAYS + 1));
    make_key(db, 3, "three", 0); /* the ended one is forgotten with it */
    do_it(db, &call, is_any);
    QR_CHECK(call.found);
    qr_db_close(db);
}

QR_DB_TEST(the_last_use_is_noted_at_most_once_an_hour)
{
    struct qr_db *db = open_db(t);
    struct call call = {.key_id = id_of(1), .secret = secret_of(1)};
    qr_arena_init(&call.arena, 0);
    make_key(db, 1, "one", 0);
    do_it(db, &call, find_secret);
    QR_CHECK(call.is_use_new);
    do_it(db, &call, note_use);
    qr_test_clock_advance(HOUR_MS - 1);
    do_it(db, &call, find_secret);
    QR_CHECK(!call.is_use_new && call.row.used_ms > 0);
    qr_test_clock_advance(1);
    do_it(db, &call, find_secret);
    QR_CHECK(call.is_use_new);
    qr_arena_done(&call.arena);
    qr_db_close(db);
}

/* ---- members ---- */

static void check_role(struct qr_db *db, struct call *call, enum qr_role role)
{
    do_it(db, call, find_role);
    QR_CHECK_INT(role, call->role);
}

QR_DB_TEST(a_key_has_one_role_in_a_base_until_one_of_them_goes) /* KEY-3 */
{
    struct qr_db *db = open_db(t);
    struct call call = {.key_id = id_of(1), .base_id = id_of(50), .name = "b", .role = QR_ROLE_VIEWER};
    qr_err err;
    qr_arena_init(&call.arena, 0);
    make_key(db, 1, "one", 0);
    do_it(db, &call, add_base);
    check_role(db, &call, QR_ROLE_NONE);
    call.fn = remove_member;
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_db_write(db, QR_DURABLE, run, &call, &err));
    call.role = QR_ROLE_VIEWER;
    do_it(db, &call, set_member);
    check_role(db, &call, QR_ROLE_VIEWER);
    call.role = QR_ROLE_OWNER;
    do_it(db, &call, set_member);
    check_role(db, &call, QR_ROLE_OWNER);
    do_it(db, &call, count_members);
    QR_CHECK_INT(1, call.count);
    do_it(db, &call, remove_member);
    check_role(db, &call, QR_ROLE_NONE);
    call.role = QR_ROLE_EDITOR;
    do_it(db, &call, set_member);
    do_it(db, &call, end_key);
    check_role(db, &call, QR_ROLE_NONE);
    call.role = QR_ROLE_EDITOR;
    call.fn = set_member;
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_db_write(db, QR_DURABLE, run, &call, &err));
    qr_arena_done(&call.arena);
    qr_db_close(db);
}

QR_DB_TEST(a_deleted_base_takes_its_members_along) /* KEY-3 */
{
    struct qr_db *db = open_db(t);
    struct call call = {.key_id = id_of(1), .base_id = id_of(50), .name = "b", .role = QR_ROLE_OWNER};
    qr_arena_init(&call.arena, 0);
    make_key(db, 1, "one", 0);
    do_it(db, &call, add_base);
    do_it(db, &call, set_member);
    do_it(db, &call, mark_base);
    check_role(db, &call, QR_ROLE_NONE); /* from the request on */
    do_it(db, &call, remove_base);
    do_it(db, &call, add_base); /* a new one of the same name, even of the same id */
    check_role(db, &call, QR_ROLE_NONE);
    do_it(db, &call, count_members);
    QR_CHECK_INT(0, call.count);
    qr_arena_done(&call.arena);
    qr_db_close(db);
}
