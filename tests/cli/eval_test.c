/* quire eval: figures that were worked out by hand, for both layouts of test sets, and what is refused. */
#include "base/fs.h"
#include "base/json.h"
#include "support/program.h"

#include <dirent.h>
#include <math.h>

static void write_file(struct qr_test *t, const char *name, const char *content)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_replace(qr_io_system(), qr_test_path(t, name), qr_str_of(content), 0600, &err));
}

/* green pears → d1, found first; blue → d1 by the judge, but only d3 is found; zebra → nothing is found. */
static void make_beir(struct qr_test *t)
{
    qr_err err;
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "beir/qrels"), 0700, &err));
    write_file(t, "beir/corpus.jsonl",
               "{\"_id\":\"d1\",\"title\":\"Pears\",\"text\":\"Pears are green.\"}\n"
               "{\"_id\":\"d2\",\"title\":\"Apples\",\"text\":\"Apples are red.\"}\n"
               "{\"_id\":\"d3\",\"title\":\"\",\"text\":\"Plums are blue.\"}\n");
    write_file(t, "beir/queries.jsonl",
               "{\"_id\":\"q1\",\"text\":\"green pears\"}\n{\"_id\":\"q2\",\"text\":\"blue\"}\n"
               "{\"_id\":\"q3\",\"text\":\"zebra\"}\n{\"_id\":\"q4\",\"text\":\"not judged\"}\n");
    write_file(t, "beir/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\nq3\td2\t1\nq4\td2\t0\n");
}

static double figure(const json_t *answer, size_t variant, const char *name)
{
    const json_t *variants = json_object_get(answer, "variants");
    const json_t *modes = json_object_get(json_array_get(variants, variant), "modes");
    const json_t *value = json_object_get(json_array_get(modes, 0), name);
    QR_CHECK(json_is_number(value));
    return json_number_value(value);
}

static void check_figure(const json_t *answer, const char *name, double expected)
{
    const double actual = figure(answer, 0, name);
    if (fabs(actual - expected) > 1e-9) {
        QR_FAIL("%s is %f, not %f", name, actual, expected);
    }
}

static json_t *evaluate(struct qr_test *t, const struct program *program)
{
    json_t *answer = NULL;
    qr_err err;
    const struct program_end end = program_run(t, program);
    if (end.exit_code) {
        QR_FAIL("%d: %s%s", end.exit_code, end.out, end.errors);
    }
    QR_CHECK_RC(QR_OK, qr_json_parse(qr_str_of(end.out), &QR_JSON_REQUEST_LIMITS, &answer, &err));
    return answer;
}

QR_TEST(a_beir_folder_is_measured)
{
    make_beir(t);
    QR_JSON *answer = evaluate(t, PROGRAM("eval", "beir", "--json"));
    QR_CHECK_INT(3, json_integer_value(json_object_get(answer, "documents")));
    QR_CHECK_INT(3, json_integer_value(json_object_get(answer, "queries")));
    check_figure(answer, "ndcg_10", 1.0 / 3);
    check_figure(answer, "recall_10", 1.0 / 3);
    check_figure(answer, "recall_100", 1.0 / 3);
    check_figure(answer, "mrr", 1.0 / 3);
    check_figure(answer, "zero_hit_rate", 1.0 / 3);
    QR_JSON *first = evaluate(t, PROGRAM("eval", "beir", "--queries", "1", "--json"));
    check_figure(first, "ndcg_10", 1);
    program_check(t, PROGRAM("eval", "beir"), 0, "   text       0.3333   0.3333   0.3333   0.3333    33.33%");
}

