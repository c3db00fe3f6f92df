/* Reading files and listing folders that are as bad as they come. */
#include "base/fs.h"
#include "source/file.h"
#include "source/walk.h"
#include "support/fault.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static qr_err err;
static struct qr_arena arena;

static const char *put(struct qr_test *t, const char *name, const char *content)
{
    const char *path = qr_test_path(t, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    QR_CHECK(fd >= 0);
    QR_CHECK_INT(strlen(content), write(fd, content, strlen(content)));
    close(fd);
    return path;
}

static const char *make_folder(struct qr_test *t, const char *name)
{
    const char *path = qr_test_path(t, name);
    QR_CHECK_INT(0, mkdir(path, 0755));
    return path;
}

/* ---- files ---- */

static struct qr_file_place at(const char *path)
{
    return (struct qr_file_place){.path = path};
}

static void check_refused(qr_code code, const char *path, int64_t size_bytes_max)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_file_facts facts;
    qr_buf_add_text(&out, "before");
    QR_CHECK_CODE(code, qr_file_read(at(path), size_bytes_max, &out, &facts, &err));
    QR_CHECK_STR("before", qr_buf_str(&out));
}

QR_TEST(a_file_is_read_whole_with_its_facts)
{
    const char *path = put(t, "file", "content");
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_file_facts facts, looked;
    QR_CHECK_RC(QR_OK, qr_file_read(at(path), 7, &out, &facts, &err));
    QR_CHECK_STR("content", qr_buf_str(&out));
    QR_CHECK_INT(7, facts.size_bytes);
    QR_CHECK_RC(QR_OK, qr_file_look(at(path), &looked, &err));
    QR_CHECK_INT(facts.mtime_ns, looked.mtime_ns);
    QR_CHECK_INT(7, looked.size_bytes);
    check_refused(QR_CODE_TOO_LARGE, path, 6);
    qr_buf_clear(&out);
    QR_CHECK_RC(QR_OK, qr_file_read(at(put(t, "empty", "")), 0, &out, &facts, &err));
    QR_CHECK_INT(0, out.len);
}

QR_TEST(what_is_no_file_is_refused_at_once)
{
    struct qr_file_facts facts;
    const char *pipe_path = qr_test_path(t, "pipe"), *link = qr_test_path(t, "link");
    check_refused(QR_CODE_SOURCE_MISSING, qr_test_path(t, "nothing"), 10);
    check_refused(QR_CODE_SOURCE_MISSING, qr_test_path(t, "no/such"), 10);
    check_refused(QR_CODE_SOURCE_UNREADABLE, t->dir, 10);
    check_refused(QR_CODE_SOURCE_UNREADABLE, "/dev/zero", 10);
    QR_CHECK_INT(0, mkfifo(pipe_path, 0666));
    check_refused(QR_CODE_SOURCE_UNREADABLE, pipe_path, 10);
    QR_CHECK_INT(0, symlink(put(t, "target", "x"), link));
    check_refused(QR_CODE_SOURCE_UNREADABLE, link, 10);
    QR_CHECK_CODE(QR_CODE_SOURCE_UNREADABLE, qr_file_look(at(link), &facts, &err));
    QR_CHECK_CODE(QR_CODE_SOURCE_UNREADABLE, qr_file_look(at(pipe_path), &facts, &err));
    QR_CHECK_CODE(QR_CODE_SOURCE_MISSING, qr_file_look(at(qr_test_path(t, "nothing")), &facts, &err));
}

QR_TEST(an_unreadable_file_is_refused)
{
    const char *path = put(t, "secret", "x");
    struct qr_file_facts facts;
    QR_CHECK_INT(0, chmod(path, 0));
    QR_CHECK_INT(0, chmod(t->dir, 0755));
    qr_test_become_unprivileged();
    QR_CHECK_RC(QR_OK, qr_file_look(at(path), &facts, &err));
    if (geteuid() != 0) {
        check_refused(QR_CODE_SOURCE_UNREADABLE, path, 10);
    }
}

