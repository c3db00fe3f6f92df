#include "base/json.h"
#include "base/log.h"
#include "support/test.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

/* A socket that keeps messages apart: what is received is what one write wrote. */
static int reader;
static char line[64 * 1024];

static struct qr_log open_log(enum qr_log_format format)
{
    int fds[2];
    QR_CHECK_INT(0, socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds));
    reader = fds[0];
    return (struct qr_log){fds[1], QR_LOG_INFO, format, qr_test_clock(INT64_C(1794716957042))};
}

/* The next line, or "". */
static const char *next_line(void)
{
    const ssize_t len = read(reader, line, sizeof line - 1);
    line[len > 0 ? len : 0] = '\0';
    return line;
}

QR_TEST(a_text_line_has_time_level_event_and_fields)
{
    const struct qr_log log = open_log(QR_LOG_TEXT);
    qr_log(&log, QR_LOG_INFO, "job_started", qr_field_text("job", "0192"), qr_field_i64("attempt", -1),
           qr_field_bool("again", true), qr_field_f64("share", 0.25));
    QR_CHECK_TEXT(
        "time=2026-11-15T04:29:17.042Z level=info event=job_started job=0192 attempt=-1 again=true share=0.25\n",
        next_line());
    QR_CHECK_TEXT("", next_line());
}

QR_TEST(a_json_line_has_the_same)
{
    const struct qr_log log = open_log(QR_LOG_JSON);
    qr_log(&log, QR_LOG_WARN, "job_started", qr_field_text("job", "0192"), qr_field_i64("attempt", INT64_MIN),
           qr_field_bool("again", false), qr_field_f64("share", 0.1), qr_field_f64("nothing", NAN));
    QR_CHECK_TEXT(
        "{\"time\":\"2026-11-15T04:29:17.042Z\",\"level\":\"warn\",\"event\":\"job_started\",\"job\":\"0192\","
        "\"attempt\":-9223372036854775808,\"again\":false,\"share\":0.1,\"nothing\":null}\n",
        next_line());
}

QR_TEST(what_is_below_the_level_is_not_written)
{
    struct qr_log log = open_log(QR_LOG_TEXT);
    qr_log(&log, QR_LOG_DEBUG, "detail", qr_field_i64("n", 1));
    QR_CHECK_TEXT("", next_line());
    log.level_min = QR_LOG_ERROR;
    qr_log(&log, QR_LOG_WARN, "warning", qr_field_i64("n", 1));
    QR_CHECK_TEXT("", next_line());
    qr_log(&log, QR_LOG_ERROR, "trouble", qr_field_i64("n", 1));
    QR_CHECK_HAS("level=error event=trouble n=1\n", next_line());
}

static void check_text_value(const struct qr_log *log, const char *expected, qr_str value)
{
    qr_log(log, QR_LOG_INFO, "e", qr_field_str("v", value));
    const char *found = strstr(next_line(), " v=");
    QR_CHECK(found);
    char whole[256];
    snprintf(whole, sizeof whole, " v=%s\n", expected);
    QR_CHECK_TEXT(whole, found);
}

QR_TEST(no_value_can_begin_a_line_or_forge_a_field)
{
    const struct qr_log log = open_log(QR_LOG_TEXT);
    check_text_value(&log, "plain-Value/1.2:3,4", QR_STR("plain-Value/1.2:3,4"));
    check_text_value(&log, "\"\"", QR_STR(""));
    check_text_value(&log, "\"\"", qr_str_of(NULL));
    check_text_value(&log, "\"two words\"", QR_STR("two words"));
    check_text_value(&log, "\"a=b\"", QR_STR("a=b"));
    check_text_value(&log, "\"say \\\"x\\\"\"", QR_STR("say \"x\""));
    check_text_value(&log, "\"back\\\\slash\"", QR_STR("back\\slash"));
    check_text_value(&log, "\"x\\nlevel=error event=fake\"", QR_STR("x\nlevel=error event=fake"));
    check_text_value(&log, "\"a\\r\\u0000\\u001b[31m\\u007f\"", QR_STR("a\r\0\x1B[31m\x7F"));
    check_text_value(&log, "\"\\u0085\\u009b\\u2028\\u2029\"", QR_STR("\xC2\x85\xC2\x9B\xE2\x80\xA8\xE2\x80\xA9"));
    check_text_value(&log, "\"\xC3\xA4\xE2\x82\xAC\"", QR_STR("\xC3\xA4\xE2\x82\xAC"));
    check_text_value(&log, "\"\xEF\xBF\xBD!\"", QR_STR("\xFF!"));
}

QR_TEST(every_json_line_is_json_whatever_the_bytes)
{
    const struct qr_log log = open_log(QR_LOG_JSON);
    for (unsigned n = 0; n < 65536; n += 7) {
        const char bytes[] = {(char)n, (char)(n >> 8)};
        qr_log(&log, QR_LOG_INFO, "e", qr_field_str("v", (qr_str){bytes, 2}));
        next_line();
        QR_CHECK_INT(strlen(line) - 1, strcspn(line, "\n"));
        for (char *at = line; *at; at++) {
            QR_CHECK(*at == '\n' || (unsigned char)*at >= ' ');
        }
        QR_JSON *value = json_loads(line, JSON_ALLOW_NUL, NULL); /* not our parser: that refuses NUL */
        QR_CHECK(value);
    }
}

QR_TEST(a_long_value_is_cut_and_the_line_says_so_and_stays_whole)
{
    static char text[100000];
    const enum qr_log_format formats[] = {QR_LOG_TEXT, QR_LOG_JSON};
    static const char fills[] = {'x', ' ', '\n', '\x01', '\xFF'};
    for (size_t f = 0; f < QR_COUNT(formats); f++) {
        const struct qr_log log = open_log(formats[f]);
        for (size_t i = 0; i < sizeof fills; i++) {
            memset(text, fills[i], sizeof text - 1);
            qr_log(&log, QR_LOG_INFO, "e", qr_field_text("a", text), qr_field_text("b", text), qr_field_text("c", text),
                   qr_field_text("d", text), qr_field_i64("last", 1));
            const size_t len = strlen(next_line());
            QR_CHECK(len > 0 && len <= PIPE_BUF);
            QR_CHECK_INT(len - 1, strcspn(line, "\n"));
            QR_CHECK_HAS("last", line); /* short fields still find room */
            QR_CHECK_HAS("truncated", line);
            QR_JSON *value = NULL;
            QR_CHECK(formats[f] == QR_LOG_TEXT ||
                     qr_json_parse(qr_str_of(line), &QR_JSON_REQUEST_LIMITS, &value, NULL) == QR_OK);
        }
    }
}

QR_TEST(an_error_is_a_code_and_a_message)
{
    const struct qr_log log = open_log(QR_LOG_TEXT);
    qr_err err;
    qr_fail(&err, QR_CODE_DISK_FULL, "cannot write quire.db");
    qr_log_err(&log, QR_LOG_ERROR, "commit_failed", &err);
    QR_CHECK_HAS("event=commit_failed error=disk_full message=\"cannot write quire.db\"\n", next_line());
}

QR_TEST(a_line_that_cannot_be_written_is_dropped)
{
    struct qr_log log = open_log(QR_LOG_TEXT);
    for (int i = 0; i < 10000; i++) { /* fills the socket, which nobody reads */
        qr_log(&log, QR_LOG_INFO, "e", qr_field_i64("n", i));
    }
    QR_CHECK_HAS("n=0\n", next_line());
    log.fd = -1;
    qr_log(&log, QR_LOG_INFO, "e", qr_field_i64("n", 1));
}
