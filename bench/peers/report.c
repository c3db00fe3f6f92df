/* Reads what bench/peers/run prints: one JSON object a line, {"key", "label", "accepts_per_s", "runs_per_s", "cycle_per_s"}
 * or {"key", "label", "reason"}. */
#include "peers/report.h"

#include <stdio.h>
#include <string.h>

/* What we want to be, against the peer of that key. SQLite is what Quire uses unless told otherwise; the ratio on
 * PostgreSQL is shown beside it where the peer uses that. */
static const struct goal {
    const char *peer;
    double at_least;
    bool on_postgres;
} GOALS[] = {
    {"beanstalkd_fsync", 20, false},
    {"graphile_worker_batched", 1, true},
    {"bullmq_single", 10, false},
    {"pg_boss_single", 10, true},
};

static const struct goal *goal_for(const char *peer)
{
    for (size_t i = 0; i < QR_COUNT(GOALS); i++) {
        if (strcmp(GOALS[i].peer, peer) == 0) {
            return &GOALS[i];
        }
    }
    return NULL;
}

static void compare(struct bench_report *report, const struct goal *goal, double cycle_per_s, struct cycle_rates sqlite,
                    struct cycle_rates postgres)
{
    char key[128];
    snprintf(key, sizeof key, "sqlite_over_%s", goal->peer);
    bench_report_goal(report, key, sqlite.relaxed / cycle_per_s, true, goal->at_least,
                      "    Quire on SQLite against it");
    snprintf(key, sizeof key, "sqlite_durable_over_%s", goal->peer);
    bench_report_number(report, key, sqlite.durable / cycle_per_s, "×", "    the same, end recorded durably");
    if (goal->on_postgres && postgres.relaxed > 0) {
        snprintf(key, sizeof key, "postgresql_over_%s", goal->peer);
        bench_report_number(report, key, postgres.relaxed / cycle_per_s, "×",
                            "    Quire on the same PostgreSQL against it");
    }
}

static void report_peer(struct bench_report *report, const json_t *row, struct cycle_rates sqlite,
                        struct cycle_rates postgres)
{
    static const struct {
        const char *name, *label;
    } figures[] = {{"accepts_per_s", "    accepted"}, {"runs_per_s", "    then run"}};
    const char *key = json_string_value(json_object_get(row, "key"));
    const char *label = json_string_value(json_object_get(row, "label"));
    const char *reason = json_string_value(json_object_get(row, "reason"));
    const double cycle_per_s = json_number_value(json_object_get(row, "cycle_per_s"));
    char full[160];
    if (!key || !label) {
        return;
    }
    snprintf(full, sizeof full, "peer_%s", key);
    if (reason || cycle_per_s <= 0) {
        bench_report_text(report, full, reason ? reason : "no figure", label);
        return;
    }
    bench_report_number(report, full, cycle_per_s, "/s", label);
    for (size_t i = 0; i < QR_COUNT(figures); i++) {
        snprintf(full, sizeof full, "peer_%s_%s", key, figures[i].name);
        bench_report_number(report, full, json_number_value(json_object_get(row, figures[i].name)), "/s",
                            figures[i].label);
    }
    const struct goal *goal = goal_for(key);
    if (goal) {
        compare(report, goal, cycle_per_s, sqlite, postgres);
    }
}

void bench_peers(struct bench_report *report, const struct bench_options *options, const char *postgres_url,
                 struct cycle_rates sqlite, struct cycle_rates postgres)
{
    bench_report_heading(report, "Other job systems, the same cycle: jobs that do nothing, accepted, then run");
    char command[2048], line[4096];
    snprintf(command, sizeof command, "exec python3 '" BENCH_PEERS_RUN "' --dir '%s' --seconds %g --postgres '%s'",
             options->dir, options->seconds, postgres_url);
    FILE *rows = popen(command, "r");
    while (rows && fgets(line, sizeof line, rows)) {
        json_t *row = json_loads(line, 0, NULL);
        report_peer(report, row, sqlite, postgres);
        json_decref(row);
    }
    if (!rows || pclose(rows) != 0) {
        bench_report_text(report, "peers", "failed: bench/peers/run ended with an error", "peers");
    }
}
