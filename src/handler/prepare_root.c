/* prepare-root: what is in a container, held against what is known of it (TYPE-1 … TYPE-3).
 *
 * A folder's entries and its living children are both in the order of their names, so one pass over both finds what is new,
 * changed, due or gone. Only differences are reported, in parts; the plan writes them. Nothing is called gone before the
 * whole folder was read. An attempt that is repeated finds its own parts as known and goes on behind them. A folder in it that
 * is known is looked at first: one that has not changed is no difference. */
#include "base/failpoint.h"
#include "base/json.h"
#include "handler/common.h"
#include "handler/handlers.h"
#include "handler/same_folder.h"

enum { ROWS_A_PAGE = 1000 };

/* A child that is not there any more. */
struct gone {
    qr_uuid id;
    const struct qr_entry *successor; /* of another type and the same name: new after this one is gone; NULL = none */
};

struct expansion {
    struct qr_attempt *attempt;
    struct qr_entry *entries; /* in the order of their names; none for a container without a source */
    size_t entry_count;
    bool is_empty; /* nothing at all is in the folder */
    struct qr_walk_options options;
    struct qr_same_look look;

    /* the living children, a page at a time */
    struct qr_arena page_arena;
    struct qr_child_row *rows;
    size_t row_count, row_at;
    bool rows_end;

    /* what is reported next */
    struct qr_arena part_arena;
    struct qr_expand_part part;
    struct qr_found_child children[QR_EXPAND_BATCH_MAX];

    struct gone *gone; /* in the run's arena */
    size_t gone_count, gone_capacity;
    int64_t seen_count;
};

/* ---- the folder ---- */

static qr_rc string_list(const json_t *object, const char *field, struct qr_arena *arena, const char *const **ret_list,
                         size_t *ret_count, qr_err *err)
{
    const json_t *array = json_object_get(object, field);
    const size_t count = json_array_size(array);
    const char **list = qr_arena_array(arena, count + 1, sizeof list[0]);
    if (!list) {
        return qr_handler_out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(array, i));
        list[i] = qr_arena_copy(arena, qr_str_of(text ? text : ""));
        if (!list[i]) {
            return qr_handler_out_of_memory(err);
        }
    }
    *ret_list = list;
    *ret_count = count;
    return QR_OK;
}

static qr_rc read_options(const char *text, struct qr_arena *arena, struct qr_walk_options *options, qr_err *err)
{
    QR_JSON *object = NULL;
    if (!text || !text[0]) {
        return QR_OK;
    }
    QR_TRY(qr_json_parse(qr_str_of(text), &QR_JSON_REQUEST_LIMITS, &object, err));
    QR_TRY(string_list(object, "include", arena, &options->include, &options->include_count, err));
    return string_list(object, "exclude", arena, &options->exclude, &options->exclude_count, err);
}

static qr_rc read_folder(struct expansion *expansion, qr_err *err)
{
    struct qr_attempt *attempt = expansion->attempt;
    struct qr_arena *arena = attempt->run->arena;
    bool found;
    struct qr_item root;
    QR_TRY(qr_find_source_root(attempt->run->db, &attempt->item, arena, &found, &root, err));
    expansion->options = (struct qr_walk_options){.root = root.source.ptr,
                                                  .folder = attempt->item.source.ptr,
                                                  .no_links = root.no_links,
                                                  .entries_max = attempt->settings.limits.items_max};
    expansion->look = (struct qr_same_look){.attempt = attempt, .options = &expansion->options};
    QR_TRY(read_options(root.options, arena, &expansion->options, err));
    return qr_walk(&expansion->options, arena, &expansion->entries, &expansion->entry_count, &expansion->is_empty, err);
}

static qr_rc check_depth(const struct expansion *expansion, qr_err *err)
{
    const struct qr_attempt *attempt = expansion->attempt;
    const int64_t depth_max = QR_MIN(attempt->settings.limits.depth_max, (int64_t)QR_ITEM_DEPTH_MAX);
    if (expansion->entry_count > 0 && attempt->item.depth + 1 > depth_max) {
        return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "folders are nested deeper than limits.depth_max, %lld",
                       (long long)depth_max);
    }
    return QR_OK;
}

/* ---- the children that are known ---- */

struct page {
    struct expansion *expansion;
    qr_str after;
};

static qr_rc read_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    const struct page *page = arg;
    struct expansion *expansion = page->expansion;
    return qr_items_children(tx, expansion->attempt->item.id, page->after, ROWS_A_PAGE, &expansion->page_arena,
                             &expansion->rows, &expansion->row_count, err);
}

