/* The pool of helpers. Whoever converts takes a helper that is idle, the one that was used last first, so that no more of
 * them run than are needed at a time; else has one started; else, when there are as many as may be, waits.
 *
 * Helpers are started by a thread of the pool's own, the keeper: a helper dies with the thread that started it (H4), and
 * threads that convert come and go. The keeper also ends those that have been idle for long. */
#include "convert/reader.h"

#include "base/mem.h"
#include "base/program.h"
#include "base/sync.h"
#include "base/thread.h"
#include "convert/reader_child.h"
#include "convert/reader_wire.h"

#include <unistd.h>

enum {
    FILES_MAX = 1000,           /* then a helper is replaced: what one file may have done to it does not last */
    LOOK_AT_SIZE_EVERY = 100,   /* files */
    LARGE_FILE_BYTES = 1 << 20, /* after these its size is looked at, too */
    SLICE_US = 100 * 1000,      /* how often a wait looks up */
    PATIENCE_US = 200 * 1000,   /* far longer than several small files take, or a start */
    ENV_MAX = 8,
    TIMEOUT_MS_DEFAULT = 60000,
    IDLE_MS_DEFAULT = 30000,
    MEMORY_BYTES_DEFAULT = 256 << 20, /* and for each byte of a large file */
    MEMORY_BYTES_EACH = 10,
    TEXT_BYTES_DEFAULT = 16 << 20, /* the same */
    TEXT_BYTES_EACH = 8,
};

/* A helper that somebody waits for. */
struct order {
    struct order *next;
    struct qr_child child;
    bool is_done;
    qr_rc rc;
    qr_err err;
};

struct qr_reader {
    struct qr_reader_options options;
    char *program; /* NULL = direct */
    char *env[ENV_MAX + 1];
    pthread_t keeper;
    bool has_keeper;
    /* below: under the lock */
    pthread_mutex_t lock;
    pthread_cond_t ordered; /* for the keeper */
    pthread_cond_t started; /* for those who ordered */
    pthread_cond_t freed;   /* for those who wait for one that is idle, or for room */
    int waiting_count;
    struct order *orders;
    bool is_closing;
    int core_count;        /* of processors, at most count_max */
    int count;             /* idle, at work, and being started */
    struct qr_child *idle; /* of count_max; the first has been so for longest */
    int idle_count;
    struct qr_reader_stats stats;
};

/* ---- the keeper ---- */

/* When the keeper looks at the idle ones again. Nobody wakes it when one becomes idle, which is with every file. */
static int64_t next_look_us(const struct qr_reader *reader, int64_t now_us)
{
    return (reader->idle_count ? reader->idle[0].idle_since_us : now_us) + reader->options.idle_ms * 1000;
}

/* What the keeper is to do: NULL = to end *ret_idle; without a process in it, to end itself. */
static struct order *next_order(struct qr_reader *reader, struct qr_child *ret_idle)
{
    QR_LOCKED(&reader->lock);
    *ret_idle = (struct qr_child){.pid_fd = -1, .socket = -1};
    while (!reader->orders && !reader->is_closing) {
        const int64_t now_us = qr_thread_mono_us(), look_us = next_look_us(reader, now_us);
        if (reader->count == 0) {
            pthread_cond_wait(&reader->ordered, &reader->lock);
        } else if (now_us < look_us) {
            (void)qr_cond_wait_until_us(&reader->ordered, &reader->lock, look_us);
        } else {
            *ret_idle = reader->idle[0];
            reader->idle_count--;
            memmove(reader->idle, reader->idle + 1, (size_t)reader->idle_count * sizeof reader->idle[0]);
            return NULL;
        }
    }
    struct order *order = reader->orders;
    if (order) {
        reader->orders = order->next;
    }
    return order;
}

static void leave_room(struct qr_reader *reader)
{
    QR_LOCKED(&reader->lock);
    reader->count--;
    pthread_cond_signal(&reader->freed);
}

static void end_child(struct qr_reader *reader, struct qr_child *child)
{
    qr_child_end(child);
    leave_room(reader);
}

static void fill_order(struct qr_reader *reader, struct order *order)
{
    order->rc = qr_child_start(&order->child, reader->program, reader->env, &order->err);
    QR_LOCKED(&reader->lock);
    order->is_done = true;
    pthread_cond_broadcast(&reader->started);
}

