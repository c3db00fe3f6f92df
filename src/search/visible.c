/* Sets of hidden ids, and who holds them. visible.h states the rules. A set never changes once others can see it, but for
 * `refs` and `seq`, which are under the memory's lock. */
#include "search/visible.h"

#include "base/mem.h"
#include "base/sync.h"
#include "store/hidden.h"

#include <stdlib.h>

enum { BASES_MAX = 64, IDS_A_READ = 1 << 14 };

struct qr_hidden_set {
    int refs;
    qr_uuid witness; /* as long as this item hides, the set holds */
    bool is_below;   /* a container; else the items that are deleting each for itself */
    int64_t seq;     /* the vis_seq with which it was seen to hold */
    size_t count;
    qr_uuid *ids; /* sorted */
};

struct base_sets {
    qr_uuid base_id;
    uint64_t used; /* 0 = free */
    size_t count;
    struct qr_hidden_set *sets[QR_HIDDEN_SETS_MAX]; /* the newest last */
};

struct qr_visible_memory {
    struct qr_mutex lock;
    uint64_t uses;
    size_t id_count;
    struct base_sets bases[BASES_MAX];
};

/* ---- sets ---- */

static void free_set(struct qr_hidden_set *set)
{
    if (set) {
        qr_free(set->ids);
        qr_free(set);
    }
}

static void free_set_ptr(struct qr_hidden_set **set)
{
    free_set(*set);
}

/* Under the lock of the memory, if there is one. */
static void unref_set(struct qr_hidden_set *set)
{
    if (--set->refs == 0) {
        free_set(set);
    }
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(((const qr_uuid *)a)->bytes, ((const qr_uuid *)b)->bytes, QR_UUID_BYTES);
}

static bool set_has(const struct qr_hidden_set *set, const qr_uuid *id)
{
    if (set->count == 0 || compare_ids(id, &set->ids[0]) < 0 || compare_ids(id, &set->ids[set->count - 1]) > 0) {
        return false;
    }
    return bsearch(id, set->ids, set->count, sizeof *id, compare_ids) != NULL;
}

bool qr_hidden_has(const struct qr_hidden *hidden, qr_uuid item_id)
{
    for (size_t i = 0; i < hidden->count; i++) {
        if (set_has(hidden->sets[i], &item_id)) {
            return true;
        }
    }
    return false;
}

/* The same thing hides, so that the newer one replaces the older. */
static bool are_alike(const struct qr_hidden_set *a, const struct qr_hidden_set *b)
{
    return a->is_below == b->is_below && (!a->is_below || qr_uuid_equal(a->witness, b->witness));
}

/* ---- the memory ---- */

qr_rc qr_visible_memory_create(struct qr_visible_memory **ret_memory, qr_err *err)
{
    struct qr_visible_memory *memory = qr_alloc_zero(sizeof *memory);
    if (!memory) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for what is hidden");
    }
    qr_mutex_init(&memory->lock);
    *ret_memory = memory;
    return QR_OK;
}

static void remove_set(struct qr_visible_memory *memory, struct base_sets *base, size_t at)
{
    struct qr_hidden_set *set = base->sets[at];
    base->count--;
    memmove(&base->sets[at], &base->sets[at + 1], (base->count - at) * sizeof base->sets[0]);
    memory->id_count -= set->count;
    unref_set(set);
}

static void forget_base(struct qr_visible_memory *memory, struct base_sets *base)
{
    while (base->count > 0) {
        remove_set(memory, base, base->count - 1);
    }
    base->used = 0;
}

void qr_visible_memory_free(struct qr_visible_memory *memory)
{
    if (!memory) {
        return;
    }
    for (size_t i = 0; i < QR_COUNT(memory->bases); i++) {
        forget_base(memory, &memory->bases[i]);
    }
    qr_mutex_done(&memory->lock);
    qr_free(memory);
}