static int reads;

static ssize_t counted_read(const struct qr_io *io QR_UNUSED, int fd, void *bytes, size_t size_bytes)
{
    reads++;
    return read(fd, bytes, size_bytes);
}

QR_TEST(a_huge_file_is_refused_without_reading_it)
{
    const char *path = put(t, "huge", "");
    QR_CHECK_INT(0, truncate(path, INT64_C(2) << 30));
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_file_facts facts;
    struct qr_io io = *qr_io_system();
    io.read = counted_read;
    QR_CHECK_CODE(QR_CODE_TOO_LARGE, qr_file_read_io(&io, at(path), 100 << 20, &out, &facts, &err));
    QR_CHECK_INT(0, reads);
}

/* Somebody else, who writes while we read. */
static const char *written_path;
static int writes_left;

static ssize_t disturbed_read(const struct qr_io *io QR_UNUSED, int fd, void *bytes, size_t size_bytes)
{
    const ssize_t got = read(fd, bytes, size_bytes);
    if (writes_left > 0 && got > 0) {
        writes_left--;
        const int writer = open(written_path, O_WRONLY | O_APPEND);
        QR_CHECK(writer >= 0);
        QR_CHECK_INT(4, write(writer, "more", 4));
        close(writer);
    }
    return got;
}

QR_TEST(a_file_that_changes_while_it_is_read_is_read_again)
{
    written_path = put(t, "file", "first");
    struct qr_io io = *qr_io_system();
    io.read = disturbed_read;
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_file_facts facts;
    writes_left = 1;
    QR_CHECK_RC(QR_OK, qr_file_read_io(&io, at(written_path), 100, &out, &facts, &err));
    QR_CHECK_STR("firstmore", qr_buf_str(&out));
    QR_CHECK_INT(9, facts.size_bytes);
    writes_left = 100;
    qr_buf_clear(&out);
    QR_CHECK_CODE(QR_CODE_SOURCE_UNREADABLE, qr_file_read_io(&io, at(written_path), 1000, &out, &facts, &err));
    QR_CHECK_HAS("keeps changing", err.msg);
    QR_CHECK_INT(0, out.len);
    writes_left = 100;
    QR_CHECK_CODE(QR_CODE_TOO_LARGE, qr_file_read_io(&io, at(written_path), facts.size_bytes + 15, &out, &facts, &err));
}

static void read_scenario(void *path)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_file_facts facts;
    const qr_rc rc = qr_file_read_io(qr_fault_io(), at(path), 100, &out, &facts, &err);
    const bool is_io = rc == QR_IO || rc == QR_NOMEM;
    qr_fault_disarm();
    QR_CHECK(rc == QR_OK ? qr_str_equal(qr_buf_str(&out), QR_STR("content")) : is_io && out.len == 0);
}

QR_TEST(failing_calls_leave_nothing_behind)
{
    const char *path = put(t, "file", "content");
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_IO_EIO, read_scenario, (void *)path);
    qr_fault_sweep(QR_FAULT_IO_EINTR, read_scenario, (void *)path);
    qr_fault_sweep(QR_FAULT_IO_SHORT, read_scenario, (void *)path);
    qr_fault_sweep(QR_FAULT_MEMORY, read_scenario, (void *)path);
}

/* ---- folders ---- */

struct listing {
    struct qr_entry *entries;
    size_t count;
    bool is_empty;
};

static qr_rc list_with(const struct qr_walk_options *options, struct listing *ret)
{
    return qr_walk(options, &arena, &ret->entries, &ret->count, &ret->is_empty, &err);
}

static struct listing list(const char *root, const char *folder)
{
    struct listing listing;
    QR_CHECK_RC(QR_OK, list_with(&(struct qr_walk_options){.root = root, .folder = folder}, &listing));
    return listing;
}