static void *keep(void *arg)
{
    struct qr_reader *reader = arg;
    qr_thread_lower(); /* and all helpers with it */
    for (;;) {
        struct qr_child idle;
        struct order *order = next_order(reader, &idle);
        if (order) {
            fill_order(reader, order);
        } else if (idle.pid) {
            end_child(reader, &idle);
        } else {
            return NULL;
        }
    }
}

static qr_rc start_child(struct qr_reader *reader, struct qr_child *ret_child, qr_err *err)
{
    struct order order = {0};
    pthread_mutex_lock(&reader->lock);
    order.next = reader->orders;
    /* cppcheck-suppress autoVariables ; the keeper is waited for */
    reader->orders = &order;
    pthread_cond_signal(&reader->ordered);
    while (!order.is_done) { /* short: the keeper waits for nothing but the exec */
        pthread_cond_wait(&reader->started, &reader->lock);
    }
    pthread_mutex_unlock(&reader->lock);
    if (order.rc != QR_OK) {
        return qr_fail(err, order.err.code, "%s", order.err.msg);
    }
    *ret_child = order.child;
    return qr_child_greet(ret_child, err);
}

/* ---- taking and giving back ---- */

/* An idle helper, or the right to start one. Where there are as many as processors, most files are done sooner than another
 * helper would be ready: so that is waited for first. */
static qr_rc take(struct qr_reader *reader, const struct qr_reader_limits *limits, bool *ret_is_idle,
                  struct qr_child *ret_child, qr_err *err)
{
    const int64_t patient_until_us = qr_thread_mono_us() + PATIENCE_US;
    QR_LOCKED(&reader->lock);
    while (reader->idle_count == 0 && reader->count >= reader->core_count) {
        const int64_t now_us = qr_thread_mono_us();
        if (now_us >= patient_until_us && reader->count < reader->options.count_max) {
            break;
        }
        reader->waiting_count++;
        (void)qr_cond_wait_until_us(&reader->freed, &reader->lock,
                                    now_us < patient_until_us ? QR_MIN(patient_until_us, now_us + SLICE_US)
                                                              : now_us + SLICE_US);
        reader->waiting_count--;
        if (limits->is_cancelled && limits->is_cancelled(limits->arg)) {
            return qr_fail(err, QR_CODE_CANCELLED, "reading it was cancelled");
        }
    }
    *ret_is_idle = reader->idle_count > 0;
    if (*ret_is_idle) {
        *ret_child = reader->idle[--reader->idle_count];
    } else {
        reader->count++;
    }
    return QR_OK;
}

static void count_started(struct qr_reader *reader, const struct qr_child *child)
{
    QR_LOCKED(&reader->lock);
    reader->stats.started++;
    reader->stats.protections = child->protections;
    reader->stats.landlock_abi = child->landlock_abi;
}

/* One that lives and is silent: what happened to a helper while it was idle is not the next file's fault. */
static qr_rc take_child(struct qr_reader *reader, const struct qr_reader_limits *limits, struct qr_child *ret_child,
                        qr_err *err)
{
    for (;;) {
        bool is_idle = false;
        QR_TRY(take(reader, limits, &is_idle, ret_child, err));
        if (!is_idle) {
            const qr_rc rc = start_child(reader, ret_child, err);
            if (rc != QR_OK) {
                leave_room(reader);
                return rc;
            }
            count_started(reader, ret_child);
            return QR_OK;
        }
        if (qr_child_is_ready(ret_child)) {
            return QR_OK;
        }
        end_child(reader, ret_child);
    }
}

static bool is_due(struct qr_child *child, bool was_large)
{
    if (child->file_count >= FILES_MAX) {
        return true;
    }
    if (!was_large && child->file_count - child->measured_count < LOOK_AT_SIZE_EVERY) {
        return false;
    }
    child->measured_count = child->file_count;
    return qr_child_has_grown(child);
}

/* False: there are more than can be at work at a time, and nobody waits for this one. */
static bool keep_idle(struct qr_reader *reader, struct qr_child *child)
{
    QR_LOCKED(&reader->lock);
    if (reader->count > reader->core_count && reader->idle_count >= reader->waiting_count) {
        return false;
    }
    child->idle_since_us = qr_thread_mono_us();
    reader->idle[reader->idle_count++] = *child;
    pthread_cond_signal(&reader->freed);
    return true;
}

