/* Listing one folder. Stateless; called by the expansion handler, on folders that anybody may change meanwhile.
 *
 * The way from the root down is opened name by name without following links, so what is listed is below the root whatever
 * was put in place of a folder. (The table of base/io.h has no calls for folders: these are the system's.) The root itself
 * may be a link: whoever added it meant what it points to.
 *
 * What is left out: always the folders of version control; what the last matching rule of the ignore files says; the
 * built-in list, unless a .quireignore takes something out of it; and last the root's own exclude and include patterns. */
#include "source/walk.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "source/ignore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ENTRIES_MAX = 1000000,
    IGNORE_FILES_MAX = 256, /* two a level */
    ENTRIES_ROOM_MIN = 64,
};

/* Not even a rule such as "!*" brings these back. */
static const char *const never[] = {".git", ".hg", ".svn", ".bzr", "CVS"};

/* Rebuilt by tools, or litter. Not here: names that people also give to folders of their own, such as build, dist and
 * target; projects have those in their .gitignore. */
static const char *const built_in[] = {
    "node_modules/",  "bower_components/", "__pycache__/", ".venv/", "venv/",       ".tox/",      ".mypy_cache/",
    ".pytest_cache/", ".ruff_cache/",      ".gradle/",     ".idea/", ".terraform/", ".gitignore", ".quire*",
    ".DS_Store",      "Thumbs.db",         "desktop.ini",  "*~",     "*.swp",       "~$*",        ".Trash-*/",
    "$RECYCLE.BIN/",  "lost+found/",
};

struct walk {
    const struct qr_walk_options *options;
    struct qr_arena *arena;
    struct qr_arena scratch;
    struct qr_ignore rules, built_in, exclude, include;
    int ignore_files;
    struct qr_buf path; /* of the entry that is looked at, relative to the root */
    size_t folder_len;  /* of it, with the slash */
    struct qr_entry *entries;
    size_t count, capacity;
    bool is_empty;
};

static void close_ptr(const int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

static void close_dir_ptr(DIR **dir)
{
    if (*dir) {
        closedir(*dir);
    }
}

static qr_rc fail_folder(int errnum, qr_err *err)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
        return qr_fail(err, QR_CODE_SOURCE_MISSING, "the folder is not there");
    case ELOOP:
        return qr_fail(err, QR_CODE_SOURCE_MISSING, "the folder was replaced by a symbolic link");
    case EACCES:
    case EPERM:
        return qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "the folder must not be read by this user");
    case ENAMETOOLONG:
        return qr_fail(err, QR_CODE_SOURCE_UNREADABLE, "the path is too long");
    default:
        return qr_fail_errno(err, errnum, "cannot read the folder");
    }
}

/* ---- ignore files ---- */

/* Reads up to len_max + 1 bytes. What cannot be read is taken for empty: the folder is listed without its rules. */
static qr_rc read_ignore_file(int folder_fd, const char *name, struct qr_buf *out, qr_err *err)
{
    QR_CLEANUP(close_ptr) const int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        return QR_OK;
    }
    const size_t room = QR_IGNORE_FILE_BYTES_MAX + 1;
    while (out->len < room) {
        const size_t want = QR_MIN(room - out->len, (size_t)64 * 1024);
        char *into = qr_buf_reserve(out, want);
        if (!into) {
            return qr_buf_check(out, err);
        }
        const ssize_t got = TEMP_FAILURE_RETRY(read(fd, into, want));
        if (got <= 0) {
            return QR_OK;
        }
        qr_buf_grown(out, (size_t)got);
    }
    /* to leave it out would index what somebody wanted to keep out */
    return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "a %s is larger than %d bytes", name, QR_IGNORE_FILE_BYTES_MAX);
}

/* The rules of one folder on the way; `folder` is its path from the root. */
static qr_rc add_rules_of(struct walk *walk, int folder_fd, qr_str folder, qr_err *err)
{
    static const struct {
        const char *name;
        enum qr_ignore_origin origin;
    } files[] = {{".gitignore", QR_IGNORE_GIT}, {".quireignore", QR_IGNORE_QUIRE}};
    for (size_t i = 0; i < QR_COUNT(files); i++) {
        QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
        QR_TRY(read_ignore_file(folder_fd, files[i].name, &text, err));
        if (text.len == 0) {
            continue;
        }
        if (++walk->ignore_files > IGNORE_FILES_MAX) {
            return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "there are more than %d ignore files above the folder",
                           IGNORE_FILES_MAX);
        }
        QR_TRY(qr_ignore_add_file(&walk->rules, qr_buf_str(&text), folder, files[i].origin, err));
    }
    return QR_OK;
}

static qr_rc add_patterns(struct qr_ignore *ignore, const char *const *patterns, size_t count, qr_err *err)
{
    for (size_t i = 0; i < count; i++) {
        QR_TRY(qr_ignore_add_pattern(ignore, qr_str_of(patterns[i]), err));
    }
    return QR_OK;
}

