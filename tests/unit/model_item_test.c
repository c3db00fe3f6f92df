/* Items and job types: the tables, the roll-up, and what answers derive. */
#include "model/item.h"
#include "model/job_type.h"
#include "support/test.h"

/* ---- names ---- */

QR_TEST(types_and_states_are_stored_as_fixed_numbers_and_have_the_names_of_the_page)
{
    static const char *const types[] = {"directory", "file", "note", "url"};
    for (size_t i = 0; i < QR_COUNT(types); i++) {
        const enum qr_item_type type = (enum qr_item_type)(i + 1);
        QR_CHECK_TEXT(types[i], qr_item_type_name(type));
        QR_CHECK_INT(type, qr_item_type_find(qr_str_of(types[i])));
    }
    static const char *const statuses[] = {"idle",      "preparing", "processing", "reading",
                                           "embedding", "completed", "failed",     "deleting"};
    for (size_t i = 0; i < QR_COUNT(statuses); i++) {
        const enum qr_item_status status = (enum qr_item_status)(i + 1);
        QR_CHECK_TEXT(statuses[i], qr_item_status_name(status));
        QR_CHECK_INT(status, qr_item_status_find(qr_str_of(statuses[i])));
    }
    QR_CHECK_INT(QR_COUNT(statuses), QR_ITEM_DELETING);
    QR_CHECK_INT(0, qr_item_type_find(QR_STR("folder")));
    QR_CHECK_INT(0, qr_item_type_find(QR_STR("")));
    QR_CHECK_INT(0, qr_item_status_find(QR_STR("Idle")));
    QR_CHECK_INT(0, qr_item_status_find(QR_STR("")));
}

/* ---- transitions ---- */

static bool is_derived(enum qr_item_status status)
{
    return status == QR_ITEM_READING || status == QR_ITEM_EMBEDDING;
}

QR_TEST(every_pair_of_states_is_allowed_or_not_as_the_page_says) /* I4 */
{
    int allowed = 0;
    for (enum qr_item_status from = QR_ITEM_IDLE; from <= QR_ITEM_DELETING; from++) {
        for (enum qr_item_status to = QR_ITEM_IDLE; to <= QR_ITEM_DELETING; to++) {
            qr_test_set_context("%s to %s", qr_item_status_name(from), qr_item_status_name(to));
            /* what is only derived is never set; a delete is one-way; all else can happen to a container as its children
             * come, fail and go */
            const bool may = from == to || (from != QR_ITEM_DELETING && !is_derived(from) && !is_derived(to));
            QR_CHECK_INT(may, qr_item_status_may_become(from, to));
            allowed += may;
        }
    }
    QR_CHECK_INT(8 + 5 * 5, allowed);
}

QR_TEST(active_and_terminal_are_what_they_are_called)
{
    int active = 0, terminal = 0;
    for (enum qr_item_status status = QR_ITEM_IDLE; status <= QR_ITEM_DELETING; status++) {
        const bool is_active = status >= QR_ITEM_PREPARING && status <= QR_ITEM_EMBEDDING;
        const bool is_terminal = status == QR_ITEM_COMPLETED || status == QR_ITEM_FAILED;
        QR_CHECK_INT(is_active, qr_item_status_is_active(status));
        QR_CHECK_INT(is_terminal, qr_item_status_is_terminal(status));
        active += is_active;
        terminal += is_terminal;
    }
    QR_CHECK_INT(4, active);
    QR_CHECK_INT(2, terminal);
}

/* ---- roll-up ---- */

/* The sentence of STATE-5, over the children themselves. */
static enum qr_item_status by_the_sentence(const enum qr_item_status *children, int count, bool expansion_failed,
                                           bool is_expanded)
{
    bool any_active = false, any_failed = false, any_idle = false;
    for (int i = 0; i < count; i++) {
        any_active |= children[i] >= QR_ITEM_PREPARING && children[i] <= QR_ITEM_EMBEDDING;
        any_failed |= children[i] == QR_ITEM_FAILED;
        any_idle |= children[i] == QR_ITEM_IDLE;
    }
    if (any_active) {
        return QR_ITEM_PROCESSING;
    }
    if (expansion_failed || any_failed) {
        return QR_ITEM_FAILED;
    }
    if (any_idle || !is_expanded) {
        return QR_ITEM_IDLE;
    }
    return QR_ITEM_COMPLETED;
}