size_t qr_visible_memory_ids(struct qr_visible_memory *memory)
{
    QR_HOLD(&memory->lock);
    return memory->id_count;
}

static struct base_sets *find_base(struct qr_visible_memory *memory, qr_uuid base_id)
{
    for (size_t i = 0; i < QR_COUNT(memory->bases); i++) {
        struct base_sets *base = &memory->bases[i];
        if (base->used && qr_uuid_equal(base->base_id, base_id)) {
            base->used = ++memory->uses;
            return base;
        }
    }
    return NULL;
}

/* The one that was used longest ago, but for `except`; NULL when no other is in use. */
static struct base_sets *oldest_base(struct qr_visible_memory *memory, const struct base_sets *except)
{
    struct base_sets *oldest = NULL;
    for (size_t i = 0; i < QR_COUNT(memory->bases); i++) {
        struct base_sets *base = &memory->bases[i];
        if (base != except && base->used && (!oldest || base->used < oldest->used)) {
            oldest = base;
        }
    }
    return oldest;
}

static struct base_sets *take_base(struct qr_visible_memory *memory, qr_uuid base_id)
{
    struct base_sets *base = find_base(memory, base_id);
    if (base) {
        return base;
    }
    for (size_t i = 0; i < QR_COUNT(memory->bases) && !base; i++) {
        base = memory->bases[i].used ? NULL : &memory->bases[i];
    }
    if (!base) {
        base = oldest_base(memory, NULL);
        forget_base(memory, base);
    }
    base->base_id = base_id;
    base->used = ++memory->uses;
    return base;
}

/* V3: so that a set of that size may be added to the base. */
static void make_room(struct qr_visible_memory *memory, struct base_sets *base, size_t id_count)
{
    struct base_sets *oldest;
    while (memory->id_count + id_count > QR_HIDDEN_IDS_MAX && (oldest = oldest_base(memory, base))) {
        forget_base(memory, oldest);
    }
    while (base->count > 0 && (base->count == QR_HIDDEN_SETS_MAX || memory->id_count + id_count > QR_HIDDEN_IDS_MAX)) {
        remove_set(memory, base, 0);
    }
}

static void remember(struct qr_visible_memory *memory, qr_uuid base_id, struct qr_hidden_set *set)
{
    struct base_sets *base = take_base(memory, base_id);
    for (size_t i = base->count; i > 0; i--) {
        if (are_alike(base->sets[i - 1], set)) {
            remove_set(memory, base, i - 1);
        }
    }
    make_room(memory, base, set->count);
    base->sets[base->count++] = set;
    memory->id_count += set->count;
    set->refs++;
}

/* ---- the beginning of a search ---- */

static void copy_sets(struct qr_hidden *hidden)
{
    QR_HOLD(&hidden->memory->lock);
    const struct base_sets *base = find_base(hidden->memory, hidden->base_id);
    for (size_t i = 0; base && i < base->count; i++) {
        hidden->sets[hidden->count++] = base->sets[i];
        base->sets[i]->refs++;
    }
}

/* Whether the sets still hold. */
struct recheck {
    const struct qr_hidden *hidden;
    int64_t seqs[QR_HIDDEN_SETS_MAX]; /* with which each was seen to hold */
    int64_t seq;                      /* of now */
    bool holds[QR_HIDDEN_SETS_MAX];
};

static qr_rc look_again(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct recheck *recheck = arg;
    const struct qr_hidden *hidden = recheck->hidden;
    QR_TRY(qr_base_vis_seq(tx, hidden->base_id, &recheck->seq, err));
    for (size_t i = 0; i < hidden->count; i++) {
        recheck->holds[i] = recheck->seqs[i] == recheck->seq;
        if (!recheck->holds[i]) {
            QR_TRY(qr_item_hides(tx, hidden->sets[i]->witness, &recheck->holds[i], err));
        }
    }
    return QR_OK;
}

