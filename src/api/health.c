/* GET /healthz: the process answers. GET /readyz: it can also work. Both are open, so they name codes and nothing of the
 * machine. */
#include "api/health.h"

#include "api/router.h"
#include "api/wire.h"
#include "base/thread.h"
#include "store/schema.h"

enum { FRESH_US = 1000000 }; /* so long what was found is told again */

static const char *const parts[QR_HEALTH_PARTS] = {"database", "schema", "work"};

void qr_health_init(struct qr_health *health)
{
    *health = (struct qr_health){0};
    qr_mutex_init(&health->lock);
}

void qr_health_done(struct qr_health *health)
{
    qr_mutex_done(&health->lock);
}

qr_rc qr_route_healthz(const struct qr_request *request QR_UNUSED, struct qr_reply *reply, qr_err *err)
{
    return qr_reply_with(reply, 200, json_pack("{s:s}", "status", "ok"), err);
}

/* ---- looking ---- */

static qr_rc write_nothing(struct qr_tx *tx QR_UNUSED, void *arg QR_UNUSED, qr_err *err QR_UNUSED)
{
    return QR_OK; /* the commit itself is what is tried */
}

static qr_code look_at_schema(struct qr_db *db)
{
    qr_err err = {0};
    int64_t version = 0;
    if (qr_db_schema_version(db, &version, &err) != QR_OK) {
        return err.code;
    }
    return version > (int64_t)qr_schema_migration_count   ? QR_CODE_SCHEMA_NEWER
           : version < (int64_t)qr_schema_migration_count ? QR_CODE_DATA_CORRUPT
                                                          : QR_CODE_NONE;
}

static void look(struct quire *quire, qr_code ret_found[static QR_HEALTH_PARTS])
{
    qr_err err = {0}, trouble = {0};
    ret_found[QR_HEALTH_DATABASE] =
        qr_db_write(quire->db, QR_RELAXED, write_nothing, NULL, &err) == QR_OK ? QR_CODE_NONE : err.code;
    ret_found[QR_HEALTH_SCHEMA] = look_at_schema(quire->db);
    qr_instance_trouble(quire, &trouble);
    ret_found[QR_HEALTH_WORK] = qr_instance_is_working(quire) ? trouble.code : QR_CODE_UNAVAILABLE;
}

/* False: what there is will do, or has to. */
static bool begin_look(struct qr_health *health)
{
    QR_HOLD(&health->lock);
    const bool is_fresh = health->has_looked && qr_thread_mono_us() - health->looked_us < FRESH_US;
    if (is_fresh || health->is_looking) {
        return false;
    }
    health->is_looking = true;
    return true;
}

static void end_look(struct qr_health *health, const qr_code found[static QR_HEALTH_PARTS])
{
    QR_HOLD(&health->lock);
    memcpy(health->found, found, sizeof health->found);
    health->looked_us = qr_thread_mono_us();
    health->has_looked = true;
    health->is_looking = false;
}

/* ---- the answer ---- */

static json_t *reasons_json(struct qr_health *health)
{
    json_t *reasons = json_array();
    QR_HOLD(&health->lock);
    for (size_t i = 0; reasons && i < QR_HEALTH_PARTS; i++) {
        const qr_code code = health->has_looked ? health->found[i] : QR_CODE_UNAVAILABLE;
        if (code != QR_CODE_NONE && json_array_append_new(reasons, json_pack("{s:s, s:s}", "part", parts[i], "code",
                                                                             qr_code_info(code)->name)) != 0) {
            json_decref(reasons);
            reasons = NULL;
        }
    }
    return reasons;
}

qr_rc qr_route_readyz(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct qr_health *health = &request->quire->health;
    if (begin_look(health)) {
        qr_code found[QR_HEALTH_PARTS];
        look(request->quire, found);
        end_look(health, found);
    }
    json_t *reasons = reasons_json(health);
    const bool is_ready = reasons && json_array_size(reasons) == 0;
    return qr_reply_with(reply, is_ready ? 200 : 503,
                         json_pack("{s:s, s:o}", "status", is_ready ? "ready" : "not_ready", "reasons", reasons), err);
}
