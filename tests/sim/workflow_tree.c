/* Folders on the disk that change while they are read: files and folders appear, change, vanish, take each other's names; a
 * root goes away, is emptied, and comes back. Times of files are the simulation's. */
#include "sim/workflow_sim.h"

#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 24, NAME_SIZE = 40 };

static struct file {
    int root;
    char name[NAME_SIZE]; /* below the root */
    bool is_there;
    int number, version;
} files[FILES_MAX];
static struct {
    bool is_away, is_emptied;
} roots[TREE_ROOTS];
static int64_t ticks;
static int documents;

/* Folders in it come by themselves. */
static const char *const names[] = {"a.md",     "b.md",      "c.txt",    "d.pdf",      "one/a.md",
                                    "one/b.md", "one/c.pdf", "two/a.md", "two/x/a.md", "two/x/b.md",
                                    "odd",      "odd/a.md"}; /* a file, or a folder of that name */

void tree_add_text(struct qr_buf *out, int number, int version, size_t size_bytes)
{
    const size_t end = out->len + size_bytes;
    qr_buf_printf(out, "# common document %d version %d.\n\n", number, version);
    for (int line = 1; out->len < end; line++) {
        qr_buf_printf(out, "common line %d of document %d in version %d says nothing else.\n%s", line, number, version,
                      line % 4 ? "" : "\n");
    }
}

const char *tree_root(int number)
{
    char name[16];
    snprintf(name, sizeof name, "tree/r%d", number);
    return sim_path(name);
}

static const char *aside(int number, const char *what)
{
    char name[32];
    snprintf(name, sizeof name, "tree/%s%d", what, number);
    return sim_path(name);
}

static void full_path(const struct file *file, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", tree_root(file->root), file->name);
}

/* ---- files ---- */

static void make_folders(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
}

static void write_file(struct file *file)
{
    char path[400];
    QR_CLEANUP(qr_buf_done) struct qr_buf text = {0};
    full_path(file, path, sizeof path);
    make_folders(path);
    tree_add_text(&text, file->number, file->version, (size_t)sim_between(100, 1500));
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    QR_CHECK(fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len);
    close(fd);
    ticks++;
    const struct timespec times[2] = {{1000 + ticks, 0}, {1000 + ticks, 0}};
    QR_CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
    file->is_there = true;
}

static int remove_one(const char *path, const struct stat *st QR_UNUSED, int type QR_UNUSED, struct FTW *ftw QR_UNUSED)
{
    return remove(path);
}

static void remove_tree(const char *path)
{
    struct stat st;
    if (lstat(path, &st) == 0) {
        QR_CHECK(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
    }
}

static bool is_below(const struct file *file, const char *name)
{
    const size_t len = strlen(name);
    return strncmp(file->name, name, len) == 0 && (file->name[len] == '/' || file->name[len] == '\0');
}

static void forget_below(int root, const char *name)
{
    for (int i = 0; i < FILES_MAX; i++) {
        if (files[i].root == root && is_below(&files[i], name)) {
            files[i].is_there = false;
        }
    }
}

static void appear(struct file *file)
{
    /* "odd" is a file or a folder */
    if (strncmp(file->name, "odd", 3) == 0) {
        char path[300];
        snprintf(path, sizeof path, "%s/odd", tree_root(file->root));
        remove_tree(path);
        forget_below(file->root, "odd");
    }
    file->number = ++documents;
    file->version = 1;
    write_file(file);
}

static void vanish(struct file *file)
{
    char path[400];
    full_path(file, path, sizeof path);
    unlink(path);
    file->is_there = false;
}

static void vanish_folder(int root)
{
    static const char *const folders[] = {"one", "two", "two/x"};
    const char *name = folders[sim_between(0, QR_COUNT(folders) - 1)];
    char path[300];
    snprintf(path, sizeof path, "%s/%s", tree_root(root), name);
    remove_tree(path);
    forget_below(root, name);
}

/* ---- roots ---- */

static void take_away(int root)
{
    QR_CHECK(rename(tree_root(root), aside(root, "away")) == 0);
    roots[root].is_away = true;
}

static void empty(int root)
{
    QR_CHECK(rename(tree_root(root), aside(root, "full")) == 0 && mkdir(tree_root(root), 0700) == 0);
    roots[root].is_emptied = true;
}

static void bring_back(int root)
{
    if (roots[root].is_emptied) {
        QR_CHECK(rmdir(tree_root(root)) == 0 && rename(aside(root, "full"), tree_root(root)) == 0);
    } else if (roots[root].is_away) {
        QR_CHECK(rename(aside(root, "away"), tree_root(root)) == 0);
    }
    roots[root].is_away = roots[root].is_emptied = false;
}

void tree_begin(void)
{
    memset(roots, 0, sizeof roots);
    documents = 1000;
    ticks = 0;
    for (int i = 0; i < FILES_MAX; i++) {
        files[i] = (struct file){.root = i % TREE_ROOTS};
        snprintf(files[i].name, sizeof files[i].name, "%s", names[i / TREE_ROOTS]);
    }
    for (int root = 0; root < TREE_ROOTS; root++) {
        QR_CHECK(mkdir(tree_root(root), 0700) == 0);
        appear(&files[root]);
    }
    for (int i = 0; i < FILES_MAX; i++) {
        if (sim_chance(500)) {
            appear(&files[i]);
        }
    }
}

void tree_change(void)
{
    struct file *file = &files[sim_between(0, FILES_MAX - 1)];
    const int root = file->root;
    if (roots[root].is_away || roots[root].is_emptied) {
        if (sim_chance(500)) {
            bring_back(root);
        }
        return;
    }
    const int64_t what = sim_between(0, 99);
    if (what < 6) {
        take_away(root);
    } else if (what < 12) {
        empty(root);
    } else if (what < 20) {
        vanish_folder(root);
    } else if (!file->is_there) {
        appear(file);
    } else if (what < 45) {
        vanish(file);
    } else {
        file->version++;
        write_file(file);
    }
}

/* A folder whose last file went is empty, and so, for the product, a disk that is not there. */
static void remove_empty_folders(int root)
{
    static const char *const folders[] = {"one", "two/x", "two", "odd"};
    for (size_t i = 0; i < QR_COUNT(folders); i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", tree_root(root), folders[i]);
        rmdir(path);
    }
}

void tree_settle(void)
{
    for (int root = 0; root < TREE_ROOTS; root++) {
        bring_back(root);
        remove_empty_folders(root);
        if (!files[root].is_there) {
            appear(&files[root]);
        }
    }
}

bool tree_file(int index, const char **ret_path, int *ret_number, int *ret_version)
{
    static char path[400];
    if (index >= FILES_MAX) {
        return false;
    }
    const struct file *file = &files[index];
    full_path(file, path, sizeof path);
    *ret_path = file->is_there ? path : NULL;
    *ret_number = file->number;
    *ret_version = file->version;
    return true;
}