/* "a b/ c": folders with a slash. */
static void check_names(const char *expected, const struct listing *listing)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf names = {0};
    for (size_t i = 0; i < listing->count; i++) {
        qr_buf_add_text(&names, i ? " " : "");
        qr_buf_add(&names, listing->entries[i].name);
        qr_buf_add_text(&names, listing->entries[i].is_folder ? "/" : "");
        QR_CHECK_INT(0, listing->entries[i].error);
    }
    QR_CHECK_STR(expected, qr_buf_str(&names));
}

static void check_list(const char *expected, const char *root, const char *folder)
{
    const struct listing listing = list(root, folder);
    check_names(expected, &listing);
    qr_arena_done(&arena);
}

QR_TEST(entries_come_in_the_order_of_their_bytes)
{
    put(t, "b", "12");
    put(t, "a-", "");
    put(t, "B", "");
    make_folder(t, "a");
    put(t, "a/inside", "");
    const struct listing listing = list(t->dir, t->dir);
    check_names("B a/ a- b", &listing);
    QR_CHECK_INT(2, listing.entries[3].size_bytes);
    struct qr_file_facts facts;
    QR_CHECK_RC(QR_OK, qr_file_look(at(qr_test_path(t, "b")), &facts, &err));
    QR_CHECK_INT(facts.mtime_ns, listing.entries[3].mtime_ns);
    QR_CHECK(!listing.is_empty);
    check_list("inside", t->dir, qr_test_path(t, "a"));
    check_list("inside", t->dir, qr_test_path(t, "a/"));
}

QR_TEST(links_pipes_and_sockets_are_no_entries)
{
    make_folder(t, "real");
    put(t, "file", "");
    QR_CHECK_INT(0, symlink("file", qr_test_path(t, "link")));
    QR_CHECK_INT(0, symlink(".", qr_test_path(t, "loop")));
    QR_CHECK_INT(0, symlink("/nowhere", qr_test_path(t, "dangling")));
    QR_CHECK_INT(0, mkfifo(qr_test_path(t, "pipe"), 0666));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/socket", t->dir);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    QR_CHECK_INT(0, bind(fd, (const struct sockaddr *)&address, sizeof address));
    close(fd);
    check_list("file real/", t->dir, t->dir);
}

QR_TEST(a_folder_that_was_replaced_by_a_link_is_not_followed)
{
    struct listing listing;
    const char *elsewhere = make_folder(t, "elsewhere"), *root = make_folder(t, "root");
    put(t, "elsewhere/secret", "");
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "elsewhere/deeper"), 0755));
    QR_CHECK_INT(0, symlink(elsewhere, qr_test_path(t, "root/folder")));
    QR_CHECK_CODE(
        QR_CODE_SOURCE_MISSING,
        list_with(&(struct qr_walk_options){.root = root, .folder = qr_test_path(t, "root/folder")}, &listing));
    QR_CHECK_CODE(
        QR_CODE_SOURCE_MISSING,
        list_with(&(struct qr_walk_options){.root = root, .folder = qr_test_path(t, "root/folder/deeper")}, &listing));
    QR_CHECK_CODE(
        QR_CODE_INVALID_VALUE,
        list_with(&(struct qr_walk_options){.root = root, .folder = qr_test_path(t, "root/../elsewhere")}, &listing));
    QR_CHECK_CODE(QR_CODE_INVALID_VALUE,
                  list_with(&(struct qr_walk_options){.root = root, .folder = elsewhere}, &listing));
    qr_arena_done(&arena);
}

