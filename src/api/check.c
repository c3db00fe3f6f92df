/* POST /api/v1/check: is everything that was stored still whole?
 *
 * A finding is not an error of the request: the answer is 200 with `ok` false and the findings, each with a code of the
 * error table. */
#include "api/router.h"

/* {"code", "message"} */
static qr_rc add_finding(json_t *findings, const qr_err *damage, qr_err *err)
{
    QR_JSON *wrapped = qr_json_error(damage, NULL);
    if (!findings || !wrapped || json_array_append(findings, json_object_get(wrapped, "error")) != 0) {
        return qr_fail(err, QR_CODE_OUT_OF_MEMORY, "out of memory for the findings");
    }
    return QR_OK;
}

qr_rc qr_route_check(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    const struct quire *quire = request->quire;
    QR_JSON *findings = json_array();
    qr_err damage = {0};
    const qr_rc rc = qr_db_verify(quire->db, &damage);
    if (rc == QR_CORRUPT) {
        QR_TRY(add_finding(findings, &damage, err));
    } else if (rc != QR_OK) {
        *err = damage;
        return rc;
    }
    int64_t schema_version;
    QR_TRY(qr_db_schema_version(quire->db, &schema_version, err));
    json_t *database = json_pack("{s:s, s:I, s:s, s:s}", "driver", qr_db_driver_name(quire->db), "schema_version",
                                 (json_int_t)schema_version, "instance_id", quire->id, "created_at", quire->created_at);
    json_t *body = json_pack("{s:b, s:o, s:O}", "ok", rc == QR_OK, "database", database, "findings", findings);
    return qr_reply_with(reply, 200, body, err);
}
