/* From settings to an endpoint. Stateless. */
#include "remote/service.h"

qr_rc qr_service_open(struct qr_endpoints *endpoints, const struct qr_service_settings *settings,
                      const char *key_header, struct qr_endpoint **ret_endpoint, qr_err *err)
{
    const struct qr_endpoint_options options = {.url = settings->url,
                                                .api_key_env = settings->api_key_env,
                                                .api_key_file = settings->api_key_file,
                                                .api_key_header = key_header,
                                                .limits = {.requests_a_minute = settings->requests_a_minute,
                                                           .tokens_a_minute = settings->tokens_a_minute,
                                                           .in_flight_max = (int)settings->in_flight}};
    return endpoints ? qr_endpoint_get(endpoints, &options, ret_endpoint, err)
                     : qr_fail(err, QR_CODE_UNAVAILABLE, "this process reaches no services");
}