QR_TEST(a_missing_or_unreadable_folder_says_so_and_an_empty_one_is_known)
{
    struct listing listing;
    const char *none = qr_test_path(t, "none"), *file = put(t, "file", ""), *empty = make_folder(t, "empty");
    QR_CHECK_CODE(QR_CODE_SOURCE_MISSING, list_with(&(struct qr_walk_options){.root = none, .folder = none}, &listing));
    QR_CHECK_CODE(QR_CODE_SOURCE_MISSING, list_with(&(struct qr_walk_options){.root = file, .folder = file}, &listing));
    listing = list(empty, empty);
    QR_CHECK(listing.is_empty && listing.count == 0);
    QR_CHECK_INT(0, mkdir(qr_test_path(t, "empty/.git"), 0755));
    listing = list(empty, empty);
    QR_CHECK(!listing.is_empty && listing.count == 0);
    const char *closed = make_folder(t, "closed"), *blind = make_folder(t, "blind");
    put(t, "blind/file", "");
    QR_CHECK_INT(0, chmod(closed, 0));
    QR_CHECK_INT(0, chmod(blind, 0444)); /* names can be read, but nothing looked at */
    QR_CHECK_INT(0, chmod(t->dir, 0755));
    qr_test_become_unprivileged();
    if (geteuid() != 0) {
        QR_CHECK_CODE(QR_CODE_SOURCE_UNREADABLE,
                      list_with(&(struct qr_walk_options){.root = closed, .folder = closed}, &listing));
        listing = list(blind, blind);
        QR_CHECK_INT(1, listing.count);
        QR_CHECK_INT(EACCES, listing.entries[0].error);
    }
    qr_arena_done(&arena);
}

QR_TEST(names_may_be_any_bytes)
{
    put(t, "two\nlines", "");
    put(t, "not \xFF utf-8", "");
    put(t, " ", "");
    put(t, "*", "");
    check_list("  * not \xFF utf-8 two\nlines", t->dir, t->dir);
}

QR_TEST(ignore_files_count_from_the_root_down)
{
    make_folder(t, "root");
    make_folder(t, "root/sub");
    put(t, ".gitignore", "*"); /* above the root: not ours */
    put(t, "root/.gitignore", "*.log\n/top\nsub/only\n");
    put(t, "root/.quireignore", "!kept.log\n*.tmp\n");
    put(t, "root/sub/.gitignore", "!sub.log\nx\n");
    put(t, "root/a.log", "");
    put(t, "root/kept.log", "");
    put(t, "root/top", "");
    put(t, "root/x", "");
    put(t, "root/b.tmp", "");
    const char *root = qr_test_path(t, "root");
    check_list("kept.log sub/ x", root, root);
    put(t, "root/sub/sub.log", "");
    put(t, "root/sub/a.log", "");
    put(t, "root/sub/top", "");
    put(t, "root/sub/only", "");
    put(t, "root/sub/x", "");
    check_list("sub.log top", root, qr_test_path(t, "root/sub"));
}

QR_TEST(the_built_in_list_yields_only_to_a_quireignore)
{
    static const char *const folders[] = {".git", ".hg", "node_modules", "__pycache__", "venv", "build", "docs"};
    for (size_t i = 0; i < QR_COUNT(folders); i++) {
        make_folder(t, folders[i]);
    }
    put(t, "x~", "");
    put(t, ".x.swp", "");
    put(t, ".DS_Store", "");
    put(t, ".quire-tmp-1", "");
    put(t, ".hidden", "");
    check_list(".hidden build/ docs/", t->dir, t->dir);
    put(t, ".gitignore", "*\n!*/\n!.hidden\n");
    check_list(".hidden build/ docs/", t->dir, t->dir);
    put(t, ".quireignore", "!node_modules\n!.git\n");
    check_list(".hidden build/ docs/ node_modules/", t->dir, t->dir);
}