static void forget_set(struct qr_visible_memory *memory, qr_uuid base_id, const struct qr_hidden_set *set)
{
    struct base_sets *base = find_base(memory, base_id);
    for (size_t i = 0; base && i < base->count; i++) {
        if (base->sets[i] == set) {
            remove_set(memory, base, i);
            return;
        }
    }
}

/* V2: those that do not hold any more are forgotten, by this search and by all. */
static void keep_those_that_hold(struct qr_hidden *hidden, const struct recheck *recheck)
{
    QR_HOLD(&hidden->memory->lock);
    const size_t count = hidden->count;
    hidden->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct qr_hidden_set *set = hidden->sets[i];
        if (recheck->holds[i]) {
            set->seq = QR_MAX(set->seq, recheck->seq);
            hidden->sets[hidden->count++] = set;
        } else {
            forget_set(hidden->memory, hidden->base_id, set);
            unref_set(set);
        }
    }
}

static void read_seqs(const struct qr_hidden *hidden, int64_t seqs[static QR_HIDDEN_SETS_MAX])
{
    QR_HOLD(&hidden->memory->lock);
    for (size_t i = 0; i < hidden->count; i++) {
        seqs[i] = hidden->sets[i]->seq;
    }
}

qr_rc qr_hidden_begin(struct qr_hidden *hidden, struct qr_visible_memory *memory, struct qr_db *db, qr_uuid base_id,
                      qr_err *err)
{
    *hidden = (struct qr_hidden){.memory = memory, .db = db, .base_id = base_id};
    if (memory) {
        copy_sets(hidden);
    }
    if (hidden->count == 0) {
        return QR_OK;
    }
    struct recheck recheck = {.hidden = hidden};
    read_seqs(hidden, recheck.seqs);
    QR_TRY(qr_db_read(db, look_again, &recheck, err));
    keep_those_that_hold(hidden, &recheck);
    return QR_OK;
}

void qr_hidden_done(struct qr_hidden *hidden)
{
    if (hidden->count == 0) {
        return;
    }
    if (hidden->memory) {
        qr_mutex_lock(&hidden->memory->lock);
    }
    while (hidden->count > 0) {
        unref_set(hidden->sets[--hidden->count]);
    }
    if (hidden->memory) {
        qr_mutex_unlock(&hidden->memory->lock);
    }
}

/* ---- learning ---- */

/* One read: the next ids. A read may be run again, so that it moves only its own cursors. */
struct part {
    const struct qr_hidden *hidden;
    qr_str root_path; /* empty: those that are deleting each for itself */
    qr_uuid witness;  /* of root_path */
    struct qr_item_cursor from, next;
    qr_uuid from_id, next_id;
    int limit;
    int64_t seq;
    bool holds, more;
    size_t count;
    qr_uuid ids[IDS_A_READ];
};

static qr_rc read_part(struct qr_tx *tx, void *arg, qr_err *err)
{
    struct part *part = arg;
    const qr_uuid base_id = part->hidden->base_id;
    part->count = 0;
    part->more = false;
    part->next = part->from;
    part->next_id = part->from_id;
    QR_TRY(qr_base_vis_seq(tx, base_id, &part->seq, err));
    if (part->root_path.len == 0) {
        part->holds = true;
        return qr_ids_deleting(tx, base_id, part->limit, &part->next_id, part->ids, &part->count, &part->more, err);
    }
    QR_TRY(qr_item_hides(tx, part->witness, &part->holds, err));
    if (!part->holds) {
        return QR_OK;
    }
    QR_TRY(qr_ids_below(tx, base_id, part->root_path, part->limit, &part->next, part->ids, &part->count, err));
    part->more = part->count == (size_t)part->limit;
    return QR_OK;
}

static qr_rc out_of_memory(qr_err *err)
{
    return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for what is hidden");
}