static void check_children(const enum qr_item_status *children, int count)
{
    struct qr_child_counts counts = {0};
    for (int i = 0; i < count; i++) {
        qr_child_counts_add(&counts, children[i], 1);
    }
    for (int flags = 0; flags < 4; flags++) {
        const bool expansion_failed = flags & 1, is_expanded = flags & 2;
        QR_CHECK_INT(by_the_sentence(children, count, expansion_failed, is_expanded),
                     qr_item_roll_up(&counts, expansion_failed, is_expanded));
    }
    for (int i = 0; i < count; i++) { /* by delta there and back again: nothing is left */
        qr_child_counts_add(&counts, children[i], -1);
    }
    QR_CHECK(counts.completed == 0 && counts.failed == 0 && counts.active == 0 && counts.idle == 0);
}

QR_TEST(a_container_is_what_its_children_make_it) /* STATE-5, STATE-6 */
{
    enum { CHILDREN_MAX = 4 };
    for (int count = 0; count <= CHILDREN_MAX; count++) {
        int combinations = 1;
        for (int i = 0; i < count; i++) {
            combinations *= QR_ITEM_DELETING;
        }
        for (int combination = 0; combination < combinations; combination++) {
            enum qr_item_status children[CHILDREN_MAX];
            int rest = combination;
            for (int i = 0; i < count; i++, rest /= QR_ITEM_DELETING) {
                children[i] = (enum qr_item_status)(rest % QR_ITEM_DELETING + 1);
            }
            qr_test_set_context("combination %d of %d children", combination, count);
            check_children(children, count);
        }
    }
}

QR_TEST(an_empty_container_is_completed_once_it_was_expanded) /* STATE-5 */
{
    const struct qr_child_counts none = {0};
    QR_CHECK_INT(QR_ITEM_COMPLETED, qr_item_roll_up(&none, false, true));
    QR_CHECK_INT(QR_ITEM_IDLE, qr_item_roll_up(&none, false, false));
    QR_CHECK_INT(QR_ITEM_FAILED, qr_item_roll_up(&none, true, false));
    QR_CHECK_INT(QR_ITEM_FAILED, qr_item_roll_up(&none, true, true));
}

QR_TEST(a_deleting_child_does_not_count) /* STATE-6 */
{
    struct qr_child_counts counts = {.completed = 1};
    qr_child_counts_add(&counts, QR_ITEM_DELETING, 5);
    QR_CHECK(counts.completed == 1 && counts.failed == 0 && counts.active == 0 && counts.idle == 0);
}

/* ---- what is derived ---- */

QR_TEST(the_index_status_is_derived) /* STATE-1 */
{
    static const struct {
        enum qr_item_status status;
        bool was_claimed;
        const char *of_leaf, *of_container;
    } cases[] = {
        {QR_ITEM_IDLE, false, "not_indexed", "not_indexed"},    {QR_ITEM_IDLE, true, "not_indexed", "not_indexed"},
        {QR_ITEM_PREPARING, false, "queued", "queued"},         {QR_ITEM_PREPARING, true, "indexing", "indexing"},
        {QR_ITEM_PROCESSING, false, "queued", "indexing"},      {QR_ITEM_PROCESSING, true, "indexing", "indexing"},
        {QR_ITEM_READING, false, "indexing", "indexing"},       {QR_ITEM_EMBEDDING, false, "indexing", "indexing"},
        {QR_ITEM_COMPLETED, true, "success", "success"},        {QR_ITEM_FAILED, false, "failed", "failed"},
        {QR_ITEM_DELETING, true, "not_indexed", "not_indexed"},
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("case %zu", i);
        struct qr_item_progress item = {
            .status = cases[i].status, .was_claimed = cases[i].was_claimed, .generation = 2, .live_generation = 1};
        QR_CHECK_TEXT(cases[i].of_leaf, qr_item_index_status(&item));
        item.is_container = true;
        QR_CHECK_TEXT(cases[i].of_container, qr_item_index_status(&item));
    }
}

