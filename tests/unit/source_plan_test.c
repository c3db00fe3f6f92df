/* Which way a source takes (JOB-2). */
#include "model/source_plan.h"
#include "support/test.h"

static struct qr_source_plan plan_of(const char *name, bool has_processor)
{
    return qr_source_plan(&(struct qr_source_facts){
        .type = QR_ITEM_FILE, .name = qr_str_of(name), .has_processor = has_processor, .size_bytes = -1});
}

static void check_direct(const char *name, const char *mime)
{
    qr_test_set_context("%s", name);
    const struct qr_source_plan plan = plan_of(name, false);
    QR_CHECK_INT(QR_WAY_DIRECT, plan.way);
    QR_CHECK_TEXT(mime, plan.mime);
    QR_CHECK_INT(QR_CODE_NONE, plan.code);
}

static void check_unsupported(const char *name, const char *message_part)
{
    qr_test_set_context("%s", name);
    const struct qr_source_plan plan = plan_of(name, false);
    QR_CHECK_INT(QR_WAY_INVALID, plan.way);
    QR_CHECK_INT(QR_CODE_UNSUPPORTED_TYPE, plan.code);
    QR_CHECK_HAS(message_part, plan.message);
}

QR_TEST(text_and_source_code_are_read_directly) /* JOB-2 */
{
    check_direct("README.md", "text/markdown");
    check_direct("notes.markdown", "text/markdown");
    check_direct("a.txt", "text/plain");
    check_direct("a.rst", "text/plain");
    check_direct("a.org", "text/plain");
    check_direct("a.log", "text/plain");
    check_direct("a.csv", "text/csv");
    check_direct("a.tsv", "text/tab-separated-values");
    check_direct("a.json", "application/json");
    check_direct("a.jsonl", "application/json");
    check_direct("a.yaml", "application/yaml");
    check_direct("a.yml", "application/yaml");
    check_direct("a.toml", "application/toml");
    check_direct("a.ini", "text/plain");
    check_direct("a.xml", "application/xml");
    check_direct("a.html", "text/html");
    check_direct("a.htm", "text/html");
    check_direct("a.c", "text/x-c");
    check_direct("a.h", "text/x-c");
    check_direct("a.py", "text/x-python");
    check_direct("a.js", "text/javascript");
    check_direct("a.ts", "text/typescript");
    check_direct("a.go", "text/x-go");
    check_direct("a.rs", "text/x-rust");
    check_direct("a.java", "text/x-java");
    check_direct("a.sh", "text/x-shellscript");
}

QR_TEST(letter_case_does_not_count_and_the_last_extension_does) /* JOB-2 */
{
    check_direct("README.MD", "text/markdown");
    check_direct("a.pdf.Txt", "text/plain");
    check_direct("dir.zip/a.md", "text/markdown");
    check_unsupported("notes.md.ZIP", "archives");
}

QR_TEST(what_the_table_does_not_know_is_left_to_the_reader) /* JOB-2 */
{
    static const char *const names[] = {"Makefile", ".md",        "",      ".",
                                        "..",       "a.",         "a.xyz", "a.zip/b",
                                        "zip",      "x.md extra", "a. ",   "a.averyveryverylongextension",
                                        "a.md\n",   "dir/.zip",   "a/"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        check_direct(names[i], "");
    }
}

QR_TEST(known_formats_that_quire_does_not_read_go_to_a_processor_or_nowhere) /* JOB-2 */
{
    static const char *const names[] = {"a.pdf", "a.docx", "a.pptx", "a.xlsx", "a.odt", "a.epub", "a.png", "a.jpg"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        check_unsupported(names[i], "no file processor");
        const struct qr_source_plan plan = plan_of(names[i], true);
        QR_CHECK_INT(QR_WAY_PROCESSOR, plan.way);
        QR_CHECK(plan.mime[0]);
    }
    check_unsupported("a.mp3", "no text");
    check_unsupported("a.exe", "no text");
    QR_CHECK_TEXT("application/pdf", plan_of("a.pdf", false).mime);
}

QR_TEST(an_extension_that_the_base_sends_to_its_processor_goes_there) /* JOB-2 */
{
    static const char *const names[] = {"a.md", "a.zip", "a.mp3", "a.xyz"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        QR_CHECK_INT(QR_WAY_PROCESSOR, plan_of(names[i], true).way);
    }
}

QR_TEST(archives_and_addresses_are_not_read_yet) /* JOB-2 */
{
    static const char *const names[] = {"a.zip", "a.tar", "a.tgz", "a.tar.gz", "a.7z", "a.mbox", "a.eml", "a.rar"};
    for (size_t i = 0; i < QR_COUNT(names); i++) {
        check_unsupported(names[i], "archives are not read yet");
    }
    const struct qr_source_plan plan = qr_source_plan(
        &(struct qr_source_facts){.type = QR_ITEM_URL, .name = QR_STR("https://example.org/a.md"), .size_bytes = -1});
    QR_CHECK_INT(QR_WAY_INVALID, plan.way);
    QR_CHECK_INT(QR_CODE_UNSUPPORTED_TYPE, plan.code);
    QR_CHECK_HAS("not read yet", plan.message);
}

QR_TEST(notes_are_markdown_and_directories_are_expanded_whatever_their_names) /* JOB-2 */
{
    struct qr_source_facts facts = {.type = QR_ITEM_NOTE, .name = QR_STR("about.pdf"), .size_bytes = 5};
    QR_CHECK_INT(QR_WAY_DIRECT, qr_source_plan(&facts).way);
    QR_CHECK_TEXT("text/markdown", qr_source_plan(&facts).mime);
    facts.type = QR_ITEM_DIRECTORY;
    facts.size_bytes_max = 1; /* a folder's size says nothing */
    QR_CHECK_INT(QR_WAY_CONTAINER, qr_source_plan(&facts).way);
}

QR_TEST(what_is_larger_than_the_limit_is_refused_before_it_is_read) /* JOB-2 */
{
    struct qr_source_facts facts = {
        .type = QR_ITEM_FILE, .name = QR_STR("a.md"), .size_bytes = 100, .size_bytes_max = 100};
    QR_CHECK_INT(QR_WAY_DIRECT, qr_source_plan(&facts).way);
    facts.size_bytes = 101;
    QR_CHECK_INT(QR_WAY_INVALID, qr_source_plan(&facts).way);
    QR_CHECK_INT(QR_CODE_TOO_LARGE, qr_source_plan(&facts).code);
    QR_CHECK_HAS("limits.file_bytes_max", qr_source_plan(&facts).message);
    facts.has_processor = true;
    QR_CHECK_INT(QR_CODE_TOO_LARGE, qr_source_plan(&facts).code);
    facts.type = QR_ITEM_NOTE;
    QR_CHECK_INT(QR_CODE_TOO_LARGE, qr_source_plan(&facts).code);
    facts.size_bytes_max = 0; /* none */
    QR_CHECK_INT(QR_WAY_DIRECT, qr_source_plan(&facts).way);
    facts.size_bytes_max = 100;
    facts.size_bytes = -1; /* not known yet */
    QR_CHECK_INT(QR_WAY_DIRECT, qr_source_plan(&facts).way);
}
