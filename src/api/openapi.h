/* What the API says of itself: GET /openapi.json (OpenAPI 3.1) and GET /docs, both made of the router's table and of two more:
 * openapi_schemas.c has what bodies and answers look like, openapi_operations.c which of them a route takes and gives. */
#pragma once

#include "api/notation.h"
#include "api/router.h"

/* What a row of the router's table does not say. */
struct qr_operation {
    qr_route_fn *fn;     /* of the row */
    const char *id;      /* the name that clients made from the description give it */
    const char *tag;     /* under which it is listed */
    const char *body;    /* the type of a JSON body; NULL = none is needed */
    const char *answers; /* "202:Selection 200:SelectionEstimate": each status of success and its type, or one of
                            bytes, html, metrics, nothing */
    const char *codes;   /* of its refusals, beside those that every route may give */
};

/* A parameter of paths, of what stands behind the '?', or a header. */
struct qr_parameter {
    const char *name;
    qr_route_fn *fn; /* only of this route; NULL = of all that have the name */
    const char *type;
    const char *doc;
};

extern const struct qr_schema qr_schemas[];
extern const size_t qr_schema_count;
extern const struct qr_operation qr_operations[];
extern const size_t qr_operation_count;

/* NULL: nobody has said. */
const struct qr_operation *qr_operation_find(const struct qr_route *route);
const struct qr_parameter *qr_path_parameter(const struct qr_route *route, qr_str name);
const struct qr_parameter *qr_query_parameter(const struct qr_route *route, qr_str name);
/* The headers that this route looks at; they follow one another. */
const struct qr_parameter *qr_header_parameters(const struct qr_route *route, size_t *ret_count);

/* The whole description; NULL when out of memory. */
json_t *qr_openapi_json(void);
/* The same for people, as a page that needs nothing from elsewhere. */
qr_rc qr_openapi_page(const json_t *openapi, struct qr_buf *out, qr_err *err);
