/* Looks for programs by where this one is, so that a build folder, an installation and a moved installation each find their
 * own. PATH is not looked at: what is started must be of the same build. */
#include "base/program.h"

#include "base/buf.h"
#include "base/mem.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef QUIRE_LIBEXEC_DIR
#define QUIRE_LIBEXEC_DIR "/usr/local/libexec/quire"
#endif

static bool may_run(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The folder of the program that runs, with a '/' at its end; empty when it cannot be told. */
static qr_str own_folder(char path[static PATH_MAX])
{
    const ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);
    const char *slash = len > 0 && len < PATH_MAX ? memrchr(path, '/', (size_t)len) : NULL;
    return (qr_str){path, slash ? (size_t)(slash - path) + 1 : 0};
}

/* True when it is there: then it is in *path. */
static bool look_at(struct qr_buf *path, qr_str folder, const char *below, const char *name)
{
    qr_buf_clear(path);
    qr_buf_add(path, folder);
    qr_buf_add_text(path, below);
    qr_buf_add_text(path, name);
    return folder.len && path->failed == QR_CODE_NONE && may_run(path->data);
}

qr_rc qr_program_find(const char *name, char **ret_path, qr_err *err)
{
    char own[PATH_MAX];
    const qr_str folder = own_folder(own);
    QR_CLEANUP(qr_buf_done) struct qr_buf path = {0};
    if (strchr(name, '/')) {
        qr_buf_add_text(&path, name);
        if (!may_run(name)) {
            return qr_fail(err, QR_CODE_UNAVAILABLE, "there is no program %s that may be run", name);
        }
    } else if (!look_at(&path, folder, "", name) && !look_at(&path, folder, "../libexec/quire/", name) &&
               !look_at(&path, QR_STR(QUIRE_LIBEXEC_DIR), "/", name)) {
        QR_TRY(qr_buf_check(&path, err));
        return qr_fail(
            err, QR_CODE_UNAVAILABLE,
            "the program %s, which belongs to Quire, is neither in %.*s nor in %.*s../libexec/quire nor in %s", name,
            QR_STR_ARG(folder), QR_STR_ARG(folder), QUIRE_LIBEXEC_DIR);
    }
    *ret_path = qr_buf_take(&path, NULL);
    return *ret_path ? QR_OK : qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory while looking for %s", name);
}
