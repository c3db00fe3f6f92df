/* Owns the tables of item types and states, the roll-up of containers and what answers derive. Pure. */
#include "model/item.h"

#include <assert.h>

/* ---- types ---- */

static const char *const types[] = {
    [QR_ITEM_DIRECTORY] = "directory",
    [QR_ITEM_FILE] = "file",
    [QR_ITEM_NOTE] = "note",
    [QR_ITEM_URL] = "url",
};

static bool is_type(enum qr_item_type type)
{
    return type >= QR_ITEM_DIRECTORY && type <= QR_ITEM_URL;
}

const char *qr_item_type_name(enum qr_item_type type)
{
    assert(is_type(type));
    return types[type];
}

enum qr_item_type qr_item_type_find(qr_str name)
{
    for (enum qr_item_type type = QR_ITEM_DIRECTORY; is_type(type); type++) {
        if (qr_str_equal(name, qr_str_of(types[type]))) {
            return type;
        }
    }
    return 0;
}

/* ---- status ---- */

/* What a child is to its parent's roll-up. */
enum class { NOT_COUNTED, COUNTS_COMPLETED, COUNTS_FAILED, COUNTS_ACTIVE, COUNTS_IDLE };

#define TO(status)   QR_BIT(QR_ITEM_##status)
#define TO_AT_REST   (TO(IDLE) | TO(COMPLETED) | TO(FAILED))
#define TO_SCHEDULED (TO(PREPARING) | TO(PROCESSING))

static const struct {
    const char *name;
    enum class class;
    uint32_t next; /* a container's roll-up goes from any state of rest to any other: children come, fail and go */
} statuses[] = {
    [QR_ITEM_IDLE] = {"idle", COUNTS_IDLE, TO_SCHEDULED | TO_AT_REST | TO(DELETING)},
    [QR_ITEM_PREPARING] = {"preparing", COUNTS_ACTIVE, TO(PROCESSING) | TO_AT_REST | TO(DELETING)},
    /* to preparing: a file that turns out to hold other files; a container's retry while something below is active */
    [QR_ITEM_PROCESSING] = {"processing", COUNTS_ACTIVE, TO(PREPARING) | TO_AT_REST | TO(DELETING)},
    [QR_ITEM_READING] = {"reading", COUNTS_ACTIVE, 0},     /* derived: never set */
    [QR_ITEM_EMBEDDING] = {"embedding", COUNTS_ACTIVE, 0}, /* derived: never set */
    [QR_ITEM_COMPLETED] = {"completed", COUNTS_COMPLETED, TO_SCHEDULED | TO_AT_REST | TO(DELETING)},
    [QR_ITEM_FAILED] = {"failed", COUNTS_FAILED, TO_SCHEDULED | TO_AT_REST | TO(DELETING)},
    [QR_ITEM_DELETING] = {"deleting", NOT_COUNTED, 0}, /* I4: only the row's removal ends it */
};

static bool is_status(enum qr_item_status status)
{
    return status >= QR_ITEM_IDLE && status <= QR_ITEM_DELETING;
}

const char *qr_item_status_name(enum qr_item_status status)
{
    assert(is_status(status));
    return statuses[status].name;
}

enum qr_item_status qr_item_status_find(qr_str name)
{
    for (enum qr_item_status status = QR_ITEM_IDLE; is_status(status); status++) {
        if (qr_str_equal(name, qr_str_of(statuses[status].name))) {
            return status;
        }
    }
    return 0;
}

bool qr_item_status_is_active(enum qr_item_status status)
{
    assert(is_status(status));
    return statuses[status].class == COUNTS_ACTIVE;
}

bool qr_item_status_is_terminal(enum qr_item_status status)
{
    return status == QR_ITEM_COMPLETED || status == QR_ITEM_FAILED;
}

bool qr_item_status_may_become(enum qr_item_status from, enum qr_item_status to)
{
    assert(is_status(from) && is_status(to));
    return from == to || (statuses[from].next & QR_BIT(to)) != 0;
}

/* ---- roll-up ---- */

void qr_child_counts_add(struct qr_child_counts *counts, enum qr_item_status status, int64_t by)
{
    assert(is_status(status));
    switch (statuses[status].class) {
    case COUNTS_COMPLETED:
        counts->completed += by;
        break;
    case COUNTS_FAILED:
        counts->failed += by;
        break;
    case COUNTS_ACTIVE:
        counts->active += by;
        break;
    case COUNTS_IDLE:
        counts->idle += by;
        break;
    case NOT_COUNTED:
        break;
    }
}

enum qr_item_status qr_item_roll_up(const struct qr_child_counts *counts, bool expansion_failed, bool is_expanded)
{
    if (counts->active > 0) {
        return QR_ITEM_PROCESSING;
    }
    if (expansion_failed || counts->failed > 0) {
        return QR_ITEM_FAILED;
    }
    /* one that was never expanded, or whose expansion was called off, is not complete: nobody knows what is in it */
    return counts->idle > 0 || !is_expanded ? QR_ITEM_IDLE : QR_ITEM_COMPLETED;
}

/* ---- what is derived in answers ---- */

const char *qr_item_index_status(const struct qr_item_progress *item)
{
    switch (item->status) {
    case QR_ITEM_COMPLETED:
        return "success";
    case QR_ITEM_FAILED:
        return "failed";
    case QR_ITEM_READING:
    case QR_ITEM_EMBEDDING:
        return "indexing";
    case QR_ITEM_PROCESSING: /* of a container: it is expanded, and something below it is worked on */
        return item->was_claimed || item->is_container ? "indexing" : "queued";
    case QR_ITEM_PREPARING:
        return item->was_claimed ? "indexing" : "queued";
    case QR_ITEM_IDLE:
    case QR_ITEM_DELETING: /* in no answer: hidden */
        break;
    }
    return "not_indexed";
}

const char *qr_item_document_status(const struct qr_item_progress *item)
{
    const int64_t done_generation = item->is_container ? item->expanded_generation : item->text_generation;
    if (done_generation >= item->generation || item->status == QR_ITEM_COMPLETED) {
        return "processed";
    }
    if (item->status == QR_ITEM_FAILED) {
        return "failed";
    }
    return qr_item_status_is_active(item->status) ? "processing" : "uploaded";
}

/* ---- stages ---- */

int64_t qr_item_needs(bool is_container, int64_t generation, int64_t text_generation, int64_t chunk_generation,
                      int64_t done_generation, int64_t expanded_generation)
{
    if (is_container) {
        return expanded_generation < generation ? QR_WANT_PROCESS : 0;
    }
    if (done_generation >= generation) {
        return 0;
    }
    if (text_generation < generation) {
        return QR_WANT_PROCESS;
    }
    if (chunk_generation < generation) {
        return QR_WANT_CHUNK;
    }
    return QR_WANT_INDEX;
}
