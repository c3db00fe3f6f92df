/* Another model by `quire base set`: what it costs is said, then it is waited for. */
#include "support/model_server.h"
#include "support/program.h"

#include <stdlib.h>
#include <string.h>

static char url[160];

/* Three notes in a base without a model. */
static struct qr_model_server *begin(struct qr_test *t, struct qr_model_options options)
{
    static const char *const notes[] = {"apples are red", "pears are green", "plums are blue"};
    setenv("no_proxy", "127.0.0.1", 1);
    struct qr_model_server *server = qr_model_server_start(&options);
    snprintf(url, sizeof url, "embedding.url=%s", qr_model_server_url(server, "/v1"));
    program_check(t, PROGRAM("base", "create", "b"), 0, "name      b");
    for (size_t i = 0; i < QR_COUNT(notes); i++) {
        const struct program add = {.args = {"add", "-b", "b", "--name", notes[i], "-"}, .input = notes[i]};
        program_check(t, &add, 0, "completed");
    }
    return server;
}

QR_TEST(a_model_is_waited_for_and_its_cost_said_before)
{
    struct qr_model_server *server = begin(t, (struct qr_model_options){.dimension = 8});
    const char *shown = program_check(
        t, PROGRAM("base", "set", "b", "embedding.provider=openai", "embedding.model=m", url, "--dry-run"), 0,
        "would embed 3 of 3 chunks, ");
    QR_CHECK(!strstr(shown, "about")); /* nobody knows how fast it is */
    shown = program_check(t, PROGRAM("base", "set", "b", "embedding.provider=openai", "embedding.model=m", url), 0,
                          "embedding 3 of 3 chunks, ");
    QR_CHECK_HAS("model     openai m\n", shown);
    QR_CHECK(!strstr(shown, "building"));
    shown = program_check(t, PROGRAM("base", "show", "-b", "b"), 0, "model     openai m\n");
    QR_CHECK(!strstr(shown, "building"));
    program_check(t, PROGRAM("base", "show", "b"), 0, "model     openai m\n");
    program_check(t, PROGRAM("search", "-b", "b", "apples"), 0, "apples");
    qr_model_server_stop(server);
}

QR_TEST(the_time_a_model_takes_follows_from_its_limits)
{
    struct qr_model_server *server = begin(t, (struct qr_model_options){.dimension = 8});
    program_check(t,
                  PROGRAM("base", "set", "-b", "b", "embedding.provider=openai", "embedding.model=m", url,
                          "embedding.limits.inputs=1", "embedding.limits.requests_a_minute=1", "--dry-run"),
                  0, "would embed 3 of 3 chunks, about 3 minutes, ");
    qr_model_server_stop(server);
}

QR_TEST(without_waiting_a_model_is_built_later)
{
    struct qr_model_server *server = begin(t, (struct qr_model_options){.dimension = 8});
    const char *shown = program_check(
        t, PROGRAM("base", "set", "b", "embedding.provider=openai", "embedding.model=m", url, "--no-wait"), 0,
        "building  openai m: queued");
    QR_CHECK_HAS("embedding 3 of 3 chunks, ", shown);
    QR_CHECK_HAS("`quire wait` runs it", shown);
    program_check(t, PROGRAM("wait"), 0, "");
    shown = program_check(t, PROGRAM("base", "show", "b"), 0, "model     openai m\n");
    QR_CHECK(!strstr(shown, "building"));
    /* --json: the answer, and nothing else */
    shown = program_check(t, PROGRAM("base", "set", "b", "embedding.model=n", "--json"), 0, "\"model_build\":{");
    QR_CHECK(shown[0] == '{' && !strstr(shown, "chunks,"));
    program_check(t, PROGRAM("wait"), 0, "");
    program_check(t, PROGRAM("base", "show", "b"), 0, "model     openai n\n");
    qr_model_server_stop(server);
}

QR_TEST(a_dry_run_of_reindex_says_what_would_be_paid)
{
    struct qr_model_server *server = begin(t, (struct qr_model_options){.dimension = 8});
    FILE *file = fopen(qr_test_path(t, "quinces.txt"), "w");
    QR_CHECK(file && fputs("quinces are yellow", file) >= 0 && fclose(file) == 0);
    program_check(t, PROGRAM("base", "set", "b", "embedding.provider=openai", "embedding.model=m", url), 0, "openai m");
    program_check(t, PROGRAM("add", "-b", "b", "quinces.txt"), 0, "completed");
    program_check(t, PROGRAM("reindex", "-b", "b", "--dry-run", "quinces.txt"), 0,
                  "would build 1 document anew, and embed 0 of 1 chunk; 1 known already");
    qr_model_server_stop(server);
}