static void give_back(struct qr_reader *reader, struct qr_child *child, bool was_large)
{
    if (is_due(child, was_large)) {
        end_child(reader, child);
        QR_LOCKED(&reader->lock);
        reader->stats.replaced++;
    } else if (!keep_idle(reader, child)) {
        end_child(reader, child);
    }
}

/* ---- converting ---- */

/* In steps, so that files of about one size have one limit. */
static size_t grown(size_t least, size_t each, size_t len)
{
    size_t all;
    len -= len % LARGE_FILE_BYTES;
    return QR_MUL_OVERFLOWS(each, len, &all) || QR_ADD_OVERFLOWS(all, least, &all) ? SIZE_MAX / 4 : all;
}

static struct qr_reader_limits with_defaults(const struct qr_reader *reader, const struct qr_reader_limits *given,
                                             size_t len)
{
    struct qr_reader_limits limits = given ? *given : (struct qr_reader_limits){0};
    limits.timeout_ms = limits.timeout_ms ? limits.timeout_ms : reader->options.timeout_ms;
    limits.memory_bytes_max =
        limits.memory_bytes_max ? limits.memory_bytes_max : grown(MEMORY_BYTES_DEFAULT, MEMORY_BYTES_EACH, len);
    limits.text_bytes_max =
        limits.text_bytes_max ? limits.text_bytes_max : grown(TEXT_BYTES_DEFAULT, TEXT_BYTES_EACH, len);
    return limits;
}

/* The end of a long path says what it is. */
static const char *short_name(const char *name)
{
    const size_t len = name ? strlen(name) : 0;
    return len > QR_READER_NAME_BYTES_MAX ? name + len - QR_READER_NAME_BYTES_MAX : len ? name : "";
}

qr_rc qr_reader_convert(struct qr_reader *reader, qr_str bytes, const char *name, const struct qr_reader_limits *limits,
                        struct qr_arena *arena, struct qr_converted *ret, qr_err *err)
{
    if (!reader->program) {
        return qr_convert(bytes, name, arena, ret, err);
    }
    const struct qr_reader_file file = {
        .bytes = bytes, .name = short_name(name), .limits = with_defaults(reader, limits, bytes.len), .arena = arena};
    struct qr_child child;
    bool is_usable;
    QR_TRY(take_child(reader, &file.limits, &child, err));
    const qr_rc rc = qr_child_ask(&child, &file, ret, &is_usable, err);
    if (is_usable) {
        give_back(reader, &child, bytes.len >= LARGE_FILE_BYTES);
        return rc;
    }
    leave_room(reader);
    QR_LOCKED(&reader->lock);
    reader->stats.faults += rc != QR_CANCELLED;
    return rc;
}

/* ---- several ---- */

/* How many of them, from the first on, can be asked at once; 0 = the first is too large. */
static size_t together_count(const struct qr_reader_file *files, size_t count)
{
    const struct qr_reader_limits *first = &files[0].limits;
    size_t all_bytes = 0;
    for (size_t i = 0; i < QR_MIN(count, (size_t)QR_CHILD_TOGETHER_MAX); i++) {
        const struct qr_reader_limits *limits = &files[i].limits;
        const size_t bytes = files[i].bytes.len + strlen(files[i].name) + sizeof(struct qr_reader_request);
        if (bytes > QR_CHILD_TOGETHER_BYTES_MAX - all_bytes || limits->memory_bytes_max != first->memory_bytes_max ||
            limits->timeout_ms != first->timeout_ms) {
            return i;
        }
        all_bytes += bytes;
    }
    return QR_MIN(count, (size_t)QR_CHILD_TOGETHER_MAX);
}

static void convert_here(struct qr_reader_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct qr_reader_file *file = &files[i];
        file->rc = qr_convert(file->bytes, file->name, file->arena, &file->converted, &file->err);
        file->is_answered = true;
    }
}

/* Between two askings it must be silent, as between two that have it. */
static bool ask_in_turns(struct qr_child *child, struct qr_reader_file *files, size_t count)
{
    for (size_t i = 0; i < count;) {
        const size_t together = together_count(files + i, count - i);
        if (together && ((i > 0 && !qr_child_is_ready(child)) || !qr_child_ask_several(child, files + i, together))) {
            return false;
        }
        i += QR_MAX(together, (size_t)1);
    }
    return true;
}

