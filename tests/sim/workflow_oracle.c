/* Looks at the data folder after every commit, on connections of its own and without the product's code: what is true of one
 * moment (I1, I3, I4, I6), what may have changed since the last one (I3, I4), what was promised (I5). */
#include "sim/workflow_oracle.h"

#include <string.h>

struct flow_totals flow_totals;

static bool is_traced;

/* ---- one moment ---- */

static void check_stage(const struct row *row)
{
    const bool waits = row->status == QR_ITEM_PREPARING || (!row->is_container && row->status == QR_ITEM_PROCESSING);
    if (row->open_stages != waits) {
        QR_FAIL("I1: item %s is %s with %lld open stage jobs", ask_text_of(row->id),
                qr_item_status_name((enum qr_item_status)row->status), (long long)row->open_stages);
    }
    if (waits && row->stage_generation != row->generation) {
        QR_FAIL("I1: item %s waits for generation %lld, its job is of %lld", ask_text_of(row->id),
                (long long)row->generation, (long long)row->stage_generation);
    }
}

static void check_roll_up(const struct row *row)
{
    const struct rows now = rows_now();
    int64_t counts[4] = {0};
    for (int i = 0; i < now.count; i++) {
        const struct row *child = &now.rows[i];
        if (qr_uuid_equal(child->parent_id, row->id) && child->status != QR_ITEM_DELETING) {
            counts[child->status == QR_ITEM_COMPLETED ? 0
                   : child->status == QR_ITEM_FAILED  ? 1
                   : child->status == QR_ITEM_IDLE    ? 3
                                                      : 2]++;
        }
    }
    if (memcmp(counts, row->counts, sizeof counts) != 0) {
        QR_FAIL("I6: container %s has %lld completed, %lld failed, %lld active, %lld idle, and says %lld, %lld, %lld, "
                "%lld",
                ask_text_of(row->id), (long long)counts[0], (long long)counts[1], (long long)counts[2],
                (long long)counts[3], (long long)row->counts[0], (long long)row->counts[1], (long long)row->counts[2],
                (long long)row->counts[3]);
    }
    const int status = counts[2]                                    ? QR_ITEM_PROCESSING
                       : row->expansion_failed || counts[1]         ? QR_ITEM_FAILED
                       : counts[3] || row->expanded_generation == 0 ? QR_ITEM_IDLE
                                                                    : QR_ITEM_COMPLETED;
    if (row->status != QR_ITEM_PREPARING && row->status != status) {
        QR_FAIL("I6: container %s is %s, not %s", ask_text_of(row->id),
                qr_item_status_name((enum qr_item_status)row->status),
                qr_item_status_name((enum qr_item_status)status));
    }
}

static void check_moment(void)
{
    const struct rows now = rows_now();
    for (int i = 0; i < now.count; i++) {
        const struct row *row = &now.rows[i];
        if (row->live_generation > row->generation || row->kept_generation > row->generation) {
            QR_FAIL("I3: item %s is live with a generation that it does not have", ask_text_of(row->id));
        }
        if (!row->is_gone) {
            check_stage(row);
        }
        if (row->is_container && !row->is_gone) {
            check_roll_up(row);
        }
    }
}

/* ---- since the last look ---- */

static void check_change(const struct row *before, const struct row *after)
{
    if (after->generation < before->generation || after->live_generation < before->live_generation ||
        after->kept_generation < before->kept_generation) {
        QR_FAIL("I3: a generation of item %s fell", ask_text_of(before->id));
    }
    if (after->kept_generation > before->kept_generation) {
        flow_totals.kept++;
        if (after->live_generation != before->live_generation || after->live_generation == 0) {
            QR_FAIL("REIDX-7: item %s was kept, and something else is live", ask_text_of(before->id));
        }
    }
    if (before->status == QR_ITEM_DELETING && after->status != QR_ITEM_DELETING) {
        QR_FAIL("I4: item %s was deleting and is not any more", ask_text_of(before->id));
    }
}

static void check_new(const struct row *row)
{
    const struct row *parent = rows_find(rows_before(), row->parent_id);
    flow_totals.items++;
    if (parent && parent->is_gone) {
        QR_FAIL("I4: item %s was made below one that is deleting", ask_text_of(row->id));
    }
}

static void check_since(void)
{
    const struct rows before = rows_before(), now = rows_now();
    for (int i = 0; i < before.count; i++) {
        const struct row *old = &before.rows[i], *new = rows_find(now, old->id);
        if (new) {
            check_change(old, new);
        } else if (!old->is_gone) {
            QR_FAIL("I4: item %s vanished without being deleted", ask_text_of(old->id));
        } else {
            flow_totals.removed++;
        }
    }
    for (int i = 0; i < now.count; i++) {
        if (!rows_find(before, now.rows[i].id)) {
            check_new(&now.rows[i]);
        }
    }
}

/* ---- all of it ---- */

/* SIM_TRACE=1: what a run did, to be read beside a failing check. */
static void trace(void)
{
    static char seen[200000];
    char line[300];
    sqlite3_stmt *stmt = ask_statement(
        "SELECT substr(hex(id), 5, 12) || ' ' || type || ' of ' || coalesce(substr(hex(item_id), 5, 12), '') || ' base "
        "' "
        "|| substr(hex(base_id), 5, 12) || ' generation ' || generation || ' state ' || state || ' fence ' || fence || "
        "' ' || code FROM job UNION ALL SELECT substr(hex(id), 5, 12) || ' item: below ' || substr(hex(parent_id), 5, "
        "12) || ' status ' || status || ' generation ' || generation || ' live ' || live_generation || ' wanted ' || "
        "wanted || ' run ' || coalesce(substr(hex(run_id), 5, 12), '') || ' ' || error_code FROM item UNION ALL SELECT "
        "substr(hex(id), 5, 12) || ' base: ' || status || ' ' || error_code FROM base UNION ALL SELECT substr(hex(id), "
        "5, 12) || ' run: ' || status || ' active ' || active || ' level ' || level FROM run");
    static char next[sizeof seen];
    next[0] = '\0';
    size_t len = 0;
    while (ask_next(stmt)) {
        snprintf(line, sizeof line, "%s\n", (const char *)sqlite3_column_text(stmt, 0));
        if (!strstr(seen, line)) {
            printf("%9lld ms: %s", (long long)sim_now_ms(), line);
        }
        len += (size_t)snprintf(next + len, sizeof next - len, "%s", line);
        QR_CHECK(len < sizeof next);
    }
    memcpy(seen, next, len + 1);
    fflush(stdout);
}

void flow_oracle_begin(void)
{
    is_traced = getenv("SIM_TRACE") != NULL;
    rows_begin();
    promises_begin();
    stores_begin();
    ask_begin();
}

void flow_oracle_end(void)
{
    ask_end();
}

void flow_oracle_check(void)
{
    ask_begin_moment();
    if (is_traced) {
        trace();
    }
    rows_look();
    check_moment();
    check_since();
    promises_check();
    ask_end_moment();
}
