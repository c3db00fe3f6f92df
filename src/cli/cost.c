/* How a person is told what embedding costs. */
#include "cli/items.h"

/* "about 3 minutes" */
static void add_time(long long seconds, struct qr_buf *out)
{
    static const struct {
        long long from_s, unit_s;
        const char *name;
    } units[] = {{5400, 3600, "hour"}, {90, 60, "minute"}, {0, 1, "second"}};
    for (size_t i = 0; i < QR_COUNT(units); i++) {
        if (seconds >= units[i].from_s) {
            const long long count = QR_MAX((seconds + units[i].unit_s / 2) / units[i].unit_s, 1LL);
            qr_buf_printf(out, ", about %s %s%s", cli_grouped(count).text, units[i].name, count == 1 ? "" : "s");
            return;
        }
    }
}

static void add_tokens(long long tokens, struct qr_buf *out)
{
    enum { THOUSANDS_FROM = 10000 };
    const bool in_thousands = tokens >= THOUSANDS_FROM;
    qr_buf_printf(out, ", %s%s token%s", cli_grouped(in_thousands ? (tokens + 500) / 1000 : tokens).text,
                  in_thousands ? " k" : "", tokens == 1 ? "" : "s");
}

static void add_cost(const json_t *estimate, struct qr_buf *out)
{
    const long long to_embed = cli_number(estimate, "to_embed"), chunks = cli_number(estimate, "chunks");
    const bool is_about = json_is_true(json_object_get(estimate, "is_sampled"));
    qr_buf_printf(out, "%s%s of ", is_about ? "about " : "", cli_grouped(to_embed).text);
    qr_buf_printf(out, "%s chunk%s", cli_grouped(chunks).text, chunks == 1 ? "" : "s");
    if (to_embed > 0 && json_is_integer(json_object_get(estimate, "seconds"))) {
        add_time(cli_number(estimate, "seconds"), out);
    }
    if (to_embed > 0) {
        add_tokens(cli_number(estimate, "tokens"), out);
    }
    if (cli_number(estimate, "cached")) {
        qr_buf_printf(out, "; %s known already", cli_grouped(cli_number(estimate, "cached")).text);
    }
}

void cli_print_cost(const json_t *estimate)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf line = {0};
    add_cost(estimate, &line);
    puts(qr_buf_str(&line).ptr);
}