void qr_reader_convert_several(struct qr_reader *reader, struct qr_reader_file *files, size_t count)
{
    struct qr_child child;
    qr_err ignored;
    if (!reader->program) {
        convert_here(files, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        files[i].is_answered = false;
        files[i].name = short_name(files[i].name);
        files[i].limits = with_defaults(reader, &files[i].limits, files[i].bytes.len);
    }
    if (count == 0 || take_child(reader, &files[0].limits, &child, &ignored) != QR_OK) {
        return;
    }
    if (ask_in_turns(&child, files, count)) {
        give_back(reader, &child, false);
    } else {
        end_child(reader, &child); /* no fault: it is not known whose */
    }
}

void qr_reader_stats(struct qr_reader *reader, struct qr_reader_stats *ret_stats)
{
    QR_LOCKED(&reader->lock);
    *ret_stats = reader->stats;
    ret_stats->running = reader->count;
}

/* ---- opening and closing ---- */

/* What of the environment a helper gets: where libraries are and how sanitizers behave; nothing of the user's. Copied here,
 * since other threads may change the environment later. A build with failpoints hands on the helper's own plan. */
static bool copy_env(struct qr_reader *reader)
{
    static const char *const names[] = {
        "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=", "QUIRE_READER_FAILPOINTS="};
    size_t count = 0;
    for (char *const *at = environ; *at; at++) {
        for (size_t i = 0; i < QR_COUNT(names) && count < ENV_MAX; i++) {
            if (strncmp(*at, names[i], strlen(names[i])) == 0 && !(reader->env[count++] = qr_copy_string(*at))) {
                return false;
            }
        }
    }
    return true;
}

static qr_rc open_pool(struct qr_reader *reader, qr_err *err)
{
    QR_TRY(qr_program_find(reader->options.program, &reader->program, err));
    reader->idle = qr_alloc_array((size_t)reader->options.count_max, sizeof reader->idle[0]);
    if (!reader->idle || !copy_env(reader)) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the readers of files");
    }
    QR_TRY(qr_thread_start(&reader->keeper, "reader-keeper", keep, reader, err));
    reader->has_keeper = true;
    return QR_OK;
}

qr_rc qr_reader_open(struct qr_reader **ret_reader, const struct qr_reader_options *options, qr_err *err)
{
    struct qr_reader *reader = qr_alloc_zero(sizeof *reader);
    if (!reader) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the readers of files");
    }
    reader->options = *options;
    reader->options.count_max = QR_MAX(options->count_max, 1);
    reader->core_count = (int)QR_MIN(QR_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L), (long)reader->options.count_max);
    reader->options.timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS_DEFAULT;
    reader->options.idle_ms = options->idle_ms ? options->idle_ms : IDLE_MS_DEFAULT;
    pthread_mutex_init(&reader->lock, NULL);
    qr_cond_init(&reader->ordered);
    qr_cond_init(&reader->started);
    qr_cond_init(&reader->freed);
    const qr_rc rc = open_pool(reader, err);
    if (rc != QR_OK) {
        qr_reader_close(reader);
        return rc;
    }
    *ret_reader = reader;
    return QR_OK;
}

struct qr_reader *qr_reader_direct(void)
{
    static struct qr_reader direct = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* nothing in it ever changes */
    return &direct;
}

static void stop_keeper(struct qr_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->is_closing = true;
    pthread_cond_signal(&reader->ordered);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->keeper, NULL);
}

void qr_reader_close(struct qr_reader *reader)
{
    if (!reader) {
        return;
    }
    if (reader->has_keeper) {
        stop_keeper(reader); /* first: it ends some, too */
    }
    for (int i = 0; i < reader->idle_count; i++) {
        qr_child_end(&reader->idle[i]);
    }
    pthread_cond_destroy(&reader->freed);
    pthread_cond_destroy(&reader->started);
    pthread_cond_destroy(&reader->ordered);
    pthread_mutex_destroy(&reader->lock);
    for (size_t i = 0; i < ENV_MAX; i++) {
        qr_free(reader->env[i]);
    }
    qr_free(reader->idle);
    qr_free(reader->program);
    qr_free(reader);
}
