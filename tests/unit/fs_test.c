#include "base/fs.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static qr_err err;

static void put(const char *path, const char *content)
{
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, qr_str_of(content), 0644, &err));
}

static void check_content(const char *expected, const char *path)
{
    struct qr_buf content;
    qr_buf_init(&content, 0);
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), path, 1 << 20, &content, &err));
    QR_CHECK_STR(expected, qr_buf_str(&content));
    qr_buf_done(&content);
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    QR_CHECK(dir);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

/* ---- an I/O table that writes down what is called ---- */

static char trace[2048];

static void note(const char *what, const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const bool is_temp = qr_str_starts_with(qr_str_of(name), QR_STR(QR_FS_TEMP_PREFIX));
    const size_t used = strlen(trace);
    snprintf(trace + used, sizeof trace - used, "%s%s;", what, is_temp ? "TEMP" : name);
}

static int traced_fsync(const struct qr_io *io QR_UNUSED, int fd)
{
    char link[64], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t len = readlink(link, path, sizeof path - 1);
    QR_CHECK(len > 0);
    path[len] = '\0';
    note("sync ", path);
    return fsync(fd);
}

static int traced_rename(const struct qr_io *io QR_UNUSED, const char *from, const char *to)
{
    note("rename to ", to);
    return rename(from, to);
}

static int traced_mkdir(const struct qr_io *io QR_UNUSED, const char *path, mode_t mode)
{
    const int result = mkdir(path, mode);
    if (result == 0) {
        note("mkdir ", path);
    }
    return result;
}

static int traced_unlink(const struct qr_io *io QR_UNUSED, const char *path)
{
    note("unlink ", path);
    return unlink(path);
}

static struct qr_io traced_io(void)
{
    struct qr_io io = *qr_io_system();
    io.fsync = traced_fsync;
    io.rename = traced_rename;
    io.mkdir = traced_mkdir;
    io.unlink = traced_unlink;
    return io;
}

/* ---- replace, read, remove ---- */

QR_TEST(replace_makes_and_replaces_and_leaves_nothing_else)
{
    const char *path = qr_test_path(t, "file");
    put(path, "old");
    check_content("old", path);
    put(path, "new, and longer");
    check_content("new, and longer", path);
    put(path, "");
    check_content("", path);
    QR_CHECK_INT(1, count_entries(t->dir));
}

QR_TEST(replace_gives_the_new_file_its_mode)
{
    umask(022);
    const char *path = qr_test_path(t, "file");
    put(path, "open");
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), path, QR_STR("secret"), 0600, &err));
    struct stat st;
    QR_CHECK_INT(0, stat(path, &st));
    QR_CHECK_INT(0600, st.st_mode & 07777);
}

QR_TEST(replace_syncs_the_bytes_before_the_rename_and_the_folder_after_it) /* F1, F2 */
{
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "folder"), 0777));
    const struct qr_io io = traced_io();
    QR_CHECK_RC(QR_OK, qr_fs_replace(&io, qr_test_path(t, "folder/file"), QR_STR("x"), 0644, &err));
    QR_CHECK_TEXT("sync TEMP;rename to file;sync folder;", trace);
}

QR_TEST(replace_takes_the_place_of_a_link_and_leaves_its_target)
{
    const char *target = qr_test_path(t, "target"), *link = qr_test_path(t, "link");
    put(target, "target");
    QR_CHECK_INT(0, symlink(target, link));
    put(link, "new");
    check_content("target", target);
    check_content("new", link);
}

QR_TEST(replace_works_in_the_current_folder)
{
    QR_CHECK_INT(0, chdir(t->dir));
    put("plain-name", "x");
    check_content("x", "plain-name");
}

QR_TEST(replace_refuses_what_it_cannot_do_and_leaves_nothing)
{
    QR_CHECK_CODE(QR_CODE_NOT_FOUND,
                  qr_fs_replace(qr_io_system(), qr_test_path(t, "none/file"), QR_STR("x"), 0644, &err));
    QR_CHECK_HAS("none", err.msg);
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "folder"), 0777));
    QR_CHECK_RC(QR_INVALID, qr_fs_replace(qr_io_system(), qr_test_path(t, "folder"), QR_STR("x"), 0644, &err));
    QR_CHECK_INT(1, count_entries(t->dir));
}

