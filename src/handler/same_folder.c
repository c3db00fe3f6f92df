/* The look at a folder that has been read before. Entries and children are both in the order of their names; the first
 * difference ends it. */
#include "handler/same_folder.h"

enum { ROWS_A_PAGE = 1000 };

struct folder {
    struct qr_same_look *look;
    qr_uuid id;
    qr_str source;
    struct qr_arena arena;      /* of the entries */
    struct qr_arena page_arena; /* of the children */
    struct qr_entry *entries;
    size_t entry_count, at;
    struct qr_child_row *rows;
    size_t row_count;
    qr_str after; /* the key of the last child */
};

static void folder_done(struct folder *folder)
{
    qr_arena_done(&folder->arena);
    qr_arena_done(&folder->page_arena);
}

bool qr_file_differs(const struct qr_child_row *row, const struct qr_entry *entry)
{
    return row->size_bytes >= 0 && entry->size_bytes >= 0 &&
           (row->size_bytes != entry->size_bytes || row->mtime_ns != entry->mtime_ns);
}

/* ---- reading ---- */

static bool is_about_folder(const qr_err *err)
{
    return err->code == QR_CODE_SOURCE_MISSING || err->code == QR_CODE_SOURCE_UNREADABLE ||
           err->code == QR_CODE_LIMIT_EXCEEDED || err->code == QR_CODE_INVALID_VALUE;
}

/* *ret_was_read: false when something is wrong with it. */
static qr_rc read_entries(struct folder *folder, bool *ret_was_read, qr_err *err)
{
    struct qr_walk_options options = *folder->look->options;
    qr_err why = {0};
    bool is_empty;
    options.folder = folder->source.ptr;
    const qr_rc rc = qr_walk(&options, &folder->arena, &folder->entries, &folder->entry_count, &is_empty, &why);
    *ret_was_read = rc == QR_OK;
    if (rc != QR_OK && !is_about_folder(&why)) {
        *err = why;
        return rc;
    }
    folder->look->entries += (int64_t)folder->entry_count;
    return QR_OK;
}

static qr_rc read_page(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct folder *folder = arg;
    return qr_items_children(tx, folder->id, folder->after, ROWS_A_PAGE, &folder->page_arena, &folder->rows,
                             &folder->row_count, err);
}

static qr_rc next_page(struct folder *folder, qr_err *err)
{
    struct qr_arena before = folder->page_arena; /* the last key is in there */
    qr_arena_init(&folder->page_arena, 0);
    const qr_rc rc = qr_db_read(folder->look->attempt->run->db, read_page, folder, err);
    qr_arena_done(&before);
    QR_TRY(rc);
    folder->after = folder->row_count ? folder->rows[folder->row_count - 1].key : (qr_str){0};
    return QR_OK;
}

/* ---- comparing ---- */

static qr_rc is_same_folder(struct folder *above, const struct qr_child_row *row, const struct qr_entry *entry,
                            bool *ret_is, qr_err *err)
{
    size_t len = above->source.len;
    len -= len && above->source.ptr[len - 1] == '/';
    char *source = qr_arena_alloc(&above->arena, len + 1 + entry->name.len + 1);
    if (!source) {
        return qr_handler_out_of_memory(err);
    }
    memcpy(source, above->source.ptr, len);
    source[len] = '/';
    memcpy(source + len + 1, entry->name.ptr, entry->name.len);
    source[len + 1 + entry->name.len] = '\0';
    return qr_folder_is_same(above->look, row->id, (qr_str){source, len + 1 + entry->name.len}, ret_is, err);
}

static qr_rc is_same_child(struct folder *folder, const struct qr_child_row *row, bool *ret_is, qr_err *err)
{
    *ret_is = false;
    if (folder->at == folder->entry_count) {
        return QR_OK;
    }
    const struct qr_entry *entry = &folder->entries[folder->at++];
    const enum qr_item_type type = entry->is_folder ? QR_ITEM_DIRECTORY : QR_ITEM_FILE;
    if (row->type != type || row->status != QR_ITEM_COMPLETED || !qr_str_equal(row->key, entry->name)) {
        return QR_OK;
    }
    if (entry->is_folder) {
        return is_same_folder(folder, row, entry, ret_is, err);
    }
    *ret_is = entry->error || !qr_file_differs(row, entry);
    return QR_OK;
}

static qr_rc compare(struct folder *folder, bool *ret_is, qr_err *err)
{
    *ret_is = true;
    do {
        QR_TRY(next_page(folder, err));
        for (size_t i = 0; i < folder->row_count && *ret_is; i++) {
            QR_TRY(is_same_child(folder, &folder->rows[i], ret_is, err));
        }
    } while (*ret_is && folder->row_count == ROWS_A_PAGE);
    *ret_is = *ret_is && folder->at == folder->entry_count;
    return QR_OK;
}

/* Calls itself for the folders in it; no item is deeper than QR_ITEM_DEPTH_MAX. */
qr_rc qr_folder_is_same(struct qr_same_look *look, qr_uuid folder_id, qr_str source, bool *ret_is, qr_err *err)
{
    *ret_is = false;
    if (look->entries >= QR_SAME_ENTRIES_MAX) {
        return QR_OK;
    }
    QR_TRY(qr_attempt_go_on(look->attempt, err));
    QR_CLEANUP(folder_done) struct folder folder = {.look = look, .id = folder_id, .source = source};
    qr_arena_init(&folder.arena, 0);
    qr_arena_init(&folder.page_arena, 0);
    bool was_read;
    QR_TRY(read_entries(&folder, &was_read, err));
    return was_read ? compare(&folder, ret_is, err) : QR_OK;
}
