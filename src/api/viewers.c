#include "api/viewers.h"

#include "api/access.h"
#include "base/mem.h"
#include "store/members.h"

#include <stdlib.h>

struct qr_viewer {
    struct qr_viewer *next, *previous;
    int holders;
    bool is_local_owner;
    char *authorization; /* a secret; NULL = none */
    char *address;       /* without a key only this machine is listened to, so any of theirs will do */
    struct qr_sight sight;
};

static bool asks_alike(const struct qr_viewer *viewer, const struct quire_request *from)
{
    const char *a = viewer->authorization, *b = from->authorization;
    return viewer->is_local_owner == (from->is_local_owner != 0) && (a && b ? strcmp(a, b) == 0 : !a && !b);
}

static void free_viewer(struct qr_viewer *viewer)
{
    if (viewer->authorization) {
        explicit_bzero(viewer->authorization, strlen(viewer->authorization));
    }
    qr_free(viewer->authorization);
    qr_free(viewer->address);
    qr_buf_done(&viewer->sight.bases);
    qr_free(viewer);
}

static struct qr_viewer *create(const struct quire_request *from)
{
    struct qr_viewer *viewer = qr_alloc_zero(sizeof *viewer);
    if (!viewer) {
        return NULL;
    }
    viewer->is_local_owner = from->is_local_owner != 0;
    viewer->authorization = from->authorization ? qr_copy_string(from->authorization) : NULL;
    viewer->address = from->remote_address ? qr_copy_string(from->remote_address) : NULL;
    if ((from->authorization && !viewer->authorization) || (from->remote_address && !viewer->address)) {
        free_viewer(viewer);
        return NULL;
    }
    return viewer;
}

struct qr_viewer *qr_viewer_hold(struct qr_viewer **list, const struct quire_request *from)
{
    for (struct qr_viewer *viewer = *list; viewer; viewer = viewer->next) {
        if (asks_alike(viewer, from)) {
            return qr_viewer_hold_again(viewer);
        }
    }
    struct qr_viewer *viewer = create(from);
    if (!viewer) {
        return NULL;
    }
    viewer->next = *list;
    if (viewer->next) {
        viewer->next->previous = viewer;
    }
    *list = viewer;
    return qr_viewer_hold_again(viewer);
}

struct qr_viewer *qr_viewer_hold_again(struct qr_viewer *viewer)
{
    viewer->holders++;
    return viewer;
}

void qr_viewer_release(struct qr_viewer **list, struct qr_viewer *viewer)
{
    if (--viewer->holders > 0) {
        return;
    }
    *(viewer->previous ? &viewer->previous->next : list) = viewer->next;
    if (viewer->next) {
        viewer->next->previous = viewer->previous;
    }
    free_viewer(viewer);
}

struct qr_viewer *qr_viewer_next(const struct qr_viewer *viewer)
{
    return viewer->next;
}

/* ---- what it sees ---- */

bool qr_viewer_may(const struct qr_viewer *viewer)
{
    return viewer->sight.may;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, QR_UUID_BYTES);
}

bool qr_viewer_sees(const struct qr_viewer *viewer, qr_uuid base_id)
{
    const struct qr_sight *sight = &viewer->sight;
    return sight->may && (sight->sees_all ||
                          (sight->bases.len && bsearch(base_id.bytes, sight->bases.data,
                                                       sight->bases.len / QR_UUID_BYTES, QR_UUID_BYTES, compare_ids)));
}

void qr_viewer_set(struct qr_viewer *viewer, struct qr_sight *sight)
{
    qr_buf_done(&viewer->sight.bases);
    viewer->sight = *sight;
    *sight = (struct qr_sight){0};
}

struct look {
    struct quire_request from;
    struct qr_sight *sight;
};

static qr_rc find_bases(struct qr_tx *tx, qr_uuid key_id, struct qr_buf *out, qr_err *err)
{
    enum { PAGE = 200 };
    QR_CLEANUP(qr_arena_done) struct qr_arena arena;
    struct qr_member *members;
    size_t count = PAGE;
    qr_uuid after = {0};
    qr_arena_init(&arena, 0);
    while (count == PAGE) {
        QR_TRY(qr_members_of_key(tx, key_id, after, PAGE, &arena, &members, &count, err));
        for (size_t i = 0; i < count; i++) {
            after = members[i].base_id;
            qr_buf_add(out, (qr_str){(const char *)after.bytes, QR_UUID_BYTES});
        }
        qr_arena_reset(&arena);
    }
    return qr_buf_check(out, err);
}

static qr_rc look_in_tx(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct look *look = arg;
    struct qr_caller caller;
    bool is_use_new;
    qr_buf_clear(&look->sight->bases);
    QR_TRY(qr_access_who(tx, &look->from, &caller, &is_use_new, err));
    look->sight->may = caller.right > QR_RIGHT_OPEN;
    look->sight->sees_all = look->sight->may && !qr_caller_is_member(&caller);
    return look->sight->may && !look->sight->sees_all ? find_bases(tx, caller.key_id, &look->sight->bases, err) : QR_OK;
}

qr_rc qr_viewer_look(struct quire *quire, const struct qr_viewer *viewer, struct qr_sight *ret_sight, qr_err *err)
{
    struct qr_sight sight = {.may = true, .sees_all = true};
    struct look look = {.from = {.is_local_owner = viewer->is_local_owner,
                                 .authorization = viewer->authorization,
                                 .remote_address = viewer->address},
                        .sight = &sight};
    if (!viewer->is_local_owner) {
        const qr_rc rc = qr_db_read(quire->db, look_in_tx, &look, err);
        if (rc != QR_OK) {
            qr_buf_done(&sight.bases);
            return rc;
        }
    }
    *ret_sight = sight;
    return QR_OK;
}