static qr_rc next_page(struct expansion *expansion, qr_err *err)
{
    struct page page = {.expansion = expansion};
    if (expansion->row_count) {
        page.after = expansion->rows[expansion->row_count - 1].key;
    }
    QR_TRY(qr_attempt_go_on(expansion->attempt, err));
    struct qr_arena before = expansion->page_arena; /* the last key is in there */
    qr_arena_init(&expansion->page_arena, 0);
    const qr_rc rc = qr_db_read(expansion->attempt->run->db, read_page, &page, err);
    qr_arena_done(&before);
    QR_TRY(rc);
    expansion->row_at = 0;
    expansion->rows_end = expansion->row_count < ROWS_A_PAGE;
    return QR_OK;
}

/* The next row, NULL at the end. */
static qr_rc peek_row(struct expansion *expansion, const struct qr_child_row **ret_row, qr_err *err)
{
    if (expansion->row_at == expansion->row_count && !expansion->rows_end) {
        QR_TRY(next_page(expansion, err));
    }
    *ret_row = expansion->row_at < expansion->row_count ? &expansion->rows[expansion->row_at] : NULL;
    return QR_OK;
}

/* ---- parts ---- */

static qr_rc report(struct expansion *expansion, qr_err *err)
{
    if (expansion->part.count == 0) {
        return QR_OK;
    }
    struct qr_attempt *attempt = expansion->attempt;
    QR_TRY(qr_attempt_go_on(attempt, err));
    QR_TRY(qr_job_report_part(attempt->run, QR_DURABLE, &expansion->part, err));
    QR_FAILPOINT("expand.batch.committed", err);
    expansion->part.count = 0;
    qr_arena_reset(&expansion->part_arena);
    qr_job_progress(attempt->run, expansion->seen_count, (int64_t)expansion->entry_count);
    if (expansion->part.enqueue_failed) {
        return qr_fail(err, QR_CODE_ENQUEUE_FAILED, "children were registered whose jobs could not be queued");
    }
    return QR_OK;
}

static qr_rc add_child(struct expansion *expansion, const struct qr_found_child *child, qr_err *err)
{
    if (expansion->part.count == QR_EXPAND_BATCH_MAX) {
        QR_TRY(report(expansion, err));
    }
    expansion->part.children = expansion->children;
    expansion->children[expansion->part.count++] = *child;
    return QR_OK;
}

static enum qr_item_type type_of(const struct qr_entry *entry)
{
    return entry->is_folder ? QR_ITEM_DIRECTORY : QR_ITEM_FILE;
}

/* The path of an entry, in the arena. */
static qr_rc source_of(const struct expansion *expansion, const struct qr_entry *entry, struct qr_arena *arena,
                       qr_str *ret_source, qr_err *err)
{
    const qr_str folder = expansion->attempt->item.source;
    const size_t folder_len = folder.len && folder.ptr[folder.len - 1] == '/' ? folder.len - 1 : folder.len;
    char *source = qr_arena_alloc(arena, folder_len + 1 + entry->name.len + 1);
    if (!source) {
        return qr_handler_out_of_memory(err);
    }
    memcpy(source, folder.ptr, folder_len);
    source[folder_len] = '/';
    memcpy(source + folder_len + 1, entry->name.ptr, entry->name.len);
    *ret_source = (qr_str){source, folder_len + 1 + entry->name.len};
    return QR_OK;
}

static qr_rc describe_entry(struct expansion *expansion, const struct qr_entry *entry, struct qr_found_child *child,
                            qr_err *err)
{
    const char *name = qr_arena_copy_utf8(&expansion->part_arena, entry->name);
    if (!name) {
        return qr_handler_out_of_memory(err);
    }
    QR_TRY(source_of(expansion, entry, &expansion->part_arena, &child->source, err));
    child->type = type_of(entry);
    child->key = entry->name;
    child->name = qr_str_of(name);
    child->size_bytes = entry->error ? -1 : entry->size_bytes;
    child->mtime_ns = entry->mtime_ns;
    if (entry->error) {
        child->error_code = qr_code_info(QR_CODE_SOURCE_UNREADABLE)->name;
        child->error_message = "it is there, but cannot be looked at";
    }
    return QR_OK;
}