QR_TEST(replace_in_a_folder_without_permission_is_forbidden)
{
    put(qr_test_path(t, "file"), "old");
    chmod(t->dir, 0555);
    qr_test_become_unprivileged();
    QR_CHECK_CODE(QR_CODE_FORBIDDEN, qr_fs_replace(qr_io_system(), qr_test_path(t, "file"), QR_STR("new"), 0644, &err));
    check_content("old", qr_test_path(t, "file"));
    chmod(t->dir, 0777); /* so that its owner can remove it */
}

QR_TEST(read_appends_up_to_the_limit_and_refuses_more)
{
    const char *path = qr_test_path(t, "file");
    put(path, "12345");
    struct qr_buf out;
    qr_buf_init(&out, 0);
    qr_buf_add_text(&out, "before ");
    QR_CHECK_RC(QR_OK, qr_fs_read(qr_io_system(), path, 5, &out, &err));
    QR_CHECK_STR("before 12345", qr_buf_str(&out));
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE, qr_fs_read(qr_io_system(), path, 4, &out, &err));
    QR_CHECK_CODE(QR_CODE_PAYLOAD_TOO_LARGE, qr_fs_read(qr_io_system(), "/dev/zero", 100000, &out, &err));
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_fs_read(qr_io_system(), qr_test_path(t, "none"), 5, &out, &err));
    QR_CHECK_RC(QR_INVALID, qr_fs_read(qr_io_system(), t->dir, 5, &out, &err));
    qr_buf_done(&out);
}

QR_TEST(remove_is_durable_and_satisfied_when_there_is_nothing)
{
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "folder"), 0777));
    const char *path = qr_test_path(t, "folder/file");
    put(path, "x");
    const struct qr_io io = traced_io();
    QR_CHECK_RC(QR_OK, qr_fs_remove(&io, path, &err));
    QR_CHECK_TEXT("unlink file;sync folder;", trace);
    QR_CHECK_INT(-1, access(path, F_OK));
    trace[0] = '\0';
    QR_CHECK_RC(QR_OK, qr_fs_remove(&io, path, &err)); /* F2: the first may have failed after its unlink */
    QR_CHECK_TEXT("unlink file;sync folder;", trace);
    QR_CHECK_RC(QR_OK, qr_fs_remove(&io, qr_test_path(t, "none/file"), &err));
    QR_CHECK_RC(QR_INVALID, qr_fs_remove(&io, qr_test_path(t, "folder"), &err));
    QR_CHECK_INT(0, access(qr_test_path(t, "folder"), F_OK));
}

/* ---- folders ---- */

QR_TEST(make_dirs_makes_what_is_missing_and_syncs_each_parent_it_changed)
{
    const struct qr_io io = traced_io();
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "a"), 0777));
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(&io, qr_test_path(t, "a//b/c/"), 0777, &err));
    QR_CHECK_TEXT("mkdir b;sync a;mkdir c;sync b;", trace);
    trace[0] = '\0';
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(&io, qr_test_path(t, "a/b/c"), 0777, &err));
    QR_CHECK_TEXT("sync b;", trace); /* F2: who made it may have died before the sync */
    struct stat st;
    QR_CHECK_INT(0, stat(qr_test_path(t, "a/b/c"), &st));
    QR_CHECK(S_ISDIR(st.st_mode));
}

QR_TEST(make_dirs_takes_relative_paths_the_root_and_links_to_folders)
{
    const struct qr_io *io = qr_io_system();
    QR_CHECK_INT(0, chdir(t->dir));
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(io, "x/../x/./y", 0777, &err));
    QR_CHECK_INT(0, access("x/y", F_OK));
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(io, "/", 0777, &err));
    QR_CHECK_INT(0, symlink("x", "link"));
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(io, "link/z", 0777, &err));
    QR_CHECK_INT(0, access("x/z", F_OK));
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE, qr_fs_make_dirs(io, "", 0777, &err));
}

QR_TEST(make_dirs_refuses_anything_else_in_the_place_and_names_it)
{
    put(qr_test_path(t, "file"), "x");
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "file"), 0777, &err));
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "file/a/b"), 0777, &err));
    QR_CHECK_HAS("/file exists and is not a folder", err.msg);
    QR_CHECK_INT(0, symlink("nowhere", qr_test_path(t, "link")));
    QR_CHECK_CODE(QR_CODE_ALREADY_EXISTS, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "link"), 0777, &err));
}

