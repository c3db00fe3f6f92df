/* Owns the audit log. Each line is one write to a file opened for appending, so lines of several threads or processes do not
 * mix. It is not synced: after a power loss the last lines may be missing. */
#include "api/audit.h"

#include "base/secret.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

enum { IDS_MAX = 20, PATH_BYTES_MAX = 500, TEXT_BYTES_MAX = 200 };

bool qr_audit_is_change(const struct qr_route *route)
{
    return strcmp(route->method, "GET") != 0 && route->needs > QR_RIGHT_VIEWER;
}

/* ---- the line ---- */

/* Text from outside: at most so long, and without what may be a secret of ours, which some take for an id. */
static json_t *shown(qr_str text, size_t bytes_max)
{
    char copy[PATH_BYTES_MAX + 1];
    assert(bytes_max < sizeof copy);
    const qr_str kept = qr_utf8_prefix(text, bytes_max);
    if (kept.len == 0 || !qr_utf8_valid(kept)) {
        return json_null();
    }
    memcpy(copy, kept.ptr, kept.len);
    copy[kept.len] = '\0';
    qr_secret_hide(copy);
    return json_string(copy);
}

static json_t *path_json(const char *target)
{
    qr_str query = qr_str_of(target);
    return shown(qr_str_split(&query, '?'), PATH_BYTES_MAX);
}

static json_t *key_json(const struct qr_caller *caller)
{
    char text[QR_UUID_TEXT_SIZE];
    qr_uuid_format(caller->key_id, text);
    return json_string(qr_uuid_is_zero(caller->key_id) ? "local" : text);
}

/* Ids of what was touched, as the answer names them: {"id"}, {"items": [{"id"}]}, {"accepted": [id]}. */
static json_t *ids_json(const json_t *answer)
{
    static const char *const singles[] = {"id", "base_id", "key_id", "job_id"};
    static const char *const lists[] = {"items", "accepted"};
    json_t *ids = json_object();
    for (size_t i = 0; i < QR_COUNT(singles); i++) {
        json_t *id = json_object_get(answer, singles[i]);
        if (json_is_string(id)) {
            (void)json_object_set(ids, singles[i], id);
        }
    }
    for (size_t i = 0; i < QR_COUNT(lists); i++) {
        const json_t *list = json_object_get(answer, lists[i]);
        json_t *kept = json_is_array(list) ? json_array() : NULL, *one;
        size_t k;
        json_array_foreach(list, k, one)
        {
            json_t *id = json_is_object(one) ? json_object_get(one, "id") : one;
            if (k < IDS_MAX && json_is_string(id)) {
                (void)json_array_append(kept, id);
            }
        }
        if (kept) {
            (void)json_object_set_new(ids, lists[i], kept);
            (void)json_object_set_new(ids, "count", json_integer((json_int_t)json_array_size(list)));
        }
    }
    return ids;
}

static json_t *line_json(const struct qr_request *request, const struct qr_reply *reply, uint64_t lost)
{
    const struct quire_request *from = request->from;
    const json_t *code = json_object_get(json_object_get(reply->body, "error"), "code");
    char now[QR_TIME_TEXT_SIZE];
    qr_time_format(qr_clock_wall_ms(request->quire->clock), now);
    json_t *line = json_pack(
        "{s:s, s:o, s:o, s:s, s:o, s:s, s:o, s:i, s:o, s:o}", "at", now, "request_id",
        shown(qr_str_of(from->request_id), TEXT_BYTES_MAX), "key", key_json(&request->caller), "key_name",
        request->caller.key_name, "address", shown(qr_str_of(from->remote_address), TEXT_BYTES_MAX), "method",
        from->method, "path", path_json(from->target), "status", reply->status, "code",
        code ? json_copy((json_t *)code) : json_null(), "ids", ids_json(reply->content_type ? NULL : reply->body));
    if (line && request->base_id[0]) {
        (void)json_object_set_new(line, "base_id", json_string(request->base_id));
    }
    if (line && lost) {
        (void)json_object_set_new(line, "lost_before", json_integer((json_int_t)lost));
    }
    return line;
}

/* ---- the file ---- */

struct log {
    const struct qr_io *io;
    char path[QR_CONFIG_VALUE_BYTES_MAX + 32];
};

static int open_log(const struct log *log)
{
    return log->io->open(log->io, log->path, O_WRONLY | O_APPEND | O_CREAT, 0600);
}

static bool stat_of(const struct log *log, int fd, struct stat *ret_stat)
{
    return fd >= 0 && log->io->fstat(log->io, fd, ret_stat) == 0;
}

static void move_files(const struct log *log)
{
    char from[sizeof log->path + 8], to[sizeof log->path + 8];
    for (int i = QR_AUDIT_FILES_KEPT; i > 0; i--) {
        snprintf(to, sizeof to, "%s.%d", log->path, i);
        if (i > 1) {
            snprintf(from, sizeof from, "%s.%d", log->path, i - 1);
        } else {
            snprintf(from, sizeof from, "%s", log->path);
        }
        (void)log->io->rename(log->io, from, to); /* one that is not there is no loss */
    }
}

/* Two who find it full at once: the second has waited at the lock, finds another file at the path, and moves nothing. Lines that
 * others are just writing end up in the file that was moved. */
static void rotate(const struct log *log, int full_fd)
{
    struct stat full, now;
    if (log->io->flock(log->io, full_fd, LOCK_EX) != 0) {
        return;
    }
    const int fd = open_log(log);
    if (stat_of(log, fd, &now) && stat_of(log, full_fd, &full) && now.st_ino == full.st_ino &&
        now.st_dev == full.st_dev) {
        move_files(log);
    }
    if (fd >= 0) {
        (void)log->io->close(log->io, fd);
    }
}

static bool append(const struct log *log, qr_str line)
{
    struct stat facts;
    int fd = open_log(log);
    if (stat_of(log, fd, &facts) && facts.st_size >= QR_AUDIT_FILE_BYTES_MAX) {
        rotate(log, fd);
        (void)log->io->close(log->io, fd); /* and with it the lock */
        fd = open_log(log);
    }
    const bool is_written = fd >= 0 && log->io->write(log->io, fd, line.ptr, line.len) == (ssize_t)line.len;
    if (fd >= 0) {
        (void)log->io->close(log->io, fd);
    }
    return is_written;
}

void qr_audit_note(const struct qr_request *request, const struct qr_route *route, const struct qr_reply *reply)
{
    struct quire *quire = request->quire;
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    struct log log = {.io = quire->io};
    if (!qr_audit_is_change(route) || request->caller.right <= QR_RIGHT_OPEN) {
        return; /* strangers are not noted: they could push everybody else's lines out */
    }
    const uint64_t untold = atomic_exchange(&quire->audit_untold, 0);
    QR_JSON *line = line_json(request, reply, untold);
    snprintf(log.path, sizeof log.path, "%s/audit.log", qr_config_text(qr_instance_config(quire), QR_CONFIG_DATA_DIR));
    const bool is_made = line && qr_json_write(line, &text, NULL) == QR_OK;
    qr_buf_add_char(&text, '\n');
    if (!is_made || text.failed != QR_CODE_NONE || !append(&log, qr_buf_str(&text))) {
        atomic_fetch_add(&quire->audit_untold, untold + 1);
        atomic_fetch_add(&quire->audit_lost, 1);
    }
}
