/* kill -9 in the middle of work: everything acknowledged is there, relaxed writes too (DB-4). `db_demo` shows the same
 * to people. */
#include "support/db_fixture.h"
#include "support/kill_round.h"

enum { ROUNDS = 4, PRODUCERS = 8, PAYLOAD_BYTES_MAX = 3000 };

static void check_level(struct qr_test *t, enum qr_db_level level)
{
    const struct qr_db_options options = qr_test_db_options(t, ledger_migrations, ledger_migration_count);
    struct kill_plan plan = {
        .url = options.url,
        .level = level,
        .producers = PRODUCERS,
        .payload_bytes_max = PAYLOAD_BYTES_MAX,
    };
    struct kill_history history = {{0}};
    int64_t acknowledged = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct kill_result result;
        qr_err err;
        plan.after_acks = 150 + 100 * round;
        QR_CHECK_RC(QR_OK, kill_round(&plan, &history, &result, &err));
        QR_CHECK_INT(0, result.lost);
        QR_CHECK(result.acknowledged >= plan.after_acks);
        acknowledged += result.acknowledged;
        QR_CHECK(result.found >= acknowledged);
    }
    printf("%d kills, %lld acknowledged writes checked, 0 lost\n", ROUNDS, (long long)acknowledged);
}

QR_DB_TEST(durable_writes_survive_kill)
{
    check_level(t, QR_DURABLE);
}

QR_DB_TEST(relaxed_writes_survive_kill) /* DB-4 */
{
    check_level(t, QR_RELAXED);
}