/* ---- the way down ---- */

/* The folder's path from the root, without slashes at either end. */
static qr_rc relative_path(const struct qr_walk_options *options, qr_str *ret_path, qr_err *err)
{
    qr_str root = qr_str_of(options->root), folder = qr_str_of(options->folder);
    while (root.len > 1 && root.ptr[root.len - 1] == '/') {
        root.len--;
    }
    const bool is_slash = root.len == 1 && root.ptr[0] == '/';
    if (!qr_str_starts_with(folder, root) || (folder.len > root.len && folder.ptr[root.len] != '/' && !is_slash)) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the folder is not below its root");
    }
    folder = (qr_str){folder.ptr + root.len, folder.len - root.len};
    while (folder.len && folder.ptr[0] == '/') {
        folder = (qr_str){folder.ptr + 1, folder.len - 1};
    }
    while (folder.len && folder.ptr[folder.len - 1] == '/') {
        folder.len--;
    }
    *ret_path = folder;
    return QR_OK;
}

static qr_rc open_below(int *fd, const char *name, qr_err *err)
{
    if (strcmp(name, "..") == 0 || strcmp(name, ".") == 0) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "the folder's path has the part \"%s\"", name);
    }
    const int next = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) {
        return fail_folder(errno, err);
    }
    close(*fd);
    *fd = next;
    return QR_OK;
}

/* Opens the folder, taking in the rules on the way. */
static qr_rc open_folder(struct walk *walk, qr_str relative, int *ret_fd, qr_err *err)
{
    const char *root = walk->options->root;
    QR_CLEANUP(close_ptr)
    int fd = walk->options->no_links ? qr_fs_open_without_links(root, O_RDONLY | O_DIRECTORY)
                                     : open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return fail_folder(errno, err);
    }
    QR_TRY(add_rules_of(walk, fd, (qr_str){0}, err));
    for (qr_str rest = relative; rest.len;) {
        const char *name = qr_arena_copy(&walk->scratch, qr_str_split(&rest, '/'));
        if (!name) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
        }
        if (name[0] == '\0') {
            continue;
        }
        QR_TRY(open_below(&fd, name, err));
        const size_t taken = relative.len - rest.len - (rest.len > 0);
        QR_TRY(add_rules_of(walk, fd, (qr_str){relative.ptr, taken}, err));
    }
    *ret_fd = fd;
    fd = -1;
    return QR_OK;
}

/* ---- what is left out ---- */

static bool is_ignored(const struct walk *walk, qr_str path, const char *name, bool is_folder)
{
    for (size_t i = 0; i < QR_COUNT(never); i++) {
        if (strcmp(name, never[i]) == 0) {
            return true;
        }
    }
    const struct qr_ignore_rule *rule = qr_ignore_find(&walk->rules, path, is_folder);
    if (rule && !rule->is_negated) {
        return true;
    }
    const bool is_wanted = rule && rule->origin == QR_IGNORE_QUIRE;
    if (!is_wanted && qr_ignore_find(&walk->built_in, path, is_folder)) {
        return true;
    }
    rule = qr_ignore_find(&walk->exclude, path, is_folder);
    return rule && !rule->is_negated;
}

/* The nearest decision counts: on the file, or else on the folders it is in. */
static bool is_included(const struct walk *walk, qr_str path)
{
    if (walk->options->include_count == 0) {
        return true;
    }
    bool is_folder = false;
    for (;;) {
        const struct qr_ignore_rule *rule = qr_ignore_find(&walk->include, path, is_folder);
        if (rule) {
            return !rule->is_negated;
        }
        const char *slash = memrchr(path.ptr, '/', path.len);
        if (!slash) {
            return false;
        }
        path.len = (size_t)(slash - path.ptr);
        is_folder = true;
    }
}

/* ---- the entries ---- */

static qr_rc add_entry(struct walk *walk, const struct qr_entry *entry, qr_err *err)
{
    const int64_t limit = walk->options->entries_max ? walk->options->entries_max : ENTRIES_MAX;
    if ((int64_t)walk->count >= limit) {
        return qr_fail(err, QR_CODE_LIMIT_EXCEEDED, "the folder has more than %lld entries", (long long)limit);
    }
    if (walk->count == walk->capacity) {
        const size_t capacity = QR_MAX(walk->capacity * 2, (size_t)ENTRIES_ROOM_MIN);
        struct qr_entry *entries = qr_resize(walk->entries, capacity * sizeof *entries);
        if (!entries) {
            return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
        }
        walk->entries = entries;
        walk->capacity = capacity;
    }
    struct qr_entry *kept = &walk->entries[walk->count];
    *kept = *entry;
    kept->name.ptr = qr_arena_copy(walk->arena, entry->name);
    if (!kept->name.ptr) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    walk->count++;
    return QR_OK;
}

