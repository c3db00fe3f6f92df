/* The endpoint that the settings of a service name. */
#pragma once

#include "model/settings.h"
#include "remote/endpoint.h"

/* `key_header` as in qr_endpoint_options. Given back with qr_endpoint_put. */
qr_rc qr_service_open(struct qr_endpoints *endpoints, const struct qr_service_settings *settings,
                      const char *key_header, struct qr_endpoint **ret_endpoint, qr_err *err);