QR_TEST(make_dirs_passes_folders_it_may_not_read_and_stops_where_it_may_not_write)
{
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "passage"), 0777));
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "passage/own"), 0777));
    QR_CHECK_INT(0, chmod(qr_test_path(t, "passage/own"), 0777));
    QR_CHECK_INT(0, chmod(qr_test_path(t, "passage"), 0111));
    qr_test_become_unprivileged();
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "passage/own/new"), 0777, &err));
    QR_CHECK_CODE(QR_CODE_FORBIDDEN, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "passage/new"), 0777, &err));
    QR_CHECK_HAS("passage/new", err.msg);
    chmod(qr_test_path(t, "passage"), 0777); /* so that its owner can remove it */
}

/* ---- the lock ---- */

static void check_locked_by(pid_t pid, const char *path)
{
    struct qr_file_lock lock;
    char expected[64];
    snprintf(expected, sizeof expected, "in use by process %d (", (int)pid);
    QR_CHECK_CODE(QR_CODE_DATA_LOCKED,
                  qr_file_lock_take(&lock, qr_io_system(), qr_clock_system(), path, "quire ls", &err));
    QR_CHECK_HAS(expected, err.msg);
    QR_CHECK_INT(-1, lock.fd);
}

static void take(struct qr_file_lock *lock, const char *path)
{
    QR_CHECK_RC(QR_OK, qr_file_lock_take(lock, qr_io_system(), qr_test_clock(0), path, "quire serve", &err));
}

QR_TEST(a_held_lock_names_its_holder)
{
    const char *path = qr_test_path(t, "quire.lock");
    struct qr_file_lock lock;
    take(&lock, path);
    check_locked_by(getpid(), path); /* the same process too: two instances in one are no better than in two */
    QR_CHECK_HAS("(quire serve, since 1970-01-01T00:00:00.000Z)", err.msg);
    QR_CHECK_HAS(t->dir, err.msg);
    qr_file_lock_release(&lock);
    qr_file_lock_release(&lock); /* does nothing */
    take(&lock, path);
    qr_file_lock_release(&lock);
}

QR_TEST(a_lock_lasts_until_its_process_ends_however_it_ends)
{
    const char *path = qr_test_path(t, "quire.lock");
    int held[2];
    QR_CHECK_INT(0, pipe(held));
    const pid_t child = fork();
    if (child == 0) {
        struct qr_file_lock lock;
        take(&lock, path);
        QR_CHECK_INT(1, write(held[1], "x", 1));
        pause();
    }
    char byte;
    QR_CHECK_INT(1, read(held[0], &byte, 1));
    check_locked_by(child, path);
    kill(child, SIGKILL);
    QR_CHECK_INT(child, waitpid(child, NULL, 0));
    struct qr_file_lock lock;
    take(&lock, path);
    check_locked_by(getpid(), path);
    qr_file_lock_release(&lock);
}

QR_TEST(the_lock_file_outlives_the_lock_and_holds_one_line)
{
    const char *path = qr_test_path(t, "quire.lock");
    put(path, "pid 1, a much longer line than the one that will be written over it now, since ever and a day\n");
    struct qr_file_lock lock;
    take(&lock, path);
    char expected[128];
    snprintf(expected, sizeof expected, "pid %d, quire serve, since 1970-01-01T00:00:00.000Z\n", (int)getpid());
    check_content(expected, path);
    qr_file_lock_release(&lock);
    QR_CHECK_INT(0, access(path, F_OK));
}

QR_TEST(a_started_program_does_not_inherit_the_lock)
{
    struct qr_file_lock lock;
    take(&lock, qr_test_path(t, "quire.lock"));
    QR_CHECK(fcntl(lock.fd, F_GETFD) & FD_CLOEXEC);
    qr_file_lock_release(&lock);
}

QR_TEST(release_unlocks_even_while_a_fork_shares_the_file)
{
    const char *path = qr_test_path(t, "quire.lock");
    struct qr_file_lock lock;
    take(&lock, path);
    const pid_t child = fork(); /* as between fork and exec */
    if (child == 0) {
        pause();
    }
    qr_file_lock_release(&lock);
    take(&lock, path);
    qr_file_lock_release(&lock);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

QR_TEST(a_holder_that_has_not_written_its_line_is_another_process)
{
    static const char *const contents[] = {"", "garbage", "pid , x", "pid -4, x\n", "pid 99999999999999999999, x\n"};
    for (size_t i = 0; i < QR_COUNT(contents); i++) {
        const char *path = qr_test_path(t, "quire.lock");
        put(path, contents[i]);
        const int fd = open(path, O_RDWR | O_CLOEXEC);
        QR_CHECK_INT(0, flock(fd, LOCK_EX));
        struct qr_file_lock lock;
        QR_CHECK_CODE(QR_CODE_DATA_LOCKED,
                      qr_file_lock_take(&lock, qr_io_system(), qr_clock_system(), path, "quire ls", &err));
        QR_CHECK_HAS("in use by another process", err.msg);
        close(fd);
    }
}

QR_TEST(a_lock_in_an_unwritable_folder_is_data_readonly_and_says_what_to_do)
{
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "data"), 0777));
    QR_CHECK_INT(0, chmod(qr_test_path(t, "data"), 0555));
    qr_test_become_unprivileged();
    struct qr_file_lock lock;
    QR_CHECK_CODE(QR_CODE_DATA_READONLY, qr_file_lock_take(&lock, qr_io_system(), qr_clock_system(),
                                                           qr_test_path(t, "data/quire.lock"), "quire ls", &err));
    QR_CHECK_HAS("/data is not writable for user ", err.msg);
    QR_CHECK_HAS("--data", err.msg);
}