QR_TEST(ctrl_c_ends_the_waiting_for_a_model_and_says_what_goes_on)
{
    struct qr_model_server *server = begin(t, (struct qr_model_options){.dimension = 8});
    const struct qr_model_step refuses = {.from = 1, .to = 1000, .fault = QR_FAULT_QUOTA};
    qr_model_server_set_steps(server, &refuses, 1);
    const struct program set = {
        .args = {"base", "set", "b", "embedding.provider=openai", "embedding.model=m", url},
        .env = {"no_proxy=127.0.0.1"},
        .ctrl_c_upon = "waiting: ",
    };
    const struct program_end end = program_run_on_terminal(t, &set);
    QR_CHECK_INT(0, end.exit_code);
    QR_CHECK_HAS("stopped waiting; nothing is lost", end.out);
    QR_CHECK_HAS("`quire wait` ", end.out);
    program_check(t, PROGRAM("base", "show", "b"), 0, "building  openai m: waiting");
    qr_model_server_stop(server);
}

QR_TEST(options_of_base_are_for_their_actions)
{
    program_check(t, PROGRAM("base", "create", "-b", "b"), 0, "name      b");
    program_check(t, PROGRAM("base", "show", "-b", "b", "b"), 2, "");
    program_check(t, PROGRAM("base", "ls", "-b", "b"), 2, "");
    program_check(t, PROGRAM("base", "show", "b", "--no-wait"), 2, "");
    program_check(t, PROGRAM("base", "set", "-b", "b", "name=c"), 0, "name      c");
    program_check(t, PROGRAM("base", "rm", "-b", "c"), 0, "deleted ");
}

QR_TEST(a_model_with_a_name_is_given_to_a_base)
{
    struct qr_model_server *server = begin(t, (struct qr_model_options){.dimension = 8});
    char at[200];
    snprintf(at, sizeof at, "small  openai m, at %s", url + strlen("embedding.url="));
    program_check(t, PROGRAM("model", "ls"), 0, "no models");
    program_check(t, PROGRAM("model", "add", "small", "--model", "m", "--url", url + strlen("embedding.url=")), 0, at);
    program_check(t, PROGRAM("model", "add", "small", "--model", "m"), 3, "");
    program_check(t, PROGRAM("model", "use", "small", "-b", "b", "--dry-run"), 0, "would embed 3 of 3 chunks, ");
    program_check(t, PROGRAM("model", "use", "small", "-b", "b"), 0, "embedding 3 of 3 chunks, ");
    program_check(t, PROGRAM("base", "show", "b"), 0, "model     openai m\n");
    program_check(t, PROGRAM("model", "ls"), 0, "; used by b\n");
    program_check(t, PROGRAM("model", "rm", "small"), 3, "");
    program_check(t, PROGRAM("base", "set", "b", "embedding="), 0, "model     none");
    program_check(t, PROGRAM("model", "rm", "small"), 0, "removed small");
    program_check(t, PROGRAM("model", "use", "small", "-b", "b"), 4, "");
    qr_model_server_stop(server);
}

QR_TEST(options_of_model_are_for_their_actions)
{
    program_check(t, PROGRAM("model"), 2, "");
    program_check(t, PROGRAM("model", "make"), 2, "");
    program_check(t, PROGRAM("model", "add"), 2, "");
    program_check(t, PROGRAM("model", "add", "a"), 2, "");
    program_check(t, PROGRAM("model", "ls", "a"), 2, "");
    program_check(t, PROGRAM("model", "ls", "--dry-run"), 2, "");
    program_check(t, PROGRAM("model", "use", "a", "--url", "http://h"), 2, "");
    program_check(t, PROGRAM("model", "add", "a", "--model", "m", "--dimensions", "many"), 2, "");
    program_check(t, PROGRAM("model", "add", "a", "--model", "m", "--url", "http://h:99999"), 2, "");
    program_check(t, PROGRAM("model", "rm", "a"), 4, "");
}
