/* What is this machine's: paths, programs, variables, and what can be reached from it. A key is somebody elsewhere, who must reach
 * none of them through us. */
#include "api/access.h"

#include "api/lookup.h"
#include "api/router.h"
#include "workflow/workflow.h"

#include <limits.h>
#include <stdlib.h>
#include <strings.h>

/* ---- paths ---- */

static void free_path(char **path)
{
    free(*path); /* NOLINT: realpath's own memory */
}

static qr_rc refuse_path(qr_err *err)
{
    return qr_fail(err, QR_CODE_FORBIDDEN,
                   "paths of the server are for its local owner, and below server.import_roots for others");
}

static bool is_below(qr_str path, qr_str root)
{
    if (root.len > 1 && root.ptr[root.len - 1] == '/') {
        root.len--;
    }
    return qr_str_starts_with(path, root) && (path.len == root.len || root.len == 1 || path.ptr[root.len] == '/');
}

/* Roots are resolved each time: they may be links, and may be mounted later. One that is not there allows nothing. */
static bool is_below_a_root(qr_str path, qr_str roots)
{
    while (roots.len) {
        char text[QR_CONFIG_VALUE_BYTES_MAX + 1];
        const qr_str root = qr_str_trim(qr_str_split(&roots, ':'));
        memcpy(text, root.ptr, root.len);
        text[root.len] = '\0';
        QR_CLEANUP(free_path) char *resolved = root.len && root.ptr[0] == '/' ? realpath(text, NULL) : NULL;
        if (resolved && is_below(path, qr_str_of(resolved))) {
            return true;
        }
    }
    return false;
}

qr_rc qr_access_check_path(const struct qr_request *request, struct qr_arena *arena, struct qr_add_item *item,
                           qr_err *err)
{
    const qr_str path = item->source;
    if (request->caller.right >= QR_RIGHT_LOCAL) {
        return QR_OK;
    }
    char text[PATH_MAX];
    if (path.len >= sizeof text) {
        return refuse_path(err);
    }
    memcpy(text, path.ptr, path.len);
    text[path.len] = '\0';
    QR_CLEANUP(free_path) char *resolved = realpath(text, NULL);
    const qr_str roots = qr_str_of(qr_config_text(qr_instance_config(request->quire), QR_CONFIG_SERVER_IMPORT_ROOTS));
    if (!resolved || !is_below_a_root(qr_str_of(resolved), roots)) {
        return refuse_path(err);
    }
    item->source = (qr_str){qr_arena_copy(arena, qr_str_of(resolved)), strlen(resolved)};
    item->no_links = true;
    return item->source.ptr ? QR_OK : qr_answer_out_of_memory(err);
}

/* ---- settings ---- */

/* Fields of settings that name something of this machine, and who may. */
static const struct {
    const char *name;
    enum qr_right needs;
} machine_fields[] = {
    {"argv", QR_RIGHT_LOCAL},         /* a program that is run */
    {"api_key_file", QR_RIGHT_LOCAL}, /* a file whose content is sent */
    {"api_key_env", QR_RIGHT_ADMIN},  /* a variable whose content is sent */
};

/* What stands between "//" and the path, with its port. */
static qr_str host_of(qr_str url)
{
    while (url.len && !qr_str_starts_with(url, QR_STR("//"))) {
        url = (qr_str){url.ptr + 1, url.len - 1};
    }
    url = url.len ? (qr_str){url.ptr + 2, url.len - 2} : url;
    return qr_str_split(&url, '/');
}

/* Listed with its port, or without one: then at any. */
static bool is_listed(qr_str host, qr_str list)
{
    while (list.len) {
        const qr_str name = qr_str_trim(qr_str_split(&list, ','));
        const bool begins = name.len && name.len <= host.len && strncasecmp(host.ptr, name.ptr, name.len) == 0;
        if (begins && (name.len == host.len || host.ptr[name.len] == ':')) {
            return true;
        }
    }
    return false;
}

/* An address in settings is asked by us, from where we stand. One that stays was somebody else's decision. */
static enum qr_right needed_for_address(const json_t *old, const json_t *object, qr_str hosts)
{
    const json_t *url = json_object_get(object, "url");
    if (!json_is_string(url) || json_equal(url, json_object_get(old, "url"))) {
        return QR_RIGHT_OPEN;
    }
    return is_listed(host_of(qr_str_of(json_string_value(url))), hosts) ? QR_RIGHT_OPEN : QR_RIGHT_ADMIN;
}

static enum qr_right needed_for(const json_t *object)
{
    enum qr_right needed = QR_RIGHT_OPEN;
    for (size_t i = 0; i < QR_COUNT(machine_fields); i++) {
        if (json_object_get(object, machine_fields[i].name)) {
            needed = QR_MAX(needed, machine_fields[i].needs);
        }
    }
    return needed;
}

/* An object with such a field stays as it is, or somebody who may changes it: a key that stays and is sent to another address
 * would be no better. */
static enum qr_right needed_for_change(const json_t *old, const json_t *new_settings, qr_str hosts)
{
    const char *name;
    json_t *value;
    if (json_equal(old, new_settings)) {
        return QR_RIGHT_OPEN;
    }
    const enum qr_right for_address = needed_for_address(old, new_settings, hosts);
    enum qr_right needed = QR_MAX(needed_for(new_settings), for_address);
    json_object_foreach((json_t *)new_settings, name, value)
    {
        if (json_is_object(value)) { /* as deep as settings are, which was checked */
            const enum qr_right inside = needed_for_change(json_object_get(old, name), value, hosts);
            needed = QR_MAX(needed, inside);
        }
    }
    return needed;
}

qr_rc qr_access_check_settings(const struct qr_request *request, const json_t *old, const json_t *new_settings,
                               qr_err *err)
{
    const qr_str hosts = qr_str_of(qr_config_text(qr_instance_config(request->quire), QR_CONFIG_SERVER_SERVICE_HOSTS));
    const enum qr_right needed = needed_for_change(old, new_settings, hosts);
    if (request->caller.right >= needed) {
        return QR_OK;
    }
    return qr_fail(err, QR_CODE_FORBIDDEN,
                   needed == QR_RIGHT_LOCAL
                       ? "settings with argv or api_key_file are changed by the local owner of the server only"
                       : "settings with api_key_env, and a url whose host server.service_hosts does not list, are "
                         "changed with an admin key only");
}