static qr_rc add_part(struct qr_hidden_set *set, size_t *capacity, const struct part *part, qr_err *err)
{
    if (set->count + part->count > *capacity) {
        const size_t wanted = QR_MAX(set->count + part->count, *capacity * 2);
        qr_uuid *ids = qr_resize(set->ids, wanted * sizeof ids[0]);
        if (!ids) {
            return out_of_memory(err);
        }
        set->ids = ids;
        *capacity = wanted;
    }
    if (part->count) {
        memcpy(set->ids + set->count, part->ids, part->count * sizeof part->ids[0]);
    }
    set->count += part->count;
    return QR_OK;
}

/* The set holds with the vis_seq of its first read: that it held later too is looked at when it is used again. */
static qr_rc fill_set(struct qr_hidden_set *set, struct part *part, size_t ids_max, qr_err *err)
{
    size_t capacity = 0;
    bool is_first = true;
    do {
        part->limit = (int)QR_MIN(ids_max - set->count, (size_t)IDS_A_READ);
        QR_TRY(qr_db_read(part->hidden->db, read_part, part, err));
        QR_TRY(add_part(set, &capacity, part, err));
        set->seq = is_first ? part->seq : set->seq;
        part->from = part->next;
        part->from_id = part->next_id;
        is_first = false;
    } while (part->holds && part->more && set->count < ids_max);
    if (!part->holds) {
        set->count = 0;
    }
    if (set->count > 1) {
        qsort(set->ids, set->count, sizeof set->ids[0], compare_ids);
    }
    return QR_OK;
}

/* Under the lock of the memory, if there is one. */
static void add_set(struct qr_hidden *hidden, struct qr_hidden_set *set)
{
    if (hidden->count == QR_HIDDEN_SETS_MAX) {
        unref_set(hidden->sets[0]);
        hidden->count--;
        memmove(&hidden->sets[0], &hidden->sets[1], hidden->count * sizeof hidden->sets[0]);
    }
    hidden->sets[hidden->count++] = set;
}

/* Takes over the set's first reference. */
static void know(struct qr_hidden *hidden, struct qr_hidden_set *set)
{
    if (!hidden->memory) {
        add_set(hidden, set);
        return;
    }
    QR_HOLD(&hidden->memory->lock);
    remember(hidden->memory, hidden->base_id, set);
    add_set(hidden, set);
}

static qr_rc learn(struct qr_hidden *hidden, struct part *part, size_t ids_max, qr_err *err)
{
    QR_CLEANUP(free_set_ptr) struct qr_hidden_set *set = qr_alloc_zero(sizeof *set);
    if (!set) {
        return out_of_memory(err);
    }
    QR_TRY(fill_set(set, part, QR_MIN(ids_max, (size_t)QR_HIDDEN_IDS_MAX), err));
    if (set->count > 0) {
        set->refs = 1;
        set->is_below = part->root_path.len > 0;
        set->witness = set->is_below ? part->witness : set->ids[0];
        know(hidden, set);
        set = NULL;
    }
    return QR_OK;
}

static qr_rc learn_part(struct qr_hidden *hidden, qr_str root_path, size_t ids_max, qr_err *err)
{
    struct part *part = qr_alloc_zero(sizeof *part);
    if (!part) {
        return out_of_memory(err);
    }
    part->hidden = hidden;
    part->root_path = root_path;
    if (root_path.len) {
        memcpy(part->witness.bytes, root_path.ptr + root_path.len - QR_UUID_BYTES, QR_UUID_BYTES);
    }
    const qr_rc rc = learn(hidden, part, ids_max, err);
    qr_free(part);
    return rc;
}

qr_rc qr_hidden_learn_below(struct qr_hidden *hidden, qr_str root_path, size_t ids_max, qr_err *err)
{
    return learn_part(hidden, root_path, ids_max, err);
}

qr_rc qr_hidden_learn_deleting(struct qr_hidden *hidden, size_t ids_max, qr_err *err)
{
    return learn_part(hidden, (qr_str){0}, ids_max, err);
}