static qr_rc add_entry(struct expansion *expansion, enum qr_child_change change, qr_uuid id,
                       const struct qr_entry *entry, qr_err *err)
{
    struct qr_found_child child = {.change = change, .id = id};
    if (expansion->part.count == QR_EXPAND_BATCH_MAX) {
        QR_TRY(report(expansion, err)); /* before its texts are put into the arena of the part */
    }
    QR_TRY(describe_entry(expansion, entry, &child, err));
    return add_child(expansion, &child, err);
}

/* ---- what became of a child ---- */

static bool is_failed_with(const struct qr_child_row *row, qr_code code)
{
    return row->status == QR_ITEM_FAILED && strcmp(row->error_code, qr_code_info(code)->name) == 0;
}

/* A reindex that has not reached it, or a job that could not be queued. */
static bool is_due(const struct expansion *expansion, const struct qr_child_row *row)
{
    return row->seen_generation < expansion->attempt->item.force_generation ||
           is_failed_with(row, QR_CODE_ENQUEUE_FAILED);
}

/* One that was never read has nothing to differ from. */
static bool is_changed(const struct qr_child_row *row, const struct qr_entry *entry)
{
    const bool is_first = row->generation == 1 && qr_item_status_is_active(row->status);
    return !is_first && qr_file_differs(row, entry);
}

static qr_rc is_same(struct expansion *expansion, const struct qr_child_row *row, const struct qr_entry *entry,
                     bool *ret_is, qr_err *err)
{
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    qr_arena_init(&arena, 0);
    qr_str source;
    *ret_is = false;
    if (row->status != QR_ITEM_COMPLETED || entry->error) {
        return QR_OK;
    }
    QR_TRY(source_of(expansion, entry, &arena, &source, err));
    return qr_folder_is_same(&expansion->look, row->id, source, ret_is, err);
}

static qr_rc compare_folder(struct expansion *expansion, const struct qr_child_row *row, const struct qr_entry *entry,
                            qr_err *err)
{
    const bool was_seen = row->seen_generation >= expansion->attempt->item.generation;
    const bool will_look = row->status == QR_ITEM_PREPARING;
    bool is_left = !is_due(expansion, row) && (was_seen || will_look);
    if (!is_left && !is_due(expansion, row)) {
        QR_TRY(is_same(expansion, row, entry, &is_left, err));
    }
    return is_left ? QR_OK : add_entry(expansion, QR_CHILD_WANTED, row->id, entry, err);
}

static qr_rc compare_file(struct expansion *expansion, const struct qr_child_row *row, const struct qr_entry *entry,
                          qr_err *err)
{
    if (entry->error) {
        return QR_OK; /* what is known of it stays; who asks for it finds out */
    }
    if (is_changed(row, entry)) {
        return add_entry(expansion, QR_CHILD_CHANGED, row->id, entry, err);
    }
    const bool can_be_read_again =
        is_failed_with(row, QR_CODE_SOURCE_UNREADABLE) || is_failed_with(row, QR_CODE_SOURCE_MISSING);
    const bool was_seen = row->seen_generation >= expansion->attempt->item.generation;
    if (is_due(expansion, row) || (can_be_read_again && !was_seen)) {
        return add_entry(expansion, QR_CHILD_WANTED, row->id, entry, err);
    }
    return QR_OK;
}

static qr_rc note_gone(struct expansion *expansion, qr_uuid id, const struct qr_entry *successor, qr_err *err)
{
    if (expansion->gone_count == expansion->gone_capacity) {
        const size_t capacity = QR_MAX((size_t)64, expansion->gone_capacity * 2);
        struct gone *larger = qr_arena_array(expansion->attempt->run->arena, capacity, sizeof larger[0]);
        if (!larger) {
            return qr_handler_out_of_memory(err);
        }
        if (expansion->gone_count) {
            memcpy(larger, expansion->gone, expansion->gone_count * sizeof larger[0]);
        }
        expansion->gone = larger;
        expansion->gone_capacity = capacity;
    }
    expansion->gone[expansion->gone_count++] = (struct gone){id, successor};
    return QR_OK;
}

static qr_rc compare(struct expansion *expansion, const struct qr_child_row *row, const struct qr_entry *entry,
                     qr_err *err)
{
    if (row->type != type_of(entry)) {
        return note_gone(expansion, row->id, entry, err);
    }
    return entry->is_folder ? compare_folder(expansion, row, entry, err) : compare_file(expansion, row, entry, err);
}

/* ---- the pass over both ---- */