QR_TEST(patterns_of_the_root_come_last)
{
    make_folder(t, "docs");
    make_folder(t, "docs/old");
    make_folder(t, "src");
    put(t, "a.md", "");
    put(t, "b.txt", "");
    put(t, "docs/c.txt", "");
    put(t, "docs/draft.txt", "");
    put(t, "src/d.txt", "");
    put(t, ".quireignore", "!b.txt\n");
    static const char *const include[] = {"*.md", "docs/", "!draft.*"}, *const exclude[] = {"old/", "b.txt"};
    struct qr_walk_options options = {.root = t->dir, .folder = t->dir, .exclude = exclude, .exclude_count = 2};
    struct listing listing;
    QR_CHECK_RC(QR_OK, list_with(&options, &listing));
    check_names("a.md docs/ src/", &listing);
    options.include = include;
    options.include_count = 3;
    options.folder = qr_test_path(t, "docs");
    QR_CHECK_RC(QR_OK, list_with(&options, &listing));
    check_names("c.txt", &listing);
    options.folder = qr_test_path(t, "src");
    QR_CHECK_RC(QR_OK, list_with(&options, &listing));
    check_names("", &listing);
    qr_arena_done(&arena);
}

QR_TEST(a_strange_ignore_file_is_no_failure_but_a_huge_one_is)
{
    put(t, "file", "");
    QR_CHECK_INT(0, mkfifo(qr_test_path(t, ".gitignore"), 0666));
    make_folder(t, ".quireignore");
    check_list("file", t->dir, t->dir);
    QR_CHECK_INT(0, unlink(qr_test_path(t, ".gitignore")));
    QR_CHECK_INT(0, symlink("/dev/zero", qr_test_path(t, ".gitignore")));
    check_list("file", t->dir, t->dir);
    QR_CHECK_INT(0, unlink(qr_test_path(t, ".gitignore")));
    QR_CHECK_INT(0, truncate(put(t, ".gitignore", ""), 2 << 20));
    struct listing listing;
    QR_CHECK_CODE(QR_CODE_LIMIT_EXCEEDED,
                  list_with(&(struct qr_walk_options){.root = t->dir, .folder = t->dir}, &listing));
    QR_CHECK_INT(0, unlink(qr_test_path(t, ".gitignore")));
    put(t, ".gitignore", "file");
    QR_CHECK_INT(0, chmod(qr_test_path(t, ".gitignore"), 0));
    QR_CHECK_INT(0, chmod(t->dir, 0755));
    qr_test_become_unprivileged();
    check_list(geteuid() == 0 ? "" : "file", t->dir, t->dir);
}

QR_TEST_WITH_TIMEOUT(a_folder_of_100000_entries_is_listed_within_its_limit, 120)
{
    enum { COUNT = 100000 };
    const int folder = open(t->dir, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "note-%d.md", i);
        close(openat(folder, name, O_WRONLY | O_CREAT, 0644));
    }
    close(folder);
    put(t, ".gitignore", "*.log\n/build\n**/tmp/*.x\n");
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    struct listing listing = list(t->dir, t->dir);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%zu entries in %lld ms, %zu KB\n", listing.count,
           (long long)(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000,
           arena.total_bytes / 1024);
    QR_CHECK_INT(COUNT, listing.count);
    QR_CHECK(arena.total_bytes < (size_t)16 << 20);
    qr_arena_done(&arena);
    QR_CHECK_CODE(
        QR_CODE_LIMIT_EXCEEDED,
        list_with(&(struct qr_walk_options){.root = t->dir, .folder = t->dir, .entries_max = COUNT - 1}, &listing));
    qr_arena_done(&arena);
}

static void walk_scenario(void *dir)
{
    struct listing listing;
    const qr_rc rc = list_with(&(struct qr_walk_options){.root = dir, .folder = dir}, &listing);
    qr_fault_disarm();
    QR_CHECK(rc == QR_NOMEM || (rc == QR_OK && listing.count == 2));
    qr_arena_done(&arena);
}

QR_TEST(running_out_of_memory_is_an_error)
{
    put(t, "a", "");
    put(t, "b", "");
    put(t, ".gitignore", "c\n");
    qr_fault_memory_install();
    qr_fault_sweep(QR_FAULT_MEMORY, walk_scenario, t->dir);
}