QR_TEST(a_lock_file_of_another_user_is_data_readonly)
{
    struct qr_file_lock lock;
    take(&lock, qr_test_path(t, "quire.lock"));
    qr_file_lock_release(&lock);
    if (geteuid() == 0) {
        qr_test_become_unprivileged();
    } else {
        QR_CHECK_INT(0, chmod(qr_test_path(t, "quire.lock"), 0));
    }
    QR_CHECK_CODE(QR_CODE_DATA_READONLY, qr_file_lock_take(&lock, qr_io_system(), qr_clock_system(),
                                                           qr_test_path(t, "quire.lock"), "quire ls", &err));
}

QR_TEST(a_lock_in_a_missing_folder_is_not_found)
{
    struct qr_file_lock lock;
    QR_CHECK_CODE(QR_CODE_NOT_FOUND, qr_file_lock_take(&lock, qr_io_system(), qr_clock_system(),
                                                       qr_test_path(t, "none/quire.lock"), "quire ls", &err));
}

QR_TEST(the_parent_of_a_path)
{
    static const struct {
        const char *path, *parent;
    } cases[] = {{"a", "."},   {"a/b", "a"},      {"/a", "/"},     {"/", "/"},    {"//", "/"},
                 {"", "."},    {"a/", "."},       {"/a/b/", "/a"}, {"a//b", "a"}, {"//a", "/"},
                 {"./a", "."}, {"/a//b//", "/a"}, {"../a", ".."}};
    for (size_t i = 0; i < QR_COUNT(cases); i++) {
        QR_CHECK_STR(cases[i].parent, qr_path_parent(qr_str_of(cases[i].path)));
    }
}

QR_TEST(a_lock_file_that_is_a_link_is_refused_and_its_target_untouched)
{
    const struct qr_io *io = qr_io_system();
    const char *precious = qr_test_path(t, "precious");
    QR_CHECK_RC(QR_OK, qr_fs_replace(io, precious, QR_STR("mine"), 0600, &err));
    QR_CHECK_INT(0, symlink(precious, qr_test_path(t, "quire.lock")));
    struct qr_file_lock lock;
    QR_CHECK(qr_file_lock_take(&lock, io, qr_clock_system(), qr_test_path(t, "quire.lock"), "test", &err) != QR_OK);
    struct qr_buf content;
    qr_buf_init(&content, 0);
    QR_CHECK_RC(QR_OK, qr_fs_read(io, precious, 100, &content, &err));
    QR_CHECK_STR("mine", qr_buf_str(&content));
    qr_buf_done(&content);
}

QR_TEST(a_sweep_removes_what_killed_processes_left_and_nothing_else)
{
    const struct qr_io *io = qr_io_system();
    char folder[256];
    snprintf(folder, sizeof folder, "%s", qr_test_path(t, "od[d]*?"));
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(io, folder, 0700, &err));
    char left[512], kept[512];
    snprintf(left, sizeof left, "%s/" QR_FS_TEMP_PREFIX "0123456789abcdef", folder);
    snprintf(kept, sizeof kept, "%s/kept", folder);
    QR_CHECK_RC(QR_OK, qr_fs_replace(io, left, QR_STR("half"), 0600, &err));
    QR_CHECK_RC(QR_OK, qr_fs_replace(io, kept, QR_STR("whole"), 0600, &err));
    qr_fs_sweep(io, folder);
    QR_CHECK(access(left, F_OK) != 0);
    QR_CHECK_INT(0, access(kept, F_OK));
    qr_fs_sweep(io, qr_test_path(t, "nowhere"));
}