static qr_rc merge(struct expansion *expansion, qr_err *err)
{
    size_t at = 0;
    for (;;) {
        const struct qr_child_row *row;
        QR_TRY(peek_row(expansion, &row, err));
        if (!row && at == expansion->entry_count) {
            return QR_OK;
        }
        const int order = !row                           ? -1
                          : at == expansion->entry_count ? 1
                                                         : qr_str_compare(expansion->entries[at].name, row->key);
        if (order < 0) {
            QR_TRY(add_entry(expansion, QR_CHILD_NEW, (qr_uuid){0}, &expansion->entries[at], err));
        } else if (order > 0) {
            QR_TRY(note_gone(expansion, row->id, NULL, err));
        } else {
            QR_TRY(compare(expansion, row, &expansion->entries[at], err));
        }
        at += order <= 0;
        expansion->row_at += order >= 0;
        expansion->seen_count = (int64_t)at;
    }
}

static qr_rc report_gone(struct expansion *expansion, qr_err *err)
{
    QR_TRY(report(expansion, err));
    for (size_t i = 0; i < expansion->gone_count; i++) {
        QR_TRY(
            add_child(expansion, &(struct qr_found_child){.change = QR_CHILD_GONE, .id = expansion->gone[i].id}, err));
    }
    return report(expansion, err);
}

static qr_rc report_successors(struct expansion *expansion, qr_err *err)
{
    for (size_t i = 0; i < expansion->gone_count; i++) {
        if (expansion->gone[i].successor) {
            QR_TRY(add_entry(expansion, QR_CHILD_NEW, (qr_uuid){0}, expansion->gone[i].successor, err));
        }
    }
    return report(expansion, err);
}

static qr_rc expand_folder(struct expansion *expansion, qr_err *err)
{
    const struct qr_child_row *first;
    QR_TRY(read_folder(expansion, err));
    QR_TRY(peek_row(expansion, &first, err));
    if (expansion->is_empty && first) {
        return qr_fail(err, QR_CODE_SOURCE_MISSING,
                       "the folder is empty, though it was not before: is its disk there?");
    }
    QR_TRY(check_depth(expansion, err));
    QR_TRY(merge(expansion, err));
    QR_TRY(report_gone(expansion, err));
    return report_successors(expansion, err);
}

/* TYPE-3: without a source there is nothing to hold the children against. They are only carried on to. */
static qr_rc expand_rows(struct expansion *expansion, qr_err *err)
{
    for (;;) {
        const struct qr_child_row *row;
        QR_TRY(peek_row(expansion, &row, err));
        if (!row) {
            return report(expansion, err);
        }
        if (is_due(expansion, row)) {
            QR_TRY(add_child(expansion,
                             &(struct qr_found_child){.change = QR_CHILD_WANTED,
                                                      .id = row->id,
                                                      .type = row->type,
                                                      .size_bytes = row->size_bytes,
                                                      .mtime_ns = row->mtime_ns},
                             err));
        }
        expansion->row_at++;
        expansion->seen_count++;
    }
}

static void expansion_free(struct expansion **expansion)
{
    if (*expansion) { /* its memory is the arena's */
        qr_arena_done(&(*expansion)->page_arena);
        qr_arena_done(&(*expansion)->part_arena);
    }
}

static qr_rc expand(struct qr_attempt *attempt, struct qr_expand_result **ret_result, qr_err *err)
{
    struct qr_arena *arena = attempt->run->arena;
    struct qr_expand_result *result = qr_arena_alloc(arena, sizeof *result);
    QR_CLEANUP(expansion_free) struct expansion *expansion = qr_arena_alloc(arena, sizeof *expansion);
    if (!result || !expansion) {
        return qr_handler_out_of_memory(err);
    }
    expansion->attempt = attempt;
    qr_arena_init(&expansion->page_arena, 0);
    qr_arena_init(&expansion->part_arena, 0);
    QR_TRY(attempt->item.source.len ? expand_folder(expansion, err) : expand_rows(expansion, err));
    result->seen_count = expansion->seen_count;
    *ret_result = result;
    return QR_OK;
}

void qr_handle_prepare_root(struct qr_job_run *run, struct qr_outcome *ret_outcome)
{
    QR_ATTEMPT(attempt);
    if (qr_attempt_begin(&attempt, run, ret_outcome)) {
        struct qr_expand_result *result = NULL;
        const qr_rc rc = expand(&attempt, &result, &ret_outcome->error);
        qr_outcome_set(ret_outcome, rc, result);
    }
}