/* *ret_kind: DT_DIR, DT_REG, or anything else for what is no entry. */
static void look(int folder_fd, const struct dirent *found, struct qr_entry *ret_entry, unsigned char *ret_kind)
{
    struct stat st;
    *ret_entry = (struct qr_entry){.name = qr_str_of(found->d_name)};
    *ret_kind = found->d_type;
    if (fstatat(folder_fd, found->d_name, &st, AT_SYMLINK_NOFOLLOW)) {
        ret_entry->error = errno;
    } else {
        *ret_kind = S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
        ret_entry->size_bytes = *ret_kind == DT_REG ? st.st_size : 0;
        ret_entry->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
    ret_entry->is_folder = *ret_kind == DT_DIR;
}

/* Most that is ignored is so by name and kind, without looking at it. */
static bool may_be_wanted(const struct walk *walk, const struct dirent *found)
{
    if (found->d_type == DT_UNKNOWN) {
        return true;
    }
    if (found->d_type != DT_DIR && found->d_type != DT_REG) {
        return false;
    }
    return !is_ignored(walk, qr_buf_str(&walk->path), found->d_name, found->d_type == DT_DIR);
}

static qr_rc take_entry(struct walk *walk, int folder_fd, const struct dirent *found, qr_err *err)
{
    walk->path.len = walk->folder_len;
    qr_buf_add_text(&walk->path, found->d_name);
    QR_TRY(qr_buf_check(&walk->path, err));
    if (!may_be_wanted(walk, found)) {
        return QR_OK;
    }
    struct qr_entry entry;
    unsigned char kind;
    look(folder_fd, found, &entry, &kind);
    if (entry.error == ENOENT) {
        return QR_OK; /* gone since */
    }
    const bool is_strange = kind != DT_DIR && kind != DT_REG && !entry.error;
    const bool was_replaced = kind != found->d_type;
    if (is_strange || (was_replaced && is_ignored(walk, qr_buf_str(&walk->path), found->d_name, entry.is_folder)) ||
        (!entry.is_folder && !is_included(walk, qr_buf_str(&walk->path)))) {
        return QR_OK;
    }
    return add_entry(walk, &entry, err);
}

static qr_rc read_folder(struct walk *walk, int fd, qr_err *err)
{
    QR_CLEANUP(close_dir_ptr) DIR *dir = fdopendir(fd);
    if (!dir) {
        const int failed = errno;
        close(fd);
        return fail_folder(failed, err);
    }
    for (;;) {
        errno = 0;
        const struct dirent *found = readdir(dir);
        if (!found) {
            return errno ? fail_folder(errno, err) : QR_OK;
        }
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0) {
            continue;
        }
        walk->is_empty = false;
        QR_TRY(take_entry(walk, fd, found, err));
    }
}

static int compare_entries(const void *a, const void *b)
{
    const struct qr_entry *left = a, *right = b;
    return qr_str_compare(left->name, right->name);
}

static qr_rc walk_init(struct walk *walk, qr_err *err)
{
    qr_arena_init(&walk->scratch, 0);
    struct qr_ignore *const all[] = {&walk->rules, &walk->built_in, &walk->exclude, &walk->include};
    for (size_t i = 0; i < QR_COUNT(all); i++) {
        qr_ignore_init(all[i], &walk->scratch);
    }
    QR_TRY(add_patterns(&walk->built_in, built_in, QR_COUNT(built_in), err));
    QR_TRY(add_patterns(&walk->exclude, walk->options->exclude, walk->options->exclude_count, err));
    return add_patterns(&walk->include, walk->options->include, walk->options->include_count, err);
}

static void walk_done(struct walk *walk)
{
    qr_arena_done(&walk->scratch);
    qr_buf_done(&walk->path);
    qr_free(walk->entries);
}

static qr_rc list(struct walk *walk, qr_err *err)
{
    qr_str relative;
    int fd = -1;
    QR_TRY(walk_init(walk, err));
    QR_TRY(relative_path(walk->options, &relative, err));
    QR_TRY(open_folder(walk, relative, &fd, err));
    qr_buf_add(&walk->path, relative);
    qr_buf_add_text(&walk->path, relative.len ? "/" : "");
    walk->folder_len = walk->path.len;
    QR_TRY(read_folder(walk, fd, err));
    if (walk->count) {
        qsort(walk->entries, walk->count, sizeof *walk->entries, compare_entries);
    }
    return QR_OK;
}

qr_rc qr_walk(const struct qr_walk_options *options, struct qr_arena *arena, struct qr_entry **ret_entries,
              size_t *ret_count, bool *ret_is_empty, qr_err *err)
{
    QR_CLEANUP(walk_done) struct walk walk = {.options = options, .arena = arena, .is_empty = true};
    QR_TRY(list(&walk, err));
    struct qr_entry *entries = qr_arena_array(arena, walk.count, sizeof *entries);
    if (!entries) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory");
    }
    if (walk.count) {
        memcpy(entries, walk.entries, walk.count * sizeof *entries);
    }
    *ret_entries = entries;
    *ret_count = walk.count;
    *ret_is_empty = walk.is_empty;
    return QR_OK;
}
