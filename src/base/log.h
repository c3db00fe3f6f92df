/* Log lines: one event a line, key=value or JSON. Only the runner, the beat and the front ends log; libraries return
 * errors. */
#pragma once

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/str.h"

enum qr_log_level { QR_LOG_DEBUG, QR_LOG_INFO, QR_LOG_WARN, QR_LOG_ERROR };
enum qr_log_format { QR_LOG_TEXT, QR_LOG_JSON };

struct qr_log {
    int fd;
    _Atomic enum qr_log_level level_min; /* both may change while others log */
    _Atomic enum qr_log_format format;
    const struct qr_clock *clock;
};

enum qr_field_type { QR_FIELD_TEXT, QR_FIELD_I64, QR_FIELD_F64, QR_FIELD_BOOL };
struct qr_field {
    const char *key;
    enum qr_field_type type;
    union {
        qr_str text;
        int64_t i64;
        double f64;
        bool flag;
    };
};

static inline struct qr_field qr_field_text(const char *key, const char *value)
{
    return (struct qr_field){key, QR_FIELD_TEXT, {.text = qr_str_of(value)}};
}
static inline struct qr_field qr_field_str(const char *key, qr_str value)
{
    return (struct qr_field){key, QR_FIELD_TEXT, {.text = value}};
}
static inline struct qr_field qr_field_i64(const char *key, int64_t value)
{
    return (struct qr_field){key, QR_FIELD_I64, {.i64 = value}};
}
static inline struct qr_field qr_field_f64(const char *key, double value)
{
    return (struct qr_field){key, QR_FIELD_F64, {.f64 = value}};
}
static inline struct qr_field qr_field_bool(const char *key, bool value)
{
    return (struct qr_field){key, QR_FIELD_BOOL, {.flag = value}};
}

/* qr_log(log, QR_LOG_INFO, "job_started", qr_field_text("job", id), qr_field_i64("attempt", 1));
 * One write call, so lines of threads and processes do not mix; a line that cannot be written is dropped. Text values
 * are escaped: no value can begin a new line or forge a field. `event` and keys are constants of [a-z_]. */
void qr_log_write(const struct qr_log *log, enum qr_log_level level, const char *event, const struct qr_field *fields,
                  size_t field_count);
#define qr_log(log, level, event, ...)                                                                                 \
    qr_log_write(log, level, event, (const struct qr_field[]){__VA_ARGS__},                                            \
                 sizeof((const struct qr_field[]){__VA_ARGS__}) / sizeof(struct qr_field))

/* An error as fields of a line: error=CODE and message=…. */
void qr_log_err(const struct qr_log *log, enum qr_log_level level, const char *event, const qr_err *err);