QR_TEST(a_squad_file_is_measured_and_settings_are_compared)
{
    write_file(t, "squad.json",
               "{\"data\":[{\"title\":\"Fruit\",\"paragraphs\":["
               "{\"context\":\"Pears are green.\",\"qas\":[{\"id\":\"1\",\"question\":\"what is green\"}]},"
               "{\"context\":\"Apples are red.\",\"qas\":[{\"id\":\"2\",\"question\":\"which are red\"},"
               "{\"id\":\"3\",\"question\":\"apples\"}]}]}]}");
    QR_JSON *answer = evaluate(t, PROGRAM("eval", "squad.json", "--json"));
    QR_CHECK_INT(2, json_integer_value(json_object_get(answer, "documents")));
    check_figure(answer, "ndcg_10", 1);
    check_figure(answer, "zero_hit_rate", 0);
    const char *printed = program_check(
        t, PROGRAM("eval", "squad.json", "--compare", "chunking.size_tokens=50 chunking.overlap_tokens=0"), 0,
        "A  the defaults\nB  {\"chunking\":{\"size_tokens\":50,\"overlap_tokens\":0}}\n");
    QR_CHECK_HAS("\nA  text       1.0000", printed);
    QR_CHECK_HAS("\nB  text       1.0000", printed);
}

QR_TEST(what_is_no_test_set_and_no_setting_is_refused)
{
    make_beir(t);
    write_file(t, "text.txt", "no JSON");
    write_file(t, "empty.json", "{}");
    program_check(t, PROGRAM("eval"), 2, "name a test set");
    program_check(t, PROGRAM("eval", "nowhere"), 4, "cannot read the test set nowhere");
    program_check(t, PROGRAM("eval", "text.txt"), 2, "text.txt is no test set");
    program_check(t, PROGRAM("eval", "empty.json"), 2, "empty.json is no test set");
    program_check(t, PROGRAM("eval", "."), 2, ". is no test set");
    program_check(t, PROGRAM("eval", "beir", "chunking.size_tokens=x"), 2, "chunking.size_tokens must be");
    program_check(t, PROGRAM("eval", "beir", "chunkin.size_tokens=5"), 2, "did you mean \"chunking\"?");
    program_check(t, PROGRAM("eval", "beir", "--compare", "nothing"), 2, "nothing is not KEY=VALUE");
    program_check(t, PROGRAM("eval", "beir", "--mode", "vector"), 2, "embedding.provider");
    program_check(t, PROGRAM("eval", "beir", "--queries", "0"), 2, "--queries takes a number above 0");
    write_file(t, "beir/corpus.jsonl", "{\"_id\":\"d1\"}\nbroken\n");
    program_check(t, PROGRAM("eval", "beir"), 2, "line 2 of corpus.jsonl is not an object with an _id");
}

static size_t entries_in(struct qr_test *t, const char *name)
{
    DIR *dir = opendir(qr_test_path(t, name));
    QR_CHECK(dir != NULL);
    size_t count = 0;
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count - 2;
}

QR_TEST(the_folder_of_an_evaluation_goes_also_at_ctrl_c)
{
    char tmpdir[256];
    qr_err err;
    make_beir(t);
    QR_CHECK_RC(QR_OK, qr_fs_make_dirs(qr_io_system(), qr_test_path(t, "tmp"), 0700, &err));
    snprintf(tmpdir, sizeof tmpdir, "TMPDIR=%s", qr_test_path(t, "tmp"));
    const struct program whole = {.args = {"eval", "beir"}, .env = {tmpdir}};
    program_check(t, &whole, 0, "3 documents");
    QR_CHECK_INT(0, (long long)entries_in(t, "tmp"));
    const struct program ended = {
        .args = {"eval", "beir"},
        .env = {tmpdir, "TERM=xterm", "LC_ALL=C.UTF-8", "QUIRE_FAILPOINTS=index.write.before_commit=sleep(3000)@1"},
        .ctrl_c_upon = "reading"};
    const struct program_end end = program_run_on_terminal(t, &ended);
    QR_CHECK_HAS("the evaluation was ended", program_screen(end.out, 80));
    QR_CHECK(end.exit_code > 0);
    QR_CHECK_INT(0, (long long)entries_in(t, "tmp"));
}