QR_TEST(a_leaf_needs_the_first_stage_that_its_generation_lacks) /* REIDX-7 */
{
    static const struct {
        int64_t text, chunk, done, needs;
    } cases[] = {
        {1, 1, 1, QR_WANT_PROCESS},
        {2, 1, 1, QR_WANT_CHUNK},
        {2, 2, 1, QR_WANT_INDEX},
        {2, 2, 2, 0},
        {1, 1, 2, 0}, /* it was found to come to what is live */
    };
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        qr_test_set_context("case %zu", i);
        QR_CHECK_INT(cases[i].needs, qr_item_needs(false, 2, cases[i].text, cases[i].chunk, cases[i].done, 0));
    }
    QR_CHECK_INT(QR_WANT_PROCESS, qr_item_needs(true, 2, 0, 0, 0, 1));
    QR_CHECK_INT(0, qr_item_needs(true, 2, 0, 0, 0, 2));
}

QR_TEST(the_document_status_is_derived) /* STATE-2 */
{
    for (int is_container = 0; is_container <= 1; is_container++) {
        struct qr_item_progress item = {.is_container = is_container, .generation = 2, .status = QR_ITEM_IDLE};
        int64_t *done_generation = is_container ? &item.expanded_generation : &item.text_generation;
        *done_generation = 1; /* of an earlier attempt: does not count */
        QR_CHECK_TEXT("uploaded", qr_item_document_status(&item));
        item.status = is_container ? QR_ITEM_PREPARING : QR_ITEM_PROCESSING;
        QR_CHECK_TEXT("processing", qr_item_document_status(&item));
        item.status = QR_ITEM_FAILED;
        QR_CHECK_TEXT("failed", qr_item_document_status(&item));
        *done_generation = 2; /* whatever happened later */
        for (item.status = QR_ITEM_IDLE; item.status <= QR_ITEM_FAILED; item.status++) {
            QR_CHECK_TEXT("processed", qr_item_document_status(&item));
        }
    }
}

/* ---- job types ---- */

QR_TEST(the_job_types_are_those_of_the_page)
{
    static const struct qr_job_type_info page[] = {
        {"prepare-root", QR_QUEUE_EXPAND, true, 0},
        {"process-document", QR_QUEUE_CONVERT, true, 0},
        {"check-file-processing", QR_QUEUE_CONVERT, true, 0},
        {"chunk-document", QR_QUEUE_CONVERT, true, 0},
        {"index-chunks", QR_QUEUE_EMBED, true, 0},
        {"analyze-asset", QR_QUEUE_ASSETS, false, 0},
        {"refresh-source", QR_QUEUE_CONVERT, false, 0},
        {"reindex-subtree", QR_QUEUE_EXPAND, false, 0},
        {"restore-base", QR_QUEUE_EXPAND, false, 0},
        {"delete-subtree", QR_QUEUE_DELETE, false, 0},
        {"delete-base", QR_QUEUE_DELETE, false, 0},
        {"purge", QR_QUEUE_DELETE, false, 0},
        {"build-vectors", QR_QUEUE_EMBED, false, 0},
    };
    QR_CHECK_INT(QR_COUNT(page), QR_JOB_TYPE_END - 1);
    for (size_t i = 0; i < QR_COUNT(page); i++) {
        const enum qr_job_type type = (enum qr_job_type)(i + 1);
        const struct qr_job_type_info *info = qr_job_type_info(type);
        qr_test_set_context("%s", page[i].name);
        QR_CHECK_TEXT(page[i].name, info->name);
        QR_CHECK_INT(page[i].queue, info->queue);
        QR_CHECK_INT(page[i].is_stage, info->is_stage);
        QR_CHECK_INT(type, qr_job_type_find(qr_str_of(info->name)));
    }
    QR_CHECK_INT(0, qr_job_type_find(QR_STR("purge ")));
    QR_CHECK_INT(0, qr_job_type_find(QR_STR("")));
}

QR_TEST(a_stage_that_hangs_is_ended_and_a_delete_never_is) /* DEL-7 */
{
    for (enum qr_job_type type = QR_JOB_PREPARE_ROOT; type < QR_JOB_TYPE_END; type++) {
        const struct qr_job_type_info *info = qr_job_type_info(type);
        const bool is_delete = type == QR_JOB_DELETE_SUBTREE || type == QR_JOB_DELETE_BASE;
        QR_CHECK_INT(is_delete, info->time_limit_ms == 0);
    }
}
