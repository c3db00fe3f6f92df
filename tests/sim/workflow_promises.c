/* What people were promised about items: one that was added stays until somebody may have deleted it, one whose delete was
 * acknowledged goes (I5). */
#include "sim/workflow_oracle.h"

enum { PROMISES_MAX = 600 };

static struct promise {
    qr_uuid id;
    bool may_go, must_go;
} promises[PROMISES_MAX];
static int promise_count;
static qr_uuid bases_that_may_go[ORACLE_BASES_MAX];
static int base_count;

void promises_begin(void)
{
    promise_count = base_count = 0;
}

static struct promise *promise_about(qr_uuid id)
{
    for (int i = 0; i < promise_count; i++) {
        if (qr_uuid_equal(promises[i].id, id)) {
            return &promises[i];
        }
    }
    QR_CHECK(promise_count < PROMISES_MAX);
    promises[promise_count] = (struct promise){.id = id};
    return &promises[promise_count++];
}

void flow_oracle_expect(qr_uuid id)
{
    promise_about(id);
    if (!rows_find(rows_now(), id)) {
        rows_look();
    }
}

void flow_oracle_may_go(qr_uuid id)
{
    promise_about(id)->may_go = true;
}

void flow_oracle_must_go(qr_uuid id)
{
    struct promise *promise = promise_about(id);
    promise->may_go = promise->must_go = true;
}

static bool base_may_go(qr_uuid id)
{
    for (int i = 0; i < base_count; i++) {
        if (qr_uuid_equal(bases_that_may_go[i], id)) {
            return true;
        }
    }
    return false;
}

void flow_oracle_base_may_go(qr_uuid id)
{
    if (!base_may_go(id)) {
        QR_CHECK(base_count < ORACLE_BASES_MAX);
        bases_that_may_go[base_count++] = id;
    }
}

void promises_check(void)
{
    for (int i = 0; i < promise_count; i++) {
        const struct promise *promise = &promises[i];
        const struct row *row = rows_find(rows_now(), promise->id);
        if (promise->must_go && row && !row->is_gone) {
            QR_FAIL("I5: item %s was deleted and is not deleting", ask_text_of(promise->id));
        }
        const struct row *before = rows_find(rows_before(), promise->id);
        const bool was_there = before && !before->is_gone;
        if (!promise->may_go && was_there && (!row || row->is_gone) && !base_may_go(before->base_id)) {
            QR_FAIL("I5: item %s was added and nobody deleted it, and it is gone", ask_text_of(promise->id));
        }
    }
}