/* ---- paths in which no link is followed ---- */

/* The folder "in" with the file "f", and "out" with another one; *ret_in is where it really is. */
static struct qr_file_place make_bound(struct qr_test *t, char ret_in[static PATH_MAX])
{
    static char path[PATH_MAX + 8];
    make_folder(t, "in");
    make_folder(t, "out");
    put(t, "in/f", "inside");
    put(t, "out/f", "outside");
    QR_CHECK(realpath(qr_test_path(t, "in"), ret_in));
    snprintf(path, sizeof path, "%s/f", ret_in);
    return (struct qr_file_place){path, .no_links = true};
}

QR_TEST(a_folder_that_a_link_replaces_is_not_entered_where_no_links_are_followed) /* KEY-7 */
{
    char in[PATH_MAX];
    const struct qr_file_place bound = make_bound(t, in);
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_file_facts facts;
    struct listing listing;
    const struct qr_walk_options options = {.root = in, .folder = in, .no_links = true};
    QR_CHECK_RC(QR_OK, qr_file_read(bound, 10, &out, &facts, &err));
    QR_CHECK_RC(QR_OK, qr_file_read_part(bound, 0, 10, &out, &facts, &err));
    QR_CHECK_RC(QR_OK, qr_file_look(bound, &facts, &err));
    QR_CHECK_STR("insideinside", qr_buf_str(&out));
    QR_CHECK_RC(QR_OK, list_with(&options, &listing));
    qr_arena_done(&arena);
    QR_CHECK_INT(0, rename(in, qr_test_path(t, "moved")));
    QR_CHECK_INT(0, symlink(qr_test_path(t, "out"), in));
    QR_CHECK_CODE(QR_CODE_SOURCE_MISSING, qr_file_read(bound, 10, &out, &facts, &err));
    QR_CHECK_CODE(QR_CODE_SOURCE_MISSING, qr_file_read_part(bound, 0, 10, &out, &facts, &err));
    QR_CHECK_CODE(QR_CODE_SOURCE_MISSING, qr_file_look(bound, &facts, &err));
    QR_CHECK_CODE(QR_CODE_SOURCE_MISSING, list_with(&options, &listing));
    QR_CHECK_RC(QR_OK, qr_file_look(at(bound.path), &facts, &err)); /* the local owner's links are followed */
}

QR_TEST(a_file_that_a_link_replaces_is_not_read_where_no_links_are_followed) /* KEY-7 */
{
    char in[PATH_MAX], long_path[PATH_MAX];
    const struct qr_file_place bound = make_bound(t, in);
    QR_CLEANUP(qr_buf_done) struct qr_buf out = {0};
    struct qr_file_facts facts;
    QR_CHECK_INT(0, unlink(bound.path));
    QR_CHECK_CODE(QR_CODE_SOURCE_MISSING, qr_file_look(bound, &facts, &err));
    QR_CHECK_INT(0, symlink(qr_test_path(t, "out/f"), bound.path));
    QR_CHECK_CODE(QR_CODE_SOURCE_UNREADABLE, qr_file_read(bound, 10, &out, &facts, &err));
    QR_CHECK_CODE(QR_CODE_SOURCE_UNREADABLE, qr_file_look(bound, &facts, &err));
    QR_CHECK_CODE(QR_CODE_SOURCE_UNREADABLE, qr_file_look((struct qr_file_place){"/", .no_links = true}, &facts, &err));
    snprintf(long_path, sizeof long_path, "//%0*d/f/", NAME_MAX + 1, 0);
    QR_CHECK_CODE(QR_CODE_SOURCE_UNREADABLE,
                  qr_file_look((struct qr_file_place){long_path, .no_links = true}, &facts, &err));
    QR_CHECK_INT(0, out.len);
}
