/* POST /api/v1/check: is everything that was stored still whole?
 *
 * First the database itself; where that is damaged nothing in it is looked at. Then the invariants. A finding is not an
 * error of the request: the answer is 200 with `ok` false and the findings. */
#include "check/check.h"

#include "api/lookup.h"

enum { FINDINGS_SHOWN = 100, FINDINGS_SHOWN_MAX = 1000 };

struct check_request {
    bool repair;
    json_int_t limit;
};

static qr_rc read_request(const struct qr_request *request, struct check_request *ret_check, qr_err *err)
{
    *ret_check = (struct check_request){.limit = FINDINGS_SHOWN};
    QR_TRY(qr_field_bool(request->body, "", "repair", &ret_check->repair, err));
    const json_t *limit = json_object_get(request->body, "limit");
    if (!limit) {
        return QR_OK;
    }
    ret_check->limit = json_integer_value(limit);
    if (ret_check->limit < 1 || ret_check->limit > FINDINGS_SHOWN_MAX) {
        return qr_fail(err, QR_CODE_INVALID_VALUE, "limit must be a number from 1 to %d", FINDINGS_SHOWN_MAX);
    }
    return QR_OK;
}

/* ---- findings ---- */

static qr_rc add_json(json_t *findings, json_t *finding, qr_err *err)
{
    return findings && finding && json_array_append_new(findings, finding) == 0 ? QR_OK : qr_answer_out_of_memory(err);
}

/* Of the database: {"code", "message"} */
static qr_rc add_damage(json_t *findings, const qr_err *damage, qr_err *err)
{
    QR_JSON *wrapped = qr_json_error(damage, NULL);
    return add_json(findings, wrapped ? json_incref(json_object_get(wrapped, "error")) : NULL, err);
}

static json_t *id_json(qr_uuid id)
{
    char text[QR_UUID_TEXT_SIZE];
    qr_uuid_format(id, text);
    return qr_uuid_is_zero(id) ? json_null() : json_string(text);
}

/* Of an invariant. */
static qr_rc add_finding(void *arg, const struct qr_check_finding *finding, qr_err *err)
{
    return add_json(arg,
                    json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:b}", "invariant", finding->invariant, "code",
                              finding->code, "message", finding->message, "base_id", id_json(finding->base_id),
                              "item_id", id_json(finding->item_id), "job_id", id_json(finding->job_id), "repaired",
                              finding->is_repaired),
                    err);
}

/* ---- the answer ---- */

static qr_rc check_invariants(struct quire *quire, const struct check_request *asked, json_t *findings,
                              struct qr_check_result *ret_result, qr_err *err)
{
    const struct qr_check_options options = {
        .db = quire->db,
        .index = quire->index,
        .artifacts = &quire->artifacts,
        .ids = &quire->ids,
        .clock = quire->ids.clock,
        .repair = asked->repair,
        .findings_max = asked->limit,
        .found = add_finding,
        .arg = findings,
    };
    return qr_check(&options, ret_result, err);
}

static json_t *checked_json(const struct qr_check_result *result)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "bases", (json_int_t)result->bases, "items",
                     (json_int_t)result->items, "jobs", (json_int_t)result->jobs, "chunks", (json_int_t)result->chunks,
                     "artifacts", (json_int_t)result->artifacts);
}

qr_rc qr_route_check(const struct qr_request *request, struct qr_reply *reply, qr_err *err)
{
    struct quire *quire = request->quire;
    struct check_request asked;
    struct qr_check_result result = {0};
    QR_JSON *findings = json_array();
    qr_err damage = {0};
    int64_t schema_version;
    QR_TRY(read_request(request, &asked, err));
    const qr_rc rc = qr_db_verify(quire->db, &damage);
    if (rc == QR_OK) {
        QR_TRY(check_invariants(quire, &asked, findings, &result, err));
    } else if (rc == QR_CORRUPT) {
        QR_TRY(add_damage(findings, &damage, err));
        result.findings = 1;
    } else {
        *err = damage;
        return rc;
    }
    QR_TRY(qr_db_schema_version(quire->db, &schema_version, err));
    json_t *database = json_pack("{s:s, s:I, s:s, s:s}", "driver", qr_db_driver_name(quire->db), "schema_version",
                                 (json_int_t)schema_version, "instance_id", quire->id, "created_at", quire->created_at);
    json_t *body = json_pack("{s:b, s:o, s:o, s:I, s:I, s:O}", "ok", result.findings == result.repaired, "database",
                             database, "checked", checked_json(&result), "found", (json_int_t)result.findings,
                             "repaired", (json_int_t)result.repaired, "findings", findings);
    return qr_reply_with(reply, 200, body, err);
}
